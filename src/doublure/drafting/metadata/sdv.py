"""Metadata of SDV (JSON, version 1): of one table, or of several that hang together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from doublure.drafting.codebook import DataDescription, Entry
from doublure.drafting.metadata.form import (
    MetadataForm,
    date_format,
    foreign_key_facts,
    misshapen,
    read_json,
    read_object,
    with_date_formats,
)

_TITLE = "SDV metadata"
_FAKED = {
    "name": "person_name",
    "first_name": "first_name",
    "last_name": "last_name",
    "email": "email",
    "phone_number": "phone",
    "address": "street",
    "street_address": "street",
    "iban": "iban",
    "city": "city",
    "company": "company",
}
"""Their type -> what a fake column is made as."""
_PERSONAL = "its cells name people, as the metadata says"


def read(path: Path) -> DataDescription:
    """Read metadata.

    Raises:
        InputError: The file cannot be read.
        SchemaError: It has no columns.
    """
    said = read_json(path, "SDV's metadata in JSON")
    tables = said.get("tables", {"data": said})
    for name, table in tables.items() if isinstance(tables, dict) else ():
        if not isinstance(table, dict) or not isinstance(table.get("columns"), dict):
            raise misshapen(path.name, f"tables.{name}", "a table with columns")
    if not isinstance(tables, dict) or not tables:
        raise misshapen(path.name, "tables", "tables with columns")
    links = [each for each in said.get("relationships", ()) if isinstance(each, dict)]
    entries: dict[str, Entry] = {}
    formats: dict[str, str] = {}
    for name, table in tables.items():
        head = f"{name}." if len(tables) > 1 else ""
        keys = {table.get("primary_key"), table.get("sequence_key")}
        keys |= {each.get("child_foreign_key") for each in links if each.get("child_table_name") == name}
        for column, told in table["columns"].items():
            place = f"{path.name}, {name}, columns.{column}"
            if not isinstance(told, dict):
                raise misshapen(path.name, place, "a description of a column")
            own = f"{head}{column}"
            entries[own] = Entry(place=place, facts={"type": "id"}) if column in keys else _entry(told, place)
            form = date_format(str(told.get("datetime_format"))) if told.get("sdtype") == "datetime" else None
            formats |= {own: form} if form is not None and column not in keys else {}
    related, named = _related(tables, links) if len(tables) > 1 else ({}, {})
    entries, whole = with_date_formats(entries, formats, related)
    return DataDescription(name=path.name, form=_TITLE, entries=entries, whole=whole, named=named, inferred=True)


def _entry(told: Mapping[str, Any], place: str) -> Entry:
    """Return the entry of a column; the metadata says no bounds, no values and nothing of missing cells."""
    kind = told.get("sdtype")
    if kind in ("latitude", "longitude"):
        return Entry(place=place, facts={"type": "real"})
    if kind == "numerical":
        stored = str(told.get("computer_representation", ""))
        type_ = "integer" if "Int" in stored else "real" if stored in ("Float", "Double") else None
        return Entry(place=place, facts={} if type_ is None else {"type": type_})
    if kind == "datetime":
        form = str(told.get("datetime_format", ""))
        timed = not form or "%H" in form or "%I" in form
        return Entry(place=place, facts={"type": "datetime"} if form and timed else {"type": "date"} if form else {})
    if kind in ("categorical", "boolean"):
        return Entry(place=place, facts={"type": "category" if kind == "categorical" else "boolean"})
    if kind == "id":
        return Entry(place=place, facts={"type": "id"})
    faked = _FAKED.get(str(kind))
    if faked is not None:
        return Entry(place=place, facts={"type": "fake", "as": faked})
    if told.get("pii") is True or kind not in (None, "unknown"):
        return Entry(place=place, facts={"type": "id"}, notes=(_PERSONAL,))
    return Entry(place=place)


def _related(
    tables: Mapping[str, Mapping[str, Any]], links: Sequence[Mapping[str, Any]]
) -> tuple[dict[str, Any], dict[str, dict[str, str]]]:
    """Return the keys of related tables, as a schema names them, and columns that name rows beside the parent's."""
    found: dict[str, Any] = {}
    named: dict[str, dict[str, str]] = {}
    for name, table in tables.items():
        key = table.get("primary_key")
        found[name] = {"key": key} if isinstance(key, str) else {}
        own = [each for each in links if each.get("child_table_name") == name]
        keys = [(each.get("child_foreign_key"), each.get("parent_table_name")) for each in own]
        parent, named[name] = foreign_key_facts(name, keys, tables)
        found[name] |= parent
    return {"tables": found}, named


def _begins_like_one(path: Path) -> bool:
    found = read_object(path)
    tables = found.get("tables")
    one = tables if isinstance(tables, dict) else {"data": found}
    return "METADATA_SPEC_VERSION" in found or any(
        isinstance(each, dict)
        and isinstance(columns := each.get("columns"), dict)
        and any(isinstance(told, dict) and "sdtype" in told for told in columns.values())
        for each in one.values()
    )


FORM = MetadataForm(title=_TITLE, read=read, recognises=_begins_like_one)
