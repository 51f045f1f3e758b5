"""``noisecritic``: it learns, its noise is nobody's to repeat, and what it will be judged by is fixed beforehand."""

from __future__ import annotations

import re

import pytest
import torch

import doublure as db
from doublure.errors import DoublureError, SchemaError, SettingError
from doublure.measures import expected_loss
from doublure.methods.noisecritic.method import METHOD
from doublure.methods.noisecritic.settings import ImageNoisecriticSettings, NoisecriticSettings
from doublure.networks.noise_layer import NoisyCritic
from doublure.schema import Schema
from doublure.training.architectures import critic_of

IMAGES = "doublure: 1\nkind: images\nunits: 60000\nimages: {shape: [28, 28, 1]}\nlabel: {values: [0, 1, 2]}\n"
UNLABELLED = IMAGES.partition("label")[0]
VOTES = {"labels": "votes", "label_epsilon": 1.0, "label_delta": 1e-6}
TINY_IMAGES = {
    "steps": 8, "lot_size": 20, "generator_batch": 8, "critic_channels": [4, 6], "channels": [6, 4], "features": 6,
    "noise_width": 4,
}  # fmt: skip


def weights(generator):
    return torch.cat([value.reshape(-1) for value in generator.state_dict().values()])


def test_it_moves_towards_the_data(world):
    job = world.job("noisecritic", steps=120, n_critic=1, generator_lr=5e-3, critic_lr=5e-3, features=16)
    before = world.distance(METHOD.build(job.encoder, job.settings, seed=1), job)
    assert world.distance(METHOD.train(job), job) < before / 2


def test_images_come_out(digits):
    job = digits.noisy_job(**TINY_IMAGES)
    generator = METHOD.train(job)
    made = generator(torch.zeros(3, 4), torch.eye(10)[:3])
    assert made.shape == (3, 1, 8, 8)
    assert torch.isfinite(made).all()
    assert isinstance(critic_of(job.settings, job.encoder, torch.Generator()), NoisyCritic)


def test_a_seed_repeats_the_start_and_never_the_noise(world):
    job = world.job("noisecritic")
    first, again = (METHOD.build(job.encoder, job.settings, seed=1) for _ in range(2))
    assert torch.equal(weights(first), weights(again))
    one, two = (weights(METHOD.train(world.job("noisecritic", seed=1, steps=30))) for _ in range(2))
    assert not torch.equal(one, two)


def test_the_papers_settings_are_the_defaults():
    own = METHOD.resolve_defaults(Schema.parse(IMAGES), ImageNoisecriticSettings())
    assert (own.loss, own.penalty, own.n_critic, own.lot_size, own.betas) == ("wgan-gp", 10.0, 5, 64, (0.0, 0.9))
    assert (own.critic_lr, own.generator_lr, own.features, own.feature_clip, own.feature_noise) == (
        1e-4,
        1e-4,
        64,
        1,
        1.5,
    )
    assert (own.activation, own.normalisation) == ("selu", "none")
    assert NoisecriticSettings().penalty == 10.0


def test_what_it_is_judged_by_is_in_the_plan():
    plan = db.plan(Schema.parse(IMAGES), method="noisecritic")
    assert (plan.settings.estimate_pairs, plan.settings.estimate_features) == (1000, "student")
    assert METHOD.estimation(plan.settings).artificial == expected_loss.EstimatorConfig().artificial
    assert db.plan(Schema.parse(UNLABELLED), method="noisecritic").settings.estimate_features == "pixels"
    few = db.plan(Schema.parse(IMAGES.replace("60000", "90")), method="noisecritic")
    assert few.settings.estimate_pairs == 45
    with pytest.raises(SettingError, match=r"^estimate_pairs: are more than half") as caught:
        db.plan(Schema.parse(IMAGES), method="noisecritic", estimate_pairs=30_001)
    assert "at most 30000" in caught.value.remedy
    with pytest.raises(SettingError, match=r"^estimate_features"):
        db.plan(Schema.parse(UNLABELLED), method="noisecritic", estimate_features="student")


@pytest.mark.parametrize("budget", [{"epsilon": 1.0}, {"delta": 1e-6}, {"epsilon": 1.0, "delta": 1e-6}])
def test_it_takes_no_budget(budget):
    with pytest.raises(SettingError, match="gives no guarantee, so it takes none"):
        db.plan(Schema.parse(IMAGES), method="noisecritic", **budget)


@pytest.mark.parametrize(("epsilon", "said"), [(10.0, ""), (12.0, "by a factor of 162,755"), (30.0, "hardly anybody")])
def test_a_large_price_of_labels_is_said(epsilon, said):
    own = {"labels": "votes", "label_epsilon": epsilon, "label_delta": 1e-6}
    warnings = db.plan(Schema.parse(IMAGES), method="noisecritic", **own).warnings
    more = [warning for warning in warnings if "label_epsilon" in warning]
    assert len(more) == (1 if said else 0)
    assert all(f"label_epsilon {epsilon:g} " in warning and said in warning for warning in more)


