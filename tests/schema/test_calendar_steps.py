"""Times of one calendar as the first or the last that another allows."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pandas as pd
import pytest

from doublure.schema.columns import DateColumn, DatetimeColumn, IntegerColumn
from doublure.schema.columns.column import Column
from doublure.schema.rules.calendar_order import first_at_least, last_at_most, make_coarse

DAY = DateColumn(bounds=(dt.date(1990, 1, 1), dt.date(2030, 12, 31)), missing=True)
MOMENT = DatetimeColumn(bounds=(dt.datetime(1990, 1, 1), dt.datetime(2030, 12, 31)), missing=True)
YEAR = IntegerColumn(bounds=(1990, 2030), missing=True)
TIMES = {"day": DAY, "moment": MOMENT, "year": YEAR}


@pytest.mark.parametrize("low", TIMES)
@pytest.mark.parametrize("high", TIMES)
def test_the_first_and_the_last_fit_and_their_neighbours_do_not(low: str, high: str) -> None:
    one, other = TIMES[low], TIMES[high]
    if one is other:
        return
    draw = np.random.default_rng(0)

    def some(column: Column) -> np.ndarray:
        return np.append(draw.integers(*map(int, column.limits), 200).astype(float), np.nan)

    coarser = 2 if "year" in (low, high) else 1
    below, above = make_coarse(one, coarser), make_coarse(other, coarser)
    lows, highs = some(one), some(other)
    first, last = first_at_least(one, other, lows), last_at_most(one, other, highs)
    assert np.isnan([first[-1], last[-1]]).all()
    lows, highs, first, last = lows[:-1], highs[:-1], first[:-1], last[:-1]
    assert (below(lows) <= above(first)).all()
    assert not (below(lows) <= above(first - 1)).any()
    assert (below(last) <= above(highs)).all()
    assert not (below(last + 1) <= above(highs)).any()


@pytest.mark.parametrize("none", [None, pd.NaT, float("nan")])
@pytest.mark.parametrize("first", [dt.date(2020, 2, 3), pd.Timestamp("2020-02-03")])
def test_days_among_python_objects_are_read_beside_missing_ones(first: object, none: object) -> None:
    found = DAY.numbers_of(pd.Series([first, none], dtype=object))
    assert found[0] == 18295
    assert np.isnan(found[1])
