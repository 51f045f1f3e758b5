"""Everything a schema refuses: one line that names the field and the remedy."""

from __future__ import annotations

import pytest

from doublure.errors import SchemaError
from doublure.schema import Schema

COLUMN_REFUSALS = [
    ("{type: integer, precision: 1}", "columns.a.precision", "not a key that goes here; remove it"),
    ("{}", "columns.a", "no type"),
    ("5", "columns.a", "description"),
    ("{type: number}", "columns.a", "type that is not known"),
    ("{type: integer, bound: [0, 1]}", "columns.a.bound", "not a key"),
    ("{type: category, bounds: [0, 1]}", "columns.a.bounds", "not a key"),
    ("{type: integer, bounds: [0, 1.5]}", "columns.a.bounds", "[lower, upper]"),
    ("{type: integer, bounds: [0]}", "columns.a.bounds", "[lower, upper]"),
    ("{type: integer, bounds: [0, 1, 2]}", "columns.a.bounds", "[lower, upper]"),
    ("{type: integer, bounds: [false, true]}", "columns.a.bounds", "[lower, upper]"),
    ("{type: integer, bounds: ['0', '1']}", "columns.a.bounds", "[lower, upper]"),
    ("{type: integer, bounds: [0, 1e30]}", "columns.a.bounds", "2^53"),
    ("{type: integer, bounds: [1, 0]}", "columns.a", "in order"),
    ("{type: integer, bounds: [1, 1]}", "columns.a", "in order"),
    ("{type: integer, bounds: [1, 9], zero_inflated: true}", "columns.a", "contain 0"),
    ("{type: integer, bounds: [0, 9], zero_inflated: 1}", "columns.a.zero_inflated", "true or false"),
    ("{type: integer, bounds: nonsense}", "columns.a.bounds", "undeclared"),
    ("{type: integer, bounds: {learn: 0}}", "columns.a.bounds", "above 0"),
    ("{type: integer, bounds: {learn: -1}}", "columns.a.bounds", "above 0"),
    ("{type: integer, bounds: {learn: much}}", "columns.a.bounds", "above 0"),
    ("{type: integer, bounds: {learn: true}}", "columns.a.bounds", "above 0"),
    ("{type: integer, bounds: {learn: 0.1, magnitude: 0}}", "columns.a.bounds", "above 0"),
    ("{type: integer, bounds: {learn: 0.1, size: 3}}", "columns.a.bounds.size", "not a key"),
    ("{type: real, bounds: [0, .inf]}", "columns.a.bounds", "[lower, upper]"),
    ("{type: real, bounds: [-1.7e308, 1.7e308]}", "columns.a", "wider than float64"),
    ("{type: real, bounds: [0, 1e10], precision: 12}", "columns.a", "wider than float64"),
    ("{type: real, bounds: [0.2, 0.4], precision: 0}", "columns.a", "hold no value"),
    ("{type: real, precision: 13}", "columns.a.precision", "0 to 12"),
    ("{type: real, precision: -1}", "columns.a.precision", "0 to 12"),
    ("{type: real, precision: 1.5}", "columns.a.precision", "0 to 12"),
    ("{type: date, bounds: [1990, 2020]}", "columns.a.bounds", "2024-01-31"),
    ("{type: date, bounds: ['1990', '2020']}", "columns.a.bounds", "2024-01-31"),
    ("{type: date, bounds: [2020-01-01, 2020-02-30]}", "columns.a.bounds", "[lower, upper]"),
    ("{type: date, bounds: [2020-01-01T12:00:00, 2021-01-01]}", "columns.a.bounds", "[lower, upper]"),
    ("{type: datetime, bounds: [0, 100]}", "columns.a.bounds", "no date"),
    ("{type: datetime, bounds: ['2020-01-01T00:00:00Z', '2021-01-01']}", "columns.a.bounds", "offset"),
    ("{type: datetime, bounds: ['2020-01-01T00:00:00.5', '2021-01-01']}", "columns.a.bounds", "fractions"),
    ("{type: datetime, bounds: [2020-01-01T00:00:01, 2020-01-01T00:00:59], step: 60}", "columns.a", "hold no value"),
    ("{type: datetime, step: 0}", "columns.a.step", "at least 1"),
    ("{type: datetime, timezone: Mars/Olympus}", "columns.a.timezone", "IANA"),
    ("{type: datetime, timezone: ../../etc/passwd}", "columns.a.timezone", "IANA"),
    ("{type: datetime, timezone: ''}", "columns.a.timezone", "IANA"),
    ("{type: category, values: []}", "columns.a", "empty"),
    ("{type: category, values: [a, null]}", "columns.a.values", "list of"),
    ("{type: category, values: [[a]]}", "columns.a.values", "list of"),
    ("{type: category, values: [a, a]}", "columns.a", "twice"),
    ("{type: category, values: [1, '1']}", "columns.a", "twice"),
    ("{type: category, values: [1, 1.0]}", "columns.a", "twice"),
    ("{type: category, values: [true, 1]}", "columns.a", "twice"),
    ("{type: category, values: [a, ' a']}", "columns.a", "twice"),
    ("{type: category, values: [a, '']}", "columns.a", "missing"),
    ("{type: category, values: [a, '?'], missing: ['?']}", "columns.a", "missing"),
    ("{type: category, values: [a, '?'], missing: [' ? ']}", "columns.a", "missing"),
    ("{type: category, values: [a], other: '?', missing: ['?']}", "columns.a", "other"),
    ("{type: category, values: [a], other: ''}", "columns.a", "other"),
    ("{type: category, values: [a], other: [3]}", "columns.a.other", "text"),
    ("{type: category, values: {learn: 0.1}}", "columns.a", "name an other"),
    ("{type: ordinal, values: {learn: 0.1}, other: o}", "columns.a", "cannot be learned"),
    ("{type: integer, missing: []}", "columns.a.missing", "list of texts"),
    ("{type: integer, missing: '?'}", "columns.a.missing", "list of texts"),
    ("{type: integer, missing: 0}", "columns.a.missing", "list of texts"),
    ("{type: integer, roles: target}", "columns.a.roles", "list of target"),
    ("{type: integer, roles: [label]}", "columns.a.roles", "list of target"),
    ("{type: integer, roles: [target, target]}", "columns.a", "twice"),
    ("{type: integer, roles: [condition]}", "columns.a", "condition"),
    ("{type: boolean, roles: [condition], missing: true}", "columns.a", "missing: false"),
    ("{type: boolean, roles: [condition], missing: ['?']}", "columns.a", "missing: false"),
    ("{type: boolean, roles: [condition], missing: {learn: 0.1}}", "columns.a", "missing: false"),
    ("{type: boolean, shares: {true: 0.5, false: 0.5}}", "columns.a", "roles: [condition]"),
    ("{type: boolean, roles: [condition], shares: {true: 0.5}}", "columns.a", "every value"),
    ("{type: boolean, roles: [condition], shares: {true: 0.5, false: 0.6}}", "columns.a", "add up to 1"),
    ("{type: boolean, roles: [condition], shares: {true: 1.5, false: -0.5}}", "columns.a", "add up to 1"),
    ("{type: boolean, roles: [condition], shares: undeclared}", "columns.a", "leave them out"),
    ("{type: boolean, roles: [condition], shares: {true: a, false: b}}", "columns.a.shares", "share"),
    ("{type: category, values: [a], roles: [condition], shares: {b: 1}}", "columns.a", "every value"),
    ("{type: category, values: [a], other: o, roles: [condition], shares: {a: 1}}", "columns.a", "other included"),
    (
        "{type: category, values: {learn: 1}, other: o, roles: [condition], shares: {a: 1}}",
        "columns.a",
        "declared values",
    ),
    ("{type: category, values: [1], roles: [condition], shares: {1: 0.5, '1': 0.5}}", "columns.a", "twice"),
    ("{type: id, roles: [target]}", "columns.a", "never learned"),
    ("{type: id, missing: {learn: 0.1}}", "columns.a", "never learned"),
    ("{type: id}", "schema", "only ids"),
]


