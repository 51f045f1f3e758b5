"""Survey weights: what rows say of their population, beside what they say of themselves."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import doublure as db
from doublure.errors import SchemaError
from doublure.evaluate import evaluate_table
from doublure.schema import Schema

TEXT = """
doublure: 1
kind: table
units: 3000
columns:
  wt: {type: real, bounds: [0, 50], precision: 2, missing: true, roles: [weight]}
  pay: {type: integer, bounds: [0, 1000], missing: true}
  sex: {type: category, values: [f, m], missing: true}
  day: {type: date, bounds: [2000-01-01, 2020-12-31], missing: false}
"""
SCHEMA = Schema.parse(TEXT).resolve({})


def rows(seed: int, n: int) -> pd.DataFrame:
    """Return rows of a survey that asks women four times as often, and weighs them accordingly."""
    rng = np.random.default_rng(seed)
    female = rng.random(n) < 0.8
    frame = pd.DataFrame(
        {
            "wt": np.where(female, 5.0, 20.0),
            "pay": np.where(female, 300, 500) + rng.integers(-50, 51, n).astype(float),
            "sex": np.where(female, "f", "m"),
            "day": pd.Timestamp("2010-01-01"),
        }
    )
    frame.loc[: n // 50, "pay"] = np.nan
    frame.loc[n // 50 : n // 25, "wt"] = np.nan
    return frame


def test_figures_are_those_of_the_population() -> None:
    real, synthetic, kept = rows(1, 3000), rows(2, 1000), rows(3, 500)
    found = evaluate_table(SCHEMA, synthetic, real, kept).weighted
    assert found is not None
    assert found.column == "wt"
    assert {(figure.column, figure.label) for figure in found.figures} == {("pay", None), ("sex", "f"), ("sex", "m")}
    pay = next(figure for figure in found.figures if figure.column == "pay")
    male = next(figure for figure in found.figures if figure.label == "m")
    for role, frame in (("value", synthetic), ("real", real), ("holdout", kept)):
        scale, weight = 3000 / len(frame), frame.wt.fillna(0)
        told = frame.pay.notna()
        expected = {
            "unweighted": frame.pay.mean(),
            "weighted": (frame.pay * weight)[told].sum() / weight[told].sum(),
            "total": (frame.pay * weight).sum() * scale,
        }
        for what, figure in expected.items():
            assert getattr(getattr(pay, what), role) == pytest.approx(figure)
        assert getattr(male.unweighted, role) == pytest.approx((frame.sex == "m").mean())
        assert getattr(male.weighted, role) == pytest.approx(weight[frame.sex == "m"].sum() / weight.sum())
        assert getattr(male.total, role) == pytest.approx(weight[frame.sex == "m"].sum() * scale)
        assert getattr(found.total, role) == pytest.approx(weight.sum() * scale)
    assert male.unweighted.real < 0.25 < 0.45 < male.weighted.real
    assert pay.gap == pytest.approx(abs(pay.weighted.value - pay.weighted.real) / np.nanstd(real.pay))


def test_weights_that_are_wrong_show_where_plain_means_do_not() -> None:
    real, turned = rows(1, 3000), rows(2, 3000)
    turned["wt"] = np.where(turned.sex == "f", 20.0, 5.0)
    found = evaluate_table(SCHEMA, turned, real, rows(3, 500)).weighted
    assert found is not None
    for figure in found.figures:
        assert abs(figure.unweighted.value - figure.unweighted.real) < 0.05 * max(1, figure.unweighted.real)
        assert figure.gap is not None
        assert figure.gap > 0.3


def test_without_a_weight_there_are_none() -> None:
    plain = Schema.parse(TEXT.replace(", roles: [weight]", "")).resolve({})
    assert evaluate_table(plain, rows(2, 500), rows(1, 500), rows(3, 200)).weighted is None
    nothing = rows(2, 500).assign(wt=np.nan)
    assert evaluate_table(SCHEMA, nothing, rows(1, 500), rows(3, 200)).weighted is None


def test_they_stand_in_the_report_and_in_its_json(tmp_path) -> None:
    ledger = db.Ledger.create(tmp_path / "l", dataset="survey", epsilon=9.0, delta=1e-3)
    plan = db.plan(Schema.parse(TEXT), epsilon=3.0, delta=1e-6, accountant="rdp")
    syn = db.fit(rows(1, 3000), plan, ledger=ledger, seed=1, progress=False)
    assert syn.sample(50, seed=1)["wt"].dtype == np.float64
    report = db.evaluate.report(syn, rows(1, 3000), rows(3, 500), progress=False)
    report.save(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "Are weighted totals right?" in page
    assert "weighted by wt" in page
    assert json.loads(report.to_json())["table"]["weighted"]["column"] == "wt"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("values: [f, m], missing: true", "values: [f, m], missing: true, roles: [weight]", "integer or real"),
        (
            "bounds: [0, 1000], missing: true",
            "bounds: [0, 1000], missing: true, roles: [weight]",
            "two columns.*weight",
        ),
        ("bounds: [0, 50]", "bounds: [-1, 50]", "a weight is at least 0"),
        ("roles: [weight]", "roles: [weight, target]", "without another role"),
        ("roles: [weight]", "roles: [weigh]", "target, condition and weight"),
    ],
)
def test_roles_that_are_no_weight(old: str, new: str, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        Schema.parse(TEXT.replace(old, new, 1))
