"""Opening private data of any kind: the container and its header, and no record."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import pandas as pd

from doublure.data.images import Images, open_images
from doublure.data.images.archives import is_archive
from doublure.data.images.arrays import is_idx
from doublure.data.images.files import ENDINGS
from doublure.data.images.lists import lists_pictures
from doublure.data.records import Loaded
from doublure.data.relational import open_related
from doublure.data.relational.opening import table_name
from doublure.data.relational.visits import open_visits
from doublure.data.series import Series, open_series
from doublure.data.tables.arrow_streams import PROTOCOL
from doublure.data.tables.many_files import holds_tables
from doublure.data.tables.opening import open_table
from doublure.errors import DataError
from doublure.schema.kinds import ByKind
from doublure.support.objects import ObjectPath, Place, find_place

if TYPE_CHECKING:
    from doublure.schema import Schema
    from doublure.schema.written import Written

Given: TypeAlias = str | os.PathLike[str] | ObjectPath | pd.DataFrame | Images | Series | Mapping[str, Any]


class Source(Protocol):
    """Private data whose container has been checked and whose records have not been read."""

    name: str

    def check(self, schema: Schema) -> None:
        """Compare the header with the schema; raises DataError."""

    def load(self, schema: Schema, *, at_least: int = 2) -> Loaded:
        """Read the records; raises DataError."""


def open_data(source: Given, kind: str, written: Written | None = None) -> Source:
    """Look at the container of data of a kind; no record is read.

    Args:
        source: The data.
        kind: Of what.
        written: How its text is to be read, if its schema says so: ``schema.written``.

    Raises:
        DataError: The file is missing, empty, or of a form that is not read.
    """
    return READERS[kind](source) if written is None else READERS[kind](source, written)


READERS: ByKind[Callable[..., Source]] = ByKind(
    "reader", table=open_table, images=open_images, series=open_series, relational=open_related, visits=open_visits
)


def kind_of(source: Given) -> str:
    """Return the kind that data looks like from its form alone: images, several tables, or else one.

    Series look like a table of readings, or like any array; that they are series is said in the schema.
    """
    if isinstance(source, Mapping) and source and all(hasattr(table, "columns") for table in source.values()):
        return "relational"
    if isinstance(source, (str, os.PathLike, ObjectPath)):
        path = find_place(source)
        if isinstance(path, ObjectPath):
            return "relational" if path.is_dir() and _differ([path / name for name in path.inside()]) else "table"
        ending = path.name.partition("#")[0].lower()
        if path.is_dir() and ((several := _holds_several(path)) or holds_tables(path)):
            if any(map(_holds_pictures, path.rglob("*.parquet"))):
                return "images"
            return "relational" if several else "table"
        if path.is_dir() or ending.endswith((".npz", ".mat")) or is_idx(path) or is_archive(path):
            return "images"
        packed = ending.endswith((".parquet", ".pq")) and _holds_pictures(path)
        return "images" if packed or lists_pictures(path) else "table"
    return "table" if hasattr(source, "columns") or hasattr(source, PROTOCOL) else "images"


def _holds_several(folder: Path) -> bool:
    """Return whether a folder holds files of tables with different headers, and neither pictures nor folders."""
    inside = [path for path in folder.iterdir() if path.name[0] not in "._"]
    if any(path.is_dir() or path.suffix.lower() in ENDINGS for path in inside):
        return False
    return _differ(sorted(inside))


def _differ(files: Sequence[Place]) -> bool:
    """Return whether files of tables have different headers."""
    headers = set()
    for path in files:
        if table_name(path) is not None:
            with suppress(DataError):  # the fault is reported on opening
                headers.add(tuple(open_table(path).columns))
    return len(headers) > 1


def _holds_pictures(path: Path) -> bool:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from doublure.data.images.files import picture_bytes

    try:
        return any(picture_bytes(field.type) for field in pq.read_schema(path))
    except (pa.ArrowException, OSError, ValueError):
        return False
