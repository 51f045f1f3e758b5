"""Sums of vectors over all records, in whole numbers.

What a record adds is an outer product of two vectors that are made of it (the class of an image and its features; the
error of a linear model and what the model saw), so that a sum over all records is one matrix product, and a record's
length is the product of two lengths.

Sensitivity: each record's outer product is scaled down to length C, so that a unit with at most m records moves the sum
by m C at most. The factors may follow from earlier releases, and from nothing else that is private.

No floating-point number decides that. The two vectors are brought to lengths of at most 1, cut off towards zero to
grids of 2^-a and 2^-b, which are public, and are whole numbers from there on: l and r with Σ l² < 4^a and Σ r² < 4^b,
which is *checked* in whole numbers. The sum S of all l rᵀ is exact (products of matrices in float64 stay below 2^53,
their sum is int64), in steps of C 2^-(a + b). As S is whole, so is its noise
(:mod:`doublure.private.exact_normals`), and S + round(Z) = round(S + Z): a function of what the Gaussian mechanism
gives out, so that the event and its price are the Gaussian's.

What a record adds is a function of that record. A product of matrices makes of a row what differs in its last digits by
the row's place and by how many rows there are, and a digit that differs is a step of the grid: so records are looked at
in batches of one size, each at a place that follows from its own content (:meth:`PrivateRecords.placed`). That rests on
the machine computing the same from the same numbers at the same place.

Accuracy: cutting off takes less than one step of each vector's grid from each number, so that N records' sum is
out by less than N C (2^-a + 2^-b). With a = 20 and b = 22, as they are for noise of a deviation of C, that is less than
a tenth of the noise for 60,000 records at worst, and less than a thousandth on images. Where the noise is larger, steps
are larger, as much as leaves that share.

==========================================  ==========================================================
edge case                                   what happens
==========================================  ==========================================================
no record at all                            zeros
a vector that is not finite                 that record adds exactly zero
a record that is longer than C all the      cannot be; it is looked for, and adds exactly zero
same, in whole numbers
many equal records                          looked at once, and counted as many times
more records than 63 bits count             the sum goes round modulo 2^64, which protects as before
rows that meet in the factors               refused before a record is looked at
a unit with more records than planned       refused before a record is looked at
==========================================  ==========================================================
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import torch
from torch import Tensor

from doublure.private.clipping import clip_factors
from doublure.private.independence import refuse_meeting_rows
from doublure.private.queries.query import Answer, Sensitivity, require_everyone, require_records
from doublure.private.sampling import FixedSizeSampler

if TYPE_CHECKING:
    from doublure.private.queries.distances import MeasuredDistances
    from doublure.private.records import PrivateRecords

Factors: TypeAlias = Callable[[Tensor, Tensor | None], tuple[Tensor, Tensor]]
"""``(body (B, D…), condition (B, K) or None) -> (left (B, L), right (B, R))``, row i from record i alone."""

_ROWS = 64
"""Records in a batch; smaller batches leave fewer places empty."""

_LEFT, _RIGHT = 20, 22
_TIMES = 32
"""Bound on the multiplicity of a record in a product, which is exact as 64 · 31 · 2^(20 + 22) < 2^53."""

_COARSEST = 32
_MARGIN = 2.0**-20  # a vector is made shorter by so much that float32 does not make it longer than 1
_ROUNDED_UP = 2.0**-12
_LONGEST = 1 - 2.0**-21
"""Largest squared length; m C, rounded to a float, then still exceeds the lengths of m records."""


@dataclass(frozen=True, kw_only=True, eq=False)
class BoundedSums:
    """The sum of all records' outer products, each of bounded length.

    Attributes:
        factors: Maps records to the two vectors of their outer products.
        shape: ``(L, R)``.
        max_records: m, the most records of a unit.
        bound: C, the length that a record's outer product is scaled down to.
        noise: Standard deviation of the noise where C is 1, as the plan has it. Above 1 a step of the grid grows with
            it, which costs nothing, so that the noise fits into a whole number.
        measured: The Bayesian accountant that is charged with single units' distances; None: there is none.
        step: The accountant's step, counted from 0.
    """

    factors: Factors
    shape: tuple[int, int]
    max_records: int
    bound: float = 1.0
    noise: float = 1.0
    measured: MeasuredDistances | None = None
    step: int = 0

    @property
    def sensitivity(self) -> Sensitivity:
        """Sensitivity of at most m records, each of length C."""
        return Sensitivity.of_length(self.max_records * self.bound, math.prod(self.shape))

    @property
    def unit(self) -> float:
        """The step of the sum's grid, C 2^-(a + b)."""
        return math.ldexp(self.bound, -sum(self._bits))

    @property
    def _bits(self) -> tuple[int, int]:
        """Return a and b."""
        coarser = min(_COARSEST, max(0, math.frexp(self.noise)[1] - 1))
        return _LEFT - coarser // 2, _RIGHT - (coarser + 1) // 2

    def refuse_unfit(self, records: PrivateRecords) -> None:
        """Refuse units with too many records, and factors that mix rows."""
        require_records(records.most_records, self.max_records)
        body, condition = records.empty_lot
        refuse_meeting_rows(self.factors, body, condition, field="factors")

    def answer(self, records: PrivateRecords, *, sample_rate: float) -> Answer:
        """Return the sum, flat ``(L · R,)`` int64, in steps of :attr:`unit`."""
        require_everyone(sample_rate)
        if self.measured is not None:
            self.measured.charge(self._moved(records, self.measured.count), sample_rate=sample_rate, step=self.step)
        total = torch.zeros(self.shape, dtype=torch.int64)
        for body, condition, times in records.placed(_ROWS):
            whole = _in_whole_numbers(*self.factors(body, condition), bound=self.bound, bits=self._bits)
            total = total.to(whole.left.device) + _sum(whole, times)
        moved = Sensitivity.of_length(self.max_records * self.bound, total.numel())
        return Answer(total=total.cpu().flatten().numpy(), sensitivity=moved, unit=self.unit)

    def _moved(self, records: PrivateRecords, count: int) -> list[float]:
        """Return the distances that some units move the sum, over m C; units are drawn uniformly and afresh. Private.

        A record's summand has other last digits at another place in its batch. Distances are rounded up by far more: by
        a step of the left vectors' grid in each number and by a share. For m records that is m steps over m C.
        """
        if not records.n_units:
            return []
        body, condition, group, units = records.lot(
            FixedSizeSampler(records.n_units, min(count, records.n_units)).lot()
        )
        whole = _in_whole_numbers(*self.factors(body, condition), bound=self.bound, bits=self._bits)
        if group is None:
            moved = whole.left.norm(dim=1) * whole.right.norm(dim=1)
        else:
            each = whole.left.unsqueeze(2) * whole.right.unsqueeze(1)
            summed = torch.zeros(units, *self.shape, dtype=each.dtype, device=each.device).index_add_(0, group, each)
            moved = summed.flatten(1).norm(dim=1)
        share = moved * (self.unit / (self.max_records * self.bound))
        step = math.sqrt(self.shape[0]) * 2.0 ** -self._bits[0]
        found: list[float] = ((share + step) * (1 + _ROUNDED_UP)).clamp(max=1.0).tolist()
        return found


