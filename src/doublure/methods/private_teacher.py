"""The teacher of a critic under a guarantee: :class:`PrivateStep`, as a method's settings ask for it."""

from __future__ import annotations

from typing import Any, Literal

from doublure.methods.adversarial import Adversaries
from doublure.methods.base import Job
from doublure.methods.private_settings import PrivateSettings
from doublure.private import noise
from doublure.private.accounting import GaussianEvent
from doublure.private.gradients import CriticLoss, refuse_cross_record
from doublure.private.mechanism import PrivateStep, StepSettings

_KINDS: dict[str, Literal["wgan", "hinge", "logistic"]] = {
    "wgan-gp": "wgan",
    "wgan": "wgan",
    "hinge": "hinge",
    "logistic": "logistic",
}


def private_teacher(
    job: Job, settings: PrivateSettings, event: GaussianEvent, adversaries: Adversaries, **special: Any
) -> PrivateStep:
    """Return what teaches the critic.

    Args:
        job: The run, or its stage.
        settings: Settled.
        event: What the plan pays for: σ, q and T.
        adversaries: The networks, neither of which may let records meet.
        special: What of :class:`StepSettings` is not as it usually is.
    """
    conditions = settings.condition_width(job.encoder)
    refuse_cross_record(adversaries.critic, job.encoder.body_shape, conditions)
    refuse_cross_record(adversaries.generator, (settings.noise_width,), conditions)
    step = StepSettings(
        loss=CriticLoss(kind=_KINDS[settings.loss], gradient_penalty=settings.penalty),
        schedule=settings.schedule,
        noise_multiplier=event.noise_multiplier,
        sample_rate=event.sample_rate,
        steps=event.steps,
        expected_units=event.sample_rate * job.units,
        n_critic=settings.n_critic,
        chunk_size=settings.chunk_size,
        **special,
    )
    return PrivateStep(
        job.records, step, noise=noise.source(settings.noise_source), authorise=job.authorise, taken=job.taken
    )
