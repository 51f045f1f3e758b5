"""Tasks of workers: read a piece of a table, bound its units together with others, encode it, and answer.

Each is a function of its arguments alone, so that a cluster may repeat it anywhere. Results do not show their content,
as schedulers and workers log their arguments.

A unit's records may lie in several pieces. For each record with an id, 128 bits of a keyed hash and a place (24 bytes)
go to a bucket by the hash, all of a unit to the same one. A bucket decides which records are used; the records
themselves stay where they were read. Ids never leave the worker that reads them.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, ParamSpec, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import pandas as pd

from doublure._version import __version__
from doublure.data.tables import cells
from doublure.data.tables.rules import checked
from doublure.data.tables.source import TableSource, no_records
from doublure.data.tables.unit_bounds import first_of, hashed
from doublure.encode.table_values import TableValues
from doublure.errors import DoublureError, InputError
from doublure.private.codes import narrowest, whole_columns
from doublure.private.queries.query import Query
from doublure.private.remote import WorkerResponse, respond
from doublure.schema import ResolvedSchema, Schema
from doublure.support.arrays import Ints

A = ParamSpec("A")
T = TypeVar("T")
Rows: TypeAlias = "npt.NDArray[np.uint64]"

RECORDS_AT_ONCE = 2**16
_PLACE_BITS = 40


def hide_errors(does: Callable[A, T]) -> Callable[A, T]:
    """Hide messages of other errors than ours, which name no private value, from a worker's log."""

    @functools.wraps(does)
    def done(*given: A.args, **named: A.kwargs) -> T:
        try:
            return does(*given, **named)
        except DoublureError:
            raise
        except Exception as error:
            raise TypeError(f"{type(error).__name__} in {does.__name__}") from None

    return done


class HiddenContent:
    """Base class whose representation shows no content."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(private)"


@dataclass(frozen=True, eq=False, repr=False)
class DataPiece(HiddenContent):
    """A piece of the data, with the means to read it.

    Attributes:
        number: Its place among all.
        source: Reads it.
        schema: The public facts.
        keys: Of the hash of ids; private, and only for this run.
        version: Of the asking process.
    """

    number: int
    source: TableSource
    schema: Schema
    keys: tuple[str, str]
    version: str

    @property
    def columns(self) -> dict[str, Any]:
        """The columns that are modelled."""
        return {name: column for name, column in self.schema.columns.items() if column.modelled}

    def chunks(self) -> Iterator[tuple[pd.DataFrame, pd.Series[Any] | None]]:
        """Yield chunks of canonical records, with their ids where units have them; the first chunk is empty.

        Raises:
            DataError: A cell or a record does not fit.
            InputError: This worker has another version.
        """
        if self.version != __version__:
            raise InputError(f"has doublure {__version__}", field="worker", remedy=f"install {self.version} there")
        schema, name = self.schema, self.schema.unit.id
        tokens = {} if name is None else {name: schema.columns[name].missing_tokens}
        yield no_records(self.columns, schema.misfit), None if name is None else pd.Series(dtype=object)
        for frame, ids in self.source.canonical_chunks(self.columns, tokens, schema.misfit, RECORDS_AT_ONCE):
            yield checked(frame, schema), None if name is None else ids[name]


@dataclass(frozen=True, eq=False, repr=False)
class PieceCells(HiddenContent):
    """A piece that has been read.

    Attributes:
        frame: Canonical cells.
        rows: ``(n, 3)`` hashes of ids and places, of :func:`~doublure.data.tables.unit_bounds.hashed`; empty where a
            record is a unit.
    """

    number: int
    frame: pd.DataFrame
    rows: Rows


@dataclass(frozen=True, eq=False, repr=False)
class BoundedUnits(HiddenContent):
    """The records that a bucket's units use, as places in all pieces."""

    used: Ints
    first: Ints
    most: int


class WorkerCells(HiddenContent):
    """A partition in the form that facts read.

    Attributes:
        number: Its place among all.
        records: Number of records.
        n_units: Number of units whose first record is here.
        most_records: Largest number of records of a unit, over all partitions.
        frame: Canonical cells.
        digest: A hash of them.
    """

    def __init__(self, number: int, frame: pd.DataFrame, n_units: int, most_records: int) -> None:
        self.number, self.records = number, len(frame)
        self.frame = frame
        self.n_units = n_units
        self.most_records = most_records
        found = hashlib.sha256(f"{n_units} {most_records}".encode())
        for name in frame:
            own = frame[name]
            if isinstance(own.dtype, pd.CategoricalDtype):
                found.update(repr(list(own.cat.categories)).encode(errors="surrogateescape"))
                own = own.cat.codes
            found.update(np.ascontiguousarray(own.to_numpy()).tobytes())
        self.digest = found.hexdigest()

    def cells(self, column: str, fact: str) -> pd.Series[Any]:
        """Return a column's cells."""
        return self.frame[column]


class _ColumnSlices:
    """Some compact records, of which ``[:, part]`` is taken."""

    def __init__(self, columns: Sequence[npt.NDArray[Any]]) -> None:
        self._columns = columns

    def __len__(self) -> int:
        return len(self._columns[0])

    def __getitem__(self, wanted: tuple[slice, int]) -> npt.NDArray[Any]:
        rows, part = wanted
        return self._columns[part][rows]


