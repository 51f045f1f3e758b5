"""Distances between synthetic and real series, beside those of independent steps and of other real series."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal

import numpy as np

from doublure.encode.numeric import Floats
from doublure.measures.scores import Score
from doublure.measures.series.statistics import (
    SeriesSetStatistics,
    correlation,
    ks_statistic,
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
    "steepest": "The same for the largest of them in each series.",
    "steeper": "The share of series with a larger such change than any real one; mean over channels.",
    "runs": "The same for the number of runs of each series above the value that a tenth of real values exceed.",
    "longest": "The same for the longest of these runs.",
    "frequent": "The share of steps at the most frequent real value, such as zero, mean over channels.",
    "largest": "The largest value of all series, as a place between the channel's bounds, mean over channels.",
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
    "steepest": "Steepest ramp (KS)",
    "steeper": "Steeper than any real",
    "runs": "Runs (KS)",
    "longest": "Longest run (KS)",
    "frequent": "Most frequent value",
    "largest": "Largest value",
}

_Compare = Callable[[SeriesSetStatistics, SeriesSetStatistics, str], float | None]


def distances(schema: SeriesSchema, statistics: Mapping[str, SeriesSetStatistics]) -> tuple[Score, ...]:
    """Return the distances, mean over channels.

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
        "steepest": lambda real, other, name: ks_statistic(real.steepest[name], other.steepest[name]),
        "steeper": share_steeper,
        "runs": lambda real, other, name: ks_statistic(*(sorted_runs(real, own, name)[0] for own in (real, other))),
        "longest": lambda real, other, name: ks_statistic(*(sorted_runs(real, own, name)[1] for own in (real, other))),
    }
    if not schema.attributes:
        del comparisons["profile_by_attribute"]
    scores = []
    for key, compare in comparisons.items():
        figures = {
            role: average([compare(statistics["real"], statistics[place], name) for name in schema.channels])
            for role, place in PLACES.items()
        }
        high = key.startswith("profile")
        ends = (-1.0, 1.0) if high else (0.0, 2.0 if key == "autocorrelation" else 1.0)
        scores.append(make_score(key, _NAMES[key], "high" if high else "low", ends, figures, _MEANT[key]))
    frequent = {
        role: average([share_of_frequent(statistics["real"], statistics[place], name) for name in schema.channels])
        for role, place in PLACES.items()
    }
    scores.append(make_score("frequent", _NAMES["frequent"], "near", (0.0, 1.0), frequent, _MEANT["frequent"]))
    largest = {
        role: average([_place(statistics[place], schema, name) for name in schema.channels])
        for role, place in PLACES.items()
    }
    scores.append(make_score("largest", _NAMES["largest"], "near", (0.0, 1.0), largest, _MEANT["largest"]))
    if any(schema.may_be_missing(name) for name in schema.channels):
        missing = {role: statistics[place].missing for role, place in PLACES.items()}
        meaning = "The share of steps without a value."
        scores.append(make_score("missing", "Missing", "near", (0.0, 1.0), missing, meaning))
    return tuple(scores)


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
