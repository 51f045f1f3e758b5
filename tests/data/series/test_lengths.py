"""Series that end before others, and attributes that are numbers."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from doublure.data.series import open_series
from doublure.data.series.writing import write_series
from doublure.errors import DataError, SchemaError
from doublure.schema import Schema

TEXT = """
doublure: 1
kind: series
unit: {name: patient, id: who}
units: 3
series: {length: 5, gaps: refuse}
channels:
  pulse: {type: integer, bounds: [30, 220], missing: false}
  fever: {type: real, bounds: [35, 42], precision: 1, missing: false}
attributes:
  age: {type: integer, bounds: [0, 99], missing: false}
  hours: {type: integer, bounds: [2, 5], missing: false, from_length: true}
"""
STEPS = {"a": 5, "b": 2, "c": 3}
GAPPY = TEXT.replace("gaps: refuse", "gaps: missing").replace("precision: 1, missing: false", "missing: true")


def long() -> pd.DataFrame:
    """Return a row a reading: of patient a five, of b two, of c three."""
    parts = [
        pd.DataFrame({"who": who, "series": 1, "step": range(steps), "pulse": 60 + number, "fever": 37.0, "age": 40})
        for number, (who, steps) in enumerate(STEPS.items())
    ]
    return pd.concat(parts, ignore_index=True)


def wide() -> pd.DataFrame:
    """Return a row a series, empty cells behind each one's end."""
    cells = {"who": list(STEPS), "age": 40}
    for step in range(5):
        there = [steps > step for steps in STEPS.values()]
        cells[f"pulse_{step}"] = np.where(there, 60 + np.arange(3), np.nan)
        cells[f"fever_{step}"] = np.where(there, 37.0, np.nan)
    return pd.DataFrame(cells)


def arrays() -> dict[str, np.ndarray]:
    """Return an array a channel, NaN behind each one's end."""
    frame = wide()
    found = {name: frame[[f"{name}_{step}" for step in range(5)]].to_numpy() for name in ("pulse", "fever")}
    return found | {"who": np.array(list(STEPS)), "age": np.full(3, 40)}


def loaded(data, text=TEXT):
    return open_series(data).load(Schema.parse(text)).content


def refusal(data, text=TEXT) -> str:
    with pytest.raises(DataError) as caught:
        loaded(data, text)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("form", [long, wide, arrays])
def test_series_end_with_their_last_value_in_every_form(form):
    content = loaded(form())
    assert content.attributes["hours"].tolist() == content.steps.tolist() == list(STEPS.values())
    assert (np.isnan(content.values).all(axis=2) == ~content.inside).all()
    assert content.channel("pulse")[:, 0].tolist() == [60, 61, 62]
    assert list(content.attributes) == ["age", "hours"]


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".npz"])
def test_rows_end_where_series_end_and_are_read_back(tmp_path, ending):
    content, schema = loaded(long()), Schema.parse(TEXT.replace(", id: who", ""))
    assert len(content.frame()) == sum(STEPS.values())
    path = tmp_path / f"s{ending}"
    write_series([content], path, schema, len(content), about={"watermark": "w"})
    again = open_series(path).load(schema).content
    assert np.array_equal(again.values, content.values, equal_nan=True)
    assert again.steps.tolist() == content.steps.tolist()
    if ending == ".csv":
        assert pd.read_csv(path)["pulse"].dtype == np.int64  # no step is missing, so that none is a float


def test_a_column_that_says_where_a_series_ends_is_believed():
    frame = wide().assign(hours=[4, 2, 3])
    content = loaded(frame)
    assert content.steps.tolist() == [4, 2, 3]
    assert np.isnan(content.values[0, 4]).all()
    assert "steps without a value" in refusal(wide().assign(hours=[5, 4, 3]))


def test_a_gap_before_the_end_is_a_gap():
    frame = long()
    frame.loc[1, "fever"] = np.nan
    assert "fever: has steps without a value" in refusal(frame)
    content = loaded(frame, GAPPY)
    assert np.isnan(content.channel("fever"))[0].tolist() == [False, True, False, False, False]
    assert len(loaded(frame, TEXT.replace("gaps: refuse", "gaps: drop"))) == 2
    last = long()
    last.loc[4, "fever"] = np.nan  # the other channel has a value there, so that the series goes on
    assert loaded(last, GAPPY).steps.tolist() == list(STEPS.values())


def test_series_shorter_than_the_bounds_are_refused_or_left_out():
    frame = long().drop(index=6)  # patient b keeps one reading
    assert "hours: has series of fewer steps than its bounds allow" in refusal(frame)
    assert loaded(frame, TEXT + "misfit: coerce\n").steps.tolist() == [5, 3]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("bounds: [2, 5], missing: false, from_length", "bounds: [2, 9], missing: false, from_length", "series.length"),
        ("bounds: [2, 5], missing: false, from_length", "bounds: [0, 5], missing: false, from_length", "1 or more"),
        ("bounds: [2, 5], missing: false, from", "bounds: {learn: 0.1}, missing: false, from", "not learned"),
        ("{type: integer, bounds: [2, 5]", "{type: real, bounds: [2, 5]", "make its type integer"),
        ("  age: {type: integer, bounds: [0, 99], missing: false}", "  age: {type: integer, bounds: [2, 5], "
         "missing: false, from_length: true}", "two attributes follow from the length"),
        ("age: {type: integer, bounds: [0, 99]", "age: {type: integer, bounds: [0, 99], spikes: [0]", "cut groups by"),
        ("age: {type: integer, bounds: [0, 99], missing: false", "age: {type: integer, bounds: [0, 99], missing: true",
         "cannot be missing"),
    ],
)  # fmt: skip
def test_what_no_length_or_number_can_be_is_refused(old, new, said):
    assert old in TEXT
    with pytest.raises(SchemaError) as caught:
        Schema.parse(TEXT.replace(old, new))
    assert said in str(caught.value)


def test_a_number_that_changes_within_a_series_is_refused():
    frame = long()
    frame.loc[1, "age"] = 41
    assert "age: changes within a series" in refusal(frame)
