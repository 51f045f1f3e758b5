"""Private records held by other parties: a query goes to each of them, and each answer is added once.

Transports differ by trust and carriage alone. A subclass defines which queries its parties can answer
(:meth:`RemotePartitions.refuse_unfit`), how a query reaches them and answers come back, how an answer is checked
before it is added, and what happens to a sum that lacks an answer (:class:`Exchange`).

=========================================  ==========  ==============================  ================================
transport                                  carriage    what an answer is held against  an answer is missing
=========================================  ==========  ==============================  ================================
:class:`WorkerPartitions`                  a cluster   the hash of what was read       the run ends
:class:`~.ranks.RankPartitions`            gloo        the query's hash, and what      the run ends
                                                       the own answer states
:class:`~.owner_partitions`                Flower      bounds of public units: owners  the run ends; of one unit, it
``.OwnerPartitions``                                   are not trusted (rule 18)       counts for zero
=========================================  ==========  ==============================  ================================

Guarantee: none of its own; that of :mod:`doublure.private.partitions`. Parties whose answers are not bounded are one
trusted party with the process that asks.

==============================================  ===================================================================
edge case                                       what happens
==============================================  ===================================================================
no record at all                                there is one partition, and it is empty
answers come in another order                   the sum is the same where its numbers are whole
a worker is killed                              its partitions are read again elsewhere; their answers are the same
the data was changed before it is read again    its hash is another: the run ends, and nothing is given out
a party answers twice, or not at all            likewise
==============================================  ===================================================================
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from typing_extensions import override

from doublure.errors import DataError, NotAsPriced
from doublure.private.executed import DEFECT
from doublure.private.partitions import Partitions, require_partitionable

if TYPE_CHECKING:
    from doublure.private.queries.query import Answer, Query

P = TypeVar("P")
R = TypeVar("R")


@dataclass(frozen=True, kw_only=True)
class Exchange(Generic[R]):
    """One query that is sent to remote parties.

    Attributes:
        parties: All parties that may answer, once each.
        responses: Parties with their responses, as they come.
        validated: Returns a party's answer if it may be added; None adds nothing.
        own: The answer of the asking process's own records, or that of no records.
        completed: Called at the end with the parties that added nothing; None where the sum needs every party.
    """

    parties: Collection[Hashable]
    responses: Iterable[tuple[Hashable, R]]
    validated: Callable[[Any, R], Answer | None]
    own: Answer | None = None
    completed: Callable[[Collection[Any]], None] | None = None


class RemotePartitions(Partitions[P]):
    """Partitions that other processes hold.

    Args:
        check: Called before each answer is added; may raise to stop.
    """

    def __init__(self, check: Callable[[], None] = lambda: None) -> None:
        self._check = check

    @abstractmethod
    def exchange(self, query: Query[P], *, sample_rate: float) -> Exchange[Any]:
        """Start asking a query of all parties."""

    @override
    def answers(self, query: Query[P], *, sample_rate: float) -> Iterator[Answer]:
        """Yield each party's answer, once.

        Raises:
            NotAsPriced: A party answers twice, was not asked, or does not answer.
        """
        exchange = self.exchange(query, sample_rate=sample_rate)
        if exchange.own is not None:
            yield exchange.own
        left = {*exchange.parties}
        for party, response in exchange.responses:
            self._check()
            if party not in left:
                raise NotAsPriced("is answered twice by a partition", field=type(query).__name__, remedy=DEFECT)
            answer = exchange.validated(party, response)
            if answer is not None:
                left.discard(party)
                yield answer
        if exchange.completed is not None:
            exchange.completed(left)
        elif left:
            raise NotAsPriced("is not answered by each partition", field=type(query).__name__, remedy=DEFECT)


# -- workers of a cluster ----------------------------------------------------------------------------------------------


class WorkerResponse(NamedTuple):
    """A worker's answer for one partition.

    Attributes:
        number: Of the partition.
        digest: A hash of the data that was read. Private.
        answer: Private.
    """

    number: int
    digest: str
    answer: Answer


class PartitionFacts(NamedTuple):
    """Facts of all partitions that a query needs to refuse records that do not fit.

    Attributes:
        parts: Number of parts of a compact record; 0 where records are not encoded.
        most_records: Largest number of records of a unit, over all partitions. Private.
    """

    parts: int
    most_records: int


def respond(held: Any, query: Query[Any], sample_rate: float) -> WorkerResponse:
    """Return a worker's answer for one partition.

    Args:
        held: The partition, which has a ``number`` among all, from 0, and the ``digest`` of its content.
        query: What is asked.
        sample_rate: Of the lot, from the plan.

    Raises:
        SettingError: The query does not fit the records.
    """
    query.refuse_unfit(held)
    return WorkerResponse(held.number, held.digest, query.answer(held, sample_rate=sample_rate))


class WorkerPartitions(RemotePartitions[P]):
    """Partitions on the workers of a cluster, which may lose work, move it, and do a piece of it twice.

    Args:
        ask: Sends a query to all partitions, with the rate of the lot, and yields their responses as they come.
        digests: For each partition the hash of the data that was read first.
        facts: Facts of all partitions.
        check: Called before each answer is added; may raise to stop.
    """

    def __init__(
        self,
        ask: Callable[[Query[P], float], Iterator[WorkerResponse]],
        *,
        digests: Sequence[str],
        facts: P,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(check)
        self._ask = ask
        self._digests = tuple(digests)
        self._facts = facts

    @override
    def refuse_unfit(self, query: Query[P]) -> None:
        require_partitionable(query)
        query.refuse_unfit(self._facts)

    @override
    def exchange(self, query: Query[P], *, sample_rate: float) -> Exchange[WorkerResponse]:
        found = ((response.number, response) for response in self._ask(query, sample_rate))
        return Exchange(parties=range(len(self._digests)), responses=found, validated=self._validated)

    def _validated(self, number: int, response: WorkerResponse) -> Answer:
        if self._digests[number] != response.digest:
            remedy = "leave the files as they are while they are read, and fit anew"
            raise DataError("was changed during the run", field="data", remedy=remedy)
        return response.answer
