"""Mean of simple curves through a column's counts, which stands in for the one that fits noise best.

A curve is normal on the scale of public cells, as log-normal numbers are on a scale of decades, with a width on either
side of its peak, or all of it is in one cell. Curves are averaged over peaks and widths by how well each explains the
counts (model averaging: Hoeting et al. 1999, Statistical Science 14). Cells that stand out by themselves, such as zero,
are left out: few other rows say nothing of where most are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import optimize, special

Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]
Flags: TypeAlias = npt.NDArray[np.bool_]

FARTHER = 2.0
"""Rate of a rise outward: the odds are 1 to k² that farther rows add k times as much to the mean as nearer ones."""
LEAST, LARGEST = 1e-9, 30.0
"""Least rows and masses, and the largest logarithm of a ratio."""
_ALONE = 4.0
"""Deviations by which a cell exceeds its neighbours if it is left out of simple curves."""
_PEAKS, _NARROW = 40, np.array([0.0, 0.0125, 0.025, 0.05, 0.1, 0.2, 0.4, 0.8])
"""Most peaks, and one over their widths in cells: from even over all cells to hardly more than one."""
_OFF = 1e-3


@dataclass(frozen=True, kw_only=True, eq=False)
class AverageCurve:
    """The mean of simple curves.

    Attributes:
        density: ``(cells,)`` its logarithm, up to a constant.
        alone: ``(cells,)`` whether a cell stands out by itself, and is left out.
        others: Chance that there are rows in other cells.
    """

    density: Floats
    alone: Flags
    others: float


@dataclass(frozen=True, kw_only=True, eq=False)
class CountedSpans:
    """Noisy counts of runs of cells.

    Attributes:
        inside: ``(R, cells)`` whether a cell lies in each.
        counts: ``(R,)``.
        precision: ``(R,)`` one over the variance of their noise.
    """

    inside: Flags
    counts: Floats
    precision: Floats


class SimpleCurves:
    """The simple curves over a column's public cells.

    Args:
        widths: ``(cells,)`` of cells, on the scale on which they are even.
        middle: ``(cells,)`` distance of their middles from zero.
        tapers: Whether values far from the others are expected to be ever rarer.
        scale: ``(cells,)`` logarithm of their common widths, if numbers have both signs; None otherwise.
    """

    def __init__(self, widths: Floats, middle: Floats, *, tapers: bool, scale: Floats | None) -> None:
        self._widths, self._middle, self._tapers, self._scale = widths, middle, tapers, scale
        self._size = np.log(np.maximum(middle, 1.0))

    def _curves(self) -> tuple[Floats, Floats]:
        """Return all curves ``(m, cells)``, megabytes that are not kept, and logarithms ``(m,)`` of their priors."""
        cells, scale = len(self._widths), self._scale
        single = cells if self._tapers else 0  # one width more: all rows in one cell, whichever
        curves = _simple(cells, single)
        if scale is not None:
            curves = np.vstack([curves[: len(curves) - single] * np.exp(scale - scale.max()), curves])
        peaked = len(curves) - single
        prior = np.full(len(curves), -math.log(peaked))
        prior[peaked:] = -math.log(len(_NARROW) * cells)
        return curves, prior

    def average(self, seen: Floats, precision: Floats, spans: CountedSpans, *, drawn: bool) -> AverageCurve:
        """Return the mean of the curves, weighted by how well each explains the counts of cells and spans.

        Args:
            seen: ``(cells,)`` noisy counts of cells.
            precision: ``(cells,)`` one over the variances of their noise; 0 if a cell was not counted.
            spans: Counts of several cells together.
            drawn: Whether rows are drawn by the mean; otherwise it says where to look for them.
        """
        noise = 1 / np.sqrt(np.maximum(precision, LEAST))
        beside = np.maximum(np.maximum(np.append(seen[1:], 0.0), np.append(0.0, seen[:-1])), 0.0)
        alone = (seen - beside > _ALONE * noise) & (seen > 2 * beside)
        curves, prior = self._curves()
        widths = self._widths * ~alone
        if alone.any():
            some = curves @ widths > 0
            curves, prior = curves[some], prior[some]
        # Cells that stand out are known by themselves, and taken off, where they are counted together with others.
        rest = spans.counts - spans.inside @ np.where(alone, seen, 0.0)
        known = 1 / (1 / spans.precision + spans.inside @ np.where(alone, noise**2, 0.0))
        weight = np.where(alone, 0.0, precision)
        # All that is summed of a curve is summed at once: the sums are linear in it, but for those of its squares.
        each = np.stack([np.ones(len(widths)), widths, widths * weight * seen, widths * np.exp(self._size),
                         widths * self._size])  # fmt: skip
        whole, rows, likely, means, sizes, *within = (curves @ np.vstack([each, widths * spans.inside]).T).T
        means, sizes, inside = means / rows, sizes / rows, np.reshape(within, (-1, len(rows))) / rows
        # The number of rows is integrated out: it is positive, else unknown.
        precise = np.maximum((curves**2) @ (widths**2 * weight) / rows**2 + known @ inside**2, LEAST)
        likely = likely / rows + (known * rest) @ inside
        explained = likely**2 / precise / 2 - np.log(precise) / 2 + special.log_ndtr(likely / np.sqrt(precise)) + prior
        rows = np.maximum(likely / precise, 1 / np.sqrt(precise))
        if self._tapers:
            explained -= _far_rows(means, sizes, rows * means, float(seen[alone] @ self._middle[alone]))
        chances = np.exp(explained - explained.max())
        chances /= chances.sum()
        if self._tapers and drawn:
            chances = _balanced(chances, means)
        density = np.log(np.maximum((chances / whole) @ curves, math.exp(-LARGEST)))
        others = _some_rows(explained, rows, float(seen[alone].sum())) if alone.any() else 1.0
        return AverageCurve(density=density, alone=alone, others=others)


def _far_rows(means: Floats, sizes: Floats, added: Floats, nearer: float) -> Floats:
    """Return the loss ``(m,)`` of curves whose farther rows add more than nearer ones: their own, or others.

    Args:
        means: ``(m,)`` mean sizes.
        sizes: ``(m,)`` means of their logarithms.
        added: ``(m,)`` rows times their mean value.
        nearer: The same of cells that stand out; not positive if they are zero alone.
    """
    found: Floats = FARTHER * (np.log(means) - sizes)
    return found + FARTHER * np.maximum(np.log(added / nearer), 0.0) if nearer > 0 else found


def _some_rows(explained: Floats, rows: Floats, apart: float) -> float:
    """Return the chance that there are rows beside those that stand out.

    A priori there are none or some, and if some, a hundred as likely as ten: the density is one over rows, from one up
    to all. So Laplace's method gives the odds.

    Args:
        explained: ``(m,)`` logarithms of each curve's likelihood times prior, rows integrated out.
        rows: ``(m,)`` the likely rows by each, at least their noise.
        apart: Rows that stand out.
    """
    most = math.log(max(apart + float(rows.max()), math.e))
    odds = special.logsumexp(explained - np.log(rows)) + math.log(2 * math.pi) / 2 - math.log(most)
    return float(special.expit(odds))


@lru_cache(maxsize=4)
def _simple(cells: int, single: int) -> Floats:
    """Return every curve with a peak ``(m, cells)``, then those of one cell; the same for columns of as many cells.

    They are megabytes, and read-only.
    """
    place, peaks = np.arange(cells), np.unique(np.linspace(0, cells - 1, _PEAKS).astype(int))
    fall = np.maximum(place - peaks[:, None], 0)[:, None, None] * _NARROW[None, :, None, None]
    rise = np.maximum(peaks[:, None] - place, 0)[:, None, None] * _NARROW[None, None, :, None]
    peaked = np.exp(-((fall**2 + rise**2) / 2).reshape(-1, cells))
    curves: Floats = np.vstack([peaked, np.eye(single, cells)])
    curves.flags.writeable = False
    return curves


def _balanced(chances: Floats, means: Floats) -> Floats:
    """Return chances ``(m,)`` of curves by which the mean of what is drawn is off by the least factor.

    Where rows may be tens or thousands, the average of both is thousands: off by a hundred or by two. The squared
    logarithm of that factor is least at the geometric mean. Chances times means to a power from -1 to 0 have it, since
    that of -1 gives the harmonic mean, and that of 0 the arithmetic one.

    Args:
        chances: ``(m,)``, adding up to 1.
        means: ``(m,)`` of the curves, positive.
    """
    logs = np.log(means) - chances @ np.log(means)

    def tilted(power: float) -> Floats:
        weights = chances * np.exp(power * logs)
        shares: Floats = weights / weights.sum()
        return shares

    def excess(power: float) -> float:
        return math.log(float(tilted(power) @ np.exp(logs)))

    return tilted(optimize.brentq(excess, -1.0, 0.0)) if excess(0.0) > _OFF else chances
