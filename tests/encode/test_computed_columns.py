"""Computed columns fit every synthetic row, cost nothing, and are never encoded: by every method, under conditions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import doublure as db
from doublure.data.opening import open_data
from doublure.encode.table import TableEncoder
from doublure.encode.table_values import TableValues
from doublure.schema import ResolvedSchema

STAYS = """
doublure: 1
kind: table
unit: {name: stay}
units: 400
columns:
  born: {type: date, bounds: [1930-01-01, 2023-12-31], missing: false}
  since: {type: integer, bounds: [1930, 2023], missing: false}
  came: {type: datetime, bounds: [2022-01-01, 2023-12-31T23:59:59], step: 60, missing: false}
  left: {type: datetime, bounds: [2022-01-01, 2024-06-30T23:59:59], step: 60, missing: true}
  days: {type: real, bounds: [0, 40], precision: 1, missing: true}
  age: {type: integer, bounds: [0, 95], missing: false}
  price: {type: real, bounds: [0, 500], precision: 2, missing: false}
  cost: {type: real, bounds: [0, 30000], precision: 2, missing: true}
  paid: {type: real, bounds: [0, 30000], precision: 2, missing: true}
  sex: {type: category, values: [f, m], missing: false, roles: [target]}
constraints:
  - {at_most: [born, came, left]}
  - {at_most: [since, came]}
  - {difference: {of: days, from: came, to: left, unit: day}}
  - {age: {of: age, born: born, at: came}}
  - {formula: {of: cost, from: "price * max(1, days)"}}
  - {range: {of: paid, least: 10, most: "0.5 * price + 20"}}
"""


def stays(rows: int, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    came = pd.Timestamp("2022-01-01") + pd.to_timedelta(rng.integers(0, 700 * 1440, rows), unit="m")
    left = pd.Series(came + pd.to_timedelta((rng.gamma(1.2, 3.5, rows) * 1440).astype(int), unit="m"))
    left[rng.random(rows) < 0.1] = pd.NaT
    price = rng.gamma(2, 30, rows).clip(0, 500).round(2)
    return pd.DataFrame(
        {
            "born": pd.Timestamp("1930-01-01") + pd.to_timedelta(rng.integers(0, 33_000, rows), unit="D"),
            "since": rng.integers(1950, 2022, rows),
            "came": came,
            "left": left,
            "days": 3.0,
            "age": 7,
            "price": price,
            "cost": 1.0,
            "paid": (0.4 * price + 10).round(2),
            "sex": rng.choice(["f", "m"], rows),
        }
    )


@pytest.fixture(scope="module")
def synthesizer(tmp_path_factory: pytest.TempPathFactory) -> db.Synthesizer:
    folder = tmp_path_factory.mktemp("stays")
    plan = db.plan(db.Schema.parse(STAYS), method="statistics", epsilon=20.0, delta=1e-5, accountant="rdp")
    ledger = db.Ledger.create(folder / "l", dataset="stays", epsilon=20.0, delta=1e-5)
    return db.fit(stays(400), plan, ledger=ledger, out=folder / "run")


def assert_fits(rows: pd.DataFrame) -> None:
    """Compare with pandas, which knows nothing of rules."""
    apart = (rows.left - rows.came).dt.total_seconds() / 86_400
    assert np.allclose(rows.days, apart.round(1), equal_nan=True)
    assert rows.days.isna().equals(rows.left.isna())
    assert rows.days.dropna().between(0, 40).all()
    came, born = pd.DatetimeIndex(rows.came), pd.DatetimeIndex(rows.born)
    years = came.year - born.year - ((came.month * 100 + came.day) < (born.month * 100 + born.day))
    assert (rows.age == years).all()
    assert rows.age.between(0, 95).all()
    cost = (rows.price * np.maximum(1, rows.days)).round(2)
    assert np.allclose(rows.cost, cost, equal_nan=True)
    assert (born <= came).all()
    assert (rows.since <= came.year).all()
    paid = rows.paid.dropna()
    assert ((paid >= 10) & (paid <= 0.5 * rows.price[paid.index] + 20 + 1e-9)).all()


def test_every_synthetic_row_fits(synthesizer: db.Synthesizer) -> None:
    rows = synthesizer.sample(500, seed=1)
    assert_fits(rows)
    assert 0.02 < rows.days.isna().mean() < 0.3
    assert 2 < rows.days.mean() < 8  # real: 4.2
    assert_fits(synthesizer.sample(3, seed=1))


def test_a_sample_can_be_asked_for_what_is_computed(synthesizer: db.Synthesizer) -> None:
    rows = synthesizer.sample(20, seed=2, given={"days": (3, 5), "age": (30, 60)})
    assert rows.days.between(3, 5).all()
    assert rows.age.between(30, 60).all()
    assert_fits(rows)
    assert synthesizer.sample(5, seed=2, given={"days": None}).left.isna().all()


@pytest.mark.parametrize("drawn", [True, False])
def test_any_generators_rows_fit(drawn: bool, soft_rows: Any) -> None:
    encoder = TableEncoder(ResolvedSchema.parse(STAYS), bins=8)
    assert {block.column for block in encoder.blocks}.isdisjoint({"days", "age", "cost"})
    assert_fits(encoder.decode(soft_rows(encoder, 300, 3), np.random.default_rng(3) if drawn else None))


def test_the_column_of_a_record_is_not_encoded(tmp_path: Path) -> None:
    """Neighbours that differ in computed cells alone are the same to every query."""
    schema = ResolvedSchema.parse(STAYS)
    one = stays(50)
    other = one.assign(days=39.0, age=95, cost=29_999.0)
    for encoder in (TableValues(schema), TableEncoder(schema, bins=8)):
        coded = []
        for number, frame in enumerate((one, other)):
            frame.to_parquet(tmp_path / f"{number}.parquet")
            loaded = open_data(tmp_path / f"{number}.parquet", "table").load(schema)
            coded.append(np.asarray(encoder.compact(loaded.content)))
        assert np.array_equal(*coded)


def test_a_computed_column_is_not_paid_for() -> None:
    plain = db.Schema.parse(STAYS)
    prices = {}
    for name, schema in {"with": plain, "without": plain.model_copy(update={"columns": without(plain)})}.items():
        rules = tuple(rule for rule in plain.constraints if not rule.derives or name == "with")
        plan = db.plan(
            schema.model_copy(update={"constraints": rules}),
            method="statistics",
            epsilon=3.0,
            delta=1e-5,
            accountant="rdp",
        )
        prices[name] = [(access.purpose, access.event) for access in plan.touches]
    assert prices["with"] == prices["without"]


def without(schema: db.Schema) -> dict[str, Any]:
    return {name: column for name, column in schema.columns.items() if name not in schema.derived}


def test_pages_and_bundles_know_the_rules(synthesizer: db.Synthesizer, tmp_path: Path) -> None:
    report = db.evaluate.report(synthesizer, stays(300), stays(100, 1))
    broken = {rule.rule: (rule.synthetic, rule.real > 0) for rule in report.table.declared_rules}
    assert {count for count, _ in broken.values()} == {0}
    assert broken["age"][1]  # of the real rows, made above, nearly all
    db.release(synthesizer, tmp_path / "bundle", n=50, seed=1)
    assert db.verify(tmp_path / "bundle")["files"]
    assert "follows from came, left" in (tmp_path / "bundle" / "card.html").read_text(encoding="utf-8")
