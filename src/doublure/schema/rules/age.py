"""``{age: {of: age, born: dob, at: admitted}}``: a column is the years between two days, completed or with decimals."""

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
    """The column is the age in years, completed ones where it is whole: born on 29 February, one is older on 1 March.

    Decimals are the share of the days since the last birthday to the next. Of a year of birth it is the year of the
    day less that of birth.
    """

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
    def requirement(self, columns: Mapping[str, Column]) -> str:
        return f"{printable(self.of)} must be the years from {printable(self.age.born)} to {printable(self.age.at)}"

    @override
    def check_types(self, columns: Mapping[str, Column]) -> None:
        if not columns[self.of].plain:
            raise ValueError(f"age gives years, and {printable(self.of)} is no number; make it an integer or a real")
        for name in self.operands:
            if fineness(columns[name]) is None:
                raise ValueError(
                    f"age names {printable(name)}, which is no date; use columns of dates, moments or years"
                )

    @override
    def counts_completed(self, columns: Mapping[str, Column]) -> bool:
        return columns[self.of].integral

    @override
    def arithmetic(self, columns: Mapping[str, Column]) -> ColumnFormula:
        coarsest = max(_DAY, *(fineness(columns[name]) or _DAY for name in self.operands))
        ways = tuple(make_coarse(columns[name], coarsest) for name in self.operands)
        if coarsest > _DAY:
            fixed = None if self._fixed_day is None else float(self.age.at[:4])
            return CalendarYearsBetween(self.operands, ways, fixed)
        return YearsBetween(self.operands, ways, self._fixed_day, whole=self.counts_completed(columns))


@dataclass(frozen=True)
class _BetweenTimes(ColumnFormula):
    """A figure of two times.

    Attributes:
        columns: The column of the first, and that of the second if it is one.
        ways: Functions that turn the numbers of each into times.
        fixed: The second, where it is one for all.
    """

    columns: tuple[str, ...]
    ways: tuple[Any, ...]
    fixed: float | None

    @property
    @override
    def names(self) -> tuple[str, ...]:
        return self.columns


@dataclass(frozen=True)
class CalendarYearsBetween(_BetweenTimes):
    """The year of the second time less that of the first; times are years."""

    @override
    def value(self, cells: Mapping[str, Any]) -> Any:
        born, *at = (way(cells[name]) for way, name in zip(self.ways, self.columns, strict=True))
        return (self.fixed if self.fixed is not None else at[0]) - born

    @override
    def reach(self, ends: Mapping[str, ValueRange]) -> ValueRange:
        born, at = self.columns[0], self.columns[-1]  # one and the same where the second is one for all
        youngest, oldest = {at: ends[at].low, born: ends[born].high}, {at: ends[at].high, born: ends[born].low}
        return ValueRange(self.value(youngest), self.value(oldest))


@dataclass(frozen=True)
class YearsBetween(_BetweenTimes):
    """Years between two times: the completed ones, and the share of the running one that has passed.

    Times are counted from 1970 on.

    Attributes:
        whole: Whether completed years alone count.
        day: The length of a day in these times.
    """

    whole: bool
    day: float = 1.0

    @override
    def value(self, cells: Mapping[str, Any]) -> Any:
        import numpy as np

        times = [way(cells[name]) for way, name in zip(self.ways, self.columns, strict=True)]
        born, at = times if self.fixed is None else (times[0], np.full(len(times[0]), self.fixed))
        missing = np.isnan(born) | np.isnan(at)
        start, end = (np.where(missing, 0.0, each) for each in (born, at))
        years = _year(end // self.day) - _year(start // self.day)
        years = years - (end < self._anniversary(start, years))
        last = self._anniversary(start, years)
        passed = 0.0 if self.whole else (end - last) / (self._anniversary(start, years + 1) - last)
        return np.where(missing, np.nan, years + passed)

    def _anniversary(self, times: Any, years: Any) -> Any:
        """Return ``(N,)`` times so many years later, at the same clock; 29 February is 1 March where there is none."""
        import numpy as np

        days = times // self.day
        dates = days.astype(np.int64).astype("datetime64[D]")
        months = dates.astype("datetime64[M]")
        later = (months + 12 * years).astype("datetime64[D]") + (dates - months)
        return later.astype(np.int64) * self.day + (times - days * self.day)

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


def _year(days: Any) -> Any:
    """Return the ``(N,)`` years since 1970 in which days lie."""
    import numpy as np

    return days.astype(np.int64).astype("datetime64[D]").astype("datetime64[Y]").astype(np.int64)
