"""A verified bundle keeps every declared rule in every row: the rules' own logic finds a changed row, no hash."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import doublure as db
from doublure.releasing.checking import check_contents
from doublure.releasing.reading import ContentMismatch
from doublure.support.files import json_bytes

SCHEMA = """
doublure: 1
kind: table
units: 400
columns:
  born: {type: year, bounds: [1930, 2000], missing: false}
  admitted: {type: datetime, bounds: [2022-01-01, 2023-01-01], step: 60, timezone: Europe/Berlin, missing: false}
  discharged: {type: datetime, bounds: [2022-01-01, 2023-06-01], step: 60, timezone: Europe/Berlin, missing: true}
  days: {type: real, bounds: [0, 600], precision: 1, missing: true}
  ward: {type: category, values: [a, b, c], missing: false}
  floor: {type: integer, bounds: [1, 9], missing: false}
  score: {type: ordinal, values: [low, mid, high], missing: false}
  rank: {type: integer, bounds: [1, 3], missing: false}
  level: {type: real, bounds: [0, 10], precision: 2, missing: ["", "<0.2"]}
  left: {type: integer, bounds: [0, 20], missing: false}
  right: {type: integer, bounds: [0, 20], missing: false}
  both: {type: integer, bounds: [0, 40], missing: false}
  alive: {type: boolean, written: {true: Y, false: N}, missing: false}
constraints:
  - {at_most: [born, admitted]}
  - {at_most: [admitted, discharged]}
  - {difference: {of: days, from: admitted, to: discharged, unit: day}}
  - {determines: [ward, floor], map: {a: 1, b: 2, c: 9}}
  - {equal: [score, rank]}
  - {sum: {total: both, of: [left, right]}}
  - {implies: {when: {alive: false}, then: {level: "<0.2"}}}
  - {range: {of: left, most: right + 15}}
"""
CHANGES: dict[str, Callable[[pd.DataFrame], None]] = {
    "admitted must not be after discharged": lambda rows: _set(rows, "admitted", "2022-12-31T23:00:00+01:00"),
    "days must be the days from admitted to discharged": lambda rows: _set(rows, "days", "599.9"),
    "floor must be what the list gives for ward": lambda rows: _set(rows, "floor", "5"),
    "rank must say the same as score": lambda rows: _set(rows, "rank", lambda old: "1" if old != "1" else "2"),
    "both must be left + right": lambda rows: _set(rows, "both", lambda old: str((int(old) + 1) % 40)),
    "if alive is false, then level must be <0.2": lambda rows: _set(rows, "level", "", alive="N"),
    "left must be at most right + 15": lambda rows: rows.__setitem__(["left", "right", "both"], ["20", "1", "21"]),
}
"""The rule -> what changes rows so that one breaks it, and no other."""


def _set(rows: pd.DataFrame, column: str, to: Any, **where: str) -> None:
    fits = rows["discharged"] != "" if column in ("admitted", "days") else rows["ward"] != ""
    if column == "admitted":
        fits &= rows["discharged"] < "2022-12-31"
    for name, value in where.items():
        fits &= rows[name] == value
    row = int(np.flatnonzero(fits)[0])
    rows.loc[row, column] = to(rows.loc[row, column]) if callable(to) else to


def patients(many: int = 400) -> pd.DataFrame:
    draw = np.random.default_rng(1)
    admitted = np.datetime64("2022-01-01T00:00") + draw.integers(0, 500_000, many).astype("timedelta64[m]")
    stay = draw.integers(0, 200_000, many)
    left, right = draw.integers(0, 12, many), draw.integers(0, 12, many)
    ward, score, alive = draw.integers(0, 3, many), draw.integers(0, 3, many), draw.random(many) < 0.8
    return pd.DataFrame(
        {
            "born": draw.integers(1930, 2000, many),
            "admitted": admitted.astype(str),
            "discharged": (admitted + stay.astype("timedelta64[m]")).astype(str),
            "days": np.round(stay / 1440, 1),
            "ward": np.array(["a", "b", "c"])[ward],
            "floor": np.array([1, 2, 9])[ward],
            "score": np.array(["low", "mid", "high"])[score],
            "rank": score + 1,
            "level": np.where(alive, np.round(draw.random(many) * 9, 2).astype(str), "<0.2"),
            "left": left,
            "right": right,
            "both": left + right,
            "alive": np.where(alive, "Y", "N"),
        }
    )


def released(folder: Path, schema: str, data: Any, n: int, **how: Any) -> Path:
    plan = db.plan(db.Schema.parse(schema), epsilon=3.0, delta=1e-5)
    ledger = db.Ledger.create(folder / "ledger", dataset="private", epsilon=3, delta=0.1)
    syn = db.fit(data, plan, ledger=ledger, out=folder / "run", seed=1, progress=False)
    db.release(syn, folder / "bundle", n=n, ledger=ledger, seed=2, progress=False, **how)
    return folder / "bundle"


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return released(tmp_path_factory.mktemp("kept"), SCHEMA, patients(), 600)


def contents(folder: Path, rows: pd.DataFrame | None = None, **told: Any) -> tuple[int, int] | None:
    """Read a bundle's contents, without a look at any hash."""
    card = json.loads((folder / "card.json").read_text())
    described = json.loads((folder / "dictionary.json").read_text()) | told
    (folder / "dictionary.json").write_bytes(json_bytes(described))
    card["files"] = [each for each in card["files"] if each["path"] != "data.parquet"]
    if rows is not None:
        rows.to_csv(folder / "data.csv", index=False)
    return check_contents(folder, card, {"watermark": card["watermark"], "guarantee": card["guarantee"]["sentence"]})[1]


