"""Bounds, shares and missingness from noisy counts: post-processing of public numbers.

The counts are queries (:mod:`doublure.private.queries.facts`), and their noise is the mechanism's. Results here are
post-processing and free: no function in this file is ever given a record or an exact count. Counts are histograms
wherever one will do. One record then moves one cell by one, so that *both* ends of a column's bounds are read off the
same noisy cells for a single ε.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from doublure.errors import SettingError
from doublure.support.checks import require_priced

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

_FALSE_BOUND = 1e-4  # chance that noise alone moves a bound; such a bound is absurd, so it has to be rare
_FALSE_STEP = 0.01  # chance, at most, that noise alone moves a bound to the next candidate
_CLAMPED_SHARE = 0.01  # share of the records beyond a bound that is not worth a wider one
_EXPONENTS = (-12, 18)  # decades searched when nothing is known; a wide search is cheap (logarithmic)
_EXPONENTS_NEAR = (-6, 1)  # decades searched around a declared magnitude
_SHARE_FLOOR = 1e-3  # share of probability spread evenly, so that no declared category becomes impossible


def detection_limit(*, epsilon: float, max_records: int, beta: float, cells: int = 1) -> int:
    """Return the count that noise alone passes, in any of ``cells`` empty cells, with probability at most ``beta``.

    A public number: a plan may compare it with the size of the data and warn before anything is spent.

    The tail of discrete Laplace noise with a = exp(−ε/max_records) is P(X > t) = a^(t+1) / (1 + a).

    Raises:
        SettingError: An argument is out of range.
    """
    require_priced(epsilon, max_records)
    if not 0 < beta < 1:
        raise SettingError("must lie between 0 and 1", field="beta", remedy="try 0.01")
    rate = epsilon / max_records
    return max(0, math.ceil(math.log(cells / (beta * (1 + math.exp(-rate)))) / rate) - 1)


def is_seen(noisy: int, *, epsilon: float, max_records: int, beta: float = 0.01) -> bool:
    """Return whether a noisy count passes a public threshold, above which there is something to be counted.

    ==============================  ================================================================
    nothing, or no record at all    true with probability at most ``beta``
    t or more                       true with probability at least 1/2, t = :func:`detection_limit` + 1
    ==============================  ================================================================

    Args:
        noisy: The count.
        epsilon: The ε spent on it.
        max_records: Most records of one unit.
        beta: Chance of a false alarm.

    Raises:
        SettingError: ``epsilon``, ``max_records`` or ``beta`` is out of range.
    """
    return noisy > detection_limit(epsilon=epsilon, max_records=max_records, beta=beta)


@dataclass(frozen=True, kw_only=True, eq=False)
class CandidateGrid:
    """Public points that a column's bounds are sought among, and the cells between them.

    The partition is every point and every gap between two: {g₀}, (g₀, g₁), {g₁}, …, so that a value falls in one cell.
    Points are 0 and ±{1, 2, 5}·10^k, or given ones.

    Attributes:
        points: Ascending, ``(n,)``.
        magnitude: A public order of magnitude, if there is one.
        given: Whether the points were given, such as the first days of years.
    """

    points: FloatArray
    magnitude: float | None = None
    given: bool = False

    @classmethod
    def from_decades(
        cls, *, integer: bool = False, precision: int | None = None, magnitude: float | None = None
    ) -> Self:
        """Return the grid for numbers.

        Args:
            integer: Points are whole numbers.
            precision: Decimals kept; points have no more.
            magnitude: Narrows the search to values between 10⁻⁶ and 50 times it.

        Raises:
            SettingError: ``magnitude`` is out of range.
        """
        return cls(points=_grid(integer, precision, magnitude), magnitude=magnitude)

    @classmethod
    def from_points(cls, candidates: npt.ArrayLike) -> Self:
        """Return the grid of given points.

        Raises:
            SettingError: They are not two or more finite numbers.
        """
        return cls(points=_checked_grid(candidates), given=True)

    @property
    def cells(self) -> int:
        """The number of cells."""
        return 2 * self.points.size - 1

    def limit(self, *, epsilon: float, max_records: int) -> int:
        """Return the least noisy count at which a cell is seen: a public number."""
        return detection_limit(epsilon=epsilon, max_records=max_records, beta=_FALSE_BOUND, cells=self.cells)

    def bounds(self, noisy: IntArray, *, epsilon: float, max_records: int) -> tuple[float, float]:
        """Return bounds that hold nearly all values, without a prior range.

        The bounds are the points around the outermost cells whose noisy count passes :func:`detection_limit` for the
        whole partition: the approximate bounds of Wilson et al. 2020 ("Differentially private SQL with bounded user
        contribution"), with points as cells of their own so that 0 and 100 are found exactly. A tail that no single
        cell shows is seen in the sum of neighbouring ones (:func:`_widened`): the same noisy counts, no further price.
        With ε = 0.05 a cell of 290 records is seen; of 24,000 records of Adult or log-normal data (σ ≤ 2), about 1 % at
        most are cut off. The exponential mechanism on quantiles, ε/2 an end, cuts off 3 to 6 % and now and then lands
        in an empty decade.

        ===================================  =====================================================================
        NaN; ±Inf or beyond the grid         not counted; counted at the end of the grid
        a tail too thin to be seen           left outside: the encoder clamps it. It holds less than a hundredth of the
                                             records, or no more than its cells' noise explains
        0 < lower ≤ upper/10 (or mirrored)   lower becomes 0: a ninth of the range buys the whole lower tail
        a constant                           the points around it; itself and the next if it is one
        too few records for ε, or none       the ends of given points; else ±``magnitude``, rounded up; else the
                                             heaviest noisy cell: perhaps useless bounds, but never an error
        ===================================  =====================================================================

        Args:
            noisy: ``(cells,)`` how many values fall in each cell, with noise.
            epsilon: The ε spent, on both ends together.
            max_records: Most records of one unit.

        Returns:
            ``(lower, upper)`` with ``lower < upper``, both on the grid.
        """
        grid = self.points
        seen = np.flatnonzero(noisy > self.limit(epsilon=epsilon, max_records=max_records))
        if not seen.size and self.given:
            return float(grid[0]), float(grid[-1])
        if not seen.size and self.magnitude is not None:
            enough = float(grid[np.searchsorted(grid, self.magnitude)])
            return -enough, enough
        first, last = (seen[0], seen[-1]) if seen.size else (np.argmax(noisy), np.argmax(noisy))
        top = grid.size - 1
        high = _widened(noisy, int(last + 1) // 2, grid, epsilon, max_records)
        low = top - _widened(noisy[::-1], top - int(first) // 2, grid[::-1], epsilon, max_records)
        if low == high:  # a constant that is a point
            low, high = (low, high + 1) if high < top else (low - 1, high)
        lower, upper = float(grid[low]), float(grid[high])
        return (lower, upper) if self.given else _reaching_zero(lower, upper)


def shares(noisy: IntArray, *, epsilon: float, max_records: int) -> FloatArray:
    """Return the shares of declared categories.

    The noisy histogram is projected onto the simplex (Duchi et al. 2008, Fig. 1), which unlike clipping does not lift
    empty categories, and a thousandth is spread evenly, so that every declared category can be drawn.

    ==================================  ============
    no record, or all drowned in noise  equal shares
    ==================================  ============

    Args:
        noisy: A count for each category ``(size,)``.
        epsilon: The ε spent on them.
        max_records: Most records of one unit.

    Returns:
        Positive shares ``(size,)`` that add up to 1.

    Raises:
        SettingError: There is no category.
    """
    size = len(noisy)
    if size < 1:
        raise SettingError("must be at least 1", field="size", remedy="declare the categories")
    even = np.full(size, 1 / size)
    total = float(noisy.sum())
    if total <= 3 * math.sqrt(2 * size) * max_records / epsilon:  # three deviations of the total's own noise
        return even
    return (1 - _SHARE_FLOOR) * project_to_simplex(noisy / total) + _SHARE_FLOOR * even


def _grid(integer: bool, precision: int | None, magnitude: float | None) -> FloatArray:
    """Return 0 and ±{1, 2, 5}·10^k in ascending order, for public k."""
    first, last = _EXPONENTS
    if magnitude is not None:
        if not 0 < magnitude < math.inf:
            raise SettingError("must be positive and finite", field="magnitude", remedy="give the size to expect")
        near = math.floor(math.log10(magnitude))
        first, last = near + _EXPONENTS_NEAR[0], near + _EXPONENTS_NEAR[1]
    decimals = 0 if integer else precision
    if decimals is not None:
        first, last = max(first, -decimals), max(last, -decimals)
    positive = [float(f"{digit}e{exponent}") for exponent in range(first, last + 1) for digit in (1, 2, 5)]
    return np.array([-value for value in reversed(positive)] + [0.0] + positive)


def _checked_grid(candidates: npt.ArrayLike) -> FloatArray:
    grid = np.unique(np.asarray(candidates, dtype=np.float64))
    if grid.size < 2 or not np.isfinite(grid).all():
        raise SettingError("must be two or more finite numbers", field="candidates", remedy="give a public grid")
    return grid


def _widened(noisy: IntArray, end: int, grid: FloatArray, epsilon: float, max_records: int) -> int:
    """Return the place of the first candidate from ``end`` on beyond which too little is left to be seen or to matter.

    Cells are those of :class:`CandidateGrid`: 2·i is the candidate i, the next one the gap above it.

    One candidate at a time, the cells beyond are added up: the next one, two, four, … of them. A sum counts where it
    passes a hundredth of the records and what the noise of so many cells explains (:func:`_limit_of_sums`). Noise moves
    a bound outwards by mistake in one of a hundred columns at most, and then no further than that noise; past zero in
    one of ten thousand, because a column that may be negative is binned otherwise.
    """
    least = _CLAMPED_SHARE * float(noisy.sum())
    while end + 1 < grid.size:
        sums = np.cumsum(noisy[2 * end + 1 :])
        cells = 2 ** np.arange(sums.size.bit_length())
        beta = (_FALSE_BOUND if grid[end] == 0 else _FALSE_STEP) / cells.size
        limits = _limit_of_sums(cells, epsilon=epsilon, max_records=max_records, beta=beta)
        if not (sums[cells - 1] > np.maximum(least, limits)).any():
            break
        end += 1
    return end


def _limit_of_sums(cells: IntArray, *, epsilon: float, max_records: int, beta: float) -> FloatArray:
    """Return the sum that the noise of so many empty cells passes with probability at most ``beta``.

    Chernoff's bound: log E[exp(tX)] of discrete Laplace noise with a = exp(−ε/max_records) is
    log((1 − a)² / ((1 − a·exp(t)) · (1 − a·exp(−t)))) for 0 < t < ε/max_records.
    """
    rate = epsilon / max_records
    t = rate * np.linspace(0.02, 0.98, 49)
    cumulant = 2 * np.log(-np.expm1(-rate)) - np.log(-np.expm1(t - rate)) - np.log(-np.expm1(-t - rate))
    limits: FloatArray = ((np.log(1 / beta) + cells[:, None] * cumulant) / t).min(axis=1)
    return limits


def _reaching_zero(lower: float, upper: float) -> tuple[float, float]:
    """Move a bound to zero where that widens the range by a ninth at most."""
    if 0 < lower <= upper / 10:
        return 0.0, upper
    if 0 > upper >= lower / 10:
        return lower, 0.0
    return lower, upper


def project_to_simplex(point: FloatArray) -> FloatArray:
    """Return the nearest point, in L2, whose coordinates are not negative and add up to 1."""
    descending = np.sort(point)[::-1]
    excess = (np.cumsum(descending) - 1) / np.arange(1, point.size + 1)
    projected: FloatArray = np.maximum(point - excess[np.flatnonzero(descending > excess)[-1]], 0)
    return projected
