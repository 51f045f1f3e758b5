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
an axis of many intervals                       codes fall in buckets of one width, whose cells are joined
a query that is no count                        is refused before anything is asked
==============================================  ===================================================================
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from typing_extensions import override

from doublure.data.databases.reading import RANK
from doublure.errors import SettingError
from doublure.private.partitions import CompositeQuery, Partitions, require_partitionable
from doublure.private.queries.axes import (
    LARGEST_CODE,
    AnyAxis,
    Intervals,
    Lattices,
    LinearIdentity,
    Patterns,
    PeriodParts,
    Table,
)
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

CELLS_AT_ONCE = 2**18
"""Cells of the tables of one statement, which are held at the same time: some 16 MB. An axis is computed once in it."""
_DENSE = 2**17
"""Of a part with so many codes, each is mapped here: about a megabyte."""
_FEW = 4
"""Runs of an axis that are told apart by conditions: from here on a join is quicker, at some 5 ns a record."""
_BUCKETS, _MOST_BUCKETS = 2**14, 2**18
"""Buckets that a part's codes fall in, and more where many cuts are close together: a table of some megabytes."""
_CUTS, _MOST_CUTS = 2, 16
"""Cuts within a bucket, which are compared one by one: as many are wanted at most, and are taken at most."""
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
        parts: The place of each part among its columns; None: as they stand.
        least: The place of a column, and the least code there of a record that counts; None: all count.
    """

    name: str
    domains: Sequence[tuple[int, int]]
    most_records: int
    parts: Sequence[int] | None = None
    least: tuple[int, float] | None = None

    def code(self, part: int) -> Expr:
        """Return the column of a part."""
        from sqlglot import exp

        return exp.column(f"c{part if self.parts is None else self.parts[part]}", table=self.name)


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


@dataclass(frozen=True)
class _CodeBuckets:
    """Codes in buckets of one width, with the runs that begin within each.

    Attributes:
        width: Codes in a bucket.
        runs: The runs.
        first: ``(buckets,)`` the run at the begin of each.
        last: ``(buckets,)`` the run at its end.
    """

    width: int
    runs: _CodeRuns
    first: IntArray
    last: IntArray

    @classmethod
    def of(cls, runs: _CodeRuns, first: int, last: int) -> _CodeBuckets:
        """Return the buckets of codes from the first to the last."""
        width = 1
        while (last - first) // width >= _BUCKETS:
            width *= 2
        while True:
            begun = np.arange(first, last + 1, width, dtype=np.int64)
            at = (np.searchsorted(runs.starts, ends, side="right") - 1 for ends in (begun, begun + (width - 1)))
            found = cls(width, runs, *at)
            if width == 1 or found.deepest <= _CUTS or 2 * len(begun) > _MOST_BUCKETS:
                return found
            width //= 2

    @property
    def deepest(self) -> int:
        """The most cuts within a bucket."""
        return int((self.last - self.first).max())

    def columns(self) -> dict[str, list[int]]:
        """Return the table: each bucket's first cell, and of each cut where it is and the cell from it on."""
        found = {"bucket": [*range(len(self.first))], "cell0": self.runs.cells[self.first].tolist()}
        for cut in range(1, self.deepest + 1):
            run = np.minimum(self.first + cut, self.last)
            begun = np.where(self.first + cut <= self.last, self.runs.starts[run], -_BELOW)
            found |= {f"cut{cut}": begun.tolist(), f"cell{cut}": self.runs.cells[run].tolist()}
        return found


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
        self._axes = 0

    @override
    def having(self, part: int, least: float, parts: IntArray, domains: Sequence[tuple[int, int]]) -> SqlPartitions:
        if self._table.most_records > 1:
            raise TypeError("records of one unit would count as several units")
        table = replace(self._table, parts=parts.tolist(), domains=domains, least=(part, least))
        return SqlPartitions(self._database, table, self._check)

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
        found = dict[int, IntArray]()
        for asked in _batches(different, self._database.sets_at_once):
            self._check()
            counted = self._counted([*asked.values()], said)
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
        if self._table.least is not None:
            part, least = self._table.least
            found = found.where(exp.column(f"c{part}", table=self._table.name) >= sql.real(least), copy=False)
        for key in axes:
            if (joined := said[key].joined) is not None:
                join = exp.Join(this=exp.to_table(joined[0]), on=joined[1].copy(), method=said[key].method)
                found.append("joins", join)
        if self._database.words.dialect == "postgres":  # a cell is computed once, for all tables
            found = found.offset(0, copy=False)
        places = [
            reduce(lambda place, axis: place * sql.whole(axis.size) + exp.column(named[id(axis)]), table, _zero())
            for table in tables
        ]
        rows = self._database.rows(_by_sets(places, found))
        counts = [np.zeros(_count_cells(table), dtype=np.int64) for table in tables]
        for at, cell, count in rows:
            counts[at][cell] += count
        return counts

    # -- axes ------------------------------------------------------------------------------------------------------

    def _said(self, axis: AnyAxis) -> _SaidAxis:

        if isinstance(axis, Patterns):
            return self._pattern(axis)
        if isinstance(axis, LinearIdentity):
            return self._identity(axis)
        part: int = axis.part  # type: ignore[attr-defined]  # of all others
        code = sql.cast(self._table.code(part), "bigint")  # sums would pass a narrower type
        if isinstance(axis, PeriodParts):
            return _SaidAxis(_period(axis, code))
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
            reached = self._table.code(part) >= sql.real(mark)
            pattern = pattern + sql.case((reached, sql.whole(1 << place)), otherwise=sql.whole(0))
        runs = _CodeRuns.of(np.arange(len(axis.cells)), axis.cells)
        if len(runs.starts) <= MOST_CASES:
            return _SaidAxis(_cases(runs, exp.Paren(this=pattern)))
        name = self._fresh("axis")
        self._database.insert(name, {"code": [*range(len(axis.cells))], "cell": axis.cells.tolist()})
        return _SaidAxis(exp.column("cell", table=name), (name, exp.column("code", table=name).eq(pattern)))

    def _identity(self, axis: LinearIdentity) -> _SaidAxis:
        """Return the axis of a weighted sum: whether it is zero, is not, or has a missing term."""
        from sqlglot import exp

        total: Expr = sql.whole(0)
        gone: list[Expr] = []
        for part, weight, mark in zip(axis.parts, axis.weights, axis.marks, strict=True):
            code = sql.cast(self._table.code(part), "bigint")
            gone.append(code.copy() >= sql.whole(mark))
            beyond = sql.either(code.copy() > sql.whole(LARGEST_CODE), code.copy() < sql.whole(-LARGEST_CODE))
            own = sql.case((beyond, sql.whole(0)), otherwise=code)
            total = total + exp.Paren(this=sql.whole(abs(weight)) * own) * sql.whole(1 if weight > 0 else -1)
        off = exp.Paren(this=total)
        kept = sql.both(off.copy() <= sql.whole(axis.slack), off >= sql.whole(-axis.slack))
        return _SaidAxis(sql.case((sql.either(*gone), sql.whole(2)), (kept, sql.whole(0)), otherwise=sql.whole(1)))

    def _of_runs(self, runs: _CodeRuns, code: Expr, part: int) -> _SaidAxis:
        """Return an axis of runs: a few cases, the engine's own search, or a table of what each bucket of codes has."""
        from sqlglot import exp

        if len(runs.starts) <= _FEW:
            return _SaidAxis(_cases(runs, code))
        said = self._database.words().sought(code, runs.starts[1:].tolist(), runs.cells.tolist())
        if said is not None:
            return _SaidAxis(said)
        first, last = self._table.domains[part]
        buckets = _CodeBuckets.of(runs, first, last)
        name = self._fresh("axis")
        if buckets.deepest > _MOST_CUTS:
            self._database.insert(name, {"start": runs.starts.tolist(), "cell": runs.cells.tolist()})
            begun = code >= exp.column("start", table=name)
            return _SaidAxis(exp.column("cell", table=name), (name, begun), method="ASOF")
        self._database.insert(name, buckets.columns())
        cell, cuts = exp.column("cell0", table=name), range(1, buckets.deepest + 1)
        if cuts:
            below = [
                (code < exp.column(f"cut{at}", table=name), exp.column(f"cell{at - 1}", table=name)) for at in cuts
            ]
            cell = sql.case(*below, otherwise=exp.column(f"cell{buckets.deepest}", table=name))
        bucket = exp.Paren(this=code.copy() - sql.whole(first)) if first else code.copy()
        if buckets.width > 1:
            bucket = exp.IntDiv(this=bucket, expression=sql.whole(buckets.width))
        return _SaidAxis(cell, (name, exp.column("bucket", table=name).eq(bucket)))

    def _fresh(self, what: str) -> str:
        self._axes += 1
        return f"doublure_{what}_{self._axes}"


