"""Files of numbers larger than memory: written once, read in ranges, and unnamed unless kept.

An unnamed file is deleted when its process ends, however it ends. Ranges are read by position and copied; no pages stay
mapped. Metadata of a kept file is written after its numbers.
"""

from __future__ import annotations

import json
import mmap
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from doublure.support.files import Unwritable, sync_folder, temporary_path

_LENGTH = np.dtype(np.int64)


class NumberFile:
    """Numbers on disk, in the order in which they are added.

    Args:
        folder: A folder with room for it.
        path: Its name if it is kept, readable by its owner alone; None: it has none.

    Attributes:
        size: In bytes.
    """

    def __init__(self, folder: Path, path: Path | None = None) -> None:
        self._folder = path or folder
        self.size = 0
        try:
            if path is None:
                with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
                    self._descriptor = os.dup(file.fileno())
            else:
                self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        except OSError as error:
            raise Unwritable(self._folder, error) from None

    @classmethod
    @contextmanager
    def create(cls, folder: Path, path: Path | None) -> Iterator[NumberFile]:
        """Yield a new file, which gets its name when the block ends; a failed block leaves nothing.

        Args:
            folder: A folder with room for it.
            path: Its name if it is kept; None: it has none.

        Raises:
            Unwritable: It cannot be made.
        """
        part = None if path is None else temporary_path(path)
        file = cls(folder, part)
        try:
            yield file
            if part is not None and path is not None:
                part.replace(path)
                sync_folder(path.parent)
        except BaseException:
            file.close()
            if part is not None:
                part.unlink(missing_ok=True)
            raise

    @classmethod
    def open(cls, path: Path) -> NumberFile:
        """Open a kept file.

        Raises:
            OSError: There is none.
        """
        found = object.__new__(cls)
        found._folder = path
        found._descriptor = os.open(path, os.O_RDONLY)
        found.size = os.fstat(found._descriptor).st_size
        return found

    def add(self, numbers: npt.NDArray[Any] | bytes) -> int:
        """Append numbers, and return their start position.

        Raises:
            Unwritable: The disk is full.
        """
        start = self.size
        self.put(start, numbers)
        return start

    def put(self, start: int, numbers: npt.NDArray[Any] | bytes) -> None:
        """Write numbers at a position.

        Raises:
            Unwritable: The disk is full.
        """
        content = memoryview(numbers if isinstance(numbers, bytes) else _bytes_of(np.ascontiguousarray(numbers)))
        place = start
        try:
            while content.nbytes:
                written = os.pwrite(self._descriptor, content, place)
                place, content = place + written, content[written:]
        except OSError as error:
            raise Unwritable(self._folder, error) from None
        self.size = max(self.size, place)

    def get(self, start: int, count: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """Return ``(count,)`` numbers from a position.

        Raises:
            EOFError: There are fewer.
        """
        found = np.empty(count, dtype=dtype)
        content, place = memoryview(_bytes_of(found)), start
        while content.nbytes:
            read = os.preadv(self._descriptor, [content], place)
            if not read:
                raise EOFError
            place, content = place + read, content[read:]
        return found

    def mapped(self, size: int) -> mmap.mmap:
        """Return its first bytes as memory that is read from the disk on access."""
        return mmap.mmap(self._descriptor, size, access=mmap.ACCESS_READ)

    def seal(self, known: Mapping[str, Any], mark: bytes) -> None:
        """Write metadata after the numbers, and return once everything is on the disk.

        Args:
            known: JSON metadata.
            mark: The file's kind; a file without it is incomplete.

        Raises:
            Unwritable: The disk is full.
        """
        content = json.dumps(known).encode()
        self.add(content + np.array([len(content)], _LENGTH).tobytes() + mark)
        self._sync()

    def known(self, mark: bytes) -> dict[str, Any] | None:
        """Return the metadata that :meth:`seal` wrote; None for an incomplete file or another kind.

        Raises:
            OSError: It cannot be read.
            EOFError: It is too short.
            ValueError: It is damaged.
        """
        tail = _LENGTH.itemsize + len(mark)
        last = self.get(self.size - tail, tail, np.uint8).tobytes()
        if not last.endswith(mark):
            return None
        length = int(np.frombuffer(last[: _LENGTH.itemsize], _LENGTH)[0])
        found = json.loads(self.get(self.size - tail - length, length, np.uint8).tobytes())
        return found if isinstance(found, dict) else None

    def _sync(self) -> None:
        try:
            os.fsync(self._descriptor)
        except OSError as error:
            raise Unwritable(self._folder, error) from None

    def close(self) -> None:
        """Close it; an unnamed file is deleted then."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __del__(self) -> None:
        if hasattr(self, "_descriptor"):
            self.close()


def _bytes_of(numbers: npt.NDArray[Any]) -> Any:
    """Return an array's bytes; datetime arrays have no buffer of their own."""
    return numbers.reshape(-1).view(np.uint8).data
