"""``one-run`` on the production mechanism with a known ε: honest noise is not accused, too little of it is."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest
import torch
from critic_steps import critic_steps
from torch import nn

from doublure.attack import bounds, f_dp
from doublure.attack.canary import guess
from doublure.private import accounting
from doublure.private.accounting import GaussianEvent
from doublure.private.clipping import ConstantSchedule
from doublure.private.gradients import CriticLoss
from doublure.private.noise import OsKeyedNoise
from doublure.private.records import PrivateRecords

CANARIES, EPSILON, DELTA, ALPHA, STEPS = 600, 3.0, 1e-5, 0.05, 2
SIGMA = accounting.noise_multiplier(EPSILON, DELTA, 1.0, STEPS)


class Linear(nn.Module):
    """D(x) = ⟨w, x⟩, whose gradient is the record itself."""

    def __init__(self):
        super().__init__()
        self.score = nn.Linear(CANARIES, 1, bias=False)

    def forward(self, rows, condition=None):
        return self.score(rows).squeeze(1)


def one_run(seed):
    """Put canaries into one training by coins, each of which pulls at a weight of its own; return the guesses."""
    inside = np.random.default_rng(seed).random(CANARIES) < 0.5
    rows = -1e6 * torch.eye(CANARIES)[torch.from_numpy(inside)]
    units = np.arange(len(rows), dtype=np.int64)
    step = critic_steps(
        PrivateRecords(rows, units, len(rows), lambda compact: (compact, None), torch.device("cpu")),
        {
            "noise_multiplier": SIGMA, "sample_rate": 1.0, "steps": STEPS, "loss": CriticLoss(kind="wgan"),
            "schedule": ConstantSchedule(max_grad_norm=1.0), "expected_units": 1.0,
        },
    )  # fmt: skip
    critic, seen = Linear(), np.zeros(CANARIES)
    for _ in range(STEPS):
        seen += step.gradient(critic, lambda size, _: torch.zeros(size, CANARIES)).numpy()
    return guess(seen, inside)


@pytest.fixture(scope="module")
def allowed():
    events = [GaussianEvent(noise_multiplier=SIGMA, sample_rate=1.0, steps=STEPS)]
    return f_dp.of_profile([(each, accounting.delta_of(events, each)) for each in np.linspace(0, 12, 25)])


def test_honest_noise_is_not_accused_and_less_is_shown_than_is_true(allowed):
    for seed in range(8):
        right, guesses = one_run(seed)
        assert right > guesses / 2
        assert f_dp.p_value(right, guesses, CANARIES, allowed) > ALPHA
        assert bounds.gaussian_epsilon(f_dp.refuted(right, guesses, CANARIES, f_dp.of_gaussian, ALPHA), DELTA) < EPSILON


def test_noise_that_is_a_quarter_of_what_it_says_is_accused_each_time(allowed):
    honest = OsKeyedNoise.normal

    def misleading(self, size, std):
        return honest(self, size, std / 4)._replace(scale=std)

    with patch.object(OsKeyedNoise, "normal", misleading):
        assert all(f_dp.p_value(*one_run(seed), CANARIES, allowed) <= ALPHA for seed in range(5))
