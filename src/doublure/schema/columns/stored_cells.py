"""Sampled cells as the storage type that a schema declares: what a DataFrame or a Parquet file has held all along."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from doublure.schema.columns.dtypes import MOMENTS, WHOLE

if TYPE_CHECKING:
    from doublure.schema.columns.column import Column
    from doublure.schema.columns.spelling import Marks


def as_dtype(column: Column, cells: pd.Series[Any], marks: Marks) -> pd.Series[Any]:
    """Return ``(N,)`` sampled cells as the column's declared storage type.

    Args:
        column: Its ``dtype`` is declared.
        cells: The cells.
        marks: How the table writes dates and numbers where the column does not say it.
    """
    dtype: Any = column.dtype
    if dtype == "str":
        return as_texts(column.csv_cells(cells, marks))
    if dtype == "date32":
        import pyarrow as pa

        return cells.astype("datetime64[s]").astype(pd.ArrowDtype(pa.date32()))
    if dtype in WHOLE and (column.clock is not None or "date_format" in column.text_form):
        return pd.to_numeric(as_texts(column.csv_cells(cells, marks))).astype(dtype)
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
    """Return the values of a categorical; whole numbers with a place for missing ones."""
    whole = cells.cat.categories.dtype.kind in "iu"
    if whole:
        return cells.astype("Int64")
    return cells.astype(cells.cat.categories.dtype if not cells.isna().any() else object)
