"""The JSON Schema that editors use accepts the examples and refuses what the reader refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from doublure.errors import SchemaError
from doublure.schema import Schema
from doublure.support import yaml12 as yaml_text

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = [
    ROOT / "src/doublure/datasets/bundled/adult.schema.yaml",
    *sorted((ROOT / "examples/schemas").glob("*.yaml")),
]
TYPES = {"object": dict, "array": list, "string": str, "integer": int, "number": (int, float), "boolean": bool}


def fits(value: Any, rule: dict[str, Any], root: dict[str, Any]) -> bool:
    """The part of JSON Schema 2020-12 that the export uses; an unknown keyword is an error of this test."""
    unknown = set(rule) - {
        *("$defs", "$ref", "$schema", "additionalProperties", "anyOf", "const", "default", "description", "enum"),
        *("discriminator", "exclusiveMinimum", "format", "items", "maxItems", "maximum", "minItems", "minLength"),
        *("minimum", "prefixItems", "properties", "required", "title", "type"),
    }
    assert not unknown, unknown
    if "$ref" in rule:
        return fits(value, root["$defs"][rule["$ref"].removeprefix("#/$defs/")], root)
    if "anyOf" in rule and not any(fits(value, option, root) for option in rule["anyOf"]):
        return False
    if "const" in rule and (value != rule["const"] or type(value) is not type(rule["const"])):
        return False
    if "enum" in rule and value not in rule["enum"]:
        return False
    if "type" in rule and not any(_is(value, name) for name in _listed(rule["type"])):
        return False
    if isinstance(value, dict):
        return _object_fits(value, rule, root)
    if isinstance(value, list):
        if not rule.get("minItems", 0) <= len(value) <= rule.get("maxItems", 10**9):
            return False
        rules = [*rule.get("prefixItems", []), *[rule.get("items") or {}] * len(value)]
        return all(fits(item, item_rule, root) for item, item_rule in zip(value, rules, strict=False))
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        low, high = rule.get("minimum", float("-inf")), rule.get("maximum", float("inf"))
        return low <= value <= high and value > rule.get("exclusiveMinimum", float("-inf"))
    return not isinstance(value, str) or len(value) >= rule.get("minLength", 0)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _is(value: Any, name: str) -> bool:
    if name == "null":
        return value is None
    return isinstance(value, TYPES[name]) and (name == "boolean" or not isinstance(value, bool))


def _object_fits(value: dict[str, Any], rule: dict[str, Any], root: dict[str, Any]) -> bool:
    if not set(rule.get("required", ())) <= set(value):
        return False
    properties, rest = rule.get("properties", {}), rule.get("additionalProperties", True)
    for key, item in value.items():
        if key in properties:
            if not fits(item, properties[key], root):
                return False
        elif rest is False or (isinstance(rest, dict) and not fits(item, rest, root)):
            return False
    return True


@pytest.fixture(scope="module")
def exported() -> dict[str, Any]:
    return json.loads(json.dumps(Schema.json_schema()))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_the_examples_fit(path: Path, exported: dict[str, Any]) -> None:
    assert fits(yaml_text.load(path, "schema"), exported, exported)
    assert fits(Schema.load(path).to_plain(), exported, exported)


@pytest.mark.parametrize(
    "column",
    [
        "{type: integer, bounds: [0, 9], missing: ['?', -9], zero_inflated: true}",
        "{type: real, bounds: {learn: 0.1, magnitude: 3}, precision: 2, missing: {learn: 0.1}}",
        "{type: category, values: [a, 3, 2.5, true], other: b, missing: undeclared}",
        "{type: boolean, roles: [condition], shares: {learn: 0.05}, missing: false}",
        "{type: boolean, roles: [target, condition], shares: {'true': 0.5, 'false': 0.5}, missing: false}",
        "{type: date, bounds: ['2020-01-01', '2021-01-01'], missing: true}",
        "{type: datetime, bounds: undeclared, step: 60, timezone: UTC}",
        "{type: id}",
    ],
)
def test_every_form_fits(column: str, exported: dict[str, Any]) -> None:
    text = f"doublure: 1\nkind: table\ncolumns: {{a: {column}, z: {{type: boolean}}}}"
    Schema.parse(text)
    assert fits(yaml_text.parse(text, "s.yaml"), exported, exported)


@pytest.mark.parametrize(
    "text",
    [
        "doublure: 2\nkind: table\ncolumns: {a: {type: boolean}}",
        "doublure: 1\nkind: graph\ncolumns: {a: {type: boolean}}",
        "kind: table\ncolumns: {a: {type: boolean}}",
        "doublure: 1\nkind: table\ncolumns: {a: {type: number}}",
        "doublure: 1\nkind: table\ncolumns: {a: {type: integer, bound: [0, 1]}}",
        "doublure: 1\nkind: table\ncolumns: {a: {type: integer, bounds: [0]}}",
        "doublure: 1\nkind: table\ncolumns: {a: {type: integer, bounds: {learn: 0}}}",
        "doublure: 1\nkind: table\ncolumns: {a: {type: integer, missing: []}}",
        "doublure: 1\nkind: table\ncolumns: {a: {type: integer, roles: [label]}}",
        "doublure: 1\nkind: table\ncolumns: {a: {type: integer, bounds: [0, 1e300]}}",
        "doublure: 1\nkind: table\ncolumns: {a: {type: real, precision: 13}}",
        "doublure: 1\nkind: table\ncolumns: {a: {type: datetime, step: 0}}",
        "doublure: 1\nkind: table\nunit: {max_records: 0}\ncolumns: {a: {type: boolean}}",
        "doublure: 1\nkind: table\nrows: 3\ncolumns: {a: {type: boolean}}",
        "doublure: 1\nkind: table\nconstraints: [{equal: [a]}]\ncolumns: {a: {type: boolean}}",
    ],
)
def test_what_the_reader_refuses_does_not_fit(text: str, exported: dict[str, Any]) -> None:
    with pytest.raises(SchemaError):
        Schema.parse(text)
    assert not fits(yaml_text.parse(text, "s.yaml"), exported, exported)


def test_what_only_files_say_fits_too(exported: dict[str, Any]) -> None:
    text = (
        "doublure: 1\nkind: table\ndefaults: {missing: false}\ndecimal: ','\nencoding: latin-1\n"
        "columns: {a: {type: category, values: {file: codes.csv}}}"
    )
    assert fits(yaml_text.parse(text, "s.yaml"), exported, exported)
    assert not fits(yaml_text.parse(text.replace("missing: false", "bounds: 3"), "s.yaml"), exported, exported)
