"""From noisy counts of fine codes to the groups in which pairs of columns are counted.

All of it is post-processing: it sees released counts alone. A column of a number comes in hundreds of fine public bins.
To count pairs of columns in so many would drown every cell in noise, so that bins are joined to groups of about equal
mass, and what a group looks like inside is kept as far as the noise lets it be seen: as steps of a piecewise constant
curve, a value that stands out (forty hours a week) being a step of its own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]

_PRICE = 2.0
"""What a cell costs, in units of log(codes) noise variances: with 2, noise alone rarely makes one."""
_FAR, _GRID, _ROUNDS, _NEVER = 6.0, 80, 150, 1e-300
"""From so many deviations of noise on a count is taken as it was seen; below, it may be one of so many."""
_FULL = 1.2
"""A group may hold this many times its share before it is closed."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Grouping:
    """Which group each code is in, and how a group's mass falls on its codes.

    Attributes:
        groups: ``(codes,)`` in ``[0, size)``.
        shares: ``(codes,)``; those of one group add up to 1.
        size: How many groups.
    """

    groups: Ints
    shares: Floats
    size: int

    @classmethod
    def of(cls, groups: Ints, masses: Floats) -> Grouping:
        """Return the grouping with shares in proportion to masses, equal where a group has none."""
        size = int(groups.max()) + 1
        totals, codes = np.bincount(groups, masses, size), np.bincount(groups, minlength=size)
        shares = np.where(totals[groups] > 0, masses / np.where(totals > 0, totals, 1)[groups], 1 / codes[groups])
        return cls(groups=groups, shares=shares, size=size)

    def join(self, values: Floats) -> Floats:
        """Return ``(size, …)``, values of codes ``(codes, …)`` added up by group."""
        joined = np.zeros((self.size, *values.shape[1:]))
        np.add.at(joined, self.groups, values)
        return joined


def ordered(counts: Floats, *, noise: float, most: int, states: int = 0, smooth: bool = True) -> Grouping:
    """Join neighbouring codes.

    Args:
        counts: ``(codes,)`` noisy counts, in order.
        noise: Their standard deviation.
        most: How many groups there should be, about.
        states: How many of the last codes are no places in the order (zero, missing) and stay alone.
        smooth: Whether neighbours are alike, as bins of a number are, and values of an ordinal need not be.
    """
    if states:
        numbers = ordered(counts[:-states], noise=noise, most=most, smooth=smooth)
        alone = numbers.size + np.arange(states)
        return Grouping(
            groups=np.append(numbers.groups, alone),
            shares=np.append(numbers.shares, np.ones(states)),
            size=numbers.size + states,
        )
    cells = _cells(counts, noise) if smooth else np.arange(len(counts))
    width = np.bincount(cells)
    masses = closest_counts(
        np.bincount(cells, counts).astype(np.float64),
        (width * noise**2).astype(np.float64),
        total=max(counts.sum(), 1.0),
    )
    full = _FULL * masses.sum() / most
    groups, group, held = np.zeros(len(masses), dtype=np.int64), 0, 0.0
    for cell, mass in enumerate(masses):
        if held > 0 and held + mass > full:
            group, held = group + 1, 0.0
        groups[cell], held = group, held + mass
    return Grouping.of(groups[cells], (masses / width)[cells])


def _cells(counts: Floats, noise: float) -> Ints:
    """Return the cell of each code: the partition into intervals in which a constant explains the counts best.

    Minimises Σ (c_i − mean of its cell)² / noise² + price · cells, exactly, by dynamic programming (the Potts
    functional: Boysen et al. 2009, Annals of Statistics 37). A value that stands out becomes a cell of its own, and
    what is noise joins its neighbours.
    """
    size = len(counts)
    price = _PRICE * math.log(max(size, 2))
    scaled = counts / noise
    sums, squares = (np.concatenate([[0.0], np.cumsum(x)]) for x in (scaled, scaled**2))
    best, since = np.zeros(size + 1), np.zeros(size + 1, dtype=np.int64)
    for end in range(1, size + 1):
        starts = np.arange(end)
        within = squares[end] - squares[:end] - (sums[end] - sums[:end]) ** 2 / (end - starts)
        costs = best[:end] + within + price
        since[end] = int(np.argmin(costs))
        best[end] = costs[since[end]]
    cells, end, cell = np.zeros(size, dtype=np.int64), size, 0
    while end > 0:
        cells[since[end] : end] = cell
        end, cell = int(since[end]), cell + 1
    return cell - 1 - cells


def closest_counts(counts: Floats, variances: Floats, *, total: float) -> Floats:
    """Return the likeliest non-negative counts that add up to a total: what is noisier gives way more.

    Minimises Σ (x_i − c_i)² / v_i, whose solution is max(c_i − λ v_i, 0) for the λ that gives the total.

    Args:
        counts: ``(n,)`` noisy counts.
        variances: ``(n,)`` their noise's variances, positive.
        total: What they add up to, positive.
    """
    order = np.argsort(-counts / variances, kind="stable")
    excess = (np.cumsum(counts[order]) - total) / np.cumsum(variances[order])
    kept = counts[order] > excess * variances[order]
    kept[0] = True  # as it is, but for rounding
    likeliest: Floats = np.maximum(counts - excess[np.flatnonzero(kept)[-1]] * variances, 0.0)
    return likeliest


def shrunk_counts(counts: Floats, *, noise: float) -> Floats:
    """Return what many noisy counts are likely to be, none negative, each in the light of how all of them are spread.

    The empirical Bayes estimate: counts have some distribution, whichever explains the noisy ones best (its
    nonparametric maximum likelihood: Kiefer and Wolfowitz 1956; by EM on a grid, as Jiang and Zhang 2009, Annals of
    Statistics 37), and each count is the mean of what is then left of it. Of a long list of categories, of which few
    are frequent, less is lost than by shrinking all of them alike.

    Args:
        counts: ``(n,)``.
        noise: Standard deviation of each, positive.
    """
    near = counts <= _FAR * noise
    grid = np.concatenate([[0.0], np.geomspace(0.05, _FAR + 2, _GRID)])
    likely = np.exp(-0.5 * (counts[near, None] / noise - grid) ** 2)
    shares, weights = likely, np.full(len(grid), 1 / len(grid))
    for _ in range(_ROUNDS):
        shares = likely * weights
        shares /= np.maximum(shares.sum(1, keepdims=True), _NEVER)
        weights = shares.mean(0) if len(shares) else weights
    shrunk = counts.astype(np.float64)
    shrunk[near] = shares @ grid * noise
    return shrunk


def believed_counts(counts: Floats, base: Floats, *, variance: float) -> Floats:
    """Return counts as far from a base as their noise lets one believe, not negative, adding up to the base's total.

    James and Stein's estimator (its positive part): the difference is kept by the share of it that is not noise.

    Args:
        counts: Noisy counts, of any shape.
        base: What they are likely to be like, of the same shape.
        variance: Of the noise.
    """
    apart = counts - base
    kept = max(0.0, 1 - counts.size * variance / max(float((apart**2).sum()), 1e-12))
    mixed = (base + kept * apart).ravel()
    total = max(float(base.sum()), 1.0)
    return closest_counts(mixed, np.ones(mixed.size), total=total).reshape(counts.shape)
