"""Distances between synthetic and real series, beside those of independent steps and of other real series."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import numpy as np

from doublure.encode.numeric import Floats
from doublure.intervals import Result
from doublure.measures.scores import Score
from doublure.measures.series.groups import GroupStatistics, correlation_errors, level_errors
from doublure.measures.series.statistics import (
    SeriesSetStatistics,
    correlation,
    ks_statistic,
    mean_ramp,
    share_of_frequent,
    share_steeper,
    sorted_runs,
    wasserstein_by_step,
)
from doublure.schema.series import SeriesSchema

PLACES: Mapping[str, str] = {"value": "value", "baseline": "baseline", "real": "test"}
"""Figure of a score -> the set it is computed from."""

_MEANT = {
    "profile": "Correlation of the mean at each step with the real mean, mean over channels.",
    "profile_by_attribute": "The same within each value of each attribute, mean over values.",
    "apart": "Wasserstein distance to the real values at each step, divided by the mean distance of two values drawn "
    "from both sets; mean over steps.",
    "autocorrelation": "Mean absolute error of the autocorrelation over lags up to half a series.",
    "spectrum": "Total variation of the power spectrum: the share of variance at other frequencies.",
    "values": "Kolmogorov–Smirnov statistic: the largest difference of the two distribution functions.",
    "level": "The same for the mean of each series.",
    "peaks": "The same for the highest value of each series.",
    "peak_step": "The same for the step of the highest value.",
    "ramps": "Kolmogorov–Smirnov statistic of the sizes of changes from a step to the next.",
    "mean_ramp": "Their mean size, as a share of the real one.",
    "steepest": "The Kolmogorov–Smirnov statistic of the largest of them in each series.",
    "steeper": "The share of series with a larger such change than any real one; mean over channels.",
    "runs": "The same for the number of runs of each series above the value that a tenth of real values exceed.",
    "longest": "The same for the longest of these runs.",
    "frequent": "The share of steps at the most frequent real value, such as zero, mean over channels.",
    "largest": "The largest value of all series, as a place between the channel's bounds, mean over channels.",
    "level_by_attribute": "The largest error of a channel's mean within an attribute's value, in standard deviations, "
    "beyond chance.",
    "together": "Mean absolute error of the correlations of two channels' values at the same step.",
    "together_by_attribute": "Mean absolute error of these correlations within an attribute's value, beyond chance, at "
    "the worst value.",
    "missing": "The share of steps without a value.",
    "gap_lengths": "Kolmogorov–Smirnov statistic of the lengths of stretches without a value.",
    "shared_gaps": "Of the steps at which a channel has no value, the share at which another has none either.",
}
_NAMES = {
    "profile": "Profile",
    "profile_by_attribute": "Profile by attribute",
    "apart": "Values by step (Wasserstein)",
    "autocorrelation": "Autocorrelation",
    "spectrum": "Spectrum",
    "values": "Values (KS)",
    "level": "Level (KS)",
    "peaks": "Peak (KS)",
    "peak_step": "Time of the peak (KS)",
    "ramps": "Ramps (KS)",
    "mean_ramp": "Mean ramp",
    "steepest": "Steepest ramp (KS)",
    "steeper": "Steeper than any real",
    "runs": "Runs (KS)",
    "longest": "Longest run (KS)",
    "frequent": "Most frequent value",
    "largest": "Largest value",
    "level_by_attribute": "Level by attribute",
    "together": "Channels together",
    "together_by_attribute": "Channels together by attribute",
    "missing": "Missing",
    "gap_lengths": "Length of gaps (KS)",
    "shared_gaps": "Shared gaps",
}
"""Names of the figures, in their order."""
_GOALS: Mapping[str, Literal["high", "near"]] = {
    **dict.fromkeys(("profile", "profile_by_attribute"), "high"),
    **dict.fromkeys(("mean_ramp", "frequent", "largest", "missing", "shared_gaps"), "near"),
}
_RANGES: Mapping[str, tuple[float, float]] = {
    **dict.fromkeys(("profile", "profile_by_attribute"), (-1.0, 1.0)),
    **dict.fromkeys(("autocorrelation", "together", "together_by_attribute"), (0.0, 2.0)),
    **dict.fromkeys(("mean_ramp", "level_by_attribute"), (0.0, 1e6)),
}

_Compare = Callable[[SeriesSetStatistics, SeriesSetStatistics, str], float | None]


class ChannelFigure(Result):
    """One of the figures that are means over channels, of one channel.

    Attributes:
        key: The score's key.
        channel: The channel.
        value: As in :class:`doublure.measures.scores.Score`.
        baseline: Likewise.
        real: Likewise.
    """

    key: str
    channel: str
    value: float | None
    baseline: float | None
    real: float | None

    def of(self, score: Score) -> Score:
        """Return a score of this channel alone, in the place of the mean over channels."""
        own = {"value": self.value, "baseline": self.baseline, "real": self.real}
        return score.model_copy(update={**own, "interval": None})


def channel_figures(schema: SeriesSchema, statistics: Mapping[str, SeriesSetStatistics]) -> tuple[ChannelFigure, ...]:
    """Return the figures of each channel, one figure after the other.

    Args:
        schema: Channels and attributes.
        statistics: ``value``, ``baseline`` and ``test``, each compared with ``real``.
    """
    comparisons: dict[str, _Compare] = {
        "profile": lambda real, other, name: correlation(real.profiles[name], other.profiles[name]),
        "profile_by_attribute": lambda real, other, name: average(
            [correlation(one, two) for one, two in zip(real.by_value[name], other.by_value[name], strict=True)]
        ),
        "apart": lambda real, other, name: average(
            wasserstein_by_step(real.series.channel(name), other.series.channel(name)).tolist()
        ),
        "autocorrelation": lambda real, other, name: _gap(real.autocorrelations[name], other.autocorrelations[name]),
        "spectrum": lambda real, other, name: float(np.abs(real.spectra[name] - other.spectra[name]).sum() / 2),
        "values": lambda real, other, name: ks_statistic(real.values[name], other.values[name]),
        "level": lambda real, other, name: ks_statistic(real.levels[name], other.levels[name]),
        "peaks": lambda real, other, name: ks_statistic(real.peaks[name], other.peaks[name]),
        "peak_step": lambda real, other, name: ks_statistic(real.peak_steps[name], other.peak_steps[name]),
        "ramps": lambda real, other, name: ks_statistic(real.changes[name], other.changes[name]),
        "mean_ramp": mean_ramp,
        "steepest": lambda real, other, name: ks_statistic(real.steepest[name], other.steepest[name]),
        "steeper": share_steeper,
        "runs": lambda real, other, name: ks_statistic(*(sorted_runs(real, own, name)[0] for own in (real, other))),
        "longest": lambda real, other, name: ks_statistic(*(sorted_runs(real, own, name)[1] for own in (real, other))),
        "frequent": share_of_frequent,
        "largest": lambda _, other, name: _place(other, schema, name),
        "gap_lengths": lambda real, other, name: ks_statistic(real.gaps[name], other.gaps[name]),
    }
    if not schema.attributes:
        del comparisons["profile_by_attribute"]
    if not _gappy(schema):
        del comparisons["gap_lengths"]
    return tuple(
        ChannelFigure(
            key=key,
            channel=name,
            **{role: compare(statistics["real"], statistics[place], name) for role, place in PLACES.items()},
        )
        for key, compare in comparisons.items()
        for name in schema.channels
    )


def distances(
    schema: SeriesSchema, statistics: Mapping[str, SeriesSetStatistics], channels: Sequence[ChannelFigure]
) -> tuple[Score, ...]:
    """Return the distances: means over channels, then those between channels and within attributes' values.

    Args:
        schema: Channels and attributes.
        statistics: ``value``, ``baseline`` and ``test``, each compared with ``real``.
        channels: Each channel's figures.
    """
    own: dict[str, list[ChannelFigure]] = {}
    for each in channels:
        own.setdefault(each.key, []).append(each)
    found = {
        key: {role: average([getattr(each, role) for each in figures]) for role in PLACES}
        for key, figures in own.items()
    }
    found |= {
        key: {role: compare(statistics["real"].groups, statistics[place].groups) for role, place in PLACES.items()}
        for key, compare in _BETWEEN.items()
    }
    if len(schema.channels) < 2:
        del found["together"], found["together_by_attribute"]
    if not schema.attributes:
        found = {key: figures for key, figures in found.items() if not key.endswith("_by_attribute")}
    gappy = _gappy(schema)
    if gappy:
        found["missing"] = {role: statistics[place].missing for role, place in PLACES.items()}
    if len(gappy) > 1:
        found["shared_gaps"] = {role: statistics[place].shared_gaps for role, place in PLACES.items()}
    return tuple(
        make_score(key, _NAMES[key], _GOALS.get(key, "low"), _RANGES.get(key, (0.0, 1.0)), found[key], _MEANT[key])
        for key in _NAMES
        if key in found
    )


def _gappy(schema: SeriesSchema) -> list[str]:
    return [name for name in schema.channels if schema.may_be_missing(name)]


def _largest(errors: Floats) -> float | None:
    """Return the largest error of a channel within a group."""
    known = np.abs(errors[np.isfinite(errors)])
    return float(known.max()) if known.size else None


def worst_group(errors: Floats) -> Floats:
    """Return each group's mean absolute error over pairs of channels ``(groups,)``, NaN where it is not known."""
    return np.array([math.nan if (mean := average(np.abs(own).tolist())) is None else mean for own in errors])


