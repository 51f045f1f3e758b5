"""Encode attributes of series as codes: a listed value, or the public group of a number.

Groups are the bins of a table's number, but few: each is one block of a condition, and a method has to learn the series
of each group apart. ``edges`` of the schema cut them elsewhere.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from doublure.encode.columns import ColumnEncoding, encoding
from doublure.schema.allowed import Allowed
from doublure.schema.columns import Column
from doublure.support.arrays import Floats

GROUPS = 10
"""Into how many groups a number falls at most."""
_GUESSED_VALUES = 10


def encoding_of(column: Column) -> ColumnEncoding:
    """Return how an attribute's cells become codes, and back; every fact of it is known."""
    return encoding(column, "bins", GROUPS)


def groups_of(column: Column) -> int:
    """Return how many codes an attribute has, guessed where that is not known yet."""
    return _GUESSED_VALUES if column.ends is None else encoding_of(column).parts[0].size


def codes_of(column: Column, cells: Any) -> Floats:
    """Return the code of each cell of an attribute, ``(N,)``."""
    return encoding_of(column).compact(cells)[0]


def key_names(column: Column) -> list[str]:
    """Return the names of an attribute's codes, in order."""
    return list(column.bins(GROUPS).names)


def group_middles(column: Column) -> Floats | None:
    """Return the middle of each group of a number, in order; None where values are listed or may be missing."""
    if not column.bounded or column.may_be_missing:
        return None
    bins = column.bins(GROUPS)
    found: Floats = (bins.edges[:-1] + bins.highs) / 2
    return found


def codes_within(column: Column, cells: Allowed) -> tuple[int, ...]:
    """Return the codes of the groups that hold a number asked for."""
    bins = column.bins(GROUPS)
    fits = np.zeros(len(bins.highs), dtype=np.bool_)
    for first, last in [cells.span] if cells.span is not None else [(value, value) for value in cells.values]:
        fits |= (bins.edges[:-1] <= last + cells.slack) & (bins.highs >= first - cells.slack)
    return tuple(np.flatnonzero(fits).tolist())
