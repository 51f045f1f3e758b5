"""Distributions of the columns, for plots: frequencies of values and bins, and densities of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from doublure.intervals import Result
from doublure.measures.tables.coding import Coded, Coder
from doublure.measures.tables.counts import CodeCounts
from doublure.support.arrays import Floats

MOST_VALUES = 12
"""Most values of a column listed one by one."""

_POINTS = 200

_UNORDERED = ("category", "code")
"""Types whose values stand in the order of their frequency."""


class ColumnFrequencies(Result):
    """The shares of a column's values, or of a number's public bins.

    Attributes:
        labels: The values, the most frequent first, or in the schema's order where they have one; null for a number.
        edges: A number's ``B + 1`` bin edges (days or seconds since 1970 for dates and moments); null otherwise.
        real: The real rows' shares of the values or bins.
        synthetic: The synthetic rows' shares.
        zero: Shares of the exact zeros, where zero is a state of its own (real, synthetic).
        missing: Shares of the missing cells (real, synthetic).
        left_out: Number of further values, and their shares (real, synthetic).
    """

    column: str
    kind: str
    labels: tuple[str, ...] | None = None
    edges: tuple[float, ...] | None = None
    real: tuple[float, ...]
    synthetic: tuple[float, ...]
    zero: tuple[float, float] | None = None
    missing: tuple[float, float] | None = None
    left_out: tuple[int, float, float] | None = None


class NumberDensity(Result):
    """Smoothed densities of a number, without missing cells, and without zeros where they are a state of their own."""

    column: str
    kind: str
    scale: Literal["linear", "log"]
    points: tuple[float, ...]
    real: tuple[float, ...]
    synthetic: tuple[float, ...]


def frequencies(coder: Coder, train: CodeCounts, synthetic: CodeCounts) -> tuple[ColumnFrequencies, ...]:
    """Return every column's shares among the real and the synthetic rows."""
    found = []
    for place, (name, column) in enumerate(coder.columns.items()):
        real, artificial = train.shares(place), synthetic.shares(place)
        missing = (float(real[-1]), float(artificial[-1]))
        shown = missing if max(missing) > 0 else None
        frequencies_of = _values if column.listed else _bins
        found.append(frequencies_of(coder, name, column.shown_type, real, artificial, shown))
    return tuple(found)


def _bins(
    coder: Coder, name: str, kind: str, real: Floats, synthetic: Floats, missing: tuple[float, float] | None
) -> ColumnFrequencies:
    edges = coder.edges(name)
    bins = len(edges) - 1
    zeros = (float(real[bins]), float(synthetic[bins])) if len(real) > bins + 1 else None
    return ColumnFrequencies(
        column=name,
        kind=kind,
        edges=round_values(edges),
        real=round_values(real[:bins]),
        synthetic=round_values(synthetic[:bins]),
        zero=zeros,
        missing=missing,
    )


def _values(
    coder: Coder, name: str, kind: str, real: Floats, synthetic: Floats, missing: tuple[float, float] | None
) -> ColumnFrequencies:
    labels = coder.labels(name)[:-1]
    heights = np.maximum(real, synthetic)[:-1]
    order = np.argsort(-heights, kind="stable")
    # Values without a row are left out; those of a long list beyond the frequent ones are added up.
    order = order[heights[order] > 0]
    listed, rest = order[:MOST_VALUES], order[MOST_VALUES:]
    if kind not in _UNORDERED:
        listed = np.sort(listed)
    left_out = (len(rest), float(real[rest].sum()), float(synthetic[rest].sum())) if len(rest) else None
    return ColumnFrequencies(
        column=name,
        kind=kind,
        labels=tuple(labels[place] for place in listed),
        real=round_values(real[listed]),
        synthetic=round_values(synthetic[listed]),
        missing=missing,
        left_out=left_out,
    )


def densities(coder: Coder, train: Coded, synthetic: Coded) -> tuple[NumberDensity, ...]:
    """Return the kernel density estimates of every number with values to smooth in both tables."""
    found = (_density(coder, name, train.numbers[name], synthetic.numbers[name]) for name in train.numbers)
    return tuple(density for density in found if density is not None)


def _density(coder: Coder, name: str, real: Floats, synthetic: Floats) -> NumberDensity | None:
    column = coder.columns[name]
    lower, upper, unit = coder.bounds(name)
    zero = column.zero_apart
    samples = [
        np.clip(values[~np.isnan(values) & ~(zero & (values == 0))], lower, upper) for values in (real, synthetic)
    ]
    if any(len(sample) < 2 for sample in samples):
        return None
    edges = coder.edges(name)
    # Bins of equal ratio stand for a logarithmic scale.
    log = lower >= 0 and len(edges) > 3 and edges[-1] - edges[-2] > 20 * max(unit, edges[2] - edges[1])
    if log:
        floor = max(lower, unit, min(float(sample[sample > 0].min(initial=np.inf)) for sample in samples))
        if not np.isfinite(floor):
            return None
        samples = [np.log10(np.maximum(sample, floor)) for sample in samples]
    first, last = np.quantile(np.concatenate(samples), [0.002, 0.998])
    if not last > first:
        return None
    grid = np.linspace(first, last, _POINTS)
    step = 0.0 if log else unit
    width = max(_bandwidth(samples[0]), _bandwidth(samples[1]) / 2, step * 0.75, (last - first) / _POINTS)
    curves = [smooth(sample[(sample >= first) & (sample <= last)], grid, width) for sample in samples]
    return NumberDensity(
        column=name,
        kind=column.shown_type,
        scale="log" if log else "linear",
        points=round_values(10**grid if log else grid),
        real=round_values(curves[0]),
        synthetic=round_values(curves[1]),
    )


def _bandwidth(sample: Floats) -> float:
    """Return Silverman's bandwidth (1986, equation 3.31)."""
    spread = float(np.std(sample))
    quarter = float(np.subtract(*np.quantile(sample, [0.75, 0.25]))) / 1.34
    return float(0.9 * (min(spread, quarter) if quarter > 0 else spread) * len(sample) ** -0.2)


def smooth(sample: Floats, grid: Floats, width: float) -> Floats:
    """Return a Gaussian kernel density estimate on a grid of equal steps, mass reflected at both ends.

    Args:
        sample: ``(N,)`` values on the grid's range; an empty one has density 0 everywhere.
        grid: ``(M,)`` increasing points.
        width: The kernel's standard deviation.

    Returns:
        ``(M,)`` densities; their sum times the step is 1.
    """
    if not len(sample):
        return np.zeros(len(grid))
    step = grid[1] - grid[0]
    places = np.clip(np.rint((sample - grid[0]) / step), 0, len(grid) - 1).astype(np.int64)
    mass = np.bincount(places, minlength=len(grid)) / len(sample)
    reach = min(len(grid), int(np.ceil(4 * width / step)))
    kernel = np.exp(-0.5 * (np.arange(-reach, reach + 1) * step / width) ** 2)
    padded = np.concatenate([mass[:reach][::-1], mass, mass[len(mass) - reach :][::-1]])
    curve = np.convolve(padded, kernel / kernel.sum(), mode="same")[reach : reach + len(grid)]
    return np.asarray(curve / (curve.sum() * step), dtype=np.float64)


def round_values(values: Sequence[float] | np.ndarray[Any, Any]) -> tuple[float, ...]:
    """Round to six figures, enough for a drawing."""
    return tuple(float(f"{float(value):.6g}") for value in values)
