"""Whose a series is, whatever form it comes in and however many are read at once; faults that mix them up are caught.

A series that is taken for a unit of its own is one that nothing bounds: a person with many would have them all used.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from planting import plant

from doublure.data.series import open_series, rows, sources
from doublure.data.series.records import SeriesSet
from doublure.errors import DataError
from doublure.schema import Schema

TEXT = """
doublure: 1
kind: series
unit: {name: house, id: who, max_records: 99}
units: 9
series: {source: meter, time: when, length: 4, step: 6h, gaps: missing, timezone: Europe/Paris}
channels:
  litres: {type: real, bounds: [0, 9999], missing: true}
  state: {type: category, values: [off, on], missing: true}
"""
CUT = TEXT.replace("source: meter, time: when, length: 4, step: 6h, gaps: missing, timezone: Europe/Paris",
                   "length: 4, gaps: missing")  # fmt: skip
ENDING = CUT + "attributes: {hours: {type: integer, bounds: [1, 4], missing: false, from_length: true}}\n"
HOUSES, METERS, DAYS = 3, 3, 4


def readings():
    """Return readings of nine meters, from three days before the clocks go forward; each says whose it is, and when."""
    moments = pd.date_range("2024-03-28", periods=4 * DAYS, freq="6h")
    frames = []
    for house in range(HOUSES):
        for meter in range(METERS):
            litres = 1000.0 * house + 100 * meter + np.arange(len(moments))
            frame = pd.DataFrame({"who": f"h{house}", "meter": f"m{meter}", "when": moments, "litres": litres})
            frames.append(frame.assign(state=np.where(frame["litres"] % 2, "on", "off")))
    whole = pd.concat(frames, ignore_index=True).assign(when=lambda frame: frame["when"].dt.strftime("%Y-%m-%dT%H:%M"))
    return whole.drop(index=[5, 50, 101])  # a gap in the second day of three meters


def hourly():
    """Return the readings of a meter up to the morning on which there is no 02:00."""
    moments = pd.date_range("2024-03-30T16:00", periods=16, freq="h").delete(10).strftime("%Y-%m-%dT%H:%M")
    return pd.DataFrame({"who": "h", "meter": "m", "when": moments, "litres": range(15), "state": "on"})


def numbered():
    """Return the same, cut into series that are numbered for each house."""
    frame = readings()
    number = frame.groupby("who", group_keys=False)["when"].transform(lambda own: np.arange(len(own)) // 4)
    step = frame.groupby("who", group_keys=False)["when"].transform(lambda own: np.arange(len(own)) % 4)
    return frame.drop(columns=["meter", "when"]).assign(series=number, step=step)


def wide():
    """Return a row a series."""
    cells = {f"litres_{step}": np.arange(6.0) + step for step in range(4)}
    return pd.DataFrame({"who": ["a", "b"] * 3} | cells | {f"state_{step}": "on" for step in range(4)})


def arrays():
    """Return an array a channel."""
    return {"who": np.array(["a", "b"] * 3), "litres": np.ones((6, 4)), "state": np.full((6, 4), "on")}


FORMS = {"readings": (readings, TEXT), "numbered": (numbered, CUT), "wide": (wide, CUT), "arrays": (arrays, CUT)}


def loaded(data, text=TEXT):
    return open_series(data).load(Schema.parse(text))


# -- without a unit's column ----------------------------------------------------------------------------------------


def check_nothing_is_read_without_the_units_column(form):
    made, text = FORMS[form]
    data = made()
    units = loaded(data, text).n_units
    assert units == (HOUSES if form in ("readings", "numbered") else 2)
    less = data.drop(columns="who") if isinstance(data, pd.DataFrame) else {k: v for k, v in data.items() if k != "who"}
    source = open_series(less)
    with pytest.raises(DataError, match="who"):
        source.check(Schema.parse(text))


@pytest.mark.parametrize("form", FORMS)
def test_nothing_is_read_without_the_units_column(form):
    check_nothing_is_read_without_the_units_column(form)


@pytest.mark.parametrize(
    ("form", "owner", "edit"),
    [
        ("numbered", rows._Numbered, ("name == self.schema.unit.id or name in self.names", "name in self.names")),
        ("wide", rows._Wide, ("self.schema.unit.id is None", "self.schema.unit.id not in self.names")),
        ("readings", rows._Form, ("name is not None", "name in self.names")),
    ],
)
def test_series_that_become_units_are_caught(monkeypatch, form, owner, edit):
    plant(monkeypatch, owner, "keys", edit)
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        check_nothing_is_read_without_the_units_column(form)


# -- several keys, and several blocks -------------------------------------------------------------------------------


def of_each(found: SeriesSet):
    """Return the first value of each house's series."""
    first = np.nanmin(found.content.channel("litres"), axis=1)
    return [sorted(first[found.unit == unit].tolist()) for unit in range(found.n_units)]


