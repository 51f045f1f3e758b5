"""A schema is written and read back unchanged, knows what is open, and takes answers without losing a fact."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiers import examples

from doublure.errors import SchemaError
from doublure.schema import UNDECLARED, Learn, ResolvedSchema, Schema, known
from doublure.schema.columns import CategoryColumn, label

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = [
    ROOT / "src/doublure/datasets/bundled/adult.schema.yaml",
    *sorted((ROOT / "examples/schemas").glob("*.yaml")),
]

EVERYTHING = """
doublure: 1
kind: table
unit: {name: patient, id: nbr, max_records: 3}
units: {learn: 0.01, magnitude: 1e4}
columns:
  nbr: {type: id}
  age: {type: integer, bounds: [0, 1e2], missing: false}
  gain: {type: integer, bounds: {learn: 0.05, magnitude: 1000}, zero_inflated: true, missing: ["?", -9]}
  hours: {type: real, bounds: [0, 99.5], precision: 1, missing: {learn: 0.02}}
  weight: {type: real, bounds: [-1.5, 2.5], zero_inflated: true, missing: true}
  job: {type: category, values: {learn: 0.1}, other: Other, missing: }
  size: {type: ordinal, values: [no, 2, 2.5, true], missing: undeclared}
  flag: {type: boolean, missing: false, roles: [condition], shares: {true: 0.3, false: 0.7}}
  born: {type: date, bounds: [1900-01-01, 2020-12-31], missing: false}
  start: {type: datetime, bounds: [2020-01-01T00:00:00, 2024-12-31], step: 60, timezone: Europe/Paris, missing: false}
  end: {type: datetime, bounds: [2020-01-01, 2024-12-31T23:59:59], step: 60, timezone: Europe/Paris, missing: true}
  income: {type: category, values: ["<=50K", ">50K"], missing: false, roles: [target, condition], shares: {learn: 0.05}}
  grade: {type: integer, bounds: [1, 2], missing: false}
constraints:
  - {equal: [income, grade]}
  - {at_most: [start, end]}
