"""Series from arrays: NPZ and mappings. Headers before values; damaged, hostile and mismatched files in one line."""

from __future__ import annotations

import zipfile

import numpy as np
import pandas as pd
import pytest

from doublure.data.opening import open_data
from doublure.data.series import Series, open_series
from doublure.errors import DataError
from doublure.schema import Schema

TEXT = """
doublure: 1
kind: series
units: 9
series: {length: 5, gaps: missing}
channels: {a: {type: real, bounds: [0, 99], missing: true}}
attributes: {w: {type: category, values: [x, y], missing: false}}
"""
TWO = TEXT.replace("attributes", "  # two\nattributes").replace(
    "missing: true}}\n  #", "missing: true}, b: {type: integer, bounds: [-9, 9], missing: true}}\n  #"
)
DAYS = """
doublure: 1
kind: series
unit: {name: meter, id: who, max_records: 9}
units: 3
series: {time: date, length: 5, step: 1h, gaps: drop}
channels: {a: {type: real, bounds: [0, 99], missing: false}}
attributes: {weekday: {type: ordinal, values: [0, 1, 2, 3, 4, 5, 6], missing: false, from_time: weekday}}
"""


@pytest.fixture
def schema():
    return Schema.parse(TEXT)


@pytest.fixture
def values():
    return np.arange(40, dtype=np.float32).reshape(8, 5)


@pytest.fixture
def labels():
    return np.array(["x", "y"] * 4)


@pytest.mark.parametrize("names", [("a", "w"), ("values", "w"), ("x", "w"), ("x_train", "w_train"), ("a_train", "w")])
@pytest.mark.parametrize("form", ["npz", "mapping"])
def test_arrays_by_their_names(world, tmp_path, schema, values, labels, names, form):
    arrays = {names[0]: values, names[1]: labels}
    np.savez_compressed(tmp_path / "a.npz", **arrays)
    found = world.loaded(tmp_path / "a.npz" if form == "npz" else arrays, schema)
    assert np.array_equal(found.content.values[:, :, 0], values)
    assert found.frame["w"].tolist() == labels.tolist()
    assert (found.n_units, found.unit.tolist()) == (8, list(range(8)))


def test_a_split_is_named_behind_the_path(world, tmp_path, schema, values, labels):
    path = tmp_path / "a.npz"
    np.savez(path, x_train=values, w_train=labels, x_test=values[:3], w_test=labels[:3])
    assert "a.npz#train, a.npz#test" in world.refusal(path, schema)
    assert len(world.loaded(f"{path}#test", schema).content) == 3
    assert "no array" in world.refusal(f"{path}#other", schema)


def test_several_channels_stand_apart_or_together(world, values, labels):
    schema = Schema.parse(TWO)
    together = np.stack([values, values - 20], axis=2)
    for arrays in ({"a": values, "b": (values - 20).astype(int)}, {"values": together}):
        found = world.loaded(arrays | {"w": labels}, schema).content
        assert np.array_equal(found.values, together)
        assert found.channels == ("a", "b")
    assert "whole number" in world.refusal({"values": together + 0.5, "w": labels}, schema)
    assert "different shapes" in world.refusal({"a": values, "b": values[:3], "w": labels}, schema)


def test_meters_by_days(world, values):
    """Two leading axes; an attribute, an id or a time may have either."""
    grid = np.arange(3 * 4 * 5, dtype=float).reshape(3, 4, 5)
    grid[1, 2] = np.nan  # no series there
    grid[2, 0, 3] = np.nan  # a gap
    dates = np.array(["2024-03-04", "2024-03-05", "2024-03-06", "2024-03-07"])
    schema = Schema.parse(DAYS)
    for time in (dates, dates.astype("datetime64[D]"), pd.Series(pd.to_datetime(dates))):
        found = world.loaded({"a": grid, "who": np.array(["m1", "m2", "m3"]), "date": time}, schema)
        assert found.unit.tolist() == [0] * 4 + [1] * 3 + [2] * 3
        assert found.frame["weekday"].tolist() == list("0123") + list("013") + list("123")
        assert np.array_equal(found.content.values[4], grid[1, 0][:, None])
    square = {"a": grid[:, :3], "who": np.array(["m1", "m2", "m3"]), "date": dates[:3]}
    assert "another length" in world.refusal(square, schema)  # it could be either axis


