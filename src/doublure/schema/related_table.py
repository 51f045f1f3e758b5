"""One of several related tables: its keys, its parent, and how many rows a parent has."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated

from pydantic import BeforeValidator, Field, StrictBool, StrictInt, StrictStr

from doublure.errors import counted, printable
from doublure.schema.columns import AnyColumn, BooleanColumn, Column
from doublure.schema.fact_states import UNDECLARED, Frozen, Learn, Undeclared
from doublure.schema.rules.registry import AnyRule
from doublure.schema.scalars import check_name, whole

NAMES_A_ROW = BooleanColumn(missing=False)
"""Whether a cell names a row."""


class RowLink(Frozen):
    """A column of a table that names a private row beside the parent's: of the same unit, or of another one.

    ``links: {answers: {to: posts, match: [topic], acyclic: true}}`` says that a post's column ``answers`` names another
    post of its unit. The topic of that row is looked up and counted as a column of the post. A synthetic post names one
    of its unit's posts with such a topic. A row of the root belongs to another unit: its cells are never looked up, and
    ``match: {boss_level: level}`` names columns that the row has itself. No identity is learned.

    Attributes:
        to: The table of the named row.
        match: Columns of the named row that are looked up within the unit; or own column -> the named row's column
            that holds the same, where the row is of the root. Where no row has all of them, the last give way first.
        acyclic: Whether no chain of rows that name one another comes back.
    """

    to: StrictStr
    match: Mapping[StrictStr, StrictStr] | tuple[StrictStr, ...] = ()
    acyclic: StrictBool = False

    @property
    def looked_up(self) -> tuple[str, ...]:
        """The columns of the named row that are looked up."""
        return () if isinstance(self.match, Mapping) else self.match

    def pairs(self, own: str) -> tuple[tuple[str, str], ...]:
        """Return the columns of the row, and of the row that it names, that hold the same.

        Args:
            own: The column that names the row.
        """
        found = (
            self.match if isinstance(self.match, Mapping) else {looked_up_name(own, each): each for each in self.match}
        )
        return tuple(found.items())

    def columns_of(self, own: str, columns: Mapping[str, Column]) -> dict[str, Column]:
        """Return what is counted of it: whether it names a row, and what is looked up of that one.

        Args:
            own: The column that names the row.
            columns: Of the table that it names.
        """
        found: dict[str, Column] = {own: NAMES_A_ROW}
        for each in self.looked_up:
            column = columns[each]
            missing = column.missing if column.may_be_missing else True
            plain = {"roles": (), "missing": missing} | ({"shares": None} if column.listed else {})
            found[looked_up_name(own, each)] = column.model_copy(update=plain)
        return found


def looked_up_name(own: str, column: str) -> str:
    """Return the name of what is looked up of a row that a column names."""
    return f"{column} of {own}"


MOST_CHILDREN = 1_000
MOST_OF_UNIT = 10_000
"""Most rows of one table that a unit may have over all levels: a unit is drawn whole, in places for all of them."""
_NAME = re.compile(r"\w[\w -]{0,99}")


def _one_name(value: object) -> object:
    """Refuse a list where one name is meant: several parents."""
    if isinstance(value, (list, tuple)):
        raise ValueError(
            "names several; name the parent with which a row belongs to a unit, and others in links or public"
        )
    return value


def _in_brackets(value: object) -> object:
    """Return a key of one column in brackets as one without."""
    return value[0] if isinstance(value, (list, tuple)) and len(value) == 1 else value


_Name = Annotated[StrictStr, BeforeValidator(_one_name)]
_Key = Annotated[StrictStr | tuple[StrictStr, ...], BeforeValidator(_in_brackets)]
_Children = Annotated[StrictInt, Field(ge=1, le=MOST_CHILDREN), BeforeValidator(whole)]


class RelatedTable(Frozen):
    """One table.

    Attributes:
        key: The column, or columns, that tell its rows apart; a table on which others hang needs it.
        parent: The table whose rows it belongs to; the root has none.
        foreign_key: The column, or columns, that hold the parent's key.
        max_children: How many rows one parent has at most: public, and what more there are is left out. A draft has it
            undeclared.
        order: The column by which a parent's rows follow one another: a number, a date or a moment.
        references: Column -> the public table whose keys it holds.
        links: Column -> what is kept of the private row, beside the parent's, that it names.
        columns: Name -> what is known of it. Keys are listed with ``type: id``.
        constraints: Rules that look at this table alone, by its own names.
    """

    key: _Key | None = None
    parent: _Name | None = None
    foreign_key: _Key | None = None
    max_children: _Children | Undeclared | None = None
    order: StrictStr | None = None
    references: Mapping[str, StrictStr] | None = None
    links: Mapping[str, RowLink] | None = None
    columns: Mapping[str, AnyColumn]
    constraints: tuple[AnyRule, ...] = ()

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns of its key."""
        return (self.key,) if isinstance(self.key, str) else self.key or ()

    @property
    def foreign_keys(self) -> tuple[str, ...]:
        """The columns of its foreign key, in the order of the parent's key."""
        return (self.foreign_key,) if isinstance(self.foreign_key, str) else self.foreign_key or ()

    @property
    def unmodelled(self) -> tuple[str, ...]:
        """The columns that are keys, or of which nothing else is learned."""
        return tuple(name for name, column in self.columns.items() if not column.modelled)