@dataclass(frozen=True)
class _SaidAxis:
    """An axis in SQL.

    Attributes:
        cell: The cell of a record.
        joined: The table that is joined for it, and on what condition.
        method: The kind of join: ``ASOF`` takes the last row on which the condition holds.
    """

    cell: Expr
    joined: tuple[str, Expr] | None = None
    method: str | None = None


def _by_sets(places: Sequence[Expr], cells: Any) -> Any:
    """Return the statement that counts all tables in one pass over the cells of records.

    Args:
        places: Of each table the place of a record in it.
        cells: The statement that gives a record's cell on each axis.
    """
    from sqlglot import exp

    names = [f"k{number}" for number in range(len(places))]
    placed = exp.select(*(place.as_(name) for place, name in zip(places, names, strict=True)), copy=False)
    placed = placed.from_(sql.nested(cells, "found"), copy=False)
    columns = [exp.column(name) for name in names]
    sets = exp.GroupingSets(expressions=[exp.Tuple(expressions=[column.copy()]) for column in columns])
    grouped = sql.select(*columns, exp.Count(this=exp.Star()).as_("n"), of=sql.nested(placed, "placed"))
    grouped.set("group", exp.Group(grouping_sets=[sets]))
    which = sql.case(*((sql.no(sql.is_null(column)), sql.whole(at)) for at, column in enumerate(columns)))
    where = sql.call("COALESCE", *columns, sql.whole(0))
    return sql.select(which.as_("t"), where.as_("k"), exp.column("n"), of=sql.nested(grouped, "grouped"))


