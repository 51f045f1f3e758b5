"""Drawings for pages: inline SVG that takes its colours and fonts from the page.

They are drawn with matplotlib in stand-in colours, which are then exchanged for the page's CSS variables, so that one
drawing serves light, dark and print. Text stays text. The same figures give the same bytes.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import matplotlib as mpl
import numpy as np
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from doublure.attack.roc import Roc, ceiling
from doublure.measures.series.plot_data import Curve, Pair, Profile, ValueProfile
from doublure.measures.tables.distributions import Density, Frequencies
from doublure.measures.tables.quantiles import QuantileShares
from doublure.report.page import shown

REAL, SYNTHETIC, INK, FAINT, RULE, BASELINE = "#617087", "#dd5522", "#1c2531", "#6a7382", "#d5dae1", "#b9c1cc"
_VARIABLES = {
    REAL: "real",
    SYNTHETIC: "synthetic",
    INK: "ink",
    FAINT: "faint",
    RULE: "rule",
    BASELINE: "baseline",
}
_WHAT = {"autocorrelation": "Autocorrelation", "spectrum": "Spectrum", "apart": "Distance by step"}

_STRENGTH = LinearSegmentedColormap.from_list("strength", ["#f4f5f7", "#a9b3c1", "#4a586d", "#1b2431"])
_GAP = LinearSegmentedColormap.from_list("gap", ["#1f5fa8", "#9fc0e2", "#f4f5f7", "#f0b493", "#c4410f"])

STYLE: dict[str, Any] = {
    "svg.fonttype": "none",
    "font.family": "DejaVu Sans",
    "text.parse_math": False,
    "axes.unicode_minus": True,
    "font.size": 8.5,
    "axes.edgecolor": RULE,
    "axes.linewidth": 0.8,
    "axes.labelcolor": FAINT,
    "text.color": INK,
    "xtick.color": FAINT,
    "ytick.color": FAINT,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "xtick.major.size": 0,
    "ytick.major.size": 0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
}


def frequencies(entry: Frequencies) -> Markup:
    """Draw the shares of a column's values or bins, real and synthetic."""
    alt = f"Frequencies of {shown(entry.column)}: real rows and synthetic rows"
    if entry.labels is None:
        return _draw(3.3, 1.65, f"bins {entry.column}", alt, lambda axes: _histogram(axes, entry))
    height = 0.42 + 0.2 * (len(entry.labels) + (entry.left_out is not None))
    return _draw(3.3, height, f"values {entry.column}", alt, lambda axes: _bars(axes, entry))


def quantiles(entry: QuantileShares) -> Markup:
    """Draw the shares of a number's quantile bins, each equally wide, real and synthetic."""
    alt = f"Quantile bins of {shown(entry.column)}: real rows and synthetic rows"
    return _draw(3.3, 1.35, f"quantiles {entry.column}", alt, lambda axes: _quantile_bins(axes, entry))


def density(entry: Density) -> Markup:
    """Draw a number's smoothed densities, real and synthetic."""
    alt = f"Density of {shown(entry.column)}: real rows and synthetic rows"
    return _draw(3.3, 1.65, f"density {entry.column}", alt, lambda axes: _curves(axes, entry))


def profile(entry: Profile, clock: Sequence[str] | None = None) -> Markup:
    """Draw a channel's mean at each step, real and synthetic, with the band in which four in five series lie.

    Args:
        entry: What is drawn.
        clock: The time of day at each step, where a series is one day.
    """
    alt = f"Profile of {shown(entry.channel)}: real series and synthetic series"
    return _draw(5.0, 2.0, f"profile {entry.channel}", alt, lambda axes: _steps(axes, entry, clock))


