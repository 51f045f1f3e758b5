"""Values in a sentence can be told apart."""

from __future__ import annotations

from doublure.releasing.card import column_sections, holds
from doublure.releasing.examples import ExampleRecords
from doublure.schema import Schema
from doublure.support.views import list_values


def test_values_with_commas_are_quoted_and_the_others_are_counted():
    assert list_values(["a", "b"], 6) == "a, b"
    assert list_values([f"v{n}" for n in range(1_204)], 4) == "v0, v1, v2, v3 and 1,200 more"
    assert list_values(["Seattle, WA", "Paris"], 6) == '"Seattle, WA", "Paris"'
    assert holds({"values": ["Seattle, WA", "Paris"], "missing": True}) == '"Seattle, WA", "Paris"; may be missing'
    assert holds({"values": ["a", "b"], "missing": ["", "<0.2"]}) == "a, b; may be missing, as (empty), <0.2"
    assert holds({"values": ["a", "b"], "missing": ["?"]}) == "a, b; may be missing, as ?"


def test_a_dictionary_names_the_texts_that_a_schema_keeps_apart():
    text = """{doublure: 1, kind: table, units: 400, columns: {
      low: {type: real, bounds: [0, 9], missing: ["<0.2", ""]}, one: {type: real, bounds: [0, 9], missing: ["<0.2"]},
      two: {type: real, bounds: [0, 9], missing: ["?", "NA"]}, blank: {type: real, bounds: [0, 9], missing: [""]},
      none: {type: real, bounds: [0, 9], missing: false}}}"""
    columns = {name: column.shown_missing for name, column in Schema.parse(text).columns.items()}
    assert columns == {"low": ["", "<0.2"], "one": ["<0.2"], "two": ["", "?", "NA"], "blank": True, "none": False}


def test_a_column_without_a_margin_says_so_where_another_has_one():
    described = {"columns": [{"name": "age", "type": "integer"}, {"name": "nr", "type": "id"}]}
    (section,) = column_sections(described, {"columns": {"age": 31}}, ExampleRecords())
    assert section["margins"]
    assert [row["margin"] for row in section["rows"]] == ["± 31", None]
