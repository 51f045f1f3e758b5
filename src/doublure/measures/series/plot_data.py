"""Plot data of series: profiles, curves, histograms, and synthetic series beside their nearest real one."""

from __future__ import annotations

import calendar
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import numpy as np

from doublure.data.series import Series
from doublure.encode.attribute_groups import key_names
from doublure.encode.numeric import Floats
from doublure.intervals import Result
from doublure.measures.series.figures import worst_group
from doublure.measures.series.groups import channel_pairs, correlation_errors, level_errors
from doublure.measures.series.nearest_neighbours import NearestSeries
from doublure.measures.series.statistics import SeriesSetStatistics, compared_steps, mean_profile, wasserstein_by_step
from doublure.measures.tables.distributions import ColumnFrequencies
from doublure.schema.series import SeriesSchema

MOST_VALUES = 12
"""Most values of an attribute that get profiles of their own."""

PAIRS = 12
"""Number of synthetic series shown beside their nearest real one."""

CurveKind: TypeAlias = Literal["autocorrelation", "spectrum", "apart"]
HistogramKind: TypeAlias = Literal["level", "peak", "peak_step", "steepest"]

_BAND = (0.1, 0.9)
_BINS = 24
_TAIL = 0.005
_MOST_WAVES = 48


class ChannelProfile(Result):
    """A channel's course, real and synthetic.

    Attributes:
        channel: The channel.
        steps: The steps of the figures; not all where a series is long.
        real: The real series' mean at each step.
        real_band: The two values around the middle four fifths of the real series.
        synthetic: The synthetic series' mean.
        synthetic_band: As ``real_band``.
    """

    channel: str
    steps: tuple[int, ...]
    real: tuple[float, ...]
    real_band: tuple[tuple[float, float], ...]
    synthetic: tuple[float, ...]
    synthetic_band: tuple[tuple[float, float], ...]


class ValueProfile(Result):
    """The mean profile of the series that have one value of one attribute.

    Attributes:
        channel: The channel.
        attribute: The attribute.
        value: Its value.
        words: The value for people: a day of the week or a month by its name.
        steps: As in :class:`ChannelProfile`.
        real: The real series' mean, null where there is none.
        synthetic: The synthetic series' mean.
    """

    channel: str
    attribute: str
    value: str
    words: str
    steps: tuple[int, ...]
    real: tuple[float | None, ...]
    synthetic: tuple[float | None, ...]


class ChannelCurve(Result):
    """A figure of a channel along lags, frequencies or steps.

    Attributes:
        channel: The channel.
        kind: ``autocorrelation`` by lag; ``spectrum``, the share of the variance by waves per series; ``apart``, the
            distance of values by step, where ``real`` is that of other real series.
        at: Lags, waves or steps.
        real: The real series' figures.
        synthetic: The synthetic series' figures.
        baseline: The figures of independent steps.
    """

    channel: str
    kind: CurveKind
    at: tuple[int, ...]
    real: tuple[float | None, ...]
    synthetic: tuple[float | None, ...]
    baseline: tuple[float | None, ...]


class GroupFigures(Result):
    """Level and correlation of channels within one value of an attribute, where each is furthest off.

    Attributes:
        attribute: The attribute.
        value: Its value.
        words: The value for people.
        series: Number of real series with it.
        channel: The channel whose level is furthest off, beyond chance; null where none is known.
        levels: Its mean, real and synthetic.
        level_error: The error of that beyond chance, in standard deviations.
        pair: The two channels whose correlation is furthest off; null where there are none.
        correlations: Theirs, real and synthetic.
        correlation_error: Mean absolute error over pairs, beyond chance.
    """

    attribute: str
    value: str
    words: str
    series: int
    channel: str | None = None
    levels: tuple[float, float] | None = None
    level_error: float | None = None
    pair: tuple[str, str] | None = None
    correlations: tuple[float, float] | None = None
    correlation_error: float | None = None


class SeriesPair(Result):
    """A synthetic series and its nearest real one, in the first channel. Holds a real series.

    Attributes:
        channel: The channel.
        distance: Their distance over all channels.
        steps: As in :class:`ChannelProfile`.
        synthetic: The synthetic series.
        real: The real one. Private.
    """

    channel: str
    distance: float
    steps: tuple[int, ...]
    synthetic: tuple[float | None, ...]
    real: tuple[float | None, ...]


