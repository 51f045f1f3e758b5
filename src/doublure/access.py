"""A private access: its purpose, mechanism and price; a plan lists them.

A purpose is a label for readers, and versions may word it differently. What is compared is the rest: which events, at
which prices, in which order. The words that are shown are those of the code that reads a file, never the file's, so
that no edited file writes a false purpose onto a card.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from doublure.private.accounting import Event, GaussianEvent, event_from_json, event_to_json

COVERED: frozenset[str] = frozenset({"dp", "bayesian-dp"})
"""The kinds of claim whose (ε, δ) holds for every data set: accesses are charged, and what follows is covered."""

_PURPOSE = "purpose"


@dataclass(frozen=True, kw_only=True)
class Access:
    """One private access.

    Attributes:
        purpose: Its purpose, in this version's words.
        event: The mechanism, as the accountant reads it; None where nothing is protected (``gan``).
        epsilon: Its price alone, at :attr:`delta`.
        delta: Its share of δ.
        path: The fact of the schema that it learns, if any.
        estimated: Whether the Bayesian accountant may price it by sampled gradient distances.
        whole: Whether a Gaussian's sums are in whole numbers, and its noise too; the mechanism holds it to that.
    """

    purpose: str
    event: Event | None
    epsilon: float | None = None
    delta: float | None = None
    path: str | None = None
    estimated: bool = False
    whole: bool = False

    @property
    def exact(self) -> bool:
        """Whether no floating-point number takes part in its noise: counts, and sums in whole numbers."""
        return self.whole or not isinstance(self.event, GaussianEvent)

    def to_json(self) -> dict[str, Any]:
        """Return the access as ``plan.json`` holds it."""
        event = None if self.event is None else event_to_json(self.event)
        return {"purpose": self.purpose, "event": event, "epsilon": self.epsilon, "delta": self.delta}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Access:
        """Read what :meth:`to_json` wrote."""
        event = None if data["event"] is None else event_from_json(data["event"])
        return cls(purpose=data["purpose"], event=event, epsilon=data["epsilon"], delta=data["delta"])


def events(accesses: Iterable[Access]) -> list[Event]:
    """Return the events that the accountant composes."""
    return [access.event for access in accesses if access.event is not None]


def same_accesses(written: object, own: Sequence[Mapping[str, Any]]) -> bool:
    """Say whether accesses that a file lists are these, in this order, however it words their purposes.

    Args:
        written: What the file lists.
        own: The accesses' :meth:`Access.to_json`, as this version words them.
    """
    if not isinstance(written, Sequence) or len(written) != len(own):
        return False
    if not all(isinstance(each, Mapping) and isinstance(each.get(_PURPOSE), str) for each in written):
        return False
    same = [without_purpose(each) for each in written] == [without_purpose(each) for each in own]
    return same and not exchanged([each[_PURPOSE] for each in written], [each[_PURPOSE] for each in own])


def exchanged(written: Sequence[str], own: Sequence[str]) -> bool:
    """Say whether a purpose stands where these accesses have another's: another order is no other wording."""
    return any(said != purpose and said in own for said, purpose in zip(written, own, strict=True))


def without_purpose(access: Mapping[str, Any]) -> dict[str, Any]:
    """Return what binds of an access's :meth:`Access.to_json`."""
    return {key: said for key, said in access.items() if key != _PURPOSE}
