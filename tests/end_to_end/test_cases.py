"""Small tables that real people brought, from file to sample: each comes out as its owner would expect."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hospital import stays
from shell import type_in

import doublure as db
from doublure.drafting.draft import Draft, drafted

DRAW = np.random.default_rng(2)


def fitted(data: Any, text: str, folder: Path, epsilon: float = 5.0) -> db.Synthesizer:
    plan = db.plan(db.Schema.parse(text), epsilon=epsilon, delta=1e-5, accountant="rdp", fit_steps=200)
    ledger = db.Ledger.create(folder / "ledger", dataset="case", epsilon=100.0, delta=0.1)
    return db.fit(data, plan, ledger=ledger, seed=1, progress=False)


def shares(cells: pd.Series) -> pd.Series:
    return cells.value_counts(normalize=True)


def distance(one: pd.Series, other: pd.Series) -> float:
    return float(shares(one).sub(shares(other), fill_value=0).abs().sum() / 2)


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
    rows = fitted(data, text, tmp_path, epsilon=3.0).sample(1000, seed=1)
    assert (rows["arm"] == "drug").mean() == pytest.approx(0.5, abs=0.12)
    for name, mean, deviation in (("bmi", 1.5, 2.0), ("age", 4.0, 5.0)):
        assert rows[name].mean() == pytest.approx(data[name].mean(), abs=mean), name
        assert rows[name].std() == pytest.approx(data[name].std(), abs=deviation), name


def test_thousands_of_codes_keep_their_chapters_and_ages(tmp_path: Path) -> None:
    """As a category, its codes were a fifth wrong and a chapter's mean age was everybody's."""
    codes = [f"{letter}{nr:02}.{part}" for letter in "ABCDE" for nr in range(100) for part in range(6)]
    (tmp_path / "icd.txt").write_text("\n".join(codes))
    popular = DRAW.dirichlet(np.full(len(codes), 0.05))
    icd = DRAW.choice(codes, 12_000, p=popular)
    chapter = np.array(["ABCDE".index(code[0]) for code in icd])
    age = np.clip(20 + 15 * chapter + DRAW.normal(0, 8, 12_000), 0, 110).round().astype(int)
    data = pd.DataFrame({"icd": icd, "age": age})
    text = """
    {doublure: 1, kind: table, units: 12000, defaults: {missing: false},
     columns: {icd: {type: code, values: {file: icd.txt}, levels: [1, 3]}, age: {type: integer, bounds: [0, 120]}}}
    """
    (tmp_path / "s.yaml").write_text(text)
    plan = db.plan(db.Schema.load(tmp_path / "s.yaml"), epsilon=2.0, delta=1e-5, accountant="rdp", fit_steps=100)
    ledger = db.Ledger.create(tmp_path / "ledger", dataset="case", epsilon=9.0, delta=0.1)
    rows = db.fit(data, plan, ledger=ledger, seed=1, progress=False).sample(12_000, seed=1)
    drawn = rows["icd"].astype(str)
    assert set(drawn) <= set(codes)
    assert (~drawn.isin(set(icd))).mean() < 0.08
    assert distance(data["icd"].str[0], drawn.str[0]) < 0.03
    assert distance(data["icd"], drawn) < 0.3
    ages = rows["age"].groupby(drawn.str[0]).mean() - data["age"].groupby(data["icd"].str[0]).mean()
    assert ages.abs().max() < 6


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


@pytest.mark.parametrize(("epsilon", "clear"), [(1.0, False), (10.0, True)])
def test_a_rare_class_is_neither_lost_nor_made_common(tmp_path: Path, epsilon: float, clear: bool) -> None:
    """78 frauds of 20,000 vanished in three fits of ten, and nothing said that the rest was noise."""
    n, rare = 20_000, 78
    fraud = np.arange(n) < rare
    kind = np.where(fraud, DRAW.choice(["wire", "web"], n), DRAW.choice(["pos", "atm", "web"], n, p=[0.6, 0.2, 0.2]))
    amount = np.where(fraud, DRAW.lognormal(5.3, 0.6, n), DRAW.lognormal(3.5, 0.8, n)).round(2)
    data = pd.DataFrame({"fraud": fraud, "kind": kind, "amount": amount, "hour": DRAW.integers(0, 24, n)})
    text = """
    {doublure: 1, kind: table, units: 20000, defaults: {missing: false}, columns: {
     fraud: {type: boolean, roles: [target, condition]},
     kind: {type: category, values: [pos, atm, web, wire, cheque]},
     amount: {type: real, bounds: [0, 100000], precision: 2}, hour: {type: integer, bounds: [0, 23]}}}
    """
    syn = fitted(data, text, tmp_path, epsilon=epsilon)
    few = 20 if clear else 70  # 3.5 deviations of the target's own count
    assert syn.sample(100_000, seed=1)["fraud"].sum() / 5 == pytest.approx(rare, abs=few)
    frauds = syn.sample(2000, given={"fraud": True}, seed=1)
    assert frauds["fraud"].all()
    if clear:
        assert frauds["kind"].isin(["wire", "web"]).mean() > 0.8
        assert 120 < frauds["amount"].median() < 320
    else:
        assert any("mostly those of all rows: true" in note for note in syn.notes)
    assert syn.sample(2000, given={"fraud": False}, seed=1)["amount"].median() < 60


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


def test_a_hospital_from_its_codebook_to_a_verified_bundle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The codebook and the commands are those of docs/own-table.md."""
    monkeypatch.chdir(tmp_path)
    rows = stays()
    rows.to_csv("hospital.csv", index=False)
    page = (Path(__file__).resolve().parents[2] / "docs" / "own-table.md").read_text(encoding="utf-8")
    (codebook,) = re.findall(r"```\n(column,type.*?)```", page, flags=re.DOTALL)
    Path("codes.csv").write_text(codebook)
    for commands in re.findall(r"```sh\n(.*?)```", page, flags=re.DOTALL):
        type_in(commands)
    assert "Not in the codebook" not in Path("hospital.schema.yaml").read_text()
    found = pd.read_csv(tmp_path / "bundle" / "data.csv", dtype=str, keep_default_na=False)
    assert list(found) == [name for name in rows if name not in ("name", "note")]
    made, real = found.groupby("MRN"), rows.groupby("MRN")
    assert made[["dob", "sex"]].nunique().max().max() == 1
    assert abs((made.size() > 1).mean() - (real.size() > 1).mean()) < 0.08
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


