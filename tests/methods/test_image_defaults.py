"""What settings of images follow from public facts alone, and what stays as it was given."""

from __future__ import annotations

import json

import pytest

import doublure as db
from doublure.methods.statistics.images import defaults
from doublure.methods.statistics.images.defaults import KNOWN, WELL_KNOWN, precision

LONGER_LOOK = ("labeller_share", "labeller_steps", "view_width")
SHARPER_SIGHT = ("features", "second_order", "fine_detail")
VARIED = ("warp", "sampled_warp", "sampled_spread")


def schema(word=None, units=60_000, shape=(28, 28, 1), labels=10, **label):
    pictures = {"shape": list(shape)} | ({} if word is None else {"pictures": word})
    plain = {"doublure": 1, "kind": "images", "units": units, "images": pictures}
    return db.Schema.from_plain(plain | ({"label": {"values": list(range(labels))} | label} if labels else {}))


def chosen(names, epsilon=1.0, method="guided", given=(), **facts):
    made = db.plan(schema(**facts), method=method, epsilon=epsilon, delta=1e-5, accountant="rdp", **dict(given))
    assert db.Plan.from_json(json.loads(json.dumps(made.to_json())), name="plan") == made
    return tuple(getattr(made.settings, name) for name in names)


NETWORK = {"model": "network"}.items()


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 10.0])
def test_drawings_are_varied_and_others_hardly(epsilon):
    assert chosen(VARIED, epsilon, word="drawings") == (1.0, 2.0, 1.0)
    spread = 1.5 if epsilon == 10.0 else 1.0
    for word in ("photographs", "aligned", "scenes", None):
        assert chosen(VARIED, epsilon, word=word, given=NETWORK) == (0.5, 0.5, spread)


def test_few_drawings_are_drawn_as_they_were_learned_and_the_plan_says_so():
    """1,500 pictures of clothes at ε = 1, declared drawings: warped by 2, 74.3 % showed their label, by 1 85.8 %."""
    for units in (300, 1_500, 5_000, 29_999):
        assert chosen(VARIED, 10.0, word="drawings", units=units) == (1.0, 1.0, 1.0)
    assert chosen(VARIED, 1.0, word="drawings", units=30_000) == (1.0, 2.0, 1.0)
    said = "Pictures: warped no more widely than in training; below 30,000 images"
    for word, units, told in (("drawings", 1_500, True), ("drawings", 60_000, False), ("aligned", 1_500, False)):
        plan = db.plan(schema(word, units=units), epsilon=1.0, delta=1e-6, accountant="rdp")
        assert (said in plan.explain()) is told


@pytest.mark.parametrize(("given", "told"), [(2.0, False), (1.0, True), (0.5, True)])
def test_a_plan_of_few_drawings_that_are_drawn_more_widely_says_nothing_of_it(given, told):
    """By hand, or by the rule of an earlier version, whose plans are read."""
    made = db.plan(schema("drawings", 2_000), epsilon=1.0, delta=1e-6, accountant="rdp", sampled_warp=given)
    read = db.Plan.from_json(json.loads(json.dumps(made.to_json())), name="plan")
    assert (read.settings.warp, read.settings.sampled_warp) == (1.0, given)
    assert ("Pictures: warped no more widely than in training" in read.explain()) is told


def test_the_recipes_follow_where_labels_are_well_known():
    """The settings that docs/evidence/journal/images.md reports at epsilon 10, from the schema and the price alone."""
    assert chosen((*VARIED, *LONGER_LOOK), 10.0, word="drawings") == (1.0, 2.0, 1.0, 0.6, 150, 1000)
    assert chosen((*VARIED, *LONGER_LOOK), 10.0, word="photographs") == (0.5, 0.5, 1.5, 0.6, 150, 1000)
    assert chosen(("fit_steps", *SHARPER_SIGHT), 10.0, word="drawings") == (2000, 4096, 0.0, 0.0)
    assert chosen(("fit_steps", *SHARPER_SIGHT), 10.0, word="photographs") == (3000, 16_384, 0.25, 0.5)
    assert chosen(("fit_steps", *SHARPER_SIGHT), 1.0, word="photographs", given=NETWORK) == (4000, 4096, 0.0, 0.0)
    assert chosen(LONGER_LOOK, 0.2, word="photographs") == (0.5, 60, 500)
    assert chosen(("fit_steps",), 1.0, word="photographs", shape=(64, 48, 1), given=NETWORK) == (2000,)


