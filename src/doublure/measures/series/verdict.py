"""Verdict on synthetic series in words."""

from __future__ import annotations

from collections.abc import Sequence

from doublure.errors import printable
from doublure.measures.holdout import seen_warning
from doublure.measures.scores import Score, furthest, loss
from doublure.measures.series.figures import ChannelFigure
from doublure.measures.series.nearest_neighbours import TOO_NEAR
from doublure.measures.series.plot_data import GroupFigures
from doublure.results import Verdict, percent

_HARDLY, _LONGEST = 0.01, 48
_TAKEN = frozenset({"apart", "values"})
"""Figures of which independent steps take all that they measure from real series."""
DISTANCES = {
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


def verdict(
    scores: Sequence[Score], by_channel: Sequence[ChannelFigure], groups: Sequence[GroupFigures], *, kept_aside: bool
) -> Verdict:
    """Return the summary for a reader who reads no further: the worst first, as of tables.

    Args:
        scores: The scores of an evaluation.
        by_channel: Each channel's figures; none in an evaluation of before.
        groups: The figures of attributes' values; likewise.
        kept_aside: Whether the fit has never seen the real test series.
    """
    found = {score.key: score for score in scores}
    worst = {score.key: own for score in scores if (own := worst_channel(score, by_channel)) is not None}
    lines = _ramps(found, worst)
    distances = [f"{what} {_compared(found[key])}" for key, what in DISTANCES.items()]
    means = ", means over channels" if worst else ""
    lines.append(f"Distances{means} (in brackets: other real series, independent steps): {', '.join(distances)}.")
    lines.append(f"The mean profile correlates with the real one at {_compared(found['profile'])}.")
    by_value = found.get("profile_by_attribute")
    if by_value is not None:
        lines.append(f"Within the values of attributes it does at {_compared(by_value)}.")
    lines += [*_within(found, groups), *_gaps(found)]
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
    warnings = _warnings(found, worst, kept_aside)
    return Verdict(headline=_worst(found, by_channel), lines=tuple(lines), warnings=warnings)


def worst_channel(score: Score, by_channel: Sequence[ChannelFigure]) -> tuple[str, Score] | None:
    """Return the channel that is furthest off, and its own score; None where the score is no mean over channels.

    Furthest off is what lies furthest beyond other real series.
    """
    own = [(each.channel, each.of(score)) for each in by_channel if each.key == score.key]
    known = [
        (loss(score, one.value, one.real) - loss(score, one.real, one.real), name, one)
        for name, one in own
        if one.value is not None and one.real is not None
    ]
    if len(own) < 2 or not known:
        return None
    _, name, one = max(known, key=lambda entry: entry[0])
    return name, one


def worst_group(score: Score, groups: Sequence[GroupFigures]) -> GroupFigures | None:
    """Return the value of an attribute at which a score is what it is; None for a score of something else."""
    error = {"level_by_attribute": "level_error", "together_by_attribute": "correlation_error"}.get(score.key)
    known = [] if error is None else [each for each in groups if getattr(each, error) is not None]
    return max(known, key=lambda each: float(getattr(each, str(error)))) if known else None


def beaten_scores(scores: Sequence[Score]) -> list[Score]:
    """Return the figures at which independent steps do better, other than those that they take from real series."""
    return [score for score in scores if score.key not in _TAKEN and score.beaten]


def _ramps(found: dict[str, Score], worst: dict[str, tuple[str, Score]]) -> list[str]:
    """Return sentences on changes from a step to the next, of the channel in which each is worst."""
    lines = []
    name, steeper = worst.get("steeper", ("", found["steeper"]))
    if steeper.value:
        lines.append(
            f"{percent(steeper.value)} of the synthetic series change more{_beside(name, 'in')} from a step to the "
            f"next than any real one ({percent(steeper.real)} of other real series do)."
        )
    mean = found.get("mean_ramp")
    if mean is not None:
        name, mean = worst.get("mean_ramp", ("", mean))
        if mean.value is not None and abs(mean.value - 1) >= _HARDLY:
            lines.append(
                f"The mean ramp{_beside(name, 'of')} is {percent(mean.value)} of the real one (other real series: "
                f"{percent(mean.real)})."
            )
    return lines


def _within(found: dict[str, Score], groups: Sequence[GroupFigures]) -> list[str]:
    """Return sentences on levels and correlations within the worst values of attributes."""
    lines = []
    level = found.get("level_by_attribute")
    if level is not None and (at := worst_group(level, groups)) is not None and at.level_error and at.levels:
        lines.append(
            f"The level is furthest off at {_named(at)}: the mean of {_short(str(at.channel))} is "
            f"{at.levels[1]:.3g} for {at.levels[0]:.3g}, {_write(at.level_error)} standard deviations beyond chance "
            f"(at worst: other real series {_write(level.real)}, independent steps {_write(level.baseline)})."
        )
    together = found.get("together_by_attribute")
    at = None if together is None else worst_group(together, groups)
    if together is not None and at is not None and at.correlation_error and at.pair and at.correlations:
        pair = " and ".join(_short(name) for name in at.pair)
        lines.append(
            f"Channels go together worst at {_named(at)}: correlations are off by {_write(at.correlation_error)} on "
            f"average, beyond chance (at worst: other real series {_write(together.real)}, independent steps "
            f"{_write(together.baseline)}); that of {pair} is {at.correlations[1]:.2f} for {at.correlations[0]:.2f}."
        )
    return lines


def _gaps(found: dict[str, Score]) -> list[str]:
    """Return a sentence on gaps that channels share."""
    shared = found.get("shared_gaps")
    if shared is None or shared.value is None:
        return []
    return [
        f"Where a channel has no value, another has none either at {percent(shared.value)} of steps (other real "
        f"series: {percent(shared.real)}; independent steps: {percent(shared.baseline)})."
    ]


def _named(group: GroupFigures) -> str:
    return f"{_short(group.attribute)} = {_short(group.words)}"


def _short(name: str) -> str:
    """Return a name that leaves room for what is said of it."""
    text = printable(name)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _beside(channel: str, preposition: str) -> str:
    return f" {preposition} {_short(channel)}" if channel else ""


def _warnings(found: dict[str, Score], worst: dict[str, tuple[str, Score]], kept_aside: bool) -> tuple[str, ...]:
    said = seen_warning(kept_aside, "series")
    near = found.get("too_near")
    if near is not None and near.interval is not None and near.interval[0] > TOO_NEAR:
        said.append(
            f"{percent(near.value)} of the synthetic series are nearer to a real one than 19 in 20 other real series "
            "are: they may be copies."
        )
    beaten = []
    for score in beaten_scores(list(found.values())):
        name, own = worst.get(score.key, ("", score))
        beaten.append(
            score.name[:1].lower() + score.name[1:] + (f" ({_short(name)}: {_compared(own)})" if name else "")
        )
    if beaten:
        said.append(f"Independent steps, which have no correlation in time, do better at: {'; '.join(beaten)}.")
    return tuple(said)


def _worst(found: dict[str, Score], by_channel: Sequence[ChannelFigure]) -> str:
    """Return the distance that is furthest beyond that of other real series, and how well a classifier does."""
    distances, told = [found[key] for key in DISTANCES if key != "autocorrelation"], found.get("discriminative")
    own = [(score, each.of(score), each.channel) for score in distances for each in by_channel if each.key == score.key]
    worst = furthest([one for _, one, _ in own] or distances)
    if worst is None or any(score.value is None for score in distances):
        said = "Worst distance: unknown, as a set has no values"
    else:
        several = len({name for _, _, name in own}) > 1
        name = next((name for _, one, name in own if one is worst and several), "")
        beyond = (worst.value or 0.0) > (worst.real or 0.0)
        said = "Worst distance" if beyond else "No distance is beyond that of other real series. Closest to it"
        said += f": {worst.name}{_beside(name, 'of')}, {_write(worst.value)} (other real series: {_write(worst.real)})"
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
