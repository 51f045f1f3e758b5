"""Records that stay with several owners: what each lets be asked, and what whoever adds the answers up lets in.

An owner has the same plan, and keeps a ledger of its own. :class:`Owner` answers what that plan pays for, access by
access, whatever whoever asks believes to have paid. :class:`Answers` adds up what owners say, after it has looked at
it: nothing that arrives is trusted to be numbers, of the right shape, or possible counts.

Sums of vectors of bounded length are whole numbers, too, and asked of everybody, once a release.

What an owner adds is bounded by its public number of units (:mod:`doublure.federated.declared`): a gradient sum by C
times that in length, a count by that times what one unit adds to it. No record may decide whether an answer is refused,
so an owner keeps its own answers within these bounds (:func:`bounded`), and what passes one was never computed here.
A bound on gradients keeps the noise from being swallowed: they are added, and noised, in float64. A sum in whole
numbers needs none, since it goes round modulo 2^64 together with its noise, whatever an owner adds.

Clipped gradients are asked in one of two ways. An owner of many units draws its own lot, by its own coins: lots that
owners draw by themselves at one rate are together one Poisson lot. Where each owner is one unit (a device), whoever
asks tosses one coin an owner and asks those whom it chose; an owner then answers for its unit as it is, and what is
longer than C is not added. Whoever sees who is asked sees the coins: against them the price is that without sampling.

Where a Bayesian accountant measures beside (:class:`Measured`), it is fed with units' clipped lengths over C. An owner
of many units tells those of units that coins of its own have chosen. Of m that are taken it gives as many as its
share of all public units, drawn evenly, however many it tells (:func:`_by_share`); a device that is asked beside the
lot sends its gradient as others do, and only its length is looked at. Whoever is missing counts as the longest there
can be. Lengths are private, are added to nothing, and stay with whoever asks (rule 12).

Guarantee: none of its own; the sum has the sensitivity that the query states, because a unit has at most m records with
all owners together (``max_records`` with each of at most ``max_silos``). Exact sums leave an owner for whoever adds
them up, who is trusted with them, and who adds the noise once. An owner that says nothing, or something impossible,
adds zero where it is one unit: without one unit a sum is a neighbour's. An owner of many units would take all of them
with it, for what one record may have caused: where one is missing there is no sum, and no noise is drawn.

==============================================  ===================================================================
edge case                                       what happens
==============================================  ===================================================================
an owner of many units does not answer, or not  there is no sum (:class:`OwnerLost`), and answers that came are dropped
what there can be
no owner answers, where each is one unit        zeros, and noise
the same question, asked again                  the same answer, which costs nothing: whoever asked has it already;
                                                 of a gradient, which would be another one, none
records or facts that changed meanwhile, so     refused: it would be a second answer for one price
that it would be another answer
another question for an access that is used up  refused by the owner, before it looks at a record
fewer tables in a question than were paid for   the rest may be asked later: all tables together are paid once
an answer of another shape or type, below zero  refused by name
tables of one answer that count different       refused by name: each record is in one cell of each
numbers of records
counts beyond what one unit can have, a         refused by name, where each owner is one unit
gradient or a sum longer than C
a gradient sum longer than C times an owner's   refused by name
public units, a count beyond them
an owner with more units than it has declared   answers within its bounds, as :func:`bounded` says, and is not refused
lengths that are no shares of C                 the whole answer is refused by name
more lengths than an owner's share              an even sample of them counts
fewer lengths than an owner's share             those that are missing count as the longest
lengths that a single unit tells of itself      not looked at: the length of what it sends is measured
==============================================  ===================================================================
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from doublure.errors import OwnerLost, RunFolderError, SettingError, printable
from doublure.private.accounting import ApproximateEvent, DiscreteGaussianEvent, GaussianEvent, PureEvent
from doublure.private.entropy import freshly_keyed
from doublure.private.executed import steps_of
from doublure.private.partitions import Partitions, everywhere
from doublure.private.queries.counts import Counts
from doublure.private.queries.facts import Fact, query_of, values_path
from doublure.private.queries.query import Answer, Measured, Query
from doublure.private.sampling import FixedSizeSampler, PoissonSampler
from doublure.support.tensors import as_array

if TYPE_CHECKING:
    import pandas as pd

    from doublure.access import Access
    from doublure.schema import Schema

P = TypeVar("P")
T = TypeVar("T")

_REMEDY = "ask what the plan says"
_UPWARDS = 1 + 2.0**-18
"""What clipping to float32 takes off a length, and more: a distance is never made shorter."""
_TOO_LONG = "is longer than what one unit may add"
_TOO_LONG_FOR_UNITS = "is longer than what its units may add"
_TOO_MANY = "counts more than one unit can have"
_TOO_MANY_FOR_UNITS = "counts more than its units can have"
_MARGIN = 2.0**-20
"""What an owner's own bound is less than the one it is held to: rounding to float32 adds at most 2^-24 of a length."""


