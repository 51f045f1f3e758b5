"""Frigerio's protocol on UCI Adult (Frigerio et al. 2019, Table 1), with honest accounting.

The class-balanced training file (15,682 rows) is the private data set; a random forest is trained on as many synthetic
rows and tested on the class-balanced official test rows (7,692); accuracy is shown as a share of what the same forest
reaches when trained on the real rows. Two column sets: the nine categorical ones (the paper's), and all fifteen.

    python benchmarks/adult.py table                     # the tables of docs/evidence/journal/adult.md
    python benchmarks/adult.py run --file adult.jsonl    # measures its cells anew, into a file of yours
    python benchmarks/adult.py run --file adult.jsonl --cell statistics:1.0:1.0 --seeds 0
    python benchmarks/adult.py run                       # measures what no row is kept of, into the kept rows

Settings were chosen on other seeds with a quarter of the training rows held out (``--tune``); the official test rows
were not looked at.
"""

from __future__ import annotations

import argparse
import itertools
import json
import platform
import statistics
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.metrics import roc_auc_score

import doublure as db
from command_line import command_line, some, told
from doublure.schema import ResolvedSchema, Schema
from results import Case, finished, mean_and_range, measure

SHARED = Path(__file__).resolve().parents[1].parent / "shared" / "data"
DELTA = 1e-5
CATEGORICAL = (
    "workclass",
    "education",
    "marital-status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "native-country",
    "income",
)
PAPER = {("gan", None, 1.0): 0.994}
PAPER |= {
    ("dpgan", 3.0, 1.0): 0.955,
    ("dpgan", 3.0, 0.5): 0.975,
    ("dpgan", 7.0, 1.0): 0.972,
    ("dpgan", 7.0, 0.5): 0.984,
}
OURS = [(method, epsilon, 1.0) for method in ("statistics", "guided") for epsilon in (0.3, 1.0, 3.0, 7.0)]
CELLS = [*PAPER, *OURS]
REAL = ("real", None, 1.0)


def balanced(frame: pd.DataFrame, seed: int = 0) -> pd.DataFrame:
    """Return all rows of the rarer class and as many of the other. The result is what is treated as private."""
    rich = frame[frame["income"] == ">50K"]
    poor = frame[frame["income"] != ">50K"].sample(len(rich), random_state=seed)
    return pd.concat([rich, poor]).sample(frac=1, random_state=seed).reset_index(drop=True)


def official_test() -> pd.DataFrame:
    """Return the official test split: from shared data if present, else downloaded."""
    local = SHARED / "adult_test.csv.gz"
    return pd.read_csv(local, keep_default_na=False) if local.is_file() else db.datasets.load_adult("test")


def schema_for(columns: str, units: int) -> Schema:
    """Return Adult's schema for a column set; balanced classes need no shares."""
    plain = Schema.load(db.datasets.adult_schema_path()).to_plain()
    plain["units"] = units
    plain["columns"]["income"].pop("shares", None)
    if columns == "categorical":
        plain["columns"] = {name: plain["columns"][name] for name in CATEGORICAL}
        plain.pop("constraints", None)
    return Schema.from_plain(plain)


def features(schema: ResolvedSchema, frame: pd.DataFrame) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return codes of discrete columns and plain numbers, and the label."""
    columns = []
    for name, column in schema.columns.items():
        if name == "income":
            continue
        if column.bounded:
            columns.append(frame[name].to_numpy(dtype=float))
        else:
            columns.append(_places(column, frame[name]).astype(float))
    return np.stack(columns, axis=1), (frame["income"].astype(str) == ">50K").to_numpy()


def _places(column: Any, values: pd.Series[Any]) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return each value's place in a discrete column's list, -1 for a missing one."""
    places = {str(value): place for place, value in enumerate(column.domain)}
    return values.astype(str).map(places).fillna(-1).to_numpy(dtype=np.int64)