"""


def test_every_key_of_the_format_is_read() -> None:
    schema = Schema.parse(EVERYTHING)
    columns = schema.columns
    assert (schema.unit.name, schema.unit.id, schema.unit.max_records) == ("patient", "nbr", 3)
    assert schema.units == Learn(learn=0.01, magnitude=10_000)
    assert columns["age"].bounds == (0, 100)
    assert columns["gain"].missing_tokens == ("", "?", "-9")
    assert columns["job"].missing == UNDECLARED
    assert columns["size"].domain == ("no", 2, 2.5, True)
    assert columns["flag"].shares == {"true": 0.3, "false": 0.7}
    assert columns["born"].bounds[0] == datetime.date(1900, 1, 1)
    assert columns["end"].bounds[1] == datetime.datetime(2024, 12, 31, 23, 59, 59)
    assert schema.with_role("condition") == ("flag", "income")
    assert schema.target == "income"
    assert schema.derived == {"grade": "income"}
    assert schema.public_units == 10_000


@pytest.mark.parametrize("source", [EVERYTHING, *EXAMPLES], ids=lambda source: getattr(source, "name", "everything"))
def test_written_and_read_back(source: str | Path, tmp_path: Path) -> None:
    schema = Schema.parse(source) if isinstance(source, str) else Schema.load(source)
    schema.save(tmp_path / "s.yaml")
    again = Schema.load(tmp_path / "s.yaml")
    assert again == schema
    assert Schema.from_plain(again.to_plain()) == schema
    assert again.sha256 == schema.sha256
    assert again.to_yaml() == schema.to_yaml()


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_the_schemas_that_come_along_leave_nothing_open(path: Path) -> None:
    assert Schema.load(path).undeclared == ()


def test_the_fingerprint_sees_facts_and_no_formatting() -> None:
    text = "doublure: 1\nkind: table\nunits: 9\ncolumns:\n  a: {type: real, bounds: [0, 1], missing: false}\n"
    same = "kind: table\ndoublure: 1\ncolumns: {a: {missing: false, bounds: [0.0, 1.0], type: real}}\nunits: 9"
    assert Schema.parse(text).sha256 == Schema.parse(same).sha256
    assert Schema.parse(text.replace("[0, 1]", "[0, 2]")).sha256 != Schema.parse(text).sha256


def test_what_is_open_and_what_is_bought() -> None:
    schema = Schema.parse(EVERYTHING)
    assert schema.undeclared == ("columns.job.missing", "columns.size.missing")
    assert [(question.path, question.epsilon) for question in schema.questions] == [
        ("units", 0.01),
        ("columns.hours.missing", 0.02),
        ("columns.job.values", 0.1),
        ("columns.gain.bounds", 0.05),
        ("columns.income.shares", 0.05),
    ]
    assert schema.questions[3].magnitude == 1000


def test_an_omitted_fact_is_undeclared() -> None:
    schema = Schema.parse(
        "doublure: 1\nkind: table\ncolumns: {a: {type: integer}, b: {type: category}, c: {type: boolean}}"
    )
    assert schema.undeclared == (
        "units",
        "columns.a.missing",
        "columns.b.missing",
        "columns.c.missing",
        "columns.b.values",
        "columns.a.bounds",
    )


def answered(**changes: object) -> ResolvedSchema:
    text = EVERYTHING.replace("missing: }", "missing: false}").replace("missing: undeclared", "missing: false")
    answers = {
        "units": 9_000,
        "columns.hours.missing": True,
        "columns.job.values": ("Sales", "Tech"),
        "columns.gain.bounds": (0, 5_000),
        "columns.income.shares": {"<=50K": 0.75, ">50K": 0.25},
    }
    return Schema.parse(text).resolve(
        {path: answer for path, answer in (answers | changes).items() if answer is not None}
    )


def test_answers_are_filled_in_and_nothing_else_changes() -> None:
    resolved = answered()
    assert resolved.units == 9_000
    assert resolved.columns["hours"].missing is True
    assert resolved.columns["job"].domain == ("Sales", "Tech", "Other")
    assert resolved.columns["gain"].bounds == (0, 5_000)
    assert resolved.columns["income"].shares == {"<=50K": 0.75, ">50K": 0.25}
    assert resolved.questions == ()
    assert resolved.columns["end"] == Schema.parse(EVERYTHING).columns["end"]
    assert ResolvedSchema.parse(resolved.to_yaml()) == resolved


def test_an_unanswered_question_is_refused() -> None:
    with pytest.raises(SchemaError, match=r"columns.job.values: was not learned"):
        answered(**{"columns.job.values": None})


def test_a_resolved_schema_has_nothing_open() -> None:
    with pytest.raises(SchemaError, match="units is not known yet"):
        ResolvedSchema.parse(EVERYTHING)


def test_the_size_must_be_public() -> None:
    schema = Schema.parse("doublure: 1\nkind: table\nunits: {learn: 0.1}\ncolumns: {a: {type: boolean}}")
    with pytest.raises(SchemaError, match=r"units: .*magnitude"):
        _ = schema.public_units


def test_known_names_the_field() -> None:
    assert known((0, 1), "columns.a.bounds") == (0, 1)
    for fact in (UNDECLARED, Learn(learn=0.1)):
        with pytest.raises(SchemaError, match=r"columns.a.bounds: is not known yet"):
            known(fact, "columns.a.bounds")


def test_frozen() -> None:
    schema = Schema.parse(EVERYTHING)
    with pytest.raises(ValueError, match="frozen"):
        schema.units = 3
    with pytest.raises(ValueError, match="frozen"):
        schema.columns["age"].missing = True


@pytest.mark.parametrize(
    ("value", "text"),
    [(1, "1"), (1.0, "1"), (True, "true"), (2.5, "2.5"), (" a ", "a"), ("1.0", "1.0"), (1e22, "1" + "0" * 22)],
)
def test_labels(value: object, text: str) -> None:
    assert label(value) == text


def test_labels_of_numbers_from_elsewhere() -> None:
    import decimal

    import numpy as np

    assert label(np.float32(1.0)) == label(np.int8(1)) == label(decimal.Decimal("1.00")) == "1"
    assert label(np.bool_(True)) == "true"
    assert label(decimal.Decimal("1.50")) == label(1.5)


def test_other_may_be_one_of_the_values() -> None:
    for other in ("a", "1", " a "):
        column = CategoryColumn(values=("a", 1), other=other)
        assert column.domain == ("a", 1)
    assert CategoryColumn(values=("a",), other="b").domain == ("a", "b")


names = st.text(st.characters(categories=["L", "N", "P", "S"]), min_size=1, max_size=12)
words = st.one_of(
    names, st.sampled_from(["no", "12:30", "1e5", "null", "~", "=cmd", "<script>", "../x", "- a", "a: b"])
)
values = st.lists(words | st.integers(-5, 5) | st.booleans() | st.floats(-2, 2), min_size=1, max_size=5)


@examples(100)
@given(st.dictionaries(words, values, min_size=1, max_size=4))
def test_hostile_names_and_values_survive_a_round_trip(columns: dict[str, list[object]]) -> None:
    plain = {"doublure": 1, "kind": "table", "units": 10, "columns": {}}
    for name, domain in columns.items():
        kept = list({label(value): value for value in domain}.values())
        if len(set(kept)) == len(kept):
            plain["columns"][name] = {"type": "category", "values": kept, "missing": False}
    plain["columns"].setdefault("a", {"type": "boolean"})
    schema = Schema.from_plain(plain)
    assert Schema.parse(schema.to_yaml()) == schema
    for name, column in schema.columns.items():
        read_back = Schema.parse(schema.to_yaml()).columns[name]
        assert [type(value) for value in getattr(read_back, "domain", ())] == [
            type(v) for v in getattr(column, "domain", ())
        ]
