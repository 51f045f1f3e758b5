"""Conditions of rules on a record in a database."""

from __future__ import annotations

from doublure.schema.allowed import Allowed
from doublure.schema.columns import sql_words as sql
from doublure.schema.columns.sql_words import Expr, RuleCell


def is_among(cells: Allowed, cell: RuleCell) -> Expr:
    """Return the condition that a cell is among some, as :meth:`Allowed.has` says."""
    gone = sql.no(sql.never()) if cells.missing else sql.never()
    if cells.missing and cells.states:
        gone = sql.among(cell.held_state, map(sql.whole, cells.states))
    spans = [] if cells.span is None else [cells.span]
    spans += [(value, value) for value in cells.values] if cells.slack else []
    found = [
        sql.both(cell.number >= sql.real(low - cells.slack), cell.number <= sql.real(high + cells.slack))
        for low, high in spans
    ]
    found += [] if cells.slack else [sql.among(cell.number, map(sql.real, cells.values))]
    there = sql.either(*found) if found else sql.never()
    return sql.case((sql.is_null(cell.number), gone), otherwise=there)


def exactly(value: float | None, cell: RuleCell) -> Expr:
    """Return the condition that a cell is a number, or missing in whatever way."""
    missing = value is None
    return is_among(Allowed(missing=missing, values=() if value is None else (value,)), cell)


def nearest(cells: Allowed, cell: RuleCell, *, even: bool) -> RuleCell:
    """Return the nearest of some cells: the first of them where there is no order, or no number."""
    number = cell.number
    if cells.span is not None:
        low, high = map(sql.real, cells.span)
        there = sql.call("COALESCE", number, low)
        return RuleCell(sql.call("LEAST", sql.call("GREATEST", there, low), high))
    if not cells.values:
        return RuleCell(sql.nothing(), sql.whole(min(cells.states, default=0)))
    if not even or len(cells.values) == 1:
        return RuleCell(sql.real(cells.values[0]))
    far = [sql.call("ABS", number.copy() - sql.real(value)) for value in cells.values]
    least = sql.call("LEAST", *far)
    found = [(own.copy().eq(least.copy()), sql.real(value)) for own, value in zip(far, cells.values, strict=True)]
    return RuleCell(sql.case(*found, otherwise=sql.real(cells.values[0])))
