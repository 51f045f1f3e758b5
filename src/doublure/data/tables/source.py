"""An opened table: its header is known, and its records are read on demand in canonical form.

The canonical form: numbers as ``float64``, days and moments as ``datetime64[s]``, discrete values as
categoricals of labels, missing cells as NaN/NaT, and at most ``max_records`` records of each unit. No rule here looks
at more than one record, except the bounding by unit: what does not fit is refused, or with ``misfit: coerce`` counts as
what :mod:`doublure.data.tables.cells` says, whatever else there is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from typing_extensions import override

from doublure.data.records import Loaded, refuse_repeated
from doublure.data.tables import cells
from doublure.data.tables.arrow_cells import Raw, as_series, canonical
from doublure.data.tables.csv_records import Unread
from doublure.data.tables.header import RENAME
from doublure.data.tables.rules import checked
from doublure.errors import DataError
from doublure.schema.scalars import Misfit

if TYPE_CHECKING:
    from pathlib import Path

    from doublure.schema import Schema
    from doublure.schema.columns import Column
    from doublure.schema.columns.dtypes import Dtype


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Table(Loaded):
    """The private rows of a table.

    Attributes:
        frame: One row a record, canonical columns (ids left out).
    """

    frame: pd.DataFrame

    @property
    def content(self) -> pd.DataFrame:
        """The frame, as the encoder reads it."""
        return self.frame


class TableSource:
    """A table whose container and header have been checked and whose records have not been read.

    Args:
        name: Of the container, as messages call it.
        columns: Of its header, in their order; empty where one has no name.

    Attributes:
        columns: Those that have a name.
        unnamed: The places of those that have none, from 0: these are not read.
        dtypes: Column -> how a typed container stores it; none of text.
        text_form: What the header of a CSV file tells of how it is written, by the schema's keys.
        labelled: The file, where it describes its columns by labels and codes of missing cells.
    """

    read_whole: bool = False
    """Whether its library holds all records at once."""
    first_row: int = 1
    """The number that a person finds beside the first record, where the container shows numbers."""

    def __init__(self, name: str, columns: list[str]) -> None:
        self.name = name
        self.columns = [name for name in columns if name]
        self.unnamed = [place for place, name in enumerate(columns) if not name]
        self.dtypes: Mapping[str, Dtype] = {}
        self.text_form: Mapping[str, Any] = {}
        self.labelled: Path | None = None

    def raw(
        self, columns: Sequence[str], plain: Collection[str] = (), misfit: Misfit = "coerce"
    ) -> Iterator[Mapping[str, Raw]]:
        """Yield the raw columns, of some records at a time.

        Args:
            columns: Which.
            plain: Those of which few cells are equal.
            misfit: What becomes of a record that cannot be read: with ``coerce``, a record whose cells are misfits.

        Raises:
            FaultyRecords: Some cannot be read, and ``misfit`` says refuse; it names all of them.
        """
        raise DataError("cannot be read", field=self.name, remedy="give a CSV or Parquet file, or a DataFrame")

    def both(self, columns: Sequence[str]) -> Iterator[tuple[Mapping[str, Raw], Mapping[str, Raw]]]:
        """Yield the raw columns as they stand, and as they are to be read, of some records at a time. Private."""
        for raw in self.raw(columns):
            yield raw, raw

    def unread(self) -> list[tuple[str, Unread]]:
        """Return the records that cannot be read, each with its file's name. Private.

        Raises:
            DataError: A file is damaged.
        """
        return []

    def named_by_none(self) -> list[int]:
        """Return the places of columns without a name, those beyond the header included that nearly all records have.

        Private, but for the form of nearly all of the first records.
        """
        return self.unnamed

    def spans_lines(self) -> bool:
        """Whether quoted cells of its text hold line ends, as far as its first records show. Private."""
        return False

    def chunks(self, columns: list[str], misfit: Misfit = "coerce") -> Iterator[pd.DataFrame]:
        """Yield the raw records as frames; see :meth:`raw`."""
        for raw in self.raw(columns, misfit=misfit):
            yield pd.DataFrame({name: as_series(raw[name], name) for name in columns})

    def pieces(self) -> list[TableSource]:
        """Return its parts, in their order, as other processes can read them; together they are all records.

        Raises:
            DataError: It lies in this process alone, or its file is damaged.
        """
        remedy = "give a file, a folder or a pattern of files that all workers can read"
        raise DataError("lies in this process alone", field=self.name, remedy=remedy)

    def check(self, schema: Schema) -> None:
        """Compare the header with the schema.

        Raises:
            DataError: A column of the schema is not there, or stands twice.
        """
        self.check_names(schema.columns)

    def check_names(self, names: Iterable[str]) -> None:
        """Look for columns in the header.

        Raises:
            DataError: One is not there, or stands twice.
        """
        counts = Counter(self.columns)
        for name in names:
            count = counts[name]
            if count == 0:
                raise DataError("is not a column of the data", field=name, remedy="fix the schema or the header")
            if count > 1:
                raise DataError("stands more than once in the header", field=name, remedy=RENAME)

    def load(self, schema: Schema, *, at_least: int = 2) -> Table:
        """Read the records.

        Args:
            schema: Which columns to read and how.
            at_least: Fewer records than this are refused.

        Raises:
            DataError: A cell or a record does not fit, and the schema has no public rule for it; there are too few.
        """
        self.check(schema)
        id_column = schema.unit.id
        wanted = {name: column for name, column in schema.columns.items() if column.modelled}
        tokens = {} if id_column is None else {id_column: schema.columns[id_column].missing_tokens}
        frame, ids = self.read(wanted, tokens, schema.misfit)
        frame = checked(frame, schema)
        if len(frame) < at_least:
            raise DataError(
                f"has fewer than {at_least} records", field=self.name, remedy="give the table that the schema describes"
            )
        if id_column is None:
            return Table(frame=frame, unit=np.arange(len(frame), dtype=np.int64), n_units=len(frame))
        found = _bounded(frame, ids[id_column], schema.unit.max_records)
        refuse_repeated(schema, repeated=len(found.frame) < len(frame))
        return found

    def read(
        self,
        columns: Mapping[str, Column],
        keys: Mapping[str, Collection[str]],
        misfit: Misfit = "refuse",
        lenient: Collection[str] = (),
    ) -> tuple[pd.DataFrame, dict[str, pd.Series[Any]]]:
        """Read columns in canonical form, and the labels of columns that name a unit or a source.

        Args:
            columns: Name -> what is public of it.
            keys: Name of a column of labels -> the texts that mean missing in it.
            misfit: What becomes of a cell that does not fit; with ``coerce``, a record that misses a label is left out.
            lenient: Columns whose cells are coerced whatever ``misfit`` says.

        Raises:
            DataError: A cell does not fit its column, or a label is missing.
        """
        frames: list[pd.DataFrame] = []
        labels: dict[str, list[pd.Series[Any]]] = {name: [] for name in keys}
        for frame, named in self.canonical_chunks(columns, keys, misfit, lenient=lenient):
            frames.append(frame)
            for name, ids in named.items():
                labels[name].append(ids)
        frame = cells.concatenate(frames or [no_records(columns, misfit)], list(columns))
        none: list[pd.Series[Any]] = [pd.Series(dtype=object)]
        return frame, {name: pd.concat(parts or none, ignore_index=True) for name, parts in labels.items()}

    def canonical_chunks(
        self,
        columns: Mapping[str, Column],
        keys: Mapping[str, Collection[str]],
        misfit: Misfit = "refuse",
        rows: int | None = None,
        lenient: Collection[str] = (),
    ) -> Iterator[tuple[pd.DataFrame, dict[str, pd.Series[Any]]]]:
        """Yield what :meth:`read` returns some records at a time, at most ``rows`` if that is given.

        The cells of ``lenient`` columns are coerced whatever ``misfit`` says.

        Raises:
            DataError: As :meth:`read`.
        """
        plain = [name for name, column in columns.items() if column.bounded]
        for whole in self.raw(list(dict.fromkeys([*columns, *keys])), plain, misfit):
            for raw in _slices(whole, rows):
                named = {
                    name: cells.unit_ids(
                        as_series(raw[name], name), name, tokens, "coerce" if name in lenient else misfit
                    )
                    for name, tokens in keys.items()
                }
                frame = pd.DataFrame(
                    {
                        name: canonical(raw[name], column, name, "coerce" if name in lenient else misfit)
                        for name, column in columns.items()
                    }
                )
                kept = np.ones(len(frame), dtype=np.bool_)
                for ids in named.values():
                    kept &= ids.notna().to_numpy()
                yield cells.kept_of(frame, kept), {name: cells.kept_of(ids, kept) for name, ids in named.items()}


class FileSource(TableSource):
    """A file that one process reads."""

    @override
    def pieces(self) -> list[TableSource]:
        return [self]


def _slices(raw: Mapping[str, Raw], rows: int | None) -> Iterator[Mapping[str, Raw]]:
    count = len(next(iter(raw.values()), ())) if not isinstance(raw, pd.DataFrame) else len(raw)
    if rows is None or count <= rows:
        yield raw
        return
    for first in range(0, count, rows):
        yield {
            name: column.iloc[first : first + rows].reset_index(drop=True)
            if isinstance(column, pd.Series)
            else column.slice(first, rows)
            for name, column in raw.items()
        }


def no_records(columns: Mapping[str, Column], misfit: Misfit) -> pd.DataFrame:
    """Return canonical columns of no record."""
    empty = pd.Series(dtype=object)
    return pd.DataFrame({name: cells.canonical(empty, column, name, misfit) for name, column in columns.items()})


def _bounded(frame: pd.DataFrame, ids: pd.Series[Any], max_records: int) -> Table:
    """Keep the first ``max_records`` records of each unit, in file order."""
    codes, names = pd.factorize(ids)
    keep = (pd.Series(codes).groupby(codes).cumcount() < max_records).to_numpy()
    return Table(
        frame=frame[keep].reset_index(drop=True), unit=codes[keep].astype(np.int64, copy=False), n_units=len(names)
    )
