"""Bundles in the forms that are asked for: hashed, described, verified, and the same cells in each."""

from __future__ import annotations

import dataclasses
import hashlib
import importlib.util
import itertools
import json
import shutil
from contextlib import suppress
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import doublure as db
from doublure.data.tables.containers.registry import find_container
from doublure.data.tables.opening import open_table
from doublure.data.tables.row_forms import ROW_WRITERS
from doublure.data.tables.writing import write_table
from doublure.errors import GateFailed, SchemaError, SettingError
from doublure.releasing.cells import same
from doublure.releasing.dictionary import dictionary
from doublure.releasing.reading import batches, described_tables
from doublure.releasing.writing import records_in_words
from doublure.schema.columns import type_named
from doublure.schema.missing_states import tag_holes
from doublure.schema.scalars import label
from doublure.support import files

FORMS = ("csv", "parquet", "xlsx", "jsonl", "feather", "dta", "sav")
STORED = {
    "integer": [{"bounds": [0, 99]}],
    "real": [{"bounds": [0, 10], "precision": 2}],
    "boolean": [{}, {"written": {"true": "Y", "false": "N"}}],
    "category": [{"values": [1, 2]}, {"values": ["a", "b"]}],
    "ordinal": [{"values": [1, 2]}],
    "code": [{"values": ["A01", "B02"]}],
    "date": [{"bounds": ["2020-01-01", "2020-12-31"], **form} for form in ({}, {"date_format": "YYYYMMDD"})],
    "datetime": [
        {"bounds": ["2020-01-01T00:00:00", "2020-12-31T00:00:00"], "step": 60, **form}
        for form in ({}, {"date_format": "YYYYMMDDhhmm"})
    ],
    "time": [{}],
    "duration": [{"bounds": ["0:00:00", "6:00:00"]}],
    "month": [{"bounds": ["2020-01", "2020-12"], **form} for form in ({}, {"date_format": "YYYYMM"})],
    "year": [{"bounds": [1950, 2000]}],
}
"""Column type -> facts of columns, each of which is stored in every way that it can be."""
HEAD = {"doublure": 1, "kind": "table", "units": 9}
KEY = {"nr": {"type": "integer", "bounds": [0, 9], "missing": False}}
MISSING = (False, True, ["-9"], ["-8", "-9"])
TABLE = """
doublure: 1
kind: table
units: 200
date_format: DD.MM.YYYY
decimal: ","
columns:
  age: {type: integer, bounds: [0, 99], missing: [-8, -9]}
  pay: {type: real, bounds: [0, 10], missing: false}
  job: {type: category, values: [cook, "a|b"], missing: ["?"]}
  sex: {type: category, values: [1, 2], missing: [9], value_labels: {1: male, 2: female, 9: unknown}}
  icu: {type: boolean, written: {true: Y, false: N}, missing: false}
  fit: {type: boolean, missing: true}
  day: {type: date, bounds: [1850-01-01, 2020-12-31], missing: true}
  at: {type: datetime, bounds: [2020-01-01T00:00:00, 2020-12-31T00:00:00], date_format: "YYYY-MM-DD hh:mm", step: 60,
       missing: false}
  began: {type: time, missing: false}
  took: {type: duration, bounds: ["0:00:00", "6:00:00"], missing: false}
  born: {type: year, bounds: [1950, 2000], missing: false}
  since: {type: month, bounds: [2020-01, 2020-12], missing: true}
  seen: {type: date, bounds: [2020-01-01, 2020-12-31], date_format: YYYY-MM-DD, dtype: date32, missing: true}
  vip: {type: boolean, dtype: Int8, missing: true}
  sent: {type: date, bounds: [2020-01-01, 2020-12-31], date_format: YYYYMMDD, dtype: Int32, missing: true}
"""
RELATED = """
doublure: 1
kind: relational
unit: {name: person}
units: 60
tables:
  people: {key: nr, columns: {nr: {type: id}, sex: {type: category, values: [f, m], missing: false}}}
  stays:
    parent: people
    foreign_key: nr
    max_children: 3
    columns: {nr: {type: id}, stay: {type: id}, ward: {type: category, values: [a, b], missing: false}}
"""
DAYS = """
doublure: 1
kind: series
units: 40
unit: {name: meter, id: meter}
series: {time: at, step: 6h, length: 4}
channels: {litres: {type: real, bounds: [0, 10], precision: 1, missing: false}}
"""


