"""Sources that are refused: before a record is opened, in one line, and without a cell, a count or a password."""

from __future__ import annotations

import json
import os

import pytest

pytest.importorskip("sqlglot", reason="pip install doublure[sql]")
pytest.importorskip("duckdb", reason="pip install doublure[sql]")

import worlds
from engines import ENGINES, made_in

import doublure as db
from doublure.cli.schema import looked_at
from doublure.data.databases.address import read_address
from doublure.data.databases.connection import connect
from doublure.data.databases.relation import choose_relation, read_query
from doublure.errors import DataError, DoublureError, SettingError
from doublure.run.database_records import DatabaseRecords
from doublure.run.database_units import place_in_database
from doublure.support.postgres import with_tls

SECRET = "hunter2"
SMALL = """
doublure: 1
kind: table
unit: {name: record, id: none}
units: 100
columns:
  age: {type: integer, bounds: [18, 90], missing: false}
  job: {type: category, values: [cook, nurse, "it's"], missing: ["?", "NA"]}
"""


def refusal(act, kind=DoublureError):
    with pytest.raises(kind) as caught:
        act()
    error = caught.value
    assert "\n" not in str(error)
    assert error.remedy
    assert error.__context__ is None or not str(error.__context__) or error.__suppress_context__
    return error


def checked(path, schema, table="people"):
    records = DatabaseRecords(f"duckdb:///{path}", choose_relation(table, None))
    try:
        records.check(schema)
        records.read()
    finally:
        records.close()


@pytest.mark.parametrize(
    ("url", "said"),
    [
        (f"postgresql://me:{SECRET}@host/base", "password"),
        (f"postgresql://host/base?password={SECRET}", "password"),
        (f"postgresql://me:{SECRET}@[host/base", "address"),
        ("postgresql://host", "database"),
        ("postgresql://host/base?sslmode=disable", "TLS"),
        ("postgresql://host/base?sslmode=prefer", "TLS"),
        ("postgresql://host/base?options=-csearch_path", "parameter"),
        ("postgresql://host/base/people", "table"),
        ("duckdb:///file.db?table=people", "table"),
        ("duckdb://file.db", "path"),
        ("duckdb:///file.db?access_mode=rw", "path"),
        ("bigquery://project/set", "never run"),
        ("snowflake://account/base", "never run"),
        ("spark://host", "never run"),
    ],
)
def test_an_address_is_refused(url, said):
    error = refusal(lambda: read_address(url), SettingError)
    assert said in error.message
    assert SECRET not in str(error)


@pytest.mark.parametrize(
    ("url", "local"),
    [
        ("postgresql://127.0.0.1:5433/base?sslmode=disable", True),
        ("postgres:///base", True),
        ("postgresql://[::1]/base", True),
        ("postgresql://db.clinic.org/base?sslmode=require", False),
        ("postgresql:///base?host=/tmp,db.clinic.org", False),
        ("postgresql:///base?host=/tmp,localhost", True),
        ("postgresql:///base?host=/tmp,", False),
    ],
)
def test_an_address_is_read(url, local):
    assert read_address(url).local is local


@pytest.mark.parametrize("name", ["PGHOST", "PGHOSTADDR", "PGSERVICE"])
def test_a_server_that_the_environment_names_is_elsewhere(monkeypatch, name):
    """An address without a host is no socket then, and libpq would go over the network in plain text."""
    monkeypatch.setenv(name, "db.clinic.org")
    assert not read_address("postgresql:///base").local
    assert "TLS" in refusal(lambda: read_address("postgresql:///base?sslmode=prefer"), SettingError).message


