"""Public readings beside series: attributes that follow them, their file in the schema, and other readings to come."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from shell import type_in

import doublure as db

METERS, DAYS = 40, 80
TEXT = f"""
doublure: 1
kind: series
unit: {{name: day, id: none}}
units: {METERS * DAYS}
series: {{time: time, source: meter, length: 8, step: 3h, gaps: refuse, exogenous: weather.csv}}
channels: {{kwh: {{type: real, bounds: [0, 60], precision: 1, missing: false}}}}
attributes: {{warmth: {{type: real, bounds: [-10, 40], missing: false, from_exogenous: mean}}}}
"""


def weather(days: int, first: str = "2024-01-01", by: float = 0.0) -> pd.DataFrame:
    moments = pd.date_range(first, periods=days * 8, freq="3h")
    draw = np.random.default_rng(0)
    warmth = 12 + 10 * np.sin(np.arange(len(moments)) / 8 / 9) + draw.normal(size=len(moments)) + by
    return pd.DataFrame({"time": moments.astype(str), "warmth": warmth.round(1)})


def readings() -> pd.DataFrame:
    """Return what meters heat with: less on warm days."""
    draw, public = np.random.default_rng(1), weather(DAYS)
    daily = np.repeat(public["warmth"].to_numpy().reshape(-1, 8).mean(1), 8)
    kwh = [
        (30 - daily + np.tile([0, 0, 4, 6, 2, 2, 6, 4], DAYS) + 2 * draw.normal(size=DAYS * 8)).clip(0, 60).round(1)
        for _ in range(METERS)
    ]
    return pd.concat(
        pd.DataFrame({"meter": f"m{number}", "time": pd.to_datetime(public["time"]), "kwh": own})
        for number, own in enumerate(kwh)
    )


@pytest.fixture(scope="module")
def schema(tmp_path_factory) -> db.Schema:
    folder = tmp_path_factory.mktemp("weather")
    weather(DAYS).to_csv(folder / "weather.csv", index=False)
    (folder / "meters.schema.yaml").write_text(TEXT)
    return db.Schema.load(folder / "meters.schema.yaml")


@pytest.fixture(scope="module")
def run(schema, tmp_path_factory):
    folder = tmp_path_factory.mktemp("exogenous")
    ledger = db.Ledger.create(folder / "ledger", dataset="meters", epsilon=50.0, delta=1e-2)
    plan = db.plan(schema, method="statistics", epsilon=10.0, delta=1e-5)
    db.fit(readings(), plan, ledger=ledger, out=folder / "run", seed=1)
    return folder / "run"


def test_series_that_go_on_follow_the_readings(run):
    syn = db.load(run)
    made = syn.sample(20, steps=DAYS * 8, seed=1)
    public = weather(DAYS)["warmth"].to_numpy().reshape(-1, 8).mean(1)
    days = made.values[:, :, 0].reshape(20, DAYS, 8).mean(2).mean(0)
    assert np.corrcoef(days, public)[0, 1] < -0.9
    np.testing.assert_allclose(made.by_window["warmth"].to_numpy(float)[:DAYS], public, atol=1e-6)


def test_other_readings_move_them(run):
    syn = db.load(run)
    cold, warm = (
        syn.sample(20, steps=80, seed=1, exogenous=weather(10, "2025-01-01", by)).values.mean() for by in (-8.0, 8.0)
    )
    assert 8 < cold - warm < 24  # 16 degrees, in ten groups of five


def test_the_command_line_takes_other_readings(run, tmp_path):
    weather(3, "2025-06-01").to_csv(tmp_path / "next.csv", index=False)
    type_in(f"doublure sample {run} --steps 24 --exogenous {tmp_path / 'next.csv'} -o {tmp_path / 'made.csv'}")
    assert len(pd.read_csv(tmp_path / "made.csv", comment="#")) == 24


def test_the_file_is_part_of_the_schema(schema):
    again = db.Schema.parse(schema.to_yaml())
    assert again.series.exogenous == schema.series.exogenous
    other = schema.to_yaml().replace(schema.series.exogenous.rows[0][1], "11.111", 1)
    one, two = (db.plan(own, method="statistics", epsilon=1.0, delta=1e-5) for own in (schema, db.Schema.parse(other)))
    assert one.schema_sha256 != two.schema_sha256


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"exogenous": weather(2)}, "go on"),
        ({"steps": 80, "exogenous": weather(2)}, "have no warmth for the window"),
        ({"steps": 16, "exogenous": weather(2, by=40)}, "beyond the bounds"),
        ({"steps": 16, "exogenous": weather(2).iloc[::-1]}, "do not increase"),
        ({"steps": 16, "exogenous": weather(2).assign(warmth="mild")}, "no numbers"),
        ({"steps": 16, "exogenous": weather(2).rename(columns={"warmth": "rain"})}, "warmth"),
        ({"steps": 16, "given": {"warmth": (0, 5)}}, "follows from the moments"),
    ],
)
def test_what_cannot_be_given_is_refused(run, asked, said):
    with pytest.raises(db.errors.SettingError, match=said):
        db.load(run).sample(2, seed=1, **asked)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (", exogenous: weather.csv", "", "name their file"),
        ("from_exogenous: mean", "from_time: hour", "from_time gives values"),
        ("warmth: {", "rain: {", "no column of the file"),
        ("bounds: [-10, 40], ", "bounds: [0, 10], ", "widen the bounds"),
        ("bounds: [-10, 40], ", "bounds: {learn: 0.1}, ", "declare its bounds"),
        ("attributes: {warmth: {type: real, bounds: [-10, 40], missing: false, from_exogenous: mean}}", "", "follows"),
    ],
)
def test_schemas_that_do_not_fit_their_file_are_refused(tmp_path, old, new, said):
    weather(DAYS).to_csv(tmp_path / "weather.csv", index=False)
    (tmp_path / "meters.schema.yaml").write_text(TEXT.replace(old, new))
    with pytest.raises(db.errors.SchemaError, match=said):
        db.Schema.load(tmp_path / "meters.schema.yaml")


def test_a_day_beyond_the_file_is_refused_before_anything_is_spent(schema, tmp_path):
    later = readings().assign(time=lambda rows: rows["time"] + pd.Timedelta(days=20))
    ledger = db.Ledger.create(tmp_path / "ledger", dataset="meters", epsilon=50.0, delta=1e-2)
    with pytest.raises(db.errors.DataError, match="warmth"):
        db.fit(later, db.plan(schema, method="statistics", epsilon=10.0, delta=1e-5), ledger=ledger)
