"""What of a job pays for its noisy steps, where no plan and no ledger do; and what then ran."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from doublure.access import Access
from doublure.private.accounting import Event, event_to_json
from doublure.private.kept_answers import AnswersInMemory, KeptAnswer, Place
from doublure.private.mechanism import Mechanism
from doublure.private.noise import NoiseSource, OsKeyedNoise
from doublure.training.settings import MethodSettings


class Remembered(AnswersInMemory):
    """Answers that are kept from one job to the next."""

    @contextlib.contextmanager
    def room(self, place: Place, size: int) -> Iterator[Callable[[KeptAnswer], None]]:
        """Yield what keeps an answer."""
        yield lambda answer: self._given.update({place: answer})

    def forget(self, access: int, before: int) -> None:
        """Remove what a checkpoint stands for."""
        self._given = {place: kept for place, kept in self._given.items() if place[0] != access or place[1] >= before}


def paid(
    accesses: Sequence[Access],
    settings: MethodSettings,
    authorise: Callable[[int], None] | None = None,
    taken: int = 0,
    noise: NoiseSource | None = None,
    memory: Any = None,
) -> dict[str, Any]:
    """Return ``accesses``, ``mechanism``, ``authorise`` and ``taken`` of a job.

    Args:
        accesses: As a plan would have them.
        settings: Of the method.
        authorise: Is asked for each step of any access, by its number.
        taken: Steps that were spent before.
        noise: A source for tests, in place of the real one.
        memory: What keeps a job's state, and its answers beside.
    """
    asked = authorise or (lambda step: None)
    mechanism = Mechanism(
        accesses,
        noise=OsKeyedNoise() if noise is None else noise,
        authorise=lambda access, step: asked(step),
        taken=taken,
        answers=None if memory is None else vars(memory).setdefault("answers", Remembered()),
        allow_test_noise=noise is not None,
    )
    if memory is not None:
        vars(memory)["saved"] = mechanism.saved
    return {"accesses": tuple(accesses), "mechanism": mechanism, "authorise": asked, "taken": taken}


def written(event: Event) -> dict[str, Any]:
    """Return an event as ``executed.json`` has it where it ran: equal up to the rounding of what was measured."""
    return {
        key: pytest.approx(value, rel=1e-9) if isinstance(value, float) else value
        for key, value in event_to_json(event).items()
    }
