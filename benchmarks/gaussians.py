"""Six Gaussians in the plane (Frigerio et al. 2019, §6.1): kernel densities, and the Wasserstein distance by epochs.

    python benchmarks/gaussians.py run            # resumable: finished cells are skipped
    python benchmarks/gaussians.py run --ways gan dpgan --steps 2500 --seeds 0
    python benchmarks/gaussians.py table          # the table for docs/evidence/journal/frigerio.md
    python benchmarks/gaussians.py picture        # benchmarks/out/gaussians.png: densities, and curves

10,000 points around the corners of a hexagon in the unit square, all of the same variance; the paper says neither how
many there were nor where. ε = 8 for each run by itself, whatever its length: a point of the curve is a whole fit with
that many steps, and not a look at one fit on its way. Distances are the paper's mean over the two marginals, and the
mean over 200 directions (sliced), between as many synthetic points and *other* draws of the same six Gaussians; those
of real points are printed beside them.

Settings were chosen for ``gan`` on seed 100: two columns need smaller lots and steps of the generator as long as the
critic's than a table does.
"""

from __future__ import annotations

import argparse
import math
import platform
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from scipy.stats import gaussian_kde, wasserstein_distance

import doublure as db
from command_line import command_line, some
from doublure.schema import Schema
from results import OUT, by_cell, finished, mean_and_range, measure

POINTS, SPREAD, RADIUS = 10_000, 0.05, 0.35
EPSILON, DELTA = 8.0, 1e-5
SCHEMA = f"""
doublure: 1
kind: table
unit: {{name: point}}
units: {POINTS}
columns:
  x: {{type: real, bounds: [0, 1], precision: 4, missing: false}}
  y: {{type: real, bounds: [0, 1], precision: 4, missing: false}}
"""
STEPS = (500, 1000, 2500, 5000)
OWN: dict[str, Any] = {
    "numerics": "scaled", "generator_batch": 256, "generator_lr": 2e-3, "generator_average": 0.98, "noise_width": 8,
    "gradient_penalty": 1.0,
}  # fmt: skip
PRIVATE = OWN | {"lot_size": 1000, "max_grad_norm": 1.0}
WAYS: dict[str, tuple[str, dict[str, Any]]] = {
    "gan": ("gan", OWN | {"lot_size": 256}),
    "dpgan": ("dpgan", PRIVATE),
    "dpgan, decay": ("dpgan", PRIVATE | {"clipping_decay": 0.5}),
    "statistics": ("statistics", {}),
}
WITHOUT_STEPS = ("real", "statistics")


def points(seed: int) -> pd.DataFrame:
    """Return draws of the six Gaussians, cut to the unit square."""
    draw = np.random.default_rng([41, seed])
    corner = math.pi / 3 * draw.integers(0, 6, POINTS)
    centres = 0.5 + RADIUS * np.stack([np.cos(corner), np.sin(corner)], axis=1)
    found = np.clip(centres + SPREAD * draw.normal(size=centres.shape), 0, 1).round(4)
    return pd.DataFrame(found, columns=["x", "y"])


def distances(one: pd.DataFrame, other: pd.DataFrame) -> dict[str, float]:
    """Return the mean Wasserstein-1 distance over the marginals, and over 200 directions."""
    turns = np.pi * np.arange(200) / 200
    directions = np.stack([np.cos(turns), np.sin(turns)])
    here, there = (frame[["x", "y"]].to_numpy(dtype=float) for frame in (one, other))
    sliced = [wasserstein_distance(here @ way, there @ way) for way in directions.T]
    marginal = [wasserstein_distance(here[:, place], there[:, place]) for place in range(2)]
    return {"marginal": statistics.mean(marginal), "sliced": statistics.mean(sliced)}


def fitted(way: str, steps: int | None, seed: int) -> tuple[pd.DataFrame, float, db.Plan]:
    """Return synthetic points, the seconds of the fit, and its plan."""
    method, settings = WAYS[way]
    own = settings | ({} if steps is None else {"steps": steps})
    spent = {} if method == "gan" else {"epsilon": EPSILON, "delta": DELTA}
    plan = db.plan(Schema.parse(SCHEMA), method=method, **spent, **own)
    with tempfile.TemporaryDirectory() as folder:
        ledger = db.Ledger.create(Path(folder) / "ledger", dataset="six-gaussians", epsilon=100.0, delta=1e-2)
        start = time.perf_counter()
        syn = db.fit(points(seed), plan, ledger=ledger, seed=seed, threads=torch.get_num_threads())
        return syn.sample(POINTS, seed=seed), time.perf_counter() - start, plan


