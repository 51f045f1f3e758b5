"""ε_μ over the steps of a fit of ``bayesgan``: what the Bayesian accountant sees in the paper's own regime.

    python benchmarks/bayesian_regime.py run --data mnist --epsilon 2 --threads 1 --seeds 0 --set recipe=paper …
    python benchmarks/bayesian_regime.py table
    python benchmarks/bayesian_regime.py axis        # accuracy against ε_μ over the steps, of the rows in images.jsonl

Takes what ``images.py`` takes, fits and scores as it does (its row goes to ``measured/images.jsonl``), and keeps beside
it, every hundred steps of the critic, the ε_μ so far at δ_μ = 1e-10 and how long the sampled gradient distances were,
in shares of the longest there can be. A fit that was cut off goes on; steps that were lost then count as the longest.

ε_μ so far is the critic's alone, with the confidence of all planned steps; the annotator's share comes on top. The
worst case beside is the plan's, at its end.

``axis`` sets accuracy against ε_μ: each line is a fit of its own, planned for so many steps, as a release would be.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

import images
from bayesian_rows import DELTA_MU
from doublure.private.bayesian import BayesianAccountant
from results import add, finished, known, measure

NAME = "bayesian_regime"
EVERY = 100


@contextmanager
def watched(cell: Mapping[str, Any]) -> Iterator[None]:
    """Keep what each accountant that is fed meanwhile has come to, every hundred steps."""
    step, seen = BayesianAccountant.step, []

    def fed(accountant: BayesianAccountant, distances: Any, *given: Any, **named: Any) -> None:
        step(accountant, distances, *given, **named)
        if accountant.total_steps < EVERY:
            return  # a rehearsal, on no record
        seen.extend(distances)
        taken = accountant.steps_taken
        if taken % EVERY and taken != accountant.total_steps:
            return
        key = {**cell, "step": taken}
        if not known(NAME, key):
            lengths = np.asarray(seen)
            found = {"median": float(np.median(lengths)), "largest": float(lengths.max()), "distances": len(lengths)}
            add(NAME, {**key, "steps": accountant.total_steps, "epsilon_mu": accountant.epsilon(DELTA_MU), **found})
        seen.clear()

    BayesianAccountant.step = fed  # type: ignore[method-assign]
    try:
        yield
    finally:
        BayesianAccountant.step = step  # type: ignore[method-assign]


def table() -> None:
    """Print ε_μ over the steps of each fit."""
    print("| data | settings | seed | step | of | ε_μ so far | median distance | longest |")
    print("|---|---|--:|--:|--:|--:|--:|--:|")
    for row in finished(NAME):
        data, chosen, seed = row["cell"]
        lengths = f"{row['median']:.2g} | {row['largest']:.2g}"
        print(f"| {data} | {chosen} | {seed} | {row['step']} | {row['steps']} | {row['epsilon_mu']:.3g} | {lengths} |")


def axis() -> None:
    """Print accuracy against ε_μ of fits that differ in their steps alone."""
    print("| data | steps | images | accuracy | ε_μ | at λ | of it -ln δ/λ | distances decide it | worst case |")
    print("|---|--:|--:|--:|--:|--:|--:|---|--:|")
    for row in sorted(_fits(), key=lambda row: (row["cell"][0], _steps(row))):
        accuracy, worst = f"{100 * row['students']['cnn']:.1f} %", f"{row['worst_epsilon']:.4g}"
        rests = [f"{row['order']}", f"{row['conversion']:.3f}", "yes" if row["measured"] else "no"]
        figures = [accuracy, f"{row['epsilon_mu']:.3f}", *rests, worst]
        print("|", " | ".join([row["cell"][0], f"{_steps(row):,}", f"{row['cell'][4]:,}", *figures]), "|")


def _fits() -> list[dict[str, Any]]:
    """Return the rows in the paper's regime that say which order their ε_μ rests on."""
    rows = [row for row in finished("images") if row["cell"][1] == "bayesgan" and "order" in row]
    return [row for row in rows if "recipe=paper" in row["cell"][6]]


def _steps(row: Mapping[str, Any]) -> int:
    return int(row["cell"][6].split("steps=")[1].split("'")[0])


def main() -> None:
    """Do what the command line says."""
    if sys.argv[1:2] == ["axis"]:
        axis()
        return
    if sys.argv[1:2] == ["table"]:
        table()
        return
    options = images.arguments([*sys.argv[1:], "--method", "bayesgan"])
    torch.set_num_threads(options.threads)
    for seed in options.seeds:
        options.seeds = [seed]
        with watched({"cell": [options.data, f"{options.set}", seed]}):
            measure("images", images.cases(options))


if __name__ == "__main__":
    main()
