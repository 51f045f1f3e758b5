"""``evolution``: what its plan pins, what a source sees, that votes choose, and what is released."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest
import torch

import doublure as db
from doublure.errors import InputError, SettingError
from doublure.guarantee import NO_SHARED_PEOPLE, SHARED_PEOPLE
from doublure.methods.evolution import evolving
from doublure.methods.evolution.facts import CandidateFacts
from doublure.methods.evolution.sources import GeneratedCandidates, PublicDraw, PublicImages
from doublure.methods.statistics.of_kind import overall_noise
from doublure.planning import Plan
from doublure.releasing.generator import publish
from doublure.schema import Schema
from doublure.training.settings import PublicPlace

PRIVATE = """
doublure: 1
kind: images
units: 240
images: {shape: [8, 8, 1], pictures: drawings}
label: {values: [dark, light]}
"""
FEW = {"rounds": 3, "population": 16, "kept": 40, "accountant": "rdp", "epsilon": 30.0, "delta": 1e-4}
FUNCTION = '''
import numpy as np

ASKED = []


def shades(seeds, parents=None, degree=1.0, label=None):
    """Return even grey images: any grey, or one near the parent's."""
    ASKED.append((len(seeds), None if parents is None else parents.shape, degree, label))
    rng = np.random.default_rng(list(seeds))
    count = len(seeds)
    near = None if parents is None else parents[:, 0, 0, 0] + rng.normal(0, 40 * degree, count)
    grey = rng.integers(0, 256, count) if near is None else near
    return np.broadcast_to(grey.clip(0, 255).astype(np.uint8)[:, None, None, None], (len(seeds), 8, 8, 1)).copy()


def wrong(seeds, parents=None, degree=1.0, label=None):
    return np.zeros((len(seeds), 4, 4, 1), np.uint8)


def broken(seeds, parents=None, degree=1.0, label=None):
    raise KeyError("no such brush")
