"""What is compared of series, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from doublure.data.series import Series
from doublure.measures.series.statistics import (
    autocorrelation,
    compared_steps,
    correlation,
    ks_statistic,
    normalised_wasserstein,
    series_statistics,
    share_of_frequent,
    sorted_runs,
    spectrum,
    wasserstein_by_step,
)


def test_an_autocorrelation_by_hand():
    """A wave of two steps and one that never changes; gaps count as the mean."""
    values = np.array([[1.0, -1, 1, -1], [5, 5, 5, 5], [np.nan] * 4])
    assert autocorrelation(values) == pytest.approx([-0.75, 0.5])
    assert autocorrelation(np.array([[1.0, np.nan, 1, -2]])) == pytest.approx([-2 / 6, 1 / 6])
    assert (autocorrelation(np.full((3, 6), 2.0)) == 0).all()


def test_a_spectrum_by_hand():
    """Each wave stands at its own frequency, whatever its amplitude; flat series have none."""
    turns = 2 * np.pi * np.arange(8) / 8
    waves = np.stack([100 * np.sin(turns), np.cos(3 * turns) + 7, np.full(8, 4.0)])
    assert spectrum(waves) == pytest.approx([0.5, 0, 0.5, 0])
    assert (spectrum(np.full((2, 8), np.nan)) == 0).all()
    gap = waves[:1].copy()
    gap[0, 0] = np.nan  # zero there anyway
    assert spectrum(gap) == pytest.approx([1, 0, 0, 0])


def test_blocks_do_not_show(monkeypatch):
    from doublure.measures.series import statistics as module

    values = np.random.default_rng(0).normal(size=(50, 6))
    whole = autocorrelation(values), spectrum(values)
    monkeypatch.setattr(module, "_BLOCK_NUMBERS", 40)
    assert autocorrelation(values) == pytest.approx(whole[0])
    assert spectrum(values) == pytest.approx(whole[1])


def test_distances_by_hand():
    assert correlation(np.array([1.0, 2, np.nan]), np.array([2.0, 4, 9])) == pytest.approx(1.0)
    assert correlation(np.ones(3), np.arange(3.0)) is None
    assert ks_statistic(np.array([1.0, 2]), np.array([3.0, 4])) == 1.0
    assert ks_statistic(np.zeros(0), np.ones(1)) is None
    # {0, 2} and {1}: one has to move by 1 on average, and two that are drawn are 1 apart.
    assert normalised_wasserstein(np.array([2.0, 0]), np.array([1.0])) == pytest.approx(1.0)
    # {0, 2} and {0, 2, 2, 2}: a quarter moves by 2; two that are drawn differ half of the time.
    assert normalised_wasserstein(np.array([0.0, 2]), np.array([2.0, 0, 2, 2])) == pytest.approx(0.5)
    assert normalised_wasserstein(np.ones(3), np.ones(5)) == 0.0
    assert normalised_wasserstein(np.ones(3), np.zeros(0)) is None


def test_a_distance_at_each_step_has_no_units():
    rng = np.random.default_rng(1)
    one, other = rng.normal(size=(400, 3)), rng.normal(size=(300, 3))
    other[:, 1] += 3
    one[:, 2] = np.nan
    found = wasserstein_by_step(one, other)
    assert found[0] < 0.1
    assert found[1] > 0.8
    assert np.isnan(found[2])
    assert wasserstein_by_step(1000 * one + 7, 1000 * other + 7) == pytest.approx(found, nan_ok=True)


def test_long_series_are_compared_at_some_steps():
    assert compared_steps(5).tolist() == [0, 1, 2, 3, 4]
    found = compared_steps(10_000)
    assert (len(found), found[0], found[-1]) == (200, 0, 9_999)


def test_levels_peaks_and_their_steps(schema, waves):
    values = np.full((3, 12, 2), np.nan)
    values[0, :, 0] = np.arange(12)
    values[1, 3:5, 0] = [2.0, 2.0]
    some = waves(3, 1)
    found = series_statistics(schema, Series(values=values, channels=some.channels, attributes=some.attributes))
    assert found.levels["a"].tolist() == [2.0, 5.5]
    assert found.peaks["a"].tolist() == [2.0, 11.0]
    assert found.peak_steps["a"].tolist() == [11.0]  # the second never changes
    assert not len(found.peaks["b"])
    assert found.missing == pytest.approx(1 - 14 / 72)


def test_runs_are_counted_above_what_a_tenth_of_real_values_exceed(schema, waves):
    some = waves(2, 1)
    values = np.zeros((2, 12, 2))
    values[0, [1, 2], 0] = 9.0
    real = series_statistics(schema, Series(values=values, channels=some.channels, attributes=some.attributes))
    bursts = np.zeros((2, 12, 2))
    bursts[0, [0, 3, 4, 5, 11], 0] = 1.0
    bursts[1, 4, 0] = np.nan
    other = series_statistics(schema, Series(values=bursts, channels=some.channels, attributes=some.attributes))
    assert [found.tolist() for found in sorted_runs(real, real, "a")] == [[0.0, 1.0], [0.0, 2.0]]
    assert [found.tolist() for found in sorted_runs(real, other, "a")] == [[0.0, 3.0], [0.0, 3.0]]
    assert share_of_frequent(real, other, "a") == pytest.approx(18 / 23)
    assert share_of_frequent(real, real, "a") == pytest.approx(22 / 24)


def test_where_nothing_is_observed_there_are_no_runs(schema, waves):
    some = waves(2, 1)
    gone = Series(values=np.full((2, 12, 2), np.nan), channels=some.channels, attributes=some.attributes)
    real = series_statistics(schema, gone)
    assert [len(found) for found in sorted_runs(real, real, "a")] == [0, 0]
    assert share_of_frequent(real, real, "a") is None
