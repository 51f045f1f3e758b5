"""Records that break a rule are the same in a database as in memory, each read by itself."""

from __future__ import annotations

import hashlib
import json
import random
from itertools import pairwise

import numpy as np
import pytest

pytest.importorskip("sqlglot", reason="pip install doublure[sql]")
pytest.importorskip("duckdb", reason="pip install doublure[sql]")

import worlds
from engines import ENGINES, made_in
from planting import plant
from sqlglot import exp
from tiers import crossed

import doublure as db
from doublure.data.databases import rule_fixes
from doublure.data.databases.relation import NamedRelation
from doublure.data.opening import open_data
from doublure.data.tables.rules import find_violations
from doublure.errors import DataError, SchemaError
from doublure.run.database_records import DatabaseRecords
from doublure.schema.columns import sql_words as sql
from doublure.schema.missing_states import hole_states
from doublure.schema.rules import rule_sql
from doublure.schema.rules.sum import ColumnSum

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
    with pytest.raises(DataError, match="break a rule: if ") as caught:
        records.read()
    records.close()
    assert caught.value.field == "job, age"


def test_a_condition_that_takes_a_missing_cell_for_another_is_seen(tmp_path, monkeypatch, request):
    url = made_in("duckdb", make(rows_of(300)), tmp_path, request)
    plant(monkeypatch, rule_sql, "is_among", ("(sql.is_null(cell.number), gone)", "(sql.is_null(cell.number), there)"))
    with pytest.raises(AssertionError):
        compare(url, tmp_path, db.Schema.parse(SCHEMA))


# -- records that are changed ------------------------------------------------------------------------------------------

IMPLIED = [
    "{implies: {when: {job: cook}, then: {age: [18, 60]}}}",
    "{implies: {when: {age: -7}, then: {fee: [0, 5], ward: missing}}}",
    "{implies: {when: {born: [1990-01-01, 1992-06-30], dose: [0, 0.5]}, then: {kind: [y, x]}}}",
    "{implies: {when: {fee: [5, 10]}, then: {rest: [2.5, 3]}}}",
    "{implies: {when: {ward: A}, then: {age: -8}}}",
]
ANYBODY = "exp.Window(this=exp.Max(this=sql.case((off, sql.whole(1)))))"
LISTED = "{combinations: {columns: [job, fee], rows: [[cook, 5], [cook, 0], [nurse, 10], ['', 0], [none, '']]}}"
ADDED = "{sum: {total: total, of: [rest, paid]}}"
NARROW = "{sum: {total: paid, of: [rest, total]}}"
"""Parts reach 29 and their total 9: most records are off, and the last part gives way first."""


def changed(*rules: str) -> db.Schema:
    head = SCHEMA[: SCHEMA.index("constraints:")]
    return db.Schema.parse(f"{head}misfit: coerce\nconstraints: [{', '.join(rules)}]\n")


def compare_changed(url, tmp_path, schema) -> int:
    """Compare records that keep all rules with those in memory, and return how many cells were changed."""
    wanted, before = (
        open_data(worlds.duck_rows(tmp_path / "made.db", "kept"), "table", own.written).load(own).frame
        for own in (schema, schema.model_copy(update={"constraints": ()}))
    )
    records = DatabaseRecords(url, NamedRelation(table="kept"))
    try:
        records.check(schema)
        records.read()
        database, _, cells = records._parts
        named = [f"{kind}{place}" for kind in "ns" for name, place in cells.places.items()
                 if kind == "n" or name in cells.stated]  # fmt: skip
        rows = database.rows(sql.select(*map(exp.column, named), of=sql.nested(cells.statement, "own")))
    finally:
        records.close()
    found = dict(zip(named, np.array(sorted(rows, key=lambda row: row[0]), dtype=float).T, strict=True))
    moved = 0
    for name, place in cells.places.items():
        column = schema.columns[name]
        looked_at = name in {each for rule in schema.constraints for each in rule.names}
        read = column.snapped_numbers_of if looked_at else column.numbers_of  # others are snapped when encoded
        ours, theirs, were = found[f"n{place}"], read(wanted[name]), read(before[name])
        assert np.array_equal(ours, theirs, equal_nan=True), name
        if name in cells.stated:
            gone = np.isnan(theirs)
            assert np.array_equal(found[f"s{place}"][gone], hole_states(theirs)[gone]), name
        moved += int((~((theirs == were) | (np.isnan(theirs) & np.isnan(were)))).sum())
    return moved


@pytest.mark.parametrize(
    ("rules", "engine"),
    crossed(
        [*([rule] for rule in IMPLIED), [LISTED], [*IMPLIED[:4], LISTED], [ADDED], [IMPLIED[3], ADDED], [NARROW]],
        ENGINES,
    ),
    ids=lambda given: given if isinstance(given, str) else str(len(str(given))),
)
def test_records_become_what_they_become_in_memory(engine, rules, tmp_path, request):
    """Each by itself: a rule alone, and rules that break one another."""
    made_in("duckdb", make(rows_of(300)), tmp_path, request)
    url = made_in(engine, make(rows_of(300)), tmp_path, request)
    assert compare_changed(url, tmp_path, changed(*rules)) > 5


