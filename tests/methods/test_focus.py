"""What is in focus is counted more often, at the cost of the rest; what may be said, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import doublure as db
from doublure.errors import SettingError
from doublure.methods.statistics.tables import noisy_tables

SCHEMA = """
doublure: 1
kind: table
units: 2000
columns:
  a: {type: category, values: [p, q, r], missing: false}
  b: {type: category, values: [p, q, r], missing: false}
  c: {type: category, values: [p, q, r], missing: false}
  d: {type: category, values: [p, q, r], missing: false}
  e: {type: category, values: [p, q, r], missing: false}
  y: {type: category, values: [no, yes], missing: false, roles: [target]}
"""


def planned(**settings: Any) -> db.Plan:
    return db.plan(
        db.Schema.parse(SCHEMA), method="statistics", epsilon=1.0, delta=1e-6, accountant="rdp", fit_steps=3,
        components=4, **settings,
    )  # fmt: skip


def errors(tmp_path, **settings: Any) -> tuple[db.Plan, dict[tuple[str, ...], float]]:
    """Return the plan, and the standard error of each table that a fit bought: independent columns, so that no pair
    is chosen for what it says."""
    draw = np.random.default_rng(0)
    frame = pd.DataFrame({name: draw.choice(["p", "q", "r"], 2000) for name in "abcde"})
    frame["y"] = draw.choice(["no", "yes"], 2000)
    plan = planned(**settings)
    ledger = db.Ledger.create(tmp_path / f"ledger{len(list(tmp_path.iterdir()))}", dataset="d", epsilon=10.0, delta=0.1)
    syn = db.fit(frame, plan, ledger=ledger, seed=0)
    best: dict[tuple[str, ...], float] = {}
    for table in syn.tables:
        key = tuple(sorted(table.columns))
        best[key] = min(best.get(key, np.inf), table.standard_error)
    return plan, best


@pytest.mark.parametrize("within", ["", None])
def test_what_is_in_focus_is_less_noisy_and_costs_the_same(tmp_path, within):
    beside = {} if within == "" else {"pairs": "beside"}  # as pairs in focus are counted
    plain, before = errors(tmp_path, within=within, **beside)
    focused, after = errors(tmp_path, within=within, focus=("a", "b & d"))
    assert focused.touches == plain.touches  # what is asked for moves places, and buys none
    assert after["a",] < 0.8 * before["a",]
    assert after["c",] > before["c",]
    pair = ("b", "d")
    others = [error for names, error in after.items() if len(names) == len(pair) and not {"a", "b", "d"} & {*names}]
    assert after[pair] < 0.8 * min(others, default=np.inf)


@pytest.mark.parametrize("pairs", ["within", "beside"])
def test_a_column_in_focus_with_the_target_is_less_noisy(tmp_path, pairs):
    _, before = errors(tmp_path, pairs=pairs)
    _, after = errors(tmp_path, pairs=pairs, focus=("a & y",))
    size = 3 if pairs == "within" else 2
    plain, focused = (
        min(error for names, error in found.items() if len(names) == size and {"a", "y"} <= {*names})
        for found in (before, after)
    )
    assert focused < plain  # by how much depends on how many pairs the scores choose


def test_a_pair_in_focus_is_counted_whatever_its_score(tmp_path):
    _, bought = errors(tmp_path, within="", focus=("c & e",), paired=1)
    assert ("c", "e") in bought


def test_a_focused_column_is_drawn_closer(tmp_path):
    """Each table is counted some four times as often: its noise falls to a half."""
    times = noisy_tables._times([9] * 10, 40, [8.0] + [1.0] * 9)
    assert sum(times) == 40
    assert times[0] >= 3 * max(times[1:])
    assert min(times) >= 1


@pytest.mark.parametrize("wrong", [("nobody",), ("a & nobody",), ("a & a",), ("a & b & c",)])
def test_what_is_no_column_or_pair_is_refused_in_one_line(wrong):
    with pytest.raises(SettingError) as refused:
        planned(focus=wrong)
    assert "focus" in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_pair_with_the_target_may_be_in_focus():
    assert planned(focus=("a & y",)).settings.focus == ("a & y",)
