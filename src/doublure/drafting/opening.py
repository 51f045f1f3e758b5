"""Opening what a draft is made from, as far as is known how its text is written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from doublure.data.tables.opening import TableSource
from doublure.schema.schema import Schema
from doublure.schema.written import Written

SKELETON: Mapping[str, Any] = {"doublure": 1, "kind": "table", "columns": {"any": {"type": "boolean"}}}


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


def _written(keys: Mapping[str, Any] | None) -> Written | None:
    return Schema.from_plain({**SKELETON, **keys}).written if keys else None
