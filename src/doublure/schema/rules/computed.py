"""The base of rules that compute a column from others: it is neither modelled nor counted, and fits every row.

The column of a record is never encoded, so that no count holds it: records in which it has another value are taken as
they are, and move nothing else. In synthetic rows it is computed from the cells that were drawn. A row whose result
lies outside the column's own bounds is changed; where the ranges of the others show that there can be none such,
nothing has to be looked at.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from typing_extensions import override

from doublure.errors import printable
from doublure.schema.columns import Column
from doublure.schema.rules.arithmetic import ColumnFormula, ValueRange
from doublure.schema.rules.rule import CellSource, DerivedColumn, Floats, Mask, NumericRule, Rule

_NEARLY = 1e-9
"""A part of a unit: so much may be lost where a result is brought to its column's own unit."""


class ComputedRule(Rule):
    """A rule that gives one column's cells from the cells of others."""

    encoded: ClassVar[bool] = True
    across_tables: ClassVar[bool] = True
    spans: ClassVar[bool] = False
    """Whether it says how far its second operand lies above the first."""

    @property
    @abstractmethod
    def of(self) -> str:
        """The column that is computed."""

    @property
    @abstractmethod
    def operands(self) -> tuple[str, ...]:
        """The columns that it follows from, each once."""

    @abstractmethod
    def arithmetic(self, columns: Mapping[str, Column]) -> ColumnFormula:
        """Return how it is computed, from the numbers of the others' cells.

        Raises:
            ValueError: These do not fit; ``message; remedy``.
        """

    @property
    @override
    def names(self) -> tuple[str, ...]:
        return (*self.operands, self.of)

    @property
    @override
    def derives(self) -> tuple[str, ...]:
        return (self.of,)

    @property
    @override
    def sources(self) -> tuple[str, ...]:
        return self.operands

    @override
    def check(self, columns: Mapping[str, Column]) -> None:
        super().check(columns)
        name, column = printable(self.of), columns[self.of]
        for each in self.names:
            if columns[each].learned:
                fact = f"{self.word} needs declared facts of {printable(each)}"
                raise ValueError(f"{fact}, and one is learned; declare it")
        if "condition" in column.roles:
            raise ValueError(f"{name} is a condition, and {self.word} computes it; remove the role")
        self.check_types(columns)
        if not self.settled(columns):
            return
        reach = self.reach(columns)
        holes = [printable(each) for each in self.operands if columns[each].may_be_missing]
        if (holes or reach.hole) and not column.may_be_missing:
            why = f"{holes[0]} may be" if holes else "a division by zero has no result"
            raise ValueError(f"{name} follows by {self.word} and is never missing, but {why}; declare missing: true")
        lower, upper = column.limits
        if reach.low > upper + column.unit / 2 or reach.high < lower - column.unit / 2:
            raise ValueError(
                f"{self.word} gives {name} from {reach.low:g} to {reach.high:g}, all outside its bounds; fix the bounds"
            )

    def check_types(self, columns: Mapping[str, Column]) -> None:
        """Refuse columns whose cells are no numbers.

        Raises:
            ValueError: ``message; remedy``.
        """
        for each in self.names:
            if not columns[each].computable:
                raise ValueError(
                    f"{self.word} names {printable(each)}, which is no number; use integer, real or year columns"
                )

    def reach(self, columns: Mapping[str, Column]) -> ValueRange:
        """Return the range of its results, by the bounds of the others."""
        ends = {name: ValueRange(*columns[name].limits) for name in self.operands}
        return self.arithmetic(columns).reach(ends)

    @override
    def derivations(self, columns: Mapping[str, Column]) -> Iterator[DerivedColumn]:
        yield DerivedColumn(self.of, self.operands, self._cells(columns))

    @override
    def in_numbers(self, columns: Mapping[str, Column], beside: Sequence[Rule]) -> Iterator[NumericRule]:
        reach, (lower, upper) = self.reach(columns), columns[self.of].limits
        slack = columns[self.of].unit / 2
        if reach.low < lower - slack or reach.high > upper + slack:
            cells = self._cells(columns)
            yield ComputedWithinBounds(names=self.names, columns=columns, cells=cells, moved=self.moved)

    def counts_completed(self, columns: Mapping[str, Column]) -> bool:
        """Return whether a result counts completed units, as an age does; else it is the nearest value."""
        return False

    @property
    def moved(self) -> str | None:
        """The operand that follows the result by as much, if there is one."""
        return None

    def _cells(self, columns: Mapping[str, Column]) -> ComputedCells:
        completed = self.counts_completed(columns)
        return ComputedCells(self.arithmetic(columns), self.operands, columns[self.of], completed)


