"""A cell is read by itself, whatever stands beside it and in whatever order."""

from __future__ import annotations

import datetime as dt
import decimal
import fractions
import io
import random
import uuid
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from planting import plant
from tiers import examples

from doublure.data.series import open_series
from doublure.data.tables.cells import canonical, unit_ids
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
    missing_kinds,
)
from doublure.schema.distinct_cells import distinct
from doublure.schema.missing_states import hole_states

UTC, EAST = dt.UTC, dt.timezone(dt.timedelta(hours=2))
LATE = dt.datetime(2001, 1, 1, 23, tzinfo=UTC)
MISSING = [
    None, float("nan"), np.float64("nan"), pd.NaT, pd.NA, decimal.Decimal("NaN"), decimal.Decimal("sNaN"),
    np.datetime64("NaT"), np.datetime64("NaT", "s"), "", " ", "?",
]  # fmt: skip
NUMBERS = [
    True, False, np.True_, 0, 1, 2, -1, 7, 1.0, 2.0, 2.5, 0.0, -0.0, float("inf"), float("-inf"), np.int64(1),
    np.uint8(2), np.float32(0.1), np.float64(1.0), np.longdouble(1), decimal.Decimal(1), decimal.Decimal("1.00"),
    decimal.Decimal("2.5"), decimal.Decimal("1E+400"), fractions.Fraction(1), fractions.Fraction(1, 3), 2**53,
    2**53 + 1, 2**63, 2**70, -(2**70), 10**400, -(10**5000), 1 + 0j, complex(1, -0.0), np.complex64(1),
]  # fmt: skip
TEXTS = [
    "1", "01", "1.0", " 1 ", "1e0", "+1", "0", "2", "7", "true", "True", "YES", "no", "a", "b", "x", "rest", "NaN",
    "nan", "NaT", "1_0", "0x1", "9007199254740993", "0.1", "1e999", "-inf", "a\0b", "a\0", "\ud800", "é", "e\u0301",
    np.str_("1"), np.str_("a"),
]  # fmt: skip
MOMENTS = [
    dt.date(2001, 1, 1), dt.date.max, dt.date.min, dt.datetime(2001, 1, 1), dt.datetime(2001, 1, 1, 23), LATE,
    LATE.astimezone(EAST), dt.datetime.max, dt.datetime.max.replace(tzinfo=UTC), dt.datetime.min.replace(tzinfo=EAST),
    pd.Timestamp(LATE), pd.Timestamp(LATE).tz_convert("Asia/Tokyo"), pd.Timestamp("2001-01-01"),
    pd.Timestamp(np.datetime64("20000-01-01", "s")), np.datetime64("2001-01-01"), np.datetime64("2001-01-01T00:00"),
    np.datetime64("20000-01-01"), np.datetime64(2**62, "D"), "2001-01-01", "2001-01-01T23:00:00Z",
    "2001-01-02T01:00+02",
    "2001-02-30", "0000-01-01", "9999-12-31T23:59:59Z", "2001-01-01T24:00", dt.time(1), dt.timedelta(1),
    pd.Timedelta(1), pd.Period("2001"), pd.Interval(0, 1),
]  # fmt: skip
NO_CELLS = [b"1", bytearray(b"1"), [1], ["a"], {"a": 1}, (1,), {1}, np.array([1]), uuid.UUID(int=1), Ellipsis, int]
CELLS: list[Any] = [*MISSING, *NUMBERS, *TEXTS, *MOMENTS, *NO_CELLS]

