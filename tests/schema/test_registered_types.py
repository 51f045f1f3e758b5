"""A column type that is registered from outside behaves like the one that it derives from, all the way."""

from __future__ import annotations

import json
from typing import Literal

import numpy as np
import pandas as pd
import pytest

import doublure as db
from doublure.data.tables.cells import canonical
from doublure.data.tables.rules import checked
from doublure.drafting.check import check
from doublure.errors import DataError, SchemaError, SettingError
from doublure.releasing.bundle import dictionary
from doublure.schema import Schema, columns
from doublure.schema.allowed import Allowed
from doublure.schema.columns import CategoryColumn, IdColumn, IntegerColumn, NumberDomain, RealColumn
from doublure.schema.columns.time import TimeColumn
from doublure.schema.fact_states import Fact

TEXT = """
doublure: 1
kind: table
units: 600
columns:
  share: {type: percent, missing: false}
  rest: {type: percent, missing: true}
  home: {type: department, missing: ["?"], roles: [target]}
  age: {type: integer, bounds: [20, 60], missing: {learn: 0.1}}
constraints:
  - {at_most: [rest, share]}
"""
RELATED = """
doublure: 1
kind: relational
units: 600
tables:
  people:
    key: person
    columns: {person: {type: id}, home: {type: department, missing: false}}
  visits:
    parent: people
    foreign_key: person
    max_children: 3
    columns: {person: {type: id}, share: {type: percent, missing: false}}
"""
DEPARTMENTS = tuple(f"{number:02}" for number in range(1, 20))


class PercentColumn(RealColumn):
    type: Literal["percent"] = "percent"
    bounds: Fact[tuple[float, float]] = (0.0, 100.0)
    precision: int | None = 1


class DepartmentColumn(CategoryColumn):
    type: Literal["department"] = "department"
    values: Fact[tuple[str, ...]] = DEPARTMENTS


@pytest.fixture(autouse=True)
def _forgotten(monkeypatch):
    """Let what is registered here end with each test."""
    for name, empty in (("_REGISTERED", {}), ("_WITH_REGISTERED", [])):
        monkeypatch.setattr(columns.registry, name, empty)


@pytest.fixture
def registered(_forgotten):
    columns.register(PercentColumn)
    columns.register(DepartmentColumn)


