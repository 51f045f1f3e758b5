"""Where results are written: a path on a disk, or an object or folder in a store."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from doublure.support.files import check_output
from doublure.support.objects import find_path, find_place


def find_folder(given: str | os.PathLike[str]) -> Path:
    """Return the folder of a bundle: the ledger records its hashes, and a store puts no folder in place at once.

    Raises:
        InputError: It is an address.
    """
    return find_path(given, "is no folder on a disk", "release to a folder, verify it, and copy it to the store")


@contextmanager
def output(out: str | os.PathLike[str], *, forced: bool) -> Iterator[Path]:
    """Yield the path to write to; what is written for a store is sent there at the end.

    Args:
        out: A path or an address.
        forced: Whether a file that is there may be replaced.

    Raises:
        InputError: Something is there, or the store cannot be written to.
    """
    place = find_place(out)
    if isinstance(place, Path):
        check_output(place, forced=forced)
        yield place
        return
    place.refuse_unwritable(forced=forced)
    with tempfile.TemporaryDirectory(prefix="doublure-") as folder:
        yield Path(folder, place.name)
        place.put(Path(folder, place.name))
