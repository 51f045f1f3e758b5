"""Related tables: whose rows hang on whose, from pickers; the draft's proposal is chosen already."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from doublure.drafting.metadata.codebook import keys_of_type
from doublure.errors import InputError, SettingError, printable
from doublure.schema.fact_states import UNDECLARED
from doublure.schema.related_table import MOST_CHILDREN
from doublure.studio.project import Project
from doublure.studio.visit import FormErrors, Visit

_NONE = ""
_SEVERAL = " + "
"""Between the columns of a key of several."""


def context(visit: Visit) -> dict[str, Any]:
    """Return what the screen shows of related tables."""
    project = visit.project
    tables = []
    for name, facts in project.tables.items():
        columns = [each.name.partition(".")[2] for each in project.columns if each.name.partition(".")[0] == name]
        ordered = [own for own in columns if _orders(project, f"{name}.{own}")]
        key, foreign = _shown(facts.get("key")), _shown(facts.get("foreign_key"))
        most = facts.get("max_children")
        tables.append(
            {
                "name": name,
                "root": facts.get("parent") is None,
                "key": key,
                "keys": _choices(columns, key),
                "parent": facts.get("parent") or _NONE,
                "parents": [(_NONE, "–"), *((other, other) for other in project.tables if other != name)],
                "foreign_key": foreign,
                "foreign_keys": _choices(columns, foreign),
                "max_children": "" if most in (None, UNDECLARED) else most,
                "order": facts.get("order") or _NONE,
                "orders": [(_NONE, "they do not"), *((own, own) for own in ordered)],
            }
        )
    roots = [each["name"] for each in tables if each["root"]]
    return {"tables": tables, "root": roots[0] if roots else "", "most_children": MOST_CHILDREN}


def entered(visit: Visit, found: FormErrors) -> Project:
    """Return the project with the tables as they were entered."""
    project = visit.project
    root = visit.text("root")
    with found.at("root"):
        if root not in project.tables:
            raise SettingError("is none of the tables", remedy="choose the one with one row for each unit")
    tables: dict[str, dict[str, Any]] = {}
    keys: set[str] = set()
    for number, (name, before) in enumerate(project.tables.items()):
        head = f"table{number}--"
        facts = {key: fact for key, fact in before.items() if key not in _PICKED}
        key = _read_key(visit.text(f"{head}key"))
        facts |= {"key": key} if key else {}
        keys |= {f"{name}.{own}" for own in _listed(key)}
        if name != root:
            with found.at(f"{head}parent"):
                parent = visit.text(f"{head}parent")
                if parent not in project.tables or parent == name:
                    raise SettingError("is not chosen", remedy="name the table above it")
                facts["parent"] = parent
            with found.at(f"{head}foreign_key"):
                foreign = _read_key(visit.text(f"{head}foreign_key"))
                if not foreign:
                    raise SettingError("is not chosen", remedy="name the column that holds the parent's key")
                facts["foreign_key"] = foreign
                keys |= {f"{name}.{own}" for own in _listed(foreign)}
            with found.at(f"{head}max_children"):
                facts["max_children"] = _most(visit, f"{head}max_children", name)
            order = visit.text(f"{head}order")
            facts |= {"order": order} if order else {}
        tables[name] = facts
    found.stop()
    return _with_keys(project, tables, keys)


_PICKED = ("key", "parent", "foreign_key", "max_children", "order")


def _with_keys(project: Project, tables: Mapping[str, Any], keys: set[str]) -> Project:
    """Return the project with these tables: keys are ids, and a column that was one before is none any more."""
    before = {
        f"{name}.{own}"
        for name, facts in project.tables.items()
        for key in ("key", "foreign_key")
        for own in _listed(facts.get(key))
    }
    columns = []
    for column in project.columns:
        described = {key: fact for key, fact in column.facts.items() if key == "description"}
        if column.name in keys and column.facts.get("type") != "id":
            column = column.changed(facts={"type": "id", **described}, left_out=False)
        elif column.name in keys:
            column = column.changed(left_out=False)
        elif column.name in before:
            type_ = "integer" if column.storage == "integer" else "category"
            facts = {"type": type_, "missing": UNDECLARED, **described}
            column = column.changed(facts=facts)
        columns.append(column)
    return project.changed(tables=tables, columns=tuple(columns))


def _orders(project: Project, name: str) -> bool:
    """Return whether a column's type has bounds, as the one that rows follow one another by needs."""
    column = project.column(name)
    return column is not None and not column.left_out and "bounds" in keys_of_type(str(column.facts.get("type")))


def _choices(columns: list[str], chosen: str) -> list[tuple[str, str]]:
    """Return the columns to choose from, and a key of several that is there."""
    more = [chosen] if chosen and chosen not in columns else []
    return [(_NONE, "–"), *((name, name) for name in (*more, *columns))]


def _shown(key: Any) -> str:
    return _SEVERAL.join(_listed(key))


def _read_key(text: str) -> Any:
    names = text.split(_SEVERAL)
    return names if len(names) > 1 else text


def _listed(key: Any) -> list[str]:
    return [key] if isinstance(key, str) and key else list(key or ())


def _most(visit: Visit, field: str, name: str) -> int:
    """Return how many rows a parent has at most."""
    if not visit.text(field):
        remedy = f"write what is public of any such tables, 1 to {MOST_CHILDREN}"
        raise InputError(
            f"how many rows of {printable(name)} one above has at most is empty", field=field, remedy=remedy
        )
    number = visit.number(field)
    if number != int(number) or not 1 <= number <= MOST_CHILDREN:
        remedy = "write what is public of any such tables"
        raise InputError(f"is not a whole number from 1 to {MOST_CHILDREN}", field=field, remedy=remedy)
    return int(number)
