"""Rule 5: a record whose gradient is not finite contributes exactly zero, and nothing else changes (row 9)."""

from __future__ import annotations

import math

import pytest
import torch
from replay_noise import ReplayNoise
from torch import nn

from doublure.private import clipping, mechanism
from doublure.private.clipping import ConstantSchedule, GeometricSchedule
from doublure.private.gradients import CriticLoss
from doublure.private.queries import lot_gradients

C, STEPS = 0.5, 4
BAD = {
    "nan": math.nan,
    "inf": math.inf,
    "-inf": -math.inf,
    "largest": 3.4e38,
    "most negative": -3.4e38,
}


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, 5), nn.LeakyReLU(0.2), nn.Linear(5, 1))
        draw = torch.Generator().manual_seed(3)
        for p in self.parameters():
            p.data = torch.randn(p.shape, generator=draw)

    def forward(self, x, condition=None):
        return self.body(x).squeeze(1)


def partner(size, condition):
    return torch.full((size, 3), 0.3)


def run(lab, body, unit=None, penalty=10.0):
    """Return what each step gives, and everything that can be seen of how it came about."""
    critic, asked = Critic(), []
    size = sum(p.numel() for p in critic.parameters())
    draws = [torch.full((size,), 0.01 * number) for number in range(STEPS)]
    noise = ReplayNoise(draws)
    settings = dict(
        loss=CriticLoss(kind="wgan", gradient_penalty=penalty),
        schedule=GeometricSchedule(max_grad_norm=C, decay=0.9, floor=0.1),
        noise_multiplier=1.0, sample_rate=1.0, steps=STEPS, expected_units=5.0,
    )  # fmt: skip
    given = {} if unit is None else {"unit": unit}
    step = lab.mechanism(body, settings, noise=noise, authorise=asked.append, **given)
    step._query._mix = lambda count: torch.full((count,), 0.5)
    out = [step.gradient(critic, partner) * 5.0 for _ in range(STEPS)]
    return out, (asked, noise.asked, step._mechanism.executed.to_json())


def check_bad_records_count_for_zero(lab):
    good = torch.randn(6, 3, generator=torch.Generator().manual_seed(1))
    expected, trace = run(lab, good)
    for name, value in BAD.items():
        bad = torch.zeros(1, 3)
        bad[0, 1] = value
        try:
            found, seen = run(lab, torch.cat([good[:2], bad, good[2:]]))
        except ValueError as error:
            raise AssertionError(name) from error
        assert seen == trace
        for one, other in zip(expected, found, strict=True):
            assert bool(other.isfinite().all()), name
            moved = float((one - other).norm())
            assert moved <= (C * (1 + 1e-6) if math.isfinite(value) else 1e-6), name


def test_bad_records_count_for_zero(lab):
    check_bad_records_count_for_zero(lab)


@pytest.mark.parametrize(
    "make",
    [
        lambda old: lambda norms, bound: torch.nan_to_num(bound / norms.nan_to_num(nan=1.0), nan=1.0),
        lambda old: lambda norms, bound: old(norms, bound) * (0.0 if norms.isnan().any() else 1.0),
    ],
    ids=["NaN taken for one", "whole lot dropped"],
)
def test_a_bad_record_that_spoils_the_sum_is_caught(lab, monkeypatch, make):
    monkeypatch.setattr(clipping, "clip_factors", make(clipping.clip_factors))
    with lab.caught():
        check_bad_records_count_for_zero(lab)


@pytest.mark.parametrize(
    "edit",
    ["self._taken[access] = taken", "self._authorise(access, 0)", "raise ValueError"],
    ids=["step taken again", "another authorisation", "an error"],
)
def test_control_flow_that_depends_on_a_bad_record_is_caught(lab, edit):
    noisy = "noisy, ran = self._noised(answer, access)"
    bad = "not all(bool(body.isfinite().all()) for body, _ in records.expanded(9))"
    lab.plant(mechanism.Mechanism, "release", (noisy, f"if {bad}:\n    {edit}\n{noisy}"))
    with lab.caught():
        check_bad_records_count_for_zero(lab)


def check_a_unit_with_one_bad_record_counts_for_zero(lab):
    good = torch.randn(6, 3, generator=torch.Generator().manual_seed(1))
    bad = torch.tensor([[0.1, 0.2, 0.3], [math.nan, 0.0, 0.0]])
    expected, trace = run(lab, good, unit=[0, 0, 1, 1, 2, 2])
    found, seen = run(lab, torch.cat([good, bad]), unit=[0, 0, 1, 1, 2, 2, 3, 3])
    assert seen == trace
    assert all(float((one - other).norm()) <= 1e-6 for one, other in zip(expected, found, strict=True))


def test_a_unit_with_one_bad_record_counts_for_zero(lab):
    check_a_unit_with_one_bad_record_counts_for_zero(lab)


def test_a_unit_of_which_the_rest_is_kept_is_caught(lab):
    lab.plant(lot_gradients.CriticGradients, "gradients", ("real=real", "real=real.nan_to_num()"))
    with lab.caught():
        check_a_unit_with_one_bad_record_counts_for_zero(lab)


@pytest.mark.parametrize("size", [0.0, 1e-44, 1e-38, 1.0, 3e38])
def test_every_size_is_clipped(lab, size):
    """Norms are taken so that neither overflow nor underflow hides a record's size."""
    critic = nn.Linear(2, 1, bias=False)
    critic.forward = lambda x, condition=None: x @ critic.weight[0]
    settings = dict(
        loss=CriticLoss(kind="wgan"), schedule=ConstantSchedule(max_grad_norm=C), noise_multiplier=1.0, sample_rate=1.0,
        steps=1, expected_units=1.0,
    )  # fmt: skip
    step = lab.mechanism(torch.full((3, 2), size), settings, noise=ReplayNoise([torch.zeros(2)]))
    norm = float(step.gradient(critic, lambda count, condition: torch.zeros(count, 2)).double().norm())
    assert norm <= 3 * C
    assert norm == pytest.approx(3 * min(C, size * math.sqrt(2)), rel=1e-5, abs=1e-40)
