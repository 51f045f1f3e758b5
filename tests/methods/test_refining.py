"""The critic of ``guided``: what it is paid for, where it begins, what the generator is held to, and interruption."""

from __future__ import annotations

import pytest
import torch

from doublure.methods.guided.method import METHOD
from doublure.methods.statistics.images import mean_embedding
from doublure.private.accounting import GaussianEvent
from doublure.private.critic_steps import CriticSteps
from doublure.training import critic_steps as private_critic_trainer
from doublure.training import gan_loop as adversarial

CRITIC = {"critic_share": 0.3, "labeller_share": 0.3, "critic_steps": 6, "critic_lot": 200, "critic_channels": [4]}


def weights(generator):
    return torch.cat([parameter.detach().flatten() for parameter in generator.parameters()])


def test_what_is_done_is_what_is_declared(digits, steps):
    job = digits.job(sigma=3.0, **CRITIC)
    METHOD.train(job)
    statistics, critic, labeller = (a.event for a in METHOD.accesses(job.encoder.schema, job.settings, 3.0))
    (step,) = steps
    assert step.event == critic == job.settings.critic_event(job.encoder.schema, 3.0)
    assert step.taken == critic.steps == 6
    assert step.settings.expected_units == 200.0
    assert step.settings.schedule.at(5) == job.settings.critic_clip
    assert statistics == GaussianEvent(noise_multiplier=3.0 / 0.4**0.5)
    assert labeller == job.settings.labeller_event(3.0)


def test_a_share_of_zero_takes_no_step(digits, steps):
    job = digits.job(**CRITIC | {"critic_share": 0.0})
    METHOD.train(job)
    assert steps == []
    assert len(METHOD.accesses(job.encoder.schema, job.settings, 1.0)) == 2


def test_it_begins_where_the_statistics_have_led(digits, monkeypatch):
    seen, starts, generator_fit, init = {}, [], mean_embedding.fit_generator, adversarial.Adversaries.__init__

    def watched(job, settings, sums):
        fit = generator_fit(job, settings, sums)
        seen["trained"] = weights(fit.average)
        return fit

    def begun(adversaries, *arguments, **named):
        init(adversaries, *arguments, **named)
        starts.append((weights(adversaries.generator), weights(adversaries.average)))

    monkeypatch.setattr(mean_embedding, "fit_generator", watched)
    monkeypatch.setattr(adversarial.Adversaries, "__init__", begun)
    made = METHOD.train(digits.job(**CRITIC))
    ((generator, average),) = starts
    assert torch.equal(generator, seen["trained"])
    assert torch.equal(average, seen["trained"])
    assert not torch.equal(weights(made.generator), seen["trained"])


def test_the_anchor_holds_it_to_what_was_released(digits, monkeypatch):
    """With a critic that pulls hard, a heavy anchor leaves the generator nearer to the released mean features."""
    found, generator_fit = {}, mean_embedding.fit_generator

    def watched(job, settings, sums):
        found["fit"] = generator_fit(job, settings, sums)
        return found["fit"]

    monkeypatch.setattr(mean_embedding, "fit_generator", watched)
    changes = CRITIC | {"refine_lr": 0.01, "labeller_share": 0.0, "fit_steps": 60, "critic_steps": 20, "sigma": 1e-3}
    far = []
    for anchor in (0.0, 100.0):
        made = METHOD.train(digits.job(**changes, anchor=anchor))
        with torch.no_grad():
            far.append(sum(float(found["fit"].loss(made)) for _ in range(20)) / 20)
    assert far[1] < far[0]


class Killed(BaseException):
    """The process is gone."""


def test_steps_that_were_lost_count(digits, steps):
    memory, authorised = digits.Memory(), []

    def until_the_fifth(step):
        if step == 5:
            raise Killed

    # Of the critic's steps 2 to 7 the run was cut off after the fifth was authorised.
    with pytest.raises(Killed):
        METHOD.train(digits.job(memory=memory, authorise=until_the_fifth, **CRITIC))
    assert {name.split("/")[0] for name in memory.kept} == {"statistics", "critic"}
    steps.clear()
    METHOD.train(digits.job(memory=memory, taken=5, authorise=authorised.append, **CRITIC))
    (step,) = steps
    assert step.taken == 6
    assert authorised == [6, 7, 8, 9, 10, 11]
    assert {name.split("/")[0] for name in memory.kept} == {"statistics", "critic", "labeller"}


def test_a_finished_stage_is_not_begun_again(digits, steps, monkeypatch):
    memory = digits.Memory()
    one = METHOD.train(digits.job(memory=memory, **CRITIC))
    monkeypatch.setattr(CriticSteps, "gradient", None)
    again = METHOD.train(digits.job(memory=memory, taken=1 + 6 + 4, **CRITIC))
    assert all(torch.equal(value, one.state_dict()[name]) for name, value in again.state_dict().items())


def test_it_works_without_labels(digits):
    made = METHOD.train(digits.job(text=digits.UNLABELLED, **CRITIC | {"labeller_share": 0.0}))
    noise = torch.randn(3, made.noise_width, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        assert made(noise).shape == (3, *digits.SHAPE)


def test_no_image_at_all(digits):
    made = METHOD.train(digits.job(rows=slice(0, 0), sigma=2.0, **CRITIC))
    assert torch.isfinite(weights(made.generator)).all()


def test_networks_that_let_images_meet_are_refused(digits, monkeypatch):
    seen = []
    refuse = private_critic_trainer.refuse_cross_record
    monkeypatch.setattr(private_critic_trainer, "refuse_cross_record", lambda *a: seen.append(a[1]) or refuse(*a))
    METHOD.train(digits.job(**CRITIC))
    assert seen == [digits.SHAPE, (4 + 6,)]
