"""Sampled cells as the storage type that a schema declares."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from doublure.schema.columns.dtypes import MOMENTS, WHOLE


def as_dtype(cells: pd.Series[Any], dtype: Any, texts: Callable[[], pd.Series[Any]], *, dated: bool) -> pd.Series[Any]:
    """Return ``(N,)`` sampled cells as a declared storage type.

    Args:
        cells: The cells.
        dtype: The storage type, which can hold them.
        texts: Returns the cells as a CSV file has them.
        dated: Whether they are dates, whose whole numbers are their texts.
    """
    if dtype == "str":
        return as_texts(texts())
    if dtype == "date32":
        import pyarrow as pa

        return cells.astype("datetime64[s]").astype(pd.ArrowDtype(pa.date32()))
    if dtype in WHOLE and dated:
        return pd.to_numeric(as_texts(texts())).astype(dtype)
    if dtype in MOMENTS:
        moments: pd.Series[Any] = cells.dt.as_unit(dtype[len("datetime64[") : -1])
        return moments
    if isinstance(cells.dtype, pd.CategoricalDtype) and dtype != "category":
        cells = _values(cells)
    found: pd.Series[Any] = cells.astype(dtype)
    return found


def as_texts(cells: pd.Series[Any]) -> pd.Series[Any]:
    """Return ``(N,)`` cells as texts; what is missing stays so."""
    if isinstance(cells.dtype, pd.CategoricalDtype):
        cells = _values(cells)
    plain = cells.astype(object)
    return pd.Series(
        [None if missing else str(cell) for cell, missing in zip(plain, cells.isna(), strict=True)], dtype="str"
    )


def _values(cells: pd.Series[Any]) -> pd.Series[Any]:
    """Return the values of a categorical; whole numbers with a place for missing ones, and none as a float."""
    codes, values = cells.cat.codes.to_numpy(), cells.cat.categories.to_numpy()
    missing = codes < 0
    if len(values) and values.dtype.kind in "iu":
        return pd.Series(pd.arrays.IntegerArray(values[np.where(missing, 0, codes)].astype(np.int64), missing))
    found = np.array([*values, None], dtype=object)[codes]
    return pd.Series(found) if missing.any() else pd.Series(found).infer_objects()
