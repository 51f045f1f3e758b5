"""Conditions of rules on a record in a database."""

from __future__ import annotations

from typing import TYPE_CHECKING

from doublure.schema.columns import sql_words as sql
from doublure.schema.columns.sql_words import Expr, RuleCell

if TYPE_CHECKING:
    from doublure.schema.allowed import Allowed


def is_among(cells: Allowed, cell: RuleCell) -> Expr:
    """Return the condition that a cell is among some, as :meth:`Allowed.has` says."""
    gone = sql.no(sql.never()) if cells.missing else sql.never()
    if cells.missing and cells.states:
        state = sql.whole(0) if cell.state is None else cell.state
        gone = sql.among(state, map(sql.whole, cells.states))
    spans = [] if cells.span is None else [cells.span]
    spans += [(value, value) for value in cells.values] if cells.slack else []
    found = [
        sql.both(cell.number >= sql.real(low - cells.slack), cell.number <= sql.real(high + cells.slack))
        for low, high in spans
    ]
    found += [] if cells.slack else [sql.among(cell.number, map(sql.real, cells.values))]
    there = sql.either(*found) if found else sql.never()
    return sql.case((sql.is_null(cell.number), gone), otherwise=there)
