"""Empty cells beside the one text that means missing: what a schema's owner is told of them, and what is public."""

from __future__ import annotations

import pandas as pd
import pytest

import doublure as db
from doublure.data.tables import cells
from doublure.drafting.misfits import list_misfits
from doublure.drafting.mixed_missing import lone_text
from doublure.drafting.owner_notes import NOTES
from doublure.schema.columns import type_named
from doublure.schema.columns.missing_kinds import numbers_with_texts
from doublure.schema.columns.spelling import TextMarks

SCHEMA = """
doublure: 1
kind: table
units: 200
columns:
  low: {type: real, bounds: [0, 20], precision: 1, missing: MISSING}
  sex: {type: category, values: [f, m], missing: ["?"]}
"""
CELLS = ["<0.2"] * 3 + [""] * 17 + ["1.5"] * 180


def schema(missing):
    return db.Schema.parse(SCHEMA.replace("MISSING", missing))


@pytest.fixture
def data(tmp_path):
    pd.DataFrame({"low": CELLS, "sex": ["f", "m"] * 100}).to_csv(tmp_path / "data.csv", index=False)
    return tmp_path / "data.csv"


def test_the_owner_is_told_of_both_kinds_and_how_to_keep_them(data, tmp_path):
    notes = NOTES["table"](schema('["<0.2"]'), data)
    assert [each.line for each in notes if each.column == "low"][:1] == [
        "low: 17 empty cells and 3 that say <0.2: all that is missing comes out as <0.2; "
        "missing: ['', <0.2] keeps both in their shares"
    ]
    list_misfits(schema('["<0.2"]'), data, tmp_path / "misfits.csv", notes=notes)
    assert "17 empty cells and 3 that say <0.2" in (tmp_path / "misfits.csv").read_text()
    assert (tmp_path / "misfits.csv").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("missing", ['["", "<0.2"]', '["<0.2", "-9"]', "true"])
def test_nothing_is_told_where_kinds_are_apart_or_no_text_is_declared(missing, data):
    assert lone_text(schema(missing).columns["low"]) is None
    assert "keeps both" not in str([each.line for each in NOTES["table"](schema(missing), data)])


def test_nothing_is_told_of_a_text_without_empty_cells(tmp_path):
    pd.DataFrame({"low": ["<0.2"] * 20 + ["1.5"] * 180, "sex": ["f", "?"] * 100}).to_csv(tmp_path / "d.csv")
    assert "keeps both" not in str([each.line for each in NOTES["table"](schema('["<0.2"]'), tmp_path / "d.csv")])


def test_a_column_of_related_tables_is_named_with_its_table(tmp_path):
    pd.DataFrame({"nr": [1, 2], "size": [3, 4]}).to_csv(tmp_path / "town.csv", index=False)
    pd.DataFrame({"town": [1, 2, 2], "low": ["<0.2", "", "1"]}).to_csv(tmp_path / "stay.csv", index=False)
    related = db.Schema.parse("""
doublure: 1
kind: relational
units: 2
tables:
  town: {key: nr, columns: {nr: {type: id}, size: {type: integer, bounds: [0, 9], missing: false}}}
  stay:
    parent: town
    foreign_key: town
    max_children: 4
    columns: {town: {type: id}, low: {type: real, bounds: [0, 20], missing: ["<0.2"]}}
""")
    (told,) = [each for each in NOTES["relational"](related, tmp_path) if each.column == "stay.low"]
    assert (told.empty, told.coded) == (1, 1)


def test_a_check_asks_by_the_text_alone_and_not_of_one_that_programs_write_for_empty_cells():
    asked = {each.path: each for each in db.check(schema('["<0.2"]')).findings if each.path.endswith(".missing")}
    assert [*asked] == ["columns.low.missing"]
    assert asked["columns.low.missing"].kind == "ask"
    assert "missing: ['', <0.2] keeps both in their shares" in asked["columns.low.missing"].message
    assert not [each for each in db.check(schema('["", "<0.2"]')).findings if each.path.endswith(".missing")]


def test_two_kinds_come_out_in_their_shares(data, tmp_path):
    """What the line recommends does what it says: 17 empty cells and 3 texts of 200."""
    cells = pd.read_csv(data, dtype=str, keep_default_na=False)
    pd.concat([cells] * 20).to_csv(data, index=False)
    many = db.Schema.parse(SCHEMA.replace("MISSING", '["", "<0.2"]').replace("units: 200", "units: 4000"))
    plan = db.plan(many, method="statistics", epsilon=3.0, delta=1e-6, accountant="rdp")
    ledger = db.Ledger.create(tmp_path / "l", dataset="d", epsilon=3.0, delta=1e-6)
    syn = db.fit(data, plan, ledger=ledger, out=tmp_path / "run", seed=7)
    db.release(syn, tmp_path / "bundle", n=4000, seed=8)
    drawn = pd.read_csv(tmp_path / "bundle" / "data.csv", dtype=str, keep_default_na=False)["low"]
    assert (drawn == "").mean() == pytest.approx(0.085, abs=0.02)
    assert (drawn == "<0.2").mean() == pytest.approx(0.015, abs=0.01)


@pytest.mark.parametrize(
    ("missing", "comes_out"),
    [(["<0.2"], ["1.5", "<0.2", "<0.2"]), (["", "<0.2"], ["1.5", "<0.2", ""]), (["<0.2", "?"], ["1.5", "<0.2", ""])],
)
def test_empty_cells_beside_texts_come_out_as_the_schema_declares(missing, comes_out):
    """One text stands for all that is missing; beside several, an empty cell is a kind of its own."""
    column = type_named("real")(bounds=[0, 9], precision=1, missing=missing)
    read = cells.canonical(pd.Series(["1.5", "<0.2", ""], dtype="str"), column, "crea")
    texts = list(column.missing_texts)
    if column.missing_states > 1:
        shown = numbers_with_texts(column, read, texts, TextMarks())
    else:
        shown = column.csv_cells(read, TextMarks()).astype(object).where(read.notna(), texts[0])
    assert list(map(str, shown)) == comes_out
