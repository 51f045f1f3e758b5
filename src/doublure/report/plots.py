"""Drawings on the pages of evaluations and audits.

Real and synthetic differ by shape as well as by colour: real records fill an area or draw a solid line, synthetic ones
are diamonds, an outline or a dashed line, and the baseline is dotted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap

from doublure.attack.roc import RocCurve, ceiling
from doublure.measures.series.plot_data import ChannelCurve, ChannelProfile, SeriesPair, ValueProfile
from doublure.measures.tables.distributions import ColumnFrequencies, NumberDensity
from doublure.measures.tables.quantiles import QuantileShares
from doublure.report.drawing import BASELINE, FAINT, INK, REAL, RULE, SYNTHETIC, draw
from doublure.report.page import show_name
from doublure.schema.columns import type_named

Drawable: TypeAlias = ColumnFrequencies | NumberDensity | ChannelProfile | ChannelCurve

_WHAT = {"autocorrelation": "Autocorrelation", "spectrum": "Spectrum", "apart": "Distance by step"}

_ALONG = {"autocorrelation": ("lag, steps", "correlation"), "spectrum": ("cycles a series", "share of variance")}
_DASHES: Mapping[str, Any] = {REAL: "solid", SYNTHETIC: (0, (4, 1.6)), BASELINE: (0, (1, 1.6))}
_AREA = 0.3
_NEAR = 0.13

_STRENGTH = LinearSegmentedColormap.from_list("strength", ["#f4f5f7", "#a9b3c1", "#4a586d", "#1b2431"])
_GAP = LinearSegmentedColormap.from_list("gap", ["#1f5fa8", "#9fc0e2", "#f4f5f7", "#f0b493", "#c4410f"])


def frequencies(entry: ColumnFrequencies) -> Markup:
    """Draw the shares of a column's values or bins, real and synthetic."""
    alt = f"Frequencies of {show_name(entry.column)}: real rows and synthetic rows"
    if entry.labels is None:
        return draw(3.3, 1.95, f"bins {entry.column}", alt, lambda axes: _histogram(axes, entry))
    height = 0.6 + 0.2 * (len(entry.labels) + (entry.left_out is not None))
    return draw(3.3, height, f"values {entry.column}", alt, lambda axes: _bars(axes, entry))


def quantiles(entry: QuantileShares) -> Markup:
    """Draw the shares of a number's quantile bins, each equally wide, real and synthetic."""
    alt = f"Quantile bins of {show_name(entry.column)}: real rows and synthetic rows"
    return draw(3.3, 1.6, f"quantiles {entry.column}", alt, lambda axes: _quantile_bins(axes, entry))


def density(entry: NumberDensity) -> Markup:
    """Draw a number's smoothed densities, real and synthetic."""
    alt = f"Density of {show_name(entry.column)}: real rows and synthetic rows"
    return draw(3.3, 1.95, f"density {entry.column}", alt, lambda axes: _curves(axes, entry))


def profile(entry: ChannelProfile, clock: Sequence[str] | None = None) -> Markup:
    """Draw a channel's mean at each step, real and synthetic, with the band of the middle four fifths of series.

    Args:
        entry: The profile.
        clock: The time of day at each step, where a series is one day.
    """
    alt = f"Profile of {show_name(entry.channel)}: real series and synthetic series"
    return draw(4.2, 2.1, f"profile {entry.channel}", alt, lambda axes: _steps(axes, entry, clock))


def value_profile(entry: ValueProfile, ends: tuple[float, float], clock: Sequence[str] | None = None) -> Markup:
    """Draw a channel's mean for one value of an attribute; neighbours share the ``ends`` of the scale."""
    key = f"{show_name(entry.channel)} for {show_name(entry.attribute)} {show_name(entry.value)}"
    alt = f"Mean profile of {key}: real series and synthetic series"
    return draw(2.5, 1.5, f"value {key}", alt, lambda axes: _lines(axes, entry.steps, _both(entry), ends, clock))


def curve(entry: ChannelCurve, clock: Sequence[str] | None = None) -> Markup:
    """Draw a curve along lags, frequencies or steps: real, synthetic, and independent steps."""
    own = clock if entry.kind == "apart" else None
    what = _WHAT[entry.kind]
    alt = f"{what} of {show_name(entry.channel)}: real series, synthetic series and independent steps"
    figures = {BASELINE: entry.baseline} | _both(entry)
    known = [figure for figure in (*entry.baseline, *entry.real, *entry.synthetic) if figure is not None]
    ends = scale_with_zero(known)
    titles = _ALONG.get(entry.kind, (_steps_title(own), "distance"))
    return draw(
        3.3, 1.95, f"{what} {entry.channel}", alt, lambda axes: _lines(axes, entry.at, figures, ends, own, titles)
    )


