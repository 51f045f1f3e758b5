"""Defaults against the simplest things: no simpler thing is ahead, and no measure gets worse with more budget.

A fixed three quarters of each table are private, the rest tests. Measured are the mean total variation of columns and
pairs, the mean over 200 triples as a score of 1000, the AUC of boosting, and over numbers the mean error of means (in
standard deviations) and of standard deviations (absolute logarithm of their ratio). Numbers are compared in 20 quantile
cells of the private rows, with values of more than 2 % of the rows apart.

    python benchmarks/dominance.py run [--data telco pbc] [--arms ours uniform] [--epsilons 1] [--seeds 0 1 2]
    python benchmarks/dominance.py verdict [--data telco pbc] [--bootstraps 30]
    python benchmarks/dominance.py table|verdicts
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score

import doublure as db
import tables
from adult import SHARED
from command_line import command_line, some
from doublure.data.tables.opening import open_table
from doublure.methods.statistics.tables.nodes import Node, NoisyCounts
from doublure.methods.statistics.tables.noisy_tables import NoisyTables
from doublure.methods.statistics.tables.plan import CELLS
from doublure.schema import Schema
from results import OUT, by_cell, finished, mean_and_range, measure
from tables import cells, joint_codes

DELTA = 1e-6
_EXAMPLES = Path(__file__).resolve().parents[1] / "examples" / "schemas"
_REVIEW = SHARED.parent / "trials" / "review"
SETS: dict[str, tuple[str, Path, str]] = {
    "adult": ("adult_train.csv.gz", db.datasets.adult_schema_path(), "income"),
    "mushroom": ("mushroom.csv.gz", _EXAMPLES / "mushroom.schema.yaml", "class"),
    "diabetes130": ("diabetes130.csv.gz", _EXAMPLES / "diabetes130.schema.yaml", "readmitted"),
    "credit": ("credit_default.csv.gz", _REVIEW / "credit_default.schema.yaml", "default.payment.next.month"),
    "nist": ("nist_acs_ma2019.csv.gz", _REVIEW / "nist_ma2019_all.schema.yaml", "OWN_RENT"),
    "pbc": ("pbc.csv.gz", SHARED / "pbc.schema.yaml", "status"),
    "nonvoters": ("nonvoters.csv.gz", SHARED / "nonvoters.schema.yaml", "voter_category"),
    "telco": ("telco/telco.csv.gz", SHARED / "telco" / "telco.schema.yaml", "Churn"),
    "flying": ("flying/flying.csv.gz", SHARED / "flying" / "flying.schema.yaml", ""),
}
"""Each table's rows, its public facts, and the column that is predicted."""
_TRIPLES, _PAIRS = 200, 2000


