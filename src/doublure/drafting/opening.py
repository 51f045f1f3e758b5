"""Opening what a draft is made from, as far as is known how its text is written."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from doublure.data.opening import open_data
from doublure.data.tables.header import named_anew, numbered, without_name
from doublure.data.tables.opening import TableSource
from doublure.schema.kinds import KINDS
from doublure.schema.schema import Schema
from doublure.schema.written import TextForm, Written
from doublure.support import yaml12 as yaml_text

SKELETON: Mapping[str, Any] = {"doublure": 1, "kind": "table", "columns": {"any": {"type": "boolean"}}}

_INDEX = re.compile(r"Unnamed: \d+(_level_\d+)?|__index_level_\d+__|row[._]?names")
"""The names that pandas and R give an index without one, written into a file and read again."""


def opened(opens: Callable[..., Any], data: Any, keys: Mapping[str, Any] | None) -> tuple[Any, dict[str, Any]]:
    """Return a source, and what its text suggests of how it is written: whether quoted cells hold line ends.

    Args:
        opens: Opens data, as it is written.
        data: What is drafted from.
        keys: What is known of how it is written.
    """
    if isinstance(data, (str, Path)):
        suggested = {"multiline": True}
        source = opens(data, _written({**(keys or {}), **suggested}))
        tables = getattr(source, "tables", {}).values() or [getattr(source, "table", source)]
        if any(isinstance(table, TableSource) and table.spans_lines() for table in tables):
            return source, suggested
    return opens(data, _written(keys)), {}


def doubled_names(data: Any, kind: str, keys: Mapping[str, Any]) -> dict[str, Any]:
    """Return new names for columns that share one in a header, as a schema's keys say them; nothing where none do.

    So are columns named that nearly all records have beyond a header's last one.

    Args:
        data: What is drafted from.
        kind: Of what kind it is.
        keys: What is known of how it is written.

    Raises:
        DataError: The data cannot be opened.
    """
    if not issubclass(KINDS[kind].schema, TextForm):
        return {}
    source = open_data(data, kind, _written(keys))
    tables = getattr(source, "tables", None) or {"": getattr(source, "table", source)}
    found = {
        f"{table}.{name}" if table else name: new
        for table, own in tables.items()
        if isinstance(own, TableSource)
        for name, new in {**numbered(own.columns), **_unnamed(own)}.items()
    }
    return {"rename": found} if found else {}


def _unnamed(source: TableSource) -> dict[str, list[str]]:
    """Return names for columns without one, where some lie beyond the header, so that no record could be read."""
    places = source.named_by_none()
    return {"": named_anew(places, source.columns)} if len(places) > len(source.unnamed) else {}


def left_out(source: TableSource) -> tuple[list[str], str]:
    """Return the columns of a header that only number rows, and what a draft says of them and of unnamed ones."""
    indices = [name for name in source.columns if _INDEX.fullmatch(name)]
    lines = [f"# Left out, as it numbers rows: {yaml_text.inline(name)}.\n" for name in indices]
    if source.unnamed:
        says = f"rename: {{'': {yaml_text.inline(named_anew(source.unnamed, source.columns))}}}"
        lines.append(f"# {without_name(source.unnamed)}, such as an index that pandas wrote, and will not be read;\n")
        lines.append(f"# to read, say {says}.\n")
    return indices, "".join(lines)


def _written(keys: Mapping[str, Any] | None) -> Written | None:
    return Schema.from_plain({**SKELETON, **keys}).written if keys else None
