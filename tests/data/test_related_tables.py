"""Related tables are opened from folders and mappings, drafted by their headers, and written file by file."""

from __future__ import annotations

import hashlib

import numpy as np
import pandas as pd
import pytest
from planting import plant

import doublure as db
from doublure.data.opening import kind_of
from doublure.data.relational import RelatedRows, open_related, opening
from doublure.data.relational.writing import check_folder, write_related
from doublure.drafting.check import check
from doublure.drafting.draft import drafted
from doublure.drafting.relations import proposed
from doublure.errors import DataError, SchemaError, SettingError
from doublure.run.conditions import Conditions

TEXT = """
doublure: 1
kind: relational
unit: {name: patient}
units: 4
tables:
  patients:
    key: nr
    columns:
      nr: {type: id}
      sex: {type: category, values: [f, m], missing: ["?"]}
  stays:
    parent: patients
    foreign_key: nr
    max_children: 2
    order: day
    columns:
      nr: {type: id}
      day: {type: date, bounds: [2020-01-01, 2020-12-31], missing: false}
"""
SCHEMA = db.Schema.parse(TEXT)


def tables():
    patients = pd.DataFrame({"nr": ["a", "b", "b", "c"], "sex": ["f", "m", "f", "?"], "more": 1})
    days = ["2020-03-01", "2020-02-01", "2020-01-01", "2020-05-05", "2020-06-06"]
    return {"patients": patients, "stays": pd.DataFrame({"nr": ["c", "a", "c", "z", "c"], "day": days})}


def test_rows_stand_with_their_units_in_order():
    found = open_related(tables()).load(SCHEMA)
    assert found.n_units == 3
    assert found.content["patients.sex"].astype(object).fillna("none").tolist() == ["f", "m", "none"]
    assert found.content.parents["stays"].tolist() == [0, 2, 2]
    days = found.content.frames["stays"]["day"].dt.strftime("%m-%d").tolist()
    assert days == ["02-01", "01-01", "03-01"]  # a's, then c's first two
    assert len(found.cells("stays.day", "bounds")) == 3
    assert list(found.frame) == ["patients.sex"]


def test_a_folder_is_read_as_a_mapping_is(tmp_path):
    tables()["patients"].to_csv(tmp_path / "patients.csv.gz", index=False)
    tables()["stays"].to_parquet(tmp_path / "stays.parquet")
    (tmp_path / "notes.md").write_text("none of them")
    assert kind_of(tmp_path) == kind_of(tables()) == "relational"
    kept, read = open_related(tables()).load(SCHEMA).content, open_related(tmp_path).load(SCHEMA).content
    for name in SCHEMA.tables:
        pd.testing.assert_frame_equal(kept.frames[name], read.frames[name], check_dtype=False)
    assert np.array_equal(kept.marks, read.marks)


def test_what_is_not_there_is_named(tmp_path):
    with pytest.raises(DataError, match="holds no file of a table"):
        open_related(tmp_path)
    with pytest.raises(DataError, match="is no folder"):
        open_related(tmp_path / "none")
    with pytest.raises(DataError, match="has no table stays"):
        open_related({"patients": tables()["patients"]}).check(SCHEMA)
    with pytest.raises(DataError, match=r"stays\.day: is not a column"):
        open_related({**tables(), "stays": tables()["stays"][["nr"]]}).check(SCHEMA)
    (tmp_path / "a.csv").write_text("nr\n1\n")
    (tmp_path / "a.csv.gz").write_text("nr\n1\n")
    with pytest.raises(DataError, match="two files of the table a"):
        open_related(tmp_path)


def test_units_are_taken_joined_and_handed_out_whole():
    units = open_related(tables()).load(SCHEMA).content
    again = units.joined([units.take([2]), units.take(slice(0, 2))])
    assert again.counts("stays").tolist() == [2, 1, 0]
    assert sorted(again.fingerprints()) == sorted(units.fingerprints())
    handed = again.handed_out({"patients": 10, "stays": 5})
    assert handed["patients"]["nr"].tolist() == [11, 12, 13]
    assert handed["stays"]["nr"].tolist() == [11, 11, 12]
    assert list(handed["stays"]) == ["nr", "day"]


