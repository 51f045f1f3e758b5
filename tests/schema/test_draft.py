"""A draft takes names and storage types from the data, facts from the codebook, and nothing else from anywhere."""

from __future__ import annotations

import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import doublure as db
from doublure.drafting.draft import draft, drafted
from doublure.drafting.metadata.registry import read_metadata
from doublure.errors import DoublureError, InputError, SchemaError
from doublure.schema import Schema

BUNDLED = Path(__file__).resolve().parents[2] / "src/doublure/datasets/bundled"
HEADER = "column,type,values,lower,upper,missing,description\n"
FRAME = pd.DataFrame(
    {
        "age": [31, 47, 52],
        "hours": [1.5, 2.5, np.nan],
        "flag": [True, False, True],
        "born": ["1990-01-31", "1991-02-28", ""],
        "seen": ["2024-01-31T12:30:00", "2024-02-01T08:00:00", "2024-02-01T08:00:00"],
        "word": ["s3cr3t", "s3cr3t", "other"],
    }
)


def codebook(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "codes.csv"
    path.write_text(HEADER + text, encoding="utf-8")
    return path


def test_names_and_storage_types_and_nothing_else() -> None:
    schema = draft(FRAME)
    assert {name: column.type for name, column in schema.columns.items()} == {
        "age": "integer",
        "hours": "real",
        "flag": "boolean",
        "born": "date",
        "seen": "datetime",
        "word": "category",
    }
    facts = {fact for column in schema.columns.values() for fact in column.facts}
    assert facts == {"bounds", "values", "missing"}
    for column in schema.columns.values():
        assert all(getattr(column, fact) == "undeclared" for fact in column.facts)
        assert not column.roles
    assert schema.units == "undeclared"
    assert schema.constraints == ()


def test_neighbouring_tables_give_the_same_draft() -> None:
    """One record more, less or different, however odd, changes nothing: 19 in 20 cells decide."""
    frame = pd.concat([FRAME.fillna({"hours": 0.5})] * 20, ignore_index=True).astype(object)
    odd = pd.DataFrame([{name: "!" for name in frame.columns}])
    texts = {drafted(table).to_yaml() for table in (frame, pd.concat([frame, odd]), frame.iloc[1:])}
    assert len(texts) == 1


def test_no_cell_reaches_the_file() -> None:
    text = drafted(FRAME).to_yaml()
    for private in ("s3cr3t", "31", "1990", "12:30"):
        assert private not in text.replace("[2024-01-31", "")


def test_the_file_reads_back_and_explains_itself(tmp_path: Path) -> None:
    path = codebook(tmp_path, 'age,,,0,120,false,"Age in years: whole\n years # not months"\nage2,integer,,,,,\n')
    made = drafted(FRAME, path)
    text = made.to_yaml()
    assert Schema.parse(text) == made.schema
    assert made.unknown == ("age2",)
    for words in (
        "declared",
        "learned",
        "undeclared",
        "schema check",
        "codes.csv",
        "'Age in years: whole years # not months'",
    ):
        assert words in text
    assert "age2 (did you mean age?)" in text
    assert text.count("Not in the codebook.") == 5


def test_a_row_without_a_description_is_in_the_codebook_all_the_same(tmp_path: Path) -> None:
    data = pd.DataFrame({"nr": [1], "age": [30]})
    text = drafted(data, codebook(tmp_path, "nr,id,,,,,\n")).to_yaml()
    assert text[text.index("columns:") :].startswith("columns:\n  nr: {type: id}\n  # Not in the codebook.\n  age:")


def test_facts_come_from_the_codebook(tmp_path: Path) -> None:
    rows = "\n".join(
        [
            "age,,,17,90,false,",
            "hours,real,,-1.5,1e3,true,",
            "flag,,,,,?|NA,",
            "born,date,,1900-01-01,2020-12-31,,",
            "seen,datetime,,2020-01-01,2024-12-31T23:59:59,undeclared,",
            "word,ordinal,low|high | top,,,FALSE,",
        ]
    )
    columns = draft(FRAME, codebook(tmp_path, rows)).columns
    assert (columns["age"].type, columns["age"].bounds, columns["age"].missing) == ("integer", (17, 90), False)
    assert (columns["hours"].bounds, columns["hours"].missing) == ((-1.5, 1000.0), True)
    assert columns["flag"].missing == ("?", "NA")
    assert columns["born"].missing == "undeclared"
    assert columns["seen"].missing == "undeclared"
    assert (columns["word"].type, columns["word"].values, columns["word"].missing) == (
        "ordinal",
        ("low", "high", "top"),
        False,
    )


def test_a_list_of_values_makes_a_category_of_whole_numbers(tmp_path: Path) -> None:
    column = draft(FRAME, codebook(tmp_path, "age,,1|2|3,,,,\n")).columns["age"]
    assert column.type == "category"
    assert column.values == (1, 2, 3)
    assert draft(FRAME, codebook(tmp_path, "age,,1|02|3,,,,\n")).columns["age"].values == ("1", "02", "3")


def test_other_delimiters_orders_and_fewer_keys(tmp_path: Path) -> None:
    path = tmp_path / "codes.csv"
    path.write_bytes("﻿Description;COLUMN;type\nAge, in years;age;integer\n\n;;\n".encode())
    entries = read_metadata(path).entries
    assert entries["age"].description == "Age, in years"
    assert dict(entries["age"].facts) == {"type": "integer"}


def test_the_bundled_codebook_describes_the_bundled_data() -> None:
    made = drafted(BUNDLED / "adult_train.csv.xz", BUNDLED / "adult.codebook.csv")
    assert made.unknown == ()
    assert Schema.parse(made.to_yaml()) == made.schema
    declared = Schema.load(BUNDLED / "adult.schema.yaml")
    assert list(made.schema.columns) == list(declared.columns)
    for name, column in made.schema.columns.items():
        assert column.type == declared.columns[name].type
        assert getattr(column, "values", None) == getattr(declared.columns[name], "values", None)


@pytest.mark.parametrize(
    ("row", "place", "words"),
    [
        ("age,number,,,,,", "row 2, type", "no type"),
        ("age,,,5,,,", "row 2, upper", "both or neither"),
        ("age,,,,5,,", "row 2, lower", "both or neither"),
        ("age,,,9,5,,", "row 2, lower", "in order"),
        ("age,,,a,b,,", "row 2, lower", "[lower, upper]"),
        ("age,,,0.5,1.5,,", "row 2, lower", "[lower, upper]"),
        ("born,,,1990,2020,,", "row 2, lower", "2024-01-31"),
        ("age,integer,a|b,,,,", "row 2, values", "does not go with type integer"),
        ("word,category,,0,1,,", "row 2, lower", "does not go with type category"),
        ("word,,a||b,,,,", "row 2, values", "empty value"),
        ("word,,a|a,,,,", "row 2, values", "twice"),
        ("age,ordinal,-2:8,,,,", "row 2, values", "one value alone"),
        ("age,ordinal,8..-2,,,,", "row 2, values", "not in order"),
        ("age,ordinal,1..10000000,,,,", "row 2, values", "too long"),
        ("age,,,,,,%s" % ("so " * 400), "row 2, description", "1,000 characters"),
        ("word,,a|?,,,?,", "row 2, missing", "missing"),
        ("age,,,,,,\nage,,,,,,", "row 3, column", "earlier row"),
        (",integer,,,,,", "row 2, column", "empty"),
        ("age,integer", "row 2", "2 fields and the header 7"),
        ("age,,,,,,Years, whole", "row 2", "8 fields and the header 7"),
        ('age,,,,,,"Years', "codes.csv", "quote"),
    ],
)
def test_a_malformed_row_is_named(tmp_path: Path, row: str, place: str, words: str) -> None:
    with pytest.raises(SchemaError) as caught:
        draft(FRAME, codebook(tmp_path, row + "\n"))
    assert caught.value.field is not None
    assert place in caught.value.field
    assert words in str(caught.value)
    assert caught.value.remedy
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "no key column"),
        (b"owner,type\nage,integer\n", "no key column"),
        (b"column,kind\nage,integer\n", "not a key"),
        (b"column\n\xe9\n", "UTF-8"),
        (b"column\nage\0\n", "NUL"),
    ],
)
def test_a_malformed_codebook_is_one_line(tmp_path: Path, content: bytes, words: str) -> None:
    (tmp_path / "codes.csv").write_bytes(content)
    with pytest.raises(InputError, match=words) as caught:
        draft(FRAME, tmp_path / "codes.csv")
    assert "\n" not in str(caught.value)


