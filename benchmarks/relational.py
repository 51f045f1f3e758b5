"""Related tables beside independent ones and a flattened one: how they hang together, and the targets.

A fixed fifth of the units is kept aside; δ = 1e-6; 20,000 synthetic units are measured, of ``days`` 1,000. The floor
is real rows of each table and real numbers of rows, drawn independently (no noise at all). Peers at the same ε are one
flat table (``related_flattened.py``) and, in an environment of its own that DOUBLURE_PEER_DPSYNTH names,
``dpsynth.relational`` (``related_dpsynth.py``). What the data are, and how TPC-H's is made, is in ``related_data.py``.

    python benchmarks/relational.py run [--data stays orders days] [--methods doublure flattened] [--epsilons 1 3]
    python benchmarks/relational.py scale        # TPC-H at scale factor 1: seconds and peak memory
    python benchmarks/relational.py long         # units of up to 600 rows: seconds of sampling
    python benchmarks/relational.py visits       # one table, many rows a person: gaps, hours, values that pile up
    python benchmarks/relational.py table
"""

from __future__ import annotations

import resource
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score

import doublure as db
from command_line import command_line, some, told
from doublure.data.relational import RelatedRows, open_related
from doublure.measures.relational import evaluate_related
from doublure.measures.relational.histories import aggregates
from doublure.measures.relational.units import UnitCoder, draw_independent
from doublure.schema.relational import RelationalSchema
from related_data import RELATED, VISITS
from related_data import visits as make_visits
from related_dpsynth import related
from related_flattened import flat_schema, flattened, unfolded
from results import add, by_cell, finished, known, mean_and_range, measure

DELTA, KEPT_ASIDE, FLAT_ROWS = 1e-6, 5, 100_000
ACCOUNTANT = "rdp"
"""Quicker than ``pld`` to plan with, and a little looser: figures are those of some more noise."""
METHODS = ["doublure", "flattened", "dpsynth"]
LARGE = "orders, scale factor 1"
FIGURES = {
    "children": "number of rows",
    "parent_child": "parent and child, 30 pairs",
    "transitions": "successive rows",
    "gaps": "gaps",
    "discriminative": "two-sample AUC",
}
OWN = {
    "later_after_30": "a stay after one marked <30",
    "auc": "AUC, any stay <30",
    "first_day": "first orders on their customer's first day",
    "too_early": "orders before their customer's first",
}


def split(data: str) -> tuple[dict[str, pd.DataFrame], dict[str, pd.DataFrame]]:
    """Return the units that a fit sees, and those kept aside, with their rows."""
    schema, tables = RelationalSchema.of(RELATED[data].schema), RELATED[data].tables()
    key = schema.tables[schema.root].key or ""
    nr = tables[schema.root][key]
    aside = set(nr[np.random.default_rng(46).permutation(len(nr)) % KEPT_ASIDE == 0])
    sides = []
    for wanted in (False, True):
        some = {name: table[table[key].isin(aside) == wanted] for name, table in tables.items()}
        sides.append({name: table.reset_index(drop=True) for name, table in some.items()})
    return sides[0], sides[1]


def one(data: str, method: str, epsilon: float, seed: int) -> dict[str, Any]:
    """Return one fit's figures, and the floor's beside them."""
    schema, (train, aside) = RelationalSchema.of(RELATED[data].schema), split(data)
    if method == "dpsynth":
        drawn, facts = related(schema, train, epsilon, DELTA, seed)
        key = schema.tables[schema.root].key or ""
        some = {name: made[made[key] < RELATED[data].made] for name, made in drawn.items()}  # keys are 0, 1, 2, …
        return figures(data, some, train, aside, seed) | facts
    flat = method == "flattened"
    began = time.process_time()
    syn = _fit(flat_schema(schema) if flat else schema, flattened(schema, train) if flat else train, epsilon, seed)
    fitted = time.process_time()
    made = RELATED[data].made
    sample = unfolded(schema, syn.sample(FLAT_ROWS, seed=seed), made) if flat else syn.sample(made, seed=seed)
    seconds = {"fit_cpu": round(fitted - began, 1), "sample_cpu": round(time.process_time() - fitted, 1)}
    return figures(data, sample, train, aside, seed) | seconds


def _fit(schema: db.Schema, tables: Any, epsilon: float, seed: int) -> db.Synthesizer:
    plan = db.plan(schema, epsilon=epsilon, delta=DELTA, accountant=ACCOUNTANT)
    with tempfile.TemporaryDirectory() as folder:
        ledger = db.Ledger.create(Path(folder) / "ledger", dataset="related tables", epsilon=epsilon, delta=DELTA)
        return db.fit(tables, plan, ledger=ledger, seed=seed)