def pair(entry: SeriesPair, number: int, clock: Sequence[str] | None = None) -> Markup:
    """Draw a synthetic series over its nearest real one. Private."""
    alt = f"Synthetic series {number} and the nearest real one; private"
    known = [figure for figure in (*entry.real, *entry.synthetic) if figure is not None]
    ends = scale_with_zero(known)
    return draw(2.5, 1.5, f"pair {number}", alt, lambda axes: _lines(axes, entry.steps, _both(entry), ends, clock))


def scale_with_zero(figures: Sequence[float]) -> tuple[float, float]:
    """Return the ends of a scale that holds zero and all figures."""
    low, high = min([0.0, *figures]), max([0.0, *figures])
    return low * 1.05, high * 1.05 if high > low else low + 1.0


def roc(entry: RocCurve, epsilon: float | None, delta: float | None, title: str) -> Markup:
    """Draw an attacker's ROC and its band on logarithmic axes, with guessing and with the limit of a claim."""
    alt = f"ROC of an attack, logarithmic: {title}"
    return draw(3.0, 2.8, f"roc {title}", alt, lambda axes: _rates(axes, entry, epsilon, delta or 0.0))


def heat_map(columns: Sequence[str], matrix: Sequence[Sequence[float]], title: str, *, signed: bool = False) -> Markup:
    """Draw a square matrix; ``signed`` ones from -0.5 to 0.5, others from 0 to 1."""
    side = 3.9
    return draw(
        side, side, f"heat {title}", f"{title}, a heat map", lambda axes: _heat(axes, columns, matrix, signed=signed)
    )


def on_axes(axes: Axes, entry: Drawable, clock: Sequence[str] | None = None) -> None:
    """Draw an entry as a page shows it, on the axes of a caller's figure, made under :data:`.drawing.STYLE`.

    Args:
        axes: The axes.
        entry: The entry.
        clock: The time of day at each step of a profile, where a series is one day.
    """
    if isinstance(entry, NumberDensity):
        _curves(axes, entry)
    elif isinstance(entry, ChannelProfile):
        _steps(axes, entry, clock)
    elif isinstance(entry, ChannelCurve):
        figures = {BASELINE: entry.baseline} | _both(entry)
        known = [value for values in figures.values() for value in values if value is not None]
        _lines(axes, entry.at, figures, scale_with_zero(known), clock)
    elif entry.labels is None:
        _histogram(axes, entry)
    else:
        _bars(axes, entry)


# -- drawing ---------------------------------------------------------------------------------------------------------


def _bars(axes: Axes, entry: ColumnFrequencies) -> None:
    labels = [show_name(label, 20) for label in entry.labels or ()]
    real, synthetic = list(entry.real), list(entry.synthetic)
    if entry.left_out is not None:
        labels.append(f"{entry.left_out[0]:,} rarer")
        real.append(entry.left_out[1])
        synthetic.append(entry.left_out[2])
    places = np.arange(len(labels))
    axes.barh(places, real, height=0.7, color=REAL, alpha=_AREA, linewidth=0)
    axes.barh(places, real, height=0.7, fill=False, edgecolor=REAL, linewidth=0.9)
    axes.plot(synthetic, places, color=SYNTHETIC, linestyle="none", marker="D", markersize=4.2, clip_on=False)
    axes.set_yticks(places, labels, color=INK)
    axes.set_ylim(len(labels) - 0.4, -0.6)
    _percent_axis(axes.xaxis, max([*real, *synthetic, 1e-9]), axes.set_xlim)
    axes.set_xlabel("share")
    axes.spines["left"].set_visible(True)
    axes.spines["bottom"].set_visible(False)


