"""Columns of Arrow in canonical form.

The rules are those of :mod:`doublure.data.tables.cells`. Text that is a number, and days and moments in ISO 8601
without an offset, are read by Arrow, many times as fast as cell by cell. It is a shortcut and no second set of rules: a
column is taken only if Arrow could read all of it and found no NaN in text. Both readers round to the nearest float64,
and what only one of them reads (``+5``, blanks around a number, an offset) sends the whole column the long way;
``tests/data/test_arrow_cells.py`` compares the two on hostile columns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pandas as pd

from doublure.data.tables import cells
from doublure.data.tables.arrow_text import in_pandas, is_text
from doublure.errors import DataError
from doublure.schema.scalars import Misfit

if TYPE_CHECKING:
    import pyarrow as pa

    from doublure.schema.columns import Column

Raw: TypeAlias = "pd.Series[Any] | pa.Array"

_ISO = r"^\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2})?)?$"


def canonical(raw: Raw, column: Column, name: str, misfit: Misfit = "refuse") -> pd.Series[Any]:
    """Return one column in canonical form, as :func:`doublure.data.tables.cells.canonical` has it.

    Raises:
        DataError: Naming the column and the rule, never the cell; with ``misfit="coerce"`` never.
    """
    if isinstance(raw, pd.Series):
        return cells.canonical(raw, column, name, misfit)
    if column.clock is not None:
        moments = _moments(raw, column)
        if moments is not None:
            return cells.admitted(pd.Series(cells.fitting_moments(moments, column, misfit)), column, name, misfit)
    elif column.bounded:
        numbers = _numbers(raw, column)
        if numbers is not None:
            found = pd.Series(cells.fitting_numbers(numbers, column, name, misfit))
            return cells.admitted(found, column, name, misfit)
    return cells.canonical(as_series(raw, name), column, name, misfit)


def as_series(raw: Raw, name: str) -> pd.Series[Any]:
    """Return a column as pandas has it, each distinct text once.

    Raises:
        DataError: It is of a type that pandas does not know.
    """
    if isinstance(raw, pd.Series):
        return raw
    import pyarrow as pa

    try:
        if pa.types.is_dictionary(raw.type) and (
            raw.dictionary.null_count or len(raw.dictionary.unique()) < len(raw.dictionary)
        ):
            raw = raw.dictionary_decode()
        if is_text(raw.type):
            raw = raw.cast(pa.large_string()).dictionary_encode()
        return in_pandas(raw)
    except pa.ArrowException:
        raise DataError("has cells of a type that is not read", field=name, remedy="use texts or numbers") from None


def _numbers(raw: pa.Array, column: Column) -> cells.Floats | None:
    """Return what stands in a column of text or numbers; None where Arrow reads it otherwise, or not at all."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_integer(raw.type) or pa.types.is_float32(raw.type) or pa.types.is_float64(raw.type):
        present = raw.fill_null(0) if raw.null_count else raw
        numbers: cells.Floats = present.to_numpy(zero_copy_only=False).astype(np.float64)
        if raw.null_count:
            numbers[raw.is_null().to_numpy(zero_copy_only=False)] = np.nan
        return numbers
    if not is_text(raw.type):
        return None
    tokens = pa.array([*column.missing_tokens, *cells.NOT_A_NUMBER], raw.type)
    try:
        said = pc.if_else(pc.is_in(raw, value_set=tokens), None, raw)
        read = pc.cast(said, pa.float64())
    except pa.ArrowException:
        return None
    numbers = read.to_numpy(zero_copy_only=False)
    return numbers if np.count_nonzero(np.isnan(numbers)) == read.null_count else None


def _moments(raw: pa.Array, column: Column) -> cells.Moments | None:
    """Return what stands in a column of text; None where Arrow reads it otherwise, or not at all."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not is_text(raw.type):
        return None
    tokens = pa.array([*column.missing_tokens, *cells.NOT_A_TIME], raw.type)
    try:
        said = pc.if_else(pc.is_in(raw, value_set=tokens), None, raw)
        if not pc.all(pc.match_substring_regex(said, _ISO), min_count=0).as_py():
            return None
        read = pc.cast(said, pa.timestamp("s"))
    except pa.ArrowException:
        return None
    moments: cells.Moments = read.to_numpy(zero_copy_only=False).astype("datetime64[s]")
    return moments
