"""Compact private records on disk, row by row, for drawing lots where all records do not fit in memory.

They are written once, in the order in which they came, and beside them each one's unit. A file that is to stay, so that
an interrupted run can go on, is readable by its owner alone, and gets its name once it is whole; any other has no name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from doublure.support.number_files import NumberFile
from doublure.support.row_files import RowFile

IntArray = npt.NDArray[np.int64]

_WHOLE = b"doublure rows 1"


class RowCodes:
    """All compact records of a run, on disk.

    Attributes:
        rows: ``(N, P)``. Private.
        unit: ``(N,)`` int64, each record's unit. Private.
        n_units: Number of units. Private.
    """

    def __init__(self, rows: RowFile, unit: IntArray, n_units: int) -> None:
        self.rows = rows
        self.unit = unit
        self.n_units = n_units

    @classmethod
    def write(
        cls,
        records: Iterable[npt.NDArray[Any]],
        *,
        unit: Callable[[], IntArray | None],
        folder: Path,
        path: Path | None,
    ) -> RowCodes:
        """Write compact records.

        Args:
            records: Yields ``(B, P)``, at least once.
            unit: Each record's unit, 0 to one less than there are, once all records have been seen; None: each is a
                unit of its own.
            folder: Where there is room.
            path: The file's name, if it is to stay; None: it has none.

        Raises:
            Unwritable: The disk is full.
        """
        with NumberFile.create(folder, path) as file:
            blocks = iter(records)
            first = next(blocks)
            rows = RowFile(file, first.shape[1:], first.dtype)
            rows.add(first)
            for block in blocks:
                rows.add(block)
            own = unit()
            made = cls.of(rows, own)
            if path is not None:
                known = {"shape": rows.shape, "type": rows.dtype.str, "units": None if own is None else file.add(own)}
                file.seal(known, _WHOLE)
        return made

    @classmethod
    def of(cls, rows: RowFile, unit: IntArray | None) -> RowCodes:
        """Return records with these units; None: each record is a unit."""
        own = np.arange(len(rows), dtype=np.int64) if unit is None else unit
        return cls(rows, own, int(own.max(initial=-1)) + 1)

    @classmethod
    def open(cls, path: Path) -> RowCodes | None:
        """Return the rows that an interrupted run kept; None without a complete file."""
        try:
            file = NumberFile.open(path)
            known = file.known(_WHOLE)
            if known is None:
                return None
            rows = RowFile.of(file, tuple(known["shape"]), known["type"])
            return cls.of(rows, None if known["units"] is None else file.get(known["units"], len(rows), np.int64))
        except (OSError, EOFError, ValueError, KeyError, TypeError):
            return None

    def __repr__(self) -> str:
        return "RowCodes(private)"

    def __reduce__(self) -> NoReturn:
        raise TypeError("private records are never serialised")
