"""``dpmi`` of ``benchmarks/latent.py``: the system of Chen et al. 2021 as a whole, on digits of 16 x 16."""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

FOLDER = str(Path(__file__).resolve().parents[1] / "benchmarks")
SAID = {"data": "odd digits", "people": "43 people", "licence": "CC BY 4.0"}


@pytest.fixture
def latent(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(FOLDER)
    for name in ("latent", "latent_students", "latent_report", "latent_tasks", "results"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    module = importlib.import_module("latent")
    monkeypatch.setattr(module, "OUT", tmp_path)
    monkeypatch.setattr(module.latent_report, "_PANELS", tmp_path / "panels")
    monkeypatch.setattr(module, "TASKS", {"digits": lambda tune: digits(importlib.import_module("latent_tasks"))})
    monkeypatch.setattr(module.latent_training, "latent_view", module.once)
    return module


def digits(tasks):
    """Return the odd digits as public and the even ones as private, a fifth of these to test on."""
    found = load_digits()
    drawn = (found.images * 255 / 16).round().astype(np.uint8)
    images, labels = drawn.repeat(2, axis=1).repeat(2, axis=2)[..., None], found.target.astype(np.int64)
    odd = labels % 2 == 1
    mine, names = images[~odd], labels[~odd]
    cut = len(mine) // 5
    return tasks._of_images(images[odd], (mine[cut:], names[cut:]), (mine[:cut], names[:cut]), SAID)


def asked(**changes):
    """Return a command line for networks that learn nothing in no time."""
    usual = {
        "task": "digits", "method": ["dpmi", "dpmi-free", "dpmi-inversion"], "epsilon": [10.0], "seeds": [0],
        "samples": 60, "epochs": 1, "private": None, "public_seed": 0, "protocol": "paper", "tune": False,
        "set": ["steps=10", "inversion_steps=2"],
        "public_set": ["noise_width=8", "steps=5", "channels=[4,4]", "critic_channels=[4,4]", "features=4"],
    }  # fmt: skip
    return argparse.Namespace(**(usual | changes))


def test_it_takes_its_labels_from_a_labelling_set_or_not_at_all(latent):
    with pytest.raises(SystemExit, match="--protocol paper"):
        next(latent.cases(asked(protocol="labels")))


def test_one_command_runs_the_whole_system(latent, monkeypatch):
    plans = []
    planned = latent.db.plan
    monkeypatch.setattr(latent.db, "plan", lambda *args, **named: plans.append(planned(*args, **named)) or plans[-1])
    rows = [dict(key) | dict(make()) for key, make in latent.cases(asked())]
    private, free, _ = rows
    assert [row["cell"][1:3] for row in rows] == [("dpmi", 10.0), ("dpmi-free", None), ("dpmi-inversion", None)]
    assert "none of the labelling set" in private["guarantee"]
    assert "guarantee" not in free
    assert [row["inverted"] for row in rows] == [True, False, False]  # the same latents
    for row in rows:
        assert 0 <= row["scores"]["accuracy"] <= 1
        assert row["classifier_score"] >= 1
    own = plans[0].settings
    assert (own.teacher, own.loss, own.penalty, own.n_critic) == ("critic", "wgan-gp", 10.0, 5)
    assert own.noise_width < own.latent == 8  # l < d
    assert own.facts.encoder_sha256 is None  # inversion begins at random
    assert (own.labeller_share, own.detail, own.inversion_restarts) == (0.0, 0.0, 1)
    assert plans[0].guarantee.kind == "dp"


def test_without_privacy_it_learns_where_latents_lie(latent, monkeypatch):
    """Latents that all lie near one point draw the generator there."""
    task = latent.TASKS["digits"](False).by_the_paper(0)
    options = asked(set=["steps=300", "n_critic=1", "inversion_steps=1", "critic_lr=5e-3", "generator_lr=5e-3"])
    place = torch.tensor([1.0, -1.0, 0.5, 0.0, 0.0, -0.5, 1.0, 0.0])

    class AtOnePlace:
        n_units = task.schema.public_units

        def lot(self, units):
            return place + 0.05 * torch.randn(len(units), 8), None, None, len(units)

    found = []
    monkeypatch.setattr(latent, "ThroughPublic", lambda latents, public, width: found.append(latents) or latents)
    own = latent.db.plan(
        task.unlabelled()[1], method="latentgan", epsilon=1.0, delta=1e-5,
        **latent.through_settings(options, task, "dpmi"),
    ).settings  # fmt: skip
    latent.once.by_generator[own.facts.generator_sha256] = AtOnePlace()
    made = latent.unprotected(options, task, 0, 200)
    assert float((made.mean(0) - place).norm()) < float(place.norm()) / 2


def test_its_latents_are_inverted_once_for_all_settings(latent, monkeypatch):
    task = latent.TASKS["digits"](False).by_the_paper(0)
    first = latent.unprotected(asked(), task, 0, 20)
    latent.once.by_generator.clear()
    built = latent.latent_training.build_inversion

    def never(*given):
        inversion = built(*given)
        monkeypatch.setattr(type(inversion), "__call__", lambda *_: pytest.fail("inverted again"))
        return inversion

    monkeypatch.setattr(latent.latent_training, "build_inversion", never)
    assert torch.equal(latent.unprotected(asked(), task, 0, 20), first)
    latent.once.by_generator.clear()
    with pytest.raises(pytest.fail.Exception, match="inverted again"):
        latent.unprotected(asked(set=["steps=10", "inversion_steps=3"]), task, 0, 20)


def test_inversions_are_images_of_the_records_own_latents(latent):
    task = latent.TASKS["digits"](False).by_the_paper(0)
    units = task.schema.public_units
    made = latent.unprotected(asked(), task, 0, units, learned=False)
    (found, _), *_ = next(iter(latent.once.by_generator.values())).expanded(units)
    assert made.shape == (units, 1, 16, 16)
    assert found.shape == (units, 8)
    assert len(made.unique(dim=0)) == len(found.unique(dim=0))