def figures(
    data: str,
    sample: Mapping[str, pd.DataFrame],
    train: Mapping[str, pd.DataFrame],
    aside: Mapping[str, pd.DataFrame],
    seed: int,
) -> dict[str, Any]:
    """Return how synthetic units hold against real ones: each figure of theirs, the floor, and other real units.

    Args:
        data: Which data.
        sample: Synthetic units.
        train: What the fit has seen.
        aside: What it has not.
        seed: Of the floor and the classifiers.
    """
    schema = RelationalSchema.of(RELATED[data].schema.resolve({}))
    (child,) = schema.children
    real, kept, drawn = (open_related(each).load(schema).content for each in (train, aside, sample))
    found = evaluate_related(schema, drawn, real, kept, tables=False, seed=seed)
    row: dict[str, Any] = {
        score.key.removesuffix(f" {child}"): [score.value, score.baseline, score.real] for score in found.scores
    }
    floor = draw_independent(real, len(real), np.random.default_rng(seed))
    if data == "stays":
        row["later_after_30"] = [_later_after(each) for each in (drawn, floor, real)]
        row["auc"] = [_auc(each, kept, schema, seed) for each in (drawn, floor, real)]
    if data.startswith("orders"):
        row["too_early"] = [_early(each)[0] for each in (drawn, floor, real)]
        row["first_day"] = [_early(each)[1] for each in (drawn, floor, real)]
    return row


def _early(units: RelatedRows) -> tuple[float, float]:
    """Return the share of orders before their customer's first day, and of customers whose first order is on it."""
    owner, placed = units.parents["orders"], pd.Series(units.frames["orders"]["placed"])
    since = pd.Series(units.frames["customers"]["since"]).iloc[owner].reset_index(drop=True)
    first = np.append(True, owner[1:] != owner[:-1])
    return float((placed < since).mean()), float((placed == since)[first].mean())


def scale(seed: int) -> None:
    """Fit TPC-H at scale factor 1, sample as many, and keep seconds, peak memory, and what is out of order."""
    key = {"scale": LARGE, "epsilon": 1.0, "seed": seed}
    if known("relational", key):
        return
    tables, schema = RELATED[LARGE].tables(), RelationalSchema.of(RELATED[LARGE].schema)
    times = [(time.perf_counter(), time.process_time())]
    syn = _fit(schema, tables, 1.0, seed)
    times.append((time.perf_counter(), time.process_time()))
    made = syn.sample(len(tables["customers"]), seed=seed)
    times.append((time.perf_counter(), time.process_time()))
    customers, orders = made["customers"], made["orders"]
    since = orders["customer"].map(customers.set_index("customer")["since"])
    back = (orders["placed"].diff() < pd.Timedelta(0)) & (orders["customer"].diff() == 0)
    row = {
        "fit_seconds": times[1][0] - times[0][0],
        "fit_cpu": times[1][1] - times[0][1],
        "sample_seconds": times[2][0] - times[1][0],
        "sample_cpu": times[2][1] - times[1][1],
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "customers": len(customers),
        "orders": len(orders),
        "too_early": int((orders["placed"] < since).sum()),
        "out_of_order": int(back.sum()),
        "without_customer": int((~orders["customer"].isin(customers["customer"])).sum()),
    }
    add("relational", key | row)
    print(key | row, flush=True)


def long(seed: int) -> None:
    """Fit units of up to 600 rows, sample as many, and keep what the sample took of the processor."""
    tables, schema = RELATED["flights"].tables(), RelationalSchema.of(RELATED["flights"].schema)
    syn = _fit(schema, tables, 3.0, seed)
    begun = time.process_time()
    made = syn.sample(RELATED["flights"].made, seed=seed)
    took = round(time.process_time() - begun, 1)
    row = {"long": "flights", "epsilon": 3.0, "seed": seed, "rows": len(made["flights"]), "sample_cpu": took}
    add("relational", row)
    print(row, flush=True)


def visits(seed: int, epsilon: float, *, by_day: bool, before: bool) -> None:
    """Fit a table of stays, and keep gaps, hours and the commonest moment beside the real ones."""
    key: dict[str, Any] = {"visits": "by day" if by_day else "any hour", "epsilon": epsilon, "seed": seed}
    key |= {"tried": "as before: moments as plain numbers"} if before else {}
    if any(key.items() <= row.items() and ("tried" in row) == before for row in finished("relational")):
        return
    real, begun = make_visits(by_day=by_day), time.process_time()
    made = _fit(db.Schema.parse(VISITS), real, epsilon, seed).sample(len(real), seed=seed)
    took = round(time.process_time() - begun, 1)
    both = [_moments(each) for each in (made, real)]
    row: dict[str, Any] = {
        f"gap_{at}": [round(own["gaps"].quantile(at), 1) for own in both] for at in (0.25, 0.5, 0.75)
    }
    for name in ("admitted", "admitted again", "discharged"):
        hours = [np.bincount(own[name].dt.hour, minlength=24) / len(own[name]) for own in both]
        row[f"hours {name}"] = round(float(abs(hours[0] - hours[1]).sum() / 2), 4)
    row["commonest"] = [int(own["admitted"].value_counts().iloc[0]) for own in both]
    add("relational", key | row | {"rows": len(made), "fit_cpu": took})
    print(key | row, flush=True)


