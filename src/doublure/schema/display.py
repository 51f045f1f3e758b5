"""A schema as a notebook shows it: whom it protects, and each column's facts with their state.

Declared facts are public, bought ones show their price, and undeclared ones say that they are open. A resolved schema
shows what was bought as the mechanism gave it out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from markupsafe import Markup

from doublure.errors import counted
from doublure.guarantee import figure
from doublure.schema.columns import label
from doublure.schema.fact_states import UNDECLARED, Learn
from doublure.support import views

_OWN_KEYS = frozenset({"doublure", "kind", "unit", "units", "misfit", "columns", "constraints", "channels"})
_TO_BUY = "to buy"
_SHOWN, _MOST = 6, 200
"""Entries of a list that are shown, and that are shown to who answers for them."""


def short(schema: Any) -> str:
    """Return a schema in one line."""
    state = []
    if schema.questions:
        state.append(f"{counted(len(schema.questions), 'fact')} to buy")
    if schema.undeclared:
        state.append(f"{len(schema.undeclared)} undeclared")
    return f"{type(schema).__name__}({', '.join([schema.summary, f'units: {_state(schema.units)}', *state])})"


def kind_of(schema: Any) -> str:
    """Return the kind of data and what it is made of; a kind without columns says itself alone."""
    return str(schema.kind) if schema.summary == schema.kind else f"{schema.kind}, {schema.summary}"


def html(schema: Any) -> str:
    """Return a schema as HTML."""
    unit = schema.unit
    several = f", at most {unit.max_records} records of each" if unit.max_records > 1 else ""
    bought = sum(question.epsilon for question in schema.questions)
    named = [
        ("unit of privacy", f"one {unit.name}{several}"),
        ("units", _state(schema.units)),
        ("data that does not fit is", "refused" if schema.misfit == "refuse" else "coerced"),
        ("facts to buy", f"{len(schema.questions)}, at ε = {figure(bought)} together" if schema.questions else None),
        ("target", schema.target),
        *_of_its_kind(schema),
    ]
    rows = [
        (name, column.type, _cells(column), _missing(column), ", ".join(column.roles) or "–")
        for name, column in schema.columns.items()
    ]
    parts: list[Markup] = [views.facts(named)]
    if schema.undeclared:
        parts.append(views.line(f"Undeclared, and to be decided: {views.shorten(schema.undeclared)}", "warn"))
    if rows:
        parts.append(views.grid(("column", "type", "cells", "missing", "roles"), rows))
    if rules := schema.explained_rules:
        parts.append(views.fold(f"Constraints: {len(rules)}", *(views.line(rule, "plain") for rule in rules)))
    return views.view(f"{type(schema).__name__}: {schema.summary}", *parts)


def facts_in_words(schema: Any) -> list[tuple[str, str]]:
    """Return what each fact of a schema is about, and the fact; of what was learned, that it was bought.

    All that a published schema says stands here, whatever its kind: any of it may have been read off the data.

    Args:
        schema: As it was planned, with the questions.
    """
    unit, plain = schema.unit, schema.to_plain()
    named = {key: value for key, value in plain["unit"].items() if key not in ("name", "max_records") and value}
    tables = plain.get("tables", {}).items()
    return [
        ("units", _state(schema.units, bought="bought")),
        (f"most records of one {unit.name}", f"{unit.max_records:,}"),
        *([(f"one {unit.name}", _whole(named))] if named else []),
        *_of_its_kind(schema),
        *((key.replace("_", " "), _whole(value)) for key, value in plain.items() if key not in _OWN_KEYS | _TOLD),
        *((f"table {name}", _whole({key: facts[key] for key in facts.keys() - _TOLD})) for name, facts in tables),
        *((name, _column_in_words(column)) for name, column in schema.columns.items()),
        *(("rule", rule) for rule in schema.explained_rules),
        *_rules_as_written(schema, plain),
    ]


_TOLD = frozenset({"attributes", "columns", "constraints", "images", "label", "series", "tables"})
"""Keys whose facts have lines of their own."""


def _rules_as_written(schema: Any, plain: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Return the rules of which the line in words leaves something out, such as the rest of a long list."""
    words = "\n".join(schema.explained_rules)
    for holder in (plain, *plain.get("tables", {}).values()):
        for rule in holder.get("constraints", ()):
            if any(each not in words for each in _leaves(rule)):
                yield "rule, as written", _whole(rule)


def _leaves(value: Any) -> Iterator[str]:
    """Return the values that plain data holds, and the keys of long lists."""
    if isinstance(value, Mapping):
        for key, each in value.items():
            yield from _leaves(each)
            yield from (str(key),) if len(value) > _SHOWN else ()
    elif isinstance(value, list):
        for each in value:
            yield from _leaves(each)
    elif not isinstance(value, bool):
        yield label(value)


def _column_in_words(column: Any) -> str:
    """Return all facts of a column."""
    said = f"{column.type}: {_cells(column, 'bought', _MOST)}; missing: {_missing(column, 'bought', _MOST)}"
    told = {"type", "missing", "values" if column.listed else "bounds"}
    plain = column.model_dump(mode="json", exclude_defaults=True, exclude_none=True)
    rest = {key: value for key, value in plain.items() if key not in told}
    facts = {key: column.fact(key) for key in rest}
    words = (_state(facts[key], "bought") if isinstance(facts[key], Learn) else _whole(rest[key]) for key in rest)
    return "; ".join([said, *(f"{key.replace('_', ' ')}: {each}" for key, each in zip(rest, words, strict=True))])


def _whole(value: Any) -> str:
    """Return plain data as text, all of it but for very long lists."""
    if isinstance(value, Mapping):
        return views.shorten([f"{key}: {_whole(each)}" for key, each in value.items()], _MOST)
    return views.shorten([*map(_whole, value)], _MOST) if isinstance(value, list) else label(value)


def _cells(column: Any, bought: str = _TO_BUY, most: int = _SHOWN) -> str:
    """Return what a column's cells can be: bounds or values, or the state of what is not known."""
    if not column.modelled:
        return column.origin or "made anew: 1, 2, 3, …"
    if column.truth:
        return ", ".join(column.labels)
    found = column.fact("values" if column.listed else "bounds")
    if not isinstance(found, tuple):
        return _state(found, bought)
    if column.bounded:
        step = f", step {column.unit:g}" if column.plain and column.unit not in (0, 1) else ""
        return f"{label(found[0])} to {label(found[1])}{step}"
    return views.shorten([label(value) for value in column.domain], most)


def _missing(column: Any, bought: str = _TO_BUY, most: int = 3) -> str:
    if isinstance(column.missing, tuple):
        return "may be: " + views.shorten([f"“{token}”" for token in column.missing], most)
    return {True: "may be", False: "never"}.get(column.missing) or _state(column.missing, bought)


def _state(fact: object, bought: str = _TO_BUY) -> str:
    if isinstance(fact, Learn):
        return f"{bought}, ε = {figure(fact.learn)}"
    if fact is None or fact == UNDECLARED:
        return "undeclared"
    return f"{fact:,}" if isinstance(fact, int) else str(fact)


def _of_its_kind(schema: Any) -> Iterator[tuple[str, str]]:
    """Return what a kind of data says beside its columns, such as the shape of images or the length of series."""
    for key, held in schema.to_plain().items():
        if key not in _OWN_KEYS and key in ("images", "series"):
            for name, value in held.items():
                yield name.replace("_", " "), " × ".join(map(str, value)) if name == "shape" else _whole(value)
