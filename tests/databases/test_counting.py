"""Counts of a database equal NumPy's of the same records, to the last bit, for every query of a plan."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("sqlglot", reason="pip install doublure[sql]")
pytest.importorskip("duckdb", reason="pip install doublure[sql]")

import worlds
from engines import ENGINES, made_in
from planting import plant
from shadows import Shadow
from tiers import crossed

import doublure as db
from doublure.data.databases.relation import NamedRelation
from doublure.data.opening import open_data
from doublure.encode.table_values import TableValues
from doublure.private import sql_partitions
from doublure.private.queries.axes import Axis, Intervals, LinearIdentity, PeriodParts
from doublure.private.queries.counts import Counts
from doublure.private.sql_partitions import SqlPartitions
from doublure.run.database_records import DatabaseRecords
from doublure.schema.columns import sql_words as sql
from doublure.schema.columns.sql_words import SqlWords


def fit(url, schema, folder, *, table="people", epsilon=1.0, **more):
    plan = db.plan(schema, epsilon=epsilon, delta=1e-6, accountant="rdp", fit_steps=5, starts=1)
    ledger = db.Ledger.create(folder / "people.ledger", dataset="people", epsilon=epsilon, delta=1e-4)
    return db.fit(url, plan, ledger=ledger, out=folder / "run", seed=1, progress=False, table=table, **more)


@pytest.fixture(scope="module")
def natures(tmp_path_factory):
    """A fit of every nature in DuckDB, all of whose answers were compared: its records, its folder, its queries."""
    folder, schema, rows = tmp_path_factory.mktemp("natures"), worlds.schema(), worlds.records(500, wrong=0.5)
    url = worlds.duck_file(folder / "f.db", rows)
    with pytest.MonkeyPatch.context() as patch:
        shadow = Shadow(patch, worlds.duck_rows(folder / "f.db"), schema)
        syn = fit(url, schema, folder)
    return rows, folder, shadow, syn, schema


def test_a_cell_of_a_list_that_is_no_number_is_missing(tmp_path):
    """As in memory: it is no misfit, and not the other."""
    import duckdb

    with duckdb.connect(tmp_path / "f.db") as connection:
        connection.execute("CREATE TABLE people (grade DOUBLE, smokes REAL)")
        connection.execute("INSERT INTO people VALUES (2, 1), ('NaN', 'NaN'), (7, 0), (NULL, NULL)")
    listed = "{type: category, values: [1, 2], other: o, missing: true}"
    head = "doublure: 1\nkind: table\nunit: {name: record, id: none}\nunits: 4\ncolumns:\n"
    own = db.Schema.parse(f"{head}  grade: {listed}\n  smokes: {{type: boolean, missing: true}}\n")
    records = DatabaseRecords(f"duckdb:///{tmp_path / 'f.db'}", NamedRelation(table="people"))
    try:
        records.check(own)
        records.read()
        encoder = TableValues(own.resolve({}))
        places = records.encoded(encoder, None).partitions()
        query = Counts(tables=[(Axis.of_codes(0, 4),), (Axis.of_codes(1, 3),)], max_records=1)
        (answer,) = places.answers(query, sample_rate=1.0)
    finally:
        records.close()
    rows = open_data(worlds.duck_rows(tmp_path / "f.db"), "table", own.written).load(own)
    found = encoder.compact(rows.content)
    wanted = [np.bincount(found[:, place].astype(int), minlength=size) for place, size in ((0, 4), (1, 3))]
    assert answer.total.tolist() == np.concatenate(wanted).tolist() == [0, 1, 1, 2, 1, 1, 2]


@pytest.mark.parametrize("values", ["[1, 2]", "['1', '2']"])
@pytest.mark.parametrize("kind", ["VARCHAR", "DOUBLE"])
def test_a_spelling_that_is_a_number_is_read_as_in_memory(values, kind, tmp_path):
    """A number is read by its label: 9 by a spelling 9, never by 07; a text 09 says 9 where values are numbers."""
    import duckdb

    cells = ["1", "01", "9", "09", "9.0", "7", "07", "007", "2"]
    with duckdb.connect(tmp_path / "f.db") as connection:
        connection.execute(f"CREATE TABLE people (grade {kind})")
        connection.executemany("INSERT INTO people VALUES (?)", [[cell] for cell in cells])
    column = f"{{type: category, values: {values}, spellings: {{'9': 2, '07': 1}}, other: o, missing: false}}"
    own = db.Schema.parse(
        f"doublure: 1\nkind: table\nunit: {{name: record, id: none}}\nunits: 9\ncolumns: {{grade: {column}}}\n"
    )
    records = DatabaseRecords(f"duckdb:///{tmp_path / 'f.db'}", NamedRelation(table="people"))
    try:
        records.check(own)
        records.read()
        encoder = TableValues(own.resolve({}))
        query = Counts(tables=[(Axis.of_codes(0, 3),)], max_records=1)
        (answer,) = records.encoded(encoder, None).partitions().answers(query, sample_rate=1.0)
    finally:
        records.close()
    rows = open_data(worlds.duck_rows(tmp_path / "f.db"), "table", own.written).load(own)
    found = np.bincount(encoder.compact(rows.content)[:, 0].astype(int), minlength=3)
    assert answer.total.tolist() == found.tolist()
    numbers = values == "[1, 2]"
    wanted = {"VARCHAR": [3, 4, 2] if numbers else [2, 2, 5], "DOUBLE": [2, 4, 3]}
    assert found.tolist() == wanted[kind]


def test_every_nature_of_a_duckdb_file(natures):
    _, folder, shadow, syn, _ = natures
    assert shadow.tables > 100
    assert shadow.cells > 10_000
    assert len(syn.sample(50, seed=1)) == 50
    assert syn.run["database"] == {"engine": "duckdb", "table": "people"}
    assert str(folder) not in str(syn.run["database"])


def test_every_nature_of_a_postgresql_table(natures, monkeypatch, postgres):
    rows, _, shadow, _, schema = natures
    with postgres.connect() as connection:
        worlds.create(connection.execute, rows, "natures")
    begun = len(postgres.log)
    monkeypatch.setenv("PGPASSWORD", postgres.password)
    with worlds.counted_bytes(postgres.port) as wire:
        url = postgres.url().replace(str(postgres.port), str(wire.port))
        records = DatabaseRecords(url, NamedRelation(table="natures"))
        records.check(schema)
        records.read()
        places = records.encoded(shadow.encoder, None).partitions()
        asked = [*shadow.queries]
        for query in asked:
            places.refuse_unfit(query)
            (answer,) = places.answers(query, sample_rate=1.0)
            shadow.compare(query, answer)
        records.close()
    assert wire.received <= 64 * shadow.cells / 2  # both engines' cells are in it
    said = postgres.log[begun:]
    assert said.count("GROUPING SETS") >= len(asked)
    private = {repr(row[2]) for row in rows if row[2] is not None and len(repr(row[2])) > 10}
    assert private
    assert not private & set(re.findall(r"[0-9.]+", said))
    assert postgres.password not in said


LEARNED = {
    "age": "{type: integer, bounds: {learn: 1.0}, missing: {learn: 1.0}}",
    "dose": "{type: real, bounds: {learn: 1.0}, precision: 1, missing: true}",
    "job": "{type: category, values: {learn: 1.0}, other: Other, missing: ['?']}",
    "grade": "{type: category, values: {learn: 1.0}, other: Other, missing: false}",
    "coded": "{type: category, values: [1, 2, 10], missing: false, roles: [condition], shares: {learn: 1.0}}",
    "born": "{type: date, bounds: {learn: 1.0}, missing: true}",
    "wake": "{type: time, bounds: {learn: 1.0}, missing: true}",
}
FEW = {"person", "price", "smokes", *LEARNED}


def few(schema_text: str) -> str:
    """Keep some columns, so that a fit is quick."""
    lines = schema_text.splitlines()
    kept = [line for line in lines if not line.startswith("  ") or line.split(":")[0].strip() in FEW]
    return "\n".join(kept)


def learned_schema(**more: Any) -> db.Schema:
    text = few(worlds.text(**more, **LEARNED))
    return db.Schema.parse(text.replace("units: 400", "units: {learn: 1.0, magnitude: 200}"))


def first_records(rows: list[Any], table: Any, schema: db.Schema, most: int) -> list[Any]:
    """Return the first records of each unit in the order of their canonical numbers, missing first, then labels."""
    wide = db.Schema.parse(schema.to_yaml().replace(f"max_records: {most}", "max_records: 1000"))
    loaded = open_data(table, "table", wide.written).load(wide)
    numbers, labels = [], []
    for name, column in schema.columns.items():
        cells = loaded.frame.get(name)
        if column.modelled and column.listed and not column.domain:
            numbers.append(cells.notna().to_numpy(dtype=float))
            labels.append(cells.astype(object).where(cells.notna(), "").to_list())
        elif column.modelled:
            found = column.numbers_of(cells)
            numbers.append(np.where(np.isnan(found), -np.inf, found))
    order = sorted(range(len(rows)), key=lambda at: (*(key[at] for key in numbers), *(key[at] for key in labels)))
    kept, seen = set(), dict[int, int]()
    for at in order:
        unit = int(loaded.unit[at])
        seen[unit] = seen.get(unit, 0) + 1
        kept |= {at} if seen[unit] <= most else set()
    return [row for at, row in enumerate(rows) if at in kept]


@pytest.mark.parametrize("engine", ENGINES)
def test_learned_facts_and_units_with_several_records(engine, tmp_path, monkeypatch, request):
    """Of a unit with more records than are used, those are: the first by a hash, which is one for all here."""
    most, rows = 2, worlds.records(600, seed=3, wrong=0.3, people=200)
    schema = learned_schema(unit="person", most=most)
    worlds.duck_file(tmp_path / "f.db", rows)
    url = made_in(engine, lambda run: worlds.create(run, rows), tmp_path, request)
    monkeypatch.setattr(SqlWords, "hashed", lambda words, said: sql.text(""))
    used = first_records(rows, worlds.duck_rows(tmp_path / "f.db"), schema, most)
    assert len(used) < len(rows)
    worlds.duck_file(tmp_path / "used.db", used)
    shadow = Shadow(monkeypatch, worlds.duck_rows(tmp_path / "used.db"), schema)
    syn = fit(url, schema, tmp_path, epsilon=20.0)
    assert shadow.facts == len(schema.questions) > 7
    assert shadow.tables > 20
    assert syn.schema.public_units > 50


SIGNED = """
doublure: 1
kind: table
unit: {name: record, id: none}
units: 400
columns:
  debt: {type: integer, bounds: [-30000, 30000], missing: false}
  far: {type: real, bounds: [-1000000, 1000000], precision: 2, missing: true}
