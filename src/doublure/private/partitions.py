"""Partitioned private records: a query is evaluated on each partition and the answers are summed.

A partition is some of the records: a stretch of a file, or the records of a worker or an owner. Its answer depends on
its own records alone, so it can be computed anywhere, and again after a failure. Noise, comparison with the price,
authorisation and the ledger stay with the process that asks, once (:mod:`doublure.private.mechanism`).

Guarantee: none of its own. The sum has the sensitivity that each answer states, because a unit has at most m records in
*all* partitions together: units are bounded before records are parted, and every partition is told how many records the
unit with the most has anywhere. A border between partitions may therefore cut a unit in two.

==============================================  ===================================================================
edge case                                       what happens
==============================================  ===================================================================
no record at all                                there is one partition, and it is empty
answers that state different sensitivities,     nothing is given out, and the run ends
rates or units
a query that is no sum over records             its parts are asked one after the other, and put together once
a query that needs all records in one place     is refused before anything is asked
==============================================  ===================================================================
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, runtime_checkable

import numpy as np
import numpy.typing as npt
from typing_extensions import override

from doublure.errors import NotAsPriced, SettingError
from doublure.private.executed import DEFECT
from doublure.private.queries.query import Answer, Query

if TYPE_CHECKING:
    from doublure.access import Access

R = TypeVar("R")
P = TypeVar("P", covariant=True)
"""Covariant: partitions of a narrower kind of records answer every query about a wider kind."""


@runtime_checkable
class CompositeQuery(Protocol):
    """A query whose answer is no sum over records, but follows from sums."""

    def sums(self) -> Iterable[Query[Any]]:
        """Return queries that are sums, in the order in which they are asked."""

    def combine(self, totals: Iterator[Any]) -> Answer:
        """Return the answer from their exact totals, each taken before the next is asked for."""


@runtime_checkable
class NotPartitionable(Protocol):
    """A query that may need all records in one place, because its answers do not add up over partitions."""

    @property
    def not_partitionable(self) -> str | None:
        """The reason why it cannot be asked of partitions; None where it can."""


class Partitions(ABC, Generic[P]):
    """Private records in one or more places; :mod:`doublure.private.remote` has those held by other processes."""

    def paid_by(self, access: Access) -> None:
        """Set the access that pays for the next query; owners look it up in their own plan."""
        return

    @abstractmethod
    def refuse_unfit(self, query: Query[P]) -> None:
        """Refuse a query that does not fit the records of some partition.

        Raises:
            SettingError: Naming what does not fit.
        """

    @abstractmethod
    def answers(self, query: Query[P], *, sample_rate: float) -> Iterator[Answer]:
        """Yield one answer per partition, at least one. Private."""

    def map(self, view: Callable[[Any], Any]) -> Partitions[Any]:
        """Return the same records seen through a function; not every kind of partition can.

        Args:
            view: Records to records, each from itself alone (:meth:`doublure.private.records.PrivateRecords.mapped`).
        """
        raise TypeError(f"{type(self).__name__} asks of records as they are")

    def having(
        self, part: int, least: float, parts: npt.NDArray[np.int64], domains: Sequence[tuple[int, int]]
    ) -> Partitions[Any]:
        """Return the records as :meth:`doublure.private.records.PrivateRecords.having`; a database can.

        Args:
            part: The part that is compared.
            least: Its least value.
            parts: ``(Q,)`` the parts that are kept, in order.
            domains: Of each of these the lowest and the highest code, missing included.
        """
        raise TypeError(f"{type(self).__name__} asks of records as they are")

    def ask(self, query: Query[P], *, sample_rate: float) -> Answer:
        """Return the sum of all partitions' answers. Private: for the mechanism alone.

        Args:
            query: The query.
            sample_rate: Of the lot, from the plan.

        Raises:
            NotAsPriced: The answers do not belong together.
        """
        if isinstance(query, CompositeQuery):
            return query.combine(self.ask(each, sample_rate=sample_rate).total for each in query.sums())
        answers = self.answers(query, sample_rate=sample_rate)
        found = next(answers)
        for answer in answers:
            if answer.stated != found.stated:
                raise inconsistent_answers(query)
            found = replace(found, total=add_totals(found.total, answer.total))
        return found

    def __repr__(self) -> str:
        return f"{type(self).__name__}(private)"


class SinglePartition(Partitions[P]):
    """All records in one place."""

    def __init__(self, records: P) -> None:
        self._records = records

    @override
    def refuse_unfit(self, query: Query[P]) -> None:
        query.refuse_unfit(self._records)

    @override
    def answers(self, query: Query[P], *, sample_rate: float) -> Iterator[Answer]:
        yield query.answer(self._records, sample_rate=sample_rate)

    @override
    def map(self, view: Callable[[Any], Any]) -> SinglePartition[Any]:
        return SinglePartition(view(self._records))


class SequentialPartitions(Partitions[P]):
    """Partitions of this machine, one after another, so that no two are held at once.

    Args:
        parts: Yields all partitions anew each time, at least one.
        check: Called before each; may raise to stop.
    """

    def __init__(self, parts: Callable[[], Iterable[P]], check: Callable[[], None] = lambda: None) -> None:
        self._parts = parts
        self._check = check

    @override
    def refuse_unfit(self, query: Query[P]) -> None:
        require_partitionable(query)
        for part in self._parts():
            query.refuse_unfit(part)

    @override
    def answers(self, query: Query[P], *, sample_rate: float) -> Iterator[Answer]:
        for part in self._parts():
            self._check()
            yield query.answer(part, sample_rate=sample_rate)


def as_partitions(records: R | Partitions[R]) -> Partitions[R]:
    """Return records as partitions; records in one place are a single partition."""
    return records if isinstance(records, Partitions) else SinglePartition(records)


def require_partitionable(query: Query[Any]) -> None:
    """Refuse a query that cannot be asked of partitions.

    Raises:
        SettingError: Giving the reason.
    """
    if isinstance(query, NotPartitionable) and query.not_partitionable is not None:
        raise SettingError(
            query.not_partitionable, field="partitions", remedy="fit in one process that holds all records"
        )


def inconsistent_answers(query: Query[Any]) -> NotAsPriced:
    """Return the refusal of answers that do not belong together."""
    return NotAsPriced("is answered otherwise by partitions", field=type(query).__name__, remedy=DEFECT)


def add_totals(one: Any, other: Any) -> Any:
    """Return the sum of two totals: arrays of one shape, or counts by name.

    Real numbers are added in float64 whatever their type: rounding here would come before the noise.

    Raises:
        NotAsPriced: They have different shapes.
    """
    if isinstance(one, Mapping):
        return {name: one.get(name, 0) + other.get(name, 0) for name in {**one, **other}}
    real = one.dtype.kind == other.dtype.kind == "f"
    if one.shape != other.shape or not (real or one.dtype == other.dtype):
        raise NotAsPriced("is answered in different shapes by partitions", field="query", remedy=DEFECT)
    return one.astype(np.float64) + other if real else one + other
