"""Columns of a child table that a row often has as the row before: a team, a payer, an address.

They are counted with one value more, which says that a row's cell is as in the row before. One cell of a noisy table
then holds what the diagonal of a table of all values with all values holds in as many cells as there are values.
"""

from __future__ import annotations

from collections.abc import Sequence

from doublure.schema.relational import RelationalSchema

_FEWEST = 9
"""Fewest values for which one cell holds what several do."""


def repeating(schema: RelationalSchema, child: str, columns: Sequence[str]) -> tuple[str, ...]:
    """Return those columns: lists without an order, of nine values or more.

    Args:
        schema: Of all tables.
        child: The table.
        columns: Columns of its rows.
    """
    facts = schema.tables[child].columns
    listed = [name for name in columns if name in facts and facts[name].listed and not facts[name].ordered]
    return tuple(name for name in listed if not 0 < len(facts[name].domain) < _FEWEST)
