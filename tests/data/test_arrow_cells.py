"""Columns of Arrow are read as the rules for single cells read them, whatever they hold."""

from __future__ import annotations

import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from planting import plant

from doublure.data.tables import arrow_cells, cells
from doublure.errors import DataError
from doublure.schema import Schema
from doublure.schema.columns import NumberColumn, calendar_cells, number_cells

SCHEMA = Schema.parse("""
doublure: 1
kind: table
units: 10
columns:
  whole: {type: integer, bounds: [-1000, 1000], missing: [-99]}
  open: {type: integer, bounds: {learn: 1.0}, missing: {learn: 1.0}}
  real: {type: real, bounds: [0, 1e300], missing: true}
  never: {type: real, bounds: [0, 10], missing: false}
  day: {type: date, bounds: [1900-01-01, 2100-01-01], missing: [9999-12-31]}
  moment: {type: datetime, bounds: [1990-01-01, 2040-01-01], timezone: Europe/Zurich, missing: true}
  job: {type: category, values: [cook, nurse, "1"], other: Other, missing: ["?"]}
  any: {type: category, values: {learn: 1.0}, other: Other, missing: {learn: 1.0}}
  truth: {type: boolean, missing: true}
""")
NUMBERS = [
    "1",
    "-7",
    "2.5",
    "007",
    "1e2",
    "1.",
    ".5",
    "-0",
    "0.1",
    "9007199254740993",
    "123456789012345678901234567890",
]
ODD_NUMBERS = [
    "+5", " 5", "5 ", "1e400", "-1e400", "1e-400", "inf", "-Infinity", "nan", "NaN", "NAN", "-nan", "nan(1)", "NA",
    "<NA>", "", "?", "-99", "-99.0", "1_000", "0x10", "1e", "e1", ".", "-", "1,5", "١", "1\u00a0", "two", "1d", "true",
]  # fmt: skip
DAYS = ["2024-01-31", "1999-12-31", "0001-01-01", "9999-12-31", "2024-02-29"]
ODD_DAYS = [
    "2023-02-29", "2024-1-1", "2024-01-31T12:00:00", "2024-01-31 23:59", "2024-01-31T24:00:00", "2024-01-31T23:59:60",
    "2024-01-31T12:00:00Z", "2024-01-31T12:00:00+05:30", "2024-01-31T12:00:00.75", "0000-01-01", "31.01.2024", "none",
    "NaT", "", " 2024-01-31", "2024-01-31Z", "2024-03-31T02:30:00", "2024-10-27T02:30:00", "2024-01-31T12", "two",
]  # fmt: skip
TEXTS = ["cook", "nurse", "1", "01", "1.0", "?", "", "Other", "clown", "yes", "no", "true", "0", " cook"]
COLUMNS = {
    **{f"text {n}": pa.array(found) for n, found in enumerate([NUMBERS, DAYS, TEXTS, ["yes", "no", "1"]])},
    **{f"odd {text!r}": pa.array([*NUMBERS, text, None]) for text in ODD_NUMBERS},
    **{f"odd {text!r}": pa.array([*DAYS, text, None]) for text in ODD_DAYS},
    "large": pa.array(NUMBERS, pa.large_string()),
    "view": pa.array(NUMBERS, pa.string_view()),
    "categories": pa.array([*TEXTS, None, "cook"]).dictionary_encode(),
    "repeated categories": pa.DictionaryArray.from_arrays([0, 1, 2, None], ["cook", "cook", None]),
    "numbers as categories": pa.array([*NUMBERS, None]).dictionary_encode(),
    "int64": pa.array([1, -99, None, 2**53 + 1, -(2**63)], pa.int64()),
    "uint64": pa.array([1, None, 2**53 + 1, 2**64 - 1], pa.uint64()),
    "int8": pa.array([1, -7], pa.int8()),
    "float32": pa.array([0.1, None, float("nan"), -0.0], pa.float32()),
    "float64": pa.array([0.1, None, float("nan"), float("inf"), -0.0], pa.float64()),
    "halves": pa.array(np.array([0.5, 2.0], np.float16)),
    "decimal": pa.array([Decimal("1.25"), None, Decimal("-99")]),
    "bool": pa.array([True, None, False]),
    "date": pa.array([datetime.date(2024, 1, 31), None]),
    "seconds": pa.array([0, None, 86_399], pa.timestamp("s")),
    "zoned": pa.array([0, None, 1_711_846_800_000], pa.timestamp("ms", "UTC")),
    "nothing": pa.nulls(3),
    "none": pa.array([], pa.string()),
    "lists": pa.array([[1], None]),
    "bytes": pa.array([b"cook", None]),
    "NUL": pa.array(["cook", "a\0b"]),
}


def read(raw, column, name, misfit, how):
    try:
        return how(raw, column, name, misfit)
    except DataError as error:
        return error.message


def both(column, name, misfit):
    """Return a column as it is read from Arrow, and cell by cell."""
    raw, own = COLUMNS[column], SCHEMA.columns[name]
    one_by_one = pd.Series(np.array([*raw.to_pylist(), None], dtype=object)[:-1], dtype=object)
    if column in {"float32", "float64", "halves", "seconds", "zoned", "date"}:  # stored, they are no objects
        one_by_one = raw.to_pandas(date_as_object=False)
    return read(raw, own, name, misfit, arrow_cells.canonical), read(one_by_one, own, name, misfit, cells.canonical)


def check(column, name, misfit):
    found, expected = both(column, name, misfit)
    if isinstance(expected, str) or isinstance(found, str):
        assert isinstance(found, str), column
        assert found == expected, column
    else:
        pd.testing.assert_series_equal(found, expected, check_exact=True, check_names=False, obj=column)


@pytest.mark.parametrize("misfit", ["refuse", "coerce"])
@pytest.mark.parametrize("name", SCHEMA.columns)
def test_a_column_of_arrow_is_read_as_its_cells_are(name, misfit):
    for column in COLUMNS:
        check(column, name, misfit)


def test_most_columns_take_the_shortcut(monkeypatch):
    slow = []
    monkeypatch.setattr(cells, "canonical", lambda *given: slow.append(given[2]) or pd.Series([]))
    for column, name in [("text 0", "real"), ("text 1", "day"), ("int64", "open"), ("float64", "real")]:
        read(COLUMNS[column], SCHEMA.columns[name], name, "coerce", arrow_cells.canonical)
    assert slow == []


@pytest.mark.parametrize(
    ("owner", "name", "edit", "column", "of"),
    [
        (
            number_cells,
            "numbers_at_once",
            ("np.count_nonzero(np.isnan(numbers)) == read.null_count", "True"),
            "odd 'NAN'",
            "real",
        ),
        (
            calendar_cells,
            "moments_at_once",
            ("pa.array(tokens, raw.type)", "pa.array(['2024-01-31'], raw.type)"),
            "text 1",
            "day",
        ),
        (NumberColumn, "read_at_once", ("fitting_numbers(found, self, name, misfit)", "found"), "int64", "whole"),
    ],
)
def test_a_shortcut_that_reads_otherwise_is_caught(monkeypatch, owner, name, edit, column, of):
    plant(monkeypatch, owner, name, edit)
    with pytest.raises(AssertionError):
        check(column, of, "refuse")
