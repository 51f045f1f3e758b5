"""Count rows of related tables that a fit leaves out, for the data owner only.

A row is left out if it is the root's and its key repeats, if its parent is not there, or if that has too many. No
message of a fit says so. The counts are private: they stand in a file of mode 0600 and in the owner's own terminal, and
nowhere else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from doublure.data.relational import open_related
from doublure.data.relational.opening import LinkedTable
from doublure.errors import counted, printable
from doublure.schema.relational import RelationalSchema

LEFT_OUT, _BARE = "are left out", "stay, and nothing hangs on them"


class LeftOut(NamedTuple):
    """Rows of a table that a fit leaves out for one reason. Private.

    Attributes:
        column: The key, as ``table.column``.
        why: The reason.
        rows: How many rows.
        of: How many rows the table has.
        fate: What becomes of them.
    """

    column: str
    why: str
    rows: int
    of: int
    fate: str = LEFT_OUT

    def __str__(self) -> str:
        return f"{self.why}: {self.rows:,} of {counted(self.of, 'row')} {self.fate}"

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
    found = list[LeftOut]()
    for link in source.linked(schema.model_copy(update={"misfit": "coerce"}), keys_alone=True):
        found += _of_table(schema, link)
    return [each for each in found if each.rows]


def _of_table(schema: RelationalSchema, link: LinkedTable) -> list[LeftOut]:
    """Return what is left out of one table."""
    table, found = schema.tables[link.name], list[LeftOut]()

    def told(key: Sequence[str], why: str, rows: pd.Series[Any] | np.ndarray, fate: str = LEFT_OUT) -> None:
        found.append(LeftOut(f"{link.name}.{', '.join(key)}", why, int(rows.sum()), len(link.unit), fate))

    if link.keys is not None:
        told(table.keys, "has no key", link.keys.isna(), LEFT_OUT if link.owners is None else _BARE)
        repeated = link.keys.notna() & link.keys.duplicated()
        told(table.keys, "repeats a key of an earlier row", repeated, LEFT_OUT if link.owners is None else _BARE)
    if link.owners is not None:
        told(table.foreign_keys, "names no parent", link.owners.isna())
        told(
            table.foreign_keys,
            f"names no row of {printable(table.parent or '')}",
            link.owners.notna().to_numpy() & (link.unit < 0),
        )
        told(table.foreign_keys, "hangs on a row that is left out", (link.unit >= 0) & (link.hangs_on < 0))
        beyond = np.full(1, np.count_nonzero(link.hangs_on >= 0) - len(link.kept))
        told(table.foreign_keys, f"is beyond max_children: {table.max_children}", beyond)
    return found
