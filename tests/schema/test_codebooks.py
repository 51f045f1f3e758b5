"""A codebook says all that a schema says: every schema of the tests comes back from one without loss."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from planting import plant

from doublure.drafting.draft import drafted
from doublure.drafting.metadata.codebook import further, read, read_facts, write
from doublure.drafting.metadata.registry import read_metadata
from doublure.drafting.misfits import misfits
from doublure.errors import DoublureError, SchemaError
from doublure.schema import Schema
from doublure.schema.columns import models
from doublure.schema.columns.number import BoundedColumn

TESTS = Path(__file__).resolve().parents[1]
HARD = """
doublure: 1
kind: table
unit: {name: patient, id: MRN, max_records: 3}
units: {learn: 0.01, magnitude: 5000}
misfit: coerce
release: {licence: CC BY 4.0, links: ["https://example.org/a?b=1"]}
date_format: DD.MM.YYYY
decimal: ","
thousands: "|"
columns:
  MRN: {type: id}
  "a*b": {type: category, values: [MAIN], missing: false}
  "a.b, c": {type: category, values: ["1", "2"], other: "true", missing: ["?", "|", "a|b"]}
  odd: {type: ordinal, values: [3, "b", true, 2.5, " c ", "[d]", '"e"', "1..3", undeclared], missing: {learn: 0.05}}
  quoted: {type: boolean, missing: ["true"], description: '"High" or low,  with   spaces'}
  meant: {type: boolean, missing: true, description: '"all of it"'}
  pay: {type: real, bounds: {learn: 0.05, magnitude: 1000}, step: 0.5, spikes: [501, 502.5], missing: ["-9"]}
  age: {type: integer, bounds: [0, 120], edges: [18, 65], missing: undeclared}
  small: {type: real, bounds: [1.0e-07, 1e5], scale: log, missing: false}
  born: {type: date, bounds: [1900-01-01, 2020-12-31], missing: false}
  seen: {type: datetime, bounds: [2024-01-01T08:00:00, 2024-12-31T00:00:00], step: 60, timezone: Europe/Paris}
  until: {type: date, bounds: undeclared, missing: false}
  began: {type: time, bounds: ["06:00", "20:00"], step: 900, missing: false}
  took: {type: duration, bounds: ["0:00:00", "6:00:00"], step: 60, numbers_in: min, missing: true}
  sex: {type: category, values: [f, m], shares: {f: 0.5, m: 0.5}, roles: [condition, target], missing: false}
  one: {type: category, values: [yes, no], other: undeclared, missing: false}
constraints:
  - {implies: {when: {age: [0, 14]}, then: {meant: missing, sex: f}}}
  - {determines: [sex, one], map: {f: yes, m: no}}
  - {combinations: {columns: [sex, quoted], rows: [[f, "false"], [m, ""]]}}