COLUMNS: dict[str, Column] = {
    "listed": CategoryColumn(values=(1, 2, "a"), missing=("?",)),
    "numbered": CategoryColumn(values=(1, 2, 3), missing=False),
    "with a rest": CategoryColumn(values=("1", "a", "2001-01-01"), other="rest", missing=False),
    "truths listed": CategoryColumn(values=(True, "x"), other="rest", missing=True),
    "to learn": CategoryColumn(values={"learn": 0.1}, other="rest", missing={"learn": 0.1}),
    "to learn, all there": CategoryColumn(values={"learn": 0.1}, other="rest", missing=False),
    "ordered": OrdinalColumn(values=("b", "a"), missing=False),
    "truth": BooleanColumn(missing=True),
    "truth, all there": BooleanColumn(missing=False),
    "whole": IntegerColumn(bounds=(0, 5), missing=("?", "7")),
    "whole, all there": IntegerColumn(bounds=(-2, 5), missing=False),
    "whole, to learn": IntegerColumn(bounds={"learn": 0.1}, missing=False),
    "real": RealColumn(bounds=(-1.0, 1e20), missing=True),
    "real, to learn": RealColumn(bounds={"learn": 0.1}, missing={"learn": 0.1}),
    "day": DateColumn(bounds=(dt.date(2000, 1, 1), dt.date(2010, 1, 1)), missing=True),
    "day, all there": DateColumn(bounds=(dt.date(2000, 1, 1), dt.date(2010, 1, 1)), missing=False),
    "day, to learn": DateColumn(bounds={"learn": 0.1}, missing=True),
    "moment": DatetimeColumn(
        bounds=(dt.datetime(2000, 1, 1), dt.datetime(2010, 1, 1)), missing=False, timezone="Europe/Paris"
    ),
    "moment, to learn": DatetimeColumn(bounds={"learn": 0.1}, missing=("?",)),
    "listed, two kinds": CategoryColumn(values=("1", "a"), other="rest", missing=("?", "x")),
    "to learn, two kinds": CategoryColumn(values={"learn": 0.1}, other="rest", missing=("?", "7")),
    "truth, two kinds": BooleanColumn(missing=("?", "x")),
    "day, two kinds": DateColumn(bounds=(dt.date(2000, 1, 1), dt.date(2010, 1, 1)), missing=("?", "2001-01-01")),
    "real, two kinds": RealColumn(bounds=(-1.0, 9.0), missing=("a", "2.5", "1e999")),
}


def objects(cells: list[Any]) -> pd.Series[Any]:
    """Return cells as they are, in a column of objects."""
    column = np.empty(len(cells), dtype=object)
    for place, cell in enumerate(cells):
        column[place] = cell
    return pd.Series(column, dtype=object)


