"""Cells from every container that pandas and Arrow have, read by the same public rules."""

from __future__ import annotations

import datetime as dt
import decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from doublure.data.tables.cells import canonical
from doublure.data.tables.opening import open_table
from doublure.errors import DataError
from doublure.schema import Schema
from doublure.schema.columns import (
    BooleanColumn,
    CategoryColumn,
    Column,
    DateColumn,
    DatetimeColumn,
    IntegerColumn,
    OrdinalColumn,
    RealColumn,
)

NAN, NAT = np.nan, np.datetime64("NaT", "s")


def arrow(values: list[Any], kind: pa.DataType) -> pd.Series:
    return pd.Series(pd.arrays.ArrowExtensionArray(pa.array(values, kind)))


def numbers(raw: Any, column: Column) -> list[float]:
    read = canonical(raw if isinstance(raw, pd.Series) else pd.Series(raw), column, "x")
    assert read.dtype == np.float64
    assert read.index.equals(pd.RangeIndex(len(read)))
    return read.tolist()


def moments(raw: Any, column: Column) -> list[str]:
    read = canonical(raw if isinstance(raw, pd.Series) else pd.Series(raw), column, "x")
    assert read.dtype == (np.dtype("datetime64[s]") if column.missing_states < 2 else np.float64)
    assert read.index.equals(pd.RangeIndex(len(read)))
    return [str(value) for value in column.loaded_cells_of(column.numbers_of(read)).to_numpy()]


def labels(raw: Any, column: Column) -> list[str | None]:
    read = canonical(raw if isinstance(raw, pd.Series) else pd.Series(raw), column, "x")
    assert isinstance(read.dtype, pd.CategoricalDtype)
    assert read.index.equals(pd.RangeIndex(len(read)))
    return [None if code < 0 else str(read.cat.categories[code]) for code in read.cat.codes]


def refused(raw: Any, column: Column, words: str) -> None:
    with pytest.raises(DataError) as caught:
        canonical(raw if isinstance(raw, pd.Series) else pd.Series(raw), column, "x")
    assert caught.value.field == "x"
    assert words in str(caught.value)
    assert "s3cr3t" not in str(caught.value)
    assert "\n" not in str(caught.value)


# -- numbers -----------------------------------------------------------------------------------------------------

WHOLE = IntegerColumn(bounds=(0, 9), missing=("?", "-9"))

ONE_AND_NOTHING = {
    "floats": pd.Series([1.0, NAN]),
    "float32": pd.Series([1, NAN], dtype="float32"),
    "nullable": pd.Series([1, None], dtype="Int64"),
    "nullable small": pd.Series([1, None], dtype="UInt8"),
    "nullable float": pd.Series([1.0, None], dtype="Float64"),
    "boolean": pd.Series([True, None], dtype="boolean"),
    "sparse": pd.Series(pd.arrays.SparseArray([1.0, NAN])),
    "text": pd.Series([" 1 ", "?"]),
    "objects": pd.Series(["1", None], dtype=object),
    "string": pd.Series(["1", None], dtype="string"),
    "python strings": pd.Series(["1.0", "-9"], dtype="string[python]"),
    "decimals": pd.Series([decimal.Decimal("1.00"), None]),
    "mixed": pd.Series([1, pd.NA], dtype=object),
    "a code": pd.Series([1, -9]),
    "a code as text": pd.Series(["1", " -9.0 "]),
    "no number": pd.Series(["1", "NaN"]),
    "categories": pd.Series(pd.Categorical(["1", None])),
    "categories of numbers": pd.Series(pd.Categorical([1, None])),
    "arrow int": arrow([1, None], pa.int16()),
    "arrow unsigned": arrow([1, None], pa.uint64()),
    "arrow float": arrow([1.0, None], pa.float32()),
    "arrow decimal": arrow([decimal.Decimal("1.00"), None], pa.decimal128(5, 2)),
    "arrow text": arrow(["1", "?"], pa.string()),
    "arrow large text": arrow(["1", None], pa.large_string()),
    "arrow bool": arrow([True, None], pa.bool_()),
    "arrow dictionary": arrow(["1", None], pa.dictionary(pa.int8(), pa.string())),
}


