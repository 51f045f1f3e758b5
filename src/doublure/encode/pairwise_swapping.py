"""Pairwise swapping: exchange values between rows until two-way tables match their probabilities.

Rows with the same probabilities are of one kind, and :class:`~doublure.encode.pairwise_swapping.EvenShares` gives
each kind the right number of every value. It assigns values to the rows of a kind at random, which adds sampling noise
to two-way tables. Within a kind columns are independent, so that any row may have any of the kind's values: two rows
exchange theirs wherever that brings the tables of all pairs nearer to the probabilities.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy import sparse

from doublure.encode.numeric import Floats
from doublure.networks.swapped_tables import count_earlier

_BELOW_ONE = np.nextafter(1.0, 0.0)
_AT_ONCE = 4096


class EvenShares:
    """Draws for rows in groups; rows are of one group if all their numbers are the same.

    Rows of a group share numbers in [0, 1) out evenly: systematic sampling (Madow 1949). Drawn each for itself, a
    thousand rows of a group would have some fifteen more or fewer of a value than was meant. Each row by itself is
    distributed as before.

    Args:
        rows: ``(N, D)``.
        rng: Where the draws come from.

    Attributes:
        kinds: ``(N,)`` which rows are of one group, from 0.
    """

    def __init__(self, rows: Floats, rng: np.random.Generator) -> None:
        self._rng = rng
        # One number a row stands for all of it. Two that differ and share it by chance share out their draws, no more.
        # Added up row by row: a product of matrices may give equal rows other last digits at other places.
        factors = rng.standard_normal(rows.shape[1]).astype(rows.dtype)
        key = np.empty(len(rows), dtype=rows.dtype)
        for first in range(0, len(rows), _AT_ONCE):
            key[first : first + _AT_ONCE] = (rows[first : first + _AT_ONCE] * factors).sum(1)
        _, self.kinds, self._sizes = np.unique(key, return_inverse=True, return_counts=True)
        self._first = np.cumsum(self._sizes) - self._sizes

    def draw(self) -> Floats:
        """Return ``(N,)`` numbers, uniform in [0, 1) for each row, evenly spaced in a group, in a random order."""
        count = len(self.kinds)
        order = np.lexsort((self._rng.random(count), self.kinds))
        place = np.empty(count)
        place[order] = np.arange(count)
        place -= self._first[self.kinds]
        shares = (place + self._rng.random(len(self._sizes))[self.kinds]) / self._sizes[self.kinds]
        return np.minimum(shares, _BELOW_ONE)  # a sum may have been rounded up


Ints = npt.NDArray[np.int64]

_SWEEPS = 2
_AT_ONCE = 32
"""Meetings that are judged by the same tables: of many, all would fix the same cell."""
_MOST_BLOCKS = 64
"""The most blocks whose pairs are swapped together; of more, groups are drawn at random."""
_MOST_CELLS = 4096
"""The most cells of such blocks together; in a block with more codes than its part of them the rarest share one."""
_MOST_JUDGED = 30_000_000
"""Blocks that are looked at in all, a few seconds: of very many rows or blocks, some are left to chance."""
_MOST_STRATA = 16
_SURE = 1e-6


def pairwise_swapped(codes: Ints, chances: Floats, sizes: Sequence[int], kinds: Ints, rng: np.random.Generator) -> Ints:
    """Return the codes, exchanged between rows of one kind.

    Where every row is certain of a block, as of a condition, pairs are swapped within each of its values.

    Args:
        codes: ``(N, B)`` what was drawn, a block a column.
        chances: ``(N, W)`` the probabilities that it was drawn by, the blocks side by side.
        sizes: Of the blocks; they add up to W.
        kinds: ``(N,)`` which rows have the same probabilities: of K kinds, from 0.
        rng: Says which rows meet.
    """
    mixed = codes.copy()
    shown, first = np.unique(kinds, return_index=True)
    if 2 * len(shown) > len(kinds):  # hardly two rows of a kind
        return mixed
    parts = [_summing_to_one(part) for part in np.split(chances[first], np.cumsum(sizes)[:-1], axis=1)]
    certain = [place for place, part in enumerate(parts) if _sure(part)]
    if len(sizes) - len(certain) < 2:
        return mixed
    values, stratum = np.unique(codes[:, certain], axis=0, return_inverse=True)
    together = len(values) > _MOST_STRATA
    groups = np.array_split(rng.permutation(len(sizes)), -(-len(sizes) // _MOST_BLOCKS))
    for rows in [np.arange(len(codes))] if together else _rows_of(stratum.reshape(-1), len(values)):
        for group in groups:
            tables = _PairTables(codes[np.ix_(rows, group)], [parts[place] for place in group], kinds[rows])
            tables.even(rng, most=_MOST_JUDGED * len(rows) // (len(codes) * len(groups)))
            mixed[np.ix_(rows, group)] = tables.codes
    return mixed


def _summing_to_one(chances: Floats) -> Floats:
    found: Floats = chances / chances.sum(axis=1, keepdims=True)
    return found


def _sure(chances: Floats) -> bool:
    return bool(((chances < _SURE) | (chances > 1 - _SURE)).all())


def _rows_of(stratum: Ints, count: int) -> list[Ints]:
    return [np.flatnonzero(stratum == number) for number in range(count)]


class _PairTables:
    """Codes, and how many rows more each pair of values has than it should have.

    Attributes:
        codes: ``(N, B)``.
    """

    def __init__(self, codes: Ints, parts: Sequence[Floats], kinds: Ints) -> None:
        self.codes = codes.copy()
        self._kinds = kinds
        rows, blocks = codes.shape
        weights = np.bincount(kinds, minlength=len(parts[0])).astype(parts[0].dtype)
        cells, expected, width = np.empty_like(codes), [], 0
        for place, part in enumerate(parts):
            cell_of = _cells(weights @ part, _MOST_CELLS // blocks)
            cells[:, place] = width + cell_of[codes[:, place]]
            own = np.zeros((int(cell_of.max()) + 1, len(part)), dtype=part.dtype)
            np.add.at(own, cell_of, part.T)
            expected.append(own.T)
            width += len(own)
        self._cells = cells
        marks = sparse.csr_matrix(
            (np.ones(cells.size, dtype=np.float32), cells.ravel(), np.arange(rows + 1) * blocks), shape=(rows, width)
        )
        chances = np.concatenate(expected, axis=1)
        self._surplus = (marks.T @ marks).toarray() - (chances * weights[:, None]).T @ chances
        block_of = np.repeat(np.arange(blocks), [own.shape[1] for own in expected])
        self._surplus[block_of[:, None] == block_of] = 0

    def even(self, rng: np.random.Generator, *, most: int) -> None:
        """Let rows of a kind meet, and exchange what brings the tables nearer to what they should be.

        Args:
            rng: Says which rows meet.
            most: Blocks of rows that meet that are looked at; then that is all.
        """
        blocks = self.codes.shape[1]
        left = most // blocks
        for _ in range(_SWEEPS):
            for block in rng.permutation(blocks):
                if not left:
                    return
                one, other = (rows[:left] for rows in self._meetings(block, rng))
                left -= len(one)
                for start in range(0, len(one), _AT_ONCE):
                    self._exchange(block, one[start : start + _AT_ONCE], other[start : start + _AT_ONCE])

    def _meetings(self, block: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
        """Return pairs of rows of one kind, each row in one at most, that differ in a block; in a random order."""
        order = np.lexsort((rng.random(len(self._kinds)), self._kinds))
        kinds = self._kinds[order]
        place = np.arange(len(kinds)) - np.searchsorted(kinds, kinds)
        first = np.flatnonzero((place[:-1] % 2 == 0) & (kinds[:-1] == kinds[1:]))
        one, other = order[first], order[first + 1]
        differ = rng.permutation(np.flatnonzero(self._cells[one, block] != self._cells[other, block]))
        return one[differ], other[differ]

    def _exchange(self, block: int, one: Ints, other: Ints) -> None:
        """Exchange a block's values where that takes from the sum of the surpluses' squares."""
        beside = np.arange(self.codes.shape[1]) != block
        mine, theirs = self._cells[one, block], self._cells[other, block]
        left, right = self._cells[one][:, beside], self._cells[other][:, beside]
        change = self._surplus[theirs[:, None], left] + self._surplus[mine[:, None], right]
        change -= self._surplus[mine[:, None], left] + self._surplus[theirs[:, None], right]
        gain, cost = -change.sum(axis=1), 2 * (left != right).sum(axis=1)
        # As if all that exchange the same two values moved the same cells, each by 4 in every block that differs.
        better = np.flatnonzero(gain > cost)
        before = count_earlier(np.minimum(mine, theirs)[better] * len(self._surplus) + np.maximum(mine, theirs)[better])
        better = better[gain[better] > cost[better] * (1 + 2 * before)]
        one, other, mine, theirs = one[better], other[better], mine[better], theirs[better]
        width = left.shape[1]
        for value, others, by in (
            (theirs, left[better], 1), (mine, right[better], 1), (mine, left[better], -1), (theirs, right[better], -1),
        ):  # fmt: skip
            along, across = np.repeat(value, width), others.ravel()
            np.add.at(self._surplus, (along, across), by)
            np.add.at(self._surplus, (across, along), by)
        for held in (self.codes, self._cells):
            held[one, block], held[other, block] = held[other, block], held[one, block]


def _cells(counts: Floats, most: int) -> Ints:
    """Return each code's cell: its own, or the last if it is among the rarest of more codes than cells."""
    if len(counts) <= most:
        return np.arange(len(counts))
    cells = np.full(len(counts), most - 1)
    cells[np.sort(np.argsort(-counts, kind="stable")[: most - 1])] = np.arange(most - 1)
    return cells
