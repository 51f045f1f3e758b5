"""Axes of tables: which cell a record falls in, what is refused, and how owners are told of one and take it."""

from __future__ import annotations

import json

import numpy as np
import pytest

from doublure.errors import SettingError
from doublure.private.queries.axes import (
    Axis,
    Intervals,
    Lattices,
    Patterns,
    PeriodParts,
    axes_from_message,
    axes_to_message,
    whole,
)
from doublure.support.messages import Message, prefix_part, select_part

INTERVALS = {"part": 0, "starts": np.array([-3.0, 0.0, 5.0]), "cells": np.array([2, 0, 1]), "size": 3}
PATTERNS = {"parts": (1, 0), "marks": (4.0, 2), "cells": np.array([0, 1, 2, 2]), "size": 3}


def described(axis):
    """Return the words and the arrays by which an axis is told of."""
    message = axes_to_message([axis])
    (words,) = message.words["axes"]
    return words, select_part(message.arrays, "0")


def axis_of(words, arrays):
    """Return the axis that they tell of."""
    (axis,) = axes_from_message(Message({"axes": [words]}, prefix_part(arrays, 0)))
    return axis


AXES = [Axis.of_codes(1, 4), Intervals(**INTERVALS), Patterns(**PATTERNS)]


@pytest.mark.parametrize("kind", [np.int16, np.int8, np.int32, np.int64, np.float32, np.float64])
def test_a_number_falls_in_the_interval_that_holds_it_whatever_its_type(kind):
    values = np.array([-128, -4, -3, -1, 0, 4, 5, 127])
    cells = Intervals(**INTERVALS).of(values.astype(kind)[:, None])
    assert cells.tolist() == [2, 2, 2, 2, 0, 0, 1, 1]


def test_numbers_of_two_bytes_are_looked_up_in_one_table_from_end_to_end():
    axis = Intervals(**INTERVALS)
    ends = np.array([[-(2**15)], [2**15 - 1]])
    assert axis.of(ends.astype(np.int16)).tolist() == [2, 1]
    assert "_of_short" in vars(axis)
    assert len(axis._of_short) == 2**16
    wide = Intervals(**INTERVALS)
    assert wide.of(ends.astype(np.int32)).tolist() == [2, 1]
    assert wide.of(np.array([[0], [2**16 - 1]], dtype=np.uint16)).tolist() == [0, 1]
    assert "_of_short" not in vars(wide)


@pytest.mark.parametrize("axis", AXES, ids=lambda axis: type(axis).__name__)
def test_an_axis_that_was_described_is_the_same_again(axis):
    words, arrays = described(axis)
    again = axis_of(json.loads(json.dumps(words)), arrays)
    assert type(again) is type(axis)
    assert again.size == axis.size
    assert np.array_equal(again.cells, axis.cells)
    assert again.cells.dtype == np.int64
    records = np.array([[-3, 0], [1, 3], [2, 1], [6, 2]])
    assert again.of(records).tolist() == axis.of(records).tolist()
    again.refuse_unfit(2)


def test_another_kind_of_axis_is_not_described():
    with pytest.raises(TypeError, match="object is not asked of owners"):
        described(object())


@pytest.mark.parametrize("axis", AXES, ids=lambda axis: type(axis).__name__)
@pytest.mark.parametrize(
    ("changed", "array"),
    [
        ({"type": "another"}, None), ({"size": 3.0}, None), ({"size": True}, None),
        ({}, np.array([0.0, 1.0, 2.0, 2.0])), ({}, np.array([[0, 1, 2, 2]])), ({}, np.array([0, 1, 2, 2], np.int32)),
    ],
)  # fmt: skip
def test_words_in_another_form_are_none(axis, changed, array):
    words, arrays = described(axis)
    with pytest.raises((KeyError, TypeError, ValueError)):
        axis_of(words | changed, arrays if array is None else arrays | {"cells": array})


@pytest.mark.parametrize("starts", [[-3.0, np.nan, 5.0], [-3.0, 0.0, np.inf], [[-3.0, 0.0, 5.0]], [-3, 0, 5]])
def test_starts_in_another_form_are_none(starts):
    words, arrays = described(AXES[1])
    with pytest.raises(ValueError):
        axis_of(words, arrays | {"starts": np.array(starts)})


def test_patterns_are_of_twenty_parts_at_most_and_have_numbers_for_marks():
    words, arrays = described(AXES[2])
    twenty = axis_of(words | {"parts": list(range(20)), "marks": [1] * 20}, arrays)
    assert isinstance(twenty, Patterns)
    assert twenty.parts == tuple(range(20))
    for changed in (
        {"parts": list(range(21)), "marks": [1] * 21}, {"marks": [4.0, "2"]}, {"marks": [4.0, True]},
        {"parts": [1, 0.0]},
    ):  # fmt: skip
        with pytest.raises((TypeError, ValueError)):
            axis_of(words | changed, arrays)


def test_a_whole_number_is_taken_as_it_came():
    assert whole(3) == 3
    for other in (3.0, True, "3", None, np.int64(3)):
        with pytest.raises(TypeError):
            whole(other)


@pytest.mark.parametrize(
    "cells",
    [[0, 1, 3, 2], [0, -1, 2, 2], [], [[0, 1, 2, 2]], [0.0, 1.0, 2.0, 2.0]],
    ids=["above", "below", "none", "two", "real"],
)
def test_cells_that_are_none_are_refused(cells):
    cells = np.array(cells) if cells else np.zeros(0, dtype=np.int64)
    for axis in (Axis(part=0, cells=cells, size=3), Patterns(**PATTERNS | {"cells": cells})):
        with pytest.raises(SettingError, match="cells"):
            axis.refuse_unfit(2)


