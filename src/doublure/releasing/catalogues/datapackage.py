"""``datapackage.json``: a release as a Data Package (https://datapackage.org), which frictionless and CKAN read."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from doublure.releasing.catalogues.contents import MEDIA, ROWS, CatalogueEntry, distinct_names, is_noisy, stem
from doublure.releasing.cells import DescribedColumn
from doublure.releasing.reading import DescribedTable, key_names
from doublure.releasing.tables import table_columns, table_path
from doublure.schema.columns import DateColumn
from doublure.support import files

_PROFILE = "https://datapackage.org/profiles/2.0/datapackage.json"
_MOST_AXES = 64
"""The most axes of an array in NumPy."""
_NOISY = {"table": "integer", "count": "integer", "noise_sd": "number", "standard_error": "number"}
_BY_ANY = frozenset({"datetime", "time"})
"""Types whose cells have a space or no seconds, which the default format does not read."""

_DATES = ("date", "datetime")
_PARTS = {"YYYY": "%Y", "MM": "%m", "DD": "%d", "hh": "%H", "mm": "%M", "ss": "%S"}
"""Part of a date in a schema -> in strftime's letters."""
_MARKS = {"decimal": "decimalChar", "thousands": "groupChar"}
_ENDS: Mapping[str, Callable[[float], Any]] = {"integer": int, "number": float, "date": DateColumn.axis_text}
"""Type of a data package, no column's -> a bound as the schema has it."""


def render(entry: CatalogueEntry) -> bytes:
    """Return the file."""
    card = entry.card
    names = distinct_names((file["path"] for file in entry.files), _slug)
    package: dict[str, Any] = {
        "$schema": _PROFILE,
        "name": _slug(card["title"]),
        "title": card["title"],
        "description": entry.summary,
        "created": card["created"],
        "keywords": entry.keywords,
        "licenses": _licences(entry),
        "contributors": [{"title": card["contact"]}] if card.get("contact") else None,
        "homepage": card["links"][0] if card.get("links") else None,
        "citation": card.get("citation"),
        "guarantee": card["guarantee"],
        "limits": card["limits"],
        "resources": [_resource(entry, file, names) for file in entry.files],
    }
    return files.json_bytes({key: value for key, value in package.items() if value is not None})


def _licences(entry: CatalogueEntry) -> list[dict[str, str]] | None:
    if entry.licence is None:
        return None
    name, address, words = entry.licence
    return [{"name": name, "title": words} | ({"path": address} if address else {})]


def _slug(text: str) -> str:
    """Return a name of lower-case letters, digits, dots and hyphens."""
    return re.sub(r"[^a-z0-9.]+", "-", text.lower()).strip("-.") or "data"


def _resource(entry: CatalogueEntry, file: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    form = file["path"].rpartition(".")[2]
    found: dict[str, Any] = {
        "name": names[file["path"]],
        "path": file["path"],
        "format": form,
        "mediatype": MEDIA.get(form, "application/octet-stream"),
        "hash": f"sha256:{file['sha256']}",
    }
    if form == "csv":
        found["encoding"] = entry.text.get("encoding", "utf-8")
        dialect = {key: entry.text[key] for key in ("delimiter", "header") if key in entry.text}
        found |= {"dialect": dialect} if dialect else {}
    if is_noisy(file["path"]):
        return found | {"schema": {"fields": _noisy_fields(file["path"], entry.described)}}
    table = entry.tables.get(stem(file["path"])) if form in ROWS and file in entry.data else None
    return found if table is None else found | {"schema": _schema(entry, table, form, names)}


def _noisy_fields(path: str, described: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return the fields of a file of noisy tables."""
    sizes = {table_path(size): size for size in range(1, _MOST_AXES + 1)}
    return [{"name": name, "type": _NOISY.get(name, "string")} for name in table_columns(sizes[path], described)]


def _schema(entry: CatalogueEntry, table: DescribedTable, form: str, names: Mapping[str, str]) -> dict[str, Any]:
    columns = entry.columns(table)
    listed = {value for column in columns for value in column.values}
    missing = sorted({token for column in columns for token in column.tokens} - listed)
    fields = [{"name": column.written} | _field(entry, table, column, form) for column in columns]
    found: dict[str, Any] = {"fields": fields, "missingValues": missing or [""]}
    written = {column.name: column.written for column in columns}
    keys = entry.keys(table.name)
    if keys.get("key"):
        found["primaryKey"] = [written[name] for name in key_names(keys["key"])]
    if keys.get("foreign_key"):
        parent = keys["parent"]
        above = {column.name: column.written for column in entry.tables[parent].columns}
        held = [above[name] for name in key_names(entry.keys(parent)["key"])]
        naming = [written[name] for name in key_names(keys["foreign_key"])]
        found["foreignKeys"] = [
            {"fields": naming, "reference": {"resource": names[f"{parent}.{form}"], "fields": held}}
        ]
    for own, named in entry.named(table.name).items():
        (owned,) = key_names(entry.keys(named)["key"])
        key = [each.written for each in entry.tables[named].columns if each.name == owned]
        reference = {"resource": "" if named == table.name else names[f"{named}.{form}"], "fields": key}
        found.setdefault("foreignKeys", []).append({"fields": [written[own]], "reference": reference})
    return found


def _field(entry: CatalogueEntry, table: DescribedTable, column: DescribedColumn, form: str) -> dict[str, Any]:
    """Return a field without its name: in files that have types of their own, the name is all."""
    meaning = entry.meaning(table, column)
    said = {"description": meaning} if meaning else {}
    if form != "csv":
        return {"type": "any", **said}
    spelt = _spelling(column, entry.told(table, column), entry.text)
    kind, limits = spelt["type"], dict[str, Any](required=not column.nullable)
    if kind in _ENDS and column.bounds is not None and "format" not in spelt:
        limits |= {name: _ENDS[kind](end) for name, end in zip(("minimum", "maximum"), column.bounds, strict=True)}
    if kind == "string" and column.values:
        limits["enum"] = list(column.values)
    return {**spelt, **said, "constraints": limits}


def _spelling(column: DescribedColumn, told: Mapping[str, Any], text: Mapping[str, Any]) -> dict[str, Any]:
    """Return a field's type, and how its cells are written; a spelling that no type has makes it a text.

    Args:
        column: The column.
        told: Its entry in the dictionary.
        text: The keys about all CSV files.
    """
    kind = column.model.table_type
    if "written" in told:
        words = {key: [str(word)] for key, word in told["written"].items()}
        return {"type": kind, "trueValues": words["true"], "falseValues": words["false"]}
    if kind in _DATES and (dates := told.get("date_format", text.get("date_format"))) is not None:
        spelt = re.sub("|".join(_PARTS), lambda part: _PARTS[part[0]], dates)
        return {"type": kind, "format": spelt} if not re.search(r"(?<!%)[A-Za-z]", spelt) else {"type": "string"}
    if {"format", "date_format", "pattern"} & told.keys():
        return {"type": "string"}
    marks = {name: text[key] for key, name in _MARKS.items() if key in text} if kind in ("integer", "number") else {}
    return {"type": kind} | ({"format": "any"} if kind in _BY_ANY else {}) | marks
