"""Intervals of shares are those of SciPy, which computes a p-value beside each."""

from __future__ import annotations

import pytest
from scipy.stats import binomtest

from doublure.intervals import wilson


@pytest.mark.parametrize("n", [1, 2, 10, 97, 30_000])
@pytest.mark.parametrize("level", [0.5, 0.95])
def test_wilsons_interval_is_that_of_scipy(n, level):
    for successes in {0, 1, n // 3, n - 1, n}:
        ends = binomtest(successes, n).proportion_ci(level, method="wilson")
        assert wilson(successes, n, level=level) == pytest.approx((ends.low, ends.high), abs=1e-15)


def test_without_trials_there_is_none():
    assert wilson(0, 0) is None