def test_a_server_elsewhere_is_spoken_to_with_tls(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("PGSSLROOTCERT", raising=False)
    assert with_tls({}) == {"sslmode": "verify-full", "sslrootcert": "system"}
    assert with_tls({"sslmode": "require"}) == {"sslmode": "require"}  # libpq refuses the system's roots beside it
    assert with_tls({"sslrootcert": "own.crt"}) == {"sslmode": "verify-full", "sslrootcert": "own.crt"}


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM people LIMIT 5", "SELECT DISTINCT age FROM people", "SELECT count(*) FROM people",
        "SELECT age, row_number() OVER (ORDER BY age) AS r FROM people", "SELECT age FROM people GROUP BY age",
        "SELECT age FROM people WHERE random() < 0.5", "SELECT age FROM people TABLESAMPLE BERNOULLI (5)",
        "SELECT age FROM people WHERE age > (SELECT avg(age) FROM people)", "SELECT a FROM p JOIN q USING (id)",
        "WITH x AS (SELECT 1 AS age) SELECT * FROM x", "SELECT age FROM p UNION ALL SELECT age FROM p",
        "SELECT age FROM people ORDER BY age", "SELECT my_own(age) FROM people", "DELETE FROM people",
        "SELECT age FROM people; SELECT age FROM people", "SELECT unnest(ages) FROM people", "SELECT $1 FROM people",
        "SELECT nextval('s') FROM people", "SELECT age FROM generate_series(1, 5) AS g(age)", "selct age",
        "SELECT rowid, age FROM people", "SELECT age FROM people WHERE people.ROWID < 9", 'SELECT "ctid" FROM people',
        "SELECT xmin FROM people", "SELECT age AS a FROM p, LATERAL f(p)",
        """SELECT EXTRACT("year from born), (SELECT count(*) FROM people), EXTRACT(year" FROM born) FROM people""",
        "SELECT age FROM people FOR UPDATE", "SELECT (SELECT 1) AS age FROM people", "SELECT current_date FROM people",
    ],
)  # fmt: skip
@pytest.mark.parametrize("dialect", ["duckdb", "postgres"])
def test_a_query_that_looks_beyond_a_row_is_refused(query, dialect):
    assert "view" in refusal(lambda: read_query(query, dialect), SettingError).remedy or query.startswith("selct")


def test_a_name_is_a_column_s_and_no_function_s(postgres):
    """PostgreSQL calls a function by `people.count`: here an aggregate of all rows, or one that reads other tables."""
    import psycopg

    with postgres.connect() as connection:
        connection.execute("CREATE TABLE called (age int)")
        connection.execute("INSERT INTO called SELECT 20 FROM generate_series(1, 5)")
        assert connection.execute("SELECT p.count FROM called AS p").fetchall() == [(5,)]
        refused = read_query("SELECT p.count AS age FROM called AS p", "postgres").sql(dialect="postgres")
        with pytest.raises(psycopg.errors.UndefinedColumn):
            connection.execute(refused)
        kept = read_query("SELECT p.age, p.* FROM called AS p WHERE p.age > 3", "postgres").sql(dialect="postgres")
        assert connection.execute(kept).fetchall() == [(20, 20)] * 5
        connection.execute("DROP TABLE called")


def test_comments_do_not_come_with_a_query():
    """Nor does what stands in them, if an engine ends a comment elsewhere."""
    found = read_query("SELECT age /* x */ FROM people -- */ UNION ALL SELECT 1 /*", "postgres")
    assert found.sql(dialect="postgres") == "SELECT age FROM people"


def test_a_text_ends_where_it_seems_to_whatever_a_role_has_set(postgres, monkeypatch):
    monkeypatch.setenv("PGPASSWORD", postgres.password)
    query = r"SELECT '\' AS one, ', count(*) AS two FROM ended --' AS other FROM ended"
    with postgres.connect() as connection:
        connection.execute("CREATE TABLE ended (age int)")
        connection.execute("ALTER ROLE CURRENT_USER SET standard_conforming_strings = off")
    try:
        database = connect(read_address(postgres.url()))
        header = database.header(choose_relation(None, query).source(database).this)
        database.close()
        assert [name for name, _ in header] == ["one", "other"]
    finally:
        with postgres.connect() as connection:
            connection.execute("ALTER ROLE CURRENT_USER RESET standard_conforming_strings")
            connection.execute("DROP TABLE ended")


