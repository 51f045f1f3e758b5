"""``latentgan``: what its plan says, that each teacher learns the latents, and what it releases."""

from __future__ import annotations

import json
import math
import shutil

import numpy as np
import pandas as pd
import pytest
import torch
import yaml

import doublure as db
from doublure import public
from doublure.encode.choice import encoder_for
from doublure.errors import InputError, RunFolderError, SchemaError, SettingError
from doublure.guarantee import NO_SHARED_PEOPLE, SHARED_PEOPLE
from doublure.measures.images.texture import measure_texture
from doublure.methods import registry as table
from doublure.methods.latentgan import moments as latent_moments
from doublure.methods.latentgan import training as latent_training
from doublure.methods.latentgan.moments import (
    LatentMoments,
    factor_covariances,
    find_cells,
    moment_vectors,
    shrink_covariances,
)
from doublure.networks.latent import LatentMixture, ThroughPublic, class_numbers, project_to_ball
from doublure.planning import Plan
from doublure.private.noise import OsKeyedNoise

WIDTH = 6
CLASSES, CELLS = "sum up the latents' moments for each class", "sum up the latents' moments for each cell"
LABELLER = {"labeller_share": 0.5, "labeller_steps": 3, "view_images": 100, "view_width": 10, "tries": 2}


def fitted(letters, plan, tmp_path, data=None):
    book = db.Ledger.create(tmp_path / "l", dataset="even", epsilon=50.0, delta=1e-2)
    return db.fit(letters.private if data is None else data, plan, ledger=book, out=tmp_path / "run", seed=2)


# -- the plan ----------------------------------------------------------------------------------------------------------


def test_a_plan_pins_the_public_generator_and_reads_no_torch(letters, tmp_path):
    plan = letters.plan()
    assert plan.settings.public_facts == letters.facts
    assert (plan.settings.noise_width, plan.settings.inversion_restarts) == (3, 1)
    assert letters.plan(public=letters.folder).to_json() == plan.to_json()  # a path will do
    assert letters.facts.generator_sha256 in plan.settings.public_sources[0]
    assert letters.PROVENANCE["people"] in plan.explain()
    plan.save(tmp_path / "plan.json")
    assert Plan.load(tmp_path / "plan.json").to_json() == plan.to_json()
    assert any("public generator" in said for said in plan.guarantee.assumptions)
    assert any("in both" in said for said in plan.guarantee.excluded)  # shared people are possible
    assert any("people of the public data" in warning for warning in plan.warnings)


@pytest.mark.parametrize(
    ("teacher", "more", "purposes", "rate"),
    [
        ("critic", {}, ["train the critic of latents"], 64 / 900),
        ("mixture", {"splits": 0}, [CELLS], 1.0),
        ("mixture", {"splits": 2}, [CLASSES, CELLS], 1.0),
        ("critic", LABELLER, ["train the critic of latents", "train the labeller"], None),
        ("mixture", {"splits": 0} | LABELLER, [CELLS, "train the labeller"], 1.0),
    ],
)  # fmt: skip
def test_accesses_are_those_of_the_teacher(letters, teacher, more, purposes, rate):
    plan = letters.plan(teacher=teacher, **more)
    assert [access.purpose for access in plan.touches] == purposes
    assert sum(access.event.steps for access in plan.touches) == plan.steps
    assert plan.sample_rate == (pytest.approx(rate) if rate else rate)
    assert all(access.epsilon < 5 for access in plan.touches) or len(purposes) == 1


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"public": ""}, "public"),
        ({"public": "nowhere"}, "public"),
        ({"noise_width": 6}, "noise_width"),
        ({"teacher": "mixture", "splits": 0, "noise_width": 3}, "noise_width"),
        ({"inversion_steps": -1}, "inversion_steps"),
        ({"labeller_share": 0.001}, "labeller_share"),
        ({"teacher": "anybody"}, "teacher"),
    ],
)
def test_what_cannot_be_is_refused(letters, change, named):
    assert named in str(letters.refusal(SettingError, lambda: letters.plan(**change)))