class Owner:
    """What one owner's plan lets be asked of its records.

    Args:
        accesses: All of the plan's, in its order.
        authorise: Returns once an access is durably paid for in the owner's ledger: its step of training, counted from
            1 over all accesses that train; 0 for a fact. What is paid for already it leaves as it is.
        note: Returns once it is durably written down that a question was asked for an access: its number, the
            question's digest, how many tables it has, and the answer's digest.
        asked: What earlier processes have written down so: by access and question, tables and the answer's digest.
        units: How many units this owner has, publicly.
    """

    def __init__(
        self,
        accesses: Sequence[Access],
        *,
        units: int,
        authorise: Callable[[Access, int], None],
        note: Callable[[int, str, int, str], None],
        asked: Mapping[int, Mapping[str, tuple[int, str]]],
    ) -> None:
        self._accesses = accesses
        self._units = units
        self._authorise = authorise
        self._note = note
        self._asked = {number: dict(asked.get(number, {})) for number in range(len(accesses))}
        before, self._step = 0, {}
        for number, access in enumerate(accesses):
            before += 0 if access.path is not None else steps_of(access)
            self._step[number] = 0 if access.path is not None else before

    def told(
        self, query: Query[P], number: int, digest: str, records: P | Partitions[P], *, chosen: bool = False
    ) -> Answer:
        """Return the exact answer, for whoever adds answers up and adds noise.

        It is noted, then paid for, then returned. A process that ends in between has let nothing out: the next one
        answers the same question, and pays for what was noted alone.

        Args:
            query: Rebuilt from what was asked, with this owner's own facts.
            number: The access that pays, by its place in the plan.
            digest: Of the question as it came: the same one is answered again, and alike.
            records: The owner's.
            chosen: Whether whoever asks has tossed the coins, so that every unit is in the lot.

        Raises:
            SettingError: The plan does not pay for it, or it does not fit the records.
            RunFolderError: It was answered before, and the answer would be another one now.
        """
        if number not in self._asked:
            raise SettingError("is no access of the plan", field="access", remedy=_REMEDY)
        access, asked = self._accesses[number], self._asked[number]
        places = everywhere(records)
        places.refuse_unfit(query)
        moved = _moved(query, access)
        if digest in asked and isinstance(access.event, GaussianEvent) and not access.whole:
            raise SettingError("was answered before", field=access.purpose, remedy=_REMEDY)
        if digest not in asked and sum(tables for tables, _ in asked.values()) + moved > _paid(access):
            raise SettingError("is used up", field=access.purpose, remedy="make a new plan, which is paid anew")
        rate = 1.0 if chosen else getattr(access.event, "sample_rate", 1.0)
        found = places.ask(query, sample_rate=rate)
        if not chosen:  # what one unit adds was clipped already
            found = bounded(found, self._units)
        answer = _digest(found.total)
        if digest not in asked:
            self._note(number, digest, moved, answer)
            asked[digest] = moved, answer
        elif asked[digest][1] != answer:
            raise RunFolderError(
                "would be answered otherwise than before", field=access.purpose, remedy="put the same records back"
            )
        self._authorise(access, self._step[number])
        return found

    def __repr__(self) -> str:
        return "Owner(private)"


