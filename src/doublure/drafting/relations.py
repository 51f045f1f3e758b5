"""Propose relations between tables by the names of their columns alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from doublure.errors import SchemaError, printable
from doublure.schema.unit import people_in

_SIGNS = ("_", "", " ", "-")
_WORDS = ("id", "key", "nr", "no", "number", "code")
_ABOVE = ("parent", "reply_to", "in_reply_to", "reports_to", "reportsto", "manager", "supervisor", "boss", "previous")
"""Words for another row of the same table, alone or before one of the words for a key."""


@dataclass(frozen=True, kw_only=True)
class Link:
    """The link of a child table to its parent.

    Attributes:
        parent: The table that it hangs on.
        foreign_key: The column that holds the parent's key.
        key: The column that tells its own rows apart, if its name says so.
    """

    parent: str
    foreign_key: str
    key: str | None


@dataclass(frozen=True, kw_only=True)
class Relations:
    """A root, its key, and what hangs on it.

    Attributes:
        root: The table.
        key: Its key.
        children: The link of each table that hangs on it.
        others: What the tables may be that do not: public ones with their key, which others refer to, or "".
    """

    root: str
    key: str
    children: Mapping[str, Link]
    others: Mapping[str, str] = field(default_factory=dict)


class OpenRoot(SchemaError):
    """Names leave open which table is the root.

    Args:
        tables: Those that may be it.
        key: The column that stands in all of them; "" where tables hang on one another level by level.
    """

    def __init__(self, tables: Sequence[str], key: str) -> None:
        names = ", ".join(map(printable, tables))
        super().__init__(
            f"may be {names}: {printable(key)} stands in each, and no name says whose key it is"
            if key
            else f"may be {names}: other tables hang on each",
            field="root",
            remedy="name the table with one row for each unit: --root TABLE, or root= in Python",
        )
        self.tables = tuple(tables)


def proposed(
    tables: Mapping[str, Sequence[str]],
    told: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
    root: str | None = None,
) -> Relations:
    """Return how tables hang together, as far as a codebook or their headers say it.

    The root's key stands in every other table, by the same name, or as ``patient_id`` where the table ``patients`` has
    an ``id``. Of several such tables it is the one that its key is named for. A table whose own key is another column
    is not it. Where no key stands in all others, tables hang on one another level by level, each by its own key's name.

    Args:
        tables: Table -> its columns.
        told: Table -> its keys, as a codebook has them.
        root: The root, if its owner names it.

    Raises:
        OpenRoot: Several tables may be the root.
        SchemaError: There are fewer than two tables, the root is none of them, or no column leads to all others.
    """
    if len(tables) < 2:
        remedy = "give a folder with one file a table; of one table, draft kind table"
        raise SchemaError("are fewer than two", field="tables", remedy=remedy)
    if root is not None and root not in tables:
        remedy = f"name one of {', '.join(map(printable, tables))}"
        raise SchemaError(f"{printable(root)} is none of the tables", field="root", remedy=remedy)
    if root is None and (relations := _declared(tables, told)) is not None:
        return relations
    found = [each for name in tables if root in (None, name) for each in _rooted(name, tables)]
    if not found:
        return _by_levels(tables, root)
    key = max(_named_for(each) for each in found)
    likely = [each for each in found if _named_for(each) == key]
    roots = list(dict.fromkeys(each.root for each in likely))
    if len(roots) > 1:
        own = {name for name in roots if any(_own_key(name, tables[name], each.key) for each in likely)}
        roots = [name for name in roots if name not in own] or roots
        roots = [name for name in roots if name.isalpha() and people_in(name)] or roots  # patients, and not their tests
    if len(roots) > 1:
        raise OpenRoot(roots, likely[0].key)
    best = next(each for each in likely if each.root == roots[0])
    children = {
        name: Link(parent=best.root, foreign_key=link.foreign_key, key=_own_key(name, tables[name], link.foreign_key))
        for name, link in best.children.items()
    }
    return Relations(root=best.root, key=best.key, children=children)


def rows_named(
    tables: Mapping[str, Sequence[str]],
    keys: Mapping[str, tuple[Any, Any]],
    told: Mapping[str, Mapping[str, str]] = MappingProxyType({}),
) -> dict[str, dict[str, str]]:
    """Return columns that may name a private row beside the parent's, and whose row: by foreign keys, or by names.

    A name says so if it is that of another table's key, as ``rental_id`` in payments that hang on customers, if it
    ends with a key, as ``boss_employee_id``, or if it is a word for a row above, as ``reply_to``.

    Args:
        tables: Table -> its columns, of those that hang together.
        keys: Table -> its key and its foreign key, each a column or several; the root has no foreign key.
        told: Table -> column -> the table that a foreign key names.

    Example:
        >>> tables = {"users": ["user_id"], "posts": ["post_id", "user_id", "parent_post_id"]}
        >>> rows_named(tables, {"users": ("user_id", None), "posts": ("post_id", "user_id")})
        {'posts': {'parent_post_id': 'posts'}}
    """
    owned = {name: key for name, (key, _) in keys.items() if isinstance(key, str)}
    found: dict[str, dict[str, str]] = {}
    for table, columns in tables.items():
        for column in columns:
            if column in (*_listed(keys[table][0]), *_listed(keys[table][1])):
                continue
            to = told.get(table, {}).get(column) or _named_row(column, table, owned, keys)
            if to in owned:
                found.setdefault(table, {})[column] = to
    return found


def _named_row(column: str, table: str, owned: Mapping[str, str], keys: Mapping[str, tuple[Any, Any]]) -> str | None:
    """Return whose row a column names, if its name says so."""
    name = column.lower().replace(" ", "_").replace("-", "_")
    above = next((name[len(word) :].strip("_") for word in _ABOVE if name.startswith(word)), None)
    if above in ("", *_WORDS):
        return table
    for other, key in owned.items():
        if other != table and keys[other][1] is not None and _leads(other, key, [column]):
            return other  # the root's key by its own name is rather that of the row's own unit
        if key.lower() not in _WORDS and column != key and name.endswith(key.lower()):
            return other
    return None


def _listed(key: str | Sequence[str] | None) -> Sequence[str]:
    return [key] if isinstance(key, str) else key or ()


def _rooted(root: str, tables: Mapping[str, Sequence[str]]) -> list[Relations]:
    """Return what a root may be with each of its columns that leads to all other tables."""
    found = []
    for key in tables[root]:
        links = {name: _leads(root, key, others) for name, others in tables.items() if name != root}
        if all(links.values()):
            children = {name: Link(parent=root, foreign_key=link or "", key=None) for name, link in links.items()}
            found.append(Relations(root=root, key=key, children=children))
    return found


def _by_levels(tables: Mapping[str, Sequence[str]], root: str | None) -> Relations:
    """Return tables of several levels: each hangs on the lowest table whose own key it has.

    Raises:
        OpenRoot: Several tables hang on none.
        SchemaError: A table does not hang on the root, at any level.
    """
    keys = {name: key for name, columns in tables.items() if (key := _own_key(name, columns, "")) is not None}
    above = {
        name: {
            parent: foreign
            for parent, key in keys.items()
            if parent != name and (foreign := _leads(parent, key, [own for own in columns if own != keys.get(name)]))
        }
        for name, columns in tables.items()
    }
    tops = [name for name in keys if root in (None, name) and (root or not above[name])]
    led = {top: levels for top in tops if len(levels := _levels(top, above)) > 1}
    if len(led) > 1:
        raise OpenRoot([*led], "")
    if not led or (root is None and len(*led.values()) < len(tables)):
        raise _apart(tables, root)
    ((top, levels),) = led.items()
    links = {
        name: Link(parent=parent, foreign_key=above[name][parent], key=keys.get(name))
        for name in levels
        if (parent := max((each for each in above[name] if each in levels), key=levels.__getitem__, default=None))
        and name != top
    }
    return Relations(root=top, key=keys[top], children=links, others=_others(keys, above, levels))


def _others(
    keys: Mapping[str, str], above: Mapping[str, Mapping[str, str]], levels: Mapping[str, int]
) -> dict[str, str]:
    """Return the tables that do not hang on the root: each with its key if those that do lead to it."""
    reached, seen = {*levels}, set[str]()
    while reached - seen:
        seen |= reached
        reached |= {parent for name in seen for parent in above[name]}
    return {name: keys[name] if name in seen else "" for name in above if name not in levels}


def _levels(root: str, above: Mapping[str, Mapping[str, str]]) -> dict[str, int]:
    """Return how far below a root each table hangs that hangs on it: by the longest way."""
    found, level = {root: 0}, 0
    while level < len(above):
        level += 1
        lowest = {name for name, own in found.items() if own == level - 1}
        found |= {name: level for name, parents in above.items() if name != root and lowest & {*parents}}
    return found


def _named_for(relations: Relations) -> tuple[bool, bool, bool]:
    """Return how far names say that a column is its table's key: named for it, alone or in its children, or a key."""
    key, root = relations.key.lower(), row_of(relations.root)
    foreign = {link.foreign_key.lower() for link in relations.children.values()}
    return root in key, key in _WORDS and key not in foreign, _is_key(key)


