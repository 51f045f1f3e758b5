"""What a schema still lacks, as YAML to paste, from public things alone."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from doublure.drafting.check import Check, check
from doublure.drafting.draft import drafted
from doublure.errors import DataError, SchemaError
from doublure.schema import Schema
from doublure.support import yaml12 as yaml_text

TEXT = """
doublure: 1
kind: table
units: undeclared
columns:
  nbr: {type: id}
  age: {type: integer, missing: false}
  a.b: {type: real}
  job: {type: category, values: undeclared, missing: true}
  size: {type: ordinal, missing: false}
  sex: {type: boolean, roles: [condition]}
  born: {type: date, bounds: {learn: 0.05}, missing: {learn: 0.02}}
  code: {type: integer, bounds: [0, 120], missing: ["99", "?"]}
"""


def findings(result: Check, kind: str) -> dict[str, str]:
    return {finding.path: finding.message for finding in result.findings if finding.kind == kind}


def test_every_open_fact_comes_with_its_ways_out() -> None:
    result = check(Schema.parse(TEXT))
    assert not result.ok
    open_facts = {finding.path: finding for finding in result.findings if finding.kind == "undeclared"}
    assert set(open_facts) == set(Schema.parse(TEXT).undeclared)
    bounds = open_facts["columns.a.b.bounds"]
    assert (bounds.declare, bounds.learn) == ("bounds: [LOWER, UPPER]", "bounds: {learn: 0.05}")
    assert open_facts["columns.job.values"].learn == "values: {learn: 0.05}, other: Other"
    assert open_facts["columns.size.values"].learn is None  # an order cannot be learned
    assert open_facts["columns.sex.missing"].learn is None  # a condition is never missing
    assert open_facts["units"].learn == "units: {learn: 0.01, magnitude: 10000}"
    assert result.learn_epsilon == pytest.approx(0.07)


def test_what_is_bought_can_be_pasted_as_it_stands() -> None:
    """The commented lines, taken as they are, close every fact that can be bought."""
    result = check(Schema.parse(TEXT))
    bought = yaml_text.parse(_bought(result.to_yaml()), "pasted")
    plain = Schema.parse(TEXT).to_plain()
    plain["units"] = bought["units"]
    plain["unit"] = {"id": "nbr"}
    plain["columns"] |= bought["columns"]
    assert set(Schema.from_plain(plain).undeclared) == {"columns.sex.missing", "columns.size.values"}


def test_names_propose_what_a_draft_proposes() -> None:
    """A stranger who pastes the lines buys no names of people; the facts already said come along."""
    table = pd.DataFrame({"name": ["A"], "patient_id": [1], "icd10": ["A01"], "e-mail": ["a@b.de"], "sex": ["m"]})
    made = drafted(table)
    plain = made.schema.to_plain()
    plain["columns"]["icd10"] |= {"roles": ["target"], "description": "Diagnosis"}
    result = check(Schema.from_plain(plain))
    pasted = yaml_text.parse(result.to_yaml(), "pasted")["columns"]
    for name, proposal in made.proposals.items():
        assert proposal.column is not None
        assert dict(proposal.column).items() <= pasted[name].items(), name
    assert set(made.proposals) == {"name", "patient_id", "icd10", "e-mail"}
    assert pasted["icd10"]["roles"] == ["target"]
    assert pasted["icd10"]["description"] == "Diagnosis"
    assert pasted["sex"]["type"] == "category"
    bought = {finding.path.split(".")[1] for finding in result.findings if finding.learn and "." in finding.path}
    assert bought == {"icd10", "sex"}
    text = result.to_yaml()
    assert "  # name: {type: category, values: [VALUE, VALUE]" in text
    assert "# name: {type: category, values: {learn" not in text, "names of people are not offered for sale"


def test_first_cells_propose_what_they_propose_to_a_draft(tmp_path: Path) -> None:
    n = 60
    table = pd.DataFrame(
        {
            "seen": [f"{1 + k % 28:02}.03.2024" for k in range(n)],
            "icu": ["Y" if k % 3 else "N" for k in range(n)],
            "price": [f"{k},5" for k in range(n)],
            "kilos": [f"{50 + k}.{k % 9 + 1}" for k in range(n)],
            "code": [k % 4 for k in range(n)],
            "paid": [20240101 + k % 28 for k in range(n)],
        }
    )
    table.to_csv(tmp_path / "t.csv", index=False)
    made = drafted(tmp_path / "t.csv")
    assert set(made.proposals) == {*table}
    lines = [line.strip() for line in made.to_yaml().splitlines() if "}  # if " in line]
    text = check(made.schema, tmp_path / "t.csv").to_yaml()
    assert len(lines) == len(table.columns)
    assert [line for line in lines if line not in map(str.strip, text.splitlines())] == []
    assert "#   decimal: ','" in text.splitlines()
    declared = table[["kilos", "paid"]].assign(kilos=table["kilos"].astype(float))
    schema = """{doublure: 1, kind: table, units: 60, defaults: {missing: false}, columns: {
      kilos: {type: real, bounds: [0, 200], precision: 1}, paid: {type: integer, bounds: [20000101, 20301231]}}}"""
    (ask,) = [each for each in check(Schema.parse(schema), declared).findings if each.path == "columns.paid"]
    assert (ask.kind, ask.declare) == (
        "ask",
        "paid: {type: date, date_format: YYYYMMDD, bounds: undeclared, dtype: int64}",
    )
    dated = schema.replace(
        "integer, bounds: [20000101, 20301231]", "date, date_format: YYYYMMDD, bounds: [2000-01-01, 2030-12-31]"
    )
    assert not [each for each in check(Schema.parse(dated), declared).findings if each.path.startswith("columns.")]


def test_a_name_proposes_nothing_against_declared_values_or_in_series() -> None:
    declared = check(Schema.parse("{doublure: 1, kind: table, columns: {name: {type: category, values: [a, b]}}}"))
    assert all(finding.instead is None for finding in declared.findings)
    series = (
        "{doublure: 1, kind: series, series: {}, channels: {kw: {type: real}}, attributes: {name: {type: category}}}"
    )
    lines = check(Schema.parse(series)).to_yaml().splitlines()
    assert any(line.startswith("  # take name out and name it in unit.id or series.source") for line in lines)


def test_the_word_for_other_values_is_none_of_the_known() -> None:
    text = "{doublure: 1, kind: table, columns: {a: {type: category, values: undeclared, missing: [other]}}}"
    (finding,) = [each for each in check(Schema.parse(text)).findings if each.path == "columns.a.values"]
    assert finding.learn == "values: {learn: 0.05}, other: Other value"
    listed = Schema.parse(
        "{doublure: 1, kind: table, columns: {a: {type: category, values: [Other, b], missing: false}}}"
    )
    with pytest.raises(DataError, match="other: Other value, list what"):
        listed.columns["a"].read(pd.Series(["c"]), "a", "refuse")


def _bought(text: str) -> str:
    lines = text.splitlines()
    wanted = [line.replace("# ", "", 1) for line in lines if line.startswith(("# units:", "  # "))]
    return "\n".join([wanted[0], "columns:", *wanted[1:]])


def test_a_placeholder_that_is_left_in_is_refused() -> None:
    result = check(Schema.parse(TEXT))
    pasted = yaml_text.parse(result.to_yaml(), "pasted")
    for name, column in pasted["columns"].items():
        plain = Schema.parse(TEXT).to_plain()
        plain["columns"][name] = column
        with pytest.raises(SchemaError, match=r"columns"):
            Schema.from_plain(plain)


def test_a_complete_schema_passes() -> None:
    text = "doublure: 1\nkind: table\nunits: 9\ncolumns: {a: {type: boolean, missing: false}}"
    result = check(Schema.parse(text))
    assert result.ok
    assert result.to_yaml().startswith("# 0 undeclared facts\n")
    assert result.learn_epsilon == 0


def test_units_that_are_learned_need_a_public_size() -> None:
    text = "doublure: 1\nkind: table\nunits: {learn: 0.02}\ncolumns: {a: {type: boolean, missing: false}}"
    (finding,) = [finding for finding in check(Schema.parse(text)).findings if finding.kind == "undeclared"]
    assert finding.learn == "units: {learn: 0.02, magnitude: 10000}"


def test_the_header_is_compared(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text("nbr,Age,a.b,job,job,sex,born,<script>,size\n1,2,3,s3cr3t,5,6,7,8,9\n")
    result = check(Schema.parse(TEXT), path)
    assert findings(result, "absent") == {
        "age": "the data has no such column; did you mean Age",
        "code": "the data has no such column",
    }
    assert set(findings(result, "doubled")) == {"job"}
    assert set(findings(result, "ignored")) == {"Age", "<script>"}
    assert "s3cr3t" not in result.to_yaml()


def test_columns_that_are_not_read_take_one_line() -> None:
    schema = Schema.parse("doublure: 1\nkind: table\nunits: 9\ncolumns: {a: {type: boolean, missing: undeclared}}")
    data = pd.DataFrame({name: [True] for name in ["a", *(f"x{n}" for n in range(37))]})
    result = check(schema, data)
    said = [line for line in result.to_yaml().splitlines() if line.startswith("# ignored")]
    assert len(said) == 1
    assert "x0, x1, " in said[0]
    assert "(37)" in said[0]
    assert result.to_yaml().splitlines()[-1] == said[0]
    assert len(findings(result, "ignored")) == 37


def test_an_ignored_column_is_no_fault_and_an_absent_one_is() -> None:
    schema = Schema.parse("doublure: 1\nkind: table\nunits: 9\ncolumns: {a: {type: boolean, missing: false}}")
    assert check(schema, pd.DataFrame({"a": [True], "b": [1]})).ok
    assert not check(schema, pd.DataFrame({"b": [1]})).ok
    assert not check(schema, pd.DataFrame([[1, 2]], columns=["a", "a"])).ok


def test_no_record_is_read(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_bytes(b"nbr,age,a.b,job,size,sex,born,code\n" + b"\xff\xfe damaged,from,here,on\n")
    assert findings(check(Schema.parse(TEXT), path), "absent") == {}


def test_notes_are_public() -> None:
    notes = findings(check(Schema.parse(TEXT)), "note")
    assert "2 facts are learned, for 0.07" in notes["columns"]
    assert "unit.id" not in notes  # it is asked for: nbr is an id
    assert "equally often" in notes["columns.sex"]
    assert notes["columns.code"].startswith("99 means missing")
    assert "misfit" not in notes
    coerced = Schema.parse(TEXT.replace("kind: table", "kind: table\nmisfit: coerce"))
    assert "left out" in findings(check(coerced), "note")["misfit"]
    columns = "{n: {type: id}, a: {type: category, missing: false}}"
    many = f"doublure: 1\nkind: table\nunit: {{id: n}}\nunits: 9\ncolumns: {columns}"
    plain = Schema.parse(many).to_plain()
    plain["columns"]["a"]["values"] = list(range(201))
    assert findings(check(Schema.from_plain(plain)), "note").keys() == {"columns.a"}


def test_bounds_that_are_far_too_wide_are_noted() -> None:
    def noted(column: str) -> str:
        text = f"doublure: 1\nkind: table\nunits: 9\ncolumns: {{a: {{{column}, missing: false}}}}"
        return findings(check(Schema.parse(text)), "note").get("columns.a", "")

    assert "narrow" in noted("type: datetime, bounds: [1000-01-01T00:00:00, 9999-12-31T00:00:00]")
    assert "look alike" not in noted("type: datetime, bounds: [1990-01-01T00:00:00, 2030-12-31T00:00:00]")
    month = "type: datetime, bounds: [2024-01-01T00:00:00, 2024-01-31T23:59:59]"
    assert noted(month) == noted(f"{month}, step: 86400") == ""  # hours are counted
    assert "leave scale out" in noted("type: integer, bounds: [0, 100000000], scale: linear")
    assert noted("type: integer, bounds: [-100000000, 100000000]") == ""
    assert "declare precision" in noted("type: real, bounds: [0.0, 1.0e+9]")
    assert noted("type: real, bounds: {learn: 0.1}, precision: 1") == ""
    assert noted("type: real, bounds: {learn: 0.1}").startswith(
        "has no precision or step"
    )  # fares of 3.1999999999999997


def test_the_check_is_json_and_takes_a_file(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(TEXT)
    assert check(path) == check(Schema.parse(TEXT)) == check(str(path))
    plain = json.loads(json.dumps(check(path).to_plain()))
    assert plain["ok"] is False
    assert [found["path"] for found in plain["findings"][:2]] == ["unit.id", "units"]


def test_data_that_cannot_be_opened_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        check(Schema.parse(TEXT), tmp_path / "none.csv")


def test_many_codes_are_no_reason_to_group_rare_ones() -> None:
    """Codes have groups of their own, which methods count where single codes are rare."""
    codes = ", ".join(f"{letter}{number}" for letter in "ABC" for number in range(100, 200))
    text = f"""