def value_profile(entry: ValueProfile, ends: tuple[float, float], clock: Sequence[str] | None = None) -> Markup:
    """Draw a channel's mean for one value of an attribute; ``ends`` of the scale are the same for its neighbours."""
    key = f"{shown(entry.channel)} for {shown(entry.attribute)} {shown(entry.value)}"
    alt = f"Mean profile of {key}: real series and synthetic series"
    return _draw(2.3, 1.2, f"value {key}", alt, lambda axes: _lines(axes, entry.steps, _both(entry), ends, clock))


def curve(entry: Curve, clock: Sequence[str] | None = None) -> Markup:
    """Draw something along lags, frequencies or steps: real, synthetic, and independent steps."""
    own = clock if entry.kind == "apart" else None
    what = _WHAT[entry.kind]
    alt = f"{what} of {shown(entry.channel)}: real series, synthetic series and independent steps"
    figures = {BASELINE: entry.baseline} | _both(entry)
    known = [figure for figure in (*entry.baseline, *entry.real, *entry.synthetic) if figure is not None]
    ends = room(known)
    return _draw(3.3, 1.65, f"{what} {entry.channel}", alt, lambda axes: _lines(axes, entry.at, figures, ends, own))


def pair(entry: Pair, number: int, clock: Sequence[str] | None = None) -> Markup:
    """Draw a synthetic series over the real one that is nearest to it. Private."""
    alt = f"Synthetic series {number} and the nearest real one; private"
    known = [figure for figure in (*entry.real, *entry.synthetic) if figure is not None]
    ends = room(known)
    return _draw(2.3, 1.2, f"pair {number}", alt, lambda axes: _lines(axes, entry.steps, _both(entry), ends, clock))


def room(figures: Sequence[float]) -> tuple[float, float]:
    """Return the ends of a scale that holds zero and all figures."""
    low, high = min([0.0, *figures]), max([0.0, *figures])
    return low * 1.05, high * 1.05 if high > low else low + 1.0


def roc(entry: Roc, epsilon: float | None, delta: float | None, title: str) -> Markup:
    """Draw an attacker's ROC and its band on logarithmic axes, with guessing and with the most that a claim allows."""
    alt = f"ROC of an attack, logarithmic: {title}"
    return _draw(3.0, 2.8, f"roc {title}", alt, lambda axes: _rates(axes, entry, epsilon, delta or 0.0))


def heat_map(columns: Sequence[str], matrix: Sequence[Sequence[float]], title: str, *, signed: bool = False) -> Markup:
    """Draw a square matrix; ``signed`` ones from -0.5 to 0.5, others from 0 to 1."""
    side = 3.9
    return _draw(
        side, side, f"heat {title}", f"{title}, a heat map", lambda axes: _heat(axes, columns, matrix, signed=signed)
    )


def on_axes(axes: Axes, entry: Frequencies | Density | Profile | Curve, clock: Sequence[str] | None = None) -> None:
    """Draw an entry on the axes of a figure of one's own, made under :data:`STYLE`, as a page would show it.

    Args:
        axes: Where.
        entry: What.
        clock: The time of day at each step of a profile, where a series is one day.
    """
    if isinstance(entry, Density):
        _curves(axes, entry)
    elif isinstance(entry, Profile):
        _steps(axes, entry, clock)
    elif isinstance(entry, Curve):
        figures = {BASELINE: entry.baseline} | _both(entry)
        known = [value for values in figures.values() for value in values if value is not None]
        _lines(axes, entry.at, figures, room(known), clock)
    elif entry.labels is None:
        _histogram(axes, entry)
    else:
        _bars(axes, entry)


# -- drawing ---------------------------------------------------------------------------------------------------------


