"""Records that stay in a database, which encodes and counts them: numbers of records come back, and no record.

All statements see one snapshot, in one transaction that is rolled back in the end. Codes lie in a temporary table of
the session; cells do, too, where facts are learned or units bounded. Nothing is kept for a run that is cut off: to
resume it, the table is read again, and has to be what it was.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from operator import add
from pathlib import Path
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from doublure.data.databases.address import read_address
from doublure.data.databases.connection import DatabaseSession, connect
from doublure.data.databases.reading import (
    CELLS,
    RANK,
    UNIT,
    CellsInSql,
    bounded,
    misfits,
    read_cells,
    send_lookups,
)
from doublure.data.databases.relation import SourceRelation, choose_relation
from doublure.data.records import refuse_repeated
from doublure.encode.table_in_sql import select_codes
from doublure.encode.table_values import TableValues
from doublure.errors import DataError, printable
from doublure.private.sql_partitions import CodeTable, FactColumn, SqlFactPartitions, SqlPartitions, rank_statement
from doublure.run.record_sources import RemoteSource
from doublure.schema.columns import sql_words as sql

if TYPE_CHECKING:
    from doublure.encode.encoder import Encoder
    from doublure.private.partitions import Partitions
    from doublure.private.queries.counts import Countable
    from doublure.private.queries.facts import FactRecords
    from doublure.schema import Schema

CODES = "doublure_codes"
_PRIME = 2_147_483_647
"""2^31 - 1: products of two remainders fit 64 bits."""
_MULTIPLIER = 48_271
"""A generator of its multiplicative group (Park, Miller and Stockmeyer 1993)."""


class DatabaseRecords(RemoteSource):
    """A table, a view or a query of a database.

    Args:
        url: Of the database, without a password.
        relation: What is read of it.
        at_least: Fewer records than this are refused.
    """

    def __init__(self, url: str, relation: SourceRelation, *, at_least: int = 2) -> None:
        self._address = read_address(url)
        self._relation = relation
        self._at_least = at_least
        self._database: DatabaseSession | None = None
        self._schema: Schema | None = None
        self._cells: CellsInSql | None = None
        self._materialised = False
        self._units, self._most = 0, 1
        self._table: CodeTable | None = None
        self._fingerprint = ""

    @classmethod
    def of(cls, url: str, table: str | None, query: str | None, *, at_least: int) -> DatabaseRecords:
        """Return the records that a user names.

        Args:
            url: Of the database.
            table: The table or view.
            query: Or a query of rows.
            at_least: Fewer records than this are refused.

        Raises:
            SettingError: Neither or both are given.
        """
        return cls(url, choose_relation(table, query), at_least=at_least)

    @property
    @override
    def public(self) -> Mapping[str, Any]:
        return {"database": {"engine": self._address.engine, **self._relation.public}}

    @override
    def check(self, schema: Schema) -> None:
        """Connect, and compare names and storage types of columns with the schema; no row is read.

        Raises:
            InputError: A column is missing or stored otherwise, or the schema has what is not said in SQL.
        """
        self._schema = schema
        self._database = database = connect(self._address)
        source = self._relation.source(database)

        header = database.header(sql.select("*", of=source))
        names = [name for name, _ in header]
        refuse_absent(names, schema.columns)
        keys = {} if schema.unit.id is None else {UNIT: schema.unit.id}
        self._cells = read_cells(schema, dict(header), source, database.words(), keys)

    @override
    def read(self) -> None:
        """Begin the snapshot, count what does not fit, and keep cells where facts are learned or units bounded.

        Raises:
            DataError: A cell does not fit its column, a record names no unit, or there are too few records.
        """
        database, schema, cells = self._parts
        database.begin()
        send_lookups(database, cells.words.lookups)
        counts = [int(each) for each in database.rows(misfits(cells, schema))[0]]
        records = counts[0] if schema.unit.id is None else counts[-2]
        refuse_misfits(counts, cells, schema)
        refuse_few(records, self._at_least, self._relation.shown)
        self._units, self._most = records, min(1, records)
        if not schema.questions and schema.unit.id is None:
            return
        if schema.unit.id is None:
            database.store(CELLS, cells.statement)
        else:
            refuse_repeated(schema, repeated=counts[-1] < records)
            database.store(CELLS, bounded(cells, schema.unit.max_records))
            self._units, self._most = map(int, database.rows(rank_statement(CELLS))[0])
        self._materialised = True

    @override
    def facts(self) -> Partitions[FactRecords]:
        database, _, cells = self._parts
        if not self._materialised:
            raise TypeError("nothing is to be learned")
        columns = {name: FactColumn(table=CELLS, cells=cells, name=name) for name in cells.places}
        return SqlFactPartitions(database, columns, self._units, self._most)

    @override
    def encoded(self, encoder: Encoder, path: Path | None) -> DatabaseRecords:
        """Have the records encoded.

        Raises:
            DataError: A column is measured from another, or the database refuses.
        """
        from sqlglot import exp

        database, schema, cells = self._parts
        if not isinstance(encoder, TableValues):
            raise TypeError("only whole numbers are counted in a database")
        source = exp.to_table(CELLS) if self._materialised else sql.nested(cells.statement, "cells")
        statement, joined = select_codes(encoder, cells, source, [] if schema.unit.id is None else [RANK])
        send_lookups(database, joined)
        database.store(CODES, statement)
        if self._materialised:
            database.run(f"DROP TABLE {CELLS}")
        database.settle()
        domains = [(own.first, own.last + own.nullable) for own in encoder.domains]
        self._table = CodeTable(name=CODES, domains=domains, most_records=self._most)
        self._fingerprint = self._checksum(len(domains))
        return self

    @property
    def fingerprint(self) -> str:
        """A hash of all records, whatever their order. Private."""
        return self._fingerprint

    def partitions(self, check: Callable[[], None] = lambda: None) -> Partitions[Countable]:
        """Return the records as the one partition that the database counts."""
        if self._table is None:
            raise TypeError("nothing is encoded")
        return SqlPartitions(self._session[0], self._table, check)

    def close(self) -> None:
        """Roll back, and close the connection."""
        if self._database is not None:
            self._database.close()
            self._database = None

    @property
    def _session(self) -> tuple[DatabaseSession, Schema]:
        if self._database is None or self._schema is None:
            raise TypeError("nothing was checked")
        return self._database, self._schema

    @property
    def _parts(self) -> tuple[DatabaseSession, Schema, CellsInSql]:
        if self._cells is None:
            raise TypeError("nothing was checked")
        return *self._session, self._cells

    def _checksum(self, parts: int) -> str:
        """Return a hash of the multiset of encoded records: sums of a mix of each one's codes, in whole numbers."""
        from sqlglot import exp

        def left(value: Any) -> Any:
            return exp.Paren(this=exp.Mod(this=exp.Paren(this=value), expression=sql.whole(_PRIME)))

        terms: list[Any] = [sql.cast(sql.whole(pow(_MULTIPLIER, parts, _PRIME)), "bigint")]
        for part in range(parts):
            code = sql.cast(exp.column(f"c{part}"), "bigint") + sql.whole(part + 1)
            terms.append(left(left(code) * sql.whole(pow(_MULTIPLIER, parts - 1 - part, _PRIME))))
        while len(terms) > 1:  # in pairs: a term within another for each column is more than sqlglot writes
            terms = [reduce(add, terms[at : at + 2]) for at in range(0, len(terms), 2)]
        mix = left(terms[0])
        inner = sql.select(mix.as_("mixed"), of=CODES)
        square = exp.Mod(this=exp.Paren(this=exp.column("mixed") * exp.column("mixed")), expression=sql.whole(_PRIME))
        sums = [exp.Count(this=exp.Star()), exp.Sum(this=exp.column("mixed")), exp.Sum(this=square)]
        row = self._session[0].rows(
            sql.select(*(each.as_(f"sum{at}") for at, each in enumerate(sums)), of=sql.nested(inner, "mixes"))
        )[0]
        return hashlib.sha256(json.dumps([int(each or 0) for each in row]).encode()).hexdigest()

    def __repr__(self) -> str:
        return "DatabaseRecords(private)"


