"""Records that stay with several owners: what each lets be asked, and what whoever adds the answers up lets in.

An owner has the same plan, and keeps a ledger of its own. :class:`Owner` answers what that plan pays for, access by
access, whatever whoever asks believes to have paid. :class:`Answers` adds up what owners say, after it has looked at
it: nothing that arrives is trusted to be numbers, of the right shape, or possible counts.

Sums of vectors of bounded length are whole numbers, too, and asked of everybody, once a release.

Clipped gradients are asked in one of two ways. An owner of many units draws its own lot, by its own coins: lots that
owners draw by themselves at one rate are together one Poisson lot. Where each owner is one unit (a device), whoever
asks tosses one coin an owner and asks those whom it chose; an owner then answers for its unit as it is, and what is
longer than C is not added. Whoever sees who is asked sees the coins: against them the price is that without sampling.

Where a Bayesian accountant measures beside (:class:`Measured`), it is fed with units' clipped lengths over C. An owner
of many units tells those of units that coins of its own have chosen, at a rate that gives enough of all owners
together, and of these an even sample is taken; a device that is asked beside the lot sends its gradient as others do,
and only its length is looked at. Whoever is missing counts as the longest there can be. Lengths are private, are added
to nothing, and stay with whoever asks (rule 12).

Guarantee: none of its own; the sum has the sensitivity that the query states, because a unit has at most m records with
all owners together (``max_records`` with each of at most ``max_silos``). Exact sums leave an owner for whoever adds
them up, who is trusted with them, and who adds the noise once. An owner that says nothing, or something impossible,
adds zero: removing units changes no sensitivity and no noise.

==============================================  ===================================================================
edge case                                       what happens
==============================================  ===================================================================
no owner answers                                zeros, and noise
the same question, asked again                  the same answer, which costs nothing: whoever asked has it already;
                                                 of a gradient, which would be another one, none
records or facts that changed meanwhile, so     refused: it would be a second answer for one price
that it would be another answer
another question for an access that is used up  refused by the owner, before it looks at a record
fewer tables in a question than were paid for   the rest may be asked later: all tables together are paid once
an answer of another shape or type, below zero  refused by name, and counts for zero
tables of one answer that count different       refused by name: each record is in one cell of each
numbers of records
counts beyond what one unit can have, a         refused by name, where each owner is one unit
gradient or a sum longer than C
lengths that are no shares of C                 the whole answer is refused by name, and counts for zero
lengths that a single unit tells of itself      not looked at: the length of what it sends is measured
==============================================  ===================================================================
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from doublure.errors import RunFolderError, SettingError, printable
from doublure.private.accounting import ApproximateEvent, DiscreteGaussianEvent, GaussianEvent, PureEvent
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

_MOST = 2**48
"""More records than anybody has: sums of so many answers do not overflow."""
_REMEDY = "ask what the plan says"
_UPWARDS = 1 + 2.0**-18
"""What clipping to float32 takes off a length, and more: a distance is never made shorter."""
_TOO_LONG = "is longer than what one unit may add"


class Owner:
    """What one owner's plan lets be asked of its records.

    Args:
        accesses: All of the plan's, in its order.
        authorise: Returns once an access is durably paid for in the owner's ledger: its step of training, counted from
            1 over all accesses that train; 0 for a fact.
        note: Returns once it is durably written down that a question was asked for an access: its number, the
            question's digest, how many tables it has, and the answer's digest.
        asked: What earlier processes have written down so: by access and question, tables and the answer's digest.
    """

    def __init__(
        self,
        accesses: Sequence[Access],
        *,
        authorise: Callable[[Access, int], None],
        note: Callable[[int, str, int, str], None],
        asked: Mapping[int, Mapping[str, tuple[int, str]]],
    ) -> None:
        self._accesses = accesses
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
        if digest not in asked:
            if sum(tables for tables, _ in asked.values()) + moved > _paid(access):
                raise SettingError("is used up", field=access.purpose, remedy="make a new plan, which is paid anew")
            self._authorise(access, self._step[number])
        rate = 1.0 if chosen else getattr(access.event, "sample_rate", 1.0)
        found = places.ask(query, sample_rate=rate)
        answer = _digest(found.total)
        if digest not in asked:
            self._note(number, digest, moved, answer)
            asked[digest] = moved, answer
        elif asked[digest][1] != answer:
            raise RunFolderError(
                "would be answered otherwise than before", field=access.purpose, remedy="put the same records back"
            )
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
        view: View | None = None,
    ) -> None:
        self._post = post
        self._nobody = nobody
        self._refused = refused
        self._one_unit = one_unit
        self._owners = owners
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
            self._post, nobody, refused=self._refused, one_unit=self._one_unit, owners=self._owners, view=view
        )

    def answers(self, query: Query[P], *, sample_rate: float) -> Iterator[Answer]:
        """Yield nobody's answer, and one of each owner that has given a possible one."""
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
        lengths: list[float] = []
        for owner, total, told in self._post(asked, self._access, None if lot is None else lot | looked_at, self._view):
            fault = fault_of(asked, nothing, total, one_unit=self._one_unit)
            if fault is None and measured is not None and not self._one_unit:
                fault = _fault_of_lengths(told)
            if fault is not None:
                self._refused(owner, fault)
                continue
            if measured is not None and (lot is None or owner in looked_at):
                lengths += _lengths(None if self._one_unit else told, total, nothing)
            if lot is None or owner in lot:
                yield replace(nothing, total=total)
        if measured is not None and isinstance(query, Measured):
            measured.charge(_some(lengths, measured.count), sample_rate=sample_rate, step=query.step)


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


