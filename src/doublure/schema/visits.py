"""The public facts of one table in which a unit has several rows: visits of patients, orders of customers.

``unit: {id: MRN, per_unit: [dob, sex], max_records: 10}`` splits the table into two related ones: ``people`` with a
row a unit, and ``records`` with the rest of each row. They are fitted as related tables, and come out as one again.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal, NamedTuple, Self, cast

from pydantic import ValidationError, model_validator
from typing_extensions import override

from doublure.errors import SettingError, printable
from doublure.schema.messages import finding
from doublure.schema.related_constraints import JoinedRule
from doublure.schema.related_table import RelatedTable
from doublure.schema.relational import RelationalSchema, ResolvedRelationalSchema
from doublure.schema.rules.at_most import AtMost, compared_pairs, orders
from doublure.schema.rules.computed import ComputedRule
from doublure.schema.rules.registry import AnyRule
from doublure.schema.rules.rule import Rule
from doublure.schema.schema import SPLIT
from doublure.schema.tables import ResolvedTableSchema, TableSchema

PEOPLE, RECORDS = "people", "records"
"""The two tables that a table is split into."""
_MADE = "related, as it was made"


class SplitTables(RelationalSchema):
    """The two tables, with the rules of each under its own names.

    Attributes:
        names: The columns of the one table, in its order.
        computed: The rules that compute a column of single rows from these and the unit's, by names of the one table.
    """

    of_one_table: ClassVar[bool] = True

    names: tuple[str, ...] = ()
    computed: tuple[AnyRule, ...] = ()

    @property
    def id(self) -> str:
        """The column that names units."""
        return self.tables[PEOPLE].keys[0]

    @override
    def path_of(self, name: str) -> str:
        return f"columns.{name.partition('.')[2]}"  # as it stands in the file

    @property
    @override
    def joined_rules(self) -> tuple[JoinedRule, ...]:
        people = self.tables[PEOPLE].columns
        return tuple(
            JoinedRule(rule, {name: f"{PEOPLE if name in people else RECORDS}.{name}" for name in rule.names})
            for rule in self.computed
            if isinstance(rule, ComputedRule)
        )


class ResolvedSplitTables(SplitTables, ResolvedRelationalSchema):
    """The two tables, every fact known."""


class _SplitRules(NamedTuple):
    """Rules by what they look at."""

    within: dict[str, tuple[Rule, ...]]
    across: tuple[Rule, ...]
    computed: tuple[Rule, ...]


class VisitsSchema(TableSchema):
    """The public facts of a table in which a unit has several rows, which synthetic rows are to repeat."""

    one_record: ClassVar[bool] = True
    _related_model: ClassVar[type[SplitTables]] = SplitTables
    _flat_model: ClassVar[type[TableSchema]] = TableSchema

    kind: Literal["visits"]  # type: ignore[assignment]  # in a file it is a table

    @model_validator(mode="after")
    def _splits(self) -> Self:
        unit, own = self.unit, set(self.unit.per_unit)
        for name in unit.per_unit:
            if name not in self.columns or name == unit.id:
                raise ValueError(
                    f"per_unit names {printable(name)}, which is no other column; name columns of the table"
                )
            found_by = self.columns[name].found_by
            if found_by is not None and found_by not in own:
                raise ValueError(
                    f"per_unit names {printable(name)}, which follows {printable(found_by)} of single rows; take it out"
                )
        for part, names in (("names only ids", own), ("leaves only ids to single rows", set(self.columns) - own)):
            if not any(self.columns[name].modelled for name in names):
                raise ValueError(f"per_unit {part}; name the columns that stay the same within a {unit.name}")
        for name in self.with_role("condition"):
            if name not in own:
                raise ValueError(f"{printable(name)} is a condition of single rows; name it in per_unit")
        if unit.order is not None and (unit.order in own or unit.order not in self.columns):
            raise ValueError("order names no column of single rows; name one, such as a date")
        try:
            _ = self.related
        except ValidationError as error:
            _, message, remedy = finding(error)
            raise ValueError(f"{message}; {remedy}") from None
        return self

    # -- the two tables ------------------------------------------------------------------------------------------------

    @property
    def related(self) -> SplitTables:
        """The two tables."""
        facts = (self.columns, self.constraints, self.unit, self.units, self.misfit)
        known, made = self.__dict__.get(_MADE, ((), None))  # as a cached property is kept; a copy may be of other facts
        if made is None or any(one is not other for one, other in zip(facts, known, strict=True)):
            made = self._split()
            self.__dict__[_MADE] = facts, made
        return cast("SplitTables", made)

    @property
    @override
    def flat(self) -> TableSchema:
        plain = {name: getattr(self, name) for name in type(self).model_fields if name != "kind"}
        unit = self.unit.model_copy(update={"per_unit": (), "order": None})
        return self._flat_model.model_construct(**{**plain, "kind": "table", "unit": unit})

    def _split(self) -> SplitTables:
        unit, key = self.unit, self.unit.id or ""
        per_unit = {name: column for name, column in self.columns.items() if self.table_of(name) == PEOPLE}
        rest = {name: column for name, column in self.columns.items() if self.table_of(name) == RECORDS}
        foreign = self.columns[key]
        rest[key] = foreign.model_copy(update=dict.fromkeys(foreign.told))  # it has the form of the one it names
        rules = self._rules()
        return self._related_model(
            doublure=1,
            kind="relational",
            unit={"name": unit.name},
            units=self.units,
            misfit=self.misfit,
            names=tuple(self.columns),
            computed=rules.computed,
            constraints=rules.across,
            tables={
                PEOPLE: RelatedTable(
                    key=key, columns={key: self.columns[key]} | per_unit, constraints=rules.within[PEOPLE]
                ),
                RECORDS: RelatedTable(
                    parent=PEOPLE,
                    foreign_key=key,
                    max_children=unit.max_records,
                    order=unit.order,
                    columns=rest,
                    constraints=rules.within[RECORDS],
                ),
            },
        )

    def table_of(self, name: str) -> str:
        """Return which of the two tables a column is in: one that is looked up is with its key; the id is in both."""
        return PEOPLE if {name, self.columns[name].found_by} & {*self.unit.per_unit} else RECORDS

    def _rules(self) -> _SplitRules:
        """Return the rules by table. A chain of columns of both is cut into what is within one, and pairs across."""
        within: dict[str, list[Rule]] = {PEOPLE: [], RECORDS: []}
        across: list[Rule] = []
        computed: list[Rule] = []
        for rule in self.constraints:
            tables = {self.table_of(name) for name in rule.names}
            if len(tables) == 1:
                within[tables.pop()].append(rule)
                continue
            if isinstance(rule, ComputedRule) and self.table_of(rule.of) == RECORDS:
                computed.append(rule)
                continue
            every = (*compared_pairs([rule], self.columns), *rule.across_calendars(self.columns))
            pairs = [pair for pair in every if len({*map(self.table_of, pair)}) == 2]
            if not pairs:
                named = ", ".join(map(printable, rule.names))
                raise ValueError(
                    f"{rule.word} names columns in per_unit and others ({named}); only at_most may, so leave it out"
                )
            across += [AtMost(at_most=tuple(f"{self.table_of(name)}.{name}" for name in pair)) for pair in pairs]
            for table, own in within.items():
                names = tuple(name for name in rule.names if self.table_of(name) == table)
                own += [each.among(names) for each in orders([rule]) if len(names) > 1]
        return _SplitRules({table: tuple(own) for table, own in within.items()}, tuple(across), tuple(computed))

    # -- questions -----------------------------------------------------------------------------------------------------

    @property
    @override
    def most_records(self) -> int:
        return self.max_silos  # a unit is one record, with all its rows

    @property
    @override
    def used_records(self) -> int:
        return self.unit.max_records * self.max_silos

    @property
    @override
    def file_kind(self) -> str:
        return "table"

    @property
    @override
    def row_note(self) -> str | None:
        return None

    @override
    def cells_of(self, column: str | None, fact: str) -> int:
        return 1 if column is None or column in self.unit.per_unit else self.unit.max_records

    @override
    def asked(self, name: str) -> str:
        """Return which column a sample is asked by: whole units are drawn, so that it is one of theirs.

        Raises:
            SettingError: It is a column of single rows.
        """
        if name in self.columns and name not in self.unit.per_unit:
            remedy = f"ask for {', '.join(map(printable, self.unit.per_unit))}, which stay the same within one"
            message = f"is no column that a {self.unit.name} is drawn by"
            raise SettingError(message, field=f"given {printable(name)}", remedy=remedy)
        return name

    @override
    def to_plain(self) -> dict[str, Any]:
        return super().to_plain() | {"kind": self.file_kind}


class ResolvedVisitsSchema(VisitsSchema, ResolvedTableSchema):
    """The same, every fact known."""

    _related_model: ClassVar[type[SplitTables]] = ResolvedSplitTables
    _flat_model: ClassVar[type[TableSchema]] = ResolvedTableSchema


__all__ = ["PEOPLE", "RECORDS", "SPLIT", "ResolvedVisitsSchema", "SplitTables", "VisitsSchema"]
