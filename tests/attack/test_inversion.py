"""A classifier trained on real pictures gives them back; an untrained one does not. The private one is private."""

from __future__ import annotations

import copy

import numpy as np
import pandas as pd
import pytest
import torch
from torch.nn import functional
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from doublure.attack import inversion
from doublure.attack import registry as table
from doublure.attack import target_models as victims
from doublure.attack.attack_data import make_attack_data
from doublure.data.images import Images
from doublure.private import accounting
from doublure.private.noise import OsKeyedNoise, ScaledNoise
from doublure.schema import Schema

CLASSES, SIDE = 6, 8
SCHEMA = f"""
doublure: 1
kind: images
units: 60
images: {{shape: [{SIDE}, {SIDE}, 1]}}
label: {{values: [a, b, c, d, e, f]}}
"""


def pictures(n: int, seed: int) -> Images:
    """Six faces: a smooth pattern each, under noise."""
    patterns = np.random.default_rng(7).random((CLASSES, 4, 4)).repeat(2, axis=1).repeat(2, axis=2)
    rng = np.random.default_rng(seed)
    codes = np.arange(n) % CLASSES
    pixels = np.clip(40 + 170 * patterns[codes] + rng.normal(0, 15, (n, SIDE, SIDE)), 0, 255)
    labels = pd.Series(pd.Categorical(np.array(list("abcdef"))[codes], categories=list("abcdef")))
    return Images(images=pixels.astype(np.uint8)[..., None], labels=labels)


@pytest.fixture(scope="module")
def world(no_claim):
    schema = Schema.parse(SCHEMA).resolve({})
    sides = [(pictures(n, seed), np.arange(n)) for n, seed in ((60, 1), (120, 2))]
    return make_attack_data(schema, no_claim, *sides, lambda n, seed: pictures(n, 3))


@pytest.fixture(scope="module")
def found(world):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(inversion, "HIDDEN", (64, 32))
        patch.setattr(victims, "EPOCHS", 20)
        patch.setattr(inversion, "detectors", dict)
        return table.run(world, ["inversion"])[0]


def test_students_give_back_what_they_learned(found):
    rates = {rate.name.split("classifier ")[1]: rate.value for rate in found.rates}
    assert rates["trained on real images"] > 0.8
    assert found.value == rates["trained on synthetic images"]
    assert rates["not trained (baseline)"] < 0.7
    assert found.baseline == rates["not trained (baseline)"]


def test_classifiers_of_real_images_train_on_all_that_the_fit_saw(no_claim, monkeypatch):
    """Targets are as few as the holdout has; a classifier that saw no more would give back less than a real one."""
    schema, learned = Schema.parse(SCHEMA).resolve({}), []
    sides = [(pictures(n, seed), np.arange(n)) for n, seed in ((90, 1), (48, 2))]
    few = make_attack_data(schema, no_claim, *sides, lambda n, seed: pictures(n, 3))
    monkeypatch.setattr(inversion, "HIDDEN", (4,))
    for name in ("train", "train_privately"):
        monkeypatch.setattr(inversion, name, lambda _, inputs, *__, name=name, **___: learned.append((name, inputs)))
    for name in inversion._CLASSIFIERS:
        inversion._trained(few, schema, name)
    assert len(few.seen) == 24
    assert [(name, len(inputs)) for name, inputs in learned] == [
        ("train", 90),
        ("train", 1000),
        ("train_privately", 90),
    ]
    released = inversion.tensors(schema, few.released)[0]
    assert torch.equal(learned[1][1], released)
    assert not (learned[0][1][:, None] == released[None]).all(dim=2).any()


def test_an_image_is_left_alone_once_the_student_is_sure_of_it():
    sure = torch.nn.Linear(SIDE * SIDE, 2)
    with torch.no_grad():
        sure.weight.copy_(torch.stack([torch.ones(SIDE * SIDE), -torch.ones(SIDE * SIDE)]))
        sure.bias.zero_()
    few, many = (inversion.invert(sure, np.array([0, 1]), (SIDE, SIDE, 1), steps) for steps in (60, 600))
    np.testing.assert_array_equal(few, many)
    chances = torch.softmax(sure(torch.from_numpy(few).float()), dim=1).diagonal()
    assert chances[0] >= 0.999
    assert few.max() < 1
    assert (few[1] == 0).all()  # never sure: as far as it goes


