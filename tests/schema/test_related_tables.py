"""The schema of related tables: read, written, and refused in one line that names the key."""

from __future__ import annotations

import pytest

import doublure as db
from doublure.errors import SchemaError, SettingError
from doublure.schema import ResolvedSchema
from doublure.schema.tables import TableSchema

TEXT = """
doublure: 1
kind: relational
unit: {name: patient}
units: 500
tables:
  patients:
    key: nr
    columns:
      nr: {type: id}
      sex: {type: category, values: [f, m], missing: false, roles: [condition]}
      born: {type: date, bounds: [1930-01-01, 2005-12-31], missing: false}
      total: {type: integer, bounds: [0, 240], missing: false}
  stays:
    key: stay
    parent: patients
    foreign_key: nr
    max_children: 4
    order: admitted
    columns:
      stay: {type: id}
      nr: {type: id}
      admitted: {type: date, bounds: [2015-01-01, 2020-12-31], missing: false}
      discharged: {type: date, bounds: [2015-01-01, 2021-12-31], missing: true}
      days: {type: integer, bounds: [0, 60], missing: false}
constraints:
  - {at_most: [patients.born, stays.admitted, stays.discharged]}
  - {at_most: [stays.admitted, stays.discharged]}
  - {sum: {total: patients.total, of: stays.days}}
"""


def test_it_is_written_as_it_was_read():
    schema = db.Schema.parse(TEXT)
    assert db.Schema.parse(schema.to_yaml()) == schema
    assert db.Schema.from_plain(schema.to_plain()).sha256 == schema.sha256
    assert schema.undeclared == ()
    assert isinstance(schema.resolve({}), ResolvedSchema)


def test_each_table_is_one_by_itself():
    schema = db.Schema.parse(TEXT)
    assert (schema.root, schema.children, schema.summary) == ("patients", ("stays",), "2 tables")
    assert isinstance(schema.table("stays"), TableSchema)
    assert [each.at_most for each in schema.table("stays").constraints] == [("admitted", "discharged")]
    assert list(schema.modelled("patients").columns) == ["nr", "sex", "born"]  # a sum is not modelled
    assert schema.path_of("stays.days") == "tables.stays.columns.days"
    assert (schema.cells_of("stays.days", "bounds"), schema.cells_of("patients.born", "bounds")) == (4, 1)
    assert (schema.asked("sex"), schema.asked("patients.sex"), schema.asked("label")) == ("patients.sex",) * 2 + (
        "label",
    )
    for name in ("stays.days", "days"):
        said = rf"given {name}: is no column of the root; ask for columns of patients"
        with pytest.raises(SettingError, match=said):
            schema.asked(name)


def test_facts_may_be_learned_and_are_filled_in_by_their_paths():
    schema = db.Schema.parse(TEXT.replace("bounds: [0, 60]", "bounds: {learn: 0.1}").replace(
        "  - {sum: {total: patients.total, of: stays.days}}\n", ""))  # fmt: skip
    (question,) = schema.questions
    assert (question.path, question.column) == ("tables.stays.columns.days.bounds", "stays.days")
    resolved = schema.resolve({question.path: (0, 31)})
    assert resolved.columns["stays.days"].bounds == (0, 31)


def test_what_is_open_is_listed():
    schema = db.Schema.parse(
        TEXT.replace("max_children: 4", "max_children: undeclared").replace("[f, m]", "undeclared")
    )
    assert set(schema.undeclared) == {"tables.patients.columns.sex.values", "tables.stays.max_children"}
    with pytest.raises(SchemaError, match=r"tables\.stays\.max_children: is not known yet"):
        schema.most("stays")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("max_children: 4", "max_children: 0", "whole number from 1 to 1000"),
        ("    max_children: 4\n", "", "declare max_children"),
        ("parent: patients", "parent: people", "a parent that is none of the tables"),
        ("parent: patients", "parent: stays", "stays is its own parent"),
        ("parent: patients", "parent: [patients, wards]", "name the parent with which a row belongs to a unit"),
        ("foreign_key: nr", "foreign_key: [nr, stay]", "not as many columns as the key that it holds"),
        ("    parent: patients\n    foreign_key: nr\n    max_children: 4\n    order: admitted\n", "", "one root"),
        ("foreign_key: nr", "foreign_key: days", "describe that column with type: id"),
        ("order: admitted", "order: stay", "must be a number, a date or a moment"),
        ("order: admitted", "order: discharged", "missing: false and declared bounds"),
        ("admitted: {type: date, bounds: [2015-01-01, 2020-12-31]", "admitted: {type: date, bounds: {learn: 0.1}",
         "missing: false and declared bounds"),
        ("unit: {name: patient}", "unit: {name: patient, id: nr, max_records: 2}", "give unit its name alone"),
        ("bounds: [0, 240]", "bounds: [0, 100]", "hold not every sum"),
        ("of: stays.days", "of: stays.admitted", "no number of a table"),
        ("[stays.admitted, stays.discharged]", "[stays.admitted, stays.nothing]", "not a column"),
        ("[patients.born, stays.admitted, stays.discharged]", "[patients.sex, stays.admitted]", "of one type"),
        ("days: {type: integer, bounds: [0, 60], missing: false}",
         "days: {type: boolean, missing: false, roles: [condition]}", "only columns of the root"),
        ("  stays:\n", "  ../stays:\n", "named for a file"),
        ("type: integer, bounds: [0, 60]", "type: whole, bounds: [0, 60]", "has a type that is not known"),
    ],
)  # fmt: skip
def test_what_no_tables_could_be_is_refused(old, new, said):
    assert old in TEXT
    with pytest.raises(SchemaError) as found:
        db.Schema.parse(TEXT.replace(old, new))
    assert said in str(found.value)
    assert "\n" not in str(found.value)
