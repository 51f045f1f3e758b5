"""Columns of type ``time``."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field
from typing_extensions import override

from doublure.schema.columns.integer_domain import IntegerDomain, SecondsDomain
from doublure.schema.columns.parsed import ParsedColumn, WrittenCell
from doublure.schema.fact_states import Fact
from doublure.schema.scalars import Positive

if TYPE_CHECKING:
    import pandas as pd

    from doublure.schema.columns.sql_words import SqlCell, SqlReading, SqlWords
    from doublure.support.arrays import Floats

_CLOCK = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2})(?:[.,]\d+)?)?", re.ASCII)
_DAY = 86_400


class TimeColumn(ParsedColumn):
    """Times of day: whole seconds since midnight, rounded to ``step``."""

    like: ClassVar[str | None] = "time"
    table_type: ClassVar[str] = "time"
    example: ClassVar[str | None] = "write bounds: ['06:00', '22:00']"
    expected: ClassVar[str] = "write times of day that there are, such as 07:30 or 07:30:15"
    placeholders: ClassVar[Mapping[str, str]] = {"bounds": "bounds: ['HH:MM', 'HH:MM']"}
    backwards: ClassVar[str] = "write two ranges, one up to 24:00 and one from 00:00, and ask for each by itself"
    points: ClassVar[tuple[float, ...]] = (*range(0, _DAY, 900), _DAY - 1)

    type: Literal["time"] = "time"
    bounds: Fact[tuple[WrittenCell, WrittenCell]] = ("00:00", "23:59:59")
    step: Positive = Field(default=1, description="seconds between neighbouring values")

    @property
    @override
    def widest(self) -> tuple[float, float]:
        return 0.0, _DAY - 1.0

    @property
    @override
    def cuts(self) -> tuple[float, ...]:
        return self.points[1:-1]  # no time of day is small: public cells are quarters of an hour

    @override
    def integer_domain(self) -> IntegerDomain:
        return SecondsDomain(**vars(super().integer_domain()))

    @override
    def parse(self, cell: Any) -> float:
        if isinstance(cell, datetime.time):
            if cell.tzinfo is not None:
                raise ValueError
            return float(cell.hour * 3600 + cell.minute * 60 + cell.second)
        found = _CLOCK.fullmatch(cell)
        if found is None:
            raise ValueError
        hour, minute, second = (int(part or 0) for part in found.groups())
        if (hour, minute, second) == (24, 0, 0):  # the midnight with which the day ends, of a day that has a date
            return 0.0
        return float(hour * 3600 + minute * 60 + second) if hour < 24 and max(minute, second) < 60 else math.nan

    @override
    def in_sql(self, cell: SqlCell, words: SqlWords) -> SqlReading:
        from doublure.schema.columns.span_sql import time_reading

        return time_reading(self, cell, words) if type(self).parse is TimeColumn.parse else super().in_sql(cell, words)

    @override
    @classmethod
    def format(cls, number: float) -> str:
        minutes, second = divmod(round(number), 60)
        return f"{minutes // 60:02}:{minutes % 60:02}:{second:02}"

    @override
    def written_text(self, number: float) -> str:
        text = super().written_text(number)
        return text.removesuffix(":00") if self.step % 60 == 0 else text

    @override
    def end_of_range(self, number: float, written: object) -> float:
        return _DAY - 1.0 if isinstance(written, str) and written.strip().startswith("24:") else number

    @override
    @classmethod
    def claims(cls, text: str) -> bool:
        found = _CLOCK.fullmatch(text)
        return found is not None and int(found[1]) < 24

    @override
    def cells_of(self, numbers: Floats) -> pd.Series[Any]:
        """Return ``(N,)`` numbers as cells of Arrow's time32[s]: each is a ``datetime.time``."""
        import numpy as np
        import pandas as pd
        import pyarrow as pa

        missing = np.isnan(numbers)
        seconds = np.where(missing, 0, np.rint(numbers)).astype(np.int32)
        return pd.Series(pd.arrays.ArrowExtensionArray(pa.array(seconds, pa.time32("s"), mask=missing)))
