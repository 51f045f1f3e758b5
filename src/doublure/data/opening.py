"""Opening private data of any kind: the container and its header, and no record."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    from doublure.data.images import Images
    from doublure.data.series import Series
    from doublure.schema import Schema

Given: TypeAlias = "str | os.PathLike[str] | pd.DataFrame | Images | Series | Mapping[str, Any]"


class Loaded(Protocol):
    """Private records under a schema."""

    @property
    def content(self) -> Any:
        """What the kind's encoder reads."""

    @property
    def frame(self) -> pd.DataFrame:
        """The columns beside what a record is made of: all of a table's, an image's label, a series' attributes."""

    @property
    def unit(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """``(N,)``, the index of each record's unit, 0 … n_units - 1."""

    @property
    def n_units(self) -> int:
        """How many units there are. Private."""

    @property
    def repeatable(self) -> bool:
        """Whether loading the same data again gives the same records. Private."""

    def cells(self, column: str, fact: str) -> pd.Series[Any]:
        """Return what the statistic for a fact of a column looks at; no more of a record than the schema says."""


class Source(Protocol):
    """Private data whose container has been checked and whose records have not been read."""

    name: str

    def check(self, schema: Schema) -> None:
        """Compare the header with the schema; raises DataError."""

    def load(self, schema: Schema, *, at_least: int = 2) -> Loaded:
        """Read the records; raises DataError."""


def open_data(source: Given, kind: str) -> Source:
    """Look at the container of data of a kind; no record is read.

    Raises:
        DataError: The file is missing, empty, or of a form that is not read.
    """
    if kind == "images":
        from doublure.data.images import open_images

        return open_images(source)  # type: ignore[arg-type]
    if kind == "series":
        from doublure.data.series import open_series

        return open_series(source)  # type: ignore[arg-type]
    from doublure.data.tables.opening import open_table

    return open_table(source)  # type: ignore[arg-type]


def kind_of(source: Given) -> str:
    """Return the kind that data looks like from its form alone: images, or else a table.

    Series look like a table of readings, or like any array; that they are series is said in the schema.
    """
    from doublure.data.images.arrays import is_idx

    if isinstance(source, (str, os.PathLike)):
        path = Path(source)
        ending = path.name.partition("#")[0].lower()
        if path.is_dir() or ending.endswith(".npz") or is_idx(path):
            return "images"
        return "images" if ending.endswith((".parquet", ".pq")) and _holds_pictures(path) else "table"
    return "table" if hasattr(source, "columns") else "images"


def _holds_pictures(path: Path) -> bool:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from doublure.data.images.files import picture_bytes

    try:
        return any(picture_bytes(field.type) for field in pq.read_schema(path))
    except (pa.ArrowException, OSError, ValueError):
        return False
