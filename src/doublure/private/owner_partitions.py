"""Partitions held by owners, and the checks that their answers pass before they are added.

Nothing that arrives is trusted to be numbers, of the right shape, or possible counts (:func:`validate_answer`). What an
owner adds is bounded by its public number of units (:mod:`doublure.federated.declared`): a gradient sum by C times that
in length, a count by that times what one unit adds to it. A bound on gradients keeps the noise from being swallowed:
they are added, and noised, in float64. A sum in whole numbers needs none, since it goes round modulo 2^64 together with
its noise, whatever an owner adds.

An owner of many units draws its own lot (:mod:`doublure.private.owners`). Where each owner is one unit, one coin an
owner is tossed here, and only the chosen owners are asked; an answer longer than C is not added. An observer of which
owners are asked learns the coins; against that observer the price is the one without sampling.

Where a Bayesian accountant measures beside (:class:`MeasuredQuery`), it is fed with units' clipped lengths over C. An
owner of many units sends those of units that its own coins chose. Of the m that are used, it supplies its share of all
public units, drawn evenly, however many it sends (:func:`_by_share`). A device that is asked beside the lot sends its
gradient as others do, and only the length is used. A missing unit counts as the longest length possible. Lengths are
private, are added to nothing, and stay here (rule 12).

Guarantee: none of its own; the sum has the sensitivity that the query states, because a unit has at most m records with
all owners together (``max_records`` with each of at most ``max_silos``). An owner that says nothing, or something
impossible, adds zero where it is one unit: without one unit a sum is a neighbour's. An owner of many units would take
all of them with it, for what one record may have caused: where one is missing there is no sum, and no noise is drawn.

==============================================  ===================================================================
edge case                                       what happens
==============================================  ===================================================================
an owner of many units does not answer, or not  there is no sum (:class:`OwnerLost`), and answers that came are dropped
what there can be
no owner answers, where each is one unit        zeros, and noise
an answer of another shape or type, below zero  refused by name
tables of one answer that count different       refused by name: each record is in one cell of each
numbers of records
counts beyond what one unit can have, a         refused by name, where each owner is one unit
gradient or a sum longer than C
a gradient sum longer than C times an owner's   refused by name
public units, a count beyond them
lengths that are no shares of C                 the whole answer is refused by name
more lengths than an owner's share              an even sample of them counts
fewer lengths than an owner's share             those that are missing count as the longest
lengths that a single unit tells of itself      not looked at: the length of what it sends is measured
==============================================  ===================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
from typing_extensions import override

from doublure.errors import OwnerLost
from doublure.private.accounting import GaussianEvent
from doublure.private.entropy import freshly_keyed
from doublure.private.queries.counts import Counts
from doublure.private.queries.query import Answer, MeasuredQuery, Query
from doublure.private.remote import Exchange, RemotePartitions
from doublure.private.sampling import FixedSizeSampler, PoissonSampler
from doublure.support.messages import MalformedMessage, Message

if TYPE_CHECKING:
    import pandas as pd

    from doublure.access import Access

P = TypeVar("P")
T = TypeVar("T")

_UPWARDS = 1 + 2.0**-18
"""More than clipping to float32 takes off a length, so that a distance is never understated."""
_TOO_LONG = "is longer than what one unit may add"
_TOO_LONG_FOR_UNITS = "is longer than what its units may add"
_TOO_MANY = "counts more than one unit can have"
_TOO_MANY_FOR_UNITS = "counts more than its units can have"

RecordView: TypeAlias = Callable[[Any], Any]

AskOwners: TypeAlias = (
    "Callable[[Query[Any], Access, Collection[str] | None, RecordView | None], Iterator[tuple[str, Message]]]"
)
"""Sends a question that an access pays for to all owners, or to those named, about records seen through a view, and
yields owners with their responses: an :class:`Answer` as a message, if it is valid."""


class OwnerPartitions(RemotePartitions[P]):
    """Owners' records, whose answers are checked before they are added.

    Args:
        ask: Sends questions to owners.
        empty: Empty records, for the form of answers and for owners that do not answer.
        refused: Called with an owner whose answer is not added, and the reason.
        one_unit: Whether each owner is one unit, so that its answer has a bound, and lots are drawn here.
        owners: Returns the owners' names.
        units: Returns each owner's public number of units.
        check: Called before owners are asked, and not while they answer. May raise to stop.
    """

    def __init__(
        self,
        ask: AskOwners,
        empty: P,
        *,
        refused: Callable[[str, str], None],
        one_unit: bool,
        owners: Callable[[], Sequence[str]],
        units: Callable[[], Mapping[str, int]],
        check: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__()
        self._stop = check
        self.send = ask
        self.empty = empty
        self.refused = refused
        self.one_unit = one_unit
        self.owners = owners
        self.units = units
        self.view: RecordView | None = None
        self._access: Access | None = None

    @override
    def paid_by(self, access: Access) -> None:
        self._access = access

    @override
    def refuse_unfit(self, query: Query[P]) -> None:
        query.refuse_unfit(self.empty)

    @override
    def map(self, view: RecordView) -> OwnerPartitions[Any]:
        if self.view is not None:
            raise TypeError("records are seen through one view")
        seen: OwnerPartitions[Any] = copy(self)
        seen.view, seen.empty, seen._access = view, view(self.empty), None
        return seen

    @override
    def exchange(self, query: Query[P], *, sample_rate: float) -> Exchange[Message]:
        self._stop()
        if self._access is None:
            raise TypeError("the access that pays is not known yet")
        asked = _OwnerExchange(self, self._access, query, sample_rate)
        return Exchange(
            parties=asked.owners,
            responses=asked.responses(),
            validated=asked.validated,
            own=asked.nothing,
            completed=asked.completed,
        )


class _OwnerExchange:
    def __init__(self, places: OwnerPartitions[Any], access: Access, query: Query[Any], sample_rate: float) -> None:
        self._places = places
        self._access = access
        self._query = query
        self._rate = sample_rate
        self._measured = query.measured if isinstance(query, MeasuredQuery) else None
        self._asked: Query[Any] = query.unmeasured() if isinstance(query, MeasuredQuery) else query
        self.nothing = self._asked.answer(places.empty, sample_rate=sample_rate)
        self.owners = owners = places.owners()
        self._units = places.units()
        self._lot: set[str] | None = None
        self._looked_at: set[str] = set()
        if places.one_unit and isinstance(access.event, GaussianEvent) and not access.whole:
            self._lot = {owners[place] for place in PoissonSampler(len(owners), sample_rate).lot()}
            self._looked_at = {*_some(owners, 0 if self._measured is None else self._measured.count)}
        self._lengths: dict[str, list[float]] = {}

    def responses(self) -> Iterator[tuple[str, Message]]:
        names = None if self._lot is None else self._lot | self._looked_at
        return self._places.send(self._asked, self._access, names, self._places.view)

    def validated(self, owner: str, response: Message) -> Answer | None:
        one_unit = self._places.one_unit
        try:
            answer = self.nothing.from_message(response)
        except MalformedMessage as error:
            self._places.refused(owner, error.message)
            return None
        fault = validate_answer(self._asked, self.nothing, answer.total, units=self._units[owner], one_unit=one_unit)
        if fault is None and self._measured is not None and not one_unit:
            fault = _fault_of_lengths(answer.lengths)
        if fault is not None:
            self._places.refused(owner, fault)
            return None
        if self._measured is not None and (self._lot is None or owner in self._looked_at):
            self._lengths[owner] = _lengths(None if one_unit else answer.lengths, answer.total, self.nothing)
        return replace(answer, lengths=None) if self._lot is None or owner in self._lot else None

    def completed(self, missing: Collection[str]) -> None:
        """Charge the accountant with the measured lengths.

        Raises:
            OwnerLost: An owner of many units has given no possible answer.
        """
        one_unit, measured = self._places.one_unit, self._measured
        if missing and not one_unit:
            raise OwnerLost(f"{min(missing)} has not answered", field="clients", remedy="go on with --resume")
        if measured is not None and isinstance(self._query, MeasuredQuery):
            told = self._lengths
            found = [*chain(*told.values())] if one_unit else _by_share(told, self._units, measured.count)
            measured.charge(found, sample_rate=self._rate, step=self._query.step)


class EmptyRecords:
    """An empty data set, in the forms that queries and facts read.

    Args:
        parts: How many parts a compact record has.
        frame: A table's columns in canonical form, without a row.
    """

    n_units = most_records = 0

    def __init__(self, parts: int, frame: pd.DataFrame) -> None:
        self.parts = parts
        self._frame = frame

    def chunks(self, rows: int) -> Iterator[Any]:
        """Yield one empty chunk."""
        yield np.zeros((0, self.parts), dtype=np.int64)

    def cells(self, column: str, fact: str) -> pd.Series[Any]:
        """Return a column without cells."""
        return self._frame[column]


def validate_answer(query: Query[Any], nothing: Answer, total: Any, *, units: int, one_unit: bool) -> str | None:
    """Return why an owner's answer is impossible, or None; the reason names none of its numbers.

    Args:
        query: The query.
        nothing: The answer of no records, for its form.
        total: The total that came.
        units: The owner's public number of units.
        one_unit: Whether the owner is one unit, so that one unit's bounds apply.
    """
    if isinstance(nothing.total, Mapping):
        return _fault_of_names(nothing, total, units=units, one_unit=one_unit)
    if not isinstance(total, np.ndarray) or total.shape != nothing.total.shape:
        return "has another shape than what was asked"
    if total.dtype != nothing.total.dtype:
        kind = "real numbers of 32" if nothing.total.dtype.kind == "f" else "whole numbers of 64"
        return f"is not in {kind} bits"
    if nothing.unit is not None:
        return _TOO_LONG if one_unit and l2_norm(total) * nothing.unit > nothing.sensitivity.l2 else None
    if total.dtype.kind == "f":
        longest = nothing.sensitivity.l2 * (1 if one_unit else units)
        return _fault_of_gradient(total, longest, too_long=_TOO_LONG if one_unit else _TOO_LONG_FOR_UNITS)
    return _fault_of_counts(query, nothing, total, units=units, one_unit=one_unit)


def _fault_of_names(nothing: Answer, total: Any, *, units: int, one_unit: bool) -> str | None:
    if not isinstance(total, Mapping):
        return "has another shape than what was asked"
    if not all(isinstance(key, str) and type(count) is int and count > 0 for key, count in total.items()):
        return "has other than texts and whole numbers above zero"
    if one_unit:
        return None if sum(total.values()) <= int(nothing.sensitivity.l1) else _TOO_MANY
    return None if max(total.values(), default=0) <= largest_count(nothing, units) else _TOO_MANY_FOR_UNITS


def _fault_of_counts(
    query: Query[Any], nothing: Answer, total: npt.NDArray[np.int64], *, units: int, one_unit: bool
) -> str | None:
    if not total.size:
        return None
    if int(total.min()) < 0:
        return "counts below zero"
    most, largest = largest_count(nothing, units), int(total.max())
    if one_unit and int(total.sum(dtype=object)) > int(nothing.sensitivity.l1):
        return _TOO_MANY
    if largest > most:
        return _TOO_MANY_FOR_UNITS
    if isinstance(query, Counts):
        each = {int(table.sum(dtype=object)) for table in query.split(total)}
        if len(each) > 1 and (one_unit or largest < most):  # what was cut off is missing in its table alone
            return "counts other records in one table than in another"
        if one_unit and max(each) > query.max_records:
            return _TOO_MANY
    return None


def largest_count(answer: Answer, units: int) -> int:
    """Return the most that these units add to one count: all owners' together are below 2^63.

    Beyond, a sum would wrap around and its noise would not (:func:`doublure.federated.declared.unit_bounds`).
    """
    return units * answer.sensitivity.each


def _fault_of_gradient(total: npt.NDArray[np.floating[Any]], longest: float, *, too_long: str) -> str | None:
    """Return why a total is no sum of clipped gradients, or None.

    What passes is at most C times its owner's public units long, and that is what makes float64 enough. U being all
    owners' public units, no sum of some of K owners' answers is longer than U C, and an addition in float64 is out by
    2^-53 of what comes of it, in L2: all that is added before the noise is within K U 2^-53 C of the exact sum. So one
    unit moves it by at most C (1 + K U 2^-52), which for a million units with ten owners is C (1 + 3 · 10^-9), whatever
    the others have sent. Rounding to float32 comes after the noise, and is post-processing. What an honest owner adds
    was rounded to float32 by itself, of its own lot alone: that is what gradients' claims leave out (docs/promise.md).

    Of any length, and added in float32, one owner's 2^31 rounds the others' exact sum to steps of 256 *before* the
    noise, and swallows the noise.
    """
    if not np.isfinite(total).all():
        return "is not finite"
    return None if l2_norm(total) <= longest else too_long


def l2_norm(total: npt.NDArray[Any]) -> float:
    """Return a vector's L2 norm."""
    return float(np.linalg.norm(total.astype(np.float64)))


