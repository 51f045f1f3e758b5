"""Storage types of cells in DataFrames and Parquet, by the names that pandas gives them."""

from __future__ import annotations

import datetime
import re
from typing import TYPE_CHECKING, Literal, TypeAlias, cast

from doublure.schema.fact_states import Learn

if TYPE_CHECKING:
    from doublure.schema.columns.column import Column

Dtype: TypeAlias = Literal[
    "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64",
    "float32", "float64", "Float32", "Float64", "bool", "boolean", "str", "category",
    "datetime64[s]", "datetime64[ms]", "datetime64[us]", "datetime64[ns]", "date32",
    "timedelta64[s]", "timedelta64[ms]", "timedelta64[us]", "timedelta64[ns]",
]  # fmt: skip

WHOLE: tuple[Dtype, ...] = (
    "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64",
)  # fmt: skip
FLOATS: tuple[Dtype, ...] = ("float32", "float64", "Float32", "Float64")
MOMENTS: tuple[Dtype, ...] = ("datetime64[s]", "datetime64[ms]", "datetime64[us]", "datetime64[ns]")
SPANS: tuple[Dtype, ...] = ("timedelta64[s]", "timedelta64[ms]", "timedelta64[us]", "timedelta64[ns]")

_INTEGER = re.compile(r"(U?)Int(\d+)", re.IGNORECASE)
_NANOSECONDS = (datetime.datetime(1677, 9, 22), datetime.datetime(2262, 4, 11))
"""The days that a count of nanoseconds since 1970 in 64 bits reaches whole."""
_EXACT = {"float32": 2**24, "Float32": 2**24}
"""Where floats of 32 bits begin to skip whole numbers."""


def check_dtype(column: Column, dtype: Dtype) -> None:
    """Refuse a storage type that could not hold a column's cells, whatever is bought.

    Raises:
        ValueError: It goes with other columns, has no place for missing cells, or is too narrow; ``message; remedy``.
    """
    if dtype not in column.dtypes:
        raise ValueError(f"dtype does not go with type {column.type}; write one of {', '.join(column.dtypes)}")
    if nullable(dtype) != dtype and (column.may_be_missing or isinstance(column.missing, Learn)):
        raise ValueError(f"dtype {dtype} has no place for missing cells; write {nullable(dtype)}, or missing: false")
    if dtype in (*WHOLE, *FLOATS):
        _check_range(column, dtype)
    if dtype == "datetime64[ns]" and isinstance(column.shown_bounds, tuple):
        first, last = (datetime.datetime.fromisoformat(str(end)) for end in column.shown_bounds)
        if first < _NANOSECONDS[0] or last > _NANOSECONDS[1]:
            raise ValueError("dtype datetime64[ns] does not reach all bounds; write datetime64[us], or narrow them")


def nullable(dtype: Dtype) -> Dtype:
    """Return a storage type of the same values with a place for missing ones.

    Example:
        >>> nullable("uint8"), nullable("bool"), nullable("float32")
        ('UInt8', 'boolean', 'float32')
    """
    if dtype == "bool":
        return "boolean"
    upper = dtype.replace("uint", "UInt").replace("int", "Int") if dtype in WHOLE else dtype
    return cast("Dtype", upper)


def _check_range(column: Column, dtype: Dtype) -> None:
    if (column.listed and column.stored_ends is None and column.domain) or isinstance(column.fact("values"), Learn):
        raise ValueError(f"dtype {dtype} needs declared values that are numbers; write str or category")
    reach, ends = dtype_ends(column, dtype), column.stored_ends
    if reach is not None and ends is not None and (ends[0] < reach[0] or ends[1] > reach[1]):
        raise ValueError(f"dtype {dtype} does not reach all values; write a wider one, or fix the bounds")


def dtype_ends(column: Column, dtype: Dtype | None) -> tuple[int, int] | None:
    """Return the lowest and the highest whole number of a storage type; None where it has any that a column has."""
    found = _INTEGER.fullmatch(dtype or "")
    if found is None:
        most = _EXACT.get(dtype or "") if column.integral else None
        return None if most is None else (-most, most)
    bits = int(found[2])
    return (0, 2**bits - 1) if found[1] else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
