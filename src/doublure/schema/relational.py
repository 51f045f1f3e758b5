"""The public facts of related tables: a root table whose rows are units, and its child tables.

A unit is one row of the root with all rows that refer to it, and all that refer to these. The rows kept of a unit
follow from public rules that look at that unit alone: the first row of a key, at most ``max_children`` rows of each
child table for a row of its parent, the first ones by ``order`` or, without one, in the order of the file. Rows whose
parent is not there are left out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, ClassVar, Literal, Self

from pydantic import model_validator
from typing_extensions import override

from doublure.errors import SchemaError, SettingError, counted, printable
from doublure.schema.columns import Column, IntegerColumn
from doublure.schema.fact_states import UNDECLARED, plain
from doublure.schema.public_table import PublicTable, check_references, with_keys
from doublure.schema.related_constraints import (
    JoinedRule,
    RelatedConstraint,
    across_calendars,
    across_tables,
    check_joined,
    check_related,
    check_within,
    joined_rules,
    sums,
    within_table,
)
from doublure.schema.related_table import RelatedTable, check_levels, check_links, check_table, rows_name
from doublure.schema.resolving import agree
from doublure.schema.rules.rule_set import derived_sources
from doublure.schema.schema import ResolvedSchema, Schema, Unit
from doublure.schema.tables import ResolvedTableSchema, TableSchema
from doublure.schema.written import TextForm, Written
from doublure.support import yaml12 as yaml_text

MOST_TABLES = 50


class RelationalSchema(TextForm, Schema):
    """The public facts of related tables."""

    kind: Literal["relational"]
    tables: Mapping[str, RelatedTable]
    public: Mapping[str, PublicTable] | None = None
    constraints: tuple[RelatedConstraint, ...] = ()

    one_record: ClassVar[bool] = True
    asked_by_cells: ClassVar[bool] = True
    of_one_table: ClassVar[bool] = False
    """Whether its tables come out as one, so that relations from one to the other are relations of columns."""
    _table_model: ClassVar[type[TableSchema]] = TableSchema

    @model_validator(mode="before")
    @classmethod
    def _with_keys(cls, data: Any) -> Any:
        return with_keys(data)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if not 2 <= len(self.tables) <= MOST_TABLES:
            raise ValueError(f"tables must be 2 to {MOST_TABLES}; of one table, write kind: table")
        if self.unit.id is not None or self.unit.max_records != 1 or self.unit.each_record:
            raise ValueError("unit is a row of the root with all that hangs on it; give unit its name alone")
        roots = [name for name, table in self.tables.items() if table.parent is None]
        if len(roots) != 1:
            raise ValueError(_no_root(self.tables, roots))
        for name, table in self.tables.items():
            check_table(name, table, self.tables)
        check_levels(self.tables)
        check_references(self.tables, self.public or {})
        check_links(self.tables, self.unit.name)
        if len(self.with_role("target")) > 1:
            raise ValueError("two columns have the role target; keep one")
        check_related(self.constraints, self.tables)
        ordered = (*across_tables(self.constraints, self.columns), *across_calendars(self.constraints, self.columns))
        check_joined(self.joined_rules, ordered, self.columns)
        for name, table in self.tables.items():
            check_within(name, table, self.follows)
            self.table(name)
        return self

    @property
    @override
    def assumed(self) -> tuple[str, ...]:
        key = self.shown_key(self.root)
        inner = (name for name in self.children if self.hanging(name))
        return (
            f"{key} names each {self.unit.name} the same way in every table",
            *(f"{self.shown_key(name)} names a row of one {self.unit.name} alone" for name in inner),
            *(f"the table {printable(name)} is public, and copied as it is" for name in self.public or {}),
            *(self._linked(name, own) for name, table in self.tables.items() for own in table.links or {}),
        )

    def _linked(self, name: str, own: str) -> str:
        """Return what is protected of a column that names rows beside the parent's."""
        shown, link = printable(f"{name}.{own}"), (self.tables[name].links or {})[own]
        if link.to == self.root:
            return (
                f"{shown} names another {self.unit.name}: whether a row names one is protected with that row, "
                "and the one that it names is neither looked at nor kept"
            )
        return (
            f"{shown} names a row of the same {self.unit.name}, of whom alone it is looked up, and another one is drawn"
        )

    @property
    @override
    def copied(self) -> Mapping[str, Column]:
        public = self.public or {}
        return {f"{name}.{own}": each for name, table in public.items() for own, each in table.described.items()}

    # -- tables --------------------------------------------------------------------------------------------------

    @property
    def root(self) -> str:
        """The table whose rows are the units."""
        return next(name for name, table in self.tables.items() if table.parent is None)

    def shown_key(self, name: str) -> str:
        """Return the name of a table's key in a message."""
        return " and ".join(printable(f"{name}.{own}") for own in self.tables[name].keys)

    def _form(self, name: str, own: str) -> dict[str, Any]:
        """Return the form of a key, which a foreign key has from the one that it holds."""
        table = self.tables[name]
        if own in (table.links or {}):
            named = (table.links or {})[own].to
            return {"missing": True} | self._form(named, *self.tables[named].keys)
        if table.parent is None or own not in table.foreign_keys:
            return dict(table.columns[own].told)
        return self._form(table.parent, self.tables[table.parent].keys[table.foreign_keys.index(own)])

    @property
    def children(self) -> tuple[str, ...]:
        """The tables that hang on it: level by level, each in file order."""
        hanging = (name for name, table in self.tables.items() if table.parent is not None)
        return tuple(sorted(hanging, key=lambda name: len(self.above(name))))

    def above(self, name: str) -> tuple[str, ...]:
        """Return the tables above one: its parent, that one's, up to the root."""
        parent = self.tables[name].parent
        return () if parent is None else (parent, *self.above(parent))

    def hanging(self, name: str) -> tuple[str, ...]:
        """Return the tables whose parent is this one."""
        return tuple(child for child in self.children if self.tables[child].parent == name)

    def most_of_parent(self, name: str) -> int:
        """Return how many rows of a table one row of its parent has at most."""
        most = self.tables[name].max_children
        if isinstance(most, str):
            field = f"tables.{name}.max_children"
            raise SchemaError("is not known yet", field=field, remedy="declare how many rows a unit has at most")
        return most or 1

    def most(self, name: str) -> int:
        """Return how many rows of a table one unit has at most: a row of each level has as many as it may."""
        return math.prod(map(self.most_of_parent, (name, *self.above(name))))

    def table(self, name: str) -> TableSchema:
        """Return one table's own schema, with the constraints that look at no other; every fact known if here is."""
        return _table(SchemaItself(self), name)

    def named_in_unit(self, name: str) -> bool:
        """Whether rows of a table are named by others of their unit, beside those that hang on them."""
        links = [link for table in self.tables.values() for link in (table.links or {}).values()]
        return name != self.root and any(link.to == name for link in links)

    @property
    @override
    def each_table(self) -> Mapping[str, TableSchema]:
        return {f"tables.{name}.": self.table(name) for name in self.tables}

    def modelled(self, name: str) -> TableSchema:
        """Return the same without what follows from other tables, and with what is counted of rows that are named."""
        table, follows = self.linked(name), self.follows
        left = {own: column for own, column in table.columns.items() if f"{name}.{own}" not in follows}
        return table.model_copy(update={"columns": left})

    def linked(self, name: str) -> TableSchema:
        """Return the same with what is counted of rows that are named, in place of the columns that name them."""
        table, links = self.table(name), self.tables[name].links or {}
        columns = {own: column for own, column in table.columns.items() if own not in links}
        for own, link in links.items():
            columns |= link.columns_of(own, self.tables[link.to].columns)
        return table.model_copy(update={"columns": columns}) if links else table

    def public_schema(self, name: str) -> TableSchema:
        """Return the schema of a public table's rows."""
        columns = {} if self.public is None else self.public[name].described
        return self.table(self.root).model_copy(update={"columns": columns, "constraints": ()})

    def with_counts(self, name: str) -> TableSchema:
        """Return the same with how many rows each row has of the tables that hang on it; the root's are apart."""
        table = self.modelled(name)
        below = () if name == self.root else self.hanging(name)
        counts = {rows_name(child): self.row_count(child) for child in below}
        return table.model_copy(update={"columns": counts | dict(table.columns)}) if counts else table

    def row_count(self, name: str) -> Column:
        """Return the number of rows that one row of the parent has, as a column."""
        return IntegerColumn(bounds=(0, self.most_of_parent(name)), missing=False)

    @property
    def sums(self) -> dict[str, str]:
        """Columns of the root that are sums over children: ``{total: of}``."""
        return sums(self.constraints)

    @property
    def joined_rules(self) -> tuple[JoinedRule, ...]:
        """The rules that compute a column of a child table, from its own row and its unit's."""
        return joined_rules(self.constraints)

    @property
    @override
    def sources(self) -> dict[str, tuple[str, ...]]:
        within = {
            f"{name}.{own}": tuple(f"{name}.{each}" for each in found)
            for name, table in self.tables.items()
            for own, found in derived_sources(table.constraints).items()
        }
        joined = {each.of: tuple(each.places[name] for name in each.rule.sources) for each in self.joined_rules}
        return {**super().sources, **within, **joined}

    @property
    @override
    def explained_rules(self) -> tuple[str, ...]:
        within = (
            f"{printable(name)}: {rule.explain(table.columns)}"
            for name, table in self.tables.items()
            for rule in table.constraints
        )
        return (*super().explained_rules, *within)

    @property
    def follows(self) -> frozenset[str]:
        """The columns that follow from other tables."""
        return frozenset({*self.sums, *(each.of for each in self.joined_rules)})

    # -- columns -------------------------------------------------------------------------------------------------

    @property
    def columns(self) -> Mapping[str, Column]:
        """All columns, as ``table.column``; foreign keys have the form of the key that they name."""
        found = {}
        for name, table in self.tables.items():
            for own, each in table.columns.items():
                form = self._form(name, own) if own in (*table.foreign_keys, *(table.links or {})) else {}
                found[f"{name}.{own}"] = each.model_copy(update=form) if form else each
        return found

    @override
    def asked(self, name: str) -> str:
        """Return which column a sample is asked by: one of the root may be named without its table.

        Raises:
            SettingError: It is another table's.
        """
        known = name in self.tables[self.root].columns
        found = f"{self.root}.{name}" if known else name
        children = [table for key, table in self.tables.items() if key != self.root]
        other = found in self.columns and found.partition(".")[0] != self.root
        if other or (not known and any(name in table.columns for table in children)):
            remedy = f"ask for columns of {printable(self.root)}"
            raise SettingError("is no column of the root", field=f"given {printable(name)}", remedy=remedy)
        return found

    @property
    @override
    def written(self) -> Written | None:
        return self.written_as(self.columns)

    @property
    @override
    def undeclared(self) -> tuple[str, ...]:
        open_ones = (f"tables.{name}.max_children" for name, t in self.tables.items() if t.max_children == UNDECLARED)
        return (*super().undeclared, *open_ones)

    @property
    @override
    def summary(self) -> str:
        return counted(len(self.tables), "table")

    @override
    def path_of(self, name: str) -> str:
        table, _, column = name.partition(".")
        return f"tables.{table}.columns.{column}"

    @override
    def cells_of(self, column: str | None, fact: str) -> int:
        return 1 if column is None else self.most(column.partition(".")[0])

    # -- in the file ---------------------------------------------------------------------------------------------

    @override
    def _place(self, data: dict[str, Any], column: str) -> dict[str, Any]:
        table, _, own = column.partition(".")
        place: dict[str, Any] = data["tables"][table]["columns"][own]
        return place

    @override
    def to_plain(self) -> dict[str, Any]:
        data = super().to_plain()
        data["unit"] = {"name": self.unit.name}
        for name, table in self.tables.items():
            columns = self.table(name).to_plain()["columns"]
            facts = table.model_dump(mode="json", exclude={"columns", "constraints"}, exclude_none=True)
            rules = {"constraints": [plain(each) for each in table.constraints]} if table.constraints else {}
            data["tables"][name] = facts | {"columns": columns} | rules
        if not self.public:
            data.pop("public", None)
        if self.constraints:
            data["constraints"] = [plain(each) for each in self.constraints]
        else:
            data.pop("constraints", None)
        return data

    @override
    def to_yaml(self) -> str:
        data = self.to_plain()
        tables, constraints = data.pop("tables"), data.pop("constraints", None)
        public = data.pop("public", None)
        text = yaml_text.dump(data) + "tables:\n"
        for name, table in tables.items():
            columns = table.pop("columns")
            text += f"  {yaml_text.inline(name)}:\n"
            text += "".join(f"    {key}: {yaml_text.inline(value)}\n" for key, value in table.items())
            text += "    columns:\n"
            text += "".join(
                f"      {yaml_text.inline(own)}: {yaml_text.inline(column)}\n" for own, column in columns.items()
            )
        text += "" if public is None else yaml_text.dump({"public": public})
        return text if constraints is None else text + yaml_text.dump({"constraints": constraints})

    @classmethod
    @override
    def _check_keys(cls, data: Mapping[str, Any]) -> None:
        tables = data.get("tables")
        for name, table in tables.items() if isinstance(tables, dict) else ():
            columns = table.get("columns") if isinstance(table, dict) else None
            for key in (name, *(columns if isinstance(columns, dict) else ())):
                if not isinstance(key, str):
                    field = f"tables.{yaml_text.inline(key)}"
                    raise SchemaError("is a name that YAML reads as no text", field=field, remedy="put it in quotes")

    @override
    def _fixed(self, learned: Mapping[str, Any]) -> dict[str, Any]:
        return agree(self.columns, self.constraints, learned, self.path_of)