class Heard(NamedTuple):
    """What an owner has answered.

    Attributes:
        owner: Its name.
        total: As it came.
        lengths: Likewise, where it was asked for them.
    """

    owner: str
    total: Any
    lengths: Any = None


Post: TypeAlias = "Callable[[Query[Any], Access, Collection[str] | None, View | None], Iterator[Heard]]"
"""Puts a question that an access pays for to all owners, or to those named, of records as a view shows them."""

View: TypeAlias = Callable[[Any], Any]


class Answers(Partitions[P]):
    """Owners' answers, looked at before they are added.

    Args:
        post: Puts questions to owners.
        nobody: Records of nobody: what an owner that says nothing counts for, and what answers look like.
        refused: Told who gave an answer that is not added, and why.
        one_unit: Whether each owner is one unit, so that what it sends has a bound, and lots are drawn here.
        owners: Returns who there is.
        units: Returns how many units each of them has, publicly.
        view: What records are seen through.
    """

    answers_once: ClassVar[bool] = True

    def __init__(
        self,
        post: Post,
        nobody: P,
        *,
        refused: Callable[[str, str], None],
        one_unit: bool,
        owners: Callable[[], Sequence[str]],
        units: Callable[[], Mapping[str, int]],
        view: View | None = None,
    ) -> None:
        self._post = post
        self._nobody = nobody
        self._refused = refused
        self._one_unit = one_unit
        self._owners = owners
        self._units = units
        self._view = view
        self._access: Access | None = None

    def paid_by(self, access: Access) -> None:
        """Remember which access pays for what is asked next."""
        self._access = access

    def refuse_unfit(self, query: Query[P]) -> None:
        """Refuse what would not fit anybody's records; each owner looks at its own."""
        query.refuse_unfit(self._nobody)

    def seen(self, view: View) -> Answers[Any]:
        """Return the same owners, whose records are asked as a view shows them: each owner computes it by itself."""
        if self._view is not None:
            raise TypeError("records are seen through one view")
        nobody = view(self._nobody)
        return Answers(
            self._post,
            nobody,
            refused=self._refused,
            one_unit=self._one_unit,
            owners=self._owners,
            units=self._units,
            view=view,
        )

    def answers(self, query: Query[P], *, sample_rate: float) -> Iterator[Answer]:
        """Yield nobody's answer, and one of each owner that has given a possible one.

        Raises:
            OwnerLost: One of many units has given none.
        """
        if self._access is None:
            raise TypeError("nobody has said what pays")
        measured = query.measured if isinstance(query, Measured) else None
        asked: Query[Any] = query.unmeasured() if isinstance(query, Measured) else query
        nothing = asked.answer(self._nobody, sample_rate=sample_rate)
        yield nothing
        lot: set[str] | None = None
        looked_at: set[str] = set()
        if self._one_unit and isinstance(self._access.event, GaussianEvent) and not self._access.whole:
            owners = self._owners()
            lot = {owners[place] for place in PoissonSampler(len(owners), sample_rate).lot()}
            looked_at = {*_some(owners, 0 if measured is None else measured.count)}
        units = self._units()
        lengths: dict[str, list[float]] = {}
        missing = set() if self._one_unit else {*self._owners()}
        for owner, total, told in self._post(asked, self._access, None if lot is None else lot | looked_at, self._view):
            fault = fault_of(asked, nothing, total, units=units[owner], one_unit=self._one_unit)
            if fault is None and measured is not None and not self._one_unit:
                fault = _fault_of_lengths(told)
            if fault is not None:
                self._refused(owner, fault)
                continue
            missing.discard(owner)
            if measured is not None and (lot is None or owner in looked_at):
                lengths[owner] = _lengths(None if self._one_unit else told, total, nothing)
            if lot is None or owner in lot:
                yield replace(nothing, total=total)
        if missing:
            raise OwnerLost(f"{min(missing)} has not answered", field="clients", remedy="go on with --resume")
        if measured is not None and isinstance(query, Measured):
            found = [*chain(*lengths.values())] if self._one_unit else _by_share(lengths, units, measured.count)
            measured.charge(found, sample_rate=sample_rate, step=query.step)


