"""The words in which column types say a cell's reading in SQL, as syntax trees of sqlglot.

A reading is an expression of the cell and of public facts. Each engine that spells a word otherwise has a class here.
No cast is reached by a cell whose form was not looked at, so that none aborts a statement, and it reads each cell by
itself. sqlglot is imported where a word is used.

=========================================  ===========================================================
edge case                                  what happens
=========================================  ===========================================================
a number in text of over 200 characters    is no number
a number in text from 1e100 on, or below   counts as infinite, and as zero
1e-99, written with three digits
text that is no number, day or time        is a misfit, as in a file
=========================================  ===========================================================
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias

from typing_extensions import override

Expr: TypeAlias = Any
"""A syntax tree of sqlglot: a condition."""
StoredAs: TypeAlias = Literal[
    "whole", "real", "decimal", "truth", "text", "day", "moment", "zoned", "clock", "span", "other"
]
"""The storage types of databases, as far as they are told apart."""

NUMBERS: tuple[StoredAs, ...] = ("whole", "real", "decimal", "truth")
INFINITE = sys.float_info.max
"""Numbers from here on count as infinite."""
_BLANKS = "".join(chr(code) for code in range(0x3001) if chr(code).isspace())
"""The blanks that ``str.strip`` takes away."""
MOST_CASES = 24
"""Most cases of an expression: more are joined, as each is looked at for every record."""
_DIGITS = "([0-9]+[.]?[0-9]*|[.][0-9]+)"
_NUMBER = f"^[+-]?{_DIGITS}([eE][+-]?[0-9]{{1,2}})?$"
_LARGE, _TINY = f"^[+-]?{_DIGITS}[eE][+]?[0-9]{{3,}}$", f"^[+-]?{_DIGITS}[eE]-[0-9]{{3,}}$"
_ENDLESS = "^[+-]?[iI][nN][fF]([iI][nN][iI][tT][yY])?$"
_ENDLESS_DECIMAL, _TINY_DECIMAL = 1e308, 1e-300
_FIRST_MOMENT, _LAST_MOMENT = -2.108e11, 9.224e12
"""Seconds that are some months within the first and the last moment of PostgreSQL."""
_LONGEST = 200
"""Most characters of a number in text: with two digits of an exponent it is below 1e300."""


class SqlCell(NamedTuple):
    """A raw cell of a table in a database.

    Attributes:
        value: The cell; a text has no blanks around.
        kind: How it is stored.
    """

    value: Expr
    kind: StoredAs


class SqlReading(NamedTuple):
    """A cell's reading, from that cell alone.

    Attributes:
        number: Its number in float64: of a list the place; NULL for a missing cell, and for one that does not fit.
        misfit: Whether it does not fit; never NULL.
        state: The kind of missing cells that it is one of, where there are several.
        label: The text of a value whose list is to be learned.
    """

    number: Expr
    misfit: Expr
    state: Expr | None = None
    label: Expr | None = None


class RuleCell(NamedTuple):
    """A cell that a rule looks at.

    Attributes:
        number: The nearest number that a cell can have; NULL for a missing one.
        state: The kind of missing cells that it is one of, where there are several.
    """

    number: Expr
    state: Expr | None = None

    @property
    def held_state(self) -> Expr:
        """The kind of missing cells that it is one of; the first, where there are not several."""
        return whole(0) if self.state is None else self.state.copy()


class SqlLookup(NamedTuple):
    """Public values that a statement joins, for more of them than an expression holds.

    Attributes:
        name: Of the temporary table, which has a ``key`` and a ``place``.
        key: The key that a record has.
        places: Value -> place.
    """

    name: str
    key: Expr
    places: Mapping[Any, int]


class NotInSql(ValueError):
    """A column that is not read in a database; ``message; remedy``."""


def unread(column: str, kind: StoredAs) -> NotInSql:
    """Return the refusal of a storage type that a column type, by its name, does not read."""
    shown = {"zoned": "a moment with a time zone", "truth": "true and false", "other": "another type"}.get(kind, kind)
    return NotInSql(f"is stored as {shown}, of which no {column} is read; make a view that casts it")


# -- the same in every engine ------------------------------------------------------------------------------------------


def real(value: float) -> Expr:
    """Return a literal of float64, which every engine reads as this number."""
    from sqlglot import exp

    literal = exp.Literal.number(f"{abs(value):.16e}")
    return exp.Paren(this=exp.Neg(this=literal)) if value < 0 else literal


def whole(value: int) -> Expr:
    """Return a literal of a whole number."""
    from sqlglot import exp

    literal = exp.Literal.number(abs(value))
    return exp.Paren(this=exp.Neg(this=literal)) if value < 0 else literal


def text(value: str) -> Expr:
    """Return a literal of text."""
    from sqlglot import exp

    return exp.Literal.string(value)


def nothing() -> Expr:
    """Return NULL."""
    from sqlglot import exp

    return exp.null()


def never() -> Expr:
    """Return a condition that does not hold."""
    from sqlglot import exp

    return exp.Paren(this=exp.EQ(this=whole(0), expression=whole(1)))


def case(*cases: tuple[Expr, Expr], otherwise: Expr | None = None) -> Expr:
    """Return the value of the first condition that holds."""
    from sqlglot import exp

    whens = [exp.If(this=condition.copy(), true=value.copy()) for condition, value in cases]
    return exp.Paren(this=exp.Case(ifs=whens, default=exp.null() if otherwise is None else otherwise.copy()))


def is_null(value: Expr) -> Expr:
    """Return whether a value is NULL."""
    from sqlglot import exp

    return exp.Paren(this=exp.Is(this=value.copy(), expression=exp.null()))


def either(*conditions: Expr) -> Expr:
    """Return whether one holds."""
    from sqlglot import exp

    return exp.Paren(this=exp.or_(*conditions, copy=False))


def both(*conditions: Expr) -> Expr:
    """Return whether all hold."""
    from sqlglot import exp

    return exp.Paren(this=exp.and_(*conditions, copy=False))


def no(condition: Expr) -> Expr:
    """Return whether a condition does not hold."""
    from sqlglot import exp

    return exp.Paren(this=exp.Not(this=condition))


def among(value: Expr, literals: Iterable[Expr]) -> Expr:
    """Return whether a value is one of several; false of none."""
    found = list(literals)
    return value.copy().isin(*found) if found else never()


def select(*columns: Expr, of: Expr) -> Expr:
    """Return a selection from a table or a nested selection, which it takes over."""
    from sqlglot import exp

    return exp.select(*columns, copy=False).from_(of, copy=False)


def nested(statement: Expr, name: str) -> Expr:
    """Return a selection as what another selects from."""
    return statement.subquery(name, copy=False)


def call(name: str, *given: Expr) -> Expr:
    """Return a function of this name in every engine."""
    from sqlglot import exp

    return exp.Anonymous(this=name, expressions=[each.copy() for each in given])


def cast(value: Expr, kind: str) -> Expr:
    """Return a cast to a type, in sqlglot's word for it."""
    from sqlglot import exp

    return exp.Cast(this=value.copy(), to=exp.DataType.build(kind))


