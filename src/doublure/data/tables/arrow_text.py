"""Read Arrow columns with cells that are invalid UTF-8 or no Python value.

Such a cell is a misfit, and no other cell is. Arrow accepts invalid bytes unseen, from a foreign library or a file, and
refuses the whole column when it is asked for texts. It also refuses a column for a time of day beyond 24 hours, and for
a moment in a list that no calendar reaches.
"""

from __future__ import annotations

import datetime
import math
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pandas as pd

from doublure.data.tables.csv_records import UNREAD
from doublure.schema.distinct_cells import is_text

if TYPE_CHECKING:
    import pyarrow as pa

    Column = TypeVar("Column", pa.Array, pa.ChunkedArray)


_DAYS_OF_YEAR, _DAYS_OF_MONTH = 365.25, 30
"""An interval's, where DuckDB and PostgreSQL count its seconds (EXTRACT(EPOCH))."""


def readable(raw: Column) -> Column:
    """Return a column whose texts all are texts; one that is none reads as ``UNREAD``."""
    import pyarrow as pa

    if isinstance(raw, pa.ChunkedArray):
        return pa.chunked_array([readable(chunk) for chunk in raw.chunks], raw.type)
    coded = pa.types.is_dictionary(raw.type)
    texts = raw.dictionary if coded else raw
    if not is_text(texts.type):
        return raw
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid:
        found = [_text(cell) for cell in texts.cast(pa.large_binary()).to_pylist()]
        texts = pa.array(found, pa.large_string()).cast(texts.type)
        return pa.DictionaryArray.from_arrays(raw.indices, texts) if coded else texts
    return raw


def coded_in(schema: pa.Schema) -> list[str]:
    """Return the columns that Parquet is to read as dictionaries, which they are.

    Read as texts and coded afterwards, one text that is no UTF-8 would refuse the file.
    """
    import pyarrow as pa

    return [str(field.name) for field in schema if pa.types.is_dictionary(field.type)]


def listed(raw: pa.Array) -> list[object]:
    """Return a column's cells as Python has them; one that it cannot have reads as ``UNREAD``."""
    try:
        return list(raw.to_pylist())
    except (ValueError, ArithmeticError):
        return [_python(raw[place]) for place in range(len(raw))]


def _python(cell: pa.Scalar) -> object:
    try:
        return cell.as_py()
    except (ValueError, ArithmeticError):
        return UNREAD


def in_pandas(raw: Column) -> pd.Series[Any]:
    """Return a column as pandas has it, where one that pandas refuses whole is read cell by cell.

    Only Python's objects are ever refused, so that cells that are read come out alike either way.

    Raises:
        pa.ArrowException: It is of a type that pandas does not know.
    """
    import pyarrow as pa

    if pa.types.is_dictionary(raw.type) and not is_text(raw.type.value_type):  # pandas lists no category that is none
        raw = raw.cast(raw.type.value_type)
    try:
        return _converted(raw)
    except (pa.ArrowException, ValueError, ArithmeticError):
        _converted(pa.nulls(1, raw.type))
    return pd.Series([_cell(raw.slice(place, 1)) for place in range(len(raw))], dtype=object)


def _cell(raw: Column) -> object:
    import pyarrow as pa

    try:
        return _converted(raw).iloc[0]
    except (pa.ArrowException, ValueError, ArithmeticError):
        return UNREAD


def _converted(raw: Column) -> pd.Series[Any]:
    import pyarrow as pa

    if pa.types.is_interval(raw.type):
        return pd.Series([None if cell is None else _span(*cell) for cell in raw.to_pylist()], dtype=object)
    found: pd.Series[Any] = raw.to_pandas(integer_object_nulls=True, date_as_object=False)
    return found


def _span(months: int, days: int, nanoseconds: int) -> datetime.timedelta:
    """Return an interval as a span of time, of as many days as databases count a year and a month for.

    Raises:
        OverflowError: Python has none so long.
    """
    years, rest = divmod(abs(months), 12)
    whole = math.copysign(_DAYS_OF_YEAR * years + _DAYS_OF_MONTH * rest, months)
    return datetime.timedelta(days=whole + days, microseconds=nanoseconds / 1000)


def _text(cell: bytes | None) -> str | None:
    try:
        return None if cell is None else cell.decode()
    except UnicodeDecodeError:
        return UNREAD


def unwrapped(raw: pd.Series[Any]) -> pd.Series[Any]:
    """Return Arrow-backed, sparse and foreign columns as numpy's of this machine, pandas' nullable or object ones."""
    if isinstance(raw.dtype, pd.ArrowDtype):
        import pyarrow as pa

        plain: pa.Array | pa.ChunkedArray = readable(pa.array(raw.array))
        return in_pandas(plain)
    if isinstance(raw.dtype, pd.SparseDtype):
        return pd.Series(np.asarray(raw))
    if isinstance(raw.dtype, np.dtype) and not raw.dtype.isnative:  # pandas counts none in another byte order
        return raw.astype(raw.dtype.newbyteorder("="))
    return raw
