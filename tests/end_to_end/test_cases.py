"""Small tables that real people brought, from file to sample: each comes out as its owner would expect."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import doublure as db
from doublure.drafting.draft import drafted

DRAW = np.random.default_rng(2)


def fitted(data: Any, text: str, folder: Path, epsilon: float = 5.0) -> db.Synthesizer:
    plan = db.plan(db.Schema.parse(text), epsilon=epsilon, delta=1e-5, accountant="rdp", fit_steps=200)
    ledger = db.Ledger.create(folder / "ledger", dataset="case", epsilon=100.0, delta=0.1)
    return db.fit(data, plan, ledger=ledger, seed=1, progress=False)


def shares(cells: pd.Series) -> pd.Series:
    return cells.value_counts(normalize=True)


# -- dates that are whole numbers ------------------------------------------------------------------------------------


def invoices(folder: Path) -> Path:
    issued = np.datetime64("2020-01-01") + DRAW.integers(0, 1400, 2000)
    paid = issued + DRAW.integers(0, 60, 2000)
    whole = [pd.Series(days).dt.strftime("%Y%m%d").astype(int) for days in (issued, paid)]
    frame = pd.DataFrame({"issued": whole[0], "paid": np.where(DRAW.random(2000) < 0.1, 99991231, whole[1])})
    frame.to_csv(folder / "inv.csv", index=False)
    return folder / "inv.csv"


def test_whole_numbers_that_are_dates_are_proposed_and_come_out_as_dates(tmp_path: Path) -> None:
    path = invoices(tmp_path)
    proposed = drafted(path).proposals
    assert proposed["issued"].column == {"type": "date", "date_format": "YYYYMMDD", "bounds": "undeclared"}
    text = """
    {doublure: 1, kind: table, units: 2000, date_format: YYYYMMDD, defaults: {missing: false}, columns: {
      issued: {type: date, bounds: [2019-01-01, 2024-12-31]},
      paid: {type: date, bounds: [2019-01-01, 2024-12-31], missing: [99991231]}},
     constraints: [{at_most: [issued, paid]}]}
    """
    syn = fitted(path, text, tmp_path)
    db.release(syn, tmp_path / "bundle", n=2000, seed=1, formats="csv", progress=False)
    rows = pd.read_csv(tmp_path / "bundle" / "data.csv", dtype=str)
    issued = pd.to_datetime(rows["issued"], format="%Y%m%d")  # which refuses a day that does not exist
    there = rows["paid"] != "99991231"
    paid = pd.to_datetime(rows["paid"][there], format="%Y%m%d")
    assert abs(1 - there.mean() - 0.1) < 0.03
    assert (issued[there] <= paid).all()
    assert abs((paid - issued[there]).dt.days.mean() - 29.5) < 3


# -- columns of one value or of none, and kinds of missing -----------------------------------------------------------

ODD = """
doublure: 1
kind: table
units: 2000
columns:
  fax: {type: category, values: [x], missing: true}
  discount: {type: real, bounds: [0, 100], missing: true}
  version: {type: category, values: [v1], missing: false}
  ok: {type: boolean, missing: true}
  answer: {type: integer, bounds: [0, 3], missing: [-7, -8, -9]}
  reason: {type: category, values: [a, b], missing: true}
