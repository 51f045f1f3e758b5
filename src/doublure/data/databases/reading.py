"""The statement that reads a table's cells in a database, in canonical form: each cell by itself, from public facts.

Statements are nested selections: raw cells, their readings, what becomes of them by ``misfit``. No selection looks at
two records, except the bounding by unit.

==========================================  ===================================================================
edge case                                   what happens
==========================================  ===================================================================
a cell that does not fit                    as :mod:`doublure.data.tables.cells` says
a unit with more than ``max_records``       those are used that come first by a public hash of their cells
two records of a unit that are equal        are one another's: which of them is used makes no difference
a record that names no unit                 is left out, or refused
==========================================  ===================================================================
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from doublure.data.databases.rule_fixes import RuleFixes
from doublure.errors import DataError, SchemaError
from doublure.schema.columns import sql_words as sql
from doublure.schema.columns.sql_words import (
    Expr,
    NotInSql,
    RuleCell,
    SqlCell,
    SqlLookup,
    SqlReading,
    SqlWords,
    StoredAs,
)

if TYPE_CHECKING:
    from doublure.data.databases.connection import DatabaseSession
    from doublure.schema import Schema
    from doublure.schema.rules.rule import Rule

UNIT, RANK = "unit", "ranked"
CELLS = "doublure_cells"
_RAW, _READ, _FITTED = "raw_cells", "read_cells", "fitted_cells"


@dataclass(frozen=True, kw_only=True)
class CellsInSql:
    """A table's cells as a statement.

    Attributes:
        words: Of the engine, with the public values that are joined.
        places: Column -> its number in the names of the statement's columns.
        statement: Selects ``n0`` the number, ``s0`` the state, ``l0`` the label, ``m0`` whether it does not fit, of
            each column, and ``unit``.
        stated: The columns that have states of missing.
        labelled: Those whose list is to be learned.
        rules: Those that records have to keep: ``b0`` is whether one breaks the first.
    """

    words: SqlWords
    places: Mapping[str, int]
    statement: Any
    stated: frozenset[str]
    labelled: frozenset[str]
    rules: tuple[Rule, ...] = ()

    @property
    def names(self) -> list[str]:
        """The names of the selected columns, without misfits."""
        found = (own for name in self.places for own in self.columns_of(name))
        return sorted(found, key=lambda own: "nsl".index(own[0]))

    def columns_of(self, name: str) -> list[str]:
        """Return the names of the selected columns of one."""
        kinds = ["n", *("s" for _ in range(name in self.stated)), *("l" for _ in range(name in self.labelled))]
        return [f"{kind}{self.places[name]}" for kind in kinds]


def read_cells(
    schema: Schema, header: Mapping[str, StoredAs], source: Any, words: SqlWords, keys: Mapping[str, str]
) -> CellsInSql:
    """Return the statement that reads a table's cells.

    Args:
        schema: The public facts, of which some may be learned later.
        header: Column -> how the table stores it.
        source: The table or the query, as what a statement selects from.
        words: Of the engine.
        keys: What a label that says what belongs to whom is called in the statement -> its column.

    Raises:
        DataError: A column is stored as its type does not read it, or written in a spelling of its own.
    """
    from sqlglot import exp

    columns = {name: column for name, column in schema.columns.items() if column.modelled}
    places = {name: place for place, name in enumerate(columns)}
    begun = len(words.lookups)
    raw = []
    for name, place in places.items():
        value = exp.column(name, quoted=True)
        raw.append((words.stripped(value) if header[name] == "text" else value).as_(f"r{place}"))
    raw += [words.stripped(exp.column(name, quoted=True)).as_(f"raw_{own}") for own, name in keys.items()]
    stated, labelled = set(), set()
    read: list[Expr] = []
    fitted: list[Expr] = []
    for name, column in columns.items():
        place, kind = places[name], header[name]
        spelt = column.spelling(schema.cell_form.marks)
        if spelt is not None and (kind == "text" or (kind in sql.NUMBERS and spelt.digits is not None)):
            remedy = "make a view that casts it, and declare no format of its text"
            raise DataError("is written in a spelling of its own, which is not read in SQL", field=name, remedy=remedy)
        try:
            found = column.in_sql(SqlCell(exp.column(f"r{place}"), kind), words)
        except NotInSql as refused:
            message, _, remedy = str(refused).partition("; ")
            raise DataError(message, field=name, remedy=remedy) from None
        read += _named(found, place)
        fits = column.fitted_in_sql(_selected(found, place), schema.misfit)
        fitted += _named(fits, place)
        stated |= {name} if found.state is not None else set()
        labelled |= {name} if found.label is not None else set()
    for own, name in keys.items():
        read.append(_read_key(schema, name, header[name], exp.column(f"raw_{own}")).as_(own))
        fitted.append(exp.column(own).as_(own))
    inner = sql.select(*raw, of=source)
    middle = sql.select(*read, of=sql.nested(_apart(inner, words), _RAW))
    for each in words.lookups[begun:]:
        on = exp.column("key", table=each.name).eq(each.key)
        middle = middle.join(each.name, on=on, join_type="LEFT", copy=False)
    outer = sql.select(*fitted, of=sql.nested(_apart(middle, words), _READ))
    cells = CellsInSql(
        words=words, places=places, statement=outer, stated=frozenset(stated), labelled=frozenset(labelled)
    )
    return _with_rules(cells, schema, [each.alias for each in fitted])


def _with_rules(cells: CellsInSql, schema: Schema, names: Sequence[str]) -> CellsInSql:
    """Return cells, and whether each record breaks the rules that are not the encoding's business.

    Raises:
        SchemaError: A rule is not said in SQL, or records that break it are to be changed.
    """
    from sqlglot import exp

    own = tuple(rule for rule in schema.constraints if not rule.encoded)
    if schema.misfit != "refuse":
        return with_fixes(cells, schema, own, names)
    if not own:
        return cells
    looked = dict.fromkeys(name for rule in own for name in rule.names)
    snapped, held = [], dict[str, RuleCell]()
    for name in looked:
        place = cells.places[name]
        number = schema.columns[name].snapped_in_sql(exp.column(f"n{place}"), cells.words)
        snapped.append(number.as_(f"v{place}"))
        held[name] = RuleCell(exp.column(f"v{place}"), exp.column(f"s{place}") if name in cells.stated else None)
    inner = sql.select(*map(exp.column, names), *snapped, of=sql.nested(cells.statement, _FITTED))
    broken = []
    for rule in own:
        try:
            broken.append(sql.either(*rule.broken_in_sql(schema.columns, held, cells.words)))
        except NotInSql as refused:
            message, _, remedy = str(refused).partition("; ")
            raise SchemaError(message, field=f"constraints.{rule.word}", remedy=remedy) from None
    flags = [each.as_(f"b{place}") for place, each in enumerate(broken)]
    nested = sql.nested(_apart(inner, cells.words), "snapped_cells")
    return replace(cells, statement=sql.select(*map(exp.column, names), *flags, of=nested), rules=own)


def with_fixes(cells: CellsInSql, schema: Schema, rules: Sequence[Rule], names: Sequence[str]) -> CellsInSql:
    """Return cells of which records that break a rule are changed, each by itself.

    Raises:
        SchemaError: A rule that changes records is not said in SQL.
    """
    if not rules or (len(rules) == 1 and rules[0].deriving):
        return cells  # a column that follows from others is no part of a record, whatever it holds
    deriving = next((rule for rule in rules if rule.derives), None)
    try:
        if deriving is not None:
            remedy = "write misfit: refuse, make a view that keeps it, or fit an export"
            raise NotInSql(f"derives a column beside other rules, which change records; {remedy}")
        fixes = RuleFixes(rules, schema.columns, cells.places, cells.stated, cells.words)
        return replace(cells, statement=fixes.statement(cells.statement, names))
    except NotInSql as refused:
        message, _, remedy = str(refused).partition("; ")
        words = [rules[0].word] if deriving is None else [deriving.word]
        raise SchemaError(message, field=f"constraints.{words[0]}", remedy=remedy) from None


def bounded(cells: CellsInSql, most: int) -> Any:
    """Return the statement of the cells in use: at most so many records of each unit, and their rank in it."""
    from sqlglot import exp

    kept = [exp.column(name) for name in cells.names]
    rank = ranked([UNIT], content_order(cells))
    named = sql.no(sql.is_null(exp.column(UNIT)))
    found = sql.select(*kept, rank.as_(RANK), of=sql.nested(_apart(cells.statement, cells.words), _FITTED)).where(
        named, copy=False
    )
    return sql.select(*(each.copy() for each in kept), exp.column(RANK), of=sql.nested(found, "ranked_cells")).where(
        exp.column(RANK) <= sql.whole(most), copy=False
    )


def content_order(cells: CellsInSql) -> list[Expr]:
    """Return what puts records in an order that follows from their own cells: a public hash of these, then they."""
    from sqlglot import exp

    content = sql.joined(*(_as_text(exp.column(name)) for name in cells.names))
    return [cells.words.hashed(content), *(exp.column(name) for name in cells.names)]


def ranked(within: Sequence[str], order: Sequence[Expr]) -> Expr:
    """Return the place of a record, from 1 on, among those that are alike in some columns."""
    from sqlglot import exp

    return exp.Window(
        this=exp.RowNumber(),
        partition_by=[exp.column(name) for name in within],
        order=exp.Order(expressions=[exp.Ordered(this=each.copy(), nulls_first=True) for each in order]),
    )


def misfits(cells: CellsInSql, schema: Schema) -> Any:
    """Return the statement that counts records, for each column misfits and missing cells, and what breaks each rule.

    Units' names come last.
    """
    from sqlglot import exp

    def count(condition: Expr) -> Expr:
        return exp.Count(this=sql.case((condition, sql.whole(1))))

    counts: list[Expr] = [exp.Count(this=exp.Star())]
    for place in cells.places.values():
        counts.append(count(exp.column(f"m{place}")))
        counts.append(count(sql.is_null(exp.column(f"n{place}"))))
    counts += [count(exp.column(f"b{place}")) for place in range(len(cells.rules))]
    if schema.unit.id is not None:
        counts.append(exp.Count(this=exp.column(UNIT)))
        counts.append(exp.Count(this=exp.Distinct(expressions=[exp.column(UNIT)])))
    selected = [each.as_(f"count{place}") for place, each in enumerate(counts)]
    return sql.select(*selected, of=sql.nested(cells.statement, _FITTED))


def send_lookups(database: DatabaseSession, lookups: Sequence[SqlLookup]) -> None:
    """Put the public values that a statement joins into the session."""
    for each in lookups:
        columns = {"key": [*each.places], "place": [float(place) for place in each.places.values()]}
        database.insert(each.name, columns)


def _named(reading: SqlReading, place: int) -> Sequence[Expr]:
    found = [reading.number.as_(f"n{place}"), reading.misfit.as_(f"m{place}")]
    found += [] if reading.state is None else [reading.state.as_(f"s{place}")]
    return found + ([] if reading.label is None else [reading.label.as_(f"l{place}")])


def _selected(reading: SqlReading, place: int) -> SqlReading:
    from sqlglot import exp

    return SqlReading(
        exp.column(f"n{place}"),
        exp.column(f"m{place}"),
        None if reading.state is None else exp.column(f"s{place}"),
        None if reading.label is None else exp.column(f"l{place}"),
    )


def _read_key(schema: Schema, name: str, kind: StoredAs, said: Expr) -> Expr:
    if kind not in ("whole", "text"):
        raise DataError("is no id", field=name, remedy="use texts or whole numbers, or a view that casts it")
    gone = sql.among(said, map(sql.text, schema.columns[name].missing_tokens))
    return sql.case((gone, sql.nothing()), otherwise=said.copy())


def _as_text(value: Expr) -> Expr:
    shown = sql.cast(value, "text")
    return sql.joined(sql.call("COALESCE", shown, sql.text("-")), sql.text("|"))


def _apart(statement: Any, words: SqlWords) -> Any:
    """Return a statement that PostgreSQL computes once, and does not write into each place that names a column."""
    return statement.offset(0, copy=False) if words.dialect == "postgres" else statement
