"""Rules of related tables and of visits: within one table, and columns that follow from a row and its unit's row."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from planting import plant

import doublure as db
from doublure.data.relational.opening import open_related
from doublure.data.relational.visits import open_visits
from doublure.drafting.metadata.codebook import read, write
from doublure.encode import across_tables
from doublure.encode.choice import encoder_for
from doublure.errors import DataError, SchemaError
from doublure.schema import ResolvedSchema, Schema

PATIENTS, STAYS = 300, 3
COLUMNS = """
      admitted: {type: date, bounds: [2020-01-01, 2022-12-31], missing: false}
      discharged: {type: date, bounds: [2020-01-01, 2023-12-31], missing: true}
      los: {type: integer, bounds: [0, 60], missing: true}
      age: {type: integer, bounds: [0, 100], missing: false}
      lon: {type: real, bounds: [5, 15], precision: 3, missing: false}
      lat: {type: real, bounds: [47, 55], precision: 3, missing: false}
      ward: {type: category, values: [birth, heart], missing: false}
      sex: {type: category, values: [f, m], missing: false}
"""
BORN = "born: {type: date, bounds: [1925-01-01, 2019-12-31], missing: false}"
WITHIN = """
      - {at_most: [admitted, discharged]}
      - {difference: {of: los, from: admitted, to: discharged, unit: day}}
      - {point: [lon, lat]}
      - {implies: {when: {ward: birth}, then: {sex: f}}}
"""
RELATED = f"""
doublure: 1
kind: relational
unit: {{name: patient}}
units: {PATIENTS}
tables:
  patients:
    key: nr
    columns:
      nr: {{type: id}}
      {BORN}
  stays:
    parent: patients
    foreign_key: nr
    max_children: {STAYS}
    order: admitted
    columns:
      nr: {{type: id}}{COLUMNS}
    constraints:{WITHIN}
constraints:
  - {{at_most: [patients.born, stays.admitted]}}
  - {{age: {{of: stays.age, born: patients.born, at: stays.admitted}}}}
"""
VISITS = f"""
doublure: 1
kind: table
unit: {{name: patient, id: nr, per_unit: [born], max_records: {STAYS}, order: admitted}}
units: {PATIENTS}
columns:
      nr: {{type: id}}
      {BORN}{COLUMNS}
constraints:{WITHIN}
      - {{at_most: [born, admitted]}}
      - {{age: {{of: age, born: born, at: admitted}}}}