def _histogram(axes: Axes, entry: ColumnFrequencies) -> None:
    edges, real, synthetic = (np.asarray(values) for values in (entry.edges, entry.real, entry.synthetic))
    filled = np.flatnonzero((real > 0) | (synthetic > 0))
    first, last = (filled[0], filled[-1] + 1) if len(filled) else (0, len(real))
    widths = np.diff(edges)
    kind = "integer" if (edges == np.round(edges)).all() and entry.kind == "real" else entry.kind
    if widths.max() > 20 * widths.min():
        # Bins of equal ratio, for a number over orders of magnitude: each is drawn equally wide.
        places, scale = np.arange(last - first + 1), np.ones(len(widths))
        inside = edges[first : last + 1]
        values = _with_ends(
            _decades(inside[0], inside[-1]), inside[0], inside[-1], places=lambda v: np.interp(v, inside, places)
        )
        at = np.interp(values, inside, places)
    else:
        # A bin of three whole numbers is not higher than its neighbours of two: areas are compared.
        places, scale = edges[first : last + 1], widths.mean() / widths
        values = at = _with_ends(_whole_ticks(places[0], places[-1], kind), places[0], places[-1])
    heights = [(shares * scale)[first:last] for shares in (real, synthetic)]
    _areas(axes, heights[0], heights[1], places)
    axes.set_xticks(at, _ticks(values, kind))
    axes.set_xlim(places[0], places[-1])
    _percent_axis(axes.yaxis, max(*(height.max() for height in heights), 1e-9), axes.set_ylim)
    axes.set_xlabel(show_name(entry.column, 32))
    axes.set_ylabel("share" if np.ptp(scale) < 1e-6 else "share a mean bin")


def _areas(axes: Axes, real: Any, synthetic: Any, places: Any) -> None:
    axes.stairs(real, places, fill=True, color=REAL, alpha=_AREA, linewidth=0)
    axes.stairs(real, places, color=REAL, linewidth=0.9)
    axes.stairs(synthetic, places, color=SYNTHETIC, linewidth=1.8, baseline=None)


def _quantile_bins(axes: Axes, entry: QuantileShares) -> None:
    places = np.arange(len(entry.bins) + 1)
    _areas(axes, np.asarray(entry.real), np.asarray(entry.synthetic), places)
    axes.set_xlim(0, places[-1])
    most = 3 if _is_named(entry.kind) else 5
    at = np.unique(np.linspace(0, len(entry.bins) - 1, min(most, len(entry.bins))).round().astype(int))
    bins = [entry.bins[int(place)] for place in at]
    told = [next((edge for edge in edges if edge is not None), 0.0) for edges in bins]
    names = _ticks(told, entry.kind)
    labels = [_bin_label(first, last, name) for (first, last), name in zip(bins, names, strict=True)]
    axes.set_xticks(at + 0.5, labels)
    _percent_axis(axes.yaxis, max(*entry.real, *entry.synthetic, 1e-9), axes.set_ylim)
    axes.set_xlabel("bins that real rows fill evenly")
    axes.set_ylabel("share")


def _bin_label(first: float | None, last: float | None, name: str) -> str:
    """Return a bin's only value, or its start; for the first bin, its end."""
    if first is None:
        return "" if last is None else f"< {name}"
    return f"= {name}" if first == last else f"{name}–"


def _curves(axes: Axes, entry: NumberDensity) -> None:
    points = np.log10(entry.points) if entry.scale == "log" else np.asarray(entry.points)
    axes.fill_between(points, entry.real, color=REAL, alpha=_AREA, linewidth=0)
    axes.plot(points, entry.real, color=REAL, linewidth=1.2)
    axes.plot(points, entry.synthetic, color=SYNTHETIC, linewidth=1.8, linestyle=_DASHES[SYNTHETIC])
    find = _log_ticks if entry.scale == "log" else partial(_whole_ticks, kind=entry.kind)
    ticks = _with_ends(find(float(points[0]), float(points[-1])), float(points[0]), float(points[-1]))
    values = 10.0**ticks if entry.scale == "log" else ticks
    axes.set_xticks(ticks, _ticks(values, entry.kind))
    axes.set_xlim(points[0], points[-1])
    highest = max(max(entry.real), max(entry.synthetic), 1e-12)
    axes.set_ylim(0, 1.08 * highest)
    axes.set_yticks([0.0, highest], ["0", _tick(float(f"{highest:.2g}"), "real")])
    axes.set_xlabel(show_name(entry.column, 32))
    axes.set_ylabel("density")


