"""Sources of a run's records: remote, in memory, or on this machine's disk.

A source is asked for facts first, then for compact records. Remote sources are workers
(:mod:`doublure.run.worker_records`) and owners who keep their records (:mod:`doublure.federated`). A table larger than
memory is read once, spilled, and counted in partitions or drawn in lots:

=====================================  ==============================================================================
the schema                             spilled data
=====================================  ==============================================================================
is complete, a record is a unit        codes, as records are read
is to be learned, or has ids           canonical cells first, of which facts are learned and units bounded; then codes
=====================================  ==============================================================================

Codes that are counted lie column by column, those of which lots are drawn row by row. They stay beside the checkpoint
where the run can be resumed, until it is closed; a resumed run uses them and does not read the data again. Cells never
stay.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy.typing as npt
from typing_extensions import override

from doublure.data.tables.on_disk import TableOnDisk, TablePart, refuse_too_few
from doublure.data.tables.rules import checked
from doublure.data.tables.source import no_records
from doublure.encode.table_values import TableValues
from doublure.private.codes import ColumnCodes, narrowest
from doublure.private.partitions import Partitions, SequentialPartitions, SinglePartition
from doublure.private.row_codes import RowCodes
from doublure.training.job import encoded_records

if TYPE_CHECKING:
    from doublure.data.opening import Source
    from doublure.data.records import Loaded
    from doublure.data.tables.source import TableSource
    from doublure.encode.encoder import Encoder
    from doublure.private.queries.counts import Countable
    from doublure.private.queries.facts import FactRecords
    from doublure.private.records import PrivateRecords
    from doublure.schema import Schema

RECORDS_AT_ONCE = 2**16


class EncodedRecords(Protocol):
    """Compact records in any storage."""

    @property
    def fingerprint(self) -> str:
        """A hash of all of them in their order; empty where it cannot be known. Private."""

    def partitions(self, check: Callable[[], None]) -> Partitions[Countable]:
        """Return them as partitions for queries; ``check`` is called now and then, and may raise to stop."""


class RecordSource(ABC):
    """A source of records that are queried in partitions."""

    @abstractmethod
    def read(self) -> None:
        """Read the records; the charge is on disk.

        Raises:
            InputError: They do not fit the schema.
        """

    @abstractmethod
    def facts(self) -> Partitions[FactRecords]:
        """Return the records in the form that facts read."""

    @abstractmethod
    def encoded(self, encoder: Encoder, path: Path | None) -> EncodedRecords:
        """Return the records in the form that queries read.

        Args:
            encoder: Of the resolved schema.
            path: File where they may stay until the run is closed; None: none.
        """


class RemoteSource(RecordSource):
    """A source of records that stay remote, given to a fit in place of data."""

    @abstractmethod
    def check(self, schema: Schema) -> None:
        """Check that the source matches the plan, before anything is charged.

        Raises:
            InputError: It does not.
        """

    def begin(self, internal: Path) -> None:
        """Receive the internal folder of the run, which is charged now."""
        return

    def release_charges(self) -> bool:
        """Close every remote charge for this run at zero, and say whether none is left.

        Called where a run ends before anything was drawn; a run with a remaining charge is kept to be resumed.
        """
        return True

    @property
    def public(self) -> Mapping[str, Any]:
        """Public facts of the source for ``run.json`` and the card, decided before a record was read."""
        return {}


# -- in memory ---------------------------------------------------------------------------------------------------------


class InMemoryRecords(RecordSource):
    """All records of a source.

    Args:
        source: Its header checked.
        schema: The public facts.
    """

    def __init__(self, source: Source, schema: Schema) -> None:
        self._source = source
        self._schema = schema
        self._loaded: Loaded | None = None

    @override
    def read(self) -> None:
        """Read the records, of which there may be none.

        Raises:
            DataError: A record does not fit.
        """
        self._loaded = self._source.load(self._schema, at_least=0)

    @override
    def facts(self) -> Partitions[Any]:
        return SinglePartition(self._held)

    @override
    def encoded(self, encoder: Encoder, path: Path | None) -> EncodedInMemory:
        held = self._held
        return EncodedInMemory(encoded_records(encoder, encoder.compact(held.content), held.unit, held.n_units))

    @property
    def _held(self) -> Loaded:
        if self._loaded is None:
            raise TypeError("nothing was read")
        return self._loaded

    def __repr__(self) -> str:
        return "InMemoryRecords(private)"


class EncodedInMemory:
    """Compact records in memory.

    Args:
        records: Private.
    """

    def __init__(self, records: PrivateRecords) -> None:
        self._records = records

    @property
    def fingerprint(self) -> str:
        """A hash of all of them in their order. Private."""
        return self._records.fingerprint

    @property
    def n_units(self) -> int:
        """Number of units. Private."""
        return self._records.n_units

    def partitions(self, check: Callable[[], None] = lambda: None) -> Partitions[Any]:
        """Return them as a single partition."""
        return SinglePartition(self._records)

    def close(self) -> None:
        """Do nothing: there is no file."""

    def __repr__(self) -> str:
        return "EncodedInMemory(private)"


# -- on disk -----------------------------------------------------------------------------------------------------------


class OnDiskRecords(RecordSource):
    """A table's records on disk.

    Args:
        source: Its header checked.
        schema: The public facts.
        folder: The run's internal folder, which has room.
        kept: The codes that an interrupted run kept.
        at_least: Fewer records than this are refused.
        drawn: Whether lots are drawn of them, so that each record's unit has to be known.
    """

    def __init__(
        self,
        source: TableSource,
        schema: Schema,
        folder: Path,
        *,
        kept: ColumnCodes | RowCodes | None = None,
        at_least: int = 2,
        drawn: bool = False,
    ) -> None:
        self._source = source
        self._schema = schema
        self._folder = folder
        self._kept = kept
        self._at_least = at_least
        self.drawn = drawn if kept is None else isinstance(kept, RowCodes)
        self._table: TableOnDisk | None = None

    @override
    def read(self) -> None:
        """Read the records, if facts are to be learned or units to be bounded.

        Raises:
            DataError: A cell does not fit its column, or there are too few records.
        """
        if self._kept is None and (self._schema.questions or self._schema.unit.id is not None):
            self._table = TableOnDisk(
                self._source, self._schema, self._folder, rows=RECORDS_AT_ONCE, numbered=self.drawn
            )
            refuse_too_few(self._table.read, self._source, self._at_least)

    @override
    def facts(self) -> SequentialPartitions[TablePart]:
        if self._table is None:
            raise TypeError("nothing is to be learned")
        return SequentialPartitions(self._table.parts)

    @override
    def encoded(self, encoder: Encoder, path: Path | None) -> ColumnCodes:
        """Return the records as codes for counting queries.

        Args:
            encoder: Of the resolved schema.
            path: File where they stay until the run is closed; None: none.

        Raises:
            DataError: A cell does not fit its column, or there are too few records.
        """
        if isinstance(self._kept, ColumnCodes):
            return self._kept
        if not isinstance(encoder, TableValues):
            raise TypeError("only whole numbers are spilled")
        types = [narrowest(own.first, own.last + own.nullable) for own in encoder.domains]
        table = self._table
        codes = ColumnCodes.write(
            self._compact(encoder),
            types,
            most_records=lambda: 1 if table is None else table.most_records,
            folder=self._folder,
            path=path,
        )
        self._forget_cells()
        return codes

    def in_rows(self, encoder: Encoder, path: Path | None) -> RowCodes:
        """Return the records as rows for drawing lots.

        Args:
            encoder: Of the resolved schema.
            path: File where they stay until the run is closed; None: none.

        Raises:
            DataError: A cell does not fit its column, or there are too few records.
        """
        if isinstance(self._kept, RowCodes):
            return self._kept
        table = self._table
        rows = RowCodes.write(
            self._compact(encoder),
            unit=lambda: None if table is None else table.unit,
            folder=self._folder,
            path=path,
        )
        self._forget_cells()
        return rows

    def _compact(self, encoder: Encoder) -> Iterator[npt.NDArray[Any]]:
        return self._as_they_are_read(encoder) if self._table is None else self._of_cells(self._table, encoder)

    def _forget_cells(self) -> None:
        if self._table is not None:
            self._table.close()

    def _as_they_are_read(self, encoder: Encoder) -> Iterator[npt.NDArray[Any]]:
        columns, misfit = {n: c for n, c in self._schema.columns.items() if c.modelled}, self._schema.misfit
        yield encoder.compact(no_records(columns, misfit))
        read = 0
        for frame, _ in self._source.canonical_chunks(columns, {}, misfit, RECORDS_AT_ONCE):
            read += len(frame)
            yield encoder.compact(checked(frame, self._schema))
        refuse_too_few(read, self._source, self._at_least)

    @staticmethod
    def _of_cells(table: TableOnDisk, encoder: Encoder) -> Iterator[npt.NDArray[Any]]:
        for part in table.parts():
            yield encoder.compact(part.content)

    def __repr__(self) -> str:
        return "OnDiskRecords(private)"