def table() -> pd.DataFrame:
    draw, n = np.random.default_rng(0), 200
    return pd.DataFrame(
        {
            "age": draw.choice([1, 50, 99, -8, -9], n),
            "pay": [text.replace(".", ",") for text in draw.random(n).astype(str)],
            "job": draw.choice(["cook", "a|b", "?"], n),
            "sex": draw.choice([1, 2, 9], n),
            "icu": draw.choice(["Y", "N"], n),
            "fit": draw.choice(["true", "false", ""], n),
            "day": draw.choice(["03.02.1880", "29.02.2000", ""], n),
            "at": "2020-05-05 10:01",
            "began": "07:30",
            "took": "1:30:00",
            "born": 1980,
            "since": draw.choice(["2020-05", ""], n),
            "seen": draw.choice(["2020-02-29", ""], n),
            "vip": draw.choice(["1", "0", ""], n),
            "sent": draw.choice(["20200229", ""], n),
        }
    )


def related() -> dict[str, pd.DataFrame]:
    stays = {"nr": np.repeat(range(60), 2), "stay": range(120), "ward": ["a", "b"] * 60}
    return {"people": pd.DataFrame({"nr": range(60), "sex": ["f", "m"] * 30}), "stays": pd.DataFrame(stays)}


def days() -> pd.DataFrame:
    at = np.tile(pd.date_range("2024-01-01", periods=4, freq="6h"), 40)
    return pd.DataFrame({"meter": np.repeat(range(40), 4), "at": at, "litres": np.tile([1.0, 2.5, 6.0, 9.0], 40)})


MINUTES = """
doublure: 1
kind: table
units: 200
date_format: DD.MM.YYYY hh:mm
columns:
  own: {type: datetime, bounds: &ends [2020-01-01T00:00:00, 2020-12-31T23:59:59], date_format: "YYYYMMDDhhmm",
        missing: false}
  noon: {type: datetime, bounds: *ends, date_format: "M/D/YYYY h:mm AM", missing: true}
  paris: {type: datetime, bounds: *ends, timezone: Europe/Paris, missing: false}
  plain: {type: datetime, bounds: *ends, missing: false}
  began: {type: time, step: 60, missing: false}
"""


def minutes() -> pd.DataFrame:
    at = pd.Series(pd.date_range("2020-01-01 00:00:01", periods=200, freq="43h13min7s"))
    form = {"own": "%Y%m%d%H%M", "noon": "%m/%d/%Y %I:%M %p", "paris": "%d.%m.%Y %H:%M", "plain": "%d.%m.%Y %H:%M"}
    return pd.DataFrame(
        {name: at.dt.strftime(each) for name, each in form.items()} | {"began": at.dt.strftime("%H:%M")}
    )


ROWS = """
doublure: 1
kind: table
units: 9
columns:
  series: {type: integer, bounds: [1, 99], missing: false}
  step: {type: integer, bounds: [0, 3], missing: false}
  litres: {type: real, bounds: [0, 10], precision: 1, missing: false}
"""
WORLDS = {
    "table": (TABLE, table),
    "relational": (RELATED, related),
    "series": (DAYS, days),
    "minutes": (MINUTES, minutes),
}


def there(form: str) -> bool:
    needs = {"xlsx": ("xlsxwriter", "python_calamine"), "dta": ("pyreadstat",), "sav": ("pyreadstat",)}
    return all(importlib.util.find_spec(library) is not None for library in needs.get(form, ()))


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    @cache
    def fit(kind):
        text, data = WORLDS[kind]
        folder = tmp_path_factory.mktemp(kind)
        settings = {"components": 2, "starts": 1} if kind in ("table", "minutes") else {}
        planned = db.plan(
            db.Schema.parse(text), method="statistics", epsilon=50.0, delta=1e-4, accountant="rdp", **settings
        )
        book = db.Ledger.create(folder / "ledger", dataset=kind, epsilon=50.0, delta=1e-3)
        return db.fit(data(), planned, ledger=book, out=folder / "run", progress=False)

    return fit


