"""The one place that joins sampling, clipping, noise and the event.

:class:`PrivateStep` is the only way to get a number out of private records while training: it draws a Poisson lot,
takes each unit's gradient of the whole paired critic loss, clips it once, sums, adds noise once to one flat buffer
and divides by a public constant (Abadi et al. 2016, Algorithm 1; Frigerio et al. 2019, Algorithm 1, inner loop).

Guarantee: T calls of :meth:`PrivateStep.gradient` are together the event that :attr:`PrivateStep.event` states, for
add/remove of one unit: a Gaussian mechanism of sensitivity C_t and standard deviation σ C_t on a Poisson lot of rate
q, composed T times. q, σ, T and the schedule C_t are fixed before a record is seen; the check that a step is left, and
that it has been authorised on disk, comes before the step.

=====================================  ==============================================================
edge case                              what happens
=====================================  ==============================================================
an empty lot                           noise alone, and the step counts
a gradient that is not finite          that unit adds exactly zero, and nothing else changes
a step beyond T or not authorised      refused before anything is drawn
a critic that mixes rows               refused before its first step, with nothing drawn
=====================================  ==============================================================
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor, nn

from doublure.errors import SettingError
from doublure.private.accounting import GaussianEvent
from doublure.private.clipping import Schedule, clipped_sum
from doublure.private.gradients import CriticLoss, RecordGradients, Records, refuse_cross_record
from doublure.private.noise import NoiseSource, require_std, secret_draws
from doublure.private.records import PrivateRecords
from doublure.private.sampling import PoissonSampler


class Partner(Protocol):
    """Makes one fresh generated record for each real one, from secret randomness and the record's own condition.

    Secret, since which record is paired with which draw, and how many draws a lot takes, depend on who is in the lot:
    the guarantee holds for draws that are fresh, independent and never released.
    """

    def __call__(self, size: int, condition: Tensor | None) -> Tensor:
        """Return ``(size, D…)``, row i depending on no condition but the i-th."""


@dataclass(frozen=True, kw_only=True)
class StepSettings:
    """What a step is, fixed in the plan.

    Attributes:
        loss: The critic's loss.
        schedule: C_t by the generator's iteration, which is the step number divided by ``n_critic``.
        n_critic: Steps of the critic in one iteration.
        noise_multiplier: σ.
        sample_rate: q.
        steps: T.
        expected_units: q N with the public (or bought) N: the divisor, whatever the lot's size.
        chunk_size: Physical batch size; changes nothing.
    """

    loss: CriticLoss
    schedule: Schedule
    noise_multiplier: float
    sample_rate: float
    steps: int
    expected_units: float
    n_critic: int = 1
    chunk_size: int | None = None

    def __post_init__(self) -> None:
        if not self.expected_units > 0:
            raise SettingError("must be positive", field="expected_units", remedy="declare the schema's units")
        if not self.noise_multiplier > 0:  # NaN too
            raise SettingError("must be positive", field="noise_multiplier", remedy="use method gan for no privacy")
        # A schedule goes one way, so that its ends are its extremes.
        for iteration in (0, max(0, self.steps - 1) // self.n_critic):
            require_std(self.noise_multiplier * self.schedule.at(iteration), field="max_grad_norm")


class PrivateStep:
    """Sampler, clipped sum, noise and event in one object.

    Args:
        records: The private records.
        settings: What a step is.
        noise: Where the noise comes from; a source for tests is refused unless ``allow_test_noise``.
        authorise: Called with the step number before it is taken, and returns once that step is durably paid for.
        taken: Steps already spent by an interrupted run (those whose result was lost included).
        mixing: For tests and audits: a stream for the gradient penalty's mixing numbers that can be repeated. Left out,
            they are secret, as what a :class:`Partner` draws, and of the same kind of stream as the noise.
    """

    def __init__(
        self,
        records: PrivateRecords,
        settings: StepSettings,
        *,
        noise: NoiseSource,
        authorise: Callable[[int], None],
        taken: int = 0,
        mixing: torch.Generator | None = None,
        allow_test_noise: bool = False,
    ) -> None:
        if noise.for_tests and not allow_test_noise:
            raise SettingError("is for tests only", field="noise", remedy="use os-keyed or chacha20")
        if mixing is not None and settings.loss.gradient_penalty and not allow_test_noise:
            # Whoever knew where the slopes are taken would know what the guarantee counts on being secret.
            raise SettingError("is for tests only", field="mixing", remedy="leave it out")
        self.settings = settings
        self.taken = taken
        self._records = records
        self._sampler = PoissonSampler(records.n_units, settings.sample_rate)
        self._noise = noise
        self._authorise = authorise
        self._mixing = mixing
        self._draws = secret_draws("chacha20" if noise.name == "chacha20" else "os-keyed")
        self._gradients: tuple[nn.Module, RecordGradients] | None = None

    @property
    def steps(self) -> int:
        """T."""
        return self.settings.steps

    @property
    def event(self) -> GaussianEvent:
        """What has been done so far, as the accountant reads it."""
        return GaussianEvent(
            noise_multiplier=self.settings.noise_multiplier,
            sample_rate=self.settings.sample_rate,
            steps=self.taken,
            sampling=self._sampler.sampling,
        )

    def gradient(self, critic: nn.Module, partner: Partner) -> Tensor:
        """Take one noisy step.

        Args:
            critic: ``critic(x, condition) -> (B,)``.
            partner: Makes the generated record paired with each real one.

        Returns:
            The noisy mean gradient of the critic's loss, flat ``(P,)`` float32, in ``critic.parameters()`` order.

        Raises:
            SettingError: All T steps have been taken, or the critic mixes records.
        """
        if self.taken >= self.settings.steps:
            raise SettingError("all noisy steps of the plan have been taken", field="steps", remedy="make a new plan")
        gradients = self._of(critic)
        self._authorise(self.taken + 1)
        step, self.taken = self.taken, self.taken + 1
        body, condition, group, groups = self._records.lot(self._sampler.lot())
        with torch.no_grad():
            fake = partner(len(body), condition)
        mix = self._mix(len(body)).to(body.device)
        records = Records(real=body, fake=fake, condition=condition, mix=mix)
        lot = gradients.lot(records, group=group, groups=groups, chunk_size=self.settings.chunk_size)
        clipped = clipped_sum(lot, max_grad_norm=self.settings.schedule.at(step // self.settings.n_critic))
        std = self.settings.noise_multiplier * clipped.sensitivity
        noise = self._noise.normal(clipped.total.numel(), std).to(clipped.total.device)
        return (clipped.total + noise) / self.settings.expected_units

    def _of(self, critic: nn.Module) -> RecordGradients:
        if self._gradients is None or self._gradients[0] is not critic:
            body, condition, _, _ = self._records.lot(np.empty(0, dtype=np.int64))
            refuse_cross_record(critic, body.shape[1:], 0 if condition is None else condition.shape[1])
            self._gradients = critic, RecordGradients(critic, self.settings.loss)
        return self._gradients[1]

    def _mix(self, size: int) -> Tensor:
        if self._mixing is not None:
            return torch.rand(size, generator=self._mixing)
        return self._draws.uniform(size)
