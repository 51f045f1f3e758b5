"""Rows that methods need are streamed from a database as Arrow, and synthetic rows are written back as a table."""

from __future__ import annotations

import json
import random

import pytest

pytest.importorskip("sqlglot", reason="pip install doublure[sql]")
pytest.importorskip("duckdb", reason="pip install doublure[sql]")

import pandas as pd
import worlds
from engines import ENGINES, made_in

import doublure as db
from doublure.cli.main import app
from doublure.cli.terminal import run_guarded
from doublure.data.databases.relation import NamedRelation
from doublure.data.databases.streaming import ArrowDuck, ArrowPostgres, DatabaseStream, table_output
from doublure.data.opening import open_data
from doublure.errors import DataError, DoublureError, SettingError

SCHEMA = """
doublure: 1
kind: table
unit: {name: record, id: none}
units: 60
columns:
  age: {type: integer, bounds: [18, 90], missing: false}
  price: {type: real, bounds: [-5.5, 999.99], precision: 2, missing: false}
  job: {type: category, values: [clown, cook, nurse, "it's"], missing: ["?", "NA"]}
  smokes: {type: boolean, missing: true}
  born: {type: date, bounds: [1930-01-01, 2005-12-31], missing: true}
  seen: {type: datetime, bounds: [2020-01-01T00:00:00, 2023-12-31T23:59:59], missing: false}
  wake: {type: time, bounds: ["04:00", "23:00"], step: 60, missing: true}
"""


def base(engine, folder, request, rows, name="streamed"):
    """Return the address of a database that has a table of rows."""
    if engine == "postgresql":
        pytest.importorskip("adbc_driver_postgresql", reason="pip install doublure[sql]")
    return made_in(engine, lambda run: worlds.create(run, rows, name), folder, request)


def table_of(url, table):
    return f"{url}?table={table}" if url.startswith("duckdb") else f"{url}/{table}"


@pytest.mark.parametrize("engine", ENGINES)
def test_cells_of_a_stream_are_those_of_the_rows(engine, tmp_path, monkeypatch, request):
    rows, schema = worlds.records(80), db.Schema.parse(SCHEMA)
    url = base(engine, tmp_path, request, rows)
    worlds.duck_file(tmp_path / "own.db", rows)
    own = open_data(worlds.duck_rows(tmp_path / "own.db"), "table", schema.written).load(schema)
    source = open_data(DatabaseStream(url, NamedRelation(table="streamed")), "table", schema.written)
    source.check(schema)
    found = source.load(schema)
    pd.testing.assert_frame_equal(found.frame, own.frame)
    with pytest.raises(DataError, match="once"):
        source.load(schema)


SPANS = "'1 hour 30 minutes'", "'2 days'", "'1 month'", "'-3 hours'", "'178000000 years'", "NULL"
DAYS = "'2020-02-02'", "'infinity'", "'-infinity'"


def streamed(engine, folder, request, kind, cells, column):
    """Return the numbers of a stream's column of some cells, read with misfit: coerce."""
    url = base(engine, folder, request, worlds.records(2))
    said = f"CREATE TABLE odd (cell {kind}, name TEXT)", f"INSERT INTO odd (cell) VALUES ({'), ('.join(cells)})"
    if engine == "duckdb":
        import duckdb

        with duckdb.connect(folder / "made.db") as connection:
            for each in said:
                connection.execute(each.replace("178000000", "100000000"))
    else:
        with request.getfixturevalue("postgres").connect() as connection:
            for each in ("DROP TABLE IF EXISTS odd", *said):
                connection.execute(each)
    head = SCHEMA[: SCHEMA.index("  age")].replace("columns", "misfit: coerce\ncolumns")
    schema = db.Schema.parse(f"{head}  cell: {column}")
    source = open_data(DatabaseStream(url, NamedRelation(table="odd"), schema), "table", schema.written)
    assert source.columns == ["cell"]
    return schema.columns["cell"].numbers_of(source.load(schema).frame["cell"]).tolist()


