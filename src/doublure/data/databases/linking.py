"""Rows and the units that they belong to, in SQL as :mod:`doublure.data.relational` has them of files.

Where a file's order decides, a public hash of a row's own cells and keys does here:

=============================================  =====================================================================
a second row with a key of the root            left out: the first one has the key
more than ``max_children`` rows of a parent    the first ones by ``order`` stay, equal ones by that hash
a further row with a key of another table,     stays, and rows that name the key hang on the first one that belongs to
of which rows hang                             a unit
a ``per_unit`` cell that differs within one    the first one counts that is not missing, of the rows that stay
=============================================  =====================================================================

Keys are compared as texts, and stay in temporary tables of the session.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from doublure.data.databases.reading import UNIT, CellsInSql, content_order, ranked, with_fixes
from doublure.schema.columns import sql_words as sql
from doublure.schema.columns.sql_words import Expr
from doublure.schema.visits import PEOPLE, RECORDS

if TYPE_CHECKING:
    from doublure.data.databases.connection import DatabaseSession
    from doublure.schema.relational import RelationalSchema
    from doublure.schema.visits import VisitsSchema

ROW, OWNER, MARK, HANGS, TURN = "row_id", "unit_number", "unit_mark", "hangs_on", "turn"
"""Columns beside cells: a row's number, that of its unit, a number of the unit that is as good as random and follows
from its key, the number of the row that it hangs on, and its place from 1 on among those that hang on that."""
_NEAR, _FAR, _SAME = "near", "far", "same_key"


@dataclass(frozen=True, kw_only=True)
class LinkedRows:
    """The rows of a table that belong to units, in a temporary table.

    Attributes:
        table: Its name.
        cells: The names of its columns.
    """

    table: str
    cells: CellsInSql


def unit_key(schema: VisitsSchema) -> dict[str, str]:
    """Return the column that names units, as the key that is read."""
    return {UNIT: str(schema.unit.id)}


def keys_read(schema: RelationalSchema, name: str) -> dict[str, str]:
    """Return the keys of a table that say what belongs to whom: of its parent, and its own where rows hang on it."""
    table = schema.tables[name]
    own = table.keys if schema.hanging(name) else ()
    return _numbered(_FAR, table.foreign_keys) | _numbered(_NEAR, own)


def link_tables(
    database: DatabaseSession, schema: RelationalSchema, cells: Mapping[str, CellsInSql]
) -> dict[str, LinkedRows]:
    """Return each table with the rows that belong to units, which temporary tables hold from now on.

    Args:
        database: In a transaction.
        schema: Of the tables.
        cells: Of each, with the labels of its keys.

    Raises:
        DataError: The database refuses.
    """
    found, holders = dict[str, LinkedRows](), dict[str, Any]()
    for number, name in enumerate((schema.root, *schema.children)):
        own, table, kept = cells[name], schema.tables[name], f"doublure_rows_{number}"
        near = [*_numbered(_NEAR, table.keys)] if schema.hanging(name) else []
        far = [*_numbered(_FAR, table.foreign_keys)]
        if table.parent is None:
            _store_units(database, own, near, own.statement.copy(), kept)
            holders[name] = sql.select("*", of=kept)
        else:
            order = [] if table.order is None else [own.places[table.order]]
            rows = _turned(_hung(own, near, far, holders[table.parent]), own, [*far, *near], order, within=HANGS)
            inside = sql.both(_there(HANGS), _column(TURN) <= sql.whole(schema.most_of_parent(name)))
            if near:
                every = f"doublure_keys_{number}"
                database.store(every, _holders(rows, own, near, far, inside))
                rows, inside = sql.select("*", of=every), _there(ROW)
                holders[name] = sql.select("*", of=every).where(_column(_SAME).eq(sql.whole(1)), copy=False)
            names = [*own.names, OWNER, HANGS, TURN, *([ROW] if near else [])]
            database.store(kept, _chosen(names, rows).where(inside, copy=False))
        found[name] = LinkedRows(table=kept, cells=own)
    return found


def link_visits(database: DatabaseSession, schema: VisitsSchema, cells: CellsInSql) -> dict[str, LinkedRows]:
    """Return the two tables that one is split into, which temporary tables hold from now on.

    Args:
        database: In a transaction.
        schema: Of visits.
        cells: Of the one table, with the label of its unit.

    Raises:
        DataError: The database refuses.
    """
    order = [] if schema.unit.order is None else [cells.places[schema.unit.order]]
    named = _chosen([*cells.names, UNIT], cells.statement).where(_there(UNIT), copy=False)
    rows = _turned(named, cells, [UNIT], order, within=UNIT)
    inside = _column(TURN) <= sql.whole(schema.unit.max_records)
    database.store("doublure_visits", _chosen([*cells.names, UNIT, TURN], rows).where(inside, copy=False))
    parts = {
        table: replace(cells, places={own: at for own, at in cells.places.items() if schema.table_of(own) == table})
        for table in (PEOPLE, RECORDS)
    }
    (near,) = _numbered(_NEAR, [UNIT])
    people = fixed_people(schema, replace(parts[PEOPLE], statement=_first_cells(parts[PEOPLE], near)), near)
    _store_units(database, parts[PEOPLE], [near], people.statement, "doublure_rows_0")
    units, visits = (sql.select("*", of=name) for name in ("doublure_rows_0", "doublure_visits"))
    kept = _hung(replace(parts[RECORDS], statement=visits), [TURN], [UNIT], units)
    database.store("doublure_rows_1", _chosen([*parts[RECORDS].names, OWNER, HANGS, TURN], kept))
    return {name: LinkedRows(table=f"doublure_rows_{at}", cells=each) for at, (name, each) in enumerate(parts.items())}


def fixed_people(schema: VisitsSchema, cells: CellsInSql, *more: str) -> CellsInSql:
    """Return units' own cells, of which those that break a rule are changed: they may come from several rows.

    Args:
        schema: Of visits.
        cells: Of the units, or of a table that has their columns.
        more: Further columns that are kept.

    Raises:
        SchemaError: A rule that changes units is not said in SQL.
    """
    table = schema.related.table(PEOPLE)
    rules = [rule for rule in table.constraints if not rule.encoded]
    return with_fixes(cells, table, rules, [*cells.names, *more])


def _store_units(database: DatabaseSession, cells: CellsInSql, near: Sequence[str], rows: Any, kept: str) -> None:
    """Keep the first row of each key, numbered, and marked by that key."""
    from sqlglot import exp

    named = sql.select(
        *map(exp.column, [*cells.names, *near]),
        ranked(near, content_order(cells)).as_(_SAME),
        of=sql.nested(rows, "named_rows"),
    ).where(sql.both(*map(_there, near)), copy=False)
    first = _column(_SAME).eq(sql.whole(1))
    label = sql.joined(*(each for name in near for each in (_column(name), sql.text("|"))))
    number = exp.Window(this=exp.RowNumber())
    units = sql.select(
        *map(exp.column, [*cells.names, *near]), cells.words.marked(label).as_(MARK), number.as_(ROW),
        of=sql.nested(named, "ranked_rows"),
    ).where(first, copy=False)  # fmt: skip
    database.store(kept, sql.select("*", _column(ROW).as_(OWNER), of=sql.nested(units, "units")))


def _hung(cells: CellsInSql, kept: Sequence[str], far: Sequence[str], holders: Any) -> Any:
    """Return the rows that name a row of another table which belongs to a unit, with that row's number and unit."""
    from sqlglot import exp

    own = [exp.column(name, table="own") for name in (*cells.names, *kept, *far)]
    held = [exp.column(OWNER, table="held"), exp.column(ROW, table="held").as_(HANGS)]
    alike = (exp.column(name, table="own").eq(exp.column(f"{_NEAR}{at}", table="held")) for at, name in enumerate(far))
    found = sql.select(*own, *held, of=sql.nested(cells.statement.copy(), "own"))
    return found.join(sql.nested(holders.copy(), "held"), on=sql.both(*alike), copy=False)


