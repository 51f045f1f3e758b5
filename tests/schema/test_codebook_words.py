"""A codebook in the words of those who keep it: what is certain is read, all else stays a note."""

from __future__ import annotations

import pandas as pd
import pytest

import doublure as db
from doublure.drafting.metadata.own_words import headings
from doublure.drafting.metadata.registry import read_metadata
from doublure.errors import SchemaError

HEADER = "Variable,Meaning,Type,Allowed values / range,Missing,Comment"
ROWS = {
    'mrn,patient number,ID,,never,"several stays, perhaps"': {"type": "id"},
    'dob,date of birth,date,1900-01-01 to 2023-12-31,,"1900-01-01: unknown"':
        {"type": "date", "bounds": ["1900-01-01", "2023-12-31"]},
    'sex,sex,coded,"1=male, 2=female, 9=unknown",never,':
        {"type": "category", "values": [1, 2, 9], "missing": False},
    "admitted,,date/time,2022-01-01 to 2023-12-31,never,":
        {"type": "datetime", "bounds": ["2022-01-01", "2023-12-31T23:59:59"], "missing": False},
    'los,length of stay,"days, 1 decimal",0 - 100,,': {"type": "real", "bounds": [0, 100], "precision": 1},
    'hb,"haemoglobin, g/dL","number, 2 decimals",-3 – 25,empty,':
        {"type": "real", "bounds": [-3, 25], "precision": 2, "missing": True},
    "paid,who paid,factor,statutory; private,n/a,":
        {"type": "category", "values": ["statutory", "private"], "missing": ["n/a"]},
    'icu,in intensive care,Y/N,"Y, N",never,':
        {"type": "boolean", "written": {"true": "Y", "false": "N"}, "missing": False},
    "site,,list,MAIN,,": {"type": "category", "values": ["MAIN"]},
}  # fmt: skip
UNCERTAIN = {
    "icd,diagnosis,code,ICD-10 catalogue,never,": ("said of its type: code", "said of its values: ICD-10 catalogue"),
    "stay,stay,nights,0 to 100,,": ("said of its type: nights", "said of its values: 0 to 100"),
    "low,,number,,empty; <0.2 = below detection,": ("said of missing cells: empty; <0.2 = below detection",),
}


def read(tmp_path, *rows, header=HEADER):
    path = tmp_path / "codes.csv"
    path.write_text("\n".join([header, *rows]), encoding="utf-8")
    return read_metadata(path).entries


@pytest.mark.parametrize(("row", "facts"), ROWS.items(), ids=lambda part: str(part)[:12])
def test_what_is_certain_is_read(row, facts, tmp_path):
    (entry,) = read(tmp_path, row).values()
    assert (entry.facts, entry.notes) == (facts, ())


@pytest.mark.parametrize(("row", "notes"), UNCERTAIN.items(), ids=lambda part: str(part)[:12])
def test_what_is_not_certain_declares_nothing(row, notes, tmp_path):
    (entry,) = read(tmp_path, row).values()
    assert entry.notes == notes
    assert not entry.facts.keys() & {"values", "bounds"}


def test_meanings_and_labels_are_kept(tmp_path):
    first, _, third, *_ = read(tmp_path, *ROWS).values()
    assert first.description == "patient number; several stays, perhaps"
    assert third.description == "sex (1 male, 2 female, 9 unknown)"


def test_a_sheet_of_a_workbook_drafts_the_data(tmp_path):
    """As a registry keeps it, with a heading that nobody knows."""
    rows = [line.split(";") for line in ("Field;Label;Owner;Min;Max;Data type", "age;Age in years;IT;0;120;integer")]
    pd.DataFrame(rows[1:], columns=rows[0]).to_excel(tmp_path / "book.xlsx", index=False)
    pd.DataFrame({"age": [30, 40], "site": ["A", "B"]}).to_csv(tmp_path / "data.csv", index=False)
    drafted = db.draft(tmp_path / "data.csv", codebook=tmp_path / "book.xlsx")
    assert drafted.to_plain()["columns"]["age"]["bounds"] == [0, 120]


@pytest.mark.parametrize(
    "header", ["Meaning,Type", "Variable,Field,Type", "Variable,Owner", "Name", "Variable,Type,Data type"]
)
def test_headings_that_could_mean_two_things_are_refused(header, tmp_path):
    assert headings(header.split(",")) is None
    with pytest.raises(SchemaError, match="the header has no key column; begin with column,type"):
        read(tmp_path, header=header)


def test_a_row_with_other_fields_and_a_column_twice_are_named(tmp_path):
    with pytest.raises(SchemaError, match=r"codes\.csv row 2: has 2 fields and the header 3"):
        read(tmp_path, "a,b", header="Variable,Label,Type")
    with pytest.raises(SchemaError, match=r"row 3, column: names a column that an earlier row describes"):
        read(tmp_path, "a,b,integer", "a,b,integer", header="Variable,Label,Type")