def test_a_query_that_cannot_be_written_is_refused_by_name():
    assert "understood" in refusal(lambda: read_query("SELECT date() FROM people", "duckdb"), SettingError).message


def test_a_query_of_rows_is_counted(tmp_path):
    rows = worlds.records(50)
    url = worlds.duck_file(tmp_path / "f.db", rows)
    query = "SELECT greatest(age, 18) AS age, CASE WHEN job = 'clown' THEN 'cook' ELSE job END AS job FROM people p"
    records = DatabaseRecords(url, choose_relation(None, f"{query} WHERE p.age BETWEEN 20 AND 80"))
    records.check(db.Schema.parse(SMALL))
    records.read()
    assert records._units == sum(20 <= row[1] <= 80 for row in rows)
    assert "query" in records.public["database"]
    records.close()


def test_tables_and_databases_belong_together(tmp_path):
    plan = db.plan(db.Schema.parse(SMALL), epsilon=1.0, delta=1e-6, accountant="rdp")
    for url, table, query, engine in (
        ("people.csv", "people", None, "local"), ("people.csv", None, "SELECT 1", "local"),
        ("duckdb:///f.db", None, None, "local"), ("duckdb:///f.db", "people", "SELECT 1", "local"),
        ("duckdb:///f.db", "people", None, "dask"),
    ):  # fmt: skip
        refusal(lambda given=(url, plan, engine, table, query): place_in_database(*given, counted=True), SettingError)


@pytest.mark.parametrize("url", ["sqlite:///health.sqlite", "mysql://anna@host/health"])
def test_a_database_that_is_not_read_is_called_one(url):
    with pytest.raises(SettingError, match=r"is no database that is read; read are duckdb:/// and postgresql://"):
        looked_at(url, "visits", None)
    refusal(lambda: read_address(url), SettingError)


def test_what_is_not_there_is_refused(tmp_path):
    worlds.duck_file(tmp_path / "f.db", worlds.records(5))
    small = db.Schema.parse(SMALL)
    assert "no such file" in refusal(lambda: checked(tmp_path / "g.db", small), DataError).message
    assert "refused a statement" in refusal(lambda: checked(tmp_path / "f.db", small, "persons"), DataError).message
    other = db.Schema.parse(SMALL.replace("  age:", "  years:"))
    assert refusal(lambda: checked(tmp_path / "f.db", other), DataError).field == "years"


@pytest.mark.parametrize(
    ("column", "said"),
    [
        ("born: {type: integer, bounds: [0, 5], missing: true}", "stored as day"),
        ("born: {type: category, values: [a], missing: true}", "stored as day"),
        ("wake: {type: duration, bounds: ['0:00:00', '9:00:00'], missing: true}", "stored as clock"),
        ("grade: {type: code, values: [A00, B10], levels: [1], unlisted: chapter, other: none, missing: true}",
         "begin of texts"),
        ("minutes: {type: duration, bounds: ['0:00:00', '9:00:00'], missing: true}", "stored as whole"),
        ("sent: {type: datetime, bounds: [2020-01-01T00:00:00, 2021-01-01T00:00:00], missing: true,"
         " date_format: DD.MM.YYYY}", "spelling"),
    ],
)  # fmt: skip
def test_a_column_that_is_stored_otherwise_is_refused_before_the_charge(column, said, tmp_path):
    worlds.duck_file(tmp_path / "f.db", worlds.records(5))
    schema = db.Schema.parse(f"{SMALL}  {column}\n")
    error = refusal(lambda: checked(tmp_path / "f.db", schema), DataError)
    assert said in error.message
    assert error.field == column.partition(":")[0]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_misfit_is_refused_after_the_charge_and_before_a_draw(engine, tmp_path, request):
    """All columns are named at once; no cell and no number of cells is; nothing is spent, and no folder stays."""
    rows = [list(row) for row in worlds.records(30)]
    names = [*worlds.COLUMNS]
    rows[3][names.index("age")], rows[4][names.index("job")] = None, "astronaut"
    rows[5][names.index("typed")] = "77,5"
    url = made_in(engine, lambda run: worlds.create(run, [tuple(row) for row in rows]), tmp_path, request)
    schema = db.Schema.parse(SMALL + "  typed: {type: integer, bounds: [0, 9], missing: ['-7', '-8']}\n")
    plan = db.plan(schema, epsilon=1.0, delta=1e-6, accountant="rdp")
    ledger = db.Ledger.create(tmp_path / "l", dataset="people", epsilon=1.0, delta=1e-4)
    error = refusal(
        lambda: db.fit(url, plan, ledger=ledger, out=tmp_path / "run", progress=False, table="people"), DataError
    )
    assert error.field == "job, typed"
    assert "astronaut" not in str(error)
    assert "77" not in str(error)
    assert ledger.spent.epsilon == 0
    assert not (tmp_path / "run").exists()


