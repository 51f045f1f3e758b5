"""Cells that a type reads one by one, as numbers; and numbers as what it writes for each."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection
from numbers import Real
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd

from doublure.schema.columns.calendar_cells import NOT_A_TIME
from doublure.schema.columns.date_format import is_whole
from doublure.schema.distinct_cells import distinct, each
from doublure.schema.scalars import Misfit, label

Floats: TypeAlias = "np.ndarray[Any, np.dtype[np.float64]]"


def parsed(
    raw: pd.Series[Any], number_of: Callable[[object], float | None], missing: Collection[str], misfit: Misfit
) -> Floats:
    """Return ``(N,)`` raw cells as numbers, NaN for missing: each distinct cell is asked for by itself.

    Args:
        raw: The cells.
        number_of: Returns the number of one cell, None where it has none.
        missing: The texts that mean missing.
        misfit: What becomes of a cell that has no number.

    Raises:
        ValueError: A cell has no number.
    """
    codes, uniques = distinct(raw)
    tokens = {*missing, *NOT_A_TIME}
    coded = {number_of(token) for token in missing if token} - {None}  # what means missing, however it is written

    def number(cell: object) -> float:
        if isinstance(cell, np.generic):
            cell = _plain(cell)
        if isinstance(cell, (str, Real)) and label(cell) in tokens:
            return np.nan
        found = number_of(cell)
        if found is None:
            raise ValueError
        return np.nan if found in coded else found

    with warnings.catch_warnings(action="ignore"):  # what a type warns of may hold a cell
        numbers: Floats = np.array([*each(uniques, number, np.nan, misfit), np.nan])[codes]
    return numbers


def formatted(numbers: Floats, cell: Callable[[float], object]) -> np.ndarray[Any, np.dtype[Any]]:
    """Return ``(N,)`` numbers as cells, None for NaN: each distinct number is written by itself."""
    codes, uniques = pd.factorize(numbers, use_na_sentinel=True)
    return np.array([*map(cell, uniques.tolist()), None], dtype=object)[codes]


def date_cells(numbers: Floats, date_format: str, text: Callable[[float], str]) -> pd.Series[Any]:
    """Return ``(N,)`` numbers as dates of a form: texts, or whole numbers such as 20230309.

    Args:
        numbers: The numbers, NaN for missing.
        date_format: The form; one of digits alone that does not begin with a year keeps its zeros as text.
        text: Returns the text of one number.
    """
    texts = pd.Series(formatted(numbers, text), dtype="str")
    return pd.to_numeric(texts).astype("Int64") if is_whole(date_format) and date_format[0] == "Y" else texts


def iso_cells(seconds: Floats, date_format: str) -> pd.Series[Any]:
    """Return ``(N,)`` seconds since 1970 as dates of a form of ISO 8601, NaN as None: all at once.

    Args:
        seconds: The moments.
        date_format: ``YYYY-MM-DD``, behind which a time may stand.
    """
    missing = np.isnan(seconds)
    moments = np.where(missing, 0, seconds).astype(np.int64).astype("datetime64[s]")
    unit: Literal["D", "m", "s"] = "s" if "ss" in date_format else "m" if "h" in date_format else "D"
    texts = np.datetime_as_string(moments, unit=unit)
    if " " in date_format and len(texts):  # of none, NumPy replaces nothing and raises
        texts = np.char.replace(texts, "T", " ")
    found = texts.astype(object)
    found[missing] = None
    return pd.Series(found, dtype="str")


def _plain(cell: np.generic) -> object:
    """Return a scalar of NumPy as Python's; spans and moments keep their unit."""
    if isinstance(cell, np.timedelta64):
        return pd.Timedelta(cell)
    return pd.Timestamp(cell) if isinstance(cell, np.datetime64) else cell.item()
