"""Scores of pairs that were not counted hold a mixture to the dependence that they show, and to no more."""

from __future__ import annotations

import numpy as np
import pytest

from doublure.methods.statistics.tables.mixture_fit import NoisyMarginals, fit_mixture
from doublure.methods.statistics.tables.pair_errors import pair_errors
from doublure.methods.statistics.tables.score_errors import ScoredPairs

ROWS = 4000.0
SHARES = [np.array([0.5, 0.3, 0.2]), np.array([0.1, 0.2, 0.3, 0.4]), np.array([0.7, 0.3])]


def scored(*, score=300.0, variance=400.0, unknown=()):
    scores = np.full((3, 3), score)
    np.fill_diagonal(scores, np.nan)
    for one, other in unknown:
        scores[one, other] = scores[other, one] = np.nan
    return ScoredPairs(SHARES, scores, variance=variance, rows=ROWS, rng=np.random.default_rng(5))


def mixture(rng, components=5):
    parts = [rng.dirichlet(np.full(len(own), 2.0), components) for own in SHARES]
    return np.concatenate(parts, axis=1).astype(np.float32)


def loss(probabilities, **more):
    return scored(**more).errors(probabilities, 0)[0]


def test_the_gradient_is_that_of_the_errors():
    rng = np.random.default_rng(0)
    at = mixture(rng).astype(np.float64)
    slope = scored().errors(at, 0)[2]
    for component, group in [(0, 0), (2, 4), (4, 8), (3, 6)]:
        moved = np.zeros_like(at)
        moved[component, group] = 1e-3
        numeric = (loss(at + moved) - loss(at - moved)) / 2e-3
        assert slope[component, group] == pytest.approx(numeric, rel=0.02)


def test_a_score_is_expected_as_rows_have_it():
    """A table of drawn rows has the expected score of its probabilities, at no dependence and at some."""
    rng = np.random.default_rng(1)
    independent = np.outer(SHARES[0], SHARES[1])
    for lean in (0.0, 0.01, 0.025):
        joint = independent.copy()
        joint[0, 0] += lean
        joint[1, 1] += lean
        joint[0, 1] -= lean
        joint[1, 0] -= lean
        drawn = rng.multinomial(ROWS, joint.ravel(), size=4000).reshape(-1, 3, 4)
        by_chance = np.sqrt(2 / np.pi) * np.sqrt(ROWS * independent).sum()
        real = np.abs(drawn - ROWS * independent).sum((1, 2)).mean() - by_chance
        # A mixture with a component for each cell has this joint table.
        cells = rng.multinomial(200_000, joint.ravel())
        kinds = np.repeat(np.arange(12), cells)
        every = np.concatenate([np.eye(3)[kinds // 4], np.eye(4)[kinds % 4], np.tile(SHARES[2], (len(kinds), 1))], 1)
        missed = scored(score=real, variance=1.0, unknown=[(0, 2), (1, 2)]).errors(every.astype(np.float32), 0)[0]
        assert np.sqrt(missed) < 0.1 * by_chance  # which a score knows as little better


def test_a_pair_without_a_score_does_not_pull():
    at = mixture(np.random.default_rng(2))
    squared, _, slope = scored(unknown=[(0, 1), (0, 2), (1, 2)]).errors(at, 0)
    assert squared == 0
    assert not slope.any()


def noisy_tables(rng):
    """Three columns that are nearly one, and one that goes with none, of which one pair is counted; all with noise."""
    place = rng.integers(0, 12, 4000)
    columns = [place, (place + (rng.random(4000) < 0.05)) % 12, place // 2, rng.integers(0, 6, 4000)]
    sizes = [12, 12, 6, 6]
    counted = [(0, 1), (0, 2), (1, 2), (2, 3)]
    noise = 10.0
    known = {}
    for one, other in counted:
        exact = np.zeros((sizes[one], sizes[other]))
        np.add.at(exact, (columns[one], columns[other]), 1)
        known[one, other] = (
            (exact + noise * rng.normal(size=exact.shape)) / 4000,
            np.full(exact.shape, 4000**2 / noise**2),
        )
    shares = [np.bincount(own, minlength=size) / 4000 for own, size in zip(columns, sizes, strict=True)]
    scores = np.full((4, 4), np.nan)
    for one in (0, 1):
        scores[one, 3] = scores[3, one] = 30 * rng.normal()
    return sizes, known, shares, ScoredPairs(shares, scores, variance=900.0, rows=4000.0, rng=rng)


def test_what_scores_say_is_independent_stays_so():
    """Noise that a mixture fits makes columns dependent that were not counted together: their score says otherwise."""
    apart = []
    for with_scores in (False, True):
        rng = np.random.default_rng(3)
        sizes, known, shares, scores = noisy_tables(rng)
        single = np.concatenate(shares).astype(np.float32)
        wanted = NoisyMarginals(
            sizes=sizes, single=single, single_precision=np.full(len(single), 4000**2 / 9.0, dtype=np.float32),
            pairs=pair_errors(sizes, known), scored=scores if with_scores else None,
        )  # fmt: skip
        found = fit_mixture(wanted, components=64, steps=600, prior=0.3, rng=np.random.default_rng(0)).probabilities
        joint = found.T @ found / len(found)
        apart.append(np.abs(joint[:12, 30:] - np.outer(shares[0], shares[3])).sum() / 2)
    assert apart[1] < 0.6 * apart[0]


def test_columns_of_a_wide_table_take_turns_and_stand_for_all():
    rng = np.random.default_rng(4)
    shares = [np.full(10, 0.1)] * 60
    scores = np.full((60, 60), 100.0)
    np.fill_diagonal(scores, np.nan)
    wide = ScoredPairs(shares, scores, variance=1.0, rows=ROWS, rng=rng)
    at = np.concatenate([rng.dirichlet(np.ones(10), 4) for _ in shares], axis=1).astype(np.float32)
    squared, met = [], set()
    for step in range(0, 4 * 30, 4):
        found, groups, slope = wide.errors(at, step)
        assert slope.shape == (4, len(groups))
        assert len(groups) <= 256
        squared.append(found)
        met |= {*groups.tolist()}
    assert len(met) == 600
    whole = ScoredPairs(shares, scores, variance=1.0, rows=ROWS, rng=rng)
    whole._next_columns = lambda: np.arange(60)
    assert np.mean(squared) == pytest.approx(whole.errors(at, 0)[0], rel=0.05)
