"""Columns of type ``year``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar, Literal

from typing_extensions import override

from doublure.schema.columns.calendar import YEARS
from doublure.schema.columns.integer import IntegerColumn
from doublure.schema.columns.integer_domain import Scale

if TYPE_CHECKING:
    from collections.abc import Mapping

    from doublure.noisy_counts import CandidateGrid

_YEAR = re.compile(r"(?:1[5-9]|2[01])\d\d", re.ASCII)


class YearColumn(IntegerColumn):
    """Years of the calendar: whole numbers that do not add up, bought among years and not among powers of ten."""

    like: ClassVar[str] = "year"
    table_type: ClassVar[str] = "year"
    adds_up: ClassVar[bool] = False
    plain: ClassVar[bool] = False
    example: ClassVar[str | None] = "write bounds: [1990, 2024]"
    expected: ClassVar[str] = "write whole years, such as 2024"
    placeholders: ClassVar[Mapping[str, str]] = {"bounds": "bounds: [YYYY, YYYY]"}

    type: Literal["year"] = "year"  # type: ignore[assignment]  # reckoned with as the integer that it is

    @property
    @override
    def declared_scale(self) -> Scale | None:
        return self.scale or "linear"  # no year is small

    @property
    @override
    def counts_years(self) -> bool:
        return True

    @override
    def partition(self, magnitude: float | None) -> CandidateGrid:
        from doublure.noisy_counts import CandidateGrid

        return CandidateGrid.from_points([float(year) for year in YEARS])

    @override
    @classmethod
    def axis_text(cls, number: float) -> str:
        return f"{number:.0f}"


def is_year(text: str) -> bool:
    """Return whether a text is a year that people record, from 1500 to 2199."""
    return _YEAR.fullmatch(text) is not None
