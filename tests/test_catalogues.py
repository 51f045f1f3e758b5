"""Bundles describe themselves to catalogues: as a Data Package, in Croissant and by a README, in public words."""

from __future__ import annotations

import json
import re
from functools import cache

import numpy as np
import pandas as pd
import pytest

import doublure as db
from doublure.releasing.catalogue_names import CROISSANT, DATAPACKAGE, NAMES, README
from doublure.releasing.catalogues.readme import plain
from doublure.releasing.catalogues.registry import render
from doublure.support import yaml12 as yaml_text

PEOPLE = """
doublure: 1
kind: table
units: 200
unit: {name: person, id: row}
release: {licence: CC BY 4.0, citation: "Doe (2026)", contact: a@example.org, links: ["https://example.org/x"]}
columns:
  row: {type: id}
  age: {type: integer, bounds: [0, 99], missing: true, description: "in years, <b>rounded</b> | down"}
  pay: {type: real, bounds: [0, 10], precision: 1, missing: false}
  job: {type: category, values: [cook, a|b], missing: ["?"]}
  on: {type: boolean, missing: false}
  day: {type: date, bounds: [2020-01-01, 2020-12-31], missing: true}
  at: {type: datetime, bounds: [2020-01-01T00:00:00, 2020-12-31T00:00:00], step: 60, timezone: Europe/Berlin,
       missing: false}
  began: {type: time, missing: false}
  took: {type: duration, bounds: ["0:00:00", "6:00:00"], missing: false}
"""
RELATED = """
doublure: 1
kind: relational
unit: {name: person}
units: 60
tables:
  people: {key: nr, columns: {nr: {type: id}, sex: {type: category, values: [f, m], missing: false}}}
  Stays here:
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
IMAGES = "{doublure: 1, kind: images, units: 60, images: {shape: [6, 6, 1]}, label: {values: [a, b]}}"
FORMS = """
doublure: 1
kind: table
units: 200
delimiter: ";"
decimal: ","
columns:
  icu: {type: boolean, written: {true: Y, false: N}, missing: false}
  day: {type: date, date_format: DD.MM.YYYY, bounds: [2020-01-01, 2020-12-31], missing: false}
  pay: {type: real, bounds: [0, 10], precision: 1, missing: false}
  price: {type: real, bounds: [0, 10], precision: 2, format: "$0.00", missing: false}
  born: {type: year, bounds: [1950, 2000], missing: false}
  since: {type: month, bounds: [2020-01, 2020-12], missing: true}
