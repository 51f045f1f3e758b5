"""The tasks of ``latent.py``: what is public, what is private, and what classifiers are tested on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

import doublure as db
from doublure.schema.schema import domain_of
from real_images import SHARED, images_of, train_and_test


@dataclass(frozen=True, kw_only=True)
class Task:
    """Public, private and test data with their schemas.

    Attributes:
        public: What the public generator is trained on.
        public_schema: Of it.
        provenance: Where it comes from.
        private: Private training data, labels included.
        schema: Of it.
        test: Real records that classifiers are tested on.
        target: The column that classifiers predict; ``label`` for images.
        labelling: By the paper's protocol, the records that the classifier of labels is trained on.
    """

    public: Any
    public_schema: db.Schema
    provenance: dict[str, str]
    private: Any
    schema: db.Schema
    test: Any
    target: str = "label"
    labelling: Any = None

    @property
    def images(self) -> bool:
        """Whether records are images."""
        return self.schema.kind == "images"

    def unlabelled(self) -> tuple[Any, db.Schema]:
        """Return the private data without its labels, and its schema."""
        plain = self.schema.to_plain()
        if self.images:
            del plain["label"]
            return {"images": self.private["images"]}, db.Schema.from_plain(plain)
        return self.private.drop(columns=self.target), self._without_target(plain)

    def relabelled(self, data: Any) -> Any:
        """Return records without labels as the schema has them, each with the first label in its place."""
        first = domain_of(self.schema, self.target)[0]
        if self.images:
            return {"images": data.images, "labels": np.full(len(data.images), first)}
        return data.assign(**{self.target: first})[list(self.schema.columns)]

    def of_fewer(self, units: int) -> Task:
        """Return the task with so many private records, drawn at random."""
        rows = np.random.default_rng(7).permutation(len(next(iter(self.private.values()))))[:units]
        schema = db.Schema.from_plain(self.schema.to_plain() | {"units": units})
        return replace(self, private=_taken(self.private, np.sort(rows)), schema=schema)

    def by_the_paper(self, seed: int) -> Task:
        """Return the task by the paper's protocol (§IV-A): a third of all training records is the labelling set.

        What is left of the private records has no labels that a method could see.
        """
        draw = np.random.default_rng([seed, 3])
        rows, public = (draw.permutation(_size(data)) for data in (self.private, self.public))
        cut, left = len(rows) // 3, len(public) // 3
        private = _taken(self.private, np.sort(rows[cut:]))
        plain = self.public_schema.to_plain() | {"units": len(public) - left}
        return replace(
            self,
            labelling=_taken(self.private, np.sort(rows[:cut])),
            private=private,
            schema=db.Schema.from_plain(self.schema.to_plain() | {"units": len(rows) - cut}),
            public=_taken(self.public, np.sort(public[left:])) if self.images else self._public_rows(public[left:]),
            public_schema=db.Schema.from_plain(plain) if self.images else self._without_target(plain),
        )

    def _public_rows(self, rows: np.ndarray[Any, Any]) -> pd.DataFrame:
        return _taken(self.public, np.sort(rows)).drop(columns=self.target)

    def _without_target(self, plain: dict[str, Any]) -> db.Schema:
        columns = {name: column for name, column in plain["columns"].items() if name != self.target}
        return db.Schema.from_plain(plain | {"columns": columns})


def _size(data: Any) -> int:
    return len(data["images"]) if isinstance(data, dict) else len(data)


def _taken(data: Any, rows: np.ndarray[Any, Any]) -> Any:
    if isinstance(data, dict):
        return {name: values[rows] for name, values in data.items()}
    return data.iloc[rows].reset_index(drop=True)


def _of_images(
    public: np.ndarray[Any, Any],
    private: tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]],
    test: tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]],
    provenance: dict[str, str],
) -> Task:
    shape = list(private[0].shape[1:])
    plain = {"doublure": 1, "kind": "images", "images": {"shape": shape}}
    label = {"values": sorted(set(private[1].tolist())), "roles": ["target", "condition"]}
    return Task(
        public={"images": public},
        public_schema=db.Schema.from_plain({**plain, "units": len(public)}),
        provenance=provenance,
        private={"images": private[0], "labels": private[1]},
        schema=db.Schema.from_plain({**plain, "units": len(private[0]), "label": label}),
        test={"images": test[0], "labels": test[1]},
    )


def split_by_class(name: str, public: set[int], private: set[int], provenance: dict[str, str], tune: bool) -> Task:
    """Return the paper's split of one data set: some classes are public, some are private."""
    (images, labels), test = train_and_test(name, tune)
    mine, theirs = (np.isin(labels, sorted(classes)) for classes in (private, public))
    tested = np.isin(test[1], sorted(private))
    return _of_images(images[theirs], (images[mine], labels[mine]), (test[0][tested], test[1][tested]), provenance)


def two_sets(public: str, private: str, provenance: dict[str, str], tune: bool) -> Task:
    """Return one data set as public, another as private."""
    train, test = train_and_test(private, tune)
    return _of_images(images_of(public, "train")[0], train, test, provenance)


