"""``defaults: {missing: false}``: a fact that a file says once, for every column that does not say it itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from doublure.errors import SchemaError
from doublure.schema.columns import unmodelled_types
from doublure.schema.fact_states import UNDECLARED

KEY = "defaults"
_FACTS = ("missing",)
_SECTIONS = ("columns", "channels", "attributes")
_REMEDY = "write defaults: {missing: false}"


def with_defaults(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a schema's plain data with its defaults written into each column that leaves the fact undeclared.

    An id has no facts, and stays as it is.

    Raises:
        SchemaError: There is no column that defaults could be for, or a key has none.
    """
    if KEY not in data:
        return data
    defaults = {} if data[KEY] is None else data[KEY]
    if not isinstance(defaults, Mapping):
        raise SchemaError("must give facts that hold for every column", field=KEY, remedy=_REMEDY)
    for fact in defaults:
        if fact not in _FACTS:
            raise SchemaError("is no fact that has a default", field=f"{KEY}.{fact}", remedy=_REMEDY)
    rest = {key: value for key, value in data.items() if key != KEY}
    if not any(isinstance(rest.get(key), Mapping) for key in (*_SECTIONS, "tables")):
        raise SchemaError("has no columns to be for", field=KEY, remedy="leave it out")
    return _filled(rest, defaults)


def _filled(data: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    found = dict(data)
    for key in _SECTIONS:
        if isinstance(columns := data.get(key), Mapping):
            found[key] = {name: _column(column, defaults) for name, column in columns.items()}
    if isinstance(tables := data.get("tables"), Mapping):
        found["tables"] = {
            name: _filled(table, defaults) if isinstance(table, Mapping) else table for name, table in tables.items()
        }
    return found


def _column(column: Any, defaults: Mapping[str, Any]) -> Any:
    if not isinstance(column, Mapping) or column.get("type") in unmodelled_types():
        return column
    return {**column, **{fact: value for fact, value in defaults.items() if column.get(fact) in (None, UNDECLARED)}}
