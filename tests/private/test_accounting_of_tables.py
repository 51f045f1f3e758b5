"""What many tables of counts cost together: exact by their noise's sum, in blocks, on a grid, and never too little."""

from __future__ import annotations

import math

import numpy as np
import pytest
from dp_accounting.pld import pld_pmf
from scipy import stats

from doublure.errors import SettingError
from doublure.private import accounting
from doublure.private.accounting import DiscreteGaussianEvent, GaussianEvent, curves


def tables(multiplier, count):
    return DiscreteGaussianEvent(scale=multiplier * math.sqrt(count), tables=count)


def exact_delta(event, epsilon):
    """Return δ by adding up outcomes: one convolution of positive numbers a table, no grid and no Fourier space."""
    reach = math.ceil(12 * event.scale)
    noise = np.arange(-reach, reach + 1)
    mass = np.exp(-((noise / event.scale) ** 2) / 2)
    sums = mass / mass.sum()
    for _ in range(event.tables - 1):
        sums = np.convolve(sums, mass / mass.sum())
    losses = (event.tables + 2 * (np.arange(len(sums)) - len(sums) // 2)) / (2 * event.scale**2)
    above = losses > epsilon
    return float((sums[above] * -np.expm1(epsilon - losses[above])).sum())


@pytest.mark.parametrize("together", [1, 2, 5])
@pytest.mark.parametrize(("scale", "count"), [(0.6, 3), (2.5, 11), (9.0, 24)])
def test_blocks_lose_next_to_nothing_and_never_too_much(monkeypatch, together, scale, count):
    event = DiscreteGaussianEvent(scale=scale, tables=count)
    monkeypatch.setattr(curves, "_cells_together", lambda scale, cells: min(together, cells))
    for epsilon in (0.1, 0.7, 2.0, 6.0):
        exact = exact_delta(event, epsilon)
        found = accounting.delta_of([event], epsilon)
        assert exact * (1 - 1e-9) <= found <= exact * 1.005 + 1e-12


@pytest.mark.parametrize("multiplier", [1.0, 4.0, 40.0])
@pytest.mark.parametrize("count", [300, 4_950, 20_000, 500_000])
def test_however_many_they_cost_what_a_gaussian_of_their_size_does(multiplier, count):
    found = accounting.epsilon_of([tables(multiplier, count)], 1e-6)
    assert found == pytest.approx(accounting.epsilon_of([GaussianEvent(noise_multiplier=multiplier)], 1e-6), rel=0.01)


@pytest.mark.parametrize(("scale", "count"), [(30.0, 10_000), (100.0, 20_000), (20.0, 100_000)])
def test_what_a_power_rounds_off_is_within_the_allowance(monkeypatch, scale, count):
    """So much noise sums up to a normal density, whose tails the power in Fourier space may not understate by more."""
    monkeypatch.setattr(curves, "_cells_together", lambda scale, cells: cells)
    event = DiscreteGaussianEvent(scale=scale, tables=count)
    # On a grid of its own losses, (k + 2 S) / 2σ², no outcome is moved, so that the sum S can be read back.
    held = curves._of_block(scale, count, 1 / scale**2)._pmf_remove.to_dense_pmf()
    sums = held._lower_loss + np.arange(len(held._probs)) - count // 2
    missing = stats.norm.pdf(sums, scale=scale * math.sqrt(count)) - held._probs
    short = np.cumsum(missing[sums > 0][::-1]).max()
    assert short <= curves._rounding(event, count, "add-remove")


@pytest.mark.parametrize(("scale", "interval"), [(0.7, 1e-2), (0.7, 1e-4), (40.0, 1e-5), (40.0, 1e-3)])
def test_an_array_is_what_a_dictionary_would_become(monkeypatch, scale, interval):
    """Fewer losses stay in a dictionary, as dp-accounting has them: it composes them otherwise."""
    found = curves._of_block(scale, 30, interval)._pmf_remove
    assert curves._SPARSE == pld_pmf._MAX_PMF_SPARSE_SIZE
    monkeypatch.setattr(curves, "_SPARSE", math.inf)
    wanted = curves._of_block(scale, 30, interval)._pmf_remove
    assert type(found) is type(wanted)
    for one, other in zip(vars(found).values(), vars(wanted).values(), strict=True):
        assert np.array_equal(one, other)


def test_too_much_noise_for_one_accountant_is_left_to_the_other():
    event = DiscreteGaussianEvent(scale=1e9, tables=100)
    with pytest.raises(SettingError, match="rdp"):
        accounting.epsilon_of([event], 1e-9)
    assert 0 < accounting.epsilon_of([event], 1e-9, accountant="rdp") < 0.1