@pytest.mark.parametrize("raw", ONE_AND_NOTHING.values(), ids=ONE_AND_NOTHING)
def test_one_and_nothing(raw: pd.Series) -> None:
    shifted = raw.set_axis(range(5, 5 + len(raw)))
    assert numbers(shifted, WHOLE) == pytest.approx([1.0, NAN], nan_ok=True)
    assert numbers(raw, RealColumn(bounds=(0.0, 9.0), missing=("?", "-9"))) == pytest.approx([1.0, NAN], nan_ok=True)


NO_NUMBERS = {
    "text": ["s3cr3t"],
    "a comma": ["1,5"],
    "underscores": ["1_0"],
    "hexadecimal": ["0x1"],
    "other digits": ["١"],
    "complex": np.array([1 + 2j]),
    "moments": pd.to_datetime(["2020-01-01"]),
    "moments as objects": pd.Series([dt.datetime(2020, 1, 1)], dtype=object),
    "days": pd.Series([dt.date(2020, 1, 1)]),
    "differences": pd.to_timedelta(["1D"]),
    "lists": [[1], [2]],
    "mappings": [{"s3cr3t": 1}],
    "bytes": [b"1"],
    "periods": pd.period_range("2020", periods=1, freq="D"),
    "intervals": pd.interval_range(0, 2),
    "arrow lists": arrow([[1]], pa.list_(pa.int64())),
    "arrow structs": arrow([{"a": 1}], pa.struct({"a": pa.int64()})),
    "arrow binary": arrow([b"1"], pa.binary()),
    "arrow moments": arrow([dt.datetime(2020, 1, 1)], pa.timestamp("us")),
    "arrow times": arrow([dt.time(12, 30)], pa.time64("us")),
    "missing that is not declared so": pd.Series(["unknown"]),
}


@pytest.mark.parametrize("raw", NO_NUMBERS.values(), ids=NO_NUMBERS)
def test_what_is_no_number_is_refused(raw: Any) -> None:
    refused(raw, WHOLE, "no integer")
    refused(raw, RealColumn(bounds=(0.0, 9.0), missing=True), "no real")


def test_the_rules_for_numbers() -> None:
    refused([1.5, 2.0], WHOLE, "no whole number")
    refused(["1.5"], WHOLE, "no whole number")
    refused([np.inf], RealColumn(missing=True), "infinite")
    refused(["-inf"], RealColumn(missing=True), "infinite")
    refused(["1e999"], RealColumn(missing=True), "has ")  # infinite to one pandas, no number to another
    refused([1.0, NAN], IntegerColumn(missing=False), "missing: false")
    refused(["1", ""], IntegerColumn(missing=False), "missing: false")
    assert numbers([1.0, NAN], IntegerColumn(missing={"learn": 0.1})) == pytest.approx([1.0, NAN], nan_ok=True)
    assert numbers(["1e2", "-.5", "+3"], RealColumn(missing=True)) == [100.0, -0.5, 3.0]
    assert numbers([200, -5], WHOLE) == [200.0, -5.0]  # outside the bounds is the encoder's business
    assert numbers(["inf", "1"], RealColumn(missing=("inf",))) == pytest.approx([NAN, 1.0], nan_ok=True)
    assert numbers(pd.Series([], dtype=object), WHOLE) == []
    assert numbers([None, None], WHOLE) == pytest.approx([NAN, NAN], nan_ok=True)


# -- dates and moments -------------------------------------------------------------------------------------------

DAY, MOMENT = DateColumn(missing=("none", "9999-12-31")), DatetimeColumn(missing=True)
PARIS = DatetimeColumn(missing=True, timezone="Europe/Paris")
NOON = dt.datetime(2020, 6, 1, 12, 30)

NOON_AND_NOTHING = {
    "nanoseconds": pd.Series(pd.to_datetime(["2020-06-01 12:30:00.999", None])),
    "seconds": pd.Series(np.array(["2020-06-01T12:30", "NaT"], dtype="datetime64[s]")),
    "datetimes": pd.Series([NOON, None], dtype=object),
    "timestamps": pd.Series([pd.Timestamp(NOON), pd.NaT], dtype=object),
    "numpy": pd.Series([np.datetime64("2020-06-01T12:30:00.5"), None], dtype=object),
    "text": pd.Series(["2020-06-01T12:30:00", ""]),
    "text with a space": pd.Series([" 2020-06-01 12:30 ", "NaT"]),
    "text with fractions": pd.Series(["2020-06-01T12:30:00.123456789", None], dtype="string"),
    "categories": pd.Series(pd.Categorical(["2020-06-01T12:30:00", None])),
    "arrow": arrow([NOON, None], pa.timestamp("us")),
    "arrow text": arrow(["2020-06-01T12:30:00", None], pa.string()),
}