def fault_of(query: Query[Any], nothing: Answer, total: Any, *, one_unit: bool) -> str | None:
    """Return why an owner's answer cannot be one, if it cannot; no number of it is named.

    Args:
        query: What was asked.
        nothing: The answer of no records, for its shape.
        total: What came.
        one_unit: Whether the owner is one unit.
    """
    most = int(nothing.sensitivity.l1) if one_unit else _MOST
    if isinstance(nothing.total, Mapping):
        if not isinstance(total, Mapping):
            return "has another shape than what was asked"
        whole = all(isinstance(key, str) and type(count) is int and count > 0 for key, count in total.items())
        if not whole:
            return "has other than texts and whole numbers above zero"
        return None if sum(total.values()) <= most else _too_much(one_unit)
    if not isinstance(total, np.ndarray) or total.shape != nothing.total.shape:
        return "has another shape than what was asked"
    if total.dtype != nothing.total.dtype:
        kind = "real numbers of 32" if nothing.total.dtype.kind == "f" else "whole numbers of 64"
        return f"is not in {kind} bits"
    if nothing.unit is not None:
        length = float(np.linalg.norm(total.astype(np.float64))) * nothing.unit
        return _TOO_LONG if one_unit and length > nothing.sensitivity.l2 else None
    if total.dtype.kind == "f":
        return _fault_of_gradient(total, nothing.sensitivity.l2 if one_unit else math.inf)
    if total.size and int(total.min()) < 0:
        return "counts below zero"
    if (total.size and int(total.max()) > _MOST) or int(total.sum(dtype=object)) > most:
        return _too_much(one_unit)
    if isinstance(query, Counts):
        each = {int(table.sum(dtype=object)) for table in query.split(total)}
        if len(each) > 1:
            return "counts other records in one table than in another"
        if one_unit and max(each) > query.max_records:
            return _too_much(one_unit)
    return None


def _digest(total: Any) -> str:
    """Return the SHA-256 of an answer. Private."""
    if isinstance(total, Mapping):
        said = json.dumps(sorted(total.items())).encode()
    else:
        numbers = as_array(total)
        said = f"{numbers.dtype.str}{numbers.shape}".encode() + numbers.tobytes()
    return hashlib.sha256(said).hexdigest()


def _fault_of_gradient(total: npt.NDArray[np.floating[Any]], longest: float) -> str | None:
    if not np.isfinite(total).all():
        return "is not finite"
    length = float(np.linalg.norm(total.astype(np.float64)))
    return None if length <= longest else _TOO_LONG


def _fault_of_lengths(lengths: Any) -> str | None:
    if not isinstance(lengths, np.ndarray) or lengths.ndim != 1 or lengths.dtype != np.float64:
        return "does not say how long gradients are"
    return None if bool(((lengths >= 0) & (lengths <= 1)).all()) else "says lengths that there cannot be"


def _lengths(told: Any, total: Any, nothing: Answer) -> list[float]:
    """Return units' lengths over C: as an owner of many units tells them, else of the one gradient that came."""
    if told is not None:
        return [float(each) for each in told]
    length = float(np.linalg.norm(total.astype(np.float64)))
    return [min(1.0, length * _UPWARDS / nothing.sensitivity.l2)]


def _some(those: Sequence[T], count: int) -> list[T]:
    """Return an even sample of so many, or all if there are fewer."""
    return [those[place] for place in FixedSizeSampler(len(those), min(count, len(those))).lot()]


def _too_much(one_unit: bool) -> str:
    return "counts more than one unit can have" if one_unit else "counts more records than anybody has"


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
