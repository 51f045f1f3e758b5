"""From a database to a run on the command line: draft, check, fit."""

from __future__ import annotations

import json
import shlex

import pytest

pytest.importorskip("sqlglot", reason="pip install doublure[sql]")
pytest.importorskip("duckdb", reason="pip install doublure[sql]")

import worlds

from doublure import doctor
from doublure.cli.main import app
from doublure.cli.terminal import run_guarded

SCHEMA = """
doublure: 1
kind: table
unit: {name: record, id: none}
units: 60
columns:
  age: {type: integer, bounds: [18, 90], missing: false}
  job: {type: category, values: [cook, nurse, "it's", clown], missing: ["?", "NA"]}
"""


def test_a_table_from_draft_to_fit(tmp_path, monkeypatch, capsys):
    """A draft and a check read names and storage types, and no row."""

    def said(*words: str) -> str:
        assert run_guarded(app, [*words]) == 0
        return capsys.readouterr().out

    monkeypatch.chdir(tmp_path)
    worlds.duck_file(tmp_path / "f.db", worlds.records(60))
    made = said("schema", "draft", "duckdb:///f.db", "--table", "people", "-o", "draft.yaml")
    next_words = shlex.split(made.partition("Next: doublure ")[2])
    assert next_words[-2:] == ["--table", "people"]
    assert run_guarded(app, next_words) == 4  # it reads the table, and facts are undeclared
    capsys.readouterr()
    query = "SELECT age, job FROM people WHERE age >= 18"
    made = said("schema", "draft", "duckdb:///f.db", "--query", query, "-o", "of query.yaml")
    next_words = shlex.split(made.partition("Next: doublure ")[2])
    assert next_words[2] == "of query.yaml"
    assert next_words[-2:] == ["--query", query]
    assert run_guarded(app, next_words) == 4
    capsys.readouterr()
    drafted = (tmp_path / "draft.yaml").read_text()
    assert "age: {type: integer, bounds: undeclared}" in drafted
    assert "job: {type: category, values: undeclared}" in drafted
    assert "smokes: {type: boolean}" in drafted
    (tmp_path / "schema.yaml").write_text(SCHEMA)
    assert "Only names and storage types" in said(
        "schema", "check", "schema.yaml", "--data", "duckdb:///f.db", "--table", "people"
    )
    said("budget", "init", "l", "--dataset", "people", "--epsilon", "1", "--delta", "1e-5")
    said(
        "fit", "duckdb:///f.db", "--query", "SELECT age, job FROM people WHERE age >= 18", "--schema", "schema.yaml",
        "--epsilon", "1", "--delta", "1e-6", "--ledger", "l", "-o", "run", "--set", "fit_steps=5",
    )  # fmt: skip
    run = json.loads((tmp_path / "run" / "run.json").read_text())
    assert run["database"] == {"engine": "duckdb", "query": "SELECT age, job FROM people WHERE age >= 18"}


def test_the_draft_of_related_tables_is_checked_without_naming_them(tmp_path, monkeypatch, capsys):
    import duckdb

    monkeypatch.chdir(tmp_path)
    with duckdb.connect(tmp_path / "f.db") as connection:
        connection.execute("CREATE TABLE patients (nr INT, sex TEXT)")
        connection.execute("CREATE TABLE stays (nr INT, cost INT)")
    words = ["schema", "draft", "duckdb:///f.db", "--table", "patients,stays", "--root", "patients", "-o", "d.yaml"]
    assert run_guarded(app, words) == 0
    next_words = shlex.split(capsys.readouterr().out.partition("Next: doublure ")[2])
    assert next_words == ["schema", "check", "d.yaml", "--data", "duckdb:///f.db"]
    assert run_guarded(app, next_words) == 4


def test_a_check_refuses_what_a_fit_in_the_database_refuses(tmp_path, monkeypatch, capsys):
    """A header's day is a date, and a truth in words of its own is not read in SQL."""
    import duckdb

    monkeypatch.chdir(tmp_path)
    with duckdb.connect(tmp_path / "f.db") as connection:
        connection.execute("CREATE TABLE people (sent DATE, icu TEXT)")
    place = ["duckdb:///f.db", "--table", "people"]
    assert run_guarded(app, ["schema", "draft", *place, "-o", "d.yaml"]) == 0
    assert "  sent: {type: date, bounds: undeclared" in (tmp_path / "d.yaml").read_text()
    head = "doublure: 1\nkind: table\nunits: 9\ndefaults: {missing: false}\ncolumns:\n"
    plain = "  sent: {type: date, bounds: [2020-01-01, 2020-12-31]}\n  icu: {type: category, values: [Y, N]}\n"
    words = ["schema", "check", "s.yaml", "--data", *place]
    (tmp_path / "s.yaml").write_text(head + plain)
    assert run_guarded(app, words) == 0
    (tmp_path / "s.yaml").write_text(
        head + plain.replace("category, values: [Y, N]", "boolean, written: {true: Y, false: N}")
    )
    capsys.readouterr()
    assert run_guarded(app, words) == 4
    said = capsys.readouterr()
    assert said.err.startswith(
        "doublure: icu: is written in a spelling of its own, which is not read in SQL; make a view"
    )
    assert "# Next" not in said.out


def test_cells_of_a_database_are_not_listed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    worlds.duck_file(tmp_path / "f.db", worlds.records(5))
    (tmp_path / "schema.yaml").write_text(SCHEMA)
    words = ["schema", "check", "schema.yaml", "--data", "duckdb:///f.db", "--table", "people", "--values", "m.csv"]
    assert run_guarded(app, words) == 2
    assert not (tmp_path / "m.csv").exists()


def test_doctor_says_which_engines_were_run():
    found = doctor.examine()
    assert found["databases"] == {"run": ["duckdb", "postgresql"], "compiled": ["bigquery", "snowflake", "spark"]}
    assert "never run" in doctor.describe(found)
