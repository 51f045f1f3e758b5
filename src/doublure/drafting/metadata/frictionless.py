"""A Data Package (``datapackage.json``), or a table schema by itself (https://datapackage.org)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from doublure.drafting.codebook import DataDescription, Entry
from doublure.drafting.metadata.form import (
    MetadataForm,
    agreed,
    bounds,
    date_format,
    foreign_key_facts,
    foreign_keys,
    labelled,
    listed,
    lone_keys,
    meaning,
    misshapen,
    read_json,
    read_object,
    takes,
    with_date_formats,
)
from doublure.schema.fact_states import UNDECLARED

_TITLE = "a Data Package"
_TYPES = {
    "integer": "integer",
    "number": "real",
    "boolean": "boolean",
    "date": "date",
    "datetime": "datetime",
    "time": "time",
    "duration": "duration",
    "year": "year",
    "yearmonth": "month",
    "geopoint": "category",
}
"""Type of a field -> type of a column."""
_NAMES_RECORDS = ("uri", "uuid")
_STRUCTURED = ("object", "array", "geojson", "list")
_BOUNDED = ("integer", "number", "date", "datetime", "year")


def read(path: Path) -> DataDescription:
    """Read a package or a table schema.

    Raises:
        InputError: The file cannot be read.
        SchemaError: It has no resources with fields.
    """
    package = read_json(path, "a datapackage.json or a table schema")
    resources = package.get("resources", [{"name": "data", "schema": package}])
    tables: dict[str, Mapping[str, Any]] = {}
    for number, each in enumerate(resources if isinstance(resources, list) else ()):
        schema = each.get("schema") if isinstance(each, dict) else None
        if isinstance(schema, dict) and isinstance(schema.get("fields"), list):
            tables[str(each.get("name") or number)] = each
    if not tables:
        raise misshapen(path.name, "resources", "a list of resources whose schema has fields")
    entries: dict[str, Entry] = {}
    formats: dict[str, str] = {}
    for name, resource in tables.items():
        head = f"{name}." if len(tables) > 1 else ""
        keys = lone_keys(resource["schema"], "fields")
        for number, field in enumerate(resource["schema"]["fields"]):
            place = f"resources.{name}.fields.{number}"
            if not isinstance(field, dict) or not isinstance(field.get("name"), str):
                raise misshapen(path.name, place, "a field with a name")
            own = f"{head}{field['name']}"
            entries[own] = _entry(field, resource["schema"], f"{path.name}, {place}", key=field["name"] in keys)
            form = date_format(str(field.get("format"))) if field.get("type") in ("date", "datetime") else None
            formats |= {own: form} if form is not None else {}
    related, named = _related(tables) if len(tables) > 1 else ({}, {})
    entries, whole = with_date_formats(entries, formats, _marks(tables) | related)
    return DataDescription(name=path.name, form=_TITLE, entries=entries, whole=whole, named=named, inferred=True)


def _entry(field: Mapping[str, Any], schema: Mapping[str, Any], place: str, *, key: bool) -> Entry:
    kind, form = field.get("type", "string"), field.get("format")
    said = field.get("constraints")
    limits: Mapping[str, Any] = said if isinstance(said, dict) else {}
    description = field.get("description") or field.get("title")
    values, labels = _values(field, limits)
    if kind in _STRUCTURED:
        return Entry(place=place, description=meaning(description), omitted=True)
    if key or (kind == "string" and not values and (form in _NAMES_RECORDS or limits.get("unique") is True)):
        return Entry(place=place, facts={"type": "id"}, description=meaning(description))
    if kind == "string" and not values and form == "email":
        return Entry(place=place, facts={"type": "fake", "as": form}, description=meaning(description))
    facts: dict[str, Any] = {}
    notes: tuple[str, ...] = ()
    if values:
        facts = {"type": "ordinal" if field.get("categoriesOrdered") is True else "category", "values": listed(values)}
    elif kind in _TYPES:
        facts = {"type": _TYPES[kind]}
        if kind in _BOUNDED:
            ends, notes = bounds(limits.get("minimum"), limits.get("maximum"))
            facts |= ends
        if kind == "boolean" and takes("boolean", "written"):
            facts |= _truth(field)
    facts["missing"] = _missing(field, schema, required=limits.get("required") is True)
    return Entry(place=place, facts=labelled(facts, labels), description=meaning(description), notes=notes)


def _values(field: Mapping[str, Any], limits: Mapping[str, Any]) -> tuple[list[Any], dict[str, str]]:
    """Return the listed values, and the labels of those that have one."""
    categories = field.get("categories")
    if not isinstance(categories, list):
        enum = limits.get("enum")
        return (list(enum) if isinstance(enum, list) else []), {}
    values = [each.get("value") if isinstance(each, dict) else each for each in categories]
    named = (each for each in categories if isinstance(each, dict) and each.get("label"))
    return values, {str(each["value"]): str(each["label"]) for each in named}


def _truth(field: Mapping[str, Any]) -> dict[str, Any]:
    """Return how truth values are written, where that is said."""
    words = [field.get(key) for key in ("trueValues", "falseValues")]
    said = [each[0] for each in words if isinstance(each, list) and each]
    return {"written": {"true": str(said[0]), "false": str(said[1])}} if len(said) == len(words) else {}


def _missing(field: Mapping[str, Any], schema: Mapping[str, Any], *, required: bool) -> Any:
    said = field.get("missingValues", schema.get("missingValues", [""]))
    texts = [each.get("value") if isinstance(each, dict) else each for each in said] if isinstance(said, list) else []
    named = [str(text) for text in texts if text != ""]
    return False if required else named or (True if "" in texts else UNDECLARED)


def _marks(tables: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return how text is written, where every table says the same."""
    fields = [field for each in tables.values() for field in each["schema"]["fields"] if isinstance(field, dict)]
    reals = [field for field in fields if field.get("type") == "number"]
    dialects = [each["dialect"] if isinstance(each.get("dialect"), dict) else {} for each in tables.values()]
    return agreed(
        delimiter=(each.get("delimiter") for each in dialects),
        encoding=(each.get("encoding") for each in tables.values()),
        decimal=(field.get("decimalChar") for field in reals),
        thousands=(field["groupChar"] for field in fields if "groupChar" in field),
    )


def _related(tables: Mapping[str, Mapping[str, Any]]) -> tuple[dict[str, Any], dict[str, dict[str, str]]]:
    """Return the keys of related tables, as a schema names them, and columns that name rows beside the parent's."""
    found: dict[str, Any] = {}
    named: dict[str, dict[str, str]] = {}
    for name, resource in tables.items():
        primary = resource["schema"].get("primaryKey")
        key = primary[0] if isinstance(primary, list) and len(primary) == 1 else primary
        found[name] = {"key": key} if isinstance(key, str) else {}
        keys = []
        for each in foreign_keys(resource["schema"]):
            fields, reference = each.get("fields"), each.get("reference")
            to = reference.get("resource") if isinstance(reference, dict) else None
            keys.append((fields[0] if isinstance(fields, list) and fields else fields, to or name))
        parent, named[name] = foreign_key_facts(name, keys, tables)
        found[name] |= parent
    return {"tables": found}, named


def _begins_like_one(path: Path) -> bool:
    found = read_object(path)
    return isinstance(found.get("resources"), list) or isinstance(found.get("fields"), list)


FORM = MetadataForm(title=_TITLE, read=read, recognises=_begins_like_one)
