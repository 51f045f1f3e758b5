"""Tables that nobody tuned for: UCI credit card clients and the NIST excerpt of the ACS (Massachusetts 2019).

Beside them Adult and Diabetes-130, on which settings were chosen, to see what bounds a hundred times too wide cost.

A fixed three quarters of each are private, the rest tests; bounds are those of published codebooks. Measured are the
mean total variation of columns and of pairs, the mean over 200 triples as a score of 1000, and the AUC of boosting.
Cells of numbers are public ones, picked by hand (:mod:`table_cells`), in which targets are set; and again (``fine_``)
20 quantile cells of the private rows with repeated values (2 % of the rows) apart.

    python benchmarks/tables.py run --schemas FOLDER [--data credit nist] [--seeds 0 1 2] [--widen 1 100]
    python benchmarks/tables.py table
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Mapping
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score

import doublure as db
from adult import SHARED
from command_line import command_line, some, told
from doublure.data.tables.opening import open_table
from doublure.measures.tables.baseline import independent_columns
from doublure.measures.tables.coding import Coder
from doublure.measures.tables.features import find_target
from doublure.measures.tables.fidelity import Tables
from doublure.measures.tables.regression import regression
from doublure.measures.tables.rules import rules
from doublure.schema import ResolvedSchema, Schema
from results import by_cell, finished, mean_and_range, measure
from table_cells import EDGES, coded

EPSILON, DELTA = 1.0, 1e-6
_EXAMPLES = Path(__file__).resolve().parents[1] / "examples" / "schemas"
SETS = {
    "credit": ("credit_default.csv.gz", "credit_default.schema.yaml", "default.payment.next.month", "1"),
    "nist": ("nist_acs_ma2019.csv.gz", "nist_ma2019_all.schema.yaml", "OWN_RENT", "2"),
    "adult": ("adult_train.csv.gz", str(db.datasets.adult_schema_path()), "income", ">50K"),
    "diabetes130": ("diabetes130.csv.gz", str(_EXAMPLES / "diabetes130.schema.yaml"), "readmitted", "<30"),
}
_SPIKE, _CELLS, _TRIPLES = 0.02, 20, 200


def split(name: str, file: str | None = None) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the private rows and those that test; of Diabetes-130 one stay of each patient."""
    frame = pd.read_csv(SHARED / (file or SETS[name][0]), dtype=str, keep_default_na=False)
    if name == "diabetes130":
        frame = frame.sample(frac=1, random_state=0).drop_duplicates("patient_nbr")
    order, cut = np.random.default_rng(0).permutation(len(frame)), len(frame) * 3 // 4
    return frame.iloc[order[:cut]].reset_index(drop=True), frame.iloc[order[cut:]].reset_index(drop=True)


def schema_of(name: str, folder: Path, widen: int) -> Schema:
    """Return the public facts, with bounds so many times as wide."""
    plain = Schema.load(folder / SETS[name][1]).to_plain()
    as_many = {column for rule in plain.get("constraints", ()) for column in rule.get("equal", ())}
    for own, column in plain["columns"].items():
        declared = isinstance(column.get("bounds"), (list, tuple))  # else they are bought
        if widen != 1 and declared and own not in as_many:
            lower, upper = column["bounds"]
            column["bounds"] = [min(0, lower * widen), upper * widen]
    return Schema.from_plain(plain)


