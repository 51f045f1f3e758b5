"""The values a number can take."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from doublure.schema.columns import Column

Floats: TypeAlias = "np.ndarray[Any, np.dtype[np.float64]]"


@dataclass(frozen=True, kw_only=True)
class Grid:
    """The values a number can take: ``lower + k * unit`` for ``0 <= k < size``; unit 0 is the continuum.

    Attributes:
        lower: The lowest value.
        upper: The highest value.
        unit: The distance between neighbours.
    """

    lower: float
    upper: float
    unit: float

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


def grid_of(column: Column) -> Grid:
    """Return the grid of a number column; days and seconds since 1970 for dates and moments.

    Raises:
        SchemaError: The bounds are not known yet.
    """
    lower, upper = column.known_grid
    return Grid(lower=lower, upper=upper, unit=column.unit)
