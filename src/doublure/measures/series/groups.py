"""Levels of channels, and correlations between them, over all series and within the values of attributes.

A value that few series have moves both by chance. Differences of two sets are shrunk to what that leaves: they are
normal with a variance that all groups share, averaged over by its evidence, beside the sampling variance of each.

References:
    Morris (1983), Parametric empirical Bayes inference. JASA 78.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from doublure.support.arrays import Floats

_FLAT = 1e-9
_LEAST = 1e-300
_SIZES = 2.0 ** -np.arange(0, 16)
"""Candidates of the variance of differences, as shares of the largest square."""


@dataclass(frozen=True, kw_only=True)
class GroupEstimates:
    """GroupEstimates by group, with their sampling variances.

    Attributes:
        values: ``(groups, figures)``; NaN where there are none.
        variances: ``(groups, figures)``.
    """

    values: Floats
    variances: Floats


@dataclass(frozen=True, kw_only=True)
class GroupStatistics:
    """Levels and correlations of a set of series.

    Attributes:
        series: ``(groups,)`` how many series have each value of each attribute, in the schema's order.
        spreads: ``(channels,)`` standard deviations of all values.
        levels: Means of channels by group.
        together: ``(pairs,)`` correlation of two channels' values at the same step, over all series.
        correlations: The same by group.
    """

    series: Floats
    spreads: Floats
    levels: GroupEstimates
    together: Floats
    correlations: GroupEstimates


def group_statistics(values: Floats, codes: Mapping[str, Floats], groups: Mapping[str, int]) -> GroupStatistics:
    """Return the statistics of a set.

    Args:
        values: ``(N, length, channels)``, NaN in gaps.
        codes: Attribute -> ``(N,)``.
        groups: Attribute -> number of its codes.
    """
    channels = values.shape[2]
    known = ~np.isnan(values)
    count = np.maximum(known.sum(axis=(0, 1)), 1)
    means = np.where(known, values, 0.0).sum(axis=(0, 1)) / count
    centred = np.where(known, values - means, 0.0)
    spreads = np.sqrt((centred**2).sum(axis=(0, 1)) / count)
    centred /= np.where(spreads > 0, spreads, 1.0)
    by = [(np.asarray(own, dtype=np.int64), groups[name]) for name, own in codes.items()]
    levels = [[_level(_sums(known[:, :, c], centred[:, :, c]), *each) for each in by] for c in range(channels)]
    correlations, together = [], []
    for one, other in channel_pairs(channels):
        both = known[:, :, one] & known[:, :, other]
        first, second = np.where(both, centred[:, :, one], 0.0), np.where(both, centred[:, :, other], 0.0)
        sums = _sums(both, first, second, first**2, second**2, first * second)
        together.append(_correlation(sums, np.zeros(len(values), dtype=np.int64), 1).values[0])
        correlations.append([_correlation(sums, *each) for each in by])
    found = _side_by_side(levels, sum(groups.values()))
    return GroupStatistics(
        series=np.concatenate([[], *(np.bincount(own, minlength=size) for own, size in by)]),
        spreads=spreads,
        levels=GroupEstimates(values=found.values * spreads + means, variances=found.variances * spreads**2),
        together=np.array(together),
        correlations=_side_by_side(correlations, sum(groups.values())),
    )


def channel_pairs(channels: int) -> list[tuple[int, int]]:
    """Return the pairs of channels, in the order of figures."""
    return list(combinations(range(channels), 2))


def level_errors(real: GroupStatistics, other: GroupStatistics) -> Floats:
    """Return the errors of levels ``(groups, channels)``, in standard deviations of real values, beyond chance."""
    scale = np.where(real.spreads > 0, real.spreads, np.nan)
    variances = (real.levels.variances + other.levels.variances) / scale**2
    return beyond_chance((other.levels.values - real.levels.values) / scale, variances)


def correlation_errors(real: GroupStatistics, other: GroupStatistics) -> Floats:
    """Return the errors of correlations ``(groups, pairs)``, beyond chance."""
    own, theirs = real.correlations, other.correlations
    return beyond_chance(theirs.values - own.values, own.variances + theirs.variances)


def beyond_chance(apart: Floats, variances: Floats) -> Floats:
    """Return noisy differences shrunk towards zero; NaN where unknown.

    That there are none beyond noise is as likely beforehand as that there are some, of any size.

    Args:
        apart: Of any shape.
        variances: Of their noise.
    """
    known = np.isfinite(apart) & np.isfinite(variances)
    found = np.full(apart.shape, np.nan)
    squares, noise = apart[known] ** 2, np.maximum(variances[known], _LEAST)[:, None]
    if not len(squares):
        return found
    sizes = np.append(0.0, squares.max() * _SIZES)
    chances = np.append(1.0, np.full(len(_SIZES), 1 / len(_SIZES)))
    fits = -(np.log(noise + sizes) + squares[:, None] / (noise + sizes)).sum(axis=0) / 2 + np.log(chances)
    evidence = np.exp(fits - fits.max())
    found[known] = apart[known] * (sizes / (sizes + noise) @ (evidence / evidence.sum()))
    return found


def _sums(known: Any, *numbers: Floats) -> Floats:
    """Return each series' number of known steps, and sums over steps ``(1 + numbers, N)``."""
    return np.stack([known.sum(axis=1).astype(np.float64), *(each.sum(axis=1) for each in numbers)])


