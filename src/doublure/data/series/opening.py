"""Open a set of time series, as rows of a table or as arrays, without loading its readings."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, TypeAlias

import pandas as pd

from doublure.data.series.arrays import MappingSource, NpzSource
from doublure.data.series.records import Series
from doublure.data.series.rows import RowSource
from doublure.data.series.sources import SeriesSource
from doublure.data.splits import split_off
from doublure.data.tables.opening import open_table
from doublure.errors import DataError
from doublure.schema.written import Written
from doublure.support.objects import ObjectPath, find_place

Source: TypeAlias = "str | os.PathLike[str] | pd.DataFrame | Series | Mapping[str, Any]"


def open_series(source: Source, written: Written | None = None) -> SeriesSource:
    """Look at the container of a set of series; no reading is read.

    Args:
        source: A path to CSV or Parquet, or a DataFrame, of readings (a row each) or of whole series; a path to NPZ,
            with ``#split`` behind it where it holds several; a mapping of arrays; or :class:`Series`.
        written: How the text of a table is to be read, if not as usual.

    Raises:
        DataError: There is nothing there, or nothing that is read.
    """
    if isinstance(source, Series):
        arrays: dict[str, Any] = {
            name: source.channel(name) if name not in source.states else _named(source, name)
            for name in source.channels
        }
        return MappingSource("series", arrays | {str(name): cells for name, cells in source.attributes.items()})
    if isinstance(source, Mapping):
        return MappingSource("arrays", {str(name): values for name, values in source.items()})
    if not isinstance(source, (str, os.PathLike, ObjectPath)):
        return RowSource(open_table(source, written))
    place = find_place(source)
    if isinstance(place, ObjectPath):
        return RowSource(open_table(place, written))
    path, split = split_off(place)
    if path.suffix.lower() != ".npz":
        return RowSource(open_table(source, written))
    if not path.is_file():
        raise DataError("there is no such file", field=path, remedy="give the path of the series")
    return NpzSource(path, split)


def _named(source: Series, name: str) -> Any:
    """Return a channel of states by its values, ``(N, length)``; None where a step is missing."""
    found = source.cells(name).astype(object)
    return found.where(found.notna(), None).to_numpy(dtype=object).reshape(len(source), source.length)
