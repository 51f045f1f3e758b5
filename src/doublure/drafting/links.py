"""Count rows of related tables that a fit leaves out, for the data owner only.

A row is left out if its key repeats, if its parent is not there, or if its unit has too many. No message of a fit says
so. The counts are private: they stand in a file of mode 0600 and in the owner's own terminal, and nowhere else.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import pandas as pd

from doublure.data.relational import open_related
from doublure.data.tables import cells
from doublure.errors import printable
from doublure.schema.relational import RelationalSchema


class LeftOut(NamedTuple):
    """Rows of a table that a fit leaves out for one reason. Private.

    Attributes:
        column: The key, as ``table.column``.
        why: The reason.
        rows: How many rows.
        of: How many rows the table has.
    """

    column: str
    why: str
    rows: int
    of: int

    def __str__(self) -> str:
        return f"{self.why}: {self.rows:,} of {self.of:,} rows are left out"

    @property
    def line(self) -> str:
        """The counts with their column."""
        return f"{printable(self.column)}: {self}"


def rows_left_out(schema: RelationalSchema, data: Any) -> list[LeftOut]:
    """Return how many rows a fit leaves out of each table, and why; nothing where it takes all. Private.

    Args:
        schema: ``max_children`` may be undeclared; then none are too many.
        data: A folder of files, or a mapping of tables.

    Raises:
        DataError: The tables cannot be read, or one is not there.
    """
    source = open_related(data, schema.written)
    source.check(schema)
    root, found = schema.root, list[LeftOut]()
    key = schema.tables[root].key or ""
    keys = _labels(source, schema, root, key)
    repeated = keys.notna() & keys.duplicated()
    named = f"{root}.{key}"
    found.append(LeftOut(named, "has no key", int(keys.isna().sum()), len(keys)))
    found.append(LeftOut(named, "repeats a key of an earlier row", int(repeated.sum()), len(keys)))
    known = set(keys.dropna())
    for name in schema.children:
        table = schema.tables[name]
        owners = _labels(source, schema, name, table.foreign_key or "")
        there = owners.isin(known)
        named = f"{name}.{table.foreign_key}"
        found.append(LeftOut(named, "names no parent", int(owners.isna().sum()), len(owners)))
        missing = int((owners.notna() & ~there).sum())
        found.append(LeftOut(named, f"names no row of {printable(root)}", missing, len(owners)))
        if isinstance(table.max_children, int):
            beyond = int((owners[there].value_counts() - table.max_children).clip(lower=0).sum())
            found.append(LeftOut(named, f"is beyond max_children: {table.max_children}", beyond, len(owners)))
    return [each for each in found if each.rows]


def _labels(source: Any, schema: RelationalSchema, name: str, key: str) -> pd.Series[Any]:
    """Return a key's labels, as a fit reads them; None where a row has none."""
    tokens = schema.tables[name].columns[key].missing_tokens
    parts = [cells.unit_ids(raw[key], key, tokens, "coerce") for raw in source.tables[name].chunks([key])]
    return pd.concat(parts or [pd.Series(dtype=object)], ignore_index=True)
