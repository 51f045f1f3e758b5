"""How many steps a critic takes: up a ladder while it cannot tell what is generated, and never down."""

from __future__ import annotations

import pytest
import torch

from doublure.training.gan_loop import LADDER, CriticPace

TOLD, FOOLED = torch.full((8,), -1.0), torch.full((8,), 1.0)


def test_without_a_threshold_the_number_stays():
    pace = CriticPace(3, threshold=None, patience=1)
    for _ in range(50):
        pace.saw(FOOLED)
    assert pace.n_critic == 3


def test_a_critic_that_tells_them_keeps_its_pace():
    pace = CriticPace(1, threshold=0.9, patience=1)
    for _ in range(50):
        pace.saw(TOLD)
    assert (pace.n_critic, pace.accuracy) == (1, 1.0)


def test_a_fooled_critic_climbs_rung_by_rung_to_the_top():
    pace, seen = CriticPace(1, threshold=0.6, patience=3), []
    for _ in range(3 * len(LADDER) + 9):
        pace.saw(FOOLED)
        seen.append(pace.n_critic)
    assert seen[:7] == [1, 1, 2, 2, 2, 5, 5]
    assert seen == sorted(seen)
    assert [*dict.fromkeys(seen)] == [digit * 10**power for power in range(4) for digit in (1, 2, 5)]


def test_it_starts_between_rungs_if_asked_to():
    pace = CriticPace(3, threshold=0.5, patience=1)
    pace.saw(FOOLED)
    assert pace.n_critic == 5


def test_the_threshold_itself_climbs_and_what_is_above_does_not():
    half = torch.tensor([-1.0, 1.0])
    for threshold, n_critic in ((0.5, 2), (0.49, 1)):
        pace = CriticPace(1, threshold=threshold, patience=1)
        pace.saw(half)
        assert pace.n_critic == n_critic


def test_one_bad_batch_among_many_good_ones_is_forgiven():
    pace = CriticPace(1, threshold=0.6, patience=1)
    for _ in range(20):
        pace.saw(TOLD)
    pace.saw(FOOLED)
    assert pace.n_critic == 1
    for _ in range(10):
        pace.saw(FOOLED)
    assert pace.n_critic > 1


@pytest.mark.parametrize("seen", [1, 2, 3])
def test_a_kept_pace_goes_on_where_it_was(seen):
    one, other = (CriticPace(1, threshold=0.6, patience=2) for _ in range(2))
    for number in range(seen):
        one.saw(TOLD if number == 0 else FOOLED)
    other.restore(one.state())
    for pace in (one, other):
        pace.saw(FOOLED)
    assert (one.n_critic, one.accuracy) == (other.n_critic, other.accuracy)
    assert torch.equal(one.state(), other.state())


def test_a_kept_accuracy_is_kept_to_the_last_bit():
    one, other = (CriticPace(1, threshold=0.1, patience=9) for _ in range(2))
    for scores in (TOLD, FOOLED, FOOLED):
        one.saw(scores)
    other.restore(one.state())
    assert other.accuracy == one.accuracy == pytest.approx(1 / 3)


def test_an_empty_batch_says_nothing():
    pace = CriticPace(1, threshold=1.0, patience=1)
    pace.saw(torch.empty(0))
    assert pace.n_critic == 1