_MEASURES = ("time_in_hospital", "num_lab_procedures", "num_procedures", "num_medications", "number_diagnoses")
_VISITS = ("number_outpatient", "number_emergency", "number_inpatient")
_WORDS = {
    "race": ["Caucasian", "AfricanAmerican", "Asian", "Hispanic", "Other"],
    "gender": ["Female", "Male", "Unknown/Invalid"],
    "age": [f"[{ten}-{ten + 10})" for ten in range(0, 100, 10)],
    "max_glu_serum": ["None", "Norm", ">200", ">300"],
    "A1Cresult": ["None", "Norm", ">7", ">8"],
    "insulin": ["No", "Steady", "Up", "Down"],
    "change": ["No", "Ch"],
    "diabetesMed": ["No", "Yes"],
}
_MOST = {
    "time_in_hospital": [1, 14], "num_lab_procedures": [0, 140], "num_procedures": [0, 6], "num_medications": [1, 100],
    "number_diagnoses": [1, 16], "number_outpatient": [0, 52], "number_emergency": [0, 104],
    "number_inpatient": [0, 26],
}  # fmt: skip


def diabetes(tune: bool) -> Task:
    """Return Diabetes-130, each patient's first stay: two fifths of the patients public, as many private, a fifth test.

    The target, readmission within thirty days, is unbalanced, as the paper's smiles are. Settings are chosen (``tune``)
    with three quarters of the private patients, and tested on the others: no test patient is looked at.
    """
    names = [*_WORDS, *_MEASURES, *_VISITS]
    frame = pd.read_csv(SHARED / "diabetes130.csv.gz", keep_default_na=False, dtype=str)
    frame = frame.drop_duplicates("patient_nbr")
    frame["soon"] = np.where(frame["readmitted"] == "<30", "yes", "no")
    frame["race"] = frame["race"].replace("?", "Other")
    part = np.random.default_rng(0).integers(0, 5, len(frame))
    quarter = np.random.default_rng(1).integers(0, 4, len(frame))
    frame = frame[[*names, "soon"]].astype({name: int for name in (*_MEASURES, *_VISITS)}).reset_index(drop=True)
    private = np.isin(part, [2, 3])
    test = private & (quarter == 0) if tune else part == 4
    rows = (np.isin(part, [0, 1]), private & ~test, test)
    public, private, test = (frame[which].reset_index(drop=True) for which in rows)
    columns: dict[str, Any] = {
        name: {"type": "category", "values": values, "missing": False} for name, values in _WORDS.items()
    }
    columns |= {name: {"type": "integer", "bounds": _MOST[name], "missing": False} for name in (*_MEASURES, *_VISITS)}
    columns["soon"] = {"type": "category", "values": ["no", "yes"], "missing": False, "roles": ["target", "condition"]}
    plain = {"doublure": 1, "kind": "table", "unit": {"name": "patient", "id": None, "max_records": 1}}
    shares = {"soon": {**columns["soon"], "shares": {"no": 0.91, "yes": 0.09}}}  # about what is published
    return Task(
        public=public,
        public_schema=db.Schema.from_plain({**plain, "units": len(public), "columns": columns}),
        provenance={
            "data": "Diabetes 130-US hospitals, two fifths of the patients",
            "people": "patients of 130 hospitals, 1999-2008; none of them among the private ones",
            "licence": "CC BY 4.0",
            "shared_people": "none",
        },
        private=private,
        schema=db.Schema.from_plain({**plain, "units": len(private), "columns": columns | shares}),
        test=test,
        target="soon",
    )


def _said(data: str, people: str, licence: str) -> dict[str, str]:
    return {"data": data, "people": people, "licence": licence}


_MNIST = _said("MNIST, the odd digits", "census employees and students of the 1990s", "CC BY-SA 3.0")
_LETTERS = _said("EMNIST letters, NIST", "census employees and students of the 1990s, many of MNIST's", "NIST, public")
_FASHION = _said("Fashion-MNIST, five classes", "nobody: photographs of clothes", "MIT")
_CIFAR = _said("CIFAR-10 (a JPEG copy), the paper's five public classes", "nobody: animals and cars", "none stated")
_SVHN = _said("SVHN, the paper's five public digits", "nobody: house numbers", "non-commercial")
_ALL_CIFAR = _said("CIFAR-10 (a JPEG copy), all classes", "nobody: animals and vehicles", "none stated")

TASKS: dict[str, Callable[[bool], Task]] = {
    "mnist-odd-even": lambda tune: split_by_class("mnist", {1, 3, 5, 7, 9}, {0, 2, 4, 6, 8}, _MNIST, tune),
    "emnist-mnist": lambda tune: two_sets("emnist-letters", "mnist", _LETTERS, tune),
    "fashion": lambda tune: split_by_class("fashion-mnist", {1, 3, 5, 7, 9}, {0, 2, 4, 6, 8}, _FASHION, tune),
    # public: automobile, bird, cat, deer, dog; private: airplane, frog, horse, ship, truck
    "cifar10": lambda tune: split_by_class("cifar10", {1, 2, 3, 4, 5}, {0, 6, 7, 8, 9}, _CIFAR, tune),
    "svhn": lambda tune: split_by_class("svhn", {1, 5, 7, 8, 9}, {0, 2, 3, 4, 6}, _SVHN, tune),
    "cifar10-svhn": lambda tune: two_sets("cifar10", "svhn", _ALL_CIFAR, tune),
    "diabetes": diabetes,
}