class Nobody:
    """Compact records of nobody, as queries count them, and cells of nobody, as facts look at them.

    Args:
        parts: How many parts a compact record has.
        frame: A table's columns in canonical form, without a row.
    """

    n_units = most_records = 0

    def __init__(self, parts: int, frame: pd.DataFrame) -> None:
        self.parts = parts
        self._frame = frame

    def chunks(self, rows: int) -> Iterator[Any]:
        """Yield the only chunk, an empty one."""
        yield np.zeros((0, self.parts), dtype=np.int64)

    def cells(self, column: str, fact: str) -> pd.Series[Any]:
        """Return no cell of a column."""
        return self._frame[column]


def own_fact(schema: Schema, path: str, values: tuple[str, ...] | None) -> Fact:
    """Return what a question of an owner's own schema asks.

    Args:
        schema: The owner's.
        path: Which question.
        values: The values that were learned before, where shares of them are asked for.

    Raises:
        SettingError: It is no question of this schema.
    """
    for question in schema.questions:
        if question.path == path:
            return query_of(question, schema, {} if values is None else {values_path(path): values})
    raise SettingError("is not to be learned", field=printable(path), remedy=_REMEDY)


def bounded(answer: Answer, units: int) -> Answer:
    """Return an owner's answer within what its public number of units allows: what its own process does.

    Whether an answer passes a bound depends on the owner's records. A refusal would be an outcome that one record can
    cause, so that an answer is brought within instead, by a map that moves no two answers further apart:

    - A sum of real numbers is projected onto the ball of radius C times the units. A projection onto a convex set is
      1-Lipschitz in L2, so that one unit more still moves what comes of it by C at most.
    - A count is cut off at what the units can add to it. A minimum moves no further than its count does, cell by cell,
      and stays whole: in L1 and in L2 a unit moves the counts no further than before.
    - A sum in whole numbers stays as it is. It goes round modulo 2^64, which cutting off would not survive.

    An owner that has no more units than it declares is left as it is, but for the margin that rounding needs.

    Args:
        answer: Of the owner's records.
        units: Its public number of units.
    """
    total, moved = answer.total, answer.sensitivity
    if isinstance(total, Mapping):
        most = _most(answer, units)
        return replace(answer, total={name: min(count, most) for name, count in total.items()})
    if answer.unit is not None:
        return answer
    if total.dtype.kind != "f":
        return replace(answer, total=np.minimum(total, _most(answer, units)))
    length, longest = _length(total), units * moved.l2 * (1 - _MARGIN)
    if not length > longest:
        return answer
    return replace(answer, total=(total.astype(np.float64) * (longest / length)).astype(total.dtype))


def fault_of(query: Query[Any], nothing: Answer, total: Any, *, units: int, one_unit: bool) -> str | None:
    """Return why an owner's answer cannot be one, if it cannot; no number of it is named.

    Args:
        query: What was asked.
        nothing: The answer of no records, for its shape.
        total: What came.
        units: How many units the owner has, publicly.
        one_unit: Whether it is one unit, so that all that a unit may add is held against it.
    """
    if isinstance(nothing.total, Mapping):
        return _fault_of_names(nothing, total, units=units, one_unit=one_unit)
    if not isinstance(total, np.ndarray) or total.shape != nothing.total.shape:
        return "has another shape than what was asked"
    if total.dtype != nothing.total.dtype:
        kind = "real numbers of 32" if nothing.total.dtype.kind == "f" else "whole numbers of 64"
        return f"is not in {kind} bits"
    if nothing.unit is not None:
        return _TOO_LONG if one_unit and _length(total) * nothing.unit > nothing.sensitivity.l2 else None
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
    return None if max(total.values(), default=0) <= _most(nothing, units) else _TOO_MANY_FOR_UNITS


def _fault_of_counts(
    query: Query[Any], nothing: Answer, total: npt.NDArray[np.int64], *, units: int, one_unit: bool
) -> str | None:
    if not total.size:
        return None
    if int(total.min()) < 0:
        return "counts below zero"
    most, largest = _most(nothing, units), int(total.max())
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