def test_steps_and_batches_follow_the_noise_and_views_the_units():
    names = ("fit_steps", "batch", "view_images")
    assert chosen(names, 1.0, word="drawings") == (2000, 400, 4000)
    assert chosen(names, 10.0, word="drawings") == (2000, 400, 10_000)
    steps, batch, viewed = chosen(names, 1.0, word="drawings", units=4000)
    assert steps == 250
    assert batch == 100
    assert viewed == 4000
    few = db.plan(schema(None, units=300, shape=(64, 64, 3), labels=0), epsilon=10.0, delta=1e-5)
    assert few.settings.model == "network"
    assert few.seconds_estimate < 2_700
    assert (
        db.plan(schema(None, units=300, shape=(64, 64, 3), labels=2), epsilon=10.0, delta=1e-5).seconds_estimate < 120
    )


def test_aligned_pictures_get_outlines_and_scenes_never():
    for epsilon in (0.2, 10.0):
        for word, colours in (("aligned", 1), ("aligned", 3), (None, 1), ("photographs", 1), ("drawings", 3)):
            assert chosen(("model",), epsilon, word=word, shape=(48, 48, colours)) == ("network",)
        for word, colours in (("scenes", 1), ("scenes", 3), (None, 3), ("photographs", 3)):
            assert chosen(("model",), epsilon, word=word, shape=(48, 48, colours)) == ("gaussian",)
    assert chosen(("model",), 1.0, word="scenes", shape=(15, 15, 3)) == ("network",)
    assert chosen(("model",), 1.0, word="scenes", shape=(32, 32, 3), labels=0, method="statistics") == ("network",)


def test_other_scenes_and_photographs_with_labels_are_drawn_by_gaussians():
    """Where nobody chose another model, or set what only networks have."""
    names = ("model", *VARIED, "labeller_share")
    coloured = {"word": "photographs", "shape": (32, 32, 3)}
    assert chosen(names, 10.0, **coloured) == chosen(names, 10.0, **coloured | {"word": None})
    assert chosen(names, 10.0, **coloured) == ("gaussian", 0.0, 0.0, 1.0, 0.6)
    assert chosen(names, 1.0, **coloured) == ("gaussian", 0.0, 0.0, 1.0, 0.5)
    assert chosen(names[:2], 10.0, "statistics", **coloured) == ("gaussian", 0.0)
    assert chosen(names[:2], 10.0, "statistics", **coloured | {"labels": 0}) == ("network", 0.5)
    assert chosen(names, 0.2, **coloured) == ("gaussian", 0.0, 0.0, 1.0, 0.5)
    assert chosen(names, 10.0, **coloured | {"word": "drawings"}) == ("network", 1.0, 2.0, 1.0, 0.6)
    assert chosen(names, 10.0, **coloured | {"shape": (32, 32, 1)}) == ("network", 0.5, 0.5, 1.5, 0.6)
    for given in ({"model": "network"}, {"fit_steps": 3000}, {"latent": 16}, {"critic_share": 0.1}):
        assert chosen(names[:4], 10.0, **coloured, given=given.items()) == ("network", 0.5, 0.5, 1.5)
    given = {"model": "gaussian", "warp": 0.2}
    assert chosen(names[:4], 1.0, word="drawings", given=given.items()) == ("gaussian", 0.2, 0.0, 1.0)


def test_a_plan_forecasts_that_gaussians_need_no_training():
    coloured = schema("photographs", shape=(32, 32, 3))
    by_gaussians, by_networks = (
        db.plan(coloured, method="statistics", epsilon=10.0, delta=1e-5, model=model)
        for model in ("gaussian", "network")
    )
    assert by_gaussians.seconds_estimate < 600
    assert by_gaussians.seconds_estimate < 0.2 * by_networks.seconds_estimate
    assert by_gaussians.steps == 1


@pytest.mark.parametrize("word", [None, "drawings", "photographs"])
def test_few_pixels_are_seen_as_pixels(word):
    names = (*VARIED, "fit_steps", "fine_detail")
    assert chosen(names, 10.0, word=word, shape=(8, 15, 1)) == (0.3, 0.3, 1.0, 500, 0.5)
    assert chosen(names, 0.2, word=word, shape=(8, 15, 3)) == (0.3, 0.3, 1.0, 500, 0.5)
    few = {"features": 64}  # that it takes to see them was not given
    assert chosen(("features", "fine_detail"), 10.0, word=word, shape=(8, 8, 1), given=few.items()) == (64, 0.0)


