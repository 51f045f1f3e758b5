"""One script, written for the real files, runs unchanged on the synthetic ones: for each form that files have."""

from __future__ import annotations

import math
from pathlib import Path

import analysis_of_stays
import numpy as np
import pandas as pd
import pytest

import doublure as db
from doublure.data.relational.writing import write_related
from doublure.schema import Schema

N = 120
FORMS = {
    "european": {
        "top": "date_format: DD.MM.YYYY\ndecimal: ','\nthousands: .\nencoding: cp1252\ndelimiter: ;\nline_end: crlf",
        "smoker": "written: {true: ja, false: nein}",
        "cost": "format: '#.##0,00 €'",
        "billed": "date_format: YYYYMM",
    },
    "american": {
        "top": 'date_format: MM/DD/YYYY\ndelimiter: "\\t"\nquoting: all',
        "smoker": "written: {true: Y, false: N}",
        "cost": "format: '$#,##0.00'",
        "billed": "date_format: YYYYMM",
    },
    "register": {
        "top": "encoding: utf-8-sig\nquoting: text",
        "born": "date_format: YYYYMMDD",
        "smoker": "written: {true: 1, false: 2}",
        "billed": "date_format: YYYYMM",
    },
    "parquet": {
        "top": "",
        "nr": "dtype: int32",
        "born": "dtype: 'datetime64[ns]'",
        "admitted": "dtype: 'datetime64[us]'",
        "town": "dtype: str",
        "billed": "date_format: YYYYMM, dtype: int64",
        "bmi": "dtype: float32",
    },
}


def schema(form: str) -> Schema:
    own = FORMS[form]

    def more(name: str) -> str:
        return f", {own[name]}" if name in own else ""

    return Schema.parse(f"""
doublure: 1
kind: relational
unit: {{name: patient}}
units: {N}
{own["top"]}
tables:
  patients:
    key: nr
    columns:
      nr: {{type: id{more("nr")}}}
      town: {{type: category, values: [Köln, Zürich], missing: false{more("town")}}}
      born: {{type: date, bounds: [1920-01-01, 1999-12-31], missing: false{more("born")}}}
      smoker: {{type: boolean, missing: false{more("smoker")}}}
      bmi: {{type: real, bounds: [15, 45], precision: 1, missing: false{more("bmi")}}}
  stays:
    parent: patients
    foreign_key: nr
    max_children: 3
    columns:
      nr: {{type: id{more("nr")}}}
      admitted: {{type: datetime, bounds: [2020-01-01, 2023-12-31], step: 60, missing: false{more("admitted")}}}
      ward: {{type: category, values: [surgery, medicine, other], missing: false}}
      cost: {{type: real, bounds: [0, 10000], precision: 2, missing: false{more("cost")}}}
      billed: {{type: month, bounds: [2020-01, 2024-12], missing: false{more("billed")}}}
""")


def real(folder: Path, form: str) -> Path:
    """Write the real tables as other software writes them: pandas, by its own means."""
    draw = np.random.default_rng(7)
    day = pd.Timestamp("1930-01-01") + pd.to_timedelta(draw.integers(0, 25_000, N), unit="D")
    nr = draw.permutation(N) + 1
    at = pd.Timestamp("2021-01-01") + pd.to_timedelta(draw.integers(0, 900 * 1440, 2 * N), unit="m")
    cost = draw.uniform(5, 9_000, 2 * N).round(2)
    patients = pd.DataFrame({"nr": nr, "town": draw.choice(["Köln", "Zürich"], N), "born": day})
    patients = patients.assign(smoker=draw.random(N) < 0.4, bmi=draw.normal(26, 4, N).clip(15, 45).round(1))
    ward = draw.choice(["surgery", "medicine", "other"], 2 * N)
    stays = pd.DataFrame({"nr": draw.choice(nr, 2 * N), "admitted": at, "ward": ward, "cost": cost})
    stays["billed"] = at.strftime("%Y%m").astype("int64")
    folder.mkdir()
    if form == "parquet":
        patients = patients.astype({"nr": "int32", "born": "datetime64[ns]", "bmi": "float32"})
        patients.to_parquet(folder / "patients.parquet", index=False)
        stays = stays.astype({"nr": "int32", "admitted": "datetime64[us]", "ward": "category"})
        stays.to_parquet(folder / "stays.parquet", index=False)
        return folder
    own = analysis_of_stays.FORMS[form]
    words = {"european": ("ja", "nein"), "american": ("Y", "N"), "register": (1, 2)}[form]
    patients["born"], patients["smoker"] = day.strftime(own["day"]), np.where(patients["smoker"], *words)
    stays["admitted"] = at.strftime(own["moment"])
    if form == "european":
        patients["bmi"] = [str(each).replace(".", ",") for each in patients["bmi"]]
        stays["cost"] = [f"{each:,.2f} €".translate(str.maketrans(",.", ".,")) for each in cost]
    if form == "american":
        stays["cost"] = [f"${each:,.2f}" for each in cost]
    options = {"sep": own["read"].get("sep", ","), "encoding": own["read"].get("encoding", "utf-8"), "index": False}
    patients.to_csv(folder / "patients.csv", **options)
    stays.to_csv(folder / "stays.csv", **options)
    return folder


@pytest.mark.parametrize("form", FORMS)
def test_one_script_runs_on_real_and_synthetic_files(tmp_path: Path, form: str) -> None:
    source = real(tmp_path / "real", form)
    expected = analysis_of_stays.analysis(source, form)
    ledger = db.Ledger.create(tmp_path / "a.ledger", dataset="a", epsilon=20, delta=1e-5)
    plan = db.plan(schema(form), epsilon=20, delta=1e-5, accountant="rdp")
    syn = db.fit(source, plan, ledger=ledger, out=tmp_path / "run", seed=1)
    chunks = syn.sample_chunks(N, seed=1)
    written = "parquet" if form == "parquet" else "csv"
    write_related(chunks, tmp_path / "synthetic", syn.schema, form=written)  # type: ignore[arg-type]
    found = analysis_of_stays.analysis(tmp_path / "synthetic", form)
    assert {**found, "figures": 0} == {**expected, "figures": 0}
    assert all(map(math.isfinite, found["figures"]))
    cost, _, bmi, _ = found["figures"]
    assert cost == pytest.approx(expected["figures"][0], rel=0.4)
    assert bmi == pytest.approx(expected["figures"][2], rel=0.2)
