"""Units that stay in a database, with rows in several tables, or in one that is split by unit.

Rows that belong to units are kept in temporary tables of the session, and then units as codes
(:mod:`doublure.encode.related_in_sql`), of which every statement counts.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from typing_extensions import override

from doublure.data.databases.address import is_database
from doublure.data.databases.connection import connect
from doublure.data.databases.linking import LinkedRows, fixed_people, keys_read, link_tables, link_visits, unit_key
from doublure.data.databases.reading import CellsInSql, misfits, read_cells, send_lookups
from doublure.data.databases.relation import (
    NamedRelation,
    SourceRelation,
    choose_relation,
    refuse_elsewhere,
    refuse_named,
)
from doublure.data.databases.streaming import DatabaseStream
from doublure.data.relational.opening import named_by
from doublure.data.relational.row_links import every_link
from doublure.encode.related_in_sql import UnitsInSql
from doublure.encode.relational import RelationalEncoder
from doublure.errors import SchemaError, SettingError, printable
from doublure.private.sql_partitions import CodeTable, FactColumn, SqlFactPartitions
from doublure.run.database_records import (
    CODES,
    DatabaseRecords,
    refuse_absent,
    refuse_few,
    refuse_misfits,
)
from doublure.schema.columns import sql_words as sql
from doublure.schema.kinds import ByKind
from doublure.schema.relational import RelationalSchema
from doublure.schema.visits import PEOPLE, VisitsSchema

if TYPE_CHECKING:
    from doublure.data.databases.connection import DatabaseSession
    from doublure.encode.encoder import Encoder
    from doublure.planning import Plan
    from doublure.private.partitions import Partitions
    from doublure.private.queries.facts import FactRecords
    from doublure.schema import Schema
    from doublure.schema.columns.sql_words import SqlWords

Cells: TypeAlias = Mapping[str, tuple[CellsInSql, "Schema"]]
"""Table -> its cells, and the schema that they follow."""


class UnitRecords(DatabaseRecords):
    """Units in a database."""

    def __init__(self, url: str, relation: SourceRelation, *, at_least: int = 2) -> None:
        super().__init__(url, relation, at_least=at_least)
        self._known: Cells = {}
        self._rows: Mapping[str, LinkedRows] = {}

    @override
    def check(self, schema: Schema) -> None:
        """Connect, and compare names and storage types of columns with the schema; no row is read.

        Raises:
            InputError: A column is missing or stored otherwise, or the schema has what is not said in SQL.
        """
        self._schema = schema
        self._database = connect(self._address)
        self._known = self._found(self._database, schema, self._database.words())

    @override
    def read(self) -> None:
        """Begin the snapshot, count what does not fit, and keep the rows that belong to units.

        Raises:
            DataError: A cell does not fit its column, a record names no unit, or there are too few records.
        """
        from sqlglot import exp

        database, schema = self._session
        database.begin()
        send_lookups(database, next(iter(self._known.values()))[0].words.lookups)
        self._rows = self._linked(database, schema)
        units = next(iter(self._rows.values())).table
        self._units = int(database.rows(sql.select(exp.Count(this=exp.Star()).as_("n"), of=units))[0][0])
        self._most = min(1, self._units)

    @override
    def facts(self) -> Partitions[FactRecords]:
        columns = {
            self._asked(table, name): FactColumn(table=rows.table, cells=rows.cells, name=name)
            for table, rows in self._rows.items()
            for name in rows.cells.places
        }
        return SqlFactPartitions(self._session[0], columns, self._units, self._most)

    @override
    def encoded(self, encoder: Encoder, path: Path | None) -> DatabaseRecords:
        """Have the units encoded.

        Raises:
            DataError: A column is measured from another, or the database refuses.
        """
        if not isinstance(encoder, RelationalEncoder):
            raise TypeError("units are encoded by the encoder of related tables")
        database, _ = self._session
        kept = [rows.table for rows in self._rows.values()]
        for name, statement, lookups in UnitsInSql(encoder, self._rows).statements(CODES):
            send_lookups(database, lookups)
            database.store(name, statement)
            kept.append(name)
        for name in kept[:-1]:
            database.run(f"DROP TABLE {name}")
        database.settle()
        self._table = CodeTable(name=CODES, domains=(), most_records=self._most)
        self._fingerprint = self._checksum(encoder.layout.counted_width)
        return self

    @abstractmethod
    def _found(self, database: DatabaseSession, schema: Schema, words: SqlWords) -> Cells:
        """Return the tables, whose headers fit the schema."""

    @abstractmethod
    def _linked(self, database: DatabaseSession, schema: Schema) -> Mapping[str, LinkedRows]:
        """Refuse what does not fit, and keep the rows that belong to units; those that are the units come first."""

    @abstractmethod
    def _asked(self, table: str, name: str) -> str:
        """Return what questions call a column."""

    def __repr__(self) -> str:
        return "UnitRecords(private)"


class RelatedRecords(UnitRecords):
    """Related tables, each a table or view of that name."""

    @classmethod
    @override
    def of(cls, url: str, table: str | None, query: str | None, *, at_least: int) -> DatabaseRecords:
        refuse_named(table, query)
        return cls(url, NamedRelation(table="*"), at_least=at_least)

    @property
    @override
    def public(self) -> Mapping[str, Any]:
        names = [] if self._schema is None else sorted(RelationalSchema.of(self._schema).tables)
        return {"database": {"engine": self._address.engine, "tables": names}}

    @override
    def _found(self, database: DatabaseSession, schema: Schema, words: SqlWords) -> Cells:
        related = RelationalSchema.of(schema)
        found: dict[str, tuple[CellsInSql, Schema]] = {}
        for name, own, _ in every_link(related):
            remedy = "describe the column with type: id alone, or fit an export"
            raise SchemaError("names rows, which are not looked up in a database", field=f"{name}.{own}", remedy=remedy)
        for name in related.tables:
            described = related.table(name)
            with named_by(name, related):
                source = NamedRelation(table=name).source(database)
                found[name] = _read_table(database, described, source, words, keys_read(related, name)), described
        return found

    @override
    def _linked(self, database: DatabaseSession, schema: Schema) -> Mapping[str, LinkedRows]:
        from sqlglot import exp

        related = RelationalSchema.of(schema)
        for name, (cells, described) in self._known.items():
            counts = [int(each) for each in database.rows(misfits(cells, described))[0]]
            with named_by(name, related):
                refuse_misfits(counts, cells, described)
        found = link_tables(database, related, {name: cells for name, (cells, _) in self._known.items()})
        units = sql.select(exp.Count(this=exp.Star()).as_("n"), of=found[related.root].table)
        refuse_few(int(database.rows(units)[0][0]), self._at_least, printable(related.root))
        return found

    @override
    def _asked(self, table: str, name: str) -> str:
        return f"{table}.{name}"


class VisitRecords(UnitRecords):
    """One table, in which a unit has several rows."""

    @override
    def _found(self, database: DatabaseSession, schema: Schema, words: SqlWords) -> Cells:
        visits = VisitsSchema.of(schema)
        cells = _read_table(database, visits.flat, self._relation.source(database), words, unit_key(visits))
        fixed_people(visits, cells)  # or a rule is refused by name
        return {PEOPLE: (cells, visits.flat)}

    @override
    def _linked(self, database: DatabaseSession, schema: Schema) -> Mapping[str, LinkedRows]:
        ((cells, described),) = self._known.values()
        counts = [int(each) for each in database.rows(misfits(cells, described))[0]]
        refuse_misfits(counts, cells, described)
        refuse_few(counts[-2], self._at_least, self._relation.shown)
        return link_visits(database, VisitsSchema.of(schema), cells)

    @override
    def _asked(self, table: str, name: str) -> str:
        return name


def _read_table(
    database: DatabaseSession, schema: Schema, source: Any, words: SqlWords, keys: Mapping[str, str]
) -> CellsInSql:
    """Return the cells of a table whose header fits its schema.

    Raises:
        InputError: It does not.
    """
    header = database.header(sql.select("*", of=source))
    needed = [name for name, column in schema.columns.items() if column.modelled]
    refuse_absent([name for name, _ in header], dict.fromkeys([*needed, *keys.values()]))
    return read_cells(schema, dict(header), source, words, keys)


_COUNTED: ByKind[type[DatabaseRecords]] = ByKind(
    "counting in a database", table=DatabaseRecords, relational=RelatedRecords, visits=VisitRecords
)


def check_in_database(url: str, table: str | None, query: str | None, schema: Schema) -> None:
    """Compare a database's header with a schema, as a fit that counts there does; no row is read.

    Of a kind that is not counted there, but streamed, nothing is compared.

    Args:
        url: Of the database.
        table: The table or view.
        query: Or a query of rows.
        schema: Every fact of it declared, or to be bought.

    Raises:
        InputError: Such a fit is refused.
    """
    if schema.kind not in _COUNTED:
        return
    records = _COUNTED[schema.kind].of(url, table, query, at_least=0)
    try:
        records.check(schema)
    finally:
        records.close()


def place_in_database(
    data: Any, plan: Plan, engine: object, table: str | None, query: str | None, *, counted: bool
) -> Any:
    """Return records in a database where data is the URL of one; else the data as it is.

    Args:
        data: The given data.
        plan: The plan of the run.
        engine: The place of records.
        table: In a database, the table or view.
        query: Or a query of rows.
        counted: Whether the method only counts, so that records stay there; else they are streamed.

    Raises:
        SettingError: A table or a query is given with another kind of data, or neither with a database; or an engine
            that is no database.
    """
    if not is_database(data):
        refuse_elsewhere(data, table, query)
        return data
    if engine != "local":
        raise SettingError("is not for a database, which counts", field="engine", remedy="leave it out")
    if counted:
        return _COUNTED[plan.kind].of(data, table, query, at_least=plan.fewest_records)
    return DatabaseStream(data, choose_relation(table, query), plan.schema)