def _steps(axes: Axes, entry: ChannelProfile, clock: Sequence[str] | None) -> None:
    low, high = zip(*entry.real_band, strict=True)
    axes.fill_between(entry.steps, low, high, color=REAL, alpha=0.2, linewidth=0)
    for edge in zip(*entry.synthetic_band, strict=True):
        axes.plot(entry.steps, edge, color=SYNTHETIC, linewidth=0.8, linestyle=_DASHES[SYNTHETIC])
    axes.plot(entry.steps, entry.real, color=REAL, linewidth=1.4)
    axes.plot(entry.steps, entry.synthetic, color=SYNTHETIC, linewidth=1.8, linestyle=_DASHES[SYNTHETIC])
    _along_steps(axes, entry.steps, clock)
    axes.set_xlabel(_steps_title(clock))
    axes.set_ylabel(show_name(entry.channel, 24))
    ends = axes.get_ylim()
    axes.set_yticks(at := _whole_ticks(*ends, "real"), [_tick(float(value), "real") for value in at])
    axes.grid(visible=True, axis="y", color=RULE, linewidth=0.6)


def _both(entry: ChannelCurve | SeriesPair | ValueProfile) -> dict[str, Sequence[float | None]]:
    return {REAL: entry.real, SYNTHETIC: entry.synthetic}


def _lines(
    axes: Axes,
    at: Sequence[int],
    figures: Mapping[str, Sequence[float | None]],
    ends: tuple[float, float],
    clock: Sequence[str] | None,
    titles: tuple[str, str] | None = None,
) -> None:
    """Draw lines by role, with gaps at unknown values."""
    for colour, values in figures.items():
        line = [np.nan if value is None else value for value in values]
        width = 1.8 if colour == SYNTHETIC else 1.3
        axes.plot(at, line, color=colour, linewidth=width, linestyle=_DASHES[colour])
    _along_steps(axes, at, clock)
    along, up = titles or (_steps_title(clock), "value")
    axes.set_xlabel(along)
    axes.set_ylabel(up)
    axes.set_ylim(*ends)
    axes.set_yticks(places := _whole_ticks(*ends, "real"), [_tick(float(value), "real") for value in places])
    axes.grid(visible=True, axis="y", color=RULE, linewidth=0.6)


def _steps_title(clock: Sequence[str] | None) -> str:
    return "step" if clock is None else "time of day"


def _along_steps(axes: Axes, at: Sequence[int], clock: Sequence[str] | None) -> None:
    """Label steps in whole numbers, both ends included; with a time of day, every six hours."""
    if clock is not None:
        hours = [step for step, time in enumerate(clock) if time[:5] in ("00:00", "06:00", "12:00", "18:00")]
        ticks = _with_ends(np.asarray(hours), at[0], at[-1])
        axes.set_xticks(ticks, [clock[round(step)][:5] for step in ticks])
    else:
        ticks = _with_ends(_whole_ticks(at[0], at[-1], "integer"), at[0], at[-1])
        axes.set_xticks(ticks, [_tick(float(step), "integer") for step in ticks])
    if len(at) > 1:
        axes.set_xlim(at[0], at[-1])


def _rates(axes: Axes, entry: RocCurve, epsilon: float | None, delta: float) -> None:
    least = 10 ** np.floor(np.log10(min(entry.begins, 0.1)))
    shares = np.geomspace(least, 1, 120)
    axes.plot(shares, shares, color=REAL, linewidth=1.2, linestyle=_DASHES[BASELINE])
    if epsilon is not None:
        allowed = [ceiling(float(share), epsilon, delta) for share in shares]
        axes.plot(shares, allowed, color=INK, linewidth=1.0, linestyle=(0, (4, 3)))
    if entry.band is None:
        axes.text(0.5, 0.5, "too few others", transform=axes.transAxes, ha="center", color=FAINT)
    else:
        # Rates further left rest on a handful of non-members: chance.
        shares = np.geomspace(entry.begins, 1, 120)
        low, high = entry.band.at(shares)
        axes.fill_between(shares, np.maximum(low, least), high, step="post", color=SYNTHETIC, alpha=0.16, linewidth=0)
        alarms, hits = (np.asarray(values) for values in zip(*entry.curve, strict=True))
        seen = alarms >= entry.begins
        axes.plot(alarms[seen], np.maximum(hits[seen], least), color=SYNTHETIC, linewidth=1.6)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(least, 1)
    axes.set_ylim(least, 1)
    ticks = [10.0**power for power in range(round(np.log10(least)), 1)]
    names = [f"{100 * tick:g} %" for tick in ticks]
    axes.set_xticks(ticks, names)
    axes.set_yticks(ticks, ["", *names[1:]])  # the corner's label stands below it
    axes.minorticks_off()
    axes.set_xlabel("False positive rate")
    axes.set_ylabel("True positive rate")
    axes.grid(visible=True, color=RULE, linewidth=0.6)
    axes.set_axisbelow(True)


