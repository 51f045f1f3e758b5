"""Tables written as Excel, JSON lines and Feather come back as they were drawn, and run nothing."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from doublure.data.tables import row_writers
from doublure.data.tables.opening import open_table
from doublure.data.tables.writing import check_ending, write_table
from doublure.errors import MissingExtra, SettingError
from doublure.schema import ResolvedSchema

SCHEMA = ResolvedSchema.parse("""
doublure: 1
kind: table
units: 9
columns:
  whole: {type: integer, bounds: [-9, 9], missing: true}
  real: {type: real, bounds: [-9, 9], precision: 3, missing: false}
  word: {type: category, values: ["=1+1", "007", "é", "http://a.b"], missing: ["none"]}
  truth: {type: boolean, missing: true}
  day: {type: date, bounds: [1800-01-01, 2030-12-31], missing: true}
  at: {type: datetime, bounds: [1950-01-01, 2030-12-31], missing: false}
  clock: {type: time, missing: false}
  span: {type: duration, bounds: ["-9:00:00", "99:00:00"], missing: true}
""")
NUMBERS = {
    "whole": [1, np.nan, -9], "real": [0.125, -9.0, 9.0], "word": [0, np.nan, 2], "truth": [1, 0, np.nan],
    "day": [-50_000, np.nan, 20_000], "at": [0, 86_399, 1e9], "clock": [0, 86_399, 3_600],
    "span": [-1, 90_000, np.nan],
}  # fmt: skip
FRAME = pd.DataFrame({name: SCHEMA.columns[name].cells_of(np.array(cells)) for name, cells in NUMBERS.items()})
LAST = FRAME.iloc[1:].reset_index(drop=True)
ENDINGS = [".csv", ".parquet", ".jsonl", ".ndjson", ".feather", ".arrow", ".xlsx", ".dta", ".sav"]


def written(path: Path, frames: list[pd.DataFrame], **how: bool) -> Path:
    if path.suffix in (".dta", ".sav"):
        pytest.importorskip("pyreadstat", reason="the extra files is not installed")
    if path.suffix == ".xlsx":
        pytest.importorskip("xlsxwriter", reason="the extra files is not installed")
        pytest.importorskip("python_calamine", reason="the extra files is not installed")
    assert write_table(frames, path, SCHEMA, metadata={"watermark": "synthetic"}, **how) == sum(map(len, frames))
    return path


@pytest.mark.parametrize("ending", ENDINGS)
def test_what_is_written_is_read_again(tmp_path: Path, ending: str) -> None:
    path = written(tmp_path / f"data{ending}", [FRAME, FRAME.iloc[:0], LAST])
    found = open_table(path).load(SCHEMA).frame
    pd.testing.assert_frame_equal(found, open_table(pd.concat([FRAME, LAST], ignore_index=True)).load(SCHEMA).frame)
    again = written(tmp_path / f"again{ending}", [FRAME, FRAME.iloc[:0], LAST])
    assert path.read_bytes() == again.read_bytes()


def test_a_sheet_holds_a_number_in_its_fewest_digits(tmp_path: Path) -> None:
    drawn = FRAME.assign(real=[0.69, 0.1, 1.003])
    path = written(tmp_path / "a.xlsx", [drawn])
    with zipfile.ZipFile(path) as book:
        sheet = book.read("xl/worksheets/sheet1.xml").decode()
    assert all(f"<v>{text}</v>" in sheet for text in ("0.69", "0.1", "1.003"))


def test_a_sheet_holds_numbers_dates_and_text_that_is_not_run(tmp_path: Path) -> None:
    path = written(tmp_path / "a.xlsx", [FRAME])
    from python_calamine import CalamineWorkbook

    rows = CalamineWorkbook.from_path(str(path)).get_sheet_by_name("data").to_python()
    assert rows[1][:4] == [1.0, 0.125, "=1+1", True]
    assert [str(cell) for cell in rows[1][4:6]] == ["1833-02-08", "1970-01-01"]
    safe = written(tmp_path / "b.xlsx", [FRAME], spreadsheet_safe=True)
    assert CalamineWorkbook.from_path(str(safe)).get_sheet_by_name("data").to_python()[1][2] == "'=1+1"


def test_lines_of_json_hold_types(tmp_path: Path) -> None:
    text = written(tmp_path / "a.jsonl", [FRAME]).read_text().splitlines()
    assert text[1].startswith('{"whole": null, "real": -9.0, "word": null, "truth": false, "day": null, "at": "1970-')
    assert '"day": "2024-10-04"' in text[2]


def test_more_rows_than_a_sheet_holds_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_writers, "MOST_ROWS", 4)
    written(tmp_path / "a.xlsx", [FRAME])
    with pytest.raises(SettingError, match=r"more rows than the 3 of a sheet; write .csv"):
        written(tmp_path / "b.xlsx", [FRAME, FRAME])
    assert not (tmp_path / "b.xlsx").exists()


def test_a_missing_library_and_an_unknown_ending_are_named_before_a_row_is_drawn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import importlib.util

    with pytest.raises(SettingError, match=r"end it in .parquet, .csv, .*or .sav"):
        check_ending(Path("a.docx"))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"pip install 'doublure\[files\]'"):
        check_ending(Path("a.xlsx"))
