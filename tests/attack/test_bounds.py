"""Lower bounds against closed forms and against known mechanisms."""

import math

import numpy as np
import pytest
from scipy.stats import norm

from doublure.attack import bounds
from doublure.private import accounting
from doublure.private.accounting import GaussianEvent


def gaussian_quantiles(shift: float, n: int) -> np.ndarray:
    """Noise-free scores of N(shift, 1): what an audit would see on average."""
    return norm.ppf((np.arange(n) + 0.5) / n) + shift


@pytest.mark.parametrize(("errors", "trials"), [(0, 10), (3, 50), (50, 50)])
def test_upper_rate_covers(errors: int, trials: int) -> None:
    from scipy.stats import binom

    upper = bounds.upper_rate(errors, trials, 0.05)
    assert upper == 1.0 or binom.cdf(errors, trials, upper) == pytest.approx(0.05, rel=1e-6)


def test_epsilon_from_rates_inverts_randomised_response() -> None:
    for epsilon in (0.1, 1.0, 4.0):
        rate = 1 / (1 + math.exp(epsilon))
        assert bounds.epsilon_from_rates(rate, rate, 0.0) == pytest.approx(epsilon)
    assert bounds.epsilon_from_rates(0.5, 0.5, 0.0) == 0.0


def test_gaussian_epsilon_agrees_with_the_accountant() -> None:
    for sigma in (0.5, 1.0, 3.0):
        claimed = accounting.epsilon_of([GaussianEvent(noise_multiplier=sigma)], 1e-5)
        assert bounds.gaussian_epsilon(1 / sigma, 1e-5) == pytest.approx(claimed, rel=2e-3)


def test_bounds_on_a_known_gaussian_lie_below_the_truth_and_near_it() -> None:
    truth = 1.0
    inside, outside = gaussian_quantiles(truth, 20_000), gaussian_quantiles(0.0, 20_000)
    rates = bounds.error_rates(inside, outside, threshold=2.0)
    shown = bounds.gaussian_mu(rates.upper_false_positives, rates.upper_false_negatives)
    assert 0.9 * truth < shown < truth
    epsilon = bounds.gaussian_epsilon(truth, 1e-5)
    assert bounds.epsilon_from_rates(rates.upper_false_positives, rates.upper_false_negatives, 1e-5) < epsilon


def test_trade_off_of_a_gaussian() -> None:
    event = GaussianEvent(noise_multiplier=1.0)
    for rate in (0.01, 0.2, 0.7):
        exact = norm.cdf(norm.ppf(1 - rate) - 1.0)
        found = bounds.trade_off(lambda at: accounting.delta_of([event], at), rate, largest=8.0)
        assert found <= exact + 1e-3
        assert found == pytest.approx(exact, abs=0.01)