@pytest.mark.parametrize(
    ("owner", "name", "edit"),
    [
        (rule_sql, "nearest", ("RuleCell(sql.real(cells.values[0]))", "RuleCell(sql.real(cells.values[-1]))")),
        (rule_fixes.RuleFixes, "_changed", ("(breaks.copy(), cell.number)", "(sql.no(breaks.copy()), cell.number)")),
        (rule_fixes.RuleFixes, "statement", ("TURNS if len(fixing) > 1 else 1", "1")),
        (
            rule_fixes.RuleFixes, "_changed",
            ("off.as_(_OFF)", f"{ANYBODY}.eq(sql.whole(1)).as_(_OFF)"),
        ),
        (ColumnSum, "fixed_in_sql", ("reversed(parts)", "parts")),
    ],
)  # fmt: skip
def test_a_record_that_is_changed_otherwise_is_seen(owner, name, edit, tmp_path, monkeypatch, request):
    url = made_in("duckdb", make(rows_of(300)), tmp_path, request)
    plant(monkeypatch, owner, name, edit)

    def every():
        for rules in ([IMPLIED[2]], [*IMPLIED[:4], LISTED], [NARROW]):
            compare_changed(url, tmp_path, changed(*rules))

    with pytest.raises(AssertionError):
        every()


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        ([IMPLIED[0], "{determines: [ward, kind], map: {A: x, B: y, '': z}}"], "constraints.determines"),
        ([f"{{combinations: {{columns: [number, job], rows: {[[str(n), 'cook'] for n in range(30)]}}}}}"],
         "constraints.combinations"),
    ],
)  # fmt: skip
def test_a_change_that_is_not_said_in_sql_is_refused_by_name(rules, said, tmp_path, request):
    url = made_in("duckdb", make(rows_of(5)), tmp_path, request)
    records = DatabaseRecords(url, NamedRelation(table="kept"))
    with pytest.raises(SchemaError) as caught:
        records.check(changed(*rules))
    records.close()
    assert caught.value.field == said


SUMMED = {
    "whole": ("BIGINT", ["[-50, 90]", "[-3, 40]", "[10, 30]"], "integer", ""),
    "steps": ("BIGINT", ["[5, 95]", "[0, 50]", "[0, 60]"], "integer", ", step: 5"),
    "ends between tenths": (
        "DOUBLE PRECISION",
        ["[0.25, 17.05]", "[-0.35, 8.75]", "[0.15, 5.55]"],
        "real",
        ", precision: 1",
    ),
}
FAR = [None, -0.0, 10.0**15, -(10.0**15), 0.25, 8.75, 0.05]


@pytest.mark.parametrize(("case", "engine"), crossed([*SUMMED], ENGINES))
def test_sums_of_far_cells_become_what_they_become_in_memory(engine, case, tmp_path, request):
    kind, (total, one, other), type_, more = SUMMED[case]
    draw = random.Random(7)
    whole = type_ == "integer"
    cells = [[draw.choice([*FAR, draw.uniform(-5, 40), draw.randint(-60, 100)]) for _ in range(3)] for _ in range(300)]
    rows = [[None if cell is None else int(cell) if whole else float(cell) for cell in row] for row in cells]

    def run_by(run):
        run(f"CREATE TABLE kept (number INTEGER, t {kind}, a {kind}, b {kind})")
        said = (", ".join("NULL" if cell is None else f"CAST('{cell}' AS {kind})" for cell in row) for row in rows)
        run("INSERT INTO kept VALUES " + ", ".join(f"({number}, {row})" for number, row in enumerate(said)))

    made_in("duckdb", run_by, tmp_path, request)
    url = made_in(engine, run_by, tmp_path, request)
    head = SCHEMA[: SCHEMA.index("  job:")]
    named = zip("tab", (total, one, other), strict=True)
    columns = "".join(f"  {name}: {{type: {type_}, bounds: {ends}{more}, missing: true}}\n" for name, ends in named)
    text = f"{head}{columns}misfit: coerce\nconstraints: [{{sum: {{total: t, of: [a, b]}}}}]\n"
    assert compare_changed(url, tmp_path, db.Schema.parse(text)) > 50