def _zero() -> Expr:
    return sql.cast(sql.whole(0), "bigint")


def _batches(tables: Mapping[int, Table], most: int | None) -> Iterator[dict[int, Table]]:
    """Yield tables in turn, as many together as have so many cells, and no more than the engine counts well."""
    batch, cells = dict[int, Table](), 0
    for key, table in tables.items():
        own = _count_cells(table)
        if batch and (cells + own > CELLS_AT_ONCE or len(batch) == most):
            yield batch
            batch, cells = {}, 0
        batch[key] = table
        cells += own
    if batch:
        yield batch


def _count_cells(table: Table) -> int:
    return math.prod(axis.size for axis in table)


def _cases(runs: _CodeRuns, code: Expr) -> Expr:
    """Return the cell of a code by conditions, each of which halves the runs that are left."""
    if len(runs.starts) == 1:
        return sql.whole(int(runs.cells[0]))
    half = len(runs.starts) // 2
    below, above = (_CodeRuns(runs.starts[part], runs.cells[part]) for part in (slice(half), slice(half, None)))
    return sql.case((code.copy() < sql.whole(int(above.starts[0])), _cases(below, code)), otherwise=_cases(above, code))


def _lattice(axis: Lattices, code: Expr) -> Expr:
    """Return the class of a whole number: the first of the nested steps that divides it; beyond 2^53 that of zero."""
    from sqlglot import exp

    cases = _odd_cases(axis, code, len(axis.steps))
    for at, step in enumerate(axis.steps.tolist()):
        rest = exp.Mod(this=code.copy(), expression=sql.whole(int(step)))
        cases.append((exp.Paren(this=rest).eq(sql.whole(0)), sql.whole(at)))
    return sql.case(*cases, otherwise=sql.whole(len(axis.steps) - 1))


