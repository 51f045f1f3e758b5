"""``benchmarks/gpu_rows.py``: parts end in time, the next one goes on, and what is left is said."""

from __future__ import annotations

import importlib
import os
import signal
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from doublure.support import devices

FOLDER = Path(__file__).resolve().parents[1] / "benchmarks"
TINY = "lot_size=8 channels=[4] critic_channels=[4] features=4 noise_width=4 generator_batch=8"


@pytest.fixture
def rows(tmp_path, monkeypatch):
    """Return the program, with small images, and with its files in a folder of its own."""
    if not FOLDER.is_dir():
        pytest.skip("needs the benchmarks of a checkout")
    monkeypatch.syspath_prepend(str(FOLDER))
    for module in ("gpu_rows", "images", "real_images", "results", "fits", "bayesian_rows", "tuning", "lines", "peers"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    made, images, fits, results = (importlib.import_module(name) for name in ("gpu_rows", "images", "fits", "results"))
    rng = np.random.default_rng(0)
    one = rng.integers(0, 256, (40, 28, 28, 1), dtype=np.uint8), np.arange(40) % 10
    monkeypatch.setattr(images, "train_and_test", lambda name, tune: (one, one))
    monkeypatch.setattr(fits, "RUNS", tmp_path / "runs")
    monkeypatch.setattr(results, "MEASURED", tmp_path / "measured")
    monkeypatch.setattr(devices, "_chosen", "cpu")
    yield made
    sys.modules.pop("gpu_rows", None)


def row(made, steps, seeds="0"):
    command = (
        f"images run --data mnist --method noisecritic --seeds {seeds} --samples 20 --students logistic --threads 1"
    )
    return made.Row("triastcyn2019", f"{command} --set steps={steps} {TINY}")


@contextmanager
def until_begun(folder):
    """Stop what runs, as a user would, once a fit has its run folder."""

    def watch():
        while not any(folder.rglob("checkpoint*")):
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    yield
    watcher.join(60)


def test_a_fit_that_a_part_cuts_off_goes_on_in_the_next(rows, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(rows, "ROWS", (row(rows, 200),))
    with monkeypatch.context() as patch:
        patch.setattr(rows, "_for", lambda seconds: until_begun(tmp_path / "runs"))
        rows.main(["run", "--device", "cpu"])
    assert "1 cells are left" in capsys.readouterr().out
    rows.main(["run", "--minutes", "4", "--device", "cpu"])
    assert "0 cells are left" in capsys.readouterr().out
    (kept,) = importlib.import_module("results").finished("images")
    assert kept["resumed"]


def test_a_part_ends_in_time(rows):
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a command line that ended ignores it
    with pytest.raises(KeyboardInterrupt), rows._for(0.05):
        time.sleep(30)
    time.sleep(0.1)  # and no signal comes later
    assert signal.getitimer(signal.ITIMER_REAL)[0] == 0
    signal.signal(signal.SIGINT, before)


def test_what_is_left_is_said_without_making_it(rows, monkeypatch, capsys):
    monkeypatch.setattr(rows, "ROWS", (row(rows, 3, "0 1"), row(rows, 4)))
    rows.main([])
    said = capsys.readouterr().out
    assert "2 left" in said
    assert "3 cells are left" in said
    rows.main(["run", "--minutes", "4", "--device", "cpu"])
    assert "0 cells are left" in capsys.readouterr().out
    rows.main(["run", "--minutes", "4", "--device", "cpu"])  # nothing is made again
    assert len(importlib.import_module("results").finished("images")) == 3


def test_every_row_is_a_command_that_its_program_reads(rows, monkeypatch, capsys):
    """With no data at hand, each says so, and none refuses its arguments."""
    images = importlib.import_module("images")

    def missing(*_):
        raise SystemExit("not at hand")

    monkeypatch.setattr(images, "train_and_test", missing)
    monkeypatch.setattr(importlib.import_module("real_images"), "SHARED", Path("/nowhere"))
    for each in rows.ROWS:
        if each.program == "images":
            assert rows.left(each).cells, each.command  # cells are told apart before any data is read
    rows.main(["--only", "triastcyn2022"])
    assert "6 cells are left" in capsys.readouterr().out
