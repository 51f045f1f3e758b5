"""Patients and their stays (Diabetes-130), beside independent tables: how they hang together, and the targets.

Strack et al. 2014: 71,518 patients and 101,766 stays in 130 US hospitals. A fixed fifth of the patients is kept aside.
A patient is the unit, with at most ten stays; δ = 1e-6; 20,000 synthetic patients are measured. Bounds
and values are those of the published description.
Beside stands the floor: real rows of each table and real numbers of stays, drawn independently (no noise at all).

    python benchmarks/relational.py run [--epsilons 1 3] [--seeds 0 1 2]
    python benchmarks/relational.py table
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score

import doublure as db
from doublure.data.relational import RelatedRows, open_related
from doublure.measures.relational import evaluate_related
from doublure.measures.relational.histories import aggregates
from doublure.measures.relational.units import Coders, independent
from results import by_cell, finished, mean_and_range, measure

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"
DELTA, KEPT_ASIDE, MADE = 1e-6, 5, 20_000
ACCOUNTANT = "rdp"
"""Quicker than ``pld`` to plan with, and a little looser: figures are those of some more noise."""
SCHEMA = """
doublure: 1
kind: relational
unit: {name: patient}
units: 57000
tables:
  patients:
    key: patient
    columns:
      patient: {type: id}
      race: {type: category, values: [Caucasian, AfricanAmerican, Hispanic, Asian, Other], missing: ["?"]}
      gender: {type: category, values: [Female, Male], other: Other, missing: false}
      age: {type: ordinal, values: ["[0-10)", "[10-20)", "[20-30)", "[30-40)", "[40-50)", "[50-60)", "[60-70)",
            "[70-80)", "[80-90)", "[90-100)"], missing: false}
  stays:
    parent: patients
    foreign_key: patient
    max_children: 10
    order: encounter
    columns:
      patient: {type: id}
      encounter: {type: integer, bounds: [0, 500000000], missing: false}
      admission_type: {type: category, values: [1, 2, 3, 4, 5, 6, 7, 8], missing: false}
      discharge: {type: category, values: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 22,
                  23, 24, 25, 27, 28], other: "0", missing: false}
      admission_source: {type: category, values: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 14, 17, 20, 22, 25],
                         other: "0", missing: false}
      days: {type: integer, bounds: [1, 14], missing: false}
      payer: {type: category, values: [MC, HM, SP, BC, MD, CP, UN, CM, OG, PO, DM, CH, WC, OT, MP, SI, FR],
              missing: ["?"]}
      lab_procedures: {type: integer, bounds: [0, 150], missing: false}
      procedures: {type: integer, bounds: [0, 6], missing: false}
      medications: {type: integer, bounds: [0, 100], missing: false}
      outpatient: {type: integer, bounds: [0, 100], missing: false}
      emergency: {type: integer, bounds: [0, 100], missing: false}
      inpatient: {type: integer, bounds: [0, 50], missing: false}
      diagnosis: {type: category, values: [circulatory, respiratory, digestive, diabetes, injury, musculoskeletal,
                  genitourinary, neoplasms, other], missing: ["?"]}
      diagnoses: {type: integer, bounds: [1, 16], missing: false}
      A1C: {type: category, values: [Norm, ">7", ">8"], missing: true}
      metformin: {type: category, values: ["No", Steady, Up, Down], missing: false}
      insulin: {type: category, values: ["No", Steady, Up, Down], missing: false}
      change: {type: category, values: ["No", Ch], missing: false}
      diabetesMed: {type: category, values: ["No", "Yes"], missing: false}
      readmitted: {type: category, values: ["NO", ">30", "<30"], missing: false, roles: [target]}