def check_meters_of_houses_never_meet():
    found = loaded(readings())
    assert len(found.content) == HOUSES * METERS * DAYS
    assert of_each(found) == [
        [1000.0 * house + 100 * meter + 4 * day for meter in range(METERS) for day in range(DAYS)]
        for house in range(HOUSES)
    ]


def test_meters_of_houses_never_meet():
    check_meters_of_houses_never_meet()


@pytest.mark.parametrize(
    ("owner", "name", "edit"),
    [
        (rows, "_numbered", ("code * max(1, len(found)) + labels", "code + labels")),
        (rows, "_numbered", ("code * max(1, len(distinct)) + window", "code + window")),
        (rows, "_numbered", ("code * max(1, len(found)) + labels", "labels")),
        (rows._Timed, "cut", ("labels.get(schema.unit.id or '')", "labels.get(schema.source or '')")),
    ],
    ids=["houses and meters collide", "meters and days collide", "meters of all houses", "a meter for its house"],
)
def test_meters_that_meet_are_caught(monkeypatch, owner, name, edit):
    plant(monkeypatch, owner, name, edit)
    with pytest.raises((AssertionError, DataError)):
        check_meters_of_houses_never_meet()


def told():
    """Return numbered series whose column says where they end; two of them lack a reading before that."""
    return numbered().assign(hours=lambda frame: 1 + frame["series"] % 4).drop(index=[0, 52])


DROPPED = "gaps: drop"
BY_BLOCKS = {
    "gaps": (readings, TEXT), "whole ones": (readings, TEXT.replace("gaps: missing", DROPPED)),
    "changes left out": (readings, TEXT.replace("gaps: missing", "gaps: missing, clock_changes: drop")),
    "changes filled": (hourly, TEXT.replace("step: 6h", "step: 1h")),
    "ends": (told, ENDING.replace("gaps: missing", DROPPED)), "a row a series": (wide, CUT),
}  # fmt: skip


def check_blocks_are_read_as_one_is(patch, case):
    """Two series at a time, thirteen of 36 or all of them: the same values, ends and units."""
    made, text = BY_BLOCKS[case]
    data = made()
    at_once = loaded(data, text)
    for series in (13, 2):
        with patch.context() as one:
            one.setattr(sources, "_BLOCK_NUMBERS", series * 4 * 2)
            found = loaded(data, text)
        assert np.array_equal(found.content.values, at_once.content.values, equal_nan=True)
        assert found.unit.tolist() == at_once.unit.tolist()
        pd.testing.assert_frame_equal(found.frame, at_once.frame)
    if DROPPED in text:  # every step before a series' end has a value, and none has one after it
        assert np.array_equal(found.content.inside, ~np.isnan(found.content.values).all(axis=2))
        assert 0 < len(found.content) < HOUSES * METERS * DAYS


@pytest.mark.parametrize("case", BY_BLOCKS)
def test_blocks_are_read_as_one_is(monkeypatch, case):
    check_blocks_are_read_as_one_is(monkeypatch, case)


