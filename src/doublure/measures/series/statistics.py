"""Statistics of a set of series (profiles, autocorrelation, spectrum, values, levels, peaks), and their distances.

Every statistic is of one channel of one set. Gaps are left out; where a statistic needs a value at each step
(autocorrelation, spectrum), a gap counts as the series' own mean.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from doublure.data.series import Series
from doublure.encode.attribute_groups import codes_of, groups_of
from doublure.encode.numeric import Floats
from doublure.intervals import finite
from doublure.measures.series.groups import GroupStatistics, group_statistics
from doublure.schema.series import SeriesSchema

Flags: TypeAlias = "np.ndarray[Any, np.dtype[np.bool_]]"
Counts: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"

MOST_STEPS = 200
"""Most steps of a series compared one by one and drawn, spread evenly."""

_MOST_LAGS = 96
_BLOCK_NUMBERS = 2_000_000
_FLAT = 1e-12
_HIGH = 0.9


@dataclass(frozen=True, kw_only=True)
class SeriesSetStatistics:
    """Compared statistics of one set.

    Attributes:
        series: The set itself.
        profiles: Channel -> mean at each step, ``(length,)``.
        by_value: Channel -> mean at each step for each value of each attribute, ``(values, length)``; NaN for none.
        autocorrelations: Channel -> autocorrelation at each lag.
        spectra: Channel -> share of the variance at each frequency, from one wave per series to one in two steps.
        values: Channel -> all values, sorted.
        levels: Channel -> the mean of each series, sorted.
        peaks: Channel -> the highest value of each series, sorted.
        peak_steps: Channel -> the step of the highest value of each series that is not flat, sorted.
        changes: Channel -> the size of every change from a step to the next, sorted; none across a gap.
        steepest: Channel -> the largest of these of each series that has any, sorted.
        missing: The share of steps without a value.
        gaps: Channel -> the length of each stretch of steps without a value, sorted.
        shared_gaps: Of the steps at which a channel has no value, the share at which another has none either.
        groups: Levels and correlations of channels, over all series and by attribute.
    """

    series: Series
    profiles: Mapping[str, Floats]
    by_value: Mapping[str, Floats]
    autocorrelations: Mapping[str, Floats]
    spectra: Mapping[str, Floats]
    values: Mapping[str, Floats]
    levels: Mapping[str, Floats]
    peaks: Mapping[str, Floats]
    peak_steps: Mapping[str, Floats]
    changes: Mapping[str, Floats]
    steepest: Mapping[str, Floats]
    missing: float
    gaps: Mapping[str, Floats]
    shared_gaps: float | None
    groups: GroupStatistics


def series_statistics(schema: SeriesSchema, series: Series) -> SeriesSetStatistics:
    """Return the compared statistics of a set."""
    channels = {name: series.channel(name) for name in schema.channels}
    heights = {name: _heights(values) for name, values in channels.items()}
    ramps = {name: sorted_changes(values) for name, values in channels.items()}
    gone = {name: np.isnan(values) & series.inside for name, values in channels.items()}
    sizes = {name: groups_of(column) for name, column in schema.attributes.items()}
    return SeriesSetStatistics(
        series=series,
        profiles={name: mean_profile(values) for name, values in channels.items()},
        by_value={name: _by_value(schema, series, values) for name, values in channels.items()},
        autocorrelations={name: autocorrelation(values) for name, values in channels.items()},
        spectra={name: spectrum(values) for name, values in channels.items()},
        values={name: np.sort(values[~np.isnan(values)]) for name, values in channels.items()},
        levels={name: np.sort(found[0]) for name, found in heights.items()},
        peaks={name: np.sort(found[1]) for name, found in heights.items()},
        peak_steps={name: np.sort(found[2]) for name, found in heights.items()},
        changes={name: found[0] for name, found in ramps.items()},
        steepest={name: found[1] for name, found in ramps.items()},
        missing=float(np.isnan(series.values[series.inside]).mean()) if series.inside.any() else 0.0,
        gaps={name: sorted_gaps(own) for name, own in gone.items()},
        shared_gaps=share_of_shared(sum(own.astype(np.int64) for own in gone.values())),
        groups=group_statistics(np.stack(list(channels.values()), axis=2), encode_attributes(schema, series), sizes),
    )


def mean_profile(values: Floats) -> Floats:
    """Return the mean of the observed values at each step, NaN where there are none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        mean: Floats = np.nanmean(values, axis=0) if len(values) else np.full(values.shape[1], np.nan)
    return mean


