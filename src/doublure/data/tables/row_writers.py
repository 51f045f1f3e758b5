"""Files of rows beside CSV and Parquet, written a frame at a time: JSON lines, Feather, and sheets of Excel."""

from __future__ import annotations

import datetime
import html
import json
import re
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import pandas as pd
from typing_extensions import override

from doublure.errors import SettingError
from doublure.schema.columns import SECONDS

if TYPE_CHECKING:
    from doublure.schema.columns import Column

MOST_ROWS = 2**20
"""Rows of a sheet, its header among them: Excel's own limit."""
_MADE_BY = "doublure"
"""The key of the version that made a file."""
_FIRST_DAY = datetime.datetime(1900, 3, 1)  # before it, Excel's calendar has a day that never was


class RowWriter(ABC):
    """Writes frames of the schema's own dtypes into a file.

    Args:
        file: Where to.
        columns: The public facts of those that the schema describes.
        metadata: Public key-value pairs, kept where the form has a place for them.
    """

    def __init__(self, file: IO[bytes], columns: Mapping[str, Column], metadata: Mapping[str, str]) -> None:
        self._file, self._columns, self._metadata = file, columns, metadata

    @classmethod
    def check(cls, columns: Mapping[str, Column]) -> None:
        """Refuse columns that the form has no place for, before a row is drawn.

        Raises:
            SettingError: Naming one.
        """
        return

    @classmethod
    def has_moments(cls, column: Column) -> bool:
        """Whether the form has days and moments, and all of a column's; else they are text, as in CSV."""
        return True

    @abstractmethod
    def add(self, frame: pd.DataFrame) -> None:
        """Write the rows of a frame."""

    def close(self) -> None:
        """End the file."""
        return

    @classmethod
    def says(cls, path: Path, about: Mapping[str, str]) -> bool:
        """Return whether a file tells of itself what its metadata were, and nothing else.

        Args:
            path: The file.
            about: The metadata, without the version that made it, which it may tell.
        """
        return True

    def _days(self, name: str) -> bool:
        """Whether a column's moments are days."""
        column = self._columns.get(name)
        return column is not None and column.clock == "D"


class JsonLinesWriter(RowWriter):
    """An object a row: numbers and truths as such, all else as text, null for a missing cell."""

    @classmethod
    @override
    def has_moments(cls, column: Column) -> bool:
        return False

    @override
    def add(self, frame: pd.DataFrame) -> None:
        cells = [self._plain(frame[name], str(name)) for name in frame.columns]
        names = list(map(str, frame.columns))
        for row in zip(*cells, strict=True):
            text = json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=False, allow_nan=False)
            self._file.write(f"{text}\n".encode())

    def _plain(self, cells: pd.Series[Any], name: str) -> list[object]:
        if cells.dtype.kind == "M":
            cells = cells.dt.strftime("%Y-%m-%d" if self._days(name) else "%Y-%m-%dT%H:%M:%S")
        found = cells.astype(object)
        return [_json(cell) for cell in found.where(found.notna(), None)]


def _json(cell: Any) -> object:
    plain = cell.item() if hasattr(cell, "item") else cell
    return plain if plain is None or isinstance(plain, (bool, int, float, str)) else str(plain)


class ArrowWriter(RowWriter):
    """Batches of Arrow, with types and categories, as Feather has them."""

    _writer: Any = None

    @override
    def add(self, frame: pd.DataFrame) -> None:
        import pyarrow as pa

        table = pa.Table.from_pandas(frame, preserve_index=False)
        if self._writer is None:
            own = {key.encode(): value.encode() for key, value in self._metadata.items()}
            self._stored = table.schema.with_metadata({**(table.schema.metadata or {}), **own})
            how = pa.ipc.IpcWriteOptions(compression="zstd", unify_dictionaries=True)
            self._writer = pa.ipc.new_file(self._file, self._stored, options=how)
        self._writer.write_table(table.replace_schema_metadata(self._stored.metadata))

    @override
    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()

    @classmethod
    @override
    def says(cls, path: Path, about: Mapping[str, str]) -> bool:
        import pyarrow as pa

        with pa.memory_map(str(path)) as file:
            found = pa.ipc.open_file(file).schema.metadata or {}
        said = {key.decode(): value.decode() for key, value in found.items() if key != b"pandas"}
        return about.items() <= said.items() and said.keys() <= {*about, _MADE_BY}