def _fault_of_lengths(lengths: Any) -> str | None:
    if not isinstance(lengths, np.ndarray) or lengths.ndim != 1 or lengths.dtype != np.float64:
        return "does not say how long gradients are"
    return None if bool(((lengths >= 0) & (lengths <= 1)).all()) else "says lengths that there cannot be"


def _lengths(told: Any, total: Any, nothing: Answer) -> list[float]:
    """Return units' lengths over C: those that an owner of many units sent, else that of the one gradient that came."""
    if told is not None:
        return [float(each) for each in told]
    return [min(1.0, l2_norm(total) * _UPWARDS / nothing.sensitivity.l2)]


def _by_share(told: Mapping[str, list[float]], units: Mapping[str, int], count: int) -> list[float]:
    """Return m lengths, each owner supplying its share of all public units; fewer where an owner sent too few.

    Shares are rounded by one coin for all (systematic sampling): an owner of s of all units gives m s, rounded up or
    down so that it is m s on average. Its own are drawn evenly, so that each unit is as likely as any other. How much
    one owner moves the sample is therefore its public share, however many lengths it tells, and whatever they are.

    Args:
        told: Lengths by owner; owners that did not answer are missing.
        units: Public units of all owners, by owner.
        count: m.
    """
    ends = np.cumsum([*units.values()], dtype=np.float64)
    places = np.floor(ends * (count / ends[-1]) + freshly_keyed().random()).astype(np.int64)
    places[-1] = count
    shares = np.diff(places, prepend=0)
    return [length for owner, share in zip(units, shares, strict=True) for length in _some(told.get(owner, []), share)]


def _some(those: Sequence[T], count: int) -> list[T]:
    """Return a uniform sample of ``count`` of them, or all if there are fewer."""
    return [those[place] for place in FixedSizeSampler(len(those), min(count, len(those))).lot()]