def compared_steps(length: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return the steps compared one by one: all, or ``MOST_STEPS`` spread evenly."""
    return np.unique(np.linspace(0, length - 1, min(length, MOST_STEPS)).astype(np.int64))


def compared_lags(length: int) -> tuple[int, ...]:
    """Return the lags used: from 1 to half the length, at most 96."""
    return tuple(range(1, min(length // 2, _MOST_LAGS) + 1))


def encode_attributes(schema: SeriesSchema, series: Series) -> dict[str, Floats]:
    """Return the code of each series' value of each attribute, ``(N,)``."""
    return {name: codes_of(column, series.attributes[name]) for name, column in schema.attributes.items()}


# -- one channel -----------------------------------------------------------------------------------------------------


def autocorrelation(values: Floats) -> Floats:
    """Return the mean over series of each one's autocorrelation, ``(lags,)`` from lag 1 to half the length.

    Gaps count as the series' own mean; a constant series has none.

    Args:
        values: ``(N, length)``.
    """
    lags = compared_lags(values.shape[1])
    total, count = np.zeros(len(lags)), 0
    for moving, _ in centred_blocks(values):
        power = (moving**2).sum(axis=1)
        total += [float(((moving[:, :-lag] * moving[:, lag:]).sum(axis=1) / power).sum()) for lag in lags]
        count += len(moving)
    return total / max(count, 1)


def spectrum(values: Floats) -> Floats:
    """Return the mean over series of each one's spectrum: the share of its variance at each frequency.

    Gaps count as the series' own mean. A constant series has none; the result is zero where all are constant.

    Args:
        values: ``(N, length)``.

    Returns:
        ``(length // 2,)`` from one wave a series to one in two steps.
    """
    total, count = np.zeros(values.shape[1] // 2), 0
    for moving, _ in centred_blocks(values):
        power = np.abs(np.fft.rfft(moving, axis=1)[:, 1:]) ** 2
        total += (power / power.sum(axis=1, keepdims=True)).sum(axis=0)
        count += len(moving)
    return total / max(count, 1)


def centred_blocks(values: Floats) -> Iterator[tuple[Floats, np.ndarray[tuple[int], np.dtype[np.int64]]]]:
    """Yield blocks of the non-constant series, centred, with zero for gaps, and their indices."""
    smallest = _FLAT * max(1.0, float(np.nanmax(np.abs(values), initial=0.0))) ** 2
    size = max(1, _BLOCK_NUMBERS // values.shape[1])
    for first in range(0, len(values), size):
        block = values[first : first + size]
        known = ~np.isnan(block)
        count = np.maximum(known.sum(axis=1, keepdims=True), 1)
        mean = np.where(known, block, 0.0).sum(axis=1, keepdims=True) / count
        centred = np.where(known, block - mean, 0.0)
        moving = np.flatnonzero((centred**2).sum(axis=1) > smallest)
        yield centred[moving], first + moving


def _heights(values: Floats) -> tuple[Floats, Floats, Floats]:
    """Return each series' mean, its highest value, and the first step of that, without series of gaps.

    A constant series has no highest step.
    """
    known = ~np.isnan(values)
    there = known.any(axis=1)
    values, known = values[there], known[there]
    level = np.where(known, values, 0.0).sum(axis=1) / known.sum(axis=1)
    high = np.where(known, values, -np.inf).max(axis=1, initial=-np.inf)
    low = np.where(known, values, np.inf).min(axis=1, initial=np.inf)
    step = np.where(known, values, -np.inf).argmax(axis=1) if len(values) else np.zeros(0)
    return level, high, step[high > low].astype(np.float64)


def sorted_changes(values: Floats) -> tuple[Floats, Floats]:
    """Return the sizes of all changes from a step to the next, and the largest of each series, each sorted.

    Args:
        values: ``(N, length)``; a gap has no change on either side.
    """
    sizes = np.abs(np.diff(values, axis=1))
    known = ~np.isnan(sizes)
    largest = np.where(known, sizes, 0.0).max(axis=1, initial=0.0)[known.any(axis=1)]
    return np.sort(sizes[known]), np.sort(largest)


def mean_ramp(real: SeriesSetStatistics, other: SeriesSetStatistics, name: str) -> float | None:
    """Return the mean size of changes from a step to the next, as a share of the real one; None without changes."""
    own, theirs = real.changes[name], other.changes[name]
    return float(theirs.mean() / own.mean()) if len(own) and len(theirs) and own.mean() > 0 else None


def share_steeper(real: SeriesSetStatistics, other: SeriesSetStatistics, name: str) -> float | None:
    """Return the share of series that change more from a step to the next than any real one; None without changes."""
    if not len(real.steepest[name]) or not len(other.steepest[name]):
        return None
    return float((other.steepest[name] > real.steepest[name][-1]).mean())


def sorted_gaps(gone: Flags) -> Floats:
    """Return the lengths of all stretches of marked steps ``(N, length)``, sorted."""
    edges = np.diff(np.pad(gone, ((0, 0), (1, 1))).astype(np.int8), axis=1)
    found: Floats = np.sort(np.nonzero(edges == -1)[1] - np.nonzero(edges == 1)[1]).astype(np.float64)
    return found


def share_of_shared(channels: Counts) -> float | None:
    """Return the share of steps with two gaps or more among those with any, of channels' gaps at each step."""
    any_gap = int((channels > 0).sum())
    return int((channels > 1).sum()) / any_gap if any_gap else None


def sorted_runs(real: SeriesSetStatistics, other: SeriesSetStatistics, name: str) -> tuple[Floats, Floats]:
    """Return the number of runs of each series above a value, and the longest of them, each sorted.

    It is the value that a tenth of a channel's real values exceed. A gap ends a run.

    Args:
        real: The set that says where runs begin.
        other: The set whose runs are counted.
        name: The channel.
    """
    if not len(real.values[name]):
        return np.zeros(0), np.zeros(0)
    above = other.series.channel(name) > np.quantile(real.values[name], _HIGH)
    steps = np.arange(1, above.shape[1] + 1)
    begun = above & ~np.concatenate([np.zeros((len(above), 1), dtype=bool), above[:, :-1]], axis=1)
    longest = (steps - np.maximum.accumulate(np.where(above, 0, steps), axis=1)).max(axis=1)
    return np.sort(begun.sum(axis=1).astype(np.float64)), np.sort(longest.astype(np.float64))


def share_of_frequent(real: SeriesSetStatistics, other: SeriesSetStatistics, name: str) -> float | None:
    """Return the share of a channel's values that are the most frequent real one; None without values."""
    if not len(real.values[name]) or not len(other.values[name]):
        return None
    values, counts = np.unique(real.values[name], return_counts=True)
    return float((other.values[name] == values[counts.argmax()]).mean())


def _by_value(schema: SeriesSchema, series: Series, values: Floats) -> Floats:
    """Return mean profiles ``(values, length)``, one for each value of each attribute."""
    rows = [
        mean_profile(values[codes == code])
        for name, codes in encode_attributes(schema, series).items()
        for code in range(groups_of(schema.attributes[name]))
    ]
    return np.stack(rows) if rows else np.zeros((0, values.shape[1]))


# -- distances -------------------------------------------------------------------------------------------------------


def ks_statistic(first: Floats, second: Floats) -> float | None:
    """Return the Kolmogorov distance of two sorted samples: the largest difference of the shares below any value."""
    if not len(first) or not len(second):
        return None
    points = np.concatenate([first, second])
    shares = [np.searchsorted(each, points, side="right") / len(each) for each in (first, second)]
    return float(np.abs(shares[0] - shares[1]).max())


def normalised_wasserstein(first: Floats, second: Floats) -> float | None:
    """Return the distance of two samples: 0 for equal ones, 1 for disjoint ones.

    It is the Wasserstein-1 distance divided by the mean distance between a value of one sample and a value of the
    other. Units and bounds cancel out.

    Args:
        first: One sample, in any order.
        second: The other.
    """
    if not len(first) or not len(second):
        return None
    points = np.sort(np.concatenate([first, second]))
    widths = np.diff(points)
    below, under = (np.searchsorted(np.sort(each), points[:-1], side="right") / len(each) for each in (first, second))
    drawn = float((widths * (below * (1 - under) + under * (1 - below))).sum())
    return float((widths * np.abs(below - under)).sum()) / drawn if drawn > 0 else 0.0


def wasserstein_by_step(first: Floats, second: Floats) -> Floats:
    """Return :func:`normalised_wasserstein` at each compared step, NaN where one set has no value.

    Args:
        first: ``(N, length)``.
        second: ``(M, length)``.
    """
    found = []
    for step in compared_steps(first.shape[1]):
        one, other = (values[:, step][~np.isnan(values[:, step])] for values in (first, second))
        here = normalised_wasserstein(one, other)
        found.append(np.nan if here is None else here)
    return np.array(found)


def correlation(first: Floats, second: Floats) -> float | None:
    """Return the correlation of two profiles, -1 to 1; None where one of them is constant or unknown."""
    known = ~(np.isnan(first) | np.isnan(second))
    first, second = first[known], second[known]
    if len(first) < 2 or np.ptp(first) <= _FLAT or np.ptp(second) <= _FLAT:
        return None
    return finite(float(np.corrcoef(first, second)[0, 1]))
