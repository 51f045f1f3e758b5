"""Record of the events that ran, measured where they ran and compared with the events that were priced.

The standard deviation that the noise was scaled by, the sensitivity that the answer carries, the rate that the lot was
drawn at and the number of draws make an event anew; the plan's own is never copied. An event that differs from the
plan's ends the run before anything is given out. Everything in here is public: nothing depends on the data.

=====================================  ========================================================================
edge case                              what happens
=====================================  ========================================================================
a run that is resumed                  earlier sessions' draws are counted; all sessions have the same event
a step that was lost in a crash        was authorised and may have been drawn: counted, listed as lost
an access whose steps were all lost    what was priced is listed, no draw, and no sensitivity
fewer tables than planned              cost less than was paid for, and are written down as they were
=====================================  ========================================================================
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from doublure.access import Access, exchanged
from doublure.errors import NotAsPriced, RunFolderError, SettingError
from doublure.private.accounting import (
    ApproximateEvent,
    DiscreteGaussianEvent,
    Event,
    GaussianEvent,
    PureEvent,
    event_from_json,
    event_to_json,
)

_TOLERANCE = 1e-9


@dataclass(frozen=True, kw_only=True)
class ExecutedEvent:
    """The event that ran for one access, over all sessions.

    Attributes:
        event: Rebuilt from measurements; a Gaussian event has as many steps as were drawn.
        draws: Number of noise draws.
        longest: The largest L2 sensitivity of an answer.
    """

    event: Event
    draws: int
    longest: float


class Executed:
    """Events that ran, access by access.

    Args:
        accesses: The plan's, that have an event.
    """

    def __init__(self, accesses: Iterable[Access]) -> None:
        self._ran: dict[Access, ExecutedEvent | None] = dict.fromkeys(accesses)

    def note(self, access: Access, event: Event, longest: float) -> None:
        """Record one draw, and compare it with the price.

        Args:
            access: The access that it was drawn for.
            event: The event of this draw alone, as measured.
            longest: The answer's L2 sensitivity.

        Raises:
            NotAsPriced: It is another event than the plan's, or one draw too many.
        """
        before = self._ran[access]
        draws = 1 if before is None else before.draws + 1
        if access.event is None or not _covers(access.event, event) or draws > steps_of(access):
            raise _fault(access, event)
        if isinstance(event, GaussianEvent):
            event = replace(event, steps=draws)
        most = longest if before is None else max(before.longest, longest)
        self._ran[access] = ExecutedEvent(event=event, draws=draws, longest=most)

    def draws(self, access: Access) -> int:
        """Return how often noise is known to have been drawn for an access."""
        ran = self._ran[access]
        return 0 if ran is None else ran.draws

    def refuse_unequal(self, authorised: int) -> None:
        """Refuse to call a run done unless all that was priced was authorised, and no more was drawn.

        Args:
            authorised: Noisy steps of training, over all sessions, lost ones included.

        Raises:
            NotAsPriced: Something was left out, or done twice.
        """
        training = [access for access in self._ran if access.path is None]
        if authorised != sum(steps_of(access) for access in training):
            raise NotAsPriced(
                f"{authorised} noisy steps were authorised, and the plan has others", field="steps", remedy=DEFECT
            )
        for access, ran in self._ran.items():
            if ran is not None and (access.event is None or not _covers(access.event, ran.event)):
                raise _fault(access, ran.event)

    def to_json(self, taken: Mapping[Access, int] | None = None) -> list[dict[str, Any]]:
        """Return the content of ``executed.json``: one object per access.

        ``event`` is what ran, lost steps included, and null where nothing did; ``expected`` the plan's; ``drawn`` how
        often noise is known to have been drawn, ``lost`` how many steps were authorised beyond that, ``sensitivity``
        how far one unit moves an answer at most, in L2.

        Args:
            taken: Steps spent by each access; by default those that were drawn.
        """
        return [self.entry(access, (taken or {}).get(access, 0)) for access in self._ran]

    def entry(self, access: Access, taken: int = 0) -> dict[str, Any]:
        """Return one access's object of :meth:`to_json`.

        Args:
            access: Of the plan.
            taken: Steps that it has spent.
        """
        ran, drawn = self._ran[access], self.draws(access)
        lost = max(0, taken - drawn)
        event = ran.event if ran is not None else access.event if lost else None  # a lost draw was the plan's
        if isinstance(event, GaussianEvent):
            event = replace(event, steps=drawn + lost)
        return {
            "purpose": access.purpose,
            "event": None if event is None else event_to_json(event),
            "expected": None if access.event is None else event_to_json(access.event),
            "drawn": drawn,
            "lost": lost,
            "sensitivity": None if ran is None else ran.longest,
        }

    def recall(self, access: Access, entry: Mapping[str, Any]) -> None:
        """Restore the record that was kept with an answer; later draws stay recorded.

        Raises:
            RunFolderError: It is not what this access writes.
        """
        with _of_this_plan("internal"):
            if entry["purpose"] != access.purpose and entry["purpose"] in {each.purpose for each in self._ran}:
                raise ValueError
            ran = _read(access, entry)
        if ran is not None and ran.draws > self.draws(access):
            self._ran[access] = ran

    def restore(self, written: Any) -> None:
        """Restore the record of earlier sessions.

        Raises:
            RunFolderError: It is not what this plan's run writes.
        """
        with _of_this_plan("executed.json"):
            if exchanged([entry["purpose"] for entry in written], [access.purpose for access in self._ran]):
                raise ValueError
            for access, entry in zip(self._ran, written, strict=True):
                self._ran[access] = _read(access, entry)


DEFECT = "this is a defect of doublure: nothing more is drawn; report it, and do not release this run"


def steps_of(access: Access) -> int:
    """Return how many times an access's noise is drawn."""
    return _steps(access.event)


