"""Clipping: each unit's gradient is scaled to at most C and added up once (Abadi et al. 2016, algorithm 1).

The sum of vectors of norm at most C has L2 sensitivity C when one unit is added or removed. The sum carries that
number with it, so that noise is calibrated from the object and never by hand. Clipping the whole sum instead of each
unit's gradient (as published code of Bayesian DP does) bounds its length and not what a unit does to it: two vectors
of norm at most C are 2 C apart at worst, however many records stand behind them, and that is the sensitivity.

The bound may change with the generator's iteration and with nothing else (pitfalls.md, rule 7): a bound chosen from
gradients would be one more, unpaid, look at the data.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from doublure.errors import SettingError

# Scaling down by a little more than needed keeps the norm of what is added below C after rounding.
_MARGIN = 1e-6


class GradientPart(Protocol):
    """The gradients of some of a lot's units."""

    @property
    def units(self) -> Tensor:
        """Indices of these units within the lot, integers (g,)."""

    def norms(self) -> Tensor:
        """Return a bound on each unit's gradient norm, (g,) float64, NaN or infinite where it is not finite."""

    def weighted_sum(self, weights: Tensor) -> Tensor:
        """Return the weighted sum (P,) of the units' gradients; weight zero leaves a unit out altogether."""


class GradientLot(Protocol):
    """The gradients of a lot, part by part; every unit is in exactly one part."""

    @property
    def units(self) -> int:
        """Number of units in the lot."""

    @property
    def zero(self) -> Tensor:
        """The sum over an empty lot, zeros (P,)."""

    def sums(self, sizes: Sequence[int]) -> Tensor:
        """Return the plain sums over runs of its units, (runs, P); not finite where a gradient is not."""

    def __iter__(self) -> Iterator[GradientPart]: ...


@dataclass(frozen=True, kw_only=True)
class ClippedSum:
    """A sum of clipped gradients that knows its sensitivity. Private until noise is added.

    Args:
        total: (P,).
        sensitivity: How far the sum moves in L2 when one unit is added or removed: C, or 2 C n if clipped together.
        norms: The units' norms before clipping, (G,) float64; NaN or infinite for a unit that was left out because its
            gradient is not finite. None where the sum was clipped as a whole. For tests; never leaves ``private/``.
        lengths: The units' norms after clipping, (G,) float64 in [0, C]; None where the sum was clipped as a whole.
    """

    total: Tensor
    sensitivity: float
    norms: Tensor | None = None
    lengths: Tensor | None = None


def clip_factors(norms: Tensor, max_grad_norm: float) -> Tensor:
    """Return the factor that scales each unit's gradient.

    ============== =======================
    norm           factor
    ============== =======================
    0 to C         1
    more than C    C / norm, rounded down
    NaN, infinite  0
    ============== =======================

    Guarantee: factor · norm ≤ C for every unit, and the factor of one unit depends on no other.

    Args:
        norms: (G,), float64.
        max_grad_norm: C > 0; infinite for no clipping.

    Returns:
        (G,), float64, in [0, 1].

    Raises:
        SettingError: C is not positive.
    """
    _require_bound(max_grad_norm)
    double = torch.finfo(torch.float64)
    shrunk = (1 - _MARGIN) * max_grad_norm / norms.double()
    # A subnormal quotient may be rounded up by more than the margin; neither it nor NaN is at least ``tiny``.
    shrunk = torch.where(shrunk >= double.tiny, shrunk, 0.0)
    return torch.where(norms <= min(max_grad_norm, double.max), 1.0, shrunk)


def clipped_sum(
    lot: GradientLot, *, max_grad_norm: float, per_batch: float | None = None, shares: Tensor | None = None
) -> ClippedSum:
    """Return the sum of a lot's gradients, each unit's clipped once to C.

    Guarantee: adding or removing one unit moves the sum by at most C in L2, or by 2 C n where n units are clipped
    together. An empty lot gives zeros.

    Args:
        lot: The lot's gradients.
        max_grad_norm: C.
        per_batch: n, public: the lot's sum is clipped as a whole to n C, so that its mean over n has norm at most C.
            None: each unit's gradient is clipped.
        shares: The share of C that each unit's own bound is, (G,) float64 in [0, 1]; None: all of it.

    Raises:
        SettingError: C is not positive.
    """
    if per_batch is not None:
        return _clipped_per_batch(lot, per_batch * max_grad_norm)
    _require_bound(max_grad_norm)
    total = lot.zero
    norms, lengths = torch.zeros(2, lot.units, dtype=torch.float64, device=total.device)
    for part in lot:
        own = part.norms()
        norms[part.units] = own
        # A norm over no share at all is infinite or NaN, of which the factor is zero.
        factors = clip_factors(own if shares is None else own / shares[part.units], max_grad_norm)
        lengths[part.units] = torch.where(factors > 0, own * factors, 0.0)
        total = total + part.weighted_sum(factors)
    return ClippedSum(total=total, sensitivity=max_grad_norm, norms=norms, lengths=lengths)


