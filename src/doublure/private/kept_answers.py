"""Noisy answers that a run keeps from the moment they are drawn, so that asking again gives the same answer.

A noisy answer is paid for and no longer private. It is kept so that a later failure (of the fit, the disk or the code)
does not cost the draw again. A question is identified by the access that pays for it, the number of that access's
earlier answers, and a hash of its content (:func:`doublure.private.queries.query.query_digest`).

Guarantee: none of its own. An answer is written once and never replaced, so that of one authorisation one draw is ever
handed out.

==========================================  ==========================================================================
edge case                                   what happens
==========================================  ==========================================================================
there is no room for an answer              the release is refused before it is authorised
a kill between authorisation and keeping    the draw is lost, and counts (:class:`doublure.errors.LostRun`)
another question than was answered          refused: the answer would be read as what it is not
==========================================  ==========================================================================
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

Place: TypeAlias = "tuple[int, int]"
"""Index of an access among those of the plan with an event, and index of one of its answers; both from 0."""


@dataclass(frozen=True, kw_only=True, eq=False)
class KeptAnswer:
    """A noisy answer and the question that it answers.

    Attributes:
        noisy: A flat array, or counts by name.
        asked: The hash of the question.
        ran: The record of its access until then, as in ``executed.json``.
    """

    noisy: Any
    asked: str
    ran: Mapping[str, Any]


class AnswerStore(Protocol):
    """Storage of noisy answers."""

    def places(self) -> frozenset[Place]:
        """Return the places of the kept answers."""

    def read(self, place: Place) -> KeptAnswer:
        """Return one of them."""

    def room(self, place: Place, size: int) -> AbstractContextManager[Callable[[KeptAnswer], None]]:
        """Reserve room for an answer, and yield a function that keeps it durably; unused room is released.

        Args:
            place: A place without an answer.
            size: Bytes that the answer takes, at most.
        """

    def forget(self, access: int, before: int) -> None:
        """Remove an access's answers before a number; a checkpoint stands for them."""


class AnswersInMemory:
    """Answers that are given at the start, by place; new ones are not kept."""

    def __init__(self, given: Mapping[Place, KeptAnswer] | None = None) -> None:
        self._given = dict(given or {})

    def places(self) -> frozenset[Place]:
        """Return the places of the given answers."""
        return frozenset(self._given)

    def read(self, place: Place) -> KeptAnswer:
        """Return one of them."""
        return self._given[place]

    @contextlib.contextmanager
    def room(self, place: Place, size: int) -> Iterator[Callable[[KeptAnswer], None]]:
        """Yield a function that keeps nothing: a run without files cannot be resumed."""
        yield lambda answer: None

    def forget(self, access: int, before: int) -> None:
        """Do nothing: none is kept."""


STEP = "step"
"""Stands in place of a question's hash where the answer is a step of training, known by its number."""
_EACH = 8
_LONGEST = 12
"""Largest number of bytes of a character in JSON: two escapes."""
_BESIDE = 2**16
"""Bytes of a file beside its numbers and names: the record of what ran, and a purpose of the plan."""


def answer_bytes(total: Any) -> int:
    """Return an upper bound on the bytes of an answer's noisy form; private where its cells are not known.

    Args:
        total: Numbers in an array, or counts by name.
    """
    if isinstance(total, Mapping):
        return _BESIDE + sum(_EACH + _LONGEST * (len(name) + 1) for name in total)
    return _BESIDE + _EACH * int(total.size)
