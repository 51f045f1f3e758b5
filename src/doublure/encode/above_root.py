"""Child columns that a rule bounds below by a column of their parent, counted by their gap.

Rows then obey the rule as drawn. Of ``{at_most: [customers.since, orders.placed]}`` the time from the customer's first
day to the order is counted. Drawn one by one and put in order afterwards, far too many orders would lie on that day.
Where the bounds of the two have little in common the gap says less than the value (a birth and a stay in one of three
years): then the value is counted, and the rule kept when a unit is decoded (:mod:`doublure.encode.across_tables`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from doublure.encode.columns import encodings
from doublure.encode.numeric import Floats, IntegerEncoding
from doublure.errors import SchemaError
from doublure.networks.related_layout import RootFloor, RootGap
from doublure.schema.columns import Column, IntegerDomain
from doublure.schema.related_constraints import across_calendars, across_tables
from doublure.schema.relational import RelationalSchema
from doublure.schema.rules.calendar_order import comparable, first_at_least

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


def floors_above(schema: RelationalSchema, child: str, head: Sequence[str]) -> tuple[RootFloor, ...]:
    """Return the parent's columns that bound the order of a child's rows from below, and are counted by themselves.

    Args:
        schema: Of all tables.
        child: The table.
        head: The names of what its parent's row has, in order.
    """
    table = schema.tables[child]
    rules, every = schema.constraints, schema.columns
    if table.order is None or table.order in above_root(schema, child):
        return ()
    parent, high = table.parent or "", f"{child}.{table.order}"
    lows = [low for low, other in (*across_tables(rules, every), *across_calendars(rules, every)) if other == high]
    found = []
    for low in lows:
        name = low.partition(".")[2]
        steps, own = _steps(schema, parent, name), _steps(schema, child, table.order)
        if low == f"{parent}.{name}" and name in head and steps is not None and own is not None:
            least = partial(_least_order, every[low], steps, every[high], own)
            found.append(RootFloor(below=head.index(name), least=least))
    return tuple(found)


def _least_order(lower: Column, steps: IntegerDomain, order: Column, own: IntegerDomain, numbers: Floats) -> Floats:
    """Return the least numbers of an order above those of the parent; its first one above what is missing."""
    values = numbers * steps.unit
    least = (first_at_least(lower, order, values) if comparable(lower, order) else values) / own.unit
    found: Floats = np.where(numbers > steps.last, own.first, np.clip(np.ceil(least), own.first, own.last))
    return found


def _steps(schema: RelationalSchema, table: str, name: str) -> IntegerDomain | None:
    """Return a column's numbers; None where it is measured from another of its table, or a fact is not known."""
    try:
        steps = encodings(schema.modelled(table), [name], "steps", 1)[name]
    except SchemaError:
        return None
    return steps.domain if isinstance(steps, IntegerEncoding) else None
