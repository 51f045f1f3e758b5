"""The teacher of the non-private baseline: plain gradients of the mean loss of a lot."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from doublure.methods.method import Job
from doublure.private.gradients import CriticLoss, Records
from doublure.private.queries.lot_gradients import Partner
from doublure.training.gan_settings import AdversarialSettings


class PlainTeacher:
    """Gradients that protect no one.

    Args:
        job: The records and the sampling rate.
        settings: Loss and steps.
    """

    def __init__(self, job: Job, settings: AdversarialSettings) -> None:
        kind = "wgan" if settings.loss == "wgan-gp" else settings.loss
        self.taken = job.taken
        self._loss = CriticLoss(kind=kind, gradient_penalty=settings.penalty)
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

    def gradient(self, critic: nn.Module, partner: Partner) -> Tensor:
        """Return the gradient of the lot's mean loss, flat ``(P,)``."""
        # Nothing is paid for; asking lets a user stop the run, and keeps what it did in the ledger.
        self._authorise(self.taken + 1)
        self.taken += 1
        everyone = self._records.n_units
        size = max(1, int(self._draw.binomial(everyone, self._sample_rate)))
        body, condition, _, _ = self._records.lot(self._draw.choice(everyone, size, replace=False))
        with torch.no_grad():
            fake = partner(len(body), condition)
        mix = torch.rand(len(body), generator=self._mixing).to(body.device)
        records = Records(real=body, fake=fake, condition=condition, mix=mix)
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