class _ShortestFloat(float):
    """A number that a sheet's file holds in its fewest digits: 0.69, and not 16 of them."""

    def __format__(self, spec: str) -> str:
        return repr(float(self))


class SheetWriter(RowWriter):
    """A sheet of Excel: days and moments as its dates, text as text that is never run."""

    def __init__(self, file: IO[bytes], columns: Mapping[str, Column], metadata: Mapping[str, str]) -> None:
        import xlsxwriter

        super().__init__(file, columns, metadata)
        self._book = xlsxwriter.Workbook(file, {"constant_memory": True})
        about = _comment(metadata)
        self._book.set_properties({"comments": about, "created": datetime.datetime(2000, 1, 1)})  # as equal files are
        self._sheet = self._book.add_worksheet("data")
        self._form = {days: self._book.add_format({"num_format": form}) for days, form in _DATES.items()}
        self._rows = 0

    @override
    def add(self, frame: pd.DataFrame) -> None:
        if self._rows == 0:
            for place, name in enumerate(frame.columns):
                self._sheet.write_string(0, place, str(name))
            self._rows = 1
        if self._rows + len(frame) > MOST_ROWS:
            remedy = "write .csv or .parquet"
            raise SettingError(f"has more rows than the {MOST_ROWS - 1:,} of a sheet", field=".xlsx", remedy=remedy)
        days = [self._days(str(name)) for name in frame.columns]
        for row in frame.astype(object).itertuples(index=False, name=None):
            for place, cell in enumerate(row):
                if not pd.isna(cell):
                    self._write(place, cell, days=days[place])
            self._rows += 1

    def _write(self, place: int, cell: Any, *, days: bool) -> None:
        plain = cell.item() if hasattr(cell, "item") else cell
        if days and isinstance(plain, datetime.date):
            plain = datetime.datetime(plain.year, plain.month, plain.day)
        if isinstance(plain, datetime.datetime):  # on the column's own clock: a sheet knows no zones
            plain = plain.replace(tzinfo=None)
        if isinstance(plain, bool):
            self._sheet.write_boolean(self._rows, place, plain)
        elif isinstance(plain, (int, float)) and abs(plain) <= 2**53:  # a sheet's numbers are float64
            self._sheet.write_number(self._rows, place, _ShortestFloat(plain) if isinstance(plain, float) else plain)
        elif isinstance(plain, datetime.datetime) and plain >= _FIRST_DAY:
            self._sheet.write_datetime(self._rows, place, plain, self._form[days])
        else:
            early = days and isinstance(plain, datetime.datetime)
            self._sheet.write_string(self._rows, place, str(plain.date()) if early else str(plain))

    @override
    def close(self) -> None:
        self._book.close()

    @classmethod
    @override
    def has_moments(cls, column: Column) -> bool:
        each = 1.0 if column.clock is None else SECONDS[column.clock]
        return column.ends is None or column.ends[0] * each >= _FIRST_DAY.replace(tzinfo=datetime.UTC).timestamp()

    @classmethod
    @override
    def says(cls, path: Path, about: Mapping[str, str]) -> bool:
        with zipfile.ZipFile(path) as book:
            found = re.findall(r"<dc:description>(.*?)</dc:description>", book.read(_PROPERTIES).decode(), re.DOTALL)
        said = html.unescape("".join(found))
        return re.fullmatch(rf"({_MADE_BY}: [\w.+-]+; )?{re.escape(_comment(about))}", said) is not None


def _comment(metadata: Mapping[str, str]) -> str:
    return "; ".join(f"{key}: {value}" for key, value in metadata.items())


_PROPERTIES = "docProps/core.xml"


_DATES = {True: "yyyy-mm-dd", False: "yyyy-mm-dd hh:mm:ss"}
