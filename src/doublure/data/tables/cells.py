"""From raw cells to canonical ones, column by column, by public rules: the column reads them.

=============  ==========================  ==============================================  ===================
column         canonical                   a misfit: refused, or with ``misfit: coerce``   counts as
=============  ==========================  ==============================================  ===================
integer, real  float64, NaN for missing    infinite                                        the bound beside it
               ..                          2.5 in an integer                               rounded, half to even
               ..                          text that is no number                          missing
date(time)     datetime64[s], NaT          text that is no ISO 8601 date                   missing
discrete       categorical of labels       outside the list, or no text                    ``other``; missing
id             left out                    a unit's id that is missing                     the record is left out
every column   ..                          missing where the schema says ``missing:        the lower bound;
               ..                          false``                                         ``other``
=============  ==========================  ==============================================  ===================

Without an ``other``, a discrete misfit is missing; where nothing may be missing, it is the first value. Coerced numbers
end at declared bounds; where bounds are still to be learned, the encoder does all this once they are.

**A cell is read by itself**, whatever the container: :mod:`doublure.schema.distinct_cells` says which cells are one.
How a whole column is stored is the container's public form: a column of float64 has lost the digits of whole numbers
above 2^53 before it comes here. Messages name the column, never the cell.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias, TypeVar

import numpy as np
import pandas as pd

from doublure.data.tables.arrow_text import unwrapped
from doublure.errors import DataError
from doublure.schema.columns import Column
from doublure.schema.columns.listed_cells import cell_text
from doublure.schema.columns.missing_kinds import canonical_with_states, read_states
from doublure.schema.distinct_cells import UNREADABLE, NulByte, distinct, each
from doublure.schema.scalars import Misfit

Floats: TypeAlias = "np.ndarray[Any, np.dtype[np.float64]]"

Rows = TypeVar("Rows", pd.DataFrame, "pd.Series[Any]")


def canonical(raw: pd.Series[Any], column: Column, name: str, misfit: Misfit = "refuse") -> pd.Series[Any]:
    """Return one column in canonical form; see the module's table.

    Raises:
        DataError: Naming the column and the rule, never the cell; with ``misfit="coerce"`` never.
    """
    with _refusals(column, name):
        plain = unwrapped(raw)
        values = type(column).read(column, plain, name, misfit)  # no other than the one registered
    if column.missing_states > 1:
        values = canonical_with_states(column, values, read_states(plain, column.missing_texts))
    return admitted(values, column, name, misfit)


def canonical_again(made: pd.Series[Any], column: Column, name: str) -> pd.Series[Any]:
    """Return a column that is canonical already, or sampled, in canonical form.

    Raises:
        DataError: Naming the column and the rule, never the cell.
    """
    with _refusals(column, name):
        plain = unwrapped(made)
        kept = column.missing_states > 1 and not column.listed and plain.dtype == np.float64
        values = plain if kept else type(column).reread(column, plain, name)
    if column.missing_states > 1:
        values = canonical_with_states(column, values, read_states(plain, column.missing_texts, own=True))
    return admitted(values, column, name, "refuse")


@contextmanager
def _refusals(column: Column, name: str) -> Iterator[None]:
    """Name the column and the rule where a cell cannot be read, and never the cell."""
    try:
        yield
    except NulByte:
        raise DataError("has cells with NUL bytes", field=name, remedy="export the data again as UTF-8 text") from None
    except UNREADABLE:  # the message of the original would show a cell
        raise DataError(f"has cells that are no {column.type}", field=name, remedy=column.expected) from None


def admitted(values: pd.Series[Any], column: Column, name: str, misfit: Misfit) -> pd.Series[Any]:
    """Return canonical cells.

    Raises:
        DataError: One is missing where none may be.
    """
    if misfit == "refuse" and column.missing is False and values.isna().any():
        raise DataError("has missing cells, and the schema says missing: false", field=name, remedy="fix either")
    return values


def unit_ids(
    raw: pd.Series[Any], name: str, tokens: Collection[str] = ("",), misfit: Misfit = "refuse"
) -> pd.Series[Any]:
    """Return the labels of the column that names each record's unit; with ``coerce``, None where it names none.

    Raises:
        DataError: A record names no unit.
    """
    try:
        codes, uniques = distinct(unwrapped(raw))
        labels = np.array([*each(uniques, cell_text, "", misfit), ""], dtype=object)
    except UNREADABLE:
        raise DataError("has cells that are no id", field=name, remedy="use texts or whole numbers") from None
    labels[np.isin(labels, ["", *tokens])] = None
    ids = pd.Series(labels[codes], dtype=object)
    if misfit == "refuse" and ids.isna().any():
        raise DataError("has records that name no unit", field=name, remedy="give every record its unit's id")
    return ids


def raw_column(array: np.ndarray[Any, np.dtype[Any]]) -> pd.Series[Any]:
    """Return an array as a column; texts stay Python's, for pandas' own refuse all where one cannot be encoded."""
    return pd.Series(array, dtype=object if array.dtype.kind in "OU" else None)


def kept_of(rows: Rows, kept: np.ndarray[Any, np.dtype[np.bool_]]) -> Rows:
    """Return the rows that are kept, numbered anew."""
    return rows if kept.all() else rows[kept].reset_index(drop=True)


def concatenate(frames: list[pd.DataFrame], columns: list[str]) -> pd.DataFrame:
    """Join canonical chunks; categoricals are joined over the union of their labels."""
    if len(frames) == 1:
        return frames[0]
    joined = {}
    for name in columns:
        parts = [frame[name] for frame in frames]
        if isinstance(parts[0].dtype, pd.CategoricalDtype):
            alike = all(part.dtype == parts[0].dtype for part in parts)
            joined[name] = pd.Series(pd.api.types.union_categoricals(parts, sort_categories=not alike))
        else:
            joined[name] = pd.concat(parts, ignore_index=True)
    return pd.DataFrame(joined)
