"""Distances between sets of images in a space of features, against slow or closed forms."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import sqrtm
from sklearn import config_context

from doublure.measures.images.distribution_metrics import (
    NEIGHBOURS,
    frechet_distance,
    inception_score,
    precision_and_recall,
)


def drawn(n, seed, shift=0.0, stretch=1.0, d=4):
    mixing = np.random.default_rng(99).normal(size=(d, d))
    return np.random.default_rng(seed).normal(size=(n, d)) @ mixing * stretch + shift


def test_the_frechet_distance_is_that_of_the_matrix_root():
    first, second = drawn(300, 1), drawn(200, 2, shift=0.5, stretch=1.3)
    one, other = np.cov(first.T), np.cov(second.T)
    slow = np.square(first.mean(0) - second.mean(0)).sum() + np.trace(one + other - 2 * sqrtm(one @ other).real)
    assert frechet_distance(first, second) == pytest.approx(slow, rel=1e-8)
    assert frechet_distance(first, second) == pytest.approx(frechet_distance(second, first), rel=1e-8)
    assert frechet_distance(first, first) < 1e-8
    assert frechet_distance(first[:, :1], first[:, :1] + 3) == pytest.approx(9)  # one feature


def test_the_inception_score_is_one_without_information_and_k_at_most():
    rng = np.random.default_rng(0)
    chances = rng.dirichlet(np.ones(5), 50)
    slow = np.exp(np.mean([np.sum(p * np.log(p / chances.mean(0))) for p in chances]))
    assert inception_score(chances) == pytest.approx(slow)
    assert inception_score(np.eye(3)[[0, 1, 2, 0, 1, 2]]) == pytest.approx(3)
    assert inception_score(np.eye(3)[[0, 0, 0]]) == pytest.approx(1)  # sure, and always of the same


def test_precision_falls_with_strangers_and_recall_with_a_lost_part():
    rng = np.random.default_rng(3)
    real = np.concatenate([rng.normal(size=(300, 2)), rng.normal(size=(300, 2)) + 20])
    alike = np.concatenate([rng.normal(size=(300, 2)), rng.normal(size=(300, 2)) + 20])
    strange = np.concatenate([alike[:300], rng.normal(size=(300, 2)) - 40])
    assert min(precision_and_recall(alike, real)) > 0.9
    precision, recall = precision_and_recall(alike[:300], real)
    assert precision > 0.9
    assert 0.4 < recall < 0.55
    precision, recall = precision_and_recall(strange, real)
    assert 0.4 < precision < 0.55
    assert 0.4 < recall < 0.55


def test_precision_and_recall_are_what_the_slow_way_gives():
    one, other = drawn(40, 4), drawn(30, 5, shift=1.0)

    def covered(points, by):
        apart = np.linalg.norm(by[:, None] - by[None], axis=2)
        radius = np.sort(apart, axis=1)[:, NEIGHBOURS]  # the first is itself
        return np.mean([(np.linalg.norm(by - point, axis=1) <= radius).any() for point in points])

    slow = covered(one, other), covered(other, one)
    assert precision_and_recall(one, other) == pytest.approx(slow)
    with config_context(working_memory=1e-3):  # a few rows at a time
        assert precision_and_recall(one, other) == pytest.approx(slow)
    assert precision_and_recall(one, other[:1])[0] == 0.0  # one image has no neighbour
