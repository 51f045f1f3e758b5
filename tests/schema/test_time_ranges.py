"""The end of the day, the texts of whole minutes, and missing texts that a request names."""

from __future__ import annotations

import datetime as dt

import pandas as pd
import pytest

from doublure.drafting.draft import drafted
from doublure.schema import Schema
from doublure.schema.columns.spelling import TextMarks

TEXT = """
doublure: 1
kind: table
units: 9
columns:
  ended: {type: time, bounds: ["06:00", "24:00"], step: 900, missing: ["n/a", "99"]}
  exact: {type: time, missing: false}
  age: {type: integer, bounds: [0, 120], missing: ["?", "99"]}
"""
COLUMNS = Schema.parse(TEXT).columns


def test_an_upper_end_of_24_00_is_the_end_of_the_day():
    ended = COLUMNS["ended"]
    assert ended.ends == (21_600, 86_399)
    assert ended.grid == (21_600, 85_500)
    assert ended.asked("23:00..24:00").span == (82_800, 85_500)
    assert ended.ruled(["23:00", "24:00"]).span == (82_800, 85_500)
    assert COLUMNS["exact"].number_of("24:00") == 0


def test_a_range_past_midnight_is_two():
    with pytest.raises(ValueError, match="write two ranges, one up to 24:00 and one from 00:00"):
        COLUMNS["exact"].asked("22:00..02:00")


def test_whole_minutes_are_written_without_seconds():
    cells = pd.Series([dt.time(7, 30), None], dtype=object)
    assert COLUMNS["ended"].csv_cells(cells, TextMarks())[0] == "07:30"
    assert COLUMNS["exact"].csv_cells(cells, TextMarks())[0] == "07:30:00"


@pytest.mark.parametrize("asked", ["?", "99", 99, ["?"], ""])
def test_a_text_that_means_missing_is_a_missing_cell(asked):
    found = COLUMNS["age"].asked(asked)
    assert (found.missing, found.values) == (True, ())
    assert COLUMNS["age"].asked("?,40").values == (40,)


def test_a_codebook_knows_the_unit_of_bare_numbers(tmp_path):
    (tmp_path / "codes.csv").write_text("column,type,lower,upper,numbers_in\na,duration,0:00:00,2:00:00,min\n")
    made = drafted(pd.DataFrame({"a": [1, 2]}), tmp_path / "codes.csv")
    assert made.schema.columns["a"].fact("numbers_in") == "min"


@pytest.mark.parametrize(
    ("second", "proposed"),
    [
        (":15", "# a: {type: duration, bounds: undeclared, dtype: str}  # if it says how long, not when"),
        ("", "# a: {type: time, step: 60, dtype: str}  # if its times are of whole minutes"),
    ],
)
def test_a_draft_proposes_what_a_clock_may_be(second, proposed):
    made = drafted(pd.DataFrame({"a": [f"{hour % 9}:{hour:02}{second}" for hour in range(50)]}))
    assert made.schema.columns["a"].type == "time"
    assert proposed in made.to_yaml()
