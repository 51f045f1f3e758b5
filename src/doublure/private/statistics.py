"""Facts bought from private records: counts, bounds, categories, shares, missingness.

Each function looks at the records once, adds exact discrete noise through OpenDP, and returns plain public values:
whatever happens after the noise is post-processing and free. All guarantees are for adding or removing one *unit*
that contributes at most ``max_records`` records (the caller has bounded that before), over a public grid or list.
Floating-point holes do not arise, for every noisy number is an integer; timing is not covered.

What is released is a histogram wherever one will do. One record then moves one cell by one, so that *both* ends of a
column's bounds are read off the same noisy cells for a single ε.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from doublure.errors import SettingError

if TYPE_CHECKING:
    import pandas as pd

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

_LEAST_EPSILON = 1e-6  # below it the noise swamps a billion records, and scales begin to overflow
_FALSE_BOUND = 1e-4  # chance that noise alone moves a bound; such a bound is absurd, so it has to be rare
_FALSE_STEP = 0.01  # chance, at most, that noise alone moves a bound to the next candidate
_CLAMPED_SHARE = 0.01  # share of the records beyond a bound that is not worth a wider one
_EXPONENTS = (-12, 18)  # decades searched when nothing is known; a wide search is cheap (logarithmic)
_EXPONENTS_NEAR = (-6, 1)  # decades searched around a declared magnitude
_HIGHEST_THRESHOLD = 2**40  # OpenDP bounds δ from below by about 1e-16 a count; beyond this it never falls further
_SHARE_FLOOR = 1e-3  # share of probability spread evenly, so that no declared category becomes impossible


def noisy_count(units: int, *, epsilon: float) -> int:
    """Return a noisy number of units, never negative.

    Guarantee: (``epsilon``, 0)-DP for add/remove of one unit, whatever number of records it has. Sensitivity: the
    count changes by exactly 1. Noise: discrete Laplace of scale 1/ε (Canonne, Kamath, Steinke 2020).

    Raises:
        SettingError: ``epsilon`` is out of range.
    """
    return max(0, int(_noisy(np.array([units]), epsilon=epsilon, max_records=1)[0]))


def any_missing(flags: npt.ArrayLike, *, epsilon: float, max_records: int, beta: float = 0.01) -> bool:
    """Say whether a column has missing values: true when a noisy count of them passes a public threshold.

    Guarantee: (``epsilon``, 0)-DP for add/remove of one unit with at most ``max_records`` records. Sensitivity: the
    number of flags set changes by at most ``max_records``.

    ==============================  ================================================================
    no missing value, or no record  true with probability at most ``beta`` (an unused flag: harmless)
    t or more missing values        true with probability at least 1/2, t = :func:`detection_limit` + 1
    ==============================  ================================================================

    Args:
        flags: Booleans, one a record.
        epsilon: The ε spent.
        max_records: Most records of one unit.
        beta: Chance of a false alarm.

    Raises:
        SettingError: ``epsilon``, ``max_records`` or ``beta`` is out of range.
    """
    missing = np.count_nonzero(np.asarray(flags, dtype=bool))
    limit = detection_limit(epsilon=epsilon, max_records=max_records, beta=beta)
    return bool(_noisy(np.array([missing]), epsilon=epsilon, max_records=max_records)[0] > limit)


def noisy_bounds(
    values: npt.ArrayLike,
    *,
    epsilon: float,
    max_records: int,
    integer: bool = False,
    precision: int | None = None,
    magnitude: float | None = None,
    candidates: npt.ArrayLike | None = None,
) -> tuple[float, float]:
    """Find bounds that hold nearly all values, without knowing where to look.

    Guarantee: (``epsilon``, 0)-DP for add/remove of one unit with at most ``max_records`` records. Sensitivity: each
    value falls in exactly one cell of a public partition, so the counts change by at most ``max_records`` in L1.

    The partition is every candidate and every gap between two; candidates are 0 and ±{1, 2, 5}·10^k. The bounds are
    the candidates around the outermost cells whose noisy count passes :func:`detection_limit` for the whole partition:
    the approximate bounds of Wilson et al. 2020 ("Differentially private SQL with bounded user contribution"), with
    points as cells of their own so that 0 and 100 are found exactly. A tail that no single cell shows is seen in the
    sum of neighbouring ones (:func:`_widened`): the same noisy counts, no further price. With ε = 0.05 a cell of 290
    records is seen; of 24,000 records of Adult or log-normal data (σ ≤ 2), about 1 % at most are cut off. The
    exponential mechanism on quantiles, ε/2 an end, cuts off 3 to 6 % and now and then lands in an empty decade.

    ===================================  =====================================================================
    NaN; ±Inf or beyond the grid         not counted; counted at the end of the grid
    a tail too thin to be seen           left outside: the encoder clamps it. It holds less than a hundredth of the
                                         records, or no more than its cells' noise explains
    0 < lower ≤ upper/10 (or mirrored)   lower becomes 0: a ninth of the range buys the whole lower tail
    a constant                           the candidates around it; itself and the next if it is one
    too few records for ε, none at all   the ends of ``candidates``; else ±``magnitude``, rounded up; else the
                                         heaviest noisy cell: perhaps useless bounds, but never an error
    ===================================  =====================================================================

    Args:
        values: Numbers ``(N,)``; dates as days or seconds, with ``candidates``.
        epsilon: The ε spent, on both ends together.
        max_records: Most records of one unit.
        integer: Candidates are whole numbers.
        precision: Decimals kept; candidates have no more.
        magnitude: Public order of magnitude; narrows the search to values between 10⁻⁶ and 50 times it.
        candidates: A public grid to use instead, such as the first days of the years 1900 to 2100.

    Returns:
        ``(lower, upper)`` with ``lower < upper``, both on the grid.

    Raises:
        SettingError: A setting is out of range.
    """
    grid = _grid(integer, precision, magnitude) if candidates is None else _checked_grid(candidates)
    noisy = _noisy(_cells(np.asarray(values, dtype=np.float64), grid), epsilon=epsilon, max_records=max_records)
    limit = _bounds_limit(grid, epsilon, max_records)
    seen = np.flatnonzero(noisy > limit)
    if not seen.size and candidates is not None:
        return float(grid[0]), float(grid[-1])
    if not seen.size and magnitude is not None:
        enough = float(grid[np.searchsorted(grid, magnitude)])
        return -enough, enough
    first, last = (seen[0], seen[-1]) if seen.size else (np.argmax(noisy), np.argmax(noisy))
    top = grid.size - 1
    high = _widened(noisy, int(last + 1) // 2, grid, epsilon, max_records)
    low = top - _widened(noisy[::-1], top - int(first) // 2, grid[::-1], epsilon, max_records)
    if low == high:  # a constant that is a candidate
        low, high = (low, high + 1) if high < top else (low - 1, high)
    lower, upper = float(grid[low]), float(grid[high])
    return (lower, upper) if candidates is not None else _reaching_zero(lower, upper)


def detection_limit(*, epsilon: float, max_records: int, beta: float, cells: int = 1) -> int:
    """Return the count that noise alone passes, in any of ``cells`` empty cells, with probability at most ``beta``.

    A public number: a plan may compare it with the size of the data and warn before anything is spent.

    The tail of discrete Laplace noise with a = exp(−ε/max_records) is P(X > t) = a^(t+1) / (1 + a).

    Raises:
        SettingError: An argument is out of range.
    """
    _check(epsilon, max_records)
    if not 0 < beta < 1:
        raise SettingError("must lie between 0 and 1", field="beta", remedy="try 0.01")
    rate = epsilon / max_records
    return max(0, math.ceil(math.log(cells / (beta * (1 + math.exp(-rate)))) / rate) - 1)


def bounds_limit(*, epsilon: float, max_records: int, integer: bool = False, precision: int | None = None) -> int:
    """Return how many values a cell needs at least to be seen by :func:`noisy_bounds` without a magnitude: public.

    Raises:
        SettingError: An argument is out of range.
    """
    return _bounds_limit(_grid(integer, precision, None), epsilon, max_records)


def _bounds_limit(grid: FloatArray, epsilon: float, max_records: int) -> int:
    return detection_limit(epsilon=epsilon, max_records=max_records, beta=_FALSE_BOUND, cells=2 * grid.size - 1)


def discover_categories(
    values: Sequence[str] | npt.NDArray[Any] | pd.Series[Any],
    *,
    epsilon: float,
    delta: float,
    max_records: int,
    limit: int | None = None,
) -> dict[str, int]:
    """Find the categories that enough records have, by a thresholded noisy histogram.

    Guarantee: (``epsilon``, ``delta``)-DP for add/remove of one unit with at most ``max_records`` records, the noisy
    counts included. Sensitivity: a unit changes at most ``max_records`` counts, by at most ``max_records`` each and
    in sum. Scale and threshold are the least that OpenDP's own privacy map accepts (Rogers 2023), made safe by one.

    A category below the threshold appears nowhere: not in the result, its order, its length or an error.

    ======================  =======================
    missing (None, NaN)     not counted
    no record, or all rare  an empty result
    10⁶ distinct values     about 10 s, 0.5 GB
    ======================  =======================

    Args:
        values: Texts ``(N,)``.
        epsilon: The ε spent.
        delta: Chance, roughly, that some category of one unit alone shows.
        max_records: Most records of one unit.
        limit: Keep only that many, by noisy count.

    Returns:
        Category to noisy count, the most frequent first, equals by name.

    Raises:
        SettingError: A setting is out of range.
    """
    import pandas as pd

    measurement = _laplace_threshold(epsilon, delta, max_records)
    # OpenDP sees codes instead of texts: faster, and safe from what a text may hold. A code is never released.
    codes, names = pd.factorize(np.asarray(values, dtype=object), use_na_sentinel=True)
    counts = np.bincount(codes[codes >= 0], minlength=len(names))
    released: dict[int, int] = measurement(dict(enumerate(counts.tolist())))
    found = sorted((-count, str(names[code])) for code, count in released.items())
    return {name: -negative for negative, name in found[:limit]}


def noisy_shares(codes: npt.ArrayLike, size: int, *, epsilon: float, max_records: int) -> FloatArray:
    """Return the noisy shares of ``size`` declared categories.

    Guarantee: (``epsilon``, 0)-DP for add/remove of one unit with at most ``max_records`` records. Sensitivity: each
    record falls in at most one of the declared cells, so the histogram changes by at most ``max_records`` in L1.

    The noisy histogram is projected onto the simplex (Duchi et al. 2008, Fig. 1), which unlike clipping does not lift
    empty categories, and a thousandth is spread evenly, so that every declared category can be drawn.

    ==================================  ============
    a code outside ``[0, size)``        not counted
    no record, or all drowned in noise  equal shares
    ==================================  ============

    Returns:
        Positive shares ``(size,)`` that add up to 1.

    Raises:
        SettingError: A setting is out of range.
    """
    if size < 1:
        raise SettingError("must be at least 1", field="size", remedy="declare the categories")
    kept = np.asarray(codes, dtype=np.int64)
    counts = np.bincount(kept[(kept >= 0) & (kept < size)], minlength=size)
    noisy = _noisy(counts, epsilon=epsilon, max_records=max_records).astype(np.float64)
    even = np.full(size, 1 / size)
    total = noisy.sum()
    if total <= 3 * math.sqrt(2 * size) * max_records / epsilon:  # three deviations of the total's own noise
        return even
    return (1 - _SHARE_FLOOR) * onto_simplex(noisy / total) + _SHARE_FLOOR * even


def noisy_histogram(counts: npt.ArrayLike, *, sigma: float) -> IntArray:
    """Add independent discrete Gaussian noise to a vector of integers.

    Guarantee: Δ²/(2σ²)-zCDP for a vector that moves by at most Δ in L2 between neighbours (Canonne, Kamath, Steinke
    2020, Theorem 4): the Rényi curve of the continuous Gaussian, so RDP accounting of a Gaussian event with noise
    multiplier σ/Δ holds as it stands. The caller answers for Δ. About 10 µs a cell, whatever σ.

    Args:
        counts: Integers of any shape.
        sigma: The noise's parameter σ, in counts; its standard deviation is at most σ.

    Returns:
        Noisy integers of the same shape, unclipped.

    Raises:
        SettingError: ``sigma`` is not positive and finite.
    """
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_gaussian
    from opendp.metrics import l2_distance
    from opendp.mod import enable_features

    if not 0 < sigma < math.inf:
        raise SettingError("must be positive and finite", field="sigma", remedy="derive it from the plan")
    enable_features("contrib")
    exact = np.asarray(counts, dtype=np.int64)
    measurement = make_gaussian(vector_domain(atom_domain(T="i64")), l2_distance(T="i64"), float(sigma))
    return np.array(measurement(exact.ravel().tolist()), dtype=np.int64).reshape(exact.shape)


def _noisy(counts: npt.NDArray[Any], *, epsilon: float, max_records: int) -> IntArray:
    """Add discrete Laplace noise of scale ``max_records / epsilon`` to a vector of counts."""
    return np.array(_laplace(epsilon, max_records)(counts.tolist()), dtype=np.int64)


def _loss(measurement: Any, unit: object) -> Any:
    """Return the privacy loss of one unit's change by OpenDP's own map."""
    return measurement.map(unit)


def _laplace(epsilon: float, max_records: int) -> Any:
    """Return OpenDP's noise on integer vectors with ``map(max_records) <= epsilon``, the least that satisfies it."""
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_laplace
    from opendp.metrics import l1_distance
    from opendp.mod import enable_features

    _check(epsilon, max_records)
    enable_features("contrib")
    space = vector_domain(atom_domain(T="i64")), l1_distance(T="i64")
    scale = max_records / epsilon
    while _loss(make_laplace(*space, scale), max_records) > epsilon:  # the quotient had been rounded down
        scale = math.nextafter(scale, math.inf)
    return make_laplace(*space, scale)


