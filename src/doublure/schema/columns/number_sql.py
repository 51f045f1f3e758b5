"""Raw cells of numbers, read in SQL as :mod:`doublure.schema.columns.number_cells` reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from doublure.schema.columns import sql_words as sql
from doublure.schema.columns.number_cells import FARTHEST, NOT_A_NUMBER
from doublure.schema.columns.sql_words import NUMBERS, Expr, SqlCell, SqlReading, SqlWords, unread
from doublure.schema.scalars import Misfit, is_plain_number, label

if TYPE_CHECKING:
    from collections.abc import Sequence

    from doublure.schema.columns.column import Column


def number_reading(column: Column, cell: SqlCell, words: SqlWords) -> SqlReading:
    """Return the reading of a plain number.

    Raises:
        NotInSql: No number is read of this storage type.
    """
    if cell.kind not in (*NUMBERS, "text"):
        raise unread(column.type, cell.kind)
    found, misfit = words.number(cell) if cell.kind in NUMBERS else None, sql.never()
    if found is None:
        said = cell.value
        gone = sql.among(said, map(sql.text, (*column.missing_tokens, *sorted(NOT_A_NUMBER))))
        found = sql.case((gone, sql.nothing()), otherwise=words.number_in(said))
        misfit = words_misfit(cell, gone, words.is_number(said))
    numbers = without_codes(found, [float(token) for token in column.missing_tokens if is_plain_number(token)])
    return SqlReading(numbers, misfit, missing_state(column, cell, words))


def words_misfit(cell: SqlCell, gone: Expr, known: Expr) -> Expr:
    """Return whether a text is neither missing nor of a known form."""
    return sql.case((sql.either(sql.is_null(cell.value), gone.copy(), known), sql.never()), otherwise=always())


def always() -> Expr:
    """Return a condition that holds."""
    return sql.no(sql.never())


def without_codes(number: Expr, codes: Sequence[float]) -> Expr:
    """Return a number, NULL for those that mean missing."""
    if not codes:
        return number
    return sql.case((sql.among(number, map(sql.real, codes)), sql.nothing()), otherwise=number)


def missing_state(column: Column, cell: SqlCell, words: SqlWords) -> Expr | None:
    """Return which kind of missing a cell is one of, where a column has several."""
    texts = column.missing_texts
    if len(texts) < 2:
        return None
    numbered = {state: float(each) for state, each in enumerate(texts) if is_plain_number(each)}
    if cell.kind in NUMBERS:
        number = words.number(cell)
        cases = [(number.eq(sql.real(code)), sql.whole(state)) for state, code in numbered.items()]
        return sql.case(*cases, otherwise=sql.whole(0)) if cases else sql.whole(0)
    known = {each: state for state, each in enumerate(texts) if state}
    known |= {label(code): state for state, code in numbered.items()}
    said = cell.value
    return sql.case(
        *((said.copy().eq(sql.text(each)), sql.whole(state)) for each, state in known.items()), otherwise=sql.whole(0)
    )


def fitted_number(column: Column, reading: SqlReading, misfit: Misfit) -> SqlReading:
    """Return a number that fits, of columns of a reading that was selected already.

    Args:
        column: The public facts.
        reading: The names of its columns.
        misfit: What becomes of a cell that does not fit.
    """
    number = reading.number
    if misfit == "refuse":
        odd = [sql.either(number >= sql.real(sql.INFINITE), number <= sql.real(-sql.INFINITE))]
        odd += [sql.no(sql.floor(number).eq(number))] if column.integral else []
        wrong = sql.case((sql.is_null(number), reading.misfit), (sql.either(*odd), always()), otherwise=sql.never())
        return reading._replace(misfit=wrong)
    ends = column.grid or (-FARTHEST, FARTHEST)
    whole = sql.rounded(number) if column.integral else number
    inside = clipped(whole, *ends)
    otherwise = sql.real(ends[0]) if column.grid and column.missing is False else sql.nothing()
    return reading._replace(number=sql.case((sql.is_null(number), otherwise), otherwise=inside), misfit=sql.never())


def clipped(number: Expr, lower: float, upper: float) -> Expr:
    """Return a number between two ends."""
    return sql.call("LEAST", sql.call("GREATEST", number, sql.real(lower)), sql.real(upper))


def snapped_number(column: Column, number: Expr, words: SqlWords) -> Expr:
    """Return the nearest number that a cell can have, by the same steps as :meth:`Column.snap`; NULL for NULL."""
    if column.grid is None:
        return number
    lower, upper = column.grid
    found, unit = clipped(number, lower, upper), column.unit
    if unit:
        found = sql.real(lower) + words.nearest((found - sql.real(lower)) / sql.real(unit)) * sql.real(unit)
    if column.decimals is not None:
        scale = 10.0 ** abs(column.decimals)
        found = words.nearest(found * sql.real(scale)) / sql.real(scale)
    return sql.case((sql.is_null(number), sql.nothing()), otherwise=found)
