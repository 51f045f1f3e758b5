"""Rules, lists of values and public references that stand in files beside the schema.

Each is read once, and is part of the schema (and of its hash) from then on.
"""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path
from typing import Any

from doublure.errors import SchemaError, printable
from doublure.schema.columns.code_tree import read_parents
from doublure.schema.rules.registry import MODELS
from doublure.schema.rules.rule import Rule

MOST_ROWS = 1_000_000
_LARGEST_FILE = 50_000_000
_WHOLE = re.compile(r"[+-]?(?:0|[1-9][0-9]*)")


def with_files(data: object, folder: Path) -> object:
    """Return a schema's plain data with the names of files replaced by what the files hold.

    ``map: FILE`` and ``combinations: FILE`` of a rule are CSV with a header, and so are ``parents: FILE`` and
    ``from: FILE`` of a column;
    ``values: {file: FILE}`` has a value a line; ``file: FILE`` of a public table and ``series.exogenous: FILE`` are CSV
    with a header, too.

    Args:
        data: As YAML gives it.
        folder: Where the schema file lies.

    Raises:
        SchemaError: A file is not there, is no CSV of the columns that it is for, or lists no values.
    """
    if not isinstance(data, dict):
        return data
    return _with_values(data, folder, "")


def _with_values(data: dict[Any, Any], folder: Path, under: str) -> dict[Any, Any]:
    found = dict(data)
    if isinstance(rules := data.get("constraints"), list):
        places = (f"{under}constraints.{number}" for number in range(len(rules)))
        found["constraints"] = [_inlined(rule, folder, place) for rule, place in zip(rules, places, strict=True)]
    for key in ("columns", "attributes"):
        if isinstance(columns := data.get(key), dict):
            found[key] = {
                name: _with_files(each, name, folder, f"{under}{key}.{name}") for name, each in columns.items()
            }
    if not under and isinstance(windows := data.get("series"), dict) and isinstance(windows.get("exogenous"), str):
        header, *rows = _csv_rows(folder, windows["exogenous"], "series.exogenous")
        found["series"] = windows | {"exogenous": {"columns": header, "rows": rows}}
    if not under and isinstance(public := data.get("public"), dict):
        found["public"] = {name: _public_table(each, folder, f"public.{name}") for name, each in public.items()}
    if not under and isinstance(tables := data.get("tables"), dict):
        found["tables"] = {
            name: _with_values(table, folder, f"tables.{name}.") if isinstance(table, dict) else table
            for name, table in tables.items()
        }
    return found


def _with_files(column: Any, name: str, folder: Path, field: str) -> Any:
    """Return a column with what the files hold that it names."""
    return _looked_up(_with_parents(_listed(column, folder, field), folder, field), name, folder, field)


def _listed(column: Any, folder: Path, field: str) -> Any:
    values = column.get("values") if isinstance(column, dict) else None
    if not (isinstance(values, dict) and set(values) == {"file"} and isinstance(values["file"], str)):
        return column
    texts = [line.strip() for line in _text(folder, values["file"], f"{field}.values").splitlines()]
    texts = [text for text in texts if text]
    if not texts:
        remedy = "write a value a line"
        raise SchemaError("names a file without values", field=f"{field}.values", remedy=remedy)
    return column | {"values": [int(text) for text in texts] if all(map(_WHOLE.fullmatch, texts)) else texts}


def _with_parents(column: Any, folder: Path, field: str) -> Any:
    """Return a column with the group above each code of the file that it names."""
    if not (isinstance(column, dict) and isinstance(column.get("parents"), str)):
        return column
    field = f"{field}.parents"
    return column | {"parents": read_parents(_csv_rows(folder, column["parents"], field), field)}


def _looked_up(column: Any, name: str, folder: Path, field: str) -> Any:
    """Return a column with its public reference: the file's column of its name, by that of the key if there is one."""
    if not (isinstance(column, dict) and isinstance(column.get("from"), str)):
        return column
    field, by = f"{field}.from", column.get("by")
    header, *rows = _csv_rows(folder, column["from"], field)
    wanted = [str(each).strip() for each in ((name,) if by is None else (by, name))]
    for each in wanted:
        if header.count(each) != 1:
            message = f"names a file without one column {printable(each)}"
            raise SchemaError(message, field=field, remedy="fix its header")
    places = [header.index(each) for each in wanted]
    if by is None:
        return column | {"from": [row[places[0]] for row in rows]}
    found: dict[str, str] = {}
    for row in rows:
        key, value = (row[place] for place in places)
        if found.setdefault(key, value) != value:
            remedy = "list each once"
            raise SchemaError(
                f"names a file with two values for one {printable(wanted[0])}", field=field, remedy=remedy
            )
    return column | {"from": found}


def _public_table(table: Any, folder: Path, field: str) -> Any:
    """Return a public table with the rows of the file that it names."""
    if not (isinstance(table, dict) and isinstance(table.get("file"), str)):
        return table
    header, *rows = _csv_rows(folder, table["file"], field)
    return {key: each for key, each in table.items() if key != "file"} | {"columns": header, "rows": rows}


def _inlined(rule: Any, folder: Path, place: str) -> Any:
    if not isinstance(rule, dict):
        return rule
    for model in MODELS:
        key = model.file_key
        if key is not None and isinstance(rule.get(key), str):
            return rule | {key: _read(folder, rule[key], f"{place}.{key}", model, rule)}
    return rule


def _text(folder: Path, name: str, field: str) -> str:
    if Path(name).name != name:
        raise SchemaError("is not the name of a file beside the schema", field=field, remedy="put the file there")
    path = folder / name
    try:
        if path.stat().st_size > _LARGEST_FILE:
            raise SchemaError("names a file of more than 50 MB", field=field, remedy="group its values")
        with path.open(encoding="utf-8-sig", newline="") as file:
            return file.read()
    except FileNotFoundError:
        raise SchemaError("names a file that is not there", field=field, remedy="put it beside the schema") from None
    except (OSError, UnicodeError):
        raise SchemaError("names a file that is no CSV in UTF-8", field=field, remedy="export it again") from None


def _csv_rows(folder: Path, name: str, field: str) -> list[list[str]]:
    """Return the header and lines of a CSV file.

    Raises:
        SchemaError: It is not there, or no such file.
    """
    text = io.StringIO(_text(folder, name, field), newline="")
    try:
        rows = [[cell.strip() for cell in row] for row in csv.reader(text, strict=True) if row]
    except csv.Error:
        raise SchemaError("names a file that is no CSV in UTF-8", field=field, remedy="export it again") from None
    if len(rows) < 2 or len(rows) > MOST_ROWS or any(len(row) != len(rows[0]) for row in rows):
        remedy = f"write a header and at most {MOST_ROWS:,} lines of as many cells, separated by commas"
        raise SchemaError("names a file without lines, or with lines of several lengths", field=field, remedy=remedy)
    return rows


def _read(folder: Path, name: str, field: str, model: type[Rule], rule: Any) -> Any:
    rows = _csv_rows(folder, name, field)
    try:
        return model.from_file(rows, rule)
    except ValueError as error:
        raise SchemaError(f"names a file that {error}", field=field, remedy="fix the file") from None