def _laplace_threshold(epsilon: float, delta: float, max_records: int) -> Any:
    """Return OpenDP's thresholded histogram with ``map((m, m, m)) <= (epsilon, delta)``, the least that satisfies it.

    One more is added to that threshold: OpenDP (0.14 to 0.16, issue 2922) releases a count *at* the threshold but
    leaves that case out of δ, which understates it by a factor exp(ε/m).
    """
    from opendp.domains import atom_domain, map_domain
    from opendp.measurements import make_laplace_threshold
    from opendp.metrics import absolute_distance, l01inf_distance
    from opendp.mod import enable_features

    _check(epsilon, max_records)
    if not 0 < delta < 1:
        raise SettingError("must lie between 0 and 1", field="delta", remedy="choose far less than one in the units")
    enable_features("contrib")
    space = map_domain(atom_domain(T="i64"), atom_domain(T="i64")), l01inf_distance(absolute_distance(T="i64"))
    unit = max_records, max_records, max_records  # L0, L1, L∞ of one unit's change
    scale = max_records / epsilon
    while _loss(make_laplace_threshold(*space, scale, max_records), unit)[0] > epsilon:
        scale = math.nextafter(scale, math.inf)

    def too_low(threshold: int) -> bool:
        return bool(_loss(make_laplace_threshold(*space, scale, threshold), unit)[1] > delta)

    low, high = max_records - 1, max_records
    while too_low(high):
        low, high = high, 2 * high
        if high > _HIGHEST_THRESHOLD:
            raise SettingError("is too small to be guaranteed", field="delta", remedy="choose at least 1e-12")
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if too_low(middle) else (low, middle)
    return make_laplace_threshold(*space, scale, high + 1)


