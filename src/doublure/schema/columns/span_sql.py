"""Raw cells of times of day and spans of time, read in SQL as their types parse one cell."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from doublure.schema.columns import sql_words as sql
from doublure.schema.columns.calendar_cells import NOT_A_TIME
from doublure.schema.columns.number_sql import missing_state, without_codes, words_misfit
from doublure.schema.columns.sql_words import Expr, SqlCell, SqlReading, SqlWords, unread

if TYPE_CHECKING:
    from doublure.schema.columns.column import Column

_TIME = "^[0-9]{1,2}:[0-9]{2}(:[0-9]{2}([.,][0-9]+)?)?$"
_AMOUNT = "[0-9]+([.,][0-9]+)?"
_CLOCK = "[+-]?[0-9]+:[0-5][0-9]:[0-5][0-9]([.,][0-9]+)?"
_DAYS = f"^[+-]?[0-9]+ days?(,? +{_CLOCK})?$"
_ISO = f"^[+-]?P({_AMOUNT}W)?({_AMOUNT}D)?(T({_AMOUNT}H)?({_AMOUNT}M)?({_AMOUNT}S)?)?$"
_PLAIN = "^-?[0-9]+([.][0-9]+)?([eE][+-]?[0-9]{1,2})?$"
_SIZES = {"W": 604_800.0, "D": 86_400.0, "H": 3600.0, "M": 60.0, "S": 1.0}
_LONGEST = 200


def time_reading(column: Column, cell: SqlCell, words: SqlWords) -> SqlReading:
    """Return the reading of a time of day.

    Raises:
        NotInSql: No time is read of this storage type.
    """
    if cell.kind == "clock":
        return SqlReading(words.clock(cell.value), sql.never(), _state(column, cell, words))
    if cell.kind != "text":
        raise unread(column.type, cell.kind)
    said = cell.value
    hour, minute, second = (
        words.digits(words.part(said, form))
        for form in ("^([0-9]{1,2}):", "^[0-9]{1,2}:([0-9]{2})", "^[0-9]{1,2}:[0-9]{2}:([0-9]{2})")
    )
    clock = hour * sql.real(3600) + minute * sql.real(60) + second
    fits = sql.both(hour < sql.real(24), minute < sql.real(60), second < sql.real(60))
    midnight = sql.both(hour.eq(sql.real(24)), clock.eq(sql.real(86_400)))
    number = sql.case((midnight, sql.real(0)), otherwise=clock)
    there = sql.either(fits, midnight.copy())
    return _parsed(column, cell, words, [(words.matches(said, _TIME), sql.case((there, number)))])


def span_reading(
    column: Column, cell: SqlCell, words: SqlWords, units: Mapping[str, float], bare: str | None
) -> SqlReading:
    """Return the reading of a span of time.

    Args:
        column: The public facts.
        cell: The cell.
        words: Of the engine.
        units: Unit in text -> its seconds.
        bare: The unit of bare numbers; None: they are no spans.

    Raises:
        NotInSql: No span is read of this storage type.
    """
    if cell.kind == "span":
        return SqlReading(words.span(cell.value), sql.never(), _state(column, cell, words))
    if cell.kind in ("whole", "real", "decimal") and bare is not None:
        number = words.number(cell) * sql.real(units[bare])
        codes = [float(token) * units[bare] for token in column.missing_tokens if _is_bare(token)]
        return SqlReading(without_codes(number, codes), sql.never(), _state(column, cell, words))
    if cell.kind != "text":
        raise unread(column.type, cell.kind)
    said = cell.value
    forms = [(words.matches(said, f"^{_CLOCK}$"), _clock(said, words))]
    rest = words.part(said, "days?,? +(.+)$")
    days = words.digits(words.part(said, "^([+-]?[0-9]+) day")) * sql.real(86_400)
    clock = sql.case((words.matches(said, "^.*:.*$"), _clock(rest, words)), otherwise=sql.real(0))
    forms.append((words.matches(said, _DAYS), days + clock))
    for unit, seconds in units.items():
        amount = _decimal(words.part(said, "^[+-]?([0-9.,]+)"), words) * sql.real(seconds)
        forms.append((words.matches(said, f"^[+-]?{_AMOUNT} ?{unit}$"), _signed(said, amount, words)))
    several = words.matches(said, "^.*[0-9].*$")
    forms.append((sql.both(words.matches(said, _ISO), several), _signed(said, _iso(said, words), words)))
    if bare is not None:
        forms.append((words.matches(said, _PLAIN), words.number_in(said) * sql.real(units[bare])))
    return _parsed(column, cell, words, forms)


def _parsed(column: Column, cell: SqlCell, words: SqlWords, forms: list[tuple[Expr, Expr]]) -> SqlReading:
    said = cell.value
    gone = sql.among(said, map(sql.text, (*column.missing_tokens, *sorted(NOT_A_TIME))))
    short = sql.call("LENGTH", said) <= sql.whole(_LONGEST)
    found = sql.case((short, sql.case(*forms)))
    number = without_codes(sql.case((gone, sql.nothing()), otherwise=found), _coded(column))
    known = sql.no(sql.is_null(found))
    return SqlReading(number, words_misfit(cell, gone, known), missing_state(column, cell, words))


def _coded(column: Column) -> list[float]:
    found = []
    for token in column.missing_tokens:
        try:
            found.append(column.number_of(token))
        except ValueError:
            continue
    return found


def _state(column: Column, cell: SqlCell, words: SqlWords) -> Expr | None:
    """Return the state of a cell that no text can be."""
    return (
        missing_state(column, cell, words)
        if cell.kind in ("whole", "real", "decimal")
        else (sql.whole(0) if column.missing_states > 1 else None)
    )


def _is_bare(token: str) -> bool:
    try:
        float(token)
    except ValueError:
        return False
    return True


def _clock(said: Expr, words: SqlWords) -> Expr:
    hours = words.digits(words.part(said, "^[+-]?([0-9]+):"))
    minutes = words.digits(words.part(said, "^[+-]?[0-9]+:([0-9]{2}):"))
    seconds = _decimal(words.part(said, "^[+-]?[0-9]+:[0-9]{2}:([0-9.,]+)$"), words)
    return _signed(said, hours * sql.real(3600) + minutes * sql.real(60) + seconds, words)


def _iso(said: Expr, words: SqlWords) -> Expr:
    total = sql.real(0)
    for letter, seconds in _SIZES.items():
        total = total + _decimal(words.part(said, f"([0-9.,]+){letter}"), words) * sql.real(seconds)
    return total


def _decimal(said: Expr, words: SqlWords) -> Expr:
    return words.digits(sql.call("REPLACE", said, sql.text(","), sql.text(".")))


def _signed(said: Expr, span: Expr, words: SqlWords) -> Expr:
    return sql.case((words.matches(said, "^-.*$"), sql.real(0) - span), otherwise=span)