def people(n: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    share = rng.uniform(40, 100, n).round(1)
    home = np.where(rng.random(n) < 0.1, "?", rng.choice(DEPARTMENTS[:3], n))
    rest = np.where(rng.random(n) < 0.2, np.nan, (share / 2).round(1))
    return pd.DataFrame({"share": share, "rest": rest, "home": home, "age": rng.integers(20, 60, n)})


@pytest.mark.usefixtures("registered")
def test_it_goes_from_a_file_to_an_evaluation_and_a_release(tmp_path):
    path = tmp_path / "schema.yaml"
    path.write_text(TEXT, encoding="utf-8")
    assert not [found for found in check(path, people(5, 0)).findings if found.kind in ("undeclared", "absent")]
    schema = db.Schema.load(path)
    plan = db.plan(schema, method="statistics", epsilon=20.0, delta=1e-5, accountant="rdp", fit_steps=60)
    plan.save(tmp_path / "plan.json")
    ledger = db.Ledger.create(tmp_path / "ledger", dataset="people", epsilon=20.0, delta=1e-5)
    fitted = db.fit(people(600, 1), db.Plan.load(tmp_path / "plan.json"), ledger=ledger, out=tmp_path / "run", seed=0)
    syn = db.load(tmp_path / "run")
    assert type(syn.schema.columns["share"]) is PercentColumn
    made = syn.sample(500, seed=1)
    pd.testing.assert_frame_equal(made, fitted.sample(500, seed=1))
    assert made.share.between(0, 100).all()
    assert np.allclose(made.share * 10, np.round(made.share * 10))
    assert (made.rest.isna() | (made.rest <= made.share)).all()
    assert set(made.home.cat.categories) == set(DEPARTMENTS)
    assert (made.home.isin(DEPARTMENTS[:3]) | made.home.isna()).mean() > 0.9
    report = db.evaluate.report(syn, people(600, 1), people(300, 2), seed=0)
    assert {entry.column: entry.kind for entry in report.table.frequencies}["share"] == "real"
    assert report.table.utility.target == "home"
    assert [each["type"] for each in dictionary(syn.schema)["columns"]][:3] == ["real", "real", "category"]


@pytest.mark.usefixtures("registered")
@pytest.mark.parametrize("text", [TEXT, RELATED], ids=["table", "relational"])
def test_it_is_written_and_read_back(text):
    schema = Schema.parse(text)
    assert Schema.parse(schema.to_yaml()) == schema
    assert Schema.from_plain(json.loads(json.dumps(schema.to_plain()))).sha256 == schema.sha256
    assert {column.shown_type for column in schema.columns.values()} >= {"real", "category"}


@pytest.mark.usefixtures("registered")
def test_it_completes_in_an_editor():
    exported = Schema.json_schema()["$defs"]
    assert exported["PercentColumn"]["properties"]["type"]["const"] == "percent"
    told = exported["TableSchema"]["properties"]["columns"]["additionalProperties"]
    assert {"$ref": "#/$defs/DepartmentColumn"} in told["anyOf"]


def test_other_schemas_stay_as_they_are():
    plain = Schema.parse("{doublure: 1, kind: table, units: 9, columns: {a: {type: real, bounds: [0, 1]}}}")
    before, exported = plain.to_yaml(), Schema.json_schema()
    columns.register(PercentColumn)
    assert Schema.parse(before).to_yaml() == before
    assert Schema.parse(before).sha256 == plain.sha256
    assert len(Schema.json_schema()["$defs"]) == len(exported["$defs"]) + 1


@pytest.mark.parametrize(
    ("line", "field", "remedy"),
    [
        ("{type: percent, precision: many}", "columns.share.precision", "see docs/schema.md"),
        ("{type: percent, precison: 2}", "columns.share.precison", "did you mean precision?"),
        ("{type: percent, bounds: [9, 1]}", "columns.share", "write [lower, upper] with lower < upper"),
        ("{type: prcent}", "columns.share", "did you mean percent? give a type: "),
    ],
)
@pytest.mark.usefixtures("registered")
def test_what_is_wrong_with_such_a_column_is_said_as_of_others(line, field, remedy):
    with pytest.raises(SchemaError) as caught:
        Schema.parse(TEXT.replace("{type: percent, missing: false}", line))
    assert caught.value.field == field
    assert caught.value.remedy.startswith(remedy)


def test_a_type_that_is_not_registered_is_unknown():
    with pytest.raises(SchemaError, match="has a type that is not known here") as caught:
        Schema.parse(TEXT.replace("percent", "permille"))
    assert caught.value.remedy.endswith("give a type: " + ", ".join(columns.TYPES))


@pytest.mark.usefixtures("registered")
def test_cells_that_do_not_fit_are_refused():
    schema = Schema.parse(TEXT.replace("{learn: 0.1}", "false")).resolve({})
    with pytest.raises(DataError) as caught:
        db.evaluate.evaluate_table(schema, people(9, 1).assign(share="much"), people(9, 2))
    assert caught.value.field == "share"
    assert "percent" in caught.value.message


@pytest.mark.parametrize("method", ["numbers_of", "loaded_cells_of", "rounded", "snap", "snapped_numbers_of"])
def test_private_cells_are_read_by_no_method_from_elsewhere(method):
    """Given all cells at once, it could let one record change how others are counted."""
    own = type("Mixing", (PercentColumn,), {method: lambda self, cells: cells})
    with pytest.raises(SettingError, match=f"has a {method} of its own") as caught:
        columns.register(own)
    assert caught.value.remedy == "take it out: cells are read as those of RealColumn"
    assert columns.types() == columns.TYPES


class Bare(RealColumn):
    pass


class Taken(RealColumn):
    type: Literal["category"] = "category"


class Two(RealColumn):
    type: Literal["one", "two"] = "one"


class Unnamed(RealColumn):
    type: Literal["unnamed"]


class Loud(IdColumn):
    type: Literal["TWO WORDS"] = "TWO WORDS"


OWN = 'write type: Literal["NAME"] = "NAME" in its class'


@pytest.mark.parametrize(
    ("model", "said", "remedy"),
    [
        (Bare, "'real' is a column type of doublure", f"{OWN}, with a NAME that is free"),
        (Taken, "'category' is a column type of doublure", f"{OWN}, with a NAME that is free"),
        (Two, "Two has no type of its own", OWN),
        (Unnamed, "Unnamed has no type of its own", OWN),
        (Loud, "Loud has no type of its own", OWN),
        (dict, "is not the class of a column", "derive it from one of IntegerColumn, "),
        ("percent", "is not the class of a column", "derive it from one of IntegerColumn, "),
    ],
)
def test_what_cannot_be_a_type_is_refused(model, said, remedy):
    with pytest.raises(SettingError) as caught:
        columns.register(model)
    assert (caught.value.field, caught.value.message) == ("column type", said)
    assert caught.value.remedy.startswith(remedy)
    assert "\n" not in str(caught.value)
    assert columns.types() == columns.TYPES


# -- ways around -------------------------------------------------------------------------------------------------------


def greatest(raw, *_):
    return pd.Series(np.full(len(raw), float(raw.astype(float).max())))


def looked_up(self, name):
    return greatest if name == "read" else object.__getattribute__(self, name)


class Watching(type(RealColumn)):
    pass


@pytest.mark.parametrize(
    ("hook", "body"),
    [
        ("__getattribute__", {"__getattribute__": looked_up}),
        ("model_post_init", {"model_post_init": lambda self, _: object.__setattr__(self, "read", greatest)}),
        ("csv_cells", {"csv_cells": lambda self, cells: greatest(cells)}),
        ("a metaclass", {}),
    ],
)
def test_a_type_that_could_read_cells_in_another_way_is_refused(hook, body):
    meta = Watching if hook == "a metaclass" else type(RealColumn)
    fields = {"__module__": __name__, "__annotations__": {"type": Literal["odd"]}, "type": "odd"}
    with pytest.raises(SettingError, match=f"{hook} of its own"):
        columns.register(meta("Odd", (RealColumn,), fields | body))


class AllIfAny(Allowed):
    def has(self, numbers):
        return np.full(np.shape(numbers), bool(np.any(numbers == 99)))


def check_a_rule_reads_each_record_by_itself():
    class Code(IntegerColumn):
        type: Literal["code99"] = "code99"

        def ruled(self, written):
            return AllIfAny(**vars(super().ruled(written)))

    columns.register(Code)
    schema = Schema.parse(
        """
        doublure: 1
        kind: table
        unit: {name: p}
        units: 10
        misfit: coerce
        columns:
          a: {type: code99, bounds: [0, 99], missing: false}
          k: {type: boolean, missing: false}
        constraints:
          - {implies: {when: {a: [0, 5]}, then: {k: true}}}
        """
    )
    for last in (98, 99):
        raw = pd.DataFrame({"a": [3, 11, 12, last], "k": [False] * 4})
        read = pd.DataFrame({name: canonical(raw[name], schema.columns[name], name, "coerce") for name in raw})
        assert checked(read, schema)["k"].tolist() == ["true", "false", "false", "false"]


def test_cells_that_a_type_allows_are_compared_by_the_package_alone(monkeypatch):
    check_a_rule_reads_each_record_by_itself()
    monkeypatch.setattr(Allowed, "from_answer", lambda answer: answer)
    with pytest.raises(AssertionError):
        check_a_rule_reads_each_record_by_itself()


def test_a_subclass_of_a_type_that_reads_single_cells_needs_no_examples():
    class Office(TimeColumn):
        type: Literal["office"] = "office"
        bounds: Fact[tuple[str, str]] = ("09:00", "17:00")

    columns.register(Office)
    assert columns.type_named("office") is Office


EQUAL = """
doublure: 1
kind: table
units: 10
columns:
  a: {type: A}
  b: {type: B}
constraints:
  - {equal: [a, b]}
"""


@pytest.mark.parametrize(
    ("one", "other", "said"),
    [
        ('time, bounds: ["06:00", "20:00"]', 'time, bounds: ["06:00:00", "20:00:00"]', None),
        ('duration, bounds: ["0 min", "2 h"]', 'duration, bounds: ["0 min", "120 min"]', None),
        ("duration, bounds: [0, 90], numbers_in: min", "duration, bounds: [0, 90], numbers_in: s", "the same bounds"),
        ("duration, bounds: [0, 90], numbers_in: min", "real, bounds: [0, 90]", "to be of one type"),
    ],
)
def test_equal_compares_what_bounds_mean(one, other, said):
    text = EQUAL.replace("A}", one + ", missing: false}").replace("B}", other + ", missing: false}")
    if said is None:
        assert Schema.parse(text).derived == {"b": "a"}
    else:
        with pytest.raises(SchemaError, match=said):
            Schema.parse(text)


@pytest.mark.parametrize("unit", [0.0, -1.0, float("nan"), float("inf")])
def test_integers_have_a_unit_that_is_a_positive_number(unit):
    with pytest.raises(SchemaError, match="unit"):
        NumberDomain(first=0, last=5, nullable=False, unit=unit)
