"""Canaries: who repeats them is found out in one fit, who does not is not accused."""

from __future__ import annotations

import numpy as np
import pytest

from doublure.attack import canary
from doublure.attack import registry as table
from doublure.attack.results import Claim


@pytest.fixture
def planted(make_world, rows, copier):
    def world(fit, **more):
        return make_world(honest=True, refit=fit, crafted=lambda n, rng: rows(n, int(rng.integers(2**31))), **more)

    return world


def test_a_fit_that_repeats_its_records_is_found_out(planted, copier):
    class Everything(copier):
        def sample(self, n, seed):
            return self.rows

    (entry,) = table.run(planted(lambda content, seed: Everything(content)), ["canary"])
    assert entry.value > 2
    assert entry.alarm
    assert entry.rates[0].value > 0.95


def test_a_fit_that_knows_nothing_is_not_accused(planted, copier, rows):
    (entry,) = table.run(planted(lambda content, seed: copier(rows(300, 9))), ["canary"])
    assert entry.value < 0.5
    assert not entry.alarm


def test_the_coins_are_independent(planted, copier, rows):
    """A fixed number of canaries would break the bound: it differs from world to world."""
    counts = {
        table.run(planted(lambda content, seed: copier(rows(50, 9)), seed=seed), ["canary"])[0].notes[0].split(", ")[1]
        for seed in range(4)
    }
    assert len(counts) > 1


def test_a_critic_is_asked_where_there_is_one(planted, copier, rows):
    class Knowing(copier):
        def __init__(self, content):
            super().__init__(rows(50, 9))
            members = set(content["a"])
            self.critic = lambda asked: np.array([float(value in members) for value in asked["a"]])

    (entry,) = table.run(planted(lambda content, seed: Knowing(content)), ["canary"])
    assert entry.rates[0].value == 1.0


def test_a_critic_that_diverged_is_not_asked(planted, copier):
    class Everything(copier):
        def __init__(self, content):
            super().__init__(content)
            self.critic = lambda asked: np.full(len(asked), np.nan)

        def sample(self, n, seed):
            return self.rows

    (entry,) = table.run(planted(lambda content, seed: Everything(content)), ["canary"])
    assert entry.rates[0].value > 0.95


def test_honest_guesses_are_hardly_ever_above_the_claim(make_world):
    """Guesses as good as ε-DP allows: the bound passes ε in at most one run of twenty."""
    epsilon, rng, above = 1.0, np.random.default_rng(0), 0
    world = make_world(honest=True, claim=Claim(kind="dp", epsilon=epsilon, delta=1e-9))
    share = np.exp(epsilon) / (1 + np.exp(epsilon))
    for _ in range(80):
        inside = rng.random(200) < 0.5
        told = np.where(rng.random(200) < share, inside, ~inside)
        above += canary.canary_result(world, told + rng.random(200) / 2, inside).alarm
    assert above <= 12


def test_it_says_why_it_was_not_made(make_world):
    (entry,) = table.run(make_world(honest=True), ["canary"])
    assert entry.skipped
