"""Tables in containers beside CSV and Parquet: what is read, and that no record says how another is read."""

from __future__ import annotations

import datetime as dt
import gzip
import importlib.util
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from containers import WRITERS, write_xlsx
from planting import plant

from doublure.data.tables.containers import json_lines, sheets, statistics_packages
from doublure.data.tables.opening import open_table
from doublure.errors import DataError, FaultyRecords, MissingExtra
from doublure.schema import Schema

NAMES = ["n", "t", "d", "m"]
TEXT = """
doublure: 1
kind: table
units: 9
misfit: coerce
columns:
  n: {type: real, bounds: [0, 100], missing: true}
  t: {type: category, values: [a, "é", "7", "true"], missing: true}
  d: {type: date, bounds: [1900-01-01, 2030-12-31], missing: true}
  m: {type: datetime, bounds: [1950-01-01, 2030-12-31], missing: true}
"""
SHEETS, LINES = (".xlsx", ".ods"), (".jsonl", ".ndjson")
SCHEMA = Schema.parse(TEXT)
STRICT = Schema.parse(TEXT.replace("coerce", "refuse"))
DAY, MOMENT = dt.date(2024, 1, 31), dt.datetime(2024, 1, 31, 8, 5, 59)
PLAIN: list[dict[str, Any]] = [
    {"n": 1.5, "t": "a", "d": DAY, "m": MOMENT},
    {"n": 7.0, "t": "é", "d": dt.date(1960, 2, 29), "m": dt.datetime(1960, 2, 29, 23, 59, 59)},
    {"n": None, "t": None, "d": None, "m": None},
    {"n": 100.0, "t": "7", "d": dt.date(2030, 12, 31), "m": dt.datetime(2000, 1, 1)},
]
SHEET: list[dict[str, Any]] = [
    *PLAIN[:2],
    PLAIN[3],
    {"n": "12", "t": 7, "d": "2024-01-31", "m": "2024-01-31 08:05:59"},
    {"n": "x", "t": True, "d": 45_000.0, "m": True},
    {"n": True, "t": 7.0, "d": MOMENT, "m": DAY},
    {"n": DAY, "t": DAY, "d": "7", "m": 1e300},
    {"t": "a"},
]
OBJECTS: list[dict[str, Any]] = [
    *SHEET,
    {"n": [1], "t": {"a": 1}, "d": [], "m": None},
    {"n": 10**400, "t": "\ud800", "more": 1},
    {"line": b"[1, 2]"}, {"line": b"{"}, {"line": b'{"n": 1, "t": "\xff"}'}, {"line": b"NaN"}, {"line": b" "},
    {"line": b"[" * 100_000}, {"line": b'{"n": NaN, "n": 3}\r'}, {"line": b'\xef\xbb\xbf{"n": 3}'}, {},
]  # fmt: skip
RECORDS = {".xlsx": [*SHEET, {"beyond": 1, "n": 1}, {"left": 2, "n": 2}, {}], ".ods": SHEET} | dict.fromkeys(
    (".jsonl", ".ndjson"), OBJECTS
)
FAR = {"n": 1e300, "t": "x" * 300, "d": dt.date(9999, 12, 31), "m": dt.datetime(1600, 1, 1)}


def readers_there(ending: str) -> None:
    for library, endings in (("python_calamine", (".xlsx", ".ods")), ("pyreadstat", (".dta", ".sav", ".zsav", ".xpt"))):
        if ending in endings:
            pytest.importorskip(library, reason="the extra files is not installed")


def cells(frame: pd.DataFrame) -> list[tuple[str, ...]]:
    return [tuple(map(str, row)) for row in frame.astype(object).itertuples(index=False)]


def read(path: Path, schema: Schema = SCHEMA) -> list[tuple[str, ...]]:
    return cells(open_table(path, schema.written).load(schema, at_least=0).frame)


