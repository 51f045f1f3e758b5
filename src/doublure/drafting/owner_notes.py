"""Private notes on data, for its owner only, by kind: ids that repeat, and rows that a fit leaves out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from doublure.drafting.links import rows_left_out
from doublure.drafting.repeats import repeated_ids
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


def _of_related(schema: Schema, data: Any) -> Sequence[OwnerNote]:
    return rows_left_out(RelationalSchema.of(schema), data)


NOTES: ByKind[Callable[[Schema, Any], Sequence[OwnerNote]]] = ByKind(
    "note for the owner",
    table=repeated_ids,
    visits=repeated_ids,
    relational=_of_related,
    series=_no_notes,
    images=_no_notes,
)
