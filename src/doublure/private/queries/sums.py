"""Sums of vectors over all records.

What a record adds is an outer product of two vectors that are made of it (the class of an image and its features; the
error of a linear model and what the model saw), so that a sum over all records is one matrix product, and a record's
length is the product of two lengths.

Sensitivity: each record's outer product is scaled down to length C, so that a unit with at most m records moves the sum
by m C at most. What is summed up may follow from earlier releases, and from nothing else that is private.

==========================================  ==========================================================
edge case                                   what happens
==========================================  ==========================================================
no record at all                            zeros
a vector that is not finite                 that record adds exactly zero
rows that meet in the factors               refused before a record is looked at
a unit with more records than planned       refused before a record is looked at
==========================================  ==========================================================
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import torch
from torch import Tensor

from doublure.private.clipping import clip_factors
from doublure.private.independence import refuse_meeting_rows
from doublure.private.queries.query import Answer, Sensitivity, require_everyone, require_records

if TYPE_CHECKING:
    from doublure.private.records import PrivateRecords

Factors: TypeAlias = Callable[[Tensor, Tensor | None], tuple[Tensor, Tensor]]
"""``(body (B, D…), condition (B, K) or None) -> (left (B, L), right (B, R))``, row i from record i alone."""

_CHUNK = 2_000


@dataclass(frozen=True, kw_only=True, eq=False)
class BoundedSums:
    """The sum of all records' outer products, each of bounded length.

    Attributes:
        factors: What a record adds, as two vectors.
        shape: ``(L, R)``.
        max_records: m, how many records a unit has at most.
        bound: C, the length that a record's outer product is scaled down to.
    """

    factors: Factors
    shape: tuple[int, int]
    max_records: int
    bound: float = 1.0

    @property
    def sensitivity(self) -> Sensitivity:
        """M C."""
        return Sensitivity.of_length(self.max_records * self.bound, math.prod(self.shape))

    def refuse_unfit(self, records: PrivateRecords) -> None:
        """Refuse units with too many records, and factors in which rows meet."""
        require_records(records.most_records, self.max_records)
        body, condition = records.nobody
        refuse_meeting_rows(self.factors, body, condition, field="factors")

    def answer(self, records: PrivateRecords, *, sample_rate: float) -> Answer:
        """Return the sum, flat ``(L · R,)`` float64."""
        require_everyone(sample_rate)
        total = torch.zeros(self.shape, dtype=torch.float64)
        for body, condition in records.expanded(_CHUNK):
            left, right = self.factors(body, condition)
            total += _bounded_sum(left, right, self.bound).cpu()
        moved = Sensitivity.of_length(self.max_records * self.bound, total.numel())
        return Answer(total=total.flatten().numpy(), sensitivity=moved)


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