def test_a_part_that_there_is_not_is_refused():
    for axis, parts in zip(AXES, (1, 0, 1), strict=True):
        with pytest.raises(SettingError, match="part"):
            axis.refuse_unfit(parts)
    with pytest.raises(SettingError, match="part"):
        Axis(part=-1, cells=np.array([0]), size=1).refuse_unfit(3)


LATTICES = {"part": 0, "steps": np.array([10, 5, 1])}


@pytest.mark.parametrize("kind", [np.int16, np.int32, np.int64, np.float64])
def test_an_integer_counts_on_the_coarsest_lattice_that_holds_it(kind):
    values = np.array([-20, -15, -1, 0, 3, 5, 120])
    assert Lattices(**LATTICES).of(values.astype(kind)[:, None]).tolist() == [0, 1, 2, 0, 2, 1, 0]
    marked = Lattices(**LATTICES, mark=120.0)
    assert marked.size == 4
    assert marked.of(values.astype(kind)[:, None]).tolist() == [0, 1, 2, 0, 2, 1, 3]


def test_every_record_counts_in_one_cell_of_lattices_whatever_it_holds():
    odd = np.array([[np.nan], [np.inf], [-np.inf], [1e300], [2.0**53 + 2], [0.5]])
    found = Lattices(**LATTICES).of(odd)
    assert ((found >= 0) & (found < 3)).all()


def test_lattices_that_were_described_are_the_same_again():
    for mark in (None, 90.0):
        axis = Lattices(**LATTICES, mark=mark)
        words, arrays = described(axis)
        again = axis_of(json.loads(json.dumps(words)), arrays)
        assert isinstance(again, Lattices)
        assert (again.part, again.mark, again.size) == (axis.part, axis.mark, axis.size)
        assert again.steps.tolist() == [10, 5, 1]
    for changed, steps in (({"mark": "90"}, [10, 1]), ({"mark": True}, [10, 1]), ({}, [[10, 1]]), ({}, [10.0, 1.0])):
        with pytest.raises((TypeError, ValueError)):
            axis_of(words | changed, {"steps": np.array(steps)})


@pytest.mark.parametrize("steps", [[10, 4, 1], [5, 10, 1], [10, 5], [10, 10, 1], [0, 1], [-5, 1], [], [[1]], [1.0]])
def test_lattices_that_do_not_nest_are_refused(steps):
    with pytest.raises(SettingError, match="nest"):
        Lattices(part=0, steps=np.array(steps)).refuse_unfit(1)
    with pytest.raises(SettingError, match="part"):
        Lattices(**LATTICES).refuse_unfit(0)


PERIODS = {"part": 0, "period": 1440, "parts": 24}


@pytest.mark.parametrize("kind", [np.int16, np.int32, np.int64, np.float64])
def test_an_integer_counts_in_the_hour_of_its_day_whatever_the_day(kind):
    values = np.array([-1440, -1, 0, 59, 60, 1439, 1440, 9 * 1440 + 605])
    assert PeriodParts(**PERIODS).of(values.astype(kind)[:, None]).tolist() == [0, 23, 0, 0, 1, 23, 0, 10]
    marked = PeriodParts(**PERIODS, mark=1440.0)
    assert marked.size == 25
    assert marked.of(values.astype(kind)[:, None]).tolist() == [0, 23, 0, 0, 1, 23, 24, 24]


def test_every_record_counts_in_one_hour_whatever_it_holds():
    odd = np.array([[np.nan], [np.inf], [-np.inf], [1e300], [2.0**53 + 2], [0.5], [-0.5]])
    found = PeriodParts(**PERIODS).of(odd)
    assert found.shape == (7,)
    assert ((found >= 0) & (found < 24)).all()


def test_one_record_moves_one_cell_of_hours_by_one():
    draw = np.random.default_rng(0)
    records = draw.integers(-(10**9), 10**9, (500, 1)).astype(np.float64)
    axis = PeriodParts(**PERIODS, mark=9e8)
    for without in range(0, 500, 25):
        fewer = np.delete(records, without, axis=0)
        moved = np.bincount(axis.of(records), minlength=25) - np.bincount(axis.of(fewer), minlength=25)
        assert np.abs(moved).sum() == 1


def test_periods_that_were_described_are_the_same_again():
    for mark in (None, 90.0):
        axis = PeriodParts(**PERIODS, mark=mark)
        words, arrays = described(axis)
        again = axis_of(json.loads(json.dumps(words)), arrays)
        assert isinstance(again, PeriodParts)
        assert (again.part, again.period, again.parts, again.mark) == (axis.part, axis.period, axis.parts, axis.mark)
    for changed in ({"mark": "90"}, {"mark": True}, {"period": 24.0}, {"parts": True}, {"part": "0"}):
        with pytest.raises((TypeError, ValueError)):
            axis_of(words | changed, {})


@pytest.mark.parametrize(("period", "parts"), [(24, 0), (24, -1), (24, 5), (0, 1), (-24, 24), (2**54, 2)])
def test_parts_that_do_not_divide_their_period_are_refused(period, parts):
    with pytest.raises(SettingError, match="divide"):
        PeriodParts(part=0, period=period, parts=parts).refuse_unfit(1)
    with pytest.raises(SettingError, match="part"):
        PeriodParts(**PERIODS).refuse_unfit(0)
