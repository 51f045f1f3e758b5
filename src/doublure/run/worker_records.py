"""Records on the workers of a cluster, which read, encode and keep them, and answer queries.

Workers hold the same as a disk (:mod:`doublure.run.record_sources`): codes, and before them cells, where facts are
learned or units bounded. Nothing is kept for a run that is cut off: to resume it, the data is read again.
:class:`Workers` is the interface of a cluster; :mod:`doublure.run.engines` has Dask's.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from typing_extensions import override

from doublure._version import __version__
from doublure.data.records import refuse_repeated
from doublure.data.tables.on_disk import refuse_too_few
from doublure.data.tables.source import TableSource
from doublure.data.tables.unit_bounds import fresh_keys
from doublure.encode.table_values import TableValues
from doublure.private.remote import PartitionFacts, WorkerPartitions, WorkerResponse
from doublure.run import worker_tasks as tasks
from doublure.run.record_sources import RemoteSource

if TYPE_CHECKING:
    from doublure.encode.encoder import Encoder
    from doublure.planning import Plan
    from doublure.private.partitions import Partitions
    from doublure.private.queries.counts import Countable
    from doublure.private.queries.facts import FactRecords
    from doublure.private.queries.query import Query
    from doublure.schema import Schema

BUCKETS = 16
"""Number of parts in which units are bounded; no more than there are pieces."""


class Workers(Protocol):
    """Processes that run tasks, and keep each result while it is referred to.

    Results that are lost with a worker are computed again by another.
    """

    def check(self) -> None:
        """Check that there are workers, of this version; none opens the data.

        Raises:
            InputError: There is none, or one has another version.
        """

    def each(self, does: Callable[..., Any], *given: Sequence[Any]) -> list[Any]:
        """Run a task for each set of arguments; return references to the results.

        Args:
            does: A function of its arguments alone.
            given: The values of each argument in turn; they may be, or hold in lists, references to earlier results.
        """

    def results(self, wanted: Sequence[Any]) -> Iterator[Any]:
        """Yield results, in any order.

        Raises:
            RankLost: The workers are gone, or repeatedly died of a task.
        """


class WorkerRecords(RemoteSource):
    """A table in files that all workers can read.

    Args:
        source: Its headers checked, its paths absolute.
        plan: The plan of the run.
        workers: The workers that read it.
    """

    def __init__(self, source: TableSource, plan: Plan, workers: Workers) -> None:
        self._source = source
        self._schema: Schema = plan.schema
        self._at_least = plan.fewest_records
        self._workers = workers
        self._pieces: list[tasks.DataPiece] = []
        self._cells: list[Any] = []
        self._codes: list[Any] = []
        self._digests: list[str] = []
        self._facts = PartitionFacts(0, 1)

    @override
    def check(self, schema: Schema) -> None:
        """Compare headers with the schema, and check the workers.

        Raises:
            InputError: A column is missing, the table is in this process alone, or there are no workers.
        """
        self._source.check(schema)
        self._source.pieces()
        self._workers.check()

    @override
    def read(self) -> None:
        """Have the records read, if facts are to be learned or units to be bounded.

        Raises:
            DataError: A cell does not fit its column, or there are too few records.
        """
        keys = fresh_keys()
        self._pieces = [
            tasks.DataPiece(number, piece, self._schema, keys, __version__)
            for number, piece in enumerate(self._source.pieces())
        ]
        if not self._schema.questions and self._schema.unit.id is None:
            return
        whole = self._workers.each(tasks.read, self._pieces)
        read = self._refuse_too_few(self._workers.results(self._workers.each(tasks.count_records, whole)))
        shares, most = self._bounded(whole)
        self._cells = self._workers.each(tasks.keep_used, whole, shares, [most] * len(whole))
        self._facts = PartitionFacts(0, most)
        refuse_repeated(self._schema, repeated=sum(each.records for each in self._hear(self._cells)) < read)

    @override
    def facts(self) -> Partitions[FactRecords]:
        return self._partitions(self._cells)

    @override
    def encoded(self, encoder: Encoder, path: Path | None) -> WorkerRecords:
        """Have the records encoded, and read if they are not yet.

        Raises:
            DataError: A cell does not fit its column, or there are too few records.
        """
        if not isinstance(encoder, TableValues):
            raise TypeError("only whole numbers are counted by workers")
        does, given = (tasks.encode, self._cells) if self._cells else (tasks.read_and_encode, self._pieces)
        schema = self._workers.each(tasks.identity, [encoder.schema])
        self._codes = self._workers.each(does, given, schema * len(given))
        known = self._hear(self._codes)
        if not self._cells:
            self._refuse_too_few(iter(known))
        self._cells.clear()
        self._facts = PartitionFacts(len(encoder.domains), self._facts.most_records)
        return self

    @property
    def fingerprint(self) -> str:
        """A hash of all records in their order. Private."""
        return hashlib.sha256("".join(self._digests).encode()).hexdigest()

    def partitions(self, check: Callable[[], None]) -> Partitions[Countable]:
        """Return the records as partitions for counting queries."""
        return self._partitions(self._codes, check)

    def forget(self) -> None:
        """Let the workers drop their cells and codes, also where a cycle of references outlives the fit."""
        self._cells.clear()
        self._codes.clear()

    # -- tasks -------------------------------------------------------------------------------------------------------

    def _partitions(self, parts: list[Any], check: Callable[[], None] = lambda: None) -> WorkerPartitions[Any]:
        return WorkerPartitions(partial(self._asked, parts), digests=self._digests, facts=self._facts, check=check)

    def _asked(self, parts: list[Any], query: Query[Any], sample_rate: float) -> Iterator[WorkerResponse]:
        sent = self._workers.each(tasks.identity, [query])
        yield from self._workers.results(
            self._workers.each(tasks.answer, parts, sent * len(parts), [sample_rate] * len(parts))
        )

    def _bounded(self, whole: list[Any]) -> tuple[list[list[Any]], int]:
        """Return for each piece references to its share of every bucket, and the most records of a unit."""
        if self._schema.unit.id is None:
            return [[] for _ in whole], 1
        each, count, most = self._workers.each, min(BUCKETS, len(whole)), self._schema.unit.max_records
        assigned = each(tasks.assign_buckets, whole, [count] * len(whole))
        buckets = [each(tasks.select_bucket, assigned, [bucket] * len(assigned)) for bucket in range(count)]
        bounded = each(tasks.bound_units, buckets, [most] * count)
        shares = [each(tasks.select_share, bounded, [number] * count) for number in range(len(whole))]
        return shares, max(self._workers.results(each(tasks.most_records, bounded)))

    def _hear(self, parts: list[Any]) -> list[tasks.PartitionSummary]:
        known = sorted(self._workers.results(self._workers.each(tasks.summarise, parts)))
        self._digests = [each.digest for each in known]
        return known

    def _refuse_too_few(self, known: Iterator[tasks.PartitionSummary]) -> int:
        """Return the number of records, once it is not too small. Private."""
        read = sum(each.records for each in known)
        refuse_too_few(read, self._source, self._at_least)
        return read

    def __repr__(self) -> str:
        return "WorkerRecords(private)"
