"""LOAD: a table from a file, a folder or pattern of files, a DataFrame, or a stream of Arrow.

Two passes that never mix: :func:`open_table` looks at the container and the header only (before anything is
reserved); a source (:mod:`doublure.data.tables.source`) reads the records afterwards, under a schema.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import pandas as pd
from typing_extensions import override

from doublure.data.splits import split_off
from doublure.data.tables import csv_files
from doublure.data.tables.arrow_cells import Raw
from doublure.data.tables.arrow_streams import PROTOCOL, StreamSource
from doublure.data.tables.arrow_text import coded_in, readable
from doublure.data.tables.containers.registry import CSV, PARQUET, TableContainer, find_container, unknown
from doublure.data.tables.csv_records import Unread
from doublure.data.tables.dtypes import dtypes_of_arrow, dtypes_of_frame
from doublure.data.tables.header import header_names
from doublure.data.tables.many_files import files_of, open_files
from doublure.data.tables.rewriting import RewrittenSource
from doublure.data.tables.source import FileSource
from doublure.data.tables.source import Table as Table
from doublure.data.tables.source import TableSource as TableSource
from doublure.errors import DataError
from doublure.schema.scalars import Misfit
from doublure.schema.written import Written
from doublure.support.objects import ObjectPath, Place, find_place, for_arrow

CHUNK_ROWS = 200_000
_BUFFER = 1_000_000
PIECE_RECORDS = 2**20
"""So many records of a Parquet file make a piece, or as many as its next row group ends with."""


class _FrameSource(TableSource):
    def __init__(self, frame: pd.DataFrame, written: Written | None = None) -> None:
        names = header_names([str(name) for name in frame.columns], "DataFrame", written)
        super().__init__("DataFrame", names)
        self._frame = frame.set_axis(names, axis=1)
        self.dtypes = dtypes_of_frame(self._frame)

    @override
    def raw(
        self, columns: Sequence[str], plain: Collection[str] = (), misfit: Misfit = "coerce"
    ) -> Iterator[Mapping[str, Raw]]:
        for frame in self.chunks(list(columns)):
            yield {name: frame[name] for name in columns}

    @override
    def chunks(self, columns: list[str], misfit: Misfit = "coerce") -> Iterator[pd.DataFrame]:
        yield self._frame[columns]


class _ParquetSource(TableSource):
    def __init__(self, path: Place, written: Written | None = None, groups: Sequence[int] | None = None) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        self._path = path
        self._written, self._groups = written, groups
        try:
            with for_arrow(path) as given, pq.ParquetFile(given) as file:
                stored = file.schema_arrow
        except (pa.ArrowException, OSError, ValueError):
            raise csv_files.unreadable(self._path, "Parquet") from None
        names = [str(name) for name in stored.names]
        shown = header_names(names, path.name, written)
        super().__init__(path.name, shown)
        self._stored = dict(zip(shown, names, strict=True))
        self._coded = coded_in(stored)
        self.dtypes = dtypes_of_arrow(stored)

    @override
    def pieces(self) -> list[TableSource]:
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            with for_arrow(self._path) as given, pq.ParquetFile(given) as file:
                footer = file.metadata
                rows = [footer.row_group(number).num_rows for number in range(footer.num_row_groups)]
        except (pa.ArrowException, OSError, ValueError):
            raise csv_files.unreadable(self._path, "Parquet") from None
        found: list[list[int]] = [[]]
        held = 0
        for number, count in enumerate(rows):
            if held >= PIECE_RECORDS:
                found.append([])
                held = 0
            found[-1].append(number)
            held += count
        return [_ParquetSource(self._path, self._written, groups) for groups in found]

    @override
    def raw(
        self, columns: Sequence[str], plain: Collection[str] = (), misfit: Misfit = "coerce"
    ) -> Iterator[Mapping[str, Raw]]:
        import pyarrow as pa
        import pyarrow.parquet as pq

        stored = [self._stored[name] for name in columns]
        try:
            with (
                for_arrow(self._path) as given,
                # Without buffers for whole row groups, which may be as large as the file.
                pq.ParquetFile(given, pre_buffer=False, buffer_size=_BUFFER, read_dictionary=self._coded) as file,
            ):
                for batch in file.iter_batches(batch_size=CHUNK_ROWS, row_groups=self._groups, columns=stored):
                    yield {
                        name: readable(batch.column(batch.schema.get_field_index(own)))
                        for name, own in zip(columns, stored, strict=True)
                    }
        except (pa.ArrowException, OSError, ValueError):
            raise csv_files.unreadable(self._path, "Parquet") from None


class _CsvSource(FileSource):
    def __init__(self, path: Place, written: Written | None) -> None:
        self._path = path
        if written is None or written.header:
            self._header = csv_files.read_header(path, written)
        else:
            self._header = csv_files.declared_header(path, written)
        super().__init__(path.name, self._header.names)
        self.text_form = csv_files.header_form(path, self._header)

    @override
    def unread(self) -> list[tuple[str, Unread]]:
        return [(self.name, each) for each in csv_files.unread_in(self._path, self._header)]

    @override
    def spans_lines(self) -> bool:
        return csv_files.spans_lines(self._path, self._header)

    @override
    def raw(
        self, columns: Sequence[str], plain: Collection[str] = (), misfit: Misfit = "coerce"
    ) -> Iterator[Mapping[str, Raw]]:
        refuse = misfit == "refuse"
        return csv_files.read_batches(self._path, self._header, list(columns), CHUNK_ROWS, plain, refuse=refuse)


def open_table(
    source: str | os.PathLike[str] | ObjectPath | pd.DataFrame | Any, written: Written | None = None
) -> TableSource:
    """Look at a table's container and header; no record is read.

    Args:
        source: A path to a file that :mod:`doublure.data.tables.containers.registry` names, with ``#sheet`` behind a
            workbook of several; a folder or a pattern of files of one form; the address of either in a store that
            :mod:`doublure.support.objects` names; a DataFrame; or any object with ``__arrow_c_stream__``.
        written: How its text is to be read, if not as usual.

    Raises:
        DataError: The file is missing, empty, or of a kind that is not read.
    """
    opened = _opened(source, written)
    return RewrittenSource(opened, written) if written is not None and written.rewrites else opened


def _opened(source: Any, written: Written | None) -> TableSource:
    if isinstance(source, pd.DataFrame):
        return _FrameSource(source, written)
    if hasattr(source, PROTOCOL):
        return StreamSource(source, written)
    if not isinstance(source, (str, os.PathLike, ObjectPath)):
        remedy = "give a file, a DataFrame, or any stream of Arrow"
        raise DataError("is neither a path nor a DataFrame", field="data", remedy=remedy)
    path = find_place(source)
    if (files := files_of(path)) is not None:
        return open_files(path, files, partial(_open_file, written=written))
    return _open_file(path, written)


def _open_file(path: Place, written: Written | None) -> TableSource:
    if isinstance(path, ObjectPath):
        return _open_object(path, written)
    file, part = split_off(path)
    container = find_container(file)
    if not file.is_file() or (part is not None and container is not None and not container.sheets):
        raise DataError("there is no such file", field=path, remedy="give the path of a file, such as CSV or Parquet")
    if container is None:
        raise unknown(file)
    if file.stat().st_size == 0:
        raise DataError("is empty", field=file.name, remedy="give the table that the schema describes")
    return (_OPENERS.get(container) or container.opener(file.name))(path, written)


def _open_object(path: ObjectPath, written: Written | None) -> TableSource:
    """Look at an object in a store, at the version that all later reads must find."""
    container = find_container(path)
    if container is None:
        raise unknown(path)
    if not container.streamed:
        remedy = "copy it to a disk, or write it as Parquet or CSV"
        raise DataError(f"is a file of {container.name}, which is read from a disk alone", field=path, remedy=remedy)
    pinned = path.pinned()
    if pinned.stat().st_size == 0:
        raise DataError("is empty", field=path.name, remedy="give the table that the schema describes")
    return (_OPENERS.get(container) or container.opener(path.name))(pinned, written)


_OPENERS: Mapping[TableContainer, Callable[[Any, Written | None], TableSource]] = {
    CSV: _CsvSource,
    PARQUET: _ParquetSource,
}
