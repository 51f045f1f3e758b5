"""Forms of dates and numbers in text: what each reads and writes, and what is no form."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from doublure.data.tables.writing import write_table
from doublure.errors import SchemaError
from doublure.schema import Schema
from doublure.schema.columns.date_format import date_text, is_whole, pattern_of
from doublure.schema.columns.number_format import marked, number_form
from doublure.schema.columns.spelling import MISFIT, TextMarks, respelt_dates, respelt_form

MOMENT = (2023, 3, 9, 7, 5, 0)


@pytest.mark.parametrize(
    ("form", "text", "iso"),
    [
        ("DD.MM.YYYY", "09.03.2023", "2023-03-09"),
        ("D.M.YYYY", "9.3.2023", "2023-03-09"),
        ("M/D/YYYY h:mm", "3/9/2023 7:05", "2023-03-09T07:05:00"),
        ("YYYYMMDD", "20230309", "2023-03-09"),
        ("YYYYMMDDhhmmss", "20230309070500", "2023-03-09T07:05:00"),
        ("YYYY-MM-DDThh:mm", "2023-03-09T07:05", "2023-03-09T07:05:00"),
        ("MM/YYYY", "03/2023", "2023-03"),
        ("DD-Mmm-YYYY", "09-Mar-2023", "2023-03-09"),
        ("DDMMMYYYY", "09MAR2023", "2023-03-09"),
        ("Mmm YYYY", "Mar 2023", "2023-03"),
        ("M/D/YYYY h:mm AM", "3/9/2023 7:05 AM", "2023-03-09T07:05:00"),
        ("YYYYMM", "202303", "2023-03"),
    ],
)
def test_a_form_of_dates_reads_what_it_writes(form: str, text: str, iso: str) -> None:
    assert date_text(form, MOMENT) == text
    assert respelt_dates(form, ["?"])(text) == iso
    assert respelt_dates(form, ["?"])("?") == "?"
    for other in ("9-3-2023", "20230309x", "2023-03-09", "x"):
        if pattern_of(form).fullmatch(other) is None:
            assert respelt_dates(form, ())(other) == MISFIT


@pytest.mark.parametrize(
    ("hour", "text"),
    [(0, "12:05 AM"), (1, "1:05 AM"), (11, "11:05 AM"), (12, "12:05 PM"), (13, "1:05 PM"), (23, "11:05 PM")],
)
def test_noon_and_midnight_are_twelve(hour: int, text: str) -> None:
    form = "D.M.YYYY h:mm AM"
    assert date_text(form, (2023, 3, 9, hour, 5, 0)) == f"9.3.2023 {text}"
    assert respelt_dates(form, ())(f"9.3.2023 {text.lower()}") == f"2023-03-09T{hour:02}:05:00"
    for wrong in ("13:05 PM", "0:05 AM", "7:05"):
        assert respelt_dates(form, ())(f"9.3.2023 {wrong}") == MISFIT


def test_a_whole_number_is_a_date_with_the_zeros_that_it_has_lost() -> None:
    assert [is_whole(form) for form in ("YYYYMMDD", "DDMMYYYY", "YYYY-MM-DD", "YYYYMD", "")] == [True] * 2 + [False] * 3
    assert respelt_dates("DDMMYYYY", ()).of_number("9032023") == "2023-03-09"
    assert respelt_dates("YYYYMMDD", ()).of_number("20230309") == "2023-03-09"
    assert respelt_dates("YYYYMMDD", ()).of_number("2021010") == MISFIT


AMOUNTS = [
    ("$#,##0.00", 1234.5, "$1,234.50"),
    ("$#,##0.00", -1234.5, "-$1,234.50"),
    ("$#,##0.00;($#,##0.00)", -1234.5, "($1,234.50)"),
    ("0.0 %", 12.5, "12.5 %"),
    ("0%", 12.0, "12%"),
    ("#.##0,00", 1234.5, "1.234,50"),
    ("#.##0,00 €", -1234567.25, "-1.234.567,25 €"),
    ("#'##0.00", 1234.5, "1'234.50"),
    ("# ##0,0 kr", 1234.5, "1 234,5 kr"),
    ("EUR #,##0", 1234.0, "EUR 1,234"),
    ("00000", 123.0, "00123"),
    ("0.00", 0.1, "0.10"),
    ("0.0", -0.01, "0.0"),
]


@pytest.mark.parametrize(("form", "number", "text"), AMOUNTS)
def test_a_form_of_numbers_reads_what_it_writes(form: str, number: float, text: str) -> None:
    assert number_form(form).text(number) == text
    assert float(respelt_form(form, ())(text)) == (number if text != "0.0" else 0.0)


@given(number=st.integers(-(10**11), 10**11), form=st.sampled_from([each[0] for each in AMOUNTS if ".00" in each[0]]))
def test_any_number_comes_back(number: int, form: str) -> None:
    assert float(respelt_form(form, ())(number_form(form).text(number / 100))) == number / 100


@pytest.mark.parametrize(
    ("form", "text", "plain"),
    [
        ("$#,##0.00", "$1234.5", "1234.5"),
        ("$#,##0.00", "$-5", "-5"),
        ("$#,##0.00", "1,234.50", MISFIT),
        ("$#,##0.00", "$1.234,50", MISFIT),
        ("$#,##0.00", "$1,23.00", MISFIT),
        ("$#,##0.00", "+-$5", MISFIT),
        ("0.0 %", "12.5%", "12.5"),
        ("0.0 %", "12.5\u00a0%", "12.5"),
        ("0.0 %", "12.5", MISFIT),
        ("# ##0,00", "1\u202f234,50", "1234.50"),
        ("#.##0,00", "1.234,50", "1234.50"),
        ("#.##0,00", "1,234.50", MISFIT),
        ("00000", "123", "123"),
        ("0", "\u0661", MISFIT),
    ],
)
def test_another_form_is_a_misfit_and_never_another_number(form: str, text: str, plain: str) -> None:
    assert respelt_form(form, ())(text) == plain


@pytest.mark.parametrize("form", ["", "x", "1,234.50", "-0", "=0", "@0", '"0"', "#,##0,00", "0;0", "0;-", "0\n", "+0"])
def test_no_form_of_numbers_is_one_line(form: str) -> None:
    with pytest.raises(ValueError, match="; write one such as"):
        number_form(form)


def test_marks_of_a_table_are_written_where_a_column_says_nothing() -> None:
    assert [marked(",", None)(text) for text in ("1234.5", "-3", "1e-07")] == ["1234,5", "-3", "1e-07"]
    assert [marked(",", ".")(text) for text in ("1234567.5", "-1234", "123")] == ["1.234.567,5", "-1.234", "123"]


def cells(column: str, values: object, marks: TextMarks | None = None) -> list[object]:
    """Return numbers as a CSV file has them."""
    schema = Schema.parse(f"doublure: 1\nkind: table\nunits: 9\ncolumns: {{a: {column}}}")
    own = schema.columns["a"]
    found = own.csv_cells(own.cells_of(np.array(values, dtype=float)), marks or TextMarks())
    return [None if pd.isna(cell) else cell for cell in found]


def test_a_column_writes_its_own_form_else_that_of_the_table() -> None:
    german = TextMarks("DD.MM.YYYY", ",", ".")
    day = "{type: date, bounds: [2000-01-01, 2030-12-31], missing: true"
    assert cells(f"{day}}}", [19425, math.nan]) == ["2023-03-09", None]
    assert cells(f"{day}}}", [19425], german) == ["09.03.2023"]
    assert cells(f"{day}, date_format: YYYYMMDD}}", [19425, math.nan], german) == [20230309, None]
    real = "{type: real, bounds: [0, 10000], precision: 1, missing: true"
    assert cells(f"{real}}}", [1234.5, math.nan], german) == ["1.234,5", None]
    assert cells(f"{real}, format: '$0.0'}}", [1234.5], german) == ["$1234.5"]
    assert cells("{type: integer, bounds: [0, 9999], missing: false}", [1234], german) == ["1.234"]
    assert cells("{type: integer, bounds: [0, 9999], missing: false, format: '0'}", [1234], german) == ["1234"]


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ("", "2022-12-14 20:02:00"),
        ("step: 60", "2022-12-14 20:02"),
        ("step: 86400", "2022-12-14"),
        ("date_format: DD.MM.YYYY", "14.12.2022 20:02:00"),
        ("step: 60, date_format: DD.MM.YYYY", "14.12.2022 20:02"),
        ("date_format: 'YYYY-MM-DD hh:mm'", "2022-12-14 20:02"),
    ],
)
def test_no_second_is_written_that_was_not_there(more: str, text: str) -> None:
    moment = pd.Timestamp("2022-12-14 20:02").timestamp()
    column = "type: datetime, bounds: [2022-01-01, 2022-12-31], missing: false"
    assert cells(f"{{{column}{', ' * bool(more)}{more}}}", [moment]) == [text]


@pytest.mark.parametrize(
    ("written", "found"), [("{true: Y, false: N}", ["N", "Y", None]), ("{true: 1, false: 2}", [2, 1, None])]
)
def test_true_and_false_are_written_as_declared(written: str, found: list[object]) -> None:
    column = f"{{type: boolean, written: {written}, missing: true}}"
    assert cells(column, [0, 1, math.nan]) == found
    own = Schema.parse(f"doublure: 1\nkind: table\nunits: 9\ncolumns: {{a: {column}}}").columns["a"]
    assert own.asked(found[1]).values == own.asked("true").values == (1.0,)
    assert list(own.stored_cells(own.cells_of(np.array([0.0, 1.0])), TextMarks())) == found[:2]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("{type: boolean, written: {true: Y}}", "written gives a text for true and one for false"),
        ("{type: boolean, written: {true: Y, false: Y}}", "one text for true and false"),
        ("{type: boolean, written: {true: Y, false: N}, missing: [N]}", "that means missing"),
        ("{type: integer, format: '0.0'}", "leave them out of the format"),
        ("{type: real, precision: 1, format: '0.00'}", "declare precision: 2"),
        ("{type: real, format: blue}", "is no form of numbers"),
        ("{type: integer, dtype: category}", "dtype does not go with this column of type integer; write one of int8"),
        ("{type: integer, dtype: int8, bounds: [0, 300]}", "does not reach all values"),
        ("{type: integer, dtype: int32, missing: true}", "write Int32, or missing: false"),
        ("{type: date, dtype: int64}", "needs a date_format of digits alone"),
        ("{type: date, dtype: 'datetime64[ns]', bounds: [1500-01-01, 2000-01-01]}", "does not reach all bounds"),
        ("{type: category, dtype: int64, values: [a, b]}", "needs declared values that are numbers"),
        ("{type: month, date_format: DD.MM.YYYY}", "is no form of months"),
    ],
)
def test_a_form_that_does_not_go_is_one_line(line: str, words: str) -> None:
    with pytest.raises(SchemaError, match=words):
        Schema.parse(f"doublure: 1\nkind: table\nunits: 9\ncolumns: {{a: {line}}}")


def test_forms_are_part_of_the_hash_and_their_absence_is_not() -> None:
    text = "doublure: 1\nkind: table\nunits: 9\ncolumns: {a: {type: boolean, missing: false}}"
    plain = Schema.parse(text)
    assert plain.to_plain()["columns"]["a"] == {"type": "boolean", "missing": False}
    said = Schema.parse(text.replace("}}", ", written: {true: Y, false: N}}}"))
    assert Schema.parse(said.to_yaml()) == said
    assert said.sha256 != plain.sha256
    top = Schema.parse(text.replace("units: 9", "units: 9\nquoting: all\nline_end: crlf\nheader: false"))
    assert Schema.parse(top.to_yaml()) == top
    assert Schema.parse(text.replace("units: 9", "units: 9\nheader: true")).sha256 == plain.sha256


def test_a_bound_that_is_bought_ends_where_its_storage_type_does() -> None:
    line = "{type: integer, bounds: {learn: 0.1}, missing: false, dtype: int16}"
    schema = Schema.parse(f"doublure: 1\nkind: table\nunits: 9\ncolumns: {{a: {line}}}")
    assert schema.resolve({"columns.a.bounds": (0, 100_000)}).columns["a"].bounds == (0, 32_767)


@pytest.mark.parametrize(
    ("column", "asked", "number"),
    [
        ("{type: date, bounds: [2000-01-01, 2030-12-31], missing: true, date_format: YYYYMMDD}", "20230309", 19425),
        ("{type: date, bounds: [2000-01-01, 2030-12-31], missing: true, date_format: YYYYMMDD}", 20230309, 19425),
        ("{type: date, bounds: [2000-01-01, 2030-12-31], missing: true, date_format: D.M.YYYY}", "2023-03-09", 19425),
        ("{type: month, bounds: [2000-01, 2030-12], missing: true, date_format: MM/YYYY}", "03/2023", 638),
        ("{type: real, bounds: [0, 9999], precision: 2, missing: true, format: '$#,##0.00'}", "$1,234.50", 1234.5),
        ("{type: real, bounds: [0, 9999], precision: 2, missing: true, format: '$#,##0.00'}", "1234.5", 1234.5),
    ],
)
def test_records_are_asked_for_in_a_column_s_own_form(column: str, asked: object, number: float) -> None:
    own = Schema.parse(f"doublure: 1\nkind: table\nunits: 9\ncolumns: {{a: {column}}}").columns["a"]
    assert own.number_of(asked) == number


@pytest.mark.parametrize("missing", ["true", "false"])
def test_no_storage_type_rounds_a_whole_number(missing: str) -> None:
    codes = [2**53 + 1, 2**60 + 1]
    line = f"{{type: category, values: {codes}, missing: {missing}, dtype: Int64}}"
    own = Schema.parse(f"doublure: 1\nkind: table\nunits: 9\ncolumns: {{a: {line}}}").columns["a"]
    found = own.stored_cells(own.cells_of(np.array([1.0, 0.0, math.nan][: 2 + (missing == "true")])), TextMarks())
    assert found.dropna().tolist() == codes[::-1]
    texts = own.model_copy(update={"dtype": "str"})
    assert texts.stored_cells(own.cells_of(np.array([0.0])), TextMarks()).tolist() == [str(codes[0])]


TIMES = """
doublure: 1
kind: table
units: 5
{top}
columns:
  at: {{type: datetime, bounds: [2020-01-01T00:00:00, 2020-12-31T23:59:59], missing: false{more}}}