def assert_one_line(error: SchemaError, field: str, words: str) -> None:
    text = str(error)
    assert error.field == field
    assert words in text
    assert error.remedy
    assert "\n" not in text
    assert "Traceback" not in text
    assert "pydantic" not in text
    assert error.exit_code == 2


@pytest.mark.parametrize(("column", "field", "words"), COLUMN_REFUSALS)
def test_a_column_is_refused(column: str, field: str, words: str) -> None:
    with pytest.raises(SchemaError) as caught:
        Schema.parse(f"doublure: 1\nkind: table\nunits: 10\ncolumns:\n  a: {column}\n")
    assert_one_line(caught.value, field, words)


OTHER = "  b: {type: boolean, missing: false}\n"
SCHEMA_REFUSALS = [
    ("", "s.yaml", "begin with"),
    ("[1]", "s.yaml", "mapping"),
    ("{}", "doublure", "is not there"),
    ("doublure: 1\ncolumns: {a: {type: boolean}}", "kind", "is not there"),
    ("doublure: 1\nkind: table", "columns", "is not there"),
    ("doublure: 2\nkind: table\ncolumns: {a: {type: boolean}}", "doublure", "must be 1"),
    ("doublure: 1\nkind: graph\ncolumns: {a: {type: boolean}}", "kind", "must be table"),
    ("doublure: 1\nkind: series", "channels", "is not there"),
    ("doublure: 1\nkind: table\ncolumns: []", "columns", "every column"),
    ("doublure: 1\nkind: table\ncolumns: {}", "schema", "at least one"),
    ("doublure: 1\nkind: table\nrows: 3\ncolumns: {a: {type: boolean}}", "rows", "not a key"),
    ("doublure: 1\nkind: table\nunits: 0\ncolumns: {a: {type: boolean}}", "units", "at least 1"),
    ("doublure: 1\nkind: table\nunits: many\ncolumns: {a: {type: boolean}}", "units", "whole number"),
    ("doublure: 1\nkind: table\nunits: 1.5\ncolumns: {a: {type: boolean}}", "units", "whole number"),
    ("doublure: 1\nkind: table\nunits: {learn: -1}\ncolumns: {a: {type: boolean}}", "units", "above 0"),
    ("doublure: 1\nkind: table\nunit: person\ncolumns: {a: {type: boolean}}", "unit", "must be {name"),
    ("doublure: 1\nkind: table\nunit: {key: a}\ncolumns: {a: {type: boolean}}", "unit.key", "not a key"),
    ("doublure: 1\nkind: table\nunit: {max_records: 0}\ncolumns: {a: {type: boolean}}", "unit.max_records", "whole"),
    ("doublure: 1\nkind: table\nunit: {max_records: 2}\ncolumns: {a: {type: boolean}}", "unit", "needs an id"),
    ('doublure: 1\nkind: table\nunit: {name: "a\\nb"}\ncolumns: {a: {type: boolean}}', "unit", "invisible"),
    ("doublure: 1\nkind: table\nunit: {id: b}\ncolumns: {a: {type: boolean}}", "schema", "type: id"),
    ("doublure: 1\nkind: table\nunit: {id: a}\ncolumns: {a: {type: boolean}}", "schema", "type: id"),
    (
        "doublure: 1\nkind: table\ncolumns: {a: {type: boolean, roles: [target]}, b: {type: boolean, roles: [target]}}",
        "schema",
        "keep one",
    ),
    ("doublure: 1\nkind: table\ncolumns: {2020: {type: boolean}}", "columns.2020", "quotes"),
    ("doublure: 1\nkind: table\ncolumns: {true: {type: boolean}}", "columns.true", "quotes"),
    ("doublure: 1\nkind: table\nconstraints: x\ncolumns: {a: {type: boolean}}", "constraints", "list of"),
    (
        "doublure: 1\nkind: table\nconstraints: [{same: [a, b]}]\ncolumns: {a: {type: boolean}}",
        "constraints.0",
        "equal",
    ),
    ("doublure: 1\nkind: table\nconstraints: [{equal: [a]}]\ncolumns: {a: {type: boolean}}", "constraints.0", "equal"),
    (
        "doublure: 1\nkind: table\nconstraints: [{equal: [a]}]\ncolumns: {a: {type: boolean}}",
        "constraints.0",
        "equal of a does not have its form",
    ),
    (
        "doublure: 1\nkind: table\nconstraints: [{range: {of: a}}]\ncolumns: {a: {type: boolean}}",
        "constraints.0",
        "range of a has no end",
    ),
    ("doublure: 1\nkind: table\n1: 2\ncolumns: {a: {type: boolean}}", "1", "quotes"),
    ("columns: &x {a: *x}\ndoublure: 1\nkind: table", "columns.a", "type"),
]