@pytest.fixture(scope="module")
def bundles(fitted, tmp_path_factory):
    @cache
    def bundle(kind):
        forms = [form for form in FORMS if there(form)]
        out = tmp_path_factory.mktemp(kind) / "bundle"
        db.release(fitted(kind), out, n=30, seed=1, formats=forms, progress=False)
        return out, forms

    return bundle


@pytest.mark.parametrize("kind", WORLDS)
def test_all_forms_of_a_bundle_hold_the_same_cells(bundles, kind):
    out, forms = bundles(kind)
    db.verify(out)
    package = json.loads((out / "datapackage.json").read_text())
    media = {each["path"]: each["mediatype"] for each in package["resources"]}
    assert "application/octet-stream" not in media.values()
    for form in forms:
        assert sum(name.endswith(f".{form}") and "/" not in name for name in media) == (
            2 if kind == "relational" else 1
        )
        assert f".{form}" in (out / "README.md").read_text().replace("\\", "")


@pytest.mark.parametrize("form", FORMS)
def test_the_synthetic_table_is_read_as_the_private_one_is(fitted, bundles, form):
    out, forms = bundles("table")
    if form not in forms:
        pytest.skip("the extra files is not installed")
    schema = fitted("table").schema
    found = open_table(out / f"data.{form}", schema.written).load(schema).frame
    plain = open_table(out / "data.csv", schema.written).load(schema).frame
    kept = [name for name in found if form not in ("parquet", "feather") or schema.columns[name].missing_states < 2]
    pd.testing.assert_frame_equal(found[kept], plain[kept])
    assert column_states(schema.columns["age"], found["age"]) == 2


@pytest.mark.parametrize("form", ["xlsx", "feather", "dta"])
def test_a_bundle_of_one_form_is_whole(fitted, tmp_path, form):
    if not there(form):
        pytest.skip("the extra files is not installed")
    out = tmp_path / "bundle"
    db.release(fitted("series"), out, n=9, seed=1, formats=form, progress=False)
    assert [path.name for path in sorted(out.glob("data.*"))] == [f"data.{form}"]
    db.verify(out)


@pytest.mark.parametrize("kind", ["series", "table"])
@pytest.mark.parametrize("room", [None, 0])
def test_records_are_drawn_once_for_all_forms_where_memory_holds_them(fitted, tmp_path, monkeypatch, kind, room):
    syn, drawn = fitted(kind), []
    if room is not None:
        syn = dataclasses.replace(syn, plan=dataclasses.replace(syn.plan, memory_bytes=room))
    chunks = type(syn).sample_chunks
    monkeypatch.setattr(type(syn), "sample_chunks", lambda *given, **named: drawn.append(1) or chunks(*given, **named))
    db.release(syn, tmp_path / "bundle", n=9, seed=1, formats=["csv", "parquet"], progress=False)
    assert len(drawn) == (1 if room is None else 2)
    db.verify(tmp_path / "bundle")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", STORED)