def _bars(axes: Axes, entry: Frequencies) -> None:
    labels = [shown(label, 20) for label in entry.labels or ()]
    real, synthetic = list(entry.real), list(entry.synthetic)
    if entry.left_out is not None:
        labels.append(f"{entry.left_out[0]:,} more")
        real.append(entry.left_out[1])
        synthetic.append(entry.left_out[2])
    places = np.arange(len(labels))
    axes.barh(places, real, height=0.74, color=REAL, alpha=0.38, linewidth=0)
    axes.barh(places, synthetic, height=0.26, color=SYNTHETIC, linewidth=0)
    axes.set_yticks(places, labels, color=INK)
    axes.set_ylim(len(labels) - 0.4, -0.6)
    _percent_axis(axes.xaxis, max([*real, *synthetic, 1e-9]), axes.set_xlim)
    axes.spines["left"].set_visible(True)
    axes.spines["bottom"].set_visible(False)


def _histogram(axes: Axes, entry: Frequencies) -> None:
    edges, real, synthetic = (np.asarray(values) for values in (entry.edges, entry.real, entry.synthetic))
    filled = np.flatnonzero((real > 0) | (synthetic > 0))
    first, last = (filled[0], filled[-1] + 1) if len(filled) else (0, len(real))
    widths = np.diff(edges)
    if widths.max() > 20 * widths.min():
        # Bins of equal ratio, for a number that spans orders of magnitude: each is drawn equally wide.
        places, ticks = np.arange(last - first + 1), np.linspace(0, last - first, 5).round().astype(int)
        at, scale = places[ticks], np.ones(len(widths))
    else:
        # A bin that holds three whole numbers is not higher than its neighbours of two: areas are compared.
        places, scale = edges[first : last + 1], widths.mean() / widths
        at = _whole_ticks(float(places[0]), float(places[-1]), entry.kind)
    heights = [(shares * scale)[first:last] for shares in (real, synthetic)]
    axes.stairs(heights[0], places, fill=True, color=REAL, alpha=0.38, linewidth=0)
    axes.stairs(heights[1], places, color=SYNTHETIC, linewidth=1.5, baseline=None)
    values = edges[first + at] if widths.max() > 20 * widths.min() else at
    axes.set_xticks(at, [_tick(float(value), entry.kind) for value in values])
    axes.set_xlim(places[0], places[-1])
    highest = max(*(height.max() for height in heights), 1e-9)
    if np.ptp(scale) < 1e-6:
        _percent_axis(axes.yaxis, highest, axes.set_ylim)
    else:
        axes.set_ylim(0, highest * 1.08)
        axes.set_yticks([])


def _quantile_bins(axes: Axes, entry: QuantileShares) -> None:
    places = np.arange(len(entry.bins) + 1)
    axes.stairs(np.asarray(entry.real), places, fill=True, color=REAL, alpha=0.38, linewidth=0)
    axes.stairs(np.asarray(entry.synthetic), places, color=SYNTHETIC, linewidth=1.5, baseline=None)
    axes.set_xlim(0, places[-1])
    at = np.unique(np.linspace(0, len(entry.bins) - 1, min(5, len(entry.bins))).round().astype(int))
    axes.set_xticks(at + 0.5, [_bin_label(*entry.bins[place], kind=entry.kind) for place in at])
    _percent_axis(axes.yaxis, max(*entry.real, *entry.synthetic, 1e-9), axes.set_ylim)


def _bin_label(first: float | None, last: float | None, *, kind: str) -> str:
    """Return a bin's own value, where it has one alone, or where it begins."""
    if first is None:
        return "" if last is None else f"< {_tick(last, kind)}"
    return f"= {_tick(first, kind)}" if first == last else f"{_tick(first, kind)}–"


def _curves(axes: Axes, entry: Density) -> None:
    points = np.log10(entry.points) if entry.scale == "log" else np.asarray(entry.points)
    axes.fill_between(points, entry.real, color=REAL, alpha=0.3, linewidth=0)
    axes.plot(points, entry.real, color=REAL, linewidth=1.2)
    axes.plot(points, entry.synthetic, color=SYNTHETIC, linewidth=1.5)
    find = _log_ticks if entry.scale == "log" else partial(_whole_ticks, kind=entry.kind)
    ticks = find(float(points[0]), float(points[-1]))
    values = 10.0**ticks if entry.scale == "log" else ticks
    axes.set_xticks(ticks, [_tick(float(value), entry.kind) for value in values])
    axes.set_xlim(points[0], points[-1])
    axes.set_ylim(0, 1.08 * max(max(entry.real), max(entry.synthetic), 1e-12))
    axes.set_yticks([])


