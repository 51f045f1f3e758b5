"""Correlations behind scores of values that repeat, against simulation; and the nearest covariance."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from doublure.methods.statistics.series.coarse_scores import CoarseScores
from doublure.methods.statistics.series.covariance import make_positive, nearest_positive

TABLES = np.array([[0, 0.8, 0.9, 0.97, 1.0], [0, 0.25, 0.5, 0.75, 1.0], [0, 0.1, 0.2, 0.6, 1.0]])
SINGLE = np.array([[1, 1, 1, 0], [1, 1, 1, 1], [0, 0, 0, 0]], dtype=bool)
DRAWS = 400_000


def scores(part: int, numbers: np.ndarray) -> np.ndarray:
    cell = np.clip(np.searchsorted(TABLES[part], ndtr(numbers)) - 1, 0, 3)
    middle = ndtri((TABLES[part][cell] + TABLES[part][cell + 1]) / 2)
    return np.where(SINGLE[part][cell], middle, numbers)


@pytest.mark.parametrize("correlation", [0.95, 0.5, -0.7])
def test_correlations_of_channels_come_back(correlation):
    draw = np.random.default_rng(0)
    shared = draw.normal(size=DRAWS)
    numbers = [
        np.sqrt(abs(correlation)) * shared * (np.sign(correlation) if part == 0 else 1)
        + np.sqrt(1 - abs(correlation)) * draw.normal(size=DRAWS)
        for part in range(3)
    ]
    found = np.corrcoef([scores(part, own) for part, own in enumerate(numbers)])
    factors = CoarseScores.of(TABLES, SINGLE, length=1).between_channels(found)
    wanted = np.array([[np.corrcoef(one, other)[0, 1] for one in numbers] for other in numbers])
    assert np.abs(found - wanted).max() > 0.1 * abs(correlation)
    np.testing.assert_allclose(found * factors, wanted, atol=0.01)


def test_variances_are_those_of_scores():
    draw = np.random.default_rng(0).normal(size=DRAWS)
    found = CoarseScores.of(TABLES, SINGLE, length=1).variances
    np.testing.assert_allclose(found, [scores(part, draw).var() for part in range(3)], atol=0.01)


def test_fine_values_and_single_channels_are_left_alone():
    both = np.array([[1, 0.5], [0.5, 1]])
    assert CoarseScores.of(TABLES[[2, 2]], SINGLE[[2, 2]], length=1).between_channels(both) is None
    assert CoarseScores.of(TABLES[:2], SINGLE[:2], length=2).between_channels(both) is None


def test_the_nearest_covariance_is_nearer_than_a_floor_and_keeps_the_diagonal():
    wrong = np.array([[1, 0.95, 0.3], [0.95, 1, 0.9], [0.3, 0.9, 1]]) * 4
    near, floor = nearest_positive(wrong), make_positive(wrong)
    assert np.linalg.eigvalsh(near).min() > 0
    np.testing.assert_allclose(np.diag(near), 4)
    assert np.linalg.norm(near - wrong) < np.linalg.norm(floor - wrong)
    np.testing.assert_allclose(nearest_positive(floor), floor, atol=1e-3)
