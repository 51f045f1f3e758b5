"""The values a number can take, and the public bins over them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from doublure.schema.columns import Column

Floats: TypeAlias = "np.ndarray[Any, np.dtype[np.float64]]"

_WIDE_RATIO = 1_000.0


@dataclass(frozen=True, kw_only=True)
class Grid:
    """The values a number can take: ``lower + k * unit`` for ``0 <= k < size``; unit 0 is the continuum.

    Attributes:
        lower: The lowest value.
        upper: The highest value.
        unit: The distance between neighbours.
        even: Whether bins are of equal width whatever the span: a calendar has no small numbers.
        declared: Where bins begin, if that is declared.
        logarithmic: Whether bins are of equal ratio whatever the span, where values are positive.
    """

    lower: float
    upper: float
    unit: float
    even: bool = False
    declared: tuple[float, ...] = ()
    logarithmic: bool = False

    @property
    def size(self) -> float:
        """How many values there are; infinite on the continuum."""
        return math.inf if self.unit == 0 else round((self.upper - self.lower) / self.unit) + 1

    def snap(self, values: Floats) -> Floats:
        """Return the nearest values on the grid, inside the bounds; never a negative zero."""
        inside: Floats = np.clip(values, self.lower, self.upper)
        if self.unit:
            steps = np.clip(np.rint((inside - self.lower) / self.unit), 0, self.size - 1)
            inside = self.lower + steps * self.unit
        return inside + 0.0

    def edges(self, bins: int, *, without_zero: bool = False, curve: float = 1.0) -> Floats:
        """Return ``(B + 1,)`` increasing edges, B <= bins; bin i holds ``edges[i] <= x < edges[i + 1]``.

        Args:
            bins: The most bins.
            without_zero: Zero has a state of its own: no bin begins or ends with it, where there is another value.
            curve: Bins are of equal width in this power of the share of the bounds, where values cannot be negative;
                with 1 they are as wide as they would be anyway.
        """
        first, last = self.lower, self.upper
        if without_zero and self.unit and self.size > 1:  # a grid of zero alone keeps its bin, which then stays empty
            first, last = first + self.unit * (first == 0), last - self.unit * (last == 0)
        inner = self._cuts(first, last, bins) if curve == 1 or first < 0 else self._bent(first, last, bins, curve)
        if not self.unit:
            return np.unique(np.concatenate([[first], inner, [last]]))
        start, stop = round((first - self.lower) / self.unit), round((last - self.lower) / self.unit) + 1
        if stop - start <= bins:
            steps = np.arange(start, stop + 1)
        else:
            cut = np.ceil((inner - self.lower) / self.unit - 1e-9)
            steps = np.unique(np.clip(np.concatenate([[start], cut, [stop]]), start, stop))
        return self.lower + steps.astype(np.float64) * self.unit

    def _cuts(self, first: float, last: float, bins: int) -> Floats:
        """Return the inner cuts: of equal ratio from 1 or the lower bound if that spans three orders of magnitude."""
        inside = [edge for edge in self.declared if first < edge < last]
        if inside:
            return np.array(inside[:: -(-len(inside) // max(1, bins - 1))])
        smallest = first if first > 0 else max(self.unit, 1.0)
        ratio = math.inf if self.even else 1.0 if self.logarithmic else _WIDE_RATIO
        if first >= 0 and last > smallest and last / smallest >= ratio:
            return np.geomspace(smallest, last, bins + 1)[1:-1]
        return np.linspace(first, last + self.unit, bins + 1)[1:-1]

    def _bent(self, first: float, last: float, bins: int, curve: float) -> Floats:
        """Return the inner cuts at even places of a curve: narrow bins for small values."""
        places: Floats = np.linspace(0, 1, bins + 1)[1:-1] ** (1 / curve)
        return first + places * (last + self.unit - first)


def grid_of(column: Column) -> Grid:
    """Return the grid of a number column; days and seconds since 1970 for dates and moments.

    Raises:
        SchemaError: The bounds are not known yet.
    """
    lower, upper = column.known_grid
    return Grid(
        lower=lower,
        upper=upper,
        unit=column.unit,
        even=column.declared_scale == "linear" or column.clock is not None,
        declared=column.cuts,
        logarithmic=column.declared_scale == "log",
    )
