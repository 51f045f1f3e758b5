"""What privacy costs in time: whole fits with ``dpgan`` and with ``gan`` at the same settings, of Adult or of days.

Fits alternate, so that a busy machine slows both; the ratio is the median over rounds. (Frigerio et al. 2019 took 232 s
with privacy and 213 s without for 2,500 iterations on Adult.) Days are 10,000 made-up ones of 48 half-hours.

    python benchmarks/fit.py --rounds 3 --threads 2
    python benchmarks/fit.py --data days --steps 100
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

import doublure as db
from command_line import choice, command_line, told
from gpus import named, there

DAYS = """
doublure: 1
kind: series
unit: {name: day}
units: 10000
series: {length: 48, gaps: refuse}
channels: {kw: {type: real, bounds: [0, 10], precision: 3, missing: false}}
"""
SAME = ("loss", "gradient_penalty", "n_critic", "lot_size", "steps", "critic_lr", "generator_lr", "generator_batch")


def records(data: str) -> tuple[db.Schema, Any]:
    """Return a schema and the records under it."""
    if data == "adult":
        return db.Schema.load(db.datasets.adult_schema_path()), db.datasets.demo_split()[0]
    draw = np.random.default_rng(0)
    return db.Schema.parse(DAYS), {"kw": np.clip(draw.gamma(0.5, 1, (10_000, 48)), 0, 10)}


def seconds(data: str, method: str, settings: dict[str, Any], threads: int, device: str) -> float:
    """Return how long one whole fit takes, the data's reading and the ledger included."""
    schema, train = records(data)
    budget = {"epsilon": 3.0, "delta": 1e-5} if method == "dpgan" else {}
    plan = db.plan(schema, method=method, **budget, **settings)
    with tempfile.TemporaryDirectory() as folder:
        ledger = db.Ledger.create(Path(folder) / "ledger", dataset=data, epsilon=100.0, delta=0.01)
        start = time.perf_counter()
        db.fit(train, plan, ledger=ledger, out=Path(folder) / "run", seed=0, threads=threads, device=device)
        return time.perf_counter() - start


def main() -> None:
    """Read the command line and print the ratio."""
    arguments = command_line(
        __doc__, data=choice(["adult", "days"], "adult"), rounds=3,
        steps=told(int, "fewer than the default, to be quicker"), threads=2,
        device=told(str, "one alone; left out, the processor and each GPU that torch has"),
    )  # fmt: skip
    torch.set_num_threads(arguments.threads)
    extra = {"steps": arguments.steps} if arguments.steps else {}
    schema, _ = records(arguments.data)
    decided = db.plan(schema, method="dpgan", epsilon=3.0, delta=1e-5, **extra).settings.model_dump()
    settings = {name: decided[name] for name in SAME}
    devices = [arguments.device] if arguments.device else there()
    for device in devices:
        compare(arguments, settings, device)


def compare(arguments: argparse.Namespace, settings: dict[str, Any], device: str) -> None:
    """Fit both ways in turn on a device, and print what each took."""
    taken: dict[str, list[float]] = {"dpgan": [], "gan": []}
    for turn in range(arguments.rounds):
        for method in sorted(taken, reverse=bool(turn % 2)):
            taken[method].append(seconds(arguments.data, method, settings, arguments.threads, device))
            print(f"{named(device)}, {method}: {taken[method][-1]:.1f} s", flush=True)
    ratio = statistics.median(ours / plain for ours, plain in zip(taken["dpgan"], taken["gan"], strict=True))
    medians = {method: statistics.median(each) for method, each in taken.items()}
    print(f"{named(device)}: {settings['steps']} steps, lots of {settings['lot_size']}, {arguments.threads} thread(s)")
    print(f"dpgan {medians['dpgan']:.1f} s, gan {medians['gan']:.1f} s, ratio {ratio:.2f}")


if __name__ == "__main__":
    main()