def reading(column: pd.Series[Any]) -> list[str]:
    """Return what each cell of a canonical column is, as a text that tells all digits and the sign of zero."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        return [f"value {cell}" if isinstance(cell, str) else "missing" for cell in column.astype(object)]
    cells = column.to_numpy()
    states = hole_states(cells) if cells.dtype == np.float64 else np.zeros(len(cells), dtype=int)
    return [f"missing {state}" if pd.isna(cell) else repr(cell) for cell, state in zip(cells, states, strict=True)]


def alone(cell: Any, column: Column, misfit: str) -> str | None:
    """Return how a cell reads that nothing stands beside; None where it is refused."""
    try:
        return reading(canonical(objects([cell]), column, "x", misfit))[0]
    except DataError:
        return None


# -- objects -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", COLUMNS)
def test_coerced_cells_read_the_same_in_any_company(name):
    column = COLUMNS[name]
    expected = [alone(cell, column, "coerce") for cell in CELLS]
    assert None not in expected
    for seed in range(12):
        order = random.Random(seed).sample(range(len(CELLS)), len(CELLS) if seed % 2 else 9)
        company = canonical(objects([CELLS[place] for place in order]), column, "x", "coerce")
        assert reading(company) == [expected[place] for place in order]


@pytest.mark.parametrize("name", COLUMNS)
def test_cells_are_refused_or_read_by_themselves(name):
    column = COLUMNS[name]
    expected = [alone(cell, column, "refuse") for cell in CELLS]
    fit = [place for place, read in enumerate(expected) if read is not None]
    assert len(fit) >= 3
    for seed in range(12):
        order = random.Random(seed).sample(fit, len(fit) if seed % 2 else 3)
        company = canonical(objects([CELLS[place] for place in order]), column, "x")
        assert reading(company) == [expected[place] for place in order]
    for place in set(range(len(CELLS))) - set(fit):
        with pytest.raises(DataError):
            canonical(objects([CELLS[fit[0]], CELLS[place], CELLS[fit[1]]]), column, "x")


@pytest.mark.parametrize(
    "edit",
    [
        ("(_state(cell, known) for cell in uniques)", "(_state(uniques[0], known) for cell in uniques)"),
        ("(_state(cell, known) for cell in uniques)", "(_state(cell, known) * len(uniques) for cell in uniques)"),
    ],
)
def test_a_kind_that_hangs_on_other_cells_is_caught(monkeypatch, edit):
    plant(monkeypatch, missing_kinds, "read_states", edit)
    with pytest.raises(AssertionError):
        test_coerced_cells_read_the_same_in_any_company("real, two kinds")


class Raising:
    """A foreign object: its own methods raise what they like, and say what they like."""

    def __str__(self):
        raise RuntimeError("private")

    __array__ = __float__ = __str__


class RaisingText(str):
    """A text that is none."""

    def strip(self, *_):
        raise RuntimeError("private")

    __str__ = strip


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("cell", [Raising(), RaisingText("1")])
def test_an_object_that_raises_anything_is_a_misfit(name, cell):
    column = COLUMNS[name]
    around = [alone(each, column, "coerce") for each in ("1", 2)]
    read = reading(canonical(objects(["1", cell, 2]), column, "x", "coerce"))
    assert [read[0], read[2]] == around
    with pytest.raises(DataError) as refused:
        canonical(objects([cell]), column, "x")
    assert "private" not in str(refused.value)
    ids = unit_ids(objects(["a", cell]), "x", misfit="coerce")
    assert ids.tolist() == ["a", None]


@given(
    kept=st.lists(st.sampled_from(range(len(CELLS))), max_size=8), one=st.sampled_from(range(len(CELLS))), at=st.data()
)
@examples(60)
def test_one_record_changes_no_other_in_a_data_frame(kept, one, at):
    columns = "".join(f"  {name!r}: {text}\n" for name, text in TEXTS_OF_COLUMNS.items())
    schema = Schema.parse(f"doublure: 1\nkind: table\nunits: 9\nmisfit: coerce\ncolumns:\n{columns}")
    place = at.draw(st.integers(0, len(kept)))

    def read(places: list[int]) -> list[list[str]]:
        frame = pd.DataFrame({name: objects([CELLS[each] for each in places]) for name in TEXTS_OF_COLUMNS})
        loaded = open_table(frame).load(schema, at_least=0).frame
        return [reading(loaded[name]) for name in TEXTS_OF_COLUMNS]

    more = read([*kept[:place], one, *kept[place:]])
    assert [[*column[:place], *column[place + 1 :]] for column in more] == read(kept)


TEXTS_OF_COLUMNS = {
    "listed": "{type: category, values: [1, 2, a], other: rest, missing: true}",
    "to learn": "{type: category, values: {learn: 0.1}, other: rest, missing: true}",
    "truth": "{type: boolean, missing: false}",
    "whole": "{type: integer, bounds: [0, 9], missing: true}",
    "kinds": "{type: integer, bounds: [0, 5], missing: [7, '?', x]}",
    "kinds listed": "{type: category, values: [1, 2, a], other: rest, missing: ['?', x]}",
    "real": "{type: real, bounds: {learn: 0.1}, missing: true}",
    "day": "{type: date, bounds: [2000-01-01, 2020-01-01], missing: true}",
    "moment": "{type: datetime, bounds: {learn: 0.1}, missing: true}",
}


@pytest.mark.parametrize(
    "column",
    [IntegerColumn(bounds=(0, 9), missing=True), BooleanColumn(missing=True), CategoryColumn(values=("a",), other="b")],
    ids=lambda column: column.type,
)
def test_a_moment_beyond_every_calendar_keeps_no_other_from_being_read(column):
    """Of a zone's moments pandas lists none, where one is of no year that Python knows (rule 17)."""
    moments = pa.array([0, None, 2**63 - 1], pa.int64()).view(pa.timestamp("s", "Europe/Berlin")).to_pandas()
    for raw in (moments, moments.astype("category")):
        together = canonical(raw, column, "x", "coerce").astype(object)
        for row in range(len(raw)):
            alone = canonical(raw[row : row + 1].reset_index(drop=True), column, "x", "coerce").astype(object)
            assert alone.equals(together[row : row + 1].reset_index(drop=True))
        assert unit_ids(raw, "x", misfit="coerce").notna().tolist() == [True, False, False]
        with pytest.raises(DataError, match="x: has "):
            unit_ids(raw, "x")


def test_ids_are_read_by_themselves():
    expected = [unit_ids(objects([cell]), "x", ("", "?"), "coerce")[0] for cell in CELLS]
    assert expected.count(None) > len(MISSING)
    for seed in range(12):
        order = random.Random(seed).sample(range(len(CELLS)), len(CELLS))
        found = unit_ids(objects([CELLS[place] for place in order]), "x", ("", "?"), "coerce")
        assert found.tolist() == [expected[place] for place in order]


