"""Means, standard deviations and largest hundredths: what anybody first asks of a number."""

import numpy as np
import pandas as pd
import pytest

from doublure.evaluate import evaluate_table
from doublure.measures.tables.summaries import round_figure
from doublure.schema import Schema

SCHEMA = Schema.parse(
    """
doublure: 1
kind: table
units: 4000
columns:
  paid: {type: integer, bounds: [0, 2000000], missing: true}
  children: {type: integer, bounds: [0, 20], missing: false}
  age: {type: integer, bounds: [18, 90], missing: false}
  same: {type: integer, bounds: [0, 9], missing: false}
  day: {type: date, bounds: [1960-01-01, 1980-12-31], missing: false}
"""
).resolve({})
N = 4000


def rows(seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    paid = np.exp(rng.normal(8, 1, N)).round()
    return pd.DataFrame(
        {
            "paid": np.where(rng.random(N) < 0.1, np.nan, paid),
            "children": np.minimum(rng.poisson(0.6, N), 5),
            "age": np.clip(rng.normal(45, 12, N).round(), 18, 90).astype(int),
            "same": 3,
            "day": pd.Timestamp("1970-01-01") + pd.to_timedelta(rng.integers(-3000, 3000, N), "D"),
        }
    )


def evaluated(synthetic: pd.DataFrame):
    return evaluate_table(SCHEMA, synthetic, rows(1), rows(2))


@pytest.fixture(scope="module")
def right():
    return evaluated(rows(3))


def test_they_are_those_of_the_rows(right):
    shown = {(entry.column, entry.what): entry for entry in right.summaries}
    assert {column for column, _ in shown} == {"paid", "children", "age", "same"}
    for role, seed in (("value", 3), ("real", 1), ("holdout", 2)):
        paid = rows(seed)["paid"].dropna().to_numpy()
        expected = {"mean": paid.mean(), "standard deviation": paid.std(), "99th percentile": np.quantile(paid, 0.99)}
        for what, figure in expected.items():
            assert getattr(shown["paid", what], role) == pytest.approx(figure)
    assert shown["same", "mean"].gap is None


def test_other_real_rows_are_not_off(right):
    assert not any(entry.off for entry in right.summaries)
    assert not any("averages" in warning for warning in right.verdict.warnings)


def test_a_few_rows_far_out_are_named():
    """Thirty of 4,000 rows at the bound double the mean, and no share of rows shows it."""
    made = rows(3)
    made.loc[:29, "paid"] = 2_000_000.0
    made.loc[:59, "children"] = 20
    found = evaluated(made)
    off = [(entry.column, entry.what) for entry in found.summaries if entry.off]
    assert {("paid", "mean"), ("paid", "standard deviation"), ("children", "mean")} <= set(off)
    assert [entry.off for entry in found.summaries] == [True] * len(off) + [False] * (12 - len(off))
    (said,) = [warning for warning in found.verdict.warnings if "averages" in warning]
    mean = next(entry for entry in found.summaries if (entry.column, entry.what) == ("paid", "mean"))
    assert f"paid, mean {round_figure(mean.value, mean.kind)} (real {round_figure(mean.real, mean.kind)})" in said
    assert "age," not in said


def test_a_mean_that_hardly_moves_is_not_off():
    made = rows(3)
    made["age"] += made.index % 5 == 0  # by a fifth of a year, of 45
    found = evaluated(made)
    assert not any(entry.off for entry in found.summaries)


@pytest.mark.parametrize(
    ("value", "said"), [(5708.6, "5,709"), (-1234.5, "−1,234"), (0.59311, "0.593"), (3.3, "3.3"), (0.0, "0")]
)
def test_a_statistic_is_written_short(value, said):
    assert round_figure(value, "real") == said
