"""Records of one place, held in memory, for a method that draws lots of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from doublure.private.partitions import Partitions, SinglePartition
from doublure.run.elsewhere import AskedRecords
from doublure.training.job import encoded_records

if TYPE_CHECKING:
    from doublure.data.opening import Source
    from doublure.data.records import Loaded
    from doublure.encode.encoder import Encoder
    from doublure.private.records import PrivateRecords
    from doublure.schema import Schema


class HeldRecords(AskedRecords):
    """All records of a source.

    Args:
        source: Its header checked.
        schema: The public facts.
    """

    def __init__(self, source: Source, schema: Schema) -> None:
        self._source = source
        self._schema = schema
        self._loaded: Loaded | None = None

    def read(self) -> None:
        """Read the records; none is enough.

        Raises:
            DataError: A record does not fit.
        """
        self._loaded = self._source.load(self._schema, at_least=0)

    def facts(self) -> Partitions[Any]:
        """Return the records as facts look at them."""
        return SinglePartition(self._held)

    def encoded(self, encoder: Encoder, path: Path | None) -> EncodedHere:
        """Return the records as queries look at them; nothing is written."""
        held = self._held
        return EncodedHere(encoded_records(encoder, encoder.compact(held.content), held.unit, held.n_units))

    @property
    def _held(self) -> Loaded:
        if self._loaded is None:
            raise TypeError("nothing was read")
        return self._loaded

    def __repr__(self) -> str:
        return "HeldRecords(private)"


class EncodedHere:
    """Compact records in memory.

    Args:
        records: Private.
    """

    def __init__(self, records: PrivateRecords) -> None:
        self._records = records

    @property
    def fingerprint(self) -> str:
        """A hash of all of them in their order. Private."""
        return self._records.fingerprint

    @property
    def n_units(self) -> int:
        """How many units there are. Private."""
        return self._records.n_units

    def partitions(self, check: Callable[[], None] = lambda: None) -> Partitions[Any]:
        """Return them as queries are asked of them."""
        return SinglePartition(self._records)

    def close(self) -> None:
        """There is no file."""

    def __repr__(self) -> str:
        return "EncodedHere(private)"