def _no_root(tables: Mapping[str, RelatedTable], roots: list[str]) -> str:
    """Return why tables have no root, or several: a parent is forgotten, or people of two kinds are private."""
    keys = [{*tables[name].keys} for name in roots]
    shared = any(key <= {*tables[name].columns} for at, name in enumerate(roots) for key in keys[:at] + keys[at + 1 :])
    if shared or any(tables[name].foreign_key for name in roots) or not roots:
        return "tables must have one root, whose rows are the units; give each other table its parent"
    shown = " and ".join(map(printable, roots))
    return (
        f"{shown} have no parent: rows of one are the units, and who is in another is not protected; "
        "hang it on the units, list it under public, or leave it out"
    )


class ResolvedRelationalSchema(RelationalSchema, ResolvedSchema):
    """The facts of related tables, all of them known."""

    _table_model: ClassVar[type[TableSchema]] = ResolvedTableSchema


class SchemaItself:
    """A schema as a key: that one, and none that is equal."""

    def __init__(self, schema: RelationalSchema) -> None:
        self.schema = schema

    def __hash__(self) -> int:
        return id(self.schema)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SchemaItself) and other.schema is self.schema


@lru_cache(maxsize=2 * MOST_TABLES)  # a sample of few rows asks sixty times, and a table is checked whenever it is made
def _table(key: SchemaItself, name: str) -> TableSchema:
    schema = key.schema
    return schema._table_model(
        doublure=1,
        kind="table",
        unit=Unit(name=schema.unit.name),
        units=schema.units,
        misfit=schema.misfit,
        columns=schema.tables[name].columns,
        constraints=(*within_table(schema.constraints, name), *schema.tables[name].constraints),
        **schema.text_form,
    )
