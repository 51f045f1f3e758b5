"""The regulators' three on copies and on non-members."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from doublure.attack import registry as table
from doublure.attack.linkage import inference, linkability
from doublure.attack.linkage.risk import HitCounts, make_result, risk

THREE = ("singling-out", "linkability", "inference")


@pytest.fixture(scope="module")
def found(make_world):
    return {
        honest: {entry.threat_model.attack: entry for entry in table.run(make_world(honest=honest), THREE)}
        for honest in (True, False)
    }


@pytest.mark.parametrize("name", THREE)
def test_copies_are_risky(found, name):
    entry = found[False][name]
    assert entry.value > 0.3
    assert entry.interval[0] > 0.15
    attack, control, baseline = (rate.value for rate in entry.rates)
    assert attack > control
    assert attack > baseline
    assert not entry.alarm  # a risk is no lower bound on ε


@pytest.mark.parametrize("name", THREE)
def test_strangers_are_at_no_risk(found, name):
    entry = found[True][name]
    assert entry.interval[0] == pytest.approx(0.0, abs=0.02)
    assert entry.baseline is not None
    hit, control, guessed = (f"{rate.name} {rate.value:.3f}" for rate in entry.rates)
    assert f"; {hit}, {control}, {guessed}." in entry.sentence
    said = any("The upper end of the interval is not ruled out." in note for note in entry.notes)
    assert said == (entry.interval[0] == 0 and entry.rates[0].value > entry.rates[2].value)


@pytest.mark.parametrize("attack", [inference, linkability])
def test_of_more_strangers_than_targets_some_are_drawn_wherever_they_stand(make_world, attack):
    world = make_world(honest=True)
    strangers = world.unseen.take(np.arange(100))
    few = replace(world, seen=world.seen.take(np.arange(25)), unseen=strangers)
    one = attack.attack(few).rates[1].value
    # Non-members who are hit stand first: taken from the front, the control would be hit whenever it can be.
    hit = [attack.attack(replace(few, seen=each, unseen=each)).rates[0].value for each in alone(strangers)]
    ranked = replace(few, unseen=strangers.take(np.argsort(-np.array(hit), kind="stable")))
    front = np.mean(sorted(hit)[-25:])
    assert attack.attack(ranked).rates[1].value < one + 0.2 < front


def alone(side):
    """Return each record as a side of its own."""
    return [side.take(np.array([row])) for row in range(len(side))]


def test_guessing_that_does_as_well_is_called_uninformative(make_world):
    world, story = make_world(honest=True), inference.THREAT_MODEL
    for guessed, said in ((31, True), (30, True), (29, False)):
        entry = make_result(story, world, HitCounts(attack=30, control=10, baseline=guessed, trials=100), "")
        assert any("Not informative" in note for note in entry.notes) == said


def test_the_risk_is_what_is_left_above_the_control():
    value, (low, high) = risk(600, 200, 1000)
    assert value == pytest.approx((0.6 - 0.2) / 0.8, abs=0.01)
    assert low < 0.5 < high
    assert risk(10, 300, 1000)[0] == 0.0
    assert risk(1000, 0, 1000)[1][1] == 1.0


def test_the_interval_covers():
    """In 95 of 100 repetitions, more or less, the truth lies within."""
    rng = np.random.default_rng(0)
    truth, covered = (0.5 - 0.3) / 0.7, 0
    for _ in range(400):
        low, high = risk(rng.binomial(300, 0.5), rng.binomial(300, 0.3), 300)[1]
        covered += low <= truth <= high
    assert covered > 365
