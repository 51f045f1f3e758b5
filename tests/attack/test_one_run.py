"""f-DP in one run: the bound is the best that its inequality gives, holds on known mechanisms, and finds faults."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.stats import binom

from doublure.attack import bounds, canary, f_dp, one_run
from doublure.attack import registry as table
from doublure.attack.results import Claim

ALPHA = 0.05


def gaussian_guesses(mu, rng, canaries=400):
    """Return right and all guesses against m canaries, each seen through noise of a known μ by itself."""
    inside = rng.random(canaries) < 0.5
    return canary.guess(inside + rng.normal(size=canaries) / mu, inside)


@pytest.mark.parametrize(
    ("profile", "right", "guesses", "canaries"),
    [
        ([(1.0, 0.0)], 10, 12, 12),
        ([(0.5, 0.02), (2.0, 1e-3)], 9, 10, 40),
        ([(0.0, 0.3), (1.0, 0.05), (3.0, 1e-4)], 14, 14, 20),
    ],
)
def test_the_bound_is_the_most_that_a_linear_programme_finds(profile, right, guesses, canaries):
    """Every law of the number of right guesses that obeys (1), pair by pair of the profile, and the one with most."""
    counts = np.arange(guesses + 1)
    rows, limits = [], []
    for t in range(1, guesses + 1):
        right_above = np.where(counts >= t, counts, 0) / canaries
        wrong_above = np.where(counts >= t - 1, guesses - counts, 0) / canaries
        for epsilon, delta in profile:
            rows += [right_above - math.exp(epsilon) * wrong_above, right_above - math.exp(-epsilon) * wrong_above]
            limits += [delta, 1 - math.exp(-epsilon) * (1 - delta)]
    objective = -(counts >= right).astype(float)
    found = linprog(objective, np.array(rows), limits, np.ones((1, guesses + 1)), [1.0], bounds=(0, 1))
    assert f_dp.p_value(right, guesses, canaries, f_dp.of_profile(profile)) == pytest.approx(-found.fun, rel=1e-6)


def test_without_privacy_loss_the_bound_is_near_a_fair_coin():
    allowed = f_dp.of_gaussian(0.0)
    for right in (60, 70, 80):
        exact = binom.sf(right - 1, 100, 0.5)
        assert exact <= f_dp.p_value(right, 100, 100, allowed) <= 1.3 * exact


def test_pure_privacy_is_judged_as_by_the_papers_binomial():
    """Randomised response on every canary is the worst of (ε, 0)-DP; its probabilities are a binomial's."""
    share = math.e / (1 + math.e)
    for right in (80, 85, 90):
        exact = binom.sf(right - 1, 100, share)
        assert exact <= f_dp.p_value(right, 100, 100, f_dp.of_profile([(1.0, 0.0)])) <= 1.3 * exact


@pytest.mark.parametrize("mu", [0.5, 1.0, 2.0])
def test_a_gaussian_mechanism_is_hardly_ever_accused(mu):
    rng = np.random.default_rng(1)
    chances = [f_dp.p_value(*gaussian_guesses(mu, rng), 400, f_dp.of_gaussian(mu)) for _ in range(100)]
    assert sum(chance <= ALPHA for chance in chances) <= binom.ppf(0.999, 100, ALPHA)


@pytest.mark.parametrize("mu", [0.5, 2.0])
def test_what_is_shown_of_a_gaussian_mechanism_lies_below_its_epsilon(mu):
    rng, true = np.random.default_rng(2), bounds.gaussian_epsilon(mu, 1e-5)
    shown = [f_dp.refuted(*gaussian_guesses(mu, rng), 400, f_dp.of_gaussian, ALPHA) for _ in range(8)]
    assert sum(bounds.gaussian_epsilon(one, 1e-5) > true for one in shown) <= binom.ppf(0.999, 8, ALPHA)