class ChannelHistogram(Result):
    """The distribution of a figure of each series.

    Attributes:
        channel: The channel.
        kind: ``level``, the mean of each series; ``peak``, its highest value; ``peak_step``, the step of the peak;
            ``steepest``, its largest change from a step to the next.
        shares: Shares of the real and the synthetic series by bin.
    """

    channel: str
    kind: HistogramKind
    shares: ColumnFrequencies


def profiles(schema: SeriesSchema, real: Series, synthetic: Series) -> tuple[ChannelProfile, ...]:
    """Return each channel's mean and spread at each step."""
    found = []
    for name in schema.channels:
        steps = compared_steps(real.length)
        drawn: dict[str, Any] = {}
        for role, series in (("real", real), ("synthetic", synthetic)):
            values = series.channel(name)[:, steps]
            known = np.where(np.isnan(values), mean_profile(values), values)
            ends = np.nan_to_num(np.quantile(known, _BAND, axis=0)) if len(known) else np.zeros((2, len(steps)))
            drawn |= {role: tuple(np.nan_to_num(mean_profile(values)).tolist())}
            drawn |= {f"{role}_band": tuple((float(low), float(high)) for low, high in ends.T)}
        found.append(ChannelProfile(channel=name, steps=tuple(steps.tolist()), **drawn))
    return tuple(found)


def value_profiles(schema: SeriesSchema, statistics: Mapping[str, SeriesSetStatistics]) -> tuple[ValueProfile, ...]:
    """Return the mean profile for each value of each attribute that has few."""
    found = []
    for name in schema.channels:
        rows = iter(zip(statistics["real"].by_value[name], statistics["value"].by_value[name], strict=True))
        for attribute, column in schema.attributes.items():
            values = [(value, next(rows)) for value in key_names(column)]
            if len(values) > MOST_VALUES:
                continue
            for value, (real, synthetic) in values:
                steps = compared_steps(len(real))
                own = {"real": _known(real[steps]), "synthetic": _known(synthetic[steps])}
                words = _in_words(value, column.from_time)
                place = {"channel": name, "attribute": attribute, "value": value, "words": words}
                found.append(ValueProfile(steps=tuple(steps.tolist()), **place, **own))
    return tuple(found)


def group_figures(schema: SeriesSchema, statistics: Mapping[str, SeriesSetStatistics]) -> tuple[GroupFigures, ...]:
    """Return the figures of each value of each attribute."""
    real, own = statistics["real"].groups, statistics["value"].groups
    levels, correlations = np.abs(level_errors(real, own)), np.abs(correlation_errors(real, own))
    means, names = worst_group(correlations), list(schema.channels)
    pairs = channel_pairs(len(names))
    found = []
    keys = [(name, value, column) for name, column in schema.attributes.items() for value in key_names(column)]
    for place, (attribute, value, column) in enumerate(keys):
        more: dict[str, Any] = {}
        if np.isfinite(levels[place]).any():
            worst = int(np.nanargmax(levels[place]))
            both = float(real.levels.values[place, worst]), float(own.levels.values[place, worst])
            more |= {"channel": names[worst], "levels": both, "level_error": float(levels[place, worst])}
        if np.isfinite(correlations[place]).any():
            worst = int(np.nanargmax(correlations[place]))
            first, second = pairs[worst]
            both = float(real.correlations.values[place, worst]), float(own.correlations.values[place, worst])
            more |= {"pair": (names[first], names[second]), "correlations": both}
            more |= {"correlation_error": float(means[place])}
        words, series = _in_words(value, column.from_time), int(real.series[place])
        found.append(GroupFigures(attribute=attribute, value=value, words=words, series=series, **more))
    return tuple(found)


