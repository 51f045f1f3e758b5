"""Artificial images as lessons: students taught on them and tested on real ones.

    python benchmarks/images.py run --data mnist --method guided --epsilon 1 --seeds 0 1 2
    python benchmarks/images.py run --data mnist --method peer:dp-merf --epsilon 1 --seeds 0 1 2
    python benchmarks/images.py table

All 60,000 training images are the private data set; a student of ``doublure.evaluate.students`` learns from 60,000
artificial ones and is tested on the 10,000 official test images. Resumable: finished cells are skipped. ``--tune``
keeps the last 10,000 training images aside, tests on those, and never opens the test set: settings were chosen that
way.
"""

from __future__ import annotations

import argparse
import json
import platform
import resource
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

import doublure as db
from doublure.data.images import Images
from doublure.evaluate.students import STUDENTS, Student, predict
from doublure.schema import Schema
from peers import dp_merf

OUT = Path(__file__).parent / "out" / "images.jsonl"
SHARED = Path(__file__).resolve().parents[1].parent / "shared" / "data"
SCHEMA = Path(__file__).resolve().parents[1] / "examples" / "schemas" / "mnist.schema.yaml"
DELTA = 1e-5
KEPT_ASIDE = 10_000
PEER = "peer:dp-merf"
FILES = {"mnist": "mnist.npz", "fashion-mnist": "fashion_mnist.npz"}


def real(data: str, split: str) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return images ``(N, 28, 28, 1)`` and labels: from shared data if present, else downloaded."""
    local = SHARED / FILES[data]
    if local.is_file():
        with np.load(local, allow_pickle=False) as arrays:
            return arrays[f"x_{split}"].reshape(-1, 28, 28, 1), arrays[f"y_{split}"].astype(np.int64)
    loaded: Any = db.datasets.load(data, split)
    return loaded["x"], loaded["y"]


def run(options: argparse.Namespace) -> None:
    """Run what is missing."""
    OUT.parent.mkdir(exist_ok=True)
    done = {tuple(json.loads(line)["cell"]) for line in OUT.read_text().splitlines()} if OUT.exists() else set()
    for seed in options.seeds:
        cell = (options.data, options.method, options.epsilon, seed, options.samples, options.tune, str(options.set))
        if cell not in done:
            found = one(options, seed)
            with OUT.open("a") as file:
                file.write(json.dumps({"cell": cell, **found}) + "\n")


def one(options: argparse.Namespace, seed: int) -> dict[str, Any]:
    """Fit, sample, teach, test."""
    images, labels = real(options.data, "train")
    if options.tune:
        test_images, test_labels = images[-KEPT_ASIDE:], labels[-KEPT_ASIDE:]
        images, labels = images[:-KEPT_ASIDE], labels[:-KEPT_ASIDE]
    else:
        test_images, test_labels = real(options.data, "test")
    lesson, classes, wall, cpu = (peers if options.method == PEER else ours)(options, images, labels, seed)
    found: dict[str, Any] = {"fit_seconds": round(wall), "fit_cpu_seconds": round(cpu), "students": {}}
    found["peak_mib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    found |= {"torch": torch.__version__, "python": platform.python_version(), "threads": torch.get_num_threads()}
    for student in options.students:
        chances = predict(student, lesson, classes, Images(images=test_images), 10, seed)
        found["students"][student] = float((chances.argmax(1) == test_labels).mean())
        print(options.data, options.method, options.epsilon, seed, student, found["students"][student], flush=True)
    return found


def ours(options: argparse.Namespace, images: Any, labels: Any, seed: int) -> tuple[Images, Any, float, float]:
    """Return artificial images of a method of ours, their labels, and the fit's seconds: clock and processor."""
    plain = Schema.load(SCHEMA).to_plain() | {"units": len(images)}
    chosen = {name: json.loads(value) for name, _, value in (entry.partition("=") for entry in options.set)}
    spent = {} if options.method == "gan" else {"epsilon": options.epsilon, "delta": DELTA}
    plan = db.plan(Schema.parse(json.dumps(plain)), method=options.method, **spent, **chosen)
    with tempfile.TemporaryDirectory() as folder:
        ledger = db.Ledger.create(Path(folder) / "ledger", dataset=options.data, epsilon=100.0, delta=1e-3)
        start = time.perf_counter(), time.process_time()
        understudy = db.fit(
            {"images": images, "labels": labels}, plan, ledger=ledger, out=Path(folder) / "run", seed=seed
        )
        wall, cpu = time.perf_counter() - start[0], time.process_time() - start[1]
    drawn = understudy.sample(options.samples, seed=seed)
    return drawn, drawn.labels.to_numpy().astype(np.int64), wall, cpu


def peers(options: argparse.Namespace, images: Any, labels: Any, seed: int) -> tuple[Images, Any, float, float]:
    """Return the same of a peer; its seconds count sampling too."""
    start = time.perf_counter(), time.process_time()
    own = {"data": options.data, "epsilon": options.epsilon, "delta": DELTA, "size": options.samples, "seed": seed}
    made, classes = dp_merf.artificial(images, labels, **own)
    return Images(images=made), classes, time.perf_counter() - start[0], time.process_time() - start[1]


def table() -> None:
    """Print the table for docs/results.md: mean and range over seeds."""
    cells: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for line in OUT.read_text().splitlines():
        entry = json.loads(line)
        data, method, epsilon, _, samples, tune, chosen = entry["cell"]
        cells.setdefault((data, method, epsilon, samples, tune, chosen), []).append(entry)
    names = [student for student in STUDENTS if any(student in e["students"] for es in cells.values() for e in es)]
    print("| data | method | ε | " + " | ".join(names) + " | fit, s | CPU s | MiB | seeds | settings |")
    print("|---|---|--:|" + "--:|" * len(names) + "--:|--:|--:|--:|---|")
    for (data, method, epsilon, _, tune, chosen), entries in cells.items():
        scores = []
        for name in names:
            values = [100 * entry["students"][name] for entry in entries if name in entry["students"]]
            scores.append(f"{statistics.mean(values):.1f} ({min(values):.1f}–{max(values):.1f})" if values else "–")
        means = [
            round(statistics.mean(entry[key] for entry in entries))
            for key in ("fit_seconds", "fit_cpu_seconds", "peak_mib")
        ]
        setting = ("held-out training images; " if tune else "") + (chosen if chosen != "[]" else "default")
        print("|", " | ".join(str(x) for x in (data, method, epsilon, *scores, *means, len(entries), setting)), "|")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=["run", "table"])
    parser.add_argument("--data", choices=sorted(FILES), default="mnist")
    parser.add_argument("--method", default="guided")
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--samples", type=int, default=60_000)
    parser.add_argument("--students", nargs="+", choices=sorted(STUDENTS), default=list[Student](["cnn"]))
    parser.add_argument("--set", nargs="*", default=[], help="settings, name=JSON")
    parser.add_argument("--tune", action="store_true", help="test on training images that were kept aside")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    if options.verb == "table":
        table()
    else:
        run(options)


if __name__ == "__main__":
    main()