def test_a_codebook_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        draft(FRAME, tmp_path / "none.csv")


@pytest.mark.parametrize("name", ["a\u202eb", "a\tb", "x" * 501, "\u200b"])
def test_hostile_names_are_refused_and_shown_harmless(name: str) -> None:
    with pytest.raises(DoublureError) as caught:
        draft(pd.DataFrame({name: [1, 2]}))
    assert str(caught.value).isprintable()
    assert "rename" in str(caught.value)


def test_names_that_stand_twice_are_numbered() -> None:
    made = draft(pd.DataFrame([[1, 2, 3]], columns=["a", "a", "a_2"]))
    assert list(made.columns) == ["a", "a_3", "a_2"]
    assert made.written is not None
    assert made.written.rename == {"a": ("a", "a_3")}


def test_what_a_column_means_is_a_fact_of_the_schema(tmp_path: Path) -> None:
    made = drafted(FRAME, codebook(tmp_path, "word,category,1|2,,,false,1 male 2 female\nage,,,0,99,false,\n"))
    schema = Schema.parse(made.to_yaml())
    assert schema.columns["word"].description == "1 male 2 female"
    assert schema.columns["age"].description is None
    assert "description" not in schema.to_plain()["columns"]["age"]  # a schema without one keeps its hash


@pytest.mark.parametrize("text", ["", "  ", "x" * 1001, "two\nlines", "a\u202eb", "\x1b[2J"])
def test_a_description_is_a_line_of_visible_text(text: str) -> None:
    plain = {"doublure": 1, "kind": "table", "columns": {"a": {"type": "boolean", "description": text}}}
    with pytest.raises(SchemaError, match="description") as caught:
        Schema.from_plain(plain)
    assert str(caught.value).isprintable()