def check_every_id_is_numbered_anew():
    """Also one that is no key, of which nothing was read."""
    schema = db.Schema.parse(
        TEXT.replace("nr: {type: id}\n      sex", "nr: {type: id}\n      card: {type: id}\n      sex")
    )
    given = tables()
    given["patients"]["card"] = ["x1", "x2", "x3", "x4"]
    units = open_related(given).load(schema).content
    assert "card" not in units.frames["patients"]
    handed = units.handed_out({"patients": 2, "stays": 0})["patients"]
    assert handed["card"].tolist() == handed["nr"].tolist() == [3, 4, 5]


def test_every_id_is_numbered_anew(monkeypatch):
    check_every_id_is_numbered_anew()
    plant(monkeypatch, RelatedRows, "handed_out", ("column.modelled", "own != table.key"))
    with pytest.raises(KeyError):
        check_every_id_is_numbered_anew()


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_chunks_are_numbered_through(tmp_path, form):
    units = open_related(tables()).load(SCHEMA).content
    written = write_related(iter([units, units]), tmp_path / "out", SCHEMA, form=form)
    assert written == {f"patients.{form}": 6, f"stays.{form}": 6}
    read = pd.read_csv if form == "csv" else pd.read_parquet
    patients, stays = read(tmp_path / f"out/patients.{form}"), read(tmp_path / f"out/stays.{form}")
    assert patients["nr"].tolist() == [1, 2, 3, 4, 5, 6]
    assert stays["nr"].tolist() == [1, 3, 3, 4, 6, 6]
    with pytest.raises(SettingError, match="is no folder"):
        check_folder(tmp_path / "out.csv")
    with pytest.raises(SettingError, match="is not empty"):
        check_folder(tmp_path / "out")
    check_folder(tmp_path / "new")


def test_a_cell_that_does_not_fit_is_named_by_its_table():
    wrong = tables()
    wrong["patients"].loc[0, "sex"] = "x"
    with pytest.raises(DataError, match=r"^patients\.sex: has values outside the schema's list"):
        open_related(wrong).load(SCHEMA)


def test_keys_are_proposed_by_headers_alone():
    found = proposed({"orders": ["id", "customer_id", "day"], "customers": ["id", "name"]})
    assert (found.root, found.key) == ("customers", "id")
    assert (found.children["orders"].foreign_key, found.children["orders"].key) == ("customer_id", "id")
    found = proposed({"stays": ["stay_id", "nr", "day"], "patients": ["nr", "sex"], "tests": ["nr", "value"]})
    assert (found.root, found.key, set(found.children)) == ("patients", "nr", {"stays", "tests"})
    assert found.children["stays"].key == "stay_id"
    found = proposed({"people": ["id", "born"], "salaries": ["person_id", "year", "salary"]})
    assert found.children["salaries"].foreign_key == "person_id"
    assert found.children["salaries"].key is None  # what a row is about, and no key
    with pytest.raises(SchemaError, match="no column that stands in all others"):
        proposed({"a": ["x"], "b": ["y"]})
    with pytest.raises(SchemaError, match="fewer than two"):
        proposed({"a": ["x"]})


def test_a_draft_says_what_is_open_and_a_check_what_the_data_has():
    draft = drafted({**tables(), "stays": tables()["stays"][["day", "nr"]]})
    assert (draft.schema.root, draft.schema.unit.name) == ("patients", "patient")
    assert "tables.stays.max_children" in draft.schema.undeclared
    assert "max_children: undeclared\n    order: day\n" in draft.to_yaml()
    assert "order: COLUMN" not in draft.to_yaml()
    numbered = drafted({**tables(), "stays": tables()["stays"].assign(day=range(len(tables()["stays"])))})
    assert "max_children: undeclared\n    # order: COLUMN  # if a unit's rows follow" in numbered.to_yaml()
    assert db.Schema.parse(draft.to_yaml()) == draft.schema
    text = check(draft.schema).to_yaml()
    assert "tables.stays:\n  max_children: NUMBER\n" in text  # and not the table's line, which would lose its columns
    assert "tables.stays.columns:" in text
    found = check(SCHEMA, tables())
    assert found.ok
    assert [finding.path for finding in found.findings if finding.kind == "ignored"] == ["patients.more"]
    assert not check(SCHEMA, {"patients": tables()["patients"]}).ok


# -- whose a row is, and which of them is shown ---------------------------------------------------------------------


