"""ROC curves, the ceiling that a claim puts on them, and what they show of ε."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm

from doublure.attack import bounds, roc
from doublure.attack.attack_data import MOST_TARGETS


def gaussian(n: int, mu: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.normal(mu, 1, n), rng.normal(0, 1, n)


def test_the_curve_goes_from_nothing_to_everything():
    found = roc.roc(*gaussian(700, 1.0, 0))
    xs, ys = zip(*found.curve, strict=True)
    assert found.curve[0] == (0.0, 0.0)
    assert found.curve[-1] == (1.0, 1.0)
    assert list(xs) == sorted(xs)
    assert list(ys) == sorted(ys)
    assert len(found.curve) < 450
    low, high = found.interval
    assert low < norm.cdf(1 / math.sqrt(2)) < high


def test_rates_are_given_only_where_others_suffice():
    few, enough = roc.roc(*gaussian(999, 1.0, 1)), roc.roc(*gaussian(1000, 1.0, 1))
    assert [at.value is None for at in few.at] == [True, True]
    assert [at.value is None for at in enough.at] == [False, True]
    many = roc.roc(*gaussian(10_000, 1.0, 2))
    for at in many.at:
        truth = 1 - norm.cdf(norm.ppf(1 - at.false_positives) - 1.0)
        assert at.value == pytest.approx(truth, abs=0.02)
        assert at.interval[0] < at.value < at.interval[1]


def test_a_threshold_lets_no_more_strangers_through_than_it_says():
    """Of 1,000 non-members ten score above 989, which is 1 in 100; who scores as high is not found yet."""
    found = roc.roc(np.array([988.0, 989.0, 989.5, 990.0]), np.arange(1000.0))
    assert found.at[0].value == 0.5


def test_as_many_are_attacked_as_the_rarest_false_alarms_take():
    most = roc.roc(*gaussian(MOST_TARGETS, 1.0, 3))
    assert all(at.value is not None for at in most.at)


def test_the_ceiling_is_that_of_the_notes_and_never_above_one():
    assert [round(roc.ceiling(0.01, epsilon, 1e-5), 3) for epsilon in (1, 2, 4)] == [0.027, 0.074, 0.546]
    assert roc.ceiling(0.0, 3.0, 0.01) == pytest.approx(0.01)
    assert roc.ceiling(1.0, 3.0, 0.01) == 1.0
    assert roc.ceiling(0.5, 50.0, 0.0) <= 1.0


def test_randomised_response_reaches_its_ceiling_and_does_not_pass_it():
    """ε-DP is attained by randomised response: what is shown comes near ε, and is above it in one of twenty."""
    epsilon, share = 1.0, math.e / (1 + math.e)
    rng = np.random.default_rng(5)
    shown = []
    for _ in range(40):
        inside, outside = rng.random(4000) < share, rng.random(4000) < 1 - share
        shown.append(roc.shown_epsilon(inside.astype(float), outside.astype(float), 0.0, rng))
    assert 0.8 < np.median(shown) < 1.0
    assert sum(value > epsilon for value in shown) <= 6


def test_no_difference_shows_nothing():
    inside, outside = gaussian(2000, 0.0, 3)
    assert roc.shown_epsilon(inside, outside, 1e-5, np.random.default_rng(0)) < 0.2
    assert roc.shown_epsilon(np.ones(50), np.ones(50), 1e-5, np.random.default_rng(0)) == 0.0
    assert roc.shown_epsilon(np.ones(2), np.ones(2), 1e-5, np.random.default_rng(0)) == 0.0


def test_clopper_pearson_covers():
    assert roc.clopper_pearson(0, 100) == pytest.approx((0.0, 0.0362), abs=1e-4)
    assert roc.clopper_pearson(100, 100)[1] == 1.0
    low, high = roc.clopper_pearson(30, 100)
    assert (low, high) == pytest.approx((0.2124, 0.3998), abs=1e-4)  # the textbook's


def test_what_a_threshold_was_chosen_on_shows_nothing():
    """Perfect on the half that the threshold is chosen on, and blind on the other."""

    class InOrder:
        permutation = staticmethod(np.asarray)

    assert roc.shown_epsilon(np.repeat([1.0, 0.0], 50), np.zeros(100), 1e-5, InOrder()) == 0.0


def naive(right: int, guesses: int, canaries: int, epsilon: float, delta: float) -> float:
    """The published pseudo-code, term by term."""
    from scipy.stats import binom

    share = math.exp(epsilon) / (1 + math.exp(epsilon))
    best, total = 0.0, 0.0
    for i in range(1, right + 1):
        total += binom.pmf(right - i, guesses, share)
        best = max(best, total / i)
    return min(1.0, binom.sf(right - 1, guesses, share) + 2 * canaries * delta * best)


@pytest.mark.parametrize(
    "case", [(60, 100, 200, 0.5, 1e-5), (95, 100, 400, 2.0, 1e-4), (1, 3, 8, 0.0, 0.1), (7, 7, 9, 1.0, 0)]
)
def test_one_run_p_values_are_the_papers(case):
    assert bounds.one_run_p_value(*case) == pytest.approx(naive(*case), abs=1e-12)


def test_one_run_bounds_grow_with_right_guesses_and_stop_at_the_perfect_attack():
    shown = [bounds.one_run_epsilon(right, 100, 200, 1e-5) for right in (50, 60, 75, 90, 100)]
    assert shown == sorted(shown)
    assert shown[0] == 0.0
    assert shown[-1] == pytest.approx(3.49, abs=0.02)
    assert bounds.one_run_epsilon(0, 0, 10, 1e-5) == 0.0
    assert bounds.one_run_p_value(0, 10, 10, 1.0, 1e-5) == 1.0


@pytest.mark.parametrize(("n", "m"), [(200, 200), (1000, 300)])
def test_the_band_holds_the_whole_true_curve(n, m):
    """At 95 % by design, and mostly above it, since Bonferroni's correction gives more than was asked for."""
    shares = np.geomspace(1 / m, 1, 300)
    truth = 1 - norm.cdf(norm.ppf(1 - shares) - 1.0)
    held = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        low, high = roc.roc(rng.normal(1, 1, n), rng.normal(0, 1, m)).band.at(shares)
        held += bool(((low <= truth + 1e-6) & (truth <= high + 1e-6)).all())
    assert held >= 93


