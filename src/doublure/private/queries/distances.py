"""Gradient distances that feed the Bayesian accountant beside a critic's steps.

They never leave this module.

=====================================  ==============================================================
edge case                              what happens
=====================================  ==============================================================
fewer units than distances             those that are missing count as the largest there can be
a step whose distances were lost       counts as if all its distances were the largest
a step that was measured, not paid     its distances are dropped: its lot was discarded unseen
=====================================  ==============================================================
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from doublure.errors import SettingError
from doublure.private.bayesian import FEWEST_DISTANCES, BayesianAccountant, Bound
from doublure.private.clipping import batch_clip_distance, batch_clip_distances, clipped_norms
from doublure.private.gradients import LotGradients
from doublure.private.sampling import FixedSizeSampler, Lot, PoissonSampler

# Pairs of lots that go through a critic together: their gradients are written out, two rows a pair.
_TOGETHER = 8

# Standard deviations by which a sample of owners' units exceeds the number that is asked for.
_SPARE = 4


@dataclass(frozen=True, kw_only=True)
class DistanceSettings:
    """Settings of gradient distances, fixed in the plan (Triastcyn and Faltings 2022, section 2.4).

    A distance is how far one unit more moves the sum before noise, relative to the most that it can: for a
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
        power: p_t of Hölder's inequality, by which the costs of steps add up though one record's distances at them
            depend on one another: E[Π X_t] ≤ Π E[X_t^p_t]^(1/p_t) where Σ 1/p_t is at most 1. None: T, as in the paper,
            whose steps are all of one kind.
    """

    count: int
    orders: Sequence[int]
    gamma: float
    bound: Bound = "student-t"
    paper_literal: bool = False
    union: bool = False
    power: int | None = None

    def __post_init__(self) -> None:
        if self.count < FEWEST_DISTANCES:
            raise SettingError("must be larger", field="distances", remedy=f"sample at least {FEWEST_DISTANCES}")

    def accountant(self, steps: int) -> BayesianAccountant:
        """Return an accountant for that many steps, fed with distances relative to the largest one."""
        return BayesianAccountant(
            self.orders,
            self.power or steps,
            bound=self.bound,
            paper_literal=self.paper_literal,
            max_distance=1.0,
            gamma=self.gamma,
            union=self.union,
        )

    def measured(self, *, noise_multiplier: float, steps: int) -> MeasuredDistances:
        """Return the accountant of an access's distances."""
        return MeasuredDistances(self, noise_multiplier=noise_multiplier, steps=steps)


class MeasuredDistances:
    """The Bayesian accountant with the sampling of its distances.

    Args:
        settings: Settings of the sampling.
        noise_multiplier: σ, from the plan's event.
        steps: T, from the plan's event.
    """

    def __init__(self, settings: DistanceSettings, *, noise_multiplier: float, steps: int) -> None:
        self._settings = settings
        self._noise_multiplier = noise_multiplier
        self._accountant = settings.accountant(steps)
        self._before: BayesianAccountant | None = None

    def accountant(self, taken: int, sample_rate: float) -> BayesianAccountant:
        """Return the accountant over all steps taken; steps missing from it count as lost.

        Private: it is fed with private gradients.
        """
        if self._before is not None and self._accountant.steps_taken > taken:
            self._accountant, self._before = self._before, None
        if (lost := taken - self._accountant.steps_taken) > 0:
            self._accountant.lost(self._noise_multiplier, sample_rate, lost)
        return self._accountant

    def restore(self, state: Mapping[str, NDArray[np.float64]]) -> None:
        """Restore a checkpoint."""
        self._accountant.restore(state)
        self._before = None

    @property
    def count(self) -> int:
        """Number of distances per step, m."""
        return self._settings.count

    def charge(self, found: Sequence[float], *, sample_rate: float, step: int) -> None:
        """Charge a step with sampled distances; missing ones count as the largest.

        A step is measured when it is asked, before it is paid for. If it is never paid for, the charge is taken back.

        Args:
            found: At most m.
            sample_rate: q.
            step: Counted from 0.
        """
        missing = [1.0] * (self._settings.count - len(found))
        self._before = copy.deepcopy(self.accountant(step, sample_rate))
        self._accountant.step([*found, *missing], self._noise_multiplier, sample_rate)

    def measure(
        self,
        gradients: Callable[[Lot], LotGradients],
        *,
        n_units: int,
        sample_rate: float,
        step: int,
        bound: float,
        joint: float | None,
    ) -> None:
        """Sample a step's distances and charge them, before its lot is drawn.

        Args:
            gradients: Returns the gradients of some units.
            n_units: Number of units.
            sample_rate: q.
            step: Counted from 0.
            bound: C_t.
            joint: n, where the lot's mean is clipped as a whole.
        """
        asked = self._settings
        if joint is not None:
            found: list[float] = []
            while len(found) < asked.count:
                count = min(_TOGETHER, asked.count - len(found))
                found += _apart(gradients, count, n_units, sample_rate, bound, joint)
        else:
            drawn = FixedSizeSampler(n_units, min(asked.count, n_units)).lot()
            found = (clipped_norms(gradients(drawn), max_grad_norm=bound) / bound).tolist()
        self.charge(found, sample_rate=sample_rate, step=step)


def distance_sample_rate(count: int, units: int) -> float:
    """Return the rate at which an owner samples units so that its share of m distances is almost always reached.

    The sample is uniform whatever the number of units, and so is a part of it.

    Args:
        count: Its share of m, rounded up.
        units: Its public number of units.
    """
    return min(1.0, (count + _SPARE * math.sqrt(count)) / units)


def _apart(
    gradients: Callable[[Lot], LotGradients], count: int, n_units: int, sample_rate: float, bound: float, joint: float
) -> list[float]:
    """Return the distances of fresh lots' clipped means with and without one unit, over 2 C.

    All lots go through the critic together. A lot with a gradient that is not finite is summed unit by unit, since the
    units' own sums leave such a gradient out.
    """
    if not n_units:
        return [1.0] * count
    one, many = FixedSizeSampler(n_units, 1), PoissonSampler(n_units, sample_rate)
    pairs = []
    for _ in range(count):
        chosen = one.lot()
        pairs.append((np.setdiff1d(many.lot(), chosen), chosen))
    before, more = (
        gradients(np.concatenate(lots)).sums([len(lot) for lot in lots]) for lots in zip(*pairs, strict=True)
    )
    moved = batch_clip_distances(before, more, max_grad_norm=bound, per_batch=joint)
    found = []
    for at_once, (without, alone) in zip(moved.tolist(), pairs, strict=True):
        if math.isnan(at_once):
            lots = gradients(without), gradients(alone)
            at_once = batch_clip_distance(*lots, max_grad_norm=bound, per_batch=joint)
        found.append(at_once / (2 * bound * joint))
    return found