@pytest.mark.parametrize("form", ["arrays", "a row a series"])
def test_clock_changes_of_series_that_are_cut_already(world, form):
    """Where it is known when they begin, the same rules hold as for readings."""
    text = DAYS.replace("length: 5", "timezone: Europe/Paris, length: 5").replace(
        "{name: meter, id: who, max_records: 9}", "{}"
    )
    days = ["2024-03-30", "2024-03-31", "2024-04-01"]
    values = np.tile(np.arange(5.0), (3, 1))
    values[1, 2] = np.nan  # nothing begins between 2 and 3
    data = {"a": values, "date": np.array(days)}
    if form == "a row a series":
        data = pd.DataFrame(values, columns=[f"a_{step}" for step in range(5)]).assign(date=days)
    assert world.values(data, Schema.parse(text)) == [[0, 1, 2, 3, 4], [0, 1, 1, 3, 4], [0, 1, 2, 3, 4]]
    dropping = Schema.parse(text.replace("gaps: drop", "gaps: drop, clock_changes: drop"))
    assert world.values(data, dropping) == [[0, 1, 2, 3, 4]] * 2
    assert np.isnan(values[1, 2])  # what was given is left as it was


def test_without_a_time_an_attribute_of_it_is_read(world, values):
    schema = Schema.parse(DAYS.replace("missing: false}}\nattributes", "missing: true}}\nattributes"))
    found = world.loaded({"a": values, "who": np.arange(8), "weekday": np.arange(8) % 7}, schema)
    assert found.frame["weekday"].tolist() == list("01234560")
    assert "weekday" in world.refusal({"a": values, "who": np.arange(8)}, schema)


def test_series_themselves_are_read_back(world, schema, values, labels):
    found = world.loaded({"a": values, "w": labels}, schema).content
    again = world.loaded(found, schema).content
    assert isinstance(again, Series)
    assert np.array_equal(again.values, found.values)
    assert again.attributes.equals(found.attributes)
    assert np.array_equal(Series.joined([again.take(slice(3)), again.take(slice(3, 8))]).values, found.values)


MISFITS = {
    "another length": lambda v, w: {"a": v[:, :4], "w": w},
    "a label short": lambda v, w: {"a": v, "w": w[:-1]},
    "no attribute": lambda v, w: {"a": v},
    "no values": lambda v, w: {"w": w},
    "texts": lambda v, w: {"a": v.astype(str), "w": w},
    "one axis": lambda v, w: {"a": v[0], "w": w},
    "four axes": lambda v, w: {"a": v[None, None], "w": w},
    "another value": lambda v, w: {"a": v, "w": np.array(["z"] * 8)},
    "infinite": lambda v, w: {"a": v / 0.0, "w": w},
    "complex": lambda v, w: {"a": v * 1j, "w": w},
    "ragged": lambda v, w: {"a": [[1, 2], [3]], "w": w},
}


@pytest.mark.filterwarnings("ignore:divide by zero")
@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize("name", MISFITS)
def test_what_does_not_fit_is_one_line(world, schema, values, labels, name):
    assert world.refusal(MISFITS[name](values, labels), schema)


def test_shapes_are_compared_before_a_value_is_read(tmp_path, schema, values, labels):
    np.savez(tmp_path / "a.npz", a=values[:, :4], w=labels)
    with pytest.raises(DataError, match="5 numbers"):
        open_series(tmp_path / "a.npz").check(schema)


HOSTILE = {
    "no zip": lambda content: b"not a zip",
    "cut off": lambda content: content[:-60],
    "a wrong byte": lambda content: content.replace(b"NUMPY", b"NAMPY", 1),
    "empty": lambda content: b"",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_npz(world, tmp_path, schema, values, labels, name):
    np.savez(tmp_path / "a.npz", a=values, w=labels)
    (tmp_path / "a.npz").write_bytes(HOSTILE[name]((tmp_path / "a.npz").read_bytes()))
    assert world.refusal(tmp_path / "a.npz", schema)


def test_a_pickle_is_never_loaded(world, tmp_path, schema, values, labels):
    class Trap:
        def __reduce__(self):
            return pytest.fail, ("it was unpickled",)

    trap = np.array([Trap()] * 8, object)
    for arrays in ({"a": values, "w": trap}, {"a": trap, "w": labels}):
        with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
            for name, array in arrays.items():
                with archive.open(f"{name}.npy", "w") as member:
                    np.lib.format.write_array(member, array, allow_pickle=True)
        assert "Python objects" in world.refusal(tmp_path / "a.npz", schema)


def test_texts_that_would_fill_the_memory_are_refused_by_their_header(world, tmp_path, schema, values):
    np.savez_compressed(tmp_path / "a.npz", a=values, w=np.array(["x"] * 8, "U20000"))
    assert "texts of more than 10,000 bytes" in world.refusal(tmp_path / "a.npz", schema)


def test_data_of_another_kind_is_refused(schema, tmp_path):
    table = Schema.parse("doublure: 1\nkind: table\nunits: 9\ncolumns: {a: {type: boolean, missing: false}}")
    with pytest.raises(DataError, match="does not describe series"):
        open_data({"a": np.zeros((3, 5))}, "series").check(table)
    for source in (tmp_path / "none.npz", tmp_path / "none.csv", 3):
        with pytest.raises(DataError):
            open_data(source, schema.kind)
