"""What an evaluation says: a value, how sure it is, what is good, and what the two natural comparisons reach.

Every figure stands between two others. *Independent columns* keeps each column and forgets every relation between
them: an understudy that does no better has learned no more than a table of frequencies. *Real* is the best to hope
for: for distances, other real rows against the same real rows; for prediction, models trained on real rows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from statistics import NormalDist
from typing import Literal, TypeAlias

from pydantic import BaseModel, ConfigDict

Interval: TypeAlias = tuple[float, float]

LEVEL = 0.95
"""The coverage of every interval, unless said otherwise."""


class Result(BaseModel):
    """A frozen part of an evaluation; NaN and infinities are refused, what is not known is null."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Score(Result):
    """One figure with its comparisons.

    Attributes:
        key: A stable name for programs.
        name: The same in words.
        value: The artificial rows' figure; null where it cannot be computed.
        interval: Where the value would fall in 95 of 100 repetitions with other test rows, if cheap to say.
        goal: Whether a low value is good, a high one, or one near the real rows'.
        range: The smallest and largest possible value.
        baseline: The figure of independent columns.
        real: The figure of real rows in the artificial rows' place.
        meaning: One sentence for a reader who meets the figure for the first time.
    """

    key: str
    name: str
    value: float | None
    interval: Interval | None = None
    goal: Literal["low", "high", "near"]
    range: Interval
    baseline: float | None = None
    real: float | None = None
    meaning: str = ""

    @property
    def way(self) -> float | None:
        """The share of the way from independent columns (0) to real rows (1); null where there is no way to go."""
        if self.goal == "near" or self.value is None or self.baseline is None or self.real is None:
            return None
        length = self.real - self.baseline
        forwards = length > 0 if self.goal == "high" else length < 0
        # Shorter ways are made of chance, and a share of them would be too.
        if not forwards or abs(length) < 0.005 * (self.range[1] - self.range[0]):
            return None
        return (self.value - self.baseline) / length


def finite(value: float) -> float | None:
    """Return the number, or null in place of NaN and infinities."""
    return float(value) if math.isfinite(value) else None


def quantile(level: float) -> float:
    """Return z such that a standard normal lies within ±z with probability ``level``."""
    return NormalDist().inv_cdf(0.5 + level / 2)


def wilson(successes: float, n: int, *, level: float = LEVEL) -> Interval | None:
    """Return Wilson's interval for a proportion; null without trials.

    References:
        Wilson (1927), Probable inference, the law of succession, and statistical inference.

    Example:
        >>> [round(end, 4) for end in wilson(9, 10)]
        [0.5958, 0.9821]
    """
    if n == 0:
        return None
    z, share = quantile(level), successes / n
    middle = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * math.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    return max(0.0, middle - half), min(1.0, middle + half)


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


def distance_score(key: str, name: str, figures: Mapping[str, float | None], meaning: str = "") -> Score:
    """Return a distance from 0 to 1 with its comparisons: the figures of ``value``, ``baseline`` and ``real``."""
    return Score(
        key=key,
        name=name,
        value=figures["value"],
        goal="low",
        range=(0.0, 1.0),
        baseline=figures["baseline"],
        real=figures["real"],
        meaning=meaning,
    )
