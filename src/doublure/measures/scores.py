"""Scores of an evaluation: a value, its uncertainty, its goal and its two reference values.

Every figure has two references. *Independent columns* keeps each column and drops every relation between them: a
synthesizer no better than that has learned a table of frequencies. *Real* is the best to hope for: for distances, other
real rows against the same real rows; for prediction, models trained on real rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from doublure.errors import SettingError
from doublure.intervals import Interval, Result, wilson
from doublure.results import percent, span
from doublure.support.guessing import suggest

_AS_PERCENT = frozenset(
    {
        *("accuracy", "columns", "pairs", "wasserstein", "variation", "share", "recall", "precision"),
        *("quantile_columns", "quantile_pairs", "related_pairs", "special_values", "broken_rules", "broken"),
        *("steeper", "mean_ramp", "shared_gaps", "count_queries", "count_queries_relative", "coefficient_signs"),
    }
)
_POINTS = frozenset({"overall", "closeness", "usefulness", "coherence"})
_WHOLE = frozenset({"k_marginal"})
_SLIGHT = 0.005
_FINE = frozenset({"wasserstein", "pixel_mean", "pixel_spread", "checkerboard", "block_spread"})


class Score(Result):
    """One figure with its references.

    Attributes:
        key: A stable name for programs.
        name: The name for people.
        value: The synthetic rows' figure; null where it cannot be computed.
        interval: 95 % interval of the value over redrawn rows, where cheap.
        goal: Whether a low value is good, a high one, or one near the real rows'.
        range: The smallest and largest possible value.
        baseline: The figure of independent columns.
        real: The figure of real rows in the synthetic rows' place.
        meaning: One sentence for a reader new to the figure.
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
        """Length of the range."""
        return self.range[1] - self.range[0]

    @property
    def error(self) -> float:
        """Half-width of the interval; 0 where there is none."""
        return 0.0 if self.interval is None else (self.interval[1] - self.interval[0]) / 2

    @property
    def way(self) -> float | None:
        """The value's position between independent columns (0) and real rows (1); null where these do not differ.

        A distance shorter than the value's error counts as none: a fraction of it would be chance.
        """
        if self.goal == "near" or self.value is None or self.baseline is None or self.real is None:
            return None
        length = self.real - self.baseline
        forwards = length > 0 if self.goal == "high" else length < 0
        if not forwards or abs(length) < self.error:
            return None
        return (self.value - self.baseline) / length

    @property
    def beaten(self) -> bool:
        """Whether the value is clearly worse than that of independent columns, and than that of real rows."""
        if self.goal == "near" or self.value is None or self.baseline is None or self.real is None:
            return False
        if self.goal == "high":
            return min(self.baseline, self.real) - self.value > _SLIGHT * self.width
        # In a small table even other real rows are further off than independent columns, which repeat its frequencies.
        worse = max(self.baseline, self.real)
        return self.value - worse > max(_SLIGHT, 0.1 * worse)

    @property
    def position(self) -> Score | None:
        """The same as a score from independent columns (0) to real rows (100); null where :attr:`way` is."""
        if (way := self.way) is None:
            return None
        return Score(
            key="coherence",
            name=self.name,
            value=min(100.0, max(0.0, 100 * way)),
            goal="high",
            range=(0.0, 100.0),
            baseline=0.0,
            real=100.0,
            meaning=self.meaning,
        )


def distance_score(key: str, name: str, figures: Mapping[str, float | None], meaning: str = "") -> Score:
    """Return a distance from 0 to 1 with its references, from the figures of ``value``, ``baseline`` and ``real``."""
    return Score(key=key, name=name, goal="low", range=(0.0, 1.0), meaning=meaning, **figures)


def rate_score(key: str, name: str, hits: Mapping[str, int], n: int, meaning: str = "") -> Score:
    """Return a share with a high goal, from the hits out of n of ``value``, ``baseline`` and ``real``."""
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
    """Return the loss of a figure, lower being better; None where unknown.

    Args:
        score: Defines the goal.
        value: The figure, or its resamples.
        real: The same of real records.
    """
    if value is None or (score.goal == "near" and real is None):
        return None
    return {"low": lambda: value, "high": lambda: -value, "near": lambda: abs(value - real)}[score.goal]()


def furthest(scores: Sequence[Score]) -> Score | None:
    """Return the distance that is furthest beyond that of other real records; None where none is known."""
    known = [
        (score.value - score.real, score) for score in scores if score.value is not None and score.real is not None
    ]
    return max(known, key=lambda entry: entry[0])[1] if known else None


def possible(score: Score, ends: Interval) -> Interval:
    """Return the part of an interval of a difference of two figures that is possible.

    Two shares differ by 1 at most, and two scores of 100 by 100; other figures' ranges are those that were seen.
    """
    if score.key not in _AS_PERCENT | _POINTS:
        return ends
    return max(ends[0], -score.width), min(ends[1], score.width)