def test_the_further_keys_of_a_codebook(tmp_path: Path) -> None:
    path = tmp_path / "codes.csv"
    path.write_text(
        "column,type,values,lower,upper,missing,other,step,precision,scale,spikes,zero_inflated,timezone,roles\n"
        "age,integer,,0,10000,false,,1000,,symlog,1000|9000,true,,\n"
        "hours,real,,0,99,false,,,2,,,,,\n"
        "seen,datetime,,2020-01-01,2020-02-01,false,,60,,,,,Europe/Paris,\n"
        "word,category,-1..2|9|NA,,,false,rest,,,,,,,target|condition\n"
    )
    columns = Schema.parse(drafted(FRAME, path).to_yaml()).columns
    age = columns["age"]
    assert (age.step, age.scale, age.spikes, age.zero_inflated) == (1000, "symlog", (1000.0, 9000.0), True)
    assert (columns["hours"].precision, columns["seen"].step, columns["seen"].timezone) == (2, 60, "Europe/Paris")
    assert columns["word"].values == ("-1", "0", "1", "2", "9", "NA")
    assert (columns["word"].other, columns["word"].roles) == ("rest", ("target", "condition"))
    path.write_text("column,type,step\nword,category,5\n")
    with pytest.raises(SchemaError, match="does not go with type category") as caught:
        drafted(FRAME, path)
    assert caught.value.field == "codes.csv row 2, step"
    path.write_text("column,type,roles\nword,category,goal\n")
    with pytest.raises(SchemaError) as caught:
        drafted(FRAME, path)
    assert caught.value.field == "codes.csv row 2, roles"


def test_a_range_of_whole_numbers_is_their_list(tmp_path: Path) -> None:
    column = draft(FRAME, codebook(tmp_path, "age,ordinal,-2..8,,,false,\n")).columns["age"]
    assert column.values == tuple(range(-2, 9))


def test_hostile_descriptions_stay_text(tmp_path: Path) -> None:
    made = drafted(FRAME, codebook(tmp_path, 'age,,,,,,"x\nage: {type: id} \u202e \x1b[2J"\n'))
    assert Schema.parse(made.to_yaml()) == made.schema
    assert "\x1b" not in made.to_yaml()
    assert "\u202e" not in made.to_yaml()


def test_the_draft_is_a_public_function() -> None:
    assert db.draft(FRAME) == drafted(FRAME).schema


def test_a_split_of_series_is_drafted_by_itself(tmp_path):
    arrays = {"x_train": np.zeros((4, 6)), "y_train": np.arange(4), "x_test": np.zeros((3, 6)), "y_test": np.arange(3)}
    np.savez(tmp_path / "ecg.npz", **arrays)
    made = draft(f"{tmp_path / 'ecg.npz'}#train", kind="series")
    assert (list(made.channels), list(made.attributes), made.series.length) == (["x"], ["y"], 6)


def _spelled(folder: Path) -> Path:
    moments = pd.date_range("2024-01-25", periods=60, freq="6h")
    frame = pd.DataFrame({"meter_id": [7, 9] * 30, "Datum": moments.strftime("%d.%m.%Y %H:%M"), "kWh": "1.234,5"})
    frame.assign(state="on").to_csv(folder / "readings.csv", index=False, sep=";", encoding="latin-1")
    return folder / "readings.csv"