def type_in(kind: str, dialect: str) -> str:
    """Return an engine's name of a type, of sqlglot's word for it."""
    from sqlglot import exp

    return str(exp.DataType.build(kind).sql(dialect=dialect))


def joined(*texts: Expr) -> Expr:
    """Return texts one after another."""
    from sqlglot import exp

    return exp.Concat(expressions=[each.copy() for each in texts])


def floor(value: Expr) -> Expr:
    """Return the whole number below."""
    return call("FLOOR", value)


def remainder(value: Expr, divisor: float) -> Expr:
    """Return what is left of a whole number in float64 by a divisor, at least 0."""
    return value.copy() - floor(value.copy() / real(divisor)) * real(divisor)


def gaps(number: Expr, below: Expr, period: float) -> Expr:
    """Return :func:`doublure.support.lattices.gaps` of whole numbers in float64."""
    from sqlglot import exp

    apart = exp.Paren(this=number.copy() - below.copy())
    if period <= 1:
        return apart
    longer = apart.copy() + exp.Paren(this=remainder(below, period))
    return case((exp.LT(this=apart.copy(), expression=real(period)), apart), otherwise=longer)


def rounded(value: Expr) -> Expr:
    """Return the nearest whole number, of two the even one: each engine has another function for that."""
    down = floor(value)
    rest = value.copy() - down
    odd = remainder(down, 2).eq(real(1))
    up = either(rest > real(0.5), both(rest.copy().eq(real(0.5)), odd))
    return case((up, floor(value) + real(1)), otherwise=floor(value))