@pytest.mark.parametrize(("teacher", "width"), [("mixture", 4097), ("critic", 2048)])
def test_a_plan_through_the_widest_public_generator(letters, tmp_path, monkeypatch, teacher, width):
    monkeypatch.setattr("doublure.planning.machine.memory_bytes", lambda: None)  # a mixture takes 430 GB
    shutil.copytree(letters.folder, tmp_path / "public")
    facts = json.loads((tmp_path / "public/public.json").read_text())
    facts["latent"] = facts["settings"]["noise_width"] = 4096
    (tmp_path / "public/public.json").write_text(json.dumps(facts))
    plan = letters.plan(public=str(tmp_path / "public"), teacher=teacher)
    assert plan.settings.noise_width == width
    plan.save(tmp_path / "plan.json")
    assert Plan.load(tmp_path / "plan.json").to_json() == plan.to_json()


def test_a_generator_without_encoder_needs_steps(letters, tmp_path):
    letters.made(tmp_path / "gan", objective="wgan-gp", proposer=False)
    plan = letters.plan(public=str(tmp_path / "gan"), inversion_steps=None)
    assert (plan.settings.inversion_steps, plan.settings.inversion_restarts) == (200, 2)
    letters.refusal(SettingError, lambda: letters.plan(public=str(tmp_path / "gan"), inversion_steps=0))


def test_detail_follows_from_the_public_generator(letters, tmp_path):
    letters.made(tmp_path / "gan", objective="wgan-gp")
    without = letters.plan(public=str(tmp_path / "gan")).settings
    assert (letters.plan().settings.detail, without.detail) == (1.2, 0)
    assert letters.plan().settings.sample_noise == 3 + 1 + 64
    assert without.sample_noise == letters.plan(detail=0).settings.sample_noise == 3
    assert letters.plan(detail=0.5, **LABELLER).settings.sample_noise == 2 * (3 + 1 + 64)
    error = letters.refusal(SettingError, lambda: letters.plan(public=str(tmp_path / "gan"), detail=1))
    assert error.field == "detail"


def test_images_get_the_public_detail(letters, tmp_path):
    found = {}
    for strength in (0.0, 2.0):
        (folder := tmp_path / str(strength)).mkdir()
        synthesizer = fitted(letters, letters.plan(teacher="mixture", splits=0, detail=strength, epsilon=50.0), folder)
        found[strength] = synthesizer.sample(200, given={"label": 4}, seed=1).images.astype(float) / 127.5 - 1
    changes = [np.diff(images, axis=1).std() for images in found.values()]
    assert changes[1] > 1.2 * changes[0]


def test_labels_that_nothing_would_make_are_refused(letters):
    text = letters.PRIVATE.replace("8]}", "8], roles: [target]}")
    letters.refusal(SchemaError, lambda: letters.plan(text))
    bare = letters.PRIVATE.partition("label:")[0]
    assert letters.plan(bare).settings.labeller_share == 0
    letters.refusal(SchemaError, lambda: letters.plan(bare, **LABELLER))


def test_a_labeller_checks_images_where_there_is_a_label(letters):
    """Half of the budget, unless it was asked for otherwise; tables and unlabelled images have none."""
    checked = letters.plan(teacher="mixture", splits=0, labeller_share=None, labeller_steps=3)
    assert (checked.settings.labeller_share, checked.settings.label_margin) == (0.5, 4)
    assert [access.purpose for access in checked.touches] == [CELLS, "train the labeller"]
    assert checked.touches[0].event.noise_multiplier == pytest.approx(checked.noise_multiplier * math.sqrt(2))
    assert letters.plan(letters.PRIVATE.partition("label:")[0], labeller_share=None).settings.labeller_share == 0


