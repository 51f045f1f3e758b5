"""How far an answer moves: what noise and price are made of."""

from __future__ import annotations

import math

import pytest

from doublure.errors import SettingError
from doublure.private.queries.query import Answer, Sensitivity, require_everyone, require_records


@pytest.mark.parametrize("cells", [1, 2, 3, 7, 4_950, 10**6, 10**9])
@pytest.mark.parametrize("moved", [1, 2, 3, 31, 1_000])
def test_counts_are_known_again_by_how_far_they_move(cells, moved):
    stated = Sensitivity.of_cells(cells, moved)
    assert stated.l1 == cells * moved
    assert stated.l2 == pytest.approx(moved * math.sqrt(cells), rel=1e-15)
    assert (stated.cells, stated.each) == (cells, moved)


@pytest.mark.parametrize("numbers", [0, 1, 9, 10**6])
def test_a_vector_moves_by_its_length(numbers):
    stated = Sensitivity.of_length(2.5, numbers)
    assert stated.l2 == 2.5
    assert stated.l1 == pytest.approx(2.5 * math.sqrt(numbers))  # what so long a vector sums up to at most


def test_an_answer_is_of_everybody_unless_it_says_otherwise():
    made = Answer(total=[1], sensitivity=Sensitivity.of_cells(1, 1))
    assert (made.sample_rate, made.sampling) == (1.0, "poisson")


def test_who_asks_everybody_takes_no_rate():
    require_everyone(1.0)
    for rate in (0.5, 0.999999, 2.0, math.nan):
        with pytest.raises(SettingError) as refused:
            require_everyone(rate)
        assert refused.value.field == "sample_rate"


def test_units_have_no_more_records_than_planned_and_nobody_is_told_how_many():
    require_records(3, 3)
    require_records(0, 1)
    with pytest.raises(SettingError, match="more records than planned") as refused:
        require_records(31, 3)
    assert refused.value.field == "max_records"
    assert "31" not in str(refused.value)