constraints:
- {implies: {when: {ok: true}, then: {reason: missing}}}
- {implies: {when: {ok: missing}, then: {reason: missing}}}
- {implies: {when: {ok: false}, then: {reason: [a, b]}}}
"""


def odd() -> pd.DataFrame:
    ok = DRAW.choice(["True", "False", ""], 2000, p=[0.5, 0.3, 0.2])
    reason = np.where(ok == "False", DRAW.choice(["a", "b"], 2000), "")
    answer = DRAW.choice(["-7", "-8", "-9", "1", "2"], 2000, p=[0.3, 0.05, 0.05, 0.4, 0.2])
    return pd.DataFrame({"fax": "", "discount": "", "version": "v1", "ok": ok, "answer": answer, "reason": reason})


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_empty_columns_constants_and_codes_of_missing_come_out(tmp_path: Path, ending: str) -> None:
    data = tmp_path / f"t{ending}"
    frame = odd()
    frame.to_csv(data, index=False) if ending == ".csv" else frame.to_parquet(data)
    syn = fitted(data, ODD, tmp_path)
    db.release(syn, tmp_path / "bundle", n=2000, seed=1, formats="csv", progress=False)
    rows = pd.read_csv(tmp_path / "bundle" / "data.csv", dtype=str, keep_default_na=False)
    assert (rows[["fax", "discount"]] == "").all(axis=None)
    assert (rows["version"] == "v1").all()
    found = shares(rows["answer"])
    for code, share in (("-7", 0.3), ("-8", 0.05), ("-9", 0.05), ("1", 0.4)):
        assert abs(found[code] - share) < 0.03
    assert ((rows["reason"] != "") == (rows["ok"] == "False")).all()


# -- very few rows, very many codes ----------------------------------------------------------------------------------


def test_four_rows_are_drowned_and_say_so(tmp_path: Path) -> None:
    """Noise of seven a count must not decide a column: one fit of three was one row again and again.

    Simulated, one row has more than .8 of a sample in one fit of five million, more than .9 in none.
    """
    data = pd.DataFrame({"A": [True, True, False, True], "B": [False] * 4, "C": [True, False, True, True]})
    text = """
    {doublure: 1, kind: table, units: 4, defaults: {missing: false},
     columns: {A: {type: boolean}, B: {type: boolean}, C: {type: boolean}}}
    """
    syn = fitted(data, text, tmp_path, epsilon=1.0)
    assert any("hardly anything will be learned" in warning for warning in syn.plan.warnings)
    assert any("hardly anything will be learned" in line for line in syn.plan.explain().splitlines())
    assert syn.sample(2000, seed=1).value_counts(normalize=True).max() < 0.95


def test_a_trial_of_150_keeps_its_arms(tmp_path: Path) -> None:
    data = pd.DataFrame(
        {
            "age": DRAW.integers(40, 90, 150),
            "arm": DRAW.permutation(["drug"] * 75 + ["placebo"] * 75),
            "bmi": DRAW.normal(27, 4, 150).clip(15, 45).round(1),
        }
    )
    text = """
    {doublure: 1, kind: table, units: 150, defaults: {missing: false}, columns: {
     age: {type: integer, bounds: [18, 100]},
     arm: {type: category, values: [drug, placebo]}, bmi: {type: real, bounds: [10, 60], precision: 1}}}
    """
    rows = fitted(data, text, tmp_path, epsilon=1.0).sample(1000, seed=1)
    assert 0.3 < (rows["arm"] == "drug").mean() < 0.7
    assert 20 < rows["bmi"].mean() < 40
    assert rows["bmi"].std() > 2


def test_thousands_of_codes_go_through(tmp_path: Path) -> None:
    codes = [f"{letter}{nr:02}.{part}" for letter in "ABCDE" for nr in range(100) for part in range(6)]
    (tmp_path / "icd.txt").write_text("\n".join(codes))
    popular = DRAW.dirichlet(np.full(len(codes), 0.2))
    data = pd.DataFrame({"icd": DRAW.choice(codes, 6000, p=popular), "age": DRAW.integers(0, 100, 6000)})
    text = """
    {doublure: 1, kind: table, units: 6000, defaults: {missing: false},
     columns: {icd: {type: category, values: {file: icd.txt}}, age: {type: integer, bounds: [0, 120]}}}
    """
    (tmp_path / "s.yaml").write_text(text)
    schema = db.Schema.load(tmp_path / "s.yaml")
    plan = db.plan(schema, epsilon=1.0, delta=1e-5, accountant="rdp", fit_steps=50)
    ledger = db.Ledger.create(tmp_path / "ledger", dataset="case", epsilon=9.0, delta=0.1)
    rows = db.fit(data, plan, ledger=ledger, seed=1, progress=False).sample(6000, seed=1)
    assert set(rows["icd"]) <= set(codes)
    assert abs(rows["age"].mean() - data["age"].mean()) < 5


# -- a shop ----------------------------------------------------------------------------------------------------------

SHOP = """
doublure: 1
kind: relational
unit: {name: customer}
units: 1000
misfit: coerce
defaults: {missing: false}
tables:
  customers: {key: cid, columns: {cid: {type: id}, since: {type: date, bounds: [2015-01-01, 2023-12-31]}}}
  orders:
    parent: customers
    foreign_key: cid
    max_children: 6
    columns: {cid: {type: id}, day: {type: date, bounds: [2015-01-01, 2026-12-31]}}
