"""Distributions of all steps together, from noisy trees: tails go no farther than evidence, zeros stand out."""

from __future__ import annotations

import numpy as np
import pytest

from doublure.methods.statistics.series.smooth_density import smooth_shares

LEAVES, TOTAL = 64, 20_000.0


def tree(shares, noise, seed=0):
    """Return noisy differences of halves, coarse to fine, and the deviation of each level."""
    draw, found = np.random.default_rng(seed), []
    for level in range(6):
        halves = (shares * TOTAL).reshape(2**level, 2, -1).sum(2)
        found.append(halves[:, 0] - halves[:, 1] + draw.normal(0, noise, 2**level))
    return found, [noise] * 6


def counts():
    shares = 0.6 ** np.arange(LEAVES)
    shares[0] = 3 * shares.sum()
    return shares / shares.sum()


@pytest.mark.parametrize("noise", [20.0, 200.0])
def test_a_mean_is_kept_and_no_far_value_comes_of_noise(noise):
    place = np.arange(LEAVES)
    for seed in range(3):
        differences, deviations = tree(counts(), noise, seed)
        found = smooth_shares(differences, deviations, total=TOTAL, base=np.zeros(LEAVES), zero=0)
        assert found.sum() == pytest.approx(1)
        assert found @ place == pytest.approx(counts() @ place, rel=0.15)
        assert found[40:].sum() < 0.002
        assert found[0] == pytest.approx(counts()[0], abs=0.05)


def test_a_tail_falls_on_as_it_fell_before_noise_hides_it():
    shares = np.exp(-np.abs(np.arange(LEAVES) - 31.5) / 3)
    differences, deviations = tree(shares / shares.sum(), 100.0)
    found = smooth_shares(differences, deviations, total=TOTAL, base=np.zeros(LEAVES), zero=None)
    assert found[:16].sum() == pytest.approx((shares / shares.sum())[:16].sum(), rel=0.6)
    assert found[16:48].sum() > 0.97