def test_every_storage_type_is_written_and_checked_alike(tmp_path, kind, form):
    """Of every column type, with and without missing cells, of one kind and of several."""
    if not there(form):
        pytest.skip("the extra files is not installed")
    columns = {}
    for facts, dtype, missing in itertools.product(STORED[kind], (None, *type_named(kind).dtypes), MISSING):
        own = {"type": kind, "missing": missing, **facts} | ({} if dtype is None else {"dtype": dtype})
        with suppress(SchemaError):
            columns |= db.Schema.parse(json.dumps(HEAD | {"columns": {f"c{len(columns)}": own}})).columns
    schema = db.Schema.parse(json.dumps(HEAD | {"columns": KEY})).resolve({})
    schema = schema.model_copy(update={"columns": {**schema.columns, **columns}})
    frame = pd.DataFrame({name: column.kept_cells(stored_numbers(column)) for name, column in schema.columns.items()})
    write_table([frame], tmp_path / f"data.{form}", schema)
    described = described_tables(dictionary(schema))[0]
    found = next(batches(tmp_path / f"data.{form}", described))
    for told in described.columns:
        column, cells = schema.columns[told.name], found[told.name]
        assert told.fault(cells) is None, (told.name, column)
        wanted = stored_numbers(column)
        if told.labelled:
            labels = np.array([*map(label, column.shown_values), None], dtype=object)
            wanted = labels[np.where(np.isnan(wanted), -1, wanted).astype(int)]
        assert same(cells, wanted), (column, cells)


def stored_numbers(column):
    """Return numbers that a column's cells can have, and one of each kind of missing."""
    values = [0.0, 1.0] if column.listed else [*column.grid]
    return np.array([*values, *map(tag_holes, range(column.missing_states))] + values * 3)[:5]


def test_months_are_whole_numbers_in_a_form_of_digits_alone():
    facts = {"type": "month", "bounds": ["2020-01", "2020-12"], "missing": False, "dtype": "int64"}
    with pytest.raises(SchemaError, match=r"needs a date_format of digits alone; write date_format: YYYYMM"):
        db.Schema.parse(json.dumps(HEAD | {"columns": {"since": facts}}))


def test_series_are_counted_with_their_rows(fitted):
    assert records_in_words(fitted("series").schema) == "series (of 4 rows each)"
    assert records_in_words(fitted("series").schema, 100) == "series (of 100 rows each)"
    assert records_in_words(fitted("table").schema) == "rows"


def column_states(column, cells) -> int:
    numbers = column.kept_numbers(cells)
    return len(set(numbers[np.isnan(numbers)].view(np.int64).tolist()))


@pytest.mark.parametrize("form", FORMS[2:])
def test_a_file_that_was_changed_is_found(bundles, tmp_path, form):
    """Its hash is put right on the card, as a forger would."""
    kept, forms = bundles("series")
    if form not in forms:
        pytest.skip("the extra files is not installed")
    out = shutil.copytree(kept, tmp_path / "bundle")
    name = f"data.{form}"
    rows = pd.read_csv(out / "data.csv").assign(litres=lambda frame: frame["litres"][::-1].to_numpy())
    card = json.loads((out / "card.json").read_text())
    about = {key: card[key] for key in ("watermark",)} | {"guarantee": card["guarantee"]["sentence"]}
    write_table([rows], out / name, db.Schema.parse(ROWS), metadata=about)
    for entry in card["files"]:
        if entry["path"] == name:
            entry["sha256"] = hashlib.sha256((out / name).read_bytes()).hexdigest()
    (out / "card.json").write_bytes(files.json_bytes(card))
    with pytest.raises(GateFailed, match=rf"{name}: does not hold the cells of data.csv"):
        db.verify(out)


@pytest.mark.parametrize("form", ["xlsx", "feather", "dta", "sav"])
def test_a_file_that_claims_more_than_its_card_is_found(bundles, tmp_path, form):
    kept, forms = bundles("series")
    if form not in forms:
        pytest.skip("the extra files is not installed")
    path = kept / f"data.{form}"
    about = {"watermark": "Synthetic data with a guarantee", "guarantee": "none"}
    assert not ROW_WRITERS[path.suffix].says(path, about)


def test_formats_that_are_not_written_are_named(fitted, tmp_path):
    with pytest.raises(SettingError, match=r"format sas7bdat: is a format that is read, and not written; use csv or"):
        db.release(fitted("table"), tmp_path / "b", n=9, formats=["sas7bdat"], progress=False)
    with pytest.raises(SettingError, match="has an unknown format"):
        db.release(fitted("table"), tmp_path / "b", n=9, formats=["docx"], progress=False)
    assert find_container(Path("a.sas7bdat")) is not None
