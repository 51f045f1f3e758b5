"""The stages of ``statistics`` on related tables, each a table with one row a unit.

==============  ====================================================================================================
stage           columns, and units that count
==============  ====================================================================================================
the root        the root's columns, and the number of rows of each child table; all units
first rows      those, and the unit's first row of a child table; units with a row
next rows       those, the row before, the next row with its gap, and the number of rows after it; units with two rows
==============  ====================================================================================================

A table that was split (``unit.per_unit``) is judged as one: how the numbers of one row go together comes first. Rows at
any place, or the first ones where there is no order, are counted before all others, and say it for first and next rows,
which count pairs with what is given alone. Related tables count it in each stage.

Why a unit moves one cell of each table by one: the row that it shows follows from its own key and its own number of
rows. So with the unit, one count of one table appears or goes, and no other unit's row changes. What first and next
rows take from that stage is computed from its released counts, and asks for no record.

Of a table whose parent is not the root, a unit shows the rows that hang on one row of the parent. Beside them stand the
columns of that row, with how many rows hang on it, and those of the rows above it.

Each stage is counted and fitted as a single table. At every level a unit adds one to one cell of each table, at any
number of rows; :mod:`doublure.encode.relational` chooses the rows that represent it, of one row of each level. Counting
all k rows in one cell would need k times the noise, and so would the sum of a table for each place; noise relative to
counts is least if each unit counts once.

Counted columns are named ``table.column``, or ``table, before.column`` and the like: no table's name has a comma, so
that these names cannot clash with a column of the schema.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import Any, Literal, TypeAlias

from pydantic import InstanceOf
from typing_extensions import override

from doublure.encode.above_root import above_root
from doublure.encode.columns import integer_domain
from doublure.encode.relational import repeating
from doublure.errors import SchemaError
from doublure.schema import Schema
from doublure.schema.columns import CategoryColumn, CodeColumn, Column, IntegerColumn, IntegerDomain
from doublure.schema.related_table import rows_name
from doublure.schema.relational import RelationalSchema, SchemaItself
from doublure.schema.scalars import EXACT
from doublure.schema.schema import Unit
from doublure.schema.tables import TableSchema

Turn: TypeAlias = Literal["first", "any", "next"]
"""The row of a unit that is counted."""
AS_BEFORE = CategoryColumn(values=(0, 1), missing=False)
"""Whether a cell is as in the row before: like all columns made here, one that is counted and that no schema has."""


@dataclass(frozen=True, kw_only=True)
class Stage:
    """The public facts of one stage.

    Attributes:
        name: The prefix of its releases' purposes.
        child: The place of the child table; -1 for the root.
        turn: Which row of a unit it draws: the ``first``, ``any``, or the ``next``.
        schema: Schema of its table, with a column for each part.
        known: Number of its parts that are given when rows are drawn.
        drawn: Whether what is given is taken from units drawn by the stages before, and not counted again.
        repeats: The places in a row of what may be as in the row before; whether it is, is drawn first.
        told: How many of its parts are numbers of one row; an earlier stage has counted how they go together.
        of_one_table: Whether the tables come out as one.
    """

    name: str
    child: int
    turn: Turn
    schema: TableSchema
    known: int
    drawn: bool = False
    repeats: tuple[int, ...] = ()
    told: int = 0
    of_one_table: bool = False

    @property
    def following(self) -> bool:
        """Whether it is the stage of next rows."""
        return self.turn == "next"

    @property
    def given(self) -> int:
        """Number of its parts that are not counted."""
        return self.known if self.drawn else 0


def list_stages(schema: Schema, *, anywhere: bool) -> tuple[Stage, ...]:
    """Return the stages, in the order of fitting.

    Args:
        schema: The public facts.
        anywhere: Whether rows at any place are counted; else first rows, and all that is given beside them.
    """
    return _listed(SchemaItself(RelationalSchema.of(schema)), anywhere)


@lru_cache(maxsize=4)  # a plan asks forty times
def _listed(key: SchemaItself, anywhere: bool) -> tuple[Stage, ...]:
    related = key.schema
    root = _row_counts(related) | _columns(related, related.root, f"{related.root}.{{}}", together=True)
    found = [_stage(related, f"units of {related.root}", -1, root, 0)]
    for place, name in enumerate(related.children):
        head = _head(related, related.tables[name].parent or "")
        row = _columns(related, name, f"{name}.{{}}", opening=True)
        several, ordered = related.most_of_parent(name) > 1, related.tables[name].order is not None
        beside = len(row) if anywhere and several and ordered and related.of_one_table else 0
        own = _stage(related, f"first rows of {name}", place, head | row, len(head), drawn=anywhere, told=beside)
        if anywhere and several and ordered:
            known = head | {place_name(name): rows_left(related.most_of_parent(name) + 1)}
            at_any = _stage(related, f"rows of {name}", place, known | row, len(known), turn="any", drawn=True)
            found += [at_any, own] if beside else [own, at_any]
        else:
            found.append(own)
        if not several:
            continue
        known = head | {left_name(name): rows_left(related.most_of_parent(name))}
        known |= _columns(related, name, f"{name}, before.{{}}")
        names = own_columns(related, name)
        again = repeating(related, name, names) if anywhere else ()
        same = {same_name(name, each): AS_BEFORE for each in again}
        following = known | same | _columns(related, name, f"{name}.{{}}", gap=True)
        found.append(
            _stage(
                related, f"next rows of {name}", place, following, len(known),
                turn="next", drawn=anywhere, repeats=tuple(map(names.index, again)),
                told=(len(row) - ordered) * (anywhere and related.of_one_table),
            )
        )  # fmt: skip
    return tuple(found)


def _row_counts(schema: RelationalSchema) -> dict[str, Column]:
    """Return how many rows of each child table hang on a row of the root, as columns."""
    return {rows_name(name): schema.row_count(name) for name in schema.hanging(schema.root)}


def _head(schema: RelationalSchema, name: str) -> dict[str, Column]:
    """Return the columns of a row that others hang on, and of those above it.

    Missing is a value here: patterns of missing cells would be a further column that is not given.
    """
    own = {each: _given(column) for each, column in _columns(schema, name, f"{name}.{{}}").items()}
    above = schema.tables[name].parent
    return _row_counts(schema) | own if above is None else own | _head(schema, above)


def stage_purpose(stage: Stage, purpose: str) -> str:
    """Return the purpose of a stage's release in the plan."""
    return f"{stage.name}: {purpose}"