def _moments(rows: pd.DataFrame) -> dict[str, pd.Series[Any]]:
    """Return moments of a table of stays, and days from one to a patient's next."""
    rows = rows.assign(**{name: pd.to_datetime(rows[name]) for name in ("admitted", "discharged")})
    rows = rows.sort_values(["nr", "admitted"])
    again = rows["nr"].eq(rows["nr"].shift())
    gaps = rows["admitted"].diff()[again].dt.total_seconds() / 86_400
    return {
        "admitted": rows["admitted"], "admitted again": rows["admitted"][again],
        "discharged": rows["discharged"].dropna(), "gaps": gaps,
    }  # fmt: skip


def _later_after(units: RelatedRows) -> float:
    """Return the share of patients who have a stay after one that is marked <30."""
    owner, marked = units.parents["stays"], (units.frames["stays"]["readmitted"] == "<30").to_numpy()
    follows = np.append(owner[:-1] == owner[1:], False)
    return float(len(np.unique(owner[marked & follows])) / len(units))


def _auc(trained: RelatedRows, tested: RelatedRows, schema: db.Schema, seed: int) -> float:
    """Return how well a model ranks real patients by whether a stay of theirs is marked <30, from everything else."""
    columns = dict(schema.tables["stays"].columns)
    left = {name: column for name, column in columns.items() if name != "readmitted"}
    stays = schema.tables["stays"].model_copy(update={"columns": left})
    coders = UnitCoder.of(schema.model_copy(update={"tables": {**schema.tables, "stays": stays}}))
    sides = []
    for units in (trained, tested):
        marked = (units.frames["stays"]["readmitted"] == "<30").to_numpy()
        label = np.bincount(units.parents["stays"], marked, len(units)) > 0
        sides.append((aggregates(coders, coders.read(units, "the patients")), label))
    model = HistGradientBoostingClassifier(random_state=seed, max_iter=100).fit(*sides[0])
    return float(roc_auc_score(sides[1][1], model.predict_proba(sides[1][0])[:, 1]))


def _said(row: Mapping[str, Any]) -> str:
    return f"{row['cell']}: " + ", ".join(f"{key} {row[key][0]:.4f} (floor {row[key][1]:.4f})" for key in FIGURES)


def table() -> None:
    """Print the tables for docs/relational.md."""
    rows = [row for row in finished("relational") if "cell" in row]
    for data in dict.fromkeys(row["cell"][0] for row in rows):
        print(f"**{data}**\n\n| | ε | method | its | floor | other real units |\n|---|---|---|---|---|---|")
        for key, name in (FIGURES | OWN).items():
            for epsilon, method in sorted({(row["cell"][2], row["cell"][1]) for row in rows if row["cell"][0] == data}):
                own = [row[key] for row in rows if row["cell"][:3] == [data, method, epsilon] and key in row]
                if own:
                    said = [mean_and_range([each[place] for each in own], ".3f") for place in range(3)]
                    print(f"| {name} | {epsilon:g} | {method} | " + " | ".join(said) + " |")


def main() -> None:
    """Read the command line, then measure or print."""
    asked = command_line(
        __doc__, ["run", "scale", "long", "visits", "table"], before=told(False, "rows of visits by the code before"),
        data=some(sorted(RELATED), ["stays", "orders", "days"]), methods=some(METHODS, METHODS[:2]),
        epsilons=[1.0, 3.0], seeds=[0, 1, 2],
    )  # fmt: skip
    if asked.verb == "table":
        table()
    elif asked.verb == "visits":
        for epsilon in asked.epsilons:
            for by_day in (True, False):
                for seed in asked.seeds:
                    visits(seed, epsilon, by_day=by_day, before=asked.before)
    elif asked.verb in ("scale", "long"):
        {"scale": scale, "long": long}[asked.verb](asked.seeds[0])
    else:
        cells = [
            (data, method, epsilon, seed)
            for data in asked.data
            for epsilon in asked.epsilons
            for method in asked.methods
            for seed in asked.seeds
        ]
        measure("relational", by_cell(cells, one), _said)


if __name__ == "__main__":
    main()
