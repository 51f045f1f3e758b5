"""Rows of a codebook under headings in its keepers' own words.

Such as ``Variable | Meaning | Allowed values / range``. What cannot be read for certain stays a note beside the column:
a draft shows it, and declares nothing by it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from doublure.drafting.codebook import Entry
from doublure.drafting.metadata.form import bounds, line, listed, meaning
from doublure.schema.columns import unmodelled_types

_HEADINGS: Mapping[str, str] = {
    "column": "variable|variable name|field|field name|column name|item|name",
    "type": "type|data type|datatype|format",
    "allowed": "allowed values range|allowed values|permitted values|valid values|values|value labels|codes|coding|"
    "categories|range|domain",
    "lower": "min|minimum|lower|lower bound",
    "upper": "max|maximum|upper|upper bound",
    "missing": "missing|missing values|missing codes|may be missing|nullable",
    "description": "meaning|description|label|variable label|definition|comment|comments|notes|remarks",
}
"""Meaning of a heading -> the headings, in small letters and without marks."""
_TYPES: Mapping[str, str] = {
    "id": "id|identifier|key",
    "integer": "integer|int|whole number|count",
    "real": "real|number|numeric|float|decimal|double",
    "date": "date|day",
    "datetime": "datetime|date time|timestamp|date and time",
    "time": "time|time of day",
    "boolean": "boolean|bool|yes no|y n|flag|true false",
    "category": "category|categorical|coded|code list|factor|nominal|list",
    "ordinal": "ordinal|ordered",
}
_SAYS = {word: says for says, words in _HEADINGS.items() for word in words.split("|")}
_TYPE_OF = {word: own for own, words in _TYPES.items() for word in words.split("|")}
_TRUE = frozenset({"y", "yes", "true", "t", "1", "ja", "oui", "j"})
_FALSE = frozenset({"n", "no", "false", "f", "0", "nein", "non"})
_NEVER = frozenset({"never", "no", "none", "false", "not allowed", "mandatory", "required"})
_MAY = frozenset({"yes", "true", "empty", "blank", "empty cell", "allowed", "possible", "optional", "may be empty"})
_NUMBER = r"[+-]?\d+(?:\.\d+)?"
_DAY = r"\d{4}-\d{2}-\d{2}"
_RANGE = re.compile(rf"({_NUMBER}|{_DAY})\s*(?:-|–|—|to|\.\.|…)\s*({_NUMBER}|{_DAY})", re.IGNORECASE)
_DECIMALS = re.compile(r"(\d) (?:decimals?|digits after the point|dp)\b")
_LABELLED = re.compile(r"\s*([^=:]+?)\s*[=:]\s*(.+?)\s*")


def headings(header: Iterable[str]) -> list[str | None] | None:
    """Return what each heading says, None for one that is not known; None where they are not such a codebook's.

    Example:
        >>> headings(["Variable", "Meaning", "Allowed values / range", "Owner"])
        ['column', 'description', 'allowed', None]
    """
    found = [_SAYS.get(_plain(cell)) for cell in header]
    once = all(found.count(says) <= 1 for says in _HEADINGS if says != "description")
    return found if once and found.count("column") == 1 and len({*found} - {None, "column"}) > 0 else None


def described(cells: Iterable[tuple[str | None, str]], place: str) -> Entry:
    """Return the entry of a row.

    Args:
        cells: What each cell's heading says, and the cell.
        place: The file and the row, for messages.
    """
    rows = [(says, cell.strip()) for says, cell in cells]
    said = {says: cell for says, cell in rows if says is not None and cell}
    words = "; ".join(cell for says, cell in rows if says == "description" and cell)
    type_, notes = _type(said.get("type", ""))
    facts, labels, more = _values(type_, said)
    notes += more
    if type_ == "real" and (decimals := _DECIMALS.search(_plain(said["type"]))):
        facts["precision"] = int(decimals[1])
    missing, unread = _missing(said.get("missing", ""))
    if missing is not None and facts.get("type") not in (None, *unmodelled_types()):
        facts["missing"] = missing
    return Entry(place=place, facts=facts, description=meaning(line(words), labels), notes=(*notes, *unread))


def _plain(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.lower()))


def _type(text: str) -> tuple[str | None, tuple[str, ...]]:
    """Return the type that a cell says, and what is not understood of it."""
    if not text:
        return None, ()
    for part in (text, re.split(r"[,;(]", text)[0]):
        if own := _TYPE_OF.get(_plain(part)):
            return own, ()
    if _DECIMALS.search(_plain(text)):
        return "real", ()
    return None, (f"said of its type: {line(text)}",)


def _values(type_: str | None, said: Mapping[str, str]) -> tuple[dict[str, Any], dict[str, str], tuple[str, ...]]:
    """Return the facts of a column's type and values, the labels of its codes, and what is not understood."""
    text, facts = said.get("allowed", ""), {} if type_ is None else {"type": type_}
    if (ends := _RANGE.fullmatch(text)) or {"lower", "upper"} <= said.keys():
        lower, upper = ends.groups() if ends else (said["lower"], said["upper"])
        if type_ not in ("integer", "real", "date", "datetime", "time"):
            return facts, {}, (f"said of its values: {line(lower)} to {line(upper)}",)
        if type_ == "datetime" and re.fullmatch(_DAY, upper):
            upper += "T23:59:59"  # the whole of the last day
        found, notes = bounds(lower, upper)
        return facts | found, {}, notes
    codes = _codes(text)
    if type_ == "boolean":
        written = _written(codes)
        return facts | ({"written": written} if written else {}), {}, ()
    if len(codes) > 1 and type_ in (None, "integer", "category", "ordinal"):
        labels = {code: label for code, label in codes.items() if label}
        return {"type": "ordinal" if type_ == "ordinal" else "category", "values": listed(codes)}, labels, ()
    if len(codes) == 1 and type_ in ("category", "ordinal") and text:
        return facts | {"values": listed(codes)}, {}, ()
    return facts, {}, (f"said of its values: {line(text)}",) if text else ()


def _codes(text: str) -> dict[str, str]:
    """Return code -> label of ``1=male, 2=female`` or ``a; b; c``; labels may be empty."""
    mark = next((mark for mark in ("|", ";", "\n", ",") if mark in text), None)
    parts = [part for part in (text.split(mark) if mark else [text]) if part.strip()]
    found = [_LABELLED.fullmatch(part) for part in parts]
    if parts and all(found):
        return {each[1]: each[2] for each in found if each}
    return {part.strip(): "" for part in parts}


def _written(codes: Mapping[str, str]) -> dict[str, str] | None:
    true = [code for code in codes if code.lower() in _TRUE]
    false = [code for code in codes if code.lower() in _FALSE]
    return {"true": true[0], "false": false[0]} if len(true) == len(false) == 1 and len(codes) == 2 else None


def _missing(text: str) -> tuple[Any, tuple[str, ...]]:
    """Return what a cell says of missing cells, and what is not understood of it; None for nothing."""
    if not text:
        return None, ()
    if (plain := _plain(text)) in _NEVER or plain in _MAY:
        return plain in _MAY, ()
    tokens = [part.strip() for part in re.split(r"[|;,]", text)]
    if all(token and not re.search(r"\s|=", token) for token in tokens):
        return tokens, ()
    return True, (f"said of missing cells: {line(text)}",)