'''


def private(count=240):
    """Return images with a bar: on the left where the label is dark, else on the right."""
    draw = np.random.default_rng(5)
    light = np.arange(count) % 2 == 1
    images = draw.integers(0, 60, (count, 8, 8, 1))
    images[~light, :, :3] += 190
    images[light, :, 5:] += 190
    return {"images": images.astype(np.uint8), "labels": np.where(light, "light", "dark")}


@pytest.fixture
def candidates(tmp_path):
    """Return a file of public images: bars of any width, anywhere, standing or lying."""
    draw, images = np.random.default_rng(6), np.zeros((300, 8, 8, 1), np.uint8)
    for number, image in enumerate(images):
        first, width = draw.integers(0, 8), draw.integers(1, 4)
        (image if number % 2 else image.transpose(1, 0, 2))[:, first : first + width] = draw.integers(120, 256)
    np.savez(tmp_path / "bars.npz", images=images)
    return str(tmp_path / "bars.npz")


@pytest.fixture
def module(tmp_path, monkeypatch):
    (tmp_path / "greys_of_mine.py").write_text(FUNCTION)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "greys_of_mine", raising=False)
    return tmp_path / "greys_of_mine.py"


def planned(candidates, text=PRIVATE, **settings):
    return db.plan(Schema.parse(text), method="evolution", candidates=candidates, **(FEW | settings))


def fitted(plan, folder, data=None):
    book = db.Ledger.create(folder / "l", dataset="bars", epsilon=100.0, delta=1e-2)
    return db.fit(private() if data is None else data, plan, ledger=book, out=folder / "run", seed=2)


# -- the plan ----------------------------------------------------------------------------------------------------------


def test_a_plan_pins_candidates_and_extractor(candidates, letters, tmp_path):
    plan = planned(candidates)
    known = plan.settings.facts
    assert (known.source, known.name) == ("images", "bars.npz")
    plan.save(tmp_path / "plan.json")
    assert Plan.load(tmp_path / "plan.json").to_json() == plan.to_json()
    sentence = plan.guarantee.sentence
    assert known.sha256[:12] in sentence
    assert "extractor scattering" in sentence
    assert SHARED_PEOPLE in plan.guarantee.excluded
    said = letters.PROVENANCE | {"shared_people": "none"}
    assert NO_SHARED_PEOPLE in planned(candidates, provenance=said).guarantee.sentence
    assert json.dumps(candidates)[1:-1] not in json.dumps(plan.settings.published().to_json())


def test_rounds_compose_to_the_whole_budget(candidates):
    for rounds in (1, 12):
        plan = planned(candidates, rounds=rounds, epsilon=2.0)
        scales = {touch.event.scale for touch in plan.touches}
        assert len(plan.touches) == rounds == plan.steps
        assert [*scales] == [pytest.approx(plan.noise_multiplier * rounds**0.5)]
        assert plan.noise_multiplier == pytest.approx(overall_noise((), epsilon=2.0, delta=1e-4), rel=0.02)
        assert 1.99 < plan.guarantee.epsilon <= 2.0


def test_a_candidate_has_votes_of_two_deviations_on_average(candidates):
    text = PRIVATE.replace("units: 240", "units: 4000")
    plan = planned(candidates, text, population=None, epsilon=1.0, delta=1e-5)
    votes = 2_000 / plan.settings.population
    assert votes == pytest.approx(2 * plan.touches[0].event.scale, rel=0.05)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"candidates": ""}, "candidates"),
        ({"candidates": "nowhere"}, "candidates"),
        ({"candidates": "no_such_module:function"}, "candidates"),
        ({"candidates": lambda seeds: seeds}, "candidates"),
        ({"rounds": 0}, "rounds"),
        ({"features": "magic"}, "features"),
        ({"provenance": {"data": "bars"}}, "provenance"),
    ],
)
def test_what_cannot_be_is_refused(candidates, letters, change, named):
    assert named in str(letters.refusal(InputError, lambda: planned(**({"candidates": candidates} | change))))


def test_other_candidates_than_the_plans_cost_nothing(candidates, tmp_path):
    plan = planned(candidates)
    np.savez(candidates, images=np.zeros((300, 8, 8, 1), np.uint8))
    with pytest.raises(SettingError, match="not those of the plan"):
        fitted(plan, tmp_path)
    assert db.Ledger.open(tmp_path / "l").remaining.epsilon == 100.0


# -- sources -----------------------------------------------------------------------------------------------------------


def test_votes_choose_the_candidates_that_are_like_private_images(candidates, tmp_path):
    made = fitted(planned(candidates), tmp_path)
    drawn = made.sample(200, seed=1)
    left, right = (drawn.images[:, :, part].mean(axis=(1, 2, 3)) for part in (slice(3), slice(5, 8)))
    agrees = (left > right) == (drawn.labels == "dark").to_numpy()
    assert agrees.mean() > 0.9
    assert len({image.tobytes() for image in drawn.images}) > 100
    assert db.load(tmp_path / "run").sample(200, seed=1).images.tobytes() == drawn.images.tobytes()


def test_without_labels_all_images_vote_together(candidates, tmp_path):
    plan = planned(candidates, PRIVATE[: PRIVATE.index("label")])
    made = fitted(plan, tmp_path, {"images": private()["images"]})
    assert made.sample(5, seed=1).images.shape == (5, 8, 8, 1)


def test_a_public_generator_is_a_source(letters, tmp_path):
    plan = planned(letters.folder, letters.PRIVATE, epsilon=5.0)
    assert plan.settings.facts.sha256 == letters.facts.generator_sha256
    assert letters.PROVENANCE["people"] in plan.explain()
    assert fitted(plan, tmp_path, letters.private).sample(7, seed=1).images.shape == (7, 8, 8, 1)


def test_a_function_sees_seeds_and_its_own_images_alone(module, tmp_path):
    import greys_of_mine

    plan = planned(greys_of_mine.shades)
    assert (plan.settings.candidates, plan.settings.facts.source) == ("greys_of_mine:shades", "function")
    greys_of_mine.ASKED.clear()
    fitted(plan, tmp_path)
    asked = greys_of_mine.ASKED
    assert {label for *_, label in asked} >= {"dark", "light"}
    assert {parents[1:] for _, parents, *_ in asked if parents is not None} == {(8, 8, 1)}
    assert {round(degree, 2) for _, parents, degree, _ in asked if parents is not None} == {0.67, 0.33, 0.15}
    module.write_text(FUNCTION + "\n# changed\n")
    with pytest.raises(SettingError, match="not those of the plan"):
        db.fit(private(), plan, ledger=db.Ledger.open(tmp_path / "l"), out=tmp_path / "again", again=True)


@pytest.mark.parametrize(("name", "said"), [("wrong", "must return uint8 of 1x8x8x1"), ("broken", "KeyError")])
def test_a_function_that_makes_no_such_images_is_refused_before_anything_is_charged(module, tmp_path, name, said):
    with pytest.raises(SettingError, match=said):
        fitted(planned(f"greys_of_mine:{name}"), tmp_path)
    assert db.Ledger.open(tmp_path / "l").remaining.epsilon == 100.0


def test_load_release_and_verify_import_no_function(module, tmp_path):
    fitted(planned("greys_of_mine:shades"), tmp_path)
    module.write_text("raise SystemExit('imported')")
    sys.modules.pop("greys_of_mine")
    syn = db.load(tmp_path / "run")
    db.release(syn, tmp_path / "bundle", n=40, seed=1)
    db.verify(tmp_path / "bundle")
    assert syn.sample(3, seed=1).images.shape == (3, 8, 8, 1)
    assert "greys_of_mine" not in sys.modules
    card = json.loads((tmp_path / "bundle/card.json").read_text())
    publish(db.load(tmp_path / "run"), tmp_path / "gen")
    assert db.load(tmp_path / "gen").sample(3, seed=1).images.shape == (3, 8, 8, 1)
    assert any("greys_of_mine:shades, SHA-256" in source for source in card["public_sources"])
    assert any("extractor scattering" in source for source in card["public_sources"])


@pytest.mark.parametrize(
    "given",
    [{"facts": None}, {"facts": None, "candidates": "hostile_module:paint"}, {"provenance": "candidates.yaml"}],
)
def test_a_forged_plan_imports_no_function(module, tmp_path, given):
    """A plan without facts of its candidates would have them read: loading a folder would run its author's module."""
    plan = planned("greys_of_mine:shades")
    fitted(plan, tmp_path)
    for name in ("greys_of_mine", "hostile_module"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('imported')")
        sys.modules.pop(name, None)
    forged = json.loads((tmp_path / "run/plan.json").read_text())
    forged["settings"] |= given
    (tmp_path / "run/plan.json").write_text(json.dumps(forged))
    for read in (lambda: db.load(tmp_path / "run"), lambda: Plan.load(tmp_path / "run/plan.json")):
        with pytest.raises(InputError, match=r"of which the plan has no facts|provenance: is no mapping"):
            read()


@pytest.mark.parametrize("private", [".", "own", "own/deeper", "own/../own"])
def test_candidates_among_the_private_images_are_refused(tmp_path, private):
    """They would come out as they are: a path tells that much before anything is charged or opened."""
    images = tmp_path / "own" / "deeper"
    images.mkdir(parents=True)
    for name in "ab":
        np.save(images / f"{name}.npy", np.zeros((8, 8), np.uint8))
    place = PublicPlace("candidates", str(tmp_path / "own"), None)
    with pytest.raises(SettingError, match="private data itself"):
        place.refuse_private(tmp_path / private)
    place.refuse_private({"images": None})
    train = PublicPlace("candidates", str(tmp_path / "own#train"), None)
    train.refuse_private(f"{tmp_path / 'own'}#test")
    with pytest.raises(SettingError, match="private data itself"):
        train.refuse_private(f"{tmp_path / 'own'}#train")
    (tmp_path / "else").mkdir()
    place.refuse_private(tmp_path / "else")


def test_images_come_in_their_natural_size(tmp_path):
    draw = np.random.default_rng(1)
    np.savez(tmp_path / "large.npz", images=draw.integers(0, 256, (40, 64, 64, 3), dtype=np.uint8))
    text = PRIVATE.replace("[8, 8, 1], pictures: drawings", "[64, 64, 3], pictures: scenes").replace("240", "60")
    plan = planned(str(tmp_path / "large.npz"), text, kept=8)
    assert not any("enlarged" in warning for warning in plan.warnings)
    data = {"images": draw.integers(0, 256, (60, 64, 64, 3), dtype=np.uint8), "labels": ["dark", "light"] * 30}
    sharp = fitted(plan, tmp_path, data).sampling_with(sampled_warp=0).sample(4, seed=1).images.astype(float)
    assert np.abs(np.diff(sharp, axis=1)).mean() > 30  # single pixels differ, which enlargement would have lost


# -- parts -------------------------------------------------------------------------------------------------------------


def test_noise_alone_leaves_all_candidates_alike():
    noise = np.random.default_rng(0).normal(0, 10, 4000)
    shares = evolving.candidate_shares(noise, 10.5)
    assert np.ptp(shares) == 0
    assert np.ptp(evolving.candidate_shares(np.array([5.0, -4.0, 3.0, 9.0]), 5.0)) == 0  # none passes two deviations
    some = evolving.candidate_shares(np.where(np.arange(4000) < 10, 500, 0) + noise, 10.0)
    assert some[:10].sum() > 0.75


def test_a_variation_moves_as_far_as_its_degree_says():
    draw = PublicDraw(np.random.default_rng(0), None)
    images = torch.randint(0, 256, (30, 1, 8, 8), dtype=torch.uint8)
    source = PublicImages(images, mirrored=False)
    source.learn(lambda seen: seen.flatten(1), 10)
    first = source.first(30, draw)
    assert torch.equal(source.images(first), images[first[:, 0].astype(int)] / 127.5 - 1)
    assert set(source.varied(first, 0.0, draw)[:, 0]) == set(first[:, 0])
    near, far = (np.abs(source.varied(first, degree, draw)[:, 1:] - first[:, 1:]).mean() for degree in (0.1, 1.0))
    assert near < far / 5
    latents = GeneratedCandidates(torch.nn.Identity(), 6)
    start = latents.first(2000, draw)
    assert latents.varied(start, 1.0, draw).std() == pytest.approx(1.0, abs=0.03)


def test_a_folder_of_pictures_by_class_is_a_source(tmp_path):
    from PIL import Image

    for kind in ("a", "b"):
        (tmp_path / "pictures" / kind).mkdir(parents=True)
        for number in range(3):
            Image.fromarray(np.full((20, 30, 3), 40 * number, np.uint8)).save(
                tmp_path / "pictures" / kind / f"{number}.png"
            )
    before = CandidateFacts.of(str(tmp_path / "pictures"), None)
    made = fitted(planned(str(tmp_path / "pictures")), tmp_path)
    assert made.sample(3, seed=1).images.shape == (3, 8, 8, 1)
    (tmp_path / "pictures/b/2.png").unlink()
    assert CandidateFacts.of(str(tmp_path / "pictures"), None) != before