def scores(schema: ResolvedSchema, trained: pd.DataFrame, test: pd.DataFrame, seed: int) -> dict[str, float]:
    """Return the forest's accuracy and the boosting's AUC on real test rows."""
    x, y = features(schema, trained)
    x_test, y_test = features(schema, test)
    forest = RandomForestClassifier(n_estimators=100, random_state=seed, n_jobs=2).fit(x, y)
    boosting = HistGradientBoostingClassifier(random_state=seed).fit(x, y)
    return {
        "forest": float(forest.score(x_test, y_test)),
        "boosting_auc": float(roc_auc_score(y_test, boosting.predict_proba(x_test)[:, 1])),
    }


def two_way(schema: ResolvedSchema, one: pd.DataFrame, other: pd.DataFrame) -> float:
    """Return the mean total variation over all pairs of columns, numbers in 20 public bins."""
    coded = [_codes(schema, frame) for frame in (one, other)]
    distances = []
    for left, right in itertools.combinations(range(coded[0].shape[1]), 2):
        width = 1 + max(int(codes[:, right].max()) for codes in coded)
        size = width * (1 + max(int(codes[:, left].max()) for codes in coded))
        cells = [np.bincount(codes[:, left] * width + codes[:, right], minlength=size) / len(codes) for codes in coded]
        distances.append(0.5 * float(np.abs(cells[0] - cells[1]).sum()))
    return statistics.mean(distances)


def _codes(schema: ResolvedSchema, frame: pd.DataFrame) -> np.ndarray[Any, np.dtype[np.int64]]:
    columns = []
    for name, column in schema.columns.items():
        if column.bounded:
            edges = column.bins(20).edges
            columns.append(
                np.clip(np.searchsorted(edges, frame[name].to_numpy(dtype=float), "right") - 1, 0, len(edges) - 2)
            )
        else:
            columns.append(_places(column, frame[name]) + 1)
    return np.stack(columns, axis=1)