def test_a_message_of_the_driver_is_never_shown(tmp_path, postgres, monkeypatch):
    """PostgreSQL quotes the cell that cannot be cast; the error says its code alone, and holds no other."""
    with postgres.connect() as connection:
        connection.execute("CREATE TABLE quoted AS SELECT 'astronaut' AS age, 'cook' AS job")
    monkeypatch.setenv("PGPASSWORD", postgres.password)
    records = DatabaseRecords(postgres.url(), choose_relation(None, "SELECT CAST(age AS int) AS age, job FROM quoted"))
    records.check(db.Schema.parse(SMALL))
    error = refusal(records.read, DataError)
    records.close()
    assert "22P02" in error.message
    assert "astronaut" not in str(error)
    assert error.__cause__ is error.__context__ is None


def test_the_password_of_the_environment_is_used_and_written_nowhere(tmp_path, postgres, monkeypatch):
    with postgres.connect() as connection:
        worlds.create(connection.execute, worlds.records(40), "small")
    schema = db.Schema.parse(SMALL.replace("[cook", "[clown, cook"))
    plan = db.plan(schema, epsilon=1.0, delta=1e-6, accountant="rdp", fit_steps=5)
    ledger = db.Ledger.create(tmp_path / "l", dataset="people", epsilon=2.0, delta=1e-4)
    monkeypatch.delenv("PGPASSWORD", raising=False)
    monkeypatch.setenv("PGPASSFILE", str(tmp_path / "none"))
    error = refusal(lambda: db.fit(postgres.url(), plan, ledger=ledger, out=tmp_path / "run", table="small"), DataError)
    assert postgres.password not in str(error)
    monkeypatch.setenv("PGPASSWORD", postgres.password)
    db.fit(postgres.url(), plan, ledger=ledger, out=tmp_path / "run", seed=1, progress=False, table="small")
    db.release(db.load(tmp_path / "run"), tmp_path / "bundle", n=40, seed=1)
    for folder in ("run", "bundle"):
        for path in (tmp_path / folder).rglob("*"):
            if path.is_file():
                assert postgres.password.encode() not in path.read_bytes()
    card = json.loads((tmp_path / "bundle" / "card.json").read_text())
    assert any("table or view small" in limit for limit in card["limits"])
    assert os.environ["PGPASSWORD"]


@pytest.mark.parametrize("name", ["'x.csv'", '"x.csv"', "frame"])
def test_a_file_or_a_variable_is_no_table(name, tmp_path, monkeypatch):
    """DuckDB takes a name that it does not know for a file's, or for a variable's of this process; a view may read."""
    import duckdb
    import pandas as pd

    monkeypatch.chdir(tmp_path)
    frame = pd.DataFrame({"age": [20, 30], "job": ["cook", "nurse"]})
    frame.to_csv("x.csv", index=False)
    with duckdb.connect("f.db") as connection:
        connection.execute("CREATE VIEW people AS SELECT * FROM 'x.csv'")
    records = DatabaseRecords("duckdb:///f.db", choose_relation(None, f"SELECT * FROM {name}"))
    error = refusal(lambda: records.check(db.Schema.parse(SMALL)), SettingError)
    records.close()
    assert "no table" in error.message
    assert "view" in error.remedy
    checked("f.db", db.Schema.parse(SMALL))
