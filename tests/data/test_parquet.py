"""Parquet: every type that Arrow stores, damage of every kind, and what pandas writes beside the data."""

from __future__ import annotations

import datetime as dt
import decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from doublure.data.tables import opening as tables
from doublure.data.tables.opening import Table, open_table
from doublure.errors import DataError
from doublure.schema import Schema


def schema(**columns: str) -> Schema:
    text = "\n".join(f"  {name}: {column}" for name, column in columns.items())
    return Schema.parse(f"doublure: 1\nkind: table\nunits: 9\ncolumns:\n{text}\n")


def load(path: Path, columns: dict[str, pa.Array], wanted: Schema) -> Table:
    pq.write_table(pa.table(columns), path)
    return open_table(path).load(wanted)


NUMBER = "{type: real, bounds: [0, 9], missing: true}"
DAY = "{type: date, bounds: [1900-01-01, 2100-01-01], missing: true}"
MOMENT = "{type: datetime, bounds: [1900-01-01, 2100-01-01], missing: true}"
WORD = "{type: category, values: {learn: 1}, other: Other, missing: true}"
NOON = dt.datetime(2020, 6, 1, 12)

STORED: list[tuple[str, str, pa.Array, list[object]]] = [
    *[
        (str(kind), NUMBER, pa.array([1, None], kind), [1.0, None])
        for kind in (pa.int8(), pa.int64(), pa.uint8(), pa.uint64())
    ],
    *[(str(kind), NUMBER, pa.array([1.0, None], kind), [1.0, None]) for kind in (pa.float32(), pa.float64())],
    ("half", NUMBER, pa.array(np.array([1.0, 2.0], "float16")), [1.0, 2.0]),
    ("decimal128", NUMBER, pa.array([decimal.Decimal("1.50"), None], pa.decimal128(5, 2)), [1.5, None]),
    ("decimal256", NUMBER, pa.array([decimal.Decimal("1.50"), None], pa.decimal256(50, 2)), [1.5, None]),
    ("text number", NUMBER, pa.array(["1.5", None]), [1.5, None]),
    ("dictionary number", NUMBER, pa.array(["1.5", None]).dictionary_encode(), [1.5, None]),
    ("nothing", NUMBER, pa.nulls(2), [None, None]),
    ("date32", DAY, pa.array([NOON.date(), None], pa.date32()), ["2020-06-01T00:00:00", None]),
    ("date64", DAY, pa.array([NOON.date(), None], pa.date64()), ["2020-06-01T00:00:00", None]),
    *[
        (f"timestamp {unit}", MOMENT, pa.array([NOON, None], pa.timestamp(unit)), ["2020-06-01T12:00:00", None])
        for unit in ("ms", "us", "ns")
    ],
    (
        "timestamp zone",
        MOMENT,
        pa.array([NOON.replace(tzinfo=dt.UTC), None], pa.timestamp("us", "Europe/Paris")),
        ["2020-06-01T12:00:00", None],
    ),
    ("string", WORD, pa.array(["b", None]), ["b", None]),
    ("large string", WORD, pa.array(["b", None], pa.large_string()), ["b", None]),
    ("dictionary", WORD, pa.array(["b", None]).dictionary_encode(), ["b", None]),
    ("whole numbers as words", WORD, pa.array([2**60 + 1, None]), [str(2**60 + 1), None]),
    ("decimals as words", WORD, pa.array([decimal.Decimal("1.00"), None]), ["1", None]),
    ("truth as words", WORD, pa.array([True, None]), ["true", None]),
    ("truth", "{type: boolean, missing: true}", pa.array([True, None]), ["true", None]),
]


@pytest.mark.parametrize(
    ("column", "stored", "expected"), [case[1:] for case in STORED], ids=[case[0] for case in STORED]
)
def test_every_stored_type(tmp_path: Path, column: str, stored: pa.Array, expected: list[object]) -> None:
    read = load(tmp_path / "data.parquet", {"a": stored}, schema(a=column)).frame["a"]
    if read.dtype.kind == "M":
        found = [None if np.isnat(value) else str(value) for value in read.to_numpy()]
    else:
        found = [None if pd.isna(value) else value for value in read]
    assert found == expected


@pytest.mark.parametrize(
    "stored",
    [
        pa.array([[1], [2]]),
        pa.array([{"a": 1}, {"a": 2}]),
        pa.array([b"s3cr3t", b"x"]),
        pa.array([dt.time(12, 30), None]),
        pa.array([dt.timedelta(1), None]),
        pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int64())),
    ],
    ids=lambda stored: str(stored.type),
)
def test_types_that_no_column_holds(tmp_path: Path, stored: pa.Array) -> None:
    for column in (NUMBER, DAY, MOMENT, "{type: boolean, missing: true}"):
        with pytest.raises(DataError, match="a: has cells that are no") as caught:
            load(tmp_path / "data.parquet", {"a": stored}, schema(a=column))
        assert "s3cr3t" not in str(caught.value)


def test_only_wanted_columns_are_read(tmp_path: Path) -> None:
    odd = pa.array([{"b": [b"x"]}, None])
    table = load(
        tmp_path / "data.parquet", {"z": odd, "a": pa.array([1, 2]), "a.b": pa.array([3, 4])}, schema(a=NUMBER)
    )
    assert table.frame.to_dict("list") == {"a": [1.0, 2.0]}
    both = load(
        tmp_path / "data.parquet",
        {"a.b": pa.array([3, 4]), "a": pa.array([1, 2])},
        schema(**{"a": NUMBER, "a.b": NUMBER}),
    )
    assert both.frame.to_dict("list") == {"a": [1.0, 2.0], "a.b": [3.0, 4.0]}


