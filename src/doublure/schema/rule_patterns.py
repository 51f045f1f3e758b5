"""Patterns of names in rules, ``Q28_*``, and ``missing_together`` at the top of a file, written out as rules.

A schema holds the names that patterns stand for, in the order of its columns, and is hashed with them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

from doublure.errors import SchemaError, printable

KEY = "missing_together"
_RULE = "implies"
_FORM = "write lists of names or patterns, such as [[Q28_*], [start, end]]"


def with_patterns(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a schema's plain data with every pattern of names replaced by the columns that fit it.

    Raises:
        SchemaError: A pattern fits no column, or the key has another form.
    """
    if isinstance(tables := data.get("tables"), Mapping):
        own = {name: with_patterns(table) if isinstance(table, Mapping) else table for name, table in tables.items()}
        data = {**data, "tables": own}
    columns, rules = data.get("columns"), data.get("constraints")
    if not isinstance(columns, Mapping) or (KEY not in data and not isinstance(rules, list)):
        return data
    names = [name for name in columns if isinstance(name, str)]
    found = {key: value for key, value in data.items() if key != KEY}
    written = list(rules) if isinstance(rules, list) else []
    if KEY in data:
        groups = data[KEY]
        if not isinstance(groups, list) or not all(isinstance(group, list) for group in groups):
            raise SchemaError("is no list of groups", field=KEY, remedy=_FORM)
        written += [{KEY: group} for group in groups]
    if written or isinstance(rules, list):
        found["constraints"] = [_rule(rule, names, number) for number, rule in enumerate(written)]
    return found


def _rule(rule: Any, names: list[str], number: int) -> Any:
    if not isinstance(rule, Mapping):
        return rule
    if isinstance(rule.get(KEY), list):
        return {**rule, KEY: list(_expanded(rule[KEY], names, f"constraints.{number}.{KEY}"))}
    implied = rule.get(_RULE)
    if not isinstance(implied, Mapping):
        return rule
    sides = {side: _side(cells, names, f"constraints.{number}.{_RULE}.{side}") for side, cells in implied.items()}
    return {**rule, _RULE: sides}


def _side(cells: Any, names: list[str], field: str) -> Any:
    if not isinstance(cells, Mapping):
        return cells
    return {name: cell for key, cell in cells.items() for name in _expanded([key], names, field)}


def _expanded(wanted: Iterable[Any], names: list[str], field: str) -> Iterator[Any]:
    for each in wanted:
        if not isinstance(each, str) or "*" not in each or each in names:
            yield each
            continue
        fitting = [name for name in names if fnmatchcase(name, each.replace("[", "[[]").replace("?", "[?]"))]
        if not fitting:
            raise SchemaError(f"{printable(each)} fits no column", field=field, remedy="fix the pattern")
        yield from fitting