def test_what_counts_is_how_well_a_label_is_known_not_epsilon_alone():
    assert chosen(LONGER_LOOK, 10.0, word="drawings", units=10_000) == (0.5, 60, 500)
    assert chosen(LONGER_LOOK, 10.0, word="drawings", units=10_000, labels=2) == (0.6, 150, 1000)
    made = db.plan(schema(), method="guided", epsilon=1.0, delta=1e-5)
    assert KNOWN < precision(schema(), made.noise_multiplier) < WELL_KNOWN
    assert precision(schema(), 2.0) == 3_000
    assert precision(schema(labels=0), 2.0) == 30_000


def test_what_is_given_stays_and_so_does_what_belongs_to_it():
    given = {"sampled_warp": 1.0, "fit_steps": 9, "labeller_share": 0.3}
    assert chosen(("sampled_warp", "sampled_spread"), 10.0, word="drawings", given=given.items()) == (1.0, 1.0)
    assert chosen(LONGER_LOOK, 10.0, word="drawings", given=given.items()) == (0.3, 60, 500)
    assert chosen(("fit_steps",), 10.0, word="photographs", given=given.items()) == (9,)
    few = {"features": 64}
    assert chosen(SHARPER_SIGHT, 10.0, word="photographs", given=few.items()) == (64, 0.0, 0.0)
    few = {"view_images": 100}
    assert chosen(LONGER_LOOK, 10.0, word="photographs", given=few.items()) == (0.5, 60, 500)


def test_statistics_alone_take_what_they_know():
    names = ("warp", "fit_steps", *SHARPER_SIGHT)
    assert chosen(names, 10.0, "statistics", word="photographs", labels=0) == (0.5, 3000, 16_384, 0.25, 0.5)
    assert chosen(names, 0.2, "statistics", word="drawings") == (1.0, 666, 4096, 0.0, 0.0)


def test_a_plan_says_that_the_word_is_missing():
    said = "images.pictures is not declared"
    for word, found in ((None, True), ("drawings", False), ("photographs", False)):
        assert (said in db.plan(schema(word), epsilon=1.0, delta=1e-5).explain()) == found


@pytest.mark.parametrize("method", ["guided", "statistics"])
def test_a_plan_says_what_coloured_photographs_come_out_as(method):
    said = "come out as patches of colour"
    for word, colours, found in ((None, 3, True), ("scenes", 1, True), ("drawings", 3, False), (None, 1, False)):
        described = schema(word, shape=(32, 32, colours))
        plan = db.plan(described, method=method, epsilon=0.2, delta=1e-5, model="network")
        assert (said in plan.explain()) == found
    drawn = db.plan(schema("photographs", shape=(32, 32, 3)), method=method, epsilon=10.0, delta=1e-5).explain()
    assert "drawn by a Gaussian for each label" in drawn
    assert "model=gaussian" in drawn
    assert "fit_steps" not in drawn  # nor any other setting of networks
    assert said not in drawn


def test_what_was_chosen_has_to_fit_this_machine(monkeypatch):
    """The plan looks once more when it has chosen."""
    seen = []
    monkeypatch.setattr(
        "doublure.planning.planner.refuse_too_large", lambda *asked, **_: seen.append(asked[2].features)
    )
    db.plan(schema("photographs"), method="guided", epsilon=10.0, delta=1e-5)
    assert seen == [4096, 16_384]


def test_tiny_labels_are_named_by_their_public_shares():
    shares = {0: 0.0099, 1: 0.002, 2: 0.9881}
    made = db.plan(schema(labels=3, shares=shares), epsilon=1.0, delta=1e-5)
    (said,) = [warning for warning in made.warnings if "by their shares" in warning]
    assert "1 some 120, 0 some 594;" in said
    assert "2 some" not in said
    for none in ({}, {"shares": {"learn": 0.1}}, {"shares": {0: 0.3, 1: 0.3, 2: 0.4}}):
        made = db.plan(schema(labels=3, **none), epsilon=1.0, delta=1e-5)
        assert not any("by their shares" in warning for warning in made.warnings)


def test_of_many_tiny_labels_the_smallest_are_named():
    shares = {0: 0.93, **{number: number / 1000 for number in range(1, 12)}, 12: 0.004}
    made = db.plan(schema(labels=13, units=30_000, shares=shares), epsilon=1.0, delta=1e-5)
    (said,) = [warning for warning in made.warnings if "by their shares" in warning]
    assert "1 some 30, 2 some 60, 3 some 90, 4 some 120, 12 some 120 and 7 more" in said


def test_the_table_says_what_is_chosen():
    """Every setting that is chosen stands in the module's table."""
    names = {*defaults._LONGER_LOOK, *defaults._SHARPER_SIGHT, *VARIED, "fit_steps"}
    assert not [name for name in names if f"{name}=" not in (defaults.__doc__ or "")]
