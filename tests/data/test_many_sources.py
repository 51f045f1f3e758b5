"""Tables in many files, and tables that come as streams of Arrow: the same records as in one file."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from planting import plant

from doublure.data.opening import kind_of, open_data
from doublure.data.tables import many_files
from doublure.data.tables.opening import open_table
from doublure.drafting.check import check
from doublure.errors import DataError
from doublure.schema import Schema

SCHEMA = Schema.parse("""
doublure: 1
kind: table
units: 10
columns:
  age: {type: integer, bounds: [0, 120], missing: true}
  job: {type: category, values: [cook, nurse], other: Other, missing: false}
  seen: {type: date, bounds: [2000-01-01, 2030-01-01], missing: false}
""")
FRAME = pd.DataFrame(
    {
        "extra": ["x"] * 7,
        "age": [31, 42, None, 7, 90, 55, 12],
        "job": ["cook", "nurse", "clown", "cook", "cook", "nurse", "Other"],
        "seen": [f"2024-01-{day:02}" for day in range(1, 8)],
    }
)


def whole():
    return open_table(FRAME).load(SCHEMA).frame


def split(folder, ending):
    """Write the records in three parts, in folders, beside what engines write there, and return the folder."""
    for number, rows in enumerate(np.array_split(np.arange(7), 3)):
        path = folder / f"year={number}" / f"part-{number}{ending}"
        path.parent.mkdir(parents=True)
        own = FRAME.iloc[rows]
        own = own[own.columns[::-1]] if number == 1 else own  # in another order
        if ending == ".parquet":
            own.to_parquet(path, index=False)
        else:
            own.to_csv(path, index=False)
    (folder / "_SUCCESS").write_text("")
    (folder / ".crc").write_text("x")
    return folder


@pytest.mark.parametrize("ending", [".parquet", ".csv", ".csv.gz"])
def test_a_folder_and_a_pattern_hold_what_one_file_holds(tmp_path, ending):
    folder = split(tmp_path / "parts", ending)
    for given in (folder, str(folder), folder / "*" / f"*{ending}", str(folder / "**" / f"part-?{ending}")):
        pd.testing.assert_frame_equal(open_table(given).load(SCHEMA).frame, whole())
    assert kind_of(folder) == "table"


def check_no_record_is_read_twice(folder):
    """What engines and editors keep beside their parts is of earlier versions: the same records once more."""
    split(folder, ".csv")
    for beside in ("_delta_log", ".ipynb_checkpoints", "year=0/.old"):
        (folder / beside).mkdir()
        (folder / beside / "part-0.csv").write_bytes((folder / "year=0" / "part-0.csv").read_bytes())
    (folder / "_delta_log" / "0.json").write_text("{}")
    pd.testing.assert_frame_equal(open_table(folder).load(SCHEMA).frame, whole())
    assert kind_of(folder) == "table"


def test_no_record_is_read_twice(tmp_path):
    check_no_record_is_read_twice(tmp_path / "parts")


def test_a_folder_of_whose_copies_each_is_read_is_caught(monkeypatch, tmp_path):
    parts = "any(part[0] in '._' for part in name.split('/') if part)"
    plant(monkeypatch, many_files, "_inside", (parts, "path.name[0] in '._'"))
    with pytest.raises((AssertionError, DataError)):
        check_no_record_is_read_twice(tmp_path / "parts")


def test_a_folder_without_files_or_of_two_forms_is_refused(tmp_path):
    folder = split(tmp_path / "parts", ".csv")
    for given in (tmp_path / "*.csv", tmp_path / "nothing"):
        given.mkdir() if given.name == "nothing" else None
        with pytest.raises(DataError, match="holds no file"):
            open_table(given)
    FRAME.to_parquet(folder / "more.parquet")
    with pytest.raises(DataError, match=r"several forms, more\.parquet beside part-\d\.csv; .*parts/\*\.csv"):
        open_table(folder)
    (folder / "more.parquet").rename(folder / "notes.txt")
    with pytest.raises(DataError, match=r"several forms, notes\.txt beside part-\d\.csv"):
        open_table(folder)


@pytest.mark.parametrize("ending", [".parquet", ".csv", ".csv.gz"])
@pytest.mark.parametrize("name", ["README.txt", "readme.md", "LICENSE", "year=1/Licence.pdf", "CHANGELOG.parquet.html"])
def test_a_file_about_the_parts_is_no_part(tmp_path, ending, name):
    folder = split(tmp_path / "parts", ending)
    (folder / name).write_text("Parts of people, exported in May.\n")
    pd.testing.assert_frame_equal(open_table(folder).load(SCHEMA).frame, whole())
    assert kind_of(folder) == "table"


def test_a_file_with_the_form_of_the_parts_is_one_whatever_its_name(tmp_path):
    folder = split(tmp_path / "parts", ".csv")
    (folder / "README.csv").write_bytes((folder / "year=0" / "part-0.csv").read_bytes())
    assert len(open_table(folder).load(SCHEMA).frame) == 7 + 3
    (folder / "README.csv").write_text("Parts of people\n")
    with pytest.raises(DataError, match=r"\(README\.csv\)"):
        open_table(folder).check(SCHEMA)
    (alone := tmp_path / "alone").mkdir()
    FRAME.to_csv(alone / "readme.txt", index=False)
    assert len(open_table(alone).load(SCHEMA).frame) == 7


def test_each_file_needs_the_columns(tmp_path):
    folder = split(tmp_path / "parts", ".csv")
    (folder / "year=2" / "part-2.csv").write_text("age,seen\n1,2024-01-01\n")
    with pytest.raises(DataError, match=r"is not a column of the data \(part-2\.csv\)") as refused:
        open_table(folder).check(SCHEMA)
    assert refused.value.field == "job"
    found = check(SCHEMA, folder)
    assert [(each.path, each.message.partition(";")[0]) for each in found.findings if each.kind == "absent"] == [
        ("job", "is not a column of the data (part-2.csv)")
    ]


def streams():
    table = pa.Table.from_pandas(FRAME, preserve_index=False)
    yield "table", lambda: table
    yield "chunks", lambda: pa.concat_tables([table.slice(0, 3), table.slice(3)])
    yield "reader", lambda: pa.RecordBatchReader.from_batches(table.schema, iter(table.to_batches(max_chunksize=2)))
    yield (
        "empty batches",
        lambda: pa.RecordBatchReader.from_batches(
            table.schema, iter([table.slice(0, 0).combine_chunks().to_batches() or [], *[table.to_batches()]][1])
        ),
    )
    yield (
        "views",
        lambda: table.cast(
            pa.schema(
                [pa.field(f.name, pa.string_view() if f.type == pa.large_string() else f.type) for f in table.schema]
            )
        ),
    )


@pytest.mark.parametrize("name", [name for name, _ in streams()])
def test_any_stream_of_arrow_is_a_table(name):
    made = dict(streams())[name]
    source = open_data(made(), "table")
    source.check(SCHEMA)
    pd.testing.assert_frame_equal(source.load(SCHEMA).frame, whole())
    assert kind_of(made()) == "table"


@pytest.mark.parametrize("library", ["polars", "duckdb"])
def test_frames_of_other_libraries_are_tables(library):
    other = pytest.importorskip(library, reason=f"{library} is not installed; it is no dependency")
    given = other.from_pandas(FRAME) if library == "polars" else other.from_df(FRAME)
    pd.testing.assert_frame_equal(open_table(given).load(SCHEMA).frame, whole())


def test_only_the_header_of_a_stream_is_looked_at_before_it_is_loaded():
    read = []
    table = pa.Table.from_pandas(FRAME, preserve_index=False)

    def batches():
        for batch in table.to_batches(max_chunksize=3):
            read.append(len(batch))
            yield batch

    source = open_table(pa.RecordBatchReader.from_batches(table.schema, batches()))
    source.check(SCHEMA)
    assert read == []
    source.load(SCHEMA)
    assert read == [3, 3, 1]
    with pytest.raises(DataError, match="once only"):
        source.load(SCHEMA)


def test_a_stream_that_breaks_names_no_cell():
    def batches():
        yield from pa.Table.from_pandas(FRAME, preserve_index=False).to_batches()
        raise ValueError("cell 31 of Kiruna")

    schema = pa.Schema.from_pandas(FRAME, preserve_index=False)
    with pytest.raises(DataError, match="broke off") as refused:
        open_table(pa.RecordBatchReader.from_batches(schema, batches())).load(SCHEMA)
    assert "Kiruna" not in str(refused.value)


def test_what_is_no_stream_is_refused():
    class Broken:
        def __arrow_c_stream__(self, requested_schema=None):
            raise RuntimeError("Kiruna")

    with pytest.raises(DataError, match="gives no stream") as refused:
        open_table(Broken())
    assert "Kiruna" not in str(refused.value)


def test_one_row_group_is_read_in_parts(tmp_path, monkeypatch):
    from doublure.data.tables import opening

    monkeypatch.setattr(opening, "CHUNK_ROWS", 2)
    pq.write_table(pa.Table.from_pandas(FRAME), tmp_path / "one.parquet", row_group_size=100)
    sizes = [len(frame) for frame in open_table(tmp_path / "one.parquet").chunks(["age"])]
    assert sizes == [2, 2, 2, 1]
