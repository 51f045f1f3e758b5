"""The teacher of a critic under a guarantee: :class:`CriticSteps`, as a method's settings ask for it."""

from __future__ import annotations

from typing import Any, Literal

from doublure.access import Access
from doublure.methods.method import Job
from doublure.private.accounting import GaussianEvent
from doublure.private.critic_steps import CriticSteps
from doublure.private.gradients import CriticLoss
from doublure.private.independence import refuse_cross_record
from doublure.private.queries.distances import Distances
from doublure.private.queries.lot_gradients import CriticSettings
from doublure.training.gan_loop import Adversaries
from doublure.training.private_gan_settings import PrivateSettings

_KINDS: dict[str, Literal["wgan", "hinge", "logistic"]] = {
    "wgan-gp": "wgan",
    "wgan": "wgan",
    "hinge": "hinge",
    "logistic": "logistic",
}


def private_teacher(
    job: Job,
    settings: PrivateSettings,
    access: Access,
    adversaries: Adversaries,
    *,
    distances: Distances | None = None,
    **special: Any,
) -> CriticSteps:
    """Return what teaches the critic.

    Args:
        job: The run, or its stage.
        settings: Settled.
        access: What the plan pays for: σ, q and T.
        adversaries: The networks, neither of which may let records meet.
        distances: How the Bayesian accountant is fed, if there is one.
        special: What of :class:`CriticSettings` is not as it usually is.
    """
    conditions = settings.condition_width(job.encoder)
    refuse_cross_record(adversaries.critic, job.encoder.body_shape, conditions)
    refuse_cross_record(adversaries.generator, (settings.noise_width,), conditions)
    if not isinstance(access.event, GaussianEvent):
        raise TypeError(f"{access.purpose}: is no GaussianEvent")
    step = CriticSettings(
        loss=CriticLoss(kind=_KINDS[settings.loss], gradient_penalty=settings.penalty),
        schedule=settings.schedule,
        expected_units=access.event.sample_rate * job.units,
        n_critic=settings.n_critic,
        chunk_size=settings.chunk_size,
        **special,
    )
    return CriticSteps(job.mechanism, access, job.records, step, distances=distances, source=settings.stream)