def _level(sums: Floats, codes: Any, groups: int) -> GroupEstimates:
    count, total = (np.bincount(codes, own, groups) for own in sums)
    mean = np.divide(total, count, out=np.full(groups, np.nan), where=count > 0)
    influence = sums[1] - np.nan_to_num(mean)[codes] * sums[0]
    return GroupEstimates(values=mean, variances=_variances(influence, count, sums[0], codes))


def _correlation(sums: Floats, codes: Any, groups: int) -> GroupEstimates:
    totals = np.stack([np.bincount(codes, own, groups) for own in sums])
    count = np.maximum(totals[0], 1)
    mean_x, mean_y = totals[1] / count, totals[2] / count
    spread_x = np.sqrt(np.maximum(totals[3] / count - mean_x**2, 0))
    spread_y = np.sqrt(np.maximum(totals[4] / count - mean_y**2, 0))
    moving = (spread_x > _FLAT) & (spread_y > _FLAT)
    scale_x, scale_y = np.where(moving, spread_x, 1.0), np.where(moving, spread_y, 1.0)
    found = np.where(moving, (totals[5] / count - mean_x * mean_y) / (scale_x * scale_y), np.nan)
    # A series' sums of squares and products of what is standardised within its group.
    number, x, y, xx, yy, xy = sums
    mean_x, mean_y, scale_x, scale_y = (own[codes] for own in (mean_x, mean_y, scale_x, scale_y))
    of_x = (xx - 2 * mean_x * x + number * mean_x**2) / scale_x**2
    of_y = (yy - 2 * mean_y * y + number * mean_y**2) / scale_y**2
    of_both = (xy - mean_x * y - mean_y * x + number * mean_x * mean_y) / (scale_x * scale_y)
    influence = of_both - np.nan_to_num(found)[codes] / 2 * (of_x + of_y)
    return GroupEstimates(values=found, variances=_variances(influence, totals[0], number, codes))


def _variances(influence: Floats, count: Any, number: Floats, codes: Any) -> Floats:
    """Return the sampling variance ``(groups,)`` of means whose sums ``influence`` says each series moves.

    A series' variance is that over all groups: of the few series of a small one it would not be known.
    """
    series = np.bincount(codes, number > 0, len(count))
    each = np.where(count > 0, series / np.maximum(count, 1), 0.0)[codes] * influence
    common = (each**2).sum() / max(1.0, np.maximum(series - 1, 0).sum())
    found: Floats = np.divide(common, series, out=np.full(len(count), np.nan), where=series > 0)
    return found


def _side_by_side(figures: list[list[GroupEstimates]], groups: int) -> GroupEstimates:
    """Return estimates ``(groups, figures)`` from those of each figure by attribute."""
    if not figures or not groups:
        empty = np.zeros((groups, len(figures)))
        return GroupEstimates(values=empty, variances=empty)
    values, variances = (
        np.stack([np.concatenate([getattr(each, what) for each in own]) for own in figures], axis=1)
        for what in ("values", "variances")
    )
    return GroupEstimates(values=values, variances=variances)
