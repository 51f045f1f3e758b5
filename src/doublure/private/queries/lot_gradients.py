"""Clipped gradients of a lot, for training a private critic.

Each unit's gradient of the whole paired critic loss is clipped once and added up (Abadi et al. 2016, Algorithm 1;
Frigerio et al. 2019, Algorithm 1, inner loop).

Sensitivity: C_t, or 2 C_t n where the lot's mean over n is clipped as a whole. The lot is drawn by Poisson sampling
over these records' units, at the rate that the plan's event has: over several partitions it is one Poisson lot.

Where units have privacy filters, every unit is in every lot, and its own bound is the smaller of C_t and what its
filter has left (:mod:`doublure.private.filters`); the sensitivity stays C_t.

=====================================  ==============================================================
edge case                              what happens
=====================================  ==============================================================
an empty lot                           zeros
a gradient that is not finite          that unit adds exactly zero, and nothing else changes
a critic that mixes rows               refused before its first step, with nothing drawn
=====================================  ==============================================================
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from doublure.errors import SettingError
from doublure.private.clipping import ClippedSum, Schedule, clipped_norms, clipped_sum
from doublure.private.filters import UnitFilters
from doublure.private.gradients import (
    CriticLoss,
    LotGradients,
    RecordGradients,
    RecordPairs,
)
from doublure.private.independence import refuse_cross_record
from doublure.private.noise import secret_draws
from doublure.private.queries.query import Answer, Sensitivity, require_everyone
from doublure.private.sampling import Lot, PoissonSampler
from doublure.support.tensors import as_array

if TYPE_CHECKING:
    from doublure.private.queries.distances import MeasuredDistances
    from doublure.private.records import PrivateRecords


class Partner(Protocol):
    """Makes one fresh generated record for each real one, from secret randomness and the record's own condition.

    The pairing of records with draws, and the number of draws, depend on the units in the lot. The guarantee therefore
    requires draws that are fresh, independent and never released.
    """

    def __call__(self, size: int, condition: Tensor | None) -> Tensor | None:
        """Return ``(size, D…)``, row i depending on no condition but the i-th; None where real records are alone."""


def unpaired(size: int, condition: Tensor | None) -> None:
    """Pair real records with nothing."""


@dataclass(frozen=True, kw_only=True)
class CriticSettings:
    """Settings of a critic's step beside its event; rate, noise and number of steps are the event's.

    Attributes:
        loss: The critic's loss.
        schedule: C_t by the generator's iteration, which is the step number divided by ``n_critic``.
        expected_units: q N with the public (or bought) N: the divisor, whatever the lot's size.
        n_critic: Steps of the critic in one iteration.
        paired: Whether each real record meets a generated one, within the clip. Only a critic that is bounded otherwise
            can do without: its generated term touches no record, and is then the caller's own.
        per_batch: Whether the lot's mean is clipped, as in the code published with the paper, instead of each unit's
            gradient: the sensitivity is then 2 C.
    """

    loss: CriticLoss
    schedule: Schedule
    expected_units: float
    n_critic: int = 1
    paired: bool = True
    per_batch: bool = False

    def __post_init__(self) -> None:
        if not self.paired and (self.loss.kind != "wgan" or self.loss.gradient_penalty):
            remedy = "pair the records, or use wgan with weight clipping"
            raise SettingError("needs a generated record for each real one", field="loss", remedy=remedy)
        if not self.expected_units > 0:
            raise SettingError("must be positive", field="expected_units", remedy="declare the schema's units")

    def bound(self, step: int) -> float:
        """Return C_t at a step of the critic, counted from 0."""
        return self.schedule.at(step // self.n_critic)

    def moved(self, step: int) -> float:
        """Return the sensitivity of a step's sum: C_t, or 2 C_t n."""
        return self.bound(step) if self.joint is None else 2 * self.bound(step) * self.joint

    @property
    def joint(self) -> float | None:
        """n, where the lot's mean is clipped as a whole."""
        return self.expected_units if self.per_batch else None