@pytest.mark.parametrize(("text", "field", "words"), SCHEMA_REFUSALS)
def test_a_schema_is_refused(text: str, field: str, words: str) -> None:
    with pytest.raises(SchemaError) as caught:
        Schema.parse(text, "s.yaml")
    assert_one_line(caught.value, field, words)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("", "empty name"),
        ("  ", "empty name"),
        (" a", "spaces around"),
        ("a\tb", "invisible"),
        ("a\nb", "invisible"),
        ("a\x00b", "invisible"),
        ("\u202eevil", "invisible"),
        ("a\u200bb", "invisible"),
        ("a\u00a0b", "invisible"),
        ("\ufffd", "invisible"),
        ("a" * 501, "500 characters"),
        ("a" * 100 + "\u202e", "invisible"),
    ],
)
def test_names_that_could_deceive_are_refused_and_not_printed(name: str, words: str) -> None:
    with pytest.raises(SchemaError) as caught:
        Schema.from_plain({"doublure": 1, "kind": "table", "columns": {name: {"type": "boolean"}}})
    assert_one_line(caught.value, "schema", words)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    "name", ["<script>alert(1)</script>", "=cmd|' /C calc'!A0", "../../x", "__class__", "a b", "é", "年"]
)
def test_names_that_only_look_hostile_are_names(name: str) -> None:
    schema = Schema.from_plain({"doublure": 1, "kind": "table", "columns": {name: {"type": "boolean"}}})
    assert Schema.parse(schema.to_yaml()) == schema


