"""What a column is asked to be, told in the whole numbers of a row: those numbers, and no other, decode to it."""

import numpy as np
import pytest
import torch

from doublure.encode.table_values import TableValues, common
from doublure.schema import Schema
from doublure.schema.allowed import Allowed

SCHEMA = """
doublure: 1
kind: table
units: 9
columns:
  age: {type: integer, bounds: [18, 40], missing: true}
  pay: {type: integer, bounds: [0, 90000], step: 1000, missing: true}
  rate: {type: real, bounds: [0, 10], step: 0.25, missing: false}
  cost: {type: real, bounds: [-5, 5], precision: 2, missing: false}
  free: {type: real, bounds: [0, 1], missing: false}
  day: {type: date, bounds: [2020-01-01, 2020-12-31], missing: false}
  job: {type: category, values: [cook, nurse, clown], missing: true}
  level: {type: ordinal, values: [low, middle, high], missing: false}
  again: {type: ordinal, values: [one, two, three], missing: false}
  area: {type: category, values: [north, south, coast], missing: false}
  region: {type: category, values: [land, sea], missing: false}
  start: {type: integer, bounds: [0, 9], missing: false}
  stop: {type: integer, bounds: [0, 9], missing: false}
constraints:
  - {equal: [level, again]}
  - {determines: [area, region], map: {north: land, south: land, coast: sea}}
  - {at_most: [start, stop]}
"""


@pytest.fixture(scope="module")
def encoder():
    return TableValues(Schema.parse(SCHEMA).resolve({}))


def cells(encoder, name, low=None, high=None, values=None):
    column = encoder.schema.columns[name]
    return column.between(low, high) if values is None else column.one_of(values)


@pytest.mark.parametrize(
    ("name", "asked"),
    [
        ("age", {"low": 20, "high": 30}),
        ("age", {"values": [18, 19, 40, None]}),
        ("pay", {"low": 1500, "high": 4000}),
        ("pay", {"values": [3000, None]}),
        ("rate", {"low": 0.3, "high": 1.5}),
        ("rate", {"values": [0.25, 9.75]}),
        ("cost", {"low": -1.239, "high": 0.07}),
        ("day", {"low": "2020-02-01", "high": "2020-02-29"}),
        ("job", {"values": ["nurse", None]}),
        ("level", {"low": "middle", "high": "high"}),
        ("again", {"values": ["two"]}),
        ("region", {"values": ["land"]}),
    ],
)
def test_exactly_the_numbers_that_are_told_decode_to_what_is_asked_for(encoder, name, asked):
    wanted = cells(encoder, name, **asked)
    ((part, spans),) = encoder.spans({name: wanted}).items()
    domain = encoder.domains[part]
    numbers = np.arange(domain.first, domain.last + 1 + domain.nullable)
    rows = np.tile([own.first for own in encoder.domains], (len(numbers), 1)).astype(float)
    rows[:, part] = numbers
    decoded = encoder.decode(torch.from_numpy(rows))
    fits = wanted.has(encoder.schema.columns[name].snapped_numbers_of(decoded[name]))
    told = np.logical_or.reduce([(low <= numbers) & (numbers <= high) for low, high in spans])
    assert fits.any()
    assert np.array_equal(told, fits)


def test_the_step_of_a_column_is_its_unit(encoder):
    """A range between two multiples of the step holds no cell, and a value that is none is refused."""
    assert encoder.spans({"pay": cells(encoder, "pay", 1200, 1800)}) == {1: ()}
    with pytest.raises(ValueError, match="between two of its values"):
        cells(encoder, "pay", values=[1500])


def test_two_columns_that_follow_from_one_are_both_told(encoder):
    asked = {"level": cells(encoder, "level", "low", "middle"), "again": cells(encoder, "again", values=["two"])}
    (spans,) = encoder.spans(asked).values()
    assert spans == ((1, 1),)
    assert common(((0, 4), (8, 9)), ((3, 8),)) == ((3, 4), (8, 8))


def test_what_is_measured_from_another_column_is_not_told_and_what_rules_change_is_named(encoder):
    assert encoder.spans({"stop": cells(encoder, "stop", 3, 5)}) == {}
    assert encoder.spans({"start": cells(encoder, "start", 3, 5)}) != {}
    assert [name for name in encoder.schema.columns if encoder.may_change(name)] == ["start", "stop"]
    assert encoder.spans({"free": Allowed(span=(0.25, 0.5))}) != {}