LOADED, LACKING = (sources.SeriesSource, "_load"), (sources.SeriesSource, "_lacking")
TAKEN = "cut.block(first, last)[rows[inside] - first]"
OWN_STEPS = "lengths.cut(block, steps[rows[inside]])"
BLOCKS = [
    ("whole ones", *LOADED, (TAKEN, "cut.block(first, last)[: inside.stop - inside.start]")),
    ("gaps", *LOADED, (TAKEN, "cut.block(first, last)[rows[inside] % (last - first)]")),
    ("ends", *LOADED, (OWN_STEPS, "lengths.cut(block, steps[inside])")),
    ("ends", *LOADED, (OWN_STEPS, "block")),
    ("changes left out", *LACKING, ("~cut.changed[first:last]", "~cut.changed[: last - first]")),
    (
        "changes filled",
        rows.Readings,
        "block",
        ("self._changes.skipped[first:last]", "self._changes.skipped[: last - first]"),
    ),
]


@pytest.mark.parametrize(("case", "owner", "name", "edit"), BLOCKS)
def test_blocks_that_take_others_series_are_caught(monkeypatch, case, owner, name, edit):
    plant(monkeypatch, owner, name, edit)
    with pytest.raises((AssertionError, ValueError)):
        check_blocks_are_read_as_one_is(monkeypatch, case)


def check_an_empty_reading_is_none():
    """Of several readings of one step the last that has a value counts, by every rule."""
    frame = pd.DataFrame({"who": "h", "meter": "m", "when": [f"2024-03-04T0{hour}:00" for hour in (0, 1, 2, 3, 7)]})
    frame = frame.assign(litres=[2.0, 4, np.nan, np.nan, 9], state=["off", "on", None, None, "off"])
    for rule, litres in (("last", 4.0), ("mean", 3.0), ("sum", 6.0)):
        found = loaded(pd.concat([frame, frame.assign(meter="n")]), TEXT.replace("gaps:", f"irregular: {rule}, gaps:"))
        assert found.content.values[:, :2].tolist() == [[[litres, 1.0], [9.0, 0.0]]] * 2


def test_an_empty_reading_is_none(monkeypatch):
    check_an_empty_reading_is_none()
    plant(
        monkeypatch,
        rows.Readings,
        "_column",
        ("known = ~np.isnan(cells)", "known = ~np.isnan(cells) | (rule == 'last')"),
    )
    with pytest.raises(AssertionError):
        check_an_empty_reading_is_none()


def check_a_unit_without_a_series_is_none():
    """Who has gaps in all days, where these are left out, is no unit: it is not counted, nor has it a number."""
    frame = readings()
    first = frame["who"].eq("h0") & frame["when"].str.endswith("T00:00")
    found = loaded(frame[~first], TEXT.replace("gaps: missing", DROPPED))
    assert found.n_units == len(set(found.unit.tolist())) == HOUSES - 1
    assert found.unit.max() == HOUSES - 2


def test_a_unit_without_a_series_is_none(monkeypatch):
    check_a_unit_without_a_series_is_none()
    plant(monkeypatch, *LOADED, ("len(labels)", "cut.unit.nunique()"))
    with pytest.raises(AssertionError):
        check_a_unit_without_a_series_is_none()


# -- what is bought of one ---------------------------------------------------------------------------------------------


def check_what_comes_after_an_end_is_no_gap():
    """A series that ends early has no missing step there, and its bounds are those of its values."""
    frame = pd.DataFrame({"who": ["a", "a", "b", "b", "b"], "series": 1, "step": [0, 1, 0, 1, 2], "state": "on"})
    found = loaded(frame.assign(litres=[3.0, 5, 2, np.nan, 7]), ENDING)
    assert np.isnan(found.cells("litres", "missing")).tolist() == [False, True]
    assert found.cells("litres", "bounds").tolist() == [3, 2, 5, 7]
    assert len(found.cells("state", "missing")) == 2


def test_what_comes_after_an_end_is_no_gap(monkeypatch):
    check_what_comes_after_an_end_is_no_gap()
    plant(monkeypatch, SeriesSet, "cells", ("self.content.held(column)", "self.content.channel(column)"))
    with pytest.raises(AssertionError):
        check_what_comes_after_an_end_is_no_gap()
