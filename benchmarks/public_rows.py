"""Public rows beside private ones: how much ε fitting ones are worth, and what bad ones cost.

Half of a table's training rows are private, the other half is public: as it is (``fitting``), with each column shuffled
by itself (``shuffled``), only the rows above the median of the first number (``shifted``), or with each column
even over its values (``unrelated``); ``none`` has no public rows. Measured as in ``dominance.py``.

    python benchmarks/public_rows.py run [--data adult nist] [--arms none fitting] [--epsilons 0.2 1] [--seeds 0]
    python benchmarks/public_rows.py table
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import doublure as db
from command_line import command_line, some
from dominance import DELTA, SETS, measures, schema_of, split
from doublure.schema import Schema
from results import by_cell, finished, mean_and_range, measure

ABOUT = {"data": "the other half of the same table", "people": "as in the private half", "licence": "as the table"}
_MEASURED = {"one_way": ".4f", "two_way": ".4f", "three_way": ".0f", "boosting_auc": ".3f", "processor_seconds": ".1f"}


def declared(name: str, rows: int) -> Schema:
    """Return the public facts, and declared ones in the place of those that are bought: their price is no subject."""
    plain = schema_of(name, rows).to_plain()
    if name == "adult":
        plain["columns"]["fnlwgt"]["bounds"] = [10_000, 1_500_000]
        plain["columns"]["income"].pop("shares")
    return Schema.from_plain(plain)


def shuffled(half: pd.DataFrame, schema: Schema, rng: np.random.Generator) -> pd.DataFrame:
    """Return rows whose columns are right, and whose pairs are not."""
    return pd.DataFrame({name: rng.permutation(half[name].to_numpy()) for name in half})


def shifted(half: pd.DataFrame, schema: Schema, rng: np.random.Generator) -> pd.DataFrame:
    """Return the rows above the median of the first number: another population."""
    number = next(name for name, column in schema.columns.items() if column.bounded)
    values = pd.to_numeric(half[number], errors="coerce")
    return half[values > values.median()]


def unrelated(half: pd.DataFrame, schema: Schema, rng: np.random.Generator) -> pd.DataFrame:
    """Return rows in which each column is even over all cells that the half has."""
    return pd.DataFrame({name: rng.choice(half[name].unique(), len(half)) for name in half})


ARMS: dict[str, Callable[..., pd.DataFrame] | None] = {
    "none": None, "fitting": lambda half, *_: half, "shuffled": shuffled, "shifted": shifted, "unrelated": unrelated,
}  # fmt: skip


def one_cell(name: str, arm: str, epsilon: float, seed: int) -> dict[str, Any]:
    """Fit one half beside what an arm makes of the other, and measure."""
    train, test = split(name)
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(train))
    private, public = (train.iloc[half].reset_index(drop=True) for half in np.array_split(order, 2))
    schema = declared(name, len(private))
    with tempfile.TemporaryDirectory() as place:
        private.to_csv(Path(place) / "private.csv", index=False)
        settings: dict[str, Any] = {}
        make = ARMS[arm]
        if make is not None:
            make(public, schema, rng).to_csv(Path(place) / "public.csv", index=False)
            settings = {"public": Path(place) / "public.csv", "provenance": ABOUT}
        began = time.process_time()
        plan = db.plan(schema, method="statistics", epsilon=epsilon, delta=DELTA, **settings)
        ledger = db.Ledger.create(Path(place) / "ledger", dataset="rows", epsilon=100.0, delta=0.01)
        syn = db.fit(Path(place) / "private.csv", plan, ledger=ledger, seed=seed, threads=1, progress=False)
        made = syn.sample(len(private), seed=seed)
        seconds = time.process_time() - began
    return measures(name, schema, (private, test), made) | {"processor_seconds": round(seconds, 1)}


def table() -> None:
    """Print means over seeds."""
    print("| data | ε | public rows | one-way | two-way | three-way | AUC | CPU s | fits |")
    print("|---|--:|---|--:|--:|--:|--:|--:|--:|")
    found = finished("public_rows")
    for name, arm, epsilon in sorted(
        {tuple(row["cell"][:3]) for row in found}, key=lambda key: (key[0], key[2], list(ARMS).index(key[1]))
    ):
        rows = [row for row in found if tuple(row["cell"][:3]) == (name, arm, epsilon)]
        figures = [mean_and_range([row[key] for row in rows], form) for key, form in _MEASURED.items()]
        print("| " + " | ".join([name, f"{epsilon:g}", arm, *figures, str(len(rows))]) + " |")


def main() -> None:
    """Read the command line."""
    own = command_line(
        __doc__, ["run", "table"], data=some(SETS, ["adult", "nist"]), arms=some(ARMS), epsilons=[0.2], seeds=[0],
    )  # fmt: skip
    if own.verb == "table":
        table()
        return
    cells = [
        (name, arm, epsilon, seed)
        for seed in own.seeds for epsilon in own.epsilons for name in own.data for arm in own.arms
    ]  # fmt: skip
    measure("public_rows", by_cell(cells, one_cell))


if __name__ == "__main__":
    main()