@pytest.mark.parametrize("ending", WRITERS)
def test_a_table_reads_as_its_frame_does(tmp_path: Path, ending: str) -> None:
    readers_there(ending)
    path = tmp_path / f"people{ending}"
    rows = [row for row in PLAIN if row["t"] or ending not in SHEETS]  # an empty row is no record
    WRITERS[ending](path, NAMES, rows)
    frame = pd.DataFrame(rows)
    frame["m"] = pd.to_datetime(frame["m"])
    assert read(path, STRICT) == cells(open_table(frame).load(STRICT).frame)
    assert open_table(path).columns == NAMES


def check_neighbours_read_alike(folder: Path, ending: str, records: list[dict[str, Any]]) -> None:
    """Each record reads as it does by itself, whichever others are left out."""
    path = folder / f"people{ending}"
    kept = [row for row in records if row.get("line") != b" " and (row or ending in LINES)]  # others are no records

    def of(rows: list[dict[str, Any]]) -> list[tuple[str, ...]]:
        WRITERS[ending](path, NAMES, rows)
        return read(path)

    whole = of(records)
    assert len(whole) == len(kept)
    for place in range(len(records)):
        without = of(records[:place] + records[place + 1 :])
        there = of([records[place]])
        at = len(of(records[:place])) if place else 0
        assert without == whole[:at] + whole[at + len(there) :]
        assert there == whole[at : at + len(there)]


@pytest.mark.parametrize("ending", WRITERS)
def test_a_record_is_read_by_itself(tmp_path: Path, ending: str) -> None:
    readers_there(ending)
    check_neighbours_read_alike(tmp_path, ending, RECORDS.get(ending, [*PLAIN, FAR]))


def check_a_text_of_another_encoding_is_a_misfit_alone(folder: Path, ending: str) -> None:
    """The library refuses the whole file for such a text."""
    path = folder / f"people{ending}"
    WRITERS[ending](path, NAMES, [PLAIN[0], {**PLAIN[0], "t": "zqz"}, PLAIN[1]])
    path.write_bytes(path.read_bytes().replace(b"zqz", b"z\xffz"))
    assert [row[1] for row in read(path)] == ["a", "nan", "é"]
    with pytest.raises(DataError, match=r"^t: has cells"):
        read(path, STRICT)


@pytest.mark.parametrize("ending", [".dta", ".sav", ".xpt"])
def test_a_text_of_another_encoding_is_a_misfit_alone(tmp_path: Path, ending: str) -> None:
    readers_there(ending)
    check_a_text_of_another_encoding_is_a_misfit_alone(tmp_path, ending)


def test_a_text_that_its_width_cuts_ends_before_the_cut(tmp_path: Path) -> None:
    readers_there(".sav")
    path = tmp_path / "people.sav"
    WRITERS[".sav"](path, NAMES, [{**PLAIN[0], "t": "aé"}, PLAIN[0]])
    path.write_bytes(path.read_bytes().replace("aé".encode(), b"aq\xc3"))
    (text,) = [row["t"].iloc[0] for row in open_table(path).raw(["t"])]
    assert text == "aq"


def test_numbers_of_a_package_are_what_their_format_says() -> None:
    forms = {
        "number": ["F8.2", "%9.0g", "BEST12", None, "DOLLAR8", "COMMA10"],
        "day": ["DATE11", "ADATE10", "%td", "%tdD_m_Y", "%d", "DATE9", "YYMMDD10", "E8601DA", "MMDDYY"],
        "moment": ["DATETIME20", "%tc", "%tC", "%tcCCYY-NN-DD", "E8601DT", "YMDHMS19"],
        "span": ["TIME8", "DTIME", "%tcHH:MM:SS", "%tchh:MM", "TIME", "HHMM", "TOD8"],
    }
    for form, shown in forms.items():
        assert [statistics_packages._form(each, "double") for each in shown] == [form] * len(shown)
    assert statistics_packages._form("DATE9", "string") == "text"


