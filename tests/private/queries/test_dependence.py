"""Scores of dependence: what they are, how far one unit moves them, and that a mutant which moves further is caught."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from planting import plant

from doublure.errors import SettingError
from doublure.private.queries.axes import Axis, Intervals, Patterns
from doublure.private.queries.dependence import Dependence
from doublure.private.records import PrivateRecords

SHAPES = ((4, 3), (3, 5), (4, 5))
AXES = (Axis.of_codes(0, 4), Axis.of_codes(1, 3), Axis.of_codes(2, 5))
PAIRS = ((AXES[0], AXES[1]), (AXES[1], AXES[2]), (AXES[0], AXES[2]))


def records(values, unit=None):
    unit = np.arange(len(values)) if unit is None else np.asarray(unit)
    count = int(unit.max()) + 1 if len(unit) else 0
    return PrivateRecords(np.asarray(values, dtype=float).reshape(-1, 3), unit, count, lambda rows: (rows, None))


def drawn(seed, rows=30):
    draw = np.random.default_rng(seed)
    return np.column_stack([draw.integers(0, size, rows) for size in (4, 3, 5)]), draw


def expected(draw):
    return [draw.integers(0, 6, shape) for shape in SHAPES]


def answer(kept, wanted, most=1):
    query = Dependence(tables=PAIRS, expected=wanted, max_records=most)
    query.refuse_unfit(kept)
    return query.answer(kept, sample_rate=1.0)


def test_a_score_is_how_far_counts_are_from_what_is_expected():
    values, draw = drawn(1)
    wanted = expected(draw)
    found = answer(records(values), wanted).total
    for number, (one, other) in enumerate(((0, 1), (1, 2), (0, 2))):
        table = np.zeros(SHAPES[number], dtype=int)
        np.add.at(table, (values[:, one], values[:, other]), 1)
        assert found[number] == np.abs(table - wanted[number]).sum()
    assert answer(records(np.zeros((0, 3))), wanted).total.tolist() == [each.sum() for each in wanted]


@pytest.mark.parametrize("held", [1, 13, 27, 1000])
def test_scores_are_the_same_however_many_tables_are_held_at_once(monkeypatch, held):
    values, draw = drawn(7)
    wanted = expected(draw)
    before = answer(records(values), wanted)
    monkeypatch.setattr("doublure.private.queries.dependence._CELLS_AT_ONCE", held)
    found = answer(records(values), wanted)
    assert found.total.tolist() == before.total.tolist()
    assert found.sensitivity == before.sensitivity


def check_one_unit_moves_each_score_by_its_records(seed, most):
    """For every record that could be added, and whatever is expected: by m at most, which is what is stated."""
    values, draw = drawn(seed)
    wanted = expected(draw)
    unit = np.arange(len(values)) // most
    before = answer(records(values, unit), wanted, most)
    assert before.sensitivity.l2 == pytest.approx(most * np.sqrt(len(PAIRS)))
    added = np.column_stack([draw.integers(0, size, most) for size in (4, 3, 5)])
    more = records(np.concatenate([values, added]), np.append(unit, np.full(most, unit.max() + 1)))
    moved = np.abs(answer(more, wanted, most).total - before.total)
    assert moved.max() <= most
    assert np.linalg.norm(moved) <= before.sensitivity.l2 * (1 + 1e-9)


@given(seed=st.integers(0, 10_000), most=st.integers(1, 3))
@settings(max_examples=60, deadline=None, derandomize=True)
def test_one_unit_moves_each_score_by_its_records(seed, most):
    check_one_unit_moves_each_score_by_its_records(seed, most)


@pytest.mark.parametrize(
    "edit",
    [
        ("int(np.abs(own - each).sum())", "int(2 * np.abs(own - each).sum())"),
        ("int(np.abs(own - each).sum())", "int((np.abs(own - each) ** 2).sum())"),
        ("int(np.abs(own - each).sum())", "int(np.abs(own - each).sum()) + int(own.sum())"),
    ],
    ids=["twice", "squared", "one more"],
)
def test_a_score_that_moves_further_is_caught(monkeypatch, edit):
    plant(monkeypatch, Dependence, "combine", edit)

    def all_of_them():
        for seed in range(20):
            check_one_unit_moves_each_score_by_its_records(seed, 1)

    with pytest.raises(AssertionError):
        all_of_them()


@pytest.mark.parametrize(
    "wanted",
    [
        [np.zeros(shape) for shape in SHAPES],
        [np.zeros((3, 4), dtype=int), *(np.zeros(shape, dtype=int) for shape in SHAPES[1:])],
        [np.zeros(shape, dtype=int) for shape in SHAPES[:2]],
    ],
    ids=["not whole", "another shape", "too few"],
)
def test_what_cannot_be_compared_is_refused(wanted):
    with pytest.raises(SettingError):
        answer(records(drawn(0)[0]), wanted)


def test_more_records_than_planned_are_refused():
    values, draw = drawn(0)
    with pytest.raises(SettingError):
        answer(records(values, np.arange(len(values)) // 2), expected(draw))


# -- axes --------------------------------------------------------------------------------------------------------------


@given(
    values=st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=30),
    starts=st.lists(st.integers(-50, 50), min_size=1, max_size=8, unique=True),
)
@settings(max_examples=60, deadline=None, derandomize=True)
def test_a_record_falls_in_one_interval_whatever_it_holds(values, starts):
    starts = np.array(sorted(starts), dtype=float)
    axis = Intervals(part=1, starts=starts, cells=np.arange(len(starts)), size=len(starts))
    axis.refuse_unfit(2)
    found = axis.of(np.column_stack([np.zeros(len(values)), values]))
    for value, cell in zip(values, found, strict=True):
        own = [number for number, start in enumerate(starts) if start <= value]
        assert cell == (own[-1] if own else 0)


def test_patterns_are_bits():
    axis = Patterns(parts=(0, 2), marks=(4.0, 7.0), cells=np.array([0, 1, 1, 2]), size=3)
    axis.refuse_unfit(3)
    rows = np.array([[0, 0, 0], [4, 0, 0], [0, 9, 7], [5, 0, 8]], dtype=float)
    assert axis.of(rows).tolist() == [0, 1, 1, 2]


@pytest.mark.parametrize(
    "axis",
    [
        Intervals(part=3, starts=np.zeros(1), cells=np.zeros(1, dtype=int), size=1),
        Intervals(part=0, starts=np.array([1.0, 1.0]), cells=np.arange(2), size=2),
        Intervals(part=0, starts=np.array([1.0, 2.0]), cells=np.arange(1), size=2),
        Intervals(part=0, starts=np.array([1.0, 2.0]), cells=np.array([0, 2]), size=2),
        Patterns(parts=(0, 3), marks=(1.0, 1.0), cells=np.arange(4), size=4),
        Patterns(parts=(0, 1), marks=(1.0, 1.0), cells=np.arange(3), size=4),
    ],
)
def test_axes_that_count_elsewhere_are_refused(axis):
    with pytest.raises(SettingError):
        axis.refuse_unfit(3)
