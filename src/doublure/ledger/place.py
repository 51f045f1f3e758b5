"""Where a ledger's lines are: the interface of its store to a file or to a table on a server."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TypeAlias

from doublure.errors import LedgerError

Append: TypeAlias = Callable[[bytes], None]
"""Writes a line and returns once it is durable."""


class LedgerPlace(ABC):
    """One ledger's place.

    Attributes:
        name: As messages say it.
        address: As a run folder keeps it and :func:`doublure.ledger.places.find_place` reads it.
    """

    name: str
    address: str

    @abstractmethod
    def create(self, line: bytes) -> None:
        """Write the first line, durably.

        Raises:
            LedgerError: A ledger is there, or it could not be made durable.
        """

    @abstractmethod
    def locked(self, *, to_append: bool, known: bytes) -> AbstractContextManager[tuple[Append, bytes]]:
        """Hold the ledger's lock; give all its bytes and what appends to them.

        Args:
            to_append: Whether a line is to be written.
            known: What was read before, which need not be sent again where it is still there.

        Raises:
            LedgerError: It is missing, or cannot be read.
        """

    @abstractmethod
    def exists(self) -> bool:
        """Whether a ledger is there.

        Raises:
            LedgerError: The server does not say.
        """

    @property
    def begun(self) -> bool:
        """Whether another process has made it and may be about to write its first line."""
        return False

    @abstractmethod
    def refuse_unsafe(self) -> None:
        """Refuse a place whose locks and writes mean less than they should.

        Raises:
            LedgerError: It is such a place.
        """

    def refuse_missing(self) -> None:
        """Refuse a ledger that is not there.

        Raises:
            LedgerError: It is not, or the server does not say.
        """
        if not self.exists():
            raise LedgerError("there is no such ledger", field=self.name, remedy="give the ledger's path or address")