def curves(schema: SeriesSchema, statistics: Mapping[str, SeriesSetStatistics]) -> tuple[ChannelCurve, ...]:
    """Return each channel's autocorrelation, spectrum, and distance at each step."""
    found = []
    roles = {"real": "real", "synthetic": "value", "baseline": "baseline"}
    for name in schema.channels:
        autocorrelations = {role: _known(statistics[place].autocorrelations[name]) for role, place in roles.items()}
        found.append(_curve(name, "autocorrelation", range(1, len(autocorrelations["real"]) + 1), autocorrelations))
        spectra = {role: _known(statistics[place].spectra[name][:_MOST_WAVES]) for role, place in roles.items()}
        found.append(_curve(name, "spectrum", range(1, len(spectra["real"]) + 1), spectra))
        real = statistics["real"].series.channel(name)
        compared = roles | {"real": "test"}
        by_step = {
            role: _known(wasserstein_by_step(real, statistics[place].series.channel(name)))
            for role, place in compared.items()
        }
        found.append(_curve(name, "apart", compared_steps(real.shape[1]).tolist(), by_step))
    return tuple(found)


def histograms(schema: SeriesSchema, statistics: Mapping[str, SeriesSetStatistics]) -> tuple[ChannelHistogram, ...]:
    """Return the distributions of level, peak, step of the peak and largest change of each channel's series."""
    real, made = statistics["real"], statistics["value"]
    length = real.series.length
    found = []
    for name in schema.channels:
        samples: dict[HistogramKind, tuple[Floats, Floats]] = {
            "level": (real.levels[name], made.levels[name]),
            "peak": (real.peaks[name], made.peaks[name]),
            "peak_step": (real.peak_steps[name], made.peak_steps[name]),
            "steepest": (real.steepest[name], made.steepest[name]),
        }
        for kind, (one, other) in samples.items():
            edges = np.linspace(0, length, min(length, _BINS) + 1) if kind == "peak_step" else _edges(one, other)
            if edges is not None:
                shares = _binned(f"{name}: {kind}", one, other, edges)
                found.append(ChannelHistogram(channel=name, kind=kind, shares=shares))
    return tuple(found)


def pairs(real: Series, synthetic: Series, nearest: NearestSeries | None) -> tuple[SeriesPair, ...]:
    """Return the synthetic series nearest to a real one, and the first others that were queried."""
    if nearest is None:
        return ()
    first = int(nearest.distances.argmin())
    chosen = [first, *(place for place in range(len(nearest.rows)) if place != first)][:PAIRS]
    channel = real.channels[0]
    steps = compared_steps(real.length)
    return tuple(
        SeriesPair(
            channel=channel,
            distance=float(nearest.distances[place]),
            steps=tuple(steps.tolist()),
            synthetic=_known(synthetic.channel(channel)[nearest.rows[place], steps]),
            real=_known(real.channel(channel)[nearest.found[place], steps]),
        )
        for place in chosen
    )


def _in_words(value: str, from_time: str | None) -> str:
    """Return a day of the week or a month by its name, and any other value unchanged."""
    if not value.isdecimal():
        return value
    if from_time == "weekday":
        return calendar.day_name[int(value)]
    return calendar.month_name[int(value)] if from_time == "month" else value


def _curve(channel: str, kind: CurveKind, at: Any, figures: Mapping[str, tuple[float | None, ...]]) -> ChannelCurve:
    return ChannelCurve(channel=channel, kind=kind, at=tuple(at), **figures)


def _edges(one: Floats, other: Floats) -> Floats | None:
    """Return equal bins that hold nearly all real and synthetic values; None where all values are equal."""
    if not len(one):
        return None
    ends = [np.quantile(each, (_TAIL, 1 - _TAIL)) for each in (one, other) if len(each)]
    low, high = min(end[0] for end in ends), max(end[1] for end in ends)
    return np.linspace(low, high, _BINS + 1) if high > low else None


def _binned(name: str, one: Floats, other: Floats, edges: Floats) -> ColumnFrequencies:
    """Return shares by bin; values outside count in the outermost bins."""
    shares = [np.histogram(np.clip(each, edges[0], edges[-1]), edges)[0] / max(len(each), 1) for each in (one, other)]
    return ColumnFrequencies(
        column=name,
        kind="real",
        edges=tuple(edges.tolist()),
        real=tuple(shares[0].tolist()),
        synthetic=tuple(shares[1].tolist()),
    )


def _known(figures: Floats) -> tuple[float | None, ...]:
    return tuple(float(figure) if np.isfinite(figure) else None for figure in figures)