"""


def visits(seed: int = 0) -> pd.DataFrame:
    draw = np.random.default_rng(seed)
    who = np.repeat(np.arange(PATIENTS), 1 + np.arange(PATIENTS) % STAYS)
    born = np.datetime64("1930-01-01") + draw.integers(0, 30_000, PATIENTS)
    day = np.datetime64("2020-01-01") + draw.integers(0, 900, len(who))
    town = np.array([[10.0, 53.5], [11.6, 48.1]])[draw.integers(0, 2, len(who))] + draw.normal(0, 0.05, (len(who), 2))
    sex = draw.choice(["f", "m"], len(who))
    los = draw.integers(0, 20, len(who))
    months = day.astype("datetime64[M]").astype(int) - born[who].astype("datetime64[M]").astype(int)
    return pd.DataFrame(
        {
            "nr": who, "born": born[who].astype(str), "admitted": day.astype(str),
            "discharged": (day + los).astype(str), "los": los, "age": months // 12,
            "lon": town[:, 0].round(3), "lat": town[:, 1].round(3),
            "ward": np.where((sex == "f") & (draw.random(len(who)) < 0.5), "birth", "heart"), "sex": sex,
        }
    )  # fmt: skip


def tables(frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
    patients = frame.drop_duplicates("nr")[["nr", "born"]].reset_index(drop=True)
    return {"patients": patients, "stays": frame.drop(columns="born")}


def one_table(found: Any) -> pd.DataFrame:
    """Return visits as one table, whichever way they came."""
    return found if isinstance(found, pd.DataFrame) else found["stays"].merge(found["patients"], on="nr")


def breaks(rows: pd.DataFrame) -> dict[str, int]:
    """Return how many rows break each rule."""
    born, admitted = rows["born"].dt, rows["admitted"].dt
    early = (admitted.month < born.month) | ((admitted.month == born.month) & (admitted.day < born.day))
    there = rows.dropna()
    return {
        "age": int((rows["age"] != admitted.year - born.year - early).sum()),
        "los": int(((there["discharged"] - there["admitted"]).dt.days != there["los"]).sum()),
        "none": int((rows["discharged"].isna() != rows["los"].isna()).sum()),
        "order": int((there["discharged"] < there["admitted"]).sum() + (rows["admitted"] < rows["born"]).sum()),
        "births": int(((rows["ward"] == "birth") & (rows["sex"] == "m")).sum()),
    }


CASES = {"related": (RELATED, tables), "visits": (VISITS, lambda frame: frame)}


@pytest.fixture(scope="module", params=CASES)
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> db.Synthesizer:
    text, given = CASES[request.param]
    folder = tmp_path_factory.mktemp(request.param)
    plan = db.plan(Schema.parse(text), epsilon=20.0, delta=1e-4, accountant="rdp", components=8, fit_steps=60)
    ledger = db.Ledger.create(folder / "ledger", dataset="stays", epsilon=20, delta=0.1)
    return db.fit(given(visits()), plan, ledger=ledger, out=folder / "run", seed=1, progress=False)


def test_every_row_keeps_the_rules_of_its_table_and_of_its_unit(world: db.Synthesizer) -> None:
    rows = one_table(world.sample(400, seed=3))
    assert len(rows) >= 400
    assert set(breaks(rows).values()) == {0}
    assert rows["age"].between(0, 100).all()
    assert rows["los"].dropna().between(0, 60).all()
    assert (rows.groupby("nr")["admitted"].apply(lambda days: days.is_monotonic_increasing)).all()
    near = np.hypot(rows["lon"] - 10.0, rows["lat"] - 53.5) < 0.6
    near |= np.hypot(rows["lon"] - 11.6, rows["lat"] - 48.1) < 0.6
    assert near.mean() > 0.7  # apart, at most half of them lie where a town is


def test_a_row_that_is_computed_otherwise_is_found(world: db.Synthesizer, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, across_tables, "_compute", ("cells[parents]", "cells[parents][::-1]"))
    assert breaks(one_table(world.sample(100, seed=3)))["age"] > 0


def test_a_release_says_from_what_a_column_follows(world: db.Synthesizer, tmp_path: Path) -> None:
    db.release(world, tmp_path / "bundle", n=50, seed=1, progress=False)
    assert db.verify(tmp_path / "bundle")["files"]
    told = json.loads((tmp_path / "bundle" / "dictionary.json").read_text(encoding="utf-8"))["columns"]
    said = {entry["name"].rpartition(".")[2]: entry["derived_from"] for entry in told}
    assert [part.rpartition(".")[2] for part in said["age"].split(", ")] == ["born", "admitted"]
    assert [part.rpartition(".")[2] for part in said["los"].split(", ")] == ["admitted", "discharged"]


@pytest.mark.parametrize("name", CASES)
def test_private_cells_of_a_computed_column_change_nothing(name: str) -> None:
    text, given = CASES[name]
    schema = Schema.parse(text)
    load = open_visits if name == "visits" else open_related
    encoder = encoder_for(ResolvedSchema.of(schema.resolve({})), "auto")
    other = visits().assign(age=17, los=3)
    both = [encoder.compact(load(given(frame)).load(schema).content) for frame in (visits(), other)]
    assert np.array_equal(*both)


def test_a_record_that_breaks_a_rule_of_its_table_is_refused_or_fixed_by_itself() -> None:
    frame = visits()
    frame.loc[7, ["ward", "sex"]] = ["birth", "m"]
    with pytest.raises(DataError, match="break a rule: if ward is") as caught:
        open_related(tables(frame)).load(Schema.parse(RELATED))
    assert "stays" in str(caught.value.field)
    coerced = Schema.parse(RELATED + "misfit: coerce\n")
    before, after = (open_related(tables(each)).load(coerced).content.frames["stays"] for each in (visits(), frame))
    off = (before.drop(columns="ward") != after.drop(columns="ward")).any(axis=1)
    assert off.sum() <= 1
    assert not ((after["ward"] == "birth") & (after["sex"] == "m")).any()


def test_a_schema_and_its_codebook_hold_the_rules_of_each_table(tmp_path: Path) -> None:
    schema = Schema.parse(RELATED)
    assert Schema.parse(schema.to_yaml()).sha256 == schema.sha256
    (tmp_path / "codes.csv").write_text(write(schema), encoding="utf-8")
    assert read(tmp_path / "codes.csv").schema().sha256 == schema.sha256
    assert "stays: lon and lat must be a place within their bounds" in schema.explained_rules
    without = Schema.parse(RELATED.split("    constraints:")[0])
    assert "constraints" not in without.to_plain()["tables"]["stays"]  # older schemas keep their hash


def test_files_and_patterns_are_read_in_each_table(tmp_path: Path) -> None:
    text = RELATED.replace("{implies: {when: {ward: birth}, then: {sex: f}}}", "{combinations: codes.csv}").replace(
        "    constraints:\n", "    constraints:\n      - {implies: {when: {sex: m}, then: {'war*': heart}}}\n"
    )
    (tmp_path / "s.yaml").write_text(text)
    (tmp_path / "codes.csv").write_text("ward,sex\nbirth,f\nheart,f\nheart,m\n")
    rules = Schema.load(tmp_path / "s.yaml").to_plain()["tables"]["stays"]["constraints"]
    assert rules[0] == {"implies": {"when": {"sex": "m"}, "then": {"ward": "heart"}}}
    assert rules[-1]["combinations"]["rows"] == [["birth", "f"], ["heart", "f"], ["heart", "m"]]


OWN = "{age: {of: stays.age, born: patients.born, at: stays.admitted}}"


FAULTY = RELATED.replace("2019-12-31", "2020-06-30").replace(
    "nr: {type: id}\n      born",
    "nr: {type: id}\n      size: {type: real, bounds: [0, 9], missing: false}\n"
    "      wide: {type: real, bounds: [0, 1], missing: false}\n      born",
)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (OWN, "{difference: {of: stays.los, from: stays.admitted, to: stays.discharged, unit: day}}",
         "names columns of one table; write it in the constraints of that table"),
        (OWN, "{product: {of: patients.size, from: [stays.lon, patients.wide]}}",
         "computes a column of a table from its own row"),
        ("  - {at_most: [patients.born, stays.admitted]}\n", "", "from -1 to 97, .*order the two by at_most"),
        ("bounds: [0, 100]", "bounds: [0, 50]", "gives stays.age from 0 to 97, beyond its bounds"),
        ("- {point: [lon, lat]}", "- {range: {of: age, least: 1}}", "range names age, which follows from another"),
        ("order: admitted", "order: los", "order of stays needs missing: false"),
        ("[admitted, discharged]", "[discharged, admitted]", "admitted is the order of a unit's rows; name it first"),
        ("- {point: [lon, lat]}", "- {point: [lon, late]}", "not a column"),
    ],
)  # fmt: skip
def test_rules_that_no_unit_could_keep_are_refused(old: str, new: str, words: str) -> None:
    with pytest.raises(SchemaError, match=words):
        Schema.parse(FAULTY.replace(old, new))


def test_a_computed_column_of_a_unit_follows_from_the_unit_alone() -> None:
    text = VISITS.replace("per_unit: [born]", "per_unit: [born, age]")
    with pytest.raises(SchemaError, match="age names columns in per_unit and others"):
        Schema.parse(text)