def clipped_norms(lot: GradientLot, *, max_grad_norm: float) -> Tensor:
    """Return the distance each unit moves a lot's clipped sum, (G,) float64 in [0, C]. Private."""
    moved = torch.zeros(lot.units, dtype=torch.float64, device=lot.zero.device)
    for part in lot:
        own = part.norms()
        moved[part.units] = torch.where(clip_factors(own, max_grad_norm) > 0, own.clamp(max=max_grad_norm), 0.0)
    return moved


def batch_clip_distance(without: GradientLot, alone: GradientLot, *, max_grad_norm: float, per_batch: float) -> float:
    """Return how far additional units move a sum that is clipped as a whole, in [0, 2 C n]. Private.

    Args:
        without: The lot.
        alone: The additional units.
        max_grad_norm: C.
        per_batch: n, as in :func:`clipped_sum`.
    """
    before, largest = _plain_sum(without), per_batch * max_grad_norm
    after = before + _plain_sum(alone)
    return float((_shortened(after, largest).double() - _shortened(before, largest).double()).norm())


def batch_clip_distances(before: Tensor, more: Tensor, *, max_grad_norm: float, per_batch: float) -> Tensor:
    """Return :func:`batch_clip_distance` for several lots, (K,) float64, NaN where a sum is not finite. Private.

    Args:
        before: The lots' sums, (K, P).
        more: The sums of the units added to each, (K, P).
        max_grad_norm: C.
        per_batch: n, as in :func:`clipped_sum`.
    """
    largest = per_batch * max_grad_norm
    was, now = (_norms(rows) for rows in (before, before + more))
    kept, left = (clip_factors(norms, largest)[:, None].to(more.dtype) for norms in (was, now))
    # b (before + more) − a before, from its small parts: where nothing is clipped it is ``more`` to the last digit.
    moved = _norms(left * more + (left - kept) * before)
    return torch.where(was.isfinite() & now.isfinite(), moved, torch.nan)


def _norms(rows: Tensor) -> Tensor:
    """Return the norms of rows, (K,) float64; not finite where a number is not."""
    norms: Tensor = torch.linalg.vector_norm(rows, dim=1, dtype=torch.float64)
    return norms


def _clipped_per_batch(lot: GradientLot, largest: float) -> ClippedSum:
    _require_bound(largest)
    (total,) = lot.sums([lot.units])
    if not total.isfinite().all():
        total = _plain_sum(lot)
    return ClippedSum(total=_shortened(total, largest), sensitivity=2 * largest)


def _plain_sum(lot: GradientLot) -> Tensor:
    """Return the sum of a lot's gradients without those that are not finite."""
    total = lot.zero
    for part in lot:
        total = total + part.weighted_sum(clip_factors(part.norms(), torch.finfo(torch.float32).max))
    return total


def _shortened(vector: Tensor, largest: float) -> Tensor:
    """Return a vector scaled down to a largest length; zeros for one that is not finite."""
    factor = clip_factors(vector.double().norm(), largest)
    return (torch.where(factor > 0, vector, 0.0).double() * factor).to(vector.dtype)


def _require_bound(max_grad_norm: float) -> None:
    if not max_grad_norm > 0:
        raise SettingError(f"{max_grad_norm} is not positive", field="max_grad_norm", remedy="use 1.0, say")


class Schedule(Protocol):
    """The clipping bound as a function of the generator's iteration, and of nothing else."""

    def at(self, step: int) -> float:
        """Return C at the generator's iteration ``step``, counted from 0."""


@dataclass(frozen=True, kw_only=True)
class ConstantSchedule:
    """C at every step.

    Args:
        max_grad_norm: C.
    """

    max_grad_norm: float

    def __post_init__(self) -> None:
        _require_bound(self.max_grad_norm)

    def at(self, step: int) -> float:
        """Return C.

        >>> ConstantSchedule(max_grad_norm=1.0).at(1000)
        1.0
        """
        return self.max_grad_norm


@dataclass(frozen=True, kw_only=True)
class GeometricSchedule:
    """C_t = max(floor, C · decay^t): the clipping decay of Frigerio et al. 2019, section 4.1.

    Args:
        max_grad_norm: C, the bound at the start.
        decay: What is left of it after each iteration of the generator, in (0, 1].
        floor: What it never falls below.
    """

    max_grad_norm: float
    decay: float
    floor: float

    def __post_init__(self) -> None:
        _require_bound(self.max_grad_norm)
        if not 0 < self.decay <= 1:
            raise SettingError(f"{self.decay} is not in (0, 1]", field="decay", remedy="use 0.999, say")
        if not 0 < self.floor <= self.max_grad_norm:
            raise SettingError(
                f"{self.floor} is not in (0, {self.max_grad_norm}]", field="floor", remedy="use a tenth of C, say"
            )

    def at(self, step: int) -> float:
        """Return C at a step.

        >>> [GeometricSchedule(max_grad_norm=1.0, decay=0.5, floor=0.2).at(step) for step in (0, 2, 9)]
        [1.0, 0.25, 0.2]
        """
        return max(self.floor, self.max_grad_norm * self.decay**step)
