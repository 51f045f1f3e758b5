"""Rules that real rows keep are found, and whoever breaks them is counted."""

import numpy as np
import pandas as pd
import pytest

from doublure.measures.tables.coding import Coder
from doublure.measures.tables.fidelity import Tables
from doublure.measures.tables.rules import rules
from doublure.measures.tables.verdict import _incoherent
from doublure.schema import Schema

SCHEMA = """
doublure: 1
kind: table
units: 9
columns:
  group: {type: category, values: [a, b, c], missing: true}
  code: {type: category, values: [a1, a2, b1, c1], missing: true}
  sex: {type: category, values: [f, m], missing: false}
  role: {type: category, values: [husband, wife, other], missing: false}
  debt: {type: integer, bounds: [-1000, 1000], missing: false}
  rate: {type: real, bounds: [0, 1], missing: true}
"""
CODES = {"a": ["a1", "a2"], "b": ["b1", "b1"], "c": ["c1", "c1"]}


def rows(n, seed):
    """A code follows its group, missing cells come together, a debt of zero has no rate, husbands are men."""
    rng = np.random.default_rng(seed)
    group = rng.choice(["a", "b", "c", None], n, p=[0.3, 0.3, 0.2, 0.2])
    code = [None if own is None else CODES[own][rng.integers(2)] for own in group]
    sex, married = rng.choice(["f", "m"], n), rng.random(n) < 0.5
    role = np.where(married, np.where(sex == "m", "husband", "wife"), "other")
    debt = np.where(rng.random(n) < 0.4, 0, rng.integers(1, 1000, n) * rng.choice([-1, 1], n))
    rate = np.where(debt == 0, np.nan, rng.random(n))
    return pd.DataFrame({"group": group, "code": code, "sex": sex, "role": role, "debt": debt, "rate": rate})


@pytest.fixture(scope="module")
def coder():
    return Coder(schema=Schema.parse(SCHEMA).resolve({}))


def found(coder, synthetic, train=None, n=4000):
    train = rows(n, 1) if train is None else train
    read = {"train": train, "synthetic": synthetic, "holdout": rows(n, 3)}
    apart = pd.DataFrame({name: train[name].sample(frac=1, random_state=k).to_numpy() for k, name in enumerate(train)})
    return rules(
        coder, Tables(**{name: coder.read(frame, name) for name, frame in (read | {"baseline": apart}).items()})
    )


def test_planted_rules_are_found_and_no_others(coder):
    sentences = {rule.sentence for rule in found(coder, rows(4000, 2)).rules}
    assert "group = (missing) always with code = (missing)" in sentences
    assert "code = (missing) always with group = (missing)" in sentences
    assert "code = a1 always with group = a" in sentences
    assert "group = b always with code = b1" in sentences
    assert "debt = 0 always with rate = (missing)" in sentences
    assert "rate = (missing) always with debt = 0" in sentences
    assert "sex = f never with role = husband" in sentences
    # Within two values not to be one is to be the other: a rule that says the same again is not counted.
    assert "role = husband always with sex = m" not in sentences
    planted = {("group", "code"), ("debt", "rate"), ("sex", "role")}
    assert {tuple(sorted(rule.columns)) for rule in found(coder, rows(4000, 2)).rules} == {
        tuple(sorted(pair)) for pair in planted
    }


def test_rows_that_keep_the_rules_break_none(coder):
    kept = found(coder, rows(4000, 2))
    assert (kept.score.value, kept.score.real) == (0, 0)
    assert kept.score.baseline > 0.8


def test_each_broken_row_is_counted_once(coder):
    synthetic = rows(1000, 2)
    synthetic.loc[:99, ["group", "code"]] = ["a", "b1"]  # breaks several rules at a time
    synthetic.loc[100:149, ["sex", "role"]] = ["f", "husband"]
    broken = found(coder, synthetic)
    assert broken.score.value == pytest.approx(0.15)
    assert broken.rules[0].broken.value == pytest.approx(0.1)
    (husbands,) = (rule for rule in broken.rules if rule.sentence == "sex = f never with role = husband")
    assert husbands.broken.value == pytest.approx(0.05)
    assert husbands.expected == pytest.approx(0.125, abs=0.02)


def test_one_slip_in_thousands_does_not_hide_a_rule(coder):
    train = rows(20_000, 1)
    train.loc[0, ["sex", "role"]] = ["f", "husband"]
    assert "sex = f never with role = husband" in {r.sentence for r in found(coder, rows(100, 2), train).rules}
    train.loc[:20, ["sex", "role"]] = ["f", "husband"]
    assert "sex = f never with role = husband" not in {r.sentence for r in found(coder, rows(100, 2), train).rules}


def test_what_is_not_listed_counts_too(coder, monkeypatch):
    synthetic = rows(1000, 2)
    synthetic.loc[:99, ["group", "code"]] = ["a", "b1"]
    whole = found(coder, synthetic)
    monkeypatch.setattr("doublure.measures.tables.rules.MOST_LISTED", 1)
    short = found(coder, synthetic)
    assert (len(short.rules), short.rules) == (1, whole.rules[:1])
    assert (short.score, short.found, short.broken) == (whole.score, len(whole.rules), whole.broken)
    assert whole.broken == sum(rule.broken.value > 0 for rule in whole.rules) > 1


def test_what_chance_could_have_left_out_is_no_rule(coder):
    few = rows(60, 1)
    expected = {rule.sentence: rule.expected * 60 for rule in found(coder, rows(60, 2), few).rules}
    assert all(rows_by_chance >= 20 for rows_by_chance in expected.values())


def test_a_broken_rule_is_said_to_be_found_and_where_to_declare_it(coder):
    shuffled = rows(4000, 2)
    shuffled["role"] = shuffled["role"].sample(frac=1, random_state=0).to_numpy()
    (words,) = _incoherent(found(coder, shuffled))
    assert "(found in the real rows, not declared; other real rows: " in words
    assert words.endswith("declare it under constraints.")
    assert _incoherent(found(coder, rows(4000, 2))) == []
