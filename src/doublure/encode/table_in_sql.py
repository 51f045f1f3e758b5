"""ENCODE in a database: a table's cells as the whole numbers of :mod:`doublure.encode.table_values`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from doublure.data.databases.reading import RANK
from doublure.encode.columns import ListedEncoding
from doublure.encode.numeric import IntegerEncoding
from doublure.errors import DataError
from doublure.schema.columns import sql_words as sql
from doublure.schema.columns.sql_words import Expr, SqlLookup, SqlWords
from doublure.schema.scalars import label as text_label

if TYPE_CHECKING:
    from collections.abc import Sequence

    from doublure.data.databases.reading import CellsInSql
    from doublure.encode.columns import RowEncoding
    from doublure.encode.table_values import TableValues
    from doublure.schema.columns import Column


def select_codes(
    encoder: TableValues, cells: CellsInSql, source: Any, *, ranked: bool
) -> tuple[Any, Sequence[SqlLookup]]:
    """Return the statement that selects ``c0``, ``c1``, … the codes of each part of a record.

    Args:
        encoder: Of the resolved schema.
        cells: The names of canonical cells.
        source: The statement, or the name of the table, that has them.
        ranked: Whether records have a rank in their unit, which is kept.

    Returns:
        The statement, and the public values that it joins.

    Raises:
        DataError: A column is measured from another, which is not said in SQL.
    """
    from sqlglot import exp

    inner, outer, begun = [], [], len(cells.words.lookups)
    for part, name in enumerate(encoder.columns):
        own, place = encoder.encoding(name), cells.places[name]
        number = exp.column(f"n{place}")
        state = exp.column(f"s{place}") if name in cells.stated else sql.whole(0)
        label = exp.column(f"l{place}") if name in cells.labelled else None
        steps, code = _coded(own, name, part, number, label, cells.words)
        inner += [steps.as_(f"q{part}"), sql.is_null(number).as_(f"gone{part}"), state.as_(f"state{part}")]
        outer.append(sql.cast(_with_holes(own, part, code), _narrowest(own)).as_(f"c{part}"))
    if ranked:
        inner.append(exp.column(RANK).as_(RANK))
        outer.append(exp.column(RANK).as_(RANK))
    read = sql.select(*inner, of=source)
    joined = cells.words.lookups[begun:]
    for each in joined:
        read = read.join(each.name, on=exp.column("key", table=each.name).eq(each.key), join_type="LEFT", copy=False)
    if cells.words.dialect == "postgres":
        read = read.offset(0, copy=False)
    return sql.select(*outer, of=sql.nested(read, "stepped")), joined


def _coded(
    own: RowEncoding, name: str, part: int, number: Expr, label: Expr | None, words: SqlWords
) -> tuple[Expr, Expr]:
    """Return a number in steps, and the code that these steps, selected as a column, round to."""
    from sqlglot import exp

    steps = exp.column(f"q{part}")
    if isinstance(own, ListedEncoding):
        if label is not None:
            number = words.look_up(label, {text_label(value): place for place, value in enumerate(own.column.domain)})
        fallback = _fallback(own.column)
        return number, sql.case((sql.is_null(steps), sql.real(fallback)), otherwise=steps)
    if not isinstance(own, IntegerEncoding):
        remedy = "leave the rule at_most out, or fit an export"
        raise DataError("is measured from another column, which is not counted in SQL", field=name, remedy=remedy)
    (lower, upper), unit, domain = own.column.known_grid, own.column.unit, own.domain
    there = sql.call("COALESCE", number, sql.real(lower))
    inside = sql.call("LEAST", sql.call("GREATEST", there, sql.real(lower)), sql.real(upper))
    if unit:  # bounds of 2^53 and more hold numbers between two codes
        inside, code = (inside - sql.real(lower)) / sql.real(unit), sql.rounded(steps) + sql.real(round(lower / unit))
    else:
        inside, code = inside / sql.real(domain.unit), sql.rounded(steps)
    return inside, sql.call("LEAST", sql.call("GREATEST", code, sql.real(domain.first)), sql.real(domain.last))


def _with_holes(own: RowEncoding, part: int, code: Expr) -> Expr:
    from sqlglot import exp

    missing = own.domain.nullable
    if not missing:
        return code
    state = sql.call("LEAST", exp.column(f"state{part}"), sql.whole(missing - 1))
    return sql.case((exp.column(f"gone{part}"), sql.whole(own.domain.last + 1) + state), otherwise=code)


def _fallback(column: Column) -> float:
    return 0.0 if column.fallback is None else column.number_of(column.fallback)


def _narrowest(own: RowEncoding) -> str:
    last = max(abs(own.domain.first), own.domain.last + own.domain.nullable)
    return "smallint" if last <= np.iinfo(np.int16).max else "int" if last <= np.iinfo(np.int32).max else "bigint"