@pytest.fixture
def copied(bundle: Path, tmp_path: Path) -> Path:
    for path in bundle.iterdir():
        if path.name != "data.parquet":
            (tmp_path / path.name).write_bytes(path.read_bytes())
    return tmp_path


def rows_of(folder: Path) -> pd.DataFrame:
    text = (folder / "data.csv").read_text(encoding="utf-8")
    return pd.read_csv(io.StringIO(text), dtype=str, keep_default_na=False)


def test_a_bundle_is_verified_with_its_rules(bundle: Path) -> None:
    assert db.verify(bundle)["rules"] == {"kept": 8, "unchecked": 0}


def test_rows_as_they_were_written_are_in_order(copied: Path) -> None:
    assert contents(copied, rows_of(copied)) == (8, 0)


@pytest.mark.parametrize("broken", CHANGES)
def test_a_row_that_breaks_a_rule_is_found_by_the_rule(copied: Path, broken: str) -> None:
    rows = rows_of(copied)
    CHANGES[broken](rows)
    with pytest.raises(ContentMismatch, match=re.escape(f"breaks a declared rule: {broken}")) as found:
        contents(copied, rows)
    assert found.value.field == "data.csv"


def test_an_earlier_dictionary_says_that_rules_are_not_checked(copied: Path) -> None:
    assert contents(copied, version=1) == (0, 8)


def test_a_rule_that_is_none_is_refused(copied: Path) -> None:
    with pytest.raises(ContentMismatch, match="does not describe this bundle"):
        contents(copied, constraints=[{"at_least": ["left", "right"]}])


def test_numbers_and_formulas_that_nothing_can_hold_are_refused_in_a_line(copied: Path) -> None:
    deep = {"formula": {"of": "both", "from": "-" * 600 + "left"}}
    columns = json.loads((copied / "dictionary.json").read_text())["columns"]
    huge = [{**entry, "bounds": [0, 10**400]} if entry["name"] == "left" else entry for entry in columns]
    for forged in ({"constraints": [deep]}, {"columns": huge}):
        with pytest.raises(ContentMismatch, match="does not describe this bundle"):
            contents(copied, **forged)


RELATED = """
doublure: 1
kind: relational
unit: {name: customer}
units: 200
tables:
  customers:
    key: nr
    columns:
      nr: {type: id}
      since: {type: date, bounds: [2015-01-01, 2020-01-01], missing: false}
      spent: {type: integer, bounds: [0, 400], missing: false}
  orders:
    key: nr
    parent: customers
    foreign_key: customer
    max_children: 4
    columns:
      nr: {type: id}
      customer: {type: id}
      placed: {type: date, bounds: [2015-01-01, 2024-01-01], missing: false}
      sent: {type: date, bounds: [2015-01-01, 2024-06-01], missing: false}
      waited: {type: integer, bounds: [0, 4000], missing: false}
      price: {type: integer, bounds: [0, 100], missing: false}
    constraints:
      - {at_most: [placed, sent]}
constraints:
  - {at_most: [customers.since, orders.placed]}
  - {sum: {total: customers.spent, of: orders.price}}
  - {difference: {of: orders.waited, from: customers.since, to: orders.placed, unit: day}}
"""


def shop(many: int = 200) -> dict[str, pd.DataFrame]:
    draw = np.random.default_rng(3)
    since = np.datetime64("2015-01-01") + draw.integers(0, 1700, many)
    who = np.repeat(np.arange(many), draw.integers(0, 5, many))
    waited, price = draw.integers(0, 1200, len(who)), draw.integers(0, 100, len(who))
    placed = since[who] + waited
    spent = np.bincount(who, weights=price, minlength=many).astype(int)
    customers = pd.DataFrame({"nr": np.arange(many), "since": since.astype(str), "spent": spent})
    sent = (placed + draw.integers(0, 40, len(who))).astype(str)
    orders = {"nr": np.arange(len(who)), "customer": who, "placed": placed.astype(str), "sent": sent, "waited": waited}
    return {"customers": customers, "orders": pd.DataFrame({**orders, "price": price})}


@pytest.fixture(scope="module")
def related(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return released(tmp_path_factory.mktemp("related"), RELATED, shop(), 300, formats=["csv"])


ACROSS = {
    "placed must not be after sent": ("orders", "sent", "2015-01-01"),
    "customers.since must not be after orders.placed": ("customers", "since", "2019-12-31"),
    "customers.spent must be the sum of its orders.price": ("customers", "spent", "399"),
    "orders.waited must be the days from customers.since to orders.placed": ("orders", "waited", "3999"),
}


@pytest.mark.parametrize("broken", ACROSS)
def test_a_row_that_breaks_a_rule_between_tables_is_found(related: Path, tmp_path: Path, broken: str) -> None:
    for path in related.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    card = json.loads((tmp_path / "card.json").read_text())
    about = {"watermark": card["watermark"], "guarantee": card["guarantee"]["sentence"]}
    assert check_contents(tmp_path, card, about)[1] == (4, 0)
    table, column, to = ACROSS[broken]
    rows = pd.read_csv(tmp_path / f"{table}.csv", dtype=str)
    first = 0 if table == "orders" else int(pd.read_csv(tmp_path / "orders.csv")["customer"][0]) - 1
    rows.loc[first, column] = to
    rows.to_csv(tmp_path / f"{table}.csv", index=False)
    with pytest.raises(ContentMismatch, match=re.escape(f"breaks a declared rule: {broken}")):
        check_contents(tmp_path, card, about)


def test_the_card_says_it_in_a_line(bundle: Path) -> None:
    page = (bundle / "card.html").read_text(encoding="utf-8")
    assert page.count("Every row keeps all 8 declared rules, and every cell its column’s domain") == 1
