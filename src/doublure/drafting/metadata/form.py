"""A form of metadata, and reading files in one."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from doublure.drafting.codebook import DataDescription, Entry
from doublure.errors import InputError, SchemaError, printable
from doublure.schema.columns import type_named
from doublure.schema.fact_states import UNDECLARED
from doublure.schema.scalars import LONGEST_MEANING, label

LARGEST_FILE = 50_000_000


@dataclass(frozen=True, kw_only=True)
class MetadataForm:
    """A form of metadata.

    Attributes:
        title: Its name in sentences.
        read: Reads a file.
        recognises: Whether a file begins like one in this form.
    """

    title: str
    read: Callable[[Path], DataDescription]
    recognises: Callable[[Path], bool]


def read_text(path: Path, what: str) -> str:
    """Return a file's text.

    Raises:
        InputError: There is no such file, or it is no text.
    """
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise InputError("is larger than 50 MB", field=path.name, remedy=f"give {what}, not the data")
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise InputError("there is no such file", field=path, remedy=f"give the path of {what}") from None
    except (OSError, UnicodeDecodeError):
        raise InputError("cannot be read as UTF-8 text", field=path.name, remedy=f"give {what}") from None
    if "\0" in text:
        raise InputError("holds NUL bytes and is no text", field=path.name, remedy="export it again as UTF-8")
    return text


def read_json(path: Path, what: str) -> dict[str, Any]:
    """Return the object in a JSON file.

    Raises:
        InputError: There is no such file, or it holds no JSON object.
    """
    try:
        found = json.loads(read_text(path, what))
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise InputError("holds no JSON object", field=path.name, remedy=f"give {what}")
    return found


def find_delimiter(text: str) -> str:
    """Return the delimiter of a CSV text, as its header has it."""
    return max(",;\t", key=text.partition("\n")[0].count)


def csv_rows(text: str, name: str) -> Iterator[list[str]]:
    """Yield the rows of a CSV text.

    Args:
        text: The text.
        name: The file's name, for messages.

    Raises:
        SchemaError: A quote is not closed, or stands where none may.
    """
    try:
        yield from csv.reader(io.StringIO(text, newline=""), delimiter=find_delimiter(text), strict=True)
    except csv.Error:
        raise SchemaError("has an unclosed or misplaced quote", field=name, remedy="export it again") from None


def read_header(path: Path) -> list[str]:
    """Return the first row of a CSV file; nothing where it cannot be read."""
    try:
        return [cell.strip() for cell in next(csv_rows(read_text(path, "a codebook"), path.name), [])]
    except (InputError, SchemaError):
        return []


def read_object(path: Path) -> dict[str, Any]:
    """Return the object in a JSON file; nothing where there is none."""
    try:
        return read_json(path, "a JSON file")
    except InputError:
        return {}


def line(text: object) -> str:
    """Return a text on one line, without invisible characters; of anything else nothing."""
    return " ".join(printable(word) for word in text.split()) if isinstance(text, str) else ""


def misshapen(name: str, field: str, what: str) -> SchemaError:
    """Return the refusal of a file whose parts do not have the form's shape."""
    return SchemaError(f"is not {what}", field=f"{name}, {printable(field)}", remedy="export it again")


# -- facts that several forms say in their own words -------------------------------------------------------------------

_DATE_PARTS = {"%Y": "YYYY", "%m": "MM", "%d": "DD", "%H": "hh", "%M": "mm", "%S": "ss"}
_ISO = re.compile(r"YYYY-MM-DD(?:[T ]hh:mm(?::ss)?)?Z?")
_WHOLE = re.compile(r"-?(?:0|[1-9][0-9]*)")


def meaning(text: object) -> str:
    """Return a column's description."""
    return line(text)[:LONGEST_MEANING]


def labelled(facts: Mapping[str, Any], labels: Mapping[str, str]) -> dict[str, Any]:
    """Return facts with the meanings of those codes that are values or texts for missing.

    Example:
        >>> labelled({"values": [1, 2]}, {"1": "male", "2": "female", "3": "unknown"})
        {'values': [1, 2], 'value_labels': {'1': 'male', '2': 'female'}}
    """
    said = [facts.get(key) for key in ("values", "missing")]
    codes = {label(code) for each in said if isinstance(each, (list, tuple)) for code in each}
    known = {code: text for code, name in labels.items() if code in codes and (text := meaning(name).strip())}
    return {**facts, **({"value_labels": known} if known else {})}


