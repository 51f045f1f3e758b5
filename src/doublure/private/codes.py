"""Compact private records on disk: the codes of a table, in the narrowest whole numbers that hold them.

They are written once, block by block and column by column within a block, and counted in partitions of adjacent
blocks (:mod:`doublure.private.partitions`). A file that is to stay, so that an interrupted run
can go on, is readable by its owner alone, and gets its name once it is whole; any other has no name.

Records are in the order in which they came. A unit's records may lie in several partitions: how many the unit with the
most has was counted over all of them, before the first was written.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np
import numpy.typing as npt

from doublure.private.partitions import SequentialPartitions
from doublure.support.number_files import NumberFile

PARTITION_RECORDS = 2**21
_WHOLE = b"doublure codes 1"


class _CodeBlock(NamedTuple):
    start: int
    rows: int


class CodeColumns:
    """Compact records ``(N, P)``, of which ``[:, part]`` is read on demand. Private."""

    def __init__(self, codes: ColumnCodes, block: _CodeBlock, first: int, rows: int) -> None:
        self._codes = codes
        self._block = block
        self._first = first
        self._rows = rows

    def __len__(self) -> int:
        return self._rows

    def __getitem__(self, wanted: tuple[slice, int]) -> npt.NDArray[Any]:
        rows, part = wanted
        if rows != slice(None):
            raise TypeError("columns are read whole")
        return self._codes.column(self._block, part, self._first, self._rows)


class CodePartition:
    """A partition of some blocks, in the form that counting queries read.

    Attributes:
        parts: How many parts a compact record has.
        most_records: How many records the unit with the most has in all partitions. Private.
    """

    def __init__(self, codes: ColumnCodes, blocks: Sequence[_CodeBlock]) -> None:
        self._codes = codes
        self._blocks = blocks
        self.parts = len(codes.types)
        self.most_records = codes.most_records

    def chunks(self, rows: int) -> Iterator[CodeColumns]:
        """Yield compact records, a chunk at a time; of no records one that is empty. Private."""
        for block in self._blocks:
            for first in range(0, max(1, block.rows), rows):
                yield CodeColumns(self._codes, block, first, min(rows, block.rows - first))

    def __repr__(self) -> str:
        return "CodePartition(private)"


class ColumnCodes:
    """All compact records of a run, on disk.

    Attributes:
        types: Of each part its numbers' type.
        most_records: How many records the unit with the most has. Private.
        fingerprint: A hash of all records in their order. Private: for a run's internal folder alone.
    """

    def __init__(
        self,
        file: NumberFile,
        types: Sequence[npt.DTypeLike],
        blocks: Sequence[tuple[int, int]],
        most_records: int,
        fingerprint: str,
    ) -> None:
        self._file = file
        self.types = [np.dtype(each) for each in types]
        self._widths = np.cumsum([0, *(each.itemsize for each in self.types)]).tolist()
        self._blocks = [_CodeBlock(*block) for block in blocks]
        self.most_records = most_records
        self.fingerprint = fingerprint

    @classmethod
    def write(
        cls,
        records: Iterable[npt.NDArray[np.float64]],
        types: Sequence[npt.DTypeLike],
        *,
        most_records: Callable[[], int],
        folder: Path,
        path: Path | None,
    ) -> ColumnCodes:
        """Write compact records.

        Args:
            records: Yields ``(≤ rows, P)`` whole numbers, at least once.
            types: Of each part the type that holds them.
            most_records: How many records the unit with the most has, once all have been seen.
            folder: Where there is room.
            path: The file's name, if it is to stay; None: it has none.

        Raises:
            Unwritable: The disk is full.
            TypeError: A number is not whole, or does not fit its type: a defect of the encoder.
        """
        kinds, found, blocks = [np.dtype(each) for each in types], hashlib.sha256(), []
        with NumberFile.create(folder, path) as file:
            for rows in records:
                blocks.append((file.size, len(rows)))
                for column in whole_columns(rows, kinds):
                    file.add(column)
                    found.update(column.tobytes())
            made = cls(file, kinds, blocks, most_records(), found.hexdigest())
            if path is not None:
                known = {
                    "types": [each.str for each in made.types],
                    "blocks": made._blocks,
                    "most_records": made.most_records,
                    "fingerprint": made.fingerprint,
                }
                file.seal(known, _WHOLE)
        return made

    @classmethod
    def open(cls, path: Path) -> ColumnCodes | None:
        """Return the codes that an interrupted run kept; None without a complete file."""
        try:
            file = NumberFile.open(path)
            known = file.known(_WHOLE)
            if known is None:
                return None
            return cls(file, known["types"], known["blocks"], known["most_records"], known["fingerprint"])
        except (OSError, EOFError, ValueError, KeyError, TypeError):
            return None

    def partitions(self, check: Callable[[], None] = lambda: None) -> SequentialPartitions[CodePartition]:
        """Return the records as partitions.

        Args:
            check: Called before each is asked; may raise to stop.
        """
        return SequentialPartitions(self._parts, check)

    def _parts(self) -> Iterator[CodePartition]:
        held: list[_CodeBlock] = []
        for block in self._blocks:
            held.append(block)
            if sum(each.rows for each in held) >= PARTITION_RECORDS:
                yield CodePartition(self, held)
                held = []
        if held or not self._blocks:
            yield CodePartition(self, held or [_CodeBlock(0, 0)])

    def column(self, block: _CodeBlock, part: int, first: int, rows: int) -> npt.NDArray[Any]:
        """Return ``(rows,)`` numbers of one part, from a place in a block on. Private."""
        kind = self.types[part]
        return self._file.get(block.start + self._widths[part] * block.rows + first * kind.itemsize, rows, kind)

    def close(self) -> None:
        """Close the file; one without a name is deleted then."""
        self._file.close()

    def __repr__(self) -> str:
        return "ColumnCodes(private)"

    def __reduce__(self) -> NoReturn:
        raise TypeError("private records are never serialised")


def whole_columns(rows: npt.NDArray[Any], types: Sequence[np.dtype[Any]]) -> Iterator[npt.NDArray[Any]]:
    """Yield each part of compact records in its own type.

    Raises:
        TypeError: A number is not whole, or does not fit its type: a defect of the encoder.
    """
    for place, kind in enumerate(types):
        column = rows[:, place].astype(kind)
        if not np.array_equal(column, rows[:, place]):
            raise TypeError("a code is no whole number of its type")
        yield column


def narrowest(first: int, last: int) -> np.dtype[Any]:
    """Return the smallest type of whole numbers that holds a range.

    Example:
        >>> narrowest(0, 127), narrowest(-5, 200)
        (dtype('int8'), dtype('int16'))
    """
    return next(
        np.dtype(kind)
        for kind in (np.int8, np.int16, np.int32, np.int64)
        if np.iinfo(kind).min <= first and last <= np.iinfo(kind).max
    )
