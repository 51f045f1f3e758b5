"""Clip factors, the sum that carries its sensitivity, and schedules."""

from __future__ import annotations

import doctest
import itertools
import math
from dataclasses import FrozenInstanceError

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from doublure.errors import SettingError
from doublure.private import clipping
from doublure.private.clipping import ConstantSchedule, GeometricSchedule, clip_factors, clipped_sum

NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("norm", "bound", "factor"),
    [
        (0.0, 1.0, 1.0),
        (0.5, 1.0, 1.0),
        (1.0, 1.0, 1.0),
        (2.0, 1.0, 0.5 * (1 - 1e-6)),
        (1e300, 1.0, 1e-300 * (1 - 1e-6)),
        (5e-324, 1.0, 1.0),
        (1e-3, 1e-6, 1e-3 * (1 - 1e-6)),
        (NAN, 1.0, 0.0),
        (INF, 1.0, 0.0),
        (3.0, INF, 1.0),
        (NAN, INF, 0.0),
        (INF, INF, 0.0),
    ],
)
def test_factors(norm, bound, factor):
    (found,) = clip_factors(torch.tensor([norm], dtype=torch.float64), bound)
    assert found.item() == pytest.approx(factor, rel=1e-12, abs=0)


@given(norms=st.lists(st.floats(0, 1e308), max_size=5), bound=st.floats(1e-30, 1e30))
def test_no_product_passes_the_bound(norms, bound):
    values = torch.tensor(norms, dtype=torch.float64)
    factors = clip_factors(values, bound)
    assert ((factors >= 0) & (factors <= 1)).all()
    assert (factors * values <= bound).all()
    each = [clip_factors(value.unsqueeze(0), bound) for value in values]
    assert torch.equal(factors, torch.cat(each)) if each else not len(factors)


@pytest.mark.parametrize("bound", [0.0, -1.0, NAN])
def test_bounds_must_be_positive(bound):
    class Nothing:
        units, zero = 0, torch.zeros(3)

        def __iter__(self):
            return iter(())

    for refused in (
        lambda: clip_factors(torch.ones(1), bound),
        lambda: clipped_sum(Nothing(), max_grad_norm=bound),
        lambda: ConstantSchedule(max_grad_norm=bound),
        lambda: GeometricSchedule(max_grad_norm=bound, decay=0.9, floor=0.1),
    ):
        with pytest.raises(SettingError) as error:
            refused()
        assert error.value.field == "max_grad_norm"


class Vectors:
    """A lot whose gradients are given, in two parts."""

    def __init__(self, gradients: torch.Tensor) -> None:
        self.gradients, self.units, self.zero = gradients, len(gradients), torch.zeros(gradients.shape[1])

    def sums(self, sizes):
        return torch.stack([rows.sum(0) for rows in torch.split(self.gradients, sizes)])

    def __iter__(self):
        half = self.units // 2
        for units in (torch.arange(half), torch.arange(half, self.units)):
            yield _Part(units, self.gradients[units])


class _Part:
    def __init__(self, units: torch.Tensor, gradients: torch.Tensor) -> None:
        self.units, self.gradients = units, gradients

    def norms(self) -> torch.Tensor:
        return self.gradients.double().norm(dim=1)

    def weighted_sum(self, weights: torch.Tensor) -> torch.Tensor:
        kept = weights > 0
        return (weights[kept].float()[:, None] * self.gradients[kept]).sum(0)


def test_the_sum_knows_its_sensitivity_and_its_norms():
    gradients = torch.tensor([[3.0, 4.0], [0.3, 0.4], [NAN, 1.0], [0.0, 20.0], [0.0, 0.0]])
    found = clipped_sum(Vectors(gradients), max_grad_norm=1.0)
    assert found.sensitivity == 1.0
    assert found.norms[[0, 1, 3, 4]].tolist() == pytest.approx([5.0, 0.5, 20.0, 0.0])
    assert found.norms[2].isnan()
    assert found.total.tolist() == pytest.approx([0.6 + 0.3, 0.8 + 0.4 + 1.0], rel=1e-5)
    with pytest.raises(FrozenInstanceError):
        found.sensitivity = 2.0


def test_clipped_together_the_sum_is_shortened_once():
    gradients = torch.tensor([[3.0, 4.0], [0.0, -8.0], [1.0, 1.0]])
    short, whole = (clipped_sum(Vectors(gradients), max_grad_norm=bound, per_batch=2.0) for bound in (1.0, 9.0))
    assert short.total.tolist() == pytest.approx([1.6, -1.2], rel=1e-5)
    assert whole.total.tolist() == [4.0, -3.0]
    assert (short.sensitivity, whole.sensitivity) == (4.0, 36.0)


@pytest.mark.parametrize("wrong", [NAN, INF, -INF])
def test_clipped_together_a_gradient_that_is_not_finite_is_left_out(wrong):
    gradients = torch.tensor([[3.0, 4.0], [wrong, 1.0], [0.0, -8.0], [wrong, -wrong]])
    found = clipped_sum(Vectors(gradients), max_grad_norm=1.0, per_batch=2.0)
    assert found.total.tolist() == pytest.approx([1.2, -1.6], rel=1e-5)
    alone = clipped_sum(Vectors(gradients[1:2]), max_grad_norm=1.0, per_batch=2.0)
    assert not alone.total.any()


def test_the_lots_own_zero_is_not_written_on():
    lot = Vectors(torch.ones(4, 2))
    clipped_sum(lot, max_grad_norm=1.0)
    assert not lot.zero.any()


def test_constant():
    assert {ConstantSchedule(max_grad_norm=0.3).at(step) for step in (0, 1, 10**9)} == {0.3}


def test_geometric():
    schedule = GeometricSchedule(max_grad_norm=2.0, decay=0.99, floor=0.5)
    assert [schedule.at(step) for step in (0, 1, 100)] == pytest.approx([2.0, 1.98, 2 * 0.99**100])
    assert schedule.at(138) == 0.5
    assert schedule.at(10**9) == 0.5
    assert GeometricSchedule(max_grad_norm=1.0, decay=1.0, floor=1.0).at(5) == 1.0


@pytest.mark.parametrize(
    "schedule",
    [
        ConstantSchedule(max_grad_norm=1.0),
        GeometricSchedule(max_grad_norm=1.0, decay=0.9, floor=0.1),
    ],
)
def test_schedules_never_rise_and_stay_positive(schedule):
    bounds = [schedule.at(step) for step in range(200)]
    assert all(later <= earlier for earlier, later in itertools.pairwise(bounds))
    assert all(0 < bound <= 1 and math.isfinite(bound) for bound in bounds)


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: GeometricSchedule(max_grad_norm=1.0, decay=0.0, floor=0.1), "decay"),
        (lambda: GeometricSchedule(max_grad_norm=1.0, decay=1.1, floor=0.1), "decay"),
        (lambda: GeometricSchedule(max_grad_norm=1.0, decay=NAN, floor=0.1), "decay"),
        (lambda: GeometricSchedule(max_grad_norm=1.0, decay=0.9, floor=0.0), "floor"),
        (lambda: GeometricSchedule(max_grad_norm=1.0, decay=0.9, floor=2.0), "floor"),
    ],
)
def test_schedule_settings_are_checked(make, field):
    with pytest.raises(SettingError) as refused:
        make()
    assert refused.value.field == field


def test_examples():
    results = doctest.testmod(clipping)
    assert results.attempted
    assert not results.failed
