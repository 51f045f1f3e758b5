"""``guided`` and ``statistics`` on images: what they plan, what they touch, and what they refuse."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import pytest

import doublure as db
from doublure.errors import InputError, SchemaError, SettingError
from doublure.methods import registry as table
from doublure.methods.guided.method import METHOD
from doublure.methods.guided.settings import ImageGuidedSettings
from doublure.private.accounting import GaussianEvent, epsilon_of

TEXT = "doublure: 1\nkind: images\nunits: 60000\nimages: {shape: [28, 28, 1]}\nlabel: {values: [0, 1, 2]}\n"
SCHEMA = db.Schema.parse(TEXT)
UNLABELLED = db.Schema.parse(TEXT.partition("label")[0])
TABLE = db.Schema.parse("doublure: 1\nkind: table\nunits: 600\ncolumns: {a: {type: boolean, missing: false}}")


def plan(schema: db.Schema = SCHEMA, method: str = "guided", **settings: Any) -> db.Plan:
    return db.plan(schema, method=method, **({"epsilon": 1.0, "delta": 1e-6, "accountant": "rdp"} | settings))


def test_what_it_touches():
    made = plan(labeller_share=0.3, labeller_steps=40, labels_compared=False)
    first, second = (touch.event for touch in made.touches)
    sigma = made.noise_multiplier
    assert (first.steps, second.steps, made.steps) == (1, 40, 41)
    assert (first.sample_rate, second.sample_rate, made.sample_rate) == (1.0, 1.0, 1.0)
    assert 1 / first.noise_multiplier**2 == pytest.approx(0.7 / sigma**2)
    assert 40 / second.noise_multiplier**2 == pytest.approx(0.3 / sigma**2)
    spent = epsilon_of([first, second], 1e-6, accountant="rdp")
    assert 0.98 < spent <= 1.0
    assert made.guarantee.kind == "dp"
    assert made.guarantee.noise_multiplier is None  # not one figure: a reader finds the noise access by access
    assert all(touch.purpose in made.explain() for touch in made.touches)


def test_a_share_of_zero_leaves_the_labeller_out():
    made, alone = plan(labeller_share=0), plan(method="statistics")
    assert made.touches == alone.touches
    assert [touch.event for touch in made.touches] == [GaussianEvent(noise_multiplier=made.noise_multiplier)]
    assert made.steps == alone.steps == 1
    assert made.settings.noise_width == alone.settings.noise_width
    assert plan().settings.noise_width == plan().settings.tries * alone.settings.noise_width


def test_a_critic_takes_its_share_in_lots():
    made = plan(
        critic_share=0.2,
        labeller_share=0.3,
        critic_steps=50,
        critic_lot=3_000,
        labeller_steps=40,
        labels_compared=False,
    )
    first, critic, labeller = (touch.event for touch in made.touches)
    sigma = made.noise_multiplier
    assert (first.steps, critic.steps, labeller.steps, made.steps) == (1, 50, 40, 91)
    assert critic.sample_rate == 0.05
    assert 1 / first.noise_multiplier**2 == pytest.approx(0.5 / sigma**2)
    assert 0.05**2 * 50 * math.expm1(critic.noise_multiplier**-2) == pytest.approx(0.2 / sigma**2)
    assert 40 / labeller.noise_multiplier**2 == pytest.approx(0.3 / sigma**2)
    assert 0.98 < epsilon_of([first, critic, labeller], 1e-6, accountant="rdp") <= 1.0
    # There is no one rate: each access says its own.
    assert (made.sample_rate, made.guarantee.sample_rate) == (None, None)
    assert "Poisson" not in made.guarantee.sentence
    assert "q = 0.05, T = 50" in made.explain()


def test_a_critic_may_look_at_all():
    made = plan(critic_share=0.2, labeller_share=0.3, critic_steps=50, critic_lot=60_000)
    critic = made.touches[1].event
    assert critic.sample_rate == 1.0
    assert 50 / critic.noise_multiplier**2 == pytest.approx(0.2 / made.noise_multiplier**2)
    few = db.Schema.parse(TEXT.replace("60000", "600"))
    assert plan(few, critic_share=0.2).settings.critic_lot == 600
    assert plan(critic_share=0.2).settings.critic_lot == 1_000
    assert plan().settings.critic_lot is None  # no default is resolved that is not used


@pytest.mark.parametrize("critic", [0.01, 0.3, 0.9])
@pytest.mark.parametrize("labeller", [0.01, 0.09])
def test_stages_on_all_records_cost_what_one_gaussian_would(critic, labeller):
    settings = ImageGuidedSettings(critic_share=critic, labeller_share=labeller, critic_lot=60_000)
    found = METHOD.accesses(SCHEMA, METHOD.resolve_defaults(SCHEMA, settings), 5.0)
    together = epsilon_of([access.event for access in found], 1e-5, accountant="rdp")
    one = epsilon_of([GaussianEvent(noise_multiplier=5.0)], 1e-5, accountant="rdp")
    assert together == pytest.approx(one, rel=1e-6)


@pytest.mark.parametrize(
    ("shares", "said"),
    [
        ((0, 0.5), "statistics, then a private labeller that checks"),
        ((0.2, 0.5), "statistics, then a private critic that refines and a private labeller that checks"),
        ((0.2, 0), "statistics, then a private critic that refines"),
        ((0, 0), "statistics alone, as critic_share=0"),
    ],
)
def test_a_plan_names_the_parts_that_run(shares, said):
    made = plan(critic_share=shares[0], labeller_share=shares[1])
    assert made.explain().splitlines()[0] == f"Method guided: {said}"


def test_a_plan_of_a_long_fit_says_what_is_quicker():
    made = plan(accountant="rdp")
    long, quick = replace(made, seconds_estimate=5400.0), replace(made, seconds_estimate=500.0)
    assert "\nQuicker: --set model=gaussian takes about " in long.explain()
    assert "Quicker:" not in quick.explain()
    assert "Quicker:" not in replace(plan(critic_share=0.2), seconds_estimate=5400.0).explain()


def test_images_without_labels_have_no_labeller():
    with pytest.raises(SchemaError, match="labeller_share=0") as refused:
        plan(UNLABELLED)
    assert refused.value.field == "label"
    assert plan(UNLABELLED, labeller_share=0).steps == 1
    assert plan(UNLABELLED, "statistics").steps == 1
    target = db.Schema.parse(TEXT.replace("[0, 1, 2]", "[0, 1, 2], roles: [target]"))
    for method in ("guided", "statistics"):
        with pytest.raises(SchemaError, match=r"^label"):
            plan(target, method)


def test_facts_may_be_bought():
    made = plan(
        db.Schema.parse(TEXT.replace("[0, 1, 2]", "{learn: 0.2}, other: x, shares: {learn: 0.1}")),
        labels_compared=False,
    )
    assert [touch.path is None for touch in made.touches] == [False, False, True, True]
    assert made.epsilon == 1.0
    assert epsilon_of([touch.event for touch in made.touches], 1e-6, accountant="rdp") <= 1.0


@pytest.mark.parametrize("kind", ["table", "images"])
def test_each_kind_has_its_own_statistics(kind):
    schema, other = (TABLE, {"latent": 4}) if kind == "table" else (SCHEMA, {"components": 4})
    delta = 1e-6
    assert plan(schema, "statistics", delta=delta).kind == kind
    with pytest.raises(SettingError, match="not a setting of this method"):
        plan(schema, "statistics", delta=delta, **other)


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"features": 5}, "features"),
        ({"features": 0}, "features"),
        ({"bandwidths": []}, "bandwidths"),
        ({"bandwidths": [0.5, 0.0]}, "bandwidths"),
        ({"bandwidths": [-1.0]}, "bandwidths"),
        ({"feature_seed": -1}, "feature_seed"),
        ({"feature_seed": 2**80}, "feature_seed"),
        ({"fit_steps": 0}, "fit_steps"),
        ({"batch": 1}, "batch"),
        ({"generator_lr": 0.0}, "generator_lr"),
        ({"generator_average": 1.0}, "generator_average"),
        ({"latent": 0}, "latent"),
        ({"warp": -0.1}, "warp"),
        ({"channels": []}, "channels"),
        ({"noise_source": "replay"}, "noise_source"),
        ({"critic_share": -0.1}, "critic_share"),
        ({"critic_share": 0.001}, "critic_share"),
        ({"critic_share": 1.0}, "critic_share"),
        ({"critic_share": 0.6, "labeller_share": 0.4}, "settings"),
        ({"critic_steps": 0}, "critic_steps"),
        ({"critic_lot": 0}, "critic_lot"),
        ({"critic_lr": 0.0}, "critic_lr"),
        ({"critic_clip": 1e-40}, "critic_clip"),
        ({"critic_threshold": 1.1}, "critic_threshold"),
        ({"critic_patience": 0}, "critic_patience"),
        ({"critic_channels": []}, "critic_channels"),
        ({"refine_lr": 0}, "refine_lr"),
        ({"anchor": -1.0}, "anchor"),
        ({"labeller_share": 1.0}, "labeller_share"),
        ({"labeller_share": 1e-300}, "labeller_share"),
        ({"labeller_share": -0.1}, "labeller_share"),
        ({"labeller_steps": 0}, "labeller_steps"),
        ({"labeller_steps": True}, "labeller_steps"),
        ({"labeller_lr": 0}, "labeller_lr"),
        ({"labeller_momentum": 1.0}, "labeller_momentum"),
        ({"labeller_clip": 0}, "labeller_clip"),
        ({"labeller_clip": 1e-40}, "labeller_clip"),
        ({"labeller_clip": 1e40}, "labeller_clip"),
        ({"view_images": 0}, "view_images"),
        ({"view_width": 0}, "view_width"),
        ({"tries": 0}, "tries"),
        ({"steps": 5}, "steps"),
    ],
)
def test_wrong_settings_are_refused_in_one_line(wrong, field):
    with pytest.raises(SettingError) as refused:
        plan(**wrong)
    assert str(refused.value.field).split(".")[0] == field
    assert refused.value.remedy
    assert "\n" not in str(refused.value)


def test_a_plan_is_written_and_read_and_repriced(tmp_path):
    made = plan()
    made.save(tmp_path / "plan.json")
    assert db.Plan.load(tmp_path / "plan.json") == made
    written = json.loads((tmp_path / "plan.json").read_text())
    for touch, key, value in ((0, "noise_multiplier", 0.5), (1, "noise_multiplier", 0.5), (1, "steps", 3)):
        forged = json.loads(json.dumps(written))
        forged["touches"][touch]["event"][key] = value
        (tmp_path / "forged.json").write_text(json.dumps(forged))
        with pytest.raises(InputError):
            db.Plan.load(tmp_path / "forged.json")


def test_every_kind_of_features_has_two():
    assert plan(second_order=0.5, features=4).settings.second_order_features == 2
    mixed = plan(second_order=0.25, fine_detail=0.5, features=8).settings
    assert (mixed.first_order_features, mixed.second_order_features, mixed.fine_detail_features) == (2, 2, 4)
    with pytest.raises(db.errors.DoublureError, match="fine_detail leave no features of the first order; set one of"):
        plan(second_order=0.5, fine_detail=0.5)
    for name in ("second_order", "fine_detail"):
        with pytest.raises(db.errors.DoublureError, match=f"{name} gets no features of its own; set features higher"):
            plan(**{name: 0.01}, features=16)


def test_estimates_grow_with_what_is_asked():
    own, small = table.method("guided"), plan(labeller_steps=60, labels_compared=False)
    more = [
        {"fit_steps": 6000}, {"features": 32_768}, {"second_order": 0.5}, {"labeller_steps": 6000},
        {"features": 32_768, "fine_detail": 0.75},
        {"view_images": 100_000}, {"batch": 4000},
    ]  # fmt: skip
    for changes in more:
        settings = small.settings.model_copy(update=changes)
        assert own.work(SCHEMA, settings).flops > own.work(SCHEMA, small.settings).flops, changes
    large = db.Schema.parse(TEXT.replace("60000", "6000000"))
    assert own.work(large, small.settings).memory_bytes > 50 * 60_000 * 28 * 28
    assert own.work(SCHEMA, plan(labeller_share=0).settings).flops < own.work(SCHEMA, small.settings).flops
    critic = plan(critic_share=0.2, labeller_steps=60, labels_compared=False).settings
    longer = critic.model_copy(update={"critic_steps": 900})
    works = [own.work(SCHEMA, settings) for settings in (small.settings, critic, longer)]
    assert works[0].flops < works[1].flops < works[2].flops
    assert [work.steps for work in works] == [61, 261, 961]


def test_a_sigma_is_never_left_out(digits):
    with pytest.raises(SettingError) as refused:
        digits.job(sigma=0.0)
    assert refused.value.field == "noise_multiplier"


def test_few_images_a_label_are_warned_of():
    few, many = (db.Schema.parse(TEXT.replace("60000", str(units))) for units in (2_700, 3_300))
    assert any("900 images a label are few" in warning for warning in plan(few).warnings)
    assert not any("images a label are few" in warning for warning in plan(many).warnings)