def _most(answer: Answer, units: int) -> int:
    """Return how much so many units add to one count, at most: all owners' together are below 2^63.

    Beyond, a sum would go round and its noise would not (:func:`doublure.federated.declared.bounds_of`).
    """
    return units * answer.sensitivity.each


def _digest(total: Any) -> str:
    """Return the SHA-256 of an answer. Private."""
    if isinstance(total, Mapping):
        said = json.dumps(sorted(total.items())).encode()
    else:
        numbers = as_array(total)
        said = f"{numbers.dtype.str}{numbers.shape}".encode() + numbers.tobytes()
    return hashlib.sha256(said).hexdigest()


def _fault_of_gradient(total: npt.NDArray[np.floating[Any]], longest: float, *, too_long: str) -> str | None:
    """Return why what came is no sum of clipped gradients.

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
    return None if _length(total) <= longest else too_long


def _length(total: npt.NDArray[Any]) -> float:
    """Return a vector's length."""
    return float(np.linalg.norm(total.astype(np.float64)))


def _fault_of_lengths(lengths: Any) -> str | None:
    if not isinstance(lengths, np.ndarray) or lengths.ndim != 1 or lengths.dtype != np.float64:
        return "does not say how long gradients are"
    return None if bool(((lengths >= 0) & (lengths <= 1)).all()) else "says lengths that there cannot be"


def _lengths(told: Any, total: Any, nothing: Answer) -> list[float]:
    """Return units' lengths over C: as an owner of many units tells them, else of the one gradient that came."""
    if told is not None:
        return [float(each) for each in told]
    return [min(1.0, _length(total) * _UPWARDS / nothing.sensitivity.l2)]


def _by_share(told: Mapping[str, list[float]], units: Mapping[str, int], count: int) -> list[float]:
    """Return m lengths, of which each owner gives its share of all public units: fewer where one has told too few.

    Shares are rounded by one coin for all (systematic sampling): an owner of s of all units gives m s, rounded up or
    down so that it is m s on average. Its own are drawn evenly, so that each unit is as likely as any other. How much
    one owner moves the sample is therefore its public share, however many lengths it tells, and whatever they are.

    Args:
        told: By owner; who has not answered is missing.
        units: By owner, public, of all.
        count: m.
    """
    ends = np.cumsum([*units.values()], dtype=np.float64)
    places = np.floor(ends * (count / ends[-1]) + freshly_keyed().random()).astype(np.int64)
    places[-1] = count
    shares = np.diff(places, prepend=0)
    return [length for owner, share in zip(units, shares, strict=True) for length in _some(told.get(owner, []), share)]


def _some(those: Sequence[T], count: int) -> list[T]:
    """Return an even sample of so many, or all if there are fewer."""
    return [those[place] for place in FixedSizeSampler(len(those), min(count, len(those))).lot()]


def _moved(query: Query[Any], access: Access) -> int:
    """Return for how many tables, or steps, a question has to be paid, by this access."""
    event = access.event
    if isinstance(event, DiscreteGaussianEvent) and isinstance(query, Counts):
        if query.max_records != event.records:
            raise SettingError("counts other records of a unit than planned", field=access.purpose, remedy=_REMEDY)
        return len(query.tables)
    if isinstance(event, (PureEvent, ApproximateEvent)) and isinstance(query, Fact):
        if query.question.path != access.path or not math.isclose(query.question.epsilon, event.epsilon):
            raise SettingError("asks for another fact than is paid for", field=access.purpose, remedy=_REMEDY)
        return 1
    if isinstance(event, GaussianEvent) and not isinstance(query, (Counts, Fact)):
        return 1
    raise SettingError("is not asked so of owners", field=access.purpose, remedy=_REMEDY)


def _paid(access: Access) -> int:
    """Return how many tables, or steps, an access pays for; a fact is one."""
    event = access.event
    if isinstance(event, GaussianEvent):
        return event.steps
    return event.tables if isinstance(event, DiscreteGaussianEvent) else 1
