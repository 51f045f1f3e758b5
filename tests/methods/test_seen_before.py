"""What is counted of a number is held to what was seen where its rows were looked for, as far as both agree."""

from __future__ import annotations

import numpy as np
import pytest

from doublure.methods.statistics.tables.leaves import ColumnLeaves
from doublure.methods.statistics.tables.nodes import Node
from doublure.schema.columns import IntegerDomain, NumberDomain

GROUPS, ROWS, NOISE = 24, 5000.0, 40.0
TRUTH = np.full(GROUPS, ROWS / GROUPS)


def node(before: np.ndarray, counted: np.ndarray, *, ordered: bool = True, nullable: bool = False) -> Node:
    """Return a column of single values in groups of one each, as it was looked for and then counted."""
    domain = (NumberDomain if ordered else IntegerDomain)(first=0, last=GROUPS - 1, nullable=nullable)
    leaves = ColumnLeaves.of(domain, 0, np.arange(GROUPS))
    leaves.mass = np.append(before, 0.0) if nullable else before.copy()
    return Node(leaves=leaves, own=np.arange(GROUPS + nullable), counts=counted, variance=NOISE**2)


def told(column: Node) -> tuple[np.ndarray, np.ndarray]:
    column.take_counts(ROWS, most=GROUPS, pair_noise=NOISE)
    return column.single, column.single_variance


def test_what_agrees_is_nearer_and_known_better():
    """The curve is off by 10, each count by 40: held to the curve, they are off by some 10."""
    far, known = [], []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        found, variance = told(
            node(TRUTH + 10 * rng.standard_normal(GROUPS), TRUTH + NOISE * rng.standard_normal(GROUPS))
        )
        far.append(np.abs(found - TRUTH).mean())
        known.append(variance.mean())
    assert np.mean(far) < 0.6 * NOISE * 0.8  # a normal number is .8 deviations away
    assert np.mean(known) < 0.5 * NOISE**2


def test_what_is_clearly_apart_stays():
    """A spike that the curve does not show keeps its count and its variance."""
    rng = np.random.default_rng(0)
    counted = TRUTH + NOISE * rng.standard_normal(GROUPS)
    counted[7] += 600
    found, variance = told(node(TRUTH, counted))
    assert found[7] == pytest.approx(counted[7])
    assert variance[7] == NOISE**2


def test_a_curve_that_is_wrong_all_over_says_little():
    rng = np.random.default_rng(1)
    truth = TRUTH + 120 * rng.standard_normal(GROUPS)
    counted = truth + NOISE * rng.standard_normal(GROUPS)
    found, _ = told(node(TRUTH, counted))
    assert np.abs(found - truth).mean() < 1.2 * np.abs(counted - truth).mean()


@pytest.mark.parametrize("changed", [{"ordered": False}, {"nullable": True}])
def test_categories_and_missing_are_left_as_counted(changed):
    rng = np.random.default_rng(2)
    nullable = changed.get("nullable", False)
    counted = np.append(TRUTH, 300.0)[: GROUPS + nullable] + NOISE * rng.standard_normal(GROUPS + nullable)
    found, variance = told(node(TRUTH, counted, **changed))
    kept = slice(GROUPS, None) if nullable else slice(None)
    assert found[kept] == pytest.approx(counted[kept])
    assert variance[kept] == pytest.approx(NOISE**2)
