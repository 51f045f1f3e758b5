"""Records that workers of a cluster hold in partitions: what a worker says, and how its answers are added once each.

Whoever runs a cluster asks again what was lost, moves work about, and may do a piece of it twice. None of that may
change a sum: an answer is a function of its partition's records, comes with the partition's number and a hash of what
was read, and is added once.

Guarantee: none of its own; that of :mod:`doublure.private.partitions`. Workers are one trusted party with whoever asks.

==============================================  ===================================================================
edge case                                       what happens
==============================================  ===================================================================
no record at all                                there is one partition, and it is empty
answers come in another order                   the sum is the same: its numbers are whole
a worker is killed                              its partitions are read again elsewhere; their answers are the same
the data was changed before it is read again    its hash is another: the run ends, and nothing is given out
a partition answers twice, or not at all        likewise
==============================================  ===================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from doublure.errors import DataError, NotAsPriced
from doublure.private.executed import DEFECT
from doublure.private.partitions import Partitions, refuse_undivided

if TYPE_CHECKING:
    from doublure.private.queries.query import Answer, Query

P = TypeVar("P")
H = TypeVar("H", bound="Held")


class Held(Protocol):
    """A partition as a worker holds it: what queries ask, its number among all, and a hash of its content."""

    @property
    def number(self) -> int:
        """Its place among all, from 0."""

    @property
    def digest(self) -> str:
        """A hash of its content. Private."""


class Told(NamedTuple):
    """What one partition says.

    Attributes:
        number: Which.
        digest: A hash of what was read. Private.
        answer: Private.
    """

    number: int
    digest: str
    answer: Answer


class Facts(NamedTuple):
    """What is known of all partitions without asking one, for a query to refuse what does not fit.

    Attributes:
        parts: How many parts a compact record has; 0 where records are not encoded.
        most_records: How many records the unit with the most has, in all partitions. Private.
    """

    parts: int
    most_records: int


def told(held: H, query: Query[H], sample_rate: float) -> Told:
    """Return what a worker says of one partition.

    Args:
        held: The partition.
        query: What is asked.
        sample_rate: Of the lot, from the plan.

    Raises:
        SettingError: The query does not fit the records.
    """
    query.refuse_unfit(held)
    return Told(held.number, held.digest, query.answer(held, sample_rate=sample_rate))


class OnWorkers(Partitions[P]):
    """Partitions that workers hold.

    Args:
        ask: Puts a query to all partitions, with the rate of the lot, and yields what each says as it comes.
        digests: Of each partition the hash of what was read first.
        facts: What is known of all.
        check: Called before each answer is added; may raise to stop.
    """

    def __init__(
        self,
        ask: Callable[[Query[P], float], Iterator[Told]],
        *,
        digests: Sequence[str],
        facts: P,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        self._ask = ask
        self._digests = tuple(digests)
        self._facts = facts
        self._check = check

    def refuse_unfit(self, query: Query[P]) -> None:
        """Refuse what does not fit, or cannot be asked of parts; no worker is asked yet, and each looks again."""
        refuse_undivided(query)
        query.refuse_unfit(self._facts)

    def answers(self, query: Query[P], *, sample_rate: float) -> Iterator[Answer]:
        """Yield each partition's answer, once.

        Raises:
            DataError: A partition was read again, and is another.
            NotAsPriced: A partition answers twice, or not at all.
        """
        left = dict(enumerate(self._digests))
        for number, digest, answer in self._ask(query, sample_rate):
            self._check()
            if number not in left:
                raise NotAsPriced("is answered twice by a partition", field=type(query).__name__, remedy=DEFECT)
            if left.pop(number) != digest:
                remedy = "leave the files as they are while they are read, and fit anew"
                raise DataError("was changed during the run", field="data", remedy=remedy)
            yield answer
        if left:
            raise NotAsPriced("is not answered by each partition", field=type(query).__name__, remedy=DEFECT)