@pytest.mark.parametrize("raw", NOON_AND_NOTHING.values(), ids=NOON_AND_NOTHING)
def test_noon_and_nothing(raw: pd.Series) -> None:
    assert moments(raw, MOMENT) == ["2020-06-01T12:30:00", "NaT"]
    assert moments(raw, PARIS) == ["2020-06-01T12:30:00", "NaT"]  # without an offset: in the column's own zone
    assert moments(raw.set_axis([7, 8]), DAY) == ["2020-06-01T00:00:00", "NaT"]


LATE = dt.datetime(2020, 6, 1, 22, 30, tzinfo=dt.UTC)
LATE_IN_UTC = {
    "zone": pd.Series(pd.to_datetime(["2020-06-01T22:30:00", None])).dt.tz_localize("UTC"),
    "other zone": pd.Series(pd.to_datetime(["2020-06-01T18:30:00", None])).dt.tz_localize("America/New_York"),
    "aware": pd.Series([LATE, None], dtype=object),
    "text": pd.Series(["2020-06-01T22:30:00Z", None]),
    "offset": pd.Series(["2020-06-01 18:30-0400", None]),
    "short offset": pd.Series(["2020-06-01T23:30:00+01", None]),
    "arrow": arrow([LATE, None], pa.timestamp("ms", "UTC")),
    "arrow zone": arrow([LATE, None], pa.timestamp("s", "Asia/Kolkata")),
}


@pytest.mark.parametrize("raw", LATE_IN_UTC.values(), ids=LATE_IN_UTC)
def test_offsets_are_understood(raw: pd.Series) -> None:
    assert moments(raw, MOMENT) == ["2020-06-01T22:30:00", "NaT"]  # no zone declared: UTC
    assert moments(raw, PARIS) == ["2020-06-02T00:30:00", "NaT"]


def test_a_day_is_the_one_that_is_written() -> None:
    assert moments(["2020-06-01T23:30:00-05:00"], DAY) == ["2020-06-01T00:00:00"]
    assert moments(pd.Series(pd.to_datetime(["2020-06-01T23:30"])).dt.tz_localize("America/New_York"), DAY) == [
        "2020-06-01T00:00:00"
    ]
    for raw in (pd.Series([dt.date(2020, 6, 1), None]), arrow([dt.date(2020, 6, 1), None], pa.date32())):
        assert moments(raw, DAY) == ["2020-06-01T00:00:00", "NaT"]
    assert moments(arrow([dt.date(2020, 6, 1), None], pa.date64()), DAY) == ["2020-06-01T00:00:00", "NaT"]


def test_text_with_and_without_offsets_in_one_column() -> None:
    assert moments(["2020-06-01T12:00:00", "2020-06-01T12:00:00Z", ""], PARIS) == [
        *("2020-06-01T12:00:00", "2020-06-01T14:00:00", "NaT"),
    ]


def test_codes_for_missing_dates_and_far_years() -> None:
    assert moments(["9999-12-31", "none", "0001-01-01", "9999-12-30"], DAY) == [
        *("NaT", "NaT", "0001-01-01T00:00:00", "9999-12-30T00:00:00"),
    ]
    raw = pd.Series(np.array(["9999-12-31", "2020-01-01"], dtype="datetime64[s]"))
    assert moments(raw, DAY) == ["NaT", "2020-01-01T00:00:00"]


NO_MOMENTS = {
    "words": ["s3cr3t"],
    "another order": ["31/01/2020"],
    "no such day": ["2020-02-30"],
    "no such hour": ["2020-01-01T25:00"],
    "a year": ["2020"],
    "digits": ["20200131"],
    "a day with a zone": ["2020-01-31Z"],
    "numbers": [1_600_000_000],
    "floats": [1.5],
    "truth": [True],
    "differences": pd.to_timedelta(["1D"]),
    "times": [dt.time(12, 30)],
    "lists": [[1]],
    "periods": pd.period_range("2020", periods=1, freq="D"),
    "arrow times": arrow([dt.time(12, 30)], pa.time64("us")),
}


