"""Posterior means of a number whose public cells are exchangeable a priori: the squares of a map.

Towns are few and lie anywhere. So neighbouring cells say nothing of one another, and no curve is smooth along them. The
cells are exchangeable under a gamma prior of unknown shape, and so are the parts of a cell that is cut
(:func:`doublure.methods.statistics.binning.posterior_moments`). Noise in a thousand empty squares then adds hardly any
row. Later counts of groups move the means by their precision.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from doublure.methods.statistics.binning import noise_maximum, posterior_moments, project_to_simplex
from doublure.schema.columns import IntegerDomain

Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]

_LEAST = 1e-9
_SHAPES = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
"""Shapes of the prior, half a decade apart: from one town in a thousand squares to rows all over the map."""


class _CountedRanges(NamedTuple):
    """Ranges of leaves and their noisy counts.

    Attributes:
        first: ``(m,)`` the first leaf of each, ascending.
        after: ``(m,)`` the one after its last.
        counts: ``(m,)``.
        variances: ``(m,)`` of their noise.
    """

    first: Ints
    after: Ints
    counts: Floats
    variances: Floats


class ExchangeablePosterior:
    """All noisy counts of a column, and the expected rows of its leaves.

    Args:
        domain: The integers that stand for the column's values.
        starts: ``(n,)`` first integer of each leaf; every public cell begins one.

    Attributes:
        steps: ``(1,)`` the step of its one lattice: no value is rounder than another.
        mass: ``(n,)`` the expected rows of each leaf; before :meth:`fit` nothing.
        pulls: ``(1,)`` 1.
    """

    def __init__(self, domain: IntegerDomain, starts: Ints) -> None:
        self.steps = domain.nested_steps()
        self.mass, self.pulls = np.zeros(len(starts)), np.ones(len(self.steps))
        self._starts, self._cells = starts, domain.initial_partition()
        self._widths = np.diff(np.append(starts, domain.last + 1)).astype(np.float64)
        self._spread = np.zeros(len(starts))
        self._seen: list[_CountedRanges] = []

    def see_cells(self, counts: Floats, variances: Floats | float) -> None:
        """Take the counts ``(cells,)`` of all public cells, and their noise's variances."""
        first = np.searchsorted(self._starts, self._cells)
        self._seen.append(
            _CountedRanges(
                first, np.append(first[1:], len(self._starts)), counts, np.broadcast_to(variances, counts.shape)
            )
        )

    def see_lattices(self, counts: Floats, variances: Floats | float) -> None:
        """Pass over the counts of lattices: there is one, which all values are on."""

    def see_ranges(self, starts: Ints, ends: Ints, counts: Floats, variances: Floats | float) -> None:
        """Take the counts ``(m,)`` of ranges of integers, each of one leaf or several.

        Args:
            starts: ``(m,)`` the first integer of each, ascending.
            ends: ``(m,)`` the last.
            counts: ``(m,)``.
            variances: ``(m,)`` of their noise.
        """
        if len(starts):
            first, after = np.searchsorted(self._starts, starts), np.searchsorted(self._starts, ends, side="right")
            self._seen.append(_CountedRanges(first, after, counts, np.broadcast_to(variances, counts.shape)))

    def fit(self) -> None:
        """Find the expected rows of each leaf, given all counts so far, in the order in which they came."""
        total = max(float(self._seen[0].counts.sum()), 1.0) if self._seen else 0.0
        even = self._widths / self._widths.sum()
        self.mass, self._spread = total * even, total**2 * even  # a sum of so many counts says little of all rows
        piece = np.zeros(len(self._starts), dtype=np.int64)
        for seen in self._seen:
            size = np.bincount(piece)[piece[seen.first]]
            finer = (piece[seen.first] == piece[seen.after - 1]) & (seen.after - seen.first < size)
            for own in np.unique(piece[seen.first[finer]]):
                self._divide(piece == own, _chosen(seen, finer & (piece[seen.first] == own)))
            self._move(_chosen(seen, ~finer))
            begins = np.zeros(len(piece) + 1, dtype=np.int64)
            begins[np.flatnonzero(np.diff(piece)) + 1] = 1
            begins[seen.first] = begins[seen.after] = 1
            begins[0] = 0
            piece = np.cumsum(begins[:-1])

    def _divide(self, leaves: npt.NDArray[np.bool_], parts: _CountedRanges) -> None:
        """Divide the rows of some leaves among parts of them, of which nothing was known before."""
        held, spread = max(float(self.mass[leaves].sum()), _LEAST), float(self._spread[leaves].sum())
        means, spreads = posterior_moments(parts.counts, parts.variances, total=held, shapes=_SHAPES)
        gain = spread / (spread + float(spreads.sum()))
        held = max(held + gain * (float(means.sum()) - held), _LEAST)
        likely = project_to_simplex(means, spreads, total=held)
        self.mass[leaves] = 0.0
        for first, after, rows, own in zip(parts.first, parts.after, likely, spreads, strict=True):
            even = self._widths[first:after] / self._widths[first:after].sum()
            self.mass[first:after], self._spread[first:after] = rows * even, own * even

    def _move(self, ranges: _CountedRanges) -> None:
        """Move the rows of ranges towards their counts, by precision; leaves keep their shares."""
        for first, after, count, variance in zip(*ranges, strict=True):
            held, spread = float(self.mass[first:after].sum()), float(self._spread[first:after].sum())
            gain = spread / (spread + variance)
            moved = max(held + gain * (count - held), 0.0)
            self.mass[first:after] *= moved / max(held, _LEAST)
            self._spread[first:after] *= 1 - gain

    def variances(self, groups: Ints) -> Floats:
        """Return the posterior variance ``(m,)`` of the rows of groups of leaves.

        Args:
            groups: ``(n,)`` the group of each leaf, ascending.
        """
        return np.bincount(groups, self._spread).astype(np.float64)

    def standing_out(self, noise: float) -> npt.NDArray[np.bool_]:
        """Return which leaves ``(n,)`` of several values have rows that noise alone hardly reaches.

        Args:
            noise: Standard deviation of the noise in a leaf's own count.
        """
        found: npt.NDArray[np.bool_] = (self._widths > 1) & (self.mass > noise_maximum(len(self.mass)) * noise)
        return found


def _chosen(seen: _CountedRanges, chosen: npt.NDArray[np.bool_]) -> _CountedRanges:
    return _CountedRanges(seen.first[chosen], seen.after[chosen], seen.counts[chosen], seen.variances[chosen])
