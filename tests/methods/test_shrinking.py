"""Groups are even where noise exceeds evidence, and what was counted where it does not."""

from __future__ import annotations

import numpy as np
import pytest

from doublure.methods.statistics.binning import project_to_simplex
from doublure.methods.statistics.tables.borrowing import shrink_to_even


def even(counts: np.ndarray, variances: np.ndarray, total: float) -> np.ndarray:
    return project_to_simplex(shrink_to_even(counts, variances, total=total), variances, total=total) / total


@pytest.mark.parametrize("counts", [[300.0, -300.0], [250.0, -20.0, -100.0, 40.0]])
def test_noise_that_exceeds_all_rows_decides_nothing(counts):
    """Whatever it says, also at three deviations."""
    shares = even(np.array(counts), np.full(len(counts), 100.0**2), 4.0)
    assert np.abs(shares - 1 / len(counts)).max() < 0.03


@pytest.mark.parametrize("counts", [[4000.0, 1000.0], [4975.0, 25.0], [2500.0, 1500.0, 700.0, 200.0, 60.0, 40.0]])
def test_clear_counts_stay(counts):
    counts, variances = np.array(counts), np.full(len(counts), 30.0**2)
    kept = even(counts, variances, 5000.0) * 5000
    assert np.abs(kept - counts).max() < 10  # a third of their noise


def test_errors_are_less_where_noise_is_as_large_as_what_differs():
    rng, real = np.random.default_rng(0), np.array([90.0, 75.0, 75.0, 73.0])
    shrunk, plain = [], []
    for _ in range(200):
        counts, variances = real + 40.0 * rng.standard_normal(4), np.full(4, 1600.0)
        shrunk.append(np.abs(even(counts, variances, 313.0) * 313 - real).sum())
        plain.append(np.abs(project_to_simplex(counts, variances, total=313.0) - real).sum())
    assert np.mean(shrunk) < 0.6 * np.mean(plain)


def test_one_group_has_all_rows():
    assert even(np.array([7.0]), np.array([100.0]), 12.0) == pytest.approx([1.0])
