"""Records that break a rule are the same in a database as in memory, each read by itself."""

from __future__ import annotations

import random

import numpy as np
import pytest

pytest.importorskip("sqlglot", reason="pip install doublure[sql]")
pytest.importorskip("duckdb", reason="pip install doublure[sql]")

import worlds
from engines import ENGINES, made_in
from planting import plant
from sqlglot import exp

import doublure as db
from doublure.data.databases.relation import NamedRelation
from doublure.data.opening import open_data
from doublure.data.tables.rules import find_violations
from doublure.errors import DataError
from doublure.run.database_records import DatabaseRecords
from doublure.schema.columns import sql_words as sql
from doublure.schema.rules import rule_sql

COLUMNS = {
    "number": "INTEGER", "job": "VARCHAR", "ward": "VARCHAR", "kind": "VARCHAR", "age": "INTEGER", "fee": "INTEGER",
    "rest": "DOUBLE PRECISION", "paid": "DOUBLE PRECISION", "total": "DOUBLE PRECISION", "born": "DATE",
    "dose": "DOUBLE PRECISION",
}  # fmt: skip
SCHEMA = """
doublure: 1
kind: table
unit: {name: record, id: none}
units: 300
columns:
  number: {type: integer, bounds: [0, 400], missing: false}
  job: {type: category, values: [cook, nurse, none], missing: true}
  ward: {type: category, values: [A, B], missing: true}
  kind: {type: category, values: [x, y, z], missing: false}
  age: {type: integer, bounds: [18, 90], missing: [-7, -8]}
  fee: {type: integer, bounds: [0, 40], step: 5, missing: true}
  rest: {type: real, bounds: [0, 9], precision: 1, missing: true}
  paid: {type: real, bounds: [0, 9], precision: 1, missing: false}
  total: {type: real, bounds: [0, 20], precision: 1, missing: true}
  born: {type: date, bounds: [1990-01-01, 2000-12-31], missing: true}
  dose: {type: real, bounds: [0, 1], missing: true}
constraints:
  - {implies: {when: {job: cook}, then: {age: [18, 60]}}}
  - {implies: {when: {age: -7}, then: {fee: [0, 5], ward: missing}}}
  - {implies: {when: {born: [1990-01-01, 1992-06-30], dose: [0, 0.5]}, then: {kind: [x, y]}}}
  - {sum: {total: total, of: [rest, paid]}}
  - {determines: [ward, kind], map: {A: x, B: y, '': z}}
  - {combinations: {columns: [job, fee], rows: [[cook, 0], [cook, 5], [nurse, 10], ['', 0], [none, '']]}}
"""


def rows_of(rows):
    draw = random.Random(4)

    def maybe(cell, share=0.2):
        return None if draw.random() < share else cell

    return [
        (
            number, maybe(draw.choice(["cook", "nurse", "none"])), maybe(draw.choice("AB")), draw.choice("xyz"),
            draw.choice([-7, -8, None, draw.randint(10, 95)]), maybe(draw.choice([0, 2, 5, 7, 10, 50])),
            rest := maybe(draw.randint(0, 90) / 10), paid := draw.randint(0, 90) / 10,
            maybe((rest or 0) + paid + draw.choice([0, 0, 0.04, 0.1, -3])),
            maybe(f"{draw.randint(1989, 1994)}-0{draw.randint(1, 9)}-11"), maybe(draw.choice([0.5, draw.random()])),
        )
        for number in range(rows)
    ]  # fmt: skip


def make(rows):
    """Return what makes the table by what runs a statement."""

    def run_by(run):
        run(f"CREATE TABLE kept ({', '.join(f'{name} {kind}' for name, kind in COLUMNS.items())})")
        run("INSERT INTO kept VALUES " + ", ".join(f"({', '.join(map(worlds.literal, row))})" for row in rows))

    return run_by


def broken_in_sql(url, schema):
    """Return ``(rules, N)``: which records break which rule, in the order of their numbers."""
    records = DatabaseRecords(url, NamedRelation(table="kept"))
    try:
        records.check(schema)
        database, _, cells = records._parts
        flags = [exp.column(f"b{place}") for place in range(len(cells.rules))]
        database.begin()
        named = sql.select(exp.column("n0"), *flags, of=sql.nested(cells.statement, "own"))
        found = sorted(database.rows(named))
    finally:
        records.close()
    return np.array([row[1:] for row in found]).T


def compare(url, tmp_path, schema):
    own = open_data(worlds.duck_rows(tmp_path / "made.db", "kept"), "table", schema.written)
    own.check(schema)
    frame = own.load(schema.model_copy(update={"constraints": ()})).frame
    wanted = [find_violations(rule, frame, schema.columns) for rule in schema.constraints]
    found = broken_in_sql(url, schema)
    assert found.shape == (len(wanted), len(frame))
    for rule, ours, theirs in zip(schema.constraints, found, wanted, strict=True):
        assert 5 < theirs.sum() < len(frame), rule.word
        assert np.array_equal(ours.astype(bool), theirs), rule.word


@pytest.mark.parametrize("engine", ENGINES)
def test_records_break_the_same_rules(engine, tmp_path, request):
    schema = db.Schema.parse(SCHEMA)
    made_in("duckdb", make(rows_of(300)), tmp_path, request)
    url = made_in(engine, make(rows_of(300)), tmp_path, request)
    compare(url, tmp_path, schema)
    records = DatabaseRecords(url, NamedRelation(table="kept"))
    records.check(schema)
    with pytest.raises(DataError, match="break the rule implies") as caught:
        records.read()
    records.close()
    assert caught.value.field == "job, age"


def test_a_condition_that_takes_a_missing_cell_for_another_is_seen(tmp_path, monkeypatch, request):
    url = made_in("duckdb", make(rows_of(300)), tmp_path, request)
    plant(monkeypatch, rule_sql, "is_among", ("(sql.is_null(cell.number), gone)", "(sql.is_null(cell.number), there)"))
    with pytest.raises(AssertionError):
        compare(url, tmp_path, db.Schema.parse(SCHEMA))
