"""The containers of tables, by the endings of their files."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from doublure.errors import DataError
from doublure.support.extras import require_files

if TYPE_CHECKING:
    from doublure.data.tables.source import TableSource
    from doublure.schema.written import Written
    from doublure.support.objects import Place

    Opener = Callable[[Any, Written | None], TableSource]

COMPRESSIONS = (".gz", ".bz2", ".xz", ".zip", ".zst")


@dataclass(frozen=True, kw_only=True)
class TableContainer:
    """A form of files that hold a table.

    Attributes:
        name: As messages say it.
        endings: Of its files.
        place: The module and class that read it; None for what :mod:`doublure.data.tables.opening` reads itself.
        library: Of the extra ``files``, if it needs one.
        compressed: Whether its files may be compressed.
        sheets: Whether a file may hold several tables, of which one is named behind a ``#``.
        streamed: Whether its files are read as they come, so that they may lie in an object store.
    """

    name: str
    endings: tuple[str, ...]
    place: tuple[str, str] | None = None
    library: str | None = None
    compressed: bool = False
    sheets: bool = False
    streamed: bool = True

    def form_of(self, path: Place) -> str:
        """Return what files have to share to hold one table: the container, and of CSV the ending."""
        return next(each for each in _endings(path) if each in self.endings) if self is CSV else self.name

    def opener(self, file: str) -> Opener:
        """Return what opens such a file.

        Args:
            file: Its name.

        Raises:
            MissingExtra: A library is not installed.
        """
        if self.place is None:
            raise TypeError(f"{self.name} has no file here")
        if self.library is not None:
            require_files(self.library, file)
        module, name = self.place
        return cast("Opener", getattr(importlib.import_module(f"doublure.data.tables.containers.{module}"), name))


CSV = TableContainer(name="CSV", endings=(".csv", ".tsv", ".txt"), compressed=True)
PARQUET = TableContainer(name="Parquet", endings=(".parquet", ".pq"))
CONTAINERS = (
    CSV,
    PARQUET,
    TableContainer(
        name="Excel",
        endings=(".xlsx", ".xlsm", ".xlsb", ".xls", ".ods"),
        place=("sheets", "SheetSource"),
        library="python_calamine",
        sheets=True,
        streamed=False,
    ),
    TableContainer(
        name="JSON lines", endings=(".jsonl", ".ndjson"), place=("json_lines", "JsonLinesSource"), compressed=True
    ),
    TableContainer(name="Arrow", endings=(".feather", ".arrow", ".ipc"), place=("arrow_files", "ArrowFileSource")),
    TableContainer(
        name="Stata, SPSS or SAS",
        endings=(".dta", ".sav", ".zsav", ".por", ".sas7bdat", ".xpt"),
        place=("statistics_packages", "PackageSource"),
        library="pyreadstat",
        streamed=False,
    ),
)
_EXPORTED = "export the table as CSV or Parquet"
_DATABASES = {
    ".duckdb": "write duckdb:/// before its path, and name the table by --table",
    **dict.fromkeys((".sqlite", ".sqlite3", ".mdb", ".accdb"), _EXPORTED),
}
"""Ending of a database's file -> the remedy."""
_BY_ENDING = {ending: container for container in CONTAINERS for ending in container.endings}


def find_container(path: Place) -> TableContainer | None:
    """Return the container that a file's ending names; None where it names none."""
    endings = _endings(path)
    found = _BY_ENDING.get(endings[-1]) if endings else None
    packed = path.suffix.lower() in COMPRESSIONS
    return None if found is None or (packed and not found.compressed) else found


def _endings(path: Place) -> list[str]:
    """Return a file's endings without those of compressions."""
    return [ending for suffix in path.suffixes if (ending := suffix.lower()) not in COMPRESSIONS]


def bare_name(path: Place) -> str:
    """Return a file's name without the ending of its container, and of its compression."""
    name = path.name
    for ending in COMPRESSIONS:
        name = name.removesuffix(ending)
    return name.rpartition(".")[0]


def unknown(path: Place) -> DataError:
    """Return the refusal of a file whose ending names no container."""
    for ending, remedy in _DATABASES.items():
        if path.suffix.lower() == ending:
            return DataError("is a database", field=path.name, remedy=remedy)
    plain, extra = (
        " ".join(ending for each in CONTAINERS if (each.library is None) == known for ending in each.endings)
        for known in (True, False)
    )
    remedy = f"known are {plain}, with pip install 'doublure[files]' also {extra}; or give a DataFrame"
    return DataError("has an ending that names no table", field=path.name, remedy=remedy)
