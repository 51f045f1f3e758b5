"""Noisy gradients of a critic, step by step, paid for by one access of the plan."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from doublure.errors import SettingError
from doublure.private.accounting import GaussianEvent
from doublure.private.clipping import clipped_sum
from doublure.private.filters import SpendingStore, UnitFilters
from doublure.private.gradients import RecordPairs
from doublure.private.noise import require_std
from doublure.private.partitions import Partitions
from doublure.private.queries.distances import DistanceSettings
from doublure.private.queries.lot_gradients import CriticGradients, CriticSettings, Partner

if TYPE_CHECKING:
    from doublure.access import Access
    from doublure.private.bayesian import BayesianAccountant
    from doublure.private.mechanism import Mechanism
    from doublure.private.records import PrivateRecords


class CriticSteps:
    """T noisy gradients of a critic.

    Args:
        mechanism: Of the run.
        access: The access that pays for them.
        records: The private records, in one place or with their owners.
        settings: A step's settings beside its event.
        distances: Settings of the distances that feed the Bayesian accountant; None for no such accountant.
        mixing: For tests and audits: a stream of mixing numbers that can be repeated.
        generator: The network that makes partners, for owners who make them by themselves.
        spending: Keeps what each unit has spent of its privacy filter, if the event has filters.

    Raises:
        SettingError: The noise of some step could not be drawn, the mixing numbers are for tests, or units that are
            clipped together are to have filters of their own.
    """

    def __init__(
        self,
        mechanism: Mechanism,
        access: Access,
        records: PrivateRecords | Partitions[PrivateRecords],
        settings: CriticSettings,
        *,
        distances: DistanceSettings | None = None,
        mixing: torch.Generator | None = None,
        generator: nn.Module | None = None,
        spending: SpendingStore | None = None,
    ) -> None:
        if not isinstance(access.event, GaussianEvent):
            raise TypeError(f"{access.purpose}: is no GaussianEvent")
        if mixing is not None and settings.loss.gradient_penalty and not mechanism.for_tests:
            # The guarantee relies on the points where slopes are taken being secret.
            raise SettingError("is for tests only", field="mixing", remedy="leave it out")
        self.event: GaussianEvent = access.event
        self.settings = settings
        # A schedule goes one way, so that its ends are its extremes.
        for step in (0, max(0, self.event.steps - 1)):
            require_std(self.event.noise_multiplier * settings.moved(step), field="max_grad_norm")
        self._mechanism = mechanism
        self._access = access
        self._records = records
        noise, steps = self.event.noise_multiplier, self.event.steps
        self._distances = None if distances is None else distances.measured(noise_multiplier=noise, steps=steps)
        filters = None if self.event.filter_steps is None else UnitFilters(self.event.filter_steps, spending)
        if filters is not None and settings.per_batch:
            raise SettingError("are for units one by one", field="filter_steps", remedy="set clipping=record")
        self._query = CriticGradients(
            settings, mixing=mixing, distances=self._distances, generator=generator, filters=filters
        )

    @property
    def steps(self) -> int:
        """Number of planned steps, T."""
        return self.event.steps

    @property
    def taken(self) -> int:
        """Number of steps spent so far."""
        return self._mechanism.taken(self._access)

    def skip(self, steps: int) -> None:
        """Go on after the steps that a checkpoint stands for."""
        self._mechanism.skip(self._access, steps)

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
        query = self._query.at(self.taken, critic, partner)
        noisy = self._mechanism.release(query, self._access, self._records, keep=False)
        device = next(critic.parameters()).device
        return torch.from_numpy(noisy).to(device) / self.settings.expected_units

    def generated_gradient(self, critic: nn.Module, records: Tensor, condition: Tensor | None) -> Tensor:
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
        bound = self.settings.bound(max(0, self.taken - 1))
        engine = self._query.engine(critic, None if isinstance(self._records, Partitions) else self._records)
        lot = engine.lot(RecordPairs(real=records, condition=condition))
        per_batch = float(len(records)) if self.settings.per_batch else None
        return -clipped_sum(lot, max_grad_norm=bound, per_batch=per_batch).total / len(records)

    # -- gradient distances --------------------------------------------------------------------------------------

    @property
    def estimate(self) -> BayesianAccountant | None:
        """The Bayesian accountant over all steps taken. Private: it is fed with private gradients."""
        return None if self._distances is None else self._distances.accountant(self.taken, self.event.sample_rate)

    def restore(self, state: Mapping[str, NDArray[np.float64]]) -> None:
        """Resume the estimate of an interrupted run; steps missing from it count as lost."""
        if self._distances is not None:
            self._distances.restore(state)
