"""Trees of counts: they add up, and a unit moves them by no more than the noise is made for."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from planting import plant

from doublure.errors import SettingError
from doublure.private.queries import trees as module
from doublure.private.queries.trees import CountTrees, differences
from doublure.private.records import PrivateRecords

NUMBERS, CODES, DEPTH = 3, 7, 3
WEIGHTS = np.array([[2, 8, 5, 3], [2, 8, 5, 0], [1, 7, 0, 0]])
LEAVES = np.array([[0, 1, 2, 3, 4, 5, -1], [0, 2, 4, 6, 6, -1, -1], [0, 4, 4, 4, 4, -1, -1]])


def group(body, condition):
    """Return one of two groups: by the first number alone."""
    return (body[:, 0] >= 3).long()


def records(rows, unit=None, n_units=None):
    rows = torch.as_tensor(rows, dtype=torch.float32).reshape(len(rows), NUMBERS)
    unit = np.arange(len(rows)) if unit is None else np.asarray(unit)
    n_units = (int(unit.max()) + 1 if len(unit) else 0) if n_units is None else n_units
    return PrivateRecords(rows, unit.astype(np.int64), n_units, lambda some: (some, None))


def query(most=1, groups=2):
    own = group if groups == 2 else None
    return CountTrees(leaves=LEAVES, weights=WEIGHTS, unit=0.5, max_records=most, group=own, groups=groups)


def answered(rows, unit=None, n_units=None, **named):
    return query(**named).answer(records(rows, unit, n_units), sample_rate=1.0)


def test_differences_give_the_leaves_back():
    cells = np.random.default_rng(0).integers(0, 9, (2, 4, 8))
    root, *levels = differences(cells)
    nodes = root
    for level in levels:
        halves = np.stack([(nodes + level) // 2, (nodes - level) // 2], axis=-1)
        nodes = halves.reshape(*level.shape[:-1], -1)
    assert np.array_equal(nodes, cells)


def test_what_is_released_is_counts_again():
    rows = [[0, 1, 2], [2, 1, 1], [4, 0, 0], [6, 3, 4]]
    found = query().split(np.asarray(answered(rows).total) * 0.5)
    assert found[0][:, :, 0].tolist() == [[2, 2, 2], [1, 2, 2]]  # a code without a leaf counts nowhere
    assert found[1][0, :, 0].tolist() == [2, 2, -2]  # left halves less right ones
    assert found[2][0, 0].tolist() == [0, 0]
    assert not found[3][:, 1].any()  # weighs nothing


def test_no_record_is_zeros():
    assert not answered([]).total.any()


CELL = st.sampled_from([0.0, 0.99, 1.5, 3.0, 5.9, 6.0, -4.0, 1e30, math.nan, math.inf, -math.inf])
UNIT = st.lists(st.lists(CELL, min_size=NUMBERS, max_size=NUMBERS), min_size=1, max_size=3)


@given(units=st.lists(UNIT, max_size=3), more=UNIT)
@settings(max_examples=200, deadline=None, derandomize=True)
def test_a_unit_moves_trees_by_the_sensitivity_at_most(units, more):
    require_neighbours(units, more)
    require_neighbours(units, [more[0]] * 3)


def require_neighbours(units, more):
    def total(some):
        rows = [record for unit in some for record in unit]
        owner = np.repeat(np.arange(len(some)), [len(unit) for unit in some])
        return answered(rows, owner, len(some), most=3)

    one, other = total(units), total([*units, more])
    stated = query(most=3).sensitivity
    assert (one.sensitivity, other.sensitivity) == (stated, stated)
    moved = np.asarray(other.total - one.total, dtype=float) * 0.5
    assert np.abs(moved).sum() <= stated.l1 * (1 + 1e-12)
    assert math.sqrt((moved**2).sum()) <= stated.l2 * (1 + 1e-12)


def test_the_sensitivity_is_reached_and_is_that_of_one_path():
    """Three equal records of a unit move the root and one difference a level of each tree, three times."""
    moved = np.asarray(answered([[0, 1, 2]] * 3, [0, 0, 0], 1, most=3).total, dtype=float) * 0.5
    assert math.sqrt((moved**2).sum()) == pytest.approx(query(most=3).sensitivity.l2)
    assert query(most=3).sensitivity.l2 == pytest.approx(1.5 * math.sqrt((WEIGHTS**2).sum()))


MUTANTS = {
    "leaves count twice": (CountTrees, "answer", "np.bincount(flat[leaf >= 0], minlength=len(cells))",
                           "2 * np.bincount(flat[leaf >= 0], minlength=len(cells))"),
    "weights are off by one": (CountTrees, "answer", "level * self.weights[:, place, None]",
                               "level * (self.weights[:, place, None] + 1)"),
    "one record a unit": (CountTrees, "_moved", "self.max_records * self.unit", "self.unit"),
    "the root costs nothing": (CountTrees, "_moved", "weights.ravel()", "weights[:, 1:].ravel()"),
    "the finest level costs nothing": (CountTrees, "_moved", "weights.ravel()", "weights[:, :-1].ravel()"),
    "differences are too large": (module, "differences", "cells[..., ::2] - cells[..., 1::2]",
                                  "2 * (cells[..., ::2] - cells[..., 1::2])"),
}  # fmt: skip


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_planted_fault_is_caught(monkeypatch, mutant):
    owner, name, old, new = MUTANTS[mutant]
    plant(monkeypatch, owner, name, (old, new))
    with pytest.raises(AssertionError):
        require_neighbours([], [[0.0, 1.5, 0.0]] * 3)


@pytest.mark.parametrize("leaves", [LEAVES[:2], LEAVES + 3, LEAVES - 1])
def test_what_is_no_tree_is_refused(leaves):
    made = CountTrees(leaves=leaves, weights=WEIGHTS, unit=0.5, max_records=1)
    with pytest.raises(SettingError, match="leaves"):
        made.refuse_unfit(records([[0, 0, 0]]))


def test_too_many_records_of_a_unit_are_refused():
    with pytest.raises(SettingError, match="max_records"):
        query(most=1).refuse_unfit(records([[0, 0, 0]] * 2, [0, 0], 1))
    query(most=2).refuse_unfit(records([[0, 0, 0]] * 2, [0, 0], 1))


def test_groups_in_which_records_meet_are_refused():
    made = CountTrees(
        leaves=LEAVES, weights=WEIGHTS, unit=0.5, max_records=1, groups=2,
        group=lambda body, condition: (body[:, 0] > body[:, 0].mean()).long(),
    )  # fmt: skip
    with pytest.raises(SettingError, match="independent"):
        made.refuse_unfit(records([[0, 0, 0]]))
    query().refuse_unfit(records([[0, 0, 0]]))


def test_a_group_that_is_none_is_refused():
    made = CountTrees(
        leaves=LEAVES, weights=WEIGHTS, unit=0.5, max_records=1, groups=2,
        group=lambda body, condition: torch.full((len(body),), 2),
    )  # fmt: skip
    with pytest.raises(SettingError, match="group"):
        made.answer(records([[0, 0, 0]]), sample_rate=1.0)


def bare(leaves=LEAVES[:1], weights=WEIGHTS[:1]):
    """Return trees of one number, in one group."""
    return CountTrees(leaves=np.asarray(leaves), weights=np.asarray(weights), unit=0.5, max_records=1)


def one_number(values):
    rows = torch.as_tensor(values, dtype=torch.float32)[:, None]
    return PrivateRecords(rows, np.arange(len(rows)), len(rows), lambda some: (some, None))


def test_without_groups_there_is_one():
    assert bare().groups == 1
    assert bare().answer(one_number([0, 1, 4]), sample_rate=1.0).total.shape == (8,)


def test_trees_without_groups_are_taken():
    query(groups=1).refuse_unfit(records([[0, 1, 2], [1, 0, 2]]))


def test_the_lowest_code_has_its_own_leaf():
    low, next_one = (answered([[code] * NUMBERS], groups=1).total for code in (0, 1))
    assert np.array_equal(low, answered([[-5] * NUMBERS], groups=1).total)
    assert not np.array_equal(low, next_one)


def test_what_is_missing_counts_nowhere():
    root = bare().split(0.5 * bare().answer(one_number([np.nan, np.inf, 0, 6]), sample_rate=1.0).total)[0]
    assert root.ravel().tolist() == [1]  # and the last code has no leaf


def test_codes_beyond_the_ends_count_as_the_ends():
    found, ends = (bare().answer(one_number(values), sample_rate=1.0).total for values in ([-5, 0], [0, 0]))
    assert found.tolist() == ends.tolist()


def test_an_answer_is_in_whole_numbers_of_its_unit():
    found = bare().answer(one_number([0, 1]), sample_rate=1.0)
    assert (found.total.dtype, found.unit) == (np.int64, 0.5)


def test_everybody_is_asked():
    with pytest.raises(SettingError):
        bare().answer(one_number([0, 1]), sample_rate=0.5)


@pytest.mark.parametrize("leaves", [[[0, 1, 2, 3, 4, 5, 8]], [[0, 1, 2, 3, 4, 5, -2]]])
def test_leaves_outside_the_tree_are_refused(leaves):
    with pytest.raises(SettingError, match="outside the tree"):
        bare(leaves).refuse_unfit(one_number([0]))


def test_one_negative_weight_among_others_is_refused():
    with pytest.raises(SettingError, match="outside the tree"):
        bare(weights=[[2, -8, 5, 3]]).refuse_unfit(one_number([0]))


@pytest.mark.parametrize("wrong", [-1, 2])
def test_one_record_in_a_group_that_is_none_is_refused(wrong):
    own = CountTrees(
        leaves=LEAVES, weights=WEIGHTS, unit=0.5, max_records=1, groups=2,
        group=lambda body, condition: torch.where(body[:, 0] > 3, wrong, 1),
    )  # fmt: skip
    with pytest.raises(SettingError, match="a group that is none"):
        own.answer(records([[0, 1, 2], [4, 1, 2]]), sample_rate=1.0)


def test_a_level_that_weighs_nothing_is_zeros_and_lists_are_taken():
    found = bare(weights=[[2, 0, 5, 3]]).split([3] + [1] + [5] * 2 + [3] * 4)
    assert [level.ravel().tolist() for level in found] == [[3.0], [0.0], [2.0] * 2, [2.0] * 4]
