"""Records that are asked for: as frequent as they are, of one kind alone, or in wanted shares."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from tiers import exhaustive

import doublure as db
from doublure.cli.main import app
from doublure.cli.terminal import run_guarded
from doublure.errors import SettingError
from doublure.run.drawing import ConditionalSampler

ROWS = 4000
SCHEMA = """
doublure: 1
kind: table
units: 4000
columns:
  age: {type: integer, bounds: [18, 97], missing: false}
  balance: {type: integer, bounds: [-5000, 100000], missing: false}
  pdays: {type: integer, bounds: [0, 900], missing: true}
  job: {type: category, values: [cook, nurse, clerk, none], missing: true}
  start: {type: integer, bounds: [0, 99], missing: false}
  end: {type: integer, bounds: [0, 99], missing: false}
  area: {type: category, values: [north, south, coast], missing: false}
  region: {type: category, values: [land, sea], missing: false}
  sex: {type: category, values: [f, m], missing: false, roles: [condition]SHARES}
  answer: {type: boolean, missing: false, roles: [target, condition]}
constraints:
  - {at_most: [start, end]}
  - {determines: [area, region], map: {north: land, south: land, coast: sea}}
  - {implies: {when: {age: [18, 24]}, then: {job: [none, missing]}}}
"""


def people() -> pd.DataFrame:
    draw = np.random.default_rng(3)
    answer = draw.random(ROWS) < 0.12
    sex = np.where(draw.random(ROWS) < np.where(answer, 0.7, 0.2), "f", "m")
    age = np.where(answer, draw.integers(50, 98, ROWS), draw.integers(18, 70, ROWS))
    job = np.where(sex == "f", draw.choice(["nurse", "clerk"], ROWS), draw.choice(["cook", "clerk"], ROWS))
    start = draw.integers(0, 60, ROWS)
    area = draw.choice(["north", "south", "coast"], ROWS, p=[0.5, 0.3, 0.2])
    return pd.DataFrame(
        {
            "age": age,
            "balance": np.where(answer, 60_000, 0) + draw.integers(-4000, 20_000, ROWS),
            "pdays": np.where(draw.random(ROWS) < 0.8, np.nan, draw.integers(0, 900, ROWS)),
            "job": np.where(age <= 24, "none", np.where(draw.random(ROWS) < 0.1, None, job)),
            "start": start,
            "end": start + draw.integers(0, 40, ROWS),
            "area": area,
            "region": np.where(area == "coast", "sea", "land"),
            "sex": sex,
            "answer": answer,
        }
    )


def fitted(folder: Any, shares: str = "", method: str = "statistics", **settings: Any) -> Any:
    torch.set_num_threads(1)
    schema = db.Schema.parse(SCHEMA.replace("SHARES", shares))
    plan = db.plan(schema, method=method, epsilon=20.0, delta=1e-5, accountant="rdp", **settings)
    book = db.Ledger.create(folder / f"{method}{len(shares)}.ledger", dataset="people", epsilon=1e6, delta=0.1)
    return db.fit(people(), plan, ledger=book, out=folder / f"{method}{len(shares)}", seed=1)


@pytest.fixture
def typed(capfd: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str]]:
    """Return the command line, run in this process: its exit code, and what it printed."""

    def run(*words: object) -> tuple[int, str]:
        capfd.readouterr()
        code = run_guarded(app, [str(word) for word in words])
        return code, capfd.readouterr().out

    return run


@pytest.fixture(scope="module")
def syn(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return fitted(tmp_path_factory.mktemp("plain"), components=32, fit_steps=150)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Half of the sexes are declared to be either, which they are not in the data."""
    return fitted(tmp_path_factory.mktemp("shared"), ", shares: {f: 0.5, m: 0.5}", components=32, fit_steps=150)


# -- shares ----------------------------------------------------------------------------------------------------------


def test_conditions_without_shares_are_as_frequent_as_the_counts_say(syn: Any) -> None:
    """And together: most of those who say yes are women, though most are men."""
    rows, real = syn.sample(8000, seed=1), people()
    assert syn.notes == ()
    assert not any("equally" in warning for warning in syn.plan.warnings)
    for name, value in (("answer", True), ("sex", "f")):
        assert (rows[name] == value).mean() == pytest.approx((real[name] == value).mean(), abs=0.02)
    yes = rows[rows["answer"]]
    assert (yes["sex"] == "f").mean() == pytest.approx((real[real["answer"]]["sex"] == "f").mean(), abs=0.07)


