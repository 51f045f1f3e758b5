"""The search for the least noise: what it finds is feasible and tight, and an evaluation (a costly one) tells much."""

import math
from itertools import pairwise

import pytest

from doublure.errors import SettingError
from doublure.private.accounting import calibration
from doublure.private.accounting.calibration import _smallest_feasible

TOLERANCE = 1e-3


def found(cost, start=1.0, slope=1.0, target=1.0, tolerance=TOLERANCE):
    """Return the noise, the slope there, and where the cost was looked at."""
    asked = []

    def watched(noise):
        asked.append(noise)
        return cost(noise)

    return *_smallest_feasible(watched, start, slope, target, tolerance), asked


@pytest.mark.parametrize(
    ("cost", "root", "slope", "evaluations"),
    [
        (lambda noise: 3.0 / noise, 3.0, 1.0, 3),
        (lambda noise: 2.0 / noise**2, math.sqrt(2.0), 2.0, 4),
        (lambda noise: 0.3 + 1.0 / noise + 0.5 / noise**2, 1.82079, 0.851, 6),
        (lambda noise: math.expm1(1.0 / noise**2), 1.2011224, 2.77, 7),
        (lambda noise: math.inf if noise < 5.0 else 10.0 / noise, 10.0, 1.0, 6),
        (lambda noise: 4e-4 / noise**2, 0.02, 2.0, 6),
    ],
    ids=["a line", "a parabola", "a bend", "steep", "infinite", "little noise"],
)
def test_the_root_is_closed_in_on_from_both_sides(cost, root, slope, evaluations):
    noise, told, asked = found(cost)
    assert cost(noise) <= 1.0
    assert noise in asked
    assert root <= noise <= root * (1.0 + TOLERANCE)
    assert told == pytest.approx(slope, abs=0.01)
    assert len(asked) == evaluations


@pytest.mark.parametrize("target", [0.2, 5.0])
@pytest.mark.parametrize("tolerance", [1e-2, 1e-4])
def test_targets_and_tolerances_are_kept(target, tolerance):
    noise, _, asked = found(lambda noise: 1.0 / noise, target=target, tolerance=tolerance)
    assert target * noise >= 1.0
    assert target * noise <= 1.0 + tolerance
    assert len(asked) <= 4


def test_a_good_guess_costs_two_evaluations():
    assert found(lambda noise: 3.0 / noise, start=3.0)[2] == pytest.approx([3.0, 3.0 * (1.0 - 0.4 * TOLERANCE)])


@pytest.mark.parametrize("start", [2.9, 3.1])
def test_a_guess_that_is_off_by_little_costs_three(start):
    assert len(found(lambda noise: 3.0 / noise, start=start)[2]) == 3


def test_a_wrong_slope_is_learned():
    noise, slope, asked = found(lambda noise: (3.0 / noise) ** 3, slope=0.5)
    assert noise == pytest.approx(3.0, rel=TOLERANCE)
    assert slope == pytest.approx(3.0, abs=0.05)
    assert len(asked) <= 7


def test_a_guess_that_falls_short_goes_twice_as_far_each_time():
    asked = found(lambda noise: 3.0 / noise, slope=4.0)[2]
    steps = [math.log(later / earlier) for earlier, later in pairwise(asked)]
    excess = [math.log(3.0 / noise) / 4.0 + 0.4 * TOLERANCE for noise in asked]
    assert steps[:2] == pytest.approx([excess[0], 2.0 * excess[1]])


@pytest.mark.parametrize(
    "cost", [lambda noise: math.inf if noise < 5.0 else 0.5, lambda noise: 2.0 if noise < 5.0 else 0.0]
)
def test_a_jump_tells_no_slope(cost):
    noise, slope, _ = found(cost, slope=1.7)
    assert 5.0 <= noise <= 5.0 * (1.0 + TOLERANCE)
    assert slope == 1.7


def test_a_cost_in_steps_ends_at_the_step_or_as_near_as_can_be_told():
    noise, slope, asked = found(lambda noise: round(2.0 / noise, 2))
    assert 2.0 / 1.005 - 1e-9 <= noise <= 2.0 / 1.005 * (1.0 + TOLERANCE)
    assert 0.01 <= slope <= 10.0
    assert len(asked) <= 20


def test_what_costs_nothing_ends_at_the_least_noise():
    assert found(lambda noise: 0.0) == (calibration._LEAST_NOISE, 1.0, [1.0, 0.125, 0.015625, 0.01])
    assert found(lambda noise: 1e-9 / noise)[0] == calibration._LEAST_NOISE


def test_what_no_noise_makes_cheap_enough_is_said():
    asked = []
    with pytest.raises(SettingError, match=r"2 is the least .* raise it above 2 ") as caught:
        _smallest_feasible(lambda noise: asked.append(noise) or 2.0, 1.0, 1.0, 1.0, TOLERANCE)
    assert caught.value.field == "epsilon"
    assert asked[-1] == calibration._MOST_NOISE
    assert len(asked) == 11


def test_coarse_grids_come_first(monkeypatch):
    from doublure.private.accounting import GaussianEvent, calibrate

    coarser, cost_of = [], calibration.cost_of

    def watched(*given, **more):
        coarser.append(more["coarser"])
        return cost_of(*given, **more)

    monkeypatch.setattr(calibration, "cost_of", watched)
    calibrate(
        lambda noise: [GaussianEvent(noise_multiplier=noise, sample_rate=0.02, steps=200)], epsilon=1.0, delta=1e-5
    )
    assert coarser == sorted(coarser, reverse=True)
    assert set(coarser) == {8, 1}
    assert coarser.count(1) <= 3
