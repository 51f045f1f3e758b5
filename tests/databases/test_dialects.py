"""Statements in the languages of engines that are not connected to: compiled, and read again by the same grammar."""

from __future__ import annotations

import pytest

pytest.importorskip("sqlglot", reason="pip install doublure[sql]")

import sqlglot
import worlds
from sqlglot import exp

from doublure.data.databases.address import COMPILED
from doublure.data.databases.reading import RANK, UNIT, bounded, misfits, read_cells
from doublure.encode.table_in_sql import select_codes
from doublure.encode.table_values import TableValues
from doublure.schema.columns.sql_words import WORDS, NotInSql, SqlCell, StoredAs

STORED: dict[str, StoredAs] = {
    "BIGINT": "whole", "INTEGER": "whole", "DOUBLE PRECISION": "real", "REAL": "real", "DECIMAL(10,2)": "decimal",
    "VARCHAR": "text", "BOOLEAN": "truth", "DATE": "day", "TIMESTAMP": "moment", "TIME": "clock",
}  # fmt: skip
TEXT_CLOCK = {"spark": {"wake": "text"}}


@pytest.mark.parametrize("dialect", [*WORDS])
def test_statements_of_every_nature_are_read_again(dialect):
    schema, words = worlds.schema(unit="person", most=2), WORDS[dialect]()
    header = {name: STORED[kind] for name, kind in worlds.COLUMNS.items()} | TEXT_CLOCK.get(dialect, {})
    cells = read_cells(schema, header, exp.to_table("people"), words, {UNIT: "person"})
    ranked = bounded(cells, 2)
    codes, _ = select_codes(TableValues(schema.resolve({})), cells, exp.to_table("cells"), [RANK])
    for statement in (misfits(cells, schema), ranked, codes):
        text = statement.sql(dialect=dialect)
        (read,) = sqlglot.parse(text, dialect=dialect)
        assert isinstance(read, exp.Select)
        assert read.named_selects == statement.named_selects
        assert len([*read.find_all(exp.Case)]) == len([*statement.find_all(exp.Case)])
        assert "REGEXP_MATCHES" not in text or dialect == "duckdb"


@pytest.mark.parametrize("dialect", COMPILED)
@pytest.mark.parametrize("kind", ["day", "moment", "zoned"])
def test_moments_are_said(dialect, kind):
    line = "{type: datetime, bounds: [2020-01-01T00:00:00, 2023-12-31T23:59:59], timezone: Europe/Paris, missing: true}"
    column = worlds.schema(sent=line).columns["sent"]
    text = column.in_sql(SqlCell(exp.column("r"), kind), WORDS[dialect]()).number.sql(dialect=dialect)
    assert ("Europe/Paris" in text) == (kind == "zoned")
    assert sqlglot.parse_one(f"SELECT {text}", dialect=dialect)


def test_what_an_engine_does_not_store_is_refused_by_name():
    columns = worlds.schema().columns
    for dialect in COMPILED:
        with pytest.raises(NotInSql, match="interval"):
            columns["stay"].in_sql(SqlCell(exp.column("r"), "span"), WORDS[dialect]())
    with pytest.raises(NotInSql, match="time of day"):
        columns["wake"].in_sql(SqlCell(exp.column("r"), "clock"), WORDS["spark"]())
