"""A codebook in the words of those who keep it: what is certain is read, all else stays a note."""

from __future__ import annotations

import re

import pandas as pd
import pytest

import doublure as db
from doublure.cli.main import app
from doublure.cli.terminal import run_guarded
from doublure.drafting.draft import drafted
from doublure.drafting.metadata.codebook import facts_in_words
from doublure.drafting.metadata.own_words import headings
from doublure.drafting.metadata.registry import read_metadata
from doublure.errors import SchemaError

HEADER = "Variable,Meaning,Type,Allowed values / range,Missing,Comment"
ROWS = {
    'mrn,patient number,ID,,never,"several stays, perhaps"': {"type": "id"},
    'dob,date of birth,date,1900-01-01 to 2023-12-31,,"1900-01-01: unknown"':
        {"type": "date", "bounds": ["1900-01-01", "2023-12-31"]},
    'sex,sex,coded,"1=male, 2=female, 9=unknown",never,':
        {"type": "category", "values": [1, 2, 9], "missing": False,
         "value_labels": {"1": "male", "2": "female", "9": "unknown"}},
    "admitted,,date/time,2022-01-01 to 2023-12-31,never,":
        {"type": "datetime", "bounds": ["2022-01-01", "2023-12-31T23:59:59"], "missing": False},
    'los,length of stay,"days, 1 decimal",0 - 100,,': {"type": "real", "bounds": [0, 100], "precision": 1},
    'hb,"haemoglobin, g/dL","number, 2 decimals",-3 – 25,empty,':
        {"type": "real", "bounds": [-3, 25], "precision": 2, "missing": True},
    "paid,who paid,factor,statutory; private,n/a,":
        {"type": "category", "values": ["statutory", "private"], "missing": ["", "n/a"]},
    'icu,in intensive care,Y/N,"Y, N",never,':
        {"type": "boolean", "written": {"true": "Y", "false": "N"}, "missing": False},
    "site,,list,MAIN,,": {"type": "category", "values": ["MAIN"]},
    "crea,,number,0 - 20,empty; <0.2 = below detection,":
        {"type": "real", "bounds": [0, 20], "missing": ["", "<0.2"], "value_labels": {"<0.2": "below detection"}},
    "stay,stay,,0 to 100,,": {"bounds": [0, 100]},
    "name,,fake,,,": {"type": "fake", "as": "person_name"},
    "who,,fake: e-mail,,,": {"type": "fake", "as": "email"},
    "note,,constant,,,": {"type": "constant"},
    "text,,constant: (removed),,,": {"type": "constant", "value": "(removed)"},
    "icd,,code,A00|A01,,": {"type": "code", "values": ["A00", "A01"], "levels": [1, 3]},
    "zip,,list,01000..01002,,": {"type": "category", "values": ["01000", "01001", "01002"]},
    "took,,month,,,": {"type": "month"},
}  # fmt: skip
SAID = {
    "0 to 1,000,000": {"bounds": [0, 1000000]},
    "0 to 1 000 000": {"bounds": [0, 1000000]},
    "0 to 1.000.000": {"bounds": [0, 1000000]},
    "0 to 1,000.50": {"type": "real", "bounds": [0, 1000.5]},
    "0 to 100, one decimal": {"type": "real", "bounds": [0, 100], "precision": 1},
    "0.5-2.25 (2 decimals)": {"type": "real", "bounds": [0.5, 2.25], "precision": 2},
    "3 to 25; whole numbers": {"type": "integer", "bounds": [3, 25]},
    "0 - 20": {"bounds": [0, 20]},
    "-5..-1": {"bounds": [-5, -1]},
    "between 3 and 25": {"bounds": [3, 25]},
    "0-100 %": {"bounds": [0, 100]},
    "2022-01-01 to 2023-12-31": {"bounds": ["2022-01-01", "2023-12-31"]},
    "1.1.1900 to 31.12.2023": {"bounds": ["1900-01-01", "2023-12-31"]},
    "2022-01-01 00:00 to 2023-12-31": {"bounds": ["2022-01-01T00:00", "2023-12-31T23:59:59"]},
    "06:00 to 20:00": {"bounds": ["06:00", "20:00"]},
    "2 decimals": {"type": "real", "precision": 2},
    "one decimal, 0 to 100": {"type": "real", "bounds": [0, 100], "precision": 1},
    "whole number, 0 to 120": {"type": "integer", "bounds": [0, 120]},
    "3 to 25 g/dL, one decimal": {"type": "real", "bounds": [3, 25], "precision": 1},
    "number, 0 to 25": {"type": "real", "bounds": [0, 25]},
    "1 Jan 1900 to 31 Dec 2023": {"bounds": ["1900-01-01", "2023-12-31"]},
    "1. March 1900 - 30 Sept. 2023": {"bounds": ["1900-03-01", "2023-09-30"]},
    "January 1, 1900 to December 31, 2023": {"bounds": ["1900-01-01", "2023-12-31"]},
    "01/01/1900 to 31/12/2023": {"bounds": ["1900-01-01", "2023-12-31"]},
    "1/1/1900 to 12/31/2023": {"bounds": ["1900-01-01", "2023-12-31"]},
    "date, DD.MM.YYYY": {"type": "date", "date_format": "DD.MM.YYYY"},
    "date (yyyy-mm-dd)": {"type": "date"},
    "free text": {"type": "constant", "value": "(removed)"},
    "identifier": {"type": "id"},
    "yes / no": {"type": "boolean", "written": {"true": "yes", "false": "no"}},
    "statutory, private or self-pay": {"type": "category", "values": ["statutory", "private", "self-pay"]},
    "one of: a, b": {"type": "category", "values": ["a", "b"]},
    "Y / N": {"type": "boolean", "written": {"true": "Y", "false": "N"}},
    "statutory; self pay": {"type": "category", "values": ["statutory", "self pay"]},
    "statutory, private": {"type": "category", "values": ["statutory", "private"]},
    "0-17|18-64|65+": {"type": "category", "values": ["0-17", "18-64", "65+"]},
    "1 = male, 2 = female": {
        "type": "category",
        "values": [1, 2],
        "value_labels": {"1": "male", "2": "female"},
    },
    "MAIN|": {"type": "category", "values": ["MAIN"]},
    "098 to 101": {"type": "category", "values": ["098", "099", "100", "101"]},
    '["a|b", c]': {"values": ["a|b", "c"]},
}
"""What a cell of allowed values says, of a column whose type nobody gives."""
UNREAD = {
    "0 to 1.000": "the point may stand for thousands",
    "0,5 to 3": "a range stands among other words",
    "1,000": "a comma may stand for thousands",
    "0 to 100 thousand": "behind the range",
    "1 to 5, 9 = unknown": "behind the range",
    "1-3; 4-6": "behind the range",
    "25 to 3": "above the second",
    "2022-01-01 to 5": "two kinds",
    "31.02.1900 to 31.12.2023": "no day of the calendar",
    "31 Feb 1900 to 31 Dec 2023": "no day of the calendar",
    "01/02/1900 to 03/04/2023": "the day or the month may stand first",
    "12/31/1900 to 31/12/2023": "the day or the month may stand first",
    "0 to 5 million": "behind the range",
    "day, night": "a sentence",
    "098 to 1001": "another width",
    "number, six digits": "a sentence",
    "yes, if known": "a sentence",
    "5 digits": "one text alone",
    "06:00; noon, or later": None,
    "see list icd10.txt": "no list of codes called icd10.txt lies beside it",
    "at least 0": "one text alone",
}
"""What is not read of such a cell, and a part of why; None where a list is read all the same."""
UNCERTAIN = {
    "stay,stay,nights,a sentence,,": ("type: nights (no type", "values: a sentence (one text"),
    "note,note,free text,,may be empty,": ("missing cells: may be empty (type constant has none",),
    "word,,string,,,": ("type: string (no type",),
    "twice,,integer,,never; may be empty,": ("missing cells: never; may be empty (it says both",),
    "size,size,category,0 to 100,,": ("values: 0 to 100 (type category has no such bounds",),
    'age,age,integer,"0 to 9, one decimal",,': ("type integer has no decimals",),
    "low,,number,,not known,": ("missing cells: not known (it may be a sentence",),
    "nr,,ID,,n/a,": ("missing cells: n/a (type id has none)",),
    "who,,fake,,,": ("type: fake (it needs as in a column of its own, or fake: and one of person_name",),
    "zz,,code,a|b,,": ("read as category: code (no two of its codes begin alike",),
    "zy,,code,,,": ("read as category: code (its list is not given)",),
}


