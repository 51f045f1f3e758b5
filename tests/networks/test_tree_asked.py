"""Rows that are asked of a tree are those that rejection would keep, and come in a moment."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from tiers import exhaustive

from doublure.networks.tree import TreeGenerator, _distinct
from doublure.networks.tree_asked import cut_leaves
from doublure.networks.tree_draw import TreeDraw, shuffle_within
from doublure.networks.tree_tables import LastColumn, Tree, TreeNode

COMPONENTS = 3
ROWS = 80_000


def node(rng, part, parent, *, above=0, fine=(2, 3, 1), missing=-1):
    """Return a column of as many coarse groups as there are numbers of fine ones, each of three values."""
    coarse = np.repeat(np.arange(len(fine)), fine)
    count, groups = len(coarse), len(fine)
    return TreeNode(
        part=part,
        parent=parent,
        starts=np.arange(count) * 3,
        widths=np.full(count, 3),
        mass=rng.random(count) + 0.1,
        fine=np.arange(count),
        coarse=coarse,
        shares=rng.dirichlet(np.ones(groups), COMPONENTS),
        rake=rng.random(groups) + 0.5,
        ties=rng.dirichlet(np.ones(groups) / 2, above) if parent >= 0 else np.zeros((0, 0)),
        leaning=rng.dirichlet(np.ones(groups), COMPONENTS) if parent >= 0 else np.zeros((0, 0)),
        inner=rng.random((above, count)) if parent >= 0 else np.zeros((0, 0)),
        missing=missing,
    )


def tree(*, last=False, alone=False):
    """Return the patterns of two columns, those two, one more below the first, and one below the root."""
    rng = np.random.default_rng(5)
    nodes = (
        node(rng, -1, -1, fine=(2, 2)),
        node(rng, 0, 0, above=4, missing=2),
        node(rng, 1, 1, above=6, missing=2),
        node(rng, 2, 1, above=6),
        node(rng, 3, 0, above=4),
    )
    made = Tree(
        nodes=nodes,
        weights=np.array([0.5, 0.3, 0.2]),
        bits=np.array([[0, 0], [1, 0], [0, 1], [1, 1]]),
        about=np.array([1, 2]),
    )
    if not last:
        return made
    effects = rng.normal(size=(int(made.sizes.sum()), 2)) * (not alone)
    column = LastColumn(part=4, bias=np.array([1.0, 0]), effects=effects, components=rng.normal(size=(COMPONENTS, 2)))
    return replace(made, last=column)


def generator(made, conditions=()):
    found = TreeGenerator(5, conditions)
    found.take(made)
    return found.eval()


def rows(made, count, condition=None, seed=1):
    return made(np.random.default_rng(seed).standard_normal((count, 1)), condition)


def among(found, spans):
    fits = np.ones(len(found), dtype=bool)
    for part, own in spans.items():
        fits &= np.logical_or.reduce([(found[:, part] >= low) & (found[:, part] <= high) for low, high in own])
    return fits


@cache
def many(last):
    """Return a tree's generator, and rows of it."""
    made = generator(tree(last=bool(last), alone=last == "by component"))
    return made, rows(made, ROWS)


ASKED = [
    {3: ((2, 4),)},
    {0: ((0, 7), (16, 17))},
    {0: ((15, 17),), 2: ((4, 10),)},
    {1: ((1, 1), (3, 5)), 3: ((0, 8),)},
    {0: ((3, 10),), 1: ((15, 15),), 2: ((0, 3),)},
]


CASES = [
    pytest.param(last, spans, marks=() if last == own or (not last and spans == ASKED[-1]) else exhaustive)
    for spans, own in zip(ASKED, ["by all", "", "by component", "", "by all"], strict=True)
    for last in ("", "by all", "by component")
]


@pytest.mark.parametrize(("last", "spans"), CASES, ids=str)
def test_rows_that_are_asked_for_are_like_those_that_happen_to_fit(last, spans):
    made, whole = many(last)
    fits = among(whole, spans)
    narrow = made.narrowed(spans)
    found = rows(narrow, 20_000, seed=2)
    assert among(found, spans).all()
    none = np.zeros((1, 0))
    odds = float(np.exp(narrow.evidence(none) - made.evidence(none))[0])
    assert odds == pytest.approx(fits.mean(), rel=0.05, abs=0.002)
    for part in range(5):
        one, other = (np.bincount(each[:, part].astype(int), minlength=20) / len(each) for each in (found, whole[fits]))
        assert np.abs(one - other).sum() / 2 < 0.02 + 1.5 / np.sqrt(fits.sum()), part