"""
SETTINGS = {"components": 2, "starts": 1}


def people():
    draw = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "row": range(200), "age": draw.integers(0, 99, 200), "pay": np.round(draw.random(200) * 10, 1),
            "job": draw.choice(["cook", "a|b", "?"], 200), "on": draw.random(200) < 0.5, "day": "2020-02-03",
            "at": "2020-05-05 10:00:00", "began": "07:30", "took": "1:30:00",
        }
    )  # fmt: skip


def related():
    stays = {"nr": np.repeat(range(60), 2), "stay": range(120), "ward": ["a", "b"] * 60}
    return {"people": pd.DataFrame({"nr": range(60), "sex": ["f", "m"] * 30}), "Stays here": pd.DataFrame(stays)}


def days():
    at = np.tile(pd.date_range("2024-01-01", periods=4, freq="6h"), 40)
    return pd.DataFrame({"meter": np.repeat(range(40), 4), "at": at, "litres": 2.5})


def forms():
    return pd.DataFrame(
        {"icu": ["Y", "N"] * 100, "day": "03.02.2020", "pay": "1,5", "price": "$1.50", "born": 1980, "since": "2020-05"}
    )


WORLDS = {
    "forms": (FORMS, forms, SETTINGS),
    "table": (PEOPLE, people, SETTINGS),
    "relational": (RELATED, related, {}),
    "series": (DAYS, days, {}),
}


@pytest.fixture(scope="module")
def bundles(tmp_path_factory):
    @cache
    def bundle(kind):
        text, data, settings = WORLDS[kind]
        folder = tmp_path_factory.mktemp(kind)
        planned = db.plan(
            db.Schema.parse(text), method="statistics", epsilon=4.0, delta=1e-4, accountant="rdp", **settings
        )
        book = db.Ledger.create(folder / "ledger", dataset=kind, epsilon=4.0, delta=1e-3)
        syn = db.fit(data(), planned, ledger=book, out=folder / "run", progress=False)
        db.release(syn, folder / "bundle", n=30, seed=1, tables=bool(syn.tables), progress=False)
        return folder / "bundle"

    return bundle


def read(folder, name):
    return json.loads((folder / name).read_text(encoding="utf-8"))


@pytest.mark.parametrize("kind", WORLDS)
def test_card_and_dictionary_alone_decide_them(bundles, kind):
    folder = bundles(kind)
    card, described = read(folder, "card.json"), read(folder, "dictionary.json")
    assert {entry["path"]: entry["rows"] for entry in card["files"]}.items() >= dict.fromkeys(NAMES).items()
    for name in NAMES:
        assert render(name, card, described) == (folder / name).read_bytes()
        assert card["ledger"]["head_sha256"] not in (folder / name).read_text()


def test_a_data_package_says_what_columns_hold(bundles):
    package = read(bundles("table"), DATAPACKAGE)
    (licence,) = package["licenses"]
    assert (licence["name"], licence["path"]) == ("cc-by-4.0", "https://creativecommons.org/licenses/by/4.0/")
    assert all(re.fullmatch(r"[a-z0-9._-]+", each["name"]) for each in (package, *package["resources"]))
    data = next(each for each in package["resources"] if each["path"] == "data.csv")
    fields = {each["name"]: each for each in data["schema"]["fields"]}
    assert list(fields) == list(people())
    assert {name: each["type"] for name, each in fields.items()} == {
        "row": "integer", "age": "integer", "pay": "number", "job": "string", "on": "boolean", "day": "date",
        "at": "datetime", "began": "time", "took": "any",
    }  # fmt: skip
    assert fields["age"]["constraints"] == {"required": False, "minimum": 0, "maximum": 99}
    assert fields["day"]["constraints"]["minimum"] == "2020-01-01"
    assert fields["job"]["constraints"]["enum"] == ["cook", "a|b"]
    assert fields["age"]["description"].startswith("in years")
    assert data["schema"]["missingValues"] == ["", "?"]
    assert "epsilon" in json.dumps(package["guarantee"])


def test_cells_in_a_form_of_their_own_are_described_as_they_are_written(bundles):
    package = read(bundles("forms"), DATAPACKAGE)
    data = next(each for each in package["resources"] if each["path"] == "data.csv")
    fields = {each.pop("name"): each for each in data["schema"]["fields"]}
    assert data["dialect"]["delimiter"] == ";"
    assert (fields["icu"]["trueValues"], fields["icu"]["falseValues"]) == (["Y"], ["N"])
    assert (fields["day"]["type"], fields["day"]["format"]) == ("date", "%d.%m.%Y")
    assert (fields["pay"]["type"], fields["pay"]["decimalChar"]) == ("number", ",")
    assert [fields[name]["type"] for name in ("price", "born", "since")] == ["string", "year", "string"]


def test_keys_of_related_tables_are_said(bundles):
    package, croissant = read(bundles("relational"), DATAPACKAGE), read(bundles("relational"), CROISSANT)
    tables = {each["path"]: each for each in package["resources"] if "." in each["path"].partition("/")[0]}
    del tables["dictionary.json"]
    assert set(tables) == {"people.csv", "people.parquet", "Stays here.csv", "Stays here.parquet"}
    (link,) = tables["Stays here.csv"]["schema"]["foreignKeys"]
    assert link == {"fields": ["nr"], "reference": {"resource": tables["people.csv"]["name"], "fields": ["nr"]}}
    assert tables["people.csv"]["schema"]["primaryKey"] == ["nr"]
    sets = {each["name"]: each for each in croissant["recordSet"]}
    referring = next(each for each in sets["Stays here"]["field"] if each["name"] == "nr")
    assert referring["references"] == {"field": {"@id": "people/nr"}}
    assert sets["people"]["key"] == {"@id": "people/nr"}


def test_series_have_the_columns_of_their_files(bundles):
    package = read(bundles("series"), DATAPACKAGE)
    data = next(each for each in package["resources"] if each["path"] == "data.csv")
    header = (bundles("series") / "data.csv").read_text().splitlines()[0].split(",")
    assert [each["name"] for each in data["schema"]["fields"]] == header == ["series", "step", "clock", "litres"]
    assert "schema" not in next(each for each in package["resources"] if each["path"] == "data.npz")


def test_croissant_names_files_and_fields(bundles):
    found = read(bundles("table"), CROISSANT)
    assert (found["@type"], found["conformsTo"]) == ("sc:Dataset", "http://mlcommons.org/croissant/1.0")
    assert {each["name"] for each in found["distribution"]} >= {"data.csv", "data.parquet", "dictionary.json"}
    assert all(re.fullmatch("[0-9a-f]{64}", each["sha256"]) for each in found["distribution"])
    (records,) = found["recordSet"]
    kinds = {each["name"]: each["dataType"] for each in records["field"]}
    assert (kinds["age"], kinds["pay"], kinds["job"], kinds["day"]) == ("sc:Integer", "sc:Float", "sc:Text", "sc:Date")
    assert {each["source"]["fileObject"]["@id"] for each in records["field"]} == {"data.csv"}
    assert found["citeAs"] == "Doe (2026)"


def test_the_readme_opens_as_a_dataset_card_and_holds_no_markup_of_others(bundles):
    text = (bundles("table") / README).read_text(encoding="utf-8")
    _, front, page = text.split("---\n", 2)
    said = yaml_text.parse(front, "front")
    assert (said["license"], said["size_categories"]) == ("cc-by-4.0", ["n<1K"])
    assert said["configs"] == [{"config_name": "data", "data_files": "data.parquet"}]
    assert "# Synthetic rows for table" in page
    assert "\\<b\\>rounded" in page
    assert "<b>" not in page
    assert r"a\|b" in page
    assert read(bundles("table"), "card.json")["guarantee"]["sentence"].split(";")[0] in page
    assert "anonym" not in page.lower()
    assert "- Contact: a@example.org" in page


@pytest.mark.parametrize("text", ["[x](javascript:a)", "![x](y)", "`x`", "<script>", "&lt;", "a|b", "# x", "*x*"])
def test_words_stay_words(text):
    assert re.sub(r"\\(.)", r"\1", plain(text)) == text
    assert not re.search(r"(?<!\\)[\[\]`<>&|*#]", plain(text))
    assert plain("a\n\n# b") == "a \\# b"


def test_images_have_files_and_no_columns():
    schema = db.Schema.parse(IMAGES).resolve({})
    from doublure.releasing.dictionary import dictionary

    card = {
        "title": "Digits", "description": None, "licence": "of the house", "citation": None, "contact": None,
        "links": [], "watermark": "No privacy guarantee. Do not publish.", "created": "2026-01-01T00:00:00+00:00",
        "guarantee": {"kind": "none", "sentence": "No guarantee."}, "limits": [], "review_by": "2028-01-01",
        "method": "gan", "files": [{"path": "data.npz", "sha256": "0" * 64, "rows": 5000}], "ledger": None,
    }  # fmt: skip
    for name in NAMES:
        content = render(name, card, dictionary(schema)).decode()
        assert "No privacy guarantee. Do not publish" in content
        assert "differential" not in content
        assert "data.npz" in content
        assert "other" in content or name == CROISSANT
    assert "recordSet" not in json.loads(render(CROISSANT, card, dictionary(schema)))
    assert "1K<n<10K" in render(README, card, dictionary(schema)).decode()


@pytest.mark.filterwarnings("ignore")  # of the libraries
@pytest.mark.parametrize("kind", WORLDS)
def test_frictionless_finds_no_fault(bundles, kind):
    frictionless = pytest.importorskip("frictionless", reason="frictionless is not installed")
    found = frictionless.Package(str(bundles(kind) / DATAPACKAGE)).validate()
    assert found.valid, found.flatten(["title", "message"])[:5]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", WORLDS)
def test_mlcroissant_reads_the_records(bundles, kind):
    mlcroissant = pytest.importorskip("mlcroissant", reason="mlcroissant is not installed")
    found = mlcroissant.Dataset(jsonld=bundles(kind) / CROISSANT)
    assert not found.metadata.issues.errors
    for records in found.metadata.record_sets:
        assert len(list(found.records(records.uuid))) == (60 if kind == "series" else 30) or kind != "table"