def sheet(tmp_path, *rows):
    pd.DataFrame(rows).to_csv(tmp_path / "codes.csv", index=False)


def read_sheet(tmp_path, *rows):
    sheet(tmp_path, *rows)
    return read_metadata(tmp_path / "codes.csv").entries


def read(tmp_path, *rows, header=HEADER):
    path = tmp_path / "codes.csv"
    path.write_text("\n".join([header, *rows]), encoding="utf-8")
    return read_metadata(path).entries


@pytest.mark.parametrize(("row", "facts"), ROWS.items(), ids=lambda part: str(part)[:12])
def test_what_is_certain_is_read(row, facts, tmp_path):
    (entry,) = read(tmp_path, row).values()
    assert (entry.facts, entry.notes) == (facts, ())


@pytest.mark.parametrize(("row", "notes"), UNCERTAIN.items(), ids=lambda part: str(part)[:12])
def test_what_is_not_certain_declares_nothing_and_is_said(row, notes, tmp_path):
    (entry,) = read(tmp_path, row).values()
    assert len(entry.notes) == len(notes)
    assert all(part in note for part, note in zip(notes, entry.notes, strict=True))
    assert "bounds" not in entry.facts


@pytest.mark.parametrize(("cell", "facts"), SAID.items())
def test_a_cell_of_allowed_values_is_read_by_its_form(cell, facts, tmp_path):
    (entry,) = read_sheet(tmp_path, {"Variable": "x", "Allowed values": cell}).values()
    assert (entry.facts, entry.notes) == (facts, ())


