"""The public card of a release, as a page for its recipients.

Its statements about the records are public or bought: the data dictionary, synthetic records, and the noise of counts.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from doublure.access import COVERED
from doublure.guarantee import figure
from doublure.planning.explain import derived_claims
from doublure.releasing.checking import PAGE
from doublure.releasing.drawings import FIVE_DIGITS, digits, draw_line, draw_strip, with_pixel_hashes
from doublure.releasing.examples import SHOWN, ExampleRecords, read_examples
from doublure.releasing.plain_words import figure_names, plain_words
from doublure.releasing.tables import cell_margin, middle
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
_PEOPLE = {"person": "people", "patient": "patients"}
_UNKNOWN = (
    "No margin of a count follows from what this run bought. Compare counts with known ones before relying on them."
)
_COUNTS = "discrete-gaussian"
_ON_TOP = "The generator’s own error comes on top."
_OF_THE_RECORD = frozenset({"dataset"})  # known of the ledger's record before it is made


def card_page(
    card: Mapping[str, Any],
    records: str = "rows",
    described: Mapping[str, Any] | None = None,
    examples: ExampleRecords | None = None,
) -> str:
    """Return the HTML of a release's card.

    Args:
        card: The contents of ``card.json``; missing or null entries are left out.
        records: The name of the records: rows, images or series.
        described: Its data dictionary.
        examples: Its first records.
    """
    return page.render("card.html.j2", context(card, records, described or {}, examples or ExampleRecords()))


def context(
    card: Mapping[str, Any], records: str, described: Mapping[str, Any], examples: ExampleRecords
) -> dict[str, Any]:
    """Return the context of the template."""
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
        "sheet": draw_sheets(examples),
        "columns": column_sections(described, card.get("margins"), examples),
        "kept": _kept(described, card, records),
        "drawings": draw_series(examples),
        "precision": describe_precision(card, records) if kind in COVERED else None,
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
    """Return the mark of the page, without repeating the refusal of a card that has no guarantee."""
    mark = written.strip().removesuffix(".") if isinstance(written, str) else ""
    return _WATERMARK if not mark or (kind == "none" and mark in _NO_GUARANTEE) else mark


def _figures(guarantee: Mapping[str, Any], kind: str) -> list[tuple[str, str]]:
    names = figure_names(kind)
    known = {key: guarantee[key] for key in names if guarantee.get(key) is not None}
    if known.get("max_records") == 1:
        del known["max_records"]  # as in the sentence: with related tables it is a row with all its descendants
    shown = [(names[key], f"{_AT_MOST.get(key, '')}{_shown(key, value)}") for key, value in known.items()]
    return [*shown, *derived_claims(kind, known)]


def _kept(described: Mapping[str, Any], card: Mapping[str, Any], records: str) -> str | None:
    """Return a sentence on rules that every row keeps, where there are rows: :func:`verify` asks each row."""
    if not described or records == "images" or not any(file.get("rows") for file in card.get("files") or ()):
        return None
    tables = [described, *(described.get("related") or {}).values()]
    rules = sum(len(each.get("constraints") or ()) for each in tables)
    kept = {0: "", 1: "Every row keeps the declared rule, and every cell"}.get(
        rules, f"Every row keeps all {rules} declared rules, and every cell"
    )
    return f"{kept or 'Every cell keeps'} its column’s domain. doublure verify checks each row."


def _mail(contact: object) -> str | None:
    """Return the contact if it is a mail address and nothing else."""
    return contact if isinstance(contact, str) and _ADDRESS.fullmatch(contact) else None


def _shown(key: str, value: object) -> str:
    return _claim(value) if key in _CLAIMS else _text(value)


def _claim(value: object) -> str:
    """Return a figure of a claim, rounded up, so that it never claims less."""
    return figure(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else _text(value)


def _counts_votes(kind: object) -> bool:
    """Return whether what a run counted are votes: an empirical one pays for one table of them, by a label's move."""
    return kind == "empirical"


