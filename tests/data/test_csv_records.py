"""Each record of CSV reads as it does alone, in any company and wherever files and blocks are cut."""

from __future__ import annotations

import gzip
import io
import itertools
import pickle
import random
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from planting import plant
from tiers import examples

from doublure.data.relational import open_related
from doublure.data.series import open_series
from doublure.data.tables import csv_files, csv_records, opening
from doublure.data.tables.csv_files import read_header
from doublure.data.tables.csv_records import (
    LONGEST_RECORD,
    MISENCODED,
    RAGGED,
    TOO_LONG,
    UNCLOSED,
    UNREAD,
    Dialect,
    fields_of,
)
from doublure.data.tables.on_disk import TableOnDisk
from doublure.data.tables.opening import open_table
from doublure.errors import DataError, FaultyRecords
from doublure.schema import Schema
from doublure.schema.written import Written

HOSTILE = [
    b"u,3", b"v,4", b" u , 3 ", b"", b"\r", b"\r\r", b",", b"u", b"u,3,4,5", b",,", b'"u,3', b'u,"3', b'u,"3"',
    b'"u","3"', b'"u""v",3', b'"u"",3', b'"""u""",3', b'"",""', b'""",', b'u"x"y,3', b'u"x,"3"', b'u"x,"3', b'"u"x,3',
    b'u"x,"', b'"a,b",3', b'"a,b,3', b'"u"\rv,3', b'"u\rv",3', b"u\rv,3", b"u,3\r", b"\ru,3", b'"', b'""', b'"""',
    b"u\x00,3", b"\x00,\x00", b"\x00",
    b"\xff,3", b"u,\xe9", b'"\xff",3', b"\xc3\xa9,3", b"\xed\xa0\x80,3", b"\xef\xbb\xbfu,3",
    b"\xef\xbb\xbf", b"\xe2\x80\xa8,3", b"\x85,3", b"\x1b$B,3", b"\x1b(B,3", b"~{!!~},3", b"\x0c,3", b"\x1a,3",
    b"x" * 3000 + b",3", b"NA,nan", b"u;3", b"'u',3", b'\\",3', b"#u,3", b"\x83|,3", b'"\x83"",3', b"\x81\x30\x89,3",
]  # fmt: skip
BYTES = st.lists(st.sampled_from([b"u", b"3", b",", b'"', b"\r", b"\xc3", b"\xa9", b"\xff", b"\0", b" "]), max_size=12)
RECORDS = st.one_of(st.sampled_from(HOSTILE), BYTES.map(b"".join))
NAMES = ["a", "c"]


def read(path: Path, names: Sequence[str] = NAMES, **form: object) -> list[tuple[str, ...]]:
    """Return the records of a file as they are read: each a cell a column."""
    header = read_header(path, Written(columns={}, **form))  # type: ignore[arg-type]
    found: list[tuple[str, ...]] = []
    for batch in csv_files.read_batches(path, header, list(names), 200_000, ["c"]):
        found += zip(*(batch[name].to_pylist() for name in names), strict=True)
    return found


def written(
    folder: Path, records: Sequence[bytes], end: bytes = b"\n", head: bytes = b"a,c", last: bool = True
) -> Path:
    path = folder / "records.csv"
    path.write_bytes(end.join([head, *records]) + (end if last else b""))
    return path


def alone(record: bytes, end: bytes = b"", encoding: str = "utf-8") -> list[tuple[str, ...]]:
    """Return what a record is by itself, by the rules of one line."""
    line = (record + end).removesuffix(b"\n").removesuffix(b"\r")
    try:
        text = line.decode(encoding)
        text.encode()
    except ValueError:
        return [(UNREAD, UNREAD)]
    fields = fields_of(text, ",")
    if not line or not text:
        return []
    return [(UNREAD, UNREAD) if fields is None or len(fields) != 2 or "\n" in text else tuple(fields)]


def check_company(folder: Path, records: Sequence[bytes], **form: str) -> None:
    for end, last in ((b"\n", True), (b"\r\n", True), (b"\n", False)):
        expected = [each for record in records for each in alone(record, end, **form)]
        assert read(written(folder, records, end, last=last), **form) == expected


