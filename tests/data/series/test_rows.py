"""Series from tables: windows on the wall clock that never straddle, public rules for gaps, clock changes, irregular
steps, hostile files in one line, bounded units.
"""

from __future__ import annotations

import contextlib
import math
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiers import examples

from doublure.data.series import open_series
from doublure.errors import DataError
from doublure.schema import Schema

NAN = math.nan


def same(found, wanted):
    return np.array_equal(np.array(found, dtype=float), np.array(wanted, dtype=float), equal_nan=True)


# -- windows -----------------------------------------------------------------------------------------------------------


def test_days_are_cut_at_midnight_and_meters_never_meet(world):
    found = world.loaded(world.readings(), world.schema())
    assert found.content.values[:, :, 0].tolist() == [
        [0, 1, 2, 3], [10, 11, 12, 13], [100, 101, 102, 103], [110, 111, 112, 113],
    ]  # fmt: skip
    assert (found.n_units, found.unit.tolist()) == (4, [0, 1, 2, 3])
    assert repr(found) == "SeriesSet(private)"


def test_the_order_of_the_rows_does_not_matter(world):
    frame = world.readings()
    mixed = frame.sample(frac=1, random_state=1)
    first = {tuple(row) for row in world.values(frame, world.schema())}
    assert {tuple(row) for row in world.values(mixed, world.schema())} == first


def test_a_window_that_is_not_whole_has_gaps(world):
    """Readings from noon to noon are two days, and not one window of four steps."""
    frame = world.readings(meters=("m1",)).iloc[2:6]
    assert same(world.values(frame, world.schema()), [[NAN, NAN, 2, 3], [10, 11, NAN, NAN]])


@pytest.mark.parametrize(
    ("length", "step", "first", "starts"),
    [
        ("7", "1d", "2024-03-06", [2, 9]),  # Wednesday: weeks begin on Mondays, two days before and five after
        ("2", "6h", "2024-03-04", [0, 2, 4, 6]),
        ("3", "6h", "2024-03-04", [0, 3, 6]),  # three quarters of a day: counted from a Monday, which the 4th is
    ],
)
def test_other_windows_are_counted_from_a_monday(world, length, step, first, starts):
    days = pd.date_range(first, periods=8, freq="1D" if step == "1d" else "6h").strftime("%Y-%m-%dT%H:%M:%S")
    frame = pd.DataFrame({"meter": "m", "when": days, "litres": np.arange(8.0)})
    found = np.array(world.values(frame, world.schema(length=length, step=step)))
    assert len(found) == len(starts)
    if step == "1d":
        assert same(found[0], [NAN, NAN, 0, 1, 2, 3, 4])
        assert same(found[1], [5, 6, 7, NAN, NAN, NAN, NAN])
    else:
        assert [row[0] for row in found] == starts


