"""Places that records of a run are in: somewhere else, in memory, or on this machine's disk.

A place is asked for facts first, then for compact records. Elsewhere are workers (:mod:`doublure.run.worker_records`)
and owners who keep their records (:mod:`doublure.federated`). A table that is larger than memory is read once, spilled,
and counted in partitions or drawn in lots:

=====================================  ==============================================================================
the schema                             what is spilled
=====================================  ==============================================================================
says everything, a record is a unit    codes, as records are read
is to be learned, or has ids           canonical cells first, of which facts are learned and units bounded; then codes
=====================================  ==============================================================================

Codes that are counted lie column by column, those of which lots are drawn row by row. They stay beside the checkpoint
where the run can be resumed, until it is closed; a resumed run goes on with them and reads the data no more. Cells
never stay.
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
from doublure.private.codes import Codes, narrowest
from doublure.private.partitions import Partitions, SequentialPartitions, SinglePartition
from doublure.private.row_codes import RowCodes
from doublure.training.job import encoded_records

if TYPE_CHECKING:
    from doublure.data.opening import Source
    from doublure.data.records import Loaded
    from doublure.data.tables.source import TableSource
    from doublure.encode.encoder import Encoder
    from doublure.private.queries.counts import Countable
    from doublure.private.queries.facts import Cells
    from doublure.private.records import PrivateRecords
    from doublure.schema import Schema

RECORDS_AT_ONCE = 2**16


class EncodedRecords(Protocol):
    """Compact records, wherever they lie."""

    @property
    def fingerprint(self) -> str:
        """A hash of all of them in their order; empty where nobody can know it. Private."""

    def partitions(self, check: Callable[[], None]) -> Partitions[Countable]:
        """Return them as queries are asked of them; ``check`` is called now and then, and may raise to stop."""


class RecordSource(ABC):
    """Records that are asked in partitions."""

    @abstractmethod
    def read(self) -> None:
        """Have the records read; the charge is on disk.

        Raises:
            InputError: They do not fit the schema.
        """

    @abstractmethod
    def facts(self) -> Partitions[Cells]:
        """Return the records as facts look at them."""

    @abstractmethod
    def encoded(self, encoder: Encoder, path: Path | None) -> EncodedRecords:
        """Return the records as queries count them.

        Args:
            encoder: Of the resolved schema.
            path: Where they may stay until the run is closed; None: nowhere.
        """


class RemoteSource(RecordSource):
    """Records that stay where they are, and that a fit is given in place of data."""

    @abstractmethod
    def check(self, schema: Schema) -> None:
        """Ask whether all is as planned, before anything is charged.

        Raises:
            InputError: It is not.
        """

    def begun(self, internal: Path) -> None:
        """Hear that the run is charged, and which its internal folder is."""
        return

    def given_back(self) -> bool:
        """Have every other ledger that was charged for this run closed at zero, and say whether none is charged.

        Called where a run ends before anything was drawn; one that is charged elsewhere is kept, to be gone on with.
        """
        return True

    @property
    def public(self) -> Mapping[str, Any]:
        """What ``run.json``, and with it a card, says of the place: decided before a record was read."""
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
        """Read the records; none is enough.

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
        """How many units there are. Private."""
        return self._records.n_units

    def partitions(self, check: Callable[[], None] = lambda: None) -> Partitions[Any]:
        """Return them as queries are asked of them."""
        return SinglePartition(self._records)

    def close(self) -> None:
        """There is no file."""

    def __repr__(self) -> str:
        return "EncodedInMemory(private)"


# -- on disk -----------------------------------------------------------------------------------------------------------


class OnDiskRecords(RecordSource):
    """A table's records, wherever they are at the time.

    Args:
        source: Its header checked.
        schema: The public facts.
        folder: The run's internal one, where there is room.
        kept: What an interrupted run has kept.
        at_least: Fewer records than this are refused.
        drawn: Whether lots are drawn of them, so that each one's unit has to be known.
    """

    def __init__(
        self,
        source: TableSource,
        schema: Schema,
        folder: Path,
        *,
        kept: Codes | RowCodes | None = None,
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
        """Read the records, where facts are to be learned of them or units to be bounded.

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
    def encoded(self, encoder: Encoder, path: Path | None) -> Codes:
        """Return the records as queries count them.

        Args:
            encoder: Of the resolved schema.
            path: Where they stay until the run is closed; None: nowhere.

        Raises:
            DataError: A cell does not fit its column, or there are too few records.
        """
        if isinstance(self._kept, Codes):
            return self._kept
        if not isinstance(encoder, TableValues):
            raise TypeError("only whole numbers are spilled")
        types = [narrowest(own.first, own.last + own.nullable) for own in encoder.domains]
        table = self._table
        codes = Codes.written(
            self._compact(encoder),
            types,
            most_records=lambda: 1 if table is None else table.most_records,
            folder=self._folder,
            path=path,
        )
        self._forget_cells()
        return codes

    def in_rows(self, encoder: Encoder, path: Path | None) -> RowCodes:
        """Return the records as lots are drawn of them.

        Args:
            encoder: Of the resolved schema.
            path: Where they stay until the run is closed; None: nowhere.

        Raises:
            DataError: A cell does not fit its column, or there are too few records.
        """
        if isinstance(self._kept, RowCodes):
            return self._kept
        table = self._table
        rows = RowCodes.written(
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
