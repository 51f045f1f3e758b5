"""Columns of type ``duration``."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field
from typing_extensions import override

from doublure.schema.columns.dtypes import SPANS, Dtype
from doublure.schema.columns.integer_domain import IntegerDomain, SecondsDomain
from doublure.schema.columns.parsed import ParsedColumn
from doublure.schema.scalars import Positive, is_plain_number

if TYPE_CHECKING:
    import pandas as pd

    from doublure.schema.columns.sql_words import SqlCell, SqlReading, SqlWords
    from doublure.support.arrays import Floats

_SECONDS = {"s": 1.0, "min": 60.0, "h": 3600.0, "d": 86_400.0}
_PART = r"(\d+(?:[.,]\d+)?)"
_CLOCK_FORM = r"([+-]?)(\d+):([0-5]\d):([0-5]\d(?:[.,]\d+)?)"
_CLOCK = re.compile(_CLOCK_FORM, re.ASCII)
_DAYS = re.compile(rf"([+-]?\d+) days?(?:,? +{_CLOCK_FORM})?", re.ASCII)
_ISO = re.compile(rf"([+-]?)P(?:{_PART}W)?(?:{_PART}D)?(?:T(?:{_PART}H)?(?:{_PART}M)?(?:{_PART}S)?)?", re.ASCII)
_UNITS = re.compile(rf"([+-]?){_PART} ?(s|min|h|d)", re.ASCII)
_CANDIDATES = (
    *(1, 2, 5, 10, 15, 30),
    *(60 * minutes for minutes in (1, 2, 5, 10, 15, 30)),
    *(3600 * hours for hours in (1, 2, 3, 4, 6, 8, 12)),
    *(86_400 * days for days in (1, 2, 3, 5, 7, 14, 30, 60, 90, 180, 365, 730, 1825, 3650, 7300, 18_250, 36_500)),
)


class DurationColumn(ParsedColumn):
    """Spans of time: seconds, rounded to ``step``."""

    like: ClassVar[str | None] = "duration"
    table_type: ClassVar[str] = "any"  # texts in CSV, spans of time in Parquet
    adds_up: ClassVar[bool] = True
    example: ClassVar[str | None] = "write bounds: ['0:00:00', '2:30:00']"
    expected: ClassVar[str] = (
        "write 1:30:00, PT1H30M or 90 min, as 1:30 is not read; declare numbers_in where cells are bare numbers"
    )
    placeholders: ClassVar[Mapping[str, str]] = {"bounds": "bounds: ['H:MM:SS', 'H:MM:SS']"}
    points: ClassVar[tuple[float, ...]] = (*(-each for each in reversed(_CANDIDATES)), 0, *_CANDIDATES)

    own_dtype: ClassVar[Dtype | None] = "timedelta64[s]"
    dtypes: ClassVar[tuple[Dtype, ...]] = (*SPANS, "str")

    type: Literal["duration"] = "duration"
    step: Positive = Field(default=1, description="seconds between neighbouring values")
    numbers_in: Literal["s", "min", "h", "d"] | None = Field(default=None, description="the unit of bare numbers")

    @override
    def integer_domain(self) -> IntegerDomain:
        return SecondsDomain(**vars(super().integer_domain()))

    @override
    def parse(self, cell: Any) -> float:
        if isinstance(cell, datetime.timedelta):
            return cell.total_seconds()
        if isinstance(cell, Real) or is_plain_number(cell):
            return float(cell) * _SECONDS[self.numbers_in or ""]
        return _parse_seconds(cell)

    @override
    def in_sql(self, cell: SqlCell, words: SqlWords) -> SqlReading:
        from doublure.schema.columns.span_sql import span_reading

        if type(self).parse is not DurationColumn.parse:
            return super().in_sql(cell, words)
        return span_reading(self, cell, words, _SECONDS, self.numbers_in)

    @override
    @classmethod
    def format(cls, number: float) -> str:
        minutes, second = divmod(abs(number), 60)
        fraction = f"{second % 1:.6f}".rstrip("0").removeprefix("0").rstrip(".") if second % 1 else ""
        hours, minute = divmod(int(minutes), 60)
        return f"{'-' if number < 0 else ''}{hours}:{minute:02}:{int(second):02}{fraction}"

    @override
    @classmethod
    def axis_text(cls, number: float) -> str:
        return cls.format(round(number))

    @override
    @classmethod
    def claims(cls, text: str) -> bool:
        try:
            _parse_seconds(text)
        except ValueError:
            return False
        return True

    @override
    def cells_of(self, numbers: Floats) -> pd.Series[Any]:
        """Return ``(N,)`` numbers as cells of timedelta64[s]."""
        import numpy as np
        import pandas as pd

        missing = np.isnan(numbers)
        spans = np.where(missing, 0, np.rint(numbers)).astype("timedelta64[s]")
        spans[missing] = np.timedelta64("NaT", "s")
        return pd.Series(spans)


def _parse_seconds(text: str) -> float:
    """Return the seconds of a text with units or colons.

    Raises:
        ValueError: It has no such form.
    """
    if (found := _CLOCK.fullmatch(text)) is not None:
        return _clock(*found.groups())
    if (found := _DAYS.fullmatch(text)) is not None:  # as pandas writes it
        days, *clock = found.groups()
        return 86_400.0 * int(days) + (_clock(*clock) if clock[1] else 0.0)
    if (found := _UNITS.fullmatch(text)) is not None:
        sign, number, unit = found.groups()
        return _signed(sign, _decimal(number) * _SECONDS[unit])
    found = _ISO.fullmatch(text)
    if found is None or not any(found.groups()[1:]):
        raise ValueError
    sign, *parts = found.groups()
    sizes = (604_800.0, 86_400.0, 3600.0, 60.0, 1.0)
    return _signed(sign, sum(_decimal(part) * size for part, size in zip(parts, sizes, strict=True) if part))


def _clock(sign: str, hours: str, minutes: str, seconds: str) -> float:
    return _signed(sign, int(hours) * 3600.0 + int(minutes) * 60.0 + _decimal(seconds))


def _decimal(text: str) -> float:
    return float(text.replace(",", "."))


def _signed(sign: str, span: float) -> float:
    return -span if sign == "-" else span