def listed(codes: Iterable[object]) -> list[Any]:
    """Return codes as a schema lists them: whole numbers if all are."""
    texts = [label(code) for code in codes]
    return [int(text) for text in texts] if texts and all(map(_WHOLE.fullmatch, texts)) else texts


def takes(type_: str, key: str) -> bool:
    """Return whether a column of a type has a key."""
    return key in type_named(type_).model_fields


def date_format(pattern: str) -> str | None:
    """Return a form of dates in strftime's letters as a schema writes it; None for ISO 8601, and for any other.

    Example:
        >>> date_format("%d.%m.%Y %H:%M"), date_format("%Y-%m-%d")
        ('DD.MM.YYYY hh:mm', None)
    """
    found = re.sub(r"%[A-Za-z]", lambda part: _DATE_PARTS.get(part[0], "?"), pattern)
    return None if "?" in found or "YYYY" not in found or _ISO.fullmatch(found) else found


def with_date_formats(
    entries: Mapping[str, Entry], formats: Mapping[str, str], whole: Mapping[str, Any]
) -> tuple[dict[str, Entry], dict[str, Any]]:
    """Return entries and keys of the whole with forms of dates: at each column if it takes one, else for all alike.

    Args:
        entries: Column -> entry.
        formats: Column -> its form of dates.
        whole: The keys at the top.
    """
    found, top = dict(entries), dict(whole)
    for name, form in formats.items():
        own = entries[name]
        if takes(str(own.facts.get("type", "date")), "date_format"):
            found[name] = replace(own, facts={**own.facts, "date_format": form})
        elif len(set(formats.values())) == 1:
            top["date_format"] = form
        else:
            found[name] = replace(own, notes=(*own.notes, f"its dates are written {form}"))
    return found, top


_USUAL = {"delimiter": ",", "encoding": "utf-8", "decimal": "."}
"""The text form that needs no word."""


def agreed(**said: Iterable[object]) -> dict[str, Any]:
    """Return how text is written, by key, where every part says one text and it is not the usual one."""
    found = {key: set(words) for key, words in said.items()}
    alone = {key: next(iter(words)) for key, words in found.items() if len(words) == 1}
    return {key: word for key, word in alone.items() if isinstance(word, str) and word.lower() != _USUAL.get(key)}


def foreign_keys(schema: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return a table's foreign keys, as CSVW and Frictionless have them."""
    keys = schema.get("foreignKeys", [])
    return [key for key in keys if isinstance(key, dict)] if isinstance(keys, list) else []


def foreign_key_facts(
    table: str, keys: Iterable[tuple[Any, Any]], tables: Iterable[str]
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return what foreign keys say of a table: its parent, by the first one to another table, and whom others name.

    Args:
        table: Its name.
        keys: The column of each foreign key, and the table that it leads to.
        tables: All tables.
    """
    parent: dict[str, Any] = {}
    named: dict[str, str] = {}
    for column, to in keys:
        if to not in tables:
            continue
        if to != table and not parent:
            parent = {"parent": to, "foreign_key": column, "max_children": UNDECLARED}
        elif isinstance(column, str):
            named[column] = to
    return parent, named


def lone_keys(schema: Mapping[str, Any], columns: str) -> set[str]:
    """Return the columns that are the whole of a primary or foreign key.

    Args:
        schema: A table's.
        columns: The word under which a foreign key names its columns.
    """
    every = [schema.get("primaryKey"), *(key.get(columns) for key in foreign_keys(schema))]
    named = [[key] if isinstance(key, str) else key for key in every]
    return {str(key[0]) for key in named if isinstance(key, list) and len(key) == 1}


def number(value: object) -> int | float | None:
    """Return a bound that is a finite number; None for anything else."""
    try:
        found = float(str(value))
    except ValueError:
        return None
    return None if not math.isfinite(found) else int(found) if found.is_integer() else found


def bounds(lower: object, upper: object) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return bounds as facts, if both ends are numbers or days; else what is said of one, as a note."""
    ends = [_end(lower), _end(upper)]
    if None not in ends:
        return {"bounds": ends}, ()
    said = [f"{word} {printable(str(end))}" for word, end in (("at least", lower), ("at most", upper)) if end]
    return {}, (f"said of its values: {' and '.join(said)}",) if said else ()


def _end(value: object) -> int | float | str | None:
    text = str(value)
    day = re.fullmatch(r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2})?)?|\d{2}:\d{2}(?::\d{2})?", text)
    return text.replace(" ", "T") if day else number(value)