@pytest.mark.parametrize("engine", ENGINES)
def test_intervals_of_a_stream_are_spans_of_time(engine, tmp_path, request):
    """As they are where the database counts; one that is longer than Python's own spans does not fit."""
    column = "{type: duration, bounds: ['0:00:00', '9999:00:00'], missing: true}"
    found = streamed(engine, tmp_path, request, "INTERVAL", SPANS, column)
    assert found[:4] == [5_400, 172_800, 2_592_000, 0]
    assert pd.isna(found[4:]).all()


@pytest.mark.parametrize(("kind", "column"), [("DATE", "date"), ("TIMESTAMP", "datetime"), ("TIMESTAMPTZ", "datetime")])
@pytest.mark.parametrize("engine", ENGINES)
def test_a_time_without_an_end_is_missing_in_a_stream(engine, kind, column, tmp_path, request):
    """As it is where the database counts: drivers gave the last day, or the first one, for it."""
    bounds = "[2020-01-01, 2021-01-01]" if column == "date" else "[2020-01-01T00:00:00, 2021-01-01T00:00:00]"
    described = f"{{type: {column}, bounds: {bounds}, missing: true}}"
    found = streamed(engine, tmp_path, request, kind, DAYS, described)
    assert pd.isna(found).tolist() == [False, True, True]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_method_with_gradients_reads_after_the_charge_and_writes_a_table_back(engine, tmp_path, monkeypatch, request):
    """Rule 11: no row is asked for before the charge. Types are kept; a table is never replaced unasked."""
    pytest.importorskip("torch", reason="pip install doublure[torch]")
    url = base(engine, tmp_path, request, worlds.records(60))
    plan = db.plan(db.Schema.parse(SCHEMA), method="dpgan", epsilon=3.0, delta=1e-4, steps=2, accountant="rdp")
    ledger = db.Ledger.create(tmp_path / "l", dataset="people", epsilon=9.0, delta=1e-3)
    read, charged = DatabaseStream._batches, []

    def noted(stream, *given):
        charged.append(len(db.Ledger.open(ledger.path).entries) > 1)
        yield from read(stream, *given)

    monkeypatch.setattr(DatabaseStream, "_batches", noted)
    driver, said = ArrowDuck if engine == "duckdb" else ArrowPostgres, []
    asked = driver.rows

    def note(database, text):
        said.append((text, len(db.Ledger.open(ledger.path).entries) > 1))
        return asked(database, text)

    monkeypatch.setattr(driver, "rows", note)
    db.fit(url, plan, ledger=ledger, out=tmp_path / "run", seed=1, progress=False, table="streamed")
    assert charged == [True]
    assert [paid for _, paid in said] == [False, True]
    assert said[0][0].endswith("LIMIT 0")  # the header; no row is read before the charge
    run = json.loads((tmp_path / "run" / "run.json").read_text())
    assert run["database"] == {"engine": engine, "table": "streamed"}
    made = table_of(url, f"made_{random.getrandbits(30)}")
    words = ["sample", str(tmp_path / "run"), "-o", made, "-n", "30", "--seed", "2"]
    assert run_guarded(app, words) == 0
    assert run_guarded(app, words) == 2
    assert run_guarded(app, [*words, "--force"]) == 0
    assert "person" in dict(worlds.COLUMNS)
    assert not any(name in said[1][0] for name in ("person", "dose", "*"))  # cells of no use stay where they are
    schema = db.Schema.parse(SCHEMA)
    name = made.rpartition("=" if engine == "duckdb" else "/")[2]
    again = open_data(DatabaseStream(url, NamedRelation(table=name)), "table", schema.written)
    again.check(schema)
    found = again.load(schema).frame
    plain = db.load(tmp_path / "run").sample(30, seed=2)
    for column in ("age", "price", "born", "seen"):
        assert found[column].isna().tolist() == plain[column].isna().tolist()
        assert (found[column].dropna().to_numpy() == plain[column].dropna().to_numpy()).all()