# -- files of other programs -------------------------------------------------------------------------------------------


def taken(made: Draft, facts: dict[str, Any], **top: Any) -> db.Schema:
    """Return a draft as its owner leaves it: proposals taken, and what is public filled in."""
    plain = made.schema.to_plain() | top
    for name in plain["columns"]:
        proposal = made.proposals.get(name)
        own = dict(proposal.column) if proposal is not None and proposal.column else dict(plain["columns"][name])
        said = facts.get(name, {})
        plain["columns"][name] = said if "type" in said else own | said
    return db.Schema.from_plain(plain)


def through(path: Path, schema: db.Schema, folder: Path, epsilon: float, n: int, form: str = "csv") -> Path:
    """Go the whole way with defaults: plan, fit, evaluate, release, verify."""
    ledger = db.Ledger.create(folder / "ledger", dataset="case", epsilon=epsilon, delta=1e-4)
    plan = db.plan(schema, epsilon=epsilon, delta=1e-5, accountant="rdp", fit_steps=100)
    syn = db.fit(path, plan, ledger=ledger, out=folder / "run", seed=1, progress=False)
    assert len(db.evaluate.report(syn, path).scores)
    db.release(syn, folder / "bundle", n=n, seed=1, formats=form, progress=False)
    db.verify(folder / "bundle")
    return folder / "bundle" / f"data.{form}"


def test_a_survey_that_r_wrote_with_row_names_and_empty_wages(tmp_path: Path) -> None:
    """As carData's SLID: 44 % of the wages are NA, factors have no order, education is .1 in some rows alone."""
    n = 3000
    real = pd.DataFrame(
        {
            "rownames": range(1, n + 1),
            "wages": np.where(DRAW.random(n) < 0.44, np.nan, DRAW.gamma(4, 4, n).clip(2, 60).round(2)),
            "education": np.where(DRAW.random(n) < 0.8, DRAW.integers(6, 20, n), DRAW.uniform(6, 20, n).round(1)),
            "age": DRAW.integers(16, 95, n),
            "language": DRAW.choice(["English", "French", "Other"], n, p=[0.78, 0.07, 0.15]),
        }
    )
    real.to_csv(tmp_path / "slid.csv", index=False, na_rep="NA")
    made = drafted(tmp_path / "slid.csv")
    assert "rownames" not in made.schema.columns
    wages = {"type": "real", "bounds": "undeclared", "precision": 2, "missing": ["TEXT"]}
    assert made.proposals["wages"].column == wages
    facts: dict[str, Any] = {
        "wages": {"bounds": [0, 100], "missing": {"style": "r"}},
        "education": {"bounds": [0, 25], "missing": False},
        "age": {"bounds": [15, 100], "missing": False},
        "language": {"values": ["English", "French", "Other"], "missing": False, "roles": ["target"]},
    }
    path = through(tmp_path / "slid.csv", taken(made, facts, units=n), tmp_path, 3.0, n)
    assert "NA" in path.read_text()  # as R reads it
    rows = pd.read_csv(path)
    assert rows["wages"].isna().mean() == pytest.approx(0.44, abs=0.03)
    for name, near in (("wages", 1.0), ("education", 0.5), ("age", 3.0)):
        assert rows[name].mean() == pytest.approx(real[name].mean(), abs=near)
    assert distance(rows["language"], real["language"]) < 0.03


