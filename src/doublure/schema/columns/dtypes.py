"""Storage types of cells in DataFrames and Parquet, by the names that pandas gives them."""

from __future__ import annotations

import datetime
import re
from typing import Literal, TypeAlias, cast

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


def dtype_reach(dtype: Dtype | None, *, whole: bool) -> tuple[int, int] | None:
    """Return the lowest and the highest whole number of a storage type; None where it has any that a column has.

    Args:
        dtype: The storage type.
        whole: Whether cells are whole numbers, which floats must keep apart.
    """
    found = _INTEGER.fullmatch(dtype or "")
    if found is None:
        most = _EXACT.get(dtype or "") if whole else None
        return None if most is None else (-most, most)
    bits = int(found[2])
    return (0, 2**bits - 1) if found[1] else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def in_nanoseconds(bounds: tuple[object, object]) -> bool:
    """Return whether a count of nanoseconds in 64 bits reaches two days or moments."""
    first, last = (datetime.datetime.fromisoformat(str(end)) for end in bounds)
    return _NANOSECONDS[0] <= first and last <= _NANOSECONDS[1]