def test_hostile_records_alone(tmp_path):
    for record in HOSTILE:
        assert read(written(tmp_path, [record])) == alone(record, b"\n")
        assert read(written(tmp_path, [record], last=False)) == alone(record)


SIZES = st.sampled_from([16_000_000, 1, 5, 64])
ENCODINGS = st.sampled_from([None, None, "cp1252", "ascii", "koi8-r", "shift_jis", "gb18030", "iso2022_jp", "hz"])


@given(records=st.lists(RECORDS, max_size=9), size=SIZES, encoding=ENCODINGS)
@examples(400)
def test_a_record_reads_as_it_does_alone(tmp_path_factory, records, size, encoding):
    folder = tmp_path_factory.mktemp("records", numbered=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_records, "BLOCK_BYTES", size)
        check_company(folder, records, **({} if encoding is None else {"encoding": encoding}))
        for record in records[:1]:
            assert read(written(folder, [record])) == alone(record, b"\n")


QUOTED = st.lists(st.sampled_from(["u", "3", ",", '"', "\r", "\n", "\r\n", "é", " ", ""]), max_size=6).map("".join)
WELL = st.tuples(QUOTED, QUOTED).map(
    lambda cells: ",".join('"' + cell.replace('"', '""') + '"' for cell in cells).encode()
)


@given(records=st.lists(st.one_of(WELL, st.sampled_from(HOSTILE)), max_size=9), size=SIZES)
@examples(200)
def test_a_record_of_several_lines_reads_as_it_does_alone(tmp_path_factory, records, size):
    """Quoting is form then: a record whose quote is not closed is none."""
    folder = tmp_path_factory.mktemp("records", numbered=True)
    records = [record for record in records if fields_of(record.decode("latin-1"), ",") is not None]
    by_itself = [each for record in records for each in read(written(folder, [record]), multiline=True)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_records, "BLOCK_BYTES", size)
        assert read(written(folder, records), multiline=True) == by_itself


@given(fields=st.lists(QUOTED, min_size=2, max_size=2), more=st.lists(WELL, max_size=4), size=SIZES)
@examples(60)
def test_what_a_csv_writer_writes_comes_back(tmp_path_factory, fields, more, size):
    record = ",".join('"' + cell.replace('"', '""') + '"' for cell in fields).encode()
    folder = tmp_path_factory.mktemp("records", numbered=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_records, "BLOCK_BYTES", size)
        assert read(written(folder, [*more, record, *more]), multiline=True)[len(more)] == tuple(fields)
        if not any("\n" in field for field in fields):
            assert read(written(folder, [record, b'"', record])) == [tuple(fields), (UNREAD, UNREAD), tuple(fields)]


# -- every reader ----------------------------------------------------------------------------------------------------

TABLE = Schema.parse("""
doublure: 1
kind: table
units: 9
misfit: coerce
columns:
  a: {type: category, values: {learn: 0.1}, other: rest, missing: true}
  c: {type: integer, bounds: [0, 9], missing: false}
""")


def rows_of(frame: pd.DataFrame) -> list[tuple[str, ...]]:
    return [tuple(map(str, row)) for row in frame.astype(object).itertuples(index=False)]


def on_disk(path: Path, schema: Schema) -> list[tuple[str, ...]]:
    table = TableOnDisk(open_table(path), schema, path.parent, rows=3)
    try:
        return [row for part in table.parts() for row in rows_of(part.content)]
    finally:
        table.close()