@pytest.mark.parametrize(("cell", "why"), UNREAD.items())
def test_a_cell_that_may_mean_two_things_is_not_read(cell, why, tmp_path):
    (entry,) = read_sheet(tmp_path, {"Variable": "x", "Allowed values": cell}).values()
    if why is None:
        assert entry.facts == {
            "type": "category",
            "values": [part.strip() for part in re.split("[,;]", cell, maxsplit=1)],
        }
        return
    assert entry.facts == {}
    (note,) = entry.notes
    assert note.startswith(f"not read of its values: {cell} (")
    assert why in note


@pytest.mark.parametrize(
    ("storage", "cell", "found"),
    [
        (["1", "2"], "0 to 20", ("integer", (0, 20))),
        (["1.5", "2.5"], "0 to 20", ("real", (0, 20))),
        (["<0.2", "low"], "0 to 20", ("real", (0, 20))),
        (["01.02.2003", "03.04.2005"], "2000-01-01 to 2009-12-31", ("date", None)),
        (["2003-02-01", "2003-02-04"], "2000-01-01 to 2009-12-31", ("date", None)),
        (["2003-02-01 10:00:00", "2003-02-04 11:00:00"], "2000-01-01 to 2009-12-31", ("datetime", None)),
        (["2003-02-01", "2003-02-04"], "2000-01-01 00:00 to 2009-12-31 23:59", ("datetime", None)),
    ],
)
def test_bounds_without_a_type_take_that_of_the_storage_or_their_own(storage, cell, found, tmp_path):
    sheet(tmp_path, {"Variable": "x", "Allowed values": cell})
    pd.DataFrame({"x": storage}).to_csv(tmp_path / "data.csv", index=False)
    column = db.draft(tmp_path / "data.csv", codebook=tmp_path / "codes.csv").columns["x"]
    assert column.type == found[0]
    assert column.bounds[0] == (found[1][0] if found[1] else column.bounds[0])
    if found[0] == "datetime":
        assert str(column.bounds[1]).startswith("2009-12-31 23:59")


def test_a_list_in_a_file_is_read_and_a_file_elsewhere_is_refused(tmp_path):
    (tmp_path / "icd10.txt").write_text("A00\nA01\n")
    (entry,) = read(tmp_path, "icd,diagnosis,category,{file: icd10.txt},never,").values()
    assert entry.facts == {"type": "category", "values": ["A00", "A01"], "missing": False}
    assert entry.files == {"values": {"file": "icd10.txt"}}
    for name, words in (("/etc/passwd", "beside the schema"), ("none.txt", "not there")):
        with pytest.raises(SchemaError, match=rf"codes\.csv row 2, values: .*{words}"):
            read(tmp_path, f"icd,diagnosis,category,{{file: {name}}},never,")


