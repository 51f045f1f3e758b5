"""Which cells of a column a rule means, or a sample is asked for: values, ranges, missing.

Cells are told by number: a discrete value by its place in the list, a number as it is, a day or a moment by days or
seconds since 1970.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from pydantic import BeforeValidator, Field

from doublure.schema.columns import Column
from doublure.schema.scalars import Value, label

if TYPE_CHECKING:
    import numpy as np

    Mask: TypeAlias = np.ndarray[Any, np.dtype[np.bool_]]

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

    def has(self, numbers: Any) -> Any:
        """Return ``(N,)``: which numbers are among them, NaN for an empty cell; of one float, whether it is."""
        if isinstance(numbers, float):
            within = self.span is not None and self.span[0] - self.slack <= numbers <= self.span[1] + self.slack
            near = within or any(abs(numbers - value) <= self.slack for value in self.values)
            return self.missing if math.isnan(numbers) else near
        import numpy as np

        found = np.isnan(numbers) & self.missing
        if self.span is not None:
            found |= (self.span[0] - self.slack <= numbers) & (numbers <= self.span[1] + self.slack)
        if self.values:
            values = np.sort(np.asarray(self.values))
            places = np.clip(np.searchsorted(values, numbers), 1, max(1, len(values) - 1))
            for beside in (values[np.minimum(places, len(values) - 1)], values[places - 1]):
                found |= np.abs(numbers - beside) <= self.slack
        return found


def allowed(column: Column, written: Any) -> Allowed:
    """Return the cells that a rule writes.

    A list of two is a range where the column holds numbers or dates, and a list everywhere else.

    Raises:
        ValueError: The column has no such cell; ``message; remedy``.
    """
    cells = tuple(written) if isinstance(written, (list, tuple)) else (written,)
    missing = [is_missing(column, cell) for cell in cells]
    if column.bounded and len(cells) == 2 and isinstance(written, (list, tuple)) and not any(missing):
        return between(column, *cells)
    return one_of(column, [None if hole else cell for cell, hole in zip(cells, missing, strict=True)])


def one_of(column: Column, cells: Sequence[Any]) -> Allowed:
    """Return single cells; None is an empty one.

    Raises:
        ValueError: The column has no such cell; ``message; remedy``.
    """
    if None in cells and not column.may_be_missing:
        raise ValueError("is never missing; ask for a value, or declare missing")
    found = tuple(place(column, cell) for cell in cells if cell is not None)
    return Allowed(values=found, missing=None in cells, slack=column.slack)


def between(column: Column, low: Any, high: Any) -> Allowed:
    """Return all cells from one to another, within the column's bounds; None is an open end.

    Raises:
        ValueError: The column has no order, or no value there; ``message; remedy``.
    """
    if not column.ordered:
        raise ValueError("has no order; give a list of values")
    first, last = column.limits
    start = first if low is None else column.number_of(low)
    end = last if high is None else column.number_of(high)
    if start > end and None not in (low, high):
        raise ValueError("has a range that ends before it begins; write the lower end first")
    start, end = max(start, first), min(end, last)
    if start > end:
        raise ValueError("has a range outside the column's bounds; see its bounds in the schema")
    return Allowed(span=(start, end), slack=column.slack)


def is_missing(column: Column, cell: object) -> bool:
    """Say whether a rule means an empty cell: the word ``missing``, unless the column lists a value of that name."""
    return cell == MISSING and MISSING not in map(label, column.domain)


def place(column: Column, cell: object) -> float:
    """Return the number of a cell.

    Raises:
        ValueError: The column has no such value; ``message; remedy``.
    """
    if column.listed:
        return column.number_of(cell)
    if not column.unit:
        raise ValueError("is a real number without precision or step, and hardly any two are equal; give a range")
    number = column.number_of(cell)
    lower, upper = column.limits
    steps = number / column.unit
    if not lower <= number <= upper or abs(steps - round(steps)) > 1e-6:
        raise ValueError("lies outside the column's bounds, or between two of its values; see its bounds in the schema")
    return number