def test_declared_shares_are_followed_and_the_rest_is_as_frequent_as_beside_them(shared: Any) -> None:
    rows, real = shared.sample(8000, seed=1), people()
    assert (rows["sex"] == "f").mean() == pytest.approx(0.5, abs=0.02)
    for sex in "fm":
        wanted = real[real["sex"] == sex]["answer"].mean()
        assert rows[rows["sex"] == sex]["answer"].mean() == pytest.approx(wanted, abs=0.04)


def test_a_method_that_counts_nothing_says_so_wherever_it_matters(tmp_path: Any, typed: Any) -> None:
    syn = fitted(tmp_path, method="dpgan", steps=2)
    told = "sex and answer are conditions without shares, and dpgan counts none"
    for lines in (syn.plan.warnings, syn.notes):
        assert [line for line in lines if "without shares" in line] == [
            f"{told}: their values are sampled equally often, not as often as in the data; declare or learn shares"
        ]
    card = db.release(syn, tmp_path / "bundle", n=20, seed=1).card
    assert next(limit for limit in card["limits"] if "without shares" in limit).startswith(told)
    assert told in (tmp_path / "bundle/card.html").read_text()
    code, said = typed("sample", tmp_path / "dpgan0", "-n", 5, "-o", tmp_path / "rows.csv")
    assert code == 0
    assert said.count("Note: ") == 1
    assert told in " ".join(said.split())


