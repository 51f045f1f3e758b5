"""Noisy sums over all records, one release at a time, paid for by some of the plan's accesses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, cast

import torch
from torch import Tensor

from doublure.access import Access
from doublure.errors import SettingError
from doublure.private.accounting import GaussianEvent
from doublure.private.executed import steps_of
from doublure.private.mechanism import Mechanism
from doublure.private.queries.query import Sensitivity
from doublure.private.queries.sums import BoundedSums, Factors
from doublure.training.job import Job

if TYPE_CHECKING:
    from doublure.private.bayesian import BayesianAccountant
    from doublure.private.partitions import Partitions
    from doublure.private.queries.distances import DistanceSettings
    from doublure.private.records import PrivateRecords

_ESTIMATE = "estimate."


class NoisySums:
    """The releases of some accesses, in order.

    Args:
        job: The run, or its stage.
        accesses: Accesses of the plan.
        distances: Feeds the Bayesian accountant with the steps of one access; None without such an accountant.

    Attributes:
        accesses: As given.
    """

    def __init__(self, job: Job, accesses: Sequence[Access], *, distances: DistanceSettings | None = None) -> None:
        self._mechanism: Mechanism = job.mechanism
        self._releases = [access for access in accesses for _ in range(steps_of(access))]
        self.accesses = accesses
        self._max_records = job.encoder.schema.most_records
        self._measured = None
        if distances is not None:
            (access,) = accesses
            if not isinstance(access.event, GaussianEvent):
                raise TypeError(f"{access.purpose}: is no GaussianEvent")
            noise, steps = access.event.noise_multiplier, access.event.steps
            self._measured = distances.measured(noise_multiplier=noise, steps=steps)
        self.see(job)

    @property
    def releases(self) -> int:
        """Number of releases in the plan."""
        return len(self._releases)

    @property
    def taken(self) -> int:
        """Number of releases made so far, lost ones included."""
        return sum(self._mechanism.taken(access) for access in self.accesses)

    @property
    def all_paid(self) -> bool:
        """Whether no further query reaches the records: any release that is left was drawn before."""
        return all(self._mechanism.all_paid(access) for access in self.accesses)

    @property
    def next(self) -> Access:
        """The access that pays for the next release."""
        if self.taken >= self.releases:
            raise SettingError("all noisy steps of the plan have been taken", field="steps", remedy="make a new plan")
        return self._releases[self.taken]

    @property
    def deviations(self) -> tuple[float, ...]:
        """Standard deviation of each release's noise where C is 1, in order."""
        moved = Sensitivity.of_length(self._max_records, 1)
        return tuple(self._mechanism.deviation(access, moved) for access in self._releases)

    def see(self, job: Job) -> None:
        """Continue with another view of the same records, one row for each (:meth:`Job.seen`)."""
        self._records = cast("PrivateRecords | Partitions[PrivateRecords]", job.everyone)

    @property
    def estimate(self) -> BayesianAccountant | None:
        """The Bayesian accountant, with every step that was ever taken. Private: private vectors feed it."""
        return None if self._measured is None else self._measured.accountant(self.taken, 1.0)

    def state(self) -> dict[str, Tensor]:
        """Return the estimate's state for a resumed run; empty without an estimate. Private."""
        kept = {} if self.estimate is None else self.estimate.state()
        return {_ESTIMATE + name: torch.from_numpy(array) for name, array in kept.items()}

    def restore(self, kept: Mapping[str, Tensor]) -> None:
        """Restore the estimate of an interrupted run, if one was kept; other steps count as lost.

        Raises:
            SettingError: The state belongs to another accountant.
        """
        names = [name for name in kept if name.startswith(_ESTIMATE)]
        if self._measured is not None and names:
            self._measured.restore({name.removeprefix(_ESTIMATE): kept[name].numpy() for name in names})

    def release(self, factors: Factors, *, shape: tuple[int, int], bound: float = 1.0) -> Tensor:
        """Make the next release.

        Args:
            factors: A record's summand, as two vectors.
            shape: ``(L, R)``.
            bound: C, the norm that a record's outer product is clipped to.

        Returns:
            The noisy sum ``(L, R)``, float32.

        Raises:
            SettingError: The release is not the planned one, or float32 cannot hold its noise.
        """
        access, noise = self.next, self.deviations[self.taken]
        query = BoundedSums(
            factors=factors, shape=shape, max_records=self._max_records, bound=bound, noise=noise,
            measured=self._measured, step=self.taken,
        )  # fmt: skip
        noisy = self._mechanism.release(query, access, self._records)
        return torch.from_numpy(noisy).view(shape)
