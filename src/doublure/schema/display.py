"""A schema as a notebook shows it: whom it protects, and each column's facts with their state.

Declared facts are public, bought ones show their price, and undeclared ones say that they are open. A resolved schema
shows what was bought as the mechanism gave it out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from markupsafe import Markup

from doublure.errors import counted
from doublure.guarantee import figure
from doublure.schema.columns import label
from doublure.schema.fact_states import UNDECLARED, Learn
from doublure.support import views

_OWN_KEYS = frozenset({"doublure", "kind", "unit", "units", "misfit", "columns", "constraints", "channels"})
_TO_BUY = "to buy"


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

    Args:
        schema: As it was planned, with the questions.
    """
    unit = schema.unit
    return [
        ("units", _state(schema.units, bought="bought")),
        (f"most records of one {unit.name}", f"{unit.max_records:,}"),
        *_of_its_kind(schema),
        *(
            (name, f"{column.type}: {_cells(column, bought='bought')}; missing: {_missing(column, bought='bought')}")
            for name, column in schema.columns.items()
        ),
        *(("rule", rule) for rule in schema.explained_rules),
    ]


def _cells(column: Any, bought: str = _TO_BUY) -> str:
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
    return views.shorten([label(value) for value in column.domain])


def _missing(column: Any, bought: str = _TO_BUY) -> str:
    if isinstance(column.missing, tuple):
        return "may be: " + views.shorten([f"“{token}”" for token in column.missing], 3)
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
                yield name.replace("_", " "), " × ".join(map(str, value)) if name == "shape" else views.in_words(value)
