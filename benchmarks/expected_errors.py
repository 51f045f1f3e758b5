"""Errors that a plan forecasts, beside those of its rows: how right ``plan --want`` is.

Each column and each pair has a forecast of its total variation (:mod:`doublure.planning.wants`) and a measured one, in
the cells of ``dominance.py``. Kept are means of both, the share of wants of that very forecast that the rows grant, and
the rank correlation of forecasts and errors.

    python benchmarks/expected_errors.py run [--data pbc telco] [--epsilons 1] [--seeds 3]
    python benchmarks/expected_errors.py table
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from itertools import combinations
from typing import Any

from scipy.stats import spearmanr

import doublure as db
from command_line import command_line, some
from dominance import DELTA, SETS, fitted, schema_of, split
from doublure.data.tables.opening import open_table
from doublure.methods import registry
from results import by_cell, finished, mean_and_range, measure
from tables import apart, cells

_NAME = "expected_errors"
_SHOWN = ("forecast", "measured", "granted", "correlation")


def one_cell(name: str, epsilon: float, seed: int) -> dict[str, Any]:
    """Fit once, by defaults, and compare."""
    train, _ = split(name)
    schema = schema_of(name, len(train))
    plan = db.plan(schema, epsilon=epsilon, delta=DELTA)
    forecast = registry.method(plan.method).expected_errors(schema, plan.settings, plan.touches)
    if forecast is None:
        raise TypeError("a forecast is needed")
    made = fitted(schema, train, epsilon, seed)
    names = [column for column, facts in schema.columns.items() if facts.modelled and column not in schema.derived]
    real = open_table(train[list(schema.columns)]).load(schema).frame
    coded = {column: cells(real[column], made[column]) for column in names}
    columns = [(column,) for column in names]
    said: dict[str, Any] = {"delta": DELTA}
    for kind, asked in (("columns", columns), ("pairs", list(combinations(names, 2)))):
        expected, found = ([of(own) for own in asked] for of in (forecast.distance, lambda own: apart(coded, own)))
        said |= {f"{kind}_{key}": value for key, value in _compared(expected, found).items()}
    return said


def _compared(expected: Sequence[float], found: Sequence[float]) -> dict[str, float | None]:
    return {
        "forecast": statistics.mean(expected),
        "measured": statistics.mean(found),
        "granted": statistics.mean(one <= other for one, other in zip(found, expected, strict=True)),
        "correlation": float(spearmanr(expected, found).statistic) if len(set(expected)) > 1 else None,
    }


def table() -> None:
    """Print means over seeds."""
    print("| data | ε | of | forecast | measured | granted | rank correlation |")
    print("|---|--:|---|--:|--:|--:|--:|")
    found = finished(_NAME)
    for name, epsilon in sorted({tuple(row["cell"][:2]) for row in found}):
        rows = [row for row in found if tuple(row["cell"][:2]) == (name, epsilon)]
        for kind in ("columns", "pairs"):
            figures = [
                mean_and_range([row[f"{kind}_{key}"] for row in rows if row[f"{kind}_{key}"] is not None], ".3f")
                for key in _SHOWN
            ]
            print("| " + " | ".join([name, f"{epsilon:g}", kind, *figures]) + " |")


def main() -> None:
    """Read the command line."""
    options = command_line(
        __doc__, ["run", "table"], data=some(SETS, ["pbc", "telco", "mushroom", "flying"]), epsilons=[1.0], seeds=[3],
    )  # fmt: skip
    if options.verb == "table":
        table()
        return
    wanted = [(*cell, seed) for seed in options.seeds for cell in _cells(options.data, options.epsilons)]
    measure(_NAME, by_cell(wanted, one_cell))


def _cells(names: Sequence[str], epsilons: Sequence[float]) -> list[tuple[str, float]]:
    return [(name, epsilon) for epsilon in epsilons for name in names]


if __name__ == "__main__":
    main()