def refuse_few(records: int, least: int, shown: str) -> None:
    """Refuse too few records, which are no data of this schema.

    Raises:
        DataError: Naming the table as it is shown.
    """
    if records < least:
        raise DataError(
            f"has fewer than {least} records", field=shown, remedy="give the table that the schema describes"
        )


def refuse_absent(names: Sequence[str], needed: Iterable[str]) -> None:
    """Refuse a header in which a column is not there, or stands twice.

    Raises:
        DataError: Naming it.
    """
    for name in needed:
        if names.count(name) != 1:
            said = "is not a column of the data" if name not in names else "stands more than once in the header"
            raise DataError(said, field=name, remedy="fix the schema, or name the column in a view")


def refuse_misfits(counts: Sequence[int], cells: CellsInSql, schema: Schema) -> None:
    """Refuse cells that do not fit, all columns at once, and never a cell or how many there are.

    Args:
        counts: That :func:`~doublure.data.databases.reading.misfits` asks for.
        cells: Of the table.
        schema: Of the table.

    Raises:
        DataError: Naming the columns.
    """
    if schema.misfit != "refuse":
        return
    wrong = [name for name, place in cells.places.items() if counts[1 + 2 * place]]
    gone = [
        name for name, place in cells.places.items() if counts[2 + 2 * place] and schema.columns[name].missing is False
    ]
    if wrong:
        own = [schema.columns[name] for name in wrong]
        said = "; ".join(dict.fromkeys(column.expected for column in own))
        kinds = ", ".join(dict.fromkeys(column.type for column in own))
        raise DataError(f"has cells that are no {kinds} of the schema", field=_all(wrong), remedy=said)
    if gone:
        said = "has missing cells, and the schema says missing: false"
        raise DataError(said, field=_all(gone), remedy="fix either")
    rules = zip(cells.rules, counts[1 + 2 * len(cells.places) :], strict=False)
    for rule, broken in rules:
        if broken:
            remedy = "fix the rule or the data"
            said = f"has records that break a rule: {rule.requirement(schema.columns)}"
            raise DataError(said, field=_all([*rule.names]), remedy=remedy)
    if schema.unit.id is not None and counts[-2] < counts[0]:
        said = "has records that name no unit"
        raise DataError(said, field=schema.unit.id, remedy="give every record its unit's id")


def _all(names: list[str]) -> str:
    return ", ".join(map(printable, names))
