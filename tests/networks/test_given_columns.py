"""Columns drawn given others: as often as Bayes' rule says, component by component."""

from __future__ import annotations

import numpy as np
import pytest

from doublure.networks.given_columns import ComponentOdds, draw_given
from doublure.networks.tree_tables import Tree, TreeNode

WEIGHTS = np.array([0.3, 0.7])
FIRST = np.array([[0.9, 0.1], [0.2, 0.8]])
NONE = np.zeros((0, 0))


def conditional(ties, leaning):
    """Return (component, parent, child): what two factors make of a group of the parent."""
    product = ties[None] * leaning[:, None]
    return product / product.sum(2, keepdims=True)


TIES = np.array([[0.7, 0.3], [0.1, 0.9]]), np.array([[0.8, 0.2], [0.25, 0.75]])
LEANING = np.array([[0.6, 0.4], [0.2, 0.8]]), np.array([[0.3, 0.7], [0.9, 0.1]])
SECOND, THIRD = (conditional(*both) for both in zip(TIES, LEANING, strict=True))


def node(part, parent, shares, ties=NONE, leaning=NONE):
    two = np.arange(2)
    return TreeNode(
        part=part, parent=parent, starts=two, widths=np.ones(2, dtype=np.int64), mass=np.ones(2), fine=two, coarse=two,
        shares=shares, rake=np.ones(2), ties=ties, leaning=leaning, inner=np.eye(2) if parent >= 0 else NONE,
        missing=-1,
    )  # fmt: skip


@pytest.fixture
def tree():
    marginal = np.einsum("kf,kfs->ks", FIRST, SECOND)
    nodes = (
        node(0, -1, FIRST),
        node(1, 0, marginal, TIES[0], LEANING[0]),
        node(2, 1, np.einsum("ks,kst->kt", marginal, THIRD), TIES[1], LEANING[1]),
    )
    return Tree(nodes=nodes, weights=WEIGHTS)


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("second", [0, 1])
def test_the_last_column_follows_bayes(tree, first, second):
    rows = np.tile([float(first), float(second), 9.0], (40_000, 1))
    drawn = draw_given(tree, rows, 2, np.random.default_rng(0))
    odds = WEIGHTS * FIRST[:, first] * SECOND[:, first, second]
    expected = float((odds / odds.sum()) @ THIRD[:, second, 1])
    assert (drawn[:, :2] == [first, second]).all()
    assert drawn[:, 2].mean() == pytest.approx(expected, abs=0.012)


def test_two_columns_are_drawn_together(tree):
    rows = np.tile([1.0, 0.0, 0.0], (40_000, 1))
    drawn = draw_given(tree, rows, 1, np.random.default_rng(0))
    odds = WEIGHTS * FIRST[:, 1]
    expected = np.einsum("k,ks,kst->st", odds / odds.sum(), SECOND[:, 1], THIRD)
    found = np.histogram2d(drawn[:, 1], drawn[:, 2], bins=[[0, 1, 2]] * 2)[0] / len(drawn)
    assert np.abs(found - expected).max() < 0.012


def test_nobody_is_drawn_for_nobody(tree):
    assert draw_given(tree, np.zeros((0, 3)), 1, np.random.default_rng(0)).shape == (0, 3)


def test_what_is_computed_once_for_several_draws_changes_none(tree):
    """The odds by the first columns are kept while rows of a unit follow one another."""
    rows = np.column_stack([np.tile([0.0, 1.0], 500), np.repeat([0.0, 1.0], 500), np.zeros(1000)])
    odds = ComponentOdds(tree, 2, 1)
    drawn = [
        draw_given(tree, rows, 2, np.random.default_rng(4), *more)
        for more in ((), (odds,), (odds, (), odds.begun(rows)))
    ]
    assert (drawn[0] == drawn[1]).all()
    assert (drawn[0] == drawn[2]).all()


def test_a_number_as_before_is_the_one_before_and_no_other_is():
    """Parts: the number before, whether it is as before, the number; without that, two of them are alike by half."""
    even, many = np.full((1, 2), 0.5), np.ones((2, 2))
    nodes = (
        node(0, -1, even),
        node(1, 0, even, many, np.ones((1, 2))),
        node(2, 1, even, many, np.ones((1, 2))),
    )
    own = Tree(nodes=nodes, weights=np.ones(1))
    rows = np.zeros((4000, 3))
    rows[2000:, 0] = 1.0
    drawn = draw_given(own, rows, 1, np.random.default_rng(0), again=[(1, 0, 2)])
    assert 0.45 < drawn[:, 1].mean() < 0.55
    assert ((drawn[:, 2] == drawn[:, 0]) == (drawn[:, 1] == 1)).all()
