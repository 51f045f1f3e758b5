"""Where a number's rows are, and which of its values repeat: reading the releases that only look.

All of it is post-processing. A column is first counted in public cells; cells that are clearly not empty are cut into
single or round values and counted again; a gap between round values that is far heavier than its neighbours is cut once
more. What a value has above a smooth curve is kept as far as the noise lets one believe it: values of one roundness
(5,000; 1,500; 1,234) share how much they stand out (an empirical Bayes estimate), and what is far above the noise is
kept whole. The curve is smoothed along the scale of the public cells. How many rows a group has is *not* read off here:
the next release counts groups directly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from doublure.methods.statistics.binning import shrunk_counts
from doublure.methods.statistics.tables.leaves import Floats, Ints, Leaves
from doublure.private.queries.axes import Intervals

_CLEAR = 4.0
"""Noise deviations that are no chance in any of a table's cells."""
_BELIEVED = 4.0
"""Of a piece's noise, from which on the curve takes it for rows."""
_SMOOTH = 3.0
"""Cells over which the curve is smoothed (a Gaussian kernel's deviation)."""
_SINGLES = 256
_MOST_CUT = 128
_WIDEST_CUT = 4096
_OUTSTANDING = 6.0
_ROUNDS = 6
_PRICE = 2.0


@dataclass(frozen=True, kw_only=True, eq=False)
class Opened:
    """Full cells of a column and how they are cut.

    Attributes:
        cells: ``(h,)`` which leaves are cut.
        starts: ``(s,)`` where their parts begin.
        of: ``(s,)`` which of the cut leaves each part belongs to.
        ends: ``(s,)`` where the parts end.
    """

    cells: Ints
    starts: Ints
    of: Ints
    ends: Ints

    @classmethod
    def of_parts(cls, leaves: Leaves, cells: Ints, parts: list[Ints]) -> Opened:
        """Return the parts of some leaves."""
        none = np.zeros(0, dtype=np.int64)
        starts = np.concatenate([none, *parts])
        of = np.concatenate([none, *(np.full(len(part), at) for at, part in enumerate(parts))])
        last = np.append(of[1:] != of[:-1], True)[: len(of)]
        ends = np.where(last, leaves.ends[cells][of] if len(of) else none, np.append(starts[1:] - 1, 0)[: len(of)])
        return cls(cells=cells, starts=starts, of=of, ends=ends)

    def axis(self, leaves: Leaves) -> Intervals:
        """Return the axis of the parts; all that is elsewhere counts in a last cell."""
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


def full_cells(leaves: Leaves, noise: float) -> Opened:
    """Return the cells of several values that clearly hold rows, cut; leaves have their noisy counts as mass."""
    count = len(leaves.starts)
    wide = leaves.ends > leaves.starts
    cells = np.flatnonzero((leaves.mass[:count] > _CLEAR * noise) & wide)
    starts, ends = leaves.starts, leaves.ends
    parts = [leaves.domain.split_cell(int(starts[cell]), int(ends[cell])) for cell in cells]
    return Opened.of_parts(leaves, cells, parts)


def take_cells(leaves: Leaves, noise: float) -> None:
    """Read cells that are not cut: a curve along the scale, what stands out above it, nothing where nothing is seen."""
    count = len(leaves.starts)
    own = leaves.mass[:count]
    clear = own > _CLEAR * noise
    found = _runs(own, noise, np.flatnonzero(clear)) + np.where(clear, own, 0.0)
    leaves.mass = np.concatenate([np.maximum(found, 0), np.maximum(leaves.mass[count:], 0)])


