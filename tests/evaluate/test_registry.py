"""A metric that is registered from outside gets what the others get, and stands where they stand."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from doublure import evaluate
from doublure.data.images import Images
from doublure.errors import SettingError
from doublure.evaluate import evaluate_images, evaluate_table
from doublure.measures import registry
from doublure.measures.relational import evaluate_related
from doublure.measures.relational.units import ComparedUnits, UnitCoder
from doublure.measures.scores import Score, distance_score
from doublure.schema import Schema

RELATED = """
doublure: 1
kind: relational
units: 60
tables:
  people:
    key: person
    columns: {person: {type: id}, home: {type: category, values: [a, b], missing: false}}
  visits:
    parent: people
    foreign_key: person
    max_children: 9
    columns: {person: {type: id}, hours: {type: integer, bounds: [0, 9], missing: false}}
"""


@pytest.fixture(autouse=True)
def _forgotten(monkeypatch):
    """Let what is registered here end with each test."""
    monkeypatch.setattr(registry, "_REGISTERED", {})


def red(coder, tables, rng):
    """How far the share of red is off."""
    place, code = coder.names.index("colour"), coder.labels("colour").index("red")
    share = {role: float((rows.codes[:, place] == code).mean()) for role, rows in tables.others.items()}
    real = float((tables.train.codes[:, place] == code).mean())
    gaps = {role: abs(each - real) for role, each in share.items()}
    return distance_score("red", "Red that is off", gaps, "How far the share of red rows is off.")


def test_its_score_is_in_the_scores_the_json_and_on_the_page(make_synthesizer, drawn, real, holdout):
    registry.register("red", red)
    report = evaluate.report(make_synthesizer(drawn(500, 3).assign(colour="red")), real, holdout)
    expected = 1 - float((real.colour == "red").mean())
    assert report.scores.loc["red", "synthetic"] == pytest.approx(expected)
    assert report.scores.loc["red", "baseline"] < 0.1
    (kept,) = json.loads(report.to_json())["table"]["added"]
    assert kept["value"] == pytest.approx(expected)
    figures = report.to_html().partition('id="figures"')[2]
    assert "Red that is off" in figures
    assert f"{expected:.3f}" in figures


def test_nothing_else_changes(schema, real, holdout, drawn):
    before = evaluate_table(schema, drawn(500, 3), real, holdout)
    registry.register("red", red)
    after = evaluate_table(schema, drawn(500, 3), real, holdout)
    assert [score.key for score in after.added] == ["red"]
    assert after.plus(()).to_json() == before.to_json()


def test_what_it_draws_follows_from_the_seed_and_its_key(schema, real, holdout, drawn):
    def of(key):
        return lambda coder, tables, rng: Score(
            key=key, name=key, value=float(rng.random()), goal="low", range=(0.0, 1.0)
        )

    def values():
        return {score.key: score.value for score in evaluate_table(schema, drawn(500, 3), real, holdout).added}

    registry.register("second", of("second"))
    alone = values()
    registry.register("first", of("first"))
    both = values()
    assert both["second"] == alone["second"] != both["first"]


def test_one_of_images_gets_the_four_sets(monkeypatch):
    schema = Schema.parse("{doublure: 1, kind: images, units: 60, images: {shape: [4, 4, 1]}}").resolve({})
    rng = np.random.default_rng(0)
    dark, bright = (Images(images=rng.integers(low, low + 99, (60, 4, 4, 1)).astype(np.uint8)) for low in (0, 150))

    def brightness(about, sets, rng):
        assert about is schema
        means = {role: float(each.images.mean()) for role, each in sets.items()}
        figures = {role: abs(means[role] - means["test"]) / 255 for role in ("value", "baseline", "real")}
        return distance_score("brightness", "Brightness", figures)

    registry.register("brightness", brightness, kind="images")
    found = {score.key: score for score in evaluate_images(schema, bright, dark, dark.take(slice(30))).scores}
    assert found["brightness"].value > 0.5 > found["brightness"].real


def test_one_of_related_tables_gets_their_coders_and_sides():
    schema = Schema.parse(RELATED).resolve({})

    def units(n, seed):
        rng = np.random.default_rng(seed)
        people = pd.DataFrame({"person": range(n), "home": rng.choice(["a", "b"], n)})
        return {
            "people": people,
            "visits": pd.DataFrame({"person": rng.integers(0, n, n), "hours": rng.integers(0, 9, n)}),
        }

    def seen(coders, sides, rng):
        assert (type(coders), type(sides)) == (UnitCoder, ComparedUnits)
        return distance_score("seen", "Seen", {"value": 0.25, "baseline": 0.5, "real": 0.0})

    registry.register("seen", seen, kind="relational")
    found = evaluate_related(schema, units(50, 1), units(60, 2), units(40, 3), tables=False)
    assert (found.scores[-1].key, found.scores[-1].value) == ("seen", 0.25)


@pytest.mark.parametrize(
    ("key", "metric", "said", "remedy"),
    [
        ("overall", red, "'overall' is a figure of doublure", "register it under another key"),
        ("blue", red, "'blue' returns no score of its key", "return a Score with key='blue'"),
        ("red", lambda *given: 0.5, "'red' returns no score of its key", "return a Score with key='red'"),
    ],
)
def test_what_is_no_score_of_its_own_is_refused(schema, real, holdout, drawn, key, metric, said, remedy):
    registry.register(key, metric)
    with pytest.raises(SettingError) as caught:
        evaluate_table(schema, drawn(500, 3), real, holdout)
    assert (caught.value.field, caught.value.message, caught.value.remedy) == ("metric", said, remedy)


def test_an_unknown_kind_is_refused_with_the_nearest():
    with pytest.raises(SettingError, match="there is no kind of data 'tables'") as caught:
        registry.register("red", red, kind="tables")
    assert caught.value.remedy.startswith("did you mean table?")
