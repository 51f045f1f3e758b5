"""Drafts and checks of related tables: the root is asked for where names leave it open, and lost rows are counted."""

from __future__ import annotations

import csv
import io
import stat
from pathlib import Path

import pandas as pd
import pytest

from doublure.cli.main import app
from doublure.cli.terminal import run_guarded
from doublure.drafting.draft import draft, drafted, redrafted
from doublure.drafting.links import rows_left_out
from doublure.drafting.relations import OpenRoot, proposed
from doublure.errors import SchemaError
from doublure.schema import Schema
from doublure.schema.relational import RelationalSchema

LEAGUE = {"fielding": ["player", "place"], "masters": ["player", "born"], "pay": ["player", "year"]}
TEXT = """
doublure: 1
kind: relational
unit: {name: player}
units: 100
tables:
  masters:
    key: player
    columns: {player: {type: id}, born: {type: integer, bounds: [1900, 2000], missing: false}}
  pay:
    parent: masters
    foreign_key: player
    max_children: 2
    columns: {player: {type: id}, year: {type: integer, bounds: [1900, 2020], missing: false}}
"""


def frames() -> dict[str, pd.DataFrame]:
    return {
        "masters": pd.DataFrame({"player": ["a", "b", "a", None, "c"], "born": [1950, 1960, 1970, 1980, 1990]}),
        "pay": pd.DataFrame({"player": ["a", "a", "a", "b", "x", "x", None], "year": [2000] * 6 + [1800]}),
    }


def written(folder: Path) -> Path:
    folder.mkdir()
    for name, frame in frames().items():
        frame.to_csv(folder / f"{name}.csv", index=False)
    return folder


def test_a_root_that_names_leave_open_is_asked_for() -> None:
    """By the order of files, a table of many rows a player was the root, and most rows were lost."""
    with pytest.raises(OpenRoot, match=r"root: may be fielding, masters, pay: player stands in each") as refused:
        proposed(LEAGUE)
    assert "--root" in str(refused.value)
    found = proposed(LEAGUE, root="masters")
    assert (found.root, found.key, [*found.children]) == ("masters", "player", ["fielding", "pay"])
    with pytest.raises(SchemaError, match="root: clubs is none of the tables; name one of fielding, masters, pay"):
        proposed(LEAGUE, root="clubs")


@pytest.mark.parametrize(
    "tables",
    [
        {"stays": ["patient_id", "days"], "patients": ["patient_id", "sex"]},  # the key is named for the table
        {"stays": ["nr", "patients_nr"], "patients": ["nr", "sex"]},  # the child says whose key it holds
        {"stays": ["id", "MRN"], "patients": ["MRN", "sex"]},  # the other one has a key of its own
    ],
)
def test_names_that_say_whose_key_it_is_settle_the_root(tables: dict[str, list[str]]) -> None:
    assert proposed(tables).root == "patients"


def test_a_table_that_lacks_the_key_is_named() -> None:
    with pytest.raises(SchemaError, match=r"tables lines: have no column for customers.customer_id; one level"):
        proposed({"customers": ["customer_id"], "orders": ["id", "customer_id"], "lines": ["order_id", "price"]})


def test_a_root_is_kept_when_facts_are_asked_for() -> None:
    tables = {name: pd.DataFrame({own: [1] for own in columns}) for name, columns in LEAGUE.items()}
    made = drafted(tables, root="masters")
    assert redrafted(tables, made.metadata, made).schema == made.schema  # type: ignore[arg-type]
    assert RelationalSchema.of(draft(tables, root="pay")).root == "pay"
    with pytest.raises(SchemaError, match="root: is one of several tables; leave it out for table"):
        draft(tables["masters"], root="masters")


def test_the_terminal_asks_for_the_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["schema", "draft", str(written(tmp_path / "d")), "-o", str(tmp_path / "s.yaml")]
    assert run_guarded(app, words) == 2
    assert "--root" in capsys.readouterr().err
    monkeypatch.setattr("sys.stdin", io.StringIO("clubs\nmasters\n"))
    assert run_guarded(app, [*words, "--ask"]) == 0
    assert "Which table has one row for each unit (masters, pay)?" in capsys.readouterr().err
    assert RelationalSchema.of(Schema.load(tmp_path / "s.yaml")).root == "masters"
    assert run_guarded(app, [*words, "--root", "pay", "--force"]) == 0
    assert RelationalSchema.of(Schema.load(tmp_path / "s.yaml")).root == "pay"


def test_rows_that_a_fit_leaves_out_are_counted() -> None:
    schema = RelationalSchema.of(Schema.parse(TEXT))
    assert [(each.column, str(each)) for each in rows_left_out(schema, frames())] == [
        ("masters.player", "has no key: 1 of 5 rows are left out"),
        ("masters.player", "repeats a key of an earlier row: 1 of 5 rows are left out"),
        ("pay.player", "names no parent: 1 of 7 rows are left out"),
        ("pay.player", "names no row of masters: 2 of 7 rows are left out"),
        ("pay.player", "is beyond max_children: 2: 1 of 7 rows are left out"),
    ]
    whole = {"masters": frames()["masters"].iloc[[0, 1]], "pay": frames()["pay"].iloc[[0, 3]]}
    assert rows_left_out(schema, whole) == []


def test_only_the_owner_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    written(Path("d"))
    Path("s.yaml").write_text(TEXT)
    words = ["schema", "check", "s.yaml", "--data", "d", "--values", "out.csv", "--force"]
    assert run_guarded(app, words) == 0
    with Path("out.csv").open(newline="") as file:
        rows = [*csv.reader(file)][1:]
    assert len(rows) == 6
    assert rows[1] == ["", "masters.player", "", "repeats a key of an earlier row: 1 of 5 rows are left out"]
    assert rows[-1][:3] == ["7", "pay.year", "1800"]
    assert stat.S_IMODE(Path("out.csv").stat().st_mode) == 0o600
    shown = capsys.readouterr()
    assert "left out" not in shown.out + shown.err  # no terminal: it may be a log
    assert run_guarded(app, [*words, "--json"]) == 0
    assert "left out" not in capsys.readouterr().out
    monkeypatch.setattr("doublure.cli.schema.interactive", lambda: True)
    run_guarded(app, words)
    assert "#   pay.player: is beyond max_children: 2: 1 of 7 rows are left out" in capsys.readouterr().out
