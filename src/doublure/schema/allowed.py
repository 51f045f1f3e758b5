"""Which cells of a column a rule means, or a sample is asked for: values, ranges, missing.

Cells are told by number: a discrete value by its place in the list, a number as it is, a day or a moment by days or
seconds since 1970.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias

from pydantic import BeforeValidator, Field

from doublure.schema.columns import Column, DateColumn, DatetimeColumn, RealColumn
from doublure.schema.scalars import Value, label
from doublure.support.guessing import meant

MISSING = "missing"
"""How a rule writes an empty cell."""

_TWO = re.compile(r"([+-]?\d+(?:\.\d+)?)\s*(?:-|–|:|;|to|\.\.\.)\s*([+-]?\d+(?:\.\d+)?)", re.ASCII)
_EPOCH = datetime.datetime(1970, 1, 1)
_DAY = 86_400.0
_TRUE, _FALSE = {"true", "t", "yes", "y", "1", "1.0"}, {"false", "f", "no", "n", "0", "0.0"}


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


def allowed(column: Column, written: Any) -> Allowed:
    """Return the cells that a rule writes.

    A list of two is a range where the column holds numbers or dates, and a list everywhere else.

    Raises:
        ValueError: The column has no such cell; ``message; remedy``.
    """
    cells = tuple(written) if isinstance(written, (list, tuple)) else (written,)
    missing = [is_missing(column, cell) for cell in cells]
    if column.numeric and len(cells) == 2 and isinstance(written, (list, tuple)) and not any(missing):
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
    return Allowed(values=found, missing=None in cells, slack=_slack(column))


def between(column: Column, low: Any, high: Any) -> Allowed:
    """Return all cells from one to another, within the column's bounds; None is an open end.

    Raises:
        ValueError: The column has no order, or no value there; ``message; remedy``.
    """
    if not (column.numeric or column.nature == "ordinal"):
        raise ValueError("has no order; give a list of values")
    first, last = _ends(column)
    start = first if low is None else _number(column, low)
    end = last if high is None else _number(column, high)
    if start > end and None not in (low, high):
        raise ValueError("has a range that ends before it begins; write the lower end first")
    start, end = max(start, first), min(end, last)
    if start > end:
        raise ValueError("has a range outside the column's bounds; see its bounds in the schema")
    return Allowed(span=(start, end), slack=_slack(column))


def is_missing(column: Column, cell: object) -> bool:
    """Say whether a rule means an empty cell: the word ``missing``, unless the column lists a value of that name."""
    return cell == MISSING and MISSING not in map(label, getattr(column, "domain", ()))


def place(column: Column, cell: object) -> float:
    """Return the number of a cell.

    Raises:
        ValueError: The column has no such value; ``message; remedy``.
    """
    if column.discrete:
        return _number(column, cell)
    if isinstance(column, RealColumn) and not column.unit:
        raise ValueError("is a real number without precision or step, and hardly any two are equal; give a range")
    number = _number(column, cell)
    lower, upper = _ends(column)
    steps = number / column.unit  # type: ignore[union-attr]
    if not lower <= number <= upper or abs(steps - round(steps)) > 1e-6:
        raise ValueError("lies outside the column's bounds, or between two of its values; see its bounds in the schema")
    return number


def _number(column: Column, cell: object) -> float:
    if isinstance(column, (DateColumn, DatetimeColumn)):
        seconds = (moment(cell) - _EPOCH).total_seconds()
        return seconds / _DAY if isinstance(column, DateColumn) else seconds
    if not column.discrete:
        return _real(cell)
    labels = [label(value) for value in column.domain]  # type: ignore[union-attr]
    text = label(cell)
    if column.nature == "boolean":
        text = "true" if text.lower() in _TRUE else "false" if text.lower() in _FALSE else ""
    if text not in labels:
        raise ValueError(f"has no such value; {of_its_values(column, cell)}")
    return float(labels.index(text))


def of_its_values(column: Column, given: object) -> str:
    """Return the advice to give one of a discrete column's values: they are public, and named where they are few."""
    if column.nature == "boolean":
        return "give true or false"
    labels = [label(value) for value in column.domain]  # type: ignore[union-attr]
    return meant(label(given), labels, otherwise="give a value that the schema lists")


def _ends(column: Column) -> tuple[float, float]:
    """Return the lowest and the highest number of a column's cells."""
    if column.discrete:
        return 0.0, len(column.domain) - 1.0  # type: ignore[union-attr]
    ends = column.grid  # type: ignore[union-attr]
    if ends is None:
        raise ValueError("has bounds that are not known yet; declare them")
    return ends


def _slack(column: Column) -> float:
    return 1e-6 * column.unit if column.numeric else 0.0  # type: ignore[union-attr]


def _real(cell: object) -> float:
    try:
        number = math.nan if isinstance(cell, bool) else float(cell)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"is not a number; {_hint(cell)}")
    return number


def _hint(cell: object) -> str:
    """Return what to write in place of what is no number: a range, where two numbers stand together."""
    two = _TWO.fullmatch(str(cell).strip())
    if two is not None:
        return f"write {two[1]}..{two[2]} for a range, both ends included"
    return "give one, such as 40, or a range, such as 30..40"


def moment(cell: object) -> datetime.datetime:
    """Return a day or a moment, in the column's own time zone.

    Raises:
        ValueError: It is none, or has an offset; ``message; remedy``.
    """
    try:
        if isinstance(cell, datetime.datetime):
            found = cell
        elif isinstance(cell, datetime.date):
            found = datetime.datetime.combine(cell, datetime.time())
        else:
            found = datetime.datetime.fromisoformat(str(cell))
    except ValueError:
        raise ValueError("is no date; write 2024-01-31 or 2024-01-31T12:00:00") from None
    if found.tzinfo is not None:
        raise ValueError("has an offset; leave it out: the column's own time zone is meant")
    return found
