"""``{difference: {of: los_days, from: admitted, to: discharged, unit: day}}``: a column is what lies between two."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from operator import mul
from typing import Any, ClassVar, Literal

from pydantic import Field, StrictStr, model_serializer
from typing_extensions import override

from doublure.errors import printable
from doublure.schema.columns import Column
from doublure.schema.fact_states import Frozen
from doublure.schema.rules.age import YearsBetween
from doublure.schema.rules.arithmetic import ColumnFormula, ValueRange
from doublure.schema.rules.computed import ComputedRule

_SECONDS = {"second": 1.0, "minute": 60.0, "hour": 3600.0, "day": 86_400.0, "week": 604_800.0}
_CLOCKS = {"s": 1.0, "D": 86_400.0}
_YEAR_DAYS = (365.0, 366.0)
"""The shortest and the longest year."""


class TwoEnds(Frozen):
    """A column and the two that it lies between."""

    of: StrictStr
    start: StrictStr = Field(alias="from")
    end: StrictStr = Field(alias="to")
    unit: Literal["second", "minute", "hour", "day", "week", "year"] | None = Field(
        default=None, description="of a difference of days or moments"
    )

    @model_serializer
    def _as_written(self) -> dict[str, str]:
        said = {"of": self.of, "from": self.start, "to": self.end, "unit": self.unit}
        return {key: value for key, value in said.items() if value is not None}


class ColumnDifference(ComputedRule):
    """The column is ``to`` minus ``from``: of days and moments in units, completed ones where it is whole.

    Years go from anniversary to anniversary, as an age does.
    """

    word: ClassVar[str] = "difference"
    spans: ClassVar[bool] = True

    difference: TwoEnds

    @property
    @override
    def of(self) -> str:
        return self.difference.of

    @property
    @override
    def operands(self) -> tuple[str, ...]:
        return self.difference.start, self.difference.end

    @override
    def ordered_ends(self, columns: Mapping[str, Column]) -> tuple[str, str] | None:
        ends = columns[self.of].ends
        return None if ends is None or ends[0] < 0 else (self.difference.start, self.difference.end)

    @property
    @override
    def moved(self) -> str | None:
        return self.difference.end

    @override
    def counts_completed(self, columns: Mapping[str, Column]) -> bool:
        return columns[self.difference.start].clock is not None and columns[self.of].integral

    @override
    def check_types(self, columns: Mapping[str, Column]) -> None:
        (start, end), own = (columns[name] for name in self.operands), columns[self.of]
        pair = " and ".join(map(printable, self.operands))
        if own.clock is not None or not (own.adds_up or (own.computable and start.clock is None)):
            raise ValueError(f"difference names {printable(self.of)}, which is no number; use integer or real")
        if (start.clock is None) != (end.clock is None) or not (start.bounded and end.bounded):
            raise ValueError(f"difference needs {pair} to be two times, or two numbers; use columns of one kind")
        if start.clock is None:
            spans = all(each.adds_up and not each.computable for each in (start, end, own))
            if not (spans or all(each.computable for each in (start, end, own))):
                raise ValueError(
                    f"difference needs {pair} and {printable(self.of)} to be numbers; use columns of one kind"
                )
            if self.difference.unit is not None:
                raise ValueError(f"difference of {pair} has a unit, and these are no times; leave the unit out")
        elif own.plain and self.difference.unit is None:
            raise ValueError(f"difference of {pair} needs a unit; write unit: day")
        elif not own.plain and self.difference.unit is not None:
            raise ValueError(f"{printable(self.of)} is a span of time and has its own unit; leave the unit out")
        if None not in (start.zone, end.zone) and start.zone != end.zone:
            raise ValueError(f"difference compares {pair}; give both the same timezone")

    @override
    def requirement(self, columns: Mapping[str, Column]) -> str:
        of, start, end = map(printable, (self.of, *self.operands))
        if self.difference.unit is not None:
            return f"{of} must be the {self.difference.unit}s from {start} to {end}"
        if columns[self.difference.start].clock is not None:
            return f"{of} must be the time from {start} to {end}"
        return f"{of} must be {end} − {start}"

    @override
    def distances(self, columns: Mapping[str, Column]) -> Iterator[tuple[str, str, float, float]]:
        (start, end), own = (columns[name] for name in self.operands), columns[self.of]
        if own.grid is None or not start.alike(end):
            return
        more = own.unit if self.counts_completed(columns) else own.unit / 2
        least, most = own.grid[0] - own.unit / 2, own.grid[1] + more
        yield (
            self.difference.start,
            self.difference.end,
            least * self._least(end, least),
            most * self._least(end, -most),
        )

    def _least(self, column: Column, number: float) -> float:
        """Return the numbers of a column of times in a unit: the fewest of as many units above zero, the most below."""
        if column.clock is None:
            return 1.0
        if self.difference.unit == "year":
            return _YEAR_DAYS[number < 0] * _SECONDS["day"] / _CLOCKS[column.clock]
        return _SECONDS[self.difference.unit or "second"] / _CLOCKS[column.clock]

    @override
    def arithmetic(self, columns: Mapping[str, Column]) -> ColumnFormula:
        start, end = (columns[name] for name in self.operands)
        first, last = (1.0 if each.clock is None else _CLOCKS[each.clock] for each in (start, end))
        if self.difference.unit == "year":
            ways = partial(mul, first), partial(mul, last)
            completed = self.counts_completed(columns)
            return YearsBetween(self.operands, ways, None, whole=completed, day=_SECONDS["day"])
        unit = _SECONDS[self.difference.unit or "second"]
        return SpanBetween(self.difference.start, self.difference.end, first, last, unit)


@dataclass(frozen=True)
class SpanBetween(ColumnFormula):
    """The span between two columns, in units: exact up to the one division.

    Attributes:
        start: The column that it begins with.
        end: The column that it ends with.
        start_ticks: The seconds of one number of the first; 1 for plain numbers.
        end_ticks: The same of the second.
        unit: The seconds of a unit.
    """

    start: str
    end: str
    start_ticks: float
    end_ticks: float
    unit: float

    @property
    @override
    def names(self) -> tuple[str, ...]:
        return self.start, self.end

    @override
    def value(self, cells: Mapping[str, Any]) -> Any:
        return (cells[self.end] * self.end_ticks - cells[self.start] * self.start_ticks) / self.unit

    @override
    def reach(self, ends: Mapping[str, ValueRange]) -> ValueRange:
        start, end = ends[self.start], ends[self.end]
        least, most = (
            (last * self.end_ticks - first * self.start_ticks) / self.unit
            for last, first in ((end.low, start.high), (end.high, start.low))
        )
        return ValueRange(least, most)
