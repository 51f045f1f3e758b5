"""Locating a number's rows and its repeated values from the first releases.

All of it is post-processing. A column is first counted in public cells. Cells that are clearly not empty are cut into
single or round values and counted again; a gap between round values that is far heavier than its neighbours is cut once
more. A value's excess over a smooth curve is shrunk by empirical Bayes, with one variance for all values of the same
roundness (5,000; 1,500; 1,234); an excess far above the noise is kept whole. The curve is smoothed along the scale of
the public cells. The number of rows of a group is *not* read off here: the next release counts groups directly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from doublure.methods.statistics.binning import constant_pieces, empirical_bayes_counts
from doublure.methods.statistics.tables.leaves import ColumnLeaves, Floats, Ints
from doublure.private.queries.axes import Intervals

_CLEAR = 4.0
"""Deviations of noise that are significant in any of a table's cells."""
_BELIEVED = 4.0
"""Deviations of a piece's noise above which the curve counts its rows."""
_SMOOTH = 3.0
"""Deviation, in cells, of the Gaussian kernel that smooths the curve."""
_SINGLES = 256
_MOST_CUT = 128
_WIDEST_CUT = 4096
_OUTSTANDING = 6.0
_ROUNDS = 6


@dataclass(frozen=True, kw_only=True, eq=False)
class CutCells:
    """Cells of a column that hold rows, cut into parts.

    Attributes:
        cells: ``(h,)`` the leaves that are cut.
        starts: ``(s,)`` first value of each part.
        of: ``(s,)`` the cut leaf of each part, as a place in ``cells``.
        ends: ``(s,)`` last value of each part.
    """

    cells: Ints
    starts: Ints
    of: Ints
    ends: Ints

    @classmethod
    def of_parts(cls, leaves: ColumnLeaves, cells: Ints, parts: list[Ints]) -> CutCells:
        """Return the parts of some leaves."""
        none = np.zeros(0, dtype=np.int64)
        starts = np.concatenate([none, *parts])
        of = np.concatenate([none, *(np.full(len(part), at) for at, part in enumerate(parts))])
        last = np.append(of[1:] != of[:-1], True)[: len(of)]
        ends = np.where(last, leaves.ends[cells][of] if len(of) else none, np.append(starts[1:] - 1, 0)[: len(of)])
        return cls(cells=cells, starts=starts, of=of, ends=ends)

    def axis(self, leaves: ColumnLeaves) -> Intervals:
        """Return the axis of the parts; all other values count in a last cell."""
        elsewhere = len(self.starts)
        after = leaves.ends[self.cells] + 1
        after = after[~np.isin(after, self.starts)]
        first = np.array([leaves.domain.first] if leaves.domain.first not in self.starts else [], dtype=np.int64)
        starts = np.concatenate([self.starts, after, first])
        cells = np.concatenate([np.arange(elsewhere), np.full(len(after) + len(first), elsewhere)])
        order = np.argsort(starts, kind="stable")
        return Intervals(
            part=leaves.part, starts=starts[order].astype(np.float64), cells=cells[order], size=elsewhere + 1
        )


def full_cells(leaves: ColumnLeaves, noise: float) -> CutCells:
    """Return the cells of several values that clearly hold rows, cut; the leaves' mass is their noisy counts."""
    count = len(leaves.starts)
    wide = leaves.ends > leaves.starts
    cells = np.flatnonzero((leaves.mass[:count] > _CLEAR * noise) & wide)
    starts, ends = leaves.starts, leaves.ends
    parts = [leaves.domain.split_cell(int(starts[cell]), int(ends[cell])) for cell in cells]
    return CutCells.of_parts(leaves, cells, parts)


def take_cells(leaves: ColumnLeaves, noise: float) -> None:
    """Estimate the mass of cells that are not cut: clear cells keep their counts, others lie on a curve or are zero."""
    count = len(leaves.starts)
    own = leaves.mass[:count]
    clear = own > _CLEAR * noise
    found = _runs(own, noise, np.flatnonzero(clear)) + np.where(clear, own, 0.0)
    leaves.mass = np.concatenate([np.maximum(found, 0), np.maximum(leaves.mass[count:], 0)])


