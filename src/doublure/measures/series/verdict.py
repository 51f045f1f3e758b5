"""Verdict on synthetic series in words."""

from __future__ import annotations

from collections.abc import Sequence

from doublure.measures.holdout import seen_warning
from doublure.measures.scores import Score, furthest
from doublure.measures.series.nearest_neighbours import TOO_NEAR
from doublure.results import Verdict, percent

_SLIGHT = 0.01
_DISTANCES = {
    "apart": "values at each step",
    "autocorrelation": "autocorrelation",
    "spectrum": "spectrum",
    "level": "level",
    "peaks": "peak",
    "ramps": "ramps",
    "steepest": "steepest ramp",
    "runs": "runs above the 90 % quantile",
    "longest": "the longest of them",
}
"""Distances that a verdict lists. The worst is named among those between 0 and 1: all but autocorrelation."""


def verdict(scores: Sequence[Score], *, kept_aside: bool) -> Verdict:
    """Return the summary for a reader who reads no further: the worst first, as of tables.

    Args:
        scores: The scores of an evaluation.
        kept_aside: Whether the fit has never seen the real test series.
    """
    found = {score.key: score for score in scores}
    lines, steeper = list[str](), found["steeper"]
    if steeper.value:
        lines.append(
            f"{percent(steeper.value)} of the synthetic series change more from a step to the next than any real one "
            f"({percent(steeper.real)} of other real series do)."
        )
    distances = [f"{what} {_compared(found[key])}" for key, what in _DISTANCES.items()]
    lines.append(f"Distances (in brackets: other real series, independent steps): {', '.join(distances)}.")
    lines.append(f"The mean profile correlates with the real one at {_compared(found['profile'])}.")
    by_value = found.get("profile_by_attribute")
    if by_value is not None:
        lines.append(f"Within the values of attributes it does at {_compared(by_value)}.")
    forecast = found.get("predictive")
    if forecast is not None and forecast.value is not None:
        lines.append(
            f"Trained on them, a model forecasts real series with {_write(forecast.value)} of a constant forecast’s "
            f"error; trained on real series, {_write(forecast.real)}; on independent steps (baseline), "
            f"{_write(forecast.baseline)}."
        )
    accuracy = found.get("accuracy")
    if accuracy is not None:
        lines.append(
            f"Trained on them, a classifier has an accuracy of {percent(accuracy.value)} on real series; trained on "
            f"real series, {percent(accuracy.real)}; on independent steps (baseline), {percent(accuracy.baseline)}."
        )
    return Verdict(headline=_worst(found), lines=tuple(lines), warnings=_warnings(found, kept_aside))


def _warnings(found: dict[str, Score], kept_aside: bool) -> tuple[str, ...]:
    said = seen_warning(kept_aside, "series")
    near = found.get("too_near")
    if near is not None and near.interval is not None and near.interval[0] > TOO_NEAR:
        said.append(
            f"{percent(near.value)} of the synthetic series are nearer to a real one than 19 in 20 other real series "
            "are: they may be copies."
        )
    course = found["autocorrelation"]
    if course.value is not None and course.baseline is not None and course.value - course.baseline > _SLIGHT:
        said.append("Independent steps, which have no correlation in time, match the autocorrelation better.")
    return tuple(said)


def _worst(found: dict[str, Score]) -> str:
    """Return the distance that is furthest beyond that of other real series, and how well a classifier does."""
    distances, told = [found[key] for key in _DISTANCES if key != "autocorrelation"], found.get("discriminative")
    worst = furthest(distances)
    if worst is None or any(score.value is None for score in distances):
        said = "Worst distance: unknown, as a set has no values"
    else:
        beyond = (worst.value or 0.0) > (worst.real or 0.0)
        said = "Worst distance" if beyond else "No distance is beyond that of other real series. Closest to it"
        said += f": {worst.name}, {_write(worst.value)} (other real series: {_write(worst.real)})"
    if told is None:
        return f"{said}."
    return (
        f"{said}; two-sample AUC {_write(told.value)} (other real series: {_write(told.real)}; at 0.5 a classifier "
        "cannot distinguish them)."
    )


def _compared(score: Score) -> str:
    return f"{_write(score.value)} ({_write(score.real)}, {_write(score.baseline)})"


def _write(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"