def test_memory_is_counted_by_what_is_summed_up(letters):
    method = table.method("latentgan")

    def needed(latent, text=letters.PRIVATE, **settings):
        own = letters.plan(**settings).settings
        wide = letters.facts.model_copy(update={"latent": latent})
        return method.work(db.Schema.parse(text), own.model_copy(update={"public_facts": wide})).memory_bytes

    assert needed(1024, teacher="mixture") > 2e10  # two thousand latents' products at a time
    assert needed(1024) < 1e8
    assert needed(6, letters.PRIVATE.replace("units: 900", "units: 900000")) - needed(6) > 3 * 64 * 899_100


def test_fit_refuses_another_public_generator_before_anything_is_charged(letters, tmp_path):
    folder = tmp_path / "public"
    shutil.copytree(letters.folder, folder)
    plan = letters.plan(public=str(folder))
    letters.made(tmp_path / "other", objective="autoencoder", steps=2)
    shutil.copy(tmp_path / "other/generator.safetensors", folder)
    book = db.Ledger.create(tmp_path / "l", dataset="even", epsilon=50.0, delta=1e-2)
    act = lambda: db.fit(letters.private, plan, ledger=book, out=tmp_path / "run")  # noqa: E731
    assert "plan" in str(letters.refusal(RunFolderError, act))
    shutil.rmtree(folder)
    gone = letters.refusal(RunFolderError, act)
    assert (gone.field, f"at {folder}," in gone.remedy) == ("public/generator.safetensors", True)
    assert [entry.kind for entry in book.entries if entry.kind == "reserve"] == []
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("units", ["units: 900", "units: {learn: 0.1, magnitude: 900}"])
def test_weights_that_do_not_fit_their_facts_are_refused_before_anything_is_charged(letters, tmp_path, units):
    """Facts that are bought would be paid for, and their noise drawn, before the weights are looked at."""
    folder = tmp_path / "public"
    shutil.copytree(letters.folder, folder)
    facts = json.loads((folder / "public.json").read_text())
    facts["settings"]["channels"] = [10, 8]
    (folder / "public.json").write_text(json.dumps(facts))
    plan = letters.plan(letters.PRIVATE.replace("units: 900", units), public=str(folder))
    book = db.Ledger.create(tmp_path / "l", dataset="even", epsilon=50.0, delta=1e-2)
    with pytest.raises(RunFolderError, match="has weights of other networks than it says"):
        db.fit(letters.private, plan, ledger=book, out=tmp_path / "run")
    assert [entry.kind for entry in book.entries if entry.kind == "reserve"] == []
    assert not (tmp_path / "run").exists()


def test_weights_that_were_changed_since_they_were_looked_at_are_not_used(letters, tmp_path):
    folder = tmp_path / "public"
    shutil.copytree(letters.folder, folder)
    plan = letters.plan(public=str(folder))
    table.method("latentgan").ready(plan.schema, plan.settings)
    letters.made(tmp_path / "other", objective="autoencoder", steps=2)
    shutil.copy(tmp_path / "other/generator.safetensors", folder)
    encoder = encoder_for(db.Schema.parse(letters.PRIVATE).resolve({}), plan.settings.encoding)
    with pytest.raises(RunFolderError, match="is not the public generator of the plan"):
        latent_training.public_networks(encoder, plan.settings)