@pytest.mark.parametrize("raw", NO_MOMENTS.values(), ids=NO_MOMENTS)
def test_what_is_no_moment_is_refused(raw: Any) -> None:
    refused(raw, DAY, "no date")
    refused(raw, MOMENT, "no datetime")


def test_a_missing_date_where_none_may_be() -> None:
    refused(["2020-01-01", ""], DateColumn(missing=False), "missing: false")


# -- discrete values ---------------------------------------------------------------------------------------------

WORDS = CategoryColumn(values=("a", "b"), missing=("?",))

WORDS_AND_NOTHING = {
    "text": pd.Series(["b", "a", "?"]),
    "spaces": pd.Series([" b", "a ", "  "]),
    "objects": pd.Series(["b", "a", None], dtype=object),
    "string": pd.Series(["b", "a", None], dtype="string"),
    "categories": pd.Series(
        pd.Categorical(["b", "a", None], categories=["z", "a", "b"])[:3].remove_unused_categories()
    ),
    "arrow": arrow(["b", "a", None], pa.string()),
    "arrow dictionary": arrow(["b", "a", None], pa.dictionary(pa.int8(), pa.string())),
}


@pytest.mark.parametrize("raw", WORDS_AND_NOTHING.values(), ids=WORDS_AND_NOTHING)
def test_words_and_nothing(raw: pd.Series) -> None:
    assert labels(raw.set_axis([4, 5, 6]), WORDS) == ["b", "a", None]


NUMBERED = CategoryColumn(values=(1, 2, 3), missing=("-9",))


@pytest.mark.parametrize(
    "raw",
    [
        pd.Series([1, 3, -9]),
        pd.Series([1.0, 3.0, NAN]),
        pd.Series(["1", "3.0", "-9.0"]),
        pd.Series(["01", "3", ""]),
        pd.Series([1, 3, None], dtype="Int8"),
        pd.Series([decimal.Decimal("1.0"), 3, None]),
        arrow([1, 3, None], pa.int64()),
        arrow([decimal.Decimal("1"), decimal.Decimal("3"), None], pa.decimal128(3, 1)),
        pd.Series(np.array([1, 3, NAN], dtype="float32")),
    ],
)
def test_numbered_categories_in_every_spelling(raw: pd.Series) -> None:
    assert labels(raw, NUMBERED) == ["1", "3", None]


def test_text_categories_are_taken_as_they_are_spelled() -> None:
    column = CategoryColumn(values=("1", "01"), missing=False)
    assert labels(["01", "1"], column) == ["01", "1"]
    refused(["1.0"], column, "outside")


def test_what_is_not_in_the_list() -> None:
    refused(["a", "s3cr3t"], WORDS, "outside the schema's list")
    refused(["a", "s3cr3t"], OrdinalColumn(values=("a", "b"), missing=True), "outside")
    open_ended = CategoryColumn(values=("a",), other="Other", missing=True)
    assert labels(["a", "s3cr3t", "Other", None], open_ended) == ["a", "Other", "Other", None]
    to_learn = CategoryColumn(values={"learn": 0.1}, other="Other", missing=True)
    assert labels(["b", "a", None, "b"], to_learn) == ["b", "a", None, "b"]
    read = canonical(pd.Series(["b", "a"]), to_learn, "x")
    assert read.cat.categories.tolist() == ["a", "b"]
    refused(["a\0b"], to_learn, "NUL")
    refused([["a"]], to_learn, "no category")
    refused([{"a": 1}], to_learn, "no category")
    refused([b"s3cr3t"], to_learn, "no category")
    refused(["a", None], CategoryColumn(values=("a",), missing=False), "missing: false")


def test_declared_values_keep_their_order() -> None:
    read = canonical(pd.Series(["b"]), OrdinalColumn(values=("z", "b", "a"), missing=True), "x")
    assert read.cat.categories.tolist() == ["z", "b", "a"]


@pytest.mark.parametrize(
    "raw",
    [
        pd.Series([True, False, None], dtype="boolean"),
        pd.Series([True, False, None], dtype=object),
        pd.Series([1, 0, None], dtype="Int64"),
        pd.Series([1.0, 0.0, NAN]),
        pd.Series(["true", "FALSE", ""]),
        pd.Series(["Yes", "no", None]),
        pd.Series(["T", "f", "?"]),
        pd.Series(["1.0", "0", "?"]),
        arrow([True, False, None], pa.bool_()),
        pd.Series(pd.Categorical([True, False, None])),
    ],
)
def test_truth_in_every_spelling(raw: pd.Series) -> None:
    assert labels(raw, BooleanColumn(missing=("?",))) == ["true", "false", None]


