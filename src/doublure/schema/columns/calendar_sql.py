"""Raw cells of days, moments and months, read in SQL as :mod:`doublure.schema.columns.calendar_cells` reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from doublure.schema.columns import sql_words as sql
from doublure.schema.columns.calendar_cells import NOT_A_TIME
from doublure.schema.columns.number_sql import missing_state, without_codes, words_misfit
from doublure.schema.columns.sql_words import Expr, SqlCell, SqlReading, SqlWords, unread

if TYPE_CHECKING:
    from doublure.schema.columns.column import Column

_DAY = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
_TIME = "[T ][0-9]{2}:[0-9]{2}(:[0-9]{2})?([.,][0-9]+)?"
_OFFSET = "[+-][0-9]{2}:?([0-9]{2})?"
_MONTH = "^[0-9]{4}-[0-9]{2}(-01([T ]00:00(:00)?)?)?$"
_BEFORE_1970 = 719_468
_SHORT = (4, 6, 9, 11)


def moment_reading(column: Column, cell: SqlCell, words: SqlWords) -> SqlReading:
    """Return the reading of a day or a moment, on the column's own clock.

    Raises:
        NotInSql: No time is read of this storage type.
    """
    days = column.clock == "D"
    if cell.kind == "text":
        return _from_text(column, cell, words, days=days)
    if cell.kind not in ("day", "moment", *(() if days else ("zoned",))):
        raise unread(column.type, cell.kind)
    seconds = words.second(cell.value)
    if cell.kind == "zoned" and (zone := column.zone or "UTC") != "UTC":
        seconds = words.local(seconds, zone)
    return _timed(column, cell, words, sql.floor(seconds / sql.real(86_400)) if days else seconds)


def month_reading(column: Column, cell: SqlCell, words: SqlWords) -> SqlReading:
    """Return the reading of a month: of its first day, or of text.

    Raises:
        NotInSql: No month is read of this storage type.
    """
    if cell.kind == "text":
        said = cell.value
        gone = sql.among(said, map(sql.text, (*column.missing_tokens, *sorted(NOT_A_TIME))))
        form = words.matches(said, _MONTH)
        year, month = (words.digits(words.piece(said, *place)) for place in ((1, 4), (6, 2)))
        there = sql.case((form, sql.both(year >= sql.real(1), month.between(sql.real(1), sql.real(12)))))
        known = sql.case((there, sql.whole(1)), otherwise=sql.whole(0)).eq(sql.whole(1))
        number = sql.case((gone, sql.nothing()), (known, _months(year, month)))
        number = without_codes(number, _coded(column))
        return SqlReading(number, words_misfit(cell, gone, known), missing_state(column, cell, words))
    if cell.kind not in ("day", "moment"):
        raise unread(column.type, cell.kind)
    from sqlglot import exp

    year, month, day = (
        sql.cast(exp.Extract(this=exp.var(part), expression=cell.value.copy()), "double")
        for part in ("YEAR", "MONTH", "DAY")
    )
    midnight = sql.remainder(words.second(cell.value), 86_400).eq(sql.real(0))
    found = sql.case((sql.both(day.eq(sql.real(1)), midnight), _months(year, month)))
    return _timed(column, cell, words, found)


def _from_text(column: Column, cell: SqlCell, words: SqlWords, *, days: bool) -> SqlReading:
    said = cell.value
    gone = sql.among(said, map(sql.text, (*column.missing_tokens, *sorted(NOT_A_TIME))))
    dated, timed = words.matches(said, f"^{_DAY}$"), words.matches(said, f"^{_DAY}{_TIME} *([Zz]|{_OFFSET})?$")
    year, month, day, hour, minute = (
        words.digits(words.piece(said, *place)) for place in ((1, 4), (6, 2), (9, 2), (12, 2), (15, 2))
    )
    second = sql.case(
        (words.matches(said, f"^{_DAY}.[0-9]{{2}}:[0-9]{{2}}:.*$"), words.digits(words.piece(said, 18, 2))),
        otherwise=sql.real(0),
    )
    clock = hour * sql.real(3600) + minute * sql.real(60) + second
    in_day = sql.both(hour < sql.real(24), minute < sql.real(60), second < sql.real(60))
    in_day = sql.either(in_day, sql.both(hour.eq(sql.real(24)), clock.eq(sql.real(86_400))))
    fits = sql.either(dated, sql.both(timed, in_day))
    known = sql.case((sql.either(dated, timed), sql.both(_is_day(year, month, day), fits)))
    known = sql.case((known, sql.whole(1)), otherwise=sql.whole(0)).eq(sql.whole(1))
    since = sql.case((dated, sql.real(0)), otherwise=clock)
    number = _days(year, month, day) * sql.real(86_400) + since
    number = sql.floor(number / sql.real(86_400)) if days else _on_the_clock(column, said, number, timed, words)
    number = sql.case((gone, sql.nothing()), (known, number))
    number = without_codes(number, _coded(column))
    return SqlReading(number, words_misfit(cell, gone, known), missing_state(column, cell, words))


def _on_the_clock(column: Column, said: Expr, seconds: Expr, timed: Expr, words: SqlWords) -> Expr:
    """Return seconds on the column's clock, of text with an offset from UTC, too."""
    rest = words.piece(said, 17, 60)
    shifted, universal = words.matches(rest, f"^.*{_OFFSET}$"), words.matches(rest, "^.*[Zz]$")
    hours = words.digits(words.part(rest, "[+-]([0-9]{2}):?[0-9]{0,2}$"))
    minutes = words.digits(words.part(rest, "[+-][0-9]{2}:?([0-9]{2})$"))
    sign = sql.case((words.matches(rest, "^.*-[0-9]{2}:?([0-9]{2})?$"), sql.real(-1)), otherwise=sql.real(1))
    offset = sign * (hours * sql.real(3600) + minutes * sql.real(60))
    utc = sql.case((shifted, seconds.copy() - offset), otherwise=seconds)
    zone = column.zone or "UTC"
    if zone == "UTC":
        return sql.case((timed, utc), otherwise=seconds)
    aware = sql.both(timed, sql.either(shifted, universal))
    return sql.case((aware, words.local(utc, zone)), otherwise=seconds)


