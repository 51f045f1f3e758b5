"""What an evaluation says: a value, how sure it is, what is good, and what the two natural comparisons reach.

Every figure stands between two others. *Independent columns* keeps each column and forgets every relation between
them: a synthesizer that does no better has learned no more than a table of frequencies. *Real* is the best to hope
for: for distances, other real rows against the same real rows; for prediction, models trained on real rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from doublure.intervals import Interval, Result, wilson
from doublure.results import percent, span

_AS_PERCENT = frozenset(
    {
        *("accuracy", "columns", "pairs", "wasserstein", "variation", "share", "recall", "precision"),
        *("quantile_columns", "quantile_pairs", "special_values", "broken_rules", "broken"),
        *("count_queries", "count_queries_relative", "coefficient_signs"),
    }
)
_POINTS = frozenset({"overall", "closeness", "usefulness", "coherence"})
_WHOLE = frozenset({"k_marginal"})
_FINE = frozenset({"wasserstein", "pixel_mean", "pixel_spread", "checkerboard", "block_spread"})


class Score(Result):
    """One figure with its comparisons.

    Attributes:
        key: A stable name for programs.
        name: The same in words.
        value: The synthetic rows' figure; null where it cannot be computed.
        interval: Where the value would fall in 95 of 100 repetitions with other rows, if cheap to say.
        goal: Whether a low value is good, a high one, or one near the real rows'.
        range: The smallest and largest possible value.
        baseline: The figure of independent columns.
        real: The figure of real rows in the synthetic rows' place.
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
    def width(self) -> float:
        """How far the largest possible value is from the smallest."""
        return self.range[1] - self.range[0]

    @property
    def error(self) -> float:
        """How far its interval reaches to either side; 0 where none is known."""
        return 0.0 if self.interval is None else (self.interval[1] - self.interval[0]) / 2

    @property
    def way(self) -> float | None:
        """The share of the way from independent columns (0) to real rows (1); null where there is no way to go.

        A way that is shorter than the value is sure, to either side, is none: a share of it would be made of chance.
        """
        if self.goal == "near" or self.value is None or self.baseline is None or self.real is None:
            return None
        length = self.real - self.baseline
        forwards = length > 0 if self.goal == "high" else length < 0
        if not forwards or abs(length) < self.error:
            return None
        return (self.value - self.baseline) / length


def distance_score(key: str, name: str, figures: Mapping[str, float | None], meaning: str = "") -> Score:
    """Return a distance from 0 to 1 with its comparisons: the figures of ``value``, ``baseline`` and ``real``."""
    return Score(key=key, name=name, goal="low", range=(0.0, 1.0), meaning=meaning, **figures)


def rate_score(key: str, name: str, hits: Mapping[str, int], n: int, meaning: str = "") -> Score:
    """Return a share that should be high, from how many of n were hit: of ``value``, ``baseline`` and ``real``."""
    return Score(
        key=key,
        name=name,
        value=hits["value"] / n,
        interval=wilson(hits["value"], n),
        goal="high",
        range=(0.0, 1.0),
        baseline=hits["baseline"] / n,
        real=hits["real"] / n,
        meaning=meaning,
    )


def loss(score: Score, value: Any, real: Any) -> Any:
    """Return how far a figure is from what is good, less being better; None where that is not known.

    Args:
        score: What is good.
        value: The figure, or its resamples.
        real: That of real records, likewise.
    """
    if value is None or (score.goal == "near" and real is None):
        return None
    return {"low": lambda: value, "high": lambda: -value, "near": lambda: abs(value - real)}[score.goal]()


def figure(score: Score, value: float | None) -> str:
    """Return one of a score's figures as its kind is usually written."""
    if value is None:
        return "–"
    if score.key in _FINE:
        return percent(value, digits=2)
    if score.key in _WHOLE:
        return f"{value:.0f}"
    if score.key in _POINTS:
        return f"{value:.1f}"
    return percent(value) if score.key in _AS_PERCENT else f"{value:.3f}"


