"""What is asked of a sample and cannot be is refused at once, with what to write instead."""

from __future__ import annotations

import re

import pytest

from doublure.errors import SettingError
from doublure.run import conditions
from doublure.schema import ResolvedSchema, Schema

TEXT = """
doublure: 1
kind: table
units: 9
columns:
  age: {type: integer, bounds: [0, 99], missing: false}
  job: {type: category, values: [none, cook, nurse], missing: false}
  level: {type: integer, bounds: [1, 3], missing: false}
  start: {type: integer, bounds: [0, 50], missing: false}
  mid: {type: integer, bounds: [0, 50], missing: false}
  end: {type: integer, bounds: [0, 50], missing: true}
constraints:
  - {implies: {when: {age: [0, 14]}, then: {job: none}}}
  - {equal: [job, level]}
  - {at_most: [start, mid, end]}
"""


@pytest.fixture
def schema() -> ResolvedSchema:
    return Schema.parse(TEXT).resolve({})


@pytest.mark.parametrize(
    "given",
    [
        {"age": 10, "job": "cook"},
        {"age": "3..12", "job": "cook,nurse"},
        {"job": "none", "level": 3},
        {"start": "20..30", "end": "5..19"},
        {"start": 21, "mid": (0, 20)},
        {"age": 3, "level": 2},
    ],
)
def test_rules_refuse_what_no_row_can_be(schema, given):
    with pytest.raises(SettingError, match="is what no row can be by the declared rules; ask for cells") as caught:
        conditions.read(given, schema, None)
    assert caught.value.field == f"given {', '.join(sorted(given))}"


@pytest.mark.parametrize(
    "given",
    [
        {"age": "10..15", "job": "cook"},
        {"age": 10, "job": "none", "level": 1},
        {"start": (5, 9), "mid": (3, 20), "end": (0, 6)},
        {"start": 40, "end": None},
        {"start": 50, "mid": 50},
        {"age": 99},
    ],
)
def test_what_a_row_can_be_is_let_through(schema, given):
    assert conditions.read(given, schema, None).groups


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"age": "30-40"}, r"is not a number; write 30\.\.40 for a range"),
        ({"age": "30 to 40"}, r"write 30\.\.40"),
        ({"age": "many"}, r"give one, such as 40, or a range, such as 30\.\.40"),
        ({"job": "cok"}, r"has no such value; did you mean cook\? use one of: none, cook, nurse"),
    ],
)
def test_the_remedy_is_what_was_meant(schema, given, words):
    with pytest.raises(SettingError) as caught:
        conditions.read(given, schema, None)
    assert re.search(words, str(caught.value)), str(caught.value)
