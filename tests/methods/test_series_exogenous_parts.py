"""Public readings of parts of a window: hours follow the readings of their own part."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import doublure as db
from doublure.errors import SchemaError

METERS, DAYS, STEPS = 40, 80, 8
ATTRIBUTES = {
    "whole": "warmth: {type: real, bounds: [-40, 60], missing: false, from_exogenous: mean}",
    "parts": """
  night: {type: real, bounds: [-40, 60], missing: false, from_exogenous: mean, reading: warmth, part: [0, 3]}
  day: {type: real, bounds: [-40, 60], missing: false, from_exogenous: mean, reading: warmth, part: [4, 7]}""",
}
TEXT = f"""
doublure: 1
kind: series
unit: {{name: day, id: none}}
units: {METERS * DAYS}
series: {{time: time, source: meter, length: {STEPS}, step: 3h, gaps: refuse, exogenous: weather.csv}}
channels: {{kwh: {{type: real, bounds: [0, 100], precision: 1, missing: false}}}}
attributes:
  """


def weather() -> pd.DataFrame:
    """Return temperatures whose nights and days have nothing to do with one another."""
    moments = pd.date_range("2024-01-01", periods=DAYS * STEPS, freq="3h")
    halves = np.random.default_rng(0).normal(10, 10, size=(DAYS, 2)).clip(-15, 35)
    return pd.DataFrame({"time": moments.astype(str), "warmth": np.repeat(halves, STEPS // 2, axis=1).ravel().round(1)})


def readings() -> pd.DataFrame:
    """Return what meters heat with, at each step by its own temperature."""
    draw, warmth = np.random.default_rng(1), weather()["warmth"].to_numpy()
    return pd.concat(
        pd.DataFrame(
            {
                "meter": f"m{number}",
                "time": pd.to_datetime(weather()["time"]),
                "kwh": (50 - warmth + 3 * draw.normal(size=len(warmth))).clip(0, 100).round(1),
            }
        )
        for number in range(METERS)
    )


def schema_of(folder, attributes) -> db.Schema:
    weather().to_csv(folder / "weather.csv", index=False)
    (folder / "schema.yaml").write_text(TEXT + attributes.strip() + "\n")
    return db.Schema.load(folder / "schema.yaml")


def apart(folder, which) -> float:
    """Return how strongly nights less days of synthetic series go with the temperatures' own."""
    plan = db.plan(schema_of(folder, ATTRIBUTES[which]), method="statistics", epsilon=10.0, delta=1e-5, bins=64)
    ledger = db.Ledger.create(folder / "ledger", dataset="meters", epsilon=50.0, delta=1e-2)
    made = db.fit(readings(), plan, ledger=ledger, seed=1).sample(20, steps=DAYS * STEPS, seed=1)
    halves = made.values[:, :, 0].reshape(20, DAYS, 2, STEPS // 2).mean((0, 3))
    public = weather()["warmth"].to_numpy().reshape(DAYS, 2, STEPS // 2).mean(2)
    return float(np.corrcoef(halves[:, 0] - halves[:, 1], public[:, 0] - public[:, 1])[0, 1])


@pytest.fixture
def folders(tmp_path):
    for name in ATTRIBUTES:
        (tmp_path / name).mkdir()
    return tmp_path


def test_hours_follow_the_readings_of_their_own_part(folders):
    assert apart(folders / "parts", "parts") < -0.9
    assert apart(folders / "whole", "whole") > -0.5  # a window's mean says nothing of its halves


def test_a_schema_keeps_parts(tmp_path):
    schema = schema_of(tmp_path, ATTRIBUTES["parts"])
    again = db.Schema.parse(schema.to_yaml())
    assert again == schema
    assert again.attributes["day"].part == (4, 7)


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("from_exogenous: mean, reading: rain", "rain is no column of the file of exogenous; name the attribute as"),
        ("from_exogenous: mean, reading: warmth, part: [4, 8]", "x has a part beyond series.length"),
        ("from_exogenous: mean, reading: warmth, part: [5, 4]", "part is not in order"),
        ("part: [0, 1]", "reading and part go with from_exogenous"),
    ],
)
def test_what_no_part_can_be_is_refused(tmp_path, written, said):
    with pytest.raises(SchemaError, match=said):
        schema_of(tmp_path, f"x: {{type: real, bounds: [-40, 60], missing: false, {written}}}")