"""


AT = [-300, -100, 0, 100, 250, 400]
CUT, START = 'code < exp.column(f"cut{at}", table=name)', 'code >= exp.column("start", table=name)'


def identities_at_edges(codes, part):
    """Return identities of which some record is at either end of the slack, and one at the mark of missing."""
    weights = (-2, 1)
    total = codes @ np.array(weights)
    mark = int(np.sort(codes[:, part])[-40])
    marks = [int(own) + 1 for own in codes.max(0)]
    marks[part] = mark
    present = total[(codes < marks).all(1)]
    below, above = (int(np.sort(np.abs(present[side]))[10]) for side in (present < 0, present > 0))
    return [
        LinearIdentity(parts=(0, 1), weights=weights, marks=tuple(marks), slack=slack) for slack in (0, below, above)
    ]


def compare_axes(engine, tmp_path, monkeypatch, request):
    """Count codes of two bytes that begin below zero; on intervals of single codes, close together, and even ones."""
    draw = np.random.default_rng(3)
    rows = [
        (int(draw.integers(-30000, 30001)), round(float(draw.normal(0, draw.choice([3, 300]))), 2)) for _ in range(400)
    ]

    def make(run):
        run("CREATE TABLE signed (debt INTEGER, far DOUBLE PRECISION)")
        run(f"INSERT INTO signed VALUES {', '.join(map(str, rows))}")

    url = made_in(engine, make, tmp_path, request)
    schema = db.Schema.parse(SIGNED)
    encoder = TableValues(schema.resolve({}))
    records = DatabaseRecords(url, NamedRelation(table="signed"))
    records.check(schema)
    records.read()
    places = records.encoded(encoder, None).partitions()
    codes = encoder.compact(pd.DataFrame(rows, columns=["debt", "far"]))
    close = np.concatenate([[-1e8, -30000.0], np.arange(-500.0, 500.0, 3), [31000.0, 5e7]])
    for part, domain in enumerate(encoder.domains):
        every = np.arange(domain.first, domain.first + 5)
        one = Intervals(part=part, starts=every.astype(float), cells=np.arange(5), size=5)
        evens = np.linspace(domain.first, domain.last, 40).round()
        even = Intervals(part=part, starts=evens, cells=np.arange(40), size=40)
        near = Intervals(part=part, starts=close, cells=np.arange(len(close)) % 7, size=7)

        few = Intervals(part=part, starts=np.array([-1e9, 0.0, 90.0]), cells=np.array([2, 0, 1]), size=3)
        some = Intervals(part=part, starts=np.array(AT, dtype=float), cells=np.arange(len(AT))[::-1], size=len(AT))
        hours = PeriodParts(part=part, period=240, parts=24, mark=float(np.sort(codes[:, part])[-40]))
        ties = identities_at_edges(codes.astype(np.int64), part)
        alone = (one, even, near, few, some, hours, *ties)
        asked = Counts(tables=[(axis,) for axis in alone] + [(even, near)], max_records=1)
        (answer,) = places.answers(asked, sample_rate=1.0)
        wanted = [
            np.bincount(np.ravel_multi_index([axis.of(codes) for axis in table], [axis.size for axis in table]),
                        minlength=int(np.prod([axis.size for axis in table])))
            for table in asked.tables
        ]  # fmt: skip
        assert np.array_equal(answer.total, np.concatenate(wanted))
    records.close()


@pytest.mark.parametrize("engine", ENGINES)
def test_axes_of_every_shape(engine, tmp_path, monkeypatch, request):
    compare_axes(engine, tmp_path, monkeypatch, request)


@pytest.mark.parametrize(
    ("owner", "name", "old", "new"),
    [
        (SqlPartitions, "_of_runs", CUT, CUT.replace("<", "<=")),
        (SqlPartitions, "_of_runs", "code.copy() - sql.whole(first)", "code.copy() - sql.whole(first + 1)"),
        (SqlPartitions, "_of_runs", START, START.replace(">=", ">")),
        (sql_partitions._CodeBuckets, "of", "begun + (width - 1)", "begun"),
        (sql_partitions, "_cases", "_cases(above, code)", "_cases(below, code)"),
        (sql_partitions, "_period", "rest + period.copy()", "rest"),
        (sql_partitions, "_period", "axis.period // axis.parts", "axis.period // axis.parts + 1"),
        (sql_partitions, "_odd_cases", "code.copy() >= sql.real(axis.mark)", "code.copy() > sql.real(axis.mark)"),
        (SqlPartitions, "_identity", "code.copy() >= sql.whole(mark)", "code.copy() > sql.whole(mark)"),
        (SqlPartitions, "_identity", "off >= sql.whole(-axis.slack)", "off > sql.whole(-axis.slack)"),
        (SqlPartitions, "_identity", "off.copy() <= sql.whole(axis.slack)", "off.copy() < sql.whole(axis.slack)"),
        (SqlPartitions, "_identity", "1 if weight > 0 else -1", "1 if weight > 0 else 1"),
    ],
)
def test_a_code_in_another_cell_is_seen(owner, name, old, new, tmp_path, monkeypatch, request):
    plant(monkeypatch, owner, name, (old, new))
    with pytest.raises(AssertionError):
        compare_axes("duckdb", tmp_path, monkeypatch, request)


RULED = """
doublure: 1
kind: table
unit: {name: record, id: none}
units: 400
misfit: coerce
columns:
  lon: {type: real, bounds: [-10, 10], precision: 3, missing: true}
  lat: {type: real, bounds: [40, 60], missing: true}
  born: {type: date, bounds: [1930-01-01, 2005-12-31], missing: true}
  came: {type: date, bounds: [2000-01-01, 2020-12-31], missing: true}
  went: {type: date, bounds: [2000-01-01, 2021-12-31], missing: false}
  low: {type: real, bounds: [0, 10], precision: 1, missing: false}
  high: {type: real, bounds: [0, 12.5], precision: 1, missing: true}
  free: {type: real, bounds: [0, 1], missing: false}
  above: {type: real, bounds: [0, 3], missing: ["-1", "-2"]}
  stay: {type: integer, bounds: [0, 9000], missing: true}
  code: {type: code, values: [A00, A01, B10, 'C.1.25', C.130], levels: [1, 3], unlisted: chapter, other: none,
    spellings: {b10: B10, Ä12: A01}, missing: true}
