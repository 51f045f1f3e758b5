"""The tasks of ``benchmarks/latent.py``: who is in which part by the paper's protocol, and where SVHN comes from."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import doublure as db
from doublure.errors import DataError

FILE = Path(__file__).resolve().parents[1] / "benchmarks" / "latent_tasks.py"
LABELS = np.arange(60) % 5


@pytest.fixture(scope="module")
def tasks():
    if str(FILE.parent) not in sys.path:
        sys.path.append(str(FILE.parent))  # as for a program that is run: its folder's other modules are found
    spec = importlib.util.spec_from_file_location("latent_tasks", FILE)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def numbered(size, first=0):
    """Return images that each show their own number."""
    return np.repeat(np.arange(first, first + size, dtype=np.uint8), 16).reshape(-1, 4, 4, 1)


def of_images(tasks):
    private, test = (numbered(60), LABELS), (numbered(10), LABELS[:10])
    return tasks._of_images(
        numbered(90, 100), private, test, {"data": "numbers", "people": "nobody", "licence": "none"}
    )


def of_rows(tasks):
    columns = {
        "age": {"type": "integer", "bounds": [0, 100], "missing": False},
        "soon": {"type": "category", "values": ["no", "yes"], "missing": False, "roles": ["target", "condition"]},
    }
    plain = {"doublure": 1, "kind": "table", "units": 60, "columns": columns}
    frame = pd.DataFrame({"age": np.arange(60), "soon": np.where(LABELS == 0, "yes", "no")})
    schema = db.Schema.from_plain(plain)
    return tasks.Task(
        public=frame, public_schema=schema, provenance={}, private=frame, schema=schema, test=frame, target="soon"
    )


def test_a_third_of_the_images_labels_the_rest(tasks):
    task = of_images(tasks)
    found = task.by_the_paper(1)
    seen, aside = (sorted(part["images"][:, 0, 0, 0].tolist()) for part in (found.private, found.labelling))
    assert (len(seen), len(aside)) == (40, 20)
    assert sorted(seen + aside) == list(range(60))
    assert (found.schema.public_units, found.public_schema.public_units, len(found.public["images"])) == (40, 60, 60)
    for part in (found.private, found.labelling):  # labels stay with their images
        assert (part["labels"] == part["images"][:, 0, 0, 0] % 5).all()
    data, schema = found.unlabelled()
    assert (list(data), schema.label) == (["images"], None)
    assert task.by_the_paper(2).private["images"].tolist() != found.private["images"].tolist()


def test_a_third_of_the_rows_labels_the_rest(tasks):
    found = of_rows(tasks).by_the_paper(1)
    assert sorted([*found.private["age"], *found.labelling["age"]]) == list(range(60))
    data, schema = found.unlabelled()
    assert list(data) == list(schema.columns) == list(found.public) == list(found.public_schema.columns) == ["age"]
    again = found.relabelled(data)
    assert list(again) == ["age", "soon"]
    assert set(again["soon"]) == {"no"}


def test_svhn_is_taken_as_it_is_published(tasks, tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules["real_images"], "SHARED", tmp_path)
    asked = []

    def load(name, split):
        asked.append((name, split))
        images, labels = np.zeros((20, 4, 4, 3), np.uint8), np.arange(20) % 10
        return {"x": images, "y": labels}

    monkeypatch.setattr(db.datasets, "load", load)
    task = tasks.TASKS["svhn"](False)
    assert asked == [("svhn", "train"), ("svhn", "test")]
    assert set(task.private["labels"]) == set(task.test["labels"]) == {0, 2, 3, 4, 6}
    assert (len(task.public["images"]), task.schema.shape) == (10, (4, 4, 3))

    def fails(name, split):
        raise DataError("could not be downloaded", field=name)

    monkeypatch.setattr(db.datasets, "load", fails)
    with pytest.raises(SystemExit, match=r"svhn\.npz is not at hand, and svhn: could not be downloaded"):
        tasks.TASKS["svhn"](False)


def test_settings_for_the_diabetes_task_are_chosen_without_its_test_patients(tasks):
    if not (tasks.SHARED / "diabetes130.csv.gz").is_file():
        pytest.skip("the data is not at hand")
    official, tuning = tasks.diabetes(False), tasks.diabetes(True)
    assert tuning.public.equals(official.public)  # one public generator serves both
    assert len(tuning.private) + len(tuning.test) == len(official.private)
    both = pd.concat([tuning.private, tuning.test]).sort_values(list(official.private)).reset_index(drop=True)
    assert both.equals(official.private.sort_values(list(official.private)).reset_index(drop=True))
    assert tuning.schema.public_units == len(tuning.private)