def _apart(tables: Mapping[str, Sequence[str]], root: str | None) -> SchemaError:
    """Return the refusal of tables of which no column leads to all others."""
    led = {
        (name, key): [other for other in tables if other != name and _leads(name, key, tables[other]) is None]
        for name in tables
        if root in (None, name)
        for key in tables[name]
        if _is_key(key) or root is not None
    }
    (name, key), left = min(led.items(), key=lambda pair: len(pair[1])) if led else (("", ""), list(tables))
    if len(left) >= len(tables) - 1:
        names = ", ".join(printable(name) for name in tables)
        remedy = "give the root's key the same name in every table"
        return SchemaError("has no column that stands in all others", field=f"tables {names}", remedy=remedy)
    names = ", ".join(map(printable, left))
    remedy = "give each table the key of the one above it, by the same name, or leave them out of the folder"
    return SchemaError(f"have no column for {printable(f'{name}.{key}')}", field=f"tables {names}", remedy=remedy)


def _declared(tables: Mapping[str, Sequence[str]], told: Mapping[str, Mapping[str, Any]]) -> Relations | None:
    """Return the relations that a codebook declares; None where it leaves a table out."""
    children = {name: told.get(name, {}) for name in tables if told.get(name, {}).get("parent") is not None}
    roots = [name for name in tables if name not in children]
    if len(roots) != 1 or not isinstance(key := told.get(roots[0], {}).get("key"), str):
        return None
    links = {
        name: Link(parent=str(each.get("parent")), foreign_key=each.get("foreign_key") or key, key=each.get("key"))
        for name, each in children.items()
    }
    return Relations(root=roots[0], key=key, children=links)


def _leads(root: str, key: str, columns: Sequence[str]) -> str | None:
    """Return the column of another table that holds this key of the root."""
    if key.lower() in _WORDS:
        wanted = {f"{name}{sign}{key.lower()}" for name in (root.lower(), row_of(root)) for sign in _SIGNS}
        if (found := next((name for name in columns if name.lower() in wanted), None)) is not None:
            return found
    return key if key in columns and key.lower() != "id" else None  # every table has an id of its own


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
