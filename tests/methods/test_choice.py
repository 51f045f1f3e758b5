"""``--method auto``: chosen from the schema and ε alone, and said so."""

from __future__ import annotations

import json

import pytest

import doublure as db
from doublure.errors import SchemaError, SettingError
from doublure.methods import choice
from doublure.methods import registry as table
from doublure.methods.guided.settings import ImageGuidedSettings
from doublure.planning import Plan

TABLE = """
doublure: 1
kind: table
unit: {name: person, id: null, max_records: 1}
units: 5000
columns: {age: {type: integer, missing: false, bounds: [0, 99]}}
"""
IMAGES = "{doublure: 1, kind: images, units: 5000, images: {shape: [8, 8, 1], on_mismatch: refuse}%s}"
SERIES = """
doublure: 1
kind: series
units: 5000
series: {length: 4, gaps: refuse}
channels: {kw: {type: real, bounds: [0, 9], missing: false}}
"""
LABEL = ", label: {values: [0, 1], roles: [target, condition]}"


@pytest.mark.parametrize(
    ("text", "method"),
    [(TABLE, "statistics"), (IMAGES % LABEL, "guided"), (IMAGES % "", "statistics"), (SERIES, "statistics")],
)
def test_the_plan_names_the_method_and_the_reason(text, method):
    schema = db.Schema.parse(text)
    made = db.plan(schema, method="auto", epsilon=1.0, delta=1e-6)
    assert made.method == method
    assert made.warnings[0] == choice.sentence(schema, 1.0)
    assert f"is {method} here" in made.explain()
    assert db.plan(schema, epsilon=1.0, delta=1e-6).warnings == made.warnings  # auto where none is named
    named = db.plan(schema, method=method, epsilon=1.0, delta=1e-6)
    assert named.warnings == made.warnings[1:]
    assert named.guarantee == made.guarantee


@pytest.mark.parametrize("text", [TABLE, SERIES])
def test_the_reason_says_that_epsilon_would_not_change_it(text):
    assert "at every ε measured" in choice.sentence(db.Schema.parse(text), 1.0)


def test_of_images_the_reason_says_what_decides():
    said = choice.sentence(db.Schema.parse(IMAGES % LABEL), 1.0)
    assert said.endswith("a private labeller checks them if a noisy count says that this teaches more")


@pytest.mark.parametrize(
    ("units", "values", "epsilon", "method"),
    [
        (1000, "[0, 1]", 1.0, "guided"),
        (1000, "[0, 1]", 0.2, "statistics"),
        (230, "[0, 1]", 1.0, "statistics"),
        (280, "[0, 1]", 1.0, "guided"),
        (1000, "[0, 1, 2, 3, 4, 5]", 0.5, "statistics"),
        (1000, "[0, 1, 2, 3, 4, 5]", 2.0, "guided"),
        (5000, "{learn: 0.1}, other: '9'", 1.0, "guided"),
    ],
)
def test_a_labeller_needs_images_of_each_label_or_more_epsilon(units, values, epsilon, method):
    text = (IMAGES % LABEL).replace("5000", str(units)).replace("[0, 1]", values)
    made = db.plan(db.Schema.parse(text), method="auto", epsilon=epsilon, delta=1e-6)
    assert made.method == method
    assert ("more noise than images" in made.warnings[0]) == (method == "statistics")
    assert Plan.from_json(json.loads(json.dumps(made.to_json())), name="plan") == made


def test_what_is_missing_is_said_before_anything_is_chosen():
    schema = db.Schema.parse(IMAGES % LABEL)
    for spent, field in (
        ({"delta": 1e-6}, "epsilon"),
        ({"epsilon": "1", "delta": 1e-6}, "epsilon"),
        ({"epsilon": 1.0}, "delta"),
    ):
        with pytest.raises(SettingError, match=field):
            db.plan(schema, method="auto", **spent)
    undeclared = (IMAGES % LABEL).replace("5000", "undeclared")
    with pytest.raises(SchemaError, match="units: is undeclared"):
        db.plan(db.Schema.parse(undeclared), method="auto", epsilon=1.0, delta=1e-6)


def test_no_method_is_described_by_the_one_above_it():
    assert not [name for name, said in table._SUMMARIES.items() if said.startswith("the same")]


def test_such_a_plan_can_be_written_and_read():
    made = db.plan(db.Schema.parse(TABLE), method="auto", epsilon=1.0, delta=1e-6)
    written = json.loads(json.dumps(made.to_json()))
    assert Plan.from_json(written, name="plan") == made
    written["warnings"][0] = "method auto is dpgan here"
    assert not any("method auto" in warning for warning in Plan.from_json(written, name="plan").warnings)


def test_auto_is_no_method():
    assert choice.AUTO not in table.METHODS


@pytest.mark.parametrize(
    ("shares", "epsilon", "method"),
    [
        ({"a": 0.5, "b": 0.5}, 1.0, "guided"),
        ({"a": 0.996, "b": 0.004}, 1.0, "statistics"),
        ({"a": 0.996, "b": 0.004}, 10.0, "guided"),
        ({"a": 0.9995, "b": 0.0005}, 10.0, "statistics"),
    ],
)
def test_a_labeller_is_left_out_where_its_rarest_label_drowns_in_noise(shares, epsilon, method):
    """The rule holds one public figure against another: images over the noise, and the root of a vector's width."""
    plain = db.Schema.parse(IMAGES % LABEL).to_plain()
    plain["label"] = {"values": list(shares), "shares": shares, "roles": ["target", "condition"]}
    made = db.plan(db.Schema.from_plain(plain), epsilon=epsilon, delta=1e-5)
    assert made.method == method
    assert ImageGuidedSettings().least_known == pytest.approx(1000**0.5)


@pytest.mark.parametrize("word", ["scenes", "aligned", "drawings"])
def test_pictures_of_every_kind_are_given_a_labeller_that_an_answer_may_leave_out(word):
    plain = db.Schema.parse(IMAGES % LABEL).to_plain() | {"images": {"shape": [32, 32, 3], "pictures": word}}
    made = db.plan(db.Schema.from_plain(plain), epsilon=1.0, delta=1e-5)
    assert (made.method, made.settings.labels_compared) == ("guided", True)
    compared = made.touches[-1]
    assert compared.purpose == "count images that one classifier recognises"
    assert compared.event.scale == pytest.approx(made.noise_multiplier * 50**0.5)
