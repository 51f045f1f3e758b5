"""Noisy tables: what independent columns would have, how often each is counted, what several say of one column."""

from __future__ import annotations

from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest

import doublure as db
from doublure.methods.statistics.tables.method import _few_valued
from doublure.methods.statistics.tables.nodes import Node
from doublure.methods.statistics.tables.noisy_tables import ExpectedTables, NoisyCounts, NoisyTables, _nothing, _times

SHARES = [np.array([0.25, 0.75]), np.array([0.5, 0.3, 0.2]), np.array([1.0])]


def products():
    return ExpectedTables(shares=SHARES, rows=40.0, pairs=[(0, 1), (2, 0)], size=4)


def test_a_table_of_products_is_what_independent_columns_would_have():
    made = products()
    assert len(made) == 4
    assert made[0].dtype == np.int64
    assert made[0].tolist() == [[5, 3, 2], [15, 9, 6]]
    assert made[1].tolist() == [[10, 30]]


def test_behind_the_pairs_stand_tables_of_nothing():
    made = products()
    assert [made[place].tolist() for place in (2, 3, -1)] == [[0]] * 3
    assert made[2].dtype == np.int64
    assert [table.tolist() for table in made[1:3]] == [[[10, 30]], [0]]
    with pytest.raises(IndexError):
        made[4]


def test_a_place_that_nobody_needs_counts_every_record_in_one_cell():
    (axis,) = _nothing()
    axis.refuse_unfit(1)  # a record of one number is enough
    assert axis.size == 1
    assert axis.of(np.array([[-3.0], [0.0], [7.0]])).tolist() == [0, 0, 0]


@pytest.mark.parametrize("weights", [None, [1.0, 8.0, 0.5]])
@pytest.mark.parametrize("places", [3, 5, 9])
def test_places_that_are_left_over_go_where_they_take_most_noise(places, weights):
    cells = [10, 4, 6]
    tried = [often for often in product(range(1, places), repeat=3) if sum(often) == places]
    size = np.array(cells) * np.array(weights or [1.0] * 3)
    best = min(tried, key=lambda often: float((size / np.sqrt(often)).sum()))
    assert _times(cells, places, weights) == list(best)
    assert _times([], places) == []


def test_what_pairs_and_a_column_say_together_is_the_best_linear_estimate():
    """Least squares of all that was counted, each by its noise, says the same; so does its covariance."""
    rng, classes = np.random.default_rng(3), 3
    node = Node(leaves=SimpleNamespace())
    node.coarse, node.single, node.single_variance = np.array([0, 1]), np.array([50.0, 30.0]), np.array([4.0, 9.0])
    pairs = {
        (0, 1): NoisyCounts(counts=rng.uniform(1, 9, (2, 4, classes)), variance=2.0),
        (2, 0): NoisyCounts(counts=rng.uniform(1, 9, (5, 2, classes)), variance=3.0),
        (1, 2): NoisyCounts(counts=rng.uniform(1, 9, (4, 5, classes)), variance=1.0),
    }
    single, single_variance = node.single.copy(), node.single_variance.copy()
    found, variances = NoisyTables._within_classes(SimpleNamespace(pairs=pairs), 0, node, classes)
    for group in range(2):
        seen = np.concatenate([pairs[0, 1].counts[group].sum(0), pairs[2, 0].counts[:, group].sum(0), single[[group]]])
        noise = np.array([4 * 2.0] * classes + [5 * 3.0] * classes + [single_variance[group]])
        says = np.concatenate([np.eye(classes), np.eye(classes), np.ones((1, classes))])
        covariance = np.linalg.inv(says.T @ (says / noise[:, None]))
        best = covariance @ says.T @ (seen / noise)
        assert found[group] == pytest.approx(best)
        assert variances[group] == pytest.approx(np.diag(covariance))
        assert node.single[group] == pytest.approx(best.sum())
        assert node.single_variance[group] == pytest.approx(covariance.sum())


def test_a_column_that_is_in_no_pair_says_what_it_says():
    node = Node(leaves=SimpleNamespace())
    node.coarse, node.single, node.single_variance = np.array([0, 1]), np.array([50.0, 30.0]), np.array([4.0, 9.0])
    found, variances = NoisyTables._within_classes(SimpleNamespace(pairs={}), 0, node, 1)
    assert found.tolist() == [[50.0], [30.0]]
    assert variances.tolist() == [[4.0], [9.0]]
    found[0, 0] = variances[0, 0] = 7.0
    assert node.single[0] == 50.0
    assert node.single_variance[0] == 4.0


TARGET = """
doublure: 1
kind: table
units: 1000
columns:
  job: {{type: category, values: [a, b], missing: false}}
  paid: {{type: category, values: [{values}], missing: {missing}, roles: [{role}]}}
"""


FEW = [("a", ""), ("a, b", "paid"), ("a, b, c, d", "paid"), ("a, b, c, d, e", "")]


@pytest.mark.parametrize(
    ("role", "values", "missing", "found"),
    [
        *(("target", values, "false", found) for values, found in FEW),
        *(("condition", values, "false", found) for values, found in FEW),
        ("target", "a", "true", "paid"),
        ("target", "a, b, c, d", "true", ""),
    ],
)  # fmt: skip
def test_a_target_of_two_to_four_values_is_drawn_last(role, values, missing, found):
    schema = db.Schema.parse(TARGET.format(values=values, missing=missing, role=role))
    assert _few_valued(schema) == found
