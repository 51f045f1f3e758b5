"""Storage types of columns: integer, real, boolean, date, datetime, text, or a registered type's form.

A draft of a schema may take names and storage types from private data, and nothing else. A typed container says the
type itself; in text it is guessed from the form of the first thousand cells, and a form counts only if 19 in 20 share
it, so that no single record decides. No value, bound, category, count or missing cell leaves this module.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any, TypeAlias

import pandas as pd

from doublure.data.tables.arrow_text import unwrapped
from doublure.data.tables.csv_records import MISENCODED, TOO_LONG, UNCLOSED, UNREAD
from doublure.data.tables.header import RENAME
from doublure.data.tables.opening import TableSource
from doublure.errors import DataError, FaultyRecords
from doublure.schema.columns import Column, models
from doublure.schema.columns.calendar_cells import ISO
from doublure.schema.columns.dtypes import Dtype
from doublure.schema.distinct_cells import UNREADABLE, distinct
from doublure.schema.scalars import EXACT

Storage: TypeAlias = str
"""One of :data:`PLAIN`, or the name of a column type whose form cells have."""
PLAIN = ("integer", "real", "boolean", "date", "datetime", "text")

_ROWS = 1_000
_OF_THE_FILE = (MISENCODED, TOO_LONG, UNCLOSED)
"""Rules that a file breaks as a whole, where its encoding or its quoting is not declared."""
SHARE = 0.95
FEWEST = 40
"""Cells that a form is proposed from; of fewer, hardly any has a form."""
_BLANK = {"", "?", "-", ".", "na", "n/a", "nan", "<na>", "nat", "null", "none"}
_INTEGER = re.compile(r"[+-]?(?:0|[1-9][0-9]{0,14})")  # 007 and long digits are codes, not numbers
_REAL = re.compile(r"[+-]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))(?:[eE][+-]?[0-9]+)?")


def storage_types(source: TableSource) -> dict[str, Storage]:
    """Return how each column is stored.

    Raises:
        DataError: A name stands twice in the header, or the file is damaged.
    """
    for name, count in Counter(source.columns).items():
        if count > 1:
            raise DataError("stands more than once in the header", field=name, remedy=RENAME)
    return {name: storage_of(cells) for name, cells in first_cells(source).items()}


def first_cells(source: TableSource) -> dict[str, pd.Series[Any]]:
    """Return the first thousand cells of each column. Private: only forms may be told of them.

    A few records with more or fewer cells than the header are passed over: what becomes of them is declared later.

    Raises:
        FaultyRecords: Several of the first records cannot be read, or one is of another encoding.
    """
    try:
        first = next(iter(source.chunks(source.columns, "refuse")), None)
    except FaultyRecords as refused:
        first = next(source.chunks(source.columns, "coerce"))
        read = ~first.isin([UNREAD]).all(axis=1)
        if read.mean() < SHARE or any(fault.rule in _OF_THE_FILE for fault in refused.faults):
            raise
        first = first[read].reset_index(drop=True)
    if first is None:
        return {name: pd.Series(dtype=object) for name in source.columns}
    return {name: first[name].iloc[:_ROWS] for name in source.columns}


def dtypes_of_objects(first: Mapping[str, pd.Series[Any]]) -> dict[str, Dtype]:
    """Return ``str`` for columns of Python's objects that are texts, as DataFrames held them before pandas 3."""
    texts: dict[str, Dtype] = {}
    for name, cells in first.items():
        present = cells.dropna()
        if (
            cells.dtype == object
            and len(present)
            and sum(isinstance(cell, str) for cell in present) >= SHARE * len(present)
        ):
            texts[name] = "str"
    return texts


def is_blank(cell: str) -> bool:
    """Whether a text usually means missing."""
    return cell.strip().lower() in _BLANK


def storage_of(cells: pd.Series[Any]) -> Storage:
    """Return how some cells are stored; text where that is not clear."""
    if str(cells.dtype).startswith("date32[day]"):  # its container says so, of a table of no row, too
        return "date"
    try:
        plain = unwrapped(cells)
        kind = "O" if isinstance(plain.dtype, (pd.StringDtype, pd.CategoricalDtype)) else plain.dtype.kind
        if kind in "biuf":
            return "text" if _beyond_exact(plain) else {"b": "boolean", "f": "real"}.get(kind, "integer")
        if kind == "M":
            days = plain.notna() & (plain == plain.dt.normalize())
            return "date" if days.sum() >= SHARE * max(1, plain.notna().sum()) else "datetime"
        codes, uniques = distinct(plain)
    except UNREADABLE:
        return "text"
    forms = [_form(unique) for unique in uniques]
    found = _majority([forms[code] for code in codes if code >= 0])
    return found if found != "text" else _claimed([uniques[code] for code in codes if code >= 0])


def _beyond_exact(cells: pd.Series[Any]) -> bool:
    """Whether cells are whole numbers of more digits than float64 keeps apart: identifiers, which add up to nothing."""
    if cells.dtype.kind not in "iu":
        return False
    present = cells.dropna()
    return bool((present.abs() > EXACT).sum() >= SHARE * max(1, len(present)))


def _claimed(cells: list[object]) -> Storage:
    """Return the first column type that enough cells have the form of; text where there is none."""
    texts = [text for cell in cells if not is_blank(text := str(cell).strip())]
    for model in models() if texts else ():
        if sum(_claims(model, text) for text in texts) >= SHARE * len(texts):
            return str(model.model_fields["type"].default)
    return "text"


def _claims(model: type[Column], text: str) -> bool:
    try:
        return model.claims(text)
    except Exception:  # a type from elsewhere raises anything
        return False


def _majority(forms: list[str]) -> Storage:
    counts = {form: forms.count(form) for form in PLAIN}
    enough = SHARE * sum(counts.values())
    if not enough:
        return "text"
    if counts["boolean"] >= enough:
        return "boolean"
    if counts["integer"] >= enough:
        return "integer"
    if counts["integer"] + counts["real"] >= enough:
        return "real"
    if counts["date"] >= enough:
        return "date"
    return "datetime" if counts["date"] + counts["datetime"] >= enough else "text"


def _form(cell: object) -> str:
    """Return the form of one cell; "blank" for what usually means missing."""
    text = str(cell).strip()
    if is_blank(text):
        return "blank"
    if text.lower() in ("true", "false"):
        return "boolean"
    if _INTEGER.fullmatch(text):
        return "integer"
    if _REAL.fullmatch(text):
        return "real"
    moment = ISO.fullmatch(text)
    if moment is None:
        return "text"
    return "date" if moment.group(2) in (None, "00:00:00") and not text.endswith(("Z", "z")) else "datetime"