"""


@pytest.mark.parametrize(
    ("top", "more", "step"),
    [
        ("", ", date_format: DD.MM.YYYY hh:mm", 60),
        ("", ", date_format: M/D/YYYY h:mm AM", 60),
        ("date_format: DD.MM.YYYY hh:mm", "", 60),
        ("date_format: DD.MM.YYYY hh:mm", ", date_format: DD.MM.YYYY hh:mm:ss", 1),
        ("", ", date_format: DD.MM.YYYY hh:mm, step: 900", 900),
        ("", ", date_format: DD.MM.YYYY", 1),  # a clock is written behind it
    ],
)
def test_a_moment_is_no_finer_than_its_form_shows(top: str, more: str, step: int) -> None:
    schema = Schema.parse(TIMES.format(top=top, more=more))
    assert schema.columns["at"].fact("step") == step
    assert schema.columns["at"].unit == step
    assert Schema.parse(schema.to_yaml()) == schema


@pytest.mark.parametrize(
    ("top", "more", "said"),
    [
        ("", ", date_format: DD.MM.YYYY hh:mm, step: 1", "columns.at: step is finer than .* write step: 60"),
        ("date_format: DD.MM.YYYY hh:mm", ", step: 90", "at: step is finer than .* write step: 60"),
        ("", ", date_format: YYYYMMDD, dtype: int64", "columns.at: .* no place for the time"),
    ],
)
def test_a_step_that_its_form_does_not_show_is_refused(top: str, more: str, said: str) -> None:
    with pytest.raises(SchemaError, match=said):
        Schema.parse(TIMES.format(top=top, more=more))


def test_the_clock_of_series_and_related_tables_is_no_finer_than_their_form() -> None:
    form = "doublure: 1\nunits: 5\ndate_format: DD.MM.YYYY hh:mm\n"
    series = (
        form + "kind: series\nunit: {{name: meter, id: meter}}\nseries: {{time: at, step: {step}, length: 4, {more}}}\n"
    )
    series += "channels: {{litres: {{type: real, bounds: [0, 1], missing: false}}}}\n"
    more = "stamped_from: 2024-01-01"
    assert Schema.parse(series.format(step="15min", more=more)).cell_form.columns["at"].fact("step") == 900
    with pytest.raises(SchemaError, match="step is finer than date_format"):
        Schema.parse(series.format(step="30s", more=more))
    column = "{type: datetime, bounds: [2020-01-01T00:00:00, 2020-12-31T23:59:59], missing: false}"
    related = form + "kind: relational\nunit: {name: person}\ntables:\n"
    related += f"  people: {{key: nr, columns: {{nr: {{type: id}}, at: {column}}}}}\n"
    related += (
        f"  stays: {{parent: people, foreign_key: nr, max_children: 2, columns: {{nr: {{type: id}}, at: {column}}}}}\n"
    )
    assert {Schema.parse(related).columns[name].unit for name in ("people.at", "stays.at")} == {60}


@pytest.mark.parametrize("as_text", [True, False])
def test_rows_out_of_order_keep_their_cells(as_text: bool) -> None:
    """The rows of a page are picked from a table: each keeps its index, and its cells have to go with it."""
    columns = """
  born: {type: date, bounds: ['2020-01-01', '2023-12-31'], missing: false}
  met: {type: datetime, bounds: ['2020-01-01T00:00:00', '2023-12-31T23:59:59'], missing: false}
  icu: {type: boolean, written: {'true': Y, 'false': N}, missing: false}
  cost: {type: real, bounds: [0, 10], precision: 2, format: '$#,##0.00', missing: false}
  month: {type: month, bounds: ['2020-01', '2023-12'], missing: false}
  age: {type: integer, bounds: [0, 99], missing: ['', '-9']}
  took: {type: time, bounds: ['00:00', '23:59'], missing: false}"""
    schema = Schema.parse(f"doublure: 1\nkind: table\nunits: 5\ncolumns:{columns}\n", "s")
    frame = pd.DataFrame({name: each.cells_of(np.array([0.0, 1.0, 0.0])) for name, each in schema.columns.items()})
    order = [2, 0, 1]
    whole = schema.cell_form.formed(frame, as_text=as_text)
    picked = schema.cell_form.formed(frame.iloc[order], as_text=as_text)
    assert picked.astype(str).to_numpy().tolist() == whole.astype(str).iloc[order].to_numpy().tolist()
    assert not picked.isna().any().any()


@pytest.mark.parametrize("missing", [True, ["NA", "?"]])
def test_reals_without_decimals_are_written_as_whole_numbers(tmp_path: Path, missing: Any) -> None:
    column = {"type": "real", "bounds": [0, 99], "precision": 0, "missing": missing}
    schema = Schema.from_plain({"doublure": 1, "kind": "table", "units": 3, "columns": {"a": column}})
    write_table([pd.DataFrame({"a": [33.0, 7.0]})], tmp_path / "a.csv", schema)
    assert (tmp_path / "a.csv").read_text() == "a\n33\n7\n"
