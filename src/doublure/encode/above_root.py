"""Child columns that a rule bounds below by a column of their parent, counted by their gap.

Rows then obey the rule as drawn. Of ``{at_most: [customers.since, orders.placed]}`` the time from the customer's first
day to the order is counted. Drawn one by one and put in order afterwards, far too many orders would lie on that day.
Where the bounds of the two have little in common the gap says less than the value (a birth and a stay in one of three
years): then the value is counted, and the rule kept when a unit is decoded (:mod:`doublure.encode.across_tables`).
"""

from __future__ import annotations

from collections.abc import Sequence

from doublure.encode.columns import encodings
from doublure.encode.numeric import IntegerEncoding
from doublure.errors import SchemaError
from doublure.networks.related_layout import RootGap
from doublure.schema.columns import IntegerDomain
from doublure.schema.related_constraints import across_tables
from doublure.schema.relational import RelationalSchema

_IN_COMMON = 0.5
"""A gap is counted where the bounds of both share this much of what either covers."""


def above_root(schema: RelationalSchema, child: str) -> dict[str, str]:
    """Return the columns of a child table that are counted by their gap: each with the column of the parent below it.

    Args:
        schema: Declared bounds are all that is looked at.
        child: The table.
    """
    found: dict[str, str] = {}
    for low, high in across_tables(schema.constraints, schema.columns):
        (table, _, own), (below_table, _, below) = high.partition("."), low.partition(".")
        if table != child or below_table != schema.tables[child].parent or own in found:
            continue
        one, other = _steps(schema, below_table, below), _steps(schema, child, own)
        if one is None or other is None or one.unit != other.unit:
            continue
        shared = min(one.last, other.last) - max(one.first, other.first)
        if shared > _IN_COMMON * (max(one.last, other.last) - min(one.first, other.first)):
            found[own] = below
    return found


def places_above(schema: RelationalSchema, child: str, own: Sequence[str], head: Sequence[str]) -> tuple[RootGap, ...]:
    """Return where those columns stand, and within which numbers.

    Args:
        schema: Of all tables.
        child: The table.
        own: The columns of its rows, in order.
        head: The names of what its parent's row has, in order.
    """
    found, parent = [], schema.tables[child].parent or ""
    for name, below in above_root(schema, child).items():
        steps, base = _steps(schema, child, name), _steps(schema, parent, below)
        if steps is not None and base is not None:
            found.append(
                RootGap(
                    place=own.index(name),
                    below=head.index(below),
                    first=base.first,
                    last=base.last,
                    highest=steps.last,
                    period=steps.period,
                )
            )
    return tuple(found)


def _steps(schema: RelationalSchema, table: str, name: str) -> IntegerDomain | None:
    """Return a column's numbers; None where it is measured from another of its table, or a fact is not known."""
    try:
        steps = encodings(schema.modelled(table), [name], "steps", 1)[name]
    except SchemaError:
        return None
    return steps.domain if isinstance(steps, IntegerEncoding) else None
