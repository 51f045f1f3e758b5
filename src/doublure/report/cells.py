"""Cells of score tables, cards and tiles: figures in words, and their positions on a labelled scale."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from doublure.measures.scores import Score, figure, interval

_ROOM, _LEAST_ROOM = 0.08, 0.004
_TRAINED = frozenset({"accuracy", "auc", "average_precision", "macro_f1"})
_BETTER = {
    "low": ("lower is better", "← better", ""),
    "high": ("higher is better", "", "better →"),
    "near": ("near the real figure is best", "", ""),
}


@dataclass(frozen=True, kw_only=True)
class ScoreCell:
    """One score in a row or card; positions are percentages of a scale shared with its neighbours.

    Attributes:
        value: The synthetic records' figure.
        interval: Its interval; empty where none is known.
        baseline: The baseline's figure.
        real: The figure of real records.
        dots: Set -> the position of its figure.
        whisker: The positions of the interval's ends.
        better: The goal, in words.
        ends: The labels of the scale's ends, with an arrow towards the better one.
    """

    value: str
    interval: str
    baseline: str
    real: str
    dots: Mapping[str, float]
    whisker: tuple[float, float] | None
    better: str
    ends: tuple[str, str, str, str]


def find_scale(scores: Sequence[Score]) -> tuple[float, float]:
    """Return the ends of a scale that holds all figures of some scores, with a little room, inside their range."""
    held = [end for score in scores for end in (score.value, score.baseline, score.real, *(score.interval or ()))]
    known = [end for end in held if end is not None]
    if not known:
        return 0.0, 1.0
    low, high = min(known), max(known)
    room = max(_ROOM * (high - low), _LEAST_ROOM)
    ends = max(low - room, scores[0].range[0]), min(high + room, scores[0].range[1])
    return ends if ends[0] < ends[1] else (ends[0], ends[0] + 1.0)


def make_cell(score: Score, scale: tuple[float, float] | None = None) -> ScoreCell:
    """Return the cell of a score.

    Args:
        score: The score.
        scale: The ends of the scale; its own if left out.
    """
    low, high = scale or find_scale([score])

    def place(value: float) -> float:
        return round(100 * (value - low) / (high - low), 2)

    figures = {"baseline": score.baseline, "real": score.real, "synthetic": score.value}
    words, left, right = _BETTER[score.goal]
    return ScoreCell(
        value=figure(score, score.value),
        interval=interval(score, score.interval),
        baseline=figure(score, score.baseline),
        real=figure(score, score.real),
        dots={role: place(value) for role, value in figures.items() if value is not None},
        whisker=None if score.interval is None else (place(score.interval[0]), place(score.interval[1])),
        better=words,
        ends=(figure(score, low), left, right, figure(score, high)),
    )


def make_cells(scores: Sequence[Score | None]) -> list[ScoreCell | None]:
    """Return the cells of scores on one scale; None for an unknown score."""
    scale = find_scale([score for score in scores if score is not None])
    return [None if score is None else make_cell(score, scale) for score in scores]


def make_card(score: Score, beaten: bool = False) -> dict[str, Any]:
    """Return the variables of a score's card.

    Args:
        score: The score.
        beaten: Whether the baseline does better.
    """
    against = "trained on real rows" if score.key in _TRAINED else "other real rows"
    own = {"name": score.name, "meaning": score.meaning, "cell": make_cell(score), "against": against}
    return own | {"beaten": beaten}
