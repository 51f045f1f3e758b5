"""A form of metadata, and reading files in one."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from doublure.drafting.codebook import DataDescription
from doublure.errors import InputError, SchemaError, printable

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


def csv_rows(text: str) -> Iterator[list[str]]:
    """Return the rows of a CSV text."""
    return csv.reader(io.StringIO(text, newline=""), delimiter=find_delimiter(text), strict=True)


def read_header(path: Path) -> list[str]:
    """Return the first row of a CSV file; nothing where it cannot be read."""
    try:
        return [cell.strip() for cell in next(csv_rows(read_text(path, "a codebook")), [])]
    except (InputError, csv.Error):
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