def test_a_library_that_refuses_a_file_for_one_text_is_caught(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    readers_there(".sav")
    codec = "codecs.lookup(self._given or named or ('windows-1252' if old else 'utf-8')).name"
    plant(monkeypatch, statistics_packages.PackageSource, "_codec", (codec, "None"))
    with pytest.raises(DataError, match="cannot be read as sav"):
        check_a_text_of_another_encoding_is_a_misfit_alone(tmp_path, ".sav")


def check_a_cell_left_of_the_header_moves_no_other(folder: Path) -> None:
    """The library's rows begin at the first column that any record has a cell in."""
    path, schema = folder / "people.xlsx", Schema.parse(TEXT.replace("misfit: coerce", "skip_rows: 2"))
    write_xlsx(path, NAMES, SHEET[:3], (2, 1))
    plain = read(path, schema)
    assert len(plain) == 3
    write_xlsx(path, NAMES, [{"left": "x", **SHEET[0]}, *SHEET[1:3]], (2, 1))
    assert read(path, schema) == plain


def test_a_cell_left_of_the_header_moves_no_other(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    readers_there(".xlsx")
    check_a_cell_left_of_the_header_moves_no_other(tmp_path)
    assert open_table(tmp_path / "people.xlsx", Schema.parse(TEXT + "skip_rows: 2").written).unnamed == [0]
    plant(monkeypatch, sheets.SheetSource, "rows", ("self._names.index(name)", "NAMES.index(name)"))
    monkeypatch.setattr(sheets, "NAMES", NAMES, raising=False)
    with pytest.raises((AssertionError, DataError)):
        check_a_cell_left_of_the_header_moves_no_other(tmp_path)


def test_a_record_that_names_the_columns_is_caught(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seen = "found.get(key) if key in self.columns else None"
    plant(monkeypatch, json_lines.JsonLinesSource, "rows", ("found.get(key)", seen))
    with pytest.raises(AssertionError):
        check_neighbours_read_alike(tmp_path, ".jsonl", [{"n": 1}] * 30 + [{"t": "a", "d": "2024-01-31"}])


# -- misfits -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ending", "row", "message"),
    [
        (
            ".xlsx",
            {"n": 1, "beyond": 2},
            "cells beyond column [A-Z], the last one of the header; write a name into [A-Z]1, or say rename",
        ),
        (".jsonl", {"line": b"[1]"}, "no JSON object"),
        (".jsonl", {"line": b'{"t": "\xff"}'}, "not UTF-8"),
        (".xlsx", {"n": "s3cr3t"}, "^n: has cells that are no real"),
        (".jsonl", {"n": "s3cr3t"}, "^n: has cells that are no real"),
        (".jsonl", {"t": ["s3cr3t"]}, "^t: has cells that are no category"),
    ],
)
def test_misfits_are_named_as_in_csv(tmp_path: Path, ending: str, row: dict[str, Any], message: str) -> None:
    readers_there(ending)
    path = tmp_path / f"people{ending}"
    WRITERS[ending](path, NAMES, [*PLAIN, row])
    with pytest.raises(DataError, match=message) as refused:
        read(path, STRICT)
    assert "s3cr3t" not in str(refused.value)
    assert "\n" not in str(refused.value)
    if isinstance(refused.value, FaultyRecords):
        line = 5 + (ending == ".xlsx")
        assert [(fault.number, fault.name) for fault in refused.value.faults] == [(line, path.name)]


@pytest.mark.parametrize("ending", [*WRITERS, ".arrow", ".xls"])
def test_a_damaged_file_is_one_line(tmp_path: Path, ending: str) -> None:
    readers_there(".xlsx" if ending == ".xls" else ending)
    path = tmp_path / f"people{ending}"
    for content in (b"s3cr3t\n" * 50, b"\0" * 200, b"PK\3\4" + b"x" * 100, b"ARROW1\0\0" + b"x" * 100):
        path.write_bytes(content)
        with pytest.raises(DataError) as refused:
            open_table(path).load(STRICT)
        assert refused.value.field in (path.name, "n")  # of lines, there is no such column
        assert "s3cr3t" not in str(refused.value)
    if ending in WRITERS and ending not in (*LINES, ".xpt"):  # which ends in padding
        WRITERS[ending](path, NAMES, PLAIN)
        path.write_bytes(path.read_bytes()[:-60])
        with pytest.raises(DataError, match="cannot be read"):
            open_table(path).load(STRICT)


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    for name in ("a.xlsx", "a.sav"):
        (tmp_path / name).write_bytes(b"x")
        with pytest.raises(MissingExtra, match=r"^a\..*: needs .*; pip install 'doublure\[files\]'"):
            open_table(tmp_path / name)


# -- sheets ------------------------------------------------------------------------------------------------------


def test_a_sheet_is_named_behind_the_file(tmp_path: Path) -> None:
    xlsxwriter = pytest.importorskip("xlsxwriter", reason="the extra files is not installed")
    readers_there(".xlsx")
    with xlsxwriter.Workbook(tmp_path / "b.xlsx") as book:
        for name in ("people", "2. notes"):
            sheet = book.add_worksheet(name)
            sheet.write_row(0, 0, [name, 2024, None, "x"])
            sheet.write_row(1, 0, [1, 2, 3, 4])
    assert open_table(tmp_path / "b.xlsx#2. notes").columns == ["2. notes", "2024", "x"]
    assert open_table(tmp_path / "b.xlsx#people").unnamed == [2]
    with pytest.raises(DataError, match=r"several sets of rows.*b.xlsx#people, b.xlsx#2. notes"):
        open_table(tmp_path / "b.xlsx")
    with pytest.raises(DataError, match=r"no such sheet; name one of people, 2\. notes"):
        open_table(tmp_path / "b.xlsx#more")
    (tmp_path / "a.csv").write_text("a\n1\n")
    with pytest.raises(DataError, match="no such file"):
        open_table(tmp_path / "a.csv#people")


def test_spans_and_times_of_day_are_read_by_both_types(tmp_path: Path) -> None:
    readers_there(".xlsx")
    rows = [{"s": dt.time(7, 30, 15), "u": dt.timedelta(hours=30)}, {"s": "07:30:15", "u": dt.time(6)}]
    write_xlsx(tmp_path / "a.xlsx", ["s", "u"], rows)
    schema = Schema.parse(
        "{doublure: 1, kind: table, units: 9, columns: {s: {type: time, missing: false}, "
        "u: {type: duration, bounds: ['0:00:00', '48:00:00'], missing: false}}}"
    )
    found = open_table(tmp_path / "a.xlsx").load(schema).frame
    numbers = [schema.columns[name].numbers_of(found[name]).tolist() for name in ("s", "u")]
    assert numbers == [[27_015.0, 27_015.0], [108_000.0, 21_600.0]]


# -- JSON lines, packages ----------------------------------------------------------------------------------------


def test_keys_that_few_records_have_are_no_columns_of_a_draft(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl.gz"
    with gzip.open(path, "wb") as file:
        file.write(b'{"n": 1, "t": "a"}\n' * 40 + b'{"n": 1, "s3cr3t": 1}\n')
    assert open_table(path).columns == ["n", "t"]
    schema = Schema.parse("{doublure: 1, kind: table, units: 9, columns: {m: {type: boolean, missing: true}}}")
    with pytest.raises(DataError, match=r"^m: is not a column"):
        open_table(path).load(schema)


def test_a_package_is_read_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    readers_there(".sav")
    WRITERS[".sav"](tmp_path / "a.sav", NAMES, [*PLAIN, *PLAIN[:2]])
    whole = read(tmp_path / "a.sav")
    monkeypatch.setattr(statistics_packages, "CELLS_AT_ONCE", 8)  # two records
    assert read(tmp_path / "a.sav") == whole
    assert [len(part["n"]) for part in open_table(tmp_path / "a.sav").raw(["n"])] == [2, 2, 2]
