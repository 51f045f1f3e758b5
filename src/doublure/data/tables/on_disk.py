"""A table in canonical form that is larger than memory: spilled once, column by column, and read in parts.

The canonical cells (:mod:`doublure.data.tables.cells`) are spilled, because facts may have to be learned of them before
they can be encoded. The file has no name: a run that is cut off while it learns cannot be resumed.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from doublure.data.records import refuse_repeated
from doublure.data.tables.rules import checked
from doublure.data.tables.source import TableSource, no_records
from doublure.data.tables.unit_bounds import UnitBounds
from doublure.errors import DataError
from doublure.support.number_files import NumberFile

if TYPE_CHECKING:
    from doublure.schema import Schema

_MISSING = -1
_LABEL = np.dtype(np.int32)


class _Block(NamedTuple):
    """Where some records stand in the file, and in the order of all."""

    first: int
    rows: int
    places: dict[str, int]


class TablePart:
    """Some records of a table on disk, as facts and the encoder look at them; read when a column is asked for.

    Attributes:
        n_units: How many units begin here. Private.
        most_records: How many records the unit with the most has, of the whole table. Private.
    """

    def __init__(self, table: TableOnDisk, block: _Block, used: npt.NDArray[np.bool_] | None, n_units: int) -> None:
        self._table = table
        self._block = block
        self._used = used
        self.n_units = n_units
        self.most_records = table.most_records

    def cells(self, column: str, fact: str) -> pd.Series[Any]:
        """Return a column's cells. Private."""
        if self._table.changed:
            return self.content[column]
        return self._table.column(column, self._block, self._used)

    @property
    def content(self) -> pd.DataFrame:
        """The frame that the encoder reads. Private."""
        table = self._table
        frame = pd.DataFrame({name: table.column(name, self._block, self._used) for name in table.columns})
        return checked(frame, table.schema) if table.changed else frame

    def __repr__(self) -> str:
        return "TablePart(private)"


class TableOnDisk:
    """The private rows of a table, on disk.

    Attributes:
        schema: Under which they were read.
        columns: Their names.
        changed: Whether a record may become another by a declared rule, which is done when it is read from here.
        records: How many rows are used. Private.
        n_units: How many units there are. Private.
        most_records: How many records the unit with the most has. Private.
        unit: ``(records,)`` int64, each used row's unit, where ``numbered`` and units have ids; else None. Private.
    """

    def __init__(self, source: TableSource, schema: Schema, folder: Path, *, rows: int, numbered: bool = False) -> None:
        """Read the records, once.

        Args:
            source: Its header checked.
            schema: Which columns to read and how.
            folder: Where there is room for 8 bytes a cell.
            rows: How many records are held at a time.
            numbered: Whether each record's unit is to be known, as lots are drawn of units.

        Raises:
            DataError: A cell or a record does not fit.
        """
        self.schema = schema
        self.changed = schema.misfit == "coerce" and bool(schema.constraints)
        self._wanted = {name: column for name, column in schema.columns.items() if column.modelled}
        self._misfit = schema.misfit
        self.columns = list(self._wanted)
        self._file = NumberFile(folder)
        self._blocks: list[_Block] = []
        self._kinds: dict[str, np.dtype[Any]] = {}
        self._labels: dict[str, dict[str, int]] = {}
        self._categories: dict[str, pd.Index[Any]] = {}
        id_column = schema.unit.id
        tokens = {} if id_column is None else {id_column: schema.columns[id_column].missing_tokens}
        bounds = None if id_column is None else UnitBounds(schema.unit.max_records, folder)
        read = 0
        self._add(no_records(self._wanted, self._misfit), 0)
        for frame, ids in source.canonical_chunks(self._wanted, tokens, self._misfit, rows):
            if bounds is not None and id_column is not None:
                bounds.add(ids[id_column])
            if not self.changed:
                checked(frame, schema)  # which refuses here, before anything is learned
            self._add(frame, read)
            read += len(frame)
        self._used = self._first = None
        self.records = self.n_units = read
        self.most_records = min(1, read)
        self.unit = None
        if bounds is not None:
            found = bounds.bounded(owners=numbered)
            self._used, self._first, self.n_units, self.most_records = found.used, found.first, found.units, found.most
            self.records = int(np.count_nonzero(self._used))
            refuse_repeated(schema, repeated=self.records < read)
            self.unit = found.numbers if numbered else None
        self.read = read

    def parts(self) -> Iterator[TablePart]:
        """Yield the records, some at a time, in their order; at least one part. Private."""
        for block in self._blocks:
            stretch = slice(block.first, block.first + block.rows)
            if self._used is None or self._first is None:
                yield TablePart(self, block, None, block.rows)
            else:
                yield TablePart(self, block, self._used[stretch], int(np.count_nonzero(self._first[stretch])))

    def column(self, name: str, block: _Block, used: npt.NDArray[np.bool_] | None) -> pd.Series[Any]:
        """Return canonical cells of a block. Private."""
        kind = self._kinds[name]
        cells = self._file.get(block.places[name], block.rows, kind)
        cells = cells if used is None else cells[used]
        if kind != _LABEL:
            return pd.Series(cells)
        if name not in self._categories:
            self._categories[name] = pd.Index(list(self._labels[name]), dtype="str")
        return pd.Series(pd.Categorical.from_codes(cells, dtype=pd.CategoricalDtype(self._categories[name])))

    def close(self) -> None:
        """Let go of the file, which is gone then."""
        self._file.close()

    def _add(self, frame: pd.DataFrame, first: int) -> None:
        places = {}
        for name in self.columns:
            cells = frame[name]
            if isinstance(cells.dtype, pd.CategoricalDtype):
                known = self._labels.setdefault(name, {})
                codes = [known.setdefault(text, len(known)) for text in cells.cat.categories]
                stored = np.array([*codes, _MISSING], dtype=_LABEL)[cells.cat.codes.to_numpy()]
            else:
                stored = cells.to_numpy()
            self._kinds.setdefault(name, stored.dtype)
            places[name] = self._file.add(stored)
        self._blocks.append(_Block(first, len(frame), places))

    def __repr__(self) -> str:
        return "TableOnDisk(private)"


def refuse_read_whole(source: object) -> None:
    """Refuse a table that is to be read in parts, and whose library holds it whole; before anything is charged.

    Raises:
        DataError: Naming the file.
    """
    if isinstance(source, TableSource) and source.read_whole:
        remedy = "export it as CSV or Parquet, or give more memory"
        raise DataError("is read whole, and is to be read in parts", field=source.name, remedy=remedy)


def refuse_too_few(read: int, source: TableSource, at_least: int) -> None:
    """Refuse a table that cannot be the one that was meant.

    Raises:
        DataError: Fewer records than these were read.
    """
    if read < at_least:
        raise DataError(
            f"has fewer than {at_least} records", field=source.name, remedy="give the table that the schema describes"
        )
