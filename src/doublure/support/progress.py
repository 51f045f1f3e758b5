"""How long work tells what it is doing, whoever receives the events."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Receives progress events: stages and counts."""

    def stage(self, name: str, total: int | None = None) -> None:
        """A new stage begins; ``total`` counts its units of work, if they can be counted."""

    def at(self, done: int) -> None:
        """So many units of the stage's work are done."""


class Silent:
    """Ignores progress events."""

    def stage(self, name: str, total: int | None = None) -> None:
        """Ignore it."""

    def at(self, done: int) -> None:
        """Ignore it."""