def test_how_readings_are_written_stands_in_the_draft_as_comments(tmp_path: Path) -> None:
    made = drafted(_spelled(tmp_path), kind="series", encoding="latin-1")
    text = made.to_yaml()
    schema = Schema.parse(text)
    assert schema == made.schema
    assert (schema.series.time, list(schema.channels)) == ("Datum", ["meter_id", "kWh"])
    assert schema.written.rewrites is False  # nothing that was read from cells is declared
    assert "series: {step: undeclared, time: Datum" in text
    for line in ("# date_format: DD.MM.YYYY", "# decimal: ','", "# thousands: .", "# take meter_id out and name it"):
        assert line in text
    assert "1.234,5" not in text
    confirmed = Schema.parse(text.replace("# date_format", "date_format").replace("# decimal", "decimal"))
    assert (confirmed.date_format, confirmed.decimal, confirmed.encoding) == ("DD.MM.YYYY hh:mm", ",", "iso8859-1")
    assert confirmed.delimiter == ";"  # the header tells it


def test_how_related_tables_are_written_stands_in_the_draft_as_comments(tmp_path: Path) -> None:
    _spelled(tmp_path)
    (tmp_path / "meter.csv").write_text("id;town\n" + "".join(f"{number};x\n" for number in range(60)))
    text = drafted(tmp_path, kind="relational", encoding="latin-1").to_yaml()
    assert Schema.parse(text).encoding == "iso8859-1"
    form = "date_format: 'DD.MM.YYYY hh:mm'"
    assert f"      # Datum: {{type: datetime, {form}, bounds: undeclared, step: 60}}  # if it holds dates" in text


def test_a_codebook_describes_columns_of_each_table(tmp_path):
    tables = {
        "patients": pd.DataFrame({"patient_id": [1], "sex": ["f"], "note": ["x"]}),
        "stays": pd.DataFrame({"patient_id": [1], "days": [3], "note": ["y"], "case": [7]}),
    }
    rows = (
        "patients.sex,category,f|m,,,false,Sex\nstays.days,integer,,0,30,false,Nights\nstays.case,id,,,,,Case number\n"
        "note,category,x|y,,,true,What was said\nstays.ward,category,a|b,,,,\n"
    )
    made = drafted(tables, codebook(tmp_path, rows))
    columns = made.schema.columns
    assert columns["patients.sex"].values == ("f", "m")
    assert columns["stays.days"].bounds == (0, 30)
    assert columns["patients.note"].values == columns["stays.note"].values == ("x", "y")
    assert columns["stays.patient_id"].type == columns["stays.case"].type == "id"
    assert made.schema.tables["stays"].key == "case"
    text = made.to_yaml()
    assert "columns that the data does not have: stays.ward" in text
    assert [columns[name].description for name in ("stays.days", "stays.note")] == ["Nights", "What was said"]
    assert text.count("Not in the codebook.") == 2  # both keys
    assert Schema.parse(text) == made.schema
    with pytest.raises(SchemaError, match="leave it out for images"):
        drafted(tmp_path, codebook(tmp_path, rows), "images")


def test_a_codebook_says_how_cells_are_written(tmp_path: Path) -> None:
    rows = (
        "column,type,lower,upper,missing,precision,date_format,format,written,dtype\n"
        "icu,boolean,,,false,,,,Y|N,\nissued,date,2000-01-01,2024-12-31,false,,YYYYMMDD,,,Int64\n"
        'price,real,0,1000,false,2,,"$#,##0.00",,\ncount,integer,0,99,false,,,,,int8\n'
    )
    (tmp_path / "codes.csv").write_text(rows)
    data = pd.DataFrame({"icu": ["Y"], "issued": [20230309], "price": ["$1.00"], "count": [1]})
    columns = drafted(data, tmp_path / "codes.csv").schema.columns
    assert columns["icu"].fact("written") == {"true": "Y", "false": "N"}
    assert (columns["issued"].fact("date_format"), columns["issued"].dtype) == ("YYYYMMDD", "Int64")
    assert (columns["price"].fact("format"), columns["count"].dtype) == ("$#,##0.00", "int8")
    (tmp_path / "codes.csv").write_text("column,type,written\nicu,boolean,Y\n")
    with pytest.raises(SchemaError, match="row 2, written: written gives a text for true and one for false"):
        drafted(data, tmp_path / "codes.csv")