@pytest.mark.parametrize("engine", ENGINES)
def test_the_rows_of_a_release_become_a_table(engine, tmp_path, monkeypatch, request):
    """The bundle is verified as always, and the table has its rows."""
    url = base(engine, tmp_path, request, worlds.records(60))
    schema = db.Schema.parse(SCHEMA)
    plan = db.plan(schema, epsilon=3.0, delta=1e-4, accountant="rdp", fit_steps=5, starts=1)
    ledger = db.Ledger.create(tmp_path / "l", dataset="people", epsilon=9.0, delta=1e-3)
    db.fit(url, plan, ledger=ledger, out=tmp_path / "run", seed=1, progress=False, table="streamed")
    into = table_of(url, f"released_{engine}")
    words = ["release", str(tmp_path / "run"), "-n", "40", "--into", into]
    assert run_guarded(app, [*words, "-o", str(tmp_path / "csv"), "--format", "csv"]) == 2
    assert not (tmp_path / "csv").exists()
    assert run_guarded(app, [*words, "-o", str(tmp_path / "bundle")]) == 0
    assert db.verify(tmp_path / "bundle", ledger=ledger.path)["files"] > 3
    found = open_data(DatabaseStream(url, NamedRelation(table=f"released_{engine}")), "table", schema.written)
    found.check(schema)
    wanted = open_data(tmp_path / "bundle" / "data.parquet", "table", schema.written)
    wanted.check(schema)
    pd.testing.assert_frame_equal(found.load(schema).frame, wanted.load(schema).frame)
    assert run_guarded(app, [*words, "-o", str(tmp_path / "again")]) == 2
    assert not (tmp_path / "again").exists()


@pytest.mark.parametrize("engine", ENGINES)
def test_nothing_stays_of_a_table_that_cannot_be_written(engine, tmp_path, monkeypatch, request):
    url = base(engine, tmp_path, request, worlds.records(5))
    made = table_of(url, "half")
    with pytest.raises(ZeroDivisionError), table_output(made, forced=False):
        raise ZeroDivisionError
    with pytest.raises(SettingError, match="already"), table_output(table_of(url, "streamed"), forced=False):
        pass
    with pytest.raises(DoublureError), table_output(url, forced=False):
        pass
    with pytest.raises(DataError):
        DatabaseStream(url, NamedRelation(table="half")).__arrow_c_stream__()


def test_force_replaces_the_table_that_it_makes_and_no_other_on_the_path(tmp_path, request):
    """A name without a schema is that of a new table in the first schema; another schema's stays as it is."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    url = base("postgresql", tmp_path, request, worlds.records(5))
    server = request.getfixturevalue("postgres")
    with server.connect() as connection:
        connection.execute("CREATE SCHEMA ward; CREATE TABLE ward.patients AS SELECT 'private' AS cell")
        connection.execute(f"ALTER ROLE {server.user} SET search_path = public, ward")
    try:
        for rows in (3, 4):
            with table_output(f"{url}/patients", forced=True) as path:
                pq.write_table(pa.table({"cell": ["made"] * rows}), path)
        with server.connect() as connection:
            assert connection.execute("SELECT count(*) FROM public.patients").fetchone() == (4,)
            assert connection.execute("SELECT cell FROM ward.patients").fetchall() == [("private",)]
    finally:
        with server.connect() as connection:
            connection.execute(f"ALTER ROLE {server.user} RESET search_path")
            connection.execute("DROP SCHEMA ward CASCADE; DROP TABLE IF EXISTS patients")


def test_no_file_stays_where_its_table_cannot_be_made(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    url = f"duckdb:///{tmp_path / 'new.db'}"
    with pytest.raises(DataError), table_output(f"{url}?table=nowhere.half", forced=False) as path:
        pq.write_table(pa.table({"cell": [1]}), path)
    with pytest.raises(SettingError, match="no name"), table_output(f"{url}?table=a.b.c.d", forced=True):
        pass
    assert not [*tmp_path.iterdir()]
