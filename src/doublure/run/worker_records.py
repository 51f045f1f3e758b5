"""A run whose records lie on the workers of a cluster, who read, encode and keep them, and say what they add up to.

They hold what a disk does (:mod:`doublure.run.record_sources`): codes, and before them cells, where facts are learned
or units bounded. Nothing stays for a run that is cut off: to resume it, the data is read again. :class:`Workers` says
what a cluster has to do; :mod:`doublure.run.engines` has Dask's.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from typing_extensions import override

from doublure._version import __version__
from doublure.data.tables.on_disk import refuse_too_few
from doublure.data.tables.source import TableSource
from doublure.data.tables.unit_bounds import fresh_keys
from doublure.encode.table_values import TableValues
from doublure.private.remote import PartitionFacts, Response, WorkerPartitions
from doublure.run import worker_tasks as tasks
from doublure.run.record_sources import RemoteSource

if TYPE_CHECKING:
    from doublure.encode.encoder import Encoder
    from doublure.planning import Plan
    from doublure.private.partitions import Partitions
    from doublure.private.queries.counts import Countable
    from doublure.private.queries.facts import Cells
    from doublure.private.queries.query import Query
    from doublure.schema import Schema

BUCKETS = 16
"""Units are bounded in so many parts, or as many as there are pieces."""


class Workers(Protocol):
    """Processes that do what they are asked, and keep what comes out until nobody refers to it any more.

    What is lost with a worker is done again by another.
    """

    def check(self) -> None:
        """Ask whether there are any, and whether they have this version; none opens the data.

        Raises:
            InputError: There is none, or one has another version.
        """

    def each(self, does: Callable[..., Any], *given: Sequence[Any]) -> list[Any]:
        """Have something done once for each of some arguments; return what stands for each result.

        Args:
            does: A function of its arguments alone.
            given: Of each argument the values in turn; among them, or in lists, what stands for earlier results.
        """

    def results(self, wanted: Sequence[Any]) -> Iterator[Any]:
        """Yield results, in any order.

        Raises:
            RankLost: The workers are gone, or died of it again and again.
        """


class WorkerRecords(RemoteSource):
    """A table in files that all workers can read.

    Args:
        source: Its headers checked, its paths absolute.
        plan: What is run.
        workers: Who reads it.
    """

    def __init__(self, source: TableSource, plan: Plan, workers: Workers) -> None:
        self._source = source
        self._schema: Schema = plan.schema
        self._at_least = plan.fewest_records
        self._workers = workers
        self._pieces: list[tasks.Piece] = []
        self._cells: list[Any] = []
        self._codes: list[Any] = []
        self._digests: list[str] = []
        self._facts = PartitionFacts(0, 1)

    @override
    def check(self, schema: Schema) -> None:
        """Compare headers with the schema, and ask for the workers.

        Raises:
            InputError: A column is missing, the table lies in this process alone, or there are no workers.
        """
        self._source.check(schema)
        self._source.pieces()
        self._workers.check()

    @override
    def read(self) -> None:
        """Have the records read, where facts are to be learned of them or units to be bounded.

        Raises:
            DataError: A cell does not fit its column, or there are too few records.
        """
        keys = fresh_keys()
        self._pieces = [
            tasks.Piece(number, piece, self._schema, keys, __version__)
            for number, piece in enumerate(self._source.pieces())
        ]
        if not self._schema.questions and self._schema.unit.id is None:
            return
        whole = self._workers.each(tasks.read, self._pieces)
        self._refuse_too_few(self._workers.results(self._workers.each(tasks.known_cells, whole)))
        shares, most = self._bounded(whole)
        self._cells = self._workers.each(tasks.held, whole, shares, [most] * len(whole))
        self._facts = PartitionFacts(0, most)
        self._hear(self._cells)

    @override
    def facts(self) -> Partitions[Cells]:
        return self._partitions(self._cells)

    @override
    def encoded(self, encoder: Encoder, path: Path | None) -> WorkerRecords:
        """Have the records encoded, and read if they are not yet.

        Raises:
            DataError: A cell does not fit its column, or there are too few records.
        """
        if not isinstance(encoder, TableValues):
            raise TypeError("only whole numbers are counted by workers")
        does, given = (tasks.encoded, self._cells) if self._cells else (tasks.read_encoded, self._pieces)
        schema = self._workers.each(tasks.itself, [encoder.schema])
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
        """Return the records as queries count them."""
        return self._partitions(self._codes, check)

    def forget(self) -> None:
        """Let the workers drop their cells and codes, also where a cycle of references outlives the fit."""
        self._cells.clear()
        self._codes.clear()

    # -- what workers are asked --------------------------------------------------------------------------------------

    def _partitions(self, parts: list[Any], check: Callable[[], None] = lambda: None) -> WorkerPartitions[Any]:
        return WorkerPartitions(partial(self._asked, parts), digests=self._digests, facts=self._facts, check=check)

    def _asked(self, parts: list[Any], query: Query[Any], sample_rate: float) -> Iterator[Response]:
        sent = self._workers.each(tasks.itself, [query])
        yield from self._workers.results(
            self._workers.each(tasks.answered, parts, sent * len(parts), [sample_rate] * len(parts))
        )

    def _bounded(self, whole: list[Any]) -> tuple[list[list[Any]], int]:
        """Return of each piece what stands for its share of every bucket, and how many records a unit has at most."""
        if self._schema.unit.id is None:
            return [[] for _ in whole], 1
        each, count, most = self._workers.each, min(BUCKETS, len(whole)), self._schema.unit.max_records
        assigned = each(tasks.assigned, whole, [count] * len(whole))
        buckets = [each(tasks.bucket_of, assigned, [bucket] * len(assigned)) for bucket in range(count)]
        bounded = each(tasks.bounded, buckets, [most] * count)
        shares = [each(tasks.share_of, bounded, [number] * count) for number in range(len(whole))]
        return shares, max(self._workers.results(each(tasks.most_of, bounded)))

    def _hear(self, parts: list[Any]) -> list[tasks.Known]:
        known = sorted(self._workers.results(self._workers.each(tasks.known, parts)))
        self._digests = [each.digest for each in known]
        return known

    def _refuse_too_few(self, known: Iterator[tasks.Known]) -> None:
        refuse_too_few(sum(each.records for each in known), self._source, self._at_least)

    def __repr__(self) -> str:
        return "WorkerRecords(private)"
