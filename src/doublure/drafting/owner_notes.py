"""Private notes on data, for its owner only: ids that repeat, what is missing, rows that a fit leaves out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from doublure.data.relational import open_related
from doublure.data.tables.opening import open_table
from doublure.drafting.links import rows_left_out
from doublure.drafting.mixed_missing import mixed_missing
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
    mixed = mixed_missing(schema.columns, open_table(data, schema.written))
    return [*repeated_ids(schema, data), *likely_ids(schema, data), *skipped_blocks(schema, data), *mixed]


def _of_related(schema: Schema, data: Any) -> Sequence[OwnerNote]:
    described = RelationalSchema.of(schema)
    tables = open_related(data, described.written).tables
    mixed = [
        each._replace(column=f"{name}.{each.column}")
        for name in described.tables
        for each in mixed_missing(described.table(name).columns, tables[name])
    ]
    return [*rows_left_out(described, data), *mixed]


NOTES: ByKind[Callable[[Schema, Any], Sequence[OwnerNote]]] = ByKind(
    "note for the owner",
    table=_of_table,
    visits=_of_table,
    relational=_of_related,
    series=_no_notes,
    images=_no_notes,
)