def check_keys_are_told_apart_as_they_are_written():
    """``01`` is not ``1``, nor ``a`` ``A``; and one key has one label, whatever type its column has."""
    nr = ["01", "1", "a", "A"]
    patients = pd.DataFrame({"nr": nr, "sex": ["f", "m", "f", "m"]})
    stays = pd.DataFrame({"nr": [*nr, "01"], "day": [f"2020-01-0{day}" for day in range(1, 6)]})
    found = open_related({"patients": patients, "stays": stays}).load(SCHEMA).content
    assert found.counts("stays").tolist() == [2, 1, 1, 1]
    assert found.frames["stays"]["day"].dt.day.tolist() == [1, 5, 2, 3, 4]
    assert len(set(found.marks.tolist())) == 4
    whole = pd.DataFrame({"nr": [1, 2], "sex": ["f", "m"]})
    gappy = pd.DataFrame({"nr": [2.0, None, 1.0, 2.0], "day": [f"2020-01-0{day}" for day in range(1, 5)]})
    assert open_related({"patients": whole, "stays": gappy}).load(SCHEMA).content.counts("stays").tolist() == [1, 2]


def check_a_key_that_says_that_it_is_missing_is_nobodys():
    schema = db.Schema.parse(TEXT.replace("nr: {type: id}", "nr: {type: id, missing: ['-1']}"))
    patients = pd.DataFrame({"nr": [1, -1, 2], "sex": ["f", "f", "m"]})
    stays = pd.DataFrame({"nr": [-1, 2], "day": ["2020-01-01", "2020-01-02"]})
    found = open_related({"patients": patients, "stays": stays}).load(schema).content
    assert found.frames["patients"]["sex"].tolist() == ["f", "m"]
    assert found.counts("stays").tolist() == [0, 1]


def check_marks_follow_from_keys_alone():
    """In every process alike, and they stay with their units."""
    units = open_related(tables()).load(SCHEMA).content
    own = [int.from_bytes(hashlib.blake2b(key.encode(), digest_size=8).digest(), "big") for key in "abc"]
    assert units.marks.tolist() == own
    assert units.take([2, 0]).marks.tolist() == [own[2], own[0]]
    assert units.take(np.array([False, True, True])).marks.tolist() == own[1:]
    assert units.joined([units.take([1]), units]).marks.tolist() == [own[1], *own]


CHECKED = (
    check_keys_are_told_apart_as_they_are_written,
    check_a_key_that_says_that_it_is_missing_is_nobodys,
    check_marks_follow_from_keys_alone,
)


@pytest.mark.parametrize("check", CHECKED)
def test_whose_a_row_is_follows_from_its_key(check):
    check()


LABELS = 'labels[key].append(cells.unit_ids(raw[key], key, tokens, "coerce"))'
OTHERS = [
    (CHECKED[0], opening.RelatedSource, "_read", (LABELS, LABELS[:-1] + ".str.lower())")),
    (CHECKED[0], opening.RelatedSource, "_read", (LABELS, LABELS[:-1] + '.str.lstrip("0"))')),
    (CHECKED[1], opening.RelatedSource, "_read", ("table.columns[key].missing_tokens", "()")),
    (CHECKED[2], opening, "mark_keys", ("int.from_bytes(digest, 'big')", "hash(digest) % 2**64")),
    (CHECKED[2], RelatedRows, "take", ("self.marks[units]", "self.marks[: len(units)]")),
]


@pytest.mark.parametrize(("check", "owner", "name", "edit"), OTHERS)
def test_rows_that_go_to_others_are_caught(monkeypatch, check, owner, name, edit):
    plant(monkeypatch, owner, name, edit)
    with pytest.raises(AssertionError):
        check()


def test_units_are_left_out_whole_by_what_is_asked_of_the_root():
    """Records of any kind are asked for a column: a frame's, or one beside their values, or the root's."""
    units = open_related(tables()).load(SCHEMA).content
    asked = {"patients.sex": SCHEMA.columns["patients.sex"].one_of(["f", None])}
    given = Conditions(schema=units.schema, fixed={}, by_rejection=asked, checked={})
    found = given.fitting(units)
    assert found["patients.sex"].astype(object).fillna("none").tolist() == ["f", "none"]
    assert found.counts("stays").tolist() == [1, 2]
