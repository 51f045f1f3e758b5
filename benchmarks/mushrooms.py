"""Mushrooms (Frigerio et al. 2019, §6.4): 22 categorical features, σ = 7, with clipping decay and without.

    python benchmarks/mushrooms.py run             # resumable: finished cells are skipped
    python benchmarks/mushrooms.py run --ways gan dpgan:1.0 dpgan:0.5 --seeds 0 1 2
    python benchmarks/mushrooms.py table           # accuracy, and the effect of decay at the same σ with its interval

A fixed three quarters of UCI Mushroom are the private data, the rest tests. σ = 7 is held for every decay; the steps
are as many as ε = 8 has room for at that σ and the default sampling rate (δ = 1e-5, add/remove of one row, every noisy
step counted), so that all private lines have the same ε. The paper stops by an ε that its Algorithm 1 updates once an
iteration of the generator, after N_disc · b noisy steps of the critic, each of which Theorem 4.1 would have it add up.
Accuracy is that of a random forest (100 trees) trained on as many synthetic rows.
"""

from __future__ import annotations

import platform
import statistics
import tempfile
import time
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from sklearn.ensemble import RandomForestClassifier

import doublure as db
from command_line import command_line, some
from doublure.schema import Schema
from results import by_cell, finished, interval, mean_and_range, measure

SHARED = Path(__file__).resolve().parents[1].parent / "shared" / "data" / "mushroom.csv.gz"
SCHEMA = Path(__file__).resolve().parents[1] / "examples" / "schemas" / "mushroom.schema.yaml"
EPSILON, DELTA = 8.0, 1e-5
STEPS = 1091
"""The most steps that ε = 8 has room for at σ = 7 (6.997) and the default sampling rate; the table prints σ."""

DECAYS = (1.0, 0.5, 0.25, 0.1)
WAYS = ("real", "gan", *(f"dpgan:{decay}" for decay in DECAYS), "statistics")
PAPER = {"gan": 0.95, "dpgan:1.0": 0.92, "dpgan:0.5": 0.94}


@cache
def rows() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the rows to learn from and those that test."""
    frame = pd.read_csv(SHARED, keep_default_na=False, dtype=str) if SHARED.is_file() else db.datasets.load("mushroom")
    frame = pd.DataFrame(frame)
    aside = np.random.default_rng(0).permutation(len(frame)) % 4 == 0
    return frame[~aside].reset_index(drop=True), frame[aside].reset_index(drop=True)


def schema() -> Schema:
    """Return the example schema with the number of rows that are learned from."""
    return Schema.from_plain(Schema.load(SCHEMA).to_plain() | {"units": len(rows()[0])})


def accuracy(trained: pd.DataFrame, seed: int) -> float:
    """Return the share of real test rows that a forest gets right."""
    _, test = rows()
    names = [name for name in test if name != "class"]
    plain = [frame[names].astype(object).fillna("?").astype(str) for frame in (trained, test)]
    values = {name: sorted({*plain[0][name], *plain[1][name]}) for name in names}
    coded = [pd.DataFrame({name: pd.Categorical(frame[name], values[name]).codes for name in names}) for frame in plain]
    forest = RandomForestClassifier(n_estimators=100, random_state=seed).fit(coded[0], trained["class"].astype(str))
    return float(forest.score(coded[1], test["class"].astype(str)))


def one_cell(way: str, seed: int) -> dict[str, Any]:
    """Fit once and measure."""
    train, _ = rows()
    if way == "real":
        return {"accuracy": accuracy(train, seed)}
    method, _, decay = way.partition(":")
    budget: dict[str, Any] = {} if method == "gan" else {"epsilon": EPSILON, "delta": DELTA}
    own: dict[str, Any] = {"steps": STEPS, "clipping_decay": float(decay)} if method == "dpgan" else {}
    plan = db.plan(schema(), method=method, **budget, **own)
    with tempfile.TemporaryDirectory() as folder:
        ledger = db.Ledger.create(Path(folder) / "ledger", dataset="mushroom", epsilon=100.0, delta=0.01)
        start, used = time.perf_counter(), time.process_time()
        syn = db.fit(train, plan, ledger=ledger, seed=seed, threads=torch.get_num_threads())
        seconds, processor = time.perf_counter() - start, time.process_time() - used
    return {
        "accuracy": accuracy(syn.sample(len(train), seed=seed), seed),
        "epsilon": plan.epsilon,
        "sigma": plan.noise_multiplier,
        "sample_rate": plan.sample_rate,
        "steps": plan.steps,
        "epochs": round((plan.steps or 0) * (plan.sample_rate or 0.0), 1),
        "seconds": round(seconds, 1),
        "processor_seconds": round(processor, 1),
    }


def table() -> None:
    """Print accuracies, and what decay changes at the same σ: the mean over seeds and its 95 % interval."""
    found = finished("mushrooms")
    by_way = {way: {e["cell"][1]: e for e in found if e["cell"][0] == way} for way in WAYS}
    print(f"Python {platform.python_version()}, torch {torch.__version__}, {torch.get_num_threads()} threads, CPU\n")
    print("| | ε | σ | steps | accuracy | paper | less decay 1, same seeds | seconds | seeds |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|--:|")
    for way, entries in by_way.items():
        if not entries:
            continue
        values = [entry["accuracy"] for entry in entries.values()]
        first = next(iter(entries.values()))
        plain = by_way["dpgan:1.0"]
        effect = "–"
        if way.startswith("dpgan") and way != "dpgan:1.0":
            effect = interval([e["accuracy"] - plain[seed]["accuracy"] for seed, e in entries.items() if seed in plain])
        cells = [way, first.get("epsilon") or "–", _short(first.get("sigma")), first.get("steps") or "–"]
        cells += [mean_and_range(values, ".4f"), PAPER.get(way, "–"), effect]
        cells += [round(statistics.mean(e.get("processor_seconds", 0) for e in entries.values())), len(values)]
        print("| " + " | ".join(str(cell) for cell in cells) + " |")


def _short(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def main() -> None:
    """Read the command line."""
    options = command_line(__doc__, ["run", "table"], ways=some(WAYS), seeds=[0, 1, 2], threads=2)
    torch.set_num_threads(options.threads)
    if options.verb == "run":
        cells = [(way, seed) for seed in options.seeds for way in options.ways]
        measure("mushrooms", by_cell(cells, one_cell))
    else:
        table()


if __name__ == "__main__":
    main()