def test_shares_that_are_bought_and_constraints_on_a_condition_stand_in_nobodys_way(letters, tmp_path):
    """What a fit is asked before anything is charged is the same as what it needs afterwards."""
    bought = letters.plan(letters.PRIVATE.replace("6, 8]", "6, 8], shares: {learn: 0.1}"))
    table.method("latentgan").ready(bought.schema, bought.settings)
    text = """
doublure: 1
kind: table
units: 400
columns:
  edu: {type: category, values: [no, some, much], missing: false, roles: [condition]}
  years: {type: ordinal, values: [0, 8, 12], missing: false}
  age: {type: integer, bounds: [0, 100], missing: false}
constraints: [{equal: [edu, years]}]
"""
    rng = np.random.default_rng(1)
    of = rng.integers(3, size=200)
    frame = pd.DataFrame({"edu": np.array(["no", "some", "much"])[of], "years": np.array([0, 8, 12])[of],
                          "age": rng.integers(0, 100, 200)})  # fmt: skip
    public.fit(frame, db.Schema.parse(text), provenance=letters.PROVENANCE, out=tmp_path / "p", steps=3, seed=1,
               noise_width=4, width=8, depth=1)  # fmt: skip
    own = {"public": str(tmp_path / "p"), "steps": 2}
    plan = db.plan(db.Schema.parse(text), method="latentgan", epsilon=5.0, delta=1e-5, accountant="rdp", **own)
    fitted(letters, plan, tmp_path, frame)


@pytest.mark.parametrize("name", ["2026", "2026-11-25"])
def test_a_folder_may_be_named_as_a_number_is(letters, tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(letters.folder, tmp_path / name)
    assert letters.plan(public=yaml.safe_load(name)).settings.public == name


def test_a_provenance_of_ones_own_words_is_refused_before_anything_is_charged(letters, tmp_path):
    words = letters.facts.provenance.model_copy(update={"people": "nobody at all", "shared_people": "none"})
    plan = letters.plan(public_facts=letters.facts.model_copy(update={"provenance": words}))
    book = db.Ledger.create(tmp_path / "l", dataset="even", epsilon=50.0, delta=1e-2)
    with pytest.raises(RunFolderError, match="says something else of the public generator than the plan does"):
        db.fit(letters.private, plan, ledger=book, out=tmp_path / "run")
    assert [entry.kind for entry in book.entries if entry.kind == "reserve"] == []


def test_a_claim_names_that_nobody_of_the_public_data_is_private_if_it_rests_on_that(letters, tmp_path):
    for shared, named in (("none", True), ("possible", False)):
        folder = tmp_path / shared
        schema = db.Schema.parse(letters.PUBLIC)
        said = letters.PROVENANCE | {"shared_people": shared}
        public.fit(letters.public, schema, provenance=said, out=folder, seed=1, **letters.NETWORKS | {"steps": 2})
        sentence = letters.plan(public=str(folder)).guarantee.sentence
        assert (NO_SHARED_PEOPLE in sentence) == named
        assert (SHARED_PEOPLE in sentence) != named


def test_a_plan_whose_public_facts_were_edited_is_refused(letters):
    made = letters.plan().to_json()
    made["settings"]["public_facts"]["generator_sha256"] = "0" * 64
    letters.refusal(InputError, lambda: Plan.from_json(made))  # the assumptions name the weights


# -- the whole way -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "more",
    [
        {"teacher": "critic"},
        {"teacher": "mixture", "splits": 1},
        {"teacher": "mixture", "splits": 0} | LABELLER,
    ],
)
def test_the_run_folder_holds_both_networks(letters, tmp_path, more):
    folder = tmp_path / "public"
    shutil.copytree(letters.folder, folder)
    fitted(letters, letters.plan(public=str(folder), **more), tmp_path)
    shutil.rmtree(folder)
    syn = db.load(tmp_path / "run")
    made = syn.sample(20, given={"label": 4}, seed=1)
    assert made.images.shape == (20, 8, 8, 1)
    assert set(made.labels) == {4}
    assert np.array_equal(made.images, syn.sample(20, given={"label": 4}, seed=1).images)
    assert not list((tmp_path / "run/internal").glob("work-*"))  # latents go once they were trained on
    card = db.release(syn, tmp_path / "bundle", n=10).card
    assert card["public_sources"] == [letters.facts.source]
    assert (card["guarantee"]["kind"], card["guarantee"]["epsilon"]) == ("dp", 5.0)
    page = (tmp_path / "bundle/card.html").read_text()
    assert letters.PROVENANCE["people"] in page


