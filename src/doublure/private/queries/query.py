"""Queries of private records, which state their sensitivity and answer for some of the records.

Every number that leaves private records is the noisy sum of answers to one query. The sum is the same wherever its
terms are computed: an answer is that of *one partition* of the records (all of them, a chunk of a file, those of a
machine or an owner), and answers add up. An answer is private. Only :mod:`doublure.private.mechanism` asks for it, and
it gives out nothing but the sum with noise.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar, runtime_checkable

import numpy as np

from doublure.errors import SettingError
from doublure.private.accounting import Sampling
from doublure.support.messages import Message, malformed, require_word

if TYPE_CHECKING:
    from doublure.private.queries.distances import MeasuredDistances

R = TypeVar("R", contravariant=True)

_TOTAL, _NAMES, _COUNTS, _LENGTHS = "total", "names", "counts", "lengths"


@dataclass(frozen=True, kw_only=True)
class Sensitivity:
    """The most that an answer moves when one unit is added or removed.

    Attributes:
        l1: In the L1 norm.
        l2: In the L2 norm.
    """

    l1: float
    l2: float

    @classmethod
    def of_cells(cls, cells: int, moved: int) -> Self:
        """Return the sensitivity of counts, of which a unit moves ``cells`` by ``moved`` each."""
        return cls(l1=float(cells * moved), l2=moved * math.sqrt(cells))

    @property
    def cells(self) -> int:
        """Number of counts that a unit moves, if it moves each equally."""
        return round((self.l1 / self.l2) ** 2)

    @property
    def each(self) -> int:
        """Distance that it then moves each count."""
        return round(self.l2**2 / self.l1)

    @classmethod
    def of_length(cls, length: float, numbers: int) -> Self:
        """Return the sensitivity of a vector of ``numbers``, which a unit moves by ``length`` in L2."""
        return cls(l1=length * math.sqrt(numbers), l2=length)


@dataclass(frozen=True, kw_only=True, eq=False)
class Answer:
    """A partition's answer to a query. Private.

    Attributes:
        total: A flat array; for a query whose cells are not known beforehand, counts by name.
        sensitivity: As the code that bounded each unit's contribution reports it.
        sample_rate: The rate of the lot, as its sampler reports it; 1 where every unit is asked.
        sampling: The kind of sampling, as the sampler reports it.
        unit: For a sum in whole numbers, the worth of one step; its noise is whole, too. None for counts and for real
            numbers.
        lengths: ``(k,)`` float64 lengths over C of clipped gradients of units sampled beside the lot, where an owner
            is asked for them. They are added to nothing.
        filter_steps: B, as the units' privacy filters report it; None: there are none.
    """

    total: Any
    sensitivity: Sensitivity
    sample_rate: float = 1.0
    sampling: Sampling = "poisson"
    unit: float | None = None
    lengths: Any = None
    filter_steps: int | None = None

    @property
    def stated(self) -> list[Any]:
        """Sensitivity, rate, sampling and unit as JSON values; equal in all answers to one query."""
        return [self.sensitivity.l1, self.sensitivity.l2, self.sample_rate, self.sampling, self.unit]

    def to_message(self) -> Message:
        """Return the numbers as a message."""
        lengths = {} if self.lengths is None else {_LENGTHS: self.lengths}
        if isinstance(self.total, Mapping):
            counts = [int(count) for count in self.total.values()]
            return Message({_NAMES: [*self.total], _COUNTS: counts}, lengths)
        return Message({}, {_TOTAL: self.total, **lengths})

    def from_message(self, message: Message) -> Self:
        """Return another party's answer to the same query, with its numbers unchecked.

        Raises:
            MalformedMessage: The message is no answer.
        """
        return replace(self, total=_total_of(message), lengths=message.arrays.get(_LENGTHS))


class Query(Protocol[R]):
    """One question to private records."""

    @property
    def sensitivity(self) -> Sensitivity:
        """The sensitivity for all records, stated before any record is read."""

    def refuse_unfit(self, records: R) -> None:
        """Refuse records, or a network, for which the sensitivity would not hold. Reads no record's content.

        Raises:
            SettingError: Naming what does not fit.
        """

    def answer(self, records: R, *, sample_rate: float) -> Answer:
        """Return the answer of these records.

        Args:
            records: A partition.
            sample_rate: Of the lot, from the plan.
        """


@runtime_checkable
class MeasuredQuery(Protocol):
    """A query with units measured beside it, for an accountant that stays in the asking process.

    Attributes:
        measured: The accountant that is charged with lengths; None: nothing is measured.
        step: The step that is asked for next, counted from 0.
    """

    measured: MeasuredDistances | None
    step: int

    def unmeasured(self) -> Query[Any]:
        """Return the same query without its measurements."""


def _total_of(message: Message) -> Any:
    if _TOTAL in message.arrays:
        return message.arrays[_TOTAL]
    names, counts = (require_word(message.words, key, list, "answer") for key in (_NAMES, _COUNTS))
    if len(names) != len(counts) or len({*map(str, names)}) != len(names):
        raise malformed("answer")
    return dict(zip(names, counts, strict=True))


def require_everyone(sample_rate: float) -> None:
    """Refuse a sampled lot where every unit is asked: the price would be too low.

    Raises:
        SettingError: The rate is below 1.
    """
    if sample_rate != 1:
        raise SettingError(
            "asks every unit",
            field="sample_rate",
            remedy="let the access have no lots (a sample_rate of 1) and plan again",
        )


def require_records(most: int, allowed: int) -> None:
    """Refuse units that have more records than planned.

    Raises:
        SettingError: One has.
    """
    if most > allowed:
        raise SettingError("a unit has more records than planned", field="max_records", remedy="bound them first")


def query_digest(query: Query[Any]) -> str:
    """Return a hash of a query's content, equal for equal queries.

    Networks and functions in it are identified by their types alone. Names of classes are hashed, too.
    """
    found = hashlib.sha256()
    _add(query, found.update)
    return found.hexdigest()


def _add(value: Any, add: Callable[[bytes], None]) -> None:
    if isinstance(value, np.ndarray) and value.dtype != object:
        add(f"{value.dtype.str}{value.shape}".encode() + value.tobytes())
    elif is_dataclass(value):
        add(type(value).__name__.encode())
        for each in fields(value):
            _add(getattr(value, each.name), add)
    elif isinstance(value, Mapping):
        _add([*value.items()], add)
    elif isinstance(value, (list, tuple)):
        add(b"[")
        for each in value:
            _add(each, add)
        add(b"]")
    elif value is None or isinstance(value, (bool, int, float, str)):
        add(f"{value!r},".encode())
    else:
        add(type(value).__name__.encode())
