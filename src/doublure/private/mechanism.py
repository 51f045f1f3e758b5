"""The only place that joins a query, its event, noise and authorisation, and that records what ran.

:class:`Mechanism` is the only way to get a number out of private records. It takes a query and one of the plan's
accesses, refuses a query whose sensitivity exceeds the price, asks the records, has the access paid for, adds noise
once, and keeps the noisy answer. Noise and rates come from the access's event and from nowhere else.

The order is: refuse what does not fit, ask, take room, **authorise, draw, keep**, hand out.

- An exact answer goes nowhere. A process that ends while computing it has spent nothing: the same query is asked again.
  A lot that was drawn for it is discarded unseen, and the next one is drawn as any other.
- From the authorisation on the draw is spent, durably. It is kept durably before it is handed out. A draw is lost only
  if the process ends between the two, and at most one draw per authorisation is ever handed out
  (:mod:`doublure.private.kept_answers`). So is each step of training, which is kept until a checkpoint stands for it.

Guarantee: everything that :meth:`Mechanism.release` gives out for an access is together that access's event, for
add/remove of one unit. The noise's standard deviation is σ times the sensitivity that the answer carries. How far the
noise was scaled, the sensitivity and the rate of the lot make an event anew, which is compared with the plan's before
anything is given out (:mod:`doublure.private.executed`).

Of an answer in whole numbers the noise is whole, and exact; what a sum in steps of a grid (:attr:`Answer.unit`) gets is
what the Gaussian mechanism gives out, rounded to the grid. Of real numbers, which gradients are, the noise is float32,
and is added in float64: what comes of it is rounded to float32 afterwards, which is post-processing. Rounded before,
a term that is large enough would swallow the rest of the sum and the noise with it.

==========================================  =================================================================
edge case                                   what happens
==========================================  =================================================================
no record at all, an empty lot              noise alone, and the release counts
a query that moves further than was priced  refused before anything is asked
a release beyond the plan                   refused before anything is asked
a release that is not paid for              asked in vain: nothing is drawn
a release that an earlier session has kept  what was kept; nothing is asked or drawn
one that was authorised, and not kept       lost: nothing is asked, and it is never drawn again
another event than was priced               nothing is given out, and the run ends
real numbers where the claim counts on      nothing is given out, and the run ends
whole ones (:attr:`Access.whole`)
==========================================  =================================================================
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Collection, Iterable
from contextlib import AbstractContextManager
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from doublure.access import Access
from doublure.errors import LostRun, NotAsPriced, RunFolderError, SettingError
from doublure.private import whole_noise
from doublure.private.accounting import ApproximateEvent, DiscreteGaussianEvent, Event, GaussianEvent, PureEvent
from doublure.private.executed import DEFECT, Executed, steps_of
from doublure.private.kept_answers import STEP, AnswersInMemory, AnswerStore, KeptAnswer, Place, answer_bytes
from doublure.private.noise import NoiseSource, product_upwards, require_std
from doublure.private.partitions import Partitions, as_partitions
from doublure.private.queries.query import Answer, Query, Sensitivity, query_digest

R = TypeVar("R")
Authorise = Callable[[Access, int], None]
"""Returns once an access's noisy step is durably paid for. Training steps count from 1 over all accesses that train; a
fact is step 0."""

_ROUNDING = 1e-9


class Mechanism:
    """Answers queries with the noise that a plan has priced.

    Args:
        accesses: The plan's, in its order; those without an event protect no one and are not answered here.
        noise: Source of real-valued noise; one for tests is refused unless ``allow_test_noise``.
        authorise: Called before each draw.
        taken: Noisy steps of training that an interrupted run has spent (those whose result was lost included).
        learned: Purposes of the facts whose draw it has spent.
        executed: The record of earlier sessions of the run.
        answers: Storage of answers, with those of earlier sessions.
        unbroken: Entered while a draw is authorised, made and kept; no signal may end it there.
    """

    def __init__(
        self,
        accesses: Iterable[Access],
        *,
        noise: NoiseSource,
        authorise: Authorise,
        taken: int = 0,
        learned: Collection[str] = (),
        executed: Executed | None = None,
        answers: AnswerStore | None = None,
        unbroken: Callable[[], AbstractContextManager[None]] = contextlib.nullcontext,
        allow_test_noise: bool = False,
    ) -> None:
        if noise.for_tests and not allow_test_noise:
            raise SettingError("is for tests only", field="noise", remedy="use OsKeyedNoise")
        priced = [access for access in accesses if access.event is not None]
        if len(set(priced)) != len(priced):
            raise ValueError("two accesses are equal, so that what they spend cannot be separated")
        self.for_tests = allow_test_noise
        self.executed = Executed(priced) if executed is None else executed
        self._noise = noise
        self._authorise = authorise
        self._unbroken = unbroken
        self._answers: AnswerStore = AnswersInMemory() if answers is None else answers
        self._places = {access: place for place, access in enumerate(priced)}
        self._until_saved: set[Access] = set()
        self._held = self._answers.places()
        self._before: dict[Access, int] = {}
        self._spent: dict[Access, int] = {}
        before = 0
        for access in priced:
            own = steps_of(access)
            self._before[access] = before
            fact = access.path is not None
            self._spent[access] = int(access.purpose in learned) if fact else min(own, max(0, taken - before))
            before += 0 if fact else own
        if any(not self._has_paid(place) for place in self._held):
            remedy = "the run folder was edited, is damaged, or of another ledger: bring it back as fit left it"
            raise RunFolderError("holds an answer that is not paid for", field="internal", remedy=remedy)
        self._lost = {
            access: len({*range(spent)} - {number for place, number in self._held if place == self._places[access]})
            for access, spent in self._spent.items()
        }
        self._taken = {access: self._from(access, 0) for access in priced}

    def taken(self, access: Access) -> int:
        """Return the number of an access's noisy steps that are done: handed out again, drawn, or lost."""
        if access not in self._taken:
            raise SettingError("is no access of the plan", field=access.purpose, remedy="make a new plan")
        return self._taken[access]

    def all_paid(self, access: Access) -> bool:
        """Say whether all of an access's steps are spent."""
        return self._spent[access] >= steps_of(access)

    def refuse_lost(self, *accesses: Access) -> None:
        """Refuse to resume where a draw was authorised but its answer was not kept.

        Args:
            accesses: Accesses whose answers are all needed, as no checkpoint stands for them.

        Raises:
            LostRun: One is lost.
        """
        for access in accesses:
            if self._lost[access]:
                raise LostRun(
                    f"was cut off between paying for {access.purpose!r} and keeping the answer, and the price covers "
                    "one draw",
                    field="run folder",
                    remedy="what was charged stays charged; fit into a new folder and pay again (again=True, --again)",
                )

    def recalls(self, *accesses: Access) -> bool:
        """Say whether an earlier session kept an answer of any of these accesses."""
        return any(place == self._places.get(access) for access in accesses for place, _ in self._held)

    def kept_answers(self, *accesses: Access) -> dict[Place, KeptAnswer]:
        """Return the answers of these accesses that earlier sessions kept, by place."""
        wanted = {self._places[access] for access in accesses if access in self._places}
        return {place: self._answers.read(place) for place in sorted(self._held) if place[0] in wanted}

    def ran(self) -> list[dict[str, Any]]:
        """Return the record of all draws so far, lost steps included, as in ``executed.json``."""
        return self.executed.to_json(self._spent)

    def deviation(self, access: Access, sensitivity: Sensitivity) -> float:
        """Return the standard deviation of the noise that an access adds to each number."""
        event = access.event
        if isinstance(event, GaussianEvent):
            return event.noise_multiplier * sensitivity.l2
        if isinstance(event, DiscreteGaussianEvent):
            return event.scale
        raise TypeError(f"{access.purpose}: has no Gaussian noise")

    def release(self, query: Query[R], access: Access, records: R | Partitions[R], *, keep: bool = True) -> Any:
        """Return a query's answer with the noise that the access has priced; the kept answer if it was drawn before.

        Args:
            query: The query.
            access: One of the plan's.
            records: All records, in one place or in partitions.
            keep: Whether the answer is kept until the run's end. Steps of training are many and large: theirs are kept
                until a checkpoint stands for them.

        Returns:
            The noisy total: a flat array, or counts by name.

        Raises:
            SettingError: The query does not fit the records, or moves further than was priced, or the access is spent.
            NotAsPriced: Something else ran than was priced.
            RunFolderError: Another question was answered in an earlier session.
        """
        event, taken = access.event, self.taken(access)
        if taken >= steps_of(access):
            raise SettingError("all noisy steps of the plan have been taken", field="steps", remedy="make a new plan")
        if self.keeps(access):
            return self._recalled(query, access, keep=keep)
        places = as_partitions(records)
        places.refuse_unfit(query)
        stated = query.sensitivity
        _refuse_dearer(stated, access)
        places.paid_by(access)
        answer = places.ask(query, sample_rate=getattr(event, "sample_rate", 1.0))
        moved = answer.sensitivity
        if not all(math.isclose(*pair, rel_tol=_ROUNDING) for pair in ((moved.l1, stated.l1), (moved.l2, stated.l2))):
            raise NotAsPriced("moves otherwise than it states", field=access.purpose, remedy=DEFECT)
        if access.whole and answer.unit is None:
            raise NotAsPriced("is not in whole numbers, as its claim says", field=access.purpose, remedy=DEFECT)
        place = self._places[access], taken
        if not keep:
            self._until_saved.add(access)
        with self._answers.room(place, answer_bytes(answer.total)) as kept, self._unbroken():
            self._pay(access)
            noisy, ran = self._noised(answer, access)
            self.executed.note(access, ran, moved.l2)
            asked = query_digest(query) if keep else STEP
            kept(KeptAnswer(noisy=noisy, asked=asked, ran=self.executed.entry(access)))
        return noisy

    def skip(self, access: Access, steps: int) -> None:
        """Go on after the steps of training that a checkpoint stands for.

        Raises:
            SettingError: The plan has no such access.
            RunFolderError: They are more than were paid for.
        """
        taken = self.taken(access)
        if steps > self._spent[access]:
            remedy = "the run folder was edited, is damaged, or of another ledger: bring it back as fit left it"
            raise RunFolderError("stands for steps that are not paid for", field="checkpoint", remedy=remedy)
        self._taken[access] = self._from(access, max(steps, taken))

    def saved(self) -> None:
        """Forget the steps of training for which a checkpoint stands now, durably."""
        for access in self._until_saved:
            self._answers.forget(self._places[access], self._taken[access])

    def keeps(self, access: Access) -> bool:
        """Say whether an earlier session kept the next answer of an access."""
        return (self._places[access], self._taken[access]) in self._held

    def _recalled(self, query: Query[Any], access: Access, *, keep: bool) -> Any:
        """Return the answer that was kept for this question.

        A step of training is known by its number: its gradient was drawn, and following it is post-processing, even if
        rounding on another machine has moved the networks meanwhile.
        """
        taken = self._taken[access]
        kept = self._answers.read((self._places[access], taken))
        if kept.asked != (query_digest(query) if keep else STEP):
            remedy = "go on with the doublure that began the run, on its machine"
            raise RunFolderError("is another question than was answered", field=access.purpose, remedy=remedy)
        if not keep:
            self._until_saved.add(access)
        self.executed.recall(access, kept.ran)
        self._taken[access] = self._from(access, taken + 1)
        return kept.noisy

    def _pay(self, access: Access) -> None:
        """Return once the next draw is durably paid for; from here on it is spent."""
        taken = self._taken[access]
        self._authorise(access, 0 if access.path is not None else self._before[access] + taken + 1)
        self._spent[access] = self._taken[access] = taken + 1

    def _from(self, access: Access, number: int) -> int:
        """Return an access's first step, from a number on, that is kept or not yet spent; lost steps are skipped."""
        while number < self._spent[access] and (self._places[access], number) not in self._held:
            number += 1
        return number

    def _has_paid(self, place: Place) -> bool:
        return any(place[0] == own and place[1] < self._spent[access] for access, own in self._places.items())

    def _noised(self, answer: Answer, access: Access) -> tuple[Any, Event]:
        """Return the answer with noise, and the event that ran, from the scale that the noise reports."""
        event, moved, total = access.event, answer.sensitivity, answer.total
        if isinstance(event, GaussianEvent) and answer.unit is not None:
            whole = self._noise.whole(total.size, product_upwards(event.noise_multiplier, moved.l2), answer.unit)
            ran = GaussianEvent(
                noise_multiplier=whole.scale / moved.l2, sample_rate=answer.sample_rate, sampling=answer.sampling
            )
            return ((whole_noise.whole(total) + whole.values) * answer.unit).astype(np.float32), ran
        if isinstance(event, GaussianEvent):
            real = self._noise.normal(total.size, event.noise_multiplier * moved.l2)
            ran = GaussianEvent(
                noise_multiplier=real.scale / moved.l2,
                sample_rate=answer.sample_rate,
                sampling=answer.sampling,
                filter_steps=answer.filter_steps,
            )
            return _sum(total, real.values).astype(np.float32), ran
        if isinstance(event, DiscreteGaussianEvent):
            whole = whole_noise.gaussian(total, scale=event.scale)
            return whole.values, DiscreteGaussianEvent(scale=whole.scale, tables=moved.cells, records=moved.each)
        if isinstance(event, PureEvent):
            whole = whole_noise.laplace(total, epsilon=event.epsilon, moved=round(moved.l1))
            return whole.values, PureEvent(epsilon=moved.l1 / whole.scale)
        if isinstance(event, ApproximateEvent):
            found = whole_noise.thresholded(total, epsilon=event.epsilon, delta=event.delta, moved=round(moved.l1))
            return found.counts, ApproximateEvent(epsilon=moved.l1 / found.scale, delta=found.delta)
        raise TypeError(f"{access.purpose}: nothing is protected")


def _sum(total: npt.NDArray[Any], noise: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Return real numbers with noise in float64, before they are rounded to float32."""
    noisy: npt.NDArray[np.float64] = total.astype(np.float64) + noise
    return noisy


def _refuse_dearer(stated: Sensitivity, access: Access) -> None:
    """Refuse a query whose sensitivity exceeds its access's price; Gaussian noise scales with the sensitivity."""
    event = access.event
    if isinstance(event, DiscreteGaussianEvent):
        priced = Sensitivity.of_cells(event.tables, event.records)
        if not stated.l2 <= priced.l2 * (1 + _ROUNDING):  # NaN too
            raise SettingError(
                f"moves {stated.l2:g} in L2, more than the {priced.l2:g} that was priced",
                field=access.purpose,
                remedy="let the method's accesses price that much and plan again, or ask for less",
            )
    if isinstance(event, GaussianEvent):
        require_std(event.noise_multiplier * stated.l2, field="sensitivity")
