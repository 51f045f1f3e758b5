"""Rules between channels: declared in the schema, kept at every step of synthetic series."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from series_fits import fit_series

import doublure as db

UNITS, LENGTH = 300, 12
TEXT = f"""
doublure: 1
kind: series
unit: {{name: day, id: null, max_records: 1}}
units: {UNITS}
series: {{length: {LENGTH}, gaps: missing}}
channels:
  kwh: {{type: real, bounds: [0, 100], precision: 1, missing: false}}
  other: {{type: real, bounds: [0, 100], precision: 1, missing: true}}
  load: {{type: real, bounds: [0, 200], precision: 1, missing: true}}
  co2: {{type: real, bounds: [0, 50], precision: 2, missing: false}}
"""
RULES = """constraints:
- {sum: {total: load, of: [kwh, other]}}
- {formula: {of: co2, from: 'kwh * 0.5'}}
"""


def days() -> dict[str, Any]:
    draw = np.random.default_rng(0)
    own = np.round((40 + 15 * draw.normal(size=(UNITS, LENGTH))).clip(0, 100), 1)
    other = np.round((30 + 10 * draw.normal(size=(UNITS, LENGTH))).clip(0, 100), 1)
    other[draw.random(other.shape) < 0.05] = np.nan
    return {"kwh": own, "other": other, "load": np.round(own + other, 1), "co2": np.round(own / 2, 2)}


def planned(text: str, **settings: Any) -> db.Plan:
    return db.plan(db.Schema.parse(text), method="statistics", epsilon=10.0, delta=1e-5, bins=64, **settings)


@pytest.fixture(scope="module")
def syn(tmp_path_factory):
    plan = planned(TEXT + RULES)
    return fit_series(tmp_path_factory.mktemp("rules"), days(), plan, TEXT)


def test_every_step_keeps_the_rules(syn):
    kwh, other, load, co2 = np.moveaxis(syn.sample(200, seed=1).values, 2, 0)
    whole = ~(np.isnan(other) | np.isnan(load))
    np.testing.assert_allclose(load[whole], (kwh + other)[whole], atol=1e-6)
    np.testing.assert_allclose(co2, kwh / 2, atol=0.011)
    assert np.isnan(other).any()  # where a rule does not hold, and others do
    assert abs(np.nanmean(load) - 70) < 6


def test_without_the_rules_they_are_broken(tmp_path):
    plan = planned(TEXT, candidates=1)
    kwh, _, _, co2 = np.moveaxis(fit_series(tmp_path, days(), plan, TEXT).sample(200, seed=1).values, 2, 0)
    assert np.abs(co2 - kwh / 2).max() > 1


def test_a_schema_writes_its_rules(syn):
    again = db.Schema.parse(syn.schema.to_yaml())
    assert again.constraints == syn.schema.constraints
    assert "constraints" not in db.Schema.parse(TEXT).to_plain()


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        ("constraints: [{implies: {when: {kwh: [0, 1]}, then: {co2: [0, 1]}}}]", "at each step"),
        ("constraints: [{sum: {total: load, of: [kwh, nowhere]}}]", "at each step"),
        ("constraints: [{sum: {total: co2, of: [kwh, other]}}]", "same precision"),
    ],
)
def test_rules_that_steps_cannot_keep_are_refused(rules, said):
    with pytest.raises(db.errors.SchemaError, match=said):
        db.Schema.parse(TEXT + rules)
