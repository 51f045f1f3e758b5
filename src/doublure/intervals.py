"""Frozen results and confidence intervals, shared by evaluations and attacks."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Any, TypeAlias

import numpy as np

from doublure.models import Model

Interval: TypeAlias = tuple[float, float]

LEVEL = 0.95
"""The coverage of every interval, unless said otherwise."""
IN_95_OF_100 = 1.96
"""Standard deviations of noise within which 95 of 100 counts are."""


class Result(Model):
    """A frozen part of an evaluation; NaN and infinities are refused, unknown figures are null."""


def finite(value: float) -> float | None:
    """Return the number, or null in place of NaN and infinities."""
    return float(value) if math.isfinite(value) else None


def quantile(level: float) -> float:
    """Return z such that a standard normal lies within ±z with probability ``level``."""
    return NormalDist().inv_cdf(0.5 + level / 2)


def wilson(successes: int, n: int, *, level: float = LEVEL) -> Interval | None:
    """Return Wilson's interval for a proportion; null without trials.

    References:
        Newcombe (1998), Two-sided confidence intervals for the single proportion: method 3.

    Example:
        >>> [round(end, 4) for end in wilson(9, 10)]
        [0.5958, 0.9821]
    """
    if n == 0:
        return None
    z, share = quantile(level), successes / n
    middle, whole = 2 * successes + z**2, 2 * (n + z**2)
    half = z * math.sqrt(4 * successes * (1 - share) + z**2)
    return (middle - half) / whole if successes else 0.0, (middle + half) / whole if successes < n else 1.0


def paired_difference(only_first: int, only_second: int, n: int, *, level: float = LEVEL) -> Interval | None:
    """Return an interval for the difference of two proportions measured on the same rows (first less second).

    Args:
        only_first: Rows on which only the first succeeded.
        only_second: Rows on which only the second succeeded.
        n: All rows.
        level: The interval's coverage.

    References:
        Agresti & Min (2005), Simple improved confidence intervals for comparing matched proportions: Wald's interval
        after adding half a row to each of the four outcomes.
    """
    if n == 0:
        return None
    first, second, total = only_first + 0.5, only_second + 0.5, n + 2
    difference = (first - second) / total
    half = quantile(level) * math.sqrt((first + second - (first - second) ** 2 / total) / total**2)
    return max(-1.0, difference - half), min(1.0, difference + half)


def delong(
    positive: np.ndarray[Any, np.dtype[np.bool_]], scores: np.ndarray[Any, np.dtype[np.float64]]
) -> tuple[float | None, Interval | None]:
    """Return the area under the ROC curve of scores, and DeLong's interval at 95 %; null where there is none.

    Where one side's scores all lie above the other's, DeLong's interval has no width. The open end is then the area at
    which as many disjoint pairs as the smaller side allows are all in order in one of forty samples.

    Args:
        positive: ``(N,)`` whether each should be high.
        scores: ``(N,)`` the scores.

    References:
        DeLong, DeLong & Clarke-Pearson (1988), Comparing the areas under two or more correlated ROC curves.

    Example:
        >>> delong(np.array([True, True, False]), np.array([0.9, 0.4, 0.5]))
        (0.5, None)
        >>> area, (low, high) = delong(np.arange(20) < 10, -np.arange(20.0))
        >>> area, round(low, 3), high
        (1.0, 0.692, 1.0)
    """
    from scipy.stats import rankdata

    m, n = int(positive.sum()), int((~positive).sum())
    if not m or not n:
        return None, None
    ranks = rankdata(scores)
    above = (ranks[positive] - rankdata(scores[positive])) / n
    area = float(above.mean())
    if m < 2 or n < 2:
        return area, None
    if area in (0.0, 1.0):
        least = ((1 - LEVEL) / 2) ** (1 / min(m, n))
        return area, ((least, 1.0) if area else (0.0, 1 - least))
    below = 1 - (ranks[~positive] - rankdata(scores[~positive])) / m
    half = quantile(LEVEL) * float(np.sqrt(above.var(ddof=1) / m + below.var(ddof=1) / n))
    return area, (max(0.0, area - half), min(1.0, area + half))