def test_a_plan_claims_an_estimate_that_is_still_to_be_made(tmp_path):
    plan = db.plan(Schema.parse(IMAGES), method="noisecritic")
    assert (plan.guarantee.kind, plan.epsilon, plan.delta, plan.guarantee.mu) == ("empirical", None, None, None)
    assert "not estimated" in plan.guarantee.sentence
    assert re.search("train the critic +not protected", plan.explain())
    assert any("protects no gradient" in warning for warning in plan.warnings)
    plan.save(tmp_path / "plan.json")
    assert db.Plan.load(tmp_path / "plan.json") == plan


def test_votes_are_priced_for_labels_alone(tmp_path):
    plan = db.plan(Schema.parse(IMAGES), method="noisecritic", **VOTES)
    votes, training = plan.touches
    assert 0.99 < votes.epsilon <= 1.0
    assert votes.delta == 1e-6
    assert "for the labels alone, images held fixed" in votes.purpose
    assert (training.event, training.epsilon) == (None, None)
    assert (plan.guarantee.kind, plan.epsilon, plan.guarantee.epsilon) == ("empirical", None, None)
    assert plan.steps == plan.settings.steps + 1
    assert plan.settings.label_groups == 600
    plan.save(tmp_path / "plan.json")
    assert db.Plan.load(tmp_path / "plan.json") == plan


def test_a_plan_words_votes_as_votes_and_says_when_noise_drowns_them():
    """Of 100 that vote in a group, noise of more than 25 makes another label win often."""
    for epsilon, drowned in ((2.0, False), (0.05, True)):
        plan = db.plan(Schema.parse(IMAGES), method="noisecritic", **VOTES | {"label_epsilon": epsilon})
        assert any("100 vote in a group: labels will often be wrong" in said for said in plan.warnings) == drowned
        assert "in each count of votes" in plan.explain()
        assert "tables" not in plan.explain()


@pytest.mark.parametrize("missing", ["labels", "label_epsilon", "label_delta"])
def test_votes_and_their_price_go_together(missing):
    with pytest.raises(SettingError, match="go together"):
        db.plan(Schema.parse(IMAGES), method="noisecritic", **{key: VOTES[key] for key in VOTES if key != missing})


def test_groups_are_for_votes():
    with pytest.raises(SettingError, match="label_groups goes with labels=votes"):
        db.plan(Schema.parse(IMAGES), method="noisecritic", label_groups=5)


@pytest.mark.parametrize(("groups", "lost"), [(2, True), (3, False)])
def test_fewer_groups_than_labels_are_said_to_lose_some(groups, lost):
    plan = db.plan(Schema.parse(IMAGES), method="noisecritic", **VOTES, label_groups=groups)
    said = f"{groups} groups vote, one label each, and there are 3: some will be lost"
    assert any(said in warning for warning in plan.warnings) == lost


def test_a_chance_too_small_to_be_priced_is_named_as_the_labels():
    for small in ({"label_delta": 1e-300}, {"label_epsilon": 1e-9}):
        with pytest.raises(SettingError) as refused:
            db.plan(Schema.parse(IMAGES), method="noisecritic", **(VOTES | small))
        assert (refused.value.field, refused.value.remedy) == (*small, "give a larger one")


def test_a_chance_of_one_in_the_number_of_units_is_refused_for_labels_too():
    with pytest.raises(SettingError, match="one unit's record outright") as refused:
        db.plan(Schema.parse(IMAGES), method="noisecritic", **(VOTES | {"label_delta": 0.01}))
    assert refused.value.field == "label_delta"


@pytest.mark.parametrize(
    ("text", "field"),
    [
        (UNLABELLED, "label"),
        (IMAGES.replace("units", "unit: {name: person, id: who, max_records: 3}\nunits"), "unit.max_records"),
        (IMAGES.replace("units", "unit: {name: person, id: who, max_records: 1}\nunits"), "unit.id"),
        (IMAGES.replace("[0, 1, 2]", "[0, 1, 2], shares: {learn: 0.1}"), "label.shares"),
    ],
)
def test_labels_are_touched_by_the_vote_alone(text, field):
    with pytest.raises(SchemaError) as caught:
        db.plan(Schema.parse(text), method="noisecritic", **VOTES)
    assert caught.value.field == field
    assert caught.value.remedy


def test_a_run_on_another_kind_is_refused():
    with pytest.raises(DoublureError):
        db.plan(Schema.parse(IMAGES), method="noisecritic", numerics="bins")
