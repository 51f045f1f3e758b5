"""Columns of codes: groups above them, codes outside the list, requests, rules, files."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from doublure.drafting.check import check
from doublure.drafting.code_lists import likely_levels
from doublure.drafting.draft import drafted
from doublure.errors import DataError, SchemaError
from doublure.schema import Schema
from doublure.schema.columns.code_tree import CodeTree
from doublure.schema.columns.integer_domain import IntegerDomain

HEAD = "doublure: 1\nkind: table\nunits: 100\ncolumns:\n"
CODES = "values: [A00.0, A00.1, A01.0, B00.1, B02.3]"
LISTED = "{type: code, %s, levels: [1, 3], missing: false%s}"


def column_of(facts: str = LISTED % (CODES, "")) -> Any:
    return Schema.parse(f"{HEAD}  d: {facts}\n").columns["d"]


def read(column: Any, cells: list[Any], misfit: str = "refuse") -> list[Any]:
    return column.read(pd.Series(cells, dtype=object), "d", misfit).tolist()


@pytest.mark.parametrize(
    ("lengths", "code", "above"),
    [
        ([1, 3], "A00.1", ("A", "A00")),
        ([1, 3], "A0", ("A", "A0")),
        ([2, 3], "01.11", ("01", "01.1")),
        ([1, 3, 4, 5], "A10BA02", ("A", "A10", "A10B", "A10BA")),
        ([2], "-.7", ("-.7",)),
        ([1], "", ("",)),
    ],
)
def test_prefixes_count_letters_and_digits_alone(lengths, code, above):
    assert CodeTree.of_prefixes(lengths).above(code) == above


def test_parents_give_levels_from_the_root_and_ragged_codes_stand_for_themselves():
    column = column_of("{type: code, values: [a, b, c], parents: {a: G, G: R, b: G, c: R}, missing: false}")
    assert column.level_numbers == (1, 2)
    assert column.grouped(1) == ("R", "R", "R")
    assert column.grouped(2) == ("G", "G", "c")


@pytest.mark.parametrize("misfit", ["refuse", "coerce"])
def test_an_unlisted_code_counts_as_the_smallest_group_that_it_shares(misfit):
    column = column_of(LISTED % (CODES, ", unlisted: chapter"))
    assert column.domain[5:] == ("A", "A00", "A01", "B", "B00", "B02")
    assert read(column, ["A00.0", "A00.9", "A77.7", "B00", "A"], misfit) == ["A00.0", "A00", "A", "B00", "A"]


def test_a_code_that_shares_no_group_is_treated_as_any_misfit():
    column = column_of(LISTED % (CODES, ", unlisted: chapter"))
    with pytest.raises(DataError, match="d: has values outside the schema's list") as caught:
        read(column, ["Z99"])
    assert "Z99" not in str(caught.value)
    assert read(column, ["Z99"], "coerce") == ["A00.0"]
    assert read(column_of(LISTED % (CODES, ", unlisted: chapter, other: Else")), ["Z99", "A9"]) == ["Else", "A"]
    with pytest.raises(DataError, match="outside the schema's list"):
        read(column_of(), ["A00.9"])


def test_no_cell_decides_how_another_is_read():
    """Each unlisted code is read by itself, in whatever company."""
    column = column_of(LISTED % (CODES, ", unlisted: chapter"))
    cells = ["A00.9", "B77", "A00.0", "Z", "A0", "A"]
    alone = [read(column, [cell], "coerce")[0] for cell in cells]
    rng = np.random.default_rng(0)
    for _ in range(20):
        order = rng.permutation(len(cells))[: rng.integers(1, len(cells) + 1)]
        assert read(column, [cells[place] for place in order], "coerce") == [alone[place] for place in order]


def test_requests_name_groups():
    column = column_of(LISTED % (CODES, ", unlisted: chapter"))
    assert set(column.asked("A").values) == {0.0, 1.0, 2.0, 5.0, 6.0, 7.0}
    assert set(column.asked("A00, B02.3").values) == {0.0, 1.0, 6.0, 4.0}
    with pytest.raises(ValueError, match="has no such value"):
        column.asked("C")


def test_a_group_that_is_a_code_too_is_named_with_a_star():
    column = column_of(LISTED % ("values: [A00, A00.1, B1]", ""))
    assert column.asked("A00").values == (0.0,)
    assert set(column.asked("A00*").values) == {0.0, 1.0}


def test_a_group_is_no_single_cell_of_a_rule():
    text = f"{HEAD}  d: {LISTED % (CODES, '')}\n  e: {{type: boolean, missing: false}}\nconstraints:\n"
    rule = "  - {determines: [d, e], map: {A: true, B00.1: false, B02.3: false}}\n"
    with pytest.raises(SchemaError, match="names a group of codes; name each code, or the level"):
        Schema.parse(text + rule)
    Schema.parse(text + "  - {implies: {when: {d: A00}, then: {e: true}}}\n")


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ("{type: code, values: [A1]}", "code needs levels or parents, one of the two"),
        ("{type: code, values: [A1], levels: [1], parents: {A1: A}}", "levels or parents, one of the two"),
        ("{type: code, values: [A1], levels: [3, 1]}", "levels are not in ascending order"),
        ("{type: code, values: [A1], levels: []}", "levels: must be a list of lengths of prefixes"),
        ("{type: code, values: [A1], levels: [0]}", "levels.* must be a list of lengths of prefixes"),
        ("{type: code, values: {learn: 0.1}, other: x, levels: [1]}", "codes are a public list, and not learned"),
        ("{type: code, values: [A1], parents: {b: c}}", "parents have no group above any code"),
        ("{type: code, values: [a], parents: {a: b, b: a}}", "parents put a group above itself"),
        ("{type: code, values: [A1], parents: p.csv}", "parents names a file, and only a schema's own file can"),
        ("{type: code, values: [A1], levels: [1], unlisted: yes}", "unlisted: must be chapter or name"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(facts, message):
    with pytest.raises(SchemaError, match=message) as caught:
        Schema.parse(f"{HEAD}  d: {facts}\n")
    assert "\n" not in str(caught.value)


class _Crossing(IntegerDomain):
    def levels(self) -> Any:
        return np.array([[0, 0, 1, 1], [0, 1, 1, 2]])


class _Beyond(IntegerDomain):
    def levels(self) -> Any:
        return np.array([[0, 0, 1, 4]])


@pytest.mark.parametrize("wrong", [_Crossing, _Beyond])
def test_groups_that_do_not_nest_are_refused(wrong):
    with pytest.raises(SchemaError, match="gives groups that do not nest"):
        wrong(first=0, last=3, nullable=False).nested_levels()


def test_files_beside_the_schema_are_part_of_it(tmp_path):
    (tmp_path / "codes.txt").write_text("A00.0\nA00.1\nB1\n")
    (tmp_path / "parents.csv").write_text("code,parent\nA00.0,A00\nA00.1,A00\nA00,A\nB1,B\n")
    (tmp_path / "wards.csv").write_text("d,ward\nA,one\nB,two\n")
    (tmp_path / "s.yaml").write_text(
        f"{HEAD}  d: {{type: code, values: {{file: codes.txt}}, parents: parents.csv, missing: true}}\n"
        "  ward: {type: category, values: [one, two], missing: true}\n"
        "constraints:\n  - {determines: [{column: d, level: 1}, ward], map: wards.csv}\n"
    )
    schema = Schema.load(tmp_path / "s.yaml")
    assert schema.columns["d"].grouped(2) == ("A00", "A00", "B1")
    assert Schema.parse(schema.to_yaml()).sha256 == schema.sha256
    (tmp_path / "wards.csv").write_text("d,ward\nA,one\n")
    with pytest.raises(SchemaError, match="lacks 1 of the first's 3 values"):
        Schema.load(tmp_path / "s.yaml")
    (tmp_path / "parents.csv").write_text("code,parent\nA00.0,A00\nA00.0,B\n")
    with pytest.raises(SchemaError, match=r"columns.d.parents: names a file that gives one code two parents"):
        Schema.load(tmp_path / "s.yaml")


@pytest.mark.parametrize(("level", "message"), [(2, "has no level 2; name one of 1, 3")])
def test_a_rule_at_a_level_that_is_not_there_is_refused(level, message):
    text = f"{HEAD}  d: {LISTED % (CODES, '')}\n  e: {{type: boolean, missing: false}}\nconstraints:\n"
    with pytest.raises(SchemaError, match=message):
        Schema.parse(f"{text}  - {{determines: [{{column: d, level: {level}}}, e], map: {{A: true, B: false}}}}\n")
    with pytest.raises(SchemaError, match="has no levels; name a column of type code"):
        Schema.parse(f"{text}  - {{determines: [{{column: e, level: 1}}, d], map: {{A: A00.0, B: A00.0}}}}\n")


ICD = [f"{chapter}{block:02}.{code}" for chapter in "ABCDE" for block in range(8) for code in range(6)]


def test_levels_are_proposed_by_names_and_declared_values_alone():
    assert likely_levels("icd10", ICD) == (1, 3)
    assert likely_levels("x", ICD) == (1, 3)
    assert likely_levels("x", ICD[:50]) is None
    assert likely_levels("x", [f"word {chr(97 + n % 26)}{'abc'[n % 3]}" for n in range(200)]) is None
    assert likely_levels("isco", [1000 + n for n in range(300)]) == (2, 3)


def test_check_asks_for_levels_of_a_list_that_looks_like_codes():
    schema = Schema.parse(f"{HEAD}  x: {{type: category, values: [{', '.join(ICD)}], missing: false}}\n")
    (ask,) = [found for found in check(schema).findings if found.path == "columns.x" and found.kind == "ask"]
    assert ask.declare == "type: code, levels: [1, 3]"


def test_a_draft_proposes_codes_of_a_codebook_and_by_name(tmp_path):
    frame = pd.DataFrame({"diag": ["A00.0"] * 60, "icd10": ["X99.9"] * 60, "age": range(60)})
    (tmp_path / "codes.txt").write_text("\n".join(ICD))
    (tmp_path / "codes.csv").write_text("column,type,values\ndiag,category,{file: codes.txt}\n")
    made = drafted(frame, tmp_path / "codes.csv")
    assert made.proposals["diag"].column == {"type": "code", "values": {"file": "codes.txt"}, "levels": [1, 3]}
    assert made.proposals["icd10"].column == {"type": "code", "values": {"file": "CODES.txt"}, "levels": [1, 3]}
    assert "X99.9" not in made.to_yaml()


def test_a_codebook_holds_a_column_of_codes(tmp_path):
    (tmp_path / "p.csv").write_text("code,parent\nA1,A\nB1,B\n")
    (tmp_path / "codes.csv").write_text(
        "column,type,values,missing,levels,parents,unlisted\nx,code,A00.0|A00.1|B1,false,1|3,,chapter\n"
        "y,code,A1|B1,false,,p.csv,\n"
    )
    schema = drafted(pd.DataFrame({"x": ["A00.0"], "y": ["A1"]}), tmp_path / "codes.csv").schema
    assert schema.columns["x"].levels == (1, 3)
    assert schema.columns["y"].grouped(1) == ("A", "B")


def test_a_name_stands_in_and_is_drawn_only_where_the_schema_says_so():
    for said in ("chapter", "name"):
        domain = column_of(LISTED % (CODES, f", unlisted: {said}")).integer_domain()
        assert bool(domain.undrawn()) == (said == "chapter")
    listed = column_of("{type: code, values: [A, A1], levels: [1], unlisted: chapter, other: Else, missing: false}")
    assert listed.integer_domain().undrawn() == ()  # A is a code itself, and Else stands for what has no group
