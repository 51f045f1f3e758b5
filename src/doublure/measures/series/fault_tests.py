"""Fault tests of synthetic time series, for the faults of a broken pipeline.

=============================  =========================================================================================
fault                          statistic of a series
=============================  =========================================================================================
another unit, another scale    a channel's mean is above, or below, the median of a correct run's; or outside 98 in 100
a constant feed                a channel moves less than in all but one in 100 of a correct run
a shifted clock                it fits a correct run's mean course better when shifted by a number of steps
two channels exchanged         their means are likelier after a swap
steps that were lost           a channel has a step without a value
series that were copied        all its values equal those of another one
=============================  =========================================================================================
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from doublure.data.series import Series
from doublure.errors import printable
from doublure.measures.fault_tests import FaultStatistic, Mask, copy_tests, numeric_shift_tests, swap_tests
from doublure.support.arrays import Floats

_STILL = 0.01
_LAGS = 24


def series_fault_statistics(training: Series, seen: Sequence[Series]) -> dict[str, FaultStatistic]:
    """Return the statistics by a stable name.

    Args:
        training: Series of the first correct run.
        seen: Other series of the inspected run, then of each correct one.
    """
    found: dict[str, FaultStatistic] = {}
    for name in training.channels:
        own, others = training.channel(name), [each.channel(name) for each in seen]
        found |= numeric_shift_tests(name, _means(own), [_means(each) for each in others], "has a mean")
        found |= _still(name, own, others) | _missing(name, others) | _shifted(name, own, others)
    for pair in combinations(training.channels, 2):
        means = [tuple(_means(each.channel(name)) for name in pair) for each in (training, *seen)]
        trained, *looked = [(first, second) for first, second in means]
        found |= swap_tests(pair, trained, looked)
    return found | copy_tests([each.values.reshape(len(each), -1) for each in seen], "series")


def _means(values: Floats) -> Floats:
    """Return ``(N,)`` each series' mean over its observed steps, NaN without any."""
    there = ~np.isnan(values)
    counts = there.sum(1)
    means: Floats = np.where(there, values, 0.0).sum(1) / np.maximum(counts, 1)
    return np.where(counts > 0, means, np.nan)


def _spreads(values: Floats) -> Floats:
    """Return ``(N,)`` each series' standard deviation over its observed steps."""
    there = ~np.isnan(values)
    off = np.where(there, values - _means(values)[:, None], 0.0)
    spreads: Floats = np.sqrt((off**2).sum(1) / np.maximum(there.sum(1), 1))
    return spreads


def _still(name: str, training: Floats, seen: Sequence[Floats]) -> dict[str, FaultStatistic]:
    least = float(np.quantile(_spreads(training), _STILL))
    shown: list[Mask] = [np.asarray(_spreads(each) <= least) for each in seen]
    return {
        f"constant_{name}": FaultStatistic(
            clause=f"have a {printable(name)} that hardly moves",
            meaning="A constant feed: it moves less than in 99 in 100 series of a correct run.",
            shown=shown,
            learned=True,
        )
    }


def _missing(name: str, seen: Sequence[Floats]) -> dict[str, FaultStatistic]:
    return {
        f"missing_{name}": FaultStatistic(
            clause=f"have a step without {printable(name)}",
            meaning="Steps were lost.",
            shown=[np.asarray(np.isnan(each).any(axis=1)) for each in seen],
        )
    }


def _shifted(name: str, training: Floats, seen: Sequence[Floats]) -> dict[str, FaultStatistic]:
    """Return for each non-zero (circular) shift the series that fit the mean course better with it than without."""
    course = np.nanmean(training, axis=0) if len(training) and not np.isnan(training).all(0).any() else None
    if course is None or len(course) < 3 or float(np.std(course)) == 0.0:
        return {}
    length = len(course)
    step = max(1, round(length / _LAGS))
    wanted = np.conj(np.fft.rfft(course - course.mean()))
    fits = [_fits(each, wanted, length) for each in seen]
    found = {}
    for shift in range(step, length, step):
        if min(shift, length - shift) < step:  # the rest of the last piece
            continue
        steps = shift if shift <= length // 2 else shift - length
        way = "later" if steps > 0 else "earlier"
        shown: list[Mask] = [np.asarray(each[:, shift] > each[:, 0]) for each in fits]
        found[f"shifted_{name}_{steps}"] = FaultStatistic(
            clause=f"have a {printable(name)} that fits better {abs(steps)} steps {way}",
            meaning="A shifted clock: its course is that of a correct run at another time.",
            shown=shown,
        )
    return found


def _fits(values: Floats, wanted: np.ndarray[tuple[int], np.dtype[np.complex128]], length: int) -> Floats:
    """Return ``(N, length)`` how well each series fits the course after each delay; of a flat one, 0."""
    plain = np.where(np.isnan(values), _means(values)[:, None], values)
    plain = np.nan_to_num(plain - plain.mean(axis=1, keepdims=True))
    fits: Floats = np.fft.irfft(np.fft.rfft(plain, axis=1) * wanted, n=length, axis=1)
    fits[~plain.any(axis=1)] = 0.0
    return fits
