"""CSV as it is found: every compression, delimiter, quoting and encoding, and everything that goes wrong with them."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from doublure.data.tables import csv_records
from doublure.data.tables import opening as tables
from doublure.data.tables.opening import Table, open_table
from doublure.errors import DataError
from doublure.schema import Schema

SCHEMA = Schema.parse(
    """
doublure: 1
kind: table
multiline: true
units: 10
columns:
  age: {type: integer, bounds: [0, 120], missing: true}
  job: {type: category, values: [clerk, "a, b", "two\\nlines", é], missing: ["?"]}
"""
)
TEXT = 'age,job\n30,clerk\n40,"a, b"\n,"two\nlines"\n50,é\n60,?\n'


def zipped(*names: str) -> Callable[[bytes], bytes]:
    def pack(data: bytes) -> bytes:
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
            for name in names:
                archive.writestr(name, data)
        return buffer.getvalue()

    return pack


def zstd(data: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(data)
    return sink.getvalue().to_pybytes()


PACKERS = {
    ".csv": bytes,
    ".CSV": bytes,
    ".txt": bytes,
    ".csv.gz": gzip.compress,
    ".csv.bz2": bz2.compress,
    ".csv.xz": lzma.compress,
    ".csv.zst": zstd,
    ".csv.zip": zipped("inside.csv"),
}


def load(path: Path, data: bytes | str, schema: Schema = SCHEMA) -> Table:
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return open_table(path, schema.written).load(schema)


def refused(path: Path, data: bytes | str, schema: Schema = SCHEMA) -> DataError:
    with pytest.raises(DataError) as caught:
        load(path, data, schema)
    assert "\n" not in str(caught.value)
    assert "s3cr3t" not in str(caught.value)
    assert caught.value.remedy
    return caught.value


def assert_is_text(table: Table) -> None:
    assert table.frame["age"].tolist()[:2] == [30.0, 40.0]
    assert table.frame["age"].isna().tolist() == [False, False, True, False, False]
    assert table.frame["job"].astype(object).where(table.frame["job"].notna(), None).tolist() == [
        *("clerk", "a, b", "two\nlines", "é"),
        None,
    ]
    assert table.n_units == 5
    assert table.unit.tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("ending", PACKERS)
def test_every_compression(tmp_path: Path, ending: str) -> None:
    assert_is_text(load(tmp_path / f"data{ending}", PACKERS[ending](TEXT.encode())))


@pytest.mark.parametrize("ending", [".csv.gz", ".csv.bz2", ".csv.xz", ".csv.zst", ".csv.zip"])
def test_files_that_are_cut_off_or_something_else(tmp_path: Path, ending: str) -> None:
    long = TEXT.encode() + b"".join(f"{number % 99},clerk\n".encode() for number in range(50_000))
    whole = PACKERS[ending](long)
    assert load(tmp_path / f"whole{ending}", whole).n_units == 50_005
    for name, data in {"cut": whole[: len(whole) // 2], "tail": whole[:-3], "plain": TEXT.encode()}.items():
        assert "cannot be read as CSV" in str(refused(tmp_path / f"{name}{ending}", data))


def test_damage_in_the_middle(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    long = "age,job\n" + "".join(f"{number},clerk\n" for number in rng.integers(0, 120, 200_000))
    packed = bytearray(gzip.compress(long.encode()))
    packed[len(packed) // 2 : len(packed) // 2 + 64] = bytes(64)
    refused(tmp_path / "data.csv.gz", bytes(packed))


def test_an_archive_holds_one_file(tmp_path: Path) -> None:
    assert "several files" in str(refused(tmp_path / "data.csv.zip", zipped("a.csv", "b.csv")(TEXT.encode())))
    assert "several files" in str(refused(tmp_path / "none.csv.zip", zipped()(b"")))
    assert_is_text(load(tmp_path / "path.csv.zip", zipped("../../inside.csv")(TEXT.encode())))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data.csv.zip", "none.csv.zip", "path.csv.zip"]
    nameless = zipped("name")(TEXT.encode()).replace(b"name", b"\0ame")
    assert_is_text(load(tmp_path / "nameless.csv.zip", nameless))


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_every_delimiter(tmp_path: Path, delimiter: str) -> None:
    text = TEXT.replace(",", delimiter).replace(f"a{delimiter} b", "a, b")
    assert_is_text(load(tmp_path / "data.csv", text))


def test_the_delimiter_is_read_outside_quotes(tmp_path: Path) -> None:
    table = load(tmp_path / "data.csv", 'age,job,"x;y;z;w"\n30,clerk,1\n40,?,2\n')
    assert table.frame["age"].tolist() == [30.0, 40.0]


def test_carriage_returns_end_no_line(tmp_path: Path) -> None:
    assert "LF or CRLF" in str(refused(tmp_path / "data.csv", "age,job\r30,clerk\r40,?\r"))


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_every_line_end(tmp_path: Path, end: str) -> None:
    table = load(tmp_path / "data.csv", end.join(["age,job", "30,clerk", "40,?", ""]))
    assert table.frame["age"].tolist() == [30.0, 40.0]


def test_byte_order_mark_spaces_blank_lines_and_no_last_line_end(tmp_path: Path) -> None:
    table = load(tmp_path / "data.csv", "﻿ age , job \n 30 , clerk \n\n40, ?".encode())
    assert table.frame["age"].tolist() == [30.0, 40.0]
    assert table.frame["job"].tolist()[0] == "clerk"


def test_a_header_with_a_line_break(tmp_path: Path) -> None:
    table = load(tmp_path / "data.csv", 'age,"long\nname",job\n30,1,clerk\n40,2,?\n')
    assert table.frame["age"].tolist() == [30.0, 40.0]
    with pytest.raises(DataError, match="multiline: true"):
        open_table(tmp_path / "data.csv")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ("", "is empty"),
        ("\n\n", "no header line"),
        ("age,job", "fewer than 2"),
        ("age,job\n", "fewer than 2"),
        ("age,job\n30,clerk\n", "fewer than 2"),
        ("age\n30\n40\n", "job: is not a column"),
        ("age,job,age\n30,clerk,1\n40,clerk,2\n", "age: stands more than once"),
        (",,\n0,30,clerk\n1,40,clerk\n", "has no column name.*skip_rows"),
        ("age,job\n30,clerk\n40\n", "more or fewer fields"),
        ("age,job\n30,clerk\n40,clerk,s3cr3t\n", "more or fewer fields"),
        ('age,job\n30,clerk\n40,"s3cr3t\n' * 2, "fields|outside|not closed"),
        ("age,job\n30,s3cr3t\n40,clerk\n", "job: has values outside"),
        ("age,job\ns3cr3t,clerk\n40,clerk\n", "age: has cells that are no integer"),
        ('age,job\n"1,5",clerk\n40,clerk\n', "decimal point"),
        ("age,job\n1.5,clerk\n40,clerk\n", "no whole number"),
        ("age,job\ninf,clerk\n40,clerk\n", "infinite"),
        ("age,job\n1e999,clerk\n40,clerk\n", "infinite|no integer"),
        ("age,job\n30,s3cr3t\0\n40,clerk\n", "NUL"),
        ("age,job\n3\0,clerk\n40,clerk\n", "no integer"),
        ("age\0,job\n30,clerk\n40,clerk\n", "NUL"),
        (b"age,job\n30,s3cr3t\xe9\n40,clerk\n", "not UTF-8"),
        (b"age,job,\xe9\n30,clerk,1\n40,clerk,2\n", "not UTF-8"),
        (TEXT.encode("utf-16-le"), "NUL bytes"),
        (b"\x89PNG\r\n\x1a\n\0\0", "."),
        (b"age,job," + b"x" * 200_000 + b"\n30,clerk,1\n", "cannot be read"),
        (b'age,job,"' + b"x\n" * 3_000_000, "."),
    ],
)
def test_bad_csv_is_one_line(tmp_path: Path, data: bytes | str, words: str) -> None:
    import re

    assert re.search(words, str(refused(tmp_path / "data.csv", data)))


def test_a_record_that_does_not_fit_memory_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_records, "LONGEST_RECORD", 1_000)
    text = "age,job\n" + "1" * 5_000 + ",clerk\n40,clerk\n"
    line_by_line = Schema.parse(SCHEMA.to_yaml().replace("multiline: true\n", ""))
    assert "million bytes" in str(refused(tmp_path / "data.csv", text, line_by_line))
    assert "bytes" in str(refused(tmp_path / "data.csv", text))
    assert "not closed" in str(refused(tmp_path / "data.csv", text.replace("clerk", '"clerk')))


@pytest.mark.parametrize("name", ["none.csv", "folder.csv"])
def test_files_that_are_not_there(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(DataError, match="holds no file" if name == "folder.csv" else "no such file"):
        open_table(tmp_path / name)


@pytest.mark.parametrize("name", ["data.docx", "data", "data.gz", "data.parquet.gz", "data.xlsx.zip"])
def test_unknown_endings(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(TEXT)
    with pytest.raises(DataError, match=r"ending that names no table.*csv.*parquet.*doublure.files.*xlsx"):
        open_table(tmp_path / name)


@pytest.mark.parametrize(("name", "remedy"), [("a.duckdb", "duckdb:///"), ("a.sqlite", "export"), ("a.mdb", "export")])
def test_the_file_of_a_database_is_told(tmp_path: Path, name: str, remedy: str) -> None:
    (tmp_path / name).write_text(TEXT)
    with pytest.raises(DataError, match=f"{name}: is a database; .*{remedy}"):
        open_table(tmp_path / name)


@pytest.mark.parametrize("source", [None, 3, [1, 2], {"a": 1}, np.zeros(3)])
def test_other_sources(source: object) -> None:
    with pytest.raises(DataError, match="neither a path nor a DataFrame"):
        open_table(source)  # type: ignore[arg-type]


HOSTILE = ["<script>alert(1)</script>", "=cmd|' /C calc'!A0", "../../x", "__class__", "a b", "№"]


def test_hostile_names_are_only_names(tmp_path: Path) -> None:
    columns = {name: {"type": "integer", "bounds": [0, 9], "missing": False} for name in HOSTILE}
    schema = Schema.from_plain({"doublure": 1, "kind": "table", "units": 9, "columns": columns})
    path = tmp_path / "data.csv"
    pd.DataFrame({name: [1, 2] for name in HOSTILE}).to_csv(path, index=False)
    assert list(open_table(path).load(schema).frame.columns) == HOSTILE
    refusal = refused(path, path.read_text().replace("1,", "s3cr3t,"), schema)
    assert str(refusal).startswith("<script>")


def test_names_that_could_deceive_are_ignored_or_escaped(tmp_path: Path) -> None:
    data = "age,job,\u202eevil,x\u0007y\n30,clerk,1,2\n40,?,3,4\n"
    assert load(tmp_path / "data.csv", data).n_units == 2
    source = open_table(tmp_path / "data.csv")
    assert source.columns == ["age", "job", "\u202eevil", "x\u0007y"]


@pytest.mark.parametrize(("block_bytes", "chunk_rows"), [(200, 200_000), (16_000_000, 7), (500, 3)])
def test_chunks_equal_one_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block_bytes: int, chunk_rows: int
) -> None:
    schema = Schema.parse(
        """
