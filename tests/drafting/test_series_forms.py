"""What a draft of series says first: of what a row is, steps side by side, and a moment in parts."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import doublure as db
from doublure.drafting.check import check
from doublure.drafting.draft import drafted
from doublure.drafting.series_forms import differs, moment_parts, numbers_rows, repeats, side_by_side
from doublure.errors import SchemaError

DAYS, STATIONS, HOURS = 30, 9, 4


def wide(station):
    """Return nine stations' days side by side, a row each."""
    draw = np.random.default_rng(1)
    days = np.repeat(pd.date_range("2013-03-01", periods=DAYS).strftime("%Y-%m-%d"), STATIONS)
    steps = {f"pm_{hour}": np.round(draw.gamma(2, 30, DAYS * STATIONS), 1) for hour in range(HOURS)}
    return pd.DataFrame({"station": station, "date": days, **steps})


ALONE, REPEATED = np.arange(DAYS * STATIONS), np.tile(np.arange(STATIONS), DAYS)


def parted(rows=200):
    moments = pd.date_range("2013-03-01", periods=rows, freq="h")
    draw = np.random.default_rng(2)
    parts = {"yr": moments.year, "month": moments.month, "day": moments.day, "hour": moments.hour}
    return pd.DataFrame({"No": np.arange(1, rows + 1), **parts, "PM2.5": np.round(draw.gamma(2, 30, rows), 1)})


def test_a_unit_of_one_series_each_is_said_first():
    made = drafted(wide(ALONE), kind="series")
    text = made.to_yaml()
    assert text.startswith("# Decide first:\n# - station differs in nearly every row.")
    assert "only one series of a station would be hidden" in " ".join(made.first)
    assert "Rows share a date, so they are of different things. No column says of what" in " ".join(made.first)
    assert not any(str(value) in " ".join(made.first) for value in (DAYS * STATIONS, "2013"))  # no cell, no count


def test_a_column_that_repeats_is_named_as_what_rows_are_of():
    first = drafted(wide(REPEATED), kind="series").first
    assert not any("differs in nearly every row" in said for said in first)
    assert "Rows share a date, so they are of different things. If station says of what, name it in unit.id." in first


def test_steps_side_by_side_are_one_channel():
    schema = drafted(wide(REPEATED), kind="series").schema
    assert [*schema.channels] == ["pm"]
    assert [*schema.attributes] == ["station"]
    assert schema.length == HOURS
    plain = schema.to_plain()
    plain |= {"units": 270, "unit": {"name": "station", "id": "station", "max_records": 40}}
    plain["series"]["step"] = "1h"
    plain["channels"] = {"pm": {"type": "real", "bounds": [0, 900], "precision": 1, "missing": False}}
    del plain["attributes"]
    assert check(db.Schema.from_plain(plain), wide(REPEATED)).ok  # the draft is of the form in which the file is read


@pytest.mark.parametrize(
    ("stored", "channels"),
    [
        ({"a_0": "real", "a_1": "integer"}, {"a": ("a_0", "a_1")}),
        ({"a_00": "real", "a_01": "real", "b": "real"}, {"a": ("a_00", "a_01")}),
        ({"a_0": "real", "a_2": "real"}, {}),
        ({"a_1": "real", "a_2": "real"}, {}),
        ({"a_0": "real"}, {}),
        ({"a_0": "text", "a_1": "real"}, {}),
        ({"a_0": "real", "a_1": "real", "a": "real"}, {}),
    ],
)
def test_only_whole_runs_of_numbers_are_steps(stored, channels):
    assert side_by_side(stored).channels == channels


def test_channels_of_other_lengths_leave_the_length_open():
    assert side_by_side({"a_0": "real", "a_1": "real", "b_0": "real", "b_1": "real", "b_2": "real"}).length is None


def test_sensors_beside_a_clock_stay_channels():
    frame = pd.DataFrame({"at": pd.date_range("2020-01-01", periods=60, freq="h"), "t_0": 1.5, "t_1": 2.5})
    assert [*drafted(frame, kind="series").schema.channels] == ["t_0", "t_1"]


