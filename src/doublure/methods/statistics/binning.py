"""Estimation of counts from noisy ones, and grouping of fine codes by them.

All of it is post-processing of released counts. A number has hundreds of fine public bins. Pairs of columns counted in
so many cells would be lost in noise, so that bins are joined into groups of about equal mass. The distribution within a
group is kept as a piecewise constant curve, as far as noise allows; a value that stands out (forty hours a week) is a
step of its own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from doublure.support.arrays import Floats, Ints

_PRICE = 2.0
"""Penalty of a piece, in units of log(cells) noise variances: with 2, noise alone rarely makes a piece."""
_FAR, _GRID, _NEAREST, _NEVER = 6.0, 160, 1e-4, 1e-300
"""Deviations of noise above which a count is not shrunk, points of the grid of true counts, the least of them as a
share of the mean, and the least likelihood."""
_STATE_GRID = 640
"""Points of the grid of a state's rows: neighbours differ by 2 % at most where there are a million rows."""
_SHAPES = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 100.0)
"""Shapes of the prior of counts, half a decade apart: from nearly all rows in one category to equal ones."""
_FULL = 1.2
"""Most mass of a group, as a multiple of its share."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Grouping:
    """The group of each code, and its share of the group's mass.

    Attributes:
        groups: ``(codes,)`` in ``[0, size)``.
        shares: ``(codes,)``; those of one group add up to 1.
        size: Number of groups.
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


