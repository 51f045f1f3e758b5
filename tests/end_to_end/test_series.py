"""The whole way of time series from the command line; cut off and resumed; and of real meters if they are at hand."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import doublure as db
from doublure.data.series import open_series
from doublure.data.series.rows import Readings
from doublure.private.noise import OsKeyedNoise
from doublure.private.records import PrivateRecords
from doublure.releasing.catalogue_names import NAMES

SHARED = Path(__file__).resolve().parents[2] / ".." / "shared" / "data"
METERS, DAYS = 12, 10
TEXT = f"""
doublure: 1
kind: series
unit: {{name: meter, id: house, max_records: 4}}
units: {METERS}
series: {{time: when, length: 8, step: 3h, timezone: Europe/Paris, gaps: missing}}
channels:
  litres: {{type: real, bounds: {{learn: 0.3}}, precision: 1, missing: {{learn: 0.2}}, zero_inflated: true}}
  valve: {{type: integer, bounds: [0, 3], missing: true}}
attributes:
  place: {{type: category, values: [hill, coast], missing: false, shares: {{learn: 0.3}}}}
  weekday: {{type: ordinal, values: [0, 1, 2, 3, 4, 5, 6], missing: false, from_time: weekday}}
"""
TINY = {
    "steps": 6, "n_critic": 2, "lot_size": 5, "generator_batch": 6, "critic_width": 6, "critic_channels": [4],
    "features": 4, "channels": [4, 3], "hidden": 6, "lstm_units": 5, "checkpoints": 3,
}  # fmt: skip


def readings(meters=METERS):
    """Return a week and a half around the day on which clocks go forward; some readings are not there."""
    rng = np.random.default_rng(2)
    moments = pd.date_range("2024-03-25", periods=8 * DAYS, freq="3h")  # on the wall clock
    frames = []
    for one in range(meters):
        frame = pd.DataFrame({"house": f"Qv-house-{one}", "when": [moment.isoformat() for moment in moments]})
        frame["litres"] = np.round(np.where(rng.random(len(frame)) < 0.4, 0, rng.random(len(frame)) * 40), 1)
        frame["valve"] = rng.integers(0, 4, len(frame))
        frame["place"] = ["hill", "coast"][one % 2]
        frames.append(frame[rng.random(len(frame)) > 0.05])
    return pd.concat(frames, ignore_index=True)


@pytest.fixture
def ledger(tmp_path):
    return db.Ledger.create(tmp_path / "l", dataset="meters", epsilon=12.0, delta=0.5)


def plan(method="dpgan", **changes):
    budget = {} if method == "gan" else {"epsilon": 4.0, "delta": 1e-2, "accountant": "rdp"}
    return db.plan(db.Schema.parse(TEXT), method=method, **(TINY | budget | changes))


def test_the_whole_way_from_the_command_line(tmp_path, run, doublure, monkeypatch):
    monkeypatch.setattr("doublure.measures.series.classifiers.ROUNDS", 5)
    readings().to_csv(tmp_path / "d.csv", index=False)
    (tmp_path / "s.yaml").write_text(TEXT)
    settings = [word for key, value in TINY.items() for word in ("--set", f"{key}={json.dumps(value)}")]
    book, out, bundle = tmp_path / "l", tmp_path / "run", tmp_path / "bundle"
    drafted = doublure("schema", "draft", tmp_path / "d.csv", "--kind", "series", "-o", tmp_path / "draft.yaml")
    assert "series.length" in drafted["undeclared"]
    assert doublure("schema", "check", tmp_path / "s.yaml", "--data", tmp_path / "d.csv")["ok"]
    doublure("budget", "init", book, "--dataset", "meters", "--epsilon", 4, "--delta", 1e-2)
    assert (
        doublure("plan", tmp_path / "s.yaml", "--method", "auto", "--epsilon", 4, "--delta", 1e-2)["method"]
        == "statistics"
    )
    asked = ["--method", "dpgan", "--epsilon", 4, "--delta", 1e-2, *settings]
    made = doublure("plan", tmp_path / "s.yaml", *asked, "-o", tmp_path / "plan.json")
    assert (made["method"], len(made["touches"])) == ("dpgan", 4)
    doublure("fit", tmp_path / "d.csv", "--plan", tmp_path / "plan.json", "--ledger", book, "-o", out)
    given = ["--given", "place=hill", "--given", "weekday=6"]
    for name in ("a.npz", "a.csv", "a.parquet"):
        assert doublure("sample", out, "-n", 30, *given, "--seed", 4, "-o", tmp_path / name)["rows"] == 30
    with np.load(tmp_path / "a.npz") as arrays:
        assert (set(arrays["place"]), set(arrays["weekday"])) == ({"hill"}, {6})
        assert arrays["values"].shape == (30, 8, 2)
        assert "differential-privacy" in str(arrays["watermark"])
        found = arrays["values"]
    rows = pd.read_csv(tmp_path / "a.csv")
    assert (len(rows), list(rows.columns)) == (240, ["series", "step", "clock", "place", "weekday", "litres", "valve"])
    assert np.allclose(rows["litres"].to_numpy().reshape(30, 8), found[:, :, 0], equal_nan=True)
    code, said = run("sample", out, "-n", 3, "--given", "litres=3", "-o", tmp_path / "b.npz")
    assert (code, said["error"]["field"]) == (2, "given litres")
    card = doublure("release", out, "-n", 40, "-o", bundle, "--seed", 5)["card"]
    data = {"data.npz", "data.csv", "data.parquet"}
    assert {path.name for path in bundle.iterdir()} == data | {"card.json", "card.html", "dictionary.json", *NAMES}
    assert card["title"] == "Synthetic series for meters"
    assert card["files"][0]["rows"] == 40
    assert any("synthetic" in limit and "calendar" in limit for limit in card["limits"])
    assert "The series are synthetic." in (bundle / "card.html").read_text()
    assert doublure("verify", bundle, "--ledger", book)["files"] == 8
    described = json.loads((bundle / "dictionary.json").read_text())
    assert (described["series"]["length"], described["series"]["step"]) == (8, "3h")
    assert [column["name"] for column in described["columns"]] == ["litres", "valve", "place", "weekday"]
    schema = db.Schema.parse(TEXT.replace("unit: {name: meter, id: house, max_records: 4}", "unit: {name: day}"))
    for name in data:
        assert len(open_series(bundle / name).load(schema, at_least=0).content) <= 40
    page = doublure("evaluate", out, "--real", tmp_path / "d.csv", "-o", tmp_path / "page.html")
    assert page["internal"]
    assert {score["key"] for score in page["report"]["series"]["scores"]} >= {"profile", "autocorrelation", "values"}
    assert "INTERNAL" in (tmp_path / "page.html").read_text()
    side = doublure("compare", out, "--real", tmp_path / "d.csv")
    assert (side["least"], side["records"]) == ("independent steps", "series")


@pytest.mark.parametrize(("method", "generator"), [("dpgan", "lstm"), ("gan", "conv")])
def test_samples_repeat_themselves_in_memory_and_on_disk(tmp_path, ledger, generator, method):
    made = plan(method, generator_type=generator, critic_type="conv")
    syn = db.fit(readings(), made, ledger=ledger, out=tmp_path / "run", seed=1)
    one, two = syn.sample(203, seed=3), db.load(tmp_path / "run").sample(203, seed=3)
    assert one.values.shape == (203, 8, 2)
    assert np.array_equal(one.values, two.values, equal_nan=True)
    assert one.attributes.equals(two.attributes)
    assert [len(part) for part in syn.sample_chunks(203, chunk_rows=100)] == [100, 100, 3]
    assert len(syn.sample(0)) == 0
    assert sum(syn.schema.attributes["place"].shares.values()) == pytest.approx(1)  # bought
    assert "series" in repr(syn)
    with pytest.raises(db.errors.SettingError, match="no attribute"):
        syn.sample(3, given={"valve": 1})


class Killed(Exception):
    """Stands for the end of the process."""


@pytest.mark.parametrize("generator", ["conv", "lstm"])
def test_a_run_that_was_cut_off_goes_on(tmp_path, ledger, generator):
    """Fresh noise, from the checkpoint; which days of a meter are used is drawn anew."""
    made, normal, draws = plan(generator_type=generator), OsKeyedNoise.normal, []

    def ending(source, size, std):
        draws.append(size)
        if len(draws) == 4:
            raise Killed
        return normal(source, size, std)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(OsKeyedNoise, "normal", ending)
        # A kill writes nothing more: neither the ledger nor the folder hears of it.
        patch.setattr("doublure.run.running.FitRun._close", lambda run, status, keeps: True)
        with pytest.raises(Killed):
            db.fit(readings(), made, ledger=ledger, out=tmp_path / "run", seed=1)
        syn = db.fit(readings(), made, ledger=ledger, out=tmp_path / "run", seed=1, resume=True)
    assert syn.guarantee == made.guarantee
    assert len(draws) == 4 + 2  # two steps were authorised with the fourth: they count
    assert syn.sample(5, seed=1).values.shape == (5, 8, 2)


@pytest.mark.parametrize("kind", ["no time", "a word among the numbers", "a cut-off file", "a place that moves"])
def test_bad_data_costs_nothing(tmp_path, ledger, kind):
    frame = readings()
    if kind == "no time":
        frame = frame.drop(columns="when")
    elif kind == "a word among the numbers":
        frame["litres"] = frame["litres"].astype(object).where(frame.index != 50, "much")
    elif kind == "a place that moves":
        frame.loc[3, "place"] = "coast"
    frame.to_csv(tmp_path / "d.csv.gz", index=False)
    if kind == "a cut-off file":
        (tmp_path / "d.csv.gz").write_bytes((tmp_path / "d.csv.gz").read_bytes()[:-200])
    with pytest.raises(db.errors.DataError):
        db.fit(tmp_path / "d.csv.gz", plan(), ledger=ledger, out=tmp_path / "run")
    assert ledger.remaining.epsilon == 12.0
    assert not (tmp_path / "run").exists()


def test_no_reading_is_cut_before_the_ledger_has_the_charge(ledger, monkeypatch):
    seen, made = [], Readings.__init__

    def watched(found, *arguments):
        seen.append(ledger.remaining.epsilon)
        made(found, *arguments)

    monkeypatch.setattr(Readings, "__init__", watched)
    db.fit(readings(), plan(), ledger=ledger, seed=1)
    assert seen == [8.0]


def test_what_a_run_keeps_holds_no_private_series(tmp_path, ledger):
    """Nothing that was kept contains a day of anybody's, as it was read or as it was encoded."""
    made, old = [], PrivateRecords.__init__

    def remembering(records, compact, *rest, **more):
        made.append(compact)
        old(records, compact, *rest, **more)

    frame = readings()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PrivateRecords, "__init__", remembering)
        syn = db.fit(frame, plan(), ledger=ledger, out=tmp_path / "run", seed=1)
    db.release(syn, tmp_path / "bundle", n=30, seed=2, formats=["npz", "csv"])
    kept = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file() and path.name != "l")
    rows = {row[:16].tobytes() for row in made[0]}
    rows |= {frame["litres"].to_numpy()[start : start + 8].tobytes() for start in range(len(frame) - 8)}
    assert not any(row in kept for row in rows)
    assert b"Qv-house" not in kept
    assert b"2024-03-2" not in kept


