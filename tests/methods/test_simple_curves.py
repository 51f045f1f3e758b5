"""Where one curve fits noise best, a mean of simple ones stands in, whose rows and size are off by little."""

from __future__ import annotations

import numpy as np
import pytest

from doublure.methods.statistics.tables.simple_curves import CountedSpans, SimpleCurves, _balanced

CELLS = 60
MIDDLE = np.append(0.0, 1.2 ** np.arange(CELLS - 1))


def average(counts: np.ndarray, noise: float, *, drawn: bool = True):
    curves = SimpleCurves(np.ones(CELLS), MIDDLE, tapers=True, scale=None)
    none = CountedSpans(inside=np.zeros((0, CELLS), bool), counts=np.zeros(0), precision=np.zeros(0))
    return curves.average(counts, np.full(CELLS, 1 / noise**2), none, drawn=drawn)


def mean(found) -> float:
    rows = np.exp(found.density) * ~found.alone
    return float(rows @ MIDDLE / rows.sum())


def test_the_mean_is_the_geometric_one_where_sizes_are_unknown():
    chances, means = np.array([0.5, 0.3, 0.2]), np.array([1.0, 100.0, 1e6])
    assert _balanced(chances, means) @ means == pytest.approx(np.exp(chances @ np.log(means)), rel=1e-6)
    assert _balanced(chances, np.full(3, 7.0)) == pytest.approx(chances)


def test_unseen_rows_are_neither_near_nor_far():
    counts = np.zeros(CELLS)
    counts[0] = 5000.0
    middle = np.exp(np.log(MIDDLE[1:]).mean())
    assert middle / 5 < mean(average(counts, 100.0)) < middle * 5
    assert mean(average(counts, 100.0, drawn=False)) > 10 * middle  # where to look for them


@pytest.mark.parametrize(("rows", "least", "most"), [(0.0, 0.0, 0.3), (1000.0, 0.99, 1.0)])
def test_rows_beside_those_that_stand_out_need_evidence(rows, least, most):
    counts = np.zeros(CELLS)
    counts[[0, 30]] = 5000.0, rows / 4
    counts[28:30] = counts[31:33] = rows * 3 / 16
    found = average(counts, 60.0)
    assert found.alone[0]
    assert least <= found.others <= most


def test_a_cell_stands_out_of_its_neighbours_and_of_nothing():
    counts = np.full(CELLS, -300.0)
    counts[-1] = 150.0
    assert not average(counts, 100.0).alone.any()
