"""Cells of tables by name: codes that share a cell are all in it, and every value is in the cell that names it."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from doublure.encode.table import TableEncoder
from doublure.schema import Schema

SCHEMA = """
doublure: 1
kind: table
units: 9
columns:
  age: {type: integer, bounds: [18, 40], missing: false}
  gain: {type: integer, bounds: [0, 9], zero_inflated: true, missing: true}
  debt: {type: integer, bounds: [-10, 10], zero_inflated: true, missing: false}
  rate: {type: real, bounds: [0, 1], precision: 1, missing: false}
  free: {type: real, bounds: [0, 1], missing: false}
  day: {type: date, bounds: [2020-01-01, 2020-01-08], missing: false}
  job: {type: category, values: [cook, nurse, clown], missing: true}
  member: {type: boolean, missing: false}
  start: {type: integer, bounds: [0, 9], missing: false}
  stop: {type: integer, bounds: [0, 9], missing: false}
constraints:
  - {at_most: [start, stop]}
"""


@pytest.fixture(scope="module")
def named():
    encoder = TableEncoder(Schema.parse(SCHEMA).resolve({}), bins=4)
    sizes = {block.column: (place, block.size) for place, block in enumerate(encoder.blocks)}

    def of(column, cells=None):
        place, size = sizes[column]
        groups = np.arange(size) if cells is None else np.asarray(cells)
        return encoder.axis(place, groups, int(groups.max()) + 1)

    return of


@pytest.mark.parametrize(
    ("column", "cells"),
    [
        ("age", ("18..23", "24..29", "30..35", "36..40")),
        ("gain", ("1..3", "4..5", "6..7", "8..9", "0", "(missing)")),
        (
            "day",
            ("2020-01-01..2020-01-02", "2020-01-03..2020-01-04", "2020-01-05..2020-01-06", "2020-01-07..2020-01-08"),
        ),
        ("free", ("0..0.25", "0.25..0.5", "0.5..0.75", "0.75..1")),
        ("job", ("cook", "nurse", "clown", "(missing)")),
        ("member", ("false", "true")),
    ],
)
def test_each_code_has_a_name(named, column, cells):
    assert named(column) == (column, cells)


def test_ranges_of_decimals_hold_both_ends(named):
    _, cells = named("rate")
    assert (cells[0].split("..")[0], cells[-1].split("..")[-1]) == ("0", "1")
    ends = [tuple(map(float, cell.split(".."))) for cell in cells]
    assert all(after[0] - before[1] == pytest.approx(0.1) for before, after in pairwise(ends))


def test_a_range_around_a_zero_of_its_own_says_so(named):
    _, cells = named("debt")
    assert sum("but 0" in cell for cell in cells) == 1
    assert cells[-1] == "0"


def test_neighbours_are_one_range_and_others_are_listed(named):
    assert named("age", [0, 0, 1, 1])[1] == ("18..29", "30..40")
    assert named("age", [0, 1, 0, 1])[1] == ("18..23 | 30..35", "24..29 | 36..40")
    assert named("job", [1, 0, 1, 0])[1] == ("nurse | (missing)", "cook | clown")
    assert named("gain", [0, 0, 0, 0, 1, 1])[1] == ("1..9", "0 | (missing)")


def test_a_gap_says_what_it_is_measured_from(named):
    name, cells = named("stop")
    assert name == "stop above start"
    assert (cells[0].split("..")[0], cells[-1]) == ("1", "0")  # a gap of zero is a state


def test_every_value_lies_in_the_range_that_names_its_cell():
    encoder = TableEncoder(Schema.parse(SCHEMA).resolve({}), bins=4)
    ages = np.arange(18, 41)
    frame = pd.DataFrame(
        {"age": ages, "gain": 0, "debt": 0, "rate": 0.5, "free": 0.5, "day": np.datetime64("2020-01-02", "s"),
         "job": "cook", "member": True, "start": 1, "stop": 2}
    )  # fmt: skip
    codes = encoder.compact(frame)[:, 0].numpy().astype(int)
    _, cells = encoder.axis(0, np.arange(encoder.blocks[0].size), encoder.blocks[0].size)
    for age, code in zip(ages, codes, strict=True):
        low, high = map(int, cells[code].split(".."))
        assert low <= age <= high
