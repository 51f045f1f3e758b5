"""Columns of type ``date``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from typing_extensions import override

from doublure.schema.columns.calendar import EPOCH, CalendarColumn
from doublure.schema.columns.column_facts import Clock
from doublure.schema.columns.dtypes import Dtype
from doublure.schema.fact_states import UNDECLARED, Fact
from doublure.schema.scalars import Day


class DateColumn(CalendarColumn):
    """Calendar days."""

    like: ClassVar[str] = "date"
    table_type: ClassVar[str] = "date"
    clock: ClassVar[Clock] = "D"
    example: ClassVar[str | None] = "write bounds: [2020-01-31, 2024-12-31]"
    placeholders: ClassVar[Mapping[str, str]] = {"bounds": "bounds: [YYYY-MM-DD, YYYY-MM-DD]"}
    expected: ClassVar[str] = (
        "write days that there are, in ISO 8601 (2024-01-31) or as the schema's date_format: DD-MM-YYYY says"
    )
    dtypes: ClassVar[tuple[Dtype, ...]] = (*CalendarColumn.dtypes, "date32")

    type: Literal["date"] = "date"
    bounds: Fact[tuple[Day, Day]] = UNDECLARED

    @override
    def bought(self, first: float, last: float) -> tuple[Any, Any]:
        lower, upper = super().bought(first, last)
        return lower.date(), upper.date()

    @property
    @override
    def ends(self) -> tuple[float, float] | None:
        if not isinstance(self.bounds, tuple):
            return None
        first, last = self.bounds
        return float(first.toordinal() - EPOCH.toordinal()), float(last.toordinal() - EPOCH.toordinal())