@pytest.mark.parametrize("alone", [False, True])
def test_the_column_that_is_drawn_last_can_be_asked_for(alone):
    made = generator(tree(last=True, alone=alone), conditions=[2])
    whole = rows(made, ROWS, np.zeros((ROWS, 2)))
    fits = (whole[:, 4] == 1) & among(whole, {3: ((2, 4),)})
    narrow = made.narrowed({3: ((2, 4),)})
    asked = np.tile([0.0, 1.0], (20_000, 1))
    found = rows(narrow, 20_000, asked, seed=3)
    assert (found[:, 4] == 1).all()
    assert among(found, {3: ((2, 4),)}).all()
    for part in range(4):
        one, other = (np.bincount(each[:, part].astype(int), minlength=20) / len(each) for each in (found, whole[fits]))
        assert np.abs(one - other).sum() / 2 < 0.03, part
    odds = np.exp(narrow.evidence(np.eye(2)) - made.evidence(np.eye(2)))
    for value in range(2):
        beside = whole[whole[:, 4] == value]
        assert float(odds[value]) == pytest.approx(among(beside, {3: ((2, 4),)}).mean(), rel=0.1)


def test_several_values_of_a_condition_keep_their_shares_and_open_ones_come_as_they_are():
    made = generator(tree(), conditions=[18, 18])  # parts 3 and 4 of the rows, of which 4 is no node
    whole = rows(made, ROWS)
    asked = np.zeros((20_000, 36))
    asked[:10_000, [2, 9]] = 1.0
    found = rows(made, 20_000, asked)
    assert set(found[:10_000, 3]) == {2, 9}
    wanted = (whole[:, 3] == 2).sum() / np.isin(whole[:, 3], [2, 9]).sum()
    assert (found[:10_000, 3] == 2).mean() == pytest.approx(wanted, abs=0.02)
    free = np.bincount(found[10_000:, 3].astype(int), minlength=18) / 10_000
    assert np.abs(free - np.bincount(whole[:, 3].astype(int), minlength=18) / ROWS).sum() / 2 < 0.02


def test_leaves_are_cut_to_what_is_asked_for():
    own = tree().nodes[3]
    cut = cut_leaves(own, ((1, 1), (4, 7)))
    assert {(int(a), int(w)) for a, w, g in zip(cut.starts, cut.widths, cut.fine, strict=True) if cut.fit[g] > 0} == {
        (1, 1), (4, 2), (6, 2),
    }  # fmt: skip
    assert cut.fit == pytest.approx([1 / 3, 2 / 3, 2 / 3, 0, 0, 0])
    assert not cut_leaves(own, ()).fit.any()


def test_what_cannot_be_is_as_good_as_impossible():
    made = generator(tree())
    narrow = made.narrowed({3: ()})
    none = np.zeros((1, 0))
    assert float(np.exp(narrow.evidence(none) - made.evidence(none))[0]) < 1e-200


@pytest.mark.parametrize("spans", [{3: ((6, 17),)}, {3: ((9, 11),)}, {0: ((6, 14),)}], ids=str)
def test_what_noise_left_no_chance_is_drawn_where_it_is_asked_for(spans):
    """A person without a row was drawn again and again, six times as many each time."""
    made, place = tree(), {0: 1, 3: 4}[next(iter(spans))]
    own = made.nodes[place]
    first = np.arange(own.groups) == 0
    never = replace(own, shares=own.shares * first, ties=own.ties * first, mass=own.mass * (own.coarse == 0))
    made = replace(made, nodes=tuple(never if node is own else node for node in made.nodes))
    assert not among(rows(generator(made), 2_000), spans).any()
    assert among(rows(generator(made).narrowed(spans), 2_000), spans).all()


def test_what_was_asked_once_is_not_drawn_again_until_tables_change(monkeypatch):
    made, other = generator(tree(last=True), conditions=[2]), tree(last=True, alone=True)
    first = made.evidence(np.eye(2))
    with monkeypatch.context() as patch:
        patch.delattr(TreeDraw, "draw")
        assert (made.evidence(np.eye(2)[[1, 0, 1]]) == first[[1, 0, 1]]).all()
    made.take(other)
    assert (made.evidence(np.eye(2)) == generator(other, conditions=[2]).evidence(np.eye(2))).all()
    assert (made.evidence(np.eye(2)) != first).any()


@pytest.mark.parametrize("most", [2, 300, 70_000])
def test_an_order_within_groups_is_that_of_a_sort_by_all(most):
    rng = np.random.default_rng(most)
    chance, low, high = rng.integers(0, 50, 5000) / 50, *rng.integers(0, most, (2, 5000))
    assert (shuffle_within(chance, low, high) == np.lexsort((chance, low, high))).all()
    assert shuffle_within(np.zeros(0), np.zeros(0, dtype=np.int64)).tolist() == []


@pytest.mark.parametrize("width", [0, 1, 3, 20])
def test_masks_are_told_apart_as_rows_are(width):
    masks = np.random.default_rng(width).integers(0, 2, (60, width)).astype(float)
    for given in (masks, masks[:1], masks[:0], np.repeat(masks[:1], 5, axis=0)):
        distinct, which = _distinct(given)
        wanted, places = np.unique(given, axis=0, return_inverse=True)
        assert np.array_equal(distinct, wanted)
        assert which.tolist() == places.ravel().tolist()