@pytest.mark.parametrize("fact", ["", ", step: 0.1", ", precision: 1"])
def test_reals_count_with_all_their_digits_as_in_memory(fact, tmp_path, request):
    """What is written has twelve digits without a precision; a rule reads a cell as it is."""
    cells = [0.1 + 0.2, 0.3, 0.3000000000000001, 0.7, 0.1 * 7, 0.7000000000000001]
    rows = [f"({number}, CAST('{cell!r}' AS DOUBLE), {number})" for number, cell in enumerate(cells)]

    def run_by(run):
        run("CREATE TABLE kept (number INTEGER, t DOUBLE, u INTEGER)")
        run(f"INSERT INTO kept VALUES {', '.join(rows)}")

    url = made_in("duckdb", run_by, tmp_path, request)
    head = f"{SCHEMA[: SCHEMA.index('  job:')]}  u: {{type: integer, bounds: [0, 9], missing: true}}\n"
    column = f"  t: {{type: real, bounds: [0, 9]{fact}, missing: false}}\n"
    rule = "{implies: {when: {t: [0, 0.3]}, then: {u: [8, 9]}}}"
    assert compare_changed(url, tmp_path, db.Schema.parse(f"{head}{column}misfit: coerce\nconstraints: [{rule}]\n"))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (", precision: 1", "", "without a precision"),
        ("type: real, bounds: [0, 9], precision: 1", "type: integer, bounds: [0, 4000000000000000]", "or beyond 2"),
        ("real, bounds: [0, 9]", "real, bounds: [30, 40]", "no parts add up"),
    ],
)
def test_a_sum_that_is_not_said_in_sql_is_refused(old, new, said, tmp_path, request):
    text = SCHEMA[: SCHEMA.index("constraints:")].replace(old, new)
    text = (
        text.replace("type: real, bounds: [0, 20], precision: 1", "type: integer, bounds: [0, 20]")
        if "integer" in new
        else text
    )
    records = DatabaseRecords(made_in("duckdb", make(rows_of(5)), tmp_path, request), NamedRelation(table="kept"))
    with pytest.raises(SchemaError, match=rf"constraints\.sum: changes records, and .*{said}.*; write misfit: refuse"):
        records.check(db.Schema.parse(f"{text}misfit: coerce\nconstraints: [{ADDED}]\n"))
    records.close()


CHAIN = 12
"""Rules of which each is changed by the one before; each was two levels of nesting in each of six turns."""


@pytest.mark.parametrize("engine", ENGINES)
def test_many_rules_are_kept_together(engine, tmp_path, request):
    """Once, sqlglot nested too deep after the ledger was charged."""
    names = [f"c{number}" for number in range(CHAIN + 1)]
    columns = "".join(f"  {name}: {{type: category, values: [a, b], missing: true}}\n" for name in names)
    rules = ", ".join(f"{{implies: {{when: {{{one}: a}}, then: {{{other}: a}}}}}}" for one, other in pairwise(names))
    head = "doublure: 1\nkind: table\nunit: {name: record, id: none}\nunits: 9\nmisfit: coerce\n"
    schema = db.Schema.parse(f"{head}columns:\n{columns}constraints: [{rules}]\n")
    rows = [["a"] + ["b"] * CHAIN, ["b"] * CHAIN + ["a"], ["b"] * 5 + ["a"] + [None] * (CHAIN - 5)]

    def create(run):
        run(f"CREATE TABLE chain ({', '.join(f'{name} VARCHAR' for name in names)})")
        for row in rows:
            run(f"INSERT INTO chain VALUES ({', '.join(map(worlds.literal, row))})")

    records = DatabaseRecords(made_in(engine, create, tmp_path, request), NamedRelation(table="chain"))
    try:
        records.check(schema)
        records.read()
        database, _, cells = records._parts
        found = database.rows(sql.select(*map(exp.column, cells.names), of=sql.nested(cells.statement, "cells")))
    finally:
        records.close()
    wanted = [["a"] * (CHAIN + 1), rows[1], ["b"] * 5 + ["a"] * (CHAIN - 4)]
    assert sorted(found) == sorted(tuple(float(cell == "b") for cell in row) for row in wanted)


CODED = """
doublure: 1
kind: table
unit: {name: record, id: none}
units: 3
columns:
  c0: {type: integer, bounds: [0, 30000], missing: false}
"""


def test_a_wide_table_has_a_fingerprint(tmp_path, request):
    """Once, 60 columns were more than sqlglot nests, after the ledger was charged; codes give what they gave then."""
    parts, prime, times = 150, 2_147_483_647, 48_271
    codes = [[(row + 1) * (part + 3) * 1_000_003 % 30_000 for part in range(parts)] for row in range(3)]

    def create(run):
        run(f"CREATE TABLE doublure_codes ({', '.join(f'c{part} SMALLINT' for part in range(parts))})")
        for row in codes:
            run(f"INSERT INTO doublure_codes VALUES ({', '.join(map(str, row))})")

    records = DatabaseRecords(made_in("duckdb", create, tmp_path, request), NamedRelation(table="doublure_codes"))
    try:
        records.check(db.Schema.parse(CODED))
        found = records._checksum(parts)
    finally:
        records.close()
    mixed = []
    for row in codes:
        mix = 1
        for part, code in enumerate(row):
            mix = (mix * times + (code + part + 1) % prime) % prime
        mixed.append(mix)
    said = json.dumps([len(codes), sum(mixed), sum(each * each % prime for each in mixed)])
    assert found == hashlib.sha256(said.encode()).hexdigest()
