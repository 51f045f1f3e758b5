"""Columns of type ``month``."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field, model_validator
from typing_extensions import override

from doublure.schema.columns.calendar import YEARS
from doublure.schema.columns.date_format import Moment, MonthFormat, check_whole, date_text, respelt, whole_ends
from doublure.schema.columns.dtypes import MOMENTS, WHOLE, Dtype
from doublure.schema.columns.integer_domain import IntegerDomain, NumberDomain, Scale
from doublure.schema.columns.parsed import ParsedColumn, WrittenCell
from doublure.schema.fact_states import UNDECLARED, Fact
from doublure.schema.scalars import Positive

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    from doublure.schema.columns.spelling import CellSpelling, TextMarks
    from doublure.schema.columns.sql_words import SqlCell, SqlReading, SqlWords

    Ints = np.ndarray[Any, np.dtype[np.int64]]

_MONTH = re.compile(r"(\d{4})-(\d{2})(?:-01(?:[T ]00:00(?::00)?)?)?", re.ASCII)
_EPOCH = 1970


@dataclass(frozen=True, kw_only=True)
class MonthDomain(NumberDomain):
    """The integers of a month: years above months."""

    @override
    def starts(self) -> Ints:
        import numpy as np

        starts = super().starts()
        if len(starts) == self.last - self.first + 1:
            return starts
        return np.unique([self.first, *range(-(-self.first // 12) * 12, self.last + 1, 12)]).astype(np.int64)


class MonthColumn(ParsedColumn):
    """Calendar months: whole months since January 1970."""

    like: ClassVar[str | None] = "month"
    example: ClassVar[str | None] = "write bounds: [2020-01, 2024-12]"
    expected: ClassVar[str] = "write months that there are, such as 2024-01, or as date_format: MM/YYYY says"
    placeholders: ClassVar[Mapping[str, str]] = {"bounds": "bounds: [YYYY-MM, YYYY-MM]"}
    points: ClassVar[tuple[float, ...]] = tuple(float(12 * (year - _EPOCH)) for year in YEARS)
    own_dtype: ClassVar[Dtype | None] = "str"
    dtypes: ClassVar[tuple[Dtype, ...]] = ("str", *MOMENTS, *WHOLE)

    type: Literal["month"] = "month"
    bounds: Fact[tuple[WrittenCell, WrittenCell]] = UNDECLARED
    step: Positive = Field(default=1, description="months between neighbouring values: 3 for quarters")
    date_format: MonthFormat | None = Field(default=None, description="how text writes it: MM/YYYY")

    @model_validator(mode="after")
    def _stored_as_numbers(self) -> MonthColumn:
        check_whole(self.dtype, self.date_format, "YYYYMM")
        return self

    @property
    @override
    def declared_scale(self) -> Scale | None:
        return "linear"  # a calendar has no small numbers

    @property
    @override
    def widest(self) -> tuple[float, float]:
        return 12.0 * (1 - _EPOCH), 12.0 * (10_000 - _EPOCH) - 1

    @property
    @override
    def stored_ends(self) -> tuple[float, float] | None:
        return whole_ends(self.date_format)

    @override
    def integer_domain(self) -> IntegerDomain:
        own = super().integer_domain()
        return (MonthDomain if self.step == 1 else NumberDomain)(**vars(own))

    @override
    def parse(self, cell: Any) -> float:
        if isinstance(cell, datetime.date):  # a moment is one, too
            year, month = cell.year, cell.month
            if cell.day != 1 or (isinstance(cell, datetime.datetime) and cell.time() != datetime.time()):
                raise ValueError
        elif (found := _MONTH.fullmatch(cell)) is not None:
            year, month = int(found[1]), int(found[2])
        else:
            raise ValueError
        if not (1 <= month <= 12 and year >= 1):
            raise ValueError
        return float(12 * (year - _EPOCH) + month - 1)

    @override
    def in_sql(self, cell: SqlCell, words: SqlWords) -> SqlReading:
        from doublure.schema.columns.calendar_sql import month_reading

        return (
            month_reading(self, cell, words) if type(self).parse is MonthColumn.parse else super().in_sql(cell, words)
        )

    @override
    def number_of(self, written: object) -> float:
        return super().number_of(respelt(written, self.date_format))

    @override
    @classmethod
    def format(cls, number: float) -> str:
        return date_text("YYYY-MM", _moment(number))

    @override
    def spelling(self, marks: TextMarks) -> CellSpelling | None:
        from doublure.schema.columns.spelling import respelt_dates

        return None if self.date_format is None else respelt_dates(self.date_format, self.missing_tokens)

    @override
    def csv_cells(self, cells: pd.Series[Any], marks: TextMarks) -> pd.Series[Any]:
        from doublure.schema.columns.parsed_cells import date_cells

        form = self.date_format or "YYYY-MM"
        return date_cells(self.numbers_of(cells), form, lambda number: date_text(form, _moment(number)))

    @override
    def stored_cells(self, cells: pd.Series[Any], marks: TextMarks) -> pd.Series[Any]:
        from doublure.schema.columns.stored_cells import as_texts

        if self.dtype in MOMENTS:
            first: pd.Series[Any] = cells.where(cells.isna(), cells + "-01").astype(str(self.dtype))  # type: ignore[call-overload]  # one of MOMENTS
            return first
        if self.dtype is None and self.date_format is not None:
            return as_texts(self.csv_cells(cells, marks))
        return super().stored_cells(cells, marks)

    @override
    @classmethod
    def claims(cls, text: str) -> bool:
        found = re.fullmatch(r"\d{4}-(\d{2})", text, re.ASCII)
        return found is not None and 1 <= int(found[1]) <= 12


def _moment(number: float) -> Moment:
    years, month = divmod(round(number), 12)
    return _EPOCH + years, month + 1, 1, 0, 0, 0