@pytest.mark.parametrize("seed", range(4))
def test_every_table_reads_a_record_as_it_does_alone(tmp_path, monkeypatch, seed):
    """In memory, packed, in files cut anywhere, on disk in partitions."""
    source = random.Random(seed)
    records = source.sample(HOSTILE, len(HOSTILE))
    expected = [
        row
        for record in records
        for row in rows_of(open_table(written(tmp_path, [record])).load(TABLE, at_least=0).frame)
    ]
    assert expected.count(("rest", "0.0")) > 20
    monkeypatch.setattr(csv_records, "BLOCK_BYTES", source.choice([16_000_000, 9, 100]))
    monkeypatch.setattr(opening, "CHUNK_ROWS", source.choice([200_000, 3]))
    path = written(tmp_path, records)
    assert rows_of(open_table(path).load(TABLE).frame) == expected
    assert on_disk(path, TABLE) == expected
    (tmp_path / "packed.csv.gz").write_bytes(gzip.compress(path.read_bytes()))
    assert rows_of(open_table(tmp_path / "packed.csv.gz").load(TABLE).frame) == expected
    cuts = [0, *sorted(source.choices(range(len(records) + 1), k=3)), len(records)]
    (tmp_path / "parts").mkdir()
    for number, (first, last) in enumerate(itertools.pairwise(cuts)):
        written(tmp_path, records[first:last], last=False).rename(tmp_path / "parts" / f"{number}.csv")
    assert rows_of(open_table(tmp_path / "parts").load(TABLE).frame) == expected