def one_cell(
    columns: str, cell: tuple[str, float | None, float], seed: int, settings: dict[str, Any], tune: bool, threads: int
) -> dict[str, Any]:
    """Fit one cell and measure it."""
    method, epsilon, decay = cell
    train = balanced(db.datasets.load_adult("train"))
    test = balanced(official_test()) if not tune else train.iloc[len(train) * 3 // 4 :].reset_index(drop=True)
    train = train if not tune else train.iloc[: len(train) * 3 // 4]
    schema = schema_for(columns, len(train))
    budget = {} if epsilon is None else {"epsilon": epsilon, "delta": DELTA}
    own = dict(settings) | ({"clipping_decay": decay} if method == "dpgan" and decay != 1 else {})
    plan = db.plan(schema, method=method, **budget, **own)
    with tempfile.TemporaryDirectory() as folder:
        ledger = db.Ledger.create(Path(folder) / "ledger", dataset="adult-balanced", epsilon=100.0, delta=0.01)
        start, used = time.perf_counter(), time.process_time()
        syn = db.fit(train, plan, ledger=ledger, seed=seed, threads=threads)
        seconds, processor = time.perf_counter() - start, time.process_time() - used
    artificial = syn.sample(len(train), seed=seed)
    clipped = {name: col for name, col in syn.schema.columns.items() if name in train}
    return {
        **scores(syn.schema, artificial, test, seed),
        "two_way": two_way(syn.schema, artificial[list(clipped)], train[list(clipped)]),
        "seconds": round(seconds, 1),
        "processor_seconds": round(processor, 1),
        "noise_multiplier": plan.noise_multiplier,
        "steps": plan.steps,
        "sample_rate": plan.sample_rate,
        "delta": plan.delta,
    }


def real_cell(columns: str, seed: int) -> dict[str, Any]:
    """Measure the same classifiers trained on the real rows."""
    train, test = balanced(db.datasets.load_adult("train")), balanced(official_test())
    schema = schema_for(columns, len(train)).resolve({"columns.fnlwgt.bounds": (0, 1_500_000)})
    apart = two_way(schema, test[list(schema.columns)], train[list(schema.columns)])
    return {**scores(schema, train, test, seed), "two_way": apart}


def cases(arguments: argparse.Namespace) -> Iterator[Case]:
    """Yield what is asked for."""
    settings = json.loads(arguments.settings)
    for seed, columns in itertools.product(arguments.seeds, arguments.columns):
        if not arguments.tune:
            yield key_of(columns, REAL, seed, {}, False), partial(real_cell, columns, seed)
        for cell in CELLS:
            named = f"{cell[0]}:{cell[1]}:{cell[2]}" in arguments.cell if arguments.cell else cell[0] != "guided"
            if not named:  # guided, of which no table tells, is measured where a cell names it
                continue
            own = settings if cell[0] in ("dpgan", "guided") else {}
            fit = partial(one_cell, columns, cell, seed, own, arguments.tune, arguments.threads)
            yield key_of(columns, cell, seed, own, arguments.tune), fit


def key_of(
    columns: str, cell: tuple[str, float | None, float], seed: int, settings: dict[str, Any], tune: bool
) -> dict[str, Any]:
    """Return what tells a result from all others."""
    method, epsilon, decay = cell
    return {
        "columns": columns,
        "method": method,
        "epsilon": epsilon,
        "decay": decay,
        "seed": seed,
        "settings": settings,
        "tune": tune,
    }


def run(arguments: argparse.Namespace) -> None:
    """Measure what is not measured yet."""
    shown = ("columns", "method", "epsilon", "decay", "seed", "forest", "boosting_auc", "two_way", "seconds")
    measure(
        "adult", cases(arguments), lambda row: json.dumps({key: row.get(key) for key in shown}), file=arguments.file
    )


def table(arguments: argparse.Namespace) -> None:
    """Print the table: mean over seeds, and the range."""
    results = [r for r in finished("adult", arguments.file) if r["tune"] == arguments.tune]
    print(f"Python {platform.python_version()}, torch {torch.__version__}, {torch.get_num_threads()} threads, CPU\n")
    print("| columns | method | ε | decay | forest | share of real | paper | AUC | two-way | seconds |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for columns in arguments.columns:
        real = [r["forest"] for r in results if r["columns"] == columns and r["method"] == "real"]
        for key in [REAL, *CELLS]:
            rows = [r for r in results if r["columns"] == columns and (r["method"], r["epsilon"], r["decay"]) == key]
            if not rows:
                continue
            forest = [r["forest"] for r in rows]
            share = statistics.mean(forest) / statistics.mean(real) if real else float("nan")
            cells = [columns, key[0], key[1] or "–", key[2] if key[0] == "dpgan" else "–"]
            cells += [
                f"{mean_and_range(forest, '.4f')}, {len(rows)} seeds",
                f"{share:.3f}",
            ]
            cells += [PAPER.get(key, "–"), f"{statistics.mean(r['boosting_auc'] for r in rows):.3f}"]
            cells += [f"{statistics.mean(r['two_way'] for r in rows):.3f}"]
            cells += [f"{statistics.mean(r.get('seconds', 0) for r in rows):.0f}"]
            print("| " + " | ".join(str(cell) for cell in cells) + " |")


def main() -> None:
    """Read the command line."""
    arguments = command_line(
        __doc__, ["run", "table"], seeds=[0, 1, 2], columns=some(["categorical", "all"]),
        cell=dict(nargs="+", help="method:epsilon:decay, such as dpgan:3.0:1.0"),
        settings=told("{}", "JSON settings of dpgan or guided, for tuning"),
        tune=told(False, "hold out a quarter of the training rows instead of the test rows"), threads=2,
        file=dict(type=Path, help="rows that are read and written instead of the kept ones"),
    )  # fmt: skip
    (run if arguments.verb == "run" else table)(arguments)


if __name__ == "__main__":
    main()
