"""Sums of vectors over all private records, each sum with Gaussian noise.

:class:`PrivateSums` is to fixed features what :class:`~doublure.private.mechanism.PrivateStep` is to training: bound,
sum, noise and event in one object. What a record adds is an outer product of two vectors that the caller makes of it
(the class of an image and its features; the error of a linear model and what the model saw), so that a sum over all
records is one matrix product, and a record's length is the product of two lengths.

Guarantee: release number t is a Gaussian mechanism of noise multiplier σ_t on all units, for add/remove of one. Each
record's outer product is scaled down to length C, so that a unit with at most m records moves the sum by at most m C;
the noise has standard deviation σ_t m C. What is summed up may follow from earlier releases, and from nothing else that
is private.

==========================================  ==========================================================
edge case                                   what happens
==========================================  ==========================================================
no record at all                            noise alone
a vector that is not finite                 that record adds exactly zero
a release beyond the plan, or not paid for  refused before a record is looked at
a unit with more records than planned       refused before a record is looked at
==========================================  ==========================================================
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import torch
from torch import Tensor

from doublure.errors import SettingError
from doublure.private.accounting import GaussianEvent
from doublure.private.clipping import clip_factors
from doublure.private.noise import NoiseSource, require_std
from doublure.private.records import PrivateRecords

Factors: TypeAlias = Callable[[Tensor, Tensor | None], tuple[Tensor, Tensor]]
"""``(body (B, D…), condition (B, K) or None) -> (left (B, L), right (B, R))``, row i from record i alone."""

_CHUNK = 2_000


class PrivateSums:
    """Bounds, sums, noise and events in one object.

    Args:
        records: The private records.
        noise_multipliers: σ_t of each planned release, in order.
        max_records: m, how many records a unit has at most.
        noise: Where the noise comes from; a source for tests is refused unless ``allow_test_noise``.
        authorise: Called with the release's number before it is made, and returns once it is durably paid for.
        taken: Releases already made by an interrupted run (those whose result was lost included).
    """

    def __init__(
        self,
        records: PrivateRecords,
        noise_multipliers: Sequence[float],
        *,
        max_records: int,
        noise: NoiseSource,
        authorise: Callable[[int], None],
        taken: int = 0,
        allow_test_noise: bool = False,
    ) -> None:
        if noise.for_tests and not allow_test_noise:
            raise SettingError("is for tests only", field="noise", remedy="use os-keyed or chacha20")
        if not all(multiplier > 0 for multiplier in noise_multipliers):
            raise SettingError("must be positive", field="noise_multiplier", remedy="give an epsilon")
        self.taken = taken
        self._records = records
        self.noise_multipliers = tuple(noise_multipliers)
        self._max_records = max_records
        self._noise = noise
        self._authorise = authorise

    @property
    def events(self) -> tuple[GaussianEvent, ...]:
        """What has been done so far, as the accountant reads it."""
        return tuple(GaussianEvent(noise_multiplier=multiplier) for multiplier in self.noise_multipliers[: self.taken])

    @property
    def deviations(self) -> tuple[float, ...]:
        """Standard deviation σ_t m of each planned release's noise where C is 1, in order."""
        return tuple(multiplier * self._max_records for multiplier in self.noise_multipliers)

    def see(self, records: PrivateRecords) -> None:
        """Go on with another form of the same records, one row for each (:meth:`PrivateRecords.mapped`)."""
        self._records = records

    def release(self, factors: Factors, *, shape: tuple[int, int], bound: float = 1.0) -> Tensor:
        """Make the next release.

        Args:
            factors: What a record adds, as two vectors.
            shape: ``(L, R)``.
            bound: C, the length that a record's outer product is scaled down to.

        Returns:
            The noisy sum ``(L, R)``, float32.

        Raises:
            SettingError: The release is not the planned one, or its noise is none that float32 can carry.
        """
        if self.taken >= len(self.noise_multipliers):
            raise SettingError("all releases of the plan have been made", field="releases", remedy="make a new plan")
        if self._records.most_records > self._max_records:
            raise SettingError("a unit has more records than planned", field="max_records", remedy="bound them first")
        deviation = self.deviations[self.taken] * bound
        require_std(deviation, field="bound")
        self._authorise(self.taken + 1)
        self.taken += 1
        total = torch.zeros(shape, dtype=torch.float64)
        for body, condition in self._records.expanded(_CHUNK):
            left, right = factors(body, condition)
            total += _bounded_sum(left, right, bound).cpu()
        noise = self._noise.normal(total.numel(), deviation).view(shape)
        return total.float() + noise


def _bounded_sum(left: Tensor, right: Tensor, bound: float) -> Tensor:
    """Return the sum ``(L, R)`` of the rows' outer products, each scaled down to length ``bound``."""
    lengths = _length(left) * _length(right)
    weights = clip_factors(lengths, bound)
    counts = (weights > 0)[:, None]  # a product with zero would keep what is not finite
    scaled = torch.where(counts, left, 0.0).double() * weights[:, None]
    # What the dtype could hold only roughly is left out: rounded up, it could count for more than its share.
    scaled = torch.where(scaled.abs() >= torch.finfo(left.dtype).tiny, scaled, 0.0).to(left.dtype)
    product: Tensor = scaled.T @ torch.where(counts, right, 0.0)
    return product.double()


def _length(vectors: Tensor) -> Tensor:
    """Return each row's length, rounded upwards: a float32 sum of n squares is out by less than n units of rounding."""
    largest = vectors.abs().amax(dim=1).clamp(min=torch.finfo(vectors.dtype).tiny) if vectors.shape[1] else None
    if largest is None:
        return torch.zeros(len(vectors), dtype=torch.float64)
    # Divided first, so that no square overflows or vanishes.
    lengths = largest.double() * (vectors / largest[:, None]).square().sum(dim=1).double().sqrt()
    return lengths * (1 + vectors.shape[1] * torch.finfo(vectors.dtype).eps)
