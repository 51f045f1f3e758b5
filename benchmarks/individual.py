"""Individual privacy accounting: the same ε with each row charged for itself, and with all rows charged at C.

    python benchmarks/individual.py run --seeds 0 1 2
    python benchmarks/individual.py run --seeds 10 --bounds 1 4 16      # other seeds choose C
    python benchmarks/individual.py table

``dpgan`` on 300 of the mushrooms (``mushrooms.py``), ε = 8, δ = 1e-5, add/remove of one row. ``individual`` takes all
rows in each of 3 B steps, and uses each until its own loss is that of B steps at C; ``worst-case`` takes B such steps,
``longer`` 3 B at the noise that they need, ``lots`` 3 B Poisson lots of 100. Accuracy is that of a random forest that
learned from 300 synthetic rows, on the real rows that test there.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import torch

import doublure as db
from command_line import command_line, some, told
from doublure.schema import Schema
from mushrooms import DELTA, EPSILON, accuracy, rows, schema
from results import by_cell, finished, mean_and_range, measure

ROWS, BOUND = 300, 50
WAYS: dict[str, dict[str, Any]] = {
    "worst-case": {"lot_size": ROWS, "steps": BOUND},
    "longer": {"lot_size": ROWS, "steps": 3 * BOUND},
    "lots": {"lot_size": 100, "steps": 3 * BOUND},
    "individual": {"accounting": "individual", "filter_steps": BOUND, "steps": 3 * BOUND},
}


def one_cell(way: str, bound: float, seed: int) -> dict[str, Any]:
    """Fit once and measure."""
    train = rows()[0].sample(ROWS, random_state=0).reset_index(drop=True)
    own = Schema.from_plain(schema().to_plain() | {"units": ROWS})
    plan = db.plan(own, method="dpgan", epsilon=EPSILON, delta=DELTA, max_grad_norm=bound, **WAYS[way])
    with tempfile.TemporaryDirectory() as folder:
        ledger = db.Ledger.create(Path(folder) / "ledger", dataset="mushroom", epsilon=100.0, delta=0.01)
        start = time.process_time()
        syn = db.fit(train, plan, ledger=ledger, seed=seed, threads=1)
        seconds = time.process_time() - start
    return {
        "accuracy": accuracy(syn.sample(ROWS, seed=seed), seed),
        "epsilon": plan.epsilon,
        "delta": plan.delta,
        "sigma": plan.noise_multiplier,
        "steps": plan.steps,
        "cpu_seconds": round(seconds, 1),
    }


def table() -> None:
    """Print accuracies by C and way."""
    found = finished("individual")
    print("| C | way | accuracy | σ | T | CPU s | seeds |\n|--:|---|--:|--:|--:|--:|---|")
    for bound, way in sorted({(row["cell"][1], row["cell"][0]) for row in found}):
        own = [row for row in found if row["cell"][:2] == [way, bound]]
        shown = [f"{bound:g}", way, mean_and_range([row["accuracy"] for row in own], ".3f"), f"{own[0]['sigma']:.2f}"]
        shown += [str(own[0]["steps"]), mean_and_range([row["cpu_seconds"] for row in own], ".0f")]
        print("|", " | ".join(shown), "|", ", ".join(str(row["cell"][2]) for row in own), "|")


def main() -> None:
    """Read the command line."""
    options = command_line(__doc__, ["run", "table"], ways=some(WAYS), bounds=told([4.0], "C"), seeds=[0, 1, 2])
    torch.set_num_threads(1)
    if options.verb == "run":
        cells = [(way, bound, seed) for seed in options.seeds for bound in options.bounds for way in options.ways]
        measure("individual", by_cell(cells, one_cell))
    else:
        table()


if __name__ == "__main__":
    main()
