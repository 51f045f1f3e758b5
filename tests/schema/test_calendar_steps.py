"""Times of one calendar as the first or the last that another allows."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pandas as pd
import pytest

from doublure.schema import Schema
from doublure.schema.columns import DateColumn, DatetimeColumn, IntegerColumn
from doublure.schema.columns.column import Column
from doublure.schema.columns.year import YearColumn
from doublure.schema.rules.calendar_order import first_at_least, last_at_most, make_coarse

DAY = DateColumn(bounds=(dt.date(1990, 1, 1), dt.date(2030, 12, 31)), missing=True)
MOMENT = DatetimeColumn(bounds=(dt.datetime(1990, 1, 1), dt.datetime(2030, 12, 31)), missing=True)
YEAR = IntegerColumn(bounds=(1990, 2030), missing=True)
OF_TYPE_YEAR = YearColumn(bounds=(900, 2030), missing=True)
TIMES = {"day": DAY, "moment": MOMENT, "year": YEAR, "type year": OF_TYPE_YEAR}


@pytest.mark.parametrize("low", TIMES)
@pytest.mark.parametrize("high", TIMES)
def test_the_first_and_the_last_fit_and_their_neighbours_do_not(low: str, high: str) -> None:
    one, other = TIMES[low], TIMES[high]
    if one is other or {low, high} == {"year", "type year"}:
        return
    draw = np.random.default_rng(0)

    def some(column: Column) -> np.ndarray:
        return np.append(draw.integers(*map(int, column.limits), 200).astype(float), np.nan)

    coarser = 2 if "year" in f"{low} {high}" else 1
    below, above = make_coarse(one, coarser), make_coarse(other, coarser)
    lows, highs = some(one), some(other)
    first, last = first_at_least(one, other, lows), last_at_most(one, other, highs)
    assert np.isnan([first[-1], last[-1]]).all()
    lows, highs, first, last = lows[:-1], highs[:-1], first[:-1], last[:-1]
    assert (below(lows) <= above(first)).all()
    assert not (below(lows) <= above(first - 1)).any()
    assert (below(last) <= above(highs)).all()
    assert not (below(last + 1) <= above(highs)).any()


@pytest.mark.parametrize("rule", ["[built, sold, moved]", "[built, moved, sold]"])
def test_a_column_of_type_year_is_ordered_with_days_and_moments(rule: str) -> None:
    schema = Schema.parse(f"""
    {{doublure: 1, kind: table, units: 9, defaults: {{missing: false}}, constraints: [{{at_most: {rule}}}], columns: {{
     built: {{type: year, bounds: [1850, 2024]}}, sold: {{type: date, bounds: [1990-01-01, 2024-12-31]}},
     moved: {{type: datetime, bounds: ["1990-01-01T00:00:00", "2024-12-31T23:59:59"]}}}}}}
    """)
    rules = [each for rule in schema.constraints for each in rule.in_numbers(schema.columns, schema.constraints)]
    at = dict(zip(("sold", "moved"), (DAY.numbers_of(pd.Series([pd.Timestamp("2001-03-04")]))[0],) * 2, strict=True))
    at["moved"] *= 86_400.0
    fits = {year: not any(each.broken({"built": year, **at}) for each in rules) for year in (2000.0, 2001.0, 2002.0)}
    assert fits == {2000.0: True, 2001.0: True, 2002.0: False}


@pytest.mark.parametrize("none", [None, pd.NaT, float("nan")])
@pytest.mark.parametrize("first", [dt.date(2020, 2, 3), pd.Timestamp("2020-02-03")])
def test_days_among_python_objects_are_read_beside_missing_ones(first: object, none: object) -> None:
    found = DAY.numbers_of(pd.Series([first, none], dtype=object))
    assert found[0] == 18295
    assert np.isnan(found[1])