class _WholeFactors(NamedTuple):
    """Records' factors in whole numbers that float64 holds.

    Attributes:
        left: ``(B, L)``.
        right: ``(B, R)``.
    """

    left: Tensor
    right: Tensor


def _in_whole_numbers(left: Tensor, right: Tensor, *, bound: float, bits: tuple[int, int]) -> _WholeFactors:
    """Return whole rows whose outer products, in steps of C 2^-(a + b), are those of the factors, clipped to C.

    Args:
        left: ``(B, L)``.
        right: ``(B, R)``.
        bound: C.
        bits: a and b.
    """
    left, left_lengths = _of_length_one(left)
    right, right_lengths = _of_length_one(right)
    lengths = left_lengths * right_lengths
    weights = clip_factors(lengths, bound)
    counts = weights > 0
    share = torch.where(counts, lengths * weights / bound, 0.0)
    left = left.double() * (2.0 ** bits[0] * (1 - _MARGIN) * share)[:, None]
    right = right.mul_(2.0 ** bits[1] * (1 - _MARGIN))
    for vectors in (left, right):
        vectors[~counts] = 0.0  # a product with zero would keep what is not finite
        vectors.trunc_()
    right = right.double()
    # Squares of less than 2^24 are exact, and sums of them up to 2^53; one beyond is not made less than that.
    fits = (_squared(left) <= _LONGEST * 4.0 ** bits[0]) & (_squared(right) <= _LONGEST * 4.0 ** bits[1])
    left[~fits] = 0.0
    return _WholeFactors(left, right)


def _squared(vectors: Tensor) -> Tensor:
    """Return the squared norms of rows ``(B,)``."""
    found: Tensor = torch.linalg.vecdot(vectors, vectors)
    return found


def _sum(whole: _WholeFactors, times: Tensor) -> Tensor:
    """Return the sum ``(L, R)`` int64 of rows' outer products, weighted by multiplicities ``(B,)`` int64."""
    total = torch.zeros(whole.left.shape[1], whole.right.shape[1], dtype=torch.int64, device=whole.left.device)
    times, factor = times.to(whole.left.device), 1
    while True:
        product = (whole.left * (times % _TIMES)[:, None]).T @ whole.right
        total += factor * product.to(torch.int64)
        times, factor = times // _TIMES, factor * _TIMES
        if not bool(times.any()):
            return total


def _of_length_one(vectors: Tensor) -> tuple[Tensor, Tensor]:
    """Return rows of length 1, and their former lengths, rounded upwards.

    A float32 sum of n squares is out by less than n units of rounding.
    """
    if not vectors.shape[1]:
        return vectors, torch.zeros(len(vectors), dtype=torch.float64, device=vectors.device)
    # Divided first, so that no square overflows or vanishes.
    largest = torch.maximum(vectors.amax(dim=1), -vectors.amin(dim=1)).clamp(min=torch.finfo(vectors.dtype).tiny)
    even = vectors / largest[:, None]
    lengths = even.square().sum(dim=1).double().sqrt() * (1 + vectors.shape[1] * torch.finfo(vectors.dtype).eps)
    even.div_(torch.where(lengths > 0, lengths, 1.0).to(vectors.dtype)[:, None])
    return even, largest.double() * lengths