def _steps(axes: Axes, entry: Profile, clock: Sequence[str] | None) -> None:
    for band, colour in ((entry.real_band, REAL), (entry.synthetic_band, SYNTHETIC)):
        low, high = zip(*band, strict=True)
        axes.fill_between(entry.steps, low, high, color=colour, alpha=0.16, linewidth=0)
    axes.plot(entry.steps, entry.real, color=REAL, linewidth=1.4)
    axes.plot(entry.steps, entry.synthetic, color=SYNTHETIC, linewidth=1.6)
    axes.set_xlim(entry.steps[0], entry.steps[-1])
    _by_the_clock(axes, clock)
    ends = axes.get_ylim()
    axes.set_yticks(at := _whole_ticks(*ends, "real"), [_tick(float(value), "real") for value in at])
    axes.grid(visible=True, axis="y", color=RULE, linewidth=0.6)


def _both(entry: Curve | Pair | ValueProfile) -> dict[str, Sequence[float | None]]:
    return {REAL: entry.real, SYNTHETIC: entry.synthetic}


def _lines(
    axes: Axes,
    at: Sequence[int],
    figures: Mapping[str, Sequence[float | None]],
    ends: tuple[float, float],
    clock: Sequence[str] | None,
) -> None:
    """Draw lines by colour; what is not known is left open."""
    for colour, values in figures.items():
        line = [np.nan if value is None else value for value in values]
        axes.plot(at, line, color=colour, linewidth=1.6 if colour == SYNTHETIC else 1.3)
    if len(at) > 1:
        axes.set_xlim(at[0], at[-1])
    _by_the_clock(axes, clock)
    axes.set_ylim(*ends)
    axes.set_yticks(places := _whole_ticks(*ends, "real"), [_tick(float(value), "real") for value in places])
    axes.grid(visible=True, axis="y", color=RULE, linewidth=0.6)


def _by_the_clock(axes: Axes, clock: Sequence[str] | None) -> None:
    """Label steps by the time of day, every six hours, where they have one."""
    if clock is not None:
        at = [step for step, time in enumerate(clock) if time[:5] in ("00:00", "06:00", "12:00", "18:00")]
        axes.set_xticks(at, [clock[step][:5] for step in at])


def _rates(axes: Axes, entry: Roc, epsilon: float | None, delta: float) -> None:
    least = 10 ** np.floor(np.log10(min(entry.begins, 0.1)))
    shares = np.geomspace(least, 1, 120)
    axes.plot(shares, shares, color=REAL, linewidth=0.8, alpha=0.6)
    if epsilon is not None:
        allowed = [ceiling(float(share), epsilon, delta) for share in shares]
        axes.plot(shares, allowed, color=INK, linewidth=1.0, linestyle=(0, (4, 3)))
    if entry.band is None:
        axes.text(0.5, 0.5, "too few others", transform=axes.transAxes, ha="center", color=FAINT)
    else:
        # What stands further left rests on a handful of others: it is chance.
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
    axes.set_yticks(ticks, names)
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


def _whole_ticks(first: float, last: float, kind: str) -> np.ndarray[Any, Any]:
    """Return a few round places between two numbers; evenly spread ones between days and moments."""
    from matplotlib.ticker import MaxNLocator

    if kind in ("date", "datetime"):
        return np.linspace(first, last, 5)[1:-1]
    ticks = MaxNLocator(5).tick_values(first, last)
    return np.asarray([tick for tick in ticks if first <= tick <= last])


