"""A private access: its purpose, mechanism and price; a plan lists them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from doublure.private.accounting import Event, GaussianEvent, event_from_json, event_to_json

COVERED: frozenset[str] = frozenset({"dp", "bayesian-dp"})
"""The kinds of claim whose (ε, δ) holds for every data set: accesses are charged, and what follows is covered."""


@dataclass(frozen=True, kw_only=True)
class Access:
    """One private access.

    Attributes:
        purpose: Its purpose, in words.
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