def take_values(leaves: ColumnLeaves, opened: CutCells, counted: Floats, noise: float, part_noise: float) -> None:
    """Cut the leaves, and estimate each part's mass from the counts of cells and parts together.

    Args:
        leaves: Leaves with the cells' noisy counts as mass.
        opened: The cut.
        counted: ``(parts + 1,)`` the noisy counts of the parts.
        noise: Standard deviation of the cells' noise.
        part_noise: Standard deviation of the parts' noise.
    """
    count = len(leaves.starts)
    cells = leaves.mass[:count].copy()
    smooth = _runs(cells, noise, opened.cells)
    variance = np.full(count, noise**2)
    extra = np.zeros(0)
    if len(opened.cells):
        extra, rest, rest_variance = _above_the_curve(leaves, opened, cells, counted[:-1], noise, part_noise)
        smooth[opened.cells], variance[opened.cells] = rest, rest_variance
    smooth = _smoothed(smooth, variance)
    share = _shares(leaves, opened)
    starts, mass = [leaves.starts[:0]], [cells[:0]]
    for cell in range(count):
        at = int(np.searchsorted(opened.cells, cell))
        if at < len(opened.cells) and opened.cells[at] == cell:
            own = slice(*np.searchsorted(opened.of, [at, at + 1]))
            starts.append(opened.starts[own])
            mass.append(np.maximum(0.0, extra[own] + max(0.0, smooth[cell]) * share[own]))
        else:
            starts.append(leaves.starts[cell : cell + 1])
            mass.append(np.maximum(smooth[cell : cell + 1], 0.0))
    leaves.mass = np.concatenate([leaves.mass[:count], np.maximum(leaves.mass[count:], 0)])
    leaves.replace(np.concatenate(starts), np.concatenate(mass))