def split(name: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the private rows and those that test."""
    return tables.split(name, SETS[name][0])


def schema_of(name: str, rows: int) -> Schema:
    """Return the public facts, with the number of units known and what nobody has said of missing cells allowed."""
    plain = Schema.load(SETS[name][1]).to_plain()
    plain["units"] = rows
    if plain.get("defaults", {}).get("missing") == "undeclared":
        plain["defaults"]["missing"] = True
    return Schema.from_plain(plain)


def one_cell(name: str, arm: str, epsilon: float, seed: int) -> dict[str, Any]:
    """Make rows once and measure them."""
    train, test = split(name)
    schema = schema_of(name, len(train))
    used = time.process_time()
    made = ARMS[arm](schema, train, epsilon, seed)
    used = time.process_time() - used
    kept = rows_of(name, arm, epsilon, seed)
    kept.parent.mkdir(parents=True, exist_ok=True)
    made.to_parquet(kept)
    return measures(name, schema, (train, test), made) | {"processor_seconds": round(used, 1), "delta": DELTA}


def rows_of(name: str, arm: str, epsilon: float, seed: int) -> Path:
    """Return where synthetic rows are kept for :func:`verdict`."""
    return OUT / "dominance" / f"{name}-{arm}-{epsilon:g}-{seed}.parquet"


def fitted(
    schema: Schema, train: pd.DataFrame, epsilon: float, seed: int, *, times: int = 1, **settings: Any
) -> pd.DataFrame:
    """Return as many rows as the private ones, or so many times as many, from one fit."""
    return synthesizer(schema, train, epsilon, seed, **settings).sample(times * len(train), seed=seed)


def synthesizer(schema: Schema, train: pd.DataFrame, epsilon: float, seed: int, **settings: Any) -> Any:
    """Fit once."""
    plan = db.plan(schema, method="statistics", epsilon=epsilon, delta=DELTA, **settings)
    with tempfile.TemporaryDirectory() as place:
        train.to_csv(Path(place) / "train.csv", index=False)
        ledger = db.Ledger.create(Path(place) / "ledger", dataset="rows", epsilon=10_000.0, delta=0.01)
        return db.fit(Path(place) / "train.csv", plan, ledger=ledger, seed=seed, threads=1)


def _uniform(schema: Schema, train: pd.DataFrame, epsilon: float, seed: int) -> pd.DataFrame:
    """Return rows in which every column is even over its public values: they cost nothing."""
    del epsilon
    rng = np.random.default_rng(seed)
    columns = {}
    for name, column in schema.columns.items():
        if not column.modelled:
            columns[name] = np.arange(len(train)).astype(str)
        elif column.bounded:
            lower, upper = column.bounds
            digits = getattr(column, "precision", None) or 0
            columns[name] = np.char.mod(f"%.{digits}f", rng.uniform(lower, upper, len(train)))
        else:
            columns[name] = rng.choice([str(value) for value in column.domain], len(train))
    return open_table(pd.DataFrame(columns)).load(schema).frame


def unscored(schema: Schema, train: pd.DataFrame, epsilon: float, seed: int) -> pd.DataFrame:
    """Return rows of a fit to counted pairs alone, to which scores of others are no evidence."""
    with mock.patch("doublure.methods.statistics.tables.fitting._uncounted_scores", return_value=None):
        return fitted(schema, train, epsilon, seed)


def unvoted(schema: Schema, train: pd.DataFrame, epsilon: float, seed: int) -> pd.DataFrame:
    """Return rows of a fit in which no code votes for another."""
    with mock.patch("doublure.methods.statistics.tables.tree_fit.voted_table", return_value=None):
        return fitted(schema, train, epsilon, seed)


def _without_runs(schema: Schema, train: pd.DataFrame, epsilon: float, seed: int) -> pd.DataFrame:
    """Return rows of a fit that counts cells in place of runs of cells, at the same price."""

    def counted(tables: NoisyTables, wide: Sequence[Node]) -> tuple[list[NoisyCounts], dict[int, NoisyCounts]]:
        axes = [node.leaves.axis(np.arange(node.leaves.size)) for node in wide]
        return tables._released(CELLS, [(axis,) for axis in axes]), {}

    with mock.patch.object(NoisyTables, "_count_cells", counted):
        return fitted(schema, train, epsilon, seed)


ARMS: dict[str, Callable[[Schema, pd.DataFrame, float, int], pd.DataFrame]] = {
    "ours": fitted,
    "uniform": _uniform,
    "columns": partial(fitted, structure="columns"),
    "tree": partial(fitted, structure="tree"),
    "unscored": unscored,
    "unvoted": unvoted,
    "runless": _without_runs,
}
"""Defaults, and what they are compared with: even rows, noisy columns alone, the tree wherever there are pairs, and
fits that know nothing of pairs that are not counted, without votes of codes, and without runs of cells."""


def measures(
    name: str, schema: Schema, rows: tuple[pd.DataFrame, pd.DataFrame], made: pd.DataFrame
) -> dict[str, float | None]:
    """Return how good synthetic rows are."""
    found = resampled(name, schema, rows, made, 0)
    return {key: None if each is None else float(each[0]) for key, each in found.items()}


def resampled(
    name: str, schema: Schema, rows: tuple[pd.DataFrame, pd.DataFrame], made: pd.DataFrame, times: int
) -> dict[str, Any]:
    """Return each measure ``(1 + times,)``: on the real rows, then on bootstraps of them, the same for all arms."""
    names = [column for column, facts in schema.columns.items() if facts.modelled]
    real, held = (open_table(frame[list(schema.columns)]).load(schema).frame for frame in rows)
    again = np.random.default_rng(11)
    weights, tested = (
        np.stack([np.ones(size), *(again.multinomial(size, np.full(size, 1 / size)) for _ in range(times))])
        for size in (len(real), len(held))
    )
    coded = {column: cells(real[column], made[column]) for column in names}
    draw = np.random.default_rng(7)
    pairs = list(combinations(names, 2))
    if len(pairs) > _PAIRS:
        pairs = [pairs[at] for at in draw.choice(len(pairs), _PAIRS, replace=False)]
    triples = [tuple(draw.choice(names, 3, replace=False)) for _ in range(_TRIPLES)]
    apart = partial(_apart, coded, weights)
    numbers = [column for column in names if schema.columns[column].bounded]
    moments = [_moments(real[column], made[column], weights) for column in numbers]
    target = SETS[name][2]
    return {
        "one_way": np.mean([apart((column,)) for column in names], axis=0),
        "two_way": np.mean([apart(pair) for pair in pairs], axis=0),
        "three_way": 1000 * (1 - np.mean([apart(triple) for triple in triples], axis=0)),
        "mean_error": np.mean([own[0] for own in moments], axis=0) if moments else None,
        "deviation_error": np.mean([own[1] for own in moments], axis=0) if moments else None,
        "boosting_auc": _auc(schema, names, target, made, held, tested) if target else None,
    }


def _apart(cells: Mapping[str, tuple[Any, Any]], weights: Any, names: tuple[str, ...]) -> Any:
    """Return the total variation ``(B,)`` of synthetic rows from the real ones by each of their weights ``(B, N)``."""
    real, made = joint_codes(cells, names)
    size = 1 + max(int(real.max()), int(made.max()))
    counts = np.stack([np.bincount(real, each, size) for each in weights]) / len(real)
    return np.abs(counts - np.bincount(made, minlength=size) / len(made)).sum(1) / 2


def _moments(real: pd.Series[Any], made: pd.Series[Any], weights: Any) -> tuple[Any, Any]:
    one, other = real.dropna().astype("float64"), made.dropna().astype("float64")
    if len(other) < 2 or len(one) < 2:
        return np.ones(len(weights)), np.ones(len(weights))
    values, weights = one.to_numpy() - one.mean(), weights[:, real.notna().to_numpy()]
    total = np.maximum(weights.sum(1), 2)
    mean = weights @ values / total
    variance = np.maximum(weights @ values**2 / total - mean**2, 0.0) * total / (total - 1)
    spread = np.maximum(np.sqrt(variance), 1e-12)
    ratio = max(float(other.std()), 1e-12) / spread
    return np.abs(float(other.mean()) - float(one.mean()) - mean) / spread, np.abs(np.log(ratio))


def _auc(schema: Schema, names: list[str], target: str, made: pd.DataFrame, test: pd.DataFrame, weights: Any) -> Any:
    """Return the AUC ``(B,)`` of the target's most frequent value in the test, of boosting on the synthetic rows."""
    known_somewhere = [name for name in names if name != target and made[name].notna().any()]

    def features(frame: pd.DataFrame) -> Any:
        columns = []
        for name in known_somewhere:
            known = [str(value) for value in getattr(schema.columns[name], "domain", ())]
            column = frame[name]
            columns.append(
                column.to_numpy(dtype=float, na_value=np.nan)
                if schema.columns[name].bounded and column.dtype.kind not in "mM"
                else pd.Categorical(column.astype(str), known or None).codes.astype(float)
            )
        return np.stack([np.zeros(len(frame)), *columns], axis=1)

    truth = test[target].astype(str)
    likely = truth.mode()[0]
    wanted = made[target].astype(str) == likely
    if wanted.nunique() < 2:
        return np.full(len(weights), 0.5)
    model = HistGradientBoostingClassifier(random_state=0).fit(features(made), wanted)
    chances = model.predict_proba(features(test))[:, 1]
    return np.array([roc_auc_score(truth == likely, chances, sample_weight=each) for each in weights])


_BETTER: Mapping[str, int] = {
    "one_way": -1, "two_way": -1, "three_way": 1, "mean_error": -1, "deviation_error": -1, "boosting_auc": 1,
}  # fmt: skip
"""The sign of what is better."""


def judge(name: str, first: tuple[str, float], second: tuple[str, float], times: int) -> dict[str, Any]:
    """Compare two arms: by how much the second is ahead, and the standard error of that.

    The error is that of real rows, by a bootstrap that both arms share, and of seeds. An arm of one seed is given the
    spread of the other's.

    Args:
        name: Of the table.
        first: An arm and its ε.
        second: The other.
        times: Bootstraps.

    Returns:
        Measure -> the second's lead over the first, above zero where the second is better, and its standard error.
    """
    train, test = split(name)
    schema = schema_of(name, len(train))
    found = []
    for arm, epsilon in (first, second):
        kept = sorted(rows_of(name, arm, epsilon, 0).parent.glob(f"{name}-{arm}-{epsilon:g}-*.parquet"))
        found.append([resampled(name, schema, (train, test), pd.read_parquet(own), times) for own in kept])
    seeds = [len(own) for own in found]
    leads: dict[str, Any] = {"seeds": seeds, "bootstraps": times}
    for key, sign in _BETTER.items():
        if found[0][0][key] is None:
            continue
        one, other = (np.stack([own[key] for own in arm]) for arm in found)
        apart = sign * (other.mean(0) - one.mean(0))
        spreads = [np.var(arm[:, 0], ddof=1) for arm in (one, other) if len(arm) > 1]
        by_seed = np.mean(spreads) * sum(1 / count for count in seeds) if spreads else 0.0
        leads[key] = [float(apart[0]), float(np.sqrt(np.var(apart[1:], ddof=1) + by_seed))]
    return leads


def verdicts() -> None:
    """Print what is ahead of defaults, or gets worse with more ε, by more than two standard errors."""
    rows = finished("dominance_verdicts")
    print("| data | ε | ahead of defaults | measure | by | standard error |")
    print("|---|--:|---|---|--:|--:|")
    for row in rows:
        name, (arm, epsilon), (other, more) = row["cell"]
        for key in _BETTER:
            lead, error = row.get(key, (0.0, 1.0))
            if lead > 2 * error:
                ahead = other if arm != other else f"ε = {more:g}"
                print(f"| {name} | {epsilon:g} | {ahead} | {key} | {lead:.4f} | {error:.4f} |")
    print(f"{len(rows)} comparisons")


_SHOWN: Mapping[str, str] = {
    "one_way": ".4f", "two_way": ".4f", "three_way": ".0f", "mean_error": ".3f", "deviation_error": ".3f",
    "boosting_auc": ".3f", "processor_seconds": ".1f",
}  # fmt: skip


def table() -> None:
    """Print means over seeds."""
    print("| data | ε | arm | one-way | two-way | three-way | mean | deviation | AUC | CPU s | fits |")
    print("|---|--:|---|--:|--:|--:|--:|--:|--:|--:|--:|")
    found = finished("dominance")
    for name, arm, epsilon in sorted(
        {tuple(row["cell"][:3]) for row in found}, key=lambda key: (key[0], key[2], key[1])
    ):
        rows = [row for row in found if tuple(row["cell"][:3]) == (name, arm, epsilon)]
        figures = [
            mean_and_range([row[key] for row in rows if row[key] is not None], form) for key, form in _SHOWN.items()
        ]
        print("| " + " | ".join([name, f"{epsilon:g}", arm, *figures, str(len(rows))]) + " |")


def verdict(options: argparse.Namespace) -> None:
    """Compare defaults with each simpler arm at each ε, and at each ε with the next smaller one.

    Cells are those whose rows lie here, since a fit draws fresh noise and no row can be made again.
    """
    wanted = []
    for name in options.data:
        kept = {
            tuple(row["cell"][1:3])
            for row in finished("dominance")
            if row["cell"][0] == name and rows_of(*row["cell"]).is_file()
        }
        ours = sorted(epsilon for arm, epsilon in kept if arm == "ours")
        wanted += [(name, ("ours", epsilon), (arm, epsilon)) for arm, epsilon in sorted(kept) if arm != "ours"]
        wanted += [(name, ("ours", more), ("ours", epsilon)) for epsilon, more in pairwise(ours)]
    measure("dominance_verdicts", by_cell(wanted, partial(judge, times=options.bootstraps)))


def _learned(name: str) -> bool:
    """Return whether a table has facts that are bought, which even rows cannot have."""
    text = SETS[name][1].read_text(encoding="utf-8")
    return "learn" in text


def main() -> None:
    """Read the command line."""
    options = command_line(
        __doc__, ["run", "table", "verdict", "verdicts"], data=some(SETS), arms=some(ARMS), epsilons=[1.0], seeds=[0],
        bootstraps=30,
    )  # fmt: skip
    if options.verb != "run":
        {"table": table, "verdict": partial(verdict, options), "verdicts": verdicts}[options.verb]()
        return
    wanted = [
        (name, arm, epsilon, seed)
        for epsilon in options.epsilons
        for seed in options.seeds
        for name in options.data
        for arm in options.arms
        if arm != "uniform" or not _learned(name)
    ]
    measure("dominance", by_cell(wanted, one_cell))


if __name__ == "__main__":
    main()