def _touched(touch: Mapping[str, Any], kind: object) -> dict[str, str]:
    """Return one access in words."""
    found = {key: _shown(key, touch.get(key)) for key in _TOUCHED}
    if _counts_votes(kind) and (scale := _count_scale(touch)) is not None:
        found["event"] = f"{_COUNTS}: scale {_text(scale)} on each count of votes; a label moves two"
    return found


def _count_scale(touch: Mapping[str, Any]) -> float | None:
    """Return the standard deviation of the noise of an access's counts; None where it counted nothing."""
    event = touch.get("event")
    if not isinstance(event, Mapping) or event.get("type") != _COUNTS:
        return None
    scale = event.get("scale")
    return scale if isinstance(scale, int | float) else None


def _owners(said: object) -> str | None:
    """Return a sentence about the owners that took part, where records stay with several."""
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


# -- the records themselves: columns, the first rows, the precision of a count -----------------------------------------


def column_sections(
    described: Mapping[str, Any], margins: Mapping[str, Any] | None, examples: ExampleRecords
) -> list[dict[str, Any]]:
    """Return a section for each table: its columns with meaning and domain, its first cells, and margins.

    Args:
        described: The data dictionary.
        margins: The result of :func:`doublure.releasing.tables.count_margins`.
        examples: The first records.
    """
    entries: Sequence[Mapping[str, Any]] = described.get("columns") or ()
    related: Mapping[str, Any] = described.get("related") or {}
    found, ranges = [], _ranges(examples, {entry["name"]: entry.get("values") for entry in entries})
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


def _ranges(examples: ExampleRecords, states: Mapping[str, Sequence[str] | None]) -> dict[str, tuple[str, ...]]:
    """Return the range of each channel in the first series; of a channel of states its most frequent ones."""
    found: dict[str, list[str]] = {}
    for series in examples.series:
        for name, values in series.items():
            known, said = [value for value in values if not math.isnan(value)], "missing throughout"
            if known and (listed := states.get(name)):
                said = list_values([listed[int(place)] for place, _ in Counter(known).most_common()], SHOWN)
            elif known:
                said = f"{digits(min(known))} to {digits(max(known))}"
            found.setdefault(name, []).append(said)
    return {name: tuple(ends) for name, ends in found.items()}


def _margin(margins: Mapping[str, Any] | None, name: str) -> str | None:
    known = (margins or {}).get("columns", {})
    return f"± {known[name]:,}" if name in known else None


def holds(entry: Mapping[str, Any]) -> str:
    """Return the domain of a column in words, from its entry in the data dictionary.

    Example:
        >>> holds({"bounds": [0, 1_000_000], "missing": True}), holds({"values": ["f", "m"]})
        ('0 to 1,000,000; may be missing', 'f, m')
        >>> holds({"bounds": [-40.0, 0.5]}), holds({"values": ["1", "2"], "value_labels": {"1": "male", "2": "female"}})
        ('-40 to 0.5', '1 male, 2 female')
        >>> holds({"bounds": [0, 5], "missing": ["", "<0.2"]})
        '0 to 5; may be missing, as (empty), <0.2'
    """
    values, bounds, labels = entry.get("values"), entry.get("bounds"), entry.get("value_labels") or {}
    parts = []
    if values:
        parts.append(list_values([f"{value} {labels.get(value, '')}".strip() for value in values], _MOST_VALUES))
    elif bounds:
        parts.append(f"{_end(bounds[0])} to {_end(bounds[1])}")
    if entry.get("origin"):
        parts.append(str(entry["origin"]))
    if entry.get("derived_from"):
        parts.append(f"follows from {entry['derived_from']}")
    if missing := entry.get("missing"):
        texts = [text or "(empty)" for text in missing] if isinstance(missing, list) else []
        parts.append(f"may be missing, as {list_values(texts, _MOST_VALUES)}" if texts else "may be missing")
    return "; ".join(parts)


