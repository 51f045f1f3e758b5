"""The base of columns whose cells are times: numbers of a public clock."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field, model_validator
from typing_extensions import override

from doublure.schema.columns.column_facts import Clock
from doublure.schema.columns.date_format import DateFormat, check_whole, date_text, is_iso, respelt, whole_ends
from doublure.schema.columns.dtypes import MOMENTS, WHOLE, Dtype
from doublure.schema.columns.integer_domain import IntegerDomain, Scale, TimeDomain
from doublure.schema.columns.number import PARTS, BoundedColumn
from doublure.schema.scalars import Misfit

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from doublure.noisy_counts import CandidateGrid
    from doublure.schema.columns.spelling import CellSpelling, TextMarks
    from doublure.schema.columns.sql_words import SqlCell, SqlReading, SqlWords
    from doublure.support.arrays import Floats

EPOCH = datetime.datetime(1970, 1, 1)
SECONDS = {"D": 86_400.0, "s": 1.0}
"""The length of a clock's unit."""
_OFFSET = re.compile(r"(?:Z|[+-][0-9]{2}:?[0-9]{2}(?::[0-9]{2})?)$")
_RELEASED = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[ T][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,9})?)?)?")
_COARSE_DAYS = 31.0
YEARS = range(1850, 2151)
"""The years whose first days may be bought bounds."""


