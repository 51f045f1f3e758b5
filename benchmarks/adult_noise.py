"""Adult: accuracy against noise, five runs each, with a grid-searched forest (Frigerio et al. 2019, Figure 4).

    python benchmarks/adult_noise.py run              # resumable: finished cells are skipped
    python benchmarks/adult_noise.py table

As in ``adult.py`` (Frigerio's protocol, the nine categorical columns, class-balanced rows), ``dpgan`` with its default
settings; only the noise differs. σ follows from ε (δ = 1e-5, every noisy step counted), and both are printed. The
forest's grid is searched anew for each run, by three-fold cross-validation on the synthetic rows it learns from: the
real test rows are looked at once.
"""

from __future__ import annotations

import platform
import tempfile
import time
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import GridSearchCV

import doublure as db
from adult import DELTA, balanced, features, official_test, schema_for
from command_line import command_line
from doublure.schema import ResolvedSchema
from results import by_cell, finished, interval, mean_and_range, measure

EPSILONS = (0.5, 1.0, 3.0, 7.0, 15.0)
GRID = {"max_depth": [8, 16, None], "min_samples_leaf": [1, 5, 20], "max_features": ["sqrt", 0.5]}


def searched(
    schema: ResolvedSchema, trained: pd.DataFrame, test: pd.DataFrame, seed: int
) -> tuple[float, dict[str, Any]]:
    """Return a grid-searched forest's accuracy on real test rows, and what the search chose."""
    x, y = features(schema, trained)
    x_test, y_test = features(schema, test)
    forest = RandomForestClassifier(n_estimators=100, random_state=seed)
    found = GridSearchCV(forest, GRID, cv=3).fit(x, y)
    return float(found.score(x_test, y_test)), dict(found.best_params_)


def one_cell(epsilon: float | None, seed: int) -> dict[str, Any]:
    """Fit once and measure; no ε stands for the real rows."""
    train, test = balanced(db.datasets.load_adult("train")), balanced(official_test())
    schema = schema_for("categorical", len(train))
    if epsilon is None:
        accuracy, chosen = searched(schema.resolve({}), train, test, seed)
        return {"forest": accuracy, "chosen": chosen}
    plan = db.plan(schema, method="dpgan", epsilon=epsilon, delta=DELTA)
    with tempfile.TemporaryDirectory() as folder:
        ledger = db.Ledger.create(Path(folder) / "ledger", dataset="adult-balanced", epsilon=100.0, delta=0.01)
        start = time.process_time()
        syn = db.fit(train, plan, ledger=ledger, seed=seed, threads=torch.get_num_threads())
        processor = time.process_time() - start
    accuracy, chosen = searched(syn.schema, syn.sample(len(train), seed=seed), test, seed)
    noise = {"sigma": plan.noise_multiplier, "steps": plan.steps, "sample_rate": plan.sample_rate}
    return {"forest": accuracy, "chosen": chosen} | noise | {"processor_seconds": round(processor, 1)}


def table() -> None:
    """Print accuracy by noise: mean, range, and what is lost to the real rows with its 95 % interval."""
    found = {tuple(entry["cell"]): entry for entry in finished("adult_noise")}
    real = {seed: entry["forest"] for (epsilon, seed), entry in found.items() if epsilon is None}
    print(f"Python {platform.python_version()}, torch {torch.__version__}, {torch.get_num_threads()} threads, CPU\n")
    print("| ε | σ | forest | less real, same seeds | runs |")
    print("|--:|--:|--:|--:|--:|")
    for epsilon in sorted({epsilon for epsilon, _ in found}, key=lambda value: value or 0.0):
        entries = {seed: entry for (own, seed), entry in found.items() if own == epsilon}
        values = [entry["forest"] for entry in entries.values()]
        lost = [entry["forest"] - real[seed] for seed, entry in entries.items() if seed in real]
        sigma = next(iter(entries.values())).get("sigma")
        cells = [epsilon or "real rows", "–" if sigma is None else f"{sigma:.2f}"]
        cells += [mean_and_range(values, ".4f")]
        cells += ["–" if epsilon is None else interval(lost), len(values)]
        print("| " + " | ".join(str(cell) for cell in cells) + " |")


def main() -> None:
    """Read the command line."""
    options = command_line(__doc__, ["run", "table"], epsilons=list(EPSILONS), seeds=[0, 1, 2, 3, 4], threads=2)
    torch.set_num_threads(options.threads)
    if options.verb == "run":
        cells = [(epsilon, seed) for seed in options.seeds for epsilon in (None, *options.epsilons)]
        measure("adult_noise", by_cell(cells, one_cell))
    else:
        table()


if __name__ == "__main__":
    main()
