"""What series are recorded under, as codes: a value of a list, or the public group that a number falls in.

Groups are the bins that a number of a table has, but few: each is one block of a condition, and one more thing that a
method has to know of series apart. ``edges`` of the schema cut them elsewhere.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from doublure.encode.columns import Discrete
from doublure.encode.grids import Floats, grid_of
from doublure.encode.numeric import Binned
from doublure.schema.allowed import Allowed
from doublure.schema.columns import Column, label
from doublure.schema.series_attributes import Attribute

GROUPS = 10
"""Into how many groups a number falls at most."""
_GUESSED_VALUES = 10

Encoding: TypeAlias = Discrete | Binned


def encoding_of(column: Attribute) -> Encoding:
    """Return how an attribute's cells become codes, and back; every fact of it is known."""
    if column.listed:
        return Discrete(column=column)
    grid = grid_of(column)
    return Binned(column=column, grid=grid, edges=grid.edges(GROUPS))


def groups_of(column: Attribute) -> int:
    """Return how many codes an attribute has, guessed where that is not known yet."""
    if column.bounded:
        return _GUESSED_VALUES if column.grid is None else encoding_of(column).parts[0].size
    return len(column.domain) or _GUESSED_VALUES


def codes_of(column: Attribute, cells: Any) -> Floats:
    """Return the code of each cell of an attribute, ``(N,)``."""
    return encoding_of(column).compact(cells)[0]


def names_of(column: Attribute) -> list[str]:
    """Return the names of an attribute's codes, in order."""
    found = encoding_of(column)
    if isinstance(found, Discrete):
        return [str(label(value)) for value in column.domain]
    unit = found.grid.unit
    ends = zip(found.edges[:-1], found.edges[1:] - unit, strict=True)
    return [f"{low:g}" if unit and low == high else f"{low:g} to {high:g}" for low, high in ends]


def codes_within(column: Column, cells: Allowed) -> tuple[int, ...]:
    """Return the codes of the groups that hold a number asked for."""
    grid = grid_of(column)
    edges = grid.edges(GROUPS)
    low, high = edges[:-1], edges[1:] - grid.unit
    fits = np.zeros(len(low), dtype=np.bool_)
    for first, last in [cells.span] if cells.span is not None else [(value, value) for value in cells.values]:
        fits |= (low <= last + cells.slack) & (high >= first - cells.slack)
    return tuple(np.flatnonzero(fits).tolist())
