"""``{age: {of: age, born: dob, at: admitted}}``: a column is the completed years between two days."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, StrictStr
from typing_extensions import override

from doublure.errors import printable
from doublure.schema.columns import Column
from doublure.schema.fact_states import Frozen
from doublure.schema.rules.arithmetic import ColumnFormula, ValueRange
from doublure.schema.rules.calendar_order import fineness, make_coarse
from doublure.schema.rules.computed import ComputedRule

_DAY = 1
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)


def _iso(value: object) -> object:
    return value.isoformat() if isinstance(value, datetime.date) else value


class TwoDays(Frozen):
    """A column of ages, the column of births, and the day at which they count: a column, or one date."""

    of: StrictStr
    born: StrictStr
    at: Annotated[StrictStr, BeforeValidator(_iso)]


class CompletedYears(ComputedRule):
    """The column is the age in completed years: born on 29 February, one is older from 1 March on."""

    word: ClassVar[str] = "age"
    spans: ClassVar[bool] = True

    age: TwoDays

    @property
    @override
    def of(self) -> str:
        return self.age.of

    @property
    @override
    def operands(self) -> tuple[str, ...]:
        return (self.age.born,) if self._fixed_day is not None else (self.age.born, self.age.at)

    @property
    def _fixed_day(self) -> float | None:
        """The day since 1970 that is one date for all rows, if it is."""
        if _DATE.fullmatch(self.age.at) is None:
            return None
        try:
            day = datetime.date.fromisoformat(self.age.at)
        except ValueError:
            return None
        return float(day.toordinal() - datetime.date(1970, 1, 1).toordinal())

    @override
    def check_types(self, columns: Mapping[str, Column]) -> None:
        if not (columns[self.of].plain and columns[self.of].integral):
            raise ValueError(f"age gives completed years, and {printable(self.of)} is no integer; make it one")
        for name in self.operands:
            if columns[name].clock is None:
                raise ValueError(f"age names {printable(name)}, which is no date; use columns of dates or moments")

    @override
    def counts_completed(self, columns: Mapping[str, Column]) -> bool:
        return True

    @override
    def arithmetic(self, columns: Mapping[str, Column]) -> ColumnFormula:
        ways = tuple(make_coarse(columns[name], max(_DAY, fineness(columns[name]) or 0)) for name in self.operands)
        return YearsBetween(self.operands, ways, self._fixed_day)


@dataclass(frozen=True)
class YearsBetween(ColumnFormula):
    """Completed years between two days.

    Attributes:
        columns: The column of births, and the other day's if that is one.
        ways: What turns the numbers of each into days.
        fixed: The other day, where it is one for all.
    """

    columns: tuple[str, ...]
    ways: tuple[Any, ...]
    fixed: float | None

    @property
    @override
    def names(self) -> tuple[str, ...]:
        return self.columns

    @override
    def value(self, cells: Mapping[str, Any]) -> Any:
        import numpy as np

        days = [way(cells[name]) for way, name in zip(self.ways, self.columns, strict=True)]
        born, at = days if self.fixed is None else (days[0], np.full(len(days[0]), self.fixed))
        missing = np.isnan(born) | np.isnan(at)
        (years, ordinals), (later, later_ordinals) = (_split(np.where(missing, 0, each)) for each in (born, at))
        return np.where(missing, np.nan, later - years - (later_ordinals < ordinals))

    @override
    def reach(self, ends: Mapping[str, ValueRange]) -> ValueRange:
        import numpy as np

        born, at = ends[self.columns[0]], None if self.fixed is not None else ends[self.columns[1]]
        youngest, oldest = (
            self.value(
                {self.columns[0]: np.array([day]), **({} if at is None else {self.columns[1]: np.array([other])})}
            )
            for day, other in ((born.high, 0.0 if at is None else at.low), (born.low, 0.0 if at is None else at.high))
        )
        return ValueRange(float(youngest[0]), float(oldest[0]))


def _split(days: Any) -> tuple[Any, Any]:
    """Return ``(N,)`` years, and what orders days within a year: a hundred times the month, and the day."""
    import numpy as np

    dates = days.astype(np.int64).astype("datetime64[D]")
    years, months = dates.astype("datetime64[Y]"), dates.astype("datetime64[M]")
    month = (months - years).astype(np.int64)
    return years.astype(np.float64), 100 * month + (dates - months).astype(np.int64)