def check_table(name: str, table: RelatedTable, tables: Mapping[str, RelatedTable]) -> None:
    """Refuse a table that could not be read, or belongs to none.

    Raises:
        ValueError: With a message for the schema's author.
    """
    shown = printable(name)
    if _NAME.fullmatch(name) is None:
        raise ValueError(f"the table {shown} is named for a file; use letters, digits, spaces, - and _ alone")
    for column in table.columns:
        check_name(column)
    if len(table.unmodelled) == len(table.columns):
        raise ValueError(f"{shown} has only ids or others that are not learned; describe at least one to learn")
    for own, described in table.columns.items():
        if "weight" in described.roles:
            raise ValueError(f"{printable(own)} of {shown} is a weight; only one table by itself has one")
    if table.parent is None:
        if table.key is None:
            raise ValueError(f"{shown} is the root, and its rows are the units; name its key")
        if table.foreign_key or table.max_children or table.order:
            raise ValueError(f"{shown} is the root; foreign_key, max_children and order go with a parent")
    else:
        _check_child(shown, table, tables)
    for role, names in (("key", table.keys), ("foreign_key", table.foreign_keys)):
        for named in names:
            if not (named in table.columns and table.columns[named].identifies):
                raise ValueError(f"{role} of {shown} names {printable(named)}; describe that column with type: id")
        if len({*names}) != len(names):
            raise ValueError(f"{role} of {shown} names a column twice; name each once")
    if table.keys and {*table.keys} <= {*table.foreign_keys}:
        raise ValueError(f"{shown} has one column for key and foreign_key; leave key out")


def _check_child(shown: str, table: RelatedTable, tables: Mapping[str, RelatedTable]) -> None:
    parent = tables.get(table.parent or "")
    if parent is table:
        raise ValueError(f"{shown} is its own parent; name the table above it, and its own rows in links")
    if parent is None:
        raise ValueError(f"{shown} has a parent that is none of the tables; name one of them")
    if parent.key is None:
        raise ValueError(f"{printable(table.parent or '')} is a parent; name its key")
    if table.foreign_key is None:
        raise ValueError(f"{shown} has a parent; name the foreign_key that holds its key")
    if table.max_children is None:
        raise ValueError(f"{shown} has a parent; declare max_children, which is public")
    if len(table.foreign_keys) != len(parent.keys):
        raise ValueError(
            f"foreign_key of {shown} has not as many columns as the key that it holds; name them in its order"
        )
    for own, held in zip(table.foreign_keys, parent.keys, strict=True):
        if own in table.columns and table.columns[own].told:
            raise ValueError(f"foreign_key of {shown} has a pattern, and follows {printable(held)}; leave it out")
    for name, column in table.columns.items():
        if "condition" in column.roles:
            raise ValueError(f"{printable(name)} of {shown} is a condition; only columns of the root can be")
    if table.order is None:
        return
    order = table.columns.get(table.order)
    if order is None or not order.bounded:
        raise ValueError(f"order of {shown} must be a number, a date or a moment; name such a column")
    if order.missing not in (False, UNDECLARED) or isinstance(order.fact("bounds"), Learn):
        raise ValueError(f"order of {shown} needs missing: false and declared bounds; declare them")


