"""Headers as people bring them: lines above, columns without a name, names that stand twice, UTF-16."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pytest
from planting import plant

from doublure.data.tables import csv_files, utf_16
from doublure.data.tables.header import numbered
from doublure.data.tables.opening import open_table
from doublure.drafting.check import check
from doublure.drafting.draft import drafted
from doublure.errors import DataError, FaultyRecords, SchemaError
from doublure.schema import Schema

HEAD = "doublure: 1\nkind: table\nunits: 9\n"
COLUMNS = """columns:
  n: {type: integer, bounds: [0, 99], missing: true}
  t: {type: category, values: [a, 'é', '𝄞'], missing: true}
"""
SCHEMA = Schema.parse(HEAD + COLUMNS)
FRAME = pd.DataFrame({"n": [1, 2, 3], "t": ["a", "é", "a"]})


def read(path: object, schema: Schema = SCHEMA) -> pd.DataFrame:
    return open_table(path, schema.written).load(schema, at_least=0).frame


# -- columns without a name --------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".feather"])
def test_the_index_that_pandas_writes_is_left_out(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"data{ending}"
    frame = FRAME[FRAME.n < 3]
    {".csv": frame.to_csv, ".parquet": frame.to_parquet, ".feather": lambda to: frame.to_feather(to)}[ending](path)
    pd.testing.assert_frame_equal(read(path), read(frame))
    text = drafted(path).to_yaml()
    assert list(Schema.parse(text).columns) == ["n", "t"]
    if ending == ".csv":
        assert "# 1 column (A) has no name" in text
        found = [finding for finding in check(SCHEMA, path).findings if finding.kind == "ignored"]
        assert [finding.message.partition(",")[0] for finding in found] == ["1 column (A) has no name"]


def test_an_index_that_was_read_and_written_again_is_left_out_of_a_draft(tmp_path: Path) -> None:
    FRAME.to_csv(tmp_path / "a.csv")
    pd.read_csv(tmp_path / "a.csv").to_parquet(tmp_path / "b.parquet")
    FRAME.set_axis([0, 5, 7]).to_parquet(tmp_path / "c.parquet")
    FRAME.rename_axis("rownames").to_csv(tmp_path / "d.csv")  # as R calls it
    for name, said in (("b.parquet", "'Unnamed: 0'"), ("c.parquet", "__index_level_0__"), ("d.csv", "rownames")):
        text = drafted(tmp_path / name).to_yaml()
        assert f"# Left out, as it numbers rows: {said}." in text
        assert list(Schema.parse(text).columns) == ["n", "t"]


@pytest.mark.parametrize("data", [FRAME.set_axis(["n", ""], axis=1), pa.table([[1, 2], [3, 4]], ["", "n"])])
def test_a_column_without_a_name_moves_no_other(data: object) -> None:
    source = open_table(data)
    assert (source.columns, len(source.unnamed)) == (["n"], 1)
    expected = [1, 2, 3] if isinstance(data, pd.DataFrame) else [3, 4]
    assert [cell for part in source.raw(["n"]) for cell in list(map(float, part["n"].tolist()))] == expected


# -- names that stand twice --------------------------------------------------------------------------------------

TWICE = "total,n,t,total\n1,2,a,3\n4,5,a,6\n"
RENAMED = "rename: {total: [first, last], n: number}\ncolumns:\n" + "".join(
    f"  {name}: {{type: integer, bounds: [0, 9], missing: false}}\n" for name in ("first", "last", "number")
)


def test_names_that_stand_twice_are_renamed_by_their_place(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(TWICE)
    schema = Schema.parse(HEAD + RENAMED)
    assert read(path, schema).to_numpy().tolist() == [[1, 3, 2], [4, 6, 5]]
    assert Schema.parse(schema.to_yaml()) == schema
    frame = pd.DataFrame([[1, 2, "a", 3], [4, 5, "a", 6]], columns=["total", "n", "t", "total"])
    assert read(frame, schema).to_numpy().tolist() == [[1, 3, 2], [4, 6, 5]]


def test_a_draft_names_columns_that_share_a_name(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(TWICE)
    text = drafted(path).to_yaml()
    assert "rename: {total: [total, total_2]}" in text
    assert list(Schema.parse(text).columns) == ["total", "n", "t", "total_2"]
    assert numbered(["a", "a", "a_2", ""]) == {"a": ["a", "a_3"]}
    with pytest.raises(DataError, match=r"^total: stands more than once.*rename: \{total"):
        open_table(path).check_names(["total"])


@pytest.mark.parametrize(
    ("rename", "message"),
    [
        ("{total: [a]}", r"^rename.total: stands 2 times in the header, and has 1 new name"),
        ("{none: a}", r"^rename.none: is not a column of the data"),
    ],
)
def test_new_names_have_to_match_the_header(tmp_path: Path, rename: str, message: str) -> None:
    (tmp_path / "a.csv").write_text(TWICE)
    with pytest.raises(DataError, match=message):
        open_table(tmp_path / "a.csv", Schema.parse(HEAD + f"rename: {rename}\n" + COLUMNS).written)


@pytest.mark.parametrize("rename", ["{a: [b, b]}", "{a: b, c: b}", "{a: ' '}", "[a]", "{a: 1}"])
def test_new_names_that_are_none(rename: str) -> None:
    with pytest.raises(SchemaError, match="rename"):
        Schema.parse(HEAD + f"rename: {rename}\n" + COLUMNS)


def test_a_schema_without_them_has_the_hash_that_it_had() -> None:
    assert SCHEMA.sha256 == Schema.parse(HEAD + "rename: {}\n" + COLUMNS).sha256
    assert not {"rename", "skip_rows"} & set(SCHEMA.to_plain())


# -- lines above, and below --------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_lines_above_the_header_are_passed_over(tmp_path: Path, end: str) -> None:
    path = tmp_path / "a.csv"
    above = 'Report \xe9,2024;\n"open\n'.replace("\n", end)
    path.write_bytes(above.encode("latin-1") + FRAME.to_csv(index=False, lineterminator=end).encode())
    schema = Schema.parse(HEAD + "skip_rows: 2\n" + COLUMNS)
    pd.testing.assert_frame_equal(read(path, schema), read(FRAME))
    text = drafted(path, skip_rows=2).to_yaml()
    assert "\nskip_rows: 2\n" in text
    assert "multiline" not in text
    with pytest.raises(DataError, match="no header line"):
        open_table(path, Schema.parse(HEAD + "skip_rows: 20\n" + COLUMNS).written)


def test_a_last_line_that_is_no_record_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("n,t\n1,a\n2,a\nTotal: 2 s3cr3t rows\n")
    with pytest.raises(FaultyRecords, match=r"more or fewer fields.*take out lines that are no records") as refused:
        read(path)
    assert [fault.number for fault in refused.value.faults] == [4]
    assert "s3cr3t" not in str(refused.value)


# -- UTF-16 ------------------------------------------------------------------------------------------------------

LINES = ["1\ta", "2\té", "3\t𝄞", '4\t"a"', "", "5", "\u0a0a\ta", "6\ta\ufeff", "\ufeff7\ta", "8\t\u2028a"]


def check_utf_16_is_read_as_utf_8(folder: Path, lines: list[str]) -> None:
    """Whatever stands in a record; half of a pair is no character, of its own record alone."""
    path, schema = folder / "a.txt", Schema.parse(HEAD + "misfit: coerce\n" + COLUMNS)
    for codec in ("utf-16-le", "utf-16-be"):

        def of(rows: list[str], codec: str = codec) -> list[tuple[str, ...]]:
            text = "\r\n".join(["\ufeffn\tt", *rows, ""])
            path.write_bytes(text.encode(codec, "surrogatepass"))
            return [tuple(map(str, row)) for row in read(path, schema).astype(object).to_numpy()]

        whole, kept = of(lines), [line for line in lines if line]
        assert whole[:2] == of(["1\ta", "2\té"]) == [("1.0", "a"), ("2.0", "é")]
        assert len(whole) == len(kept)
        for place, line in enumerate(kept):
            assert of([line]) == [whole[place]]
            assert of(kept[:place] + kept[place + 1 :]) == whole[:place] + whole[place + 1 :]


def test_utf_16_is_read_as_utf_8(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hostile = [*LINES, "9\t\ud834", "10\t\udd1e", "11\ta\ud834", "\udd1e\ta", "12\ta"]
    check_utf_16_is_read_as_utf_8(tmp_path, hostile)
    monkeypatch.setattr(utf_16, "_AT_ONCE", 7)  # cuts units, and pairs of them
    check_utf_16_is_read_as_utf_8(tmp_path, hostile)


def test_pairs_that_are_cut_between_two_reads_are_caught(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(utf_16, "_AT_ONCE", 2)
    plant(monkeypatch, utf_16._Utf8Stream, "_decoded", ("0xD8 <= high < 0xDC", "False"))
    path = tmp_path / "a.txt"
    path.write_bytes("\ufeffn\tt\n1\t𝄞\n2\ta\n".encode("utf-16-le"))
    with pytest.raises(FaultyRecords, match="not UTF-8"):
        read(path)


def test_an_odd_last_byte_is_of_the_last_record(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes("\ufeffn\tt\n1\ta\n2\ta".encode("utf-16-le") + b"x")
    with pytest.raises(FaultyRecords, match="not UTF-8") as refused:
        read(path)
    assert [fault.number for fault in refused.value.faults] == [3]
    latin = Schema.parse(HEAD + "encoding: latin-1\n" + COLUMNS)
    with pytest.raises(DataError, match=r"^a.txt: is UTF-16 text; leave encoding out"):
        read(path, latin)
    assert csv_files.unread_in(path, csv_files.read_header(path))[0].record == 2


# -- categories that no cell has ---------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["frame", "parquet", "feather", "arrow"])
def test_a_category_that_no_cell_has_refuses_nothing(tmp_path: Path, form: str) -> None:
    """A frame that was filtered keeps the categories that it had."""
    frame = pd.DataFrame({"t": pd.Categorical(["a", "é", None], categories=["z", "a", "y", "é", "x"])})
    frame["n"] = pd.Categorical([1, 2, 3], categories=[1, 2, 3, 1000, 2.5])
    data: object = frame
    if form == "parquet":
        frame.astype({"n": int}).to_parquet(tmp_path / "a.parquet")
        data = tmp_path / "a.parquet"
    elif form != "frame":
        table = pa.Table.from_pandas(frame.astype({"n": int}), preserve_index=False)
        data = table
        if form == "feather":
            pyarrow.feather.write_feather(table, tmp_path / "a.feather")
            data = tmp_path / "a.feather"
    found = read(data)
    assert found["t"].tolist()[:2] == ["a", "é"]
    assert found["t"].isna().tolist() == [False, False, True]
    assert found["n"].tolist() == [1, 2, 3]


def test_a_category_that_a_cell_has_is_still_refused() -> None:
    frame = pd.DataFrame({"t": pd.Categorical(["a", "z"], categories=["a", "z"]), "n": [1, 2]})
    with pytest.raises(DataError, match=r"^t: has values outside"):
        read(frame)


def _sheet(path: Path, rows: list[list[object]]) -> Path:
    xlsxwriter = pytest.importorskip("xlsxwriter")
    with xlsxwriter.Workbook(path) as book:
        sheet = book.add_worksheet()
        for place, row in enumerate(rows):
            sheet.write_row(place, 0, row)
    return path


def test_a_draft_names_what_nearly_all_rows_have_beyond_the_header(tmp_path: Path) -> None:
    """A header cell left empty made every row one that cannot be read; one stray cell makes no column."""
    pytest.importorskip("python_calamine")
    rows = [[n, "x", n] for n in range(1, 101)]
    data = _sheet(tmp_path / "d.xlsx", [["n", ""], *rows[:98], [99, "", ""], rows[99]])
    made = drafted(data)
    assert made.schema.columns.keys() == {"n", "column_B", "column_C"}
    assert "rename: {'': [column_B, column_C]}" in made.to_yaml()
    own = Schema.parse(HEAD + "rename: {'': [column_B, column_C]}\n" + COLUMNS.replace("a:", "column_C:"))
    assert len(open_table(data, own.written).columns) == 3
    stray = _sheet(tmp_path / "s.xlsx", [["n"], *([each[0]] for each in rows[:50]), [51, "x"], [52]])
    assert drafted(stray).schema.columns.keys() == {"n"}
    with pytest.raises(DataError, match=r"s\.xlsx: has records with cells beyond column A, .* write a name into B1"):
        read(stray, Schema.parse(HEAD + "columns: {n: {type: integer, bounds: [0, 99], missing: true}}"))


def test_a_few_ragged_records_keep_no_one_from_a_draft(tmp_path: Path) -> None:
    """What becomes of them is declared in the schema that is drafted."""
    path, plain = tmp_path / "a.csv", "".join(f"{n},a\n" for n in range(60))
    path.write_text(f"n,t\n{plain}1,2,3\n")
    assert drafted(path).schema.columns["n"].type == "integer"
    for odd in ("1,2,3\n" * 9, '"1,2\n'):
        path.write_text(f"n,t\n{plain}{odd}")
        with pytest.raises(FaultyRecords):
            drafted(path)
