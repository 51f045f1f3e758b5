"""Files of rows beside CSV and Parquet, written a frame at a time: JSON lines, Feather, and sheets of Excel."""

from __future__ import annotations

import datetime
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import IO, TYPE_CHECKING, Any

import pandas as pd
from typing_extensions import override

from doublure.errors import SettingError
from doublure.support.extras import require_files

if TYPE_CHECKING:
    from doublure.schema.columns import Column

MOST_ROWS = 2**20
"""Rows of a sheet, its header among them: Excel's own limit."""
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

    @abstractmethod
    def add(self, frame: pd.DataFrame) -> None:
        """Write the rows of a frame."""

    def close(self) -> None:
        """End the file."""
        return

    def _days(self, name: str) -> bool:
        """Whether a column's moments are days."""
        column = self._columns.get(name)
        return column is not None and column.clock == "D"


class JsonLinesWriter(RowWriter):
    """An object a row: numbers and truths as such, all else as text, null for a missing cell."""

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


class SheetWriter(RowWriter):
    """A sheet of Excel: days and moments as its dates, text as text that is never run."""

    def __init__(self, file: IO[bytes], columns: Mapping[str, Column], metadata: Mapping[str, str]) -> None:
        import xlsxwriter

        super().__init__(file, columns, metadata)
        self._book = xlsxwriter.Workbook(file, {"constant_memory": True})
        about = "; ".join(f"{key}: {value}" for key, value in metadata.items())
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
        if isinstance(plain, bool):
            self._sheet.write_boolean(self._rows, place, plain)
        elif isinstance(plain, (int, float)) and abs(plain) <= 2**53:  # a sheet's numbers are float64
            self._sheet.write_number(self._rows, place, plain)
        elif isinstance(plain, datetime.datetime) and plain >= _FIRST_DAY:
            self._sheet.write_datetime(self._rows, place, plain, self._form[days])
        else:
            self._sheet.write_string(self._rows, place, str(plain.date()) if days else str(plain))

    @override
    def close(self) -> None:
        self._book.close()


_DATES = {True: "yyyy-mm-dd", False: "yyyy-mm-dd hh:mm:ss"}
ROW_WRITERS: Mapping[str, type[RowWriter]] = {
    ".jsonl": JsonLinesWriter,
    ".ndjson": JsonLinesWriter,
    ".feather": ArrowWriter,
    ".arrow": ArrowWriter,
    ".xlsx": SheetWriter,
}
AS_TEXT = (".csv", ".jsonl", ".ndjson", ".xlsx")
"""The forms whose cells of a type of their own are written as text."""


def check_library(ending: str, name: str) -> None:
    """Refuse a form whose library is not installed.

    Raises:
        MissingExtra: It is not.
    """
    if ROW_WRITERS.get(ending) is SheetWriter:
        require_files("xlsxwriter", name)