def check_levels(tables: Mapping[str, RelatedTable]) -> None:
    """Refuse tables that hang on one another in a circle, and units of too many rows.

    Raises:
        ValueError: With a message for the schema's author.
    """
    for name, table in tables.items():
        seen, most, above = {name}, 1, table
        while above.parent is not None:
            if above.parent in seen:
                raise ValueError(f"{printable(name)} hangs on itself through its parents; name the table above it")
            seen.add(above.parent)
            most *= above.max_children if isinstance(above.max_children, int) else 1
            above = tables[above.parent]
        if most > MOST_OF_UNIT:
            raise ValueError(
                f"{printable(name)} may have {counted(most, 'row')} a unit, max_children of all levels multiplied; "
                f"declare fewer, at most {MOST_OF_UNIT:,}"
            )
        taken = [rows_name(child) for child, each in tables.items() if each.parent == name]
        for column in table.columns:
            if column in taken:
                raise ValueError(
                    f"{printable(name)} has a column {printable(column)}, as its rows are counted; rename it"
                )


def check_links(tables: Mapping[str, RelatedTable], unit: str) -> None:
    """Refuse columns that could name no row, and what cannot be protected.

    Args:
        tables: All tables.
        unit: The name of a unit.

    Raises:
        ValueError: With a message for the schema's author.
    """
    for name, table in tables.items():
        for own, link in (table.links or {}).items():
            fault = _fault(tables, name, own, link, unit)
            if fault is not None:
                raise ValueError(f"{printable(f'{name}.{own}')} {fault}")


def _fault(tables: Mapping[str, RelatedTable], name: str, own: str, link: RowLink, unit: str) -> str | None:
    table, named, shown = tables[name], tables.get(link.to), printable(link.to)
    column = table.columns.get(own)
    if column is None or not column.identifies or column.told:
        return "is linked; describe it with type: id alone"
    if own in (*table.keys, *table.foreign_keys):
        return "is a key, and linked; keep one of the two"
    if named is None:
        return f"is linked to {shown}, which is no private table; name one that hangs on the root, or use references"
    if len(named.keys) != 1:
        return f"is linked to {shown}, which has no key of one column; give it one"
    if link.acyclic and link.to != name:
        return f"names rows of {shown}, so that there is no circle; leave acyclic out"
    if named.parent is None and link.looked_up:
        return (
            f"names another {unit}, whose cells do not count for this one; "
            "match its columns by columns of the row itself, as {column: its column}, or leave match out"
        )
    if named.parent is not None and isinstance(link.match, Mapping) and link.match:
        return f"names rows of its own {unit}; list columns of {shown} in match"
    for mine, theirs in link.pairs(own):
        held, kept = named.columns.get(theirs), table.columns.get(mine)
        if held is None or not held.modelled or held.learned:
            return f"matches {printable(theirs)}, which is no column of {shown} with declared facts; name one"
        if not link.looked_up and (kept is None or not kept.modelled or not kept.alike(held)):
            return f"matches {printable(mine)}, which is no column like {printable(theirs)}; name one of its type"
    if len({*link.looked_up}) != len(link.looked_up):
        return "matches a column twice; name each once"
    taken = [each for each in link.looked_up if looked_up_name(own, each) in table.columns]
    return (
        f"is counted with a column {printable(looked_up_name(own, taken[0]))}; rename the one there" if taken else None
    )


def rows_name(child: str) -> str:
    """Return the name of the number of rows of a child table that one row of its parent has."""
    return f"rows of {child}"
