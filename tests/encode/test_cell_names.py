"""Cells of tables by name: values that share a cell are all in it, and every value is in the cell that names it."""

import numpy as np
import pandas as pd
import pytest

from doublure.encode.cell_names import cell_parts, cell_places
from doublure.encode.table_values import TableValues
from doublure.private.queries.axes import Intervals
from doublure.schema import Schema
from doublure.schema.missing_states import tag_holes

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
  pay: {type: integer, bounds: [0, 9000], step: 1000, missing: false}
  job: {type: category, values: [cook, nurse, clown], missing: true}
  member: {type: boolean, missing: false}
  start: {type: integer, bounds: [0, 9], missing: false}
  stop: {type: integer, bounds: [0, 9], missing: false}
constraints:
  - {at_most: [start, stop]}
"""


@pytest.fixture(scope="module")
def encoder():
    return TableValues(Schema.parse(SCHEMA).resolve({}))


@pytest.fixture(scope="module")
def named(encoder):
    parts = {name: part for part, name in enumerate(encoder.columns)}

    def of(column, starts, cells=None):
        cells = np.arange(len(starts)) if cells is None else np.asarray(cells)
        return encoder.axis(parts[column], np.asarray(starts, dtype=float), cells, int(cells.max()) + 1)

    return of


@pytest.mark.parametrize(
    ("column", "starts", "cells"),
    [
        ("age", [18, 24, 30, 40], ("18..23", "24..29", "30..39", "40")),
        ("gain", [0, 1, 4, 10], ("0", "1..3", "4..9", "(missing)")),
        ("debt", [-10, 0, 1], ("-10..-1", "0", "1..10")),
        ("rate", [0, 3, 10], ("0..0.2", "0.3..0.9", "1")),
        ("day", [18262, 18264], ("2020-01-01..2020-01-02", "2020-01-03..2020-01-08")),
        ("pay", [0, 3], ("0..2000", "3000..9000")),
        ("job", [0, 1, 2, 3], ("cook", "nurse", "clown", "(missing)")),
        ("member", [0, 1], ("false", "true")),
    ],
)
def test_each_cell_has_a_name(named, column, starts, cells):
    assert named(column, starts) == (column, cells)


def test_neighbours_are_one_range_and_others_are_listed(named):
    assert named("age", [18, 24, 30, 36], [0, 0, 1, 1])[1] == ("18..29", "30..40")
    assert named("age", [18, 24, 30, 36], [0, 1, 0, 1])[1] == ("18..23 | 30..35", "24..29 | 36..40")
    assert named("job", [0, 1, 2, 3], [1, 0, 1, 0])[1] == ("nurse | (missing)", "cook | clown")
    assert named("gain", [0, 5, 10], [0, 1, 1])[1] == ("0..4", "5..9 | (missing)")
    assert named("gain", [0, 5, 10], [1, 0, 1])[1] == ("5..9", "0..4 | (missing)")


def test_a_gap_says_what_it_is_measured_from(named):
    assert named("stop", [0, 1]) == ("stop above start", ("0", "1..9"))


def test_every_value_lies_in_the_range_that_names_its_cell(encoder):
    ages = np.arange(18, 41)
    frame = pd.DataFrame(
        {"age": ages, "gain": 0, "debt": 0, "rate": 0.5, "free": 0.5, "day": np.datetime64("2020-01-02", "s"),
         "pay": 1000, "job": "cook", "member": True, "start": 1, "stop": 2}
    )  # fmt: skip
    axis = Intervals(part=0, starts=np.array([18.0, 21, 29, 30]), cells=np.array([0, 1, 2, 1]), size=3)
    assert encoder.columns[0] == "age"
    _, names = encoder.axis(0, axis.starts, axis.cells, axis.size)
    for age, cell in zip(ages, axis.of(encoder.compact(frame)), strict=True):
        ranges = [(part.split("..") * 2)[:2] for part in names[cell].split(" | ")]
        assert any(int(low) <= age <= int(high) for low, high in ranges)


@pytest.mark.parametrize("kinds", ["false", "true", "[DK, a | b]"])
def test_a_value_that_is_written_like_a_missing_cell_is_a_value(kinds):
    values = ["(missing: DK)", "(missing)", "x | y", "x", "((missing))", "y", "x |"]
    job = f"{{type: category, values: {values}, missing: {kinds}}}"
    schema = Schema.parse(f"{{doublure: 1, kind: table, units: 9, columns: {{job: {job}}}}}").resolve({})
    column, encoder = schema.columns["job"], TableValues(schema)
    size = encoder.domains[0].size
    numbers = np.append(np.arange(len(values)), tag_holes(np.arange(size - len(values))))
    cells = column.kept_cells(numbers)
    _, names = encoder.axis(0, np.arange(size, dtype=float), np.arange(size), size)
    assert names[: len(values)] == tuple(values)
    assert len({*names}) == size
    assert [bool(parts.values) for parts in cell_parts(column, names)] == [True] * len(values) + [False] * (
        size - len(values)
    )
    assert cell_places(column, names, cells).tolist() == [*range(size)]
    for seed in range(20):
        of = np.append([0, 1, 2], np.random.default_rng(seed).integers(0, 3, size - 3))
        _, joined = encoder.axis(0, np.arange(size, dtype=float), of, 3)
        assert cell_places(column, joined, cells).tolist() == of.tolist()
