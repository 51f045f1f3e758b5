"""Zeros, negative numbers, top codes, repeated and round values: what a person looks for first."""

import numpy as np
import pandas as pd
import pytest

from doublure.measures.tables.coding import Coder
from doublure.measures.tables.fidelity import Tables
from doublure.measures.tables.special_values import special_values
from doublure.measures.tables.verdict import _off
from doublure.schema import Schema

SCHEMA = """
doublure: 1
kind: table
units: 9
columns:
  bill: {type: integer, bounds: [-100000, 1000000], missing: true}
  ratio: {type: integer, bounds: [0, 501], missing: false}
  limit: {type: integer, bounds: [0, 1000000], missing: false}
  age: {type: integer, bounds: [18, 90], missing: false}
  day: {type: date, bounds: [1960-01-01, 1980-12-31], missing: false}
  kind: {type: category, values: [a, b], missing: true}
"""
N = 4000


def rows(seed, *, right):
    """Rows that have all of it, or whose numbers are smeared over their bounds."""
    rng = np.random.default_rng(seed)
    bill = np.where(rng.random(N) < 0.13, 0, rng.integers(1, 300_000, N)).astype(float)
    bill = np.where(rng.random(N) < 0.02, -rng.integers(1, 9000, N), bill)
    bill[rng.random(N) < 0.05] = np.nan
    ratio = np.where(rng.random(N) < 0.58, 501, rng.integers(0, 500, N))
    limit = np.where(rng.random(N) < 0.2, 50_000, 10_000 * rng.integers(1, 60, N))
    if not right:
        bill, ratio = rng.integers(-90_000, 400_000, N).astype(float), rng.integers(440, 502, N)
        limit = rng.integers(1, 600_000, N)
    day = np.datetime64("1970-01-01", "s") + rng.integers(-3000, 3000, N) * np.timedelta64(86_400, "s")
    age = np.clip(rng.normal(45, 12, N).round(), 18, 90).astype(int)
    kind = rng.choice(["a", "b", None], N, p=[0.5, 0.4, 0.1])
    return pd.DataFrame({"bill": bill, "ratio": ratio, "limit": limit, "age": age, "day": day, "kind": kind})


@pytest.fixture(scope="module")
def found():
    coder = Coder(schema=Schema.parse(SCHEMA).resolve({}))

    def of(synthetic):
        named = {"train": rows(1, right=True), "baseline": rows(2, right=True), "holdout": rows(3, right=True)}
        tables = {name: coder.read(frame, name) for name, frame in (named | {"synthetic": synthetic}).items()}
        return special_values(coder, Tables(**tables))

    return of


def test_each_is_listed_with_its_shares(found):
    shown = {(each.column, each.what): each for each in found(rows(4, right=False)).values if each.share.real >= 0.01}
    train, synthetic = rows(1, right=True), rows(4, right=False)
    wanted = {
        ("bill", "negative"): lambda frame: frame["bill"] < 0,
        ("bill", "zero"): lambda frame: frame["bill"] == 0,
        ("bill", "missing"): lambda frame: frame["bill"].isna(),
        ("ratio", "highest"): lambda frame: frame["ratio"] == 501,
        ("limit", "repeated"): lambda frame: frame["limit"] == 50_000,
        ("limit", "multiple"): lambda frame: frame["limit"] % 10_000 == 0,
        ("kind", "missing"): lambda frame: frame["kind"].isna(),
    }
    for key, holds in wanted.items():
        assert shown[key].share.real == pytest.approx(holds(train).mean()), key
        assert shown[key].share.value == pytest.approx(holds(synthetic).mean()), key
    assert shown["ratio", "highest"].label == "= 501, the highest"
    assert shown["limit", "multiple"].value == 10_000


def test_no_day_is_zero_or_negative_and_no_common_age_is_special(found):
    listed = {(each.column, each.what) for each in found(rows(4, right=True)).values}
    assert not {("day", "zero"), ("day", "negative"), ("age", "repeated"), ("age", "multiple")} & listed


def test_what_is_off_is_marked_and_chance_is_not(found):
    good, bad = found(rows(5, right=True)), found(rows(4, right=False))
    assert not any(each.off for each in good.values)
    off = {(each.column, each.what) for each in bad.values if each.off}
    assert {("bill", "negative"), ("bill", "zero"), ("ratio", "highest"), ("limit", "multiple")} <= off
    assert bad.score.value > 10 * good.score.value
    assert bad.score.real == good.score.real  # the yardstick does not hang on what is measured


def test_a_value_that_only_synthetic_rows_repeat_is_listed(found):
    synthetic = rows(5, right=True)
    synthetic.loc[:399, "ratio"] = 77
    (invented,) = (each for each in found(synthetic).values if (each.column, each.value) == ("ratio", 77))
    assert (invented.what, invented.off) == ("repeated", True)


def test_multiples_that_are_lost_are_said_with_what_to_declare(found):
    words = _off(found(rows(4, right=False)))
    assert "Declare step: 10000 of limit, if that is public" in words[0]
    assert _off(found(rows(5, right=True))) == []
    others = found(rows(4, right=False))
    kept = others.model_copy(update={"values": tuple(each for each in others.values if each.what != "multiple")})
    assert "step" not in _off(kept)[0]
