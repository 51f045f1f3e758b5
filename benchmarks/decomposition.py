"""Parts of the error of ``statistics`` on tables: noise, sampling, design and model, which add up to it.

The tables and measures are those of ``benchmarks/dominance.py``. Each table is fitted as it is; then with the same plan
and exact counts; then eight times as many rows are drawn from that fit; and last with exact counts and the plan of
ε = 30. What falls from one to the next is due to noise, to the sampling of rows, and to design: thresholds, groups
and how many pairs, which a plan derives from ε. What is left is what the model cannot represent.

A mixture is fitted as closely as the planned noise allows. Exact counts have none, so that there it is fitted until
it stands still: else it would end early, and what it leaves would pass for design.

    python benchmarks/decomposition.py run [--data telco adult] [--epsilons 1]
    python benchmarks/decomposition.py table
"""

from __future__ import annotations

from typing import Any
from unittest import mock

import numpy as np

from command_line import command_line, some
from dominance import DELTA, SETS, fitted, measures, schema_of, split
from results import by_cell, finished, measure

_TABLES = ["adult", "flying", "mushroom", "nist", "pbc", "telco"]
_TIMES, _ENOUGH = 8, 30.0


def one_cell(name: str, part: str, epsilon: float) -> dict[str, Any]:
    """Measure a table's rows as they are, or with one more cause of error removed."""
    train, test = split(name)
    schema = schema_of(name, len(train))
    planned = _ENOUGH if part == "model" else epsilon
    times = _TIMES if part in {"design", "model"} else 1
    if part == "as is":
        made = fitted(schema, train, planned, 0)
    else:
        with (
            mock.patch("doublure.private.whole_noise.discrete_normals", lambda size, scale: np.zeros(size, np.int64)),
            mock.patch("doublure.methods.statistics.tables.mixture_fit._singles_fit", return_value=False),
        ):
            made = fitted(schema, train, planned, 0, times=times)
    return measures(name, schema, (train, test), made) | {"delta": DELTA}


_PARTS = {
    "as is": "as it is",
    "sampling": "exact counts",
    "design": "and eight times the rows",
    "model": "and ε = 30",
}
"""What is left to explain -> what was removed up to there."""


def table() -> None:
    """Print the error of columns and pairs, and its parts."""
    rows = {tuple(row["cell"]): row for row in finished("decomposition")}
    print("| data | ε | measure | error | noise | sampling | design | model | design and model |")
    print("|---|--:|---|--:|--:|--:|--:|--:|--:|")
    whole = {(name, epsilon) for name, _, epsilon in rows if all((name, part, epsilon) in rows for part in _PARTS)}
    for name, epsilon in sorted(whole):
        for judged in ("one_way", "two_way"):
            left = [rows[name, part, epsilon][judged] for part in _PARTS]
            parts = [left[0] - left[1], left[1] - left[2], left[2] - left[3], left[3]]
            shares = " | ".join(f"{own:.4f}" for own in parts)
            print(f"| {name} | {epsilon:g} | {judged} | {left[0]:.4f} | {shares} | {sum(parts[2:]) / left[0]:.0%} |")


def main() -> None:
    """Read the command line."""
    options = command_line(__doc__, ["run", "table"], data=some(SETS, _TABLES), epsilons=[1.0])
    if options.verb == "table":
        table()
        return
    wanted = [(name, part, epsilon) for epsilon in options.epsilons for name in options.data for part in _PARTS]
    measure("decomposition", by_cell(wanted, one_cell))


if __name__ == "__main__":
    main()
