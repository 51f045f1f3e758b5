"""The public card: what may be said about a bundle, for the people who receive it.

What it says of the records is public or was bought: the data dictionary, synthetic records, and the noise of counts.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from doublure.access import COVERED
from doublure.guarantee import beside, figure
from doublure.releasing.checking import PAGE
from doublure.releasing.drawings import digits, line_of, strip_of, unpacked
from doublure.releasing.examples import Examples, examples_of
from doublure.releasing.plain_words import figures_of, plain_words
from doublure.releasing.tables import middle
from doublure.report import page
from doublure.schema.kinds import KINDS
from doublure.schema.release_words import is_link
from doublure.support.views import list_values

_TITLE = "Synthetic data"
_WATERMARK = "Synthetic data, made by doublure"
_NO_GUARANTEE = "No privacy guarantee. Do not publish."
_KINDS = {
    "dp": "differential privacy",
    "bayesian-dp": "Bayesian differential privacy (an estimate), and a worst case",
    "empirical": "empirical estimate only",
    "none": "none",
}
_AT_MOST = {"epsilon_mu": "≤ "}
_ADDRESS = re.compile(r"[A-Za-z0-9._+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+")
_CLAIMS = frozenset({"epsilon", "delta", "epsilon_mu", "delta_mu", "mu", "gamma"})
_RAN: dict[object, str] = {
    True: "Every access was recorded as it ran, and matches this list.",
    False: "Not every access was recorded as it ran: this is the plan’s list.",
}
_TOUCHED = ("purpose", "event", "epsilon", "delta")
_MOST_VALUES = 6
_FIVE_DIGITS = 10_000
_PEOPLE = {"person": "people", "patient": "patients"}
_UNKNOWN = (
    "No margin of a count follows from what this run bought. Compare counts with known ones before relying on them."
)
_OF_THE_RECORD = frozenset({"dataset"})  # what is known of a release's record before it is made


def card_page(
    card: Mapping[str, Any],
    records: str = "rows",
    described: Mapping[str, Any] | None = None,
    examples: Examples | None = None,
) -> str:
    """Return the HTML of a release's card.

    Args:
        card: What ``card.json`` holds; what is missing or null is left out.
        records: What the release's records are called: rows, images or series.
        described: Its data dictionary.
        examples: Its first records.
    """
    return page.render("card.html.j2", context(card, records, described or {}, examples or Examples()))


def context(card: Mapping[str, Any], records: str, described: Mapping[str, Any], examples: Examples) -> dict[str, Any]:
    """Return what the template names."""
    guarantee: Mapping[str, Any] = card.get("guarantee") or {}
    kind = str(guarantee.get("kind") or "none")
    return {
        "title": card.get("title") or _TITLE,
        "watermark": _watermark(card.get("watermark"), kind),
        "loud": _NO_GUARANTEE if kind == "none" else None,
        "kind": kind,
        "covered": kind in COVERED,
        "kind_in_words": _KINDS.get(kind, kind),
        "sentence": guarantee.get("sentence"),
        "plain": plain_words(guarantee, records),
        "description": card.get("description"),
        "records": records,
        "sheet": sheet_of(examples),
        "columns": columns_of(described, card.get("margins"), examples),
        "drawings": drawings_of(examples),
        "precision": precision_of(card, records) if kind in COVERED else None,
        "licence": card.get("licence"),
        "citation": card.get("citation"),
        "contact": card.get("contact"),
        "mail": _mail(card.get("contact")),
        "links": [link for link in card.get("links") or () if is_link(link)],
        "figures": _figures(guarantee, kind),
        "assumptions": _list(guarantee.get("assumptions")),
        "excluded": _list(guarantee.get("excluded")),
        "touches": [_touched(touch, guarantee.get("kind")) for touch in card.get("touches") or ()],
        "ran": _RAN.get(card.get("executed")),
        "owners": _owners(card.get("owners")),
        "about": [
            (name, _text(card[key]))
            for key, name in {
                "method": "method",
                "created": "made on",
                "review_by": "review by",
                "doublure_version": "doublure",
                "schema_sha256": "schema, SHA-256",
            }.items()
            if card.get(key) is not None
        ],
        "public_sources": _list(card.get("public_sources")),
        "ledger": [("data set", _text(named))] if (named := (card.get("ledger") or {}).get("dataset")) else [],
        "files": [
            {key: _text(entry.get(key)) for key in ("path", "rows", "sha256")}
            | {"address": "./" + quote(str(entry.get("path")))}
            for entry in card.get("files") or ()
        ],
        "limits": _list(card.get("limits")),
        "review_by": card.get("review_by"),
    }


def _watermark(written: object, kind: str) -> str:
    """Return the mark of the page; the refusal of a card without a guarantee stands beside it and is not repeated."""
    mark = written.strip().removesuffix(".") if isinstance(written, str) else ""
    return _WATERMARK if not mark or (kind == "none" and mark in _NO_GUARANTEE) else mark


def _figures(guarantee: Mapping[str, Any], kind: str) -> list[tuple[str, str]]:
    names = figures_of(kind)
    known = {key: guarantee[key] for key in names if guarantee.get(key) is not None}
    if known.get("max_records") == 1:
        del known["max_records"]  # as in the sentence: of related tables it is a row with all that hangs on it
    shown = [(names[key], f"{_AT_MOST.get(key, '')}{_shown(key, value)}") for key, value in known.items()]
    return [*shown, *beside(kind, known)]


def _mail(contact: object) -> str | None:
    """Return the address that a contact is, if it is one of mail and nothing else."""
    return contact if isinstance(contact, str) and _ADDRESS.fullmatch(contact) else None


def _shown(key: str, value: object) -> str:
    return _claim(value) if key in _CLAIMS else _text(value)


def _claim(value: object) -> str:
    """Return a figure of a claim, rounded up, so that it never claims less."""
    return figure(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else _text(value)


def _touched(touch: Mapping[str, Any], kind: object) -> dict[str, str]:
    """Return one access in words; what an empirical run paid for is one table of votes, priced as a label moves it."""
    found = {key: _shown(key, touch.get(key)) for key in _TOUCHED}
    event = touch.get("event")
    if kind == "empirical" and isinstance(event, Mapping) and event.get("type") == "discrete-gaussian":
        scale = _text(event.get("scale"))
        found["event"] = f"discrete-gaussian: scale {scale} on each count of votes; a label moves two"
    return found


def _owners(said: object) -> str | None:
    """Return how many of how many owners took part, where records stay with several."""
    if not isinstance(said, Mapping):
        return None
    answered, of = (_text(said.get(key)) for key in ("answered", "of"))
    return f"The private records stayed with their owners, of whom {answered} of {of} answered. Which is not published."


def _text(value: object) -> str:
    """Return a card's value as text; a dash for null."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, Mapping):
        # A mechanism: its type, then its figures.
        rest = [f"{str(key).replace('_', ' ')} {_text(entry)}" for key, entry in value.items() if key != "type"]
        return ": ".join(part for part in (str(value.get("type") or ""), ", ".join(rest)) if part)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(_text(entry) for entry in value)
    return str(value)