def test_a_curve_that_crosses_its_ceiling_by_chance_has_a_band_that_does_not():
    shares = np.geomspace(10 / 200, 1, 300)
    allowed = np.array([roc.ceiling(float(share), 0.1, 0.0) for share in shares])
    crossing = cleared = 0
    for seed in range(60):
        found = roc.roc(*gaussian(200, 0.1, seed))
        curve = np.array(found.curve)
        crossing += any(y > roc.ceiling(x, 0.1, 0.0) for x, y in curve[curve[:, 0] >= found.begins])
        cleared += bool((found.band.at(shares)[0] > allowed).any())
    assert crossing > 30
    assert cleared <= 3


def test_an_attacker_who_sees_everything_clears_any_ceiling():
    low, high = roc.roc(*gaussian(2000, 6.0, 0)).band.at(np.array([0.005, 0.5, 1.0]))
    assert low[0] > 0.9
    assert (low <= high).all()
    assert high[-1] == 1.0


def test_equal_scores_have_a_band_of_everything():
    low, high = roc.roc(np.ones(60), np.ones(60)).band.at(np.array([0.2, 0.9]))
    assert low.tolist() == [0.0, 0.0]
    assert high.tolist() == [1.0, 1.0]


def test_ten_others_say_nothing():
    assert roc.roc(*gaussian(10, 1.0, 0)).band is None
    assert roc.roc(*gaussian(11, 1.0, 0)).band is not None
