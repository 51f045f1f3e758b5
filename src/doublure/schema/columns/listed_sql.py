"""Raw cells of a list of values, read in SQL as :mod:`doublure.schema.columns.listed_cells` reads them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING

from doublure.schema.columns import sql_words as sql
from doublure.schema.columns.number_sql import always, missing_state
from doublure.schema.columns.sql_words import NUMBERS, Expr, SqlCell, SqlReading, SqlWords, unread
from doublure.schema.scalars import Misfit, is_plain_number, label

if TYPE_CHECKING:
    from doublure.schema.columns.column import Column

_TRUTHS = ("false", "true")


def listed_reading(column: Column, cell: SqlCell, words: SqlWords) -> SqlReading:
    """Return the reading of a cell of a list: its place, and its text where the list is to be learned.

    Raises:
        NotInSql: No list is read of this storage type.
    """
    if cell.kind not in (*NUMBERS, "text"):
        raise unread(column.type, cell.kind)
    known, gone = _known(column), [*column.missing_tokens]
    said = _shown_text(column, cell, words)
    if said is not None:
        missing = sql.among(said, map(sql.text, gone))
        if not column.domain:
            shown = sql.case((sql.either(sql.is_null(cell.value), missing), sql.nothing()), otherwise=said)
            there = sql.case((sql.is_null(shown), sql.nothing()), otherwise=sql.real(0))
            return SqlReading(there, sql.never(), label=shown)
        place = words.look_up(said, known)
        if _of_numbers(column):
            place = sql.call("COALESCE", place, words.look_up(words.number_in(said), _numbers(column)))
        if (group := column.stand_in_sql(said, words)) is not None:
            place = sql.call("COALESCE", place, group)
    else:
        number = words.number(cell)
        missing = sql.among(number, [sql.real(float(token)) for token in gone if _is_label(token)])
        place = words.look_up(number, _numbers(column))
    return _placed(column, cell, words, missing, place)


def truth_reading(column: Column, cell: SqlCell, words: SqlWords, meant: Mapping[str, Iterable[str]]) -> SqlReading:
    """Return the reading of a cell that says true or false.

    Args:
        column: The public facts.
        cell: The cell.
        words: Of the engine.
        meant: For ``false`` and ``true`` the texts that mean it, in small letters.

    Raises:
        NotInSql: No truth is read of this storage type.
    """
    if cell.kind not in (*NUMBERS, "text"):
        raise unread(column.type, cell.kind)
    gone = [*column.missing_tokens]
    if cell.kind == "text":
        said = cell.value
        missing, small = sql.among(said, map(sql.text, gone)), sql.call("LOWER", said)
        cases = [
            (sql.among(small, map(sql.text, sorted(meant[truth]))), sql.real(place))
            for place, truth in enumerate(_TRUTHS)
        ]
    else:
        number = words.number(cell)
        missing = sql.among(number, [sql.real(float(token)) for token in gone if _is_label(token)])
        cases = [(number.copy().eq(sql.real(place)), sql.real(place)) for place in (0, 1)]
    return _placed(column, cell, words, missing, sql.case(*cases))


def fitted_place(column: Column, reading: SqlReading, misfit: Misfit) -> SqlReading:
    """Return a place that fits, of columns of a reading that was selected already."""
    if misfit == "refuse" or column.missing is not False:
        return reading
    first = 0.0 if column.fallback is None or not column.domain else column.number_of(column.fallback)
    shown = reading.label
    if shown is not None:
        shown = sql.case((sql.is_null(shown), sql.text(label(column.fallback))), otherwise=shown)
    number = sql.case((sql.is_null(reading.number), sql.real(first)), otherwise=reading.number)
    return reading._replace(number=number, misfit=sql.never(), label=shown)


def _placed(column: Column, cell: SqlCell, words: SqlWords, missing: Expr, place: Expr) -> SqlReading:
    gone = sql.either(sql.is_null(words.number(cell) if cell.kind == "real" else cell.value), missing)
    fallback = None if column.fallback is None else column.number_of(column.fallback)
    rest = sql.nothing() if fallback is None else sql.real(fallback)
    number = sql.case((gone, sql.nothing()), (sql.no(sql.is_null(place)), place), otherwise=rest)
    lost = sql.never() if fallback is not None else sql.is_null(place)
    misfit = sql.case((gone, sql.never()), (lost, always()), otherwise=sql.never())
    return SqlReading(number, misfit, missing_state(column, cell, words))


def _shown_text(column: Column, cell: SqlCell, words: SqlWords) -> Expr | None:
    """Return a cell's label, where it is one in SQL, too; None of numbers that a list is compared with."""
    if cell.kind == "text":
        return cell.value
    if column.domain:
        return None
    if cell.kind == "whole":
        return sql.cast(cell.value, "text")
    if cell.kind == "truth":
        return sql.case((cell.value, sql.text("true")), (sql.no(cell.value), sql.text("false")))
    raise unread(column.type, cell.kind)  # each engine writes a real number in another way


def _known(column: Column) -> dict[str, int]:
    places = {label(value): place for place, value in enumerate(column.domain)}
    spelt: Mapping[str, str] = column.fact("spellings") or {}
    return places | {text: places[value] for text, value in spelt.items() if value in places}


def _of_numbers(column: Column) -> bool:
    return all(type(value) in (int, float) for value in column.fact("values") or ("",))


def _numbers(column: Column) -> dict[float, int]:
    """Return the place of each number that is the label of a value, or of another spelling of one.

    In memory a number is read by its label: 7 by a spelling ``7``, and never by ``07``.
    """
    labels = {*map(label, column.domain)} if _of_numbers(column) else set[str]()
    return {
        float(Decimal(name)): place
        for name, place in reversed(_known(column).items())
        if is_plain_number(name) and (name in labels or _is_label(name))
    }


def _is_label(name: str) -> bool:
    """Return whether a text is the label of the number that it says."""
    return is_plain_number(name) and label(float(name)) == name
