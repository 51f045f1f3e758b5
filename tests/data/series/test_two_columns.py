"""Moments whose day and clock stand in two columns."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from doublure.data.series import open_series
from doublure.drafting.check import check
from doublure.drafting.draft import draft, drafted
from doublure.errors import DataError, SchemaError
from doublure.schema import Schema

TEXT = """
doublure: 1
kind: series
unit: {name: day, id: null}
units: 9
series: {time: Date, time_of_day: Time, length: 24, step: 1h, gaps: missing}
channels: {gas: {type: integer, bounds: [0, 999], missing: true}}
"""
FORMS = {
    "18.00.00": lambda moments: moments.strftime("%H.%M.%S"),
    "18:00": lambda moments: moments.strftime("%H:%M"),
    "18h00": lambda moments: moments.strftime("%Hh%M"),
    "hours": lambda moments: moments.hour,
    "hours as floats": lambda moments: moments.hour.astype(float),
    "times": lambda moments: moments.time,
}
DAYS = {
    "texts": ("", lambda moments: moments.strftime("%Y-%m-%d")),
    "slashes": ("date_format: DD/MM/YYYY\n", lambda moments: moments.strftime("%d/%m/%Y")),
    "stamps": ("", lambda moments: moments.normalize()),
    "stamps as text": ("", lambda moments: moments.normalize().strftime("%Y-%m-%d %H:%M:%S")),
}


def frame(day=DAYS["texts"][1], clock=FORMS["18:00"], days=3) -> pd.DataFrame:
    moments = pd.date_range("2004-03-10", periods=24 * days, freq="1h")
    return pd.DataFrame({"Date": day(moments), "Time": clock(moments), "gas": np.arange(24 * days)})


def loaded(data, text=TEXT):
    return open_series(data, Schema.parse(text).written).load(Schema.parse(text)).content


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("days", DAYS)
def test_every_form_of_clock_and_day_is_joined(form, days):
    key, day = DAYS[days]
    content = loaded(frame(day, FORMS[form]), TEXT + key)
    assert content.values[:, :, 0].tolist() == np.arange(72).reshape(3, 24).tolist()


def test_files_are_joined_as_frames_are(tmp_path):
    own = frame(DAYS["slashes"][1], FORMS["18.00.00"])
    own.to_csv(tmp_path / "a.csv", index=False)
    own.to_parquet(tmp_path / "a.parquet")
    for name in ("a.csv", "a.parquet"):
        assert len(loaded(tmp_path / name, TEXT + DAYS["slashes"][0])) == 3


@pytest.mark.parametrize("bad", ["noon", "1200", "5.3", "-1:00", "25:00"])
def test_what_is_no_time_of_day_is_refused_and_never_shown(bad):
    data = frame().astype({"Time": object})
    data.loc[5, "Time"] = bad
    with pytest.raises(DataError) as caught:
        loaded(data)
    assert caught.value.field == "Date"
    assert bad not in str(caught.value)
    coerced = loaded(data, TEXT + "misfit: coerce\n")
    assert np.isnan(coerced.values[0, 5, 0])


def test_an_empty_cell_in_either_column_is_no_moment():
    for column in ("Date", "Time"):
        data = frame().astype(object)
        data.loc[5, column] = None
        with pytest.raises(DataError, match="empty cells"):
            loaded(data)


def test_the_second_column_must_be_there_and_needs_the_first():
    with pytest.raises(DataError, match="Time: is not a column"):
        open_series(frame().drop(columns="Time")).check(Schema.parse(TEXT))
    with pytest.raises(SchemaError, match="time_of_day needs a time"):
        Schema.parse(TEXT.replace("time: Date, ", "").replace("step: 1h, ", ""))
    with pytest.raises(SchemaError, match="named for two things"):
        Schema.parse(TEXT.replace("channels: {gas", "channels: {Time"))
    with pytest.raises(DataError, match="for tables alone"):
        open_series({"gas": np.zeros((3, 24))}).check(Schema.parse(TEXT))


@pytest.mark.parametrize(
    ("name", "clock"), [("Time", FORMS["18.00.00"]), ("hr", FORMS["hours"]), ("at", FORMS["18:00"])]
)
def test_a_draft_proposes_the_second_column(tmp_path, name, clock):
    frame(DAYS["slashes"][1], clock).rename(columns={"Time": name}).to_csv(tmp_path / "a.csv", index=False)
    windows = draft(tmp_path / "a.csv", kind="series").series
    assert (windows.time, windows.time_of_day) == ("Date", name)
    assert list(draft(tmp_path / "a.csv", kind="series").columns) == ["gas"]
    assert "DD/MM/YYYY" in drafted(tmp_path / "a.csv", kind="series").to_yaml()


def test_a_draft_leaves_hours_that_stand_beside_moments(tmp_path):
    moments = pd.date_range("2004-03-10", periods=72, freq="1h").strftime("%Y-%m-%dT%H:%M")
    pd.DataFrame({"when": moments, "hour": range(72), "gas": 1}).to_csv(tmp_path / "a.csv", index=False)
    made = draft(tmp_path / "a.csv", kind="series")
    assert made.series.time_of_day is None
    assert "hour" in made.channels


def test_a_check_knows_that_the_second_column_is_read():
    found = check(Schema.parse(TEXT), frame().assign(more=1))
    assert [finding.path for finding in found.findings if finding.kind == "ignored"] == ["more"]