class WorkerCodes(HiddenContent):
    """A partition in the form that counting queries read: columns in the narrowest whole numbers.

    Attributes:
        number: Its place among all.
        records: Number of records.
        most_records: Largest number of records of a unit, over all partitions.
        parts: Number of parts of a compact record.
        digest: A hash of all.
    """

    def __init__(self, number: int, columns: Sequence[npt.NDArray[Any]], most_records: int) -> None:
        self.number = number
        self.records = len(columns[0])
        self.most_records = most_records
        self.parts = len(columns)
        self._columns = columns
        found = hashlib.sha256()
        for column in columns:
            found.update(column.tobytes())
        self.digest = found.hexdigest()

    def chunks(self, rows: int) -> Iterator[_ColumnSlices]:
        """Yield compact records, a chunk at a time; of no records one that is empty."""
        for first in range(0, max(1, self.records), rows):
            yield _ColumnSlices([column[first : first + rows] for column in self._columns])


class PartitionSummary(NamedTuple):
    """Facts of a partition for the asking process, beside answers. Private."""

    number: int
    digest: str
    records: int


# -- tasks -------------------------------------------------------------------------------------------------------------


def version() -> str:
    """Return the version of doublure on a worker."""
    return __version__


def identity(given: T) -> T:
    """Return the argument, so that it is sent to a worker once and not with every task."""
    return given


@hide_errors
def read(piece: DataPiece) -> PieceCells:
    """Read a piece; the run is charged.

    Raises:
        DataError: A cell or a record does not fit.
    """
    frames, rows, place = [], [np.empty((0, 3), dtype=np.uint64)], piece.number << _PLACE_BITS
    for frame, ids in piece.chunks():
        if ids is not None:
            rows.append(hashed(ids, piece.keys, piece.schema.unit.max_records, place))
        frames.append(frame)
        place += len(frame)
    return PieceCells(piece.number, cells.concatenate(frames, list(piece.columns)), np.concatenate(rows))


@hide_errors
def assign_buckets(own: PieceCells, buckets: int) -> list[Rows]:
    """Return a piece's hashes by bucket, all of a unit in the same one."""
    to = own.rows[:, 0] % np.uint64(buckets)
    return [own.rows[to == bucket] for bucket in range(buckets)]


@hide_errors
def select_bucket(all_buckets: list[Rows], bucket: int) -> Rows:
    """Return one bucket."""
    return all_buckets[bucket]


@hide_errors
def bound_units(rows: Sequence[Rows], max_records: int) -> BoundedUnits:
    """Return the records that a bucket's units use, over all pieces: the first ones in the order of the data."""
    return BoundedUnits(*first_of(np.concatenate(rows), max_records))


@hide_errors
def most_records(bucket: BoundedUnits) -> int:
    """Return the largest number of records of a unit."""
    return bucket.most


@hide_errors
def select_share(bucket: BoundedUnits, number: int) -> tuple[Ints, Ints]:
    """Return a piece's used records, and those that are their unit's first, as rows of the piece."""
    found = []
    for places in (bucket.used, bucket.first):
        own = places[places >> _PLACE_BITS == number]
        found.append(own - (number << _PLACE_BITS))
    return found[0], found[1]


@hide_errors
def keep_used(own: PieceCells, shares: Sequence[tuple[Ints, Ints]], most: int) -> WorkerCells:
    """Return a partition with a piece's used records; all of them where a record is a unit."""
    if not shares:
        return WorkerCells(own.number, own.frame, len(own.frame), most)
    used = np.sort(np.concatenate([share[0] for share in shares]))
    units = sum(len(share[1]) for share in shares)
    return WorkerCells(own.number, own.frame.iloc[used].reset_index(drop=True), units, most)


@hide_errors
def encode(part: WorkerCells, schema: ResolvedSchema) -> WorkerCodes:
    """Return a partition's codes."""
    encoder = TableValues(schema)
    return WorkerCodes(part.number, _codes(encoder, [part.frame]), part.most_records)


@hide_errors
def read_and_encode(piece: DataPiece, schema: ResolvedSchema) -> WorkerCodes:
    """Read and encode a piece without ids and without facts to learn.

    Raises:
        DataError: A cell or a record does not fit.
    """
    return WorkerCodes(piece.number, _codes(TableValues(schema), (frame for frame, _ in piece.chunks())), 1)


@hide_errors
def count_records(own: PieceCells) -> PartitionSummary:
    """Return the number of a piece's records, of which not all may be used."""
    return PartitionSummary(own.number, "", len(own.frame))


@hide_errors
def summarise(part: WorkerCells | WorkerCodes) -> PartitionSummary:
    """Return the facts of a partition."""
    return PartitionSummary(part.number, part.digest, part.records)


@hide_errors
def answer(part: Any, query: Query[Any], sample_rate: float) -> WorkerResponse:
    """Return a partition's answer."""
    return respond(part, query, sample_rate)


def _codes(encoder: TableValues, frames: Any) -> list[npt.NDArray[Any]]:
    types = [narrowest(own.first, own.last + own.nullable) for own in encoder.domains]
    found = [[*whole_columns(encoder.compact(frame), types)] for frame in frames]
    return [np.concatenate(columns) for columns in zip(*found, strict=True)]
