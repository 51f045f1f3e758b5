"""Synthetic series on disk: streamed, read back as they were, and marked as what they are."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from doublure.data.series import Series
from doublure.data.series.writing import number_type, write_series
from doublure.errors import SettingError
from doublure.schema import Schema

TEXT = """
doublure: 1
kind: series
units: 9
series: {time: when, length: 4, step: 6h, gaps: missing}
channels:
  a: {type: real, bounds: [0, 9], precision: 2, missing: true}
  n: {type: integer, bounds: [0, 9], missing: false}
attributes:
  w: {type: ordinal, values: [0, 1], missing: false}
  "=v": {type: category, values: ["=x", y], missing: false}
"""
ABOUT = {"watermark": "Synthetic data", "guarantee": "(ε=1)"}


@pytest.fixture
def schema():
    return Schema.parse(TEXT)


def chunks():
    rng = np.random.default_rng(0)
    for size in (3, 2):
        values = np.round(rng.random((size, 4, 2)) * 9, 2)
        values[:, :, 1] = np.floor(values[:, :, 1])
        values[0, 1, 0] = np.nan
        attributes = pd.DataFrame(
            {
                "w": pd.Categorical([0, 1, 0][:size], categories=[0, 1], ordered=True),
                "=v": pd.Categorical(["=x", "y", "y"][:size], categories=["=x", "y"]),
            }
        )
        yield Series(values=values, channels=("a", "n"), attributes=attributes)


def test_npz_is_read_back_as_it_was(world, tmp_path, schema):
    path = tmp_path / "a.npz"
    assert write_series(chunks(), path, schema, 5, about=ABOUT) == 5
    whole = Series.joined(list(chunks()))
    with np.load(path) as arrays:
        assert (arrays["values"].shape, arrays["values"].dtype) == ((5, 4, 2), np.float32)
        assert arrays["channels"].tolist() == ["a", "n"]
        assert (arrays["w"].tolist(), arrays["w"].dtype.kind) == ([0, 1, 0, 0, 1], "i")
        assert str(arrays["watermark"]) == "Synthetic data"
    found = world.loaded(path, schema).content
    assert np.allclose(found.values, whole.values, equal_nan=True)
    again = tmp_path / "b.npz"
    write_series(chunks(), again, schema, 5, about=ABOUT)
    assert again.read_bytes() == path.read_bytes()


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_rows_are_read_back_as_they_were(world, tmp_path, schema, ending):
    path = tmp_path / f"a{ending}"
    assert write_series(chunks(), path, schema, 5, about=ABOUT) == 5
    frame = pd.read_csv(path) if ending == ".csv" else pd.read_parquet(path)
    assert list(frame.columns) == ["series", "step", "clock", "w", "=v", "a", "n"]
    assert frame["series"].tolist() == [number for number in range(1, 6) for _ in range(4)]
    assert frame["clock"].tolist() == ["00:00:00", "06:00:00", "12:00:00", "18:00:00"] * 5
    assert frame["n"].dtype == np.int64
    found = world.loaded(path, schema).content
    assert np.allclose(found.values, Series.joined(list(chunks())).values, equal_nan=True)
    if ending == ".parquet":
        assert pq.read_schema(path).metadata[b"watermark"] == b"Synthetic data"


def test_text_that_a_spreadsheet_would_run_is_defused(tmp_path, schema):
    write_series(chunks(), tmp_path / "a.csv", schema, 5, spreadsheet_safe=True, about=ABOUT)
    frame = pd.read_csv(tmp_path / "a.csv")
    assert set(frame["'=v"]) == {"'=x", "y"}


def test_only_days_have_a_clock(tmp_path):
    schema = Schema.parse(TEXT.replace("step: 6h", "step: 1h"))
    write_series(chunks(), tmp_path / "a.csv", schema, 5, about=ABOUT)
    assert "clock" not in pd.read_csv(tmp_path / "a.csv").columns


def test_numbers_are_as_wide_as_their_digits(schema):
    assert number_type(schema) == np.float32
    assert number_type(Schema.parse(TEXT.replace("[0, 9], precision: 2", "[0, 1e6], precision: 2"))) == np.float64


@pytest.mark.parametrize("name", ["a.png", "a", "a.txt"])
def test_another_ending_is_refused(tmp_path, schema, name):
    with pytest.raises(SettingError, match="known ending for series"):
        write_series(chunks(), tmp_path / name, schema, 5, about=ABOUT)
    assert not list(tmp_path.iterdir())