def group_ordered(counts: Floats, *, noise: float, most: int, states: int = 0, smooth: bool = True) -> Grouping:
    """Join neighbouring codes.

    Args:
        counts: ``(codes,)`` noisy counts, in order.
        noise: Their standard deviation.
        most: Approximate number of groups.
        states: Number of last codes outside the order (zero, missing), which stay alone.
        smooth: Whether neighbours are similar, as bins of a number are, and values of an ordinal need not be.
    """
    if states:
        numbers = group_ordered(counts[:-states], noise=noise, most=most, smooth=smooth)
        alone = numbers.size + np.arange(states)
        return Grouping(
            groups=np.append(numbers.groups, alone),
            shares=np.append(numbers.shares, np.ones(states)),
            size=numbers.size + states,
        )
    cells = constant_pieces(counts / noise) if smooth else np.arange(len(counts))
    width = np.bincount(cells)
    masses = project_to_simplex(
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


def noise_maximum(count: int) -> float:
    """Return about the expected maximum of so many standard normal numbers, √(2 log n); of one as of two."""
    return math.sqrt(2 * math.log(max(2, count)))


def constant_pieces(scaled: Floats) -> Ints:
    """Return each cell's piece in the best piecewise constant fit of the counts.

    Minimises Σ (x_i − mean of its piece)² + price · pieces, exactly, by dynamic programming (the Potts functional:
    Boysen et al. 2009, Annals of Statistics 37). A value that stands out becomes a piece of its own.

    Args:
        scaled: ``(n,)`` noisy counts, in deviations of their noise.
    """
    size, price = len(scaled), _PRICE * math.log(max(2, len(scaled)))
    sums = np.concatenate([[0.0], np.cumsum(scaled)])
    best, since = np.zeros(size + 1), np.zeros(size + 1, dtype=np.int64)
    for end in range(1, size + 1):
        gains = best[:end] + (sums[end] - sums[:end]) ** 2 / (end - np.arange(end)) - price
        since[end] = int(np.argmax(gains))
        best[end] = gains[since[end]]
    piece, end, number = np.zeros(size, dtype=np.int64), size, 0
    while end > 0:
        piece[since[end] : end] = number
        end, number = int(since[end]), number + 1
    return number - 1 - piece


def project_to_simplex(counts: Floats, variances: Floats, *, total: float) -> Floats:
    """Return the most likely non-negative counts that add up to a total; noisier counts are corrected more.

    Minimises Σ (x_i − c_i)² / v_i, whose solution is max(c_i − λ v_i, 0) for the λ that gives the total.

    Args:
        counts: ``(n,)`` noisy counts.
        variances: ``(n,)`` their noise's variances, positive.
        total: Their sum, positive.
    """
    order = np.argsort(-counts / variances, kind="stable")
    excess = (np.cumsum(counts[order]) - total) / np.cumsum(variances[order])
    kept = counts[order] > excess * variances[order]
    kept[0] = True  # true in exact arithmetic; rounding may say otherwise
    likeliest: Floats = np.maximum(counts - excess[np.flatnonzero(kept)[-1]] * variances, 0.0)
    return likeliest


def posterior_counts(counts: Floats, variances: Floats, *, total: float) -> Floats:
    """Return the posterior mean of counts of exchangeable categories, adding up to a total.

    Args:
        counts: ``(n,)`` noisy counts.
        variances: ``(n,)`` their noise's variances, positive.
        total: Their sum, positive.
    """
    return project_to_simplex(*posterior_moments(counts, variances, total=total), total=total)


def posterior_states(counts: Floats, variances: Floats, *, total: float) -> Floats:
    """Return the posterior means of states that are apart from a column's values: kinds of missing cells.

    Some states occur, any share of them equally likely; averaging over it lets many declared ones be few. One that
    occurs may be any share of the rows: its prior is scale-free, 1/x from one row to all. So a state that noise hides
    is rare and not gone, and one far above its noise has its own count.

    Args:
        counts: ``(n,)`` noisy counts.
        variances: ``(n,)`` their noise's variances, positive.
        total: All rows.

    Example:
        >>> posterior_states(np.array([400.0, 50.0, -10.0]), np.full(3, 20.0**2), total=5000.0).round().tolist()
        [400.0, 32.0, 3.0]
    """
    points = np.geomspace(1.0, max(total, 2.0), _STATE_GRID)  # even on the scale of the prior
    apart = (np.minimum(counts, total)[:, None] - np.append(0.0, points)) / np.sqrt(variances)[:, None]
    likely = np.exp(-0.5 * (apart**2 - (apart**2).min(1, keepdims=True)))
    rows = (likely[:, 1:] @ points) / np.maximum(likely[:, 1:].sum(1), _NEVER)
    occurs = (np.arange(_GRID) + 0.5)[:, None] / _GRID
    both = occurs * likely[:, 1:].mean(1), (1 - occurs) * likely[:, 0]
    evidence = np.maximum(both[0] + both[1], _NEVER)
    chances = special.softmax(np.log(evidence).sum(1))
    found: Floats = (chances @ (both[0] / evidence)) * rows
    return np.where(counts > _FAR * np.sqrt(variances), counts, found)


def posterior_moments(
    counts: Floats, variances: Floats, *, total: float, shapes: Sequence[float] = _SHAPES
) -> tuple[Floats, Floats]:
    """Return the posterior means and variances ``(n,)`` of counts of exchangeable categories.

    The prior of each count is a gamma distribution with the mean ``total / n``. Its shape is unknown: large if
    categories are about equally frequent, small if a few hold nearly all rows. The mean is averaged over shapes by
    their likelihood (model averaging: Hoeting et al. 1999, Statistical Science 14). Where noise exceeds evidence,
    counts become equal; a count far above its noise stays.

    Args:
        counts: ``(n,)`` noisy counts.
        variances: ``(n,)`` their noise's variances, positive.
        total: Their sum, positive.
        shapes: Shapes of the prior.
    """
    noise, mean = np.sqrt(variances), total / len(counts)
    counts = np.minimum(counts, total + _FAR * noise)
    edges = np.concatenate([[0.0], np.geomspace(_NEAREST, 2.0 * len(counts), _GRID)])
    points = np.concatenate([[0.0], np.sqrt(edges[1:-1] * edges[2:])])
    priors = np.stack([np.diff(special.gammainc(shape, shape * edges)) for shape in shapes])
    priors /= priors.sum(1, keepdims=True)
    apart = -0.5 * ((counts[:, None] - mean * points) / noise[:, None]) ** 2
    likely = np.exp(apart - apart.max(1, keepdims=True))
    evidence = np.maximum(likely @ priors.T, _NEVER)
    logs = np.log(evidence).sum(0)
    chances = np.exp(logs - logs.max())
    chances /= chances.sum()
    moments = [mean**power * ((likely @ (priors * points**power).T) / evidence) @ chances for power in (1, 2)]
    far = counts > _FAR * noise
    likeliest = np.where(far, counts, moments[0])
    spread = np.where(far, variances, np.maximum(moments[1] - moments[0] ** 2, _NEAREST * variances))
    return likeliest, spread


def james_stein_counts(counts: Floats, base: Floats, *, variance: float) -> Floats:
    """Return non-negative counts shrunk towards a base, adding up to the base's total (James and Stein, positive part).

    The difference from the base is multiplied by the share of it that noise does not explain.

    Args:
        counts: Noisy counts, of any shape.
        base: Prior expectation, of the same shape.
        variance: Variance of the noise.
    """
    apart = counts - base
    kept = max(0.0, 1 - counts.size * variance / max(float((apart**2).sum()), 1e-12))
    mixed = (base + kept * apart).ravel()
    total = max(float(base.sum()), 1.0)
    return project_to_simplex(mixed, np.ones(mixed.size), total=total).reshape(counts.shape)