def _period(axis: PeriodParts, code: Expr) -> Expr:
    """Return the part of its period in which a whole number lies; beyond 2^53 that of zero."""
    from sqlglot import exp

    period = sql.whole(axis.period)
    rest = exp.Paren(this=exp.Mod(this=code.copy(), expression=period))  # of a negative number negative, or none
    again = exp.Paren(this=exp.Mod(this=exp.Paren(this=rest + period.copy()), expression=period.copy()))
    starts = np.arange(axis.parts, dtype=np.int64) * (axis.period // axis.parts)
    return sql.case(
        *_odd_cases(axis, code, axis.parts), otherwise=_cases(_CodeRuns.of(starts, np.arange(axis.parts)), again)
    )


def _odd_cases(axis: Lattices | PeriodParts, code: Expr, missing: int) -> list[tuple[Expr, Expr]]:
    """Return the cases of a missing value, which has this cell, and of whole numbers beyond 2^53."""
    cases = [] if axis.mark is None else [(code.copy() >= sql.real(axis.mark), sql.whole(missing))]
    beyond = sql.either(code.copy() > sql.whole(EXACT), code.copy() < sql.whole(-EXACT))
    return [*cases, (beyond, sql.whole(0))]


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


@dataclass(frozen=True, kw_only=True)
class FactColumn:
    """A column of canonical cells in a database.

    Attributes:
        table: The name of the table that has them.
        cells: The names of its columns.
        name: The column's name there.
    """

    table: str
    cells: CellsInSql
    name: str

    @property
    def number(self) -> Expr:
        """The number of a cell."""
        from sqlglot import exp

        return exp.column(f"n{self.cells.places[self.name]}")

    @property
    def label(self) -> Expr | None:
        """The label of a cell, where the list of labels is to be learned."""
        from sqlglot import exp

        labelled = self.name in self.cells.labelled
        return exp.column(f"l{self.cells.places[self.name]}") if labelled else None


class SqlFactPartitions(Partitions[Any]):
    """Canonical cells in a database, of which facts are learned.

    Args:
        database: In a transaction.
        columns: The columns by the names that questions have for them.
        n_units: Number of units. Private.
        most_records: Largest number of records of a unit. Private.
    """

    def __init__(
        self, database: DatabaseSession, columns: Mapping[str, FactColumn], n_units: int, most_records: int
    ) -> None:
        self._database = database
        self._columns = columns
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

        own = self._columns[name]
        gone = sql.case((sql.is_null(own.number), sql.whole(1)))
        rows = self._database.rows(sql.select(exp.Count(this=gone).as_("n"), of=own.table))
        return np.array([rows[0][0]], dtype=np.int64)

    def _labelled(self, query: Categories | Shares) -> list[tuple[str, int]]:
        """Return labels with their numbers of cells, in the order of the labels. Private."""
        from sqlglot import exp

        own = self._columns[query.name]
        key, by_label = (own.number, False) if own.label is None else (own.label, True)
        rows = self._database.rows(
            sql.select(key, exp.Count(this=exp.Star()).as_("n"), of=own.table)
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
        own = self._columns[query.name]
        number = own.number
        inside = sql.call("LEAST", sql.call("GREATEST", number, sql.real(points[0])), sql.real(points[-1]))
        found = (
            sql.select(inside.as_("place"), exp.Count(this=exp.Star()).as_("n"), of=own.table)
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
