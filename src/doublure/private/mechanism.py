"""The one place that joins a query, its event, noise and authorisation; and writes down what ran.

:class:`Mechanism` is the only way to get a number out of private records. It takes a query and one of the plan's
accesses, refuses a query that moves further than was priced, asks whether the access is paid for, asks the records, and
adds noise once. Noise and rates come from the access's event and from nowhere else.

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
a release beyond the plan, or not paid for  refused before anything is asked
another event than was priced               nothing is given out, and the run ends
real numbers where the claim counts on      nothing is given out, and the run ends
whole ones (:attr:`Access.whole`)
==========================================  =================================================================
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from doublure.access import Access
from doublure.errors import Interrupted, NotAsPriced, SettingError
from doublure.private import whole_noise
from doublure.private.accounting import ApproximateEvent, DiscreteGaussianEvent, Event, GaussianEvent, PureEvent
from doublure.private.executed import DEFECT, Executed, steps_of
from doublure.private.noise import NoiseSource, product_upwards, require_std
from doublure.private.partitions import Partitions, everywhere
from doublure.private.queries.query import Answer, Query, Sensitivity

R = TypeVar("R")
Authorise = Callable[[Access, int], None]
"""Returns once an access's noisy step is durably paid for: a step of training, counted from 1 over all of the plan's
accesses that train; 0 for a fact."""

_ROUNDING = 1e-9


class Mechanism:
    """Queries answered with the noise that a plan has priced.

    Args:
        accesses: The plan's, in its order; those without an event protect no one and are not answered here.
        noise: Where real-valued noise comes from; a source for tests is refused unless ``allow_test_noise``.
        authorise: Asked before each release.
        taken: Noisy steps of training that an interrupted run has spent (those whose result was lost included).
        executed: What earlier sessions of the run did.
    """

    def __init__(
        self,
        accesses: Iterable[Access],
        *,
        noise: NoiseSource,
        authorise: Authorise,
        taken: int = 0,
        executed: Executed | None = None,
        allow_test_noise: bool = False,
    ) -> None:
        if noise.for_tests and not allow_test_noise:
            raise SettingError("is for tests only", field="noise", remedy="use os-keyed or chacha20")
        priced = [access for access in accesses if access.event is not None]
        if len(set(priced)) != len(priced):
            raise ValueError("two accesses are equal, so that what they spend cannot be separated")
        self.for_tests = allow_test_noise
        self.executed = Executed(priced) if executed is None else executed
        self._noise = noise
        self._authorise = authorise
        self._before: dict[Access, int] = {}
        self._taken: dict[Access, int] = {}
        before = 0
        for access in priced:
            own = steps_of(access)
            self._before[access] = before
            self._taken[access] = 0 if access.path is not None else min(own, max(0, taken - before))
            before += 0 if access.path is not None else own

    def taken(self, access: Access) -> int:
        """Return how many of an access's noisy steps have been spent, lost ones included."""
        if access not in self._taken:
            raise _no_access(access)
        return self._taken[access]

    def ran(self) -> list[dict[str, Any]]:
        """Return what ran until now, lost steps included, as ``executed.json`` holds it."""
        return self.executed.to_json(self._taken)

    def not_drawn(self, access: Access, taken: int) -> None:
        """Take back that an access's last step was spent: an earlier session was stopped before its noise was drawn.

        Args:
            access: Of the plan.
            taken: How many had been drawn then.
        """
        self._taken[access] = min(self.taken(access), max(taken, self.executed.draws(access)))

    def deviation(self, access: Access, sensitivity: Sensitivity) -> float:
        """Return the standard deviation of the noise that an access adds to each number."""
        event = access.event
        if isinstance(event, GaussianEvent):
            return event.noise_multiplier * sensitivity.l2
        if isinstance(event, DiscreteGaussianEvent):
            return event.scale
        raise TypeError(f"{access.purpose}: has no Gaussian noise")

    def release(self, query: Query[R], access: Access, records: R | Partitions[R]) -> Any:
        """Return a query's answer with noise, as the access has priced it.

        Args:
            query: What is asked.
            access: One of the plan's.
            records: All of them, in one place or in partitions.

        Returns:
            What the answer's total is: a flat array, or counts by name.

        Raises:
            SettingError: The query does not fit the records, or moves further than was priced, or the access is spent.
            NotAsPriced: Something else ran than was priced.
        """
        event, taken = access.event, self.taken(access)
        if taken >= steps_of(access):
            raise SettingError("all noisy steps of the plan have been taken", field="steps", remedy="make a new plan")
        places = everywhere(records)
        places.refuse_unfit(query)
        stated = query.sensitivity
        _refuse_dearer(stated, access)
        self._authorise(access, 0 if access.path is not None else self._before[access] + taken + 1)
        self._taken[access] = taken + 1
        places.paid_by(access)
        try:
            answer = places.ask(query, sample_rate=getattr(event, "sample_rate", 1.0))
        except (Interrupted, KeyboardInterrupt):  # stopped by its owner, and nothing was drawn yet
            self._taken[access] = taken
            raise
        moved = answer.sensitivity
        if not all(math.isclose(*pair, rel_tol=_ROUNDING) for pair in ((moved.l1, stated.l1), (moved.l2, stated.l2))):
            raise NotAsPriced("moves otherwise than it states", field=access.purpose, remedy=DEFECT)
        if access.whole and answer.unit is None:
            raise NotAsPriced("is not in whole numbers, as its claim says", field=access.purpose, remedy=DEFECT)
        noisy, ran = self._noised(answer, access)
        self.executed.note(access, ran, moved.l2)
        return noisy

    def _noised(self, answer: Answer, access: Access) -> tuple[Any, Event]:
        """Return the answer with noise, and the event that this was: from what the noise says it was scaled by."""
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
                noise_multiplier=real.scale / moved.l2, sample_rate=answer.sample_rate, sampling=answer.sampling
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
    """Return real numbers with noise, before they are rounded to what is given out."""
    noisy: npt.NDArray[np.float64] = total.astype(np.float64) + noise
    return noisy


def _no_access(access: Access) -> SettingError:
    return SettingError("is no access of the plan", field=access.purpose, remedy="make a new plan")


def _refuse_dearer(stated: Sensitivity, access: Access) -> None:
    """Refuse a query that moves further than its access has priced; Gaussian noise is scaled by what is stated."""
    event = access.event
    if isinstance(event, DiscreteGaussianEvent):
        priced = Sensitivity.of_cells(event.tables, event.records)
        if not stated.l2 <= priced.l2 * (1 + _ROUNDING):  # NaN too
            raise SettingError(
                f"moves {stated.l2:g} in L2, more than the {priced.l2:g} that was priced",
                field=access.purpose,
                remedy="make the plan again",
            )
    if isinstance(event, GaussianEvent):
        require_std(event.noise_multiplier * stated.l2, field="sensitivity")