# -- as one engine says it ---------------------------------------------------------------------------------------------


class SqlWords:
    """Words that engines spell differently, as DuckDB spells them.

    Attributes:
        dialect: sqlglot's name of the engine's language.
        bytewise: The engine's collation by bytes. By one that a column brings, a text would meet two of a list, and
            one record would decide under which of two texts others are counted.
    """

    dialect: ClassVar[str] = "duckdb"
    bytewise: ClassVar[str | None] = "C"

    def __init__(self) -> None:
        self.lookups: list[SqlLookup] = []

    def look_up(self, key: Expr, places: Mapping[Any, int]) -> Expr:
        """Return the place of a key among public values, all texts or all numbers; NULL for any other key."""
        from sqlglot import exp

        if len(places) > MOST_CASES:
            name = f"doublure_values_{len(self.lookups)}"
            self.lookups.append(SqlLookup(name, key.copy(), places))
            return exp.column("place", table=name)
        cases = [
            (key.copy().eq(text(each) if isinstance(each, str) else real(each)), real(place))
            for each, place in places.items()
        ]
        return case(*cases) if cases else nothing()

    def sought(self, code: Expr, cuts: Sequence[int], cells: Sequence[int]) -> Expr | None:
        """Return the cell of a whole number between cuts by a search of the engine's own; None where it has none.

        Args:
            code: The whole number.
            cuts: In ascending order; each begins a cell.
            cells: That below the first cut, and that from each on.
        """
        return None

    def nearest(self, value: Expr) -> Expr:
        """Return the nearest whole number in float64, of two the even one, by a function of the engine's own."""
        return call("ROUND_EVEN", value, whole(0))

    def stripped(self, value: Expr) -> Expr:
        """Return a raw value as text without blanks around; with no collation by which two texts could be equal."""
        from sqlglot import exp

        bare = exp.Trim(this=cast(value, "text"), expression=text(_BLANKS))
        if self.bytewise is None:
            return bare
        return exp.Collate(this=bare, expression=exp.to_identifier(self.bytewise, quoted=True))

    def matches(self, said: Expr, pattern: str) -> Expr:
        """Return whether a text is of a form, all of it: without backslashes, in what all engines read alike."""
        from sqlglot import exp

        return exp.Paren(this=exp.RegexpLike(this=said.copy(), expression=text(pattern)))

    def part(self, said: Expr, pattern: str) -> Expr:
        """Return what the one group of a pattern finds; an empty text, or NULL, where it finds nothing."""
        return call("REGEXP_EXTRACT", said, text(pattern), whole(1))

    def piece(self, said: Expr, first: int, length: int) -> Expr:
        """Return characters of a text, counted from 1."""
        from sqlglot import exp

        return exp.Substring(this=said.copy(), start=whole(first), length=whole(length))

    def number(self, cell: SqlCell) -> Expr:
        """Return a stored number in float64; NULL for NaN."""
        if cell.kind == "truth":
            return case((cell.value, real(1)), (no(cell.value), real(0)))
        found = cast(cell.value, "double")
        return self.without_nan(found) if cell.kind == "real" else found

    def without_nan(self, number: Expr) -> Expr:
        """Return a number, NULL for NaN."""
        from sqlglot import exp

        return exp.Nullif(this=number, expression=cast(text("NaN"), "double"))

    def is_number(self, said: Expr) -> Expr:
        """Return whether a text is a number."""
        short = both(call("LENGTH", said) <= whole(_LONGEST), self.matches(said, _NUMBER))
        return either(short, *(self.matches(said, form) for form in (_LARGE, _TINY, _ENDLESS)))

    def number_in(self, said: Expr) -> Expr:
        """Return the number of a text, without a sign NULL where it is none."""
        short = both(call("LENGTH", said) <= whole(_LONGEST), self.matches(said, _NUMBER))
        endless = either(self.matches(said, _LARGE), self.matches(said, _ENDLESS))
        negative = self.matches(said, "^-.*$")
        return case(
            (short, self.read(said, "double")),
            (self.matches(said, _TINY), real(0)),
            (both(endless, negative), real(-INFINITE)),
            (endless.copy(), real(INFINITE)),
        )

    def read(self, said: Expr, kind: str) -> Expr:
        """Return a text as a number, which it is."""
        return cast(said, kind)

    def digits(self, said: Expr) -> Expr:
        """Return a text of digits in float64; 0 for none."""
        none = either(is_null(said), said.copy().eq(text("")))
        return case((none, real(0)), otherwise=cast(said, "double"))

    def day(self, value: Expr) -> Expr:
        """Return a date as days since 1970."""
        return floor(self.second(value) / real(86_400))

    def second(self, value: Expr) -> Expr:
        """Return a date or a moment as whole seconds since 1970, on its own clock, or in UTC.

        NULL for what is no moment: DuckDB's days reach farther than its moments, and one of them would end the
        statement.
        """
        return call("TRY", call("EPOCH", call("DATE_TRUNC", text("second"), value)))

    def clock(self, value: Expr) -> Expr:
        """Return a time of day as whole seconds since midnight."""
        return floor(call("EPOCH", value))

    def span(self, value: Expr) -> Expr:
        """Return an interval as seconds."""
        return call("EPOCH", value)

    def local(self, seconds: Expr, zone: str) -> Expr:
        """Return seconds in UTC as the clocks of a zone show them."""
        from sqlglot import exp

        return self.second(exp.AtTimeZone(this=call("TO_TIMESTAMP", seconds), zone=text(zone)))

    def hashed(self, said: Expr) -> Expr:
        """Return a public hash of a text."""
        return call("MD5", said)

    def marked(self, said: Expr) -> Expr:
        """Return a whole number below 2^32 that is as good as random and follows from a text."""
        return cast(joined(text("0x"), self.piece(self.hashed(said), 1, 8)), "bigint")


