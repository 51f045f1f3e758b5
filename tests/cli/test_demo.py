"""The demo walks the whole way and stands by its verdict."""

from __future__ import annotations

import json

import pandas as pd
import pytest

import doublure as db
from doublure.cli import demo as verb
from doublure.releasing.bundle import verify


@pytest.fixture
def quick(monkeypatch):
    """Make the demo small: few rows."""
    rows = db.datasets.load_adult().head(900)
    train, holdout = rows.iloc[:600].reset_index(drop=True), rows.iloc[600:].reset_index(drop=True)
    monkeypatch.setattr(db.datasets, "demo_split", lambda: (train, holdout))
    monkeypatch.setattr(verb, "ROWS", 40)
    return train


def test_the_whole_way(doublure, quick, tmp_path, monkeypatch):
    def by_heart(self, n, given=None, seed=None):
        return quick.sample(n, replace=True, random_state=seed).reset_index(drop=True)

    monkeypatch.setattr(db.Synthesizer, "draw", by_heart)  # nothing is learned from a few rows
    said = doublure("demo", "-o", tmp_path / "demo", "--json")
    assert said.code == 0, said.err
    found = said.result["result"]
    assert "differentially private for one person" in found["guarantee"]["sentence"]
    report = json.loads((tmp_path / "demo" / "run" / "internal" / "report.json").read_text())
    assert report["table"]["rows"]["kept_aside"] is True
    assert verify(found["bundle"], ledger=tmp_path / "demo" / "adult.ledger")["files"] == 7
    for title in ("1. Data", "4. Ledger", "7. Report", "8. Release"):
        assert title in said.err
    assert "an AUC of" in said.err  # the verdict: three in four earn less, so that accuracy says little
    again = doublure("demo", "-o", tmp_path / "demo")
    assert (again.code, "choose another folder with -o" in again.line) == (2, True)


def test_a_bad_verdict_is_exit_4(doublure, quick, tmp_path, monkeypatch):
    def shuffled(self, n, given=None, seed=None):
        return quick.sample(n, replace=True, random_state=1).apply(
            lambda column: column.sample(frac=1, random_state=len(str(column.name))).to_numpy()
        )

    monkeypatch.setattr(db.Synthesizer, "draw", shuffled)
    said = doublure("demo", "-o", tmp_path / "demo", "--json")
    assert said.code == 4
    assert said.result["error"]["field"] == "verdict"
    assert "no better than independent columns" in said.result["error"]["message"]
    assert not (tmp_path / "demo" / "bundle").exists()


@pytest.mark.parametrize(("width", "rows"), [(200, 5), (80, 3), (58, 2), (10, 1)])
def test_the_rows_it_shows_fit_the_terminal(width, rows):
    frame = pd.DataFrame({"marital-status": ["Married-civ-spouse"] * 9, "age": range(9)}).head(5)
    lines = verb._that_fit(frame, width).split("\n")
    assert lines[0].split() == [str(row) for row in range(rows)]
    assert rows == 1 or max(map(len, lines)) <= width
    assert lines[1].split() == ["marital-status", *["Married-civ-spouse"] * rows]