doublure: 1
kind: table
units: 1000
columns:
  code: {{type: code, values: [{codes}], levels: [1], missing: false}}
  list: {{type: category, values: [{codes}], missing: false}}
"""
    notes = findings(check(Schema.parse(text)), "note")
    assert "noise hides rare ones" in notes["columns.list"]
    assert "columns.code" not in notes


STAY = """
doublure: 1
kind: table
unit: {name: record, id: none}
units: 500
defaults: {missing: false}
columns:
  admitted: {type: date, bounds: [2022-01-01, 2023-12-31]}
  discharged: {type: date, bounds: [2022-01-01, 2024-12-31]}
  los: {type: integer, bounds: [%s, 99]}
constraints:
- {difference: {of: los, from: admitted, to: discharged, unit: day}}
"""


def test_an_order_that_follows_from_what_lies_between_two_columns_is_recommended() -> None:
    """Undeclared, a stay was as long as any two days are apart."""
    said = [found.message for found in check(Schema.parse(STAY % "0")).findings if found.path == "constraints"]
    assert len(said) == 1
    assert "add {at_most: [admitted, discharged]}" in said[0]
    for text in (STAY % "-9", STAY % "0" + "- {at_most: [admitted, discharged]}\n"):
        assert not [found for found in check(Schema.parse(text)).findings if found.path == "constraints"]