def _turned(rows: Any, cells: CellsInSql, keys: Sequence[str], order: Sequence[int], *, within: str) -> Any:
    """Return rows with the place of each among those that hang on the same."""
    by = [_column(f"n{place}") for place in order] + content_order(cells) + [_column(name) for name in keys]
    return sql.select("*", ranked([within], by).as_(TURN), of=sql.nested(rows, "hung_rows"))


def _holders(rows: Any, cells: CellsInSql, near: Sequence[str], far: Sequence[str], inside: Expr) -> Any:
    """Return rows on which others hang: the first of each key, and all that stay; numbered as they follow one another.

    A row that does not stay has no number, so that what names it is left out with it.
    """
    from sqlglot import exp

    by = [*content_order(cells), *(_column(name) for name in (*far, *near))]
    turns = exp.Order(expressions=[exp.Ordered(this=_column(name)) for name in (HANGS, TURN)])
    number = exp.Window(this=exp.RowNumber(), order=turns)
    return sql.select(
        "*", sql.case((inside, number)).as_(ROW), ranked(near, by).as_(_SAME), of=sql.nested(rows, "turned_rows")
    )


def _first_cells(cells: CellsInSql, near: str) -> Any:
    """Return each unit's first cell of every column that is not missing; that of its first row where all are."""
    from sqlglot import exp

    firsts, columns = [], list[Expr]()
    for name, place in cells.places.items():
        turn = exp.Min(this=sql.case((_there(f"n{place}"), _column(TURN))))
        first = exp.Window(this=turn, partition_by=[exp.column(UNIT)])
        firsts.append(exp.Coalesce(this=first, expressions=[sql.whole(1)]).as_(f"first{place}"))
        at = _column(TURN).eq(_column(f"first{place}"))
        columns += [exp.Max(this=sql.case((at.copy(), _column(own)))).as_(own) for own in cells.columns_of(name)]
    found = sql.select(*map(exp.column, [*cells.names, UNIT, TURN]), *firsts, of="doublure_visits")
    people = sql.select(*columns, exp.column(UNIT).as_(near), of=sql.nested(found, "first_turns"))
    return people.group_by(exp.column(UNIT), copy=False)


def _chosen(names: Sequence[str], rows: Any) -> Any:
    return sql.select(*map(_column, names), of=sql.nested(rows, "chosen_rows"))


def _numbered(kind: str, names: Sequence[str | None]) -> dict[str, str]:
    return {f"{kind}{place}": str(name) for place, name in enumerate(names)}


def _column(name: str) -> Expr:
    from sqlglot import exp

    return exp.column(name)


def _there(name: str) -> Expr:
    return sql.no(sql.is_null(_column(name)))