constraints:
  - {point: [lon, lat], region: REGION}
  - {at_most: [born, came, went]}
  - {at_most: [low, high]}
  - {at_most: [free, above]}
  - {difference: {of: stay, from: came, to: went, unit: day}}
  - {missing_together: [born, came]}
"""
CORNERS = "[[[-8, 42], [8, 42], [8, 58], [0, 45], [-8, 58]]]"
FAKE = "  who: {type: fake, as: person_name}\n"

UNLISTED = ["A00", "A01", "B10", "A99", "B-1", "C.1.29", "C.1.3", "C", "", "A", "A0", "b10", "Ä12"]


def ruled_rows(rows):
    draw = np.random.default_rng(11)

    def day(first, last):
        start = np.datetime64(first)
        return str(start + int(draw.integers(0, (np.datetime64(last) - start).astype(int) + 1)))

    def maybe(cell):
        return None if draw.random() < 0.15 else cell

    return [
        (
            maybe(round(float(draw.uniform(-11, 11)), 3)), maybe(float(draw.uniform(39, 61))),
            maybe(day("1929-01-01", "2010-12-31")), maybe(day("1995-01-01", "2022-12-31")),
            maybe(day("1999-01-01", "2022-12-31")), maybe(float(draw.normal(5, 4))), maybe(float(draw.normal(6, 4))),
            maybe(float(draw.uniform(-0.1, 1.1))), maybe(float(draw.choice([-1, -2, draw.uniform(0, 3)]))),
            maybe(int(draw.integers(-5, 9000))),
            maybe(str(draw.choice(UNLISTED))),
        )
        for _ in range(rows)
    ]  # fmt: skip


@pytest.mark.parametrize(("region", "engine"), crossed([CORNERS, ""], ENGINES))
def test_points_gaps_and_codes(engine, region, tmp_path, monkeypatch, request):
    """Two numbers that are one place; numbers that are measured from others; codes outside a list; made-up names."""
    rows = ruled_rows(500)
    kinds = "DOUBLE PRECISION,DOUBLE PRECISION,DATE,DATE,DATE,DOUBLE PRECISION,DOUBLE PRECISION,DOUBLE PRECISION,"
    kinds = (kinds + "DOUBLE PRECISION,INTEGER,VARCHAR").split(",")
    text = RULED.replace(", region: REGION", f", region: {region}" if region else "")
    text = text if region else text.replace("came, went]", "came, went], measured_from: came")
    names = [*db.Schema.parse(text).columns]
    values = ", ".join(f"({', '.join(map(worlds.literal, row))}, 'x')" for row in rows)

    def make(run):
        run(f"CREATE TABLE ruled ({', '.join(map(' '.join, zip(names, kinds, strict=True)))}, who VARCHAR)")
        run(f"INSERT INTO ruled VALUES {values}")

    made_in("duckdb", make, tmp_path, request)
    url = made_in(engine, make, tmp_path, request)
    schema = db.Schema.parse(text.replace("constraints:", f"{FAKE}constraints:"))
    shadow = Shadow(monkeypatch, worlds.duck_rows(tmp_path / "made.db", "ruled"), schema)
    fit(url, schema, tmp_path, table="ruled")
    assert shadow.tables > 20
