"""Stamps of synthetic series: rows have moments of the calendar that their attributes say, in the form of the data."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import doublure as db
from doublure.data.opening import open_data
from doublure.data.series.clock import clock_texts
from doublure.data.series.records import Series
from doublure.data.series.stamps import stamped_starts
from doublure.data.series.writing import write_series
from doublure.errors import SchemaError
from doublure.releasing.catalogues.contents import CatalogueEntry
from doublure.releasing.dictionary import dictionary
from doublure.schema import Schema

TEXT = """
doublure: 1
kind: series
unit: {{name: meter, id: meter, max_records: 2}}
units: 9
date_format: DD.MM.YYYY hh:mm
delimiter: ;
series: {{time: when, length: 4, step: 6h, gaps: missing, stamped_from: 2024-03-06{more}}}
channels: {{kWh: {{type: real, bounds: [0, 9], precision: 1, missing: true}}}}
attributes:
  weekday: {{type: ordinal, values: [0, 1, 2, 3, 4, 5, 6], missing: false, from_time: weekday}}
  flat: {{type: boolean, missing: false, written: {{true: Y, false: N}}}}
"""
ABOUT = {"doublure": "x", "watermark": "x", "guarantee": "x"}


def schema(more: str = "") -> Schema:
    return Schema.parse(TEXT.format(more=more)).resolve({})


def series(weekdays: list[int]) -> Series:
    values = np.arange(4.0 * len(weekdays)).reshape(len(weekdays), 4, 1) / 10
    values[0, 3] = np.nan
    days = pd.Series(pd.Categorical(weekdays, categories=range(7), ordered=True))
    flat = pd.Series([number % 2 == 0 for number in range(len(weekdays))])
    return Series(values=values, attributes=pd.DataFrame({"weekday": days, "flat": flat}), channels=("kWh",))


def written(folder: Path, more: str, name: str = "a.csv") -> Path:
    parts = [series([2, 0]), series([0, 6])]
    write_series(parts, folder / name, schema(more), 4, about=ABOUT)  # type: ignore[arg-type]
    return folder / name


def test_rows_have_moments_of_the_calendar_in_the_form_of_the_data(tmp_path: Path) -> None:
    lines = written(tmp_path, "").read_text().splitlines()
    assert lines[:3] == [
        "series;step;meter;when;weekday;flat;kWh",
        "1;0;1;06.03.2024 00:00;2;Y;0.0",  # the first Wednesday from that Wednesday on
        "1;1;1;06.03.2024 06:00;2;Y;0.1",
    ]
    assert lines[4] == "1;3;1;06.03.2024 18:00;2;Y;"
    found = pd.read_csv(tmp_path / "a.csv", sep=";")
    moments = pd.to_datetime(found["when"], format="%d.%m.%Y %H:%M")
    assert (moments.dt.day_of_week == found["weekday"]).all()
    assert not found[["meter", "when"]].duplicated().any()
    assert found.groupby("series")["when"].first().nunique() == 4  # Mondays are taken in turn


def test_stamped_rows_are_read_as_the_real_ones_are(tmp_path: Path) -> None:
    """With its moments a synthetic file is one that the same schema reads: the same series come back."""
    own = schema()
    loaded = open_data(written(tmp_path, ""), "series", own.written).load(own)
    weekdays = loaded.content.attributes["weekday"].astype(str).astype(int)
    assert sorted(weekdays) == [0, 0, 2, 6]
    assert np.nansum(loaded.content.values) == pytest.approx(2 * (sum(range(8)) - 3) / 10)


def test_a_stamp_is_the_end_of_its_step_where_the_data_has_it_so(tmp_path: Path) -> None:
    lines = written(tmp_path, ", stamp: end").read_text().splitlines()
    assert lines[1].startswith("1;0;1;06.03.2024 06:00;")
    assert lines[4].startswith("1;3;1;07.03.2024 00:00;")


def test_a_file_stamped_at_the_end_of_steps_comes_back_as_it_was(tmp_path: Path) -> None:
    """A receiver who keeps nothing but moments and readings has the same series again."""
    own = schema(", stamp: end")
    rows = pd.read_csv(written(tmp_path, ", stamp: end"), sep=";").drop(columns=["series", "step"])
    rows.to_csv(tmp_path / "b.csv", sep=";", index=False)
    again = open_data(tmp_path / "b.csv", "series", own.written).load(own).content.values
    wanted = np.concatenate([part.values for part in (series([2, 0]), series([0, 6]))])
    assert np.array_equal(np.nan_to_num(np.sort(again, axis=0)), np.nan_to_num(np.sort(wanted, axis=0)))
    early = schema()
    assert len(open_data(tmp_path / "b.csv", "series", early.written).load(early).content.values) > len(wanted)


@pytest.mark.parametrize(("stamp", "said"), [("", "begins"), (", stamp: end", "ends")])
def test_a_bundle_says_where_in_a_step_a_moment_is_and_that_the_calendar_is_made_up(stamp: str, said: str) -> None:
    described = dictionary(schema(stamp))
    assert described["series"]["columns"] == {
        "series": "numbered from 1",
        "step": "numbered from 0",
        "meter": "the number of the series",
        "when": f"when a step {said}; the date is made up: series take days from 2024-03-06 on that fit weekday",
    }
    assert described["series"].get("stamp", "start") == ("end" if stamp else "start")
    assert schema(stamp).limits == (f"Dates are made up, from 2024-03-06 on. A row is stamped when its step {said}.",)
    entry = CatalogueEntry(card={}, described=described, files=[{"path": "data.csv", "rows": 1}])
    table = entry.tables["data"]
    kinds = {column.name: (entry.column_type(table, column), entry.meaning(table, column)) for column in table.columns}
    assert kinds["when"] == ("datetime", described["series"]["columns"]["when"])
    assert kinds["meter"] == ("number", "the number of the series")
    assert all(type_ and (meaning or name in ("weekday", "flat", "kWh")) for name, (type_, meaning) in kinds.items())


def test_without_stamps_the_clock_is_where_the_data_has_it(tmp_path: Path) -> None:
    own = Schema.parse(TEXT.format(more=", stamp: end").replace(", stamped_from: 2024-03-06", "")).resolve({})
    assert clock_texts(own.series, own.length) == ["06:00:00", "12:00:00", "18:00:00", "00:00:00"]
    entry = CatalogueEntry(card={}, described=dictionary(own), files=[{"path": "data.csv", "rows": 1}])
    table = entry.tables["data"]
    assert entry.meaning(table, table.column("clock")) == "the time of day at which a step ends"


def test_days_and_the_clock_stand_in_two_columns_where_the_data_has_them_so(tmp_path: Path) -> None:
    own = Schema.parse(TEXT.format(more=", time_of_day: at").replace("DD.MM.YYYY hh:mm", "DD.MM.YYYY")).resolve({})
    write_series([series([2])], tmp_path / "a.csv", own, 1, about=ABOUT)  # type: ignore[arg-type]
    lines = (tmp_path / "a.csv").read_text().splitlines()
    assert lines[0] == "series;step;meter;when;at;weekday;flat;kWh"
    assert lines[2] == "1;1;1;06.03.2024;06:00;2;Y;0.1"


def test_parquet_has_moments(tmp_path: Path) -> None:
    found = pd.read_parquet(written(tmp_path, "", "a.parquet"))
    assert found["when"].dtype.kind == "M"
    assert found["when"][1] == pd.Timestamp("2024-03-06 06:00")
    assert list(found["flat"].unique()) == ["Y", "N"]


def test_a_window_that_no_calendar_has_is_stamped_all_the_same() -> None:
    own = schema()
    starts = stamped_starts(series([2, 3]).attributes.assign(weekday=[9, 9]), 1, own)  # type: ignore[arg-type]
    assert len(np.unique(starts)) == 2


def test_stamps_need_a_time_and_leave_other_hashes_alone() -> None:
    with pytest.raises(SchemaError, match="stamped_from needs a time"):
        Schema.parse(TEXT.format(more="").replace("time: when, ", "").replace(", from_time: weekday", ""))
    plain = Schema.parse(TEXT.format(more="").replace(", stamped_from: 2024-03-06", ""))
    assert "stamped_from" not in plain.to_yaml()
    assert Schema.parse(schema().to_yaml()).sha256 == schema().sha256 != plain.sha256


def test_a_stamped_release_is_verified(tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    when = pd.date_range("2024-01-01", periods=8 * 4, freq="6h").strftime("%d.%m.%Y %H:%M")
    flat = draw.random(30) < 0.5
    rows = [
        pd.DataFrame({"meter": meter, "when": when, "kWh": draw.random(32).round(1) * 9, "flat": "Y" if own else "N"})
        for meter, own in enumerate(flat)
    ]
    own = Schema.parse(TEXT.format(more="").replace("units: 9", "units: 30"))
    ledger = db.Ledger.create(tmp_path / "a.ledger", dataset="a", epsilon=10, delta=1e-5)
    plan = db.plan(own, epsilon=10, delta=1e-5, accountant="rdp")
    syn = db.fit(pd.concat(rows, ignore_index=True), plan, ledger=ledger, out=tmp_path / "run", seed=1)
    db.release(syn, tmp_path / "bundle", n=40, seed=1)
    assert db.verify(tmp_path / "bundle")["files"]
    found = pd.read_csv(tmp_path / "bundle" / "data.csv", sep=";")
    moments = pd.to_datetime(found["when"], format="%d.%m.%Y %H:%M")
    assert (moments.dt.day_of_week == found["weekday"]).all()
    assert set(found["flat"]) <= {"Y", "N"}


def test_days_that_begin_at_six_are_read_and_stamped_so(tmp_path: Path) -> None:
    own = schema(", begins: 6h")
    moments = pd.date_range("2024-05-01 06:00", periods=8, freq="6h")
    data = pd.DataFrame({"meter": 1, "when": moments, "flat": True, "kWh": np.arange(8.0)})
    found = open_data(data, own.kind).load(own).content
    assert found.values[:, :, 0].tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert found.attributes["weekday"].astype(str).tolist() == ["2", "3"]
    assert "1;0;1;06.03.2024 06:00;2;Y;0.0" in written(tmp_path, ", begins: 6h").read_text().splitlines()
    unlike = open_data(data, own.kind).load(schema()).content
    assert np.isnan(unlike.values).any()  # from midnight on, the first and the last day lack readings
    assert "begins" not in schema().to_yaml()


def test_begins_needs_a_time() -> None:
    with pytest.raises(SchemaError, match="begins needs a time"):
        Schema.parse("doublure: 1\nkind: series\nseries: {length: 4, begins: 6h}\nchannels: {a: {type: real}}\n")
