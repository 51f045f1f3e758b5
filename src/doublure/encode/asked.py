"""The whole numbers that stand for what a column is asked to be, where a row tells by numbers alone."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from doublure.encode.columns import ListedEncoding, RowEncoding
from doublure.encode.numeric import Floats, IntegerEncoding
from doublure.schema.allowed import Allowed

if TYPE_CHECKING:
    from doublure.networks.steering import IntRanges

_MOST_LISTED = 100_000
"""Values of a number that others follow from are looked at one by one."""


def spans_of(own: RowEncoding, cells: Allowed, followed: Callable[[Floats], Floats] | None = None) -> IntRanges | None:
    """Return the numbers of a column's cells; None where they cannot be told.

    Args:
        own: How the column becomes whole numbers.
        cells: What is asked for.
        followed: Of which column it is asked for, where that follows from this one.
    """
    if isinstance(own, ListedEncoding):
        values = own.cells
        return _listed(np.flatnonzero(cells.has(values if followed is None else followed(values))))
    if not isinstance(own, IntegerEncoding):
        return None
    first, last, unit, hole = own.domain.first, own.domain.last, own.domain.unit, own.domain.nullable
    if followed is not None:
        if last - first > _MOST_LISTED:
            return None
        numbers = own.numbers([np.arange(first, last + 1 + hole, dtype=np.float64)], None)
        return _listed(first + np.flatnonzero(cells.has(followed(numbers))))
    found = {round(value / unit) for value in cells.values}
    if cells.missing:
        found |= {last + 1 + state for state in cells.states or range(hole) if state < hole}
    if cells.span is not None:
        low, high = cells.span[0] - cells.slack, cells.span[1] + cells.slack
        span = max(first, math.ceil(low / unit - _ROUNDED)), min(last, math.floor(high / unit + _ROUNDED))
        beside = _listed(np.array(sorted(step for step in found if not span[0] <= step <= span[1])))
        return (*((span,) if span[0] <= span[1] else ()), *beside)
    return _listed(np.array(sorted(found)))


_ROUNDED = 1e-9


def common(one: IntRanges, other: IntRanges) -> IntRanges:
    """Return the numbers that are in both."""
    both = ((max(low, least), min(high, most)) for low, high in one for least, most in other)
    return tuple((low, high) for low, high in both if low <= high)


def _listed(numbers: np.ndarray[tuple[int], np.dtype[np.int64]]) -> IntRanges:
    """Return ascending numbers as ranges."""
    groups = np.split(numbers, np.flatnonzero(np.diff(numbers) != 1) + 1)
    return tuple((int(group[0]), int(group[-1])) for group in groups if len(group))