def take_values(leaves: Leaves, opened: Opened, counted: Floats, noise: float, part_noise: float) -> None:
    """Cut the leaves, and give each part what cells and parts together say of it.

    Args:
        leaves: With the cells' noisy counts as mass.
        opened: How they were cut.
        counted: ``(parts + 1,)`` the noisy counts of the parts.
        noise: Standard deviation of the cells' noise.
        part_noise: Of the parts'.
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


def outstanding_gaps(leaves: Leaves, opened: Opened, part_noise: float) -> Opened:
    """Return the parts of several values that are far heavier than those around them, cut into single values."""
    count = len(leaves.starts)
    width, mass = leaves.width[:count], leaves.mass[:count]
    density = mass / width
    near = np.array([np.median(density[max(0, at - 6) : at + 7]) for at in range(count)])
    apart = (mass > _OUTSTANDING * part_noise) & (density > _OUTSTANDING * near)
    hot = np.flatnonzero((width > 1) & (width <= _WIDEST_CUT) & np.isin(leaves.starts, opened.starts) & apart)
    hot = np.sort(hot[np.argsort(-mass[hot], kind="stable")][:_MOST_CUT])
    starts, ends = leaves.starts, leaves.ends
    parts = [np.arange(starts[at], ends[at] + 1, max(1, -(-int(ends[at] - starts[at] + 1) // _SINGLES))) for at in hot]
    return Opened.of_parts(leaves, hot, parts)


def take_repeated(leaves: Leaves, opened: Opened, counted: Floats, noise: float) -> None:
    """Cut gaps in which single values stand out; their mass goes to those."""
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


def take_categories(leaves: Leaves, noise: float) -> None:
    """Read a long list of categories, each in the light of all."""
    leaves.mass = shrunk_counts(leaves.mass, noise=noise)


# -- inside ----------------------------------------------------------------------------------------------------------


def _above_the_curve(
    leaves: Leaves, opened: Opened, cells: Floats, counted: Floats, noise: float, part_noise: float
) -> tuple[Floats, Floats, Floats]:
    """Return what each part has above the curve, and of each cut cell what is left for the curve and its variance."""
    of, held = opened.of, cells[opened.cells]
    count = len(held)
    width = opened.ends - opened.starts + 1.0
    share = _shares(leaves, opened)
    single = width == 1
    roundness = np.where(single, [_digits(value) for value in opened.starts], 0)
    gap = ~single
    within_gaps = np.bincount(of, share * gap, count)
    smooth_share = 1.0
    if gap.any():  # of all that is in cut cells, which share does not lie on round values
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
        for kind in (1, 2, 3):
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
        variance, prior = noise**2 + part_noise**2, smooth_share * held
        weak = (prior + 5) ** 2
        pooled = (left / variance + prior / weak) / (1 / variance + 1 / weak)
        rest = np.where(within_gaps > 0, pooled, left)
    rest = np.maximum(rest, 0.0)
    extra = np.where(apart, found - rest[of] * share, 0.0)
    return extra, rest, np.where(within_gaps > 0, noise**2 + part_noise**2, noise**2)


def _shares(leaves: Leaves, opened: Opened) -> Floats:
    """Return the share of each part's cell that it is as wide as."""
    width = opened.ends - opened.starts + 1.0
    whole = (leaves.ends - leaves.starts + 1.0)[opened.cells]
    found: Floats = width / whole[opened.of] if len(opened.of) else width
    return found


def _digits(value: int) -> int:
    """Return how many digits a value has before its zeros, 3 standing for more than two."""
    return min(3, len(str(abs(int(value))).rstrip("0")) or 1)


def _smoothed(masses: Floats, variances: Floats) -> Floats:
    """Return masses along the scale, smoothed where they do not stand out; where there is nothing, nothing."""
    place = np.arange(len(masses))
    kernel = np.exp(-0.5 * ((place[:, None] - place) / _SMOOTH) ** 2) * (masses > 0)
    curve = (kernel @ masses) / np.maximum(kernel.sum(1), 1e-9)
    apart = masses - curve
    kept = np.maximum(0.0, 1 - 6 * variances / np.maximum(apart**2, 1e-9))
    return np.where(masses > 0, np.maximum(curve + apart * kept, 0), masses)


def _runs(counts: Floats, noise: float, aside: Ints) -> Floats:
    """Return a piecewise constant curve along each run between cells set aside, zero where it is not clear.

    What is not clear here is counted again in blocks (:mod:`doublure.methods.statistics.tables.tails`).
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


def constant_pieces(scaled: Floats, *, among: int = 0) -> Ints:
    """Return the piece of each cell: the partition into intervals in which a constant explains the counts best.

    Exact, by dynamic programming (the Potts functional: Boysen et al. 2009, Annals of Statistics 37).

    Args:
        scaled: ``(n,)`` noisy counts, in deviations of their noise.
        among: Of how many cells these are some, if not all.
    """
    size, price = len(scaled), _PRICE * math.log(max(2, among or len(scaled)))
    sums = np.concatenate([[0.0], np.cumsum(scaled)])
    best, since = np.zeros(size + 1), np.zeros(size + 1, dtype=np.int64)
    for end in range(1, size + 1):
        gains = best[:end] + (sums[end] - sums[:end]) ** 2 / (end - np.arange(end)) - price
        since[end] = int(np.argmax(gains))
        best[end] = gains[since[end]]
    piece, end, number = np.zeros(size, dtype=np.int64), size, 0
    while end > 0:
        piece[since[end] : end] = number
        end, number = int(since[end]), number + 1
    return number - 1 - piece
