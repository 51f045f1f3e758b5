"""Private notes on data, for its owner only: ids that repeat, cells missing together, rows that a fit leaves out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from doublure.drafting.links import rows_left_out
from doublure.drafting.repeats import likely_ids, repeated_ids
from doublure.drafting.skips import skipped_blocks
from doublure.schema.kinds import ByKind
from doublure.schema.relational import RelationalSchema
from doublure.schema.schema import Schema


class OwnerNote(Protocol):
    """A note on a column; as text, without its name. Private."""

    @property
    def column(self) -> str:
        """The column."""

    @property
    def line(self) -> str:
        """The note with the column's name."""


def _no_notes(schema: Schema, data: Any) -> Sequence[OwnerNote]:
    del schema, data
    return ()


def _of_table(schema: Schema, data: Any) -> Sequence[OwnerNote]:
    return [*repeated_ids(schema, data), *likely_ids(schema, data), *skipped_blocks(schema, data)]


def _of_related(schema: Schema, data: Any) -> Sequence[OwnerNote]:
    return rows_left_out(RelationalSchema.of(schema), data)


NOTES: ByKind[Callable[[Schema, Any], Sequence[OwnerNote]]] = ByKind(
    "note for the owner",
    table=_of_table,
    visits=_of_table,
    relational=_of_related,
    series=_no_notes,
    images=_no_notes,
)