def test_an_index_that_pandas_stored_is_a_column(tmp_path: Path) -> None:
    path = tmp_path / "data.parquet"
    pd.DataFrame({"a": ["5", "3"], "b": [3, 4]}).set_index("a").to_parquet(path)
    assert open_table(path).load(schema(a=NUMBER)).frame["a"].tolist() == [5.0, 3.0]


def test_chunks_equal_one_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = schema(a=NUMBER, b=WORD, c=MOMENT)
    rng = np.random.default_rng(0)
    columns = {
        "a": pa.array(rng.random(100)),
        "b": pa.array([None] * 60 + [f"w{number}" for number in rng.integers(0, 9, 40)]),
        "c": pa.array([NOON, None] * 50),
    }
    whole = load(tmp_path / "data.parquet", columns, wanted)
    monkeypatch.setattr(tables, "CHUNK_ROWS", 7)
    source = open_table(tmp_path / "data.parquet")
    assert sum(1 for _ in source.chunks(["a"])) == 15
    pd.testing.assert_frame_equal(source.load(wanted).frame, whole.frame)


def corrupt(data: bytes, how: str) -> bytes:
    middle = len(data) // 2
    return {
        "no footer": data[:-8],
        "cut off": data[:middle],
        "only magic": b"PAR1" + b"PAR1",
        "something else": b"age,job\n1,2\n",
        "long footer": data[:-8] + (2**31 - 1).to_bytes(4, "little") + b"PAR1",
        "no page": data[:4] + bytes(60) + data[64:],
    }[how]


@pytest.mark.parametrize("how", ["no footer", "cut off", "only magic", "something else", "long footer", "no page"])
def test_damaged_files_are_one_line(tmp_path: Path, how: str) -> None:
    path = tmp_path / "data.parquet"
    pq.write_table(pa.table({"a": np.random.default_rng(0).random(20_000)}), path)
    assert open_table(path).load(schema(a=NUMBER)).n_units == 20_000
    path.write_bytes(corrupt(path.read_bytes(), how))
    with pytest.raises(DataError) as caught:
        open_table(path).load(schema(a=NUMBER))
    assert "\n" not in str(caught.value)


def test_spaces_around_names_do_not_count(tmp_path: Path) -> None:
    assert load(tmp_path / "data.parquet", {" a ": pa.array([1, 2])}, schema(a=NUMBER)).n_units == 2


def test_header_faults(tmp_path: Path) -> None:
    path = tmp_path / "data.parquet"
    for columns, words in (({"b": pa.array([1])}, "a: is not a column"), ({"a": pa.array([1])}, "fewer than 2")):
        with pytest.raises(DataError, match=words):
            load(path, columns, schema(a=NUMBER))
    twice: Any = pa.Table.from_arrays([pa.array([1, 2]), pa.array([3, 4])], names=["a", "a"])
    pq.write_table(twice, path)
    with pytest.raises(DataError, match="more than once"):
        open_table(path).load(schema(a=NUMBER))


def bits(kind: pa.DataType, *numbers: int) -> pa.Array:
    """Return numbers as an array of a type that not all of them are values of."""
    width = {32: np.int32, 64: np.int64}[kind.bit_width]
    return pa.Array.from_buffers(kind, len(numbers), [None, pa.py_buffer(np.array(numbers, width).tobytes())])


def texts(*cells: bytes) -> pa.Array:
    ends = np.cumsum([0, *map(len, cells)]).astype(np.int32)
    return pa.Array.from_buffers(pa.string(), len(cells), [None, *map(pa.py_buffer, (ends.tobytes(), b"".join(cells)))])


FOREVER = 2**62
ODD_CELLS = {
    "seconds beyond a day": bits(pa.time32("s"), 5, 2 * 86_400),
    "microseconds beyond a day": bits(pa.time64("us"), 5, FOREVER),
    "nanoseconds": bits(pa.time64("ns"), 5000, 5),
    "a moment beyond the calendar": pa.StructArray.from_arrays([bits(pa.timestamp("us"), 5, FOREVER)], ["at"]),
    "a list of times": pa.ListArray.from_arrays(pa.array([0, 1, 2]), bits(pa.time64("us"), 5, FOREVER)),
    "a struct of texts": pa.StructArray.from_arrays([texts(b"b", b"\xff")], ["said"]),
    "a coded text": pa.DictionaryArray.from_arrays(pa.array([0, 1]), texts(b"b", b"\xff")),
    "a coded moment": pa.DictionaryArray.from_arrays(pa.array([0, 1]), bits(pa.timestamp("us"), 5, -(2**63))),
}


@pytest.mark.parametrize("stored", [*ODD_CELLS.values()], ids=[*ODD_CELLS])
@pytest.mark.parametrize("column", [NUMBER, DAY, WORD])
@pytest.mark.parametrize("form", ["parquet", "stream", "frame"])
def test_a_cell_that_python_has_not_is_coerced_alone(tmp_path: Path, column: str, stored: pa.Array, form: str) -> None:
    wanted = schema(a=column).model_copy(update={"misfit": "coerce"})

    def found(cells: pa.Array) -> list[str]:
        source: Any = pa.table({"a": cells})
        if form == "parquet":
            source = tmp_path / "data.parquet"
            try:
                pq.write_table(pa.table({"a": cells}), source)
            except pa.ArrowNotImplementedError:
                pytest.skip("no Parquet file holds it")
        elif form == "frame":
            source = pd.DataFrame({"a": pd.arrays.ArrowExtensionArray(pa.chunked_array([cells]))})
        return [repr(cell) for cell in open_table(source).load(wanted, at_least=0).frame["a"].astype(object)]

    assert found(stored) == [*found(stored.slice(0, 1)), *found(stored.slice(1, 1))]
