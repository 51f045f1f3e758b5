"""``benchmarks/dpimagebench.py`` on miniature originals: DPImageBench's archives are read, fitted, judged, exported."""

from __future__ import annotations

import importlib
import json
import math
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch

FOLDER = Path(__file__).resolve().parents[1] / "benchmarks"
MODULES = ("dpimagebench", "real_images", "results", "fits")


@pytest.fixture
def bench(tmp_path, monkeypatch):
    if not FOLDER.is_dir():
        pytest.skip("needs the benchmarks of a checkout")
    monkeypatch.syspath_prepend(str(FOLDER))
    for module in MODULES:
        monkeypatch.delitem(sys.modules, module, raising=False)
    made, fits, results = (importlib.import_module(name) for name in ("dpimagebench", "fits", "results"))
    monkeypatch.setattr(fits, "RUNS", tmp_path / "runs")
    monkeypatch.setattr(results, "MEASURED", tmp_path / "measured")
    yield made
    for module in MODULES:
        sys.modules.pop(module, None)


def pictures(n, seed):
    """Return bars at a place for each of two classes, and noise."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, n)
    images = rng.integers(0, 40, (n, 8, 8, 1), dtype=np.uint8)
    images[labels == 0, 1:3] = 220
    images[labels == 1, 5:7] = 220
    return images, labels


@pytest.fixture
def folder(bench, tmp_path):
    for split, n in (("train", 240), ("test", 80)):
        bench.write_archive(tmp_path / "bars" / f"{split}_8.zip", *pictures(n, seed=n))
    return tmp_path / "bars"


def called(bench: ModuleType, monkeypatch: pytest.MonkeyPatch, *words: object) -> None:
    monkeypatch.setattr(sys, "argv", ["dpimagebench.py", *map(str, words)])
    bench.main()


def test_their_archive_comes_back_as_it_was_and_is_split_as_they_split_it(bench, folder):
    whole = bench.read_split(folder, "train", 1)
    images, labels = pictures(240, seed=240)
    assert np.array_equal(whole.images, images)
    assert np.array_equal(whole.labels, labels)
    train, aside = bench.split_train(whole)
    torch.manual_seed(0)
    first, second = torch.utils.data.random_split(range(240), [220, 20])
    assert np.array_equal(train.images, images[list(first)])
    assert np.array_equal(aside.labels, labels[list(second)])


def test_published_sizes_are_those_of_the_papers(bench):
    """1.7 M weights (He et al. 2016, Table 6) and 8.9 M (Zagoruyko and Komodakis 2016, Table 5)."""
    sizes = {
        name: sum(weight.numel() for weight in bench.classifier(name, 3, 10).parameters()) for name in ("resnet", "wrn")
    }
    assert sizes["resnet"] == pytest.approx(1.7e6, rel=0.03)
    assert sizes["wrn"] == pytest.approx(8.9e6, rel=0.01)
    for name in bench.FAMILIES:
        assert bench.classifier(name, 1, 10, depth=11)(torch.zeros(2, 1, 28, 28)).shape == (2, 10)


def test_a_choice_with_noise_is_one_of_the_epochs_and_seldom_the_best_where_epsilon_is_small(bench):
    epochs = [bench.Epoch(kept=count, synthetic=9 - count, test=count / 10) for count in range(10)]
    rng = np.random.default_rng(0)
    sharp, faint = ([bench.chosen(epochs, epsilon, rng)["private"] for _ in range(300)] for epsilon in (20.0, 0.01))
    assert np.mean(sharp) > 0.89
    assert 0.3 < np.mean(faint) < 0.6
    plain = bench.chosen(epochs, None, rng)
    assert plain == {"private": 0.9, "noiseless": 0.9, "synthetic": 0.0, "last": 0.9}


def test_a_cell_goes_from_their_archives_to_a_kept_row(bench, folder, tmp_path, monkeypatch):
    words = ("run", "--folder", folder, "--epsilon", 10, "inf", "--classifiers", "resnet", "--depth", 8, "--epochs", 6)
    called(bench, monkeypatch, *words, "--set", 'model="gaussian"', "labeller_share=0")
    ours, real = [json.loads(line) for line in (tmp_path / "measured" / "dpimagebench.jsonl").read_text().splitlines()]
    assert ours["delta"] == pytest.approx(1 / (220 * math.log(220)))
    assert (ours["images"], real["images"]) == (220, 202)  # of 240 and 220, a twelfth kept apart
    assert real["cell"][2] is None
    assert real["noiseless"] > 0.9
    assert ours["noiseless"] > 0.8
    assert {"private", "synthetic", "last"} <= ours.keys()


def test_what_is_exported_is_what_their_evaluation_loads(bench, folder, tmp_path, monkeypatch):
    words = ("export", "--folder", folder, "--epsilon", 10, "--set", 'model="gaussian"', "labeller_share=0")
    called(bench, monkeypatch, *words, "-o", tmp_path / "exp")
    with np.load(tmp_path / "exp" / "gen" / "gen.npz") as found:
        assert found["x"].shape == (240, 1, 8, 8)
        assert found["x"].dtype == np.float32
        assert 0 <= found["x"].min() < 0.3 < 0.7 < found["x"].max() <= 1
        assert set(found["y"].tolist()) == {0, 1}


def test_a_folder_without_archives_is_refused_in_one_line(bench, tmp_path, monkeypatch):
    with pytest.raises(SystemExit, match=r"has no test_28\.zip: make it by"):
        called(bench, monkeypatch, "run", "--folder", tmp_path)