# -- what is asked for -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "fits"),
    [
        ({"age": (30, 40)}, lambda rows: rows["age"].between(30, 40)),
        ({"age": "30..40"}, lambda rows: rows["age"].between(30, 40)),
        ({"age": "90.."}, lambda rows: rows["age"] >= 90),
        ({"age": [33, 66]}, lambda rows: rows["age"].isin([33, 66])),
        ({"balance": (-100, 100)}, lambda rows: rows["balance"].between(-100, 100)),
        ({"pdays": None}, lambda rows: rows["pdays"].isna()),
        ({"pdays": ""}, lambda rows: rows["pdays"].isna()),
        ({"pdays": (3, None), "job": ["cook", None]}, lambda r: (r["pdays"] >= 3) & r["job"].isin(["cook", np.nan])),
        ({"job": "cook,nurse"}, lambda rows: rows["job"].isin(["cook", "nurse"])),
        ({"start": (10, 12), "end": (30, 50)}, lambda r: r["start"].between(10, 12) & r["end"].between(30, 50)),
        ({"region": "sea", "answer": True}, lambda rows: (rows["region"] == "sea") & rows["answer"]),
        ({"sex": ["f", "m"], "age": 44}, lambda rows: rows["age"] == 44),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_every_row_has_it_whatever_the_form(syn: Any, given: dict[str, Any], fits: Any) -> None:
    rows = syn.sample(300, given=given, seed=2)
    assert len(rows) == 300
    assert fits(rows).all()
    assert (rows["start"] <= rows["end"]).all()
    assert ((rows["area"] == "coast") == (rows["region"] == "sea")).all()
    young = rows[rows["age"] <= 24]
    assert (young["job"].isna() | (young["job"] == "none")).all()


@pytest.fixture(scope="module")
def many(syn: Any) -> pd.DataFrame:
    return syn.sample(25_000, seed=5)


@pytest.fixture(scope="module")
def many_shared(shared: Any) -> pd.DataFrame:
    return shared.sample(25_000, seed=5)


@pytest.mark.parametrize(
    ("which", "given"),
    [
        ("syn", {"age": (55, 60)}),
        ("syn", {"region": "sea", "balance": (0, 9000)}),
        ("shared", {"pdays": None, "age": (40, 97)}),
        pytest.param("syn", {"pdays": None, "age": (40, 97)}, marks=exhaustive),
        pytest.param("shared", {"age": (55, 60)}, marks=exhaustive),
        pytest.param("shared", {"region": "sea", "balance": (0, 9000)}, marks=exhaustive),
    ],
)
def test_rows_that_are_asked_for_are_like_those_that_happen_to_fit(
    which: str, given: dict[str, Any], request: pytest.FixtureRequest
) -> None:
    """The same rows come out as by rejection, only sooner."""
    asked = request.getfixturevalue(which).sample(4000, given=given, seed=4)
    whole = request.getfixturevalue({"syn": "many", "shared": "many_shared"}[which])
    kept = pd.Series(True, index=whole.index)
    for name, cells in given.items():
        column = whole[name]
        kept &= (
            column.isna() if cells is None else column.between(*cells) if isinstance(cells, tuple) else column == cells
        )
    left = whole[kept]
    assert len(left) > 500
    for name in ("sex", "answer", "job", "area"):
        one = asked[name].astype(object).value_counts(normalize=True, dropna=False)
        other = left[name].astype(object).value_counts(normalize=True, dropna=False)
        assert one.sub(other, fill_value=0).abs().sum() / 2 < 0.05, name
    for name in ("age", "balance"):
        spread = whole[name].std()
        assert abs(asked[name].mean() - left[name].mean()) < 0.12 * spread, name


def test_columns_that_rules_leave_as_they_are_are_asked_for_too(syn: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs follow from ages in the tables already: a rule changes hardly a row that fits, until it changes many."""
    sizes, decode = [], type(syn._encoder).decode

    def watched(encoder: Any, rows: Any, *rest: Any) -> Any:
        sizes.append(len(rows))
        return decode(encoder, rows, *rest)

    monkeypatch.setattr(type(syn._encoder), "decode", watched)
    asked = {"job": "cook", "start": (0, 5)}
    assert (syn.sample(2000, given=asked, seed=1)["job"] == "cook").all()
    few = sum(sizes)
    monkeypatch.setattr("doublure.run.drawing._LEFT_OUT", -1.0)
    sizes.clear()
    assert (syn.sample(2000, given=asked, seed=1)["job"] == "cook").all()
    assert few < 15_000 < 25_000 < sum(sizes)


def test_a_wanted_distribution_is_met_to_the_row(syn: Any) -> None:
    rows = syn.sample(1001, given={"sex": {"f": 0.5, "m": 0.5}, "age": {(18, 40): 0.25, "41..": 0.75}}, seed=3)
    assert len(rows) == 1001
    assert abs((rows["sex"] == "f").sum() - 500.5) <= 1
    assert abs((rows["age"] <= 40).sum() - 250) <= 2
    both = ((rows["sex"] == "f") & (rows["age"] <= 40)).sum()
    assert abs(both - 125) <= 2
    assert (rows["sex"].iloc[:500] == "f").mean() == pytest.approx(0.5, abs=0.1)  # not one group after another
    chunks = list(syn.sample_chunks(1001, given={"job": {"cook": 0.1, None: 0.9}}, seed=3, chunk_rows=100))
    assert [len(chunk) for chunk in chunks] == [100] * 10 + [1]
    assert abs(sum((chunk["job"] == "cook").sum() for chunk in chunks) - 100) <= 1


def test_two_conditions_on_ten_thousand_rows_take_five_seconds_at_most(syn: Any) -> None:
    begun = time.process_time()
    rows = syn.sample(10_000, given={"pdays": (10, 90), "region": "sea"}, seed=6)
    assert time.process_time() - begun < 5
    assert len(rows) == 10_000


def test_what_hardly_any_row_has_is_refused_before_a_row_is_drawn(syn: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ConditionalSampler, "records", lambda *_: pytest.fail("rows were drawn"))
    monkeypatch.setattr("doublure.run.drawing.MOST_DRAWN", 1000)
    with pytest.raises(SettingError, match=r"about one synthetic row in [0-9,]+ has this combination, too few"):
        syn.sample(900, given={"age": 44, "region": "sea"})
    with pytest.raises(SettingError, match="not one synthetic row in 1,000 has this combination"):
        syn.sample(1, given={"age": 44, "balance": 77_000, "answer": False})


def test_the_command_takes_all_of_it(syn: Any, typed: Any, tmp_path: Any) -> None:
    syn.save(tmp_path / "run")
    out = tmp_path / "rows.csv"
    words = ["--given", "age=30..40", "--given", "pdays=", "--shares", "sex=f:0.25,m:0.75", "--seed", 1]
    assert typed("sample", tmp_path / "run", "-n", 40, "-o", out, *words)[0] == 0
    rows = pd.read_csv(out)
    assert rows["age"].between(30, 40).all()
    assert rows["pdays"].isna().all()
    assert (rows["sex"] == "f").sum() == 10
    for wrong in (["--shares", "sex=f"], ["--shares", "sex=f:0.5"], ["--given", "sex=f", "--shares", "sex=f:1"]):
        assert typed("sample", tmp_path / "run", "-n", 4, "-o", tmp_path / "no.csv", *wrong)[0] == 2


def test_a_few_rows_are_drawn_among_others_that_can_lend_them_cells(syn: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Asked for one at a time, rows that break a rule are not all fixed to the nearest cell."""
    sizes, decode = [], type(syn._encoder).decode

    def watched(encoder: Any, rows: Any, *rest: Any) -> Any:
        sizes.append(len(rows))
        return decode(encoder, rows, *rest)

    monkeypatch.setattr(type(syn._encoder), "decode", watched)
    assert len(syn.sample(1, seed=1)) == 1
    assert len(syn.sample(1500, seed=1)) == 1500
    assert len(syn.sample(0)) == 0
    assert sizes == [1000, 1500, 0]