def _log_ticks(first: float, last: float) -> np.ndarray[Any, Any]:
    """Return decades, or steps of 1-3 or 1-2-5 where there are few, as logarithms."""
    inside: list[float] = []
    for digits in ((1,), (1, 3), (1, 2, 5)):
        ticks = [np.log10(digit) + decade for decade in range(int(first) - 1, int(last) + 2) for digit in digits]
        inside = [tick for tick in ticks if first <= tick <= last]
        if len(inside) >= 3:
            break
    return np.asarray(inside)


def _decades(first: float, last: float) -> np.ndarray[Any, Any]:
    """Return the powers of ten between two numbers, of either sign, and zero; every other one where there are many."""
    powers = [10.0**power for power in range(int(np.floor(np.log10(max(abs(first), abs(last), 1.0)))) + 1)]
    kept = powers[:: max(1, -(-len(powers) // 4))]
    ticks = [*(-power for power in reversed(kept)), 0.0, *kept]
    return np.asarray([tick for tick in ticks if first <= tick <= last])


def _with_ends(
    ticks: np.ndarray[Any, Any], first: float, last: float, places: Callable[[Any], Any] = np.asarray
) -> np.ndarray[Any, Any]:
    """Return ticks with both ends of an axis, without those too close to an end.

    Args:
        ticks: Between the ends.
        first: The axis's start.
        last: The axis's end.
        places: Value -> its position on the axis; the value itself if not given.
    """
    low, high = float(places(first)), float(places(last))
    room = _NEAR * (high - low)
    inside = [tick for tick in ticks if low + room <= float(places(tick)) <= high - room]
    return np.asarray([first, *inside, last] if high > low else [first])


def _whole_ticks(first: float, last: float, kind: str) -> np.ndarray[Any, Any]:
    """Return a few round positions between two numbers; of days and moments, whose labels are long, the middle."""
    from matplotlib.ticker import MaxNLocator

    if _is_named(kind):
        return np.asarray([(first + last) / 2])
    ticks = MaxNLocator(5, integer=kind == "integer").tick_values(first, last)
    return np.asarray([tick for tick in ticks if first <= tick <= last])


def _heat(axes: Axes, columns: Sequence[str], matrix: Sequence[Sequence[float]], *, signed: bool) -> None:
    low, high, colours = (-0.5, 0.5, _GAP) if signed else (0.0, 1.0, _STRENGTH)
    axes.imshow(np.asarray(matrix), cmap=colours, vmin=low, vmax=high, interpolation="none", aspect="equal")
    size = float(np.clip(120 / max(1, len(columns)), 3, 8))
    labels = [show_name(column, 16) for column in columns]
    axes.set_xticks(range(len(columns)), labels, rotation=90, fontsize=size, color=INK)
    axes.set_yticks(range(len(columns)), labels, fontsize=size, color=INK)
    for spine in axes.spines.values():
        spine.set_visible(False)


def _percent_axis(axis: Any, highest: float, set_limits: Callable[[float, float], object]) -> None:
    steps = (1e-9, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.5, 1.0)
    step = next(step for step in steps if highest / step <= 4)
    ticks = np.arange(0, highest * 1.08 + 1e-12, step)
    digits = 1 if step < 0.01 else 0
    axis.set_ticks(ticks, [f"{100 * tick:.{digits}f} %" for tick in ticks])
    axis.grid(visible=True, color=RULE, linewidth=0.6)
    axis.axes.set_axisbelow(True)
    set_limits(0, highest * 1.08)


def _is_named(kind: str) -> bool:
    """Whether a column type names its numbers, as days and moments have names."""
    return type_named(kind).axis_text(0.0) is not None


def _ticks(values: Iterable[float], kind: str) -> list[str]:
    """Return tick labels."""
    numbers = [float(value) for value in values]
    return type_named(kind).axis_texts(numbers) or [_tick(number, kind) for number in numbers]


def _tick(value: float, kind: str) -> str:
    if value != round(value) or abs(value) >= 1e4:
        value = float(f"{value:.3g}")  # possibly the next power of ten
    size = abs(value)
    for limit, letter in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if size >= limit:
            return f"{value / (limit if letter != 'k' else 1e3):.3g}{letter}".replace("-", "−")
    return f"{value:.4g}".replace("-", "−")
