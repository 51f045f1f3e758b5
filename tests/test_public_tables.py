"""Public tables beside related ones: given, never counted, copied; a key that refers to one is a category."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import doublure as db
from doublure.data.relational import open_related
from doublure.errors import DataError, SchemaError
from doublure.methods.statistics.tables import work
from doublure.releasing.verifying import verify

TEXT = """
doublure: 1
kind: relational
unit: {name: listener}
units: 800
public:
  tracks: {file: tracks.csv, key: track}
tables:
  listeners:
    key: nr
    columns:
      nr: {type: id}
      age: {type: integer, bounds: [10, 90], missing: false}
  plays:
    parent: listeners
    foreign_key: nr
    max_children: 3
    references: {track: tracks}
    columns:
      nr: {type: id}
      track: {type: category, missing: true}
"""
TRACKS = "track,name,genre\n11,Über,rock\n12,=1+1,jazz\n13,,jazz\n"


def tables(count=800):
    rng = np.random.default_rng(3)
    age = rng.integers(10, 91, count)
    owner = np.repeat(np.arange(count), rng.integers(0, 4, count))
    young = np.where(rng.random(len(owner)) < 0.9, 11, 12)
    track = pd.array(np.where(age[owner] < 40, young, 13), dtype="Int64")
    track[rng.random(len(owner)) < 0.3] = pd.NA
    return {
        "listeners": pd.DataFrame({"nr": np.arange(count), "age": age}),
        "plays": pd.DataFrame({"nr": owner, "track": track}),
    }


@pytest.fixture(scope="module")
def schema(tmp_path_factory):
    folder = tmp_path_factory.mktemp("schema")
    (folder / "tracks.csv").write_text(TRACKS, encoding="utf-8")
    (folder / "schema.yaml").write_text(TEXT, encoding="utf-8")
    return db.Schema.load(folder / "schema.yaml")


@pytest.fixture(scope="module")
def syn(schema, tmp_path_factory):
    folder = tmp_path_factory.mktemp("public")
    plan = db.plan(schema, epsilon=20.0, delta=1e-5, accountant="rdp", components=8, starts=1, fit_steps=40)
    assert "the table tracks is public, and copied as it is" in plan.explain()
    ledger = db.Ledger.create(folder / "ledger", dataset="listeners", epsilon=20.0, delta=1e-4)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(work, "DRAWN", 4000)
        return db.fit(tables(), plan, ledger=ledger, out=folder / "run", seed=1)


def test_a_public_table_is_a_part_of_the_schema(schema):
    assert db.Schema.parse(schema.to_yaml()) == schema
    assert db.Schema.from_plain(schema.to_plain()).sha256 == schema.sha256
    assert schema.columns["plays.track"].domain == ("11", "12", "13")
    rows = "columns: [track, name, genre], rows: [[11, Über, rock], [12, =1+1, jazz], [13, '', jazz]]"
    other = TEXT.replace("file: tracks.csv, key: track", f"key: track, {rows}")
    assert db.Schema.parse(other).sha256 == schema.sha256
    assert db.Schema.parse(other.replace("jazz", "pop")).sha256 != schema.sha256


def test_it_is_copied_and_rows_refer_to_it(syn):
    made = syn.sample(800, seed=1)
    assert list(made) == ["listeners", "plays", "tracks"]
    assert made["tracks"].to_csv(index=False) == TRACKS
    assert made["plays"].track.dropna().isin(made["tracks"].track).all()
    real = tables()["plays"]
    assert abs(made["plays"].track.isna().mean() - real.track.isna().mean()) < 0.05  # null keys keep their share
    old = made["plays"].merge(made["listeners"], on="nr").query("age > 50").track.dropna()
    assert (old == "13").mean() > 0.8


def test_it_is_in_a_bundle_as_it_is(syn, tmp_path):
    db.release(syn, tmp_path / "b", n=50, seed=1)
    assert verify(tmp_path / "b")["executed"]
    assert (tmp_path / "b" / "tracks.csv").read_text(encoding="utf-8").replace("'=", "=") == TRACKS
    package = json.loads((tmp_path / "b" / "datapackage.json").read_text(encoding="utf-8"))
    plays = next(each for each in package["resources"] if each["path"] == "plays.csv")
    assert {"fields": ["track"], "reference": {"resource": "tracks.csv", "fields": ["track"]}} in plays["schema"][
        "foreignKeys"
    ]
    dictionary = json.loads((tmp_path / "b" / "dictionary.json").read_text(encoding="utf-8"))
    assert dictionary["related"]["tracks"]["public"]


def test_no_private_cell_is_looked_up(syn):
    """A track that the table lacks is a cell that does not fit, as any other value."""
    odd = tables()
    odd["plays"].loc[0, "track"] = 99
    source = open_related(odd)
    with pytest.raises(DataError) as found:
        source.load(syn.schema)
    assert found.value.field == "plays.track"
    assert "99" not in str(found.value)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("key: track}", "key: nr}", "has no one column nr"),
        ("{track: tracks}", "{track: albums}", "albums, which is no public table"),
        ("{track: tracks}", "{nr: tracks}", "tables.plays.columns.nr.values: is not a key that goes here"),
        ("{type: category, missing: true}", "{type: category, values: [11, 14], missing: true}", "no keys of tracks"),
        ("{type: category, missing: true}", "{type: category, values: {learn: 0.5}, other: 13, missing: true}", "buys"),
        ("  tracks: {", "  plays: {file: tracks.csv, key: track}\n  tracks: {", "private and public"),
        ("file: tracks.csv", "file: songs.csv", "names a file that is not there"),
    ],
)
def test_what_no_public_table_could_be_is_refused(tmp_path, old, new, said):
    assert old in TEXT
    (tmp_path / "tracks.csv").write_text(TRACKS, encoding="utf-8")
    (tmp_path / "s.yaml").write_text(TEXT.replace(old, new), encoding="utf-8")
    with pytest.raises(SchemaError, match=said):
        db.Schema.load(tmp_path / "s.yaml")
