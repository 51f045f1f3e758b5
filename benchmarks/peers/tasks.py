"""The data sets: private rows, real test rows, public schema, and the measures.

What nobody has published would have to be bought; here it is declared for everybody, ours included, so that nobody
pays: fnlwgt lies in (0, 1,500,000); Diabetes-130's payers and specialties are those in the file, and its diagnoses are
the nine groups of Strack et al. 2014 (Table 2).
"""

from __future__ import annotations

import statistics
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.metrics import roc_auc_score

import doublure as db
from doublure.data.tables.opening import open_table
from doublure.schema import ResolvedSchema, Schema

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

import adult  # noqa: E402

NAMES = ("adult", "adult-categorical", "mushroom", "diabetes130")
FNLWGT = [0, 1_500_000]
GROUPS = {
    "Circulatory": [(390, 459), (785, 785)],
    "Respiratory": [(460, 519), (786, 786)],
    "Digestive": [(520, 579), (787, 787)],
    "Diabetes": [(250, 250)],
    "Injury": [(800, 999)],
    "Musculoskeletal": [(710, 739)],
    "Genitourinary": [(580, 629), (788, 788)],
    "Neoplasms": [(140, 239)],
}


@dataclass(frozen=True, kw_only=True)
class Task:
    """One data set.

    Attributes:
        name: One of ``NAMES``.
        schema: Nothing left to buy.
        train: The private rows, as the schema reads them.
        test: Real rows that nobody learns from.
        target: What is predicted.
        positive: The values of the target that count as yes.
    """

    name: str
    schema: Schema
    train: pd.DataFrame
    test: pd.DataFrame
    target: str
    positive: tuple[str, ...]

    @property
    def resolved(self) -> ResolvedSchema:
        """The same schema; every fact is known."""
        return self.schema.resolve({})


def load(name: str) -> Task:
    """Read one data set; the same split every time."""
    if name.startswith("adult"):
        return _adult(name)
    return _mushroom() if name == "mushroom" else _diabetes()


def scores(task: Task, artificial: pd.DataFrame, seed: int) -> dict[str, float]:
    """Return what two classifiers, trained on these rows, reach on the real test rows."""
    if task.name.startswith("adult"):
        return adult.scores(task.resolved, artificial, task.test, seed)
    return _scores(task, artificial, seed)


def distances(task: Task, rows: pd.DataFrame) -> dict[str, float]:
    """Return the mean total variation to the private rows over columns and over pairs, numbers in 20 public bins."""
    schema, columns = task.resolved, list(task.schema.columns)
    coded = [adult._codes(schema, frame[columns]) for frame in (rows, task.train)]
    alone = [_total_variation(*(codes[:, at] for codes in coded)) for at in range(len(columns))]
    return {"one_way": statistics.mean(alone), "two_way": adult.two_way(schema, rows[columns], task.train[columns])}


def independent(task: Task, seed: int) -> pd.DataFrame:
    """Return the private rows with every column shuffled by itself: exact columns and nothing else; not private."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame({name: task.train[name].array[rng.permutation(len(task.train))] for name in task.train})


def _adult(name: str) -> Task:
    train, test = adult.balanced(db.datasets.load_adult("train")), adult.balanced(adult.official_test())
    plain = adult.schema_for("categorical" if name == "adult-categorical" else "all", len(train)).to_plain()
    if "fnlwgt" in plain["columns"]:
        plain["columns"]["fnlwgt"]["bounds"] = FNLWGT
    return _task(name, plain, train, test, "income", (">50K",))


def _mushroom() -> Task:
    plain = Schema.load(ROOT / "examples/schemas/mushroom.schema.yaml").to_plain()
    plain["columns"]["class"].pop("shares", None)
    plain["columns"]["class"]["roles"] = ["target"]
    frame = pd.read_csv(adult.SHARED / "mushroom.csv.gz", dtype=str, keep_default_na=False)
    return _task("mushroom", plain, *_split(frame), "class", ("p",))


def _diabetes() -> Task:
    """One stay of each patient, drawn once, so that a row is a patient."""
    frame = pd.read_csv(adult.SHARED / "diabetes130.csv.gz", keep_default_na=False, low_memory=False)
    frame = frame.sample(frac=1, random_state=0).drop_duplicates("patient_nbr").reset_index(drop=True)
    plain = Schema.load(ROOT / "examples/schemas/diabetes130.schema.yaml").to_plain()
    plain["unit"] = {"name": "patient", "id": None, "max_records": 1}
    for name in ("encounter_id", "patient_nbr"):
        plain["columns"].pop(name)
    for name in ("payer_code", "medical_specialty"):
        values = sorted(set(frame[name]) - {"?"})
        plain["columns"][name] = {"type": "category", "values": values, "missing": ["?"]}
    for name in ("diag_1", "diag_2", "diag_3"):
        frame[name] = frame[name].map(_group)
        plain["columns"][name] = {"type": "category", "values": [*GROUPS, "Other"], "missing": ["?"]}
    target = plain["columns"]["readmitted"]
    target.pop("shares", None)
    target["roles"] = ["target"]
    return _task("diabetes130", plain, *_split(frame), "readmitted", ("<30", ">30"))


def _group(code: str) -> str:
    if code == "?" or not code[0].isdigit():
        return "?" if code == "?" else "Other"
    number = int(float(code))
    return next((name for name, spans in GROUPS.items() if any(a <= number <= b for a, b in spans)), "Other")


def _split(frame: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Keep a fixed quarter for testing."""
    order = np.random.default_rng(0).permutation(len(frame))
    cut = len(frame) * 3 // 4
    return frame.iloc[order[:cut]].reset_index(drop=True), frame.iloc[order[cut:]].reset_index(drop=True)


def _task(
    name: str, plain: dict[str, Any], train: pd.DataFrame, test: pd.DataFrame, target: str, positive: tuple[str, ...]
) -> Task:
    plain["units"] = len(train)
    schema = Schema.from_plain(plain)
    read = [open_table(frame[list(schema.columns)]).load(schema).frame for frame in (train, test)]
    return Task(name=name, schema=schema, train=read[0], test=read[1], target=target, positive=positive)


def _scores(task: Task, taught: pd.DataFrame, seed: int) -> dict[str, float]:
    """As ``adult.scores``, for another target."""
    x, y = _features(task, taught)
    x_test, y_test = _features(task, task.test)
    forest = RandomForestClassifier(n_estimators=100, random_state=seed, n_jobs=1).fit(x, y)
    boosting = HistGradientBoostingClassifier(random_state=seed).fit(x, y)
    return {
        "forest": float(forest.score(x_test, y_test)),
        "boosting_auc": float(roc_auc_score(y_test, boosting.predict_proba(x_test)[:, 1])),
    }


def _features(task: Task, frame: pd.DataFrame) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    columns = []
    for name, column in task.resolved.columns.items():
        if name == task.target:
            continue
        if column.bounded:
            columns.append(frame[name].to_numpy(dtype=float))
        else:
            known = [str(value) for value in getattr(column, "domain", ())]
            columns.append(pd.Categorical(frame[name].astype(str), categories=known).codes.astype(float))
    return np.stack(columns, axis=1), frame[task.target].astype(str).isin(task.positive).to_numpy()


def _total_variation(one: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> float:
    size = 1 + int(max(one.max(), other.max()))
    shares = [np.bincount(codes, minlength=size) / len(codes) for codes in (one, other)]
    return 0.5 * float(np.abs(shares[0] - shares[1]).sum())