def _end(bound: Any) -> str:
    """Return a bound; a number of five digits and more with separators, so that 2020 may be a year."""
    if isinstance(bound, float) and bound.is_integer():
        bound = int(bound)
    return f"{bound:,}" if isinstance(bound, int | float) and abs(bound) >= FIVE_DIGITS else str(bound)


def describe_precision(card: Mapping[str, Any], records: str) -> dict[str, Any]:
    """Return the precision of a count, as a headline and sentences.

    Args:
        card: The contents of ``card.json``.
        records: The name of the records.
    """
    margins: Mapping[str, Any] | None = card.get("margins")
    guarantee: Mapping[str, Any] = card.get("guarantee") or {}
    if not margins:
        touches = () if _counts_votes(guarantee.get("kind")) else card.get("touches") or ()
        scales = [(_text(touch.get("purpose")), _count_scale(touch)) for touch in touches]
        noisy = [
            f"Noise of “{purpose}”: ± {cell_margin(scale):,} {records} in each cell, in 19 of 20 cases."
            for purpose, scale in scales
            if scale is not None
        ]
        return {"headline": "", "lines": [*noisy, _ON_TOP] if noisy else [_UNKNOWN]}
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
            f"The margin is of {units:,} private {counted}, and this release of {released:,}: multiply a count "
            f"of its rows by {units / released:.4g} first."
        )
    lines.append(f"{_ON_TOP} Counts over several columns are less precise.")
    return {"headline": f"By its noise alone a count is off by about ± {typical:,} {counted}.", "lines": lines}


def _released(card: Mapping[str, Any]) -> int | None:
    """Return the number of rows in a bundle of one table."""
    known = {entry.get("rows") for entry in card.get("files") or () if str(entry.get("path")).startswith("data.")}
    return known.pop() if len(known) == 1 else None


def draw_series(examples: ExampleRecords) -> list[dict[str, Any]]:
    """Return a drawing of each channel of the first series, all series of a channel on one scale."""
    found = []
    for channel in examples.series[0] if examples.series else ():
        values = [one[channel] for one in examples.series]
        known = [value for one in values for value in one if not math.isnan(value)] or [0.0]
        for number, one in enumerate(values, start=1):
            drawing = draw_line(one, (min(known), max(known)), f"Synthetic series {number} of {channel}")
            found.append({"channel": channel, "number": number, "drawing": drawing})
    return found


def draw_sheets(examples: ExampleRecords) -> list[dict[str, str]]:
    """Return the rows of a sheet of the first images: a class, and its images side by side."""
    return [{"name": name, "images": draw_strip(images)} for name, images in examples.images]


# -- the page, from the card and the files beside it, so that verify can draw it again ---------------------------------


def draw_page(folder: Path, card: Mapping[str, Any], described: Mapping[str, Any]) -> str:
    """Return the HTML of a release's page.

    Args:
        folder: The release's folder.
        card: The contents of ``card.json``, now or later: neither the page's hash nor the record's is on the page.
        described: The data dictionary, as its file has it; of a generator that of its schema.

    Raises:
        ContentMismatch: A file is not what the dictionary describes.
        SettingError: The data are of a kind that is not known here.
    """
    said, described = json.loads(json.dumps(card)), json.loads(json.dumps(described))
    entry = said.get("ledger") or {}
    said["ledger"] = {key: entry[key] for key in _OF_THE_RECORD & entry.keys()}
    said["files"] = [file for file in said["files"] if file["path"] != PAGE]
    listed = [str(file["path"]) for file in said["files"]]
    return card_page(said, KINDS[described["kind"]].records, described, read_examples(folder, listed, described))


def draws_the_same(one: str, other: str) -> bool:
    """Return whether two pages are the same byte for byte, pictures by their pixels."""
    return one == other or with_pixel_hashes(one) == with_pixel_hashes(other)
