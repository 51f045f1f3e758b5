"""Which codes of a binned number can be what a sample is asked for, and numbers drawn from that part of their bin."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from doublure.data.tables.fixing import has
from doublure.encode.grids import Floats
from doublure.encode.numeric import Binned
from doublure.schema.allowed import Allowed


def code_chances(own: Binned, cells: Allowed) -> Floats:
    """Return ``(codes,)`` the chance that a number of each code is among the cells: numbers lie evenly in their bin."""
    bins, size = len(own.edges) - 1, own.parts[0].size
    states = np.arange(bins, size, dtype=np.float64)
    lengths = _lengths(own, own.edges[:-1], own.edges[1:])
    return np.concatenate([_overlap(own, cells)[2] / lengths, has(cells, own.numbers([states], None))])


def placed(own: Binned, values: Sequence[Floats], cells: Allowed, rng: np.random.Generator) -> Floats:
    """Return one number a code, NaN for missing: of the cells, where the code's bin has any.

    Args:
        own: The encoding.
        values: One array of codes.
        cells: What is asked for.
        rng: Draws them.
    """
    numbers, codes = own.numbers(values, rng), values[0].astype(np.int64)
    rows = np.flatnonzero((codes < len(own.edges) - 1) & ~has(cells, numbers))
    if not len(rows):
        return numbers
    first, last, length = _overlap(own, cells)
    if cells.span is not None:
        left, right = first[codes[rows]], last[codes[rows]]
        step, unit = rng.random(len(rows)), own.grid.unit
        drawn = left + np.floor(step * length[codes[rows]]) * unit if unit else left + step * (right - left)
        numbers[rows] = np.where(length[codes[rows]] > 0, drawn, numbers[rows])
    else:
        bins = _bins_of(own, np.asarray(cells.values))
        for code in np.unique(codes[rows]):
            inside = np.asarray(cells.values)[bins == code]
            if len(inside):
                mine = rows[codes[rows] == code]
                numbers[mine] = rng.choice(inside, len(mine))
    return own.grid.snap(numbers)


def _overlap(own: Binned, cells: Allowed) -> tuple[Floats, Floats, Floats]:
    """Return of each bin the first and the last cell that fits, and how many there are (how long, on a continuum)."""
    left, right = own.edges[:-1], own.edges[1:]
    if cells.span is None:
        counts = np.bincount(_bins_of(own, np.asarray(cells.values)), minlength=len(left))[: len(left)]
        return left, right, counts.astype(np.float64)
    low, high = cells.span
    unit = own.grid.unit
    if not unit:
        first, last = np.maximum(left, low), np.minimum(right, high)
        return first, last, np.maximum(0.0, last - first)
    steps = np.ceil((np.maximum(left, low) - left) / unit - 1e-6)
    first = left + steps * unit
    last = np.minimum(right - unit, high)
    return first, last, np.maximum(0.0, np.floor((last - first) / unit + 1e-6) + 1)


def _lengths(own: Binned, left: Floats, right: Floats) -> Floats:
    return np.maximum(1.0, np.rint((right - left) / own.grid.unit)) if own.grid.unit else right - left


def _bins_of(own: Binned, numbers: Floats) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return the bin of each number; numbers that have a state of their own are in none (one past the last)."""
    found = np.clip(np.searchsorted(own.edges, numbers, side="right") - 1, 0, len(own.edges) - 2)
    if own.zero:
        found = np.where(numbers == 0, len(own.edges) - 1, found)
    bins: np.ndarray[tuple[int], np.dtype[np.int64]] = found.astype(np.int64)
    return bins