LONG = """
doublure: 1
kind: series
unit: {name: meter, id: meter, max_records: 9}
units: 9
misfit: coerce
series: {time: when, length: 2, step: 12h, timezone: UTC, gaps: missing, irregular: mean}
channels: {a: {type: integer, bounds: [0, 9], missing: true}}
"""
TIMES = [(k % 3, 1 + k // 6, k // 3 % 2 * 12, k % 9) for k in range(12)]
SHAPES: dict[str, tuple[str, bytes, list[bytes]]] = {
    "a row a reading": (LONG, b"meter,when,a", [b"m%d,2024-01-0%dT%02d:00,%d" % time for time in TIMES]),
    "day and clock apart": (
        LONG.replace("time: when", "time: when, time_of_day: at"),
        b"meter,when,at,a",
        [b"m%d,2024-01-0%d,%02d:00,%d" % time for time in TIMES],
    ),
    "a row a series": (
        LONG.replace("time: when, ", "").replace(", timezone: UTC", ""),
        b"meter,a_0,a_1",
        [b"m%d,%d,%d" % (k % 3, k % 9, k // 3) for k in range(9)],
    ),
}


def of_meters(path: Path, text: str) -> list[list[str]]:
    """Return the values of each meter's series."""
    loaded = open_series(path).load(Schema.parse(text), at_least=0)
    found: dict[int, list[str]] = {}
    for unit, values in zip(loaded.unit.tolist(), loaded.content.values.tolist(), strict=True):
        found.setdefault(unit, []).append(repr(values))
    return sorted(sorted(each) for each in found.values())


@pytest.mark.parametrize("shape", SHAPES)
def test_no_line_changes_another_meters_series(tmp_path, shape):
    text, head, rows = SHAPES[shape]
    before = of_meters(written(tmp_path, rows, head=head), text)
    hostile = [*HOSTILE, rows[0] + b",1", b"\xff" + rows[0], b'"' + rows[0], b"m0", rows[0].replace(b",", b',"')]
    for seed in range(3):
        mixed, source = [*rows], random.Random(seed)
        for line in hostile:
            mixed.insert(source.randrange(len(mixed) + 1), line)
        after = of_meters(written(tmp_path, mixed, head=head), text)
        assert [each for each in after if each in before] == before


def test_no_line_changes_another_units_tables(tmp_path):
    schema = Schema.parse("""
doublure: 1
kind: relational
unit: {name: patient}
units: 9
misfit: coerce
tables:
  patients: {key: nr, columns: {nr: {type: id}, age: {type: integer, bounds: [0, 99], missing: true}}}
  stays:
    parent: patients
    foreign_key: of
    max_children: 3
    columns: {of: {type: id}, ward: {type: category, values: [x, y], missing: true}}
""")
    patients, stays = (
        [b"%d,%d" % (k, 10 * k) for k in range(1, 5)],
        [b"%d,%s" % (k, b"xy"[k % 2 :][:1]) for k in range(1, 5)],
    )

    def read_tables(more: Sequence[bytes]) -> list[tuple[object, ...]]:
        for name, head, rows in (("patients", b"nr,age", patients), ("stays", b"of,ward", stays)):
            written(tmp_path, [*more, *rows, *more], head=head).rename(tmp_path / "tables" / f"{name}.csv")
        loaded = open_related(tmp_path / "tables").load(schema).content
        ages, wards = loaded.frames["patients"]["age"].tolist(), loaded.frames["stays"]["ward"].tolist()
        found = [(age, [ward for ward, of in zip(wards, loaded.parents["stays"], strict=True) if of == place])
                 for place, age in enumerate(ages)]  # fmt: skip
        return [each for each in found if each[0] in (10, 20, 30, 40)]

    (tmp_path / "tables").mkdir()
    before = read_tables([])
    assert len(before) == 4
    for line in (b'"1,9', b"1,9,9", b"1", b"\xff1,9", b'"', b'1,"x', b"\r", b"\0,\0"):
        assert read_tables([line]) == before


# -- what is refused -------------------------------------------------------------------------------------------------


def test_every_record_that_cannot_be_read_is_named_at_once(tmp_path):
    refusing = Schema.parse(TABLE.to_yaml().replace("misfit: coerce\n", ""))
    records = [b"u,3", b"\xff,3", b"", b"u,3,4", b'"u,3', b"v,4", b"u"]
    with pytest.raises(FaultyRecords, match="multiline: true") as caught:
        open_table(written(tmp_path, records)).load(refusing)
    faults = [(fault.number, fault.name, fault.rule) for fault in caught.value.faults]
    lines = {3: MISENCODED, 5: RAGGED, 6: UNCLOSED, 8: RAGGED}
    assert faults == [(line, "records.csv", rule) for line, rule in lines.items()]
    again = pickle.loads(pickle.dumps(caught.value))  # noqa: S301 (as a worker sends it)
    assert (str(again), again.faults) == (str(caught.value), caught.value.faults)
    unread = open_table(written(tmp_path, records)).unread()
    assert [each.record for _, each in unread] == [2, 3, 4, 6]
    (tmp_path / "parts").mkdir()
    for name in ("x.csv", "y.csv"):
        (tmp_path / "parts" / name).write_bytes((tmp_path / "records.csv").read_bytes())
    with pytest.raises(FaultyRecords) as caught:
        open_table(tmp_path / "parts").load(refusing)
    assert [(fault.number, fault.name) for fault in caught.value.faults] == [
        (line, name) for name in ("x.csv", "y.csv") for line in lines
    ]


def test_the_lines_of_records_of_several_lines_are_told(tmp_path):
    header = read_header(
        written(tmp_path, [b'"u\nv",3', b"u,3,4", b'"\r\n\n",1', b'\xff,"\n"']), Written(columns={}, multiline=True)
    )
    found = csv_files.unread_in(tmp_path / "records.csv", header)
    assert [tuple(each) for each in found] == [(2, 4, RAGGED), (4, 8, MISENCODED)]


@pytest.mark.parametrize("rest", [b"", b"u,3\n" * 50])
def test_a_record_that_is_too_long_is_misread_alone(tmp_path, monkeypatch, rest):
    monkeypatch.setattr(csv_records, "LONGEST_RECORD", 100)
    for size in (1, 64, 1000):
        monkeypatch.setattr(csv_records, "BLOCK_BYTES", size)
        for length, long in ((98, False), (99, True), (5_000, True)):
            path = written(tmp_path, [b"u,3", b"x" * length + b",3", b"v,4"])
            path.write_bytes(path.read_bytes() + rest)
            one = (UNREAD, UNREAD) if long else ("x" * length, "3")
            assert read(path) == [("u", "3"), one, ("v", "4"), *[("u", "3")] * (len(rest) // 4)]
        if long:
            assert csv_files.unread_in(path, read_header(path)) == [(2, 3, TOO_LONG)]


def test_memory_is_bounded_by_the_longest_record(tmp_path, monkeypatch):
    assert LONGEST_RECORD >= csv_records.BLOCK_BYTES
    monkeypatch.setattr(csv_records, "LONGEST_RECORD", 100)
    blocks = csv_records.blocks(io.BytesIO(b"x" * 10_000 + b"\nu,3\n"), Dialect(delimiter=",", fields=2))
    assert [None if block is None else len(block) for block in blocks] == [None, 4]


def test_an_open_quote_refuses_where_quoting_is_form(tmp_path):
    path = written(tmp_path, [b"u,3", b'"v,4', b"u,3"])
    with pytest.raises(DataError, match="a quote is not closed"):
        read(path, multiline=True)
    assert read(path) == [("u", "3"), (UNREAD, UNREAD), ("u", "3")]


# -- mutants ---------------------------------------------------------------------------------------------------------

MUTANTS: dict[str, tuple[object, str, tuple[str, str]]] = {
    "an open quote swallows": (
        csv_records, "cleaned", ("odd |= {*_suspects(content, bounds, dialect).tolist()}", "pass"),
    ),
    "a bad byte refuses": (csv_records, "_decoded", ("pieces.append(b'')", "raise DataError('is no text', field='x')")),
    "a bad byte takes its block along": (
        csv_records, "_decoded", ("unread[place] = MISENCODED", "return b'', bounds, {0: MISENCODED}"),
    ),
    "a ragged line refuses": (csv_files, "_parsed", ("clean = csv_records.without_ragged(clean, dialect)", "pass")),
    "lines that were joined go unnoticed": (
        csv_records, "are_lines", ("rows != content.count(b'\\n') + (not content.endswith(b'\\n'))", "False"),
    ),
    "a block's last quote goes unnoticed": (
        csv_records, "are_lines", ("fields_of(last.decode(), dialect.delimiter) is not None", "True"),
    ),
    "records with carriage returns are tried": (csv_records, "_has_lone_returns", ("b'\\r' in content", "False")),
    "a carriage return ends a record": (csv_records, "_suspects", ("returns[view[returns + 1] != _LF]", "returns[:0]")),
    "a mark at a block's head is lost": (csv_records, "for_arrow", ("content.startswith(_BOM)", "False")),
    "a quote in a field opens one": (csv_records, "_misplaced", ("odd & ~begins", "odd & begins & ~begins")),
    "a quote that is not closed goes on": (csv_records, "fields_of", ("not field['closed']", "False")),
    "a record is lost where blocks meet": (
        csv_records, "_lines_in_blocks", ("held, size = [more[last:]], len(more) - last", "held, size = [], 0"),
    ),
    "what cannot be read is empty": (csv_records, "_unread_row", ("[UNREAD]", "['']")),
    "a line end of another spelling makes two of one": (
        csv_records, "_alone", ("'\\n' in text and not dialect.multiline", "False"),
    ),
}  # fmt: skip
TWO_OF_ONE = {"utf-7": b"u,3+AAo-v,4", "raw_unicode_escape": rb"u,3\u000av,4"}
"""Encodings of text that a schema may declare, and a line of which they read two."""


def check_hostile_company(folder: Path, patch: pytest.MonkeyPatch) -> None:
    """Hostile records in three orders and sizes of blocks, and some of which it is written here what they are."""
    for seed, size in enumerate((16_000_000, 1, 64)):
        patch.setattr(csv_records, "BLOCK_BYTES", size)
        check_company(folder, random.Random(seed).sample(HOSTILE, len(HOSTILE)))
    broken = [b"\xff,3", b"u,3,4", b'"u,3', b'u,"3', b"u"]
    assert read(written(folder, [*broken, b'"a""b",3'])) == [*[(UNREAD, UNREAD)] * len(broken), ('a"b', "3")]
    assert read(written(folder, [b'"u,3', b'v",4'])) == [(UNREAD, UNREAD), ('v"', "4")]
    for encoding, record in TWO_OF_ONE.items():
        assert read(written(folder, [record, b"u,3"]), encoding=encoding) == [(UNREAD, UNREAD), ("u", "3")]


def test_hostile_records_in_company(tmp_path, monkeypatch):
    check_hostile_company(tmp_path, monkeypatch)


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_reader_in_which_records_meet_is_caught(tmp_path, monkeypatch, mutant):
    owner, name, edit = MUTANTS[mutant]
    plant(monkeypatch, owner, name, edit)
    with pytest.raises((AssertionError, DataError, pa.ArrowInvalid)):
        check_hostile_company(tmp_path, monkeypatch)