class PostgresWords(SqlWords):
    """As PostgreSQL spells them."""

    dialect: ClassVar[str] = "postgres"

    @override
    def sought(self, code: Expr, cuts: Sequence[int], cells: Sequence[int]) -> Expr | None:
        from sqlglot import exp

        place = call("WIDTH_BUCKET", cast(code, "bigint"), _array(cuts))
        if [*cells] == [*range(len(cells))]:
            return place
        return exp.Bracket(this=exp.Paren(this=_array(cells)), expressions=[place + whole(1)], offset=1)

    @override
    def nearest(self, value: Expr) -> Expr:
        return call("ROUND", cast(value, "double"))

    @override
    def number(self, cell: SqlCell) -> Expr:
        if cell.kind != "decimal":
            return super().number(cell)
        # A cast of what float64 does not hold ends the statement: one cell would refuse all.
        value = cell.value
        return case(
            (value.copy().eq(cast(text("NaN"), "decimal")), nothing()),
            (value.copy() >= real(_ENDLESS_DECIMAL), real(INFINITE)),
            (value.copy() <= real(-_ENDLESS_DECIMAL), real(-INFINITE)),
            (call("ABS", value) < real(_TINY_DECIMAL), real(0)),
            otherwise=cast(value, "double"),
        )

    @override
    def part(self, said: Expr, pattern: str) -> Expr:
        return call("SUBSTRING", said, text(pattern))

    @override
    def second(self, value: Expr) -> Expr:
        return self._since(value)

    @override
    def clock(self, value: Expr) -> Expr:
        return self._since(value)

    @override
    def local(self, seconds: Expr, zone: str) -> Expr:
        # The last moments that there are have no clock in other zones: the statement would end.
        far = either(seconds.copy() > real(_LAST_MOMENT), seconds.copy() < real(_FIRST_MOMENT))
        return case((far, seconds), otherwise=super().local(seconds, zone))

    @override
    def marked(self, said: Expr) -> Expr:
        from sqlglot import exp

        digits = joined(text("x"), self.piece(self.hashed(said), 1, 8))
        return cast(exp.Cast(this=digits, to=exp.DataType.build("BIT(32)", dialect="postgres")), "bigint")

    @override
    def span(self, value: Expr) -> Expr:
        return cast(call("DATE_PART", text("epoch"), value), "double")

    @staticmethod
    def _since(value: Expr) -> Expr:
        from sqlglot import exp

        return cast(floor(exp.Extract(this=exp.var("EPOCH"), expression=value.copy())), "double")