"""
FIGURES = {
    "children": "number of stays",
    "parent_child": "patient and stay, 30 pairs",
    "transitions": "successive stays",
    "gaps": "gaps",
    "discriminative": "two-sample AUC",
}
RANGES = (
    ((390, 459), "circulatory"), ((785, 785), "circulatory"), ((460, 519), "respiratory"), ((786, 786), "respiratory"),
    ((520, 579), "digestive"), ((787, 787), "digestive"), ((250, 250), "diabetes"), ((800, 999), "injury"),
    ((710, 739), "musculoskeletal"), ((580, 629), "genitourinary"), ((788, 788), "genitourinary"),
    ((140, 239), "neoplasms"),
)  # fmt: skip
"""The groups of ICD-9 codes of the published paper."""


def tables() -> dict[str, pd.DataFrame]:
    """Return patients, with what their first stay says of them, and stays."""
    raw = pd.read_csv(SHARED / "diabetes130.csv.gz", dtype=str, keep_default_na=False)
    raw["encounter"] = raw["encounter_id"].astype(np.int64)
    raw = raw.sort_values("encounter", kind="stable").rename(columns={"patient_nbr": "patient"})
    stays = raw.rename(
        columns={
            "admission_type_id": "admission_type", "discharge_disposition_id": "discharge",
            "admission_source_id": "admission_source", "time_in_hospital": "days", "payer_code": "payer",
            "num_lab_procedures": "lab_procedures", "num_procedures": "procedures", "num_medications": "medications",
            "number_outpatient": "outpatient", "number_emergency": "emergency", "number_inpatient": "inpatient",
            "number_diagnoses": "diagnoses", "A1Cresult": "A1C",
        }
    )  # fmt: skip
    stays["A1C"] = stays["A1C"].replace("None", "")
    stays["diagnosis"] = stays["diag_1"].map(_group)
    wanted = db.Schema.parse(SCHEMA).tables["stays"].columns
    patients = raw.drop_duplicates("patient")[["patient", "race", "gender", "age"]]
    return {"patients": patients.reset_index(drop=True), "stays": stays[list(wanted)].reset_index(drop=True)}


def _group(code: str) -> str:
    if code == "?":
        return "?"
    number = int(float(code)) if code[0].isdigit() else -1
    return next((name for (low, high), name in RANGES if low <= number <= high), "other")


def split() -> tuple[dict[str, pd.DataFrame], dict[str, pd.DataFrame]]:
    """Return the patients that a fit sees, and those kept aside, with their stays."""
    all_of_them = tables()
    nr = all_of_them["patients"]["patient"]
    aside = set(nr[np.random.default_rng(46).permutation(len(nr)) % KEPT_ASIDE == 0])
    sides = []
    for wanted in (False, True):
        some = {name: table[table["patient"].isin(aside) == wanted] for name, table in all_of_them.items()}
        sides.append({name: table.reset_index(drop=True) for name, table in some.items()})
    return sides[0], sides[1]


def one(epsilon: float, seed: int) -> dict[str, Any]:
    """Return one fit's figures, and the floor's beside them."""
    schema, (train, aside) = db.Schema.parse(SCHEMA), split()
    plan = db.plan(schema, epsilon=epsilon, delta=DELTA, accountant=ACCOUNTANT)
    with tempfile.TemporaryDirectory() as folder:
        ledger = db.Ledger.create(Path(folder) / "ledger", dataset="diabetes", epsilon=epsilon, delta=DELTA)
        syn = db.fit(train, plan, ledger=ledger, seed=seed)
    return figures(syn, train, aside, seed)


def figures(
    syn: db.Synthesizer, train: Mapping[str, pd.DataFrame], aside: Mapping[str, pd.DataFrame], seed: int
) -> dict[str, Any]:
    """Return how a fit's patients hold against real ones: each figure of the fit, the floor, and other real patients.

    Args:
        syn: The fit.
        train: What it has seen.
        aside: What it has not.
        seed: Of the sample, the floor and the classifiers.
    """
    schema = db.Schema.parse(SCHEMA)
    made = syn.sample(MADE, seed=seed)
    real, kept, drawn = (open_related(each).load(schema).content for each in (train, aside, made))
    found = evaluate_related(syn.schema, drawn, real, kept, tables=False, seed=seed)
    row: dict[str, Any] = {
        score.key.removesuffix(" stays"): [score.value, score.baseline, score.real] for score in found.scores
    }
    floor = independent(real, len(real), np.random.default_rng(seed))
    row["later_after_30"] = [_later_after(each) for each in (drawn, floor, real)]
    row["auc"] = [_auc(each, kept, syn.schema, seed) for each in (drawn, floor, real)]
    return row


def _later_after(units: RelatedRows) -> float:
    """Return the share of patients who have a stay after one that is marked <30."""
    owner, marked = units.parents["stays"], (units.frames["stays"]["readmitted"] == "<30").to_numpy()
    follows = np.append(owner[:-1] == owner[1:], False)
    return float(len(np.unique(owner[marked & follows])) / len(units))


def _auc(taught: RelatedRows, tested: RelatedRows, schema: db.Schema, seed: int) -> float:
    """Return how well a model ranks real patients by whether a stay of theirs is marked <30, from everything else."""
    columns = dict(schema.tables["stays"].columns)
    left = {name: column for name, column in columns.items() if name != "readmitted"}
    stays = schema.tables["stays"].model_copy(update={"columns": left})
    coders = Coders.of(schema.model_copy(update={"tables": {**schema.tables, "stays": stays}}))
    sides = []
    for units in (taught, tested):
        marked = (units.frames["stays"]["readmitted"] == "<30").to_numpy()
        label = np.bincount(units.parents["stays"], marked, len(units)) > 0
        sides.append((aggregates(coders, coders.read(units, "the patients")), label))
    model = HistGradientBoostingClassifier(random_state=seed, max_iter=100).fit(*sides[0])
    return float(roc_auc_score(sides[1][1], model.predict_proba(sides[1][0])[:, 1]))


def _said(row: Mapping[str, Any]) -> str:
    return f"{row['cell']}: " + ", ".join(f"{key} {row[key][0]:.4f} (floor {row[key][1]:.4f})" for key in FIGURES)


def table() -> None:
    """Print the table for docs/relational.md."""
    rows = finished("relational")
    print("| | ε | doublure | floor | other real patients |\n|---|---|---|---|---|")
    for key, name in {**FIGURES, "later_after_30": "a stay after one marked <30", "auc": "AUC, any stay <30"}.items():
        for epsilon in sorted({row["cell"][0] for row in rows}):
            own = [row[key] for row in rows if row["cell"][0] == epsilon]
            figures = [mean_and_range([each[place] for each in own], ".3f") for place in range(3)]
            print(f"| {name} | {epsilon:g} | " + " | ".join(figures) + " |")


def main() -> None:
    """Read the command line, then measure or print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["run", "table"])
    parser.add_argument("--epsilons", type=float, nargs="+", default=[1.0, 3.0])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    asked = parser.parse_args()
    if asked.what == "table":
        table()
        return
    cells = [(epsilon, seed) for epsilon in asked.epsilons for seed in asked.seeds]
    measure("relational", by_cell(cells, one), _said)


if __name__ == "__main__":
    main()