def as_priced(executed: Iterable[Mapping[str, Any]]) -> bool:
    """Say whether every event in ``executed.json`` is the one that was priced."""
    try:
        pairs = [(event_from_json(each["expected"]), event_from_json(each["event"])) for each in executed]
    except (KeyError, TypeError, SettingError):
        return False
    same = [_covers(expected, event) and _steps(expected) == _steps(event) for expected, event in pairs]
    return bool(same) and all(same)


@contextmanager
def _of_this_plan(field: str) -> Iterator[None]:
    try:
        yield
    except (KeyError, TypeError, ValueError, SettingError):
        remedy = "the run folder was edited or is damaged: bring it back as fit left it"
        raise RunFolderError("does not belong to this plan", field=field, remedy=remedy) from None


def _read(access: Access, entry: Mapping[str, Any]) -> ExecutedEvent | None:
    if event_from_json(entry["expected"]) != access.event:
        raise ValueError
    if entry["event"] is None:
        return None
    event, draws, longest = event_from_json(entry["event"]), entry["drawn"], entry["sensitivity"]
    possible = range(1, steps_of(access) + 1)
    if access.event is None or not _covers(access.event, event) or (draws or entry["lost"]) not in possible:
        raise ValueError  # a later draw would hide it
    if not draws:
        return None
    if isinstance(event, GaussianEvent):
        event = replace(event, steps=draws)
    return ExecutedEvent(event=event, draws=draws, longest=float(longest))


def _fault(access: Access, event: Event) -> NotAsPriced:
    return NotAsPriced(f"{event} ran, and {access.event} was priced", field=access.purpose, remedy=DEFECT)


def _steps(event: Event | None) -> int:
    return event.steps if isinstance(event, GaussianEvent) else 1


def _covers(priced: Event, ran: Event) -> bool:
    """Say whether what ran is what was priced, or less; steps are counted where they are drawn."""
    if isinstance(priced, GaussianEvent) and isinstance(ran, GaussianEvent):
        same = _close(priced.noise_multiplier, ran.noise_multiplier) and _close(priced.sample_rate, ran.sample_rate)
        return same and (priced.sampling, priced.filter_steps) == (ran.sampling, ran.filter_steps)
    if isinstance(priced, DiscreteGaussianEvent) and isinstance(ran, DiscreteGaussianEvent):
        return _close(priced.scale, ran.scale) and ran.tables <= priced.tables and ran.records == priced.records
    if isinstance(priced, ApproximateEvent) and isinstance(ran, ApproximateEvent):
        return _close(priced.epsilon, ran.epsilon) and ran.delta <= priced.delta * (1 + _TOLERANCE)
    if isinstance(priced, PureEvent) and isinstance(ran, PureEvent):
        return _close(priced.epsilon, ran.epsilon)
    return False


def _close(priced: float, ran: float) -> bool:
    return math.isclose(priced, ran, rel_tol=_TOLERANCE)