def test_keys_of_a_column_may_stand_beside_headings_in_own_words(tmp_path):
    (entry,) = read(tmp_path, "who,fake,iban,no", header="Variable,Type,as,Owner").values()
    assert entry.facts == {"type": "fake", "as": "iban"}
    (entry,) = read(tmp_path, "zz,code,a1|a2|b1,1,x", header="Variable,Type,Values,levels,Owner").values()
    assert entry.facts == {"type": "code", "values": ["a1", "a2", "b1"], "levels": [1]}


def test_what_was_read_and_what_was_not_is_told_row_by_row(tmp_path, capsys):
    sheet(
        tmp_path,
        {"Variable": "cost", "What it means": "Price", "Allowed values / range": "0 to 1,000,000", "Owner": "IT"},
        {
            "Variable": "icd",
            "What it means": "Diagnosis",
            "Allowed values / range": "see list icd10.txt",
            "Owner": "IT",
        },
    )
    pd.DataFrame({"cost": [1.5, 2.5], "icd": ["A00", "A01"]}).to_csv(tmp_path / "data.csv", index=False)
    made = drafted(tmp_path / "data.csv", tmp_path / "codes.csv")
    assert [each.line for each in made.reading] == [
        "cost: 0 to 1,000,000",
        "icd: not read of its values: see list icd10.txt (no list of codes called icd10.txt lies beside it)",
    ]
    assert made.not_read == "Not read of the codebook: the headings Owner; what the rows of icd say in part."
    text = made.to_yaml()
    assert "# Not read of the codebook: the headings Owner; what the rows of icd say in part\n" in text
    assert "  # not read of its values: see list icd10.txt" in text
    place = [str(tmp_path / name) for name in ("data.csv", "codes.csv", "s.yaml")]
    assert run_guarded(app, ["schema", "draft", place[0], "--codebook", place[1], "-o", place[2]]) == 0
    said = capsys.readouterr().out
    assert all(line in said for line in (made.not_read, *(each.line for each in made.reading)))


def test_a_codebook_with_one_meaning_tells_nothing_of_its_reading(tmp_path):
    (tmp_path / "codes.csv").write_text("column,type,lower,upper\na,integer,0,9\n")
    made = drafted(None, tmp_path / "codes.csv")
    assert (made.reading, made.not_read) == ((), "")


def test_meanings_and_labels_are_kept_and_comments_are_not_published(tmp_path):
    first, _, third, *_ = read(tmp_path, *ROWS).values()
    assert first.description == "patient number"
    assert read_metadata(tmp_path / "codes.csv").unread == ("Comment",)
    assert third.description == "sex"
    assert third.facts["value_labels"] == {"1": "male", "2": "female", "9": "unknown"}


def test_a_sheet_of_a_workbook_drafts_the_data(tmp_path):
    """As a registry keeps it, with a heading that nobody knows."""
    rows = [line.split(";") for line in ("Field;Label;Owner;Min;Max;Data type", "age;Age in years;IT;0;120;integer")]
    pd.DataFrame(rows[1:], columns=rows[0]).to_excel(tmp_path / "book.xlsx", index=False)
    pd.DataFrame({"age": [30, 40], "site": ["A", "B"]}).to_csv(tmp_path / "data.csv", index=False)
    drafted = db.draft(tmp_path / "data.csv", codebook=tmp_path / "book.xlsx")
    assert drafted.to_plain()["columns"]["age"]["bounds"] == [0, 120]


def test_of_several_sheets_the_one_that_is_named_is_the_codebook(tmp_path):
    book = tmp_path / "both.xlsx"
    with pd.ExcelWriter(book) as writer:
        pd.DataFrame({"age": [30, 40]}).to_excel(writer, sheet_name="people", index=False)
        codes = pd.DataFrame([["age", "integer", 0, 120]], columns=["column", "type", "lower", "upper"])
        codes.to_excel(writer, sheet_name="codes", index=False)
    drafted = db.draft(f"{book}#people", codebook=f"{book}#codes")
    assert drafted.to_plain()["columns"]["age"]["bounds"] == [0, 120]
    with pytest.raises(SchemaError, match=r"both\.xlsx#codes"):
        read_metadata(book)
    with pytest.raises(SchemaError, match="has no such sheet"):
        read_metadata(tmp_path / "both.xlsx#others")


