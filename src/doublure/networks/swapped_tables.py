"""Swapping of a column's values between rows, so that its joint tables match their expectation.

In a random draw, a cell of a thousand rows is off by some thirty: sampling noise on top of the noise that privacy
needs. Two rows swap their values if that brings the tables of the new column with all earlier ones closer to the
expectation, and if the swapped values are about as likely as the drawn ones. (:mod:`doublure.encode.pairwise_swapping`
does the same for columns drawn independently.)
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import sparse

from doublure.support.arrays import Ints

Floats: TypeAlias = npt.NDArray[Any]

_SWEEPS = 2
_AT_ONCE = 64
"""Pairs of rows that are judged by the same tables."""
_LIKELY = 0.5
"""Least likelihood ratio of the swapped values to the drawn ones."""
_MOST_JUDGED = 3_000_000
"""Most cells read for a column, in about a second; with very many rows or columns, some pairs are not judged."""


def swap_pairs(codes: Ints, chances: Floats, earlier: Ints, sizes: Ints, order: Ints, rng: np.random.Generator) -> Ints:
    """Return the codes of a column, swapped between rows.

    Args:
        codes: ``(N,)`` the drawn codes.
        chances: ``(N, m)`` the chances of the draw, each row adding up to 1.
        earlier: ``(N, c)`` codes of the columns drawn before.
        sizes: ``(c,)`` number of codes of each of those.
        order: ``(N,)`` rows, with the best candidates for a swap next to one another.
        rng: Chooses the pairs of rows.
    """
    rows, columns = earlier.shape
    if rows < 2 or not columns:
        return codes
    codes, cells = codes.copy(), earlier + (np.cumsum(sizes) - sizes)
    marks = sparse.csr_matrix(
        (np.ones(cells.size), cells.ravel(), np.arange(rows + 1) * columns), shape=(rows, int(sizes.sum()))
    )
    drawn = sparse.csr_matrix((np.ones(rows), codes, np.arange(rows + 1)), shape=chances.shape)
    surplus = np.ascontiguousarray(np.asarray((marks.T @ drawn).todense()) - marks.T @ chances)
    left = max(1, _MOST_JUDGED // columns)
    for sweep in range(_SWEEPS):
        one, other = order[sweep : rows - 1 : 2], order[sweep + 1 : rows : 2]
        mine, theirs = codes[one], codes[other]
        likely = chances[one, theirs] * chances[other, mine]
        may = (mine != theirs) & (likely >= _LIKELY * chances[one, mine] * chances[other, theirs])
        meet = rng.permutation(np.flatnonzero(may))[:left]
        left -= len(meet)
        for start in range(0, len(meet), _AT_ONCE):
            some = meet[start : start + _AT_ONCE]
            _exchange(codes, cells, surplus, one[some], other[some])
    return codes


def _exchange(codes: Ints, cells: Ints, surplus: Floats, one: Ints, other: Ints) -> None:
    """Swap values in place if that reduces the sum of the surpluses' squares."""
    mine, theirs = codes[one], codes[other]
    left, right = cells[one], cells[other]
    flat, values = surplus.reshape(-1), surplus.shape[1]
    at_left, at_right = left * values, right * values
    change = flat.take(at_left + theirs[:, None]) + flat.take(at_right + mine[:, None])
    change -= flat.take(at_left + mine[:, None]) + flat.take(at_right + theirs[:, None])
    gain, cost = -2 * change.sum(1), 4 * (left != right).sum(1)
    better = np.flatnonzero(gain > cost)
    # Worst case: all earlier swaps of the same two values in this batch moved the same cells.
    before = count_earlier(np.minimum(mine, theirs)[better] * surplus.shape[1] + np.maximum(mine, theirs)[better])
    better = better[gain[better] > cost[better] * (1 + 2 * before)]
    one, other, mine, theirs = one[better], other[better], mine[better], theirs[better]
    at_left, at_right = at_left[better], at_right[better]
    moved = [at_left + mine[:, None], at_left + theirs[:, None], at_right + theirs[:, None], at_right + mine[:, None]]
    np.add.at(flat, np.concatenate(moved, axis=None), np.repeat([-1.0, 1.0, -1.0, 1.0], at_left.size))
    codes[one], codes[other] = theirs, mine


def count_earlier(keys: Ints) -> Ints:
    """Return for each key how many equal ones precede it."""
    order = np.argsort(keys, kind="stable")
    found = np.empty_like(keys)
    found[order] = np.arange(len(keys)) - np.searchsorted(keys[order], keys[order])
    return found
