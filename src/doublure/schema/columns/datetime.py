"""Columns of type ``datetime``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

from pydantic import Field
from typing_extensions import override

from doublure.schema.columns.calendar import EPOCH, CalendarColumn
from doublure.schema.columns.column import Clock
from doublure.schema.fact_states import UNDECLARED, Fact
from doublure.schema.scalars import Moment, Positive, Zone

_DAY = 86_400


class DatetimeColumn(CalendarColumn):
    """Moments, rounded to ``step`` seconds; naive, or in the declared time zone."""

    like: ClassVar[str] = "datetime"
    table_type: ClassVar[str] = "datetime"
    clock: ClassVar[Clock] = "s"
    example: ClassVar[str | None] = "write bounds: [2020-01-31T00:00:00, 2024-12-31T23:59:59]"
    placeholders: ClassVar[Mapping[str, str]] = {"bounds": "bounds: [YYYY-MM-DDTHH:MM:SS, YYYY-MM-DDTHH:MM:SS]"}
    expected: ClassVar[str] = (
        "write moments that there are, in ISO 8601 (2024-01-31T12:00) or as the schema's date_format says"
    )

    type: Literal["datetime"] = "datetime"
    bounds: Fact[tuple[Moment, Moment]] = UNDECLARED
    step: Positive = Field(default=1, description="seconds between neighbouring values")
    timezone: Zone | None = None

    @property
    @override
    def ends(self) -> tuple[float, float] | None:
        if not isinstance(self.bounds, tuple):
            return None
        return (self.bounds[0] - EPOCH).total_seconds(), (self.bounds[1] - EPOCH).total_seconds()

    @property
    @override
    def tells_hour(self) -> bool:
        return self.step < _DAY

    @property
    @override
    def zone(self) -> str | None:
        return self.timezone
