"""Floating point is left out of a claim where some noise is not exact, and nowhere else."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from planting import plant

import doublure as db
from doublure import Schema
from doublure.access import Access
from doublure.errors import InputError
from doublure.guarantee import FLOATING, TIMING, Guarantee
from doublure.planning import Plan, planner
from doublure.private.accounting import DiscreteGaussianEvent, GaussianEvent, PureEvent

IMAGES = Schema.parse(
    "doublure: 1\nkind: images\nunits: 60000\nimages: {shape: [28, 28, 1]}\nlabel: {values: [0, 1, 2]}\n"
)
TABLE = Schema.load(db.datasets.adult_schema_path())
EVERY = "all(access.exact for access in touches)"
EXACT = {
    "image sums": (IMAGES, "statistics", {}),
    "image sums and a labeller": (IMAGES, "guided", {"critic_share": 0}),
    "tables": (TABLE, "statistics", {}),
    "tables alone": (TABLE, "guided", {"critic_share": 0}),
}
INEXACT = {
    "gradients": (TABLE, "dpgan", {}),
    "gradients of images": (IMAGES, "dpgan", {}),
    "sums, a critic and a labeller": (IMAGES, "guided", {"critic_share": 0.2}),
    "tables and a critic": (TABLE, "guided", {"critic_share": 0.2}),
}


def planned(schema, method, settings):
    return db.plan(schema, method=method, epsilon=3.0, delta=1e-6, accountant="rdp", **settings)


@pytest.mark.parametrize("name", EXACT)
def test_where_all_noise_is_exact_timing_alone_is_left_out(name):
    made = planned(*EXACT[name])
    assert made.exact
    assert made.guarantee.excluded[0] == TIMING
    assert FLOATING not in made.guarantee.excluded
    assert "Not covered: timing side channels; internal reports" in made.guarantee.sentence


@pytest.mark.parametrize("name", INEXACT)
def test_one_inexact_access_is_enough(name):
    made = planned(*INEXACT[name])
    assert not made.exact
    assert made.guarantee.excluded[0] == FLOATING
    assert TIMING not in made.guarantee.excluded
    assert "Not covered: floating-point and timing side channels; internal reports" in made.guarantee.sentence


def test_an_access_is_exact_by_its_event_or_its_word():
    real = GaussianEvent(noise_multiplier=1.0)
    for event in (DiscreteGaussianEvent(scale=5.0), PureEvent(epsilon=1.0)):
        assert Access(purpose="count", event=event).exact
    assert not Access(purpose="train", event=real).exact
    assert Access(purpose="sum", event=real, whole=True).exact


def test_a_claim_that_says_nothing_leaves_floating_point_out():
    said = Guarantee(kind="dp", epsilon=1.0, delta=1e-5, accountant="pld")
    assert FLOATING in said.sentence
    exact = said.model_copy(update={"excluded": (TIMING,)})
    assert FLOATING not in exact.sentence
    assert (exact.inexact.excluded, exact.inexact.sentence) == ((FLOATING,), said.sentence)


def test_a_worst_case_and_public_labels_keep_what_is_left_out():
    made = planned(*EXACT["image sums"]).guarantee
    assert made.worst_case == made
    assert TIMING in made.with_public_labels(shared_people=True).excluded


def test_the_card_names_where_exact_noise_comes_from():
    assert planned(*EXACT["image sums"]).guarantee.noise_source == planner._EXACT
    assert planned(*EXACT["tables"]).guarantee.noise_source == "exact discrete Gaussian"
    assert planned(*INEXACT["gradients"]).guarantee.noise_source == "os-keyed"


@pytest.mark.parametrize(("schema", "method", "settings"), [EXACT["tables"]])
def test_a_plan_of_0_2_0_keeps_the_name_of_its_noise(schema, method, settings):
    made = planned(schema, method, settings)
    before = made.guarantee.model_copy(update={"noise_source": "opendp discrete Gaussian"})
    written = json.loads(json.dumps(replace(made, guarantee=before).to_json()))
    assert Plan.from_json(written).guarantee == before
    written["guarantee"]["noise_source"] = "opendp discrete Gaussian, nearly"
    with pytest.raises(InputError):
        Plan.from_json(written)


def test_plans_are_read_as_they_were_written(tmp_path):
    for schema, method, settings in (*EXACT.values(), *INEXACT.values()):
        made = planned(schema, method, settings)
        made.save(tmp_path / "plan.json")
        assert Plan.load(tmp_path / "plan.json") == made


def test_a_plan_of_an_earlier_version_goes_on_claiming_less():
    made = planned(*EXACT["image sums"])
    before = made.guarantee.inexact.model_copy(update={"noise_source": "os-keyed"})
    written = json.loads(json.dumps(replace(made, guarantee=before).to_json()))
    assert Plan.from_json(written).guarantee == before


def test_a_plan_cannot_be_edited_into_an_exact_one():
    made = planned(*INEXACT["gradients"])
    excluded = tuple(TIMING if left == FLOATING else left for left in made.guarantee.excluded)
    edited = made.guarantee.model_copy(update={"excluded": excluded})
    written = json.loads(json.dumps(replace(made, guarantee=edited).to_json()))
    with pytest.raises(InputError, match="does not follow"):
        Plan.from_json(written)


@pytest.mark.parametrize(
    ("owner", "name", "edit"),
    [
        (planner, "_guarantee", (EVERY, EVERY.replace("all", "any"))),
        (planner, "_guarantee", (EVERY, "True")),
    ],
)
def test_a_claim_that_forgets_an_access_is_caught(monkeypatch, owner, name, edit):
    plant(monkeypatch, owner, name, edit)
    with pytest.raises(AssertionError):
        test_one_inexact_access_is_enough("sums, a critic and a labeller")
