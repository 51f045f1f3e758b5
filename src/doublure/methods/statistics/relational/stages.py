"""The stages of ``statistics`` on related tables: each is a table with one row a unit, counted and fitted as one is.

==============  ====================================================================================================
stage           one row a unit, of
==============  ====================================================================================================
the root        the root's columns, and how many rows there are of each child table
first rows      those, and the unit's first row of a child table; units that have one
next rows       those, the row before, and the next one with its gap, and how many follow it; units that have two
==============  ====================================================================================================

A unit adds one to one cell of each table, however many rows it has: which of its rows it shows is settled
(:mod:`doublure.encode.relational`). Counting all of them, k in one cell, would ask for k times the noise, and so would
the sum of a table for each place; the noise beside what is counted is least where each unit counts once.

What is counted is called ``table.column``, or ``table, before.column`` and the like: a comma is in no table's name, so
that no column of anybody's can have that name.
"""

from __future__ import annotations

from dataclasses import dataclass

from doublure.encode.above_root import above_root
from doublure.encode.columns import integer_domain
from doublure.errors import SchemaError
from doublure.schema import Schema
from doublure.schema.columns import CategoryColumn, Column, IntegerColumn
from doublure.schema.relational import RelationalSchema
from doublure.schema.scalars import EXACT
from doublure.schema.schema import Unit
from doublure.schema.tables import TableSchema


@dataclass(frozen=True, kw_only=True)
class Stage:
    """One stage, as far as it is public.

    Attributes:
        name: What its releases are told apart by.
        child: The place of the child table; -1 of the root.
        following: Whether it is about next rows.
        schema: Of its table: as many columns as parts, each of as many values as it has.
        known: How many of its parts are given when rows are drawn.
    """

    name: str
    child: int
    following: bool
    schema: TableSchema
    known: int


def stages_of(schema: Schema) -> tuple[Stage, ...]:
    """Return the stages, in the order in which they are fitted."""
    related = RelationalSchema.of(schema)
    head = {count_name(name): count_of(related, name) for name in related.children}
    head |= _columns(related, related.root, f"{related.root}.{{}}", together=True)
    found = [_stage(related, f"units of {related.root}", -1, False, head, 0)]
    head = {count_name(name): count_of(related, name) for name in related.children}
    head |= {
        name: _given(column) for name, column in _columns(related, related.root, f"{related.root}.{{}}").items()
    }  # missing as a value: which are missing together would be a column more, and none of what is given
    for place, name in enumerate(related.children):
        first = head | _columns(related, name, f"{name}.{{}}", opening=True)
        found.append(_stage(related, f"first rows of {name}", place, False, first, len(head)))
        if related.most(name) > 1:
            known = head | {left_name(name): rows_left(related.most(name))}
            known |= _columns(related, name, f"{name}, before.{{}}")
            following = known | _columns(related, name, f"{name}.{{}}", gap=True)
            found.append(_stage(related, f"next rows of {name}", place, True, following, len(known)))
    return tuple(found)


def purpose_of(stage: Stage, purpose: str) -> str:
    """Return what a stage's release is called in the plan."""
    return f"{stage.name}: {purpose}"


def count_name(child: str) -> str:
    """Return what the number of a unit's rows of a child table is called."""
    return f"rows of {child}"


def gap_name(child: str, order: str) -> str:
    """Return what the gap from one row to the next is called."""
    return f"{child}, gap.{order}"


def above_form(form: str, root: str) -> str:
    """Return how a column is called that is counted by its gap above one of the root."""
    return form.replace(".{}", f", above {root}.{{}}")


def left_name(child: str) -> str:
    """Return what is called how many rows follow the next one."""
    return f"{child}, left"


def rows_left(most: int) -> IntegerColumn:
    """Return what is known of how many rows of a unit follow its next one.

    Args:
        most: The most rows of a unit, two or more.
    """
    return IntegerColumn(bounds=(0, most - 1), missing=False)


