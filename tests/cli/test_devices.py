"""``--device``: every verb that computes takes one, computes there, and refuses one that is not there."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import doublure as db
from doublure.auditing.trainer import audit_trainer
from doublure.data.images import Images
from doublure.measures.images.classifiers import image_classifier
from doublure.private.records import PrivateRecords
from doublure.support import devices

NOWHERE, BESIDE = "cuda:99", "cpu:0"  # the second is the processor by another name: all goes the way of a device
VERBS = {
    "fit": ["fit", "{data}", "--plan", "{plan}", "--ledger", "{ledger}", "-o", "{folder}/other"],
    "sample": ["sample", "{run}", "-n", "5", "-o", "{folder}/rows.csv"],
    "evaluate": ["evaluate", "{run}", "--real", "{data}", "-o", "{folder}/page.html"],
    "inspect": ["inspect", "{run}", "-o", "{folder}/page.html"],
    "audit": ["audit", "--trainer", "--runs", "20"],
}
GPU = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device, and this machine has none"),
]


@pytest.fixture(autouse=True)
def unchosen():
    """The processor, after each test as before."""
    yield
    devices.use_device("cpu")


def words(verb, small, folder):
    small.plan.save(folder / "plan.json")
    places = {
        "data": small.csv(folder), "plan": folder / "plan.json", "ledger": small.book(folder).path, "run": small.run,
        "folder": folder,
    }  # fmt: skip
    return [word.format(**places) for word in VERBS[verb]]


@pytest.mark.parametrize("verb", VERBS)
def test_a_device_that_is_not_there_is_refused_before_anything_is_done(doublure, small, tmp_path, verb):
    asked = words(verb, small, tmp_path)
    before = sorted(path.name for path in tmp_path.iterdir())
    said = doublure(*asked, "--device", NOWHERE)
    assert said.code == 2
    assert "device" in said.line
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def moved_to(monkeypatch):
    """Return where modules have been moved."""
    places, honest = [], nn.Module.to
    monkeypatch.setattr(
        nn.Module, "to", lambda module, *where, **named: places.append(str(where[0])) or honest(module, *where, **named)
    )
    return places


def test_a_sample_is_drawn_there_and_the_generator_comes_back(monkeypatch, doublure, small, tmp_path):
    asked, places = words("sample", small, tmp_path), moved_to(monkeypatch)
    assert doublure(*asked, "--seed", 3, "--device", BESIDE).code == 0
    assert places == [BESIDE, "cpu"]
    drawn = (tmp_path / "rows.csv").read_text()
    assert doublure(*asked, "--seed", 3, "--force").code == 0  # and what was chosen holds for one command
    assert places == [BESIDE, "cpu"]
    assert (tmp_path / "rows.csv").read_text() == drawn


def test_without_a_number_as_many_are_drawn_as_there_are_units(doublure, small, tmp_path):
    said = doublure("sample", small.run, "-o", tmp_path / "rows.csv", "--seed", 3, "--json")
    assert said.result["result"]["rows"] == db.load(small.run).default_n
    assert len((tmp_path / "rows.csv").read_text().splitlines()) == 1 + db.load(small.run).default_n


def test_weights_that_have_been_elsewhere_can_be_learned_from(small):
    syn = db.load(small.run)
    devices.use_device(BESIDE)
    syn.sample(5, seed=1)
    weights = list(syn.generator.parameters())
    assert {weight.device.type for weight in weights} == {"cpu"}
    assert not any(weight.is_inference() for weight in weights)


def test_classifiers_of_images_learn_and_look_there(monkeypatch):
    for name, few in (("EPOCHS", 1), ("LEAST_STEPS", 5)):
        monkeypatch.setattr(f"doublure.measures.images.classifiers.{name}", few)
    images = Images(images=np.random.default_rng(0).integers(0, 256, (40, 8, 8, 1), dtype=np.uint8))
    classes = np.arange(40) % 2
    found = image_classifier(images, classes, 0).chances(images)
    places = moved_to(monkeypatch)
    devices.use_device(BESIDE)
    there = image_classifier(images, classes, 0).chances(images)
    assert BESIDE in places
    assert np.array_equal(found, there)


def test_the_trainer_is_audited_there(monkeypatch):
    used, honest = [], PrivateRecords.__init__

    def noted(records, compact, unit, n_units, expand, device="cpu", *more):
        used.append(device)
        honest(records, compact, unit, n_units, expand, device, *more)

    monkeypatch.setattr(PrivateRecords, "__init__", noted)
    devices.use_device(BESIDE)
    assert not audit_trainer(runs=20).violated
    assert used == [BESIDE, BESIDE]


@pytest.mark.parametrize("what", [pytest.param("a GPU", marks=GPU)])
def test_a_gpu_draws_what_the_processor_draws(small, what):
    syn = db.load(small.run)
    here = syn.sample(200, seed=1)
    devices.use_device("cuda")
    there = syn.sample(200, seed=1)
    assert np.allclose(here["height"].astype(float), there["height"].astype(float), rtol=1e-2)