class CriticGradients:
    """The query of one step of a critic.

    Args:
        settings: Settings of the step.
        mixing: For tests and audits: a stream of mixing numbers that can be repeated. Left out, they are secret, as
            the draws of a :class:`Partner` are, and come from the same kind of stream as the noise.
        distances: Measured beside the step, for the Bayesian accountant.
        generator: The network that makes partners, for owners who make them by themselves; None without owners.
        lengths: For owners: the rate at which units are drawn to send their gradients' lengths; None: none is sent.
        filters: The units' privacy filters; None: there are none.

    Attributes:
        step: The step that is asked for next, counted from 0.
        partner: Makes the partners of its records.
        generator: See above.
        measured: The accountant of owners' lengths; None: there is none.
    """

    def __init__(
        self,
        settings: CriticSettings,
        *,
        mixing: torch.Generator | None = None,
        distances: MeasuredDistances | None = None,
        generator: nn.Module | None = None,
        lengths: float | None = None,
        filters: UnitFilters | None = None,
    ) -> None:
        self._filters = filters
        self.settings = settings
        self.generator = generator
        self.measured = distances
        self._lengths = lengths
        self.step = 0
        self.partner: Partner = unpaired
        self._mixing = mixing
        self._draws = secret_draws()
        self._gradients: tuple[nn.Module, RecordGradients] | None = None
        self._critic: nn.Module | None = None

    def at(self, step: int, critic: nn.Module, partner: Partner) -> CriticGradients:
        """Return the query of a step.

        Args:
            step: Counted from 0.
            critic: ``critic(x, condition) -> (B,)``.
            partner: Makes the generated record paired with each real one.
        """
        self.step, self._critic, self.partner = step, critic, partner if self.settings.paired else unpaired
        return self

    def unmeasured(self) -> CriticGradients:
        """Return the same query without its measured distances."""
        found = copy(self)
        found.measured = None
        return found

    @property
    def critic(self) -> nn.Module:
        """The critic of the step that is asked for."""
        if self._critic is None:
            raise TypeError("a step needs a critic")
        return self._critic

    @property
    def not_partitionable(self) -> str | None:
        """The reason where the lot is clipped as a whole, or units have filters: all records are in one place."""
        if self._filters is not None:
            return "what each unit has cost is kept in one place"
        return None if self.settings.joint is None else "a lot that is clipped together is no sum of parts"

    @property
    def sensitivity(self) -> Sensitivity:
        """Sensitivity of the clipped sum: C_t, or 2 C_t n."""
        return Sensitivity.of_length(self.settings.moved(self.step), self._size)

    @property
    def _size(self) -> int:
        return 0 if self._critic is None else sum(parameter.numel() for parameter in self._critic.parameters())

    def refuse_unfit(self, records: PrivateRecords) -> None:
        """Refuse a critic that mixes records."""
        self.engine(self.critic, records)

    def answer(self, records: PrivateRecords, *, sample_rate: float) -> Answer:
        """Return the sum of a fresh lot's clipped gradients ``(P,)`` float32, in ``critic.parameters()`` order."""
        if self.measured is not None:
            self._measure(self.measured, records, sample_rate)
        sampler = PoissonSampler(records.n_units, sample_rate)
        lot = self.gradients(records, sampler.lot())
        clipped = self._filtered(lot, self._filters, sample_rate) if self._filters else self._clipped(lot)
        total = clipped.total.cpu().numpy()
        return Answer(
            total=total,
            sensitivity=Sensitivity.of_length(clipped.sensitivity, len(total)),
            sample_rate=sampler.sample_rate,
            sampling=sampler.sampling,
            lengths=None if self._lengths is None else self._told(records, self._lengths),
            filter_steps=None if self._filters is None else self._filters.steps,
        )

    def _clipped(self, lot: LotGradients) -> ClippedSum:
        return clipped_sum(lot, max_grad_norm=self.settings.bound(self.step), per_batch=self.settings.joint)

    def _filtered(self, lot: LotGradients, filters: UnitFilters, sample_rate: float) -> ClippedSum:
        """Return the sum with each unit clipped to what its filter has left, and charge it, before noise is paid."""
        require_everyone(sample_rate)
        bound, shares = self.settings.bound(self.step), filters.shares(lot.units, self.step)
        clipped = clipped_sum(lot, max_grad_norm=bound, shares=torch.from_numpy(shares).to(lot.zero.device))
        if clipped.lengths is None:
            raise TypeError("units that are clipped together have no lengths of their own")
        filters.charge(as_array(clipped.lengths) / bound, self.step)
        return clipped

    def _told(self, records: PrivateRecords, rate: float) -> npt.NDArray[np.float64]:
        """Return the lengths over C of the clipped gradients of some units, drawn apart from the lot."""
        drawn, bound = PoissonSampler(records.n_units, rate).lot(), self.settings.bound(self.step)
        lengths = clipped_norms(self.gradients(records, drawn), max_grad_norm=bound) / bound
        return as_array(lengths).astype(np.float64)

    def _measure(self, distances: MeasuredDistances, records: PrivateRecords, sample_rate: float) -> None:
        distances.measure(
            lambda units: self.gradients(records, units),
            n_units=records.n_units,
            sample_rate=sample_rate,
            step=self.step,
            bound=self.settings.bound(self.step),
            joint=self.settings.joint,
        )

    def gradients(self, records: PrivateRecords, units: Lot) -> LotGradients:
        """Return the gradients of some units, each record with a fresh partner. Private."""
        real, condition, group, groups = records.lot(units)
        with torch.no_grad():
            fake = self.partner(len(real), condition)
        paired = RecordPairs(real=real, fake=fake, condition=condition, mix=self._mix(len(real)).to(real.device))
        return self.engine(self.critic, records).lot(paired, group=group, groups=groups)

    def engine(self, critic: nn.Module, records: PrivateRecords | None) -> RecordGradients:
        """Return the gradients of a critic, which is first checked not to mix records.

        Args:
            critic: The critic.
            records: Records, for their form; None where the critic was checked before.
        """
        if self._gradients is None or self._gradients[0] is not critic:
            if records is None:
                raise TypeError("it is not checked yet whether records meet in this critic")
            body, condition = records.empty_lot
            refuse_cross_record(critic, body.shape[1:], 0 if condition is None else condition.shape[1])
            self._gradients = critic, RecordGradients(critic, self.settings.loss)
        return self._gradients[1]

    def _mix(self, size: int) -> Tensor:
        if self._mixing is not None:
            return torch.rand(size, generator=self._mixing)
        return self._draws.uniform(size)
