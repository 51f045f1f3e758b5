"""The plain teacher: ordinary gradients of the mean loss of an ordinary lot."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from torch.nn import functional

from doublure.networks.mlp import MlpCritic
from doublure.training.critic_steps import PlainCriticTrainer

SEVERAL = """
doublure: 1
kind: table
unit: {name: person, id: who, max_records: 3}
units: 40
columns:
  who: {type: id}
  a: {type: category, values: [x, y], missing: false}
"""


def critic_for(job):
    body = job.encoder.width - job.encoder.condition_width
    start = torch.Generator().manual_seed(5)
    return MlpCritic(body, condition_width=job.encoder.condition_width, width=8, depth=1, generator=start)


def blank(size, condition):
    return torch.full((size, 7), 0.25)


def by_hand(loss, penalty, critic, real, condition, mix):
    """The mean loss of Gulrajani et al. 2017 and its like, written out."""
    fake = blank(len(real), None)
    on_real, on_fake = critic(real, condition), critic(fake, condition)
    value = {
        "wgan-gp": on_fake - on_real,
        "wgan": on_fake - on_real,
        "hinge": (1 - on_real).clamp(min=0) + (1 + on_fake).clamp(min=0),
        "logistic": functional.softplus(-on_real) + functional.softplus(on_fake),
    }[loss]
    between = (mix[:, None] * real + (1 - mix[:, None]) * fake).requires_grad_()
    (slope,) = torch.autograd.grad(critic(between, condition).sum(), between, create_graph=True)
    return (value + penalty * (slope.norm(dim=1) - 1) ** 2).mean()


@pytest.mark.parametrize("loss", ["wgan-gp", "wgan", "logistic", "hinge"])
def test_it_is_the_gradient_of_the_mean_loss(world, loss):
    job = world.job("gan", lot_size=400, loss=loss)  # everybody, in whatever order
    mixes = []
    teacher, critic = PlainCriticTrainer(job, job.settings), critic_for(job)
    drawn = teacher._records.lot

    def watched(units):
        mixes.append(units)
        return drawn(units)

    teacher._records.lot = watched
    for parameter in critic.parameters():
        parameter.requires_grad_(False)
    found = teacher.gradient(critic, blank)
    assert not any(parameter.requires_grad for parameter in critic.parameters())
    assert teacher.taken == 1
    body, condition, _, _ = drawn(mixes[0])
    mix = torch.rand(400, generator=torch.Generator().manual_seed(job.seed))
    for parameter in critic.parameters():
        parameter.requires_grad_(True)
    loss_by_hand = by_hand(loss, job.settings.penalty, critic, body, condition, mix)
    expected = torch.autograd.grad(loss_by_hand, list(critic.parameters()))
    torch.testing.assert_close(found, torch.cat([part.reshape(-1) for part in expected]), rtol=1e-4, atol=1e-6)
    assert float(found.norm()) > 0.01


def test_lots_are_about_as_large_as_asked_and_hold_nobody_twice(world):
    job = world.job("gan", steps=200, gradient_penalty=0.0)
    teacher, critic = PlainCriticTrainer(job, job.settings), critic_for(job)
    sizes, seen, drawn = [], set(), teacher._records.lot

    def watched(units):
        assert len(set(units.tolist())) == len(units)
        sizes.append(len(units))
        seen.update(units.tolist())
        return drawn(units)

    teacher._records.lot = watched
    for _ in range(teacher.steps):
        teacher.gradient(critic, blank)
    assert teacher.taken == 200
    assert abs(np.mean(sizes) - 100) < 5 * np.sqrt(75 / 200)
    assert 4 < np.std(sizes) < 14  # as Poisson lots have it: √75
    assert len(seen) == 400


def test_there_is_always_somebody_in_a_lot(world):
    job = world.job("gan", lot_size=1, steps=30)
    teacher, critic = PlainCriticTrainer(job, job.settings), critic_for(job)
    assert all(float(teacher.gradient(critic, blank).norm()) > 0 for _ in range(30))


def test_it_asks_before_each_step_and_counts_on(world):
    asked = []

    def refuses(step):
        asked.append(step)
        if step == 6:
            raise KeyboardInterrupt

    job = world.job("gan", taken=4, authorise=refuses)
    teacher, critic = PlainCriticTrainer(job, job.settings), critic_for(job)
    teacher.gradient(critic, blank)
    with pytest.raises(KeyboardInterrupt):
        teacher.gradient(critic, blank)
    assert (asked, teacher.taken, teacher.steps) == ([5, 6], 5, 6)


def test_a_loss_that_fails_leaves_the_critic_as_it_was(world):
    job = world.job("gan")
    teacher, critic = PlainCriticTrainer(job, job.settings), critic_for(job)
    for parameter in critic.parameters():
        parameter.requires_grad_(False)

    def broken(rows, condition):
        raise MemoryError

    critic.forward = broken
    with pytest.raises(MemoryError):
        teacher.gradient(critic, blank)
    assert not any(parameter.requires_grad for parameter in critic.parameters())


def test_a_unit_comes_with_all_its_records(world):
    frame = pd.DataFrame({"who": np.repeat(np.arange(40), 3), "a": np.tile(["x", "x", "y"], 40)})
    job = world.job("gan", SEVERAL, frame=frame, lot_size=40, gradient_penalty=0.0)
    teacher, critic = PlainCriticTrainer(job, job.settings), critic_for(job)
    sizes = []
    teacher.gradient(critic, lambda size, condition: sizes.append(size) or torch.zeros(size, 2))
    assert sizes == [120]
