"""Wide tables and long lists of values: what a plan forecasts, what fitting and sampling take, and what is kept.

Made-up tables, of which every twelve columns follow from one number: whole numbers, heavy-tailed ones, categories and
yes or no. Beside them tables with one column of many declared values (Zipf). Time is that of the processor; run one
cell at a time for its peak of memory.

    python benchmarks/wide.py run [--sizes 100x5000 500x20000] [--values 5000]
    python benchmarks/wide.py table
"""

from __future__ import annotations

import importlib
import resource
import tempfile
import time
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import doublure as db
from command_line import command_line
from results import by_cell, finished, measure

EPSILON, DELTA = 1.0, 1e-6
SIZES = ("10x5000", "50x20000", "150x20000", "500x20000")
_BLOCK, _CELLS, _PAIRS = 12, 8, 400
_LISTED_ROWS = 20_000


def wide(columns: int, rows: int) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Return a table and what is declared of it."""
    draw = np.random.default_rng(0)
    hidden = draw.standard_normal((rows, -(-columns // _BLOCK)))
    frame, declared = {}, {}
    for number in range(columns):
        place = 0.8 * hidden[:, number // _BLOCK] + 0.6 * draw.standard_normal(rows)
        name, values = f"c{number}", 3 + number % 10 if number % 4 == 2 else 2
        if number % 4 == 0:
            frame[name] = np.round(50 + 15 * place).clip(0, 100).astype(int)
            declared[name] = {"type": "integer", "bounds": [0, 100]}
        elif number % 4 == 1:
            frame[name] = np.round(np.exp(8 + place)).clip(0, 1_000_000).astype(int)
            declared[name] = {"type": "integer", "bounds": [0, 1_000_000]}
        else:
            edges = np.quantile(place, np.linspace(0, 1, values + 1)[1:-1])
            frame[name] = np.array([f"v{code}" for code in range(values)])[np.searchsorted(edges, place)]
            declared[name] = {"type": "category", "values": [f"v{code}" for code in range(values)]}
    if columns > 3:
        declared["c3"]["roles"] = ["target"]
    return pd.DataFrame(frame), declared


def listed(values: int, rows: int) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Return a table with one long list of values."""
    draw = np.random.default_rng(0)
    shares = 1 / np.arange(1, values + 1)
    codes = draw.choice(values, rows, p=shares / shares.sum())
    names = np.array([f"k{code:05d}" for code in range(values)])
    frame = pd.DataFrame({"code": names[codes], "often": np.where(codes < values // 100, "yes", "no")})
    kinds: dict[str, list[str]] = {"code": names.tolist(), "often": ["yes", "no"]}
    return frame, {name: {"type": "category", "values": values} for name, values in kinds.items()}


def one_cell(kind: str, size: int, rows: int) -> dict[str, Any]:
    """Plan, fit, sample and measure; imports are no part of a fit."""
    importlib.import_module("doublure.methods.statistics.tables.fitting")
    frame, declared = {"columns": wide, "values": listed}[kind](size, rows)
    columns = {name: {**facts, "missing": False} for name, facts in declared.items()}
    schema = db.Schema.from_plain({"doublure": 1, "kind": "table", "units": rows, "columns": columns})
    plan = db.plan(schema, method="statistics", epsilon=EPSILON, delta=DELTA)
    with tempfile.TemporaryDirectory() as folder:
        ledger = db.Ledger.create(Path(folder) / "ledger", dataset="wide", epsilon=10.0, delta=0.1)
        began = time.process_time()
        synthesizer = db.fit(frame, plan, ledger=ledger, out=Path(folder) / "run", seed=0, threads=1)
        fitted = time.process_time()
        found = synthesizer.sample(rows, seed=0)
        sampled = time.process_time()
        size = (Path(folder) / "run" / "generator.safetensors").stat().st_size
    return {
        "forecast_seconds": plan.seconds_estimate,
        "fit_seconds": round(fitted - began, 1),
        "sample_seconds": round(sampled - fitted, 1),
        "forecast_gigabytes": round(plan.memory_bytes / 1e9, 2),
        "peak_gigabytes": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6, 2),
        "generator_megabytes": round(size / 1e6, 1),
        **distances(frame, found),
    }


def distances(real: pd.DataFrame, made: pd.DataFrame) -> dict[str, float]:
    """Return the mean total variation of columns, of pairs of one block and of any pairs, in quantile cells."""
    codes = [_coded(real[name], made[name]) for name in real.columns]
    count = len(codes)
    every = list(combinations(range(count), 2))
    some = [every[at] for at in np.random.default_rng(0).permutation(len(every))[:_PAIRS]]
    sets = {
        "one_way": [(place,) for place in range(count)],
        "two_way_block": [pair for pair in every if pair[0] // _BLOCK == pair[1] // _BLOCK],
        "two_way_any": some,
    }
    return {name: round(float(np.mean([_apart(codes, each) for each in own])), 4) for name, own in sets.items()}


def _apart(codes: list[tuple[Any, Any]], places: tuple[int, ...]) -> float:
    keys = []
    for side in (0, 1):
        key = np.zeros(len(codes[0][side]), dtype=np.int64)
        for place in places:
            key = key * (1 + max(int(own.max()) for own in codes[place])) + codes[place][side]
        keys.append(key)
    both = np.unique(np.concatenate(keys), return_inverse=True)[1]
    shares = [np.bincount(own, minlength=int(both.max()) + 1) / len(own) for own in np.split(both, [len(keys[0])])]
    return 0.5 * float(np.abs(shares[0] - shares[1]).sum())


def _coded(real: pd.Series[Any], made: pd.Series[Any]) -> tuple[Any, Any]:
    if pd.api.types.is_numeric_dtype(real):
        edges = np.unique(np.quantile(real, np.linspace(0, 1, _CELLS + 1)[1:-1]))
        return tuple(np.searchsorted(edges, each.to_numpy(dtype=float), "right") for each in (real, made))
    both = np.unique(np.concatenate([real.astype(str), made.astype(str)]), return_inverse=True)[1]
    return both[: len(real)], both[len(real) :]


def main() -> None:
    given = command_line(
        __doc__, ["run", "table"], sizes=dict(nargs="*", default=list(SIZES)),
        values=dict(type=int, nargs="*", default=[5000]),
    )  # fmt: skip
    if given.verb == "table":
        for row in finished("wide"):
            print("  ".join(f"{key} {value}" for key, value in row.items()))
        return
    sizes = [tuple(int(part) for part in size.split("x")) for size in given.sizes]
    cells = [("columns", *size) for size in sizes] + [("values", size, _LISTED_ROWS) for size in given.values]
    measure("wide", by_cell(cells, one_cell))


if __name__ == "__main__":
    main()
