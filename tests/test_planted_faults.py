"""What ``benchmarks/inspection.py`` plants before a fit, and what ``retraining.py`` makes of the shares of fits."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

FOLDER = str(Path(__file__).resolve().parents[1] / "benchmarks")
LABELS = np.random.default_rng(0).integers(0, 10, 4_000)
IMAGES = np.zeros((4_000, 4, 4, 1), np.uint8)
IMAGES[:, 0] = (10 * LABELS + 10)[:, None, None]  # bright above: what is turned or on its head shows it


def benchmark(monkeypatch: pytest.MonkeyPatch, name: str) -> ModuleType:
    monkeypatch.syspath_prepend(FOLDER)
    monkeypatch.delitem(sys.modules, name, raising=False)
    return importlib.import_module(name)


def test_each_fault_is_in_what_it_names_and_nowhere_else(monkeypatch):
    inspection = benchmark(monkeypatch, "inspection")
    monkeypatch.setattr(inspection, "images_of", lambda name, half: (np.full((9_000, 4, 4, 1), 250, np.uint8), None))

    def planted(name, share=0.25):
        assert share in inspection.FAULTS[name].shares
        images, labels = inspection.FAULTS[name].done(IMAGES.copy(), LABELS.copy(), share, np.random.default_rng(1))
        assert (images.shape, labels.shape) == (IMAGES.shape, LABELS.shape)  # how many there are is public
        return images, labels, (images != IMAGES).any((1, 2, 3))

    for name, key in (("turned", "turned_left"), ("strangers", "unlike")):
        _, labels, changed = planted(name)
        assert 0.22 < changed.mean() < 0.28
        assert (labels == LABELS).all()
        assert key in inspection.FAULTS[name].signs
    images, labels, changed = planted("slice", 1.0)
    assert (changed == (LABELS == 3)).all()
    assert (images[changed][:, ::-1] == IMAGES[changed]).all()
    images, labels, changed = planted("swapped")
    assert not changed.any()
    moved = labels != LABELS
    assert 0.22 < moved.mean() < 0.28
    assert (labels[moved] == (LABELS[moved] + 1) % 10).all()
    images, labels, _ = planted("lost", 0.9)
    assert 0.005 < (labels == 3).mean() < 0.015
    assert (images[:, 0, 0, 0] == 10 * labels + 10).all()


def test_of_several_signs_the_one_that_stands_out_is_kept(monkeypatch):
    inspection = benchmark(monkeypatch, "inspection")
    blank = {"share": 0.1, "interval": None, "reference": 0.0, "references": (0.0,), "usual": None}
    quiet = SimpleNamespace(key="label", p=0.5, found=False, **blank)
    loud = SimpleNamespace(key="unlike", p=1e-9, found=True, **blank)
    kept = inspection.figures(SimpleNamespace(fault_tests=(quiet, loud), found=(loud,)), ("label", "unlike"))
    assert (kept["sign"], kept["found"], kept["stands_out"]) == ("unlike", True, ["unlike"])


def test_losses_of_fits_are_divergences_of_the_reference(monkeypatch):
    retraining = benchmark(monkeypatch, "retraining")
    reference, other = np.array([0.5, 0.25, 0.25]), np.array([0.25, 0.25, 0.5])
    found = retraining._losses(reference, [reference, other])
    assert found["losses"] == pytest.approx([0.0, 0.25 * np.log(2)])
    assert found["largest"] == pytest.approx(np.log(2))
