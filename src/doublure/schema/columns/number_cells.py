"""Raw cells of numbers, in canonical form: float64, NaN for missing.

Arrow reads whole columns many times as fast as cell by cell: a shortcut and no second set of rules. A column is taken
only if Arrow could read all of it and found no NaN in text. Both readers round to the nearest float64; what only one of
them reads (``+5``, blanks around a number) sends the whole column the long way, and ``tests/data/test_arrow_cells.py``
compares the two on hostile columns.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection
from decimal import Decimal
from functools import partial
from numbers import Real
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pandas as pd

from doublure.errors import DataError
from doublure.schema.columns.column import Column
from doublure.schema.distinct_cells import distinct, each, is_listed, is_text
from doublure.schema.scalars import Misfit

if TYPE_CHECKING:
    import pyarrow as pa

Floats: TypeAlias = "np.ndarray[Any, np.dtype[np.float64]]"

NOT_A_NUMBER = frozenset({"NaN", "nan", "NA", "<NA>"})
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?|[+-]?inf(?:inity)?", re.IGNORECASE | re.ASCII)
FARTHEST = 1e300  # stands for the infinite until bounds are known; the difference of two is still finite


class NotWholeNumbers(DataError):
    """A column of whole numbers has cells that are numbers, and not whole."""


def numbers(raw: pd.Series[Any], column: Column, name: str, misfit: Misfit) -> Floats:
    """Return ``(N,)`` raw cells as numbers in canonical form.

    Raises:
        DataError: A number is infinite, or not whole, where it has to be.
        TypeError: A cell is no number; like it what else ``distinct_cells.UNREADABLE`` names.
    """
    array: Floats
    if pd.api.types.is_numeric_dtype(raw.dtype) and raw.dtype.kind != "c":
        array = raw.to_numpy(dtype=np.float64, na_value=np.nan)
    elif is_listed(raw) or misfit == "coerce":
        codes, uniques = distinct(raw)
        tokens = {*column.missing_tokens, *NOT_A_NUMBER}
        array = np.array([*each(uniques, partial(_number, tokens=tokens), np.nan, misfit), np.nan])[codes]
    else:
        raise TypeError
    return fitting_numbers(array, column, name, misfit)


def numbers_at_once(raw: pa.Array, tokens: Collection[str]) -> Floats | None:
    """Return what stands in a column of text or numbers; None where Arrow reads it otherwise, or not at all.

    Args:
        raw: ``(N,)`` cells.
        tokens: The texts that mean missing.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_integer(raw.type) or pa.types.is_float32(raw.type) or pa.types.is_float64(raw.type):
        present = raw.fill_null(0) if raw.null_count else raw
        numbers: Floats = present.to_numpy(zero_copy_only=False).astype(np.float64)
        if raw.null_count:
            numbers[raw.is_null().to_numpy(zero_copy_only=False)] = np.nan
        return numbers
    if not is_text(raw.type):
        return None
    try:
        said = pc.if_else(pc.is_in(raw, value_set=pa.array(tokens, raw.type)), None, raw)
        read = pc.cast(said, pa.float64())
    except pa.ArrowException:
        return None
    numbers = read.to_numpy(zero_copy_only=False)
    return numbers if np.count_nonzero(np.isnan(numbers)) == read.null_count else None


def fitting_numbers(array: Floats, column: Column, name: str, misfit: Misfit) -> Floats:
    """Return ``(N,)`` numbers in canonical form, NaN for missing, from what stands in the cells.

    Raises:
        DataError: A number is infinite, or not whole, where it has to be.
    """
    codes_for_missing = [float(token) for token in column.missing_tokens if is_number(token)]
    if codes_for_missing:
        array = np.where(np.isin(array, codes_for_missing), np.nan, array)
    whole = column.integral
    if misfit == "coerce":
        return within(np.rint(array) if whole else array, column)
    if np.isinf(array).any():
        raise DataError("has infinite cells", field=name, remedy="fix them, or list their text under missing")
    if whole and (np.floor(array) != array)[~np.isnan(array)].any():
        remedy = "declare type: real, or fix them"
        raise NotWholeNumbers("has cells that are no whole number", field=name, remedy=remedy)
    return array + 0.0  # no negative zero: joined with zero, it would read as whichever came first


def _number(cell: object, tokens: Collection[str]) -> float:
    """Return one number, NaN for a text that means missing; ValueError for what is none."""
    if isinstance(cell, str):
        text = cell.strip()
        if text in tokens:
            return math.nan
        if _NUMBER.fullmatch(text) is None:
            raise ValueError
        return float(text)
    if not isinstance(cell, (Real, Decimal, np.bool_)):
        raise TypeError
    try:
        return float(cell)
    except OverflowError:
        return math.inf if cell > 0 else -math.inf  # type: ignore[operator]


def within(array: Floats, column: Column) -> Floats:
    """Return ``(N,)`` numbers within public bounds; the lower one for what may not be missing, once there are some."""
    lower, upper = column.grid or (-FARTHEST, FARTHEST)
    inside: Floats = np.clip(array, lower, upper) + 0.0
    return np.where(np.isnan(inside), lower, inside) if column.grid and column.missing is False else inside


def is_number(text: str) -> bool:
    """Whether a text is a finite number."""
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False
