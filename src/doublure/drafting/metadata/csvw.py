"""CSV on the Web (https://www.w3.org/TR/tabular-metadata/): ``people.csv-metadata.json``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from doublure.drafting.codebook import DataDescription, Entry
from doublure.drafting.metadata.form import (
    MetadataForm,
    agreed,
    bounds,
    foreign_key_facts,
    foreign_keys,
    listed,
    lone_keys,
    meaning,
    misshapen,
    read_json,
    read_object,
    takes,
    with_date_formats,
)

_TITLE = "CSVW metadata"
_CONTEXT = "http://www.w3.org/ns/csvw"
_WHOLE = (
    *("integer", "long", "int", "short", "byte", "nonNegativeInteger", "positiveInteger", "unsignedLong"),
    *("unsignedInt", "unsignedShort", "unsignedByte", "nonPositiveInteger", "negativeInteger"),
)
_TYPES = {
    **dict.fromkeys(_WHOLE, "integer"),
    **dict.fromkeys(("number", "decimal", "double", "float"), "real"),
    "boolean": "boolean",
    "date": "date",
    **dict.fromkeys(("datetime", "dateTime", "dateTimeStamp"), "datetime"),
    "time": "time",
    **dict.fromkeys(("duration", "dayTimeDuration"), "duration"),
    "gYear": "year",
    "gYearMonth": "month",
}
"""Base type -> type of a column."""
_OMITTED = ("json", "xml", "html", "base64Binary", "hexBinary")
_MEANINGS = ("dc:description", "dcterms:description", "rdfs:comment", "schema:description")
_INHERITED = ("null", "required", "datatype")
_DATE_PARTS = (("yyyy", "YYYY"), ("dd", "DD"), ("HH", "hh"))
_DATE = re.compile(r"(?=.*YYYY)(?=.*MM)(?=.*DD)(?:YYYY|MM|DD|hh|mm|ss|[^A-Za-z])+")
_ISO_DATE = re.compile(r"YYYY-MM-DD(?:[T ]hh:mm(?::ss)?)?")
_WORDS = re.compile(r"\^?\(?\??:?((?:[\w .-]+\|)+[\w .-]+)\)?\$?")


def read(path: Path) -> DataDescription:
    """Read metadata of one table, or of a group.

    Raises:
        InputError: The file cannot be read.
        SchemaError: It describes no columns.
    """
    group = read_json(path, "CSVW metadata in JSON")
    tables: dict[str, Mapping[str, Any]] = {}
    for each in group.get("tables", [group]) if isinstance(group.get("tables", []), list) else ():
        schema = each.get("tableSchema", group.get("tableSchema")) if isinstance(each, dict) else None
        if isinstance(schema, dict) and isinstance(schema.get("columns"), list):
            url = unquote(str(each.get("url", "data")).rpartition("/")[2])
            tables[url.partition(".")[0]] = {**group, **each, "tableSchema": schema}
    if not tables:
        raise misshapen(path.name, "tableSchema", "a description of columns")
    entries: dict[str, Entry] = {}
    formats: dict[str, str] = {}
    for name, table in tables.items():
        head = f"{name}." if len(tables) > 1 else ""
        schema = table["tableSchema"]
        keys = lone_keys(schema, "columnReference")
        for number, column in enumerate(schema["columns"]):
            place = f"{path.name}, {name}, columns.{number}"
            if not isinstance(column, dict):
                raise misshapen(path.name, place, "a description of a column")
            if column.get("virtual") is True:
                continue
            title = _title(column)
            if title is None:
                raise misshapen(path.name, place, "a column with a name or a title")
            inherited = {key: part[key] for part in (table, schema, column) for key in _INHERITED if key in part}
            own = f"{head}{title}"
            entries[own] = _entry({**column, **inherited}, place, key=str(column.get("name")) in keys)
            form = _date_form(inherited.get("datatype"))
            formats |= {own: form} if form is not None else {}
    related, named = _related(tables) if len(tables) > 1 else ({}, {})
    entries, whole = with_date_formats(entries, formats, _dialect(tables) | related)
    return DataDescription(name=path.name, form=_TITLE, entries=entries, whole=whole, named=named)


def _title(column: Mapping[str, Any]) -> str | None:
    """Return a column's name in the header: its first title, else its name."""
    found = column.get("titles", column.get("name"))
    while isinstance(found, (dict, list)) and found:
        found = next(iter(found.values())) if isinstance(found, dict) else found[0]
    return unquote(found).strip() if isinstance(found, str) and found.strip() else None


