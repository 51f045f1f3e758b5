"""What ``benchmarks/tuning.py`` says of losses on synthetic images, by which a model might be chosen."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch

from doublure.data.images import Images
from doublure.measures.images.classifiers import CLASSIFIERS, to_tensor, train_network

FOLDER = str(Path(__file__).resolve().parents[1] / "benchmarks")


@pytest.fixture
def tuning(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(FOLDER)
    monkeypatch.delitem(sys.modules, "tuning", raising=False)
    return importlib.import_module("tuning")


def shades(n: int, seed: int, noise: float = 40.0) -> tuple[Images, np.ndarray]:
    """Return dark, middling and bright images."""
    rng = np.random.default_rng(seed)
    classes = rng.integers(0, 3, n)
    pixels = rng.normal(60 + 60 * classes[:, None, None, None], noise, (n, 8, 8, 1))
    return Images(images=np.clip(pixels, 0, 255).astype(np.uint8)), classes


def test_what_learns_well_does_so_on_both(tuning: ModuleType) -> None:
    candidates = [tuning.Candidate(student="mlp", rate=rate, epochs=2) for rate in (1e-6, 1e-4, 1e-3)]
    seen = []
    found = tuning.tune(shades(300, 0), shades(100, 1), shades(100, 2), candidates=candidates, done=seen.append)
    assert [entry.rate for entry in found.losses] == [1e-6, 1e-4, 1e-3]
    assert seen == list(found.losses)
    assert found.losses[2].real < found.losses[0].real
    assert found.correlation["mlp"] > 0.9
    assert found.lost["mlp"] == pytest.approx(0, abs=1e-12)


def test_losses_are_mean_cross_entropies(tuning: ModuleType) -> None:
    training, real = shades(60, 0), shades(40, 2)
    (losses,) = tuning.tune(
        training, training, real, candidates=[tuning.Candidate(student="mlp", rate=1e-3, epochs=1)]
    ).losses
    model = train_network("mlp", *training, 0, rate=1e-3, epochs=1)
    with torch.no_grad():
        slow = torch.nn.functional.cross_entropy(model(to_tensor(real[0].images)), torch.from_numpy(real[1]))
    assert losses.real == pytest.approx(float(slow), rel=1e-5)


def test_a_class_that_the_lesson_lacks_is_lost_and_no_error(tuning: ModuleType) -> None:
    images, classes = shades(60, 0)
    few = classes < 2
    training = images.take(np.flatnonzero(few)), classes[few]
    found = tuning.tune(
        training, training, (images, classes), candidates=[tuning.Candidate(student="mlp", rate=1e-3, epochs=1)]
    )
    assert found.losses[0].real > 10
    assert found.correlation["mlp"] is None


def test_the_sweep_was_fixed(tuning: ModuleType) -> None:
    assert len(tuning.CANDIDATES) == 24
    assert {candidate.student for candidate in tuning.CANDIDATES} <= set(CLASSIFIERS)