def interval(score: Score, ends: Interval | None) -> str:
    """Return an interval as text, or nothing."""
    return span(ends, shares=score.key in _AS_PERCENT)


def amount(score: Score, *values: float) -> str:
    """Return a difference of two figures of a kind, or its interval, with its unit."""
    shares = score.key in _AS_PERCENT or score.key in _FINE
    digits = 2 if score.key in _FINE else 1 if shares or score.key in _WHOLE | _POINTS else 3
    text = " to ".join(f"{100 * value if shares else value:z.{digits}f}" for value in values)
    return text.replace("-", "−") + (" points" if shares else "")


@dataclass(frozen=True, kw_only=True)
class Difference:
    """By how much one set's figure is better than another's: nearer to what is good.

    Attributes:
        value: The difference.
        interval: Its interval from the same real rows twice (paired); null where the figure is not resampled.
    """

    value: float
    interval: Interval | None

    @property
    def told(self) -> bool:
        """Whether chance does not make it: its interval excludes 0."""
        return self.interval is not None and self.interval[0] > 0


@dataclass(frozen=True, kw_only=True)
class SideBySide:
    """One figure of several sets of records.

    Attributes:
        score: That of one who has it: what it means, and what it is held against.
        scores: Each one's, in their order; None for one that was not asked.
        intervals: Of two places, by how much the first is better, 95 %; pairs that are not resampled are left out.
    """

    score: Score
    scores: tuple[Score | None, ...]
    intervals: Mapping[tuple[int, int], Interval] = field(default_factory=dict)

    @property
    def same(self) -> bool:
        """Whether everybody was asked, and is held against the same figures to the last digit."""
        return None not in self.scores and all(len(figures) == 1 for figures in self._yardsticks)

    @property
    def one_scale(self) -> bool:
        """Whether those who were asked are held against the same figures, within the error of their own.

        Bounds that two runs have bought differ by their noise, and bins and figures with them.
        """
        unknown = any(None in figures and len(figures) > 1 for figures in self._yardsticks)
        known = [[value for value in figures if value is not None] or [0.0] for figures in self._yardsticks]
        error = min(score.error for score in self.scores if score is not None)
        return not unknown and max(max(figures) - min(figures) for figures in known) <= error

    @property
    def first(self) -> int | None:
        """The place of the best figure; None where fewer than two are known, or on scales of their own."""
        losses = self._losses
        return min(losses, key=lambda place: losses[place]) if self.one_scale and len(losses) > 1 else None

    @property
    def best(self) -> frozenset[int]:
        """The places of the best figure and of those that its difference does not tell from it.

        Nothing where that holds of all, or where a difference has no interval.
        """
        first = self.first
        if first is None:
            return frozenset()
        apart = {place: self.difference(first, place) for place in self._losses if place != first}
        if not any(each.told for each in apart.values()) or any(each.interval is None for each in apart.values()):
            return frozenset()
        return frozenset({first, *(place for place, each in apart.items() if not each.told)})

    def difference(self, first: int, second: int) -> Difference:
        """Return by how much one figure is better than another; both are known."""
        ends = self.intervals.get((first, second))
        if ends is None and (second, first) in self.intervals:
            low, high = self.intervals[second, first]
            ends = -high, -low
        return Difference(value=self._losses[second] - self._losses[first], interval=ends)

    @property
    def _losses(self) -> dict[int, float]:
        """How far each known figure is from what is good."""
        each = {place: one for place, one in enumerate(self.scores) if one is not None}
        found = {place: loss(one, one.value, one.real) for place, one in each.items()}
        return {place: value for place, value in found.items() if value is not None}

    @property
    def _yardsticks(self) -> tuple[set[float | None], ...]:
        """The figures of the least to expect, and those of real records."""
        asked = [score for score in self.scores if score is not None]
        return {score.baseline for score in asked}, {score.real for score in asked}
