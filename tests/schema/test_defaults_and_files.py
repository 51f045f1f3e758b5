"""What a schema's file says once for all columns, and what stands in a file beside it."""

from __future__ import annotations

from pathlib import Path

import pytest

from doublure.errors import SchemaError
from doublure.schema import Schema

HEAD = "doublure: 1\nkind: table\nunits: 9\n"


def test_a_default_is_for_columns_that_leave_the_fact_undeclared() -> None:
    columns = (
        "columns:\n  a: {type: integer, bounds: [0, 5]}\n  b: {type: boolean, missing: true}\n  c: {type: id}\n"
        "  d: {type: real, bounds: [0, 1], missing: undeclared}\n"
    )
    schema = Schema.parse(f"{HEAD}defaults: {{missing: false}}\n{columns}")
    assert [schema.columns[name].missing for name in "abcd"] == [False, True, False, False]
    spelled = columns.replace("5]}", "5], missing: false}").replace("undeclared", "false")
    assert Schema.parse(HEAD + spelled).sha256 == schema.sha256
    assert "defaults" not in schema.to_plain()


def test_defaults_hold_for_series_and_related_tables_too() -> None:
    series = Schema.parse(
        "doublure: 1\nkind: series\nunits: 9\ndefaults: {missing: true}\nseries: {length: 4, step: 1h}\n"
        "channels:\n  litres: {type: real, bounds: [0, 9]}\n"
    )
    assert series.columns["litres"].missing is True
    related = Schema.parse(
        "doublure: 1\nkind: relational\nunits: 9\ndefaults: {missing: false}\ntables:\n"
        "  a: {key: nr, columns: {nr: {type: id}, x: {type: boolean}}}\n"
        "  b: {parent: a, foreign_key: nr, max_children: 2, columns: {nr: {type: id}, y: {type: boolean}}}\n"
    )
    assert [related.columns[name].missing for name in ("a.x", "b.y")] == [False, False]
    assert related.undeclared == ()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("defaults: {bounds: [0, 1]}", "defaults.bounds: is no fact that has a default; write defaults"),
        ("defaults: false", "defaults: must give facts"),
        ("defaults: {missing: maybe}", r"columns.a.missing: must be true, false"),
    ],
)
def test_wrong_defaults_are_one_line(line: str, words: str) -> None:
    with pytest.raises(SchemaError, match=words):
        Schema.parse(f"{HEAD}{line}\ncolumns: {{a: {{type: boolean}}}}")
    with pytest.raises(SchemaError, match="has no columns to be for"):
        Schema.parse("doublure: 1\nkind: images\nunits: 9\ndefaults: {missing: false}\nimages: {}")


def test_values_stand_in_a_file_and_are_part_of_the_schema(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(f"{HEAD}columns:\n  town: {{type: category, values: {{file: towns.txt}}, missing: false}}\n")
    (tmp_path / "towns.txt").write_text("Zürich\n\n Genève \n", encoding="utf-8-sig")
    schema = Schema.load(path)
    assert schema.columns["town"].values == ("Zürich", "Genève")
    (tmp_path / "towns.txt").write_text("1\n2\n-9\n")
    again = Schema.load(path)
    assert again.columns["town"].values == (1, 2, -9)
    assert again.sha256 != schema.sha256
    (tmp_path / "towns.txt").unlink()
    with pytest.raises(SchemaError, match=r"columns.town.values: names a file that is not there; put it beside"):
        Schema.load(path)
    (tmp_path / "towns.txt").write_text("\n")
    with pytest.raises(SchemaError, match="without values; write a value a line"):
        Schema.load(path)
    path.write_text(path.read_text().replace("towns.txt", "../towns.txt"))
    with pytest.raises(SchemaError, match="is not the name of a file beside the schema"):
        Schema.load(path)
    with pytest.raises(SchemaError, match=r"file: codes\.csv"):
        Schema.parse(path.read_text())  # text lies in no folder


def test_values_outside_a_list_of_codes_may_go_to_one_of_them() -> None:
    column = "{type: category, values: [1, 2, 4], other: 4, missing: false}"
    schema = Schema.parse(f"{HEAD}columns: {{education: {column}}}")
    assert schema.columns["education"].domain == (1, 2, 4)
