"""Cells of a column that a rule means, or a sample is asked for, by their numbers: values, ranges, missing."""

from __future__ import annotations

import datetime
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from pydantic import BeforeValidator, Field

from doublure.schema.missing_states import hole_states
from doublure.schema.scalars import Value

if TYPE_CHECKING:
    import numpy as np

    Mask: TypeAlias = np.ndarray[Any, np.dtype[np.bool_]]

MISSING = "missing"
"""The word for an empty cell in a rule."""


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
        missing: Whether a missing cell is one.
        states: The states of missing cells that are among them; all where there are none.
        slack: How far from a value a number still counts as it.
    """

    values: tuple[float, ...] = ()
    span: tuple[float, float] | None = None
    missing: bool = False
    states: tuple[int, ...] = ()
    slack: float = 0.0

    @classmethod
    def from_answer(cls, answer: Allowed) -> Allowed:
        """Return a column type's answer in plain numbers, as whole private columns are compared with it."""
        span = None if answer.span is None else (float(answer.span[0]), float(answer.span[1]))
        values = tuple(float(value) for value in answer.values)
        states = tuple(int(state) for state in answer.states)
        return cls(values=values, span=span, missing=bool(answer.missing), states=states, slack=float(answer.slack))

    def has(self, numbers: Any) -> Any:
        """Return ``(N,)``: which numbers are among them, NaN for an empty cell; of one float, whether it is."""
        if isinstance(numbers, float):
            within = self.span is not None and self.span[0] - self.slack <= numbers <= self.span[1] + self.slack
            near = within or any(abs(numbers - value) <= self.slack for value in self.values)
            wanted = not self.states or hole_states(numbers) in self.states
            return self.missing and wanted if math.isnan(numbers) else near
        import numpy as np

        found = np.isnan(numbers) & self.missing
        if self.states:
            found &= np.isin(hole_states(numbers), self.states)
        if self.span is not None:
            found |= (self.span[0] - self.slack <= numbers) & (numbers <= self.span[1] + self.slack)
        if self.values:
            values = np.sort(np.asarray(self.values))
            places = np.clip(np.searchsorted(values, numbers), 1, max(1, len(values) - 1))
            for beside in (values[np.minimum(places, len(values) - 1)], values[places - 1]):
                found |= np.abs(numbers - beside) <= self.slack
        return found