doublure: 1
kind: table
multiline: true
unit: {name: person, id: who, max_records: 2}
units: 10
columns:
  who: {type: id}
  age: {type: integer, bounds: [0, 120], missing: true}
  job: {type: category, values: {learn: 1}, other: Other, missing: true}
  flag: {type: boolean, missing: true}
  born: {type: date, bounds: [1900-01-01, 2020-12-31], missing: true}
"""
    )
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(
        {
            "who": rng.integers(0, 40, 100),
            "age": rng.integers(0, 99, 100),
            "job": [None] * 50 + [f"job {number}, or\nso" for number in rng.integers(0, 9, 50)],
            "flag": rng.choice(["true", "false", ""], 100),
            "born": pd.to_datetime("2000-01-01") + pd.to_timedelta(rng.integers(0, 999, 100), unit="D"),
        }
    )
    path = tmp_path / "data.csv"
    frame.to_csv(path, index=False)
    whole = open_table(path, schema.written).load(schema)
    assert len(whole.frame) < 100
    monkeypatch.setattr(csv_records, "BLOCK_BYTES", block_bytes)
    monkeypatch.setattr(tables, "CHUNK_ROWS", chunk_rows)
    source = open_table(path, schema.written)
    assert max(len(chunk) for chunk in source.chunks(["age"])) <= max(chunk_rows, 1)
    assert sum(1 for _ in source.chunks(["age"])) > 1
    parts = source.load(schema)
    pd.testing.assert_frame_equal(parts.frame, whole.frame)
    np.testing.assert_array_equal(parts.unit, whole.unit)
    assert parts.n_units == whole.n_units


def test_a_table_says_nothing_of_itself(tmp_path: Path) -> None:
    assert repr(load(tmp_path / "data.csv", TEXT)) == "Table(private)"


def test_fewer_records_can_be_allowed(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("age,job\n")
    table = open_table(tmp_path / "data.csv").load(SCHEMA, at_least=0)
    assert len(table.frame) == table.n_units == 0
    assert table.frame["job"].cat.categories.tolist() == ["clerk", "a, b", "two\nlines", "é"]


def test_words_that_others_take_for_missing_are_words(tmp_path: Path) -> None:
    column = "{type: category, values: [NA, 'null', NaN], missing: true}"
    schema = Schema.parse(f"doublure: 1\nkind: table\nunits: 9\ncolumns: {{country: {column}}}")
    frame = load(tmp_path / "data.csv", "country,x\nNA,1\nnull,1\nNaN,1\n,1\n", schema).frame
    assert frame["country"].cat.codes.tolist() == [0, 1, 2, -1]


def test_the_wanted_columns_only(tmp_path: Path) -> None:
    """A column that the schema does not name is never read, whatever it holds."""
    table = load(tmp_path / "data.csv", "x,age,y,job\n\0,30,inf,clerk\n1e999,40,,?\n")
    assert list(table.frame.columns) == ["age", "job"]
