"""What a fit was refused for: a private list beside the run folder, and no name in the message."""

from __future__ import annotations

import csv
import stat

import numpy as np
import pytest
from PIL import Image

import doublure as db
from doublure.errors import DataError, FaultyRecords

TEXT = """
doublure: 1
kind: images
units: 20
images: {shape: [8, 8, 1]}
label: {values: [a, b]}
"""
HEAD = ["number", "file", "rule"]


@pytest.fixture
def folder(tmp_path):
    for number in range(20):
        place = tmp_path / "set" / "ab"[number % 2]
        place.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.full((8, 8), number, dtype=np.uint8)).save(place / f"{number:02d}.png")
    return tmp_path / "set"


@pytest.fixture
def ledger(tmp_path):
    return db.Ledger.create(tmp_path / "ledger", dataset="letters", epsilon=5.0, delta=1e-3)


@pytest.fixture
def plan():
    return db.plan(db.Schema.parse(TEXT), method="statistics", epsilon=1.0, delta=1e-3, features=8, fit_steps=1)


def refused(folder, plan, ledger, out):
    with pytest.raises(FaultyRecords) as caught:
        db.fit(folder, plan, ledger=ledger, out=out)
    assert ledger.remaining.epsilon == 5.0
    assert not (out is not None and out.exists())
    assert "somebody" not in str(caught.value)
    return str(caught.value)


def listed(path):
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with path.open(newline="") as file:
        head, *rows = csv.reader(file)
    assert head == HEAD
    return rows


def test_pictures_that_break_a_rule_are_listed_beside_the_run(folder, plan, ledger, tmp_path):
    (folder / "a" / "somebody.png").write_bytes(b"no picture")
    said = refused(folder, plan, ledger, tmp_path / "new" / "run")
    assert "run-refused.csv beside the run folder names them, and is internal" in said
    assert listed(tmp_path / "new" / "run-refused.csv") == [
        ["11", "a/somebody.png", "cannot be read as PNG, JPEG, WebP, BMP or TIFF, or are cut off"]
    ]
    (folder / "a" / "somebody.png").unlink()
    (folder / "somebody").mkdir()
    refused(folder, plan, ledger, tmp_path / "new" / "run")  # found before anything is reserved, and listed anew
    assert listed(tmp_path / "new" / "run-refused.csv") == [
        ["", "somebody", "is a folder that is no class of the schema"]
    ]


def test_without_a_run_folder_there_is_no_list(folder, plan, ledger, tmp_path):
    (folder / "a" / "somebody.png").write_bytes(b"no picture")
    assert "refused.csv" not in refused(folder, plan, ledger, None)
    assert not list(tmp_path.rglob("*refused*"))


def test_the_list_stands_beside_a_run_in_the_folder_where_one_is(folder, plan, ledger, tmp_path, monkeypatch):
    (folder / "a" / "somebody.png").write_bytes(b"no picture")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    for out in (".", "../here/."):
        with pytest.raises(FaultyRecords, match=r"here-refused\.csv beside the run folder"):
            db.fit(folder, plan, ledger=ledger, out=out)
        monkeypatch.chdir(tmp_path)
        (tmp_path / "here").mkdir(exist_ok=True)
        monkeypatch.chdir(tmp_path / "here")
    assert [row[1] for row in listed(tmp_path / "here-refused.csv")] == ["a/somebody.png"]


def test_another_file_of_the_lists_name_stays(folder, plan, ledger, tmp_path):
    (folder / "a" / "somebody.png").write_bytes(b"no picture")
    (tmp_path / "run-refused.csv").write_text("mine")
    assert "refused.csv" not in refused(folder, plan, ledger, tmp_path / "run")
    assert (tmp_path / "run-refused.csv").read_text() == "mine"


def test_arrays_that_cannot_be_what_the_schema_says_cost_nothing(plan, ledger, tmp_path):
    """Real numbers from 0 to 1, taken for bytes, are black: what would be learned is nothing, at the full price."""
    np.savez(tmp_path / "real.npz", images=np.random.default_rng(0).random((20, 8, 8)), labels=["a", "b"] * 10)
    with pytest.raises(DataError, match=r"images\.range: is not declared"):
        db.fit(tmp_path / "real.npz", plan, ledger=ledger, out=tmp_path / "run")
    assert ledger.remaining.epsilon == 5.0
    assert [entry.kind for entry in ledger.entries].count("reserve") == 0
    assert not (tmp_path / "run").exists()
    assert not (tmp_path / "run-refused.csv").exists()
