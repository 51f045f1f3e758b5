"""The one place that joins sampling, clipping, noise and the event.

:class:`PrivateStep` is the only way to get a number out of private records while training: it draws a Poisson lot,
takes each unit's gradient of the whole paired critic loss, clips it once, sums, adds noise once to one flat buffer
and divides by a public constant (Abadi et al. 2016, Algorithm 1; Frigerio et al. 2019, Algorithm 1, inner loop).

Where a run is also priced by the Bayesian accountant, the same object samples the gradient distances that it is fed
with, and feeds them: :class:`Distances`. They are the only ones there are, and they never leave it.

Guarantee: T calls of :meth:`PrivateStep.gradient` are together the event that :attr:`PrivateStep.event` states, for
add/remove of one unit: a Gaussian mechanism of sensitivity C_t (2 C_t where the lot is clipped together) and σ times
that as standard deviation, on a Poisson lot of rate q, composed T times. q, σ, T and the schedule C_t are fixed before
a record is seen; the check that a step is left, and that it has been authorised on disk, comes before the step.

=====================================  ==============================================================
edge case                              what happens
=====================================  ==============================================================
an empty lot                           noise alone, and the step counts
a gradient that is not finite          that unit adds exactly zero, and nothing else changes
a step beyond T or not authorised      refused before anything is drawn
a critic that mixes rows               refused before its first step, with nothing drawn
fewer units than distances             those that are missing count as the largest there can be
a step whose distances were lost       counts as if all its distances were the largest
=====================================  ==============================================================
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from doublure.errors import SettingError
from doublure.private.accounting import GaussianEvent
from doublure.private.bayesian import FEWEST_DISTANCES, BayesianAccountant, Bound
from doublure.private.clipping import Schedule, clipped_norms, clipped_sum, moved_together
from doublure.private.gradients import CriticLoss, LotGradients, RecordGradients, Records, refuse_cross_record
from doublure.private.noise import NoiseSource, require_std, secret_draws
from doublure.private.records import PrivateRecords
from doublure.private.sampling import FixedSizeSampler, Lot, PoissonSampler


class Partner(Protocol):
    """Makes one fresh generated record for each real one, from secret randomness and the record's own condition.

    Secret, since which record is paired with which draw, and how many draws a lot takes, depend on who is in the lot:
    the guarantee holds for draws that are fresh, independent and never released.
    """

    def __call__(self, size: int, condition: Tensor | None) -> Tensor | None:
        """Return ``(size, D…)``, row i depending on no condition but the i-th; None where real records are alone."""


def unpaired(size: int, condition: Tensor | None) -> None:
    """Pair real records with nothing."""


@dataclass(frozen=True, kw_only=True)
class Distances:
    """How gradient distances are sampled and bounded, fixed in the plan (Triastcyn and Faltings 2022, section 2.4).

    A distance is how far one unit more moves what is about to be noised, over how far it can move it at most: for a
    sum of clipped gradients the unit's own clipped norm over C, whatever else is in the lot. In each step ``count`` of
    them are drawn from units that are sampled evenly and afresh, beside the lot that the step is taken with. Where the
    lot is clipped together each has a fresh lot of its own, because there the distance depends on the others as well.

    Attributes:
        count: m.
        orders: The λ of the accountant.
        gamma: Failure probability of one step's confidence bound.
        bound: The confidence bound.
        paper_literal: Equation 5 to the letter.
        union: Whether γ is spent over all orders.
    """

    count: int
    orders: Sequence[int]
    gamma: float
    bound: Bound = "student-t"
    paper_literal: bool = False
    union: bool = False

    def __post_init__(self) -> None:
        if self.count < FEWEST_DISTANCES:
            raise SettingError("must be larger", field="distances", remedy=f"sample at least {FEWEST_DISTANCES}")

    def accountant(self, steps: int) -> BayesianAccountant:
        """Return an accountant for that many steps, fed with distances relative to the largest one."""
        return BayesianAccountant(
            self.orders,
            steps,
            bound=self.bound,
            paper_literal=self.paper_literal,
            max_distance=1.0,
            gamma=self.gamma,
            union=self.union,
        )


@dataclass(frozen=True, kw_only=True)
class StepSettings:
    """What a step is, fixed in the plan.

    Attributes:
        loss: The critic's loss.
        schedule: C_t by the generator's iteration, which is the step number divided by ``n_critic``.
        n_critic: Steps of the critic in one iteration.
        noise_multiplier: σ, the noise's standard deviation over the sensitivity.
        sample_rate: q.
        steps: T.
        expected_units: q N with the public (or bought) N: the divisor, whatever the lot's size.
        chunk_size: Physical batch size; changes nothing.
        paired: Whether each real record meets a generated one, within the clip. Only a critic that is bounded otherwise
            can do without: its generated term touches no record, and is then the caller's own.
        together: Whether the lot's mean is clipped, as in the code published with the paper, instead of each unit's
            gradient: the sensitivity is then 2 C.
        distances: How the Bayesian accountant is fed; None for no such accountant.
    """

    loss: CriticLoss
    schedule: Schedule
    noise_multiplier: float
    sample_rate: float
    steps: int
    expected_units: float
    n_critic: int = 1
    chunk_size: int | None = None
    paired: bool = True
    together: bool = False
    distances: Distances | None = None

    def __post_init__(self) -> None:
        if not self.paired and (self.loss.kind != "wgan" or self.loss.gradient_penalty):
            remedy = "pair the records, or use wgan with weight clipping"
            raise SettingError("needs a generated record for each real one", field="loss", remedy=remedy)
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
        self._estimate = None if settings.distances is None else settings.distances.accountant(settings.steps)

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
        partner = partner if self.settings.paired else unpaired
        gradients = self._of(critic)
        self._authorise(self.taken + 1)
        self._measure(gradients, partner)
        step, self.taken = self.taken, self.taken + 1
        body, condition, group, groups = self._records.lot(self._sampler.lot())
        with torch.no_grad():
            fake = partner(len(body), condition)
        mix = self._mix(len(body)).to(body.device)
        records = Records(real=body, fake=fake, condition=condition, mix=mix)
        lot = gradients.lot(records, group=group, groups=groups, chunk_size=self.settings.chunk_size)
        clipped = clipped_sum(
            lot, max_grad_norm=self.settings.schedule.at(step // self.settings.n_critic), together=self._together
        )
        std = self.settings.noise_multiplier * clipped.sensitivity
        noise = self._noise.normal(clipped.total.numel(), std).to(clipped.total.device)
        return (clipped.total + noise) / self.settings.expected_units

    def of_generated(self, critic: nn.Module, records: Tensor, condition: Tensor | None) -> Tensor:
        """Return the mean gradient of D over generated records, for a step that leaves them out; flat ``(P,)``.

        They are clipped as real ones are, so that neither half of the critic's gradient outweighs the other. No noise:
        they follow from public draws and from what has been noised before.

        Args:
            critic: As in :meth:`gradient`, which is called first.
            records: ``(B, D…)``.
            condition: ``(B, K)``, drawn from public shares.
        """
        if self.settings.paired:
            raise SettingError("are in the step already", field="generated records", remedy="take paired=False")
        bound = self.settings.schedule.at(max(0, self.taken - 1) // self.settings.n_critic)
        lot = self._of(critic).lot(Records(real=records, condition=condition), chunk_size=self.settings.chunk_size)
        together = float(len(records)) if self.settings.together else None
        return -clipped_sum(lot, max_grad_norm=bound, together=together).total / len(records)

    # -- gradient distances ------------------------------------------------------------------------------------------

    @property
    def estimate(self) -> BayesianAccountant | None:
        """The Bayesian accountant, with every step that was ever taken. Private: it is fed with private gradients."""
        if self._estimate is not None and (lost := self.taken - self._estimate.steps_taken):
            self._estimate.lost(self.settings.noise_multiplier, self.settings.sample_rate, lost)
        return self._estimate

    def take_up(self, state: Mapping[str, NDArray[np.float64]]) -> None:
        """Go on with the estimate of an interrupted run; steps that it does not know of count as lost."""
        if self._estimate is not None:
            self._estimate.take_up(state)

    def _measure(self, gradients: RecordGradients, partner: Partner) -> None:
        """Sample this step's distances and charge them, before its lot is drawn."""
        accountant, asked = self.estimate, self.settings.distances
        if accountant is None or asked is None:
            return
        bound = self.settings.schedule.at(self.taken // self.settings.n_critic)
        if self.settings.together:
            found = [self._apart(gradients, partner, bound) for _ in range(asked.count)]
        else:
            drawn = FixedSizeSampler(self._records.n_units, min(asked.count, self._records.n_units)).lot()
            found = (clipped_norms(self._lot_of(drawn, gradients, partner), max_grad_norm=bound) / bound).tolist()
        found += [1.0] * (asked.count - len(found))
        accountant.step(found, self.settings.noise_multiplier, self.settings.sample_rate)

    def _apart(self, gradients: RecordGradients, partner: Partner, bound: float) -> float:
        """Return how far apart a fresh lot's clipped mean is with and without one unit, over 2 C."""
        chosen = FixedSizeSampler(self._records.n_units, min(1, self._records.n_units)).lot()
        others = np.setdiff1d(self._sampler.lot(), chosen)
        without, alone = (self._lot_of(units, gradients, partner) for units in (others, chosen))
        moved = moved_together(without, alone, max_grad_norm=bound, together=self.settings.expected_units)
        return moved / (2 * bound * self.settings.expected_units) if len(chosen) else 1.0

    def _lot_of(self, units: Lot, gradients: RecordGradients, partner: Partner) -> LotGradients:
        """Return the gradients of some units, each record with a fresh partner."""
        real, condition, group, groups = self._records.lot(units)
        with torch.no_grad():
            fake = partner(len(real), condition)
        paired = Records(real=real, fake=fake, condition=condition, mix=self._mix(len(real)).to(real.device))
        return gradients.lot(paired, group=group, groups=groups, chunk_size=self.settings.chunk_size)

    @property
    def _together(self) -> float | None:
        return self.settings.expected_units if self.settings.together else None

    # -- inside ------------------------------------------------------------------------------------------------------

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