def test_what_python_calls_equal_stays_apart():
    for ones in ([True, 1, 1.0], [decimal.Decimal("1.00"), 1], [LATE.astimezone(EAST), LATE]):
        for order in (ones, ones[::-1]):
            codes, uniques = distinct(objects([*order, *order]))
            assert len({*codes}) >= len(ones)
            assert [type(uniques[code]) for code in codes] == [type(cell) for cell in order * 2]
    days = canonical(objects([LATE.astimezone(EAST), LATE, LATE]), COLUMNS["day"], "x")
    assert reading(days) == [repr(np.datetime64(f"2001-01-0{day}T00:00:00")) for day in (2, 1, 1)]
    learned = canonical(objects([True, 1, 1, 1.0]), COLUMNS["to learn"], "x")
    assert reading(learned) == ["value true", "value 1", "value 1", "value 1"]


def test_equal_texts_are_still_read_once():
    codes, uniques = distinct(objects(["a", "b", None, "a", 1, 1]))
    assert codes.tolist() == [0, 1, -1, 0, 2, 2]
    assert uniques == ["a", "b", 1]


# -- typed containers --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in COLUMNS if "day" not in name and "moment" not in name])
def test_whole_numbers_read_alike_in_every_type_of_column(name):
    """One record that is missing makes a column of integers one of floats, or of objects."""
    plain = [0, 1, 2, 5]
    expected = [alone(cell, COLUMNS[name], "coerce") for cell in plain]
    containers = [np.int8, np.uint64, np.float32, np.float64, "Int64", "Float64", object, "category"]
    for kind in containers:
        assert reading(canonical(pd.Series(plain, dtype=kind), COLUMNS[name], "x", "coerce")) == expected, kind
    for more in (None, float("nan"), "x", 2.5, 2**70):
        assert reading(canonical(pd.Series([*plain, more]), COLUMNS[name], "x", "coerce"))[:-1] == expected, more


def test_digits_survive_a_missing_cell_in_parquet():
    large, column = 2**53 + 1, CategoryColumn(values={"learn": 0.1}, other="rest", missing=True)
    schema = Schema.parse(f"doublure: 1\nkind: table\nunits: 9\ncolumns:\n  x: {TEXTS_OF_COLUMNS['to learn']}\n")
    for rows in ([large, large], [large, large, None]):
        file = io.BytesIO()
        pq.write_table(pa.table({"x": pa.array(rows, pa.int64())}), file)
        batch = pq.read_table(io.BytesIO(file.getvalue())).column("x")
        held = pd.Series(pd.arrays.ArrowExtensionArray(batch))
        assert reading(canonical(held, column, "x"))[:2] == [f"value {large}"] * 2
        assert reading(open_table(pd.DataFrame({"x": held})).load(schema).frame["x"])[:2] == [f"value {large}"] * 2


@pytest.mark.parametrize("kind", ["text", "large", "coded", "view"])
def test_a_text_that_is_no_utf8_is_one_misfit(tmp_path, kind):
    """Arrow takes such bytes unseen, and refuses all texts of a column for one of them."""
    columns = "".join(f"  {name!r}: {text}\n" for name, text in TEXTS_OF_COLUMNS.items())
    schema = Schema.parse(f"doublure: 1\nkind: table\nunits: 9\nmisfit: coerce\ncolumns:\n{columns}")
    cells = [b"1", b"\xff", b"2001-01-01", b"a\xc3", b"\xc3\xa9"]

    def texts(cells: list[bytes]) -> Any:
        plain = pa.array(cells, pa.large_binary() if kind == "large" else pa.binary())
        if kind == "view":
            return plain.cast(pa.binary_view()).view(pa.string_view())
        found = pa.Array.from_buffers(
            pa.large_string() if kind == "large" else pa.string(), len(plain), plain.buffers()
        )
        return pa.DictionaryArray.from_arrays(range(len(cells)), found) if kind == "coded" else found

    def read(cells: list[Any], form: str) -> list[list[str]]:
        table = pa.table(dict.fromkeys(TEXTS_OF_COLUMNS, texts(cells)))
        given: Any = table
        if form == "file":
            pq.write_table(table, given := tmp_path / "x.parquet")
        elif form == "frame":
            held = {name: pd.arrays.ArrowExtensionArray(table[name]) for name in table.column_names}
            given = pd.DataFrame({name: pd.Series(column) for name, column in held.items()})
        loaded = open_table(given).load(schema, at_least=0).frame
        return [reading(loaded[name]) for name in TEXTS_OF_COLUMNS]

    for form in ("stream", *(["file", "frame"] if kind != "coded" else [])):  # of a coded column it is part of the type
        together = read(cells, form)
        for place, cell in enumerate(cells):
            assert [column[place] for column in together] == [column[0] for column in read([cell], form)]