def test_what_is_no_truth() -> None:
    for raw in (["s3cr3t"], [2], [0.5], pd.to_datetime(["2020-01-01"]), ["?"], [[True]]):
        refused(raw, BooleanColumn(missing=True), "no boolean")


@pytest.mark.exhaustive
def test_a_million_distinct_values() -> None:
    """More values than any schema lists: placed in other where there is one, else refused without listing them."""
    raw = pd.Series(np.arange(1_000_000)).astype(str)
    read = canonical(raw, CategoryColumn(values=("7",), other="Other", missing=False), "x")
    assert read.cat.codes.value_counts().to_dict() == {1: 999_999, 0: 1}
    refused(raw, CategoryColumn(values=("7",), missing=False), "outside")


# -- frames ------------------------------------------------------------------------------------------------------

UNITS = Schema.parse(
    """
doublure: 1
kind: table
unit: {name: person, id: who, max_records: 2}
units: 9
columns:
  who: {type: id, missing: ["?"]}
  row: {type: integer, bounds: [0, 99], missing: false}
"""
)


def test_each_unit_keeps_its_first_records() -> None:
    frame = pd.DataFrame({"who": list("abacaab"), "row": range(7)}, index=range(10, 17))
    table = open_table(frame).load(UNITS)
    assert table.frame["row"].tolist() == [0, 1, 2, 3, 6]
    assert table.unit.tolist() == [0, 1, 0, 2, 1]
    assert table.n_units == 3
    assert list(table.frame.columns) == ["row"]
    assert table.unit.dtype == np.int64


@pytest.mark.parametrize(
    "ids",
    [
        [1, 1.0, "1", " 1 ", 2],
        pd.Series([1, 1, 1, 1, 2], dtype="Int64"),
        arrow(["1", "1", "1", "1", "2"], pa.string()),
        pd.Categorical(["1", "1", "1", "1", "2"]),
    ],
)
def test_one_unit_however_it_is_spelled(ids: Any) -> None:
    table = open_table(pd.DataFrame({"who": ids, "row": range(5)})).load(UNITS)
    assert table.n_units == 2
    assert table.frame["row"].tolist() == [0, 1, 4]


@pytest.mark.parametrize("hole", [None, NAN, "", "  ", "?", pd.NaT])
def test_a_record_without_a_unit_is_refused(hole: object) -> None:
    with pytest.raises(DataError, match="who: has records that name no unit"):
        open_table(pd.DataFrame({"who": ["a", hole, "b"], "row": range(3)})).load(UNITS)


def test_ids_that_cannot_be_compared_are_refused() -> None:
    with pytest.raises(DataError, match="who: has cells that are no id"):
        open_table(pd.DataFrame({"who": [[1], [2]], "row": range(2)})).load(UNITS)


def test_large_ids_are_not_rounded() -> None:
    frame = pd.DataFrame({"who": [2**60, 2**60 + 1], "row": range(2)})
    assert open_table(frame).load(UNITS).n_units == 2


PLAIN = Schema.parse(
    "doublure: 1\nkind: table\nunits: 9\ncolumns: {'0': {type: integer, bounds: [0, 9], missing: false}}"
)


def test_names_of_a_frame_are_text() -> None:
    assert open_table(pd.DataFrame({0: [1, 2]})).load(PLAIN).n_units == 2
    assert open_table(pd.DataFrame({" 0 ": [1, 2]})).load(PLAIN).n_units == 2
    with pytest.raises(DataError, match="more than once"):
        open_table(pd.DataFrame({0: [1, 2], "0": [1, 2]})).load(PLAIN)


@pytest.mark.parametrize(
    "frame", [pd.DataFrame(), pd.DataFrame({"a": [1, 2]}), pd.DataFrame({"0": []}), pd.DataFrame({"0": [1]})]
)
def test_frames_with_too_little(frame: pd.DataFrame) -> None:
    with pytest.raises(DataError):
        open_table(frame).load(PLAIN)


def test_the_frame_is_left_alone() -> None:
    frame = pd.DataFrame({"0": ["1", "2"]})
    kept = frame.copy()
    open_table(frame).load(PLAIN)
    pd.testing.assert_frame_equal(frame, kept)
