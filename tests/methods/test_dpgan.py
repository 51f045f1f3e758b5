"""``dpgan``: it learns through little noise, and takes every part of a step from its settings."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from doublure.methods.dpgan.method import METHOD
from doublure.methods.dpgan.settings import DpganSettings
from doublure.private.accounting import GaussianEvent
from doublure.private.critic_steps import CriticSteps
from doublure.private.gradients import CriticLoss
from doublure.schema import Schema

LEARN = {"steps": 120, "lot_size": 200, "generator_lr": 5e-3}


@pytest.mark.parametrize(
    "settings",
    [
        {"loss": "wgan-gp"},
        {"loss": "wgan", "weight_clip": 0.2},
        {"loss": "logistic", "critic_optimizer": "rmsprop"},
        {"loss": "hinge", "n_critic": 2, "clipping_decay": 0.5, "steps": 200},
    ],
    ids=lambda settings: settings["loss"],
)
def test_every_loss_moves_towards_the_data(world, settings):
    """The noise is the system's own and other each time: a little of it, and a wide margin."""
    job = world.job("dpgan", sigma=0.1, **LEARN | settings)
    before = world.distance(METHOD.build(job.encoder, job.settings, seed=1), job)
    assert world.distance(METHOD.train(job), job) < before / 2


@pytest.fixture
def made(monkeypatch):
    """What every critic's steps were made with: what pays for them, their settings and the rest."""
    found, build = [], CriticSteps.__init__

    def watched(self, mechanism, access, records, settings, **rest):
        found.append((access, settings, rest | {"mechanism": mechanism}))
        build(self, mechanism, access, records, settings, **rest)

    monkeypatch.setattr(CriticSteps, "__init__", watched)
    return found


def test_steps_are_made_from_plan_and_settings(world, made):
    asked = []
    job = world.job(
        "dpgan", sigma=0.7, taken=2, authorise=asked.append, loss="logistic", gradient_penalty=2.5, n_critic=2,
        max_grad_norm=3.0, clipping_decay=0.5,
    )  # fmt: skip
    METHOD.train(job)
    ((access, step, rest),) = made
    assert (step.loss.kind, step.loss.gradient_penalty) == ("logistic", 2.5)
    assert access == job.accesses[0]
    assert access.event == GaussianEvent(noise_multiplier=0.7, sample_rate=0.25, steps=6)
    assert (step.expected_units, step.n_critic) == (100.0, 2)
    assert step.schedule == job.settings.schedule
    assert (step.schedule.at(0), step.schedule.at(3)) == pytest.approx((3, 1.5))
    assert (rest["mechanism"], rest["distances"]) == (job.mechanism, None)
    assert asked == [3, 4, 5, 6]  # two were taken before


@pytest.mark.parametrize(
    ("loss", "kind", "penalty"),
    [("wgan-gp", "wgan", 3.0), ("wgan", "wgan", 0.0), ("logistic", "logistic", 0.0), ("hinge", "hinge", 2.0)],
)
def test_the_whole_loss_is_the_steps(world, made, loss, kind, penalty):
    METHOD.train(world.job("dpgan", loss=loss, gradient_penalty=penalty, steps=1))
    assert [step.loss for _, step, _ in made] == [CriticLoss(kind=kind, gradient_penalty=penalty)]


def test_without_noise_it_refuses_to_begin(world):
    """A plan for ``dpgan`` always has noise; a job that was put together without it trains nothing."""
    job = world.job("dpgan")
    bare = replace(job, accesses=tuple(replace(access, event=None) for access in job.accesses))
    with pytest.raises(TypeError, match="no GaussianEvent"):
        METHOD.train(bare)


def test_what_it_touches_is_all_its_steps():
    schema = Schema.parse("doublure: 1\nkind: table\nunits: 800\ncolumns: {a: {type: boolean, missing: false}}")
    settings = METHOD.resolve_defaults(schema, DpganSettings(steps=30, n_critic=4, lot_size=80))
    (access,) = METHOD.accesses(schema, settings, noise_multiplier=2.0)
    event = access.event
    assert (event.noise_multiplier, event.sample_rate, event.steps, event.sampling) == (2.0, 0.1, 30, "poisson")
    assert METHOD.work(schema, settings).steps == 30


def test_few_units_are_warned_of():
    warned = {}
    for units in (100, 50_000):
        schema = Schema.parse(
            f"doublure: 1\nkind: table\nunits: {units}\ncolumns: {{a: {{type: boolean, missing: false}}}}"
        )
        warned[units] = METHOD.warnings(schema, METHOD.resolve_defaults(schema, DpganSettings()))
    assert any("100 units are few" in warning for warning in warned[100])
    assert warned[50_000] == ()


def test_deciding_twice_changes_nothing(world):
    schema = Schema.parse(world.SCHEMA)
    once = METHOD.resolve_defaults(schema, DpganSettings(loss="wgan"))
    assert METHOD.resolve_defaults(schema, once) == once


@pytest.mark.parametrize("changes", [{}, {"depth": 0, "width": 3}, {"numerics": "scaled"}], ids=str)
def test_weights_load_into_what_is_built_for_them(world, changes):
    job = world.job("dpgan", steps=2, **changes)
    trained, built = METHOD.train(job), METHOD.build(job.encoder, job.settings, seed=0)
    noise = torch.randn(5, job.settings.noise_width, generator=torch.Generator().manual_seed(2))
    condition = torch.eye(2)[[0, 1, 1, 0, 1]]
    assert not torch.equal(built(noise, condition), trained(noise, condition))
    built.load_state_dict(trained.state_dict())
    assert torch.equal(built(noise, condition), trained(noise, condition))
    other = METHOD.build(job.encoder, job.settings.model_copy(update={"noise_width": 5}), seed=0)
    with pytest.raises(RuntimeError, match="size mismatch"):
        other.load_state_dict(trained.state_dict())
