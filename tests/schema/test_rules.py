"""Rules in a schema: their files, their hash, and every way in which they do not fit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from doublure.errors import SchemaError
from doublure.schema import Schema

HEAD = "doublure: 1\nkind: table\nunits: 9\n"
TEXT = (
    HEAD
    + """
columns:
  area: {type: category, values: ["1", "2", "3"], missing: true}
  density: {type: real, bounds: [0, 99], precision: 1, missing: true}
  code: {type: category, values: [a, b], missing: false}
constraints:
  - {determines: [area, density], map: density.csv}
  - {combinations: codes.csv}
"""
)
DENSITY = "area,density\n1,10.5\n2,7\n3,\n"
CODES = "code,area\na,1\na,2\nb,3\nb,\n"


def written(folder: Path, density: str = DENSITY, codes: str = CODES, text: str = TEXT) -> Path:
    (folder / "density.csv").write_text(density, encoding="utf-8")
    (folder / "codes.csv").write_text(codes, encoding="utf-8")
    (folder / "s.yaml").write_text(text, encoding="utf-8")
    return folder / "s.yaml"


def test_files_are_read_once_and_are_part_of_the_hash(tmp_path: Path) -> None:
    schema = Schema.load(written(tmp_path))
    first, second = schema.constraints
    assert first.map == {"1": "10.5", "2": "7", "3": ""}
    assert second.combinations.rows == (("a", "1"), ("a", "2"), ("b", "3"), ("b", ""))
    again = Schema.parse(schema.to_yaml())  # without the files
    assert again == schema
    assert again.sha256 == schema.sha256
    assert json.loads(json.dumps(schema.to_plain())) == schema.to_plain()
    changed = Schema.load(written(tmp_path, density=DENSITY.replace("10.5", "10.6")))
    assert changed.sha256 != schema.sha256
    turned = Schema.load(written(tmp_path, density="density,area\n10.5,1\n7,2\n,3\n"))
    assert turned.sha256 == schema.sha256


@pytest.mark.parametrize(
    ("density", "codes", "field", "words"),
    [
        ("area,density\n1,2\n2,3\n", CODES, "constraints", "lacks 1 of the first's 3 values"),
        ("area,density\n1,2\n2,3\n3,100\n", CODES, "constraints", "at density lies outside"),
        ("area,density\n1,2\n2,3\n4,1\n3,1\n", CODES, "constraints", "at area has no such value"),
        ("area,density\n1,2\n1,3\n", CODES, "constraints.0.map", "one value two"),
        ("area,dense\n1,2\n2,3\n", CODES, "constraints.0.map", "header"),
        ("area,density\n1,2,3\n", CODES, "constraints.0.map", "lengths"),
        ("", CODES, "constraints.0.map", "without lines"),
        (DENSITY, 'code,area\na,"1\n', "constraints.1.combinations", "no CSV"),
        (DENSITY, "code,place\na,1\n", "constraints", "place, which is not a column"),
        (DENSITY, "code,area\nc,1\n", "constraints", "combinations at code has no such value"),
    ],
)
def test_files_that_do_not_fit_are_refused(tmp_path: Path, density: str, codes: str, field: str, words: str) -> None:
    with pytest.raises(SchemaError) as caught:
        Schema.load(written(tmp_path, density, codes))
    assert caught.value.field == field
    assert words in caught.value.message
    assert caught.value.remedy


def test_a_file_lies_beside_the_schema_and_a_text_has_none(tmp_path: Path) -> None:
    path = written(tmp_path)
    with pytest.raises(SchemaError, match="load the schema from a file"):
        Schema.parse(TEXT)
    (tmp_path / "codes.csv").unlink()
    with pytest.raises(SchemaError, match="names a file that is not there"):
        Schema.load(path)
    with pytest.raises(SchemaError, match="beside the schema"):
        Schema.load(written(tmp_path, text=TEXT.replace("codes.csv", "../codes.csv")))


X, Y = "x: {type: integer, bounds: [0, 9], missing: false}", "y: {type: category, values: [a, b], missing: false}"
Z = "z: {type: integer, bounds: [50, 60], missing: false}"
W, V = Y.replace("y:", "w:"), Y.replace("y:", "v:")
U = X.replace("x:", "u:")


def always(then: str) -> str:
    """Return a rule that speaks of every row."""
    return f"{{implies: {{when: {{z: [50, 60]}}, then: {{{then}}}}}}}"


@pytest.mark.parametrize(
    ("columns", "rules", "words"),
    [
        (f"{X}, {Y}", "{implies: {when: {x: 1}, then: {q: a}}}", "q, which is not a column"),
        (f"{X}, {Y}", "{implies: {when: {x: 1}, then: {x: 2}}}", "on both sides"),
        (f"{X}, {Y}", "{implies: {when: {x: missing}, then: {y: a}}}", "never missing"),
        (f"{X}, {Y}", "{implies: {when: {x: [10, 12]}, then: {y: a}}}", "outside the column's bounds"),
        (f"{X}, {Y}", "{implies: {when: {x: [5, 2]}, then: {y: a}}}", "ends before it begins"),
        (f"{X}, {Y}", "{implies: {when: {x: 1}, then: {y: c}}}", "y has no such value"),
        (f"{X}, {Y[:-1]}, roles: [condition]}}", "{implies: {when: {x: 1}, then: {y: a}}}", "stays as"),
        (
            f"{X}, y: {{type: category, values: {{learn: 1}}, other: o}}",
            "{implies: {when: {y: a}, then: {x: 1}}}",
            "is learned",
        ),
        (f"{X}, {Y}", "{determines: [x, y], map: {1: a}}", "lacks 9 of the first's 10 values"),
        (f"r: {{type: real, bounds: [0, 1]}}, {Y}", "{determines: [r, y], map: {1: a}}", "a category or an integer"),
        (f"{Y}, {W}", "{determines: [y, w], map: {a: b, b: a}}, {determines: [w, y], map: {a: b, b: a}}", "circle"),
        (f"{X}, {Y}, {Z}", "{sum: {total: z, of: [x, y]}}", "all whole numbers, or all real"),
        (f"{X}, {U}, {Z}", "{sum: {total: z, of: [x, u]}}", "no parts add up"),
        (f"{X}, {Z}", "{sum: {total: z, of: [x]}}", "sum of z, x does not have its form"),
        (
            f"r: {{type: real, bounds: [0, 1], missing: false}}, {Y}",
            "{combinations: {columns: [r, y], rows: [[1, a]]}}",
            "a real number",
        ),
        (
            f"{Y}, {W}, {V}",
            "{equal: [y, w]}, {combinations: {columns: [w, v], rows: [[a, b]]}}",
            "follows from another",
        ),
        (
            f"{X}, {Z}, w: {{type: integer, bounds: {{learn: 1}}, missing: false}}",
            "{implies: {when: {z: 50}, then: {x: 1}}}, {at_most: [x, w]}",
            "declared facts of w",
        ),
        (f"{Z}, {Y}", f"{always('y: a')}, {always('y: b')}", "no row was found"),
        (f"{X}, {Z}, {U}", f"{{at_most: [x, u]}}, {always('u: [0, 3]')}, {always('x: [4, 9]')}", "no row was found"),
    ],
)
def test_rules_that_no_row_could_keep(columns: str, rules: str, words: str) -> None:
    with pytest.raises(SchemaError) as caught:
        Schema.parse(f"{HEAD}columns: {{{columns}}}\nconstraints: [{rules}]")
    assert caught.value.field.startswith("constraints")
    assert words in str(caught.value)


def test_all_that_do_not_fit_are_named_at_once() -> None:
    rules = "{implies: {when: {x: 99}, then: {y: a}}}, {implies: {when: {x: 1}, then: {y: c}}}"
    rules += ", {sum: {total: x, of: [z, y]}}"
    with pytest.raises(SchemaError) as caught:
        Schema.parse(f"{HEAD}columns: {{{X}, {Y}, {Z}}}\nconstraints: [{rules}]")
    assert str(caught.value).startswith("constraints: 3 rules do not fit: (1) implies at x lies outside")
    assert "(2) implies at y has no such value" in caught.value.message
    assert "(3) sum needs x and its parts" in caught.value.message


def test_facts_that_nobody_has_decided_are_no_reason_to_refuse_yet() -> None:
    open_ = "{type: category, missing: undeclared, values: undeclared}"
    schema = Schema.parse(
        f"{HEAD}columns: {{{X}, y: {open_}}}\nconstraints: [{{implies: {{when: {{y: a}}, then: {{x: 1}}}}}}]"
    )
    assert "columns.y.values" in schema.undeclared