class BigQueryWords(SqlWords):
    """As BigQuery spells them."""

    dialect: ClassVar[str] = "bigquery"
    bytewise: ClassVar[str | None] = None

    @override
    def nearest(self, value: Expr) -> Expr:
        return rounded(value)

    @override
    def part(self, said: Expr, pattern: str) -> Expr:
        return call("REGEXP_EXTRACT", said, text(pattern))

    @override
    def without_nan(self, number: Expr) -> Expr:
        return case((call("IS_NAN", number), nothing()), otherwise=number)

    @override
    def second(self, value: Expr) -> Expr:
        return cast(call("UNIX_SECONDS", call("TIMESTAMP", value)), "double")

    @override
    def clock(self, value: Expr) -> Expr:
        return cast(self._parts(value), "double")

    @override
    def span(self, value: Expr) -> Expr:
        raise NotInSql("is an interval, which is not read in BigQuery; make a view that gives seconds")

    @override
    def local(self, seconds: Expr, zone: str) -> Expr:
        moment = call("TIMESTAMP_SECONDS", cast(seconds, "bigint"))
        return self.second(call("DATETIME", moment, text(zone)))

    @override
    def hashed(self, said: Expr) -> Expr:
        return call("TO_HEX", call("MD5", said))

    @staticmethod
    def _parts(value: Expr) -> Expr:
        from sqlglot import exp

        hour, minute, second = (exp.Extract(this=exp.var(part), expression=value.copy()) for part in _CLOCK)
        return hour * whole(3600) + minute * whole(60) + second


class SnowflakeWords(BigQueryWords):
    """As Snowflake spells them."""

    dialect: ClassVar[str] = "snowflake"

    @override
    def part(self, said: Expr, pattern: str) -> Expr:
        return call("REGEXP_SUBSTR", said, text(pattern), whole(1), whole(1), text("e"), whole(1))

    @override
    def without_nan(self, number: Expr) -> Expr:
        return SqlWords.without_nan(self, number)

    @override
    def second(self, value: Expr) -> Expr:
        return cast(call("DATE_PART", text("epoch_second"), value), "double")

    @override
    def span(self, value: Expr) -> Expr:
        raise NotInSql("is an interval, which is not read in Snowflake; make a view that gives seconds")

    @override
    def local(self, seconds: Expr, zone: str) -> Expr:
        moment = call("TO_TIMESTAMP_NTZ", cast(seconds, "bigint"))
        return self.second(call("CONVERT_TIMEZONE", text("UTC"), text(zone), moment))

    @override
    def hashed(self, said: Expr) -> Expr:
        return call("MD5", said)


class SparkWords(BigQueryWords):
    """As Spark spells them."""

    dialect: ClassVar[str] = "spark"

    @override
    def part(self, said: Expr, pattern: str) -> Expr:
        return call("REGEXP_EXTRACT", said, text(pattern), whole(1))

    @override
    def without_nan(self, number: Expr) -> Expr:
        return SqlWords.without_nan(self, number)

    @override
    def second(self, value: Expr) -> Expr:
        return cast(call("UNIX_SECONDS", cast(value, "timestamp")), "double")

    @override
    def clock(self, value: Expr) -> Expr:
        raise NotInSql("is a time of day, which Spark does not store; make a view that gives text")

    @override
    def span(self, value: Expr) -> Expr:
        raise NotInSql("is an interval, which is not read in Spark; make a view that gives seconds")

    @override
    def local(self, seconds: Expr, zone: str) -> Expr:
        moment = call("TIMESTAMP_SECONDS", cast(seconds, "bigint"))
        return self.second(call("FROM_UTC_TIMESTAMP", moment, text(zone)))

    @override
    def hashed(self, said: Expr) -> Expr:
        return call("MD5", said)


def _array(numbers: Sequence[int]) -> Expr:
    """Return PostgreSQL's array of whole numbers."""
    return cast(text("{" + ",".join(map(str, numbers)) + "}"), "array<bigint>")


_CLOCK = ("HOUR", "MINUTE", "SECOND")
WORDS: Mapping[str, type[SqlWords]] = {
    words.dialect: words for words in (SqlWords, PostgresWords, BigQueryWords, SnowflakeWords, SparkWords)
}
"""Dialect -> its words."""
