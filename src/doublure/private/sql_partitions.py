"""Private records in a database, which counts them: one partition, whose answers are numbers of records in cells.

Each table of a :class:`~doublure.private.queries.counts.Counts` is one GROUP BY over codes that lie in a temporary
table of the session; several are asked together, by GROUPING SETS. An axis is said to the database as what it does to
each code that the schema allows, which is public: a difference, a few cases, or a table that is joined.

Guarantee: none of its own; that of :mod:`doublure.private.partitions`. A record has one code a part and every axis maps
a code to one cell, so that it counts in one cell of each table, as the query states.

==============================================  ===================================================================
edge case                                       what happens
==============================================  ===================================================================
no record at all                                no row comes back: zeros
an axis of thousands of intervals               its cells are looked up for each distinct code, and joined
a query that is no count                        is refused before anything is asked
==============================================  ===================================================================
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from typing_extensions import override

from doublure.data.databases.reading import RANK
from doublure.errors import SettingError
from doublure.private.partitions import CompositeQuery, Partitions, require_partitionable
from doublure.private.queries.axes import AnyAxis, Intervals, Lattices, Patterns, Table
from doublure.private.queries.counts import Counts
from doublure.private.queries.facts import Bounds, Categories, Missing, Shares, Units
from doublure.private.queries.query import Answer, Sensitivity, require_everyone
from doublure.private.remote import PartitionFacts
from doublure.schema.columns import sql_words as sql
from doublure.schema.columns.sql_words import MOST_CASES, Expr
from doublure.schema.scalars import EXACT, label

if TYPE_CHECKING:
    from doublure.data.databases.connection import DatabaseSession
    from doublure.data.databases.reading import CellsInSql
    from doublure.private.queries.query import Query

IntArray = npt.NDArray[np.int64]

TABLES_AT_ONCE = 16
"""Tables of one statement: each holds its cells at the same time."""
_DENSE = 2**17
"""Of a part with so many codes, each is mapped here: about a megabyte."""
_BELOW = -(2**62)
"""A whole number below every code."""
_NOT_COUNTED = "asks for more than counts, which is all that a database answers"


@dataclass(frozen=True, kw_only=True)
class CodeTable:
    """The table of codes in a database.

    Attributes:
        name: Its name in the session.
        domains: Of each part the lowest and the highest code, missing included.
        most_records: Largest number of records of a unit. Private.
    """

    name: str
    domains: Sequence[tuple[int, int]]
    most_records: int


class _OnePart:
    """Every code of one part, in the form that axes read: whatever part they ask for."""

    def __init__(self, codes: IntArray) -> None:
        self._codes = codes

    def __len__(self) -> int:
        return len(self._codes)

    def __getitem__(self, wanted: tuple[slice, int]) -> IntArray:
        return self._codes


@dataclass(frozen=True)
class _CodeRuns:
    """Whole numbers cut into runs, each of which has one cell.

    Attributes:
        starts: ``(n,)`` ascending; each run ends before the next, and the first begins below every code.
        cells: ``(n,)`` the cell of each.
    """

    starts: IntArray
    cells: IntArray

    @classmethod
    def of(cls, starts: IntArray, cells: IntArray) -> _CodeRuns:
        """Return runs in which adjacent ones have different cells."""
        kept = np.flatnonzero(np.diff(cells, prepend=cells[0] - 1))
        begun = starts[kept].astype(np.int64)
        begun[0] = _BELOW
        return cls(begun, cells[kept].astype(np.int64))


class SqlPartitions(Partitions[Any]):
    """Encoded records in a database.

    Args:
        database: In a transaction.
        table: The table of codes there.
        check: Called before each statement; may raise to stop.
    """

    def __init__(self, database: DatabaseSession, table: CodeTable, check: Callable[[], None] = lambda: None) -> None:
        self._database = database
        self._table = table
        self._check = check
        self._distinct: set[int] = set()
        self._axes = 0

    @override
    def refuse_unfit(self, query: Query[Any]) -> None:
        require_partitionable(query)
        if not isinstance(query, (Counts, CompositeQuery)):
            raise SettingError(_NOT_COUNTED, field=type(query).__name__, remedy="plan with statistics")
        facts: Any = PartitionFacts(len(self._table.domains), self._table.most_records)
        query.refuse_unfit(facts)

    @override
    def answers(self, query: Query[Any], *, sample_rate: float) -> Iterator[Answer]:
        if not isinstance(query, Counts):
            raise SettingError(_NOT_COUNTED, field=type(query).__name__, remedy="plan with statistics")
        require_everyone(sample_rate)
        different = {id(table): table for table in query.tables}
        axes = {id(axis): axis for table in query.tables for axis in table}
        said = {key: self._said(axis) for key, axis in axes.items()}
        keys, found = [*different], dict[int, IntArray]()
        for first in range(0, len(keys), TABLES_AT_ONCE):
            self._check()
            asked = keys[first : first + TABLES_AT_ONCE]
            counted = self._counted([different[key] for key in asked], said)
            found |= dict(zip(asked, counted, strict=True))
        for own in said.values():
            if own.joined is not None:
                self._database.run(f"DROP TABLE {own.joined[0]}")
        counts = [found[id(table)] for table in query.tables]
        yield Answer(total=np.concatenate(counts), sensitivity=Sensitivity.of_cells(len(counts), query.max_records))

    def _counted(self, tables: Sequence[Table], said: dict[int, _SaidAxis]) -> list[IntArray]:
        """Return the counts of some tables, from one statement."""
        from sqlglot import exp

        axes = {id(axis): axis for table in tables for axis in table}
        named = {key: f"a{number}" for number, key in enumerate(axes)}
        found = exp.select(*(said[key].cell.as_(name) for key, name in named.items()), copy=False)
        found = found.from_(self._table.name, copy=False)
        for key in axes:
            if (joined := said[key].joined) is not None:
                found = found.join(joined[0], on=joined[1].copy(), copy=False)
        if self._database.words.dialect == "postgres":  # a cell is computed once, for all tables
            found = found.offset(0, copy=False)
        names, keys = [f"k{number}" for number in range(len(tables))], []
        for table in tables:
            place: Expr = sql.cast(sql.whole(0), "bigint")
            for axis in table:
                place = place * sql.whole(axis.size) + exp.column(named[id(axis)])
            keys.append(place)
        placed = exp.select(*(key.as_(name) for key, name in zip(keys, names, strict=True)), copy=False)
        placed = placed.from_(sql.nested(found, "found"), copy=False)
        columns = [exp.column(name) for name in names]
        sets = exp.GroupingSets(expressions=[exp.Tuple(expressions=[column.copy()]) for column in columns])
        grouped = sql.select(*columns, exp.Count(this=exp.Star()).as_("n"), of=sql.nested(placed, "placed"))
        grouped.set("group", exp.Group(grouping_sets=[sets]))
        which = sql.case(*((sql.no(sql.is_null(column)), sql.whole(at)) for at, column in enumerate(columns)))
        where = sql.call("COALESCE", *columns, sql.whole(0))
        rows = self._database.rows(
            sql.select(which.as_("t"), where.as_("k"), exp.column("n"), of=sql.nested(grouped, "grouped"))
        )
        counts = [np.zeros(math.prod(axis.size for axis in table), dtype=np.int64) for table in tables]
        for at, cell, count in rows:
            counts[at][cell] += count
        return counts

    # -- axes ------------------------------------------------------------------------------------------------------

    def _said(self, axis: AnyAxis) -> _SaidAxis:
        from sqlglot import exp

        if isinstance(axis, Patterns):
            return self._pattern(axis)
        part: int = axis.part  # type: ignore[attr-defined]  # of all others
        code = exp.column(f"c{part}", table=self._table.name)
        first, last = self._table.domains[part]
        if last - first < _DENSE:
            codes = np.arange(first, last + 1, dtype=np.int64)
            cells = axis.of(_OnePart(codes))  # type: ignore[arg-type]
            shift = int(first - cells[0])
            if np.array_equal(codes - shift, cells):
                return _SaidAxis(code - sql.whole(shift) if shift else code)
            return self._of_runs(_CodeRuns.of(codes, cells), code, part)
        if isinstance(axis, Intervals):
            return self._of_runs(_CodeRuns.of(np.ceil(axis.starts).astype(np.int64), axis.cells), code, part)
        if isinstance(axis, Lattices):
            return _SaidAxis(_lattice(axis, code))
        raise SettingError(_NOT_COUNTED, field=type(axis).__name__, remedy="plan with statistics")

    def _pattern(self, axis: Patterns) -> _SaidAxis:
        from sqlglot import exp

        pattern: Expr = sql.whole(0)
        for place, (part, mark) in enumerate(zip(axis.parts, axis.marks, strict=True)):
            reached = exp.column(f"c{part}", table=self._table.name) >= sql.real(mark)
            pattern = pattern + sql.case((reached, sql.whole(1 << place)), otherwise=sql.whole(0))
        runs = _CodeRuns.of(np.arange(len(axis.cells)), axis.cells)
        if len(runs.starts) <= MOST_CASES:
            return _SaidAxis(_cases(runs, exp.Paren(this=pattern)))
        name = self._fresh("axis")
        self._database.insert(name, {"code": [*range(len(axis.cells))], "cell": axis.cells.tolist()})
        return _SaidAxis(exp.column("cell", table=name), (name, exp.column("code", table=name).eq(pattern)))

    def _of_runs(self, runs: _CodeRuns, code: Expr, part: int) -> _SaidAxis:
        """Return an axis of runs: a few cases, or a table of the cell of each distinct code."""
        from sqlglot import exp

        if len(runs.starts) <= MOST_CASES:
            return _SaidAxis(_cases(runs, code))
        values, name, cut = f"doublure_part_{part}", self._fresh("axis"), self._fresh("runs")
        if part not in self._distinct:
            distinct = sql.select(exp.column(f"c{part}").as_("code"), of=self._table.name).distinct()
            self._database.store(values, distinct)
            self._distinct.add(part)
        places = [*range(len(runs.starts))]
        self._database.insert(cut, {"start": runs.starts.tolist(), "place": places, "cell": runs.cells.tolist()})
        self._database.store(name, _looked_up(values, cut))
        self._database.run(f"DROP TABLE {cut}")
        return _SaidAxis(exp.column("cell", table=name), (name, exp.column("code", table=name).eq(code)))

    def _fresh(self, what: str) -> str:
        self._axes += 1
        return f"doublure_{what}_{self._axes}"


@dataclass(frozen=True)
class _SaidAxis:
    """An axis in SQL.

    Attributes:
        cell: The cell of a record.
        joined: The table that is joined for it, and on what condition.
    """

    cell: Expr
    joined: tuple[str, Expr] | None = None


def _cases(runs: _CodeRuns, code: Expr) -> Expr:
    pairs = zip(runs.starts[1:].tolist(), runs.cells[:-1].tolist(), strict=True)
    cases = [(code.copy() < sql.whole(end), sql.whole(cell)) for end, cell in pairs]
    last = sql.whole(int(runs.cells[-1]))
    return sql.case(*cases, otherwise=last) if cases else last


def _lattice(axis: Lattices, code: Expr) -> Expr:
    """Return the class of a whole number: the first of the nested steps that divides it; beyond 2^53 that of zero."""
    from sqlglot import exp

    cases = [] if axis.mark is None else [(code.copy() >= sql.real(axis.mark), sql.whole(len(axis.steps)))]
    beyond = sql.either(code.copy() > sql.whole(EXACT), code.copy() < sql.whole(-EXACT))
    cases.append((beyond, sql.whole(0)))
    for at, step in enumerate(axis.steps.tolist()):
        rest = exp.Mod(this=code.copy(), expression=sql.whole(int(step)))
        cases.append((exp.Paren(this=rest).eq(sql.whole(0)), sql.whole(at)))
    return sql.case(*cases, otherwise=sql.whole(len(axis.steps) - 1))


def _looked_up(values: str, cut: str) -> Any:
    """Return the statement that gives each distinct code the cell of the last run that begins before it."""
    from sqlglot import exp

    def column(name: str, of: str) -> Expr:
        return exp.column(name, table=of)

    begun = sql.select(
        exp.column("start").as_("code"), sql.whole(0).as_("sort"), exp.column("place").as_("place"), of=cut
    )
    asked = sql.select(
        sql.cast(exp.column("code"), "bigint").as_("code"), sql.whole(1).as_("sort"),
        sql.cast(sql.nothing(), "bigint").as_("place"), of=values)  # fmt: skip
    walked = _carried(begun, asked, order=("code", "sort"), value="place", kept=("code", "sort"))
    return (
        sql.select(column("code", "walked"), column("cell", cut), of=walked)
        .join(cut, on=column("place", cut).eq(column("place", "walked")), copy=False)
        .where(column("sort", "walked").eq(sql.whole(1)), copy=False)
    )


def _carried(begun: Any, asked: Any, *, order: tuple[str, ...], value: str, kept: tuple[str, ...]) -> Any:
    """Return the rows of two selections in order, each with the largest value so far: an interval's own, or its row's.

    Args:
        begun: Rows at which intervals begin.
        asked: Rows that fall in them, whose value is NULL.
        order: The columns in whose order they stand.
        value: The column of values, which ascend.
        kept: The columns that are kept beside it.
    """
    from sqlglot import exp

    last = exp.Window(
        this=exp.Max(this=exp.column(value)),
        order=exp.Order(expressions=[exp.Ordered(this=exp.column(name)) for name in order]),
        spec=exp.WindowSpec(kind="ROWS", start="UNBOUNDED", start_side="PRECEDING", end="CURRENT ROW"),
    )
    every = sql.nested(exp.union(begun, asked, distinct=False, copy=False), "both_kinds")
    return sql.nested(sql.select(*map(exp.column, kept), last.as_(value), of=every), "walked")


# -- facts -------------------------------------------------------------------------------------------------------------


class SqlFactPartitions(Partitions[Any]):
    """Canonical cells in a database, of which facts are learned.

    Args:
        database: In a transaction.
        table: The name of the table of cells.
        cells: The names of its columns.
        n_units: Number of units. Private.
        most_records: Largest number of records of a unit. Private.
    """

    def __init__(
        self, database: DatabaseSession, table: str, cells: CellsInSql, n_units: int, most_records: int
    ) -> None:
        self._database = database
        self._table = table
        self._cells = cells
        self._n_units = n_units
        self._most_records = most_records

    @override
    def refuse_unfit(self, query: Query[Any]) -> None:
        require_partitionable(query)
        query.refuse_unfit(PartitionFacts(0, self._most_records))

    @override
    def answers(self, query: Query[Any], *, sample_rate: float) -> Iterator[Answer]:
        require_everyone(sample_rate)
        yield Answer(total=self._total(query), sensitivity=query.sensitivity)

    def _total(self, query: Query[Any]) -> Any:
        if isinstance(query, Units):
            return np.array([self._n_units], dtype=np.int64)
        if isinstance(query, Missing):
            return self._missing(query.name)
        if isinstance(query, Bounds):
            return self._on_grid(query)
        if isinstance(query, (Categories, Shares)):
            holes = query.column.missing_texts[1:]
            labelled = [(name, count) for name, count in self._labelled(query) if name not in holes]
            return query.placed(labelled) if isinstance(query, Shares) else dict(labelled)
        raise SettingError(_NOT_COUNTED, field=type(query).__name__, remedy="declare the fact")

    def _missing(self, name: str) -> IntArray:
        from sqlglot import exp

        gone = sql.case((sql.is_null(exp.column(f"n{self._cells.places[name]}")), sql.whole(1)))
        rows = self._database.rows(sql.select(exp.Count(this=gone).as_("n"), of=self._table))
        return np.array([rows[0][0]], dtype=np.int64)

    def _labelled(self, query: Categories | Shares) -> list[tuple[str, int]]:
        """Return labels with their numbers of cells, in the order of the labels. Private."""
        from sqlglot import exp

        place = self._cells.places[query.name]
        by_label = query.name in self._cells.labelled
        key = exp.column(f"l{place}" if by_label else f"n{place}")
        rows = self._database.rows(
            sql.select(key, exp.Count(this=exp.Star()).as_("n"), of=self._table)
            .where(sql.no(sql.is_null(key)), copy=False)
            .group_by(key.copy(), copy=False)
        )
        names = None if by_label else [label(value) for value in query.column.domain]
        return sorted((str(found) if names is None else names[round(found)], int(count)) for found, count in rows)

    def _on_grid(self, query: Bounds) -> IntArray:
        """Return how many numbers fall in each cell of the grid: a point is one, and so is the gap after it."""
        from sqlglot import exp

        points, grid = query.grid.points.tolist(), "doublure_grid"
        begun_at = [point for point in points for _ in range(2)]
        sides = [2 * (at % 2) for at in range(len(begun_at))]
        self._database.insert(grid, {"place": begun_at, "sort": sides, "cell": [*range(len(begun_at))]})
        number = exp.column(f"n{self._cells.places[query.name]}")
        inside = sql.call("LEAST", sql.call("GREATEST", number, sql.real(points[0])), sql.real(points[-1]))
        found = (
            sql.select(inside.as_("place"), exp.Count(this=exp.Star()).as_("n"), of=self._table)
            .where(sql.no(sql.is_null(number)), copy=False)
            .group_by(inside.copy(), copy=False)
        )
        begun = sql.select(exp.column("place"), exp.column("sort"), exp.column("cell"), sql.whole(0).as_("n"), of=grid)
        asked = sql.select(
            exp.column("place"), sql.whole(1).as_("sort"), sql.cast(sql.nothing(), "bigint").as_("cell"),
            exp.column("n"), of=sql.nested(found, "found"))  # fmt: skip
        walked = _carried(begun, asked, order=("place", "sort"), value="cell", kept=("sort", "n"))
        counted = (
            sql.select(
                exp.column("cell"),
                sql.cast(exp.Sum(this=exp.column("n")), "bigint").as_("n"),
                of=walked,
            )
            .where(exp.column("sort").eq(sql.whole(1)), copy=False)
            .group_by(exp.column("cell"), copy=False)
        )
        counts = np.zeros(query.grid.cells, dtype=np.int64)
        for cell, count in self._database.rows(counted):
            if cell < len(counts):
                counts[cell] += count
        self._database.run(f"DROP TABLE {grid}")
        return counts


def rank_statement(table: str) -> Any:
    """Return the statement that counts units and finds the most records of one, of ranked records."""
    from sqlglot import exp

    first = sql.case((exp.column(RANK).eq(sql.whole(1)), sql.whole(1)))
    return sql.select(
        exp.Count(this=first).as_("units"),
        sql.call("COALESCE", exp.Max(this=exp.column(RANK)), sql.whole(0)).as_("most"),
        of=table,
    )