def test_too_many_columns_and_values() -> None:
    columns = {f"c{number}": {"type": "id"} for number in range(10_001)}
    with pytest.raises(SchemaError, match="10000"):
        Schema.from_plain({"doublure": 1, "kind": "table", "columns": columns})
    column = {"type": "category", "values": [f"v{number}" for number in range(100_001)], "missing": False}
    with pytest.raises(SchemaError, match="100000"):
        Schema.from_plain({"doublure": 1, "kind": "table", "columns": {"a": column}})


@pytest.mark.parametrize(
    ("columns", "constraint", "words"),
    [
        ("a: {type: boolean}", "{equal: [a, z]}", "not a column"),
        ("a: {type: boolean}", "{equal: [a, a]}", "twice"),
        ("a: {type: boolean}, b: {type: id}", "{equal: [a, b]}", "not modelled"),
        (
            "a: {type: boolean}, b: {type: category, values: [x], missing: false}",
            "{equal: [a, b]}",
            "same missing|2 values",
        ),
        ("a: {type: boolean}, b: {type: category, values: [x, y], missing: true}", "{equal: [a, b]}", "same missing"),
        (
            "a: {type: boolean, missing: {learn: 1}}, b: {type: boolean, missing: false}",
            "{equal: [a, b]}",
            "same missing",
        ),
        ("a: {type: boolean}, b: {type: boolean, missing: {learn: 1}}", "{equal: [a, b]}", "nothing of it is learned"),
        ("a: {type: boolean}, b: {type: category, missing: false}", "{equal: [a, b]}", "declared values"),
        (
            "a: {type: boolean}, b: {type: boolean, roles: [condition], missing: false}",
            "{equal: [a, b]}",
            "name it first",
        ),
        ("a: {type: real, bounds: [0, 1]}, b: {type: real, bounds: [0, 2]}", "{equal: [a, b]}", "same bounds"),
        (
            "a: {type: real, bounds: {learn: 1}}, b: {type: real, bounds: {learn: 1}}",
            "{equal: [a, b]}",
            "nothing of it",
        ),
        ("a: {type: integer, bounds: [0, 1]}, b: {type: integer, bounds: [0, 2]}", "{equal: [a, b]}", "2 values"),
        ("a: {type: boolean}, b: {type: boolean}, c: {type: boolean}", "{equal: [a, b]}, {equal: [b, c]}", "two equal"),
        ("a: {type: boolean}, b: {type: boolean}, c: {type: boolean}", "{equal: [a, c]}, {equal: [b, c]}", "two equal"),
        ("a: {type: boolean}, b: {type: boolean}", "{at_most: [a, b]}", "of one type"),
        ("a: {type: integer}, b: {type: real}", "{at_most: [a, b]}", "of one type"),
        ("a: {type: real, precision: 1}, b: {type: real}", "{at_most: [a, b]}", "same precision"),
        ("a: {type: datetime, timezone: UTC}, b: {type: datetime}", "{at_most: [a, b]}", "timezone"),
        ("a: {type: ordinal, values: [x]}, b: {type: ordinal, values: [y]}", "{at_most: [a, b]}", "same values"),
        (
            "a: {type: ordinal, values: [x], roles: [condition]}, b: {type: ordinal, values: [x]}",
            "{at_most: [a, b]}",
            "stays as asked",
        ),
        (
            "a: {type: integer, bounds: [5, 9]}, b: {type: integer, bounds: [0, 4]}",
            "{at_most: [a, b]}",
            "no value of a",
        ),
        (
            "a: {type: real, bounds: [0.25, 9], precision: 1}, b: {type: real, bounds: [0, 0.27], precision: 1}",
            "{at_most: [a, b]}",
            "no value of a",
        ),
        (
            "a: {type: integer, bounds: [5, 9]}, b: {type: integer}, c: {type: integer, bounds: [0, 4]}",
            "{at_most: [a, b]}, {at_most: [b, c]}",
            "no value of a",
        ),
        ("a: {type: integer}, b: {type: integer}", "{at_most: [a, b]}, {at_most: [b, a]}", "circle"),
        (
            "a: {type: date}, b: {type: date}, c: {type: date}",
            "{at_most: [a, b, c]}, {at_most: [c, a]}",
            "circle",
        ),
        (
            ", ".join(f"{name}: {{type: integer, bounds: [0, 1]}}" for name in "abc"),
            "{equal: [a, b]}, {at_most: [b, c]}",
            "equal derives",
        ),
    ],
)
def test_constraints_that_no_row_could_keep(columns: str, constraint: str, words: str) -> None:
    with pytest.raises(SchemaError, match=words) as caught:
        Schema.parse(f"doublure: 1\nkind: table\nunits: 9\ncolumns: {{{columns}}}\nconstraints: [{constraint}]")
    assert "\n" not in str(caught.value)
    assert caught.value.remedy


