"""Columns of type ``datetime``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, model_validator
from typing_extensions import override

from doublure.schema.columns.calendar import EPOCH, CalendarColumn
from doublure.schema.columns.column_facts import Clock
from doublure.schema.columns.date_format import shown_seconds
from doublure.schema.columns.dtypes import WHOLE
from doublure.schema.fact_states import UNDECLARED, Fact, KeyFault
from doublure.schema.scalars import Moment, Positive, Zone

_DAY = 86_400


class DatetimeColumn(CalendarColumn):
    """Moments, rounded to ``step`` seconds; naive, or in the declared time zone.

    A form of dates that ends with minutes implies ``step: 60``.
    """

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

    @model_validator(mode="before")
    @classmethod
    def _as_its_form_shows(cls, data: Any) -> Any:
        return cls.facts_as_written(data, None) if isinstance(data, Mapping) else data

    @classmethod
    @override
    def facts_as_written(cls, facts: Mapping[str, Any], date_format: object) -> Mapping[str, Any]:
        shown = _shown(facts.get("date_format") or date_format)
        return facts if shown == 1 or "step" in facts else {**facts, "step": shown}

    @override
    def check_written(self, date_format: str | None) -> None:
        form = self.date_format or date_format
        shown = _shown(form)
        if self.step % shown:
            raise KeyFault(
                "step", f"is finer than date_format {form} shows; write step: {shown}, or add ss to the format"
            )

    @model_validator(mode="after")
    def _no_finer_than_shown(self) -> Self:
        self.check_written(None)
        if self.dtype in WHOLE and "h" not in (self.date_format or "") and self.step % _DAY:
            raise KeyFault("dtype", "of whole numbers has no place for the time; write date_format: YYYYMMDDhhmmss")
        return self

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


def _shown(date_format: object) -> int:
    """Return the seconds that a form tells apart; 1 where it is none, which is refused elsewhere."""
    try:
        return shown_seconds(date_format) if isinstance(date_format, str) else 1
    except ValueError:
        return 1
