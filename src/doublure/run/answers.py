"""Noisy answers in a run folder's ``internal/``, one atomic file each, never replaced, mode 0600.

They are paid for and noisy, and are kept within the folder, as checkpoints are, so that the run can be resumed. They
are removed once it is finished; those that may be published are in ``tables.safetensors``.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from doublure.errors import RunFolderError
from doublure.private.kept_answers import KeptAnswer, Place
from doublure.support import files
from doublure.support.tensors import Array, damaged_file, read_arrays, to_safetensors

_NAME = re.compile(r"answer-([0-9]+)-([0-9]+)\.safetensors")
_NOISY, _NAMES = "noisy", "names"


class AnswersInFolder:
    """The answers of a run.

    Args:
        folder: The run's internal folder.

    Attributes:
        records: A hash of the records, stored with each answer; None while it is not known.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.records: str | None = None

    def places(self) -> frozenset[Place]:
        """Return the places of the kept answers."""
        found = (_NAME.fullmatch(path.name) for path in self._folder.glob("answer-*"))
        return frozenset((int(name[1]), int(name[2])) for name in found if name is not None)

    def read(self, place: Place) -> KeptAnswer:
        """Return one of them.

        Raises:
            RunFolderError: It is damaged.
        """
        path = self._path(place)
        metadata, arrays = read_arrays(path)
        try:
            ran = json.loads(metadata["ran"])
            return KeptAnswer(noisy=_unpacked(arrays), asked=metadata["asked"], ran=ran)
        except (KeyError, ValueError, TypeError):
            raise damaged_file(path) from None

    @contextlib.contextmanager
    def room(self, place: Place, size: int) -> Iterator[Callable[[KeptAnswer], None]]:
        """Reserve room on the disk for an answer, and yield a function that writes it.

        Raises:
            Unwritable: There is no room.
            RunFolderError: An answer is there already.
        """
        path = self._path(place)
        if path.exists():
            raise RunFolderError("was kept already", field=f"{path.parent.name}/{path.name}", remedy="go on with it")
        with files.reserve_room(path, size, mode=0o600) as write:
            yield lambda answer: write(_content(answer, self.records))

    def are_of(self, records: str) -> bool:
        """Say whether all answers are of these records.

        Args:
            records: Their hash.
        """
        return all(read_arrays(self._path(place))[0].get("records", records) == records for place in self.places())

    def forget(self, access: int, before: int) -> None:
        """Remove an access's answers before a number."""
        for place in self.places():
            if place[0] == access and place[1] < before:
                self._path(place).unlink(missing_ok=True)

    def forget_all(self) -> None:
        """Remove all answers."""
        for place in self.places():
            self._path(place).unlink(missing_ok=True)

    def _path(self, place: Place) -> Path:
        return self._folder / f"answer-{place[0]}-{place[1]}.safetensors"


def _content(answer: KeptAnswer, records: str | None) -> bytes:
    noisy, of = answer.noisy, {} if records is None else {"records": records}
    if isinstance(noisy, Mapping):
        names = np.frombuffer(json.dumps(list(noisy)).encode(), np.uint8)
        arrays: dict[str, Array] = {_NOISY: np.array(list(noisy.values()), np.int64), _NAMES: names}
    else:
        arrays = {_NOISY: noisy}
    return to_safetensors(arrays, {"asked": answer.asked, "ran": json.dumps(answer.ran), **of})


def _unpacked(arrays: Mapping[str, Array]) -> Any:
    noisy = arrays[_NOISY]
    if _NAMES not in arrays:
        return noisy
    return dict(zip(json.loads(arrays[_NAMES].tobytes()), noisy.tolist(), strict=True))
