"""The evaluation of series in plain words."""

from __future__ import annotations

from collections.abc import Sequence

from doublure.measures.holdout import seen_warning
from doublure.measures.scores import Score
from doublure.measures.series.nearest_neighbours import TOO_NEAR
from doublure.results import Verdict, percent

_SLIGHT = 0.01
_DISTANCES = {
    "apart": "values at each step",
    "autocorrelation": "autocorrelation",
    "spectrum": "spectrum",
    "level": "level",
    "peaks": "peak",
}


def verdict(scores: Sequence[Score], *, kept_aside: bool) -> Verdict:
    """Return what to tell somebody who reads no further.

    Args:
        scores: Those of an evaluation.
        kept_aside: Whether the fit has never seen the real series that test it.
    """
    found = {score.key: score for score in scores}
    profile, told = found["profile"], found.get("discriminative")
    headline = (
        f"The mean profile goes together with the real one at a correlation of {_said(profile.value)} "
        f"(other real series: {_said(profile.real)})."
    )
    lines = []
    by_value = found.get("profile_by_attribute")
    if by_value is not None:
        lines.append(f"Within each attribute’s values it is {_said(by_value.value)} ({_said(by_value.real)}).")
    apart = [f"{what} {_compared(found[key])}" for key, what in _DISTANCES.items()]
    lines.append(f"Distances, in brackets those of other real series and of independent steps: {', '.join(apart)}.")
    if told is not None:
        lines.append(
            f"A student tells them from real series with an area under ROC of {_compared(told)}; 0.5 is not at all."
        )
    foretold = found.get("predictive")
    if foretold is not None and foretold.value is not None:
        lines.append(
            f"A student that learned from them foretells real series with {_said(foretold.value)} of a constant’s "
            f"error; one that learned from real series, {_said(foretold.real)}; from independent steps, "
            f"{_said(foretold.baseline)}."
        )
    accuracy = found.get("accuracy")
    if accuracy is not None:
        lines.append(
            f"A student of them is right about the class of {percent(accuracy.value)} of real series; a student of "
            f"real series, {percent(accuracy.real)}; of independent steps, {percent(accuracy.baseline)}."
        )
    return Verdict(headline=headline, lines=tuple(lines), warnings=_warnings(found, kept_aside))


def _warnings(found: dict[str, Score], kept_aside: bool) -> tuple[str, ...]:
    said = seen_warning(kept_aside, "series")
    near = found.get("too_near")
    if near is not None and near.interval is not None and near.interval[0] > TOO_NEAR:
        said.append(
            f"{percent(near.value)} of the artificial series stand nearer to a real one than 19 in 20 other real "
            "series do: they may be copies."
        )
    course = found["autocorrelation"]
    if course.value is not None and course.baseline is not None and course.value - course.baseline > _SLIGHT:
        said.append("Independent steps, which know no course through time, have the better autocorrelation.")
    return tuple(said)


def _compared(score: Score) -> str:
    return f"{_said(score.value)} ({_said(score.real)}, {_said(score.baseline)})"


def _said(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"