def fallen_short(scores: Sequence[Score], wanted: Mapping[str, float]) -> list[str]:
    """Return what is not as good as wanted, a phrase each; a distance may be no larger, any other goal no smaller.

    Args:
        scores: Figures of one evaluation.
        wanted: By key the figure that is still good enough; with several figures of one key, of each.

    Raises:
        SettingError: There is no figure of that key, or none that can be better or worse.
    """
    able = [score for score in scores if score.goal != "near"]
    missed = []
    for key, limit in wanted.items():
        own = [score for score in able if score.key == key]
        if not own:
            raise SettingError(
                "is no figure of this evaluation", field=key, remedy=suggest(key, [each.key for each in able])
            )
        for score in own:
            if score.value is None:
                missed.append(f"{score.name} is unknown")
            elif loss(score, score.value, None) > loss(score, limit, None):
                bound = "at most" if score.goal == "low" else "at least"
                missed.append(f"{score.name} is {figure(score, score.value)}, not {bound} {figure(score, limit)}")
    return missed


def figure(score: Score, value: float | None) -> str:
    """Return one of a score's figures in its usual format."""
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
    """Return an interval as text; empty without one."""
    return span(ends, shares=score.key in _AS_PERCENT)


def amount(score: Score, *values: float) -> str:
    """Return a difference of two figures, or its interval, with its unit."""
    shares = score.key in _AS_PERCENT or score.key in _FINE
    digits = 2 if score.key in _FINE else 1 if shares or score.key in _WHOLE | _POINTS else 3
    text = " to ".join(f"{100 * value if shares else value:z.{digits}f}" for value in values)
    return text.replace("-", "−") + (" points" if shares else "")


@dataclass(frozen=True, kw_only=True)
class ScoreDifference:
    """Advantage of one set's figure over another's: positive if nearer the goal.

    Attributes:
        value: The difference.
        interval: Its paired interval, from the same real rows; null where the figure is not resampled.
    """

    value: float
    interval: Interval | None

    @property
    def significant(self) -> bool:
        """Whether the difference is significant: its interval excludes 0."""
        return self.interval is not None and self.interval[0] > 0


@dataclass(frozen=True, kw_only=True)
class ScoreComparison:
    """One figure of several sets of records.

    Attributes:
        score: The score of one set that has it, for its meaning and references.
        scores: The score of each set, in order; None where it was not computed.
        intervals: Pair of places -> 95 % interval of the first one's advantage; pairs without resamples are left out.
    """

    score: Score
    scores: tuple[Score | None, ...]
    intervals: Mapping[tuple[int, int], Interval] = field(default_factory=dict)

    @property
    def same(self) -> bool:
        """Whether all sets have the score, with equal references to the last digit."""
        return None not in self.scores and all(len(figures) == 1 for figures in self._yardsticks)

    @property
    def one_scale(self) -> bool:
        """Whether the sets with the score share their references, within the error of their own figures.

        Bounds that two runs bought differ by their noise, and so do bins and figures.
        """
        unknown = any(None in figures and len(figures) > 1 for figures in self._yardsticks)
        known = [[value for value in figures if value is not None] or [0.0] for figures in self._yardsticks]
        error = min(score.error for score in self.scores if score is not None)
        return not unknown and max(max(figures) - min(figures) for figures in known) <= error

    @property
    def first(self) -> int | None:
        """Place of the best figure; None where fewer than two are known, or on different scales."""
        losses = self._losses
        return min(losses, key=lambda place: losses[place]) if self.one_scale and len(losses) > 1 else None

    @property
    def best(self) -> frozenset[int]:
        """Places of the best figure and of those that do not differ significantly from it.

        Empty where that holds for all, or where a difference has no interval.
        """
        first = self.first
        if first is None:
            return frozenset()
        apart = {place: self.difference(first, place) for place in self._losses if place != first}
        alike = {place for place, each in apart.items() if not each.significant}
        if len(alike) == len(apart) or any(each.interval is None for each in apart.values()):
            return frozenset()
        return frozenset({first, *alike})

    def difference(self, first: int, second: int) -> ScoreDifference:
        """Return the advantage of one figure over another; both are known."""
        ends = self.intervals.get((first, second))
        if ends is None and (second, first) in self.intervals:
            low, high = self.intervals[second, first]
            ends = -high, -low
        return ScoreDifference(value=self._losses[second] - self._losses[first], interval=ends)

    @property
    def _losses(self) -> dict[int, float]:
        each = {place: one for place, one in enumerate(self.scores) if one is not None}
        found = {place: loss(one, one.value, one.real) for place, one in each.items()}
        return {place: value for place, value in found.items() if value is not None}

    @property
    def _yardsticks(self) -> tuple[set[float | None], ...]:
        """Distinct baseline figures, and distinct figures of real records."""
        asked = [score for score in self.scores if score is not None]
        return {score.baseline for score in asked}, {score.real for score in asked}