def test_an_experiment_of_indicators_of_ones_and_zeros(tmp_path: Path) -> None:
    """As openintro's resume: indicators need no list, names of people are made up, a word stands beside years."""
    n = 2500
    college = DRAW.random(n) < 0.7
    years = np.where(
        DRAW.random(n) < 0.6, "", np.where(DRAW.random(n) < 0.5, "some", DRAW.integers(1, 10, n).astype(str))
    )
    real = pd.DataFrame(
        {
            "firstname": DRAW.choice(["Emily", "Greg", "Lakisha", "Jamal"], n),
            "callback": (DRAW.random(n) < 0.08).astype(int),
            "college_degree": college.astype(int),
            "years_college": np.where(college, 4, DRAW.integers(0, 4, n)),
            "contractor": np.where(DRAW.random(n) < 0.36, "", np.where(DRAW.random(n) < 0.2, "1", "0")),
            "min_experience": years,
        }
    )
    real.to_csv(tmp_path / "resume.csv", index=False)
    made = drafted(tmp_path / "resume.csv")
    for name in ("callback", "college_degree", "contractor"):
        assert made.proposals[name].column == {"type": "boolean", "written": {True: 1, False: 0}}
    facts: dict[str, Any] = {
        "firstname": {"type": "id"},
        "callback": {"missing": False, "roles": ["target"]},
        "college_degree": {"missing": False},
        "years_college": {"values": [0, 1, 2, 3, 4], "missing": False},
        "contractor": {"missing": True},
        "min_experience": {"bounds": [0, 20], "missing": ["", "some"]},
    }
    schema = taken(made, facts, units=n, unit={"name": "record", "id": "none"})
    rows = pd.read_csv(through(tmp_path / "resume.csv", schema, tmp_path, 3.0, n), dtype=str, keep_default_na=False)
    for name in ("callback", "college_degree", "years_college", "contractor"):
        assert distance(rows[name], real[name].astype(str)) < 0.06, name
    for kind in ("", "some"):
        assert (rows["min_experience"] == kind).mean() == pytest.approx(
            (real["min_experience"] == kind).mean(), abs=0.04
        )


def test_a_file_of_spss_with_labels_floats_and_times_of_day(tmp_path: Path) -> None:
    """As the files of pyreadstat: every number is a float there, and a time of day is seconds with a format."""
    pyreadstat = pytest.importorskip("pyreadstat", reason="the extra files is not installed")
    n = 1500
    seconds = DRAW.integers(6 * 4, 20 * 4, n) * 900.0
    real = pd.DataFrame(
        {
            "group": DRAW.choice([1.0, 2.0], n, p=[0.6, 0.4]),
            "weight": DRAW.normal(75, 12, n).round().clip(30, 150),
            "at": np.where(DRAW.random(n) < 0.2, np.nan, seconds),
        }
    )
    pyreadstat.write_sav(
        real,
        str(tmp_path / "s.sav"),
        variable_format={"at": "TIME8"},
        variable_value_labels={"group": {1: "a", 2: "b"}},
    )
    made = drafted(tmp_path / "s.sav")
    assert dict(made.proposals["weight"].column or {})["type"] == "integer"
    facts: dict[str, Any] = {
        "group": {"missing": False},
        "weight": {"bounds": [20, 200], "missing": False},
        "at": {"type": "time", "step": 900, "missing": True},
    }
    path = through(tmp_path / "s.sav", taken(made, facts, units=n), tmp_path, 3.0, n, "sav")
    rows, about = pyreadstat.read_sav(str(path), disable_datetime_conversion=True)
    assert about.original_variable_types["at"] == "TIME8"
    assert about.variable_value_labels["group"] == {1: "a", 2: "b"}
    assert rows["at"].isna().mean() == pytest.approx(0.2, abs=0.05)
    assert rows["at"].mean() == pytest.approx(real["at"].mean(), abs=3600)
    assert rows["weight"].mean() == pytest.approx(real["weight"].mean(), abs=3)
    assert (rows["group"] == 1).mean() == pytest.approx(0.6, abs=0.05)
