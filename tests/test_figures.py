"""Intervals against closed forms, and against what repetition says."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from doublure.intervals import delong, finite, paired_difference, wilson


def test_wilson_agrees_with_its_closed_form():
    # Wilson's ends solve (p - x)^2 = z^2 p (1 - p) / n.
    low, high = wilson(7, 20)
    for end in (low, high):
        assert (end - 0.35) ** 2 == pytest.approx(1.959963985**2 * end * (1 - end) / 20, rel=1e-6)
    assert low < 0.35 < high


def test_wilson_at_the_ends():
    assert wilson(0, 2_000)[0] == 0
    assert wilson(2_000, 2_000)[1] == 1
    assert wilson(0, 10)[1] > 0.2
    assert wilson(0, 0) is None


def test_paired_difference_covers_the_truth():
    rng = np.random.default_rng(0)
    draws = rng.multinomial(60, [0.15, 0.05, 0.8], size=2000)
    inside = 0
    for first, second, _ in draws:
        low, high = paired_difference(int(first), int(second), 60)
        inside += low <= 0.10 <= high
    assert 0.935 < inside / 2000 < 0.975


def test_paired_difference_has_a_sign_and_a_level():
    assert paired_difference(20, 2, 100)[0] > 0
    assert paired_difference(2, 20, 100)[1] < 0
    wide, narrow = paired_difference(20, 2, 100, level=0.999), paired_difference(20, 2, 100)
    assert wide[0] < narrow[0] < narrow[1] < wide[1]
    assert paired_difference(0, 0, 0) is None


def test_delongs_interval_is_as_wide_as_repetition_says():
    rng = np.random.default_rng(2)
    values, widths = [], []
    for _ in range(300):
        truth = rng.integers(0, 2, 150)
        chance = truth + rng.normal(size=150)
        value, interval = delong(truth == 1, chance)
        values.append(value)
        widths.append(interval[1] - interval[0])
    assert np.mean(widths) == pytest.approx(2 * 1.96 * np.std(values), rel=0.12)


@pytest.mark.parametrize(("m", "n"), [(5, 40), (40, 5), (2, 2)])
def test_sides_that_lie_apart_leave_an_end_open(m, n):
    """Clopper and Pearson's end for as many pairs as the smaller side makes, and the other way round."""
    scores, first = np.arange(m + n, dtype=float), np.arange(m + n) < m
    least = 0.025 ** (1 / min(m, n))
    assert delong(first, -scores) == (1.0, (pytest.approx(least), 1.0))
    assert delong(first, scores) == (0.0, (0.0, pytest.approx(1 - least)))


def test_delongs_area_is_that_of_the_curve_and_of_one_class_there_is_none():
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 2, 200)
    chance = (truth * 0.3 + rng.random(200)).round(1)
    area, interval = delong(truth == 1, chance)
    assert area == pytest.approx(roc_auc_score(truth, chance))
    assert interval[0] < area < interval[1]
    assert delong(np.zeros(5, dtype=bool), np.arange(5.0)) == (None, None)
    assert delong(np.array([True, False, False]), np.arange(3.0)) == (0.0, None)  # one member shows no spread


def test_what_is_not_finite_is_not_known():
    assert [finite(value) for value in (1.5, float("nan"), float("-inf"))] == [1.5, None, None]
