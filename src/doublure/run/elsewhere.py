"""Records that a run asks where they lie, and never holds: what such a place has to do.

:class:`doublure.run.in_partitions.RecordsInPartitions` is a disk; owners who keep their records are in
:mod:`doublure.federated`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from doublure.encode.encoder import Encoder
    from doublure.private.partitions import Partitions
    from doublure.private.queries.counts import Countable
    from doublure.private.queries.facts import Cells
    from doublure.schema import Schema


class EncodedElsewhere(Protocol):
    """Compact records, wherever they lie."""

    @property
    def fingerprint(self) -> str:
        """A hash of all of them in their order; empty where nobody can know it. Private."""

    def partitions(self, check: Callable[[], None]) -> Partitions[Countable]:
        """Return them as queries are asked of them; ``check`` is called now and then, and may raise to stop."""


class AskedRecords(ABC):
    """Records that are asked in partitions."""

    @abstractmethod
    def read(self) -> None:
        """Have the records read; the charge is on disk.

        Raises:
            InputError: They do not fit the schema.
        """

    @abstractmethod
    def facts(self) -> Partitions[Cells]:
        """Return the records as facts look at them."""

    @abstractmethod
    def encoded(self, encoder: Encoder, path: Path | None) -> EncodedElsewhere:
        """Return the records as queries count them.

        Args:
            encoder: Of the resolved schema.
            path: Where they may stay until the run is closed; None: nowhere.
        """

    def given_back(self) -> bool:
        """Have every other ledger that was charged for this run closed at zero, and say whether none is charged.

        Called where a run ends before anything was drawn; one that is charged elsewhere is kept, to be gone on with.
        """
        return True


class Elsewhere(ABC):
    """A place of its own, that a fit is given in place of data."""

    @abstractmethod
    def check(self, schema: Schema) -> None:
        """Ask whether all is as planned, before anything is charged.

        Raises:
            InputError: It is not.
        """

    @abstractmethod
    def begun(self, internal: Path) -> AskedRecords:
        """Return the records of a run that is charged.

        Args:
            internal: The run's internal folder.
        """

    @property
    def public(self) -> Mapping[str, Any]:
        """What ``run.json``, and with it a card, says of the place: decided before a record was read."""
        return {}
