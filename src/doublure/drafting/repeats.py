"""Count how often the ids of a table repeat, for the data owner only.

The counts are private: they stand in a file of mode 0600 and in the owner's own terminal, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from doublure.data.tables import cells
from doublure.data.tables.arrow_cells import as_series
from doublure.data.tables.opening import open_table
from doublure.errors import printable
from doublure.schema.schema import Schema
from doublure.schema.unit import is_id_name, people_in


class RepeatedId(NamedTuple):
    """An id that stands in several rows. Private.

    Attributes:
        column: Its column.
        different: How many different ids there are.
        rows: How many rows have one.
    """

    column: str
    different: int
    rows: int

    def __str__(self) -> str:
        return f"stands in several rows: {self.different:,} different in {self.rows:,} rows"

    @property
    def line(self) -> str:
        """The counts with their column."""
        return f"{printable(self.column)}: {self.different:,} different in {self.rows:,} rows"


def repeated_ids(schema: Schema, data: str | Path | pd.DataFrame) -> list[RepeatedId]:
    """Return the ids that repeat, of columns of type id and of those named as people's ids. Private.

    Raises:
        DataError: The container cannot be read, or a column is not there.
    """
    source = open_table(data, schema.written)
    source.check(schema)
    wanted: dict[str, Collection[str]] = {
        name: column.missing_tokens
        for name, column in schema.columns.items()
        if column.identifies or (column.modelled and is_id_name(name) and people_in(name) is not None)
    }
    if not wanted:
        return []
    labels: dict[str, list[pd.Series[Any]]] = {name: [] for name in wanted}
    for raw in source.raw(list(wanted)):
        for name, tokens in wanted.items():
            labels[name].append(cells.unit_ids(as_series(raw[name], name), name, tokens, "coerce"))
    ids = {name: pd.concat(parts or [pd.Series(dtype=object)]).dropna() for name, parts in labels.items()}
    found = [RepeatedId(name, own.nunique(), len(own)) for name, own in ids.items()]
    return [each for each in found if each.different < each.rows]
