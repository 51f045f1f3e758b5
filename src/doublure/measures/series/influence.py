"""Influence functions of distances between two sets of series, for the bootstrap.

Each channel has two arrays: of the real series ``(N,)``, and of the others ``(M,)``
(:mod:`doublure.measures.resampling`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np

from doublure.data.series import Series
from doublure.encode.numeric import Floats
from doublure.measures.resampling import ROWS_OF, Resamples
from doublure.measures.scores import Score
from doublure.measures.series.statistics import (
    SeriesSetStatistics,
    centred_blocks,
    compared_lags,
    compared_steps,
    correlation,
    mean_profile,
)

_Both: TypeAlias = tuple[Floats, Floats]
_Influence: TypeAlias = Callable[[SeriesSetStatistics, SeriesSetStatistics, str], _Both]


def resample_distances(
    scores: tuple[Score, ...], statistics: Mapping[str, SeriesSetStatistics], resamples: Resamples
) -> None:
    """Store the resamples of the distances of synthetic series, means over channels.

    Args:
        scores: The distances.
        statistics: Of the synthetic (``value``) and the real (``real``) series.
        resamples: Receives them.
    """
    real, own = statistics["real"], statistics["value"]
    names = real.series.channels
    for score in scores:
        if score.key in _OF:
            each = [_OF[score.key](real, own, name) for name in names]
            first, second = (np.mean(side, axis=0) for side in zip(*each, strict=True))
            resamples.add(score.key, "value", score.value, {"train": first, "value": second})
        elif score.key in _OF_GAPS:
            for role, place in (("value", "value"), ("real", "test")):
                found = _OF_GAPS[score.key](statistics[place].series)
                resamples.add(score.key, role, getattr(score, role), {ROWS_OF[role]: found})


def _missing(series: Series) -> Floats:
    gone = np.isnan(series.values) & series.inside[:, :, None]
    return _of_ratio(gone.sum(axis=(1, 2)), series.inside.sum(axis=1) * len(series.channels))


def _shared(series: Series) -> Floats:
    gone = (np.isnan(series.values) & series.inside[:, :, None]).sum(axis=2)
    return _of_ratio((gone > 1).sum(axis=1), (gone > 0).sum(axis=1))


_OF_GAPS: Mapping[str, Callable[[Series], Floats]] = {"missing": _missing, "shared_gaps": _shared}


def _of_ratio(parts: Floats, wholes: Floats) -> Floats:
    """Return the influence on the ratio of two sums over series."""
    whole = float(wholes.mean())
    return (parts - parts.sum() / max(1, wholes.sum()) * wholes) / whole if whole else np.zeros(len(parts))


def _profile(real: SeriesSetStatistics, own: SeriesSetStatistics, name: str) -> _Both:
    sides = [each.series.channel(name) for each in (real, own)]
    means = [mean_profile(values) for values in sides]
    known = ~(np.isnan(means[0]) | np.isnan(means[1]))
    together = correlation(*means)
    if together is None:
        return np.zeros(len(sides[0])), np.zeros(len(sides[1]))
    # The derivative of the correlation with respect to the mean at each step, times each series' deviation from it.
    scaled = [(mean[known] - mean[known].mean()) / mean[known].std() for mean in means]
    found = []
    for place, values in enumerate(sides):
        slope = (scaled[1 - place] - together * scaled[place]) / (known.sum() * means[place][known].std())
        there = ~np.isnan(values[:, known])
        apart = np.where(there, values[:, known] - means[place][known], 0.0) / there.mean(axis=0)
        found.append(apart @ slope)
    return found[0], found[1]


def _apart(real: SeriesSetStatistics, own: SeriesSetStatistics, name: str) -> _Both:
    sides = [each.series.channel(name) for each in (real, own)]
    found = np.zeros(len(sides[0])), np.zeros(len(sides[1]))
    steps = compared_steps(sides[0].shape[1])
    for step in steps:
        columns = [values[:, step] for values in sides]
        there = [~np.isnan(column) for column in columns]
        if not all(known.any() for known in there):
            continue
        points = np.unique(np.concatenate([column[known] for column, known in zip(columns, there, strict=True)]))
        below = [
            np.searchsorted(np.sort(column[known]), points[:-1], side="right") / known.sum()
            for column, known in zip(columns, there, strict=True)
        ]
        widths = np.diff(points)
        drawn = float((widths * (below[0] * (1 - below[1]) + below[1] * (1 - below[0]))).sum())
        if not drawn:
            continue
        # The area between the distribution functions over the mean distance of two draws; its slope is a quotient.
        share = float((widths * np.abs(below[0] - below[1])).sum()) / drawn
        for place, (column, known) in enumerate(zip(columns, there, strict=True)):
            sign = np.sign(below[place] - below[1 - place])
            slope = widths * (sign - share * (1 - 2 * below[1 - place])) / drawn
            beyond = np.append(np.cumsum(slope[::-1])[::-1], 0.0)[np.searchsorted(points, column[known])]
            found[place][known] += (beyond - beyond.mean()) * len(column) / known.sum() / len(steps)
    return found


def _waves(per_series: Callable[[Floats], Floats], share: float) -> _Influence:
    """Return the influences on the sum (times ``share``) or mean of differences between means of a series feature."""

    def both(real: SeriesSetStatistics, own: SeriesSetStatistics, name: str) -> _Both:
        blocks = [list(centred_blocks(each.series.channel(name))) for each in (real, own)]
        figures = [np.concatenate([per_series(values) for values, _ in each]) for each in blocks]
        places = [np.concatenate([rows for _, rows in each]) for each in blocks]
        if not all(map(len, figures)):
            return np.zeros(len(real.series)), np.zeros(len(own.series))
        sign = np.sign(figures[0].mean(axis=0) - figures[1].mean(axis=0)) * (share or 1 / max(1, figures[0].shape[1]))
        found = []
        sizes = len(real.series), len(own.series)
        for way, each, rows, many in zip((1, -1), figures, places, sizes, strict=True):
            said = np.zeros(many)
            said[rows] = way * ((each - each.mean(axis=0)) @ sign) * many / len(each)
            found.append(said)
        return found[0], found[1]

    return both


def _autocorrelations(moving: Floats) -> Floats:
    power = (moving**2).sum(axis=1)
    lags = compared_lags(moving.shape[1])
    if not lags:
        return np.zeros((len(moving), 0))
    return np.stack([(moving[:, :-lag] * moving[:, lag:]).sum(axis=1) / power for lag in lags], axis=1)


def _spectra(moving: Floats) -> Floats:
    power = np.abs(np.fft.rfft(moving, axis=1)[:, 1:]) ** 2
    found: Floats = power / power.sum(axis=1, keepdims=True)
    return found


def _furthest(
    of: Callable[[SeriesSetStatistics], Mapping[str, Floats]], counted: Callable[[Floats, float], tuple[Floats, Floats]]
) -> _Influence:
    """Return the influences on a Kolmogorov distance, through the two shares below the value of largest difference."""

    def both(real: SeriesSetStatistics, own: SeriesSetStatistics, name: str) -> _Both:
        samples = [of(each)[name] for each in (real, own)]
        if not all(map(len, samples)):
            return np.zeros(len(real.series)), np.zeros(len(own.series))
        points = np.concatenate(samples)
        below = [np.searchsorted(each, points, side="right") / len(each) for each in samples]
        worst = int(np.abs(below[0] - below[1]).argmax())
        sign = float(np.sign(below[0][worst] - below[1][worst]))
        found = [_of_ratio(*counted(each.series.channel(name), points[worst])) for each in (real, own)]
        return sign * found[0], -sign * found[1]

    return both


def _all_below(values: Floats, end: float) -> tuple[Floats, Floats]:
    return (values <= end).sum(axis=1), (~np.isnan(values)).sum(axis=1)


def _numbers(marks: Any) -> Floats:
    return np.asarray(marks, dtype=np.float64)


def _level_below(values: Floats, end: float) -> tuple[Floats, Floats]:
    known = ~np.isnan(values)
    level = np.where(known, values, 0.0).sum(axis=1) / np.maximum(known.sum(axis=1), 1)
    return _numbers((level <= end) & known.any(axis=1)), _numbers(known.any(axis=1))


def _peak_below(values: Floats, end: float) -> tuple[Floats, Floats]:
    known = ~np.isnan(values)
    high = np.where(known, values, -np.inf).max(axis=1)
    return _numbers((high <= end) & known.any(axis=1)), _numbers(known.any(axis=1))


def _change_below(values: Floats, end: float) -> tuple[Floats, Floats]:
    return _all_below(np.abs(np.diff(values, axis=1)), end)


def _steepest_below(values: Floats, end: float) -> tuple[Floats, Floats]:
    return _peak_below(np.abs(np.diff(values, axis=1)), end)


_OF: Mapping[str, _Influence] = {
    "profile": _profile,
    "apart": _apart,
    "autocorrelation": _waves(_autocorrelations, 0.0),
    "spectrum": _waves(_spectra, 0.5),
    "values": _furthest(lambda each: each.values, _all_below),
    "level": _furthest(lambda each: each.levels, _level_below),
    "peaks": _furthest(lambda each: each.peaks, _peak_below),
    "ramps": _furthest(lambda each: each.changes, _change_below),
    "steepest": _furthest(lambda each: each.steepest, _steepest_below),
}
