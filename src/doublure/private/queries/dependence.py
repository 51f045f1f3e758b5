"""Dependence scores of pairs of columns: whole-number distances from expected counts.

The score of a pair is the sum, over the cells of its table, of how far the count is from an expected count. What is
expected is whole and follows from earlier releases alone (the product of two noisy columns).

Sensitivity: a record counts in one cell of each pair's table. Adding or removing it moves that cell's count by one, and
so |count - expected| by one at most, and no other cell's. A unit with at most m records therefore moves each score by m
at most (the triangle inequality), and t scores by m √t in L2: as much as t tables. (A score that divides by the
expected counts, as χ², or takes logarithms, as mutual information, has no such bound.)

The absolute value is taken of counts of *all* records: a score is no sum over records. The counts of partitions are
added up before (:class:`doublure.private.partitions.CompositeQuery`). Of very many pairs some millions of cells are
held at once, and the records are gone through again for the next ones.

==========================================  =======================================================
edge case                                   what happens
==========================================  =======================================================
no record at all                            the expected counts' sum
an expectation that is not whole, or of     refused before anything is counted
another shape than its table
a unit with more records than planned       refused before anything is counted
==========================================  =======================================================
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from doublure.errors import SettingError
from doublure.private.queries.axes import Table
from doublure.private.queries.counts import Countable, Counts
from doublure.private.queries.query import Answer, Sensitivity
from doublure.support.arrays import Ints

_CELLS_AT_ONCE = 2**22


@dataclass(frozen=True, kw_only=True, eq=False)
class Dependence:
    """The distance of each of some tables from its expected counts.

    Attributes:
        tables: The axes of each table.
        expected: The expected counts of each table, int64, in the shape of its axes.
        max_records: m, the most records of a unit.
    """

    tables: Sequence[Table]
    expected: Sequence[Ints]
    max_records: int

    @property
    def sensitivity(self) -> Sensitivity:
        """Sensitivity of m for each score."""
        return Sensitivity.of_cells(len(self.tables), self.max_records)

    def refuse_unfit(self, records: Countable) -> None:
        """Refuse tables that cannot be counted, units with too many records, and expectations that are not whole."""
        self._counts.refuse_unfit(records)
        shapes = [tuple(axis.size for axis in table) for table in self.tables]
        whole = all(np.issubdtype(each.dtype, np.integer) for each in self.expected)
        if not whole or [each.shape for each in self.expected] != shapes:
            raise SettingError("must be whole, of the shapes of the tables", field="expected", remedy="round them")

    def sums(self) -> Iterator[Counts]:
        """Yield the counts to ask for, as many tables at once as may be held."""
        return (counts for counts, _ in self._some_at_once())

    def combine(self, totals: Iterator[Ints]) -> Answer:
        """Return one score per table, int64, from the counts of all records in the order of :meth:`sums`."""
        scores: list[int] = []
        for (counts, expected), total in zip(self._some_at_once(), totals, strict=True):
            scores += [int(np.abs(own - each).sum()) for own, each in zip(counts.split(total), expected, strict=True)]
        moved = Sensitivity.of_cells(len(scores), self.max_records)
        return Answer(total=np.array(scores, dtype=np.int64), sensitivity=moved)

    def answer(self, records: Countable, *, sample_rate: float) -> Answer:
        """Return one score per table, int64, for records in one place."""
        return self.combine(each.answer(records, sample_rate=sample_rate).total for each in self.sums())

    def _some_at_once(self) -> Iterator[tuple[Counts, Sequence[Ints]]]:
        """Yield the tables with their expected counts, as many at once as may be held."""
        ends = np.cumsum([math.prod(axis.size for axis in table) for table in self.tables])
        first = 0
        while first < len(self.tables):
            held = int(ends[first - 1]) if first else 0
            last = max(first + 1, int(np.searchsorted(ends, held + _CELLS_AT_ONCE, side="right")))
            yield Counts(tables=self.tables[first:last], max_records=self.max_records), self.expected[first:last]
            first = last

    @property
    def _counts(self) -> Counts:
        return Counts(tables=self.tables, max_records=self.max_records)
