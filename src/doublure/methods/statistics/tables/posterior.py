"""Posterior mode of a number's distribution, given all noisy counts of its column together.

The rows of a leaf l are x_l = w_l · exp(g_c(l) + u_l), where w_l = Σ_k (integers of lattice k in l) · exp(v_k):

- **g** is the logarithm of the density along the public cells. It is smooth and turns seldom (a Gaussian and an
  exponential prior on second differences), turns up more seldom still, and rises far from other rows hardly ever.
- **u** is a leaf's own deviation. It is sparse: an exponential prior, so that ratios have a power law as their prior.
- **v** is the pull of round values: multiples of 100, 10, 1 and so on, over the whole column. Also exponential.

Every count is the sum of some leaves plus Gaussian noise of known variance. Where counts say little, the mode falls
back to the smooth curve, and values within a cell to their lattices' weights. Where they say hardly anything, the mode
gives way to a mean of simple curves. The mode is found by Gauss-Newton steps with a line search; own deviations are
eliminated within cells, sums across cells by their multipliers.

The parts have their sources in Eilers and Marx (1996, Statistical Science 11), smoothing by differences; Tibshirani
(2014, Annals of Statistics 42), few turns; Hay et al. (2010, PVLDB 3), counts of several levels made consistent; and
Tibshirani (1996, J. R. Stat. Soc. B 58), sparse deviations.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import linalg, special

from doublure.methods.statistics.binning import noise_maximum
from doublure.methods.statistics.tables.simple_curves import (
    FARTHER,
    LARGEST,
    LEAST,
    AverageCurve,
    CountedSpans,
    SimpleCurves,
)
from doublure.schema.columns import IntegerDomain
from doublure.support import lattices

Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]

_SMOOTH = 3.0
"""Precision of second differences: from cell to cell the log density bends by 1/√3 at one standard deviation."""
_OWN = 1.5
"""Rate of an own deviation: a leaf a hundred times as dense as its neighbours is a thousand times rarer a priori."""
_APART_AT = 4.0
"""Deviation from which a leaf is apart from the curve: farther ones cost no more, as sentinels such as 99,999 are."""
_ROUND = 0.5
"""Rate of a lattice's pull: people round, and a factor of a hundred costs as little as evidence of two deviations."""
_NEAR, _CORNER = 0.1, 0.02
"""Sizes up to which an exponential prior is rounded off, of deviations and of second differences."""
_RIDGE = 1e-6
_KERNEL, _FALL = 2.0, 0.5
"""Deviation in cells of the kernel that smooths the start, and the start's fall beyond rows that it shows."""
_ROUNDS, _HALVINGS, _BIRTHS, _RISES = 30, 12, 3, 2
_FARTHEST = 3.0
_STILL, _FLAT, _WOLFE = 0.02, 1e-4, 1e-4
_DAMPING, _MOST_DAMPING, _LEAST_DAMPING = 1e-4, 1e6, 1e-8


@dataclass(frozen=True, kw_only=True, eq=False)
class _Point:
    """The unknowns, and what follows from them.

    Attributes:
        density: ``(cells,)`` g.
        own: ``(n,)`` u.
        pull: ``(K,)`` v.
        rows: ``(n, K)`` rows of each leaf on each lattice.
        mass: ``(n,)`` rows of each leaf.
        apart: ``(n,)`` rows less the leaf's own count.
        cells_apart: ``(cells,)`` the same of cells.
        sums_apart: ``(R,)`` the same of sums across cells: groups, then lattices.
        curve: The loss of the density by its priors, its gradient, and its curvature as bands.
        loss: The negative log posterior, up to a constant.
    """

    density: Floats
    own: Floats
    pull: Floats
    rows: Floats
    mass: Floats
    apart: Floats
    cells_apart: Floats
    sums_apart: Floats
    curve: tuple[float, Floats, Floats]
    loss: float


