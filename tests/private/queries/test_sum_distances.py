"""Distances of sums over all records: how far one unit moves them, and what the Bayesian accountant makes of it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from doublure.errors import SettingError
from doublure.private.bayesian import BayesianAccountant, StepsOverrunWarning
from doublure.private.queries.distances import DistanceSettings
from doublure.private.queries.sums import BoundedSums
from doublure.private.records import PrivateRecords

UNITS, BOUND = 7, 0.8


class Told:
    """Keeps the distances that it is told."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.found: list[float] = []

    def charge(self, found: list[float], *, sample_rate: float, step: int) -> None:
        self.found = list(found)
        self.how = (sample_rate, step)


def factors(body: Tensor, condition: Tensor | None) -> tuple[Tensor, Tensor]:
    return body[:, :2], body[:, 2:]


def records_of(body: Tensor, unit: np.ndarray) -> PrivateRecords:
    names = np.unique(unit, return_inverse=True)[1]
    return PrivateRecords(body, names, int(names.max(initial=-1)) + 1, lambda rows: (torch.as_tensor(rows), None))


def asked(**changes: Any) -> BoundedSums:
    return BoundedSums(**{"factors": factors, "shape": (2, 3), "max_records": 1, "bound": BOUND} | changes)


@pytest.mark.parametrize("each", [1, 3], ids=["a record", "three records"])
def test_a_distance_is_how_far_one_unit_moves_the_sum_over_what_one_can(each: int) -> None:
    body = torch.randn(UNITS * each, 5, generator=torch.Generator().manual_seed(2)) * 0.6
    unit = np.repeat(np.arange(UNITS), each)
    told = Told(UNITS)
    query = asked(max_records=each, measured=told, step=4)
    whole = query.answer(records_of(body, unit), sample_rate=1.0)
    expected = []
    for one in range(UNITS):
        rest = asked(max_records=each).answer(records_of(body[unit != one], unit[unit != one]), sample_rate=1.0)
        expected.append(float(np.linalg.norm((whole.total - rest.total) * whole.unit)) / (each * BOUND))
    assert sorted(told.found) == pytest.approx(sorted(expected), rel=1e-3)
    assert all(found >= other for found, other in zip(sorted(told.found), sorted(expected), strict=True))  # rounded up
    assert told.how == (1.0, 4)
    assert min(expected) < 0.5 < max(expected)


@pytest.mark.parametrize("noise", [1.0, 2.0**20])
def test_a_distance_is_rounded_up_by_a_step_of_the_left_grid_in_each_number_and_by_a_share(noise: float) -> None:
    body = torch.tensor([[0.3, -0.1, 0.2, 0.05, 0.4], [0.1, 0.2, -0.3, 0.1, 0.2]])
    told, alone = Told(1), records_of(body, np.zeros(2, dtype=np.int64))
    query = asked(max_records=2, noise=noise, measured=told)
    total = query.answer(alone, sample_rate=1.0).total
    share = float(np.linalg.norm(total * query.unit)) / (2 * BOUND)
    left_bits = 20 if noise == 1.0 else 10
    assert told.found == pytest.approx([(share + math.sqrt(2) * 2.0**-left_bits) * (1 + 2.0**-12)], rel=1e-7)


def test_one_that_is_cut_off_has_the_largest_distance() -> None:
    told = Told(3)
    asked(measured=told).answer(records_of(torch.full((3, 5), 9.0), np.arange(3)), sample_rate=1.0)
    assert told.found == pytest.approx([1.0] * 3, abs=1e-6)
    assert max(told.found) <= 1.0


def test_units_that_are_missing_count_as_the_largest() -> None:
    settings = DistanceSettings(count=5, orders=(1, 4), gamma=1e-9)
    few, nobody = (settings.measured(noise_multiplier=3.0, steps=2) for _ in range(2))
    asked(measured=few).answer(records_of(torch.full((2, 5), 1e-3), np.arange(2)), sample_rate=1.0)
    asked(measured=nobody).answer(records_of(torch.zeros(0, 5), np.arange(0)), sample_rate=1.0)
    largest = settings.accountant(2)
    largest.step([1.0] * 5, 3.0, 1.0)
    assert np.all(few.accountant(1, 1.0).costs <= largest.costs)
    assert few.accountant(1, 1.0).costs[0] > 0
    assert nobody.accountant(1, 1.0).costs.tolist() == largest.costs.tolist()


# -- two kinds of steps ------------------------------------------------------------------------------------------------


def accounted(distances: np.ndarray, sigma: float, steps: int, power: int) -> BayesianAccountant:
    found = DistanceSettings(count=len(distances), orders=(2, 8), gamma=1e-6, power=power).accountant(steps)
    for _ in range(steps):
        found.step(distances, sigma, 1.0)
    return found


def test_together_they_cost_at_least_what_records_pay_whose_distances_go_together() -> None:
    """Whoever is far at a step of one kind is far at those of the other: the worst that Hölder's inequality allows."""
    far = np.linspace(0, 1, 400) ** 3
    one, other = accounted(far, 3.0, 6, 12), accounted(far, 5.0, 4, 8)
    both = one.joined(other)
    for order, cost in zip(both.orders, both.costs, strict=True):
        paid = order * (order + 1) / 2 * far**2 * (6 / 3.0**2 + 4 / 5.0**2)
        true = math.log(np.mean(np.exp(paid)))
        assert cost >= true
        apart = sum(
            math.log(np.mean(np.exp(order * (order + 1) / 2 * far**2 * n / s**2))) for n, s in ((6, 3.0), (4, 5.0))
        )
        assert apart < true  # so that adding up what each costs alone would say too little
    assert (both.calls, both.steps_taken) == (10, 10)
    assert (one.calls, other.calls) == (6, 4)


def test_powers_that_are_too_small_are_refused() -> None:
    far = np.linspace(0, 1, 20)
    with pytest.raises(SettingError, match="more than 1"):
        accounted(far, 3.0, 6, 6).joined(accounted(far, 3.0, 4, 4))
    with pytest.raises(SettingError, match="other orders"):
        accounted(far, 3.0, 6, 12).joined(DistanceSettings(count=3, orders=(2,), gamma=1e-6).accountant(4))
    with pytest.raises(SettingError, match="other orders or another gamma"):
        accounted(far, 3.0, 6, 12).joined(DistanceSettings(count=3, orders=(2, 8), gamma=1e-5, power=8).accountant(4))


def test_what_is_joined_leaves_no_more_to_a_third_than_there_is() -> None:
    """Two that take all of it leave nothing, and two that take 5/6 of it leave a sixth."""
    far = np.linspace(0, 1, 20)
    all_of_it = accounted(far, 3.0, 6, 12).joined(accounted(far, 3.0, 4, 8))
    most = accounted(far, 3.0, 6, 12).joined(accounted(far, 3.0, 4, 12))
    third = accounted(far, 3.0, 1, 6)
    with pytest.raises(SettingError, match="more than 1"):
        all_of_it.joined(third)
    assert most.joined(third).steps_taken == 11
    with pytest.raises(SettingError, match="more than 1"):
        most.joined(third).joined(accounted(far, 3.0, 1, 50))
    with pytest.warns(StepsOverrunWarning):
        all_of_it.step(far, 3.0, 1.0)