def _stage(
    schema: RelationalSchema, name: str, child: int, following: bool, columns: dict[str, Column], known: int
) -> Stage:
    table = TableSchema(doublure=1, kind="table", unit=Unit(name=schema.unit.name), units=schema.units, columns=columns)
    return Stage(name=name, child=child, following=following, schema=table, known=known)


def count_of(schema: RelationalSchema, name: str) -> Column:
    """Return how many rows a unit has of a child table, as a column."""
    return IntegerColumn(bounds=(0, schema.most(name)), missing=False)


def _given(column: Column) -> Column:
    """Return a column of the root as later stages have it: nothing is asked for by it any more."""
    return column.model_copy(update={"roles": (), "shares": None} if column.listed else {"roles": ()})


def _columns(
    schema: RelationalSchema,
    name: str,
    form: str,
    *,
    together: bool = False,
    opening: bool = False,
    gap: bool = False,
) -> dict[str, Column]:
    """Return a table's columns as they are counted: as many values each, and nothing else of it.

    Args:
        schema: Of all tables.
        name: The table's.
        form: What a column is called.
        together: Whether missing cells stay what they are, so that it is counted which are missing together; else
            they are a value like others.
        opening: Whether it is the first row, whose order may be told by its gap above the root.
        gap: Whether the order is told by its gap above the row before.
    """
    table, order = schema.modelled(name), schema.tables[name].order
    above = {} if name == schema.root else above_root(schema, name)
    steering = table.with_role("condition")
    modelled = [n for n, c in table.columns.items() if c.modelled and n not in table.derived]
    found: dict[str, Column] = {}
    for own in [*(n for n in modelled if n not in steering), *(n for n in modelled if n in steering)]:
        if gap and own == order:
            found[gap_name(name, own)] = gap_of(table, own)
        elif own in above and (own != order or opening):
            found[above_form(form, schema.root).format(own)] = above_of(
                schema, name, own, above[own], together=together
            )
        else:
            found[form.format(own)] = _counted(table, own, together=together)
    return found


def gap_of(table: TableSchema, own: str) -> Column:
    """Return the gap of an order from one row to the next, as a column."""
    domain = integer_domain(table, own)
    return IntegerColumn(bounds=(0, max(1, domain.last - domain.first)), missing=False)


def above_of(schema: RelationalSchema, child: str, own: str, below: str, *, together: bool) -> Column:
    """Return the gap of a column above one of the root, as a column.

    Args:
        schema: Of all tables.
        child: The table.
        own: The column.
        below: The root's.
        together: Whether missing cells stay what they are; else they are a value like others, the last.
    """
    domain = integer_domain(schema.modelled(child), own)
    base = integer_domain(schema.modelled(schema.root), below)
    widest = max(1, domain.last - base.first)
    beyond = 0 if together else int(domain.nullable)
    return IntegerColumn(bounds=(0, widest + beyond), missing=domain.nullable if together else False)


def _counted(table: TableSchema, own: str, *, together: bool) -> Column:
    column = table.columns[own]
    try:
        domain = integer_domain(table, own)
    except SchemaError:  # a fact of it is to be learned
        missing = column.missing if together else False
        if column.listed:
            roles = tuple(r for r in column.roles if r == "condition")
            return column.model_copy(update={"roles": roles, "missing": missing})
        return IntegerColumn(missing=missing)
    if together and column.listed:
        return column.model_copy(update={"roles": tuple(r for r in column.roles if r == "condition")})
    missing = column.missing if together else False
    beyond = 0 if together else int(domain.nullable)
    if column.listed:
        return CategoryColumn(values=tuple(range(domain.last + 1 + beyond)), missing=False)
    return IntegerColumn(bounds=_held(domain.first, max(domain.last + beyond, domain.first + 1)), missing=missing)


def _held(first: int, last: int) -> tuple[int, int]:
    """Return bounds that a schema can hold; a bought one may lie a step beyond."""
    return max(first, -EXACT), min(last, EXACT)