def gap_name(child: str, order: str) -> str:
    """Return the name of the gap from one row to the next."""
    return f"{child}, gap.{order}"


def above_form(form: str, parent: str) -> str:
    """Return the name's form for a column that is counted by its gap above one of the parent."""
    return form.replace(".{}", f", above {parent}.{{}}")


def left_name(child: str) -> str:
    """Return the name of the number of rows after the next one."""
    return f"{child}, left"


def rows_left(most: int) -> IntegerColumn:
    """Return the number of a unit's rows after its next one, as a column.

    Args:
        most: The most rows of a unit, two or more.
    """
    return IntegerColumn(bounds=(0, most - 1), missing=False)


def place_name(child: str) -> str:
    """Return the name of the number of rows before one at any place."""
    return f"{child}, place"


def same_name(child: str, own: str) -> str:
    """Return the name of whether a column is as in the row before."""
    return f"{child}, as before.{own}"


def own_columns(schema: RelationalSchema, name: str) -> list[str]:
    """Return a table's columns that are counted, conditions last."""
    table = schema.with_counts(name)
    steering = table.with_role("condition")
    modelled = [n for n, c in table.columns.items() if c.modelled and n not in {*table.derived, *table.beside}]
    return [*(n for n in modelled if n not in steering), *(n for n in modelled if n in steering)]


def _stage(
    schema: RelationalSchema,
    name: str,
    child: int,
    columns: dict[str, Column],
    known: int,
    *,
    turn: Turn = "first",
    drawn: bool = False,
    repeats: tuple[int, ...] = (),
    told: int = 0,
) -> Stage:
    table = TableSchema(doublure=1, kind="table", unit=Unit(name=schema.unit.name), units=schema.units, columns=columns)
    return Stage(
        name=name, child=child, turn=turn, schema=table, known=known, drawn=drawn, repeats=repeats, told=told,
        of_one_table=schema.of_one_table,
    )  # fmt: skip