@dataclass(frozen=True, kw_only=True, eq=False)
class _System:
    """The linear system of one Gauss-Newton step, with own deviations eliminated.

    Attributes:
        matrix: ``(cells + K + R, ...)`` of density, pulls, and multipliers of sums.
        right: Its right side.
        slope: ``(cells + K,)`` the gradient of all but own deviations.
        own_slope: ``(n,)`` the gradient of own deviations.
        solve_own: Multiplies by the inverse of the own deviations' curvature.
        by_cell: ``(n,)`` curvature between each own deviation and its cell's density.
        by_lattice: ``(n, K)`` the same for pulls.
        by_sum: ``(n, R)`` derivative of each sum by each own deviation.
        sums: ``(R, cells + K)`` derivative of each sum by density and pulls.
    """

    matrix: Floats
    right: Floats
    slope: Floats
    own_slope: Floats
    solve_own: Callable[[Floats], Floats]
    by_cell: Floats
    by_lattice: Floats
    by_sum: Floats
    sums: Floats


class ColumnPosterior:
    """All noisy counts of a column, and the most likely rows of its leaves.

    Args:
        domain: The integers that stand for the column's values.
        starts: ``(n,)`` first integer of each leaf; every public cell begins one.
        weights: What values count as by their hour; None: all hours are equally likely.

    Attributes:
        steps: ``(K,)`` steps of the nested lattices.
        mass: ``(n,)`` the most likely rows of each leaf; before :meth:`fit` nothing.
        pulls: ``(K,)`` how much likelier a value of each lattice is than its neighbours, up to a factor.
    """

    def __init__(self, domain: IntegerDomain, starts: Ints, weights: lattices.PeriodWeights | None = None) -> None:
        self.steps = domain.nested_steps()
        cells = domain.initial_partition()
        self._starts = starts
        self._cell = np.searchsorted(cells, starts, side="right") - 1
        self._first = np.searchsorted(starts, cells)
        ends = np.append(starts[1:] - 1, domain.last)
        self._several = ends > starts
        self._members = lattices.members(starts, ends, self.steps)
        widths = np.diff(np.append(cells, domain.last + 1)).astype(np.float64)
        weighted = widths
        self._balance = np.ones(len(self.steps))
        if weights is not None:  # an integer of a busy hour counts as several
            self._members, self._balance = (
                np.maximum(weights.classes(starts, ends), LEAST * self._members),
                weights.pulls,
            )
            weighted = self._in_cells(self._members.sum(1))
        even = _even_widths(widths)
        self._base = -np.log(even)[self._cell]
        self._price = math.log(len(starts))  # of one leaf, any of a column's, far above the curve
        self._tapers = domain.tapers and len(cells) > 2
        middle = np.abs(cells + (widths - 1) / 2)
        self._size = np.log(np.maximum(middle, 1.0))
        self._two_sided = self._tapers and domain.first < 0 < domain.last
        # Widths of cells shrink towards zero and grow again: across it the density of a value is smooth, not a cell's.
        self._scale = np.log(even) if self._two_sided else np.zeros(len(cells))
        self._side = np.where(cells < 0, -1.0, 1.0)
        self._outward, size = np.zeros(len(cells) - 1), len(cells)
        self._average_curve = AverageCurve(density=np.zeros(size), alone=np.zeros(size, dtype=bool), others=1.0)
        self._cell_widths = weighted / even
        own_scale = self._scale if self._two_sided else None
        self._curves = SimpleCurves(self._cell_widths, middle, tapers=self._tapers, scale=own_scale)
        self._whole = np.bincount(self._cell) == 1  # cells that are a leaf
        count = len(starts)
        self._own_counts, self._own_precision = np.zeros(count), np.zeros(count)
        self._cell_counts, self._cell_precision = np.zeros(size), np.zeros(size)
        self._ranges, self._range_counts = np.zeros((0, 2), np.int64), np.zeros(0)
        self._range_precision = np.zeros(0)
        self._lattice_counts, self._lattice_precision = np.zeros(0), np.zeros(0)
        self._unknown: tuple[Floats, Floats, Floats] = np.zeros(size), np.zeros(count), np.zeros(len(self.steps))
        self.mass, self.pulls = np.zeros(count), np.ones(len(self.steps))
        self._begun = False

    # -- what was counted --------------------------------------------------------------------------------------------

    def see_cells(self, counts: Floats, variances: Floats | float) -> None:
        """Take the counts ``(cells,)`` of all public cells, and their noise's variances."""
        variances = np.broadcast_to(variances, counts.shape)
        self._add_own(self._first[self._whole], counts[self._whole], variances[self._whole])
        self._cell_counts = np.where(self._whole, 0.0, counts)
        self._cell_precision = np.where(self._whole, 0.0, 1 / variances)

    def see_lattices(self, counts: Floats, variances: Floats | float) -> None:
        """Take the counts ``(K,)`` of the values of each lattice, and their noise's variances."""
        self._lattice_counts, self._lattice_precision = counts, np.broadcast_to(1 / variances, counts.shape)

    def see_ranges(self, starts: Ints, ends: Ints, counts: Floats, variances: Floats | float) -> None:
        """Take the counts ``(m,)`` of ranges of integers, each of one leaf or several.

        Args:
            starts: ``(m,)`` the first integer of each.
            ends: ``(m,)`` the last.
            counts: ``(m,)``.
            variances: ``(m,)`` of their noise.
        """
        first = np.searchsorted(self._starts, starts)
        last = np.searchsorted(self._starts, ends, side="right")
        alone, variances = last - first == 1, np.broadcast_to(variances, counts.shape)
        self._add_own(first[alone], counts[alone], variances[alone])
        self._ranges = np.vstack([self._ranges, np.stack([first, last], axis=1)[~alone]])
        self._range_counts = np.append(self._range_counts, counts[~alone])
        self._range_precision = np.append(self._range_precision, 1 / variances[~alone])

    def _add_own(self, leaves: Ints, counts: Floats, variances: Floats) -> None:
        """Combine counts of single leaves with those before, by precision."""
        before, more = self._own_precision[leaves], 1 / variances
        self._own_counts[leaves] = (self._own_counts[leaves] * before + counts * more) / (before + more)
        self._own_precision[leaves] = before + more

    # -- the mode ----------------------------------------------------------------------------------------------------

    def fit(self) -> None:
        """Find the most likely rows of each leaf, given all counts so far."""
        self._average_curve = self._average()
        if not self._begun:
            self._begin()
        self._outward = self._directions(int(np.argmax(self._unknown[0])))
        point = self._descend(self._point(*self._unknown))
        # Rows on the far side of zero, or in one cell, are lost where the way to them leads through empty cells.
        if self._two_sided or self._overlooked(point).any():
            simple = self._descend(self._simple(point))
            point = simple if simple.loss < point.loss else point
        for _ in range(_BIRTHS):
            born, number = self._with_births(point)
            if born.loss > point.loss - number * self._price or not number:
                break
            point = born
        for fewer in self._without_rises(point):
            tried = self._descend(fewer, rounds=_ROUNDS // 2)
            point = tried if tried.loss < point.loss else point
        self._unknown = point.density, point.own, point.pull
        held = self._believed(point)
        self.mass = held * point.mass + (1 - held) * self._simple(point, self._average_curve.others).mass
        self.pulls = np.exp(held * point.pull) * self._balance

    def _believed(self, point: _Point) -> float:
        """Return the weight of a mode against the mean of simple curves, from how much better it explains all counts.

        Akaike's weights of two models (Burnham and Anderson 2002, section 2.9). A mode's parameters are its turns, own
        deviations and pulls that are not zero (Zou et al. 2007, Annals of Statistics 35). Which leaves deviate is
        chosen, too, and costs the logarithm of the ways to choose as many: the largest of a thousand noises is no
        value that repeats (Foster and Stine 2004, J. Am. Stat. Assoc. 99).
        """
        turns = np.abs(self._bend(point.density)) > _CORNER
        own = (np.abs(point.own) > _NEAR) & ~self._average_curve.alone[self._cell]
        parameters = 2 + int(turns.sum()) + int(own.sum()) + int((np.abs(point.pull) > _NEAR).sum())
        leaves, deviating = len(self._starts), int(own.sum())
        chosen = special.gammaln(leaves + 1) - special.gammaln([deviating + 1, leaves - deviating + 1]).sum()
        gain = self._missed(self._simple(point)) - self._missed(point) - parameters - chosen
        return float(special.expit(gain))

    def _simple(self, point: _Point, others: float = 1.0) -> _Point:
        """Return the mean of simple curves with a point's rows; cells that stand out by themselves keep theirs."""
        cell, members, held = self._cell, self._members.sum(1), self._in_cells(point.mass)
        kept = np.where(self._average_curve.alone, held, 0.0) + self._overlooked(point)
        kept *= min(1.0, float(held.sum() / kept.sum())) if kept.any() else 1.0
        shares = float(
            (np.exp(self._base + self._average_curve.density[cell]) * members)[~self._average_curve.alone[cell]].sum()
        )
        rest = others * max(float(held.sum() - kept.sum()), LEAST)
        density = self._average_curve.density + math.log(rest / max(shares, LEAST))
        rows = np.maximum(kept[cell] * self._single_leaves(kept, point), LEAST)
        own = np.where(self._average_curve.alone[cell], np.log(rows / members) - self._base - density[cell], 0.0)
        return self._point(density, own, np.zeros(len(self.steps)))

    def _single_leaves(self, kept: Floats, point: _Point) -> Floats:
        """Return each leaf's share ``(n,)`` of its cell's rows: a point's, or the chance that it has all of them."""
        held = self._in_cells(point.mass)
        rows = kept[self._cell]
        logs = self._own_precision * rows * (self._own_counts - rows / 2)
        logs -= np.maximum.reduceat(logs, self._first)[self._cell]
        chance = np.exp(logs) * self._members.sum(1)
        chance /= self._in_cells(chance)[self._cell]
        missed = self._overlooked(point) > 0
        return np.where(missed[self._cell], chance, point.mass / np.maximum(held, LEAST)[self._cell])

    def _overlooked(self, point: _Point) -> Floats:
        """Return rows ``(cells,)`` of cells that stand out, where a point has less than half of them."""
        seen, held = self._cells_seen()[0], self._in_cells(point.mass)
        return np.where(self._average_curve.alone & (held < seen / 2), seen - held, 0.0)

    def _missed(self, point: _Point) -> float:
        """Return the part of the loss that counts say."""
        sums = self._sums_seen()[1] @ point.sums_apart**2
        return float(self._own_precision @ point.apart**2 + self._cell_precision @ point.cells_apart**2 + sums) / 2

    def variances(self, groups: Ints) -> Floats:
        """Return the posterior variance ``(m,)`` of the rows of groups of leaves, in Laplace's approximation.

        Args:
            groups: ``(n,)`` the group of each leaf, ascending.
        """
        point = self._point(*self._unknown)
        system = self._system(point, 0.0)
        own, rest = self._sums_of(point, group_bounds(groups))
        solved = system.solve_own(own)
        right = np.vstack([
            rest.T - self._over_cells(system.by_cell[:, None] * solved, system.by_lattice.T @ solved),
            -system.by_sum.T @ solved,
        ])  # fmt: skip
        found = linalg.solve(system.matrix, right, assume_a="sym", check_finite=False)
        variances: Floats = np.maximum((own * solved).sum(0) + (right * found).sum(0), 0.0)
        return variances

    def _curve(self, density: Floats) -> tuple[float, Floats, Floats]:
        """Return the loss of a density by its priors, its gradient, and its curvature as bands ``(3, cells)``.

        Besides smoothness, two quantities are unlikely above zero: second differences, and how far rows times their
        value rise from a cell to the next outward one.
        """
        bend = self._bend(density)
        loss, pull, bands = _SMOOTH / 2 * float(bend @ bend), _SMOOTH * bend, np.full(len(bend), _SMOOTH)
        gradient, curvature = np.zeros(len(density)), np.zeros((3, len(density)))
        # A turn may be at any cell. Most numbers turn downwards; one that turns up has rows of another kind.
        turn = math.log(max(2, len(density)))
        for sign, rate in ((1.0, 2 * turn if self._tapers else turn), (-1.0, turn / 2)):
            cost, slope, curve = _above_zero(sign * bend, rate)
            loss, pull, bands = loss + cost, pull + sign * slope, bands + curve
        if self._tapers:
            outward = self._outward
            cost, slope, curve = _above_zero(outward * np.diff(density + self._size), FARTHER)
            loss, slope, curve = loss + cost, slope * outward, curve * outward**2
            gradient[1:] += slope
            gradient[:-1] -= slope
            curvature[0, 1:] += curve
            curvature[0, :-1] += curve
            curvature[1, :-1] -= curve
        for place, factor in enumerate((1.0, -2.0, 1.0)):
            here = slice(place, len(density) - 2 + place)
            gradient[here] += factor * pull
            curvature[0, here] += factor**2 * bands
        count = len(bend)
        curvature[1, :count] -= 2 * bands
        curvature[1, 1 : count + 1] -= 2 * bands
        curvature[2, :count] += bands
        return loss + _RIDGE / 2 * float(density @ density), gradient + _RIDGE * density, curvature

    def _bend(self, density: Floats) -> Floats:
        return np.diff(density - self._scale, 2)

    def _directions(self, body: int) -> Floats:
        """Return 1 from a cell to its next ``(cells - 1,)`` where that leads away from most rows, -1 towards them.

        Where numbers have both signs, values beyond zero that are no larger than most are not farther: 0.
        """
        place = np.arange(1, len(self._size))
        outward = np.where(place > body, 1.0, -1.0)
        if self._two_sided:
            side = self._side[1:]
            beyond = side != self._side[body]
            nearer = np.minimum(self._size[1:], self._size[:-1]) < self._size[body]
            outward = np.where(beyond, np.where(nearer, 0.0, side), outward)
        return outward

    def standing_out(self, noise: float) -> npt.NDArray[np.bool_]:
        """Return which leaves ``(n,)`` of several values have rows of their own that noise alone hardly reaches.

        Args:
            noise: Standard deviation of a leaf's count.
        """
        own = self.mass * -np.expm1(-np.maximum(self._unknown[1], 0.0))
        clear: npt.NDArray[np.bool_] = own > noise_maximum(len(own)) * noise
        clear &= self._several
        return clear

    def _cells_seen(self) -> tuple[Floats, Floats]:
        """Return the counts ``(cells,)`` of public cells, and their precision."""
        seen, precision = self._cell_counts.copy(), self._cell_precision.copy()
        leaf = self._first[self._whole]
        seen[self._whole], precision[self._whole] = self._own_counts[leaf], self._own_precision[leaf]
        return seen, precision

    def _average(self) -> AverageCurve:
        """Return the mean of simple curves, by all counts so far."""
        first, last = self._cell[self._ranges[:, :1]], self._cell[np.maximum(self._ranges[:, 1:] - 1, 0)]
        place = np.arange(len(self._first))
        spans = CountedSpans(
            inside=(place >= first) & (place <= last), counts=self._range_counts, precision=self._range_precision
        )
        everything = bool((np.diff(self._ranges, axis=1) == len(self._starts)).any())
        return self._curves.average(*self._cells_seen(), spans, drawn=everything)  # all rows are known last

    def _begin(self) -> None:
        """Start from a smoothed curve through the cells' counts, as far out as it shows rows."""
        seen, precision = self._cells_seen()
        known, place = precision > 0, np.arange(len(seen))
        near = np.exp(-0.5 * ((place[:, None] - place) / _KERNEL) ** 2) * known
        curve = (near @ seen) / np.maximum(near.sum(1), LEAST)
        noise = np.sqrt(near**2 @ (1 / np.maximum(precision, LEAST))) / np.maximum(near.sum(1), LEAST)
        clear = np.flatnonzero(known & (curve > noise_maximum(len(seen)) * noise))
        rows = max(float(seen.sum()), float(noise.max()))
        density = self._average_curve.density + math.log(rows)
        if len(clear):
            first, last = clear[0], clear[-1]
            level = np.log(np.maximum(curve, noise) / self._cell_widths)
            beyond = np.maximum(place - last, 0) + np.maximum(first - place, 0)
            density = level[np.clip(place, first, last)] - _FALL * beyond
        self._unknown = density, *self._unknown[1:]
        self._begun = True

    def _with_births(self, point: _Point) -> tuple[_Point, int]:
        """Return the mode with new own deviations, where a leaf's count is far above its rows, and their number."""
        counts, mass = self._own_counts, np.maximum(point.mass, LEAST)
        ratio = np.log(np.maximum(counts, 1.0) / mass)
        gain = 0.5 * self._own_precision * (counts - point.mass) ** 2 - _OWN * np.minimum(ratio, _APART_AT)
        born = (counts > point.mass) & (gain > self._price / 2) & (point.own < 0.5)
        if not born.any():
            return point, 0
        own = point.own + np.where(born, ratio, 0.0)
        return self._descend(self._point(point.density, own, point.pull)), int(born.sum())

    def _without_rises(self, point: _Point) -> Iterator[_Point]:
        """Yield starts in which the density falls on where it flattens or rises again: a rise is a mode of its own.

        On either side of most rows, the outermost rise is tried first.
        """
        if not (self._tapers and len(self._range_counts)):
            return
        body = int(np.argmax(self._in_cells(point.mass)))
        for side in (1, -1):
            density = point.density[::side]
            start = body if side == 1 else len(density) - 1 - body
            bend = self._bend(point.density)[::side]
            rising = np.flatnonzero((bend > _CORNER) & (np.arange(1, len(density) - 1) > start)) + 1
            runs = np.split(rising, np.flatnonzero(np.diff(rising) > 1) + 1) if len(rising) else []
            dearest = sorted(runs, key=lambda run: -float(bend[run - 1].sum()))[:_RISES]
            for place in sorted((int(run[0]) for run in dearest), reverse=True):
                fallen, own = density.copy(), point.own.copy()
                slope = min(density[place] - density[place - 1], 0.0)
                fallen[place:] = np.minimum(density[place:], density[place] + slope * np.arange(len(density) - place))
                beyond = (self._cell > body) if side == 1 else (self._cell < body)
                cell = self._cell if side == 1 else len(density) - 1 - self._cell
                own[beyond & (cell >= place)] = 0.0
                yield self._point(fallen[::side], own, point.pull)

    def _descend(self, point: _Point, *, rounds: int = _ROUNDS) -> _Point:
        """Return the mode near a point, or as far as so many rounds lead."""
        damping = _DAMPING
        for _ in range(rounds):
            if damping > _MOST_DAMPING:
                break
            (density, own, pull), slope = self._step(point, damping)
            most = max(float(np.abs(each).max()) for each in (density, own, pull))
            length, found = min(1.0, _FARTHEST / max(most, LEAST)), None
            for _ in range(_HALVINGS if slope < 0 else 0):
                tried = self._point(
                    point.density + length * density, point.own + length * own, point.pull + length * pull
                )
                if tried.loss <= point.loss + _WOLFE * length * slope:
                    found = tried
                    break
                length /= 2
            if found is None:
                damping *= 100
                continue
            gain, point = point.loss - found.loss, found
            damping = max(damping / 5, _LEAST_DAMPING)
            if gain < (_STILL if length == 1.0 else _FLAT):
                break
        return point

    # -- inside ------------------------------------------------------------------------------------------------------

    def _in_cells(self, leaves: Floats) -> Floats:
        """Return values of leaves ``(n, …)`` added up by cell."""
        found: Floats = np.add.reduceat(leaves, self._first, axis=0)
        return found

    def _over_cells(self, by_cell: Floats, by_lattice: Floats) -> Floats:
        """Return ``(cells + K, m)`` of values of leaves ``(n, m)``, added up by cell, above those of lattices."""
        return np.vstack([self._in_cells(by_cell), by_lattice])

    def _point(self, density: Floats, own: Floats, pull: Floats) -> _Point:
        scale = np.exp(np.clip(self._base + density[self._cell] + own, -LARGEST, LARGEST))
        rows = scale[:, None] * (self._members * np.exp(pull))
        mass = rows.sum(1)
        apart, cells_apart = mass - self._own_counts, self._in_cells(mass) - self._cell_counts
        known, precision = self._sums_seen()
        sums = np.concatenate([self._in_ranges(mass), rows.sum(0)])[: len(known)]
        sums_apart, curve = sums - known, self._curve(density)
        loss = (
            (self._own_precision @ apart**2 + self._cell_precision @ cells_apart**2 + precision @ sums_apart**2) / 2
            + curve[0] + _RIDGE / 2 * float(pull @ pull)
            + _OWN * _APART_AT * float((math.exp(-_NEAR / _APART_AT) - np.exp(-np.hypot(own, _NEAR) / _APART_AT)).sum())
            + _ROUND * float((np.hypot(pull, _NEAR) - _NEAR).sum())
        )  # fmt: skip
        return _Point(
            density=density, own=own, pull=pull, rows=rows, mass=mass, apart=apart, cells_apart=cells_apart,
            sums_apart=sums_apart, curve=curve, loss=float(loss),
        )  # fmt: skip

    def _in_ranges(self, mass: Floats) -> Floats:
        before = np.append(0.0, np.cumsum(mass))
        found: Floats = before[self._ranges[:, 1]] - before[self._ranges[:, 0]]
        return found

    def _sums_seen(self) -> tuple[Floats, Floats]:
        """Return the counts ``(R,)`` of groups, then of lattices, and their precisions."""
        return (
            np.concatenate([self._range_counts, self._lattice_counts]),
            np.concatenate([self._range_precision, self._lattice_precision]),
        )

    def _sums_of(self, point: _Point, ranges: Ints) -> tuple[Floats, Floats]:
        """Return derivatives of the rows of ranges of leaves: by own deviations ``(n, m)``, by the others ``(m, …)``.

        Args:
            point: The unknowns.
            ranges: ``(m, 2)`` the first leaf of each, and the one after its last.
        """
        place = np.arange(len(point.mass))
        inside = (place >= ranges[:, :1]) & (place < ranges[:, 1:])
        own = inside * point.mass
        return own.T, np.hstack([self._in_cells(own.T).T, inside @ point.rows])

    def _system(self, point: _Point, damping: float) -> _System:
        mass, rows, cell = point.mass, point.rows, self._cell
        cells, count = len(self._first), len(self.steps)
        away = np.hypot(point.own, _NEAR)
        steep, pulled = _OWN * np.exp(-away / _APART_AT) / away, _ROUND / np.hypot(point.pull, _NEAR)
        precision, cell_precision = self._own_precision, self._cell_precision
        # Own deviations: diagonal, and one term a cell, whose count sums its leaves (Sherman-Morrison).
        curve = precision * mass**2 + steep * (1 + damping) + damping * cell_precision[cell] * mass**2
        gain = cell_precision / (1 + cell_precision * self._in_cells(mass**2 / curve))

        def solve_own(values: Floats) -> Floats:
            tall = (slice(None), *[None] * (values.ndim - 1))
            solved = values / curve[tall]
            shared = self._in_cells(mass[tall] * solved) * gain[tall]
            found: Floats = solved - (mass / curve)[tall] * shared[cell]
            return found

        cell_mass, cell_rows = self._in_cells(mass), self._in_cells(rows)
        by_cell = mass * (precision * mass + (cell_precision * cell_mass)[cell])
        by_lattice = mass[:, None] * (precision[:, None] * rows + (cell_precision[:, None] * cell_rows)[cell])
        own_slope = mass * (precision * point.apart + (cell_precision * point.cells_apart)[cell]) + steep * point.own
        by_sum, sums = self._sums_of(point, self._ranges)
        if len(self._lattice_counts):
            by_sum = np.hstack([by_sum, rows])
            sums = np.vstack([sums, np.hstack([cell_rows.T, np.diag(rows.sum(0))])])
        _, sum_precision = self._sums_seen()
        _, bent, curvature = point.curve
        slope = np.concatenate([
            self._in_cells(mass * precision * point.apart) + cell_precision * cell_mass * point.cells_apart + bent,
            rows.T @ (precision * point.apart) + cell_rows.T @ (cell_precision * point.cells_apart)
            + (pulled + _RIDGE) * point.pull,
        ])  # fmt: skip
        # Density and pulls: the likelihood's part, the priors', less what own deviations take.
        upper = np.zeros((cells + count, cells + count))
        on = np.arange(cells)
        for off in range(min(3, cells)):
            upper[on[off:], on[: cells - off]] = upper[on[: cells - off], on[off:]] = curvature[off, : cells - off]
        upper[on, on] += self._in_cells(precision * mass**2) + cell_precision * cell_mass**2 + _RIDGE
        upper[cells:, cells:] = (
            rows.T @ (precision[:, None] * rows) + cell_rows.T @ (cell_precision[:, None] * cell_rows)
            + np.diag(pulled + _RIDGE)
        )  # fmt: skip
        every = np.arange(cells + count)
        upper[every, every] *= 1 + damping
        taken_cell, taken_lattice = solve_own(by_cell), solve_own(by_lattice)
        upper[on, on] -= self._in_cells(by_cell * taken_cell)  # other cells' own deviations do not meet
        between = (
            self._in_cells((mass * precision)[:, None] * rows) + (cell_precision * cell_mass)[:, None] * cell_rows
            - self._in_cells(by_cell[:, None] * taken_lattice)
        )  # fmt: skip
        upper[:cells, cells:], upper[cells:, :cells] = between, between.T
        upper[cells:, cells:] -= by_lattice.T @ taken_lattice
        taken, taken_sum = solve_own(own_slope), solve_own(by_sum)
        side = sums - self._over_cells(by_cell[:, None] * taken_sum, by_lattice.T @ taken_sum).T
        lower = -np.diag(1 / sum_precision) - by_sum.T @ taken_sum
        right = np.concatenate([
            self._over_cells((by_cell * taken)[:, None], (by_lattice.T @ taken)[:, None])[:, 0] - slope,
            by_sum.T @ taken - point.sums_apart,
        ])  # fmt: skip
        return _System(
            matrix=np.block([[upper, side.T], [side, lower]]), right=right, slope=slope, own_slope=own_slope,
            solve_own=solve_own, by_cell=by_cell, by_lattice=by_lattice, by_sum=by_sum, sums=sums,
        )  # fmt: skip

    def _step(self, point: _Point, damping: float) -> tuple[tuple[Floats, Floats, Floats], float]:
        """Return a Gauss-Newton step, and the loss's slope along it."""
        system = self._system(point, damping)
        solved = np.linalg.solve(system.matrix, system.right)  # small: pivots by columns take half of symmetric ones
        cells, rest = len(self._first), len(self._first) + len(self.steps)
        density, pull, multipliers = np.split(solved, [cells, rest])
        known = system.by_cell * density[self._cell] + system.by_lattice @ pull + system.by_sum @ multipliers
        own = -system.solve_own(known + system.own_slope)
        moved = system.sums @ solved[:rest] + system.by_sum.T @ own
        slope = system.slope @ solved[:rest] + system.own_slope @ own
        return (density, own, pull), float(slope + (self._sums_seen()[1] * point.sums_apart) @ moved)


def group_bounds(groups: Ints) -> Ints:
    """Return the first leaf ``(m, 2)`` of each group, and the one after its last."""
    first = np.flatnonzero(np.diff(groups, prepend=-1))
    return np.stack([first, np.append(first[1:], len(groups))], axis=1)


def _above_zero(values: Floats, rate: float) -> tuple[float, Floats, Floats]:
    """Return the loss of values by an exponential prior above zero, its slopes, and a bound of its curvatures."""
    rounded = np.hypot(values, _CORNER)
    return rate / 2 * float((rounded + values).sum()), rate / 2 * (values / rounded + 1), rate / 2 / rounded


def _even_widths(widths: Floats) -> Floats:
    """Return the widths ``(cells,)`` that neighbouring cells have in common: rounded ratios make them uneven."""
    logs, place = np.log(widths), np.arange(len(widths))
    around = np.lib.stride_tricks.sliding_window_view(np.pad(logs, 3, constant_values=np.nan), 7)
    around, known = np.sort(around, axis=1), np.minimum(place, 3) + np.minimum(place[::-1], 3) + 1  # NaN comes last
    middle = (around[place, (known - 1) // 2] + around[place, known // 2]) / 2
    near = np.exp(-0.5 * ((place[:, None] - place) / _KERNEL) ** 2)
    found: Floats = np.exp(near @ middle / near.sum(1))
    return found
