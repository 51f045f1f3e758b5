"""Cells of a column that a rule means, or a sample is asked for, by their numbers: values, ranges, missing."""

from __future__ import annotations

import datetime
import math
from dataclasses import dataclass
from typing import Annotated, TypeAlias

from pydantic import BeforeValidator, Field

from doublure.schema.scalars import Value

MISSING = "missing"
"""How a rule writes an empty cell."""


def _plain(value: object) -> object:
    """Return what YAML reads as a date, or as nothing, as the text it stands for."""
    if value is None:
        return MISSING
    if isinstance(value, (list, tuple)):
        return tuple(_plain(each) for each in value)
    return value.isoformat() if isinstance(value, datetime.date) else value


Cells: TypeAlias = Annotated[
    Value | Annotated[tuple[Value, ...], Field(min_length=1)],
    BeforeValidator(_plain),
]
"""``missing``, a value, a list of values, or ``[low, high]`` for numbers and dates."""


@dataclass(frozen=True, kw_only=True)
class Allowed:
    """Some cells of a column.

    Attributes:
        values: Single ones.
        span: All from the first to the second, both included.
        missing: Whether an empty cell is one.
        slack: How far from a value a number still counts as it.
    """

    values: tuple[float, ...] = ()
    span: tuple[float, float] | None = None
    missing: bool = False
    slack: float = 0.0

    def has(self, number: float) -> bool:
        """Say whether a cell is one of them; NaN is an empty one."""
        if math.isnan(number):
            return self.missing
        within = self.span is not None and self.span[0] - self.slack <= number <= self.span[1] + self.slack
        return within or any(abs(number - value) <= self.slack for value in self.values)
