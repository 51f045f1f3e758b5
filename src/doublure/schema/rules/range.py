"""``{range: {of: rent, least: 100, most: "0.5 * income"}}``: a column lies between numbers or formulas of others."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, BeforeValidator, StrictStr, model_validator
from typing_extensions import override

from doublure.errors import printable
from doublure.schema.allowed import Allowed
from doublure.schema.columns import Column
from doublure.schema.fact_states import Frozen
from doublure.schema.rules.arithmetic import ColumnFormula, ValueRange, parse_formula
from doublure.schema.rules.rule import CellSource, Floats, Mask, NumericRule, Rule


def _text(value: object) -> object:
    return str(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else value


def _readable(text: str) -> str:
    parse_formula(text)
    return text


End = Annotated[StrictStr, BeforeValidator(_text), AfterValidator(_readable)]


class WrittenRange(Frozen):
    """A column and its ends, each a number or a formula."""

    of: StrictStr
    least: End | None = None
    most: End | None = None

    @model_validator(mode="after")
    def _has_an_end(self) -> WrittenRange:
        if self.least is None and self.most is None:
            raise ValueError("range has no end; give least, most or both")
        return self


class ColumnRange(Rule):
    """The column is at least ``least`` and at most ``most``, cells that are missing aside."""

    word: ClassVar[str] = "range"

    range: WrittenRange

    @property
    def ends(self) -> tuple[ColumnFormula | None, ColumnFormula | None]:
        """The formulas of both ends; None for an open one."""
        least, most = (None if text is None else parse_formula(text) for text in (self.range.least, self.range.most))
        return least, most

    @property
    @override
    def names(self) -> tuple[str, ...]:
        named = (name for end in self.ends if end is not None for name in end.names)
        return tuple(dict.fromkeys((self.range.of, *named)))

    @override
    def requirement(self, columns: Mapping[str, Column]) -> str:
        ends = (("at least", self.range.least), ("at most", self.range.most))
        said = " and ".join(f"{word} {printable(end)}" for word, end in ends if end is not None)
        return f"{printable(self.range.of)} must be {said}"

    @override
    def check(self, columns: Mapping[str, Column]) -> None:
        super().check(columns)
        for name in self.names:
            if not columns[name].computable:
                raise ValueError(
                    f"range names {printable(name)}, which is no number; use integer, real or year columns"
                )
        if any(self.range.of in end.names for end in self.ends if end is not None):
            raise ValueError(f"range of {printable(self.range.of)} names the column itself as an end; name others")
        if not self.settled(columns):
            return
        (lower, upper), known = columns[self.range.of].limits, self._reaches(columns)
        if known[0].low > upper or known[1].high < lower or known[0].low > known[1].high:
            raise ValueError(f"no value of {printable(self.range.of)} lies in its range; fix the range or the bounds")

    def _reaches(self, columns: Mapping[str, Column]) -> tuple[ValueRange, ValueRange]:
        own = {name: ValueRange(*columns[name].limits) for name in self.names}
        least, most = (ValueRange(-math.inf, math.inf) if end is None else end.reach(own) for end in self.ends)
        return least, most

    @override
    def in_numbers(self, columns: Mapping[str, Column], beside: Sequence[Rule]) -> Iterator[NumericRule]:
        leads = tuple(name for name in self.names if name != self.range.of)
        yield CellsInRange(names=self.names, columns=columns, leads=leads, ends=self.ends)


@dataclass(frozen=True, kw_only=True)
class CellsInRange(NumericRule):
    """``range``: a cell outside moves to the nearest value inside; where there is none, its row changes.

    Attributes:
        ends: The formulas of both ends; None for an open one.
    """

    turn: ClassVar[int] = 4

    ends: tuple[ColumnFormula | None, ColumnFormula | None]

    @property
    @override
    def moves(self) -> tuple[str, ...]:
        return self.names

    @override
    def named(self) -> Iterator[tuple[str, Allowed]]:
        yield from ((name, Allowed(values=self.columns[name].limits)) for name in self.names)

    @override
    def completed(self, name: str, row: Mapping[str, float]) -> Iterator[float]:
        if name == self.names[0]:
            yield from (float(end) for end in self._span(row) if math.isfinite(end))

    @override
    def broken(self, numbers: Mapping[str, Any]) -> Any:
        own, (least, most) = numbers[self.names[0]], self._span(numbers)
        slack = self.columns[self.names[0]].slack
        found = (own < least - slack) | (own > most + slack)  # NaN is neither
        return bool(found) if isinstance(own, float) else found

    @override
    def fix(self, numbers: dict[str, Floats], off: Mask, source: CellSource) -> None:
        """Move the cell to the nearest value between the ends, inwards to the column's own unit."""
        import numpy as np

        name = self.names[0]
        column, (least, most) = self.columns[name], self._span(numbers)
        unit, near = column.unit or 1.0, 1e-9 if column.unit else 0.0
        if column.unit:
            least, most = np.ceil(least / unit - near) * unit, np.floor(most / unit + near) * unit
        moved = column.rounded(np.clip(np.fmin(np.fmax(numbers[name], least), most), *column.limits))
        numbers[name] = np.where(off, moved, numbers[name])

    def _span(self, numbers: Mapping[str, Any]) -> tuple[Any, Any]:
        least, most = (
            beyond if end is None else end.value(numbers)
            for end, beyond in zip(self.ends, (-math.inf, math.inf), strict=True)
        )
        return least, most
