"""What a card says of the records themselves: their columns, the first of them, and how precise a count of them is.

All of it is public or was bought: the data dictionary, synthetic records, and the noise of counts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from doublure.releasing.drawings import digits, line_of, strip_of
from doublure.releasing.margins import middle
from doublure.support.wording import listed

if TYPE_CHECKING:
    from doublure.releasing.examples import Examples

_MOST_VALUES = 6
_FIVE_DIGITS = 10_000
_PEOPLE = {"person": "people", "patient": "patients"}
_UNKNOWN = (
    "No margin of a count follows from what this run bought. Compare counts with known ones before relying on them."
)


def columns_of(
    described: Mapping[str, Any], margins: Mapping[str, Any] | None, examples: Examples
) -> list[dict[str, Any]]:
    """Return a section for each table: its columns with what each means and may hold, its first cells, and margins.

    Args:
        described: The data dictionary.
        margins: What :func:`doublure.releasing.margins.margins_of` returns.
        examples: The first records.
    """
    entries: Sequence[Mapping[str, Any]] = described.get("columns") or ()
    related: Mapping[str, Any] = described.get("related") or {}
    found, ranges = [], _ranges(examples)
    for table in related or {"": None}:
        prefix = f"{table}." if table else ""
        shown = {**ranges, **examples.rows.get(table, {})}
        rows = [
            {
                "name": entry["name"].removeprefix(prefix),
                "type": entry["type"],
                "means": entry.get("description"),
                "holds": holds(entry),
                "cells": shown.get(entry["name"].removeprefix(prefix), ()),
                "margin": _margin(margins, entry["name"]),
            }
            for entry in entries
            if entry["name"].startswith(prefix)
        ]
        found.append(
            {
                "title": table,
                "rows": rows,
                "numbers": max((len(row["cells"]) for row in rows), default=0),
                "margins": any(row["margin"] for row in rows),
            }
        )
    return [section for section in found if section["rows"]]


def _ranges(examples: Examples) -> dict[str, tuple[str, ...]]:
    """Return between which values each channel of the first series lies."""
    found: dict[str, list[str]] = {}
    for series in examples.series:
        for name, values in series.items():
            known = [value for value in values if not math.isnan(value)]
            ends = f"{digits(min(known))} to {digits(max(known))}" if known else "missing throughout"
            found.setdefault(name, []).append(ends)
    return {name: tuple(ends) for name, ends in found.items()}


def _margin(margins: Mapping[str, Any] | None, name: str) -> str | None:
    known = (margins or {}).get("columns", {})
    return f"± {known[name]:,}" if name in known else None


def holds(entry: Mapping[str, Any]) -> str:
    """Return what a column may hold, in words, from its entry in the data dictionary.

    Example:
        >>> holds({"bounds": [0, 1_000_000], "missing": True}), holds({"values": ["f", "m"]})
        ('0 to 1,000,000; may be missing', 'f, m')
        >>> holds({"bounds": [-40.0, 0.5]})
        '-40 to 0.5'
    """
    values, bounds = entry.get("values"), entry.get("bounds")
    parts = []
    if values:
        parts.append(listed(list(map(str, values)), _MOST_VALUES))
    elif bounds:
        parts.append(f"{_end(bounds[0])} to {_end(bounds[1])}")
    if entry.get("derived_from"):
        parts.append(f"follows from {entry['derived_from']}")
    if entry.get("missing"):
        parts.append("may be missing")
    return "; ".join(parts)


def _end(bound: Any) -> str:
    """Return a bound; a number of five digits and more with separators, so that 2020 may be a year."""
    if isinstance(bound, float) and bound.is_integer():
        bound = int(bound)
    return f"{bound:,}" if isinstance(bound, int | float) and abs(bound) >= _FIVE_DIGITS else str(bound)


def precision_of(card: Mapping[str, Any], records: str) -> dict[str, Any]:
    """Return how precise a count is, as a headline and sentences.

    Args:
        card: What ``card.json`` holds.
        records: What the records are called.
    """
    margins: Mapping[str, Any] | None = card.get("margins")
    if not margins:
        return {"headline": "", "lines": [_UNKNOWN]}
    guarantee: Mapping[str, Any] = card.get("guarantee") or {}
    unit = str(guarantee.get("unit") or "unit")
    alone = guarantee.get("max_records") == 1 and records == "rows"
    counted = _PEOPLE.get(unit, "rows") if alone else "rows"
    columns: Mapping[str, int] = margins["columns"]
    typical = middle(columns.values())
    least, most = (pick(columns, key=lambda name: columns[name]) for pick in (min, max))
    lines = [
        f"This is a count of {counted} with one value of one column. Noise was added to it on purpose, to hide "
        f"what any one {unit} adds; in 19 of 20 cases the noise is smaller than the margin.",
    ]
    if columns[least] < columns[most]:
        lines.append(
            f"The margin is that of the column, from ± {columns[least]:,} ({least}) to ± {columns[most]:,} ({most}); "
            f"± {typical:,} is the middle one. All stand beside the columns."
        )
    released, units = _released(card), margins["units"]
    if alone and released and released != units:
        lines.append(
            f"The margin is of {units:,} private {counted}, and this release has {released:,} rows: multiply a count "
            f"of its rows by {units / released:.4g} first."
        )
    lines.append("The generator’s own error comes on top. Counts over several columns are less precise.")
    return {"headline": f"A count is off by about ± {typical:,} {counted}.", "lines": lines}


def _released(card: Mapping[str, Any]) -> int | None:
    """Return how many rows a bundle of one table holds."""
    known = {entry.get("rows") for entry in card.get("files") or () if str(entry.get("path")).startswith("data.")}
    return known.pop() if len(known) == 1 else None


def drawings_of(examples: Examples) -> list[dict[str, Any]]:
    """Return a drawing of each channel of the first series, all series of a channel on one scale."""
    found = []
    for channel in examples.series[0] if examples.series else ():
        values = [one[channel] for one in examples.series]
        known = [0.0, *(value for one in values for value in one if not math.isnan(value))]
        for number, one in enumerate(values, start=1):
            drawing = line_of(one, (min(known), max(known)), f"Synthetic series {number} of {channel}")
            found.append({"channel": channel, "number": number, "drawing": drawing})
    return found


def sheet_of(examples: Examples) -> list[dict[str, str]]:
    """Return the rows of a sheet of the first images: a class, and its images side by side."""
    return [{"name": name, "images": strip_of(images)} for name, images in examples.images]
