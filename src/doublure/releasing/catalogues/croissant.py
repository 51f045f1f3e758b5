"""``croissant.json``: a release in Croissant (http://mlcommons.org/croissant/1.0), which data set searches read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from doublure.releasing.catalogues.contents import MEDIA, CatalogueEntry, distinct_names, stem
from doublure.releasing.reading import DescribedTable, key_names
from doublure.support import files

_CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "sc": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "dct": "http://purl.org/dc/terms/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "conformsTo": "dct:conformsTo",
    **{
        word: f"cr:{word}"
        for word in (
            *(
                "citeAs",
                "column",
                "equivalentProperty",
                "extract",
                "field",
                "fileProperty",
                "fileObject",
                "fileSet",
                "format",
                "includes",
            ),
            *("isLiveDataset", "jsonPath", "key", "md5", "parentField", "path", "recordSet", "references", "regex"),
            *("repeated", "replace", "separator", "source", "samplingRate", "subField", "transform"),
        )
    },
}
_MEDIA = {**MEDIA, "parquet": "application/x-parquet"}
_READ = (".csv", ".parquet")
"""The endings of files whose records Croissant's readers find by column."""
_TYPES = {
    "integer": "sc:Integer",
    "number": "sc:Float",
    "boolean": "sc:Boolean",
    "date": "sc:Date",
    "datetime": "sc:DateTime",
}
"""Type in a table schema -> data type; text for any other."""
_STORED = {"written", "dtype", "pattern"}
_SPELT = {"date_format", "format", *_STORED}
"""Entries of the dictionary about cells in another form than that of their type: in every file, and in CSV."""


def render(entry: CatalogueEntry) -> bytes:
    """Return the file."""
    card, licence = entry.card, entry.licence
    paths = distinct_names((file["path"] for file in entry.files), _identifier)
    tables = distinct_names(entry.tables, _identifier)
    said: dict[str, Any] = {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": card["title"],
        "description": entry.summary,
        "keywords": entry.keywords,
        "datePublished": card["created"],
        "license": None if licence is None else licence[1] or licence[2],
        "url": card["links"][0] if card.get("links") else None,
        "citeAs": card.get("citation"),
        "creator": {"@type": "sc:Organization", "name": card["contact"]} if card.get("contact") else None,
        "isLiveDataset": False,
        "rai:dataCollection": f"Every record is drawn from a generator, fitted by the method {card['method']}.",
        "rai:personalSensitiveInformation": card["guarantee"]["sentence"],
        "rai:dataLimitations": card["limits"],
        "distribution": [_file(file, paths[file["path"]]) for file in entry.files],
        "recordSet": [
            _records(entry, table, tables, paths) for table in entry.tables.values() if _readable(entry, table)
        ]
        or None,
    }
    return files.json_bytes({key: value for key, value in said.items() if value is not None})


def _identifier(name: str) -> str:
    """Return an identifier of letters, digits, dots, hyphens and underscores: no space is read in one."""
    return re.sub(r"[^\w.-]+", "_", name)


def _file(file: Mapping[str, Any], identifier: str) -> dict[str, Any]:
    path = file["path"]
    return {
        "@type": "cr:FileObject",
        "@id": identifier,
        "name": path,
        "contentUrl": path,
        "encodingFormat": _MEDIA.get(path.rpartition(".")[2], "application/octet-stream"),
        "sha256": file["sha256"],
    }


def _readable(entry: CatalogueEntry, table: DescribedTable) -> list[str]:
    """Return a table's files that Croissant's readers read."""
    paths = sorted(file["path"] for file in entry.data if stem(file["path"]) == table.name)
    return [path for path in paths if path.endswith(_READ)]


def _records(
    entry: CatalogueEntry, table: DescribedTable, tables: Mapping[str, str], paths: Mapping[str, str]
) -> dict[str, Any]:
    """Return the records of one table, read from CSV in its usual form, else from Parquet.

    Args:
        entry: The release.
        table: The table.
        tables: Table -> identifier.
        paths: File -> identifier.
    """
    files = _readable(entry, table)
    path = next((file for file in files if file.endswith(".parquet")), files[0]) if entry.text else files[0]
    forms = _SPELT if path.endswith(".csv") else _STORED
    own, fields = entry.keys(table.name), _fields(entry, table, tables)
    found: dict[str, Any] = {"@type": "cr:RecordSet", "@id": tables[table.name], "name": table.name}
    if own.get("key"):
        key = [{"@id": fields[name]} for name in key_names(own["key"])]
        found["key"] = key[0] if len(key) == 1 else key
    described = []
    for column in entry.columns(table):
        told = entry.told(table, column)
        field: dict[str, Any] = {
            "@type": "cr:Field",
            "@id": fields[column.name],
            "name": column.name,
            "description": entry.meaning(table, column),
            "dataType": "sc:Text" if forms & told.keys() else _TYPES.get(column.model.table_type, "sc:Text"),
            "source": {"fileObject": {"@id": paths[path]}, "extract": {"column": column.written}},
        }
        if column.name in (foreign := key_names(own.get("foreign_key", ()))):
            parent = entry.tables[own["parent"]]
            held = key_names(entry.keys(parent.name)["key"])[foreign.index(column.name)]
            field["references"] = {"field": {"@id": _fields(entry, parent, tables)[held]}}
        if (named := entry.named(table.name).get(column.name)) is not None:
            (held,) = key_names(entry.keys(named)["key"])
            field["references"] = {"field": {"@id": _fields(entry, entry.tables[named], tables)[held]}}
        described.append({key: value for key, value in field.items() if value is not None})
    return found | {"field": described}


def _fields(entry: CatalogueEntry, table: DescribedTable, tables: Mapping[str, str]) -> dict[str, str]:
    """Return the identifier of each column of a table."""
    names = distinct_names((column.name for column in entry.columns(table)), _identifier)
    return {name: f"{tables[table.name]}/{identifier}" for name, identifier in names.items()}