def test_how_sure_the_labeller_has_to_be_can_be_changed_after_the_fit(letters, tmp_path):
    syn = fitted(letters, letters.plan(teacher="mixture", splits=0, **LABELLER), tmp_path)
    usual = syn.sample(200, seed=1)
    own, never = syn.sampling_with(label_margin=0), syn.sampling_with(label_margin=100)
    drawn = own.sample(200, seed=1)
    assert own.guarantee == syn.guarantee
    assert drawn.labels.tolist() == usual.labels.tolist()  # what is asked for stays, whatever is seen
    changed = (drawn.images != never.sample(200, seed=1).images).any(axis=(1, 2, 3))
    assert changed.any()  # a labeller of three steps is never sure
    own.save(tmp_path / "own")
    assert np.array_equal(db.load(tmp_path / "own").sample(200, seed=1).images, drawn.images)
    (tmp_path / "alone").mkdir()
    alone = fitted(letters, letters.plan(teacher="mixture", splits=0, labeller_share=0), tmp_path / "alone")
    assert "label_margin" in str(letters.refusal(SettingError, lambda: alone.sampling_with(label_margin=1)))


def test_detail_can_be_changed_after_the_fit(letters, tmp_path):
    """What the fit had stays in the plan, so that all networks are there; images differ by their detail alone."""
    syn = fitted(letters, letters.plan(teacher="mixture", splits=0, detail=1.0, labeller_share=0), tmp_path)
    usual, none, much = (
        one.sample(80, seed=1) for one in (syn, syn.sampling_with(detail=0), syn.sampling_with(detail=4))
    )
    assert syn.plan.settings.strength == 1
    assert syn.sampling_with(detail=0).plan.settings.strength == 0
    assert none.labels.tolist() == usual.labels.tolist()
    speckles = [measure_texture(images)["block_spread"] for images in (none, usual, much)]
    assert speckles[0] < speckles[1] < speckles[2]
    again = syn.sampling_with(detail=0).sampling_with(detail=1)
    assert np.array_equal(again.sample(80, seed=1).images, usual.images)
    syn.sampling_with(detail=0).save(tmp_path / "none")
    assert np.array_equal(db.load(tmp_path / "none").sample(80, seed=1).images, none.images)
    (tmp_path / "alone").mkdir()
    alone = fitted(letters, letters.plan(teacher="mixture", splits=0, detail=0), tmp_path / "alone")
    assert "detail" in str(letters.refusal(SettingError, lambda: alone.sampling_with(detail=1)))


def test_images_are_no_more_speckled_than_the_public_set(letters, tmp_path):
    syn = fitted(letters, letters.plan(teacher="mixture", splits=0, detail=4.0, labeller_share=0), tmp_path)
    public = float(syn.generator.detail.speckle) / 2  # networks draw from -1 to 1
    assert public > 0
    assert float(syn.generator.held) < 1
    assert measure_texture(syn.sample(400, seed=1))["block_spread"] == pytest.approx(public, rel=0.08)


