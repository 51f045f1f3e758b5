import warnings

import numpy as np
import pandas as pd
import pytest

from doublure.errors import DataError
from doublure.measures.tables import utility
from doublure.measures.tables.coding import Coder
from doublure.measures.tables.features import REST, features, find_target, make_features
from doublure.measures.tables.utility import CLASSIFIERS, predict
from doublure.schema import Schema


def test_features_leave_out_the_target_and_scale_numbers_by_public_bounds(schema, real):
    found = features(schema, real)
    assert "label" not in found.names
    assert found.names == ("number", "real", "gain", "size", "colour", "member", "day", "moment")
    assert found.scaled["number"] == pytest.approx(real["number"].to_numpy() / 99)
    assert np.isnan(found.scaled["real"][real["real"].isna()]).all()


def test_trees_read_numbers_and_codes_with_missing_below_all(schema, real):
    table = features(schema, real).trees()
    assert table.shape == (len(real), 8)
    assert np.isfinite(table).all()
    assert (table[real["real"].isna(), 1] == np.float32(-0.1)).all()
    assert (table[real["colour"] == "?", 4] == -1).all()
    assert (table[real["size"] == "L", 3] == 2).all()


def test_one_hot_rows_have_one_mark_a_column(schema, real):
    found = features(schema, real)
    sparse = found.one_hot()
    assert sparse.shape == (len(real), sum(found.sizes) + len(found.scaled))
    dense = sparse.toarray()
    assert (dense[:, : sum(found.sizes)].sum(axis=1) == len(found.names)).all()
    start = sum(found.sizes[: found.names.index("size")])
    assert (dense[:, start + 2] == (real["size"] == "L")).all()
    assert dense[:, sum(found.sizes)] == pytest.approx(real["number"].to_numpy() / 99)


def test_the_columns_that_repeat_the_target_are_no_features():
    schema = Schema.parse(
        """
        doublure: 1
        kind: table
        units: 100
        columns:
          a: {type: ordinal, values: [x, y], missing: false}
          b: {type: integer, bounds: [0, 1], missing: false, roles: [target]}
          c: {type: boolean, missing: false}
        constraints: [{equal: [a, b]}]
        """
    ).resolve({})
    frame = pd.DataFrame({"a": ["x", "y"], "b": [0, 1], "c": [True, False]})
    assert features(schema, frame).names == ("c",)
    target = find_target(Coder(schema=schema), Coder(schema=schema).read(frame, "t"))
    assert (target.name, target.column, target.labels) == ("b", "a", ("x", "y"))


def test_features_refuse_another_table(schema, real):
    with pytest.raises(DataError, match="size"):
        features(schema, real.drop(columns="size"))


@pytest.mark.parametrize("kind", list(CLASSIFIERS))
def test_every_classifier_learns_and_fills_all_classes(schema, real, holdout, kind):
    training, test = features(schema, real), features(schema, holdout)
    classes = (real["label"] == "yes").to_numpy().astype(np.int64)
    chances = predict(kind, training, classes, test, 3, seed=0)
    assert chances.shape == (len(holdout), 3)
    assert chances.sum(axis=1) == pytest.approx(1)
    assert (chances[:, 2] == 0).all()
    assert (chances.argmax(axis=1) == (holdout["label"] == "yes")).mean() > 0.8
    assert (predict(kind, training, classes, test, 3, seed=0) == chances).all()


@pytest.mark.parametrize("kind", list(CLASSIFIERS))
def test_a_collapsed_table_teaches_its_one_class(schema, real, holdout, kind):
    training, test = features(schema, real), features(schema, holdout)
    chances = predict(kind, training, np.ones(len(real), dtype=np.int64), test, 2, seed=0)
    assert (chances == [0, 1]).all()


def wide_schema(values, **extra):
    return Schema.from_plain(
        {
            "doublure": 1,
            "kind": "table",
            "units": 100,
            "columns": {
                "x": {"type": "boolean", "missing": False},
                "y": {"type": "category", "values": values, "missing": True, "roles": ["target"], **extra},
            },
        }
    ).resolve({})


def test_rare_classes_of_a_long_target_are_lumped_together():
    schema = wide_schema([f"v{number}" for number in range(30)])
    labels = [f"v{number % 30}" for number in range(60)] + ["v29"] * 40
    frame = pd.DataFrame({"x": True, "y": labels})
    coder = Coder(schema=schema)
    coded = coder.read(frame, "t")
    target = find_target(coder, coded)
    assert len(target.labels) == 10
    assert target.labels[-1] == REST
    assert "v29" in target.labels
    classes = target.read(coded)
    assert (classes[-40:] == target.labels.index("v29")).all()
    assert (classes[10] == target.labels.index(REST)) == ("v10" not in target.labels)


def test_a_missing_target_is_no_class():
    schema = wide_schema(["a", "b"])
    coder = Coder(schema=schema)
    coded = coder.read(pd.DataFrame({"x": True, "y": ["a", None, "b"]}), "t")
    assert find_target(coder, coded).read(coded).tolist() == [0, -1, 1]


@pytest.mark.parametrize(("numbers", "above"), [([1, 2, 3, 4], 2), ([0, 5, 5, 5], 3), ([1, 1, 1, 9], 1)])
def test_a_number_is_cut_at_the_median_and_both_sides_have_rows(numbers, above):
    schema = Schema.parse(
        """{doublure: 1, kind: table, units: 9, columns: {x: {type: boolean, missing: false},
        y: {type: integer, bounds: [0, 9], missing: false, roles: [target]}}}"""
    ).resolve({})
    coder = Coder(schema=schema)
    coded = coder.read(pd.DataFrame({"x": True, "y": numbers}), "t")
    assert find_target(coder, coded).read(coded).sum() == above


def test_no_more_than_the_stated_rows_are_used(schema, real, monkeypatch):
    monkeypatch.setattr(utility, "MOST_ROWS", 50)
    coder = Coder(schema=schema)
    coded = coder.read(real, "t")
    target = find_target(coder, coded)
    training_sets = utility.prepare(
        coder, target, dict.fromkeys(("value", "baseline", "real"), coded), coded, np.random.default_rng(0)
    )
    assert len(training_sets.truth) == 50
    assert all(len(classes) == 50 for _, classes in training_sets.trained.values())
    kept = make_features(coder, training_sets.test).scaled["number"]
    assert set(kept.tolist()) <= set((real["number"].to_numpy() / 99).astype(np.float32).tolist())


def test_a_forest_leaves_the_callers_filters_of_warnings(schema, real):
    """Threads of scikit-learn emptied them, and warned of it hundreds of times."""
    found, before = features(schema, real), [*warnings.filters]
    classes = np.arange(len(real)) % 2
    for seed in range(5):
        predict("forest", found, classes, found, 2, seed=seed)
        assert warnings.filters == before