LONDON = """
doublure: 1
kind: series
unit: {name: household, id: household, max_records: 20}
units: 100
series: {time: date, length: 48, step: 30min, timezone: Europe/London, gaps: drop}
channels: {kwh: {type: real, bounds: [0, 10], precision: 3, missing: false}}
attributes: {weekend: {type: boolean, missing: false, from_time: weekend}}
"""


def test_real_meters(ledger):
    path = SHARED / "london_smart_meter_2013.npz"
    if not path.exists():
        pytest.skip("london_smart_meter_2013.npz is not here")
    loaded = open_series(path).load(db.Schema.parse(LONDON))
    assert loaded.n_units == 100
    assert 1900 < len(loaded.content) <= 2000  # a few households have fewer than twenty whole days
    assert np.nanmin(loaded.content.values) == 0
    ecg = SHARED / "ucr_ECG200.npz"
    schema = db.Schema.parse(
        "doublure: 1\nkind: series\nunits: 100\nseries: {length: 96, gaps: refuse}\n"
        "channels: {x: {type: real, bounds: [-4, 4], missing: false}}\n"
        "attributes: {y: {type: category, values: [0, 1], missing: false, roles: [target, condition]}}\n"
    )
    made = db.plan(schema, method="gan", **TINY)
    syn = db.fit(f"{ecg}#train", made, ledger=ledger, seed=1)
    assert syn.sample(4, given={"y": 1}, seed=1).values.shape == (4, 96, 1)
