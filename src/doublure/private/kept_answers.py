"""Noisy answers that a run keeps, each from the moment it was drawn: whoever asks again is told the same.

A noisy answer is paid for, and is private no more. It is kept so that nothing that fails after its draw (a fit, a full
disk, a defect) costs the draw again. A question is known by the access that pays for it, by how many of that access's
answers there were before, and by a hash of what it says (:func:`doublure.private.queries.query.said`).

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
"""Which access of the plan, among those that have an event, and which of its answers; both counted from 0."""


@dataclass(frozen=True, kw_only=True, eq=False)
class KeptAnswer:
    """What was drawn.

    Attributes:
        noisy: A flat array, or counts by name.
        asked: The hash of the question.
        ran: What ran for its access until then, as ``executed.json`` has it.
    """

    noisy: Any
    asked: str
    ran: Mapping[str, Any]


class Answers(Protocol):
    """Where answers are kept."""

    def held(self) -> frozenset[Place]:
        """Return which answers are kept."""

    def kept(self, place: Place) -> KeptAnswer:
        """Return one of them."""

    def room(self, place: Place, size: int) -> AbstractContextManager[Callable[[KeptAnswer], None]]:
        """Take room for an answer, and yield what keeps it there durably; given back where nothing is.

        Args:
            place: Where no answer is.
            size: Bytes that the answer takes, at most.
        """


class AnswersInMemory:
    """Answers that are told, by place; what is drawn is kept no longer than the process."""

    def __init__(self, told: Mapping[Place, KeptAnswer] | None = None) -> None:
        self._told = dict(told or {})

    def held(self) -> frozenset[Place]:
        """Return which answers were told."""
        return frozenset(self._told)

    def kept(self, place: Place) -> KeptAnswer:
        """Return one of them."""
        return self._told[place]

    @contextlib.contextmanager
    def room(self, place: Place, size: int) -> Iterator[Callable[[KeptAnswer], None]]:
        """Yield what keeps nothing: nobody goes on with a run of which nothing is on disk."""
        yield lambda answer: None


_EACH = 8
_LONGEST = 12
"""Bytes of a character in JSON, at most: two escapes."""
_BESIDE = 2**16
"""Bytes of a file beside its numbers and names: what ran, in a few hundred, and a purpose that a plan may have."""


def size_of(total: Any) -> int:
    """Return how many bytes the noisy form of an exact answer takes, at most; private where its cells are not known.

    Args:
        total: Numbers in an array, or counts by name.
    """
    if isinstance(total, Mapping):
        return _BESIDE + sum(_EACH + _LONGEST * (len(name) + 1) for name in total)
    return _BESIDE + _EACH * int(total.size)
