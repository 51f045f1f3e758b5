"""Several attributes of series: drawn together by noisy pairs, and with the level of the series."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from series_fits import answers_of, fit_series

import doublure as db
from doublure.data.series import Series
from doublure.methods.statistics.series import copula_plan, joint_attributes
from doublure.methods.statistics.series.joint_attributes import joint_shares, pair_shares

UNITS, LENGTH = 1000, 8
TEXT = f"""
doublure: 1
kind: series
unit: {{name: stay, id: null, max_records: 1}}
units: {UNITS}
series: {{length: {LENGTH}}}
channels:
  pulse: {{type: real, bounds: [0, 200], precision: 1, missing: false}}
attributes:
  age: {{type: integer, bounds: [20, 89], missing: false}}
  weight: {{type: real, bounds: [40, 120], missing: false}}
  ward: {{type: category, values: [a, b, c], missing: false}}
  sex: {{type: category, values: [f, m], missing: false}}
"""


def stays():
    """Return stays in which the old are heavier and in ward c, and have a higher pulse; men are heavier."""
    draw = np.random.default_rng(0)
    age = draw.normal(size=UNITS)
    man = draw.random(UNITS) < 0.5
    weight = 0.6 * age + 0.5 * (2 * man - 1) + 0.6 * draw.normal(size=UNITS)
    ward = np.digitize(age + 0.5 * draw.normal(size=UNITS), [-0.5, 0.6])
    pulse = 90 + 15 * age[:, None] + 8 * draw.normal(size=(UNITS, 1)) + 6 * draw.normal(size=(UNITS, LENGTH))
    return {
        "pulse": pulse.clip(0, 200).round(1),
        "age": (55 + 13 * age).round().clip(20, 89).astype(int),
        "weight": (80 + 13 * weight).round(1).clip(40, 120),
        "ward": np.array(["a", "b", "c"])[ward],
        "sex": np.where(man, "m", "f"),
    }


@pytest.fixture(scope="module")
def syn(tmp_path_factory):
    plan = db.plan(db.Schema.parse(TEXT), method="statistics", epsilon=10.0, delta=1e-5)
    assert plan.settings.grouped == ()  # two numbers alone would be a hundred groups of ten stays
    assert plan.settings.joint_attributes
    return fit_series(tmp_path_factory.mktemp("attributes"), stays(), plan, TEXT)


def correlations(attributes, level) -> np.ndarray:
    columns = [attributes["age"], attributes["weight"], attributes["ward"] == "c", attributes["sex"] == "m", level]
    found: np.ndarray = np.corrcoef([np.asarray(own, dtype=float) for own in columns])
    return found


def test_attributes_go_together_and_with_the_level(syn):
    real, made = stays(), syn.sample(4000, seed=1)
    kept = correlations(made.attributes, made.values.mean((1, 2)))
    apart = np.abs(kept - correlations(real, real["pulse"].mean(1)))
    assert kept[0, 4] > 0.75  # of .86
    assert kept[0, 1] > 0.3  # of .59
    assert apart.mean() < 0.1
    assert {"age", "weight", "ward", "sex"} <= {*made.frame().columns}


def test_asking_for_one_moves_the_others(syn):
    old, young = (syn.sample(500, given={"age": ages}, seed=1) for ages in ((70, 89), (20, 40)))
    assert old.values.mean() - young.values.mean() > 20
    assert old.attributes["weight"].mean() - young.attributes["weight"].mean() > 8
    assert (old.attributes["ward"] == "c").mean() - (young.attributes["ward"] == "c").mean() > 0.3


def test_pairs_that_noise_hides_are_independent_and_others_stay():
    table = np.array([[280.0, 20.0], [220.0, 480.0]])
    near, hidden = (pair_shares([table], 1000.0, deviation, [None, None])[0] for deviation in (0.1, 10_000.0))
    np.testing.assert_allclose(near, table / 1000, atol=1e-3)
    np.testing.assert_allclose(hidden, np.outer(hidden.sum(1), hidden.sum(0)), atol=1e-6)


def test_numbers_go_together_in_a_straight_line_where_cells_are_noise():
    draw, numbers = np.random.default_rng(0), np.arange(10.0)
    both = draw.multivariate_normal([0, 0], [[1, 0.7], [0.7, 1]], size=2000)
    codes = np.clip(np.floor(both * 2 + 5), 0, 9).astype(int)
    table = np.histogram2d(*codes.T, bins=[np.arange(11)] * 2)[0] + 12 * draw.normal(size=(10, 10))
    found = [pair_shares([table], 2000.0, 12.0, own)[0] for own in ([None, None], [numbers, numbers])]
    placed = [
        float(numbers @ (own - np.outer(own.sum(1), own.sum(0))) @ numbers)
        / np.sqrt(np.prod([own.sum(a) @ numbers**2 - (own.sum(a) @ numbers) ** 2 for a in (0, 1)]))
        for own in found
    ]
    assert placed[1] > 0.5 > placed[0]


def test_joint_shares_have_the_pairs():
    whole = np.random.default_rng(0).random((3, 2, 4)) ** 2
    whole /= whole.sum()
    found = joint_shares([whole.sum(2), whole.sum(1), whole.sum(0)]).reshape(3, 2, 4)
    for axis in range(3):
        np.testing.assert_allclose(found.sum(axis), whole.sum(axis), atol=1e-4)


# -- sensitivity -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """Return what every query of a fit answers, exactly, for any other records."""
    plan = db.plan(db.Schema.parse(TEXT), method="statistics", epsilon=10.0, delta=1e-5, candidates=1, bins=64)
    purposes, queries, ask = answers_of(
        lambda: fit_series(tmp_path_factory.mktemp("answers"), stays(), plan, TEXT), bins=64, curve=1 / 3
    )
    return purposes, queries, lambda data: ask(of_series(data))


def of_series(data) -> Series:
    lists = {"ward": ["a", "b", "c"], "sex": ["f", "m"]}
    attributes = {
        name: pd.Categorical(data[name], categories=lists[name]) if name in lists else data[name].astype(float)
        for name in ("age", "weight", "ward", "sex")
    }
    return Series(values=data["pulse"][:, :, None], channels=("pulse",), attributes=pd.DataFrame(attributes))


@pytest.mark.parametrize("size", [0, 30])
@pytest.mark.parametrize("odd", [{}, {"age": np.array([1_000_000])}, {"weight": np.array([-1e9])}])
def test_one_series_moves_each_release_by_what_it_is_priced_at(answers, size, odd):
    purposes, queries, ask = answers
    base = {name: cells[:size] for name, cells in stays().items()}
    more = {name: cells[-1:] for name, cells in stays().items()} | odd
    both = {name: np.concatenate([base[name], more[name]]) for name in base}
    assert copula_plan.ATTRIBUTES in purposes
    for query, one, other in zip(queries, ask(base), ask(both), strict=True):
        moved = (np.asarray(other.total, dtype=float) - np.asarray(one.total, dtype=float)) * (one.unit or 1.0)
        assert 0 < np.sqrt((moved**2).sum()) <= query.sensitivity.l2 * (1 + 1e-12)
        assert np.abs(moved).sum() <= query.sensitivity.l1 * (1 + 1e-12)


def test_a_planted_fault_that_counts_each_pair_twice_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(joint_attributes, "combinations", lambda axes, count: [*combinations(axes, count)] * 2)
    plan = db.plan(db.Schema.parse(TEXT), method="statistics", epsilon=10.0, delta=1e-5)
    with pytest.raises(db.errors.DoublureError, match=r"than the .* that was priced"):
        fit_series(tmp_path, stays(), plan, TEXT)
