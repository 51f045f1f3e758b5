"""Tables of counts.

Sensitivity: a record counts in one cell of each table, so that a unit with at most m records moves each table by m at
most, and t tables by m √t in L2. The tables are fixed before a record is seen, or follow from earlier releases.

==========================================  =======================================================
edge case                                   what happens
==========================================  =======================================================
no record at all                            zeros
a unit with more records than planned       refused before anything is counted
no table, an axis of no part or odd cells   refused before anything is counted
==========================================  =======================================================
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from doublure.errors import SettingError
from doublure.private.queries.axes import Axis as Axis
from doublure.private.queries.axes import Table as Table
from doublure.private.queries.axes import places
from doublure.private.queries.query import Answer, Sensitivity, require_everyone, require_records
from doublure.support.arrays import Ints

_CHUNK_ROWS, _CHUNK_CELLS = 2**16, 2**23


class Countable(Protocol):
    """Compact records that can be counted: in memory (:class:`doublure.private.records.PrivateRecords`) or on disk."""

    @property
    def parts(self) -> int:
        """Number of parts of a compact record: public."""

    @property
    def most_records(self) -> int:
        """Largest number of records of a unit, over all partitions. Private."""

    def chunks(self, rows: int) -> Iterator[Any]:
        """Yield ``(≤ rows, P)``, of which ``chunk[:, part]`` is taken; of no records one that is empty. Private."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Counts:
    """Numbers of records in each cell of some tables.

    Attributes:
        tables: The axes of each table.
        max_records: m, the most records of a unit.
    """

    tables: Sequence[Table]
    max_records: int

    @property
    def sensitivity(self) -> Sensitivity:
        """Sensitivity of m records in one cell of each table."""
        return Sensitivity.of_cells(len(self.tables), self.max_records)

    def refuse_unfit(self, records: Countable) -> None:
        """Refuse tables that cannot be counted, and units with too many records."""
        require_records(records.most_records, self.max_records)
        if not self.tables:
            raise SettingError("are none", field="tables", remedy="count at least one")
        for table in self.tables:
            if not table:
                raise SettingError("has no axis", field="tables", remedy="give one")
            for axis in table:
                axis.refuse_unfit(records.parts)

    def answer(self, records: Countable, *, sample_rate: float) -> Answer:
        """Return the counts of all tables, concatenated, int64."""
        require_everyone(sample_rate)
        different = {id(table): table for table in self.tables}  # one that is asked for twice is counted once
        found = {key: np.zeros(math.prod(axis.size for axis in table), np.int64) for key, table in different.items()}
        axes = {id(axis): axis for table in self.tables for axis in table}
        for codes in records.chunks(min(_CHUNK_ROWS, max(1, _CHUNK_CELLS // len(axes)))):
            cells = {key: axis.of(codes) for key, axis in axes.items()}
            for key, table in different.items():
                found[key] += np.bincount(places(table, cells), minlength=len(found[key]))
        counts = [found[id(table)] for table in self.tables]
        return Answer(total=np.concatenate(counts), sensitivity=Sensitivity.of_cells(len(counts), self.max_records))

    def split(self, numbers: Ints) -> list[Ints]:
        """Return one array per table, in the shape of its axes, from numbers in the order of an answer."""
        ends = np.cumsum([math.prod(shape) for shape in self._shapes])
        parts = np.split(numbers, ends[:-1])
        return [part.reshape(shape) for part, shape in zip(parts, self._shapes, strict=True)]

    @property
    def _shapes(self) -> list[tuple[int, ...]]:
        return [tuple(axis.size for axis in table) for table in self.tables]