@dataclass(frozen=True)
class ComputedCells:
    """The cells of a computed column.

    Attributes:
        formula: How they are computed.
        operands: The columns that they follow from, in the order in which their cells are given.
        column: Their own column.
        completed: Whether only completed units count.
    """

    formula: ColumnFormula
    operands: tuple[str, ...]
    column: Column
    completed: bool

    def __call__(self, *cells: Any) -> Any:
        """Return ``(N,)`` numbers of the column's cells, or that of one row."""
        import numpy as np

        pairs = zip(self.operands, cells, strict=True)
        own = {name: np.atleast_1d(np.asarray(each, dtype=np.float64)) for name, each in pairs}
        result = np.broadcast_to(self.formula.value(own), own[self.operands[0]].shape)
        hole = np.logical_or.reduce([np.isnan(each) for each in own.values()])
        placed = self._placed(np.where(hole, np.nan, result))
        return float(placed[0]) if isinstance(cells[0], float) else placed

    def _placed(self, numbers: Floats) -> Floats:
        import numpy as np

        unit, decimals = self.column.unit, self.column.decimals
        if not unit or (decimals is not None and unit == 10.0**-decimals):
            return self.column.rounded(numbers) + 0.0
        steps = np.floor(numbers / unit + _NEARLY) if self.completed else np.rint(numbers / unit)
        placed: Floats = self.column.rounded(steps * unit) + 0.0
        return placed


@dataclass(frozen=True, kw_only=True)
class ComputedWithinBounds(NumericRule):
    """A computed column within its own bounds: rows beyond take the result of a row that fits, or its operands.

    Attributes:
        cells: The column's cells.
        moved: The operand that is moved along with the result; None: all operands are taken from another row.
    """

    cells: ComputedCells
    moved: str | None

    @property
    @override
    def moves(self) -> tuple[str, ...]:
        return self.names[:-1]

    @override
    def broken(self, numbers: Mapping[str, Any]) -> Any:
        result = self.cells(*(numbers[name] for name in self.cells.operands))
        (lower, upper), slack = self.cells.column.limits, self.cells.column.unit / 2
        if isinstance(result, float):
            inside = self._may_be_missing if math.isnan(result) else lower - slack <= result <= upper + slack
            return not inside
        import numpy as np

        outside: Mask = (result < lower - slack) | (result > upper + slack)
        return outside if self._may_be_missing else outside | np.isnan(result)

    @property
    def _may_be_missing(self) -> bool:
        return self.cells.column.may_be_missing

    @override
    def fix(self, numbers: dict[str, Floats], off: Mask, source: CellSource) -> None:
        """Move one operand by a distance that a sound row has, where there is such an operand."""
        import numpy as np

        if self.moved is None or source.rng is None:
            return  # the row takes all columns from another in the end
        first, last = self.cells.operands[0], self.moved
        apart = numbers[last] - numbers[first]
        lenders, rows = np.flatnonzero(source.sound & ~np.isnan(apart)), np.flatnonzero(off)
        if not len(lenders):
            return
        moved = numbers[last].copy()
        moved[rows] = numbers[first][rows] + apart[source.rng.choice(lenders, len(rows))]
        numbers[last] = self.columns[last].snap(moved)
