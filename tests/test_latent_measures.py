"""What ``benchmarks/latent.py`` says of synthetic records: its classifiers and its table against known answers."""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

FOLDER = str(Path(__file__).resolve().parents[1] / "benchmarks")


@pytest.fixture
def part(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    for name in ("latent", "latent_students", "latent_report", "latent_tasks", "results"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return importlib.import_module


def striped(size, seed):
    """Return images of stripes, upright or level, under noise, and which they are."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, size)
    stripes = np.tile(np.repeat([1.0, -1.0], 2), 4)
    images = np.where(labels[:, None, None] == 0, stripes[None, None, :], stripes[None, :, None])
    noisy = images * 0.5 + rng.normal(0, 0.3, (size, 16, 16))
    return torch.from_numpy(noisy[:, None]).float(), labels.astype(np.int64)


def test_four_convolutions_learn_stripes_and_say_the_same_again(part):
    students = part("latent_students")
    training, test = striped(512, 0), striped(256, 1)
    models = [students.trained(*training, 2, epochs=2, seed=3) for _ in range(2)]
    one, other = (students.seen(model, test[0]) for model in models)
    assert torch.equal(one, other)
    found = students.scores(models[0], *test)
    assert found["accuracy"] > 0.95
    wrong = students.scores(models[0], test[0], 1 - test[1])
    assert wrong["accuracy"] == pytest.approx(1 - found["accuracy"], abs=2e-4)


def test_a_rare_class_of_vectors_is_learned(part):
    students = part("latent_students")
    rng = np.random.default_rng(0)
    labels = (rng.random(3000) < 0.05).astype(np.int64)
    vectors = torch.from_numpy(rng.normal(0, 1, (3000, 12)) + 1.2 * labels[:, None]).float()
    model = students.trained(vectors, labels, 2, epochs=8, seed=0)
    assert students.scores(model, vectors, labels)["recall"] > 0.85  # macro: the majority alone has a half


class Says(nn.Module):
    """Scores that are what it was given."""

    def forward(self, records):
        return records


def test_macro_figures_are_those_of_a_hand_computed_table(part):
    students = part("latent_students")
    truth = np.array([0, 0, 0, 0, 1, 1])
    said = torch.eye(2)[[0, 0, 0, 1, 1, 0]]
    found = students.scores(Says(), said, truth)
    # Class 0: 3 of 4 said, 3 of 4 found; class 1: 1 of 2, 1 of 2.
    assert found == {"accuracy": 0.6667, "precision": 0.625, "recall": 0.625, "f1": 0.625}
    nobody = students.scores(Says(), torch.eye(2)[[0] * 6], truth)
    assert (nobody["precision"], nobody["recall"]) == (0.3333, 0.5)  # who is never said counts as 0, not as left out


def test_distances_by_label_see_swapped_labels_and_those_of_all_do_not(part):
    students = part("latent_students")
    (real, truth), (again, labels) = striped(400, 4), striped(400, 5)
    oracle = students.trained(*striped(512, 6), 2, epochs=6, seed=0)
    right = students.pictures(oracle, again, labels, real, truth)
    swapped = students.pictures(oracle, again, 1 - labels, real, truth)
    assert right["frechet"] == swapped["frechet"]
    assert swapped["frechet_by_label"] > 10 * right["frechet_by_label"]
    assert 1.5 < right["classifier_score"] <= 2  # two classes, told apart
    collapsed = students.pictures(oracle, again, np.zeros_like(labels), real, truth)
    assert collapsed["frechet_by_label"] is None  # what is never made is not left out of a mean
    grey = students.pictures(oracle, torch.zeros(100, 1, 16, 16), np.arange(100) % 2, real, truth)
    assert grey["classifier_score"] == pytest.approx(1, abs=1e-3)
    assert grey["frechet"] > 10 * right["frechet"]


@pytest.mark.parametrize(
    ("method", "protocol", "told"),
    [
        ("inversion", "labels", True),
        ("latentgan", "labels", True),
        ("dpgan", "labels", False),
        ("dpgan", "paper", True),
        ("dpmi", "paper", True),
        ("dpmi-free", "paper", True),
    ],
)
def test_a_cell_tells_the_public_generators_seed_where_it_matters(part, monkeypatch, method, protocol, told):
    """The paper's protocol divides the private images by it too."""
    latent = part("latent")

    class Divided:
        labelling = None

        def by_the_paper(self, seed):
            divided = Divided()
            divided.labelling = seed
            return divided

    monkeypatch.setattr(latent, "TASKS", {"task": lambda tune: Divided()})
    common = {"task": "task", "tune": False, "protocol": protocol, "method": [method], "epsilon": [1.0], "seeds": [0]}
    common |= {"set": [], "public_set": [], "samples": None, "epochs": 1, "private": None}
    one, other = (
        next(latent.cases(argparse.Namespace(**common, public_seed=seed)))[0]["cell"] for seed in (0, 3)
    )  # fmt: skip
    assert other == (*one, "public seed 3") if told else other == one


def row(seed, accuracy, *, epsilon=1.0, tune=False, told=("[]", "[]"), **more):
    figures = {"accuracy": accuracy, "precision": accuracy, "recall": accuracy, "f1": accuracy}
    cell = ["emnist-mnist", "latentgan", epsilon, seed, 30000, 10, tune, *told]
    return {"cell": cell, "scores": figures, "seconds": 9, "cpu_seconds": 5 + seed, **more}


def test_the_table_keeps_what_settings_were_chosen_by_apart(part, monkeypatch, capsys):
    report = part("latent_report")
    rows = [row(0, 0.9), row(1, 0.94), row(0, 0.2, tune=True), row(0, 0.97, epsilon=10.0, frechet=1.5)]
    monkeypatch.setattr(report, "finished", lambda name: rows)
    report.table()
    official, held_out = capsys.readouterr().out.split("**Training data that was kept aside**")
    assert "92.0 (90.0–94.0)" in official
    assert "20.0" not in official
    assert "| emnist-mnist | latentgan | 1.0 | 20.0 |" in held_out
    assert official.index("| 1.0 | 92.0") < official.index("| 10.0 | 97.0")
    assert "| 1.50 |" in official


def test_a_figure_that_one_seed_cannot_give_is_no_mean_of_the_others(part):
    report = part("latent_report")
    rows = [row(0, 0.9, frechet_by_label=2.0), row(1, 0.9, frechet_by_label=4.0), row(2, 0.9)]
    assert report.values_of(rows, "frechet_by_label") == [2.0, 4.0]
    assert report.values_of([*rows, row(3, 0.9, frechet_by_label=None)], "frechet_by_label") == []
    assert report.values_of(rows, "accuracy") == [0.9] * 3


def test_curves_are_of_official_figures_of_defaults_alone(part, monkeypatch, tmp_path, capsys):
    report = part("latent_report")
    rows = [row(0, 0.9), row(1, 0.94), row(0, 0.97, epsilon=10.0), row(0, 0.2, tune=True)]
    rows += [row(0, 0.3, told=("['tries=1']", "[]")), row(0, 0.3, told=("[]", "[]", "paper"))]
    monkeypatch.setattr(report, "finished", lambda name: rows)
    monkeypatch.setattr(report, "OUT", tmp_path)
    report.curves()
    assert capsys.readouterr().out.split() == [str(tmp_path / "latent-emnist-mnist.png")]
    usual = {key: entries for key, entries in report.cells().items() if report._usual(key)}
    (points,) = report._lines(usual, "emnist-mnist")["accuracy"].values()
    assert points == {1.0: (0.9, pytest.approx(0.92), 0.94), 10.0: (0.97, 0.97, 0.97)}


def test_one_public_generator_is_drawn_whatever_order_they_were_measured_in(part, monkeypatch):
    report = part("latent_report")
    wide = "['noise_width=128']"
    rows = [row(0, 0.9, told=("[]", wide)), row(0, 0.95, epsilon=10.0, told=("[]", wide)), row(0, 0.5)]
    for order in (rows, rows[::-1]):
        monkeypatch.setattr(report, "finished", lambda name, order=order: order)
        (points,) = report._lines(report.cells(), "emnist-mnist")["accuracy"].values()
        assert points == {1.0: (0.9, 0.9, 0.9), 10.0: (0.95, 0.95, 0.95)}


def test_tasks_of_images_stand_beside_each_other_the_same_each_time(part, monkeypatch, tmp_path):
    report = part("latent_report")
    rows = [row(seed, 0.9, epsilon=epsilon, frechet_by_label=3.0) for seed in (0, 1) for epsilon in (1.0, 10.0)]
    rows += [{**own, "cell": ["diabetes", *own["cell"][1:]], "frechet_by_label": None} for own in rows]
    monkeypatch.setattr(report, "finished", lambda name: rows)
    drawn = []
    for folder in ("one", "other"):
        monkeypatch.setattr(report, "OUT", tmp_path)
        monkeypatch.setattr(report, "FIGURES", tmp_path / folder)
        report.curves()
        drawn.append((tmp_path / folder / "latent-accuracy.svg").read_text())
    assert drawn[0] == drawn[1]
    assert "EMNIST letters to MNIST" in drawn[0]
    assert "diabetes" not in drawn[0]


def test_a_panels_row_of_unusual_settings_does_not_replace_a_usual_one(part, monkeypatch, tmp_path):
    report = part("latent_report")
    monkeypatch.setattr(report, "_PANELS", tmp_path)
    labels = np.arange(40) % 2
    for shade, usual in ((-1.0, False), (0.0, True), (1.0, False)):
        report.keep("digits", "latentgan", 1.0, torch.full((40, 1, 4, 4), shade), labels, usual=usual)
    (kept,) = tmp_path.glob("*.npy")
    assert (kept.stem, np.load(kept).shape) == ("digits 3 00001", (20, 4, 4, 1))
    assert np.unique(np.load(kept)).tolist() == [128]
    report.panels()
    assert (tmp_path / "digits.png").is_file()