def test_a_draft_proposes_a_form_that_a_codebook_leaves_open(tmp_path: Path) -> None:
    (tmp_path / "codes.csv").write_text("column,type,missing\nicu,boolean,false\nward,category,false\n")
    data = pd.DataFrame({"icu": ["yes", "no"] * 40, "ward": ["yes", "no"] * 40})
    data.to_csv(tmp_path / "a.csv", index=False)
    text = drafted(tmp_path / "a.csv", tmp_path / "codes.csv").to_yaml()
    assert "# icu: {type: boolean, missing: false, written: {true: 'yes', false: 'no'}}" in text
    assert "# ward" not in text


def test_a_draft_takes_the_storage_types_of_a_typed_container_and_no_cell(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {
            "a": np.arange(3, dtype="int16"),
            "b": pd.Categorical(["x", "y", "x"]),
            "c": pd.Series(["x", "y", "x"], dtype="str"),
            "d": pd.to_datetime(["2024-01-01"] * 3).astype("datetime64[ns]"),
            "e": [1, 2, 3],
            "f": [10**18 + 1, 10**18 + 2, 10**18 + 3],
        }
    )
    frame.to_parquet(tmp_path / "a.parquet", index=False)
    for data in (frame, tmp_path / "a.parquet"):
        columns = drafted(data).schema.columns
        assert {name: column.dtype for name, column in columns.items()} == {
            "a": "int16", "b": None, "c": "str", "d": "datetime64[ns]", "e": None, "f": "int64",
        }  # fmt: skip
        assert columns["f"].type == "category"  # float64 would round it
    frame.to_csv(tmp_path / "a.csv", index=False)
    assert all(column.dtype is None for column in drafted(tmp_path / "a.csv").schema.columns.values())


def test_a_draft_takes_what_a_header_tells_of_its_file(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes('\ufeff"a";"b"\r\n"1";"2"\r\n'.encode())
    made = drafted(tmp_path / "a.csv")
    assert made.schema.text_form == {"encoding": "utf-8-sig", "delimiter": ";", "line_end": "crlf"}
    assert "# quoting: text\n" in made.to_yaml()


def test_dates_beside_the_moments_are_named_where_they_are_left_out(tmp_path):
    readings = pd.DataFrame(
        {
            "when": pd.date_range("2024-01-01", periods=48, freq="h"),
            "meter": "m1",
            "installed": pd.to_datetime(["2020-05-01"] * 48),
            "kwh": np.arange(48) / 7,
        }
    )
    readings.to_parquet(tmp_path / "a.parquet")
    text = drafted(tmp_path / "a.parquet", kind="series").to_yaml()
    assert "# installed is left out: it holds dates or times" in text
    assert "stamped_from: '2001-01-01'" in text
    assert Schema.parse(text).series.time == "when"


READINGS = "time,kWh,spare\n" + "".join(f"2024-03-04 {hour:02}:00:00,{hour / 2},{hour}\n" for hour in range(24))
DAYS = [f"{day}.03.2024 {hour:02}:00" for day in (24, 25) for hour in range(24)]
GERMAN = "Zähler;time;kWh\n" + "".join(f"A1;{moment};{number},5\n" for number, moment in enumerate(DAYS))
PEOPLE = "name,dob,income\n" + "".join(f"P{day},1980-01-{day:02},{day}\n" for day in range(1, 24))
STAYS = "stay_id,admitted,ward,age\n" + "".join(f"{day},2024-01-{day:02} 03:00:00,w,{day}\n" for day in range(1, 24))


@pytest.mark.parametrize(
    ("text", "series"), [(READINGS, True), (GERMAN, True), (PEOPLE, False), (STAYS, False)], ids=["a", "b", "c", "d"]
)
def test_a_draft_of_a_meters_file_says_how_it_is_drafted_as_series(tmp_path, capsys, text, series):
    from doublure.cli.main import app
    from doublure.cli.terminal import run_guarded

    data, out = tmp_path / "my meter.csv", tmp_path / "s.yaml"
    data.write_text(text)
    assert run_guarded(app, ["schema", "draft", str(data), "-o", str(out)]) == 0
    printed = capsys.readouterr().out
    lines = [line for line in printed.splitlines() if "--kind series" in line]
    assert len(lines) == series
    if not series:
        return
    command = lines[0].removeprefix("If rows are readings over time: doublure ")
    assert run_guarded(app, shlex.split(command)) == 0
    assert "kind: series" in out.read_text()
    assert "--kind series" not in capsys.readouterr().out