def test_too_little_noise_is_found_and_more_is_shown_than_by_one_pair():
    rng, found = np.random.default_rng(3), []
    for _ in range(6):
        right, guesses = gaussian_guesses(3.0, rng, 1000)
        found.append(f_dp.p_value(right, guesses, 1000, f_dp.of_gaussian(1.0)))
        assert found[-1] < bounds.one_run_p_value(right, guesses, 1000, bounds.gaussian_epsilon(1.0, 1e-5), 1e-5)
    assert max(found) <= ALPHA


def test_fewer_pairs_of_a_profile_show_less():
    profile = [(epsilon, bounds_delta(1.0, epsilon)) for epsilon in np.linspace(0, 8, 33)]
    whole, coarse, exact = (
        f_dp.p_value(85, 100, 400, allowed)
        for allowed in (f_dp.of_profile(profile), f_dp.of_profile(profile[::8]), f_dp.of_gaussian(1.0))
    )
    assert exact <= whole <= coarse
    assert whole <= 1.2 * exact + 1e-9


def bounds_delta(mu, epsilon):
    from scipy.stats import norm

    return float(norm.cdf(-epsilon / mu + mu / 2) - math.exp(epsilon) * norm.cdf(-epsilon / mu - mu / 2))


# -- the attack --------------------------------------------------------------------------------------------------------


def knowing(rows, copier):
    class Knowing(copier):
        def __init__(self, content):
            super().__init__(rows(50, 9))
            members = set(content["a"])
            self.critic = lambda asked: np.array([float(value in members) for value in asked["a"]])

    return Knowing


@pytest.fixture
def planted(make_world, rows):
    def world(fit, **more):
        return make_world(honest=True, refit=fit, crafted=lambda n, rng: rows(n, int(rng.integers(2**31))), **more)

    return world


def test_a_fit_that_knows_its_records_is_accused(planted, copier, rows):
    (entry,) = table.run(planted(lambda content, seed: knowing(rows, copier)(content)), ["one-run"])
    assert entry.alarm
    assert entry.rates[0].value == 1.0
    assert entry.value > 2


def test_a_fit_that_knows_nothing_is_not_accused(planted, copier, rows):
    (entry,) = table.run(planted(lambda content, seed: copier(rows(300, 9))), ["one-run"])
    assert not entry.alarm
    assert entry.value < 0.5


def test_the_plans_profile_is_what_accuses(planted, copier, rows):
    """A claim of ε = 9 allows what a profile of less loss does not."""
    claim = Claim(kind="dp", epsilon=9.0, delta=1e-5)
    fit = lambda content, seed: knowing(rows, copier)(content)  # noqa: E731
    (loose,) = table.run(planted(fit, claim=claim), ["one-run"])
    (tight,) = table.run(planted(fit, claim=claim, profile=lambda: [(1.0, 1e-5)]), ["one-run"])
    assert (loose.alarm, tight.alarm) == (False, True)
    assert "Under the plan’s noise" in tight.notes[1]


def test_without_a_claim_nothing_is_accused_and_a_bound_stands(planted, copier, rows, no_claim):
    fit = lambda content, seed: knowing(rows, copier)(content)  # noqa: E731
    (entry,) = table.run(planted(fit, claim=no_claim), ["one-run"])
    assert not entry.alarm
    assert entry.lower_bound > 2


def test_it_says_why_it_was_not_made(make_world):
    (entry,) = table.run(make_world(honest=True), ["one-run"])
    assert entry.skipped


def test_its_coins_are_its_own(planted, copier, rows):
    world = planted(lambda content, seed: copier(rows(50, 9)))
    first, second = table.run(world, ["canary", "one-run"])
    assert first.notes[0].split(";")[0] != second.notes[0].split(";")[0]


def test_it_is_named_among_attacks_that_refit():
    assert "one-run" in table.REFITS
    assert "one-run" not in table.GROUPS["quick"]
    assert one_run.THREAT_MODEL.attack == "one-run"
