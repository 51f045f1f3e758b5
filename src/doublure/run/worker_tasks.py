"""Tasks of workers: read a piece of a table, bound its units together with others, encode it, and answer.

Each is a function of its arguments alone, so that a cluster may do it again wherever it likes. What comes out shows
nothing of itself, as schedulers and workers log what they were given.

A unit's records may lie in several pieces. Of each record with an id, 128 bits of a keyed hash and a place (24 bytes)
are dealt to buckets by the hash, all of a unit to one; a bucket says which records are used, and the records themselves
stay where they were read. Ids never leave the worker that reads them.
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
from doublure.private.remote import Response, respond
from doublure.schema import ResolvedSchema, Schema

A = ParamSpec("A")
T = TypeVar("T")
IntArray: TypeAlias = "npt.NDArray[np.int64]"
Rows: TypeAlias = "npt.NDArray[np.uint64]"

RECORDS_AT_ONCE = 2**16
_PLACE_BITS = 40


def sealed(does: Callable[A, T]) -> Callable[A, T]:
    """Let no message leave a worker but our own, which name no private value; its log would keep it."""

    @functools.wraps(does)
    def done(*given: A.args, **named: A.kwargs) -> T:
        try:
            return does(*given, **named)
        except DoublureError:
            raise
        except Exception as error:
            raise TypeError(f"{type(error).__name__} in {does.__name__}") from None

    return done


class Private:
    """What shows nothing of itself."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(private)"


@dataclass(frozen=True, eq=False, repr=False)
class Piece(Private):
    """Where a piece of the data lies, and how it is read.

    Attributes:
        number: Its place among all.
        source: Reads it.
        schema: The public facts.
        keys: Of the hash of ids; private, and only for this run.
        version: Of whoever asks.
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
        """Yield canonical records some at a time, and their ids where units have them; first one chunk of none.

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
class Read(Private):
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
class Bounded(Private):
    """Which records a bucket's units use: places in all pieces."""

    used: IntArray
    first: IntArray
    most: int


class CellsHeld(Private):
    """A partition as facts look at it.

    Attributes:
        number: Its place among all.
        n_units: How many units begin here.
        most_records: How many records the unit with the most has, in all partitions.
        frame: Canonical cells.
        digest: A hash of them.
    """

    def __init__(self, number: int, frame: pd.DataFrame, n_units: int, most_records: int) -> None:
        self.number = number
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


class _Columns:
    """Some compact records, of which ``[:, part]`` is taken."""

    def __init__(self, columns: Sequence[npt.NDArray[Any]]) -> None:
        self._columns = columns

    def __len__(self) -> int:
        return len(self._columns[0])

    def __getitem__(self, wanted: tuple[slice, int]) -> npt.NDArray[Any]:
        rows, part = wanted
        return self._columns[part][rows]


class CodesHeld(Private):
    """A partition as queries count it: its columns in the narrowest whole numbers.

    Attributes:
        number: Its place among all.
        records: How many it has.
        most_records: How many records the unit with the most has, in all partitions.
        parts: How many parts a compact record has.
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

    def chunks(self, rows: int) -> Iterator[_Columns]:
        """Yield compact records, a chunk at a time; of no records one that is empty."""
        for first in range(0, max(1, self.records), rows):
            yield _Columns([column[first : first + rows] for column in self._columns])


class Known(NamedTuple):
    """What whoever asks hears of a partition beside answers. Private."""

    number: int
    digest: str
    records: int


# -- what is done ------------------------------------------------------------------------------------------------------


def version() -> str:
    """Return which doublure a worker has."""
    return __version__


def itself(given: T) -> T:
    """Return what was given, so that it is sent to a worker once and not with every task."""
    return given


@sealed
def read(piece: Piece) -> Read:
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
    return Read(piece.number, cells.concatenate(frames, list(piece.columns)), np.concatenate(rows))


@sealed
def assigned(own: Read, buckets: int) -> list[Rows]:
    """Return a piece's hashes, all of a unit in one bucket."""
    to = own.rows[:, 0] % np.uint64(buckets)
    return [own.rows[to == bucket] for bucket in range(buckets)]


@sealed
def bucket_of(all_buckets: list[Rows], bucket: int) -> Rows:
    """Return one of them."""
    return all_buckets[bucket]


@sealed
def bounded(rows: Sequence[Rows], max_records: int) -> Bounded:
    """Return which records are used of a bucket's units, of all pieces: the first ones in the order of the data."""
    return Bounded(*first_of(np.concatenate(rows), max_records))


@sealed
def most_of(bucket: Bounded) -> int:
    """Return how many records the unit with the most has."""
    return bucket.most


@sealed
def share_of(bucket: Bounded, number: int) -> tuple[IntArray, IntArray]:
    """Return which of a piece's records are used, and which are their unit's first, as rows of the piece."""
    found = []
    for places in (bucket.used, bucket.first):
        own = places[places >> _PLACE_BITS == number]
        found.append(own - (number << _PLACE_BITS))
    return found[0], found[1]


@sealed
def held(own: Read, shares: Sequence[tuple[IntArray, IntArray]], most: int) -> CellsHeld:
    """Return a partition: a piece's records that are used; all of them where a record is a unit."""
    if not shares:
        return CellsHeld(own.number, own.frame, len(own.frame), most)
    used = np.sort(np.concatenate([share[0] for share in shares]))
    units = sum(len(share[1]) for share in shares)
    return CellsHeld(own.number, own.frame.iloc[used].reset_index(drop=True), units, most)


@sealed
def encoded(part: CellsHeld, schema: ResolvedSchema) -> CodesHeld:
    """Return a partition's codes."""
    encoder = TableValues(schema)
    return CodesHeld(part.number, _codes(encoder, [part.frame]), part.most_records)


@sealed
def read_encoded(piece: Piece, schema: ResolvedSchema) -> CodesHeld:
    """Read and encode a piece of which each record is a unit, and of which nothing is learned.

    Raises:
        DataError: A cell or a record does not fit.
    """
    return CodesHeld(piece.number, _codes(TableValues(schema), (frame for frame, _ in piece.chunks())), 1)


@sealed
def known_cells(own: Read) -> Known:
    """Return how many records a piece has, of which not all may be used."""
    return Known(own.number, "", len(own.frame))


@sealed
def known(part: CellsHeld | CodesHeld) -> Known:
    """Return what is known of a partition."""
    return Known(part.number, part.digest, part.records if isinstance(part, CodesHeld) else len(part.frame))


@sealed
def answered(part: Any, query: Query[Any], sample_rate: float) -> Response:
    """Return a partition's answer."""
    return respond(part, query, sample_rate)


def _codes(encoder: TableValues, frames: Any) -> list[npt.NDArray[Any]]:
    types = [narrowest(own.first, own.last + own.nullable) for own in encoder.domains]
    found = [[*whole_columns(encoder.compact(frame), types)] for frame in frames]
    return [np.concatenate(columns) for columns in zip(*found, strict=True)]