def one_cell(way: str, steps: int | None, seed: int) -> dict[str, Any]:
    """Fit once and measure."""
    found: dict[str, Any] = {}
    if way == "real":
        made = points(1000 + seed)
    else:
        made, seconds, plan = fitted(way, steps, seed)
        epochs = plan.steps * (plan.sample_rate or 1.0)
        found = {"seconds": round(seconds, 1), "epochs": round(epochs, 1), "sigma": plan.noise_multiplier}
    return found | distances(made, points(2000 + seed))


def cells_of(options: argparse.Namespace) -> list[tuple[str, int | None, int]]:
    """Return what is asked for."""
    return [
        (way, steps, seed)
        for seed in options.seeds
        for way in options.ways
        for steps in ((None,) if way in WITHOUT_STEPS else options.steps)
    ]


def table() -> None:
    """Print the table: mean and range over seeds."""
    cells: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for entry in finished("gaussians"):
        cells.setdefault(tuple(entry["cell"][:2]), []).append(entry)
    print(f"Python {platform.python_version()}, torch {torch.__version__}, {torch.get_num_threads()} threads, CPU\n")
    print("| | critic steps | epochs | marginals | sliced | fit, s | seeds |")
    print("|---|--:|--:|--:|--:|--:|--:|")
    for (way, steps), entries in cells.items():
        figures = []
        for name in ("marginal", "sliced"):
            values = [entry[name] for entry in entries]
            figures.append(mean_and_range(values, ".4f"))
        seconds = statistics.mean(entry.get("seconds", 0) for entry in entries)
        rest = (steps or "–", entries[0].get("epochs", "–"), *figures, round(seconds), len(entries))
        print(f"| {way} | " + " | ".join(str(value) for value in rest) + " |")


def picture(seed: int, steps: int) -> None:
    """Draw kernel densities side by side, as the paper's figure 1 does, and distances against epochs below them."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    sets = {"real": points(seed)}
    sets |= {way: fitted(way, None if way in WITHOUT_STEPS else steps, seed)[0] for way in WAYS}
    across, down = np.meshgrid(np.linspace(0, 1, 100), np.linspace(0, 1, 100))
    figure = plt.figure(figsize=(3 * len(sets), 6.2), layout="constrained")
    grid = figure.add_gridspec(2, len(sets))
    for place, (name, frame) in enumerate(sets.items()):
        pane = figure.add_subplot(grid[0, place])
        density = gaussian_kde(frame[["x", "y"]].to_numpy(dtype=float)[:4000].T, bw_method=0.12)
        height = density(np.stack([across.ravel(), down.ravel()])).reshape(across.shape)
        pane.contourf(across, down, height, levels=14, cmap="Blues")
        pane.set(title=name if name in ("real", "gan") else f"{name}, ε = {EPSILON:g}", xticks=[], yticks=[])
        pane.set_aspect("equal")
    curves = figure.add_subplot(grid[1, :])
    for way in WAYS:
        entries = [entry for entry in finished("gaussians") if entry["cell"][0] == way and entry.get("epochs")]
        by_epoch = {e: [x["marginal"] for x in entries if x["epochs"] == e] for e in {x["epochs"] for x in entries}}
        at = sorted(by_epoch)
        if way not in WITHOUT_STEPS and at:
            curves.plot(at, [statistics.mean(by_epoch[epochs]) for epochs in at], marker="o", label=way)
    curves.set(xlabel="epochs", ylabel="Wasserstein distance, mean over marginals", ylim=(0, None))
    curves.legend(frameon=False)
    OUT.mkdir(exist_ok=True)
    figure.savefig(OUT / "gaussians.png", dpi=110)


def main() -> None:
    """Read the command line."""
    options = command_line(
        __doc__, ["run", "table", "picture"], seeds=[0, 1, 2], ways=some(["real", *WAYS]), steps=list(STEPS), threads=2,
    )  # fmt: skip
    torch.set_num_threads(options.threads)
    if options.verb == "run":
        measure("gaussians", by_cell(cells_of(options), one_cell))
    elif options.verb == "table":
        table()
    else:
        picture(options.seeds[0], max(options.steps))


if __name__ == "__main__":
    main()
