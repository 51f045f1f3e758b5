"""Propose relations between tables by the names of their columns alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from doublure.errors import SchemaError, printable

_SIGNS = ("_", "", " ", "-")
_WORDS = ("id", "key", "nr", "no", "number", "code")


@dataclass(frozen=True, kw_only=True)
class Link:
    """The link of a child table to the root.

    Attributes:
        foreign_key: The column that holds the root's key.
        key: The column that tells its own rows apart, if its name says so.
    """

    foreign_key: str
    key: str | None


@dataclass(frozen=True, kw_only=True)
class Relations:
    """A root, its key, and what hangs on it.

    Attributes:
        root: The table.
        key: Its key.
        children: Each other table's link.
    """

    root: str
    key: str
    children: Mapping[str, Link]


def proposed(
    tables: Mapping[str, Sequence[str]], told: Mapping[str, Mapping[str, Any]] = MappingProxyType({})
) -> Relations:
    """Return how tables hang together, as far as a codebook or their headers say it.

    The root's key stands in every other table, by the same name, or as ``patient_id`` where the table ``patients`` has
    an ``id``. Of several such tables it is the one that its key is named for, or whose key stands first.

    Args:
        tables: Table -> its columns.
        told: Table -> its keys, as a codebook has them.

    Raises:
        SchemaError: There are fewer than two tables, or no column of one leads to all others.
    """
    if len(tables) < 2:
        remedy = "give a folder with one file a table; of one table, draft kind table"
        raise SchemaError("are fewer than two", field="tables", remedy=remedy)
    if (relations := _declared(tables, told)) is not None:
        return relations
    found: list[tuple[tuple[int, int, int], Relations]] = []
    for root, columns in tables.items():
        for place, key in enumerate(columns):
            links = {name: _leads(root, key, others) for name, others in tables.items() if name != root}
            if all(links.values()):
                children = {name: Link(foreign_key=link or "", key=None) for name, link in links.items()}
                named = -int(row_of(root) in key.lower() or key.lower() in _WORDS) - int(_is_key(key))
                found.append(((named, place, len(columns)), Relations(root=root, key=key, children=children)))
    if not found:
        names = ", ".join(printable(name) for name in tables)
        remedy = "give the root's key the same name in every table"
        raise SchemaError("has no column that stands in all others", field=f"tables {names}", remedy=remedy)
    best = min(found, key=lambda pair: pair[0])[1]
    children = {
        name: Link(foreign_key=link.foreign_key, key=_own_key(name, tables[name], link.foreign_key))
        for name, link in best.children.items()
    }
    return Relations(root=best.root, key=best.key, children=children)


def _declared(tables: Mapping[str, Sequence[str]], told: Mapping[str, Mapping[str, Any]]) -> Relations | None:
    """Return the relations that a codebook declares; None where it leaves a table out."""
    children = {name: told.get(name, {}) for name in tables if told.get(name, {}).get("parent") is not None}
    roots = [name for name in tables if name not in children]
    if len(roots) != 1 or not isinstance(key := told.get(roots[0], {}).get("key"), str):
        return None
    links = {
        name: Link(foreign_key=each.get("foreign_key") or key, key=each.get("key")) for name, each in children.items()
    }
    return Relations(root=roots[0], key=key, children=links)


def _leads(root: str, key: str, columns: Sequence[str]) -> str | None:
    """Return the column of another table that holds this key of the root."""
    if key.lower() in _WORDS:
        wanted = {f"{name}{sign}{key.lower()}" for name in (root.lower(), row_of(root)) for sign in _SIGNS}
        if (found := next((name for name in columns if name.lower() in wanted), None)) is not None:
            return found
    return key if key in columns and key.lower() != "id" else None  # everybody has an id of its own


def _own_key(table: str, columns: Sequence[str], foreign: str) -> str | None:
    """Return the column that a table's rows are told apart by, if its name says so."""
    names = {table.lower(), row_of(table)}  # alone, such a name is rather what a row is about: a salary, a day
    wanted = {"id", *(f"{name}{sign}{word}" for name in names for sign in _SIGNS for word in _WORDS)}
    return next((name for name in columns if name != foreign and name.lower() in wanted), None)


def _is_key(name: str) -> bool:
    return any(name.lower() == word or name.lower().endswith(("_" + word, " " + word)) for word in _WORDS)


def row_of(table: str) -> str:
    """Return what one row of a table is called: ``patient`` of ``patients``, ``city``, ``person``."""
    name = table.lower()
    if name == "people":
        return "person"
    if name.endswith("ies"):
        return name[:-3] + "y"
    return name.removesuffix("s")