def test_every_malformed_key_is_named_in_one_line() -> None:
    with pytest.raises(SchemaError) as caught:
        Schema.parse(
            "doublure: 1\nkind: table\nunits: many\ncolumns:\n  a: {type: integer, bounds: 9, missing: maybe}\n"
            "  b: {type: text}\n  c: {type: category, values: x}\n"
        )
    assert_one_line(
        caught.value, "units", "(see columns.a.missing, columns.a.bounds, columns.b, columns.c.values, too)"
    )
    many = "".join(f"  c{n}: {{type: text}}\n" for n in range(20))
    with pytest.raises(SchemaError, match=r"\(see c[^()]*, and 11 more, too\)"):
        Schema.parse(f"doublure: 1\nkind: table\nunits: 9\ncolumns:\n{many}")


RELEASE_REFUSALS = [
    ("{licens: CC0}", "release.licens", "not a key"),
    ("{licence: 5}", "release.licence", "texts"),
    ("{licence: ''}", "release.licence", "no text of 1 to 2,000 characters"),
    ("{links: ['javascript:alert(1)']}", "release.links", "no address of a page"),
    ("CC0", "release", "texts"),
]


@pytest.mark.parametrize(("words", "field", "said"), RELEASE_REFUSALS)
def test_words_of_a_release_are_refused(words: str, field: str, said: str) -> None:
    with pytest.raises(SchemaError) as caught:
        Schema.parse(f"doublure: 1\nkind: table\nunits: 9\nrelease: {words}\ncolumns: {{a: {{type: boolean}}}}")
    assert_one_line(caught.value, field, said)
