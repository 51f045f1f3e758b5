"""What is asked of private records: a query states how far one unit moves its answer, and answers for some records.

Every number that leaves private records is the noisy sum of answers to one query. The sum is the same wherever its
terms are computed, so that an answer is that of *one partition* of the records (all of them, a chunk of a file, those
of a machine or of their owner), and answers add up. An answer is private; :mod:`doublure.private.mechanism` is the only
one who asks for it, and gives out nothing but the sum with noise.
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
from doublure.support.messages import Message, malformed, required

if TYPE_CHECKING:
    from doublure.private.queries.distances import MeasuredDistances

R = TypeVar("R", contravariant=True)

_TOTAL, _NAMES, _COUNTS, _LENGTHS = "total", "names", "counts", "lengths"


@dataclass(frozen=True, kw_only=True)
class Sensitivity:
    """How far an answer moves, at most, when one unit is added or removed.

    Attributes:
        l1: The sum of all numbers' moves.
        l2: The square root of the sum of their squares.
    """

    l1: float
    l2: float

    @classmethod
    def of_cells(cls, cells: int, moved: int) -> Self:
        """Return that of counts, of which a unit moves so many by so much each."""
        return cls(l1=float(cells * moved), l2=moved * math.sqrt(cells))

    @property
    def cells(self) -> int:
        """How many numbers that is, of a unit that moves each by as much."""
        return round((self.l1 / self.l2) ** 2)

    @property
    def each(self) -> int:
        """By how much it then moves each."""
        return round(self.l2**2 / self.l1)

    @classmethod
    def of_length(cls, length: float, numbers: int) -> Self:
        """Return that of so many numbers, which a unit moves by a vector of so much length."""
        return cls(l1=length * math.sqrt(numbers), l2=length)


@dataclass(frozen=True, kw_only=True, eq=False)
class Answer:
    """What a partition's records add up to. Private.

    Attributes:
        total: Numbers of one flat array; of a query whose cells are not known beforehand, counts by name.
        sensitivity: As the code that bounded what each unit adds has it, not as somebody meant it.
        sample_rate: The rate that the lot was drawn at, as its sampler has it; 1 where every unit is asked.
        sampling: How it was drawn, likewise.
        unit: Of a sum in whole numbers, what one of them is worth: its noise is whole, too. None where the numbers are
            counts, or real.
        lengths: ``(k,)`` float64 of clipped gradients over C, of units that were sampled beside the lot, where an
            owner is asked for them. They are added to nothing.
    """

    total: Any
    sensitivity: Sensitivity
    sample_rate: float = 1.0
    sampling: Sampling = "poisson"
    unit: float | None = None
    lengths: Any = None

    @property
    def stated(self) -> list[Any]:
        """What is said of the numbers, as JSON holds it; all answers to one query say the same."""
        return [self.sensitivity.l1, self.sensitivity.l2, self.sample_rate, self.sampling, self.unit]

    def to_message(self) -> Message:
        """Return the numbers as a message."""
        lengths = {} if self.lengths is None else {_LENGTHS: self.lengths}
        if isinstance(self.total, Mapping):
            counts = [int(count) for count in self.total.values()]
            return Message({_NAMES: [*self.total], _COUNTS: counts}, lengths)
        return Message({}, {_TOTAL: self.total, **lengths})

    def from_message(self, message: Message) -> Self:
        """Return what another party answers to the same query: its numbers as they came, whatever they are.

        Raises:
            MalformedMessage: It is no answer.
        """
        return replace(self, total=_total_of(message), lengths=message.arrays.get(_LENGTHS))


class Query(Protocol[R]):
    """One question to private records."""

    @property
    def sensitivity(self) -> Sensitivity:
        """How far one unit moves the answer, whatever the records: stated before any of them is looked at."""

    def refuse_unfit(self, records: R) -> None:
        """Refuse records, or a network, for which that would not hold. Looks at no record's content.

        Raises:
            SettingError: Naming what does not fit.
        """

    def answer(self, records: R, *, sample_rate: float) -> Answer:
        """Return what these records add up to.

        Args:
            records: A partition.
            sample_rate: Of the lot, from the plan.
        """


@runtime_checkable
class Measured(Protocol):
    """A query beside which units may be measured, for an accountant that never leaves whoever asks.

    Attributes:
        measured: What is charged with lengths (:class:`doublure.private.queries.distances.MeasuredDistances`); None:
            nothing is measured.
        step: The step that is asked for next, counted from 0.
    """

    measured: MeasuredDistances | None
    step: int

    def unmeasured(self) -> Query[Any]:
        """Return the same query, with nothing measured beside."""


def _total_of(message: Message) -> Any:
    if _TOTAL in message.arrays:
        return message.arrays[_TOTAL]
    names, counts = (required(message.words, key, list, "answer") for key in (_NAMES, _COUNTS))
    if len(names) != len(counts) or len({*map(str, names)}) != len(names):
        raise malformed("answer")
    return dict(zip(names, counts, strict=True))


def require_everyone(sample_rate: float) -> None:
    """Refuse a lot where every unit has to be asked: the price would be of less than is done.

    Raises:
        SettingError: The rate is below 1.
    """
    if sample_rate != 1:
        raise SettingError("asks every unit", field="sample_rate", remedy="make the plan again")


def require_records(most: int, allowed: int) -> None:
    """Refuse units that have more records than was planned.

    Raises:
        SettingError: One has.
    """
    if most > allowed:
        raise SettingError("a unit has more records than planned", field="max_records", remedy="bound them first")


def said(query: Query[Any]) -> str:
    """Return a hash of what a query says in plain numbers and words: equal where the same is asked.

    What it computes with (a network, a function) is known by its type alone.
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