def test_what_has_no_neighbours_is_not_smoothed():
    pixels = torch.rand(3, 12, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(inversion._smoothed(pixels, (1, 1, 12)), pixels)
    smooth = inversion._smoothed(pixels, (3, 4, 1)).reshape(3, 3, 4)
    around = pixels.reshape(3, 3, 4)[:, :3, :3] * torch.tensor([[1.0, 2, 1], [2, 4, 2], [1, 2, 1]]) / 16
    torch.testing.assert_close(smooth[:, 1, 1], around.sum(dim=(1, 2)))


def test_a_missing_detector_is_said_in_one_line(found):
    assert sum("OpenCV 4 is not installed" in note for note in found.notes) == 1
    assert all("faces detected" not in rate.name for rate in found.rates)


@pytest.mark.parametrize("names", [["OpenCV"], ["OpenCV", "MTCNN"]])
def test_every_detector_at_hand_is_asked(found, world, monkeypatch, names):
    asked = []

    def in_light(picture):
        assert picture.dtype == np.uint8
        assert picture.shape == (SIDE, SIDE, 1)
        asked.append(int(picture.max()))
        return picture.max() > 100

    shades = dict(zip(inversion._CLASSIFIERS, (1.0, 0.2, 0.5, 0.0), strict=True))
    back = {name: np.full((CLASSES, SIDE * SIDE), shade) for name, shade in shades.items()}
    monkeypatch.setattr(inversion, "detectors", lambda: dict.fromkeys(names, in_light))
    accuracy = dict.fromkeys(back, 0.5)
    identity = inversion.train_identity(world)
    entry = inversion._result(world, world.schema, identity, np.arange(CLASSES), back, accuracy)
    for name in names:
        assert [rate.value for rate in entry.rates if f"faces detected by {name}" in rate.name] == [1, 0, 1, 0]
    assert asked == [shade for shade in (255, 51, 128, 0) for _ in range(CLASSES)] * len(names)
    assert sum("MTCNN was not used" in note for note in entry.notes) == (names == ["OpenCV"])


def test_the_sheet_is_for_the_page_alone(found):
    (sheet,) = found.pictures
    assert sheet.png.startswith(b"\x89PNG")
    assert "pictures" not in found.model_dump()


def test_what_cannot_be_inverted_is_not(make_world):
    (entry,) = table.run(make_world(honest=True), ["inversion"])
    assert "labelled images" in entry.skipped


@pytest.mark.parametrize("seen", [60, 1])
def test_one_class_teaches_nobody_to_tell_people_apart(no_claim, seen):
    """A holdout of a single class has no other people: it is said, in place of the classifier's own complaint."""
    schema, every = Schema.parse(SCHEMA).resolve({}), pictures(400, 1)
    alike = every.take(np.flatnonzero((every.labels == "a").to_numpy())[:60])
    own = (pictures(60, 3), np.arange(60)) if seen > 1 else (alike.take(np.arange(20)), np.arange(20))
    few = make_attack_data(schema, no_claim, own, (alike, np.arange(60)), lambda n, seed: pictures(n, 3))
    (entry,) = table.run(few, ["inversion"])
    assert "one class" in entry.skipped


def test_the_identity_model_rejects_strangers(world):
    identity = inversion.train_identity(world)
    content = world.unseen.content
    pixels, codes = inversion._pixels(content), inversion.encode_labels(world.schema, content)
    assert identity.accuracy > 0.9
    assert identity.recognises(pixels, codes).mean() > 0.9
    assert identity.recognises(pixels, (codes + 1) % CLASSES).mean() < 0.1


def test_the_private_students_steps_are_those_of_clipped_single_gradients(monkeypatch):
    drawn = []

    def silence(self, size, std):
        drawn.append((size, std))
        return ScaledNoise(np.zeros(size, dtype=np.float32), std)

    monkeypatch.setattr(OsKeyedNoise, "normal", silence)
    network = victims.perceptron(12, (9, 5), 3, torch.Generator().manual_seed(0))
    slow = copy.deepcopy(network)
    inputs, classes = torch.rand(7, 12, generator=torch.Generator().manual_seed(1)), torch.arange(7) % 3
    inputs[2] *= 50  # one far beyond the bound
    inputs[3] = torch.nan  # one that counts for nothing
    victims.train_privately(network, inputs, classes, epsilon=0.9, delta=1e-5, steps=3)
    for _ in range(3):
        total = torch.zeros(sum(part.numel() for part in slow.parameters()))
        for number in range(7):
            loss = functional.cross_entropy(slow(inputs[number : number + 1]), classes[number : number + 1])
            own = parameters_to_vector(torch.autograd.grad(loss, list(slow.parameters())))
            if torch.isfinite(own).all():
                total += own * min(1.0, float(victims._CLIP / own.norm()))
        moved = parameters_to_vector(slow.parameters()) - victims._PRIVATE_RATE * total / 7
        vector_to_parameters(moved.detach(), slow.parameters())
    for one, other in zip(network.parameters(), slow.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-6)
    assert drawn == [(len(total), victims._CLIP * accounting.noise_multiplier(0.9, 1e-5, 1.0, 3))] * 3