_BETWEEN: Mapping[str, Callable[[GroupStatistics, GroupStatistics], float | None]] = {
    "level_by_attribute": lambda real, other: _largest(level_errors(real, other)),
    "together": lambda real, other: average(np.abs(other.together - real.together).tolist()),
    "together_by_attribute": lambda real, other: _largest(worst_group(correlation_errors(real, other))),
}


def _place(statistics: SeriesSetStatistics, schema: SeriesSchema, name: str) -> float | None:
    """Return where a channel's largest value is between its bounds; None where it has no value."""
    peaks, ends = statistics.peaks[name], schema.channels[name].ends
    if not len(peaks) or ends is None or ends[0] == ends[1]:
        return None
    return float((peaks[-1] - ends[0]) / (ends[1] - ends[0]))


def average(figures: list[float | None]) -> float | None:
    """Return the mean of the known figures; None where there is none."""
    known = [figure for figure in figures if figure is not None and not np.isnan(figure)]
    return float(np.mean(known)) if known else None


def make_score(
    key: str,
    name: str,
    goal: Literal["low", "high", "near"],
    ends: tuple[float, float],
    figures: Mapping[str, float | None],
    meaning: str,
    interval: tuple[float, float] | None = None,
) -> Score:
    """Return a score from the figures of ``value``, ``baseline`` and ``real``."""
    return Score(key=key, name=name, goal=goal, range=ends, meaning=meaning, interval=interval, **figures)


def _gap(first: Floats, second: Floats) -> float:
    return float(np.abs(first - second).mean()) if len(first) else 0.0