def _datatype(said: Any) -> Mapping[str, Any]:
    return {"base": said} if isinstance(said, str) else said if isinstance(said, dict) else {}


def _entry(column: Mapping[str, Any], place: str, *, key: bool) -> Entry:
    told = _datatype(column.get("datatype"))
    base, form = str(told.get("base", "string")), told.get("format")
    description = next((_text(column[name]) for name in _MEANINGS if name in column), None)
    if base in _OMITTED:
        return Entry(place=place, description=meaning(description), omitted=True)
    if key or base == "anyURI":
        return Entry(place=place, facts={"type": "id"}, description=meaning(description))
    facts: dict[str, Any] = {}
    notes: tuple[str, ...] = ()
    words = _WORDS.fullmatch(form) if isinstance(form, str) and base not in _TYPES else None
    if words is not None:
        facts = {"type": "category", "values": listed(words[1].split("|"))}
    elif base in _TYPES:
        facts = {"type": _TYPES[base]}
        ends, notes = bounds(*(_end(told, end) for end in ("minimum", "maximum")))
        facts |= ends if base != "boolean" else {}
        if base == "boolean" and isinstance(form, str) and form.count("|") == 1 and takes("boolean", "written"):
            facts["written"] = dict(zip(("true", "false"), form.split("|"), strict=True))
    facts["missing"] = _missing(column)
    return Entry(place=place, facts=facts, description=meaning(description), notes=notes)


def _end(told: Mapping[str, Any], end: str) -> Any:
    """Return the inclusive end of a range; CSVW has two words for it."""
    return told.get(end, told.get(f"{end[:3]}Inclusive"))


def _text(value: Any) -> Any:
    """Return a text that may stand with its language."""
    return value.get("@value") if isinstance(value, dict) else value


def _missing(column: Mapping[str, Any]) -> Any:
    if column.get("required") is True:
        return False
    said = column.get("null", "")
    named = [str(text) for text in (said if isinstance(said, list) else [said]) if text != ""]
    return named or True


def _date_form(said: Any) -> str | None:
    """Return how days or moments are written; None for ISO 8601 and for a form that no schema has."""
    told = _datatype(said)
    if "date" not in str(told.get("base", "")).lower() or not isinstance(told.get("format"), str):
        return None
    form = told["format"]
    for theirs, ours in _DATE_PARTS:
        form = form.replace(theirs, ours)
    return form if _DATE.fullmatch(form) and not _ISO_DATE.fullmatch(form) else None


def _dialect(tables: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return how text is written, where every table says the same."""
    dialects = [each["dialect"] if isinstance(each.get("dialect"), dict) else {} for each in tables.values()]
    numbers = [
        told["format"]
        for each in tables.values()
        for column in each["tableSchema"]["columns"]
        if isinstance((told := _datatype(column.get("datatype"))).get("format"), dict)
    ]
    return agreed(
        delimiter=(each.get("delimiter") for each in dialects),
        encoding=(each.get("encoding") for each in dialects),
        decimal=(each.get("decimalChar") for each in numbers),
        thousands=(each.get("groupChar") for each in numbers),
    )


def _related(tables: Mapping[str, Mapping[str, Any]]) -> tuple[dict[str, Any], dict[str, dict[str, str]]]:
    """Return the keys of related tables, as a schema names them, and columns that name rows beside the parent's."""
    found: dict[str, Any] = {}
    named: dict[str, dict[str, str]] = {}
    for name, table in tables.items():
        titles = {str(column.get("name")): _title(column) for column in table["tableSchema"]["columns"]}
        primary = table["tableSchema"].get("primaryKey")
        key = primary[0] if isinstance(primary, list) and len(primary) == 1 else primary
        found[name] = {"key": titles.get(key, key)} if isinstance(key, str) else {}
        keys = []
        for each in foreign_keys(table["tableSchema"]):
            own, reference = each.get("columnReference"), each.get("reference")
            resource = str(reference.get("resource", "")) if isinstance(reference, dict) else ""
            foreign = own[0] if isinstance(own, list) and own else own
            if isinstance(foreign, str):
                to = unquote(resource.rpartition("/")[2]).partition(".")[0]
                keys.append((titles.get(foreign, foreign), to))
        parent, named[name] = foreign_key_facts(name, keys, tables)
        found[name] |= parent
    return {"tables": found}, named


def _begins_like_one(path: Path) -> bool:
    context = read_object(path).get("@context")
    return context == _CONTEXT or (isinstance(context, list) and _CONTEXT in context)


FORM = MetadataForm(title=_TITLE, read=read, recognises=_begins_like_one)