def test_a_table_whose_public_part_has_the_same_columns_but_no_condition(letters, tmp_path):
    text = """
doublure: 1
kind: table
units: 400
columns:
  age: {type: integer, bounds: [0, 100], missing: false}
  job: {type: category, values: [cook, nurse], missing: false}
  place: {type: category, values: [hill, coast], missing: false, roles: [condition], shares: {hill: 0.7, coast: 0.3}}
"""
    draw = np.random.default_rng(1)

    def rows(size):
        place = draw.choice(["hill", "coast"], size, p=[0.7, 0.3])
        return pd.DataFrame({
            "age": np.where(place == "hill", draw.integers(20, 40, size), draw.integers(60, 80, size)),
            "job": draw.choice(["cook", "nurse"], size), "place": place,
        })  # fmt: skip

    provenance = {"data": "made up", "people": "nobody", "licence": "none"}
    public.fit(
        rows(600), db.Schema.parse(text.partition("  place")[0]), provenance=provenance, out=tmp_path / "public",
        seed=1, objective="autoencoder", noise_width=4, steps=300, width=32, bins=8, critic_width=32,
        autoencoder_lr=5e-3,
    )  # fmt: skip
    plan = db.plan(
        db.Schema.parse(text), method="latentgan", epsilon=8.0, delta=1e-4, accountant="rdp", teacher="mixture",
        public=str(tmp_path / "public"), splits=0,
    )  # fmt: skip
    assert plan.settings.bins == 8
    own = {"method": "latentgan", "epsilon": 8.0, "delta": 1e-4, "public": str(tmp_path / "public")}
    assert "in the public generator" in str(
        letters.refusal(SettingError, lambda: db.plan(db.Schema.parse(text), bins=9, **own))
    )
    book = db.Ledger.create(tmp_path / "l", dataset="rows", epsilon=50.0, delta=1e-2)
    made = db.fit(rows(400), plan, ledger=book, out=tmp_path / "run", seed=2).sample(300, seed=3)
    ages = made.groupby("place", observed=True)["age"].mean()
    assert ages["coast"] - ages["hill"] > 15  # 40 apart in truth


# -- the mixture -------------------------------------------------------------------------------------------------------


def gaussians(size=20_000):
    """Return latents of two classes, the first in two heaps, and the classes."""
    draw = torch.Generator().manual_seed(1)
    classes = torch.arange(size) % 2
    latents = 0.3 * torch.randn(size, WIDTH, generator=draw)
    heap = torch.where(torch.rand(size, generator=draw) < 0.5, 1.0, -1.0)
    latents[:, 0] += torch.where(classes == 0, heap, 0.0)
    latents[:, 1] += torch.where(classes == 1, 1.0, 0.0)
    return project_to_ball(latents, math.sqrt(WIDTH)), classes


def sums(vectors, of, size, noise=0.0):
    found = torch.zeros(size, vectors.shape[1]).index_add_(0, of, vectors)
    return found + noise * torch.randn(found.shape, generator=torch.Generator().manual_seed(2))


def test_no_moment_vector_is_longer_than_one():
    latents = torch.randn(200, WIDTH, generator=torch.Generator().manual_seed(4))
    on_the_edge = project_to_ball(100 * latents, math.sqrt(WIDTH))
    lengths = moment_vectors(torch.cat([project_to_ball(latents, math.sqrt(WIDTH)), on_the_edge])).norm(dim=1)
    assert lengths.max() <= 1 + 1e-5
    assert lengths.max() > 0.99


def test_moments_and_cells_are_those_of_the_classes():
    latents, classes = gaussians()
    found = LatentMoments.of(sums(moment_vectors(latents), classes, 2), 0.0)
    assert found.counts.tolist() == pytest.approx([10_000, 10_000], rel=1e-3)
    for kind in range(2):
        own = latents[classes == kind]
        assert torch.allclose(found.means[kind], own.mean(0), atol=1e-3)
        assert torch.allclose(found.covariances[kind], own.T.cov(correction=0), atol=1e-3)
    directions = found.directions[:, :, :1]
    assert directions[0, 0, 0].abs() > 0.99  # along the two heaps
    cell = find_cells(latents, classes, found.means, directions)
    assert set(cell.tolist()) == {0, 1}
    heaps = torch.stack([latents[(classes == 0) & (cell == side), 0].mean() for side in range(2)])
    assert heaps.abs().min() > 0.8


