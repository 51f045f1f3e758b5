"""Real cells lie between the values of their column, or beyond its bounds: nothing that is paid for ends there."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import doublure as db

ROWS, KEPT = 200, 100
COLUMNS = {
    "whole": "type: real, bounds: [0, 100], precision: 0, missing: false",
    "gaps": "type: real, bounds: [0, 100], precision: 0, missing: true",
    "kinds": "type: real, bounds: [0, 100], precision: 0, missing: [-7, -8]",
    "text": "type: real, bounds: [0, 100], precision: 0, missing: true, dtype: str",
    "single": "type: real, bounds: [0, 100], precision: 0, missing: true, dtype: float32",
    "beyond": "type: real, bounds: [0, 100], precision: 0, missing: false",
    "fives": "type: real, bounds: [0, 100], precision: 0, step: 5.0, missing: false",
    "quarters": "type: real, bounds: [0, 100], step: 0.25, missing: false",
    "tenths": "type: real, bounds: [0, 100], precision: 1, missing: false",
    "tens": "type: integer, bounds: [0, 50], step: 10, missing: true",
    "year": "type: year, bounds: [1980, 2000], missing: false",
    "date": "type: date, bounds: [2020-02-01, 2020-06-01], missing: false",
    "hour": "type: datetime, bounds: [2020-01-01, 2020-06-01], step: 3600, timezone: Europe/Paris, missing: false",
    "time": "type: time, bounds: ['06:00', '18:00'], step: 900, missing: true",
    "took": "type: duration, bounds: ['0:00:00', '1:00:00'], step: 60, missing: true",
    "month": "type: month, bounds: [2020-02, 2020-05], missing: false",
    "income": "type: category, values: [low, high], missing: false, roles: [target]",
}


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """Return a folder with a table whose cells lie off their columns' grids, and rows that were kept aside."""
    folder, draw, n = tmp_path_factory.mktemp("grid"), np.random.default_rng(0), ROWS + KEPT
    reals = {name: draw.random(n) * 100 for name, facts in COLUMNS.items() if "real" in facts}
    seconds = draw.integers(0, 86_400, n)
    clock = [f"{each // 3600:02}:{each // 60 % 60:02}:{each % 60:02}" for each in seconds]
    moments = pd.Timestamp("2020-01-01") + pd.to_timedelta(seconds * 300, unit="s")
    cells = reals | {
        "kinds": np.where(draw.random(n) < 0.2, draw.choice([-7, -8], n), reals["kinds"]),
        "beyond": np.where(draw.random(n) < 0.2, draw.choice([-1e25, 250.0], n), np.rint(reals["beyond"])),
        "tens": draw.integers(0, 101, n),
        "year": draw.integers(1970, 2010, n),
        "date": moments.strftime("%Y-%m-%d"),
        "hour": moments.strftime("%Y-%m-%dT%H:%M:%S"),
        "time": clock,
        "took": clock,
        "month": moments.strftime("%Y-%m"),
        "income": draw.choice(["low", "high"], n),
    }
    frame = pd.DataFrame(cells)[[*COLUMNS]].astype(object)
    for name in ("gaps", "text", "single", "tens", "time", "took"):
        frame.loc[draw.random(n) < 0.2, name] = None
    frame[:ROWS].to_csv(folder / "rows.csv", index=False)
    frame[ROWS:].to_csv(folder / "kept.csv", index=False)
    head = f"doublure: 1\nkind: table\nunit: {{name: record, id: none}}\nunits: {ROWS}\ncolumns:\n"
    text = head + "".join(f"  {name}: {{{facts}}}\n" for name, facts in COLUMNS.items())
    (folder / "rows.schema.yaml").write_text(text)
    schema = db.Schema.parse(text)
    plan = db.plan(schema, method="statistics", epsilon=2.0, delta=1e-5, accountant="rdp")
    for number in range(2):
        ledger = db.Ledger.create(folder / f"ledger{number}", dataset="rows", epsilon=2.0, delta=1e-4)
        db.fit(folder / "rows.csv", plan, ledger=ledger, out=folder / f"run{number}", seed=number, progress=False)
    return folder


def test_the_check_finds_no_fault_with_them(world, doublure):
    found = doublure("schema", "check", world / "rows.schema.yaml", "--data", world / "rows.csv")
    assert {each["kind"] for each in found["findings"]} <= {"ask", "note"}


@pytest.mark.parametrize(
    "words",
    [
        ("evaluate", "run0", "--real", "rows.csv", "--holdout", "kept.csv"),
        ("audit", "run0", "--attack", "quick", "--real", "rows.csv", "--holdout", "kept.csv"),
        ("audit", "run0", "--attack", "neighbours", "--real", "rows.csv", "--holdout", "kept.csv"),
        ("compare", "run0", "run1", "--real", "rows.csv", "--holdout", "kept.csv"),
        ("inspect", "run0", "--against", "run1"),
    ],
    ids=lambda words: " ".join(words[:4:2]),
)
def test_what_was_paid_for_is_judged(world, run, words):
    code, said = run(*((world / word if (world / word).exists() else word) for word in words))
    assert code in (0, 4), said
    assert said["ok"], said


def test_files_hold_the_values_of_columns(world, doublure):
    for name in ("some.csv", "some.parquet"):
        doublure("sample", world / "run0", "-n", "100", "-o", world / name)
    texts = pd.read_csv(world / "some.csv", dtype=str)
    for name in ("whole", "gaps", "kinds", "text", "single", "beyond", "fives"):
        assert texts[name].dropna().str.fullmatch(r"-?\d+").all(), name
    typed = pd.read_parquet(world / "some.parquet")
    assert set(typed["fives"] % 5) == {0}
    rows = doublure("sample", world / "run0", "-n", "20", "--given", "whole=20.4..40", "-o", world / "few.csv")
    assert rows
    assert pd.read_csv(world / "few.csv")["whole"].between(21, 40).all()
