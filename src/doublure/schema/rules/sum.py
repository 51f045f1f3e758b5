"""``{sum: {total: t, of: [a, b]}}``: t is a + b."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import StrictStr
from typing_extensions import override

from doublure.errors import printable
from doublure.schema.allowed import Allowed
from doublure.schema.columns import Column
from doublure.schema.fact_states import Frozen
from doublure.schema.rules.rule import CellSource, Floats, Mask, Names, NumericRule, Rule

if TYPE_CHECKING:
    from doublure.schema.columns.sql_words import Expr, RuleCell, SqlWords

_EXACT = 2.0**52
"""A rest is of two sums, which float64 both holds exactly up to twice as much."""


class Addition(Frozen):
    """A total and its parts."""

    total: StrictStr
    of: Names


class Sum(Rule):
    """The total is the sum of the parts (in rows where none of them is missing)."""

    word: ClassVar[str] = "sum"
    takes_derived: ClassVar[bool] = False

    sum: Addition

    @property
    @override
    def names(self) -> tuple[str, ...]:
        return (self.sum.total, *self.sum.of)

    @override
    def check(self, columns: Mapping[str, Column]) -> None:
        super().check(columns)
        every, name = [columns[each] for each in self.names], printable(self.sum.total)
        total, *parts = every
        for column in parts:
            if not (column.compares_with(total) and (column.adds_up or column.computable)):
                raise ValueError(f"sum needs {name} and its parts to be all whole numbers, or all real; fix")
            if column.unit != total.unit:
                raise ValueError(f"sum adds up to {name}; give total and parts the same precision and step")
        known = [column.grid for column in every if column.grid is not None]
        if len(known) < len(every) or any(column.may_be_missing for column in every):
            return
        (lowest, highest), *own = known
        if sum(low for low, _ in own) > highest or sum(high for _, high in own) < lowest:
            raise ValueError(f"no parts add up to a value of {name}; fix the bounds")

    @override
    def requirement(self, columns: Mapping[str, Column]) -> str:
        return f"{printable(self.sum.total)} must be {' + '.join(map(printable, self.sum.of))}"

    @override
    def in_numbers(self, columns: Mapping[str, Column], beside: Sequence[Rule]) -> Iterator[NumericRule]:
        unit = columns[self.sum.total].unit
        slack, leads = 0.25 * unit if unit else 1e-9, (self.sum.total,)
        yield ColumnSum(names=self.names, columns=columns, leads=leads, slack=slack, relative=not unit)


@dataclass(frozen=True, kw_only=True)
class ColumnSum(NumericRule):
    """``sum``: the total follows the parts; where it cannot, or every second turn, the parts follow the total."""

    slack: float
    relative: bool

    @override
    def named(self) -> Iterator[tuple[str, Allowed]]:
        ends = Allowed(values=tuple(end for name in self.names for end in self.columns[name].limits))
        yield from ((name, ends) for name in self.names)

    @override
    def completed(self, name: str, row: Mapping[str, float]) -> Iterator[float]:
        total, *parts = self.names
        rest = sum(row[each] for each in parts if each != name)
        yield rest if name == total else row[total] - rest

    @override
    def broken(self, numbers: Mapping[str, Any]) -> Any:
        total, *parts = (numbers[name] for name in self.names)
        off, slack = abs(total - reduce(add, parts)), self.slack
        return (off > slack) & (off > slack * abs(total)) if self.relative else off > slack

    @override
    def broken_in_sql(self, cells: Mapping[str, RuleCell]) -> Expr:
        from doublure.schema.columns import sql_words as sql

        total, *parts = (cells[name].number for name in self.names)
        off, slack = sql.call("ABS", total - reduce(add, parts)), sql.real(self.slack)
        far = [off > slack]
        far += [off.copy() > slack.copy() * sql.call("ABS", total)] if self.relative else []
        return sql.case((sql.both(*far), sql.no(sql.never())), otherwise=sql.never())  # NULL: a cell is missing

    @override
    def fixed_in_sql(self, cells: Mapping[str, RuleCell], turn: int, words: SqlWords) -> Mapping[str, RuleCell]:
        from sqlglot import exp

        from doublure.schema.columns import sql_words as sql

        name, *parts = self.names
        decimals, ends = self.columns[name].decimals, {each: self.columns[each].limits for each in self.names}
        remedy = "write misfit: refuse, make a view that keeps it, or fit an export"
        alike = decimals is not None or self._is_whole(ends.values())
        if not alike or len(parts) > sql.MOST_CASES:
            said = f"more than {sql.MOST_CASES} columns" if alike else "numbers without a precision or beyond 2^52"
            raise sql.NotInSql(f"changes records, and adds up {said}; {remedy}")
        least, most = (sum(ends[each][side] for each in parts) for side in (0, 1))
        if least > ends[name][1] or most < ends[name][0]:
            raise sql.NotInSql(f"changes records, and no parts add up to a value of {printable(name)}; {remedy}")
        scale = None if decimals is None else sql.real(10.0**decimals)

        def paren(value: Expr) -> Expr:
            return exp.Paren(this=value.copy())

        def rounded(value: Expr) -> Expr:
            return value.copy() if scale is None else words.nearest(paren(value) * scale) / scale

        def clipped(value: Expr, low: Expr | float, high: Expr | float) -> Expr:
            low, high = (sql.real(end) if isinstance(end, float) else end for end in (low, high))
            return sql.call("LEAST", sql.call("GREATEST", value, low), high)

        numbers = {each: cells[each].number for each in self.names}
        added = rounded(reduce(add, (numbers[each] for each in parts)))
        rest = paren((numbers[name] if turn % 2 else clipped(added, *ends[name])) - added)
        moved: dict[str, Expr] = {}
        lowest, highest = sql.real(0.0), sql.real(0.0)  # what the parts before can take of the rest
        for part in reversed(parts):
            own = numbers[part]
            moved[part] = rounded(clipped(own + paren(rest - clipped(rest, lowest, highest)), *ends[part]))
            lowest = paren(lowest + paren(sql.real(ends[part][0]) - own))
            highest = paren(highest + paren(sql.real(ends[part][1]) - own))
        # Rounded once more, as cells are: 3 times 0.1 is an end of bounds, and no number of one decimal.
        total = rounded(clipped(rounded(reduce(add, (moved[each] for each in parts))), *ends[name]))
        return {each: sql.RuleCell(number) for each, number in {**moved, name: total}.items()}

    @override
    def fix(self, numbers: dict[str, Floats], off: Mask, source: CellSource) -> None:
        """Move the total to what the parts add up to, within its bounds, or the parts to the total, the last first."""
        import numpy as np

        name, *parts = self.names
        ends = {each: self.columns[each].limits for each in self.names}
        added, total = self._added(numbers), numbers[name]
        rest = (total if source.turn % 2 else np.clip(added, *ends[name])) - added
        for part in reversed(parts):
            moved = self._rounded(np.clip(numbers[part] + rest, *ends[part]))
            rest = self._rounded(rest - (moved - numbers[part]))
            numbers[part] = np.where(off, moved, numbers[part])
        numbers[name] = np.where(off, np.clip(self._added(numbers), *ends[name]), total)

    def _is_whole(self, ends: Iterable[tuple[float, float]]) -> bool:
        """Return whether numbers are whole, and so small that float64 adds them up exactly in whatever order."""
        reach = sum(max(map(abs, each)) for each in ends)
        return self.columns[self.names[0]].unit.is_integer() and not self.relative and reach <= _EXACT

    def _added(self, numbers: Mapping[str, Floats]) -> Floats:
        return self._rounded(reduce(add, (numbers[name] for name in self.names[1:])))

    def _rounded(self, values: Floats) -> Floats:
        import numpy as np

        decimals = self.columns[self.names[0]].decimals
        return values if decimals is None else np.round(values, decimals)
