"""Storage types of cells in DataFrames and Parquet, by the names that pandas gives them."""

from __future__ import annotations

import datetime
import re
from typing import TYPE_CHECKING, Literal, TypeAlias

from doublure.schema.fact_states import Learn
from doublure.schema.scalars import EXACT

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
    if dtype in (*WHOLE, "bool") and dtype[0].islower():
        nullable = f"{dtype[:2].upper() if dtype[0] == 'u' else dtype[0].upper()}{dtype[2 if dtype[0] == 'u' else 1 :]}"
        other = "boolean" if dtype == "bool" else nullable
        if column.may_be_missing or isinstance(column.missing, Learn):
            raise ValueError(f"dtype {dtype} has no place for missing cells; write {other}, or missing: false")
    if dtype in WHOLE or dtype in _EXACT:
        _check_range(column, dtype)
    if dtype == "datetime64[ns]":
        _check_nanoseconds(column)


def _check_range(column: Column, dtype: Dtype) -> None:
    ends = column.stored_ends
    found = _INTEGER.fullmatch(dtype)
    if found is None:
        lowest, highest = -_EXACT[dtype], _EXACT[dtype]
        if not column.integral:
            return
    else:
        bits, unsigned = int(found[2]), bool(found[1])
        lowest, highest = (0, 2**bits - 1) if unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    if ends is None:
        if lowest > -EXACT or highest < EXACT:
            raise ValueError(f"dtype {dtype} needs declared bounds, or values that are whole numbers; declare them")
    elif ends[0] < lowest or ends[1] > highest:
        raise ValueError(f"dtype {dtype} does not reach all values; write a wider one, or fix the bounds")


def _check_nanoseconds(column: Column) -> None:
    ends = column.shown_bounds
    if not isinstance(ends, tuple):
        raise ValueError("dtype datetime64[ns] needs declared bounds; declare them, or write datetime64[us]")
    first, last = (datetime.datetime.fromisoformat(str(end)) for end in ends)
    if first < _NANOSECONDS[0] or last > _NANOSECONDS[1]:
        raise ValueError("dtype datetime64[ns] does not reach all bounds; write datetime64[us], or narrow them")