def cells(real: pd.Series[Any], made: pd.Series[Any]) -> tuple[Any, Any]:
    """Return codes of both: repeated values and missing apart, the rest in quantile cells of the real ones."""
    if not pd.api.types.is_numeric_dtype(real):
        texts = [column.astype(object).where(column.notna(), "").astype(str).to_numpy() for column in (real, made)]
        codes = np.unique(np.concatenate(texts), return_inverse=True)[1]
        return codes[: len(real)], codes[len(real) :]
    shares = real.value_counts(normalize=True)
    alone = {value: _CELLS + 2 + at for at, value in enumerate(shares.index[shares > _SPIKE])}
    rest = real[~real.isin(list(alone))].dropna().astype(float)
    edges = np.unique(np.quantile(rest, np.linspace(0, 1, _CELLS + 1)[1:-1])) if len(rest) else np.zeros(0)

    def coded(column: pd.Series[Any]) -> Any:
        numbers = column.astype(float).to_numpy(dtype=float, na_value=np.nan)
        found = np.where(np.isnan(numbers), _CELLS + 1, np.searchsorted(edges, np.nan_to_num(numbers), "right"))
        for value, code in alone.items():
            found[numbers == float(value)] = code
        return found.astype(int)

    return coded(real), coded(made)


def one_cell(name: str, seed: int, widen: int, folder: Path) -> dict[str, Any]:
    """Fit once and measure."""
    train, test = split(name)
    schema = schema_of(name, folder, widen)
    plan = db.plan(schema, method="statistics", epsilon=EPSILON, delta=DELTA)
    with tempfile.TemporaryDirectory() as place:
        train.to_csv(Path(place) / "train.csv", index=False)
        ledger = db.Ledger.create(Path(place) / "ledger", dataset=name, epsilon=10.0, delta=0.01)
        used = time.process_time()
        syn = db.fit(Path(place) / "train.csv", plan, ledger=ledger, seed=seed, threads=1)
        used = time.process_time() - used
    made = syn.sample(len(train), seed=seed)
    return measures(name, schema, (train, test), made) | {"processor_seconds": round(used, 1)}


def measures(
    name: str, schema: Schema, rows: tuple[pd.DataFrame, pd.DataFrame], made: pd.DataFrame
) -> dict[str, float | int | None]:
    """Return how good synthetic rows are.

    Args:
        name: Of the data set.
        schema: Its public facts.
        rows: The private rows and those that test, as texts.
        made: The synthetic rows, as the schema reads them.
    """
    names = [column for column, facts in schema.columns.items() if facts.type != "id"]
    real, held = (open_table(frame[list(schema.columns)]).load(schema).frame for frame in rows)
    fine = {column: cells(real[column], made[column]) for column in names}
    by_hand = {
        column: tuple(coded(name, column, own[column]) for own in (real, made)) for column in EDGES.get(name, {})
    }
    return {
        **_distances(fine | by_hand, names),
        **{f"fine_{measured}": value for measured, value in _distances(fine, names).items()},
        "boosting_auc": _auc(schema, names, SETS[name], made, held),
        **(coherence(schema.resolve({}), made, real, held) if name in EDGES else {}),
    }


def coherence(
    schema: ResolvedSchema, made: pd.DataFrame, real: pd.DataFrame, held: pd.DataFrame
) -> dict[str, float | int | None]:
    """Return how often rules found in the private rows are broken, and the share of coefficients of the right sign.

    As ``evaluate`` has them: the share of rows that break any rule, that break one on average and at worst, and the
    signs of the target's regression, of coefficients that are clear on the private rows.
    """
    coder, rng = Coder(schema=schema), np.random.default_rng(0)
    read = {name: coder.read(frame, name) for name, frame in (("made", made), ("real", real), ("held", held))}
    baseline = independent_columns(read["real"], len(made), rng)
    compared = Tables(train=read["real"], synthetic=read["made"], baseline=baseline, holdout=read["held"])
    kept, target = rules(coder, compared), find_target(coder, read["real"])
    broken = [rule.broken.value for rule in kept.rules]  # the most often broken ones, and most break none
    explained = None if target is None else regression(coder, target, compared, rng)
    signs = [own.value for own in explained.scores if own.key == "coefficient_signs"] if explained else []
    return {
        "rules": kept.found,
        "rules_broken_rows": kept.score.value,
        "rule_broken_mean": sum(broken) / max(1, kept.found),
        "rule_broken_worst": max(broken, default=0.0),
        "right_signs": signs[0] if signs else None,
        "coefficients": len(explained.coefficients) if explained else 0,
    }


