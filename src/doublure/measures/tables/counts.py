"""One- and two-way counts of a table, as an additive state.

``count`` each part of a table and add the results in any order: the sum equals the whole table's counts. All distances
of :mod:`doublure.measures.tables.fidelity` but the Wasserstein distance are computed from such sums.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any, TypeAlias

import numpy as np

from doublure.measures.tables.coding import Integers
from doublure.support.arrays import Floats

Pair: TypeAlias = tuple[int, int]
Whole: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]

_CHUNK_ROWS = 1 << 18
# Above this number of cells a pair's table is found by sorting the rows, not laid out in full.
_MOST_CELLS = 1 << 22


@dataclass(frozen=True, kw_only=True)
class TwoWayCounts:
    """The non-empty cells of a two-way table: ``keys`` (ascending, row · width + column) and their counts."""

    width: int
    keys: Whole
    counts: Whole

    def __add__(self, other: TwoWayCounts) -> TwoWayCounts:
        keys, place = np.unique(np.concatenate([self.keys, other.keys]), return_inverse=True)
        counts = np.zeros(len(keys), dtype=np.int64)
        np.add.at(counts, place, np.concatenate([self.counts, other.counts]))
        return TwoWayCounts(width=self.width, keys=keys, counts=counts)


@dataclass(frozen=True, kw_only=True)
class CodeCounts:
    """The frequency of each code, and of each pair of codes, in ``rows`` rows."""

    rows: int
    one: tuple[Whole, ...]
    two: Mapping[Pair, TwoWayCounts]

    def __add__(self, other: CodeCounts) -> CodeCounts:
        return CodeCounts(
            rows=self.rows + other.rows,
            one=tuple(map(add, self.one, other.one)),
            two={pair: cells + other.two[pair] for pair, cells in self.two.items()},
        )

    def answered(self, pair: Pair) -> CodeCounts:
        """Return the counts of two columns in the rows in which neither is missing (the last code of each)."""
        cells = self.two[pair]
        sides, ends = divmod(cells.keys, cells.width), [len(self.one[place]) - 1 for place in pair]
        there = (sides[0] < ends[0]) & (sides[1] < ends[1])
        counts, one = cells.counts[there], [*self.one]
        for place, side in zip(pair, sides, strict=True):
            one[place] = np.zeros(len(self.one[place]), dtype=np.int64)
            np.add.at(one[place], side[there], counts)
        kept = TwoWayCounts(width=cells.width, keys=cells.keys[there], counts=counts)
        return CodeCounts(rows=int(counts.sum()), one=tuple(one), two={pair: kept})

    def shares(self, place: int) -> Floats:
        """Return the share of rows of each code of one column."""
        return self.one[place] / max(1, self.rows)


def count(codes: Integers, sizes: Sequence[int], pairs: Sequence[Pair]) -> CodeCounts:
    """Return the counts of ``(N, P)`` codes.

    Args:
        codes: One code a cell, below its column's size.
        sizes: Number of codes of each of the P columns.
        pairs: The two-way tables to count.
    """
    starts = range(0, max(1, len(codes)), _CHUNK_ROWS)
    return reduce(add, (_count(codes[start : start + _CHUNK_ROWS], sizes, pairs) for start in starts))


def _count(codes: Integers, sizes: Sequence[int], pairs: Sequence[Pair]) -> CodeCounts:
    columns = [np.ascontiguousarray(codes[:, place], dtype=np.int64) for place in range(len(sizes))]
    one = tuple(np.bincount(column, minlength=size) for column, size in zip(columns, sizes, strict=True))
    two = {}
    for left, right in pairs:
        keys = columns[left] * sizes[right] + columns[right]
        if sizes[left] * sizes[right] <= _MOST_CELLS:
            table = np.bincount(keys, minlength=1)
            filled = np.flatnonzero(table)
            two[left, right] = TwoWayCounts(width=sizes[right], keys=filled, counts=table[filled])
        else:
            filled, counts = np.unique(keys, return_counts=True)
            two[left, right] = TwoWayCounts(width=sizes[right], keys=filled, counts=counts)
    return CodeCounts(rows=len(codes), one=one, two=two)