class CalendarColumn(BoundedColumn):
    """A column of times: whole units of :attr:`clock` since 1970, on the column's own clock."""

    clock: ClassVar[Clock]
    own_dtype: ClassVar[Dtype | None] = "datetime64[s]"
    dtypes: ClassVar[tuple[Dtype, ...]] = (*MOMENTS, "str", *WHOLE)

    date_format: DateFormat | None = Field(default=None, description="how text writes it: DD.MM.YYYY, DD.MM.YYYY hh:mm")

    @override
    def read(self, raw: pd.Series[Any], name: str, misfit: Misfit) -> pd.Series[Any]:
        import pandas as pd

        from doublure.schema.columns.calendar_cells import moments

        return pd.Series(moments(raw, self, misfit))

    @override
    def read_at_once(self, raw: pa.Array, name: str, misfit: Misfit) -> pd.Series[Any] | None:
        import pandas as pd

        from doublure.schema.columns.calendar_cells import NOT_A_TIME, fitting_moments, moments_at_once

        found = moments_at_once(raw, [*self.missing_tokens, *NOT_A_TIME])
        return None if found is None else pd.Series(fitting_moments(found, self, misfit))

    @override
    def in_sql(self, cell: SqlCell, words: SqlWords) -> SqlReading:
        from doublure.schema.columns.calendar_sql import moment_reading

        return moment_reading(self, cell, words)

    @override
    def spelling(self, marks: TextMarks) -> CellSpelling | None:
        from doublure.schema.columns.spelling import respelt_dates

        form = self.date_format or marks.date_format
        return None if form is None or is_iso(form) else respelt_dates(form, self.missing_tokens)

    @override
    def csv_cells(self, cells: pd.Series[Any], marks: TextMarks) -> pd.Series[Any]:
        from doublure.schema.columns.parsed_cells import date_cells, iso_cells

        form = self.date_format or marks.date_format
        if form is None and self.zone is not None:
            return cells  # with its offset from UTC
        own = form or "YYYY-MM-DD"
        own += "" if "h" in own else self.clock_format
        if is_iso(own):
            return iso_cells(self.numbers_of(cells) * SECONDS[self.clock], own)
        return date_cells(self.numbers_of(cells), own, lambda number: self._written(number, own))

    @property
    def clock_format(self) -> str:
        """The form of the time behind a day where none is declared: no more than its step tells."""
        if self.unit * SECONDS[self.clock] % SECONDS["D"] == 0:
            return ""
        return " hh:mm" if self.unit % 60 == 0 else " hh:mm:ss"

    def _written(self, number: float, form: str) -> str:
        found = EPOCH + datetime.timedelta(seconds=number * SECONDS[self.clock])
        return date_text(form, (found.year, found.month, found.day, found.hour, found.minute, found.second))

    @property
    @override
    def stored_ends(self) -> tuple[float, float] | None:
        return whole_ends(self.date_format)

    @override
    def numbers_of(self, cells: pd.Series[Any]) -> Floats:
        import numpy as np
        import pandas as pd

        if cells.dtype == np.float64:  # of several kinds of missing
            return cells.to_numpy()
        if isinstance(cells.dtype, pd.DatetimeTZDtype):
            cells = cells.dt.tz_convert(self.zone).dt.tz_localize(None)
        if cells.dtype == object:  # NumPy reads no NaT among Python's objects
            cells = pd.to_datetime(cells)
        moments = cells.to_numpy().astype(f"datetime64[{self.clock}]")
        return np.where(np.isnat(moments), np.nan, moments.astype(np.int64).astype(np.float64))

    @override
    def loaded_cells_of(self, numbers: Floats) -> pd.Series[Any]:
        import numpy as np
        import pandas as pd

        missing = np.isnan(numbers)
        moments = np.where(missing, 0, numbers).astype(np.int64).astype(f"datetime64[{self.clock}]")
        moments = moments.astype("datetime64[s]")
        moments[missing] = np.datetime64("NaT", "s")
        return pd.Series(moments)

    @override
    def cells_of(self, numbers: Floats) -> pd.Series[Any]:
        """Return ``(N,)`` times as datetime64[s] cells, in the time zone if there is one.

        An hour that stands twice when clocks go back is the second one; one that is left out when they go forward is
        the moment after it. Both keep the order of any two moments.
        """
        import numpy as np

        moments = self.loaded_cells_of(numbers)
        if self.zone is None:
            return moments
        summer = np.zeros(len(moments), dtype=bool)
        placed: pd.Series[Any] = moments.dt.tz_localize(self.zone, ambiguous=summer, nonexistent="shift_forward")
        return placed

    @override
    def notes(self) -> Iterator[str]:
        yield from super().notes()
        if self.ends is None:
            return
        days = (self.ends[1] - self.ends[0]) / PARTS * SECONDS[self.clock] / SECONDS["D"]
        if days > _COARSE_DAYS:
            yield f"has bounds so wide that days within about {days:.0f} of each other may look alike; narrow them"

    @override
    def partition(self, magnitude: float | None) -> CandidateGrid:
        import numpy as np

        from doublure.noisy_counts import CandidateGrid

        years = np.array([f"{year}-01-01" for year in YEARS], dtype=f"datetime64[{self.clock}]")
        return CandidateGrid.from_points(years.astype(np.float64))

    @property
    @override
    def declared_scale(self) -> Scale | None:
        return "linear"  # a calendar has no small numbers

    @override
    def integer_domain(self) -> IntegerDomain:
        (lower, upper), unit = self.known_grid, self.integer_unit
        first, last = round(lower / unit), round(upper / unit)
        seconds = unit * SECONDS[self.clock]
        return TimeDomain(first=first, last=last, nullable=self.may_be_missing, unit=unit, seconds=seconds)

    @property
    @override
    def widest(self) -> tuple[float, float]:
        ends = (
            (end - EPOCH).total_seconds()
            for end in (datetime.datetime.min, datetime.datetime(9999, 12, 31, 23, 59, 59))
        )
        lower, upper = (end // SECONDS[self.clock] for end in ends)
        return lower, upper

    @override
    def bought(self, first: float, last: float) -> tuple[Any, Any]:
        tick = datetime.timedelta(seconds=SECONDS[self.clock])
        return EPOCH + first * tick, EPOCH + last * tick

    @override
    def number_of(self, written: object) -> float:
        """Return a written day or moment in ISO 8601 or the column's own form, in its own time zone.

        Raises:
            ValueError: It is none, or has an offset; ``message; remedy``.
        """
        return (moment(respelt(written, self.date_format)) - EPOCH).total_seconds() / SECONDS[self.clock]

    @override
    def text_of(self, number: float) -> str:
        return self.axis_text(number)

    @override
    @classmethod
    def axis_text(cls, number: float) -> str:
        import numpy as np

        return str(np.datetime64(round(number), cls.clock))

    @override
    @classmethod
    def axis_texts(cls, numbers: Sequence[float]) -> list[str] | None:
        """Return days; of moments the clock, too, where two are of one day."""
        days, _, clocks = zip(*(cls.axis_text(number).partition("T") for number in numbers), strict=True)
        if len(set(days)) == len(days) or not all(clocks):
            return list(days)
        return [f"{clock[:5]}\n{day}" for clock, day in zip(clocks, days, strict=True)]

    @override
    @classmethod
    def released_number(cls, cell: Any) -> float:
        if isinstance(cell, str):
            if _RELEASED.fullmatch(cell := _OFFSET.sub("", cell)) is None:
                raise ValueError
            found = datetime.datetime.fromisoformat(cell)
        elif isinstance(cell, datetime.datetime):
            found = cell.replace(tzinfo=None)
        else:
            found = datetime.datetime(cell.year, cell.month, cell.day)
        return (found - EPOCH).total_seconds() / SECONDS[cls.clock]

    @model_validator(mode="after")
    def _stored_as_numbers(self) -> CalendarColumn:
        check_whole(self.dtype, self.date_format, "YYYYMMDD")
        return self


def moment(written: object) -> datetime.datetime:
    """Return a written day or moment.

    Raises:
        ValueError: It is none, or has an offset; ``message; remedy``.
    """
    try:
        if isinstance(written, datetime.datetime):
            found = written
        elif isinstance(written, datetime.date):
            found = datetime.datetime.combine(written, datetime.time())
        else:
            found = datetime.datetime.fromisoformat(str(written))
    except ValueError:
        raise ValueError("is no date; write 2024-01-31 or 2024-01-31T12:00:00") from None
    if found.tzinfo is not None:
        raise ValueError("has an offset; leave it out: the column's own time zone is meant")
    return found