def test_parts_of_a_moment_are_joined_by_lines_that_work(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    parted().to_csv("air.csv", index=False)
    made = drafted("air.csv", kind="series")
    assert made.schema.series.time == "time"
    assert [*made.schema.channels] == ["PM2.5"]
    assert any("No differs in nearly every row, and is left out" in said for said in made.first)
    exec("\n".join(said.strip() for said in made.first if said.startswith("  ")))
    joined = pd.read_csv("joined.csv", parse_dates=["time"])
    assert [*joined.columns] == ["time", "No", "PM2.5"]
    assert (joined["time"] == pd.date_range("2013-03-01", periods=200, freq="h")).all()
    plain = made.schema.to_plain()
    plain |= {"units": 9}
    plain["series"] |= {"length": 24, "step": "1h"}
    plain["channels"]["PM2.5"] |= {"bounds": [0, 900], "missing": False}
    assert check(db.Schema.from_plain(plain), "joined.csv").ok


def test_moments_in_parts_suggest_series_to_a_draft_of_a_table():
    assert drafted(parted()).perhaps_series
    assert not drafted(parted().drop(columns="hour")).perhaps_series


@pytest.mark.parametrize(
    ("names", "parts"),
    [
        (["Year", "MONTH", "day"], {"year": "Year", "month": "MONTH", "day": "day"}),
        (["year", "month"], {}),
        (["year", "month", "hour"], {}),
        (["year", "mo", "day", "hr", "min"], dict(zip(("year", "month", "day", "hour", "minute"),
                                                      ("year", "mo", "day", "hr", "min"), strict=True))),
        (["year", "month", "day", "min"], {"year": "year", "month": "month", "day": "day"}),
    ],
)  # fmt: skip
def test_parts_are_told_by_their_names(names, parts):
    assert moment_parts(dict.fromkeys(names, "integer")) == parts
    assert moment_parts(dict.fromkeys(names, "text")) == {}


def test_a_column_of_moments_leaves_parts_beside_it_as_they_are():
    frame = parted().assign(date=pd.date_range("2013-03-01", periods=200, freq="h"))
    made = drafted(frame, kind="series")
    assert made.schema.series.time == "date"
    assert not any("parts of one moment" in said for said in made.first)


SCHEMA = """
doublure: 1
kind: series
unit: {name: station, id: station, max_records: 31}
units: 30
series: {time: date, length: 4, step: 1h}
channels: {pm: {type: real, bounds: [0, 500], missing: false, precision: 1}}
"""


def test_a_check_says_first_that_a_unit_is_one_series():
    schema = db.Schema.parse(SCHEMA)
    found = check(schema, wide(ALONE)).to_yaml()
    assert found.startswith("# first: unit.id: nearly every series has another station")
    assert "write max_records: 1, as 31 cost noise for as many" in found
    assert "first:" not in check(schema, wide(REPEATED)).to_yaml()


def test_a_check_says_first_that_rows_share_a_moment():
    open_unit = SCHEMA.replace("unit: {name: station, id: station, max_records: 31}\n", "")
    found = check(db.Schema.parse(open_unit), wide(REPEATED)).to_yaml()
    assert found.startswith("# first: unit.id: rows share a date, so they are of different things")
    decided = open_unit.replace("units: 30", "units: 30\nunit: {name: series, id: none}")
    assert "first:" not in check(db.Schema.parse(decided), wide(REPEATED)).to_yaml()


TABLE = """
doublure: 1
kind: table
unit: {name: patient, id: nr, max_records: 2}
units: 60
columns: {nr: {type: id}, sex: {type: category, values: [f, m], missing: false}}
"""


def test_a_table_whose_ids_do_not_repeat_is_told_so():
    frame = pd.DataFrame({"nr": np.arange(60), "sex": ["f", "m"] * 30})
    notes = {each.message for each in check(db.Schema.parse(TABLE), frame).findings if each.kind == "note"}
    assert any(said.startswith("nearly every record has another nr, so each patient is one record") for said in notes)
    frame["nr"] //= 2
    assert not any("nearly every" in each.message for each in check(db.Schema.parse(TABLE), frame).findings)


def test_a_card_says_what_one_record_each_means():
    once = db.Schema.parse(SCHEMA.replace(", max_records: 31", ""))
    assert once.limits == ("Each station is one series, named by station: what has two names there counts as two.",)
    assert db.Schema.parse(SCHEMA).limits == ()
    table = db.Schema.parse(TABLE.replace(", max_records: 2", ""))
    assert table.limits == ("Each patient is one record, named by nr: what has two names there counts as two.",)


def test_forms_need_enough_cells():
    few, many = pd.Series(range(39)), pd.Series(range(40))
    assert (differs(few), differs(many)) == (False, True)
    assert (numbers_rows(many), numbers_rows(pd.Series(range(41)))) == (False, True)
    assert not repeats(many)
    assert repeats(many // 2)
    assert not numbers_rows(pd.Series(["a"] * 60))


def test_a_text_of_its_own_in_every_row_is_never_proposed_as_the_unit():
    """Named in ``unit.id`` it would hide one reading, and no station."""
    many = 200
    frame = pd.DataFrame(
        {
            "time": pd.date_range("2020-01-01", periods=50, freq="h").repeat(4),
            "station_id": [f"S{row}" for row in range(many)],
            "load": 1.5,
        }
    )
    first = drafted(frame, kind="series").first
    assert any("station_id differs in nearly every row" in said for said in first)
    assert not any("If station_id" in said for said in first)


def test_a_meter_that_counts_up_is_a_channel_and_row_numbers_are_none():
    frame = pd.DataFrame(
        {"time": pd.date_range("2020-01-01", periods=200, freq="h"), "kwh": range(200), "No.": range(200)}
    )
    assert [*drafted(frame, kind="series").schema.channels] == ["kwh"]


def test_a_column_that_is_named_twice_is_refused_with_both_places():
    plain = {"doublure": 1, "kind": "series", "units": 40, "series": {"source": "station", "time": "at", "step": "1h"}}
    plain["series"]["length"] = 24
    plain["channels"] = {"load": {"type": "real", "bounds": [0, 1]}}
    plain["attributes"] = {"station": {"type": "category", "values": ["a", "b"]}}
    said = "station is named for two things, series.source and attributes; copy the column in the data"
    with pytest.raises(SchemaError, match=said):
        db.Schema.from_plain(plain)


@pytest.mark.parametrize(("channels", "said"), [(1, False), (2, True)])
def test_a_card_says_that_an_order_between_channels_has_to_be_declared(channels, said):
    plain = {"doublure": 1, "kind": "series", "units": 40, "series": {"length": 24}}
    plain["channels"] = {f"load{number}": {"type": "real", "bounds": [0, 1]} for number in range(channels)}
    limits = db.Schema.from_plain(plain).limits
    assert any("order between channels is kept only where constraints declare it" in each for each in limits) is said