def outstanding_gaps(leaves: ColumnLeaves, opened: CutCells, part_noise: float) -> CutCells:
    """Return the parts of several values that are far denser than those around them, cut into single values."""
    count = len(leaves.starts)
    width, mass = leaves.width[:count], leaves.mass[:count]
    density = mass / width
    near = np.array([np.median(density[max(0, at - 6) : at + 7]) for at in range(count)])
    apart = (mass > _OUTSTANDING * part_noise) & (density > _OUTSTANDING * near)
    hot = np.flatnonzero((width > 1) & (width <= _WIDEST_CUT) & np.isin(leaves.starts, opened.starts) & apart)
    hot = np.sort(hot[np.argsort(-mass[hot], kind="stable")][:_MOST_CUT])
    starts, ends = leaves.starts, leaves.ends
    parts = [np.arange(starts[at], ends[at] + 1, max(1, -(-int(ends[at] - starts[at] + 1) // _SINGLES))) for at in hot]
    return CutCells.of_parts(leaves, hot, parts)


def take_repeated(leaves: ColumnLeaves, opened: CutCells, counted: Floats, noise: float) -> None:
    """Cut gaps in which single values stand out, and move the gaps' mass to those values."""
    count = len(leaves.starts)
    starts, mass = [leaves.starts[:0]], [leaves.mass[:0]]
    clear = np.where(counted[:-1] > _CLEAR * noise, counted[:-1], 0.0)
    held = np.bincount(opened.of, clear, len(opened.cells)) if len(opened.cells) else np.zeros(0)
    for leaf in range(count):
        at = int(np.searchsorted(opened.cells, leaf))
        if at < len(opened.cells) and opened.cells[at] == leaf and held[at] > 0:
            own = slice(*np.searchsorted(opened.of, [at, at + 1]))
            starts.append(opened.starts[own])
            mass.append(clear[own] * leaves.mass[leaf] / held[at])
        else:
            starts.append(leaves.starts[leaf : leaf + 1])
            mass.append(leaves.mass[leaf : leaf + 1])
    leaves.replace(np.concatenate(starts), np.concatenate(mass))


def take_categories(leaves: ColumnLeaves, noise: float) -> None:
    """Estimate the masses of a long list of categories, by shrinkage over all of them."""
    leaves.mass = empirical_bayes_counts(leaves.mass, noise=noise)


# -- inside ----------------------------------------------------------------------------------------------------------


def _above_the_curve(
    leaves: ColumnLeaves, opened: CutCells, cells: Floats, counted: Floats, noise: float, part_noise: float
) -> tuple[Floats, Floats, Floats]:
    """Return each part's excess over the curve, and each cut cell's rest for the curve with its variance.

    A backfitting loop: given the curve, each part's excess is shrunk; given the excesses, the rest of each cell is
    re-estimated from the cell's own count.

    Returns:
        ``(s,)`` excess, ``(h,)`` rest, ``(h,)`` variance of the rest.
    """
    of, held = opened.of, cells[opened.cells]
    count = len(held)
    width = opened.ends - opened.starts + 1.0
    share = _shares(leaves, opened)
    single = width == 1
    roundness = np.where(single, [_digits(value) for value in opened.starts], 0)
    gap = ~single
    within_gaps = np.bincount(of, share * gap, count)
    smooth_share = 1.0
    if gap.any():  # the share of all rows in cut cells that is not on round values, or 0 if it is not significant
        expected = max(float((held * within_gaps).sum()), 1.0)
        smooth_share = float(counted[gap].sum()) / expected
        unsure = 2 * part_noise * math.sqrt(gap.sum()) / expected
        smooth_share = 0.0 if smooth_share < unsure else min(1.0, smooth_share)
    rest, apart = held * smooth_share, single
    found = np.zeros(len(share))
    for _ in range(_ROUNDS):
        curve = np.maximum(rest, 0)[of] * share
        above = counted - curve
        found = curve.copy()
        for kind in (1, 2, 3):  # one prior variance for all values of a roundness, from those that do not stand out
            own = roundness == kind
            calm = own & (np.abs(above) < _CLEAR * part_noise)
            spread = max(0.0, float((above[calm] ** 2).mean()) - part_noise**2) if calm.any() else 0.0
            kept = np.where(above > _CLEAR * part_noise, 1.0, spread / (spread + part_noise**2))
            found[own] = np.maximum(0.0, curve + above * kept)[own]
        heavy = gap & (above > 7 * part_noise)
        found[heavy] = counted[heavy]
        apart = single | heavy
        within_gaps = np.bincount(of, share * ~apart, count)
        left = held - np.bincount(of, (found - curve) * apart, count)
        # A cell's rest is the precision-weighted mean of what its own count leaves, and of the overall smooth share.
        variance, prior = noise**2 + part_noise**2, smooth_share * held
        weak = (prior + 5) ** 2
        pooled = (left / variance + prior / weak) / (1 / variance + 1 / weak)
        rest = np.where(within_gaps > 0, pooled, left)
    rest = np.maximum(rest, 0.0)
    extra = np.where(apart, found - rest[of] * share, 0.0)
    return extra, rest, np.where(within_gaps > 0, noise**2 + part_noise**2, noise**2)


def _shares(leaves: ColumnLeaves, opened: CutCells) -> Floats:
    """Return each part's width as a share of its cell's."""
    width = opened.ends - opened.starts + 1.0
    whole = (leaves.ends - leaves.starts + 1.0)[opened.cells]
    found: Floats = width / whole[opened.of] if len(opened.of) else width
    return found


def _digits(value: int) -> int:
    """Return the number of significant digits of a value, with 3 for more than two."""
    return min(3, len(str(abs(int(value))).rstrip("0")) or 1)


def _smoothed(masses: Floats, variances: Floats) -> Floats:
    """Return masses smoothed along the scale, except where they stand out or are zero."""
    place = np.arange(len(masses))
    kernel = np.exp(-0.5 * ((place[:, None] - place) / _SMOOTH) ** 2) * (masses > 0)
    curve = (kernel @ masses) / np.maximum(kernel.sum(1), 1e-9)
    apart = masses - curve
    kept = np.maximum(0.0, 1 - 6 * variances / np.maximum(apart**2, 1e-9))
    return np.where(masses > 0, np.maximum(curve + apart * kept, 0), masses)


def _runs(counts: Floats, noise: float, aside: Ints) -> Floats:
    """Return a piecewise constant curve along each run between cells set aside, zero where it is not significant.

    Pieces that are not significant are counted again in blocks (:mod:`doublure.methods.statistics.tables.tails`).
    """
    found = np.zeros(len(counts))
    apart = np.zeros(len(counts), dtype=bool)
    apart[aside] = True
    for run in np.split(np.arange(len(counts)), np.flatnonzero(np.diff(apart.astype(int)) != 0) + 1):
        if len(run) and not apart[run[0]]:
            piece = constant_pieces(counts[run] / noise, among=len(counts))
            total, cells = np.bincount(piece, counts[run]), np.bincount(piece)
            found[run] = (np.where(total > _BELIEVED * noise * np.sqrt(cells), total, 0) / cells)[piece]
    return found
