"""What docs/schema.md shows is read as it stands there."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pandas as pd
import pytest

from doublure.drafting.draft import draft
from doublure.schema import Schema
from doublure.schema.columns import TYPES
from doublure.schema.rules.registry import MODELS
from doublure.support import yaml12 as yaml_text

PAGE = (Path(__file__).resolve().parents[2] / "docs/schema.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```\w*\n(.*?)```", PAGE, flags=re.DOTALL)
COLUMNS = [
    line.strip() for block in BLOCKS for line in block.splitlines() if re.match(r" *[\w-]+: +\{type: (?!id)", line)
]


def test_the_whole_example_leaves_nothing_open() -> None:
    shortest, whole = [block for block in BLOCKS if block.startswith("doublure: 1")]
    assert Schema.parse(shortest).undeclared == ()
    schema = Schema.parse(whole)
    assert schema.undeclared == ()
    assert len(schema.columns) == 5
    assert schema.constraints


def test_the_first_page_has_ten_lines() -> None:
    first = PAGE.partition("\n## ")[0]
    assert len([line for line in first.splitlines()[1:] if line]) == 10


@pytest.mark.parametrize("line", COLUMNS)
def test_every_column_shown_is_a_column(line: str) -> None:
    more = "  sex: {type: category, values: [f, m], missing: false}\n" if "sex: sex" in line else ""
    schema = Schema.parse(
        f"doublure: 1\nkind: table\nunits: 9\ncolumns:\n  {line}\n{more}  b: {{type: boolean, missing: false}}\n"
    )
    assert schema.undeclared == ()


def test_every_type_and_key_is_described() -> None:
    kinds = Schema.json_schema()["$defs"]
    keys = {key for name in TYPES for key in kinds[f"{name.capitalize()}Column"]["properties"]}
    assert keys == {
        *(
            "bounds",
            "description",
            "missing",
            "other",
            "precision",
            "roles",
            "shares",
            "step",
            "timezone",
            "type",
            "values",
        ),
        *("as", "by", "form", "from", "locale", "order", "pattern", "per", "sex", "value", "who"),
        *("edges", "numbers_in", "scale", "spikes", "zero_inflated"),
        *("date_format", "dtype", "format", "value_labels", "written"),
        *("levels", "parents", "spellings", "unlisted"),
    }
    for name in (*TYPES, *keys):
        assert f"`{name}" in PAGE


def test_the_unit_and_the_constraints_shown() -> None:
    (unit,) = [block for block in BLOCKS if block.startswith("unit:")]
    columns = "columns: {patient_nbr: {type: id}, a: {type: boolean}}"
    assert Schema.parse(f"doublure: 1\nkind: table\n{unit}{columns}").unit.max_records == 2
    (constraints,) = [block for block in BLOCKS if block.startswith("constraints:")]
    assert [next(iter(entry)) for entry in yaml_text.parse(constraints, "docs")["constraints"]] == [
        model.word for model in MODELS
    ]


def test_the_codebook_shown(tmp_path: Path) -> None:
    (codes,) = [block for block in BLOCKS if block.startswith("column,type")]
    moments = ",unit,"
    codes = codes.replace(moments, f"MRN,id,,,,,\nadmitted,date,,,,false,\ndischarged,date,,,,false,\n{moments}")
    (tmp_path / "codes.csv").write_text(codes)
    (tmp_path / "icd10.txt").write_text("A00\nB99\n")
    names = ("age", "workclass", "icd10", "site", "notes", "MRN", "admitted", "discharged")
    schema = draft(pd.DataFrame(columns=names), tmp_path / "codes.csv")
    assert schema.undeclared == ("units", "columns.admitted.bounds", "columns.discharged.bounds")
    assert "notes" not in schema.columns
    assert schema.unit.id == "MRN"


def test_the_codebook_of_the_tutorial_makes_a_schema_without_an_edit(tmp_path: Path) -> None:
    text = (Path(__file__).resolve().parents[2] / "docs" / "tutorial.md").read_text(encoding="utf-8")
    (codes,) = re.findall(r"^ +```text\n( +column,type.*?)^ +```", text, flags=re.DOTALL | re.MULTILINE)
    (tmp_path / "codes.csv").write_text(textwrap.dedent(codes))
    names = ("ID", "LIMIT_BAL", "SEX", "PAY_0", "BILL_AMT1", "default")
    schema = draft(pd.DataFrame({name: [1] for name in names}), tmp_path / "codes.csv")
    assert schema.undeclared == ("unit.id", "units")
    assert schema.target == "default"
    assert schema.columns["PAY_0"].values == tuple(range(-2, 9))
    assert schema.columns["LIMIT_BAL"].step == 10_000
    assert all(column.description for column in schema.columns.values())
