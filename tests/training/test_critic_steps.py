"""A critic's plain gradients, and what of the settings a private step is made of."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from doublure.private.clipping import ConstantSchedule
from doublure.private.records import PrivateRecords
from doublure.training.critic_steps import PlainCriticTrainer, critic_settings

BODY = torch.randn(6, 3, generator=torch.Generator().manual_seed(0))
NOISE = torch.randn(6, 3, generator=torch.Generator().manual_seed(1))


class Critic(nn.Linear):
    """A linear critic, frozen as the loop's is."""

    def __init__(self):
        super().__init__(3, 1)
        self.requires_grad_(False)

    def forward(self, x, condition=None):
        """Return scores."""
        return super().forward(x).squeeze(1)


def trainer(*, taken=0, rate=1.0, **changes):
    settings = SimpleNamespace(loss="wgan", penalty=0.0, steps=5, **changes)
    asked = []
    records = PrivateRecords(BODY, np.arange(6), 6, lambda rows: (rows, None))
    job = SimpleNamespace(taken=taken, records=records, sample_rate=rate, seed=3, authorise=asked.append)
    return PlainCriticTrainer(job, settings), asked


def partner(size, condition):
    return NOISE[:size]


def test_a_plain_step_is_the_gradient_of_the_mean_loss():
    made, asked = trainer()
    found = made.gradient(Critic(), partner)
    expected = torch.cat([NOISE.mean(0) - BODY.mean(0), torch.zeros(1)])
    assert torch.allclose(found, expected, atol=1e-6)
    assert (asked, made.taken, made.steps) == ([1], 1, 5)


def test_steps_go_on_counting_where_an_earlier_session_stopped():
    made, asked = trainer(taken=3)
    for _ in range(2):
        made.gradient(Critic(), partner)
    assert (asked, made.taken) == ([4, 5], 5)


def test_a_lot_of_nobody_is_one_record():
    seen = []
    made, _ = trainer(rate=1e-12)
    made.gradient(Critic(), lambda size, condition: seen.append(size) or NOISE[:size])
    assert seen == [1]


@pytest.mark.parametrize("fails", [False, True])
def test_the_critic_is_left_frozen(fails):
    class Failing(Critic):
        def forward(self, x, condition=None):
            assert all(parameter.requires_grad for parameter in self.parameters())
            if fails:
                raise ArithmeticError
            return super().forward(x, condition)

    critic, (made, _) = Failing(), trainer()
    if fails:
        with pytest.raises(ArithmeticError):
            made.gradient(critic, partner)
    else:
        made.gradient(critic, partner)
    assert not any(parameter.requires_grad for parameter in critic.parameters())


@pytest.mark.parametrize(("loss", "kind"), [("wgan-gp", "wgan"), ("wgan", "wgan"), ("hinge", "hinge")])
def test_a_private_step_is_what_the_settings_say(loss, kind):
    schedule = ConstantSchedule(max_grad_norm=1.5)
    settings = SimpleNamespace(loss=loss, penalty=2.0, schedule=schedule, n_critic=3)
    found = critic_settings(settings, expected_units=40.0, per_batch=False)
    assert (found.loss.kind, found.loss.gradient_penalty, found.schedule) == (kind, 2.0, schedule)
    assert (found.expected_units, found.n_critic, found.paired) == (40.0, 3, True)