def _given(column: Column) -> Column:
    """Return a column above for later stages, where it is no condition any more."""
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
    """Return a table's columns for counting, reduced to their values.

    Args:
        schema: The schema of all tables.
        name: The table's name.
        form: The form of a column's name.
        together: Whether missing cells stay missing, so that their patterns are counted; else they are a value.
        opening: Whether it is the first row, whose order may be counted by its gap above the parent.
        gap: Whether the order is counted by its gap above the row before.
    """
    table, order, parent = schema.with_counts(name), schema.tables[name].order, schema.tables[name].parent or ""
    above = {} if name == schema.root else above_root(schema, name)
    found: dict[str, Column] = {}
    for own in own_columns(schema, name):
        if gap and own == order:
            found[gap_name(name, own)] = order_gap(table, own)
        elif own in above and (own != order or opening):
            found[above_form(form, parent).format(own)] = root_gap(schema, name, own, above[own], together=together)
        else:
            found[form.format(own)] = _counted(table, own, together=together)
    return found


def order_gap(table: TableSchema, own: str) -> Column:
    """Return the gap of an order from one row to the next, as a column."""
    domain = integer_domain(table, own)
    last = max(1, domain.last - domain.first + domain.first % domain.period)
    return _of_domain(replace(domain.gaps(0, last), nullable=0))


def root_gap(schema: RelationalSchema, child: str, own: str, below: str, *, together: bool) -> Column:
    """Return the gap of a column above one of the parent, as a column.

    Args:
        schema: The schema of all tables.
        child: The child table.
        own: Its column.
        below: The parent's column.
        together: Whether missing cells stay missing; else they are a value, the last one.
    """
    domain = integer_domain(schema.modelled(child), own)
    base = integer_domain(schema.modelled(schema.tables[child].parent or ""), below)
    widest = max(1, domain.last - base.first + base.first % domain.period)
    missing = schema.tables[child].columns[own].missing if domain.nullable > 1 else domain.nullable == 1
    gaps = domain.gaps(0, widest)
    return _of_domain(gaps, missing) if together else _of_domain(_missing_as_value(gaps))


def _counted(table: TableSchema, own: str, *, together: bool) -> Column:
    column = table.columns[own]
    try:
        domain = integer_domain(table, own)
    except SchemaError:  # a fact of the column is still to be bought
        missing = column.missing if together else False
        if column.listed:
            roles = tuple(r for r in column.roles if r == "condition")
            return column.model_copy(update={"roles": roles, "missing": missing})
        return column.model_copy(update={"roles": (), "missing": missing})
    if together and column.listed:
        return column.model_copy(update={"roles": tuple(r for r in column.roles if r == "condition")})
    beyond = 0 if together else int(domain.nullable)
    if column.listed:
        values = tuple(range(domain.last + 1 + beyond))
        parents = _parents(domain)
        if parents:
            return CodeColumn(values=values, parents=parents, missing=False)
        return CategoryColumn(values=values, missing=False)
    return _of_domain(domain, column.missing) if together else _of_domain(_missing_as_value(domain))


class _CountedNumber(IntegerColumn):
    """A number as the fit counts it: its public cells, round values and hours decide what is planned.

    Attributes:
        integers: What stands for its values.
    """

    integers: InstanceOf[IntegerDomain]

    @override
    def integer_domain(self) -> IntegerDomain:
        return self.integers


def _of_domain(domain: IntegerDomain, missing: Any = False) -> Column:
    bounds = max(domain.first, -EXACT), min(max(domain.last, domain.first + 1), EXACT)
    return _CountedNumber(bounds=bounds, missing=missing, integers=replace(domain, unit=1.0))


def _missing_as_value(domain: IntegerDomain) -> IntegerDomain:
    return replace(domain, last=domain.last + domain.nullable, nullable=0)


def _parents(domain: IntegerDomain) -> dict[str, str]:
    """Return the group above each value and group of a list of codes; nothing for other columns."""
    levels = domain.nested_levels().tolist()
    names = [[f"{place}.{group}" for group in level] for place, level in enumerate(levels)]
    return dict(
        pair
        for above, below in pairwise([*names, map(str, range(domain.last + 1))])
        for pair in zip(below, above, strict=True)
    )
