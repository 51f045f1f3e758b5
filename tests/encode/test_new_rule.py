"""A rule that the package does not know, through everything that rules go through: one class, and no other file."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest
from ratchets import SOURCE

from doublure.data.tables.opening import open_table
from doublure.drafting.misfits import misfits
from doublure.encode.table import TableEncoder
from doublure.errors import DataError, SchemaError, SettingError
from doublure.measures.tables.rules import broken_declared_rules, sentence
from doublure.run import conditions
from doublure.schema import ResolvedSchema, Schema
from doublure.schema import schema as schemas
from doublure.schema.columns import Column
from doublure.schema.rules.registry import MODELS, make_union
from doublure.schema.rules.rule import CellSource, Names, NumericRule, Rule
from doublure.schema.tables import TableSchema


class Even(Rule):
    """Numbers that are even."""

    word: ClassVar[str] = "even"

    even: Names

    def check(self, columns: Mapping[str, Column]) -> None:
        super().check(columns)
        for name in self.names:
            if not columns[name].integral:
                raise ValueError(f"even names {name}, which has no whole numbers; leave it out")

    def in_numbers(self, columns: Mapping[str, Column], beside: Sequence[Rule]) -> Iterator[NumericRule]:
        yield EvenNumbers(names=self.names, columns=columns)


@dataclass(frozen=True, kw_only=True)
class EvenNumbers(NumericRule):
    """Odd numbers give way downwards."""

    certain: ClassVar[bool] = True

    def broken(self, numbers: Mapping[str, Any]) -> Any:
        return reduce(or_, (numbers[name] % 2 == 1 for name in self.names))

    def fix(self, numbers: dict[str, Any], off: Any, source: CellSource) -> None:
        for name in self.names:
            numbers[name] = numbers[name] - numbers[name] % 2


class EvenSchema(TableSchema):
    """A table whose rules may be even, too."""

    constraints: tuple[make_union((*MODELS, Even)), ...] = ()  # type: ignore[valid-type]


class ResolvedEvenSchema(EvenSchema, ResolvedSchema):
    """The same, all facts known."""


TEXT = """
doublure: 1
kind: table
units: 9
misfit: MISFIT
columns:
  a: {type: integer, bounds: [0, 40], missing: true}
  b: {type: integer, bounds: [0, 40], missing: false}
  k: {type: category, values: [x, y], missing: false}
  r: {type: real, bounds: [0, 1], missing: false}
constraints:
  [RULES]
"""
RULES = "{even: [a, b]}, {at_most: [a, b]}"
RECORDS = pd.DataFrame({"a": [2, None, 4], "b": [3, 8, 6], "k": ["x", "y", "x"], "r": [0.0, 0.5, 1.0]})
SOUND = RECORDS.assign(b=[2, 8, 6])


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a line in the registry does when the package is imported."""
    monkeypatch.setitem(schemas.MODELS, "table", (EvenSchema, ResolvedEvenSchema))


def schema_of(misfit: str = "refuse", rules: str = RULES) -> ResolvedSchema:
    return ResolvedSchema.parse(TEXT.replace("MISFIT", misfit).replace("RULES", rules))


def test_nobody_asks_which_rule_it_is() -> None:
    words, asking = {model.__name__ for model in MODELS}, []
    for path in SOURCE.rglob("*.py"):
        text, name = path.read_text(encoding="utf-8"), path.relative_to(SOURCE).as_posix()
        for node in ast.walk(ast.parse(text if any(word in text for word in words) else "")):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance":
                asked = {each.id for each in ast.walk(node.args[1]) if isinstance(each, ast.Name)}
                asking += [name] if words & asked else []
    assert set(asking) == {"schema/rules/at_most.py"}  # all such rules are one order


def test_it_is_part_of_the_schema() -> None:
    schema = schema_of()
    again = Schema.parse(schema.to_yaml())
    assert again.sha256 == schema.sha256
    assert again.to_plain()["constraints"][0] == {"even": ["a", "b"]}


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        ("{even: [a, q]}", "even names q, which is not a column"),
        ("{even: [a, a]}", "even names a column twice"),
        ("{even: [a, r]}", "even names r, which has no whole numbers; leave it out"),
        (f"{RULES}, {{implies: {{when: {{k: [x, y]}}, then: {{b: 3}}}}}}", "no row was found that keeps all rules"),
    ],
)
def test_one_that_does_not_fit_is_refused(rules: str, words: str) -> None:
    with pytest.raises(SchemaError, match=words):
        schema_of(rules=rules)


def test_records_that_break_it_are_refused_fixed_and_named() -> None:
    with pytest.raises(DataError, match="a, b: has records that break a rule: a and b must keep even"):
        open_table(RECORDS).load(schema_of())
    fixed = open_table(RECORDS).load(schema_of("coerce")).frame
    pd.testing.assert_frame_equal(fixed, open_table(SOUND).load(schema_of()).frame)
    assert [(found.row, found.why) for found in misfits(schema_of(), RECORDS)] == [
        (1, "the row breaks a rule: a and b must keep even")
    ]


def test_sampled_rows_keep_it_beside_others(soft_rows: Any) -> None:
    encoder = TableEncoder(schema_of(), bins=8)
    rows = encoder.decode(soft_rows(encoder, 300, 1), np.random.default_rng(1))
    known = rows.dropna()
    assert (rows["b"] % 2 == 0).all()
    assert (known["a"] % 2 == 0).all()
    assert (known["a"] <= known["b"]).all()
    assert rows["a"].isna().any()
    assert known["a"].nunique() > 5


def test_it_is_explained_and_measured() -> None:
    schema = schema_of()
    assert "a and b must keep even" in schema._repr_html_()
    found = broken_declared_rules(schema, RECORDS, SOUND)
    assert [(rule.rule, rule.synthetic, rule.real) for rule in found] == [("even", 1, 0), ("at_most", 0, 0)]
    assert sentence(found) == "Synthetic rows break declared rules: even of a and b in 1 row."


def test_a_sample_that_would_break_it_is_not_begun() -> None:
    schema = schema_of()
    encoder = TableEncoder(schema)
    assert conditions.read({"b": 4}, schema, encoder).groups
    with pytest.raises(SettingError, match="no row can be by the declared rules"):
        conditions.read({"b": 5}, schema, encoder)
