"""A codebook: the public description of a table's columns, as a CSV file that a spreadsheet can write.

::

    column,type,values,lower,upper,missing,description
    age,integer,,17,90,false,Age in years
    workclass,category,Private|Self-employed|Never-worked,,,?,Class of worker
    BILL_AMT*,integer,,-1000000,1000000,false,Bill of one month

A ``*`` stands for any text: one row describes columns of one kind. Further keys say what else a schema's column may:
``other, step, precision, scale, spikes, zero_inflated, timezone, numbers_in, roles, date_format, format, dtype``, and
``written``: how true and false are, as ``Y|N``.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from doublure.errors import InputError, SchemaError, printable
from doublure.schema.columns import MOST_VALUES, AnyColumn, types
from doublure.schema.fact_states import Frozen
from doublure.schema.messages import finding

KEYS = ("column", "type", "values", "lower", "upper", "missing", "description")
FURTHER = (
    "other", "step", "precision", "scale", "spikes", "zero_inflated", "timezone", "numbers_in", "roles", "date_format",
    "format", "written", "dtype",
)  # fmt: skip
"""Keys of a schema's column that fit in a cell as they are."""
_LISTS = ("spikes", "roles")
_TEXTS = ("date_format", "format", "dtype")
_LARGEST_FILE = 50_000_000
_WHOLE = re.compile(r"[+-]?(?:0|[1-9][0-9]*)")
_RANGE = re.compile(r"([+-]?[0-9]+)\s*\.\.\s*([+-]?[0-9]+)")
_KEY_OF = {"bounds": "lower"} | {key: key for key in ("values", "missing", "description", *FURTHER)}
_EXAMPLES = {
    "values": "separate values by |, and write whole numbers from -2 to 8 as -2..8",
    "missing": "write false, true, or the texts that mean missing, separated by |",
}


