"""Values in a sentence can be told apart."""

from __future__ import annotations

from doublure.releasing.card import column_sections, holds
from doublure.releasing.examples import ExampleRecords
from doublure.support.views import list_values


def test_values_with_commas_are_quoted_and_the_others_are_counted():
    assert list_values(["a", "b"], 6) == "a, b"
    assert list_values([f"v{n}" for n in range(1_204)], 4) == "v0, v1, v2, v3 and 1,200 more"
    assert list_values(["Seattle, WA", "Paris"], 6) == '"Seattle, WA", "Paris"'
    assert holds({"values": ["Seattle, WA", "Paris"], "missing": True}) == '"Seattle, WA", "Paris"; may be missing'


def test_a_column_without_a_margin_says_so_where_another_has_one():
    described = {"columns": [{"name": "age", "type": "integer"}, {"name": "nr", "type": "id"}]}
    (section,) = column_sections(described, {"columns": {"age": 31}}, ExampleRecords())
    assert section["margins"]
    assert [row["margin"] for row in section["rows"]] == ["± 31", None]
