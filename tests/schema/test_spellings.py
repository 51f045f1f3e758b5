"""Other spellings of a declared value: a person declares them, and cells are read as that value, in files and SQL."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

import doublure as db
from doublure.data.tables.cells import canonical
from doublure.drafting.form_hints import form_hint
from doublure.drafting.metadata import codebook
from doublure.drafting.misfits import list_misfits
from doublure.errors import DataError, SchemaError
from doublure.schema.columns.spelling import TextMarks

PAYER = "{type: category, values: [statutory, private], missing: false%s}"
CODES = "{type: code, values: [A00.1, A00.2], levels: [1], unlisted: chapter, spellings: {A001: A00.1}, missing: false}"


def schema(column: str) -> db.Schema:
    return db.Schema.parse(f"doublure: 1\nkind: table\nunits: 10\ncolumns: {{payer: {column}}}")


def read(column: str, *cells: object) -> list[str]:
    one = schema(column).columns["payer"]
    return [str(cell) for cell in canonical(pd.Series([*cells], dtype=object), one, "payer")]


def test_a_declared_spelling_is_read_as_its_value() -> None:
    spelt = PAYER % ", spellings: {Statutory: statutory, 7: private}"
    assert read(spelt, "Statutory", "private", 7) == ["statutory", "private", "private"]
    assert read(CODES, "A001", "A00.2", "A09") == ["A00.1", "A00.2", "A"]
    column = schema(spelt).columns["payer"]
    assert column.number_of("Statutory") == column.number_of("statutory") == 0


def test_what_nobody_declared_is_refused_and_the_message_says_how_it_is_mapped() -> None:
    with pytest.raises(DataError) as found:
        read(PAYER % "", "Statutory")
    assert "spellings: {TEXT: statutory}" in str(found.value)
    assert "Statutory" not in str(found.value)


@pytest.mark.parametrize(
    ("spellings", "said"),
    [
        ("{Statutory: state}", "name a value that is not declared"),
        ("{private: statutory}", "a text that is a value"),
        ("{}", "write {Statutory: statutory}"),
        ('{"": statutory}', "means missing"),
    ],
)
def test_a_spelling_of_nothing_is_refused(spellings: str, said: str) -> None:
    with pytest.raises(SchemaError, match=said):
        schema(PAYER % f", spellings: {spellings}")


def test_values_that_are_bought_have_no_spellings() -> None:
    with pytest.raises(SchemaError, match="declare the values"):
        schema("{type: category, values: {learn: 0.1}, other: Other, spellings: {A: b}, missing: false}")


def test_a_codebook_writes_and_reads_pairs(tmp_path: Path) -> None:
    path = tmp_path / "codes.csv"
    path.write_text(
        "column,type,values,missing,spellings\npayer,category,statutory|private,false,"
        "Statutory = statutory | PKV = private\n"
    )
    found = codebook.read(path).schema()
    assert found.columns["payer"].fact("spellings") == {"Statutory": "statutory", "PKV": "private"}
    path.write_text(codebook.write(found))
    assert "Statutory = statutory | PKV = private" in path.read_text()
    assert codebook.read(path).schema() == found
    path.write_text("column,type,values,missing,spellings\npayer,category,a|b,false,A b\n")
    with pytest.raises(SchemaError, match="no pair"):
        codebook.read(path)


def test_misfits_offer_it_and_name_no_cell(tmp_path: Path) -> None:
    described = schema(PAYER % "")
    data = pd.DataFrame({"payer": ["Statutory", "private"]})
    ((column, why, _),) = list_misfits(described, data, tmp_path / "misfits.csv")
    assert column == "payer"
    assert "outside" in why
    hint = form_hint(described.columns["payer"], TextMarks(), ())
    assert hint.key == "spellings"
    assert hint.line.endswith("declare spellings: TEXT = statutory")
    assert not list_misfits(schema(PAYER % ", spellings: {Statutory: statutory}"), data, tmp_path / "none.csv")