class _OneColumn(Frozen):
    columns: Mapping[str, AnyColumn]


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One row of a codebook.

    Attributes:
        place: The file and the row, for messages; the header is row 1.
        facts: What it declares, as a schema's YAML would hold it; without ``type`` where the row gives none.
        description: What the column means, on one line; empty where the row does not say.
    """

    place: str
    facts: Mapping[str, Any]
    description: str

    def column(self, name: str, type_: str) -> Mapping[str, Any]:
        """Return the column that the row describes, as a schema's YAML would hold it.

        Args:
            name: The column's name.
            type_: The type to take where the row gives none.

        Raises:
            SchemaError: The row contradicts itself; the message names row and key.
        """
        meaning = {"description": self.description} if self.description else {}
        plain = {"type": type_, **self.facts, **meaning}
        try:
            _OneColumn.model_validate({"columns": {name: plain}})
        except ValidationError as error:
            path, message, remedy = finding(error)
            key = next((_KEY_OF[word] for word in (*path[2:], *re.findall(r"\w+", message)) if word in _KEY_OF), "type")
            if error.errors()[0]["type"] == "extra_forbidden":
                kind = self.facts.get("type", type_)
                message, remedy = f"does not go with type {kind}", "leave it empty, or change the type"
            raise SchemaError(message, field=f"{self.place}, {key}", remedy=remedy) from None
        return plain


def read_codebook(path: str | Path) -> dict[str, Entry]:
    """Read a codebook: column -> what it declares.

    Cells that are left empty declare nothing. The delimiter may be ``, ; tab |`` (but ``|`` separates values).

    Raises:
        InputError: There is no such file, or it is no text.
        SchemaError: A row is malformed; the message names row and key.
    """
    path = Path(path)
    rows = csv.reader(io.StringIO(_text(path), newline=""), delimiter=_delimiter(path), strict=True)
    try:
        header = [cell.strip().lower() for cell in next(rows, [])]
        _check_header(header, path.name)
        entries: dict[str, Entry] = {}
        for number, row in enumerate(rows, start=2):
            if not any(cell.strip() for cell in row):
                continue
            place = f"{path.name} row {number}"
            if len(row) != len(header):
                remedy = "put texts with a delimiter in double quotes"
                raise SchemaError(f"has {len(row)} fields and the header {len(header)}", field=place, remedy=remedy)
            cells = dict(zip(header, (cell.strip() for cell in row), strict=True))
            name = cells["column"]
            if not name or name in entries:
                message = "names a column that an earlier row describes" if name else "is empty"
                raise SchemaError(message, field=f"{place}, column", remedy="give every column one row")
            entries[name] = Entry(
                place=place, facts=_facts(cells, place), description=_line(cells.get("description", ""))
            )
    except csv.Error:
        raise SchemaError("has an unclosed or misplaced quote", field=path.name, remedy="export it again") from None
    return entries


def entry_for(name: str, entries: Mapping[str, Entry]) -> Entry | None:
    """Return a column's row: its own, or else the pattern that says most of its name; of two, the first.

    What is meant by ``PAY_*`` beside ``PAY_AMT*`` must not hang on which stands first.

    Example:
        >>> bills = Entry(place="codes.csv row 2", facts={}, description="")
        >>> entry_for("BILL_AMT3", {"BILL_AMT*": bills}) is bills
        True
    """
    if name in entries:
        return entries[name]
    fitting = [pattern for pattern in entries if "*" in pattern and _fits(name, pattern)]
    return entries[max(fitting, key=lambda pattern: len(pattern.replace("*", "")))] if fitting else None


def _fits(name: str, pattern: str) -> bool:
    """Whether a name is what a pattern says; only ``*`` is special."""
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), name) is not None


def _text(path: Path) -> str:
    try:
        if path.stat().st_size > _LARGEST_FILE:
            raise InputError("is larger than 50 MB", field=path.name, remedy="give the codebook, not the data")
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise InputError("there is no such file", field=path, remedy="give the path of a codebook in CSV") from None
    except (OSError, UnicodeDecodeError):
        raise InputError("cannot be read as UTF-8 text", field=path.name, remedy="give a codebook in CSV") from None
    if "\0" in text:
        raise InputError("holds NUL bytes and is no CSV text", field=path.name, remedy="export it again as UTF-8 CSV")
    return text


def _delimiter(path: Path) -> str:
    with path.open(encoding="utf-8-sig", errors="replace") as file:
        header = file.readline()
    return max(",;\t", key=header.count)


def _check_header(header: list[str], name: str) -> None:
    remedy = f"begin with {','.join(KEYS)}"
    if "column" not in header:
        raise SchemaError("the header has no key column", field=f"{name} row 1", remedy=remedy)
    for key in header:
        if key not in (*KEYS, *FURTHER):
            remedy += f"; there may also be {', '.join(FURTHER)}"
            raise SchemaError("is not a key of a codebook", field=f"{name} row 1, {key}", remedy=remedy)
        if header.count(key) > 1:
            raise SchemaError("stands twice in the header", field=f"{name} row 1, {key}", remedy=remedy)


def _facts(cells: Mapping[str, str], place: str) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    if type_ := cells.get("type", "").lower():
        if type_ not in types():
            raise SchemaError("is no type", field=f"{place}, type", remedy=f"give one of {', '.join(types())}")
        facts["type"] = type_
    if values := cells.get("values", ""):
        facts["values"] = _values(values, place)
    lower, upper = cells.get("lower", ""), cells.get("upper", "")
    if bool(lower) != bool(upper):
        key = "upper" if lower else "lower"
        raise SchemaError("is empty and its fellow is not", field=f"{place}, {key}", remedy="give both or neither")
    if lower:
        facts["bounds"] = [_bound(lower), _bound(upper)]
    missing = cells.get("missing", "")
    if missing.lower() in ("true", "false"):
        facts["missing"] = missing.lower() == "true"
    elif missing and missing != "undeclared":
        facts["missing"] = [text.strip() for text in missing.split("|") if text.strip()] or True
    return facts | {key: _further(key, cells[key]) for key in FURTHER if cells.get(key)}


def _further(key: str, text: str) -> Any:
    """Return a cell as a schema's YAML would hold it: the column's model judges whether it fits."""
    if key in _LISTS:
        return [_bound(each.strip()) for each in text.split("|")]
    if key == "written":
        return dict(zip((True, False), map(str.strip, text.split("|")), strict=False))
    if key in _TEXTS:
        return text
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    return _bound(text)


def _values(text: str, place: str) -> list[int] | list[str]:
    """Return the values in order: whole numbers if all are, so that 1 does not come back as text.

    One value alone is refused: it says nothing of a column, and is mostly a list in another spelling.
    """
    values: list[str] = []
    for value in (each.strip() for each in text.split("|")):
        if (ends := _RANGE.fullmatch(value)) is None:
            values.append(value)
            continue
        first, last = map(int, ends.groups())
        if not 0 < last - first < MOST_VALUES:
            remedy = f"write it as low..high, with at most {MOST_VALUES} values"
            raise SchemaError("has a range that is not in order, or too long", field=f"{place}, values", remedy=remedy)
        values += map(str, range(first, last + 1))
    if not all(values):
        raise SchemaError("has an empty value", field=f"{place}, values", remedy=_EXAMPLES["values"])
    if len(values) == 1:
        raise SchemaError("is one value alone", field=f"{place}, values", remedy=_EXAMPLES["values"])
    return [int(value) for value in values] if all(_WHOLE.fullmatch(value) for value in values) else values


def _bound(text: str) -> int | float | str:
    if _WHOLE.fullmatch(text):
        return int(text)
    try:
        return float(text)
    except ValueError:
        return text


def _line(text: str) -> str:
    """Return a description on one line, without what could move a cursor."""
    return " ".join(printable(word) for word in text.split())
