"""Which records a fit was refused for: an internal list beside the run folder, named in no public message."""

from __future__ import annotations

import contextlib
import csv
import io
import os
from collections.abc import Iterator
from pathlib import Path

from doublure.errors import FaultyRecords, InputError
from doublure.support import files

_HEAD = ("number", "file", "rule")
_PRIVATE = 0o600


def list_of(out: Path) -> Path:
    """Return where the list of a run that was refused stands: beside its folder, which is not made or not kept."""
    place = out.resolve()  # "." has no name
    return place.parent / f"{place.name}-refused.csv"


@contextlib.contextmanager
def listing(out: Path | None) -> Iterator[None]:
    """Write the list where records are refused inside, and say so in the remedy.

    A list of an earlier try is replaced; another file of that name stays, and there is no list.

    Args:
        out: The run folder that was asked for; without one there is no list, and :class:`FaultyRecords` alone has it.

    Raises:
        FaultyRecords: As it came, with the list's name in its remedy.
    """
    if out is None:
        yield
        return
    place = list_of(out)
    try:
        yield
    except FaultyRecords as error:
        if not _may_be_written(place):
            raise
        text = io.StringIO()
        csv.writer(text).writerows([_HEAD, *((number or "", name, rule) for number, name, rule in error.faults)])
        content = text.getvalue().encode(errors="surrogateescape")
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            files.write_atomic(place, lambda file: file.write(content), mode=_PRIVATE)
        except (InputError, OSError):
            raise error from None
        remedy = f"{error.remedy}; {place.name} beside the run folder names them, and is internal"
        raise FaultyRecords(error.message, field=error.field, remedy=remedy, faults=error.faults) from None


def _may_be_written(place: Path) -> bool:
    """Whether nothing stands there, or a list."""
    if not os.path.lexists(place):
        return True
    head = ",".join(_HEAD).encode()
    with contextlib.suppress(OSError), place.open("rb") as file:
        return file.read(len(head)) == head
    return False