def _heat(axes: Axes, columns: Sequence[str], matrix: Sequence[Sequence[float]], *, signed: bool) -> None:
    low, high, colours = (-0.5, 0.5, _GAP) if signed else (0.0, 1.0, _STRENGTH)
    axes.imshow(np.asarray(matrix), cmap=colours, vmin=low, vmax=high, interpolation="none", aspect="equal")
    size = float(np.clip(120 / max(1, len(columns)), 3, 8))
    labels = [shown(column, 16) for column in columns]
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


def _tick(value: float, kind: str) -> str:
    """Return a short number, day or moment."""
    if kind in ("date", "datetime"):
        moment = np.datetime64(round(value), "D" if kind == "date" else "s")
        return str(moment.astype("datetime64[D]"))
    size = abs(value)
    for limit, letter in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if size >= limit:
            return f"{value / (limit if letter != 'k' else 1e3):.3g}{letter}".replace("-", "−")
    return f"{value:.4g}".replace("-", "−")


# -- from matplotlib to the page -------------------------------------------------------------------------------------


def _draw(width: float, height: float, key: str, alt: str, paint: Callable[[Axes], None]) -> Markup:
    """Return an inline SVG of ``width`` by ``height`` inches.

    Args:
        width: Inches; a page scales it.
        height: Inches.
        key: Makes the drawing's element ids its own.
        alt: What a reader who cannot see it is told.
        paint: Draws on the axes.
    """
    style: Any = {**STYLE, "svg.hashsalt": key}
    with mpl.rc_context(style), warnings.catch_warnings():
        # The browser has more glyphs than matplotlib's font; only their widths are guessed here.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        warnings.filterwarnings("ignore", message="Matplotlib currently does not support")
        figure = Figure(figsize=(width, height), layout="constrained")
        figure.patch.set_visible(False)
        axes = figure.add_subplot()
        axes.patch.set_visible(False)
        paint(axes)
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    return _inline(buffer.getvalue(), alt)


def _inline(document: str, alt: str) -> Markup:
    svg = document[document.index("<svg") :]
    head, body = svg.split(">", 1)
    box = re.search(r'viewBox="([^"]*)"', head)
    body = re.sub(r"<metadata>.*?</metadata>", "", body, flags=re.DOTALL)
    body = body.replace('<style type="text/css">*{stroke-linejoin: round; stroke-linecap: butt}</style>', "")
    # Group ids are the same in every drawing, and a page may hold an id only once; those of clips and marks are hashes.
    body = re.sub(r'<g id="[^"]*"', "<g", body)
    body = re.sub(r"<(?:g|defs)/>|<defs>\s*</defs>|<g>\s*</g>", "", body)
    body = re.sub(r' transform="rotate\(-0 [^"]*"', "", body)
    body = re.sub(r'style="([^"]*)"', lambda found: f'style="{_themed(found.group(1))}"', body)
    body = re.sub(r' (d|x|y)="([^"]*)"', lambda found: f' {found.group(1)}="{_rounded(found.group(2))}"', body)
    body = re.sub(r"\n\s*", "\n", body)
    attributes = Markup('role="img" aria-label="{}" viewBox="{}"').format(alt, box.group(1) if box else "")
    opening = Markup('<svg xmlns:xlink="http://www.w3.org/1999/xlink" {}>').format(attributes)
    return opening + Markup(body)


def _rounded(numbers: str) -> str:
    return re.sub(r"-?[0-9]+\.[0-9]+", lambda found: f"{float(found.group()):.2f}", " ".join(numbers.split()))


def _themed(style: str) -> str:
    """Exchange stand-in colours for the page's variables, and matplotlib's font for the page's."""
    for colour, variable in _VARIABLES.items():
        style = style.replace(colour, f"var(--{variable})")
    return re.sub(r"font: ([0-9.]+px) [^;]*", r"font-size: \1", re.sub(r" ?font-family: [^;]*;?", "", style))
