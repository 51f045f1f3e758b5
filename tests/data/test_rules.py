"""Records that break a declared rule: refused, or each fixed by itself."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from planting import plant

from doublure.data.tables import rules
from doublure.data.tables.opening import open_table
from doublure.errors import DataError
from doublure.measures.tables.rules import broken_declared_rules, sentence
from doublure.schema import Schema

TEXT = """
doublure: 1
kind: table
units: 9
columns:
  age: {type: integer, bounds: [0, 99], missing: false}
  income: {type: integer, bounds: [0, 1000], missing: true}
  code: {type: category, values: ["10", "11", "20"], missing: false}
  group: {type: category, values: ["1", "2"], missing: false}
  a: {type: integer, bounds: [0, 50], missing: false}
  b: {type: integer, bounds: [0, 50], missing: false}
  t: {type: integer, bounds: [0, 100], missing: false}
constraints:
  - {implies: {when: {age: [0, 14]}, then: {income: missing}}}
  - {determines: [code, group], map: {"10": "1", "11": "1", "20": "2"}}
  - {sum: {total: t, of: [a, b]}}
  - {at_most: [a, b]}
"""
SOUND = pd.DataFrame(
    {
        "age": [10, 40, 14, 15],
        "income": [np.nan, 500, np.nan, np.nan],
        "code": ["10", "11", "20", "20"],
        "group": ["1", "1", "2", "2"],
        "a": [1, 2, 3, 4],
        "b": [5, 6, 7, 8],
        "t": [6, 8, 10, 12],
    }
)


def schema(misfit: str) -> Schema:
    return Schema.parse(TEXT.replace("units: 9", f"units: 9\nmisfit: {misfit}"))


def broken(name: str, value: object) -> pd.DataFrame:
    frame = SOUND.copy()
    frame[name] = frame[name].astype(object)
    frame.loc[0, name] = value
    return frame


@pytest.mark.parametrize("misfit", ["refuse", "coerce"])
def test_records_that_keep_the_rules_are_read_as_they_are(misfit: str) -> None:
    plain = Schema.parse(TEXT[: TEXT.index("constraints")])
    frame = open_table(SOUND).load(schema(misfit)).frame
    pd.testing.assert_frame_equal(frame, open_table(SOUND).load(plain).frame)


@pytest.mark.parametrize(
    ("name", "value", "rule", "columns", "became"),
    [
        ("income", 77, "if age is from 0 to 14, then income must be missing", "age, income", ("income", np.nan)),
        ("group", "2", "group must be what the list gives for code", "code, group", ("group", "1")),
        ("t", 99, "t must be a + b", "t, a, b", ("t", 6)),
    ],
)
def test_one_that_breaks_a_rule_is_refused_or_mended(
    name: str, value: object, rule: str, columns: str, became: tuple[str, object]
) -> None:
    frame = broken(name, value)
    with pytest.raises(DataError) as caught:
        open_table(frame).load(schema("refuse"))
    assert caught.value.message == f"has records that break a rule: {rule}"
    assert caught.value.field == columns
    assert "misfit: coerce" in str(caught.value.remedy)
    assert str(value) not in str(caught.value)
    fixed = open_table(frame).load(schema("coerce")).frame
    whole = open_table(SOUND).load(schema("coerce")).frame
    pd.testing.assert_frame_equal(fixed, whole)
    column, wanted = became
    assert fixed[column].iloc[0] == wanted or (wanted is np.nan and pd.isna(fixed[column].iloc[0]))


def test_a_record_that_is_mended_does_not_change_how_others_are_read() -> None:
    """Rule 16: numbers beside their column's steps are read the same, in whatever company."""
    text = """
doublure: 1
kind: table
units: 9
misfit: coerce
columns:
  a: {type: integer, bounds: [3, 9003], step: 7, missing: true}
  b: {type: real, bounds: [0, 10], precision: 1, missing: false}
  k: {type: category, values: [x, y], other: z, missing: true}
constraints:
  - {implies: {when: {k: x}, then: {a: [10, 100], b: [1, 2]}}}
"""
    known = Schema.parse(text)
    records = pd.DataFrame({"a": [2526, 5000, None], "b": [8.375, 9.99, 0.04], "k": ["y", "x", "w"]})
    together = open_table(records).load(known, at_least=0).frame
    assert together.loc[1, "a"] <= 100
    assert together.loc[1, "b"] == 2
    for row in range(len(records)):
        alone = open_table(records[row : row + 1]).load(known, at_least=0).frame
        pd.testing.assert_frame_equal(alone, together[row : row + 1].reset_index(drop=True))


LENDING = """
doublure: 1
kind: table
units: 9
misfit: coerce
columns:
  k: {type: category, values: [x, y], other: z, missing: false}
  m: {type: category, values: [p, q], missing: false}
  a: {type: integer, bounds: [0, 100], missing: false}
  b: {type: integer, bounds: [0, 100], missing: false}
  t: {type: integer, bounds: [0, 200], missing: false}
constraints:
  - {combinations: {columns: [k, m], rows: [[x, p], [y, p], [y, q], [z, q]]}}
  - {implies: {when: {m: p}, then: {a: [10, 30]}}}
  - {sum: {total: t, of: [a, b]}}
"""


def check_records_lend_one_another_nothing() -> None:
    """Sampled rows may; of records, one that is fixed by another's cells would be that other's twice."""
    draw, known = np.random.default_rng(2), Schema.parse(LENDING)
    a, b = draw.integers(0, 100, (2, 24))
    total = np.where(draw.random(24) < 0.5, a + b, draw.integers(0, 200, 24))
    kinds = {"k": draw.choice(["x", "y", "w"], 24), "m": draw.choice(["p", "q"], 24)}
    records = pd.DataFrame({**kinds, "a": a, "b": b, "t": total})
    together = open_table(records).load(known).frame
    alone = [open_table(records[row : row + 1]).load(known, at_least=1).frame for row in range(24)]
    for name in records:
        assert together[name].tolist() == [each[name][0] for each in alone]
    assert (together["t"] == together["a"] + together["b"]).all()
    assert (together.loc[together["m"] == "p", "a"].between(10, 30)).all()


def test_records_lend_one_another_nothing() -> None:
    check_records_lend_one_another_nothing()


def test_records_that_lend_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, rules, "checked", ("rules.fix(numbers, None)", "rules.fix(numbers, np.random.default_rng())"))
    with pytest.raises(AssertionError):
        check_records_lend_one_another_nothing()


def test_an_order_that_is_broken_is_left_to_the_encoding() -> None:
    frame = SOUND.assign(a=[40, 2, 3, 4], t=[45, 8, 10, 12])
    for misfit in ("refuse", "coerce"):
        assert open_table(frame).load(schema(misfit)).frame["a"].tolist() == [40, 2, 3, 4]


def test_what_breaks_a_rule_is_counted() -> None:
    known = schema("refuse").resolve({})
    found = broken_declared_rules(known, broken("t", 99), broken("group", "2"))
    assert [(rule.rule, rule.synthetic, rule.real) for rule in found] == [
        ("implies", 0, 0),
        ("determines", 0, 1),
        ("sum", 1, 0),
        ("at_most", 0, 0),
    ]
    assert sentence(found) == "Synthetic rows break declared rules: sum of t and a and b in 1 row."
    assert sentence(broken_declared_rules(known, SOUND, SOUND)) == "Synthetic rows keep all declared rules (4)."
