"""Times of day and durations go the whole way: draft, check, fit, conditions, release, verify, evaluate, card."""

from __future__ import annotations

import datetime as dt
import json
import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

import doublure as db
from doublure.data.tables.opening import open_table
from doublure.drafting.check import check
from doublure.drafting.draft import draft

TEXT = """
doublure: 1
kind: table
units: 500
columns:
  began: {type: time, bounds: ["06:00", "20:00"], step: 900, missing: false, roles: [target]}
  took: {type: duration, bounds: {learn: 4}, step: 60, missing: true}
  pause: {type: duration, bounds: ["0:00:00", PT2H], step: 60, numbers_in: min, missing: ["?"]}
  early: {type: boolean, missing: false}
constraints:
  - {at_most: [pause, took]}
  - {implies: {when: {began: ["06:00", "08:45"]}, then: {early: true}}}
"""


def shifts(n: int, seed: int) -> pd.DataFrame:
    """Return shifts that begin by day, most of them early; pauses are a part of each."""
    rng = np.random.default_rng(seed)
    began = 21_600 + 900 * rng.binomial(56, 0.25, n)
    took = 1800 + 60 * rng.integers(0, 450, n)
    pause = (took * rng.uniform(0, 0.25, n) / 60).astype(int)
    return pd.DataFrame(
        {
            "began": [f"{each // 3600:02}:{each // 60 % 60:02}" for each in began],
            "took": pd.to_timedelta(np.where(rng.random(n) < 0.1, np.nan, took), unit="s"),
            "pause": np.where(rng.random(n) < 0.1, "?", pause.astype(str)),
            "early": began < 9 * 3600,
        }
    )


def test_they_go_from_a_file_to_a_card(tmp_path):
    data, aside = shifts(500, 1), shifts(200, 2)
    data.to_parquet(tmp_path / "shifts.parquet")
    made = draft(tmp_path / "shifts.parquet")
    assert {name: column.type for name, column in made.columns.items()} == {
        "began": "time", "took": "duration", "pause": "integer", "early": "boolean",
    }  # fmt: skip
    schema = db.Schema.parse(TEXT)
    assert not [found for found in check(schema, tmp_path / "shifts.parquet").findings if found.kind == "undeclared"]
    plan = db.plan(schema, method="statistics", epsilon=30.0, delta=1e-5, accountant="rdp")
    ledger = db.Ledger.create(tmp_path / "ledger", dataset="shifts", epsilon=30.0, delta=1e-4)
    db.fit(tmp_path / "shifts.parquet", plan, ledger=ledger, out=tmp_path / "run", seed=0)
    syn = db.load(tmp_path / "run")
    lower, upper = syn.schema.columns["took"].ends
    assert lower <= 1800
    assert 28_000 <= upper <= 86_400

    rows = syn.sample(300, seed=1, given={"began": "07:00..09:00", "took": "1:00:00..PT2H"})
    assert rows.began.between(dt.time(7), dt.time(9)).all()
    assert set(rows.began.map(lambda time: time.minute)) <= {0, 15, 30, 45}
    assert rows.took.between(pd.Timedelta(hours=1), pd.Timedelta(hours=2)).all()
    assert (rows.pause.isna() | (rows.pause <= rows.took)).all()
    assert rows.early[rows.began <= dt.time(8, 45)].all()
    missing = syn.sample(600, seed=2).pause.isna().mean()
    assert 0.02 < missing < 0.25, missing  # a tenth of the shifts, give or take noise

    db.release(syn, tmp_path / "bundle", n=200, seed=1)
    assert db.verify(tmp_path / "bundle")["files"] == 7
    told = {each["name"]: each for each in json.loads((tmp_path / "bundle/dictionary.json").read_text())["columns"]}
    assert (told["began"]["type"], told["began"]["bounds"]) == ("time", ["06:00:00", "20:00:00"])
    assert (told["pause"]["type"], told["pause"]["bounds"]) == ("duration", ["0:00:00", "2:00:00"])
    stored = pq.read_table(tmp_path / "bundle/data.parquet")
    assert [stored.schema.field(name).type for name in ("began", "took")] == [pa.time32("ms"), pa.duration("s")]
    texts = pd.read_csv(tmp_path / "bundle/data.csv", dtype=str, keep_default_na=False)
    assert texts.began.str.fullmatch(r"\d\d:(00|15|30|45)").all()
    assert texts.pause.str.fullmatch(r"[012]:\d\d:00|\?").all()
    card = (tmp_path / "bundle/card.html").read_text(encoding="utf-8")
    assert "06:00:00 to 20:00:00" in card
    assert texts.took[0] in card

    again = db.Schema.parse(TEXT.replace("{learn: 4}", '["0:00:00", P1D]'))  # what is released is read, both ways
    numbers = {}
    for name in ("data.csv", "data.parquet"):
        frame, _ = open_table(tmp_path / "bundle" / name).read(again.columns, {})
        numbers[name] = frame[["began", "took", "pause"]]
    pd.testing.assert_frame_equal(numbers["data.csv"], numbers["data.parquet"])

    report = db.evaluate.report(syn, tmp_path / "shifts.parquet", aside, seed=0)
    assert report.scores.loc["columns", "synthetic"] < report.scores.loc["columns", "real"] + 0.1
    assert {entry.column: entry.kind for entry in report.table.frequencies} == {
        "began": "time", "took": "duration", "pause": "duration", "early": "boolean",
    }  # fmt: skip
    spans = [entry for entry in report.table.summaries if entry.column == "took"]  # durations add up
    assert [entry.what for entry in spans].count("mean") == 1
    report.save(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert re.search(r"0[6-9]:(00|15|30|45):00", page)  # an axis of times
    assert "0 days" not in page
    totals = page[page.index("Are totals and averages right?") : page.index("Does a row make sense?")]
    assert re.search(r"<b>\d+:\d\d:\d\d</b>", totals)
    assert "began" not in totals