@pytest.mark.parametrize(
    "header", ["column,type,values,missing,description,Long name", "Variable,Type,Allowed values,A,B,C"]
)
def test_rows_of_the_whole_are_read_under_any_headings(header, tmp_path):
    unit, rule = '"{name: patient, id: nr}"', '"{at_most: [born, seen]}"'
    rows = [
        "nr,id,,,,one a person",
        f",unit,{unit},,,",
        f",rule,{rule},,,all dates",
        ",misfit,coerce,,,",
        "row,omit,,,,",
    ]
    (tmp_path / "codes.csv").write_text("\n".join([header, *rows]))
    found = read_metadata(tmp_path / "codes.csv")
    assert found.interpreted
    assert found.whole == {
        "unit": {"name": "patient", "id": "nr"},
        "constraints": [{"at_most": ["born", "seen"]}],
        "misfit": "coerce",
    }
    assert found.entries["row"].omitted


@pytest.mark.parametrize(
    ("heading", "says"),
    {
        "What it means": "description", "Unknown coded as": "missing", "Codes for missing": "missing",
        "Range of values": "allowed", "Lowest": "lower", "Highest possible": "upper", "Responsible": None,
        "What it is": "description", "May be blank?": "blank", "Can it be empty": "blank",
        "Always filled in": "required",
        "Required": "required", "Not null": "required", "MaximumValue": "upper", "Unit_of_Measure": "description",
        "Format": "form", "missing_data": "missing", "PermittedValues": "allowed",
    }.items(),
)  # fmt: skip
def test_a_heading_in_other_words_is_known_by_one_of_them(heading, says):
    assert headings(["Variable", "Type", heading]) == ["column", "type", says]


@pytest.mark.parametrize("header", ["Meaning,Type", "Variable,Owner", "Name"])
def test_headings_that_name_no_column_or_say_nothing_are_refused(header, tmp_path):
    assert headings(header.split(",")) is None
    with pytest.raises(SchemaError, match="the header has no key column; begin with column,type"):
        read(tmp_path, header=header)


@pytest.mark.parametrize("second", ["Field", "Data type", "Owner", "Codes,Choices"])
def test_a_heading_that_cannot_be_taken_is_named_and_its_column_left_unread(second, tmp_path):
    cells = ",".join(["x"] * (1 + second.count(",")))
    (tmp_path / "codes.csv").write_text(f"Variable,Type,Allowed values,{second}\nage,integer,0 to 9,{cells}\n")
    made = drafted(None, tmp_path / "codes.csv")
    assert f"the headings {second.split(',')[-1]}" in made.not_read
    assert read_metadata(tmp_path / "codes.csv").entries["age"].facts["bounds"] == [0, 9]


@pytest.mark.parametrize("codes", ["Codes", "Value labels", "Code list"])
@pytest.mark.parametrize(
    ("cells", "facts", "notes"),
    [
        (("coded", "", "1 = male; 2 = female"), {"values": [1, 2], "value_labels": {"1": "male", "2": "female"}}, ()),
        (
            ("coded", "1, 2", "1 = male; 2 = female"),
            {"values": [1, 2], "value_labels": {"1": "male", "2": "female"}},
            (),
        ),
        (("factor", "a, b", "n/a = not recorded"), {"values": ["a", "b"], "missing": ["", "n/a"]}, ()),
        (("factor", "a, b", "a = one; c = two"), {"values": ["a", "b"]}, ("the allowed values do not have c",)),
        (("integer", "0 to 9", "-9 = refused"), {"bounds": [0, 9], "missing": ["", "-9"]}, ()),
        (("integer", "0 to 9", "77 = many"), {"bounds": [0, 9]}, ("the allowed values say otherwise",)),
        (("", "1 to 2", "1 = low; 2 = high"), {"values": [1, 2], "value_labels": {"1": "low", "2": "high"}}, ()),
        (("yes/no", "", "Y = yes; N = no"), {"written": {"true": "Y", "false": "N"}}, ()),
    ],
    ids=str,
)
def test_allowed_values_and_codes_are_taken_together(codes, cells, facts, notes, tmp_path):
    row = dict(zip(("Type", "Allowed values / range", codes), cells, strict=True))
    (entry,) = read_sheet(tmp_path, {"Variable": "x", **row}).values()
    assert facts.items() <= entry.facts.items()
    assert len(entry.notes) == len(notes)
    assert all(part in note for part, note in zip(notes, entry.notes, strict=True))