def _distances(cells: Mapping[str, tuple[Any, ...]], names: list[str]) -> dict[str, float]:
    """Return how far columns and pairs are apart, and the score of triples."""
    draw = np.random.default_rng(7)
    triples = [tuple(draw.choice(names, 3, replace=False)) for _ in range(_TRIPLES)]
    return {
        "one_way": statistics.mean(apart(cells, (column,)) for column in names),
        "two_way": statistics.mean(apart(cells, pair) for pair in combinations(names, 2)),
        "three_way": 1000 * (1 - statistics.mean(apart(cells, triple) for triple in triples)),
    }


def apart(cells: Mapping[str, tuple[Any, ...]], names: tuple[str, ...]) -> float:
    both = joint_codes(cells, names)
    size = 1 + max(int(codes.max()) for codes in both)
    counts = [np.bincount(codes, minlength=size) / len(codes) for codes in both]
    return 0.5 * float(np.abs(counts[0] - counts[1]).sum())


def joint_codes(cells: Mapping[str, tuple[Any, ...]], names: tuple[str, ...]) -> list[Any]:
    """Return one code a row for its cells in some columns together, of real and of synthetic rows."""
    places = []
    for side in (0, 1):
        place = np.zeros(len(cells[names[0]][side]), dtype=np.int64)
        for name in names:
            place = place * (1 + max(int(codes.max()) for codes in cells[name])) + cells[name][side]
        places.append(place)
    code = np.unique(np.concatenate(places), return_inverse=True)[1]
    return np.split(code, [len(places[0])])


def _auc(schema: Schema, names: list[str], facts: tuple[str, ...], made: pd.DataFrame, test: pd.DataFrame) -> float:
    def features(frame: pd.DataFrame) -> Any:
        columns = []
        for name in names:
            if name != facts[2]:
                column = frame[name]
                numeric = schema.columns[name].bounded
                known = [str(value) for value in getattr(schema.columns[name], "domain", ())]
                codes = column.to_numpy(dtype=float, na_value=np.nan) if numeric else None
                columns.append(
                    pd.Categorical(column.astype(str), known).codes.astype(float) if codes is None else codes
                )
        return np.stack(columns, axis=1)

    model = HistGradientBoostingClassifier(random_state=0).fit(features(made), made[facts[2]].astype(str) == facts[3])
    truth = test[facts[2]].astype(str) == facts[3]
    return float(roc_auc_score(truth, model.predict_proba(features(test))[:, 1]))


def table() -> None:
    """Print means over seeds."""
    print(
        "| data | bounds × | one-way | two-way | three-way | AUC | fine: one-way | two-way | three-way | CPU s | fits |"
    )
    print("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
    found = finished("tables")
    for name, widen in sorted({(row["cell"][0], row["cell"][2]) for row in found}):
        rows = [row for row in found if (row["cell"][0], row["cell"][2]) == (name, widen)]
        keys = (("one_way", ".4f"), ("two_way", ".3f"), ("three_way", ".0f"), ("boosting_auc", ".3f"),
                ("fine_one_way", ".4f"), ("fine_two_way", ".3f"), ("fine_three_way", ".0f"),
                ("processor_seconds", ".0f"))  # fmt: skip
        figures = [mean_and_range([row[key] for row in rows], form) for key, form in keys]
        print("| " + " | ".join([name, str(widen), *figures, str(len(rows))]) + " |")


def main() -> None:
    """Read the command line."""
    options = command_line(
        __doc__, ["run", "table"], schemas=told(Path(), "a folder with the schemas of credit and NIST"),
        data=some(SETS, ["credit", "nist"]), seeds=[0, 1, 2], widen=[1],
    )  # fmt: skip
    if options.verb == "table":
        table()
        return
    wanted = [(name, seed, widen) for widen in options.widen for seed in options.seeds for name in options.data]
    measure("tables", by_cell(wanted, lambda *cell: one_cell(*cell, options.schemas)))


if __name__ == "__main__":
    main()
