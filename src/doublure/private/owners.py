"""The owner's side of a federation: answers that its own plan pays for.

An owner has the same plan as the process that asks, and keeps a ledger of its own. :class:`Owner` answers what that
plan pays for, access by access, whatever the asking process believes to have paid.

Public units bound what an owner may add (:mod:`doublure.private.owner_partitions`). No record may decide whether an
answer is refused, so an owner keeps its own answers within these bounds (:func:`bound_answer`).

An owner of many units draws its own lot of gradients: lots that owners draw by themselves at one rate are together one
Poisson lot. Where each owner is one unit (a device), the coins were tossed already, and it answers for its unit.

Guarantee: none of its own. Exact sums leave an owner for the process that adds them up and adds the noise once.

==============================================  ===================================================================
edge case                                       what happens
==============================================  ===================================================================
the same question, asked again                  the same answer, which costs nothing: it is known already; of a
                                                gradient the one that is kept, and none where it is gone
records or facts that changed meanwhile, so     refused: it would be a second answer for one price
that it would be another answer
another question for an access that is used up  refused before a record is looked at
fewer tables in a question than were paid for   the rest may be asked later: all tables together are paid once
an owner with more units than it has declared   answers within its bounds (:func:`bound_answer`), and is not refused
==============================================  ===================================================================
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from doublure.errors import RunFolderError, SettingError, printable
from doublure.private.accounting import ApproximateEvent, DiscreteGaussianEvent, GaussianEvent, PureEvent
from doublure.private.executed import steps_of
from doublure.private.owner_partitions import l2_norm, largest_count
from doublure.private.partitions import Partitions, as_partitions
from doublure.private.queries.counts import Counts
from doublure.private.queries.facts import Fact, make_fact_query, values_path
from doublure.private.queries.query import Answer, Query
from doublure.support.tensors import as_array

if TYPE_CHECKING:
    from doublure.access import Access
    from doublure.schema import Schema

P = TypeVar("P")

_REMEDY = "ask what the plan says"
_MARGIN = 2.0**-20
"""Margin below the bound that an owner is checked against: rounding to float32 adds at most 2^-24 of a length."""


class Owner:
    """Answers the questions that one owner's plan pays for.

    Args:
        accesses: All accesses of the plan, in order.
        authorise: Returns once an access is durably paid for in the owner's ledger: its step of training, counted from
            1 over all accesses that train; 0 for a fact. A step that is paid for already stays as it is.
        note: Returns once it is durably written down that a question was asked for an access: its number, the
            question's digest, how many tables it has, and the answer's digest.
        asked: The notes of earlier processes: by access and question, tables and the answer's digest.
        keep: Returns once a step's answer is durably kept, by its access and question. Asked again, the step is
            answered by what is kept: another lot would be another answer.
        units: This owner's public number of units.
    """

    def __init__(
        self,
        accesses: Sequence[Access],
        *,
        units: int,
        authorise: Callable[[Access, int], None],
        note: Callable[[int, str, int, str], None],
        asked: Mapping[int, Mapping[str, tuple[int, str]]],
        keep: Callable[[int, str, Answer], None] = lambda number, digest, answer: None,
    ) -> None:
        self._accesses = accesses
        self._units = units
        self._authorise = authorise
        self._note = note
        self._keep = keep
        self._asked = {number: dict(asked.get(number, {})) for number in range(len(accesses))}
        before, self._step = 0, {}
        for number, access in enumerate(accesses):
            before += 0 if access.path is not None else steps_of(access)
            self._step[number] = 0 if access.path is not None else before

    def answer(
        self, query: Query[P], number: int, digest: str, records: P | Partitions[P], *, chosen: bool = False
    ) -> Answer:
        """Return the exact answer, for the process that adds up answers and adds noise.

        It is noted, then paid for, then returned. A process that ends in between has let nothing out: the next one
        answers the same question, and pays for what was noted alone.

        Args:
            query: Rebuilt from what was asked, with this owner's own facts.
            number: The access that pays, by its place in the plan.
            digest: Of the question as it came: the same one is answered again, and alike.
            records: The owner's.
            chosen: Whether the coins were tossed by the asking process, so that every unit is in the lot.

        Raises:
            SettingError: The plan does not pay for it, or it does not fit the records.
            RunFolderError: It was answered before, and the answer would be another one now.
        """
        if number not in self._asked:
            raise SettingError("is no access of the plan", field="access", remedy=_REMEDY)
        access, asked = self._accesses[number], self._asked[number]
        places = as_partitions(records)
        places.refuse_unfit(query)
        moved = _moved(query, access)
        if digest in asked and isinstance(access.event, GaussianEvent) and not access.whole:
            raise SettingError("was answered before", field=access.purpose, remedy=_REMEDY)
        if digest not in asked and sum(tables for tables, _ in asked.values()) + moved > _paid(access):
            raise SettingError("is used up", field=access.purpose, remedy="make a new plan, which is paid anew")
        rate = 1.0 if chosen else getattr(access.event, "sample_rate", 1.0)
        found = places.ask(query, sample_rate=rate)
        if not chosen:  # what one unit adds was clipped already
            found = bound_answer(found, self._units)
        answer = _digest(found.total)
        if digest not in asked:
            if isinstance(access.event, GaussianEvent) and not access.whole:
                self._keep(number, digest, found)
            self._note(number, digest, moved, answer)
            asked[digest] = moved, answer
        elif asked[digest][1] != answer:
            raise RunFolderError(
                "would be answered otherwise than before", field=access.purpose, remedy="put the same records back"
            )
        self._authorise(access, self._step[number])
        return found

    def repeats(self, number: int, digest: str) -> bool:
        """Say whether a question was answered, and have its access paid for if it was.

        Args:
            number: The access that pays, by its place in the plan.
            digest: Of the question.
        """
        if digest not in self._asked.get(number, {}):
            return False
        self._authorise(self._accesses[number], self._step[number])
        return True

    def __repr__(self) -> str:
        return "Owner(private)"


def find_fact(schema: Schema, path: str, values: tuple[str, ...] | None) -> Fact:
    """Return the query for a question of the owner's schema.

    Args:
        schema: The owner's.
        path: The question's path.
        values: The learned values whose shares are asked for, if they are.

    Raises:
        SettingError: It is no question of this schema.
    """
    for question in schema.questions:
        if question.path == path:
            return make_fact_query(question, schema, {} if values is None else {values_path(path): values})
    raise SettingError("is not to be learned", field=printable(path), remedy=_REMEDY)


def bound_answer(answer: Answer, units: int) -> Answer:
    """Return an owner's answer, brought within the bounds of its public number of units.

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
        most = largest_count(answer, units)
        return replace(answer, total={name: min(count, most) for name, count in total.items()})
    if answer.unit is not None:
        return answer
    if total.dtype.kind != "f":
        return replace(answer, total=np.minimum(total, largest_count(answer, units)))
    length, longest = l2_norm(total), units * moved.l2 * (1 - _MARGIN)
    if not length > longest:
        return answer
    return replace(answer, total=(total.astype(np.float64) * (longest / length)).astype(total.dtype))


def _digest(total: Any) -> str:
    """Return the SHA-256 of an answer. Private."""
    if isinstance(total, Mapping):
        said = json.dumps(sorted(total.items())).encode()
    else:
        numbers = as_array(total)
        said = f"{numbers.dtype.str}{numbers.shape}".encode() + numbers.tobytes()
    return hashlib.sha256(said).hexdigest()


def _moved(query: Query[Any], access: Access) -> int:
    """Return the number of tables, or steps, that this access pays for a question."""
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
