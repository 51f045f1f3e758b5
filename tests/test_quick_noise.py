"""What draws in place of OpenDP has its law and its price, and draws where it may."""

from __future__ import annotations

import math

import numpy as np
import pytest
import quick_noise
import tiers
from scipy import stats

from doublure.private import whole_noise

ALPHA = 1e-6


def p_value(noise, scale):
    """Return the chi² p-value against the discrete Gaussian, its tails pooled."""
    edge = math.ceil(3 * scale)
    values = np.arange(-12 * math.ceil(scale), 12 * math.ceil(scale) + 1)
    chances = np.exp(-((values / scale) ** 2) / 2)
    expected = np.bincount(np.clip(values, -edge, edge) + edge, weights=chances / chances.sum())
    return stats.chisquare(
        np.bincount(np.clip(noise, -edge, edge) + edge, minlength=2 * edge + 1), expected * noise.size
    ).pvalue


@pytest.mark.parametrize("scale", [0.4, 0.7, 3.0, 40.0])
def test_it_has_the_law_of_a_discrete_gaussian(scale):
    noise = quick_noise.drawn(100_000, scale)
    assert p_value(noise, scale) > ALPHA
    assert p_value(noise, scale * 1.05) < ALPHA
    assert p_value(noise, scale / 1.05) < ALPHA


def test_of_a_large_scale_too():
    noise = quick_noise.drawn(100_000, 3e6)
    assert noise.dtype == np.int64
    assert stats.kstest(noise / 3e6, "norm").pvalue > ALPHA
    assert not quick_noise.drawn(100, 1e-200).any()


@pytest.fixture
def asked(monkeypatch):
    """Return how often it drew."""
    counts, drawn = [], quick_noise.drawn
    monkeypatch.setattr(quick_noise, "drawn", lambda size, scale: counts.append(size) or drawn(size, scale))
    return counts


@pytest.mark.skipif(tiers.ALL, reason="OpenDP draws where everything runs")
def test_it_draws_what_is_asked_for_and_prices_by_opendp(asked):
    found = whole_noise.gaussian(np.full((100, 400), 9), scale=3.0)
    assert p_value(found.values.ravel() - 9, 3.0) > ALPHA
    assert found.scale == pytest.approx(3.0, rel=1e-12)
    assert asked == [2**15, 40_000 - 2**15]


@pytest.mark.parametrize("name", quick_noise.REAL)
def test_opendp_draws_where_noise_is_what_is_tested(asked, name):
    assert (tiers.TESTS / name).exists()
    quick_noise.choose(tiers.TESTS / name)
    assert whole_noise.gaussian([1, 2], scale=3.0).values.shape == (2,)
    assert asked == []


def test_opendp_draws_where_everything_runs(asked, monkeypatch):
    monkeypatch.setattr(tiers, "ALL", True)
    quick_noise.choose(tiers.TESTS / "test_fitting.py")
    assert whole_noise.gaussian([1], scale=3.0).values.shape == (1,)
    assert asked == []