def _timed(column: Column, cell: SqlCell, words: SqlWords, number: Expr) -> SqlReading:
    """Return the reading of a time that is stored as one; that of no calendar, such as infinity, does not fit."""
    endless = sql.either(number >= sql.real(sql.INFINITE), number <= sql.real(-sql.INFINITE))
    lost = sql.both(sql.no(sql.is_null(cell.value)), sql.either(sql.is_null(number), endless.copy()))
    finite = sql.case((endless, sql.nothing()), otherwise=number)
    codes = {each: state for state, each in enumerate(column.missing_texts) if each}
    states = [(number.copy().eq(sql.real(found)), sql.whole(codes[each])) for each, found in _numbered(column, codes)]
    state = None if column.missing_states < 2 else sql.whole(0)
    if state is not None and states:
        state = sql.case(*states, otherwise=state)
    fits = sql.case((lost, sql.whole(1)), otherwise=sql.whole(0)).eq(sql.whole(1))
    return SqlReading(without_codes(finite, _coded(column)), fits, state)


def _coded(column: Column) -> list[float]:
    """Return the numbers of the declared texts for missing that are times."""
    return [found for _, found in _numbered(column, column.missing_tokens)]


def _numbered(column: Column, texts: object) -> list[tuple[str, float]]:
    found = []
    for each in texts:  # type: ignore[attr-defined]
        try:
            found.append((each, column.number_of(each)))
        except ValueError:
            continue
    return found


def _days(year: Expr, month: Expr, day: Expr) -> Expr:
    """Return a day of the Gregorian calendar as days since 1970, in years that begin with March."""
    late = month.copy() <= sql.real(2)
    years = sql.case((late, year - sql.real(1)), otherwise=year)
    months = sql.case((late.copy(), month + sql.real(9)), otherwise=month - sql.real(3))
    of_year = sql.floor((months * sql.real(153) + sql.real(2)) / sql.real(5)) + day - sql.real(1)
    leaps = sql.floor(years.copy() / sql.real(4)) - sql.floor(years.copy() / sql.real(100))
    return years * sql.real(365) + leaps + sql.floor(years.copy() / sql.real(400)) + of_year - sql.real(_BEFORE_1970)


def _is_day(year: Expr, month: Expr, day: Expr) -> Expr:
    def divides(step: int) -> Expr:
        return sql.remainder(year, step).eq(sql.real(0))

    leap = sql.both(divides(4), sql.either(sql.no(divides(100)), divides(400)))
    longest = sql.case(
        (month.copy().eq(sql.real(2)), sql.case((leap, sql.real(29)), otherwise=sql.real(28))),
        (sql.among(month, map(sql.real, _SHORT)), sql.real(30)),
        otherwise=sql.real(31),
    )
    inside = month.copy().between(sql.real(1), sql.real(12))
    return sql.both(inside, day.copy() >= sql.real(1), day.copy() <= longest)


def _months(year: Expr, month: Expr) -> Expr:
    return (year.copy() - sql.real(1970)) * sql.real(12) + month.copy() - sql.real(1)
