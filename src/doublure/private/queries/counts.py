"""Tables of counts.

Sensitivity: a record counts in one cell of each table, so that a unit with at most m records moves each table by m at
most, and t tables by m √t in L2. What is counted is fixed before a record is seen, or follows from what was released.

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
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from doublure.errors import SettingError
from doublure.private.queries.query import Answer, Sensitivity, require_everyone, require_records

if TYPE_CHECKING:
    from doublure.private.records import PrivateRecords

IntArray = npt.NDArray[np.int64]

_CHUNK_ROWS = 2**16


@dataclass(frozen=True, kw_only=True, eq=False)
class Axis:
    """One axis of a table: a part of a compact record, and which cell each of its codes falls in.

    Attributes:
        part: The part's place in a compact record.
        cells: ``(codes,)`` the cell of each code, in ``[0, size)``.
        size: How many cells.
    """

    part: int
    cells: IntArray
    size: int

    @classmethod
    def of_codes(cls, part: int, codes: int) -> Axis:
        """Return the axis on which every code has a cell of its own."""
        return cls(part=part, cells=np.arange(codes, dtype=np.int64), size=codes)


Table: TypeAlias = tuple[Axis, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class Counts:
    """How many records fall in each cell of some tables.

    Attributes:
        tables: For each its axes.
        max_records: m, how many records a unit has at most.
    """

    tables: Sequence[Table]
    max_records: int

    @property
    def sensitivity(self) -> Sensitivity:
        """M in one cell of each table."""
        return Sensitivity.of_cells(len(self.tables), self.max_records)

    def refuse_unfit(self, records: PrivateRecords) -> None:
        """Refuse tables that could not be counted, and units with too many records."""
        require_records(records.most_records, self.max_records)
        if not self.tables:
            raise SettingError("are none", field="tables", remedy="count at least one")
        for table in self.tables:
            _require_axes(table, records.parts)

    def answer(self, records: PrivateRecords, *, sample_rate: float) -> Answer:
        """Return the counts of all tables, one behind the other, int64."""
        require_everyone(sample_rate)
        counts = [np.zeros(math.prod(shape), dtype=np.int64) for shape in self._shapes]
        axes = {id(axis): axis for table in self.tables for axis in table}
        for codes in records.chunks(_CHUNK_ROWS):
            cells = {key: axis.cells[codes[:, axis.part].astype(np.int64)] for key, axis in axes.items()}
            for table, shape, total in zip(self.tables, self._shapes, counts, strict=True):
                total += np.bincount(_flat([cells[id(axis)] for axis in table], shape), minlength=len(total))
        return Answer(total=np.concatenate(counts), sensitivity=Sensitivity.of_cells(len(counts), self.max_records))

    def split(self, numbers: IntArray) -> list[IntArray]:
        """Return one array a table, of the shape of its axes, from numbers in the order of an answer."""
        ends = np.cumsum([math.prod(shape) for shape in self._shapes])
        parts = np.split(numbers, ends[:-1])
        return [part.reshape(shape) for part, shape in zip(parts, self._shapes, strict=True)]

    @property
    def _shapes(self) -> list[tuple[int, ...]]:
        return [tuple(axis.size for axis in table) for table in self.tables]


def _require_axes(table: Table, parts: int) -> None:
    """Refuse a table that could not be counted, or would count a record elsewhere than said."""
    if not table:
        raise SettingError("has no axis", field="tables", remedy="give one")
    for axis in table:
        if not 0 <= axis.part < parts:
            raise SettingError(
                f"{axis.part} is no part of a record", field="part", remedy=f"count from 0 to {parts - 1}"
            )
        cells = axis.cells
        whole = cells.ndim == 1 and cells.size > 0 and np.issubdtype(cells.dtype, np.integer)
        if not whole or int(cells.min()) < 0 or int(cells.max()) >= axis.size:
            raise SettingError(
                "must be whole numbers from 0 to below the size", field="cells", remedy="give each code one cell"
            )


def _flat(cells: Sequence[IntArray], shape: Sequence[int]) -> npt.NDArray[Any]:
    """Return each record's place in a flattened table."""
    place = cells[0]
    for own, size in zip(cells[1:], shape[1:], strict=True):
        place = place * size + own
    return place