""".replace("then: {meant: missing, sex: f}", "then: {meant: missing}")


@cache
def schemas() -> dict[str, Schema]:
    """Return every schema whose text stands in a test, or in a file of the package."""
    found: dict[str, Schema] = {}
    for path in sorted(TESTS.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if "doublure: 1" in text else ():
            if not (isinstance(node, ast.Constant) and isinstance(node.value, str) and "doublure: 1" in node.value):
                continue
            try:
                found[f"{path.name}:{node.lineno}"] = Schema.parse(node.value)
            except DoublureError:  # a part of one, or one that is refused
                continue
    for path in sorted((TESTS.parent / "src").rglob("*.schema.yaml")):
        found[path.name] = Schema.load(path)
    return found


def back(schema: Schema, folder: Path) -> Schema:
    (folder / "codes.csv").write_text(write(schema), encoding="utf-8")
    return read(folder / "codes.csv").schema()


def test_every_schema_of_the_tests_comes_back(tmp_path: Path) -> None:
    assert len(schemas()) > 60
    assert {schema.file_kind for schema in schemas().values()} == {"table", "relational", "series", "images"}
    lost = [
        name for name, schema in schemas().items() if (again := back(schema, tmp_path)) != schema
        or again.sha256 != schema.sha256
    ]  # fmt: skip
    assert lost == []


def test_what_is_hard_to_spell_comes_back(tmp_path: Path) -> None:
    schema = Schema.parse(HARD)
    assert back(schema, tmp_path).to_plain() == schema.to_plain()
    text = write(schema)
    assert "age,integer,,0,120," in text
    assert "sex,category,f|m,,,false," in text


TEXTS = some.text(
    some.characters(codec="utf-8", exclude_categories=("C", "Z")) | some.just(" "), min_size=1, max_size=12
)


@settings(max_examples=60, deadline=None)
@given(values=some.lists(TEXTS | some.integers() | some.booleans() | some.floats(-1e9, 1e9), min_size=1, max_size=4),
       missing=some.lists(TEXTS, min_size=1, max_size=3), meaning=TEXTS, name=TEXTS)  # fmt: skip
def test_any_value_comes_back(tmp_path_factory, values, missing, meaning, name) -> None:
    column = {"type": "category", "values": values, "missing": missing, "description": meaning}
    try:
        schema = Schema.from_plain({"doublure": 1, "kind": "table", "columns": {name: column}})
    except SchemaError:
        return
    again = back(schema, tmp_path_factory.mktemp("codes"))
    assert again.columns[name].model_dump(exclude={"description"}) == schema.columns[name].model_dump(
        exclude={"description"}
    )
    assert again.columns[name].description.split() == meaning.split()


@pytest.mark.parametrize(
    ("cell", "texts"),
    {"|<0.2": ["", "<0.2"], "<0.2|": ["", "<0.2"], "<0.2": ["<0.2"], "?|NA": ["?", "NA"], "|": True}.items(),
)
def test_an_empty_cell_beside_a_text_is_a_kind_of_missing(cell: str, texts: list[str] | bool) -> None:
    assert read_facts({"missing": cell}, "codes.csv row 2") == {"missing": texts}


@pytest.mark.parametrize("cells", [{"lower": "{learn: 0.05}"}, {"upper": "{learn: 0.05}"}, {"bounds": "{learn: 0.05}"}])
def test_bounds_are_bought_by_any_of_their_cells(cells: dict[str, str]) -> None:
    assert read_facts(cells, "codes.csv row 2") == {"bounds": {"learn": 0.05}}


def test_a_codebook_takes_every_key_of_every_type() -> None:
    assert {field.alias or key for model in models() for key, field in model.model_fields.items()} <= {
        *further(),
        "type",
        "values",
        "missing",
        "description",
    }


def test_what_a_hospital_needs(tmp_path: Path) -> None:
    """A list in a file, a constant, a column that is left out, the unit and rules: with the data, and without."""
    (tmp_path / "icd10.txt").write_text("A00\nA01\nB99\n")
    (tmp_path / "codes.csv").write_text(
        "column,type,values,lower,upper,missing,description,edges\n"
        ',unit,"{name: patient, id: MRN, max_records: 2}",,,,who is protected,\n'
        ",units,5000,,,,,\n"
        ',rule,"{at_most: [born, admitted]}",,,,,\n'
        "MRN,id,,,,,,\n"
        "note,omit,,,,,Free text,\n"
        "icd10,category,{file: icd10.txt},,,false,Main diagnosis,\n"
        "site,category,MAIN|,,,false,,\n"
        "born,date,,1900-01-01,2024-12-31,false,,\n"
        "admitted,date,,2020-01-01,2024-12-31,false,,\n"
        "cost,integer,,0,90000,<0.2|NA,,100|1000\n"
    )
    data = pd.DataFrame(columns=["note", "MRN", "icd10", "site", "born", "admitted", "cost"])
    for made in (drafted(data, tmp_path / "codes.csv"), drafted(None, tmp_path / "codes.csv")):
        schema = made.schema
        assert schema.undeclared == ()
        assert (schema.unit.id, schema.unit.max_records, schema.units) == ("MRN", 2, 5000)
        assert "note" not in schema.columns
        assert schema.columns["icd10"].values == ("A00", "A01", "B99")
        assert schema.columns["site"].values == ("MAIN",)
        assert schema.columns["cost"].missing == ("<0.2", "NA")
        assert schema.columns["cost"].edges == (100, 1000)
        assert [rule.names for rule in schema.constraints] == [("born", "admitted")]
        assert Schema.parse(made.to_yaml()) == schema
        (tmp_path / "draft.yaml").write_text(beside := made.to_yaml(tmp_path))
        assert "values: {file: icd10.txt}" in beside
        assert "Left out, as codes.csv says: note" in beside
        assert Schema.load(tmp_path / "draft.yaml") == schema
        assert made.unknown == ()


def test_related_tables_and_series_are_described_too(tmp_path: Path) -> None:
    (tmp_path / "codes.csv").write_text(
        "column,type,values,lower,upper,missing\n,kind,series,,,\n"
        ',series,"{time: at, step: 1h, length: 24, gaps: missing}",,,\n'
        "channels.litres,real,,0,500,true\nattributes.floor,ordinal,1|2,,,false\nnote,omit,,,,\n"
    )
    frame = pd.DataFrame({"at": ["2024-01-01T00:00:00"] * 3, "litres": 1.5, "floor": 1, "note": "x"})
    frame.to_csv(tmp_path / "water.csv", index=False)
    for data in (tmp_path / "water.csv", None):
        made = drafted(data, tmp_path / "codes.csv")
        assert (made.schema.series.length, made.schema.channels["litres"].bounds) == (24, (0, 500))
        assert made.schema.attributes["floor"].values == (1, 2)
        assert list(made.schema.columns) == ["litres", "floor"]
        assert Schema.parse(made.to_yaml()) == made.schema
    (tmp_path / "codes.csv").write_text(
        "column,type,values,lower,upper,missing\n"
        ',tables,"{town: {key: nr}, stay: {parent: town, foreign_key: place, max_children: 4}}",,,\n'
        ',rule,"{at_most: [stay.came, stay.left]}",,,\n'
        "town.nr,id,,,,\nstay.place,id,,,,\nstay.came,integer,,0,9,false\nstay.left,integer,,0,9,false\ntown.size,integer,,0,9,false\n"
    )
    tables = {
        "town": pd.DataFrame({"nr": [1], "size": [2]}),
        "stay": pd.DataFrame({"place": [1], "came": [1], "left": [2]}),
    }
    made = drafted(tables, tmp_path / "codes.csv")
    assert made.schema.undeclared == ("units",)
    assert made.schema.tables["stay"].foreign_key == "place"
    assert len(made.schema.constraints) == 1
    assert Schema.parse(made.to_yaml()) == made.schema
    alone = drafted(None, tmp_path / "codes.csv", "relational")
    assert alone.schema.tables == made.schema.tables
    assert Schema.parse(alone.to_yaml()) == alone.schema


@pytest.mark.parametrize(
    ("rows", "place", "words"),
    [
        (",unit,{name: x},0,1,", "row 2, lower", "goes with a column"),
        ("a,integer,,0,95+,false", "row 2, upper", r"must be \[lower, upper\]"),
        ("a,integer,,under 1,95,false", "row 2, lower", r"must be \[lower, upper\]"),
        ("a,date,,2020-01-01,never,false", "row 2, upper", "date"),
        ("a,integer,,{lern: 0.05},,false", "row 2, lower", r"must be \[lower, upper\]"),
        ("a,integer,,{},,false", "row 2, lower", r"must be \[lower, upper\]"),
        ("a,integer,,{learn: {epsilon: -1}},,false", "row 2, lower", "above 0"),
        ("a,integer,,[],,false", "row 2, upper", "empty"),
        (",units,5,,,\n,units,6,,,", "row 3, type", "earlier row"),
        ("a,category,{file: none.txt},,,", "row 2, values", "not there"),
        ("a,category,{file: /etc/passwd},,,", "row 2, values", "beside the schema"),
        ("a,category,v1,,,", "row 2, values", "one value alone"),
        ("a,,,,,", "row 2, type", "no data says it"),
        ("a*,integer,,0,1,false", "row 2, column", "pattern"),
        (",rule,{at_most: [a]},,,\na,integer,,0,1,false", "constraints", "at_most"),
    ],
)
def test_a_row_that_cannot_be_meant_is_named(tmp_path: Path, rows: str, place: str, words: str) -> None:
    (tmp_path / "codes.csv").write_text(f"column,type,values,lower,upper,missing\n{rows}\n")
    with pytest.raises(SchemaError, match=words) as caught:
        drafted(None, tmp_path / "codes.csv")
    assert place in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("facts", "key"),
    [
        ({"type": "integer", "bounds": "[-1, 5]", "roles": "[weight]"}, "roles"),
        ({"type": "integer", "bounds": "[0, 5]", "edges": "[3, 2]"}, "edges"),
        ({"type": "integer", "bounds": "[0, 5]", "spikes": "[7]"}, "spikes"),
        ({"type": "integer", "bounds": "[0, 999]", "dtype": "int8"}, "dtype"),
        ({"type": "integer", "bounds": "[1, 5]", "zero_inflated": "true"}, "zero_inflated"),
        ({"type": "category", "values": "[a, b, a]"}, "values"),
        ({"type": "category", "values": "[a, b]", "other": "NA", "missing": "[NA]"}, "other"),
        ({"type": "category", "values": "[a, b]", "missing": "true", "roles": "[condition]"}, "missing"),
        ({"type": "category", "values": "[a, b]", "shares": "{a: 0.5, b: 0.4}", "roles": "[condition]"}, "shares"),
    ],
)
def test_the_key_that_is_wrong_is_named(tmp_path: Path, facts: dict[str, str], key: str) -> None:
    told = {"missing": "false", **facts}
    cells = ",".join('"' + said.replace('"', '""') + '"' for said in told.values())
    (tmp_path / "codes.csv").write_text(f"column,{','.join(told)}\na,{cells}\n")
    with pytest.raises(SchemaError) as caught:
        drafted(None, tmp_path / "codes.csv")
    assert str(caught.value.field) == f"codes.csv row 2, {key}"


def check_which_bound_is_wrong(folder: Path) -> None:
    for lower, upper, wrong in (
        ("07:30", "never", "upper"),
        ("never", "07:30", "lower"),
        ("never", "ever", "lower"),
        ("09:30", "07:30", "lower"),
    ):
        (folder / "codes.csv").write_text(f"column,type,lower,upper,missing\na,time,{lower},{upper},false\n")
        with pytest.raises(SchemaError) as caught:
            drafted(None, folder / "codes.csv")
        assert str(caught.value.field).endswith(f"row 2, {wrong}")


def test_which_bound_is_wrong_does_not_hang_on_a_wording(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_which_bound_is_wrong(tmp_path)
    plant(
        monkeypatch, BoundedColumn, "_bounds_fit",
        ("'are not in order; write [lower, upper] with lower < upper'", "'is no time of the values; see step'"),
    )  # fmt: skip
    check_which_bound_is_wrong(tmp_path)


def test_a_codebook_of_another_form_is_told(tmp_path: Path) -> None:
    (tmp_path / "codes.csv").write_text("name,kind\na,b\n")
    with pytest.raises(SchemaError, match="no key column"):
        read_metadata(tmp_path / "codes.csv")


@pytest.mark.parametrize(
    ("cell", "values"),
    {
        "01000..01002": ["01000", "01001", "01002"],
        "98..101": [98, 99, 100, 101],
        "098..101": ["098", "099", "100", "101"],
        "7|09..11": ["7", "09", "10", "11"],
        "-1..1": [-1, 0, 1],
        "0..2": [0, 1, 2],
    }.items(),
)
def test_a_range_keeps_its_leading_zeros(cell: str, values: list[object], tmp_path: Path) -> None:
    assert read_facts({"values": cell}, "codes.csv row 2") == {"values": values}
    (tmp_path / "codes.csv").write_text(f"column,type,values,missing\nzip,category,{cell},false\n")
    made = drafted(None, tmp_path / "codes.csv").schema
    assert made.columns["zip"].values == tuple(values)
    assert Schema.parse(made.to_yaml()).columns["zip"].values == tuple(values)
    assert Schema.parse(f"doublure: 1\nkind: table\ncolumns:\n  zip: {{type: category, values: {values}}}\n").columns[
        "zip"
    ].values == tuple(values)


@pytest.mark.parametrize("cell", ["01..100", "-01..05", "1..007"])
def test_a_range_with_leading_zeros_and_two_widths_is_refused(cell: str) -> None:
    with pytest.raises(SchemaError, match=r"row 2, values: .*leading zeros and another width"):
        read_facts({"values": cell}, "codes.csv row 2")


def test_postal_codes_are_read_and_written_as_texts(tmp_path: Path) -> None:
    (tmp_path / "codes.csv").write_text("column,type,values,missing\nzip,category,01000..01003,false\n")
    pd.DataFrame({"zip": [f"0100{digit % 4}" for digit in range(200)]}).to_csv(tmp_path / "data.csv", index=False)
    schema = drafted(tmp_path / "data.csv", tmp_path / "codes.csv").schema
    assert list(misfits(schema, tmp_path / "data.csv")) == []
    cells = pd.Series(["01000", "01003"])
    column = schema.columns["zip"]
    assert list(column.cells_of(column.numbers_of(column.read(cells, "zip", "refuse")))) == ["01000", "01003"]