@pytest.mark.parametrize("more", ["", ", bird, rabbit, reptile, amphibian, livestock, wild, other"])
def test_a_list_of_names_is_one_however_long(more, tmp_path):
    (entry,) = read_sheet(
        tmp_path, {"Variable": "x", "Class": "factor", "Values": f"dog, cat, guinea pig{more}"}
    ).values()
    assert entry.facts["values"] == ["dog", "cat", "guinea pig", *more.split(", ")[1:]]
    (entry,) = read_sheet(tmp_path, {"Variable": "x", "Meaning": "y", "Values": f"dog, cat, if known{more}"}).values()
    assert "a sentence" in entry.notes[0]


def test_a_text_that_a_description_calls_missing_is_one(tmp_path):
    told = {"Variable": "x", "Type": "number", "Meaning": "mg/dL; <0.2 = below detection limit", "May be blank?": "Yes"}
    (entry,) = read_sheet(tmp_path, told).values()
    assert entry.facts["missing"] == ["", "<0.2"]
    (entry,) = read_sheet(tmp_path, told | {"Meaning": "mg/dL; 0.2 = unknown"}).values()
    assert entry.facts["missing"] is True  # a number may be a measured one


def test_an_id_of_so_many_digits_is_made_anew_with_as_many(tmp_path):
    (entry,) = read_sheet(tmp_path, {"Variable": "x", "Type": "Identifier", "Range": "6 digits"}).values()
    assert (entry.facts, entry.notes) == ({"type": "id", "pattern": "{6 digits}"}, ())


PEOPLE = [
    ["Column", "What it is", "Values", "May be blank?"],
    ["mrn", "patient number", "identifier", "never empty"],
    ["dob", "date of birth", "1 Jan 1900 to 31 Dec 2023", "may be empty"],
    ["sex", "sex", "1 = male, 2 = female", "no"],
    ["icu", "intensive care", "yes / no", "never"],
    ["hb", "haemoglobin", "3 to 25, one decimal", "empty if not measured"],
    ["cost", "in EUR", "two decimals", "always filled in"],
    ["visits", "visits", "whole number", "never blank"],
    ["note", "doctor's words", "free text", ""],
]


def test_a_codebook_as_a_person_writes_it_is_read_whole(tmp_path):
    pd.DataFrame(PEOPLE[1:], columns=PEOPLE[0]).to_excel(tmp_path / "book.xlsx", index=False)
    found = read_metadata(tmp_path / "book.xlsx")
    assert found.unread == ()
    assert {name: dict(entry.facts) for name, entry in found.entries.items()} == {
        "mrn": {"type": "id"},
        "dob": {"bounds": ["1900-01-01", "2023-12-31"], "missing": True},
        "sex": {"type": "category", "values": [1, 2], "missing": False, "value_labels": {"1": "male", "2": "female"}},
        "icu": {"type": "boolean", "written": {"true": "yes", "false": "no"}, "missing": False},
        "hb": {"type": "real", "bounds": [3, 25], "precision": 1, "missing": True},
        "cost": {"type": "real", "precision": 2, "missing": False},
        "visits": {"type": "integer", "missing": False},
        "note": {"type": "constant", "value": "(removed)"},
    }
    assert all(entry.description and not entry.notes for entry in found.entries.values())


