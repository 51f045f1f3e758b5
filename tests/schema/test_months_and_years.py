"""Months and years: how cells are read, what lies above them, what is bought, asked for and ordered."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pandas as pd
import pytest

from doublure.data.opening import open_data
from doublure.data.tables.cells import canonical
from doublure.errors import DataError
from doublure.schema import Schema

SCHEMA = Schema.parse("""
doublure: 1
kind: table
units: 9
columns:
  first: {type: month, bounds: [2000-01, 2024-12], missing: true}
  last: {type: month, bounds: [2000-01, 2024-12], missing: false}
  old: {type: month, bounds: [1500-01, 2024-12], missing: false}
  quarter: {type: month, bounds: [2000-01, 2024-12], step: 3, missing: false}
  code: {type: month, bounds: [2000-01, 2024-12], date_format: YYYYMM, missing: [999912]}
  built: {type: year, bounds: [1850, 2024], missing: false}
constraints:
  - {at_most: [first, last]}
""")
MARCH_2023 = 12.0 * 53 + 2


@pytest.mark.parametrize("cell", ["2023-03", "2023-03-01", "2023-03-01 00:00:00", " 2023-03 ", dt.date(2023, 3, 1)])
def test_a_month_is_read_from_text_and_from_its_first_day(cell: object) -> None:
    found = canonical(pd.Series([cell], dtype=object), SCHEMA.columns["first"], "first")
    assert list(found) == [MARCH_2023]


@pytest.mark.parametrize("cell", ["2023-13", "2023-00", "2023", "03/2023", "2023-03-02", dt.date(2023, 3, 2), 202303])
def test_what_is_no_month_is_refused_and_never_shown(cell: object) -> None:
    with pytest.raises(DataError, match=r"^first: has cells that are no month; write") as caught:
        canonical(pd.Series([cell], dtype=object), SCHEMA.columns["first"], "first")
    assert str(cell) not in str(caught.value)


def test_months_of_a_frame_are_read_in_their_own_form() -> None:
    rows = {"first": ["2020-01", None], "last": pd.to_datetime(["2020-05-01", "2021-01-01"])}
    rows |= {"old": ["1500-01"] * 2, "quarter": ["2020-02"] * 2, "code": [202303, 999912], "built": [1900, 2000]}
    found = open_data(pd.DataFrame(rows), "table", SCHEMA.written).load(SCHEMA).content
    assert found["code"].tolist()[0] == MARCH_2023
    assert np.isnan(found["code"][1])
    assert found["last"].tolist() == [604.0, 612.0]


def test_years_lie_above_months() -> None:
    few, many = SCHEMA.columns["first"].integer_domain(), SCHEMA.columns["old"].integer_domain()
    starts = many.initial_partition()
    assert (starts % 12 == 0).all()
    assert len(starts) == 525
    assert many.split_cell(0, 11).tolist() == list(range(12))
    assert (few.initial_partition() % 12 == 0).all()


def test_a_month_is_asked_for_and_written_as_one() -> None:
    month = SCHEMA.columns["first"]
    assert month.asked("2023-03..2023-12").span == (MARCH_2023, MARCH_2023 + 9)
    assert month.text_of(MARCH_2023) == "2023-03"
    assert month.shown_bounds == ("2000-01", "2024-12")
    assert SCHEMA.columns["quarter"].snap(np.array([MARCH_2023])) == [12.0 * 53 + 3]


def test_bounds_of_months_and_years_are_bought_on_the_calendar() -> None:
    month, year = SCHEMA.columns["first"], SCHEMA.columns["built"]
    assert month.bought(*month.partition(None).points[[150, 174]]) == ("2000-01", "2024-01")
    assert {1999, 2000, 2001} <= {*year.partition(None).points}
    assert year.bought(1999.0, 2024.0) == (1999, 2024)


def test_a_year_has_no_small_values_and_does_not_add_up() -> None:
    year = SCHEMA.columns["built"]
    assert year.shown_type == "year"
    assert not year.adds_up
    assert not year.alike(Schema.parse("{doublure: 1, kind: table, columns: {a: {type: integer}}}").columns["a"])
    wide = Schema.parse("{doublure: 1, kind: table, columns: {a: {type: year, bounds: [0, 2024], missing: false}}}")
    widths = np.diff(wide.columns["a"].integer_domain().initial_partition())
    assert widths.max() <= 2 * widths.min()  # of an integer: one ratio, so that 1900 and 2024 would be one cell