def test_covariances_are_denoised_and_never_made_worse():
    latents, classes = gaussians()
    vectors = moment_vectors(latents)
    truth = LatentMoments.of(sums(vectors, classes, 2), 0.0).covariances
    of = torch.arange(2)
    noisy = LatentMoments.of(sums(vectors, classes, 2, 40.0), 40.0)
    settled = shrink_covariances(noisy, 2, of)
    assert (settled - truth).square().sum() < 0.7 * (noisy.covariances - truth).square().sum()
    exact = LatentMoments.of(sums(vectors, classes, 2), 1e-6)
    assert torch.allclose(shrink_covariances(exact, 2, of), truth, atol=1e-4)
    factors = factor_covariances(settled)
    assert torch.isfinite(factors).all()
    assert (torch.linalg.eigvalsh(factors @ factors.transpose(1, 2)) > 0).all()


def test_a_mixture_draws_from_its_components():
    mixture = LatentMixture([2, 3], components=2, width=2)
    mixture.weights[5] = torch.tensor([0.25, 0.75])
    mixture.means[10], mixture.means[11] = torch.tensor([5.0, 0.0]), torch.tensor([-5.0, 0.0])
    condition = torch.tensor([0.0, 1.0, 0.0, 0.0, 1.0]).repeat(4000, 1)
    made = mixture(torch.randn(4000, 3, generator=torch.Generator().manual_seed(1)), condition)
    assert float((made[:, 0] > 0).float().mean()) == pytest.approx(0.25, abs=0.03)
    assert made[:, 1].std() == pytest.approx(1.0, abs=0.05)
    assert class_numbers(condition[:1], [2, 3], 1).tolist() == [5]
    assert class_numbers(None, [], 3).tolist() == [0, 0, 0]


def test_how_often_a_class_is_cut_follows_from_public_figures(letters):
    settings = letters.plan(teacher="mixture", splits=3).settings
    found = [latent_moments.allowed_splits(settings, records, 1.0) for records in (1e2, 1e3, 3e3, 1e5)]
    assert found == sorted(found)
    assert (found[0], found[-1]) == (0, 3)
    assert latent_moments.allowed_splits(settings, 1e5, 1e4) == 0


@pytest.mark.parametrize("splits", [0, 1])
def test_moments_are_believed_as_far_as_the_noise_of_several_records_allows(letters, tmp_path, monkeypatch, splits):
    added, believed, asked, whole, read = [], [], [], OsKeyedNoise.whole, LatentMoments.of

    def watched(source, size, std, unit):
        added.append(std)
        return whole(source, size, std, unit)

    def reading(total, noise):
        believed.append(noise)
        return read(total, noise)

    monkeypatch.setattr(OsKeyedNoise, "whole", watched)
    monkeypatch.setattr(LatentMoments, "of", reading)

    def cut(settings, records, noise):
        asked.append(noise)
        return splits

    monkeypatch.setattr(latent_moments, "allowed_splits", cut)
    text = letters.PRIVATE + "unit: {name: writer, id: writer, max_records: 3}\n"
    plan = letters.plan(text, teacher="mixture", splits=1)
    writers = letters.private | {"writer": np.arange(len(letters.private["labels"])) // 3}
    fitted(letters, plan, tmp_path, writers)
    multipliers = [access.event.noise_multiplier for access in plan.touches]
    first, second = added
    both = (first**-2 + second**-2) ** -0.5  # of a second look that saw the same again
    assert believed == pytest.approx([first, second if splits else both])
    assert asked == pytest.approx([second])
    assert added == pytest.approx([3 * multiplier for multiplier in multipliers])


# -- small parts -------------------------------------------------------------------------------------------------------


def test_latents_are_kept_within_the_ball_and_finite():
    class Far(torch.nn.Module):
        def forward(self, noise, condition=None):
            return torch.stack([1e9 * noise[0], 0.1 * noise[1], noise[2] * torch.nan])

    seen = ThroughPublic(Far(), torch.nn.Identity(), width=4)(torch.ones(3, 4))
    assert seen.norm(dim=1).tolist() == pytest.approx([2.0, 0.2, 0.0])
