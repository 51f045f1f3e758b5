"""A column's cells as numbers, whichever form they have: as they are loaded, or as they are sampled.

Numbers are as :mod:`doublure.schema.allowed` says: places in the list, numbers on the column's grid, days or seconds
since 1970; NaN for an empty cell.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from doublure.schema.columns import Column, DateColumn, DatetimeColumn, RealColumn, label

Floats: TypeAlias = "np.ndarray[Any, np.dtype[np.float64]]"


def read(cells: pd.Series[Any], column: Column) -> Floats:
    """Return ``(N,)`` numbers; one beside the column's grid counts as the nearest of it."""
    if isinstance(column, (DateColumn, DatetimeColumn)):
        if isinstance(cells.dtype, pd.DatetimeTZDtype):
            cells = cells.dt.tz_convert(getattr(column, "timezone", None)).dt.tz_localize(None)
        moments = cells.to_numpy().astype("datetime64[D]" if isinstance(column, DateColumn) else "datetime64[s]")
        return _snapped(np.where(np.isnat(moments), np.nan, moments.astype(np.int64).astype(np.float64)), column)
    if column.numeric:
        return _snapped(cells.to_numpy(dtype=np.float64, na_value=np.nan), column)
    if cells.dtype in (np.dtype(bool), pd.BooleanDtype()):
        return cells.to_numpy(dtype=np.float64, na_value=np.nan)
    categories = cells.astype("category")
    places = {label(value): float(code) for code, value in enumerate(column.domain)}  # type: ignore[union-attr]
    table = np.array([*(places.get(label(value), np.nan) for value in categories.cat.categories), np.nan])
    return table[categories.cat.codes.to_numpy()]


def read_all(frame: pd.DataFrame, columns: Mapping[str, Column], names: Any) -> dict[str, Floats]:
    """Return the numbers of several columns."""
    return {name: read(frame[name], columns[name]) for name in names}


def write(numbers: Floats, column: Column) -> pd.Series[Any]:
    """Return numbers as cells in the form that they are loaded in."""
    missing = np.isnan(numbers)
    if isinstance(column, (DateColumn, DatetimeColumn)):
        unit = "D" if isinstance(column, DateColumn) else "s"
        moments = np.where(missing, 0, numbers).astype(np.int64).astype(f"datetime64[{unit}]").astype("datetime64[s]")
        moments[missing] = np.datetime64("NaT", "s")
        return pd.Series(moments)
    if column.numeric:
        return pd.Series(numbers)
    labels = [label(value) for value in column.domain]  # type: ignore[union-attr]
    codes = np.where(missing, -1, numbers).astype(np.int64)
    return pd.Series(pd.Categorical.from_codes(codes, dtype=pd.CategoricalDtype(labels)))


def _snapped(numbers: Floats, column: Column) -> Floats:
    ends = column.grid  # type: ignore[union-attr]
    if ends is None:
        return numbers
    lower, upper = ends
    inside: Floats = np.clip(numbers, lower, upper)
    unit = column.unit  # type: ignore[union-attr]
    if unit:
        inside = lower + np.rint((inside - lower) / unit) * unit
    precision = column.precision if isinstance(column, RealColumn) else None
    return (inside if precision is None else np.round(inside, precision)) + 0.0
