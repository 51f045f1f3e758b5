"""Rules that stand in a file beside the schema: read once, and part of the schema (and of its hash) from then on."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

from doublure.errors import SchemaError

MOST_ROWS = 1_000_000
_LARGEST_FILE = 50_000_000


def with_files(data: object, folder: Path) -> object:
    """Return a schema's plain data with ``map: FILE`` and ``combinations: FILE`` replaced by what the files hold.

    Args:
        data: As YAML gives it.
        folder: Where the schema file lies.

    Raises:
        SchemaError: A file is not there, or is no CSV of the columns that it is for.
    """
    rules = data.get("constraints") if isinstance(data, dict) else None
    if not isinstance(data, dict) or not isinstance(rules, list):
        return data
    return data | {"constraints": [_inlined(rule, folder, number) for number, rule in enumerate(rules)]}


def _inlined(rule: Any, folder: Path, number: int) -> Any:
    if not isinstance(rule, dict):
        return rule
    field = f"constraints.{number}"
    if isinstance(rule.get("map"), str):
        names = rule.get("determines")
        wanted = sorted(map(str, names)) if isinstance(names, list) else None
        return rule | {"map": _read(folder, rule["map"], f"{field}.map", lambda header: _map(header, wanted, names))}
    if isinstance(rule.get("combinations"), str):
        return rule | {"combinations": _read(folder, rule["combinations"], f"{field}.combinations", _table)}
    return rule


_Reader = Callable[[list[list[str]]], Any]


def _map(rows: list[list[str]], wanted: list[str] | None, names: Any) -> Any:
    header, *pairs = rows
    if wanted is not None and sorted(header) != wanted:
        raise ValueError("needs a header that names the two columns")
    turned = wanted is not None and header != list(map(str, names))
    found: dict[str, str] = {}
    for pair in pairs:
        first, second = reversed(pair) if turned else pair
        if found.setdefault(first, second) != second:
            raise ValueError("gives one value two")
    return found


def _table(rows: list[list[str]]) -> Any:
    header, *cells = rows
    return {"columns": header, "rows": cells}


def _read(folder: Path, name: str, field: str, reader: _Reader) -> Any:
    if Path(name).name != name:
        raise SchemaError("is not the name of a file beside the schema", field=field, remedy="put the file there")
    path = folder / name
    try:
        if path.stat().st_size > _LARGEST_FILE:
            raise SchemaError("names a file of more than 50 MB", field=field, remedy="group its values")
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = [[cell.strip() for cell in row] for row in csv.reader(file, strict=True) if row]
    except FileNotFoundError:
        raise SchemaError("names a file that is not there", field=field, remedy="put it beside the schema") from None
    except (OSError, csv.Error, UnicodeError):
        raise SchemaError("names a file that is no CSV in UTF-8", field=field, remedy="export it again") from None
    if len(rows) < 2 or len(rows) > MOST_ROWS or any(len(row) != len(rows[0]) for row in rows):
        remedy = f"write a header and at most {MOST_ROWS:,} lines of as many cells, separated by commas"
        raise SchemaError("names a file without lines, or with lines of several lengths", field=field, remedy=remedy)
    try:
        return reader(rows)
    except ValueError as error:
        raise SchemaError(f"names a file that {error}", field=field, remedy="fix the file") from None
