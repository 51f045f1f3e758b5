"""What one record's absence changes, by fitting again without it: the direct route of Triastcyn & Faltings 2019, §4.2.

    python benchmarks/retraining.py run --epsilon 1 10
    python benchmarks/retraining.py table

The paper finds it too dear for a GAN and takes synthetic neighbours of a record away instead. ``statistics`` fits 500
rows of four of Adult's columns in a quarter of a second, so that it is done here as the paper has it: fit on all rows,
fit without one row drawn at random, and estimate the Kullback-Leibler divergence of what both make, and the largest
privacy loss of any row (step 4). Rows have 320 possible values, so that their shares are estimated as such, from
20,000 synthetic rows a fit.

Fits draw fresh noise. Two on the very same rows differ as well, and by how much is measured beside it with as many more
fits on all rows; the reference is the mean of a third set of them. A record's absence can be told where the fits
without one differ from the reference by more than those do: by the area under ROC, .5 where it cannot.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import torch

import adult
import doublure as db
from command_line import command_line, told
from doublure.intervals import delong
from doublure.measures.expected_loss import PAPER_GAMMA, chebyshev, reachable, saw_yang_mo
from doublure.schema import Schema
from results import Case, by_cell, finished, measure

Floats: TypeAlias = "np.ndarray[Any, np.dtype[np.float64]]"

COLUMNS = ("education", "race", "sex", "income")
DELTA, MADE = 1e-5, 20_000
_UNSEEN = 0.5  # rows that a value counts as having had, so that none has a share of zero


def one_cell(rows: int, fits: int, epsilon: float, seed: int) -> dict[str, Any]:
    """Fit on all rows and without one, and compare."""
    start = time.process_time()
    private = adult.balanced(db.datasets.load_adult("train"))[list(COLUMNS)].iloc[:rows].reset_index(drop=True)
    absent = np.random.default_rng(seed).permutation(rows)[:fits]
    plain = adult.schema_for("categorical", rows).to_plain()
    schema = Schema.from_plain(plain | {"columns": {name: plain["columns"][name] for name in COLUMNS}})
    with tempfile.TemporaryDirectory() as folder:
        ledger = db.Ledger.create(Path(folder) / "ledger", dataset="adult", epsilon=1e6, delta=0.1)

        def shares(frame: pd.DataFrame) -> Floats:
            """Fit, and return the share of every value that a row can have."""
            plan = db.plan(schema, method="statistics", epsilon=epsilon, delta=DELTA)
            made = db.fit(frame, plan, ledger=ledger, again=True, threads=1).sample(MADE, seed=seed)
            return _shares(schema, made)

        reference = np.mean([shares(private) for _ in absent], axis=0)
        again = [shares(private) for _ in absent]
        without = [shares(private.drop(index=row).reset_index(drop=True)) for row in absent]
    found = {name: _losses(reference, own) for name, own in (("again", again), ("without", without))}
    told = np.repeat([True, False], fits)
    area, interval = delong(told, np.concatenate([found["without"]["losses"], found["again"]["losses"]]))
    return {**found, "auc": area, "interval": interval, "cpu_seconds": round(time.process_time() - start)}


def _shares(schema: Schema, frame: pd.DataFrame) -> Floats:
    """Return the share of each combination of values, ``(cells,)``, none of them zero."""
    domains = [list(getattr(schema.columns[name], "domain", ())) for name in COLUMNS]
    places = [
        pd.Categorical(frame[name].astype(str), categories=[str(value) for value in domain]).codes
        for name, domain in zip(COLUMNS, domains, strict=True)
    ]
    sizes = [len(domain) for domain in domains]
    counts = np.bincount(np.ravel_multi_index(places, sizes), minlength=int(np.prod(sizes))) + _UNSEEN
    return np.asarray(counts / counts.sum())


def _losses(reference: Floats, fits: Sequence[Floats]) -> dict[str, Any]:
    """Return each fit's expected and largest loss, and what the paper makes of the expected ones."""
    ratios = [np.log(reference / own) for own in fits]
    losses = np.array([float((reference * ratio).sum()) for ratio in ratios])
    return {
        "losses": losses.tolist(),
        "mean": float(losses.mean()),
        "largest": max(float(np.abs(ratio).max()) for ratio in ratios),
        "mu": saw_yang_mo(losses, reachable(len(losses))),
        "mu_paper": chebyshev(losses, PAPER_GAMMA),
    }


def cases(options: argparse.Namespace) -> Iterator[Case]:
    """Yield what is asked for."""
    return by_cell(((options.rows, options.fits, epsilon, options.seed) for epsilon in options.epsilon), one_cell)


def table() -> None:
    """Print the results as Markdown."""
    print(
        "| rows | fits | ε | what | mean loss, nats | μ at 1/(N + 1) | μ at 1e-5 | largest loss of a row | told apart |"
    )
    print("|--:|--:|--:|---|--:|--:|--:|--:|---|")
    for row in finished("retraining"):
        rows, fits, epsilon, _ = row["cell"]
        low, high = row["interval"]
        for name, said in (("again", "all rows, fitted again"), ("without", "without one row")):
            own = row[name]
            figures = [f"{own[key]:.4f}" for key in ("mean", "mu", "mu_paper", "largest")]
            apart = f"{row['auc']:.3f} ({low:.3f} to {high:.3f})" if name == "without" else "–"
            print("|", " | ".join([str(rows), str(fits), f"{epsilon:g}", said, *figures, apart]), "|")


def main() -> None:
    """Read the command line."""
    options = command_line(
        __doc__, ["run", "table"], rows=500, fits=told(20, "of each kind"), epsilon=[1.0, 10.0], seed=0,
    )  # fmt: skip
    torch.set_num_threads(1)
    if options.verb == "table":
        table()
    else:
        measure("retraining", cases(options))


if __name__ == "__main__":
    main()
