"""ENCODE in a database: a table's cells as the whole numbers of :mod:`doublure.encode.table_values`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from doublure.encode.columns import ListedEncoding
from doublure.encode.differences import Gap
from doublure.encode.numeric import IntegerEncoding
from doublure.encode.points import PointEncoding
from doublure.schema.columns import sql_words as sql
from doublure.schema.columns.number_sql import clipped
from doublure.schema.columns.sql_words import Expr, SqlLookup, SqlWords
from doublure.schema.scalars import label as text_label

if TYPE_CHECKING:
    from collections.abc import Sequence

    from doublure.data.databases.reading import CellsInSql
    from doublure.encode.columns import RowEncoding
    from doublure.encode.table_values import TableValues
    from doublure.schema.columns import Column


def select_codes(
    encoder: TableValues, cells: CellsInSql, source: Any, kept: Sequence[str] = ()
) -> tuple[Any, Sequence[SqlLookup]]:
    """Return the statement that selects ``c0``, ``c1``, … the codes of each part of a record.

    Args:
        encoder: Of the resolved schema.
        cells: The names of canonical cells.
        source: The statement, or the name of the table, that has them.
        kept: Columns that are kept beside them.

    Returns:
        The statement, and the public values that it joins.
    """
    from sqlglot import exp

    inner, outer, begun = [], [], len(cells.words.lookups)
    later: list[SqlLookup] = []
    numbers = _MeasuredNumbers(encoder, cells)
    for part, name in enumerate(encoder.columns):
        own, place = encoder.encoding(name), cells.places[name]
        number = exp.column(f"n{place}")
        state = exp.column(f"s{place}") if name in cells.stated else sql.whole(0)
        if isinstance(own, PointEncoding):
            second = next(each for each in own.columns if each != name)
            beside = exp.column(f"n{cells.places[second]}")
            if second in cells.stated:
                state = sql.case((sql.is_null(number), state), otherwise=exp.column(f"s{cells.places[second]}"))
            for side, (value, piece) in enumerate(zip((number, beside), own.pieces, strict=True)):
                inner.append(_side(value, *piece, sides=2.0**own.halvings).as_(f"q{part}_{side}"))
            known = len(cells.words.lookups)
            code = _on_curve(own, part, cells.words)
            later += cells.words.lookups[known:]
            gone = sql.either(sql.is_null(number), sql.is_null(beside))
        else:
            label = exp.column(f"l{place}") if name in cells.labelled else None
            coded = own
            if isinstance(own, Gap):
                number, coded = numbers.gap(name, own), own.steps
            steps, code = _coded(coded, name, part, number, label, cells.words)
            inner.append(steps.as_(f"q{part}"))
            gone = sql.is_null(number)
        inner += [gone.as_(f"gone{part}"), state.as_(f"state{part}")]
        outer.append(sql.cast(_with_holes(own, part, code), _narrowest(own)).as_(f"c{part}"))
    inner += [exp.column(name).as_(name) for name in kept]
    outer += [exp.column(name) for name in kept]
    read = sql.select(*inner, of=source)
    joined = cells.words.lookups[begun:]
    read = _joined(read, [each for each in joined if each.name not in {own.name for own in later}])
    if cells.words.dialect == "postgres":
        read = read.offset(0, copy=False)
    return _joined(sql.select(*outer, of=sql.nested(read, "stepped")), later), joined


def _joined(statement: Any, lookups: Sequence[SqlLookup]) -> Any:
    from sqlglot import exp

    for each in lookups:
        on = exp.column("key", table=each.name).eq(each.key)
        statement = statement.join(each.name, on=on, join_type="LEFT", copy=False)
    return statement


class _MeasuredNumbers:
    """Numbers that others are measured from, in SQL, as :class:`TableEncoder` finds them."""

    def __init__(self, encoder: TableValues, cells: CellsInSql) -> None:
        self._encoder, self._cells = encoder, cells

    def gap(self, name: str, own: Gap) -> Expr:
        """Return a number's distance from the one that it is measured from; NULL for a missing one."""
        base = sql.call("COALESCE", self._before(own.first), sql.real(own.floor))
        number = self._snapped(name, own.own)
        return sql.gaps(base, number, own.period) if own.down else sql.gaps(number, base, own.period)

    def _before(self, name: str) -> Expr:
        """Return what a column's successors are measured from; NULL where there is nothing."""
        own = self._encoder.encoding(name)
        if isinstance(own, Gap):
            nearest = "LEAST" if own.down else "GREATEST"  # both pass over NULL
            return sql.call(nearest, self._snapped(name, own.own), self._before(own.first))
        return self._snapped(name, self._encoder.schema.columns[name])

    def _snapped(self, name: str, column: Column) -> Expr:
        from sqlglot import exp

        number = exp.column(f"n{self._cells.places[name]}")
        if not column.may_be_missing:
            number = sql.call("COALESCE", number, sql.real(column.known_grid[0]))
        return column.snapped_in_sql(number, self._cells.words)


def _side(number: Expr, begin: float, span: float, lowest: float, *, sides: float) -> Expr:
    """Return which of the even pieces of an axis a number lies in."""
    there = sql.call("COALESCE", number, sql.real(lowest))
    piece = sql.floor(((there - sql.real(begin)) / sql.real(span)) * sql.real(sides))
    return sql.cast(clipped(piece, 0, sides - 1), "bigint")


def _on_curve(own: PointEncoding, part: int, words: SqlWords) -> Expr:
    """Return the place of two whole numbers on the curve: their binary digits in turn, the second's first."""
    from sqlglot import exp

    both = [exp.column(f"q{part}_{side}") for side in (0, 1)]
    curve: Expr = sql.whole(0)
    for digit in range(own.halvings):
        for side, number in enumerate(both):
            shifted = exp.IntDiv(this=number.copy(), expression=sql.whole(2**digit))
            one = exp.Paren(this=exp.Mod(this=exp.Paren(this=shifted), expression=sql.whole(2)))
            curve = curve + one * sql.cast(sql.whole(2 ** (2 * digit + side)), "bigint")
    size, ranks = own.squares
    if not ranks:
        return curve
    square = exp.Paren(this=exp.IntDiv(this=exp.Paren(this=curve), expression=sql.whole(size)))
    within = exp.Paren(this=exp.Mod(this=exp.Paren(this=curve.copy()), expression=sql.whole(size)))
    return sql.cast(words.look_up(square, ranks), "bigint") * sql.whole(size) + within


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
        raise TypeError(f"{name} is not counted in whole numbers")
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