@examples(40)
@given(data=st.data())
def test_every_reading_lands_once_in_its_own_meters_window(world, data):
    """Whatever is there, a reading keeps its meter, its day and its step, and no place holds another's."""
    size = data.draw(st.integers(1, 30))
    places = data.draw(
        st.lists(st.tuples(st.integers(0, 2), st.integers(0, 40)), min_size=size, max_size=size, unique=True)
    )
    moments = np.datetime64("2024-02-27T00:00:00") + np.array([6 * step for _, step in places], dtype="timedelta64[h]")
    values = [float(number) for number in range(len(places))]
    frame = pd.DataFrame({"meter": [f"m{meter}" for meter, _ in places], "when": moments, "litres": values})
    rows = world.values(frame, world.schema())
    wanted = {}
    for (meter, step), value in zip(places, values, strict=True):
        wanted.setdefault((meter, step // 4), [NAN] * 4)[step % 4] = float(value)
    assert sorted(map(str, rows)) == sorted(map(str, wanted.values()))


# -- clock changes -----------------------------------------------------------------------------------------------------

PARIS = {"timezone": "Europe/Paris", "length": "24", "step": "1h", "irregular": ""}


def hours(first, last, zone="Europe/Paris", **columns):
    """Return a reading an hour of elapsed time, as moments with their offset; its value is the hour on the clock."""
    moments = pd.date_range(first, last, freq="1h", tz=zone, inclusive="left")
    texts = [moment.isoformat() for moment in moments]
    return pd.DataFrame({"meter": "m", "when": texts, "litres": moments.hour.astype(float), **columns})


def test_a_day_of_23_hours_repeats_the_hour_before(world):
    (day,) = world.values(hours("2024-03-31", "2024-04-01"), world.schema(**PARIS))
    assert day == [0, 1, 1, *range(3, 24)]  # nothing begins between 2 and 3


def test_a_day_of_25_hours_averages_the_hour_that_stands_twice(world):
    frame = hours("2024-10-27", "2024-10-28")
    assert len(frame) == 25
    frame.loc[3, "litres"] = 50.0  # the second 2 o'clock
    (day,) = world.values(frame, world.schema(**PARIS))
    assert day == [0, 1, (2 + 50) / 2, *range(3, 24)]


@pytest.mark.parametrize(("first", "last"), [("2024-03-30", "2024-04-02"), ("2024-10-26", "2024-10-29")])
def test_days_of_a_clock_change_can_be_left_out(world, first, last):
    schema = world.schema(**PARIS, clock_changes="drop")
    assert world.values(hours(first, last), schema) == [list(range(24))] * 2


@pytest.mark.parametrize(("length", "step", "kept"), [("12", "2h", 2), ("4", "6h", 2), ("7", "1d", 1), ("2", "12h", 2)])
@pytest.mark.parametrize("change", ["2024-03-31", "2024-10-27"])
def test_a_change_counts_although_no_step_begins_in_it(world, change, length, step, kept):
    """Clocks change between 2 and 3 on a Sunday: days around it stay, and the week after."""
    days = pd.date_range(pd.Timestamp(change) - pd.Timedelta(days=6), periods=14, freq="1D").strftime("%Y-%m-%dT00:00")
    frame = pd.DataFrame({"meter": "m", "when": days, "litres": 1.0})
    rules = PARIS | {"length": length, "step": step}
    whole = world.values(frame, world.schema(**rules))
    left = world.values(frame, world.schema(**rules, clock_changes="drop"))
    assert len(whole) - len(left) == 1
    near = frame[frame["when"].str[:10].isin([str(pd.Timestamp(change) + pd.Timedelta(days=d))[:10] for d in (-1, 1)])]
    assert len(world.values(near, world.schema(**rules, clock_changes="drop"))) == kept


@pytest.mark.parametrize(("begins", "count", "first"), [("2018-11-04T03:00Z", 23, 1), ("2018-02-17T02:00Z", 25, 0)])
@pytest.mark.filterwarnings("ignore::doublure.errors.DataWarning")
def test_clocks_may_change_at_midnight(world, begins, count, first):
    """In Sao Paulo 2018-11-04 began at 1 o'clock, and 2018-02-17 had its last hour twice."""
    moments = pd.date_range(begins, periods=count, freq="1h").tz_convert("America/Sao_Paulo")
    frame = pd.DataFrame({"meter": "m", "when": moments.strftime("%Y-%m-%dT%H:%M:%S%z"), "litres": 1.0 * moments.hour})
    there = PARIS | {"timezone": "America/Sao_Paulo"}
    assert world.values(frame, world.schema(**there)) == [[first, *range(1, 24)]]
    day = pd.Timestamp(moments[0].date())
    beside = [hours(day + pd.Timedelta(days=days), day + pd.Timedelta(days=days + 1), zone=None) for days in (-1, 1)]
    both = pd.concat([frame, *beside])
    assert world.values(both, world.schema(**there, clock_changes="drop")) == [list(range(24))] * 2


def test_utc_and_naive_clocks_know_no_change(world):
    frame = hours("2024-03-31", "2024-04-01", zone="UTC")
    assert world.values(frame, world.schema(**(PARIS | {"timezone": "UTC"}))) == [list(range(24))]
    frame["when"] = frame["when"].str[:19]
    assert world.values(frame, world.schema(**(PARIS | {"timezone": ""}))) == [list(range(24))]


def test_a_moment_with_an_offset_is_read_on_the_zones_clock(world):
    """Eleven at night in Greenwich is the next day in Paris."""
    frame = pd.DataFrame(
        {"meter": "m", "when": ["2024-07-01T22:00:00Z", "2024-07-02T00:00:00+02:00"], "litres": [1, 2]}
    )
    assert "several readings" in world.refusal(frame, world.schema(**PARIS))
    assert world.values(frame.iloc[:1], world.schema(**PARIS)) == [pytest.approx([1] + [NAN] * 23, nan_ok=True)]


def test_a_missing_hour_before_the_change_stays_a_gap_or_takes_the_next(world):
    frame = hours("2024-03-31", "2024-04-01").drop(index=1)  # nothing at 1 o'clock
    (day,) = world.values(frame, world.schema(**PARIS))
    assert same(day, [0, NAN, 3, *range(3, 24)])


# -- gaps and irregular steps ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["row absent", "cell empty", "a word for missing"])
def test_gaps_are_missing_refused_or_drop_the_series(world, how):
    frame = world.readings().astype({"litres": object})
    if how == "row absent":
        frame = frame.drop(index=5)
    else:
        frame.loc[5, "litres"] = None if how == "cell empty" else "?"
    channel = "{type: real, bounds: [0, 999], missing: ['?']}"
    kept = world.values(frame, world.schema(channel=channel))
    assert same(kept[1], [10, NAN, 12, 13])
    assert len(world.values(frame, world.schema(channel=channel, gaps="drop"))) == 3
    assert "gaps: refuse" in world.refusal(frame, world.schema(channel=channel, gaps="refuse"))
    never = world.refusal(frame, world.schema(channel="{type: real, missing: false}"))
    assert ("no real" if how == "a word for missing" else "missing: false") in never


def test_a_channel_that_is_never_missing_may_be_dropped_with_its_series(world):
    frame = world.readings()
    frame.loc[5, "litres"] = NAN
    schema = world.schema(channel="{type: real, bounds: [0, 999], missing: false}", gaps="drop")
    assert len(world.values(frame, schema)) == 3
    assert "fewer than 2" in world.refusal(frame.iloc[4:8], schema)


def test_a_stamp_may_say_where_a_step_ends(world):
    """Hour-ending meters: midnight belongs to the day before, whose last step it ends."""
    frame = world.readings()
    begun = world.values(frame, world.schema())
    moved = frame.assign(when=pd.to_datetime(frame["when"]) + pd.Timedelta(hours=6))
    assert same(world.values(moved, world.schema(stamp="end")), begun)
    assert not same(world.values(moved, world.schema(gaps="missing")), begun)


def test_times_that_follow_no_step_are_sent_to_the_relational_kind(world):
    frame = world.readings()
    frame.loc[3, "when"] = "2024-03-04T18:07:00"
    assert "kind: relational" in world.refusal(frame, world.schema())


def test_a_series_without_a_single_reading_is_none(world):
    frame = world.readings()
    frame.loc[:3, "litres"] = NAN
    assert len(world.values(frame, world.schema())) == 3


@pytest.mark.parametrize(("rule", "wanted"), [("mean", 2.0), ("sum", 6.0), ("last", 3.0)])
def test_irregular_readings_are_brought_to_steps_by_the_declared_rule(world, rule, wanted):
    frame = pd.DataFrame(
        {
            "meter": "m",
            "when": ["2024-03-04T06:05", "2024-03-04T07:10", "2024-03-04T11:59:59", "2024-03-04T12:00"],
            "litres": [1.0, 2.0, 3.0, 9.0],
        }
    )
    assert "beside the steps" in world.refusal(frame, world.schema())
    assert same(world.values(frame, world.schema(irregular=rule)), [[NAN, wanted, 9.0, NAN]])
    backwards = frame.iloc[::-1]  # the last in time, wherever it stands in the file
    assert same(world.values(backwards, world.schema(irregular=rule)), [[NAN, wanted, 9.0, NAN]])


def test_two_readings_in_one_step_are_refused_unless_declared(world):
    frame = pd.concat([world.readings(), world.readings().iloc[:1]])
    assert "several readings" in world.refusal(frame, world.schema())
    assert len(world.values(frame, world.schema(irregular="mean"))) == 4


# -- units and attributes ----------------------------------------------------------------------------------------------

METER = {"unit": "{name: meter, id: meter, max_records: 3}", "source": ""}


def test_a_unit_keeps_at_most_so_many_series_drawn_at_random(world):
    frame = world.readings(days=40)
    drawn = [world.loaded(frame, world.schema(**METER)) for _ in range(3)]
    for found in drawn:
        assert (found.n_units, found.unit.tolist()) == (2, [0, 0, 0, 1, 1, 1])
        assert len(set(found.content.values[:3, 0, 0])) == len(set(found.content.values[3:, 0, 0])) == 3
    firsts = [sorted(found.content.values[:3, 0, 0]) for found in drawn]
    assert firsts[0] != firsts[1] or firsts[1] != firsts[2]  # one in a hundred million is alike
    assert any(max(days) > 30 for days in firsts)  # not the first days alone
    assert not drawn[0].repeatable
    assert world.loaded(world.readings(days=3), world.schema(**METER)).repeatable


def test_what_is_left_out_takes_no_ones_place(world):
    """A series with a gap is no series: the whole ones of the same unit are drawn from."""
    frame = world.readings(days=5).drop(index=[0, 5, 20])
    found = world.loaded(frame, world.schema(gaps="drop", **METER))
    assert found.unit.tolist() == [0, 0, 0, 1, 1, 1]
    assert not np.isnan(found.content.values).any()


def test_units_with_several_meters_keep_their_meters_apart(world):
    frame = world.readings(days=1, meters=("m1", "m2", "m3"))
    frame["house"] = np.where(frame["meter"] == "m3", "b", "a")
    schema = world.schema(unit="{name: house, id: house, max_records: 9}")
    found = world.loaded(frame, schema)
    assert (found.n_units, found.unit.tolist()) == (2, [0, 0, 1])
    assert found.content.values[:, 0, 0].tolist() == [0, 100, 200]


def test_attributes_are_the_series_own_and_may_follow_from_the_time(world):
    frame = world.readings(first="2024-03-09")  # a Saturday
    frame["place"] = np.where(frame["meter"] == "m1", "hill", "coast")
    attributes = """
      place: {type: category, values: [coast, hill], missing: false}
      weekday: {type: ordinal, values: [0, 1, 2, 3, 4, 5, 6], missing: false, from_time: weekday}
      weekend: {type: boolean, missing: false, from_time: weekend}
      month: {type: ordinal, values: [3], missing: false, from_time: month}
    """
    found = world.loaded(frame, world.schema(attributes=attributes)).frame
    assert found["place"].tolist() == ["hill", "hill", "coast", "coast"]
    assert found["weekday"].tolist() == ["5", "6"] * 2
    assert found["weekend"].tolist() == ["true"] * 4
    assert set(found["month"]) == {"3"}
    frame.loc[1, "place"] = "coast"
    assert "changes within a series" in world.refusal(frame, world.schema(attributes=attributes))


# -- series that are cut already, and wide tables ----------------------------------------------------------------------

CUT = Schema.parse(
    "doublure: 1\nkind: series\nunits: 9\nseries: {length: 3, gaps: missing}\n"
    "channels: {a: {type: integer, bounds: [0, 9], missing: true}, b: {type: real, bounds: [0, 9], missing: true}}\n"
    "attributes: {w: {type: category, values: [x, y], missing: false}}\n"
)


def test_series_that_are_cut_already_are_joined_step_by_step(world):
    frame = pd.DataFrame({"series": [7, 7, 7, 3, 3], "step": [0, 2, 1, 1, 0], "a": [1, 3, 2, 5, 4], "b": 0.5, "w": "x"})
    found = world.loaded(frame, CUT)
    assert same(found.content.channel("a"), [[1, 2, 3], [4, 5, NAN]])
    for step, said in ((3, "0 … length - 1"), (-1, "0 … length - 1"), (0, "several readings")):
        frame.loc[1, "step"] = step
        assert said in world.refusal(frame, CUT)


def test_a_row_a_series(world, tmp_path):
    wide = pd.DataFrame(
        {f"{channel}_{step}": [1 + step, 4.0] for channel in "ab" for step in range(3)} | {"w": ["x", "y"]}
    )
    wide.loc[1, "b_1"] = NAN
    wide.to_csv(tmp_path / "wide.csv", index=False)
    for data in (wide, tmp_path / "wide.csv"):
        found = world.loaded(data, CUT)
        assert same(found.content.channel("b"), [[1, 2, 3], [4, NAN, 4]])
        assert found.frame["w"].tolist() == ["x", "y"]
    assert "b_2" in world.refusal(wide.drop(columns="b_2"), CUT)
    padded = wide.rename(columns=lambda name: name.replace("_", "_0") if name != "w" else name)
    assert len(world.loaded(padded, CUT).content) == 2
    assert "two columns for one step" in world.refusal(wide.assign(a_01=9.0), CUT)
    assert "beyond series.length" in world.refusal(wide.assign(a_3=9.0), CUT)
    from_one = wide.rename(columns=lambda name: f"{name[:2]}{int(name[2:]) + 1}" if name != "w" else name)
    assert "number them from 0" in world.refusal(from_one, CUT)
    assert len(world.loaded(wide.assign(a_comment="-", aa_3=0), CUT).content) == 2


def test_an_attribute_named_like_a_step_is_none(world):
    text = CUT.to_yaml().replace("  w:", "  a_9:")
    wide = pd.DataFrame(
        {f"{channel}_{step}": [1.0, 2.0] for channel in "ab" for step in range(3)} | {"a_9": ["x", "y"]}
    )
    assert world.loaded(wide, Schema.parse(text)).frame["a_9"].tolist() == ["x", "y"]


def test_sources_may_number_their_series_alike(world):
    """Two meters of a household, each with a series 1: joined, they would be one of their means."""
    frame = pd.DataFrame(
        {"who": "h", "meter": ["p"] * 4 + ["q"] * 4, "series": 1, "step": [0, 1, 2, 3] * 2, "litres": range(8)}
    )
    for unit in ("{name: household, id: who, max_records: 9}", "{name: day, id: null}"):
        schema = world.schema(irregular="mean", unit=unit)
        assert sorted(world.values(frame, schema)) == [[0, 1, 2, 3], [4, 5, 6, 7]]
        assert world.values(frame[:4].drop(columns="meter"), schema) == [[0, 1, 2, 3]]  # as doublure writes them


def test_a_table_that_tells_no_series_apart_is_refused(world):
    assert "has equal values in different series" in world.refusal(pd.DataFrame({"a": [1], "b": [1], "w": ["x"]}), CUT)


# -- files -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".parquet"])
def test_files_give_what_frames_give(world, tmp_path, ending):
    frame, path = world.readings(), tmp_path / f"a{ending}"
    frame.to_parquet(path) if ending == ".parquet" else frame.to_csv(path, index=False)
    assert world.values(path, world.schema()) == world.values(frame, world.schema())


HOSTILE = {
    "no moment": lambda frame: frame.assign(when="soon"),
    "an empty moment": lambda frame: frame.assign(when=[None, *frame["when"][1:]]),
    "a moment that is a number": lambda frame: frame.assign(when=np.arange(len(frame))),
    "no number": lambda frame: frame.assign(litres="much"),
    "an infinite number": lambda frame: frame.assign(litres=np.inf),
    "no meter": lambda frame: frame.assign(meter=None),
    "a column twice": lambda frame: frame.set_axis(["meter", "when", "when"], axis=1),
    "no channel": lambda frame: frame.drop(columns="litres"),
    "no time": lambda frame: frame.drop(columns="when"),
    "no rows": lambda frame: frame.iloc[:0],
    "a list as a cell": lambda frame: frame.assign(litres=pd.Series([[1.0]] * len(frame), dtype=object)),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_tables_are_one_line(world, name):
    assert world.refusal(HOSTILE[name](world.readings()), world.schema())


@pytest.mark.parametrize("year", ["0001-01-01T00:00:00", "9999-12-31T18:00:00"])
def test_the_ends_of_the_calendar(world, year):
    frame = pd.DataFrame({"meter": "m", "when": [year], "litres": [1.0]})
    schema = world.schema(timezone="Europe/Paris")
    with contextlib.suppress(DataError):  # anything but a refusal is a defect
        assert len(world.values(frame, schema)) == 1


def test_what_is_there_stands_in_memory_and_not_what_might_be(tmp_path):
    """A hundred readings a century apart are a hundred series, and nothing in between."""
    schema = Schema.parse(
        "doublure: 1\nkind: series\nunits: 9\nseries: {time: when, length: 24, step: 1h, gaps: missing}\n"
        "channels: {a: {type: real, missing: true}}\n"
    )
    years = [f"{year:04d}-06-01T00:00:00" for year in range(100, 9000, 89)]
    frame = pd.DataFrame({"when": years, "a": 1.0})
    tracemalloc.start()
    try:
        found = open_series(frame).load(schema)
        assert tracemalloc.get_traced_memory()[1] < 20e6
    finally:
        tracemalloc.stop()
    assert len(found.content) == 100


def test_more_values_than_memory_holds_are_refused(world, monkeypatch):
    monkeypatch.setattr("doublure.data.series.sources.LARGEST", 100)
    assert "32 GB" in world.refusal(world.readings(), world.schema())