def _check(epsilon: float, max_records: int) -> None:
    if not _LEAST_EPSILON <= epsilon < math.inf:
        raise SettingError(f"must be at least {_LEAST_EPSILON:g} and finite", field="epsilon", remedy="spend more")
    if max_records < 1:
        raise SettingError("must be at least 1", field="max_records", remedy="bound each unit's records")


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


def _cells(values: FloatArray, grid: FloatArray) -> IntArray:
    """Count values in the cells {g₀}, (g₀, g₁), {g₁}, …, ``(2·grid.size − 1,)``; those beyond the grid are clamped."""
    clamped = np.clip(values[~np.isnan(values)], grid[0], grid[-1])
    right = np.searchsorted(grid, clamped)  # grid[right - 1] < value <= grid[right]
    cell = 2 * right - (grid[right] != clamped)
    return np.bincount(cell, minlength=2 * grid.size - 1)


def _widened(noisy: IntArray, end: int, grid: FloatArray, epsilon: float, max_records: int) -> int:
    """Return the place of the first candidate from ``end`` on beyond which too little is left to be seen or to matter.

    Cells are those of :func:`_cells`: 2·i is the candidate i, the next one the gap above it.

    One candidate at a time, the cells beyond are added up: the next one, two, four, … of them. A sum counts where it
    passes a hundredth of the records and what the noise of so many cells explains (:func:`_limit_of_sums`). Noise moves
    a bound on by mistake in one of a hundred columns at most, to the next candidate; past zero in one of ten thousand,
    for a column that may be negative is binned otherwise.
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
    """Return what the noise of so many empty cells, added up, passes with probability at most ``beta``.

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


def onto_simplex(point: FloatArray) -> FloatArray:
    """Return the nearest point, in L2, whose coordinates are not negative and add up to 1."""
    descending = np.sort(point)[::-1]
    excess = (np.cumsum(descending) - 1) / np.arange(1, point.size + 1)
    projected: FloatArray = np.maximum(point - excess[np.flatnonzero(descending > excess)[-1]], 0)
    return projected