def _list(value: object) -> list[str]:
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_text(entry) for entry in value if entry is not None]
    return [] if value is None else [_text(value)]


# -- what it says of the records themselves: columns, the first rows, how precise a count is ---------------------------


def columns_of(
    described: Mapping[str, Any], margins: Mapping[str, Any] | None, examples: Examples
) -> list[dict[str, Any]]:
    """Return a section for each table: its columns with what each means and may hold, its first cells, and margins.

    Args:
        described: The data dictionary.
        margins: What :func:`doublure.releasing.tables.margins_of` returns.
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
        parts.append(list_values(list(map(str, values)), _MOST_VALUES))
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


# -- the page, from the card and the files beside it: whoever has a bundle draws the same page again -------------------


def page_of(folder: Path, card: Mapping[str, Any], described: Mapping[str, Any]) -> str:
    """Return the HTML of a release's page.

    Args:
        folder: The release's.
        card: What ``card.json`` holds, or will hold: the page's own hash and the record's do not stand on the page.
        described: The data dictionary, as its file has it; of a generator that of its schema.

    Raises:
        Misread: A file is not what the dictionary describes.
        SettingError: The data are of a kind that is not known here.
    """
    said, described = json.loads(json.dumps(card)), json.loads(json.dumps(described))
    entry = said.get("ledger") or {}
    said["ledger"] = {key: entry[key] for key in _OF_THE_RECORD & entry.keys()}
    said["files"] = [file for file in said["files"] if file["path"] != PAGE]
    listed = [str(file["path"]) for file in said["files"]]
    return card_page(said, KINDS[described["kind"]].records, described, examples_of(folder, listed, described))


def draws_the_same(one: str, other: str) -> bool:
    """Return whether two pages are the same byte for byte, pictures by their pixels."""
    return one == other or unpacked(one) == unpacked(other)