constraints: [{at_most: [customers.since, orders.day]}]
"""


def test_most_customers_have_no_order_and_guests_are_nobodys(tmp_path: Path) -> None:
    since = np.datetime64("2015-01-01") + DRAW.integers(0, 3000, 1000)
    many = DRAW.poisson(0.7, 1000)
    who = np.repeat(np.arange(1000), many)
    orders = pd.DataFrame({"cid": who.astype(float), "day": since[who] + DRAW.integers(0, 900, len(who))})
    orders.loc[DRAW.random(len(who)) < 0.05, "cid"] = np.nan
    data = {"customers": pd.DataFrame({"cid": np.arange(1000), "since": since}), "orders": orders}
    made = fitted(data, SHOP, tmp_path).sample(1000, seed=1)
    childless = 1 - made["orders"]["cid"].nunique() / 1000
    assert abs(childless - np.exp(-0.7 * 0.95)) < 0.06
    assert made["orders"]["cid"].notna().all()
    ordered = made["orders"].merge(made["customers"], on="cid")
    assert (ordered["since"] <= ordered["day"]).all()


# -- a category of a filtered table, a rare class --------------------------------------------------------------------


def test_a_category_with_a_level_that_no_row_has(tmp_path: Path) -> None:
    whole = pd.DataFrame({"cat": pd.Categorical(DRAW.choice(["a", "b", "c"], 1500, p=[0.6, 0.2, 0.2]))})
    data = whole[whole["cat"] != "c"]
    data.to_parquet(tmp_path / "f.parquet")
    text = "{doublure: 1, kind: table, units: 1200, columns: {cat: {type: category, values: [a, b], missing: false}}}"
    for number, given in enumerate((data, tmp_path / "f.parquet")):
        folder = tmp_path / str(number)
        folder.mkdir()
        rows = fitted(given, text, folder).sample(2000, seed=1)
        assert set(rows["cat"]) == {"a", "b"}
        assert abs((rows["cat"] == "a").mean() - 0.75) < 0.04


def test_a_rare_class_is_neither_lost_nor_made_common(tmp_path: Path) -> None:
    n, rare = 20_000, 78
    fraud = np.arange(n) < rare
    kind = np.where(fraud, DRAW.choice(["wire", "web"], n), DRAW.choice(["pos", "atm", "web"], n))
    data = pd.DataFrame({"fraud": fraud, "kind": kind, "hour": DRAW.integers(0, 24, n)})
    text = """
    {doublure: 1, kind: table, units: 20000, defaults: {missing: false}, columns: {fraud: {type: boolean},
     kind: {type: category, values: [pos, atm, web, wire, cheque]}, hour: {type: integer, bounds: [0, 23]}}}
    """
    rows = fitted(data, text, tmp_path, epsilon=2.0).sample(100_000, seed=1)
    assert 20 < rows["fraud"].sum() / 5 < 160


def test_natural_bounds_that_are_wide_make_no_tail(tmp_path: Path) -> None:
    """Stays of 0 to 365 days and fares of 0 to 500: some noise once stood at the bounds, deviations were 1.2 to 7."""
    data = pd.DataFrame({"stay": DRAW.poisson(3, 8000), "fare": DRAW.normal(15, 5, 8000).clip(0).round(2)})
    text = """
    {doublure: 1, kind: table, units: 8000, defaults: {missing: false}, columns: {
     stay: {type: integer, bounds: [0, 365]}, fare: {type: real, bounds: [0, 500], precision: 2}}}
    """
    rows = fitted(data, text, tmp_path, epsilon=1.0).sample(8000, seed=1)
    for name in data:
        assert 0.95 < rows[name].mean() / data[name].mean() < 1.05
        assert 0.9 < rows[name].std() / data[name].std() < 1.15


# -- a hospital ------------------------------------------------------------------------------------------------------


def test_a_hospital_from_its_codebook_to_a_verified_bundle(tmp_path: Path) -> None:
    rows = _stays()
    rows.to_csv(tmp_path / "hospital.csv", index=False)
    (tmp_path / "codes.csv").write_text(CODEBOOK)
    made = drafted(tmp_path / "hospital.csv", tmp_path / "codes.csv")
    text = made.to_yaml()
    assert "Not in the codebook" not in text
    syn = fitted(tmp_path / "hospital.csv", text, tmp_path, epsilon=8.0)
    db.release(syn, tmp_path / "bundle", n=1500, seed=1, formats="csv", progress=False)
    db.verify(tmp_path / "bundle")
    found = pd.read_csv(tmp_path / "bundle" / "data.csv", dtype=str, keep_default_na=False)
    assert list(found) == [name for name in rows if name not in ("name", "note")]
    stays, real = found.groupby("MRN"), rows.groupby("MRN")
    assert stays[["dob", "sex"]].nunique().max().max() == 1
    assert abs((stays.size() > 1).mean() - (real.size() > 1).mean()) < 0.08
    assert found["admitted"].str.fullmatch(r"202[23]-\d\d-\d\d \d\d:\d\d").all()
    admitted, discharged = (pd.to_datetime(found[name], errors="coerce") for name in ("admitted", "discharged"))
    assert not (pd.to_datetime(found["dob"]) > admitted).any()
    days = (discharged - admitted).dt.total_seconds() / 86_400
    assert (abs(days - pd.to_numeric(found["los_days"], errors="coerce")).dropna() < 0.06).all()
    assert set(found["icu"]) == {"Y", "N"}
    assert abs((found["icu"] == "Y").mean() - (rows["icu"] == "Y").mean()) < 0.06
    assert set(found["site"]) == {"MAIN"}
    for kind in ("", "<0.2"):
        assert abs((found["creatinine"] == kind).mean() - (rows["creatinine"] == kind).mean()) < 0.05
    assert abs((found["icd10"].str[0] == "I").mean() - (rows["icd10"].str[0] == "I").mean()) < 0.1


CODEBOOK = """column,type,values,lower,upper,missing,precision,step,roles,date_format,written,description
MRN,id,,,,,,,,,,patient number
name,omit,,,,,,,,,,
note,omit,,,,,,,,,,
dob,date,,1900-01-01,2023-12-31,false,,,,,,date of birth
sex,category,1|2|9,,,false,,,,,,"1 male, 2 female, 9 unknown"
icd10,category,A00.1|A00.2|I21.0|I21.1|C50.1|C50.9,,,false,,,,,,main diagnosis
admitted,datetime,,2022-01-01T00:00:00,2023-12-31T23:59:59,false,,60,,YYYY-MM-DD hh:mm,,
discharged,datetime,,2022-01-01T00:00:00,2024-06-30T23:59:59,true,,60,,YYYY-MM-DD hh:mm,,
los_days,real,,0,100,true,1,,,,,length of stay
creatinine,real,,0,20,"['', '<0.2']",2,,,,,mg/dL
icu,boolean,,,,false,,,target,,Y|N,
site,category,MAIN|,,,false,,,,,,
,unit,"{name: patient, id: MRN, per_unit: [dob, sex], max_records: 4, order: admitted}",,,,,,,,,
,units,900,,,,,,,,,
,rule,"{at_most: [dob, admitted]}",,,,,,,,,
,rule,"{at_most: [admitted, discharged]}",,,,,,,,,
,rule,"{difference: {of: los_days, from: admitted, to: discharged, unit: day}}",,,,,,,,,
"""


def _stays() -> pd.DataFrame:
    """Return stays of 900 patients; some still lie there, some creatinines are unknown or below what is measured."""
    draw = np.random.default_rng(3)
    many = np.minimum(1 + draw.poisson(0.7, 900), 4)
    who = np.repeat(np.arange(900), many)
    n = len(who)
    born = np.datetime64("1930-01-01") + draw.integers(0, 30_000, 900)
    admitted = np.datetime64("2022-01-01T00:00") + draw.integers(0, 700 * 1440, n).astype("timedelta64[m]")
    los = np.round(draw.gamma(1.2, 3.5, n), 1).clip(0, 90)
    discharged = admitted + np.round(los * 1440).astype("timedelta64[m]")
    there = draw.random(n) < 0.05
    creatinine = np.round(np.exp(draw.normal(0, 0.4, n)), 2).astype(str)
    creatinine[draw.random(n) < 0.2] = ""
    creatinine[draw.random(n) < 0.1] = "<0.2"
    stamp = [pd.Series(times).dt.strftime("%Y-%m-%d %H:%M") for times in (admitted, discharged)]
    return pd.DataFrame(
        {
            "MRN": 100_000 + who,
            "name": "Doe, Jo",
            "dob": born[who],
            "sex": draw.choice([1, 2, 9], 900, p=[0.48, 0.5, 0.02])[who],
            "icd10": draw.choice(["A00.1", "A00.2", "I21.0", "I21.1", "C50.1", "C50.9"], n),
            "admitted": stamp[0],
            "discharged": np.where(there, "", stamp[1]),
            "los_days": np.where(there, "", los.astype(str)),
            "creatinine": creatinine,
            "note": "well",
            "icu": np.where(draw.random(n) < 0.15, "Y", "N"),
            "site": "MAIN",
        }
    )
