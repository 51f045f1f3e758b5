"""Rows of numbers on disk with random access, for drawing lots where memory is too small.

They are written once and mapped into memory; rows that are read are copied. Mapped pages are released now and then, so
that a process does not hold the whole file after some lots.
"""

from __future__ import annotations

import mmap
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

import numpy as np
import numpy.typing as npt

from doublure.support.number_files import NumberFile

Chosen: TypeAlias = "slice | npt.NDArray[Any]"

_LET_GO = 2**28
_NEIGHBOURS = 2**16
"""Bytes that the system maps around a page that is read."""
_MOVED = 2**24


class StoredRows(ABC):
    """Rows that are stored elsewhere, and read as arrays on access.

    Attributes:
        shape: ``(N, …)``, that of all rows.
        dtype: Of their numbers.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @abstractmethod
    def __getitem__(self, rows: Chosen) -> npt.NDArray[Any]:
        """Return some rows: by a slice, by indices ``(B,)``, or by a mask ``(N,)``."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(private)"

    def __reduce__(self) -> NoReturn:
        raise TypeError("private records are never serialised")


class RowFile(StoredRows):
    """Rows of one shape and type on disk.

    Args:
        file: The file to write to.
        shape: Of one row.
        dtype: Of their numbers.
    """

    def __init__(self, file: NumberFile, shape: tuple[int, ...], dtype: npt.DTypeLike) -> None:
        self._file = file
        self.dtype = np.dtype(dtype)
        self.shape = (0, *shape)
        self._row_bytes = int(np.prod(shape)) * self.dtype.itemsize
        self._map: mmap.mmap | None = None
        self._looked_at = 0

    @classmethod
    def within(cls, folder: Path, shape: tuple[int, ...], dtype: npt.DTypeLike) -> RowFile:
        """Return an empty, unnamed file in a folder with enough room."""
        return cls(NumberFile(folder), shape, dtype)

    @classmethod
    def of(cls, file: NumberFile, shape: tuple[int, ...], dtype: npt.DTypeLike) -> RowFile:
        """Return the ``(N, …)`` rows at the beginning of a kept file."""
        found = cls(file, shape[1:], dtype)
        found.shape = shape
        return found

    def add(self, rows: npt.NDArray[Any]) -> None:
        """Append rows ``(B, …)``.

        Raises:
            Unwritable: The disk is full.
            TypeError: They have another shape or type.
        """
        if rows.shape[1:] != self.shape[1:] or rows.dtype != self.dtype:
            raise TypeError("rows of another shape or type")
        self._file.put(len(self) * self._row_bytes, rows)
        self._resized(len(self) + len(rows))

    def keep(self, places: npt.NDArray[np.intp]) -> None:
        """Keep only some rows.

        Args:
            places: ``(M,)`` their indices, ascending.

        Raises:
            Unwritable: The disk is full.
        """
        step = max(1, _MOVED // max(1, self._row_bytes))
        for first in range(0, len(places), step):  # none moves behind one that is still to be moved
            moved = self[places[first : first + step]]
            self._file.put(first * self._row_bytes, moved)
        self._resized(len(places))

    def __getitem__(self, rows: Chosen) -> npt.NDArray[Any]:
        found = np.array(self._mapped()[rows])
        apart = 0 if isinstance(rows, slice) else len(found) * _NEIGHBOURS
        self._looked_at += max(found.nbytes, apart)
        if self._looked_at >= _LET_GO:
            self._let_go()
        return found

    def _mapped(self) -> npt.NDArray[Any]:
        size = len(self) * self._row_bytes
        if not size:
            return np.empty(self.shape, self.dtype)
        if self._map is None:
            self._map = self._file.mapped(size)
        return np.frombuffer(self._map, self.dtype).reshape(self.shape)

    def _let_go(self) -> None:
        """Release mapped pages; their content is in the file."""
        if self._map is not None and hasattr(self._map, "madvise"):
            self._map.madvise(mmap.MADV_DONTNEED)
        self._looked_at = 0

    def _resized(self, count: int) -> None:
        self._map = None
        self.shape = (count, *self.shape[1:])

    def close(self) -> None:
        """Close the file; an unnamed one is deleted then."""
        self._map = None
        self._file.close()
