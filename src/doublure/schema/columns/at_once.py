"""Whole columns of Arrow, read at once where each cell reads alike either way.

A shortcut and no second set of rules: a column is taken only if Arrow could read all of it and found no NaN in text.
Both readers round to the nearest float64, and what only one of them reads (``+5``, blanks around a number, an offset)
sends the whole column the long way; ``tests/data/test_arrow_cells.py`` compares the two on hostile columns.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    import pyarrow as pa

Floats: TypeAlias = "np.ndarray[Any, np.dtype[np.float64]]"
Moments: TypeAlias = "np.ndarray[Any, np.dtype[np.datetime64]]"

_ISO = r"^\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2})?)?$"


def is_text(kind: pa.DataType) -> bool:
    """Whether a type is one of Arrow's texts."""
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


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


def moments_at_once(raw: pa.Array, tokens: Collection[str]) -> Moments | None:
    """Return what stands in a column of text; None where Arrow reads it otherwise, or not at all.

    Args:
        raw: ``(N,)`` cells.
        tokens: The texts that mean missing.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if not is_text(raw.type):
        return None
    try:
        said = pc.if_else(pc.is_in(raw, value_set=pa.array(tokens, raw.type)), None, raw)
        if not pc.all(pc.match_substring_regex(said, _ISO), min_count=0).as_py():
            return None
        read = pc.cast(said, pa.timestamp("s"))
    except pa.ArrowException:
        return None
    moments: Moments = read.to_numpy(zero_copy_only=False).astype("datetime64[s]")
    return moments