def test_a_workbook_with_days_and_headings_of_a_repository_is_read(tmp_path):
    day = pd.Timestamp
    rows = [
        ["VariableName", "Title", "DataType", "Format", "PermittedValues", "MinimumValue", "MaximumValue", "Required"],
        ["born", "Birth", "date", "dd.mm.yyyy", None, day("1900-01-01"), day("2023-12-31"), "TRUE"],
        ["paid", "Payer", "Categorical", None, "own, other", None, None, "FALSE"],
        ["note", "Words", "text", "free text", None, None, None, "optional"],
    ]
    pd.DataFrame(rows[1:], columns=rows[0]).to_excel(tmp_path / "book.xlsx", index=False)
    born, paid, note = read_metadata(tmp_path / "book.xlsx").entries.values()
    bounds = ["1900-01-01", "2023-12-31"]
    assert born.facts == {"type": "date", "date_format": "DD.MM.YYYY", "bounds": bounds, "missing": False}
    assert paid.facts == {"type": "category", "values": ["own", "other"], "missing": True}
    assert note.facts == {"type": "constant", "value": "(removed)"}


@pytest.mark.parametrize(
    ("heading", "cell", "missing"),
    [
        ("May be blank?", "yes", True), ("May be blank?", "N", False), ("May be blank?", "9 = unknown", ["", "9"]),
        ("May be blank?", "no, 9 = unknown", ["9"]), ("Required", "yes", False), ("Required", "no", True),
        ("Required", "optional", True), ("Mandatory", "0", True), ("Missing", "missing", ["", "missing"]),
        ("Missing", "may be empty; ?", ["", "?"]), ("Missing", "never empty; ?", ["?"]),
        ("Missing", "n/a", ["", "n/a"]),
        ("Missing", "must not be empty", False), ("Missing", "null", ["", "null"]), ("Nullable", "true", True),
    ],
)  # fmt: skip
def test_words_for_empty_cells_are_read_under_any_heading(heading, cell, missing, tmp_path):
    (entry,) = read_sheet(tmp_path, {"Variable": "x", "Type": "integer", heading: cell}).values()
    assert (entry.facts["missing"], entry.notes) == (missing, ())


@pytest.mark.parametrize(
    ("row", "pattern"),
    [
        (("patient number, such as 2024-00001", "identifier", ""), "{4 digits}-{5 digits}"),
        (("patient", "identifier, e.g. MRN-001234", ""), "MRN-{6 digits}"),
        (("patient", "identifier", "YYYY-NNNNN"), "{4 digits}-{5 digits}"),
        (("number such as 100234", "identifier", ""), None),
        (("number of a form", "identifier", ""), None),
    ],
)
def test_an_example_of_an_id_gives_its_pattern(row, pattern, tmp_path):
    cells = dict(zip(("What it is", "Values", "Format"), row, strict=True))
    (entry,) = read_sheet(tmp_path, {"Variable": "x", **cells}).values()
    assert (entry.facts.get("pattern"), entry.notes) == (pattern, ())


@pytest.mark.parametrize("cell", ["sometimes filled", "always empty", "never empty if admitted", "unknown", "depends"])
def test_words_that_leave_empty_cells_open_are_said(cell, tmp_path):
    (entry,) = read_sheet(tmp_path, {"Variable": "x", "Type": "integer", "May be blank?": cell}).values()
    assert "missing" not in entry.facts
    assert f"not read of its missing cells: {cell} (" in entry.notes[0]


def test_a_key_that_is_none_is_named_and_left_unread(tmp_path):
    (tmp_path / "codes.csv").write_text("column,type,owner,type\na,integer,x,real\n")
    made = drafted(None, tmp_path / "codes.csv")
    assert "the headings owner, type" in made.not_read
    assert read_metadata(tmp_path / "codes.csv").entries["a"].facts == {"type": "integer"}


def test_a_row_with_other_fields_and_a_column_twice_are_named(tmp_path):
    with pytest.raises(SchemaError, match=r"codes\.csv row 2: has 2 fields and the header 3"):
        read(tmp_path, "a,b", header="Variable,Label,Type")
    with pytest.raises(SchemaError, match=r"row 3, column: names a column that an earlier row describes"):
        read(tmp_path, "a,b,integer", "a,b,integer", header="Variable,Label,Type")


def test_facts_are_told_without_the_marks_of_a_codebook():
    facts = {"type": "category", "values": ["MAIN"], "missing": ["", "<0.2"]}
    assert facts_in_words("site", facts) == "MAIN · missing: empty | <0.2"
    assert facts_in_words("site", {"type": "category", "values": ["a", "b"], "missing": False}) == (
        "a | b · never missing"
    )
