"""Influence functions of distances between two tables, for the bootstrap of rows.

Every function returns two arrays of influences, of the real rows ``(N,)`` and of the others ``(M,)``
(:mod:`doublure.measures.resampling`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from doublure.measures.tables.coding import Integers
from doublure.measures.tables.counts import Pair, Whole
from doublure.support.arrays import Floats

_Both = tuple[Floats, Floats]
_MOST_CELLS = 1 << 22


def variation_influence(
    train: Integers, other: Integers, sizes: Sequence[int], sets: Sequence[tuple[int, ...]]
) -> _Both:
    """Return the influences on the mean total variation of sets of columns.

    Args:
        train: ``(N, P)`` codes.
        other: ``(M, P)`` codes.
        sizes: Number of codes of each column.
        sets: The columns of each set.
    """
    found = np.zeros(len(train)), np.zeros(len(other))
    for places in sets:
        keys, others, cells = joint_codes(train, other, sizes, places)
        shares = [np.bincount(each, minlength=cells) / len(each) for each in (keys, others)]
        sign = np.sign(shares[0] - shares[1])  # the derivative of half the sum of |p − q|
        found[0][:] += sign[keys] / 2
        found[1][:] -= sign[others] / 2
    return found[0] / len(sets), found[1] / len(sets)


def association_influence(train: Integers, other: Integers, sizes: Sequence[int], pairs: Sequence[Pair]) -> _Both:
    """Return the influences on the mean absolute difference of two columns' Cramér's V, where neither is missing."""
    found = np.zeros(len(train)), np.zeros(len(other))
    for pair in pairs:
        (real, of_real), (own, of_own) = (_of_answered(each, sizes, pair) for each in (train, other))
        sign = float(np.sign(real - own))
        found[0][:] += sign * of_real
        found[1][:] -= sign * of_own
    return found[0] / len(pairs), found[1] / len(pairs)


def _of_answered(codes: Integers, sizes: Sequence[int], pair: Pair) -> tuple[float, Floats]:
    """Return Cramér's V of the rows in which neither column is missing, and each row's influence."""
    there = (codes[:, pair[0]] < sizes[pair[0]] - 1) & (codes[:, pair[1]] < sizes[pair[1]] - 1)
    each = np.zeros(len(codes))
    if there.sum() < 2:
        return 0.0, each
    value, of_v = _of_v(row_keys(codes[there], sizes, pair), sizes[pair[0]] * sizes[pair[1]], sizes[pair[1]])
    each[there] = of_v * (len(codes) / int(there.sum()))
    return value, each


def _of_v(keys: Whole, cells: int, wide: int) -> tuple[float, Floats]:
    """Return the bias-corrected Cramér's V of a two-way table, and each row's influence; zeros where V is cut off."""
    n = len(keys)
    if cells <= _MOST_CELLS:
        table = np.bincount(keys, minlength=cells)
        filled = np.flatnonzero(table)
        counts, place = table[filled], (np.cumsum(table > 0) - 1)[keys]
    else:
        filled, place, counts = np.unique(keys, return_inverse=True, return_counts=True)
    shares = counts / n
    rows, columns = filled // wide, filled % wide
    left, right = np.bincount(rows, weights=shares), np.bincount(columns, weights=shares)
    high, broad = int((left > 0).sum()), int((right > 0).sum())
    if min(high, broad) < 2:
        return 0.0, np.zeros(n)
    part = shares**2 / (left[rows] * right[columns])
    phi2 = float(part.sum()) - 1 - (high - 1) * (broad - 1) / (n - 1)
    least = min(high - (high - 1) ** 2 / (n - 1), broad - (broad - 1) ** 2 / (n - 1)) - 1
    if least <= 0 or phi2 >= least:
        return (1.0 if least > 0 else 0.0), np.zeros(n)
    value = math.sqrt(max(0.0, phi2) / least)
    # A root is infinitely steep at 0. The standard error of φ² of independent columns, χ²'s √(2 df) / n, bounds it.
    steep = max(value, math.sqrt(math.sqrt(2 * (high - 1) * (broad - 1)) / (n * least)))
    # The derivative of φ² = Σ p² / (left · right) with respect to one cell's share: its own term, and both margins'.
    of_left = np.bincount(rows, weights=part)[rows] / left[rows]
    of_right = np.bincount(columns, weights=part)[columns] / right[columns]
    each = (2 * part / shares - of_left - of_right) / (2 * steep * least)
    return value, each[place]


def wasserstein_influence(train: Floats, other: Floats) -> _Both:
    """Return the influences on the 1-Wasserstein distance of the present numbers; 0 for a missing one.

    Args:
        train: ``(N,)``, NaN where missing.
        other: ``(M,)``.
    """
    there = [~np.isnan(values) for values in (train, other)]
    left, right = (np.sort(values[known]) for values, known in zip((train, other), there, strict=True))
    if not len(left) or not len(right):
        return np.zeros(len(train)), np.zeros(len(other))
    points = np.unique(np.concatenate([left, right]))
    below = [np.searchsorted(values, points, side="right") / len(values) for values in (left, right)]
    signed = np.sign(below[0] - below[1])[:-1] * np.diff(points)
    beyond = np.append(np.cumsum(signed[::-1])[::-1], 0.0)  # a number's contribution to all steps at and above it
    found = []
    for sign, values, known in ((1.0, train, there[0]), (-1.0, other, there[1])):
        each = np.zeros(len(values))
        own = beyond[np.searchsorted(points, values[known])]
        each[known] = sign * (own - own.mean()) * (len(values) / int(known.sum()))
        found.append(each)
    return found[0], found[1]


def joint_codes(
    train: Integers, other: Integers, sizes: Sequence[int], places: Sequence[int]
) -> tuple[Whole, Whole, int]:
    """Return one joint code per row for some columns, of both tables, and an upper bound on them."""
    left, right = (row_keys(codes, sizes, places) for codes in (train, other))
    cells = math.prod(sizes[place] for place in places)
    if cells <= _MOST_CELLS:
        return left, right, cells
    values, found = np.unique(np.concatenate([left, right]), return_inverse=True)
    return found[: len(left)], found[len(left) :], len(values)


def row_keys(codes: Integers, sizes: Sequence[int], places: Sequence[int]) -> Whole:
    """Return ``(N,)`` one joint code per row for some columns."""
    keys = np.zeros(len(codes), dtype=np.int64)
    for place in places:
        keys = keys * sizes[place] + codes[:, place]
    return keys