def test_a_text_changes_no_other_in_csv(tmp_path):
    """Records are read block by block, each with a dictionary of its own."""
    texts = [text for text in TEXTS if "\0" not in text and text.isascii()]
    columns = "".join(f"  {name!r}: {text}\n" for name, text in TEXTS_OF_COLUMNS.items())
    schema = Schema.parse(f"doublure: 1\nkind: table\nunits: 9\nmisfit: coerce\ncolumns:\n{columns}")

    def read(rows: list[str]) -> list[list[str]]:
        lines = [",".join(TEXTS_OF_COLUMNS), *(",".join([text] * len(TEXTS_OF_COLUMNS)) for text in rows)]
        (tmp_path / "data.csv").write_text("\n".join(lines) + "\n")
        loaded = open_table(tmp_path / "data.csv").load(schema, at_least=0).frame
        return [reading(loaded[name]) for name in TEXTS_OF_COLUMNS]

    expected = read(texts)
    for place in range(len(texts)):
        without = read([*texts[:place], *texts[place + 1 :]])
        assert without == [[*column[:place], *column[place + 1 :]] for column in expected]


# -- lists in mappings -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("one", [True, 1, "1", 2.5, None, float("nan"), "a", 2**70, LATE])
def test_one_cell_of_a_list_changes_no_other(one):
    """Of [True, 2] numpy makes two numbers, of [1, "a"] two texts."""
    from doublure.data.images import open_images

    images = Schema.parse(
        "doublure: 1\nkind: images\nunits: 9\nmisfit: coerce\nimages: {shape: [4, 4, 1]}\n"
        'label: {values: [1, 2, "true"], other: rest}\nunit: {name: person, id: who}\n'
    )
    series = Schema.parse(
        "doublure: 1\nkind: series\nunits: 9\nmisfit: coerce\nseries: {length: 2, gaps: missing}\n"
        "channels: {a: {type: integer, bounds: [0, 9], missing: true}}\n"
        'attributes: {b: {type: category, values: [1, 2, "true"], other: rest, missing: false}}\n'
    )

    def read(more: list[Any]) -> list[Any]:
        labels = [1, 2, True, "a", *more]
        given = {
            "images": np.zeros((len(labels), 4, 4), np.uint8),
            "labels": labels,
            "who": [*"pqrs", *"t" * len(more)],
        }
        pictures = open_images(given).load(images, at_least=0)
        steps = open_series({"a": [[1, 2], [True, 2], [0, None], [3, 2.0], *([each, 1] for each in more)], "b": labels})
        found = steps.load(series, at_least=0)
        values = [[repr(step) for step in each] for each in found.content.values[:4, :, 0].tolist()]
        return [reading(pictures.frame["label"])[:4], values, reading(found.frame["b"])[:4]]

    assert read([]) == read([one]) == read([one, one])
    assert read([])[0] == ["value 1", "value 2", "value true", "value rest"]


@pytest.mark.parametrize("container", ["text", "decimal", "int64"])
def test_whole_numbers_beyond_2_to_the_53_are_never_one(container: str) -> None:
    """As float64, 9007199254740993 is 9007199254740992: a list of codes would take one for the other."""
    listed, near = 2**53, 2**53 + 1
    schema = Schema.parse(
        f"doublure: 1\nkind: table\nunits: 9\ncolumns: {{a: {{type: category, values: [{listed}, 7], missing: false}}}}"
    )
    cells = {
        "text": pd.Series([f"{listed}.0", str(near)]),
        "decimal": pd.Series([decimal.Decimal(listed), decimal.Decimal(near)], dtype=object),
        "int64": pd.Series([listed, near]),
    }[container]
    assert list(canonical(cells[:1], schema.columns["a"], "a")) == [str(listed)]
    with pytest.raises(DataError, match="values outside the schema's list"):
        canonical(cells[1:].reset_index(drop=True), schema.columns["a"], "a")
