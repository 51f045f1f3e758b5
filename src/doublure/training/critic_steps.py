"""Training of a critic: noisy steps under a guarantee, or plain gradients for a baseline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from doublure.access import Access
from doublure.private.accounting import GaussianEvent
from doublure.private.critic_steps import CriticSteps
from doublure.private.gradients import CriticLoss, RecordPairs
from doublure.private.independence import refuse_cross_record
from doublure.private.queries.distances import DistanceSettings
from doublure.private.queries.lot_gradients import CriticSettings, Partner
from doublure.support.tensors import as_array
from doublure.training.gan_loop import Adversaries
from doublure.training.gan_settings import AdversarialSettings
from doublure.training.job import Job
from doublure.training.private_gan_settings import PrivateSettings

if TYPE_CHECKING:
    from doublure.private.partitions import Partitions
    from doublure.private.records import PrivateRecords

_SPENDING, _SPENT, _CHARGED = "spending", "spent", "charged"

_KINDS: dict[str, Literal["wgan", "hinge", "logistic"]] = {
    "wgan-gp": "wgan",
    "wgan": "wgan",
    "hinge": "hinge",
    "logistic": "logistic",
}


def private_critic_trainer(
    job: Job,
    settings: PrivateSettings,
    access: Access,
    adversaries: Adversaries,
    *,
    distances: DistanceSettings | None = None,
    **special: Any,
) -> CriticSteps:
    """Return the private trainer of the critic.

    Args:
        job: The run, or its stage.
        settings: With defaults resolved.
        access: The plan's access, with σ, q and T.
        adversaries: The networks; in neither may records interact.
        distances: Feeds the Bayesian accountant, if there is one.
        special: Overrides for :class:`CriticSettings`.
    """
    conditions = settings.condition_width(job.encoder)
    everyone = cast("PrivateRecords | Partitions[PrivateRecords]", job.everyone)
    refuse_cross_record(adversaries.critic, job.encoder.body_shape, conditions)
    refuse_cross_record(adversaries.generator, (settings.noise_width,), conditions)
    if not isinstance(access.event, GaussianEvent):
        raise TypeError(f"{access.purpose}: is no GaussianEvent")
    step = critic_settings(settings, expected_units=access.event.sample_rate * job.units, **special)
    return CriticSteps(
        job.mechanism,
        access,
        everyone,
        step,
        distances=distances,
        generator=adversaries.generator,
        spending=Spending(job) if access.event.filter_steps is not None else None,
    )


class Spending:
    """Keeps what units have spent of their privacy filters in the run's internal folder, until the run ends.

    Args:
        job: The run.
    """

    def __init__(self, job: Job) -> None:
        self._workspace = job.workspace
        self._key = job.records.fingerprint

    def load(self, units: int) -> tuple[npt.NDArray[np.float64], int] | None:
        """Return what an earlier session kept, if its records are the same."""
        kept = self._workspace.kept(_SPENDING, self._key)
        if kept is None:
            return None
        spent, steps = (as_array(kept[name]) for name in (_SPENT, _CHARGED))
        return spent.reshape(units), int(steps[0])

    @staticmethod
    def forget(job: Job) -> None:
        """Remove it: all steps are taken."""
        job.workspace.forget(_SPENDING)

    def save(self, spent: npt.NDArray[np.float64], steps: int) -> None:
        """Replace what is kept."""
        self._workspace.keep(_SPENDING, {_SPENT: spent, _CHARGED: np.array([steps])}, self._key)


def critic_settings(settings: PrivateSettings, *, expected_units: float, **special: Any) -> CriticSettings:
    """Return the settings of a critic's step; noise, rate and steps are its event's.

    Args:
        settings: With defaults resolved.
        expected_units: q N.
        special: Overrides for :class:`CriticSettings`.
    """
    return CriticSettings(
        loss=CriticLoss(kind=_KINDS[settings.loss], gradient_penalty=settings.penalty),
        schedule=settings.schedule,
        expected_units=expected_units,
        n_critic=settings.n_critic,
        **special,
    )


class PlainCriticTrainer:
    """Trainer of a critic by plain gradients, without any privacy.

    Args:
        job: The records and the sampling rate.
        settings: Loss and steps.
    """

    def __init__(self, job: Job, settings: AdversarialSettings) -> None:
        self.taken = job.taken
        self._loss = CriticLoss(kind=_KINDS[settings.loss], gradient_penalty=settings.penalty)
        self._steps = settings.steps or 1
        self._authorise = job.authorise
        self._records = job.records
        self._sample_rate = job.sample_rate
        self._draw = np.random.default_rng([job.seed, job.taken, 3])
        self._mixing = torch.Generator().manual_seed(job.seed + job.taken)

    @property
    def steps(self) -> int:
        """T."""
        return self._steps

    def skip(self, steps: int) -> None:
        """Do nothing: no step is drawn again where nothing is claimed."""

    def gradient(self, critic: nn.Module, partner: Partner) -> Tensor:
        """Return the gradient of the lot's mean loss, flat ``(P,)``."""
        # Nothing is paid for; authorise lets a user stop the run, and records the step in the ledger.
        self._authorise(self.taken + 1)
        self.taken += 1
        everyone = self._records.n_units
        size = max(1, int(self._draw.binomial(everyone, self._sample_rate)))
        body, condition, _, _ = self._records.lot(self._draw.choice(everyone, size, replace=False))
        with torch.no_grad():
            fake = partner(len(body), condition)
        mix = torch.rand(len(body), generator=self._mixing).to(body.device)
        records = RecordPairs(real=body, fake=fake, condition=condition, mix=mix)
        parameters = list(critic.parameters())
        for parameter in parameters:
            parameter.requires_grad_(True)
        try:
            loss = self._loss.per_record(critic, records).mean()
            gradients = torch.autograd.grad(loss, parameters)
        finally:
            for parameter in parameters:
                parameter.requires_grad_(False)
        return torch.cat([gradient.reshape(-1) for gradient in gradients])
