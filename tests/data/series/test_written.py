"""Readings and related tables in their own spelling: dates, numbers, encodings and delimiters that the schema says."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tests.data.series.conftest import TEXT

from doublure.data.opening import open_data
from doublure.errors import DataError, SchemaError
from doublure.schema import Schema

SPELLED = 'date_format: DD-MM-YYYY\ndecimal: ","\nthousands: "."\nencoding: latin-1\ndelimiter: ";"\n'
WIDE_BOUNDS = TEXT.replace("[0, 99]", "[0, 5000]")


def series(data: object, text: str) -> np.ndarray:
    schema = Schema.parse(text)
    return open_data(data, "series", schema.written).load(schema).content.values  # type: ignore[attr-defined,arg-type]


def days(meter: str = "Zürich") -> pd.DataFrame:
    moments = pd.date_range("2024-03-04", periods=8, freq="6h")
    return pd.DataFrame({"meter": meter, "when": moments, "litres": np.arange(8) * 350.5})


def spelled(frame: pd.DataFrame, form: str) -> pd.DataFrame:
    numbers = [f"{number:,.1f}".replace(",", "_").replace(".", ",").replace("_", ".") for number in frame["litres"]]
    return frame.assign(when=frame["when"].dt.strftime(form), litres=numbers)


def test_readings_in_their_own_spelling_are_what_their_plain_copy_is(tmp_path: Path) -> None:
    path = tmp_path / "readings.csv"
    path.write_bytes(spelled(days(), "%d-%m-%Y %H:%M").to_csv(index=False, sep=";").encode("latin-1"))
    assert np.array_equal(series(path, SPELLED + WIDE_BOUNDS), series(days(), WIDE_BOUNDS))
    with pytest.raises(DataError, match="UTF-8"):
        series(path, WIDE_BOUNDS)


def test_cells_of_a_row_a_series_follow_the_channel() -> None:
    wide = pd.DataFrame({f"litres_{step}": [f"{step}.000,5", "7"] for step in range(4)} | {"meter": ["a", "b"]})
    found = series(wide, SPELLED + WIDE_BOUNDS)
    assert found[0, :, 0].tolist() == [0.5, 1000.5, 2000.5, 3000.5]


def test_beginnings_beside_arrays_are_read_alike() -> None:
    arrays = {"litres": np.zeros((2, 4)), "when": np.array(["04-03-2024", "11-03-2024"])}
    weekday = "attributes: {weekday: {type: ordinal, values: [0, 1], missing: false, from_time: weekday}}\n"
    schema = Schema.parse(SPELLED + WIDE_BOUNDS + weekday)
    found = open_data(arrays, "series", schema.written).load(schema).content
    assert found.attributes["weekday"].astype(int).tolist() == [0, 0]  # type: ignore[attr-defined]


def test_the_end_of_a_day_may_be_written_as_24_hours() -> None:
    ends = days()
    ends["when"] += pd.Timedelta("6h")
    texts = spelled(ends, "%d-%m-%Y %H:%M")
    texts["when"] = [
        f"{(moment - pd.Timedelta('1h')):%d-%m-%Y} 24:00" if moment.hour == 0 else text
        for moment, text in zip(ends["when"], texts["when"], strict=True)
    ]
    assert texts["when"].str.endswith("24:00").sum() == 2
    by_end = WIDE_BOUNDS.replace("gaps: missing", "gaps: refuse, stamp: end")
    assert np.array_equal(series(texts, SPELLED + by_end), series(days(), WIDE_BOUNDS))


def test_the_schema_keeps_the_keys_and_refuses_two_equal_marks() -> None:
    schema = Schema.parse(SPELLED + TEXT)
    assert Schema.parse(schema.to_yaml()) == schema
    with pytest.raises(SchemaError, match="two different marks"):
        Schema.parse('decimal: ","\nthousands: ","\n' + TEXT)


RELATED = """
doublure: 1
kind: relational
unit: {name: guest}
units: 2
tables:
  guests: {key: id, columns: {id: {type: id}, born: {type: date, bounds: [1900-01-01, 2030-12-31], missing: false}}}
  stays:
    parent: guests
    foreign_key: guest
    max_children: 3
    columns: {guest: {type: id}, cost: {type: real, bounds: [0, 10000], missing: false}}
"""


def test_related_tables_have_one_spelling(tmp_path: Path) -> None:
    (tmp_path / "guests.csv").write_bytes("id;born\nZoë;31-01-1990\nb;01-02-2000\n".encode("latin-1"))
    (tmp_path / "stays.csv").write_bytes("guest;cost\nZoë;1.234,5\nb;7\n".encode("latin-1"))
    schema = Schema.parse(SPELLED + RELATED)
    assert Schema.parse(schema.to_yaml()) == schema
    source = open_data(tmp_path, "relational", schema.written)
    source.check(schema)
    frames = source.load(schema).content.frames  # type: ignore[attr-defined]
    assert frames["stays"]["cost"].tolist() == [1234.5, 7.0]
    assert frames["guests"]["born"].dt.strftime("%Y-%m-%d").tolist() == ["1990-01-31", "2000-02-01"]
