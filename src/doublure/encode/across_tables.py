"""Public constraints across related tables, kept by every unit that is decoded (post-processing: free).

All ``at_most`` within tables and across them are one order of each unit's numbers. These are lowered to leave room for
all that lies above, then raised to what lies below. A number that is raised takes along what is measured from it: a
stay that begins later also ends later. Other rules within a table are kept again, in turns. A unit that still breaks a
rule becomes another of those that are drawn. Sums are added up, and columns computed, last.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from doublure.data.relational.records import RelatedRows
from doublure.data.tables import rules
from doublure.encode.differences import gaps_of
from doublure.errors import InputError
from doublure.schema import ResolvedSchema
from doublure.schema.columns import Column
from doublure.schema.missing_states import keep_holes
from doublure.schema.related_constraints import JoinedRule, across_calendars, across_tables, table_of
from doublure.schema.relational import ResolvedRelationalSchema
from doublure.schema.rules.at_most import compared_pairs
from doublure.schema.rules.calendar_order import comparable, first_at_least, last_at_most
from doublure.schema.rules.rule_set import TURNS, RuleSet
from doublure.support import lattices
from doublure.support.arrays import Floats, Ints
from doublure.support.frames import with_columns

if TYPE_CHECKING:
    from doublure.support.arrays import Mask


@dataclass(frozen=True, kw_only=True)
class _OrderedPair:
    """One column that is at most another.

    Attributes:
        low: The lower one, as ``table.column``.
        high: The higher one.
        columns: The facts of both.
        above: ``(M,)`` the place of each row's parent, where the two are of two tables.
        down: Whether the higher one is the child's.
        period: Where the higher one is measured from the lower: the integers of a day, or 1; else 0.
    """

    low: str
    high: str
    columns: tuple[Column, Column]
    above: Ints | None
    down: bool
    period: float

    def floors(self, low: Floats, rows: int) -> Floats:
        """Return the least ``(rows,)`` numbers of the higher column."""
        first, high = self.columns
        own = _on_grid(first_at_least(first, high, low), high, np.ceil) if comparable(first, high) else low
        return self._moved(own, rows, np.fmax, to_child=self.down)

    def ceilings(self, high: Floats, rows: int) -> Floats:
        """Return the largest ``(rows,)`` numbers of the lower column."""
        low, last = self.columns
        own = _on_grid(last_at_most(low, last, high), low, np.floor) if comparable(low, last) else high
        return self._moved(own, rows, np.fmin, to_child=not self.down)

    def _moved(self, own: Floats, rows: int, nearest: np.ufunc, *, to_child: bool) -> Floats:
        """Return what the rows of one table say of those of the other."""
        if self.above is None:
            return own
        if to_child:
            return own[self.above]
        found = np.full(rows, np.nan)
        nearest.at(found, self.above, own)
        return found


def keep(
    frames: dict[str, pd.DataFrame],
    parents: Mapping[str, Ints],
    schema: ResolvedRelationalSchema,
    rng: np.random.Generator | None = None,
) -> None:
    """Change the frames so that every rule across tables holds, but for units that :func:`lent` replaces.

    Args:
        frames: Table -> its rows.
        parents: Child table -> ``(M,)`` the place of each row's parent.
        schema: Every fact known.
        rng: Lets rows that break a rule draw cells from others.
    """
    level = {name: len(schema.above(name)) for name in schema.tables}
    steps = tuple(_steps(schema, parents))
    for _ in range(TURNS if steps else 0):
        for name, values in _ordered(frames, steps, schema).items():
            _write(frames, name, values, schema)
        again = [name for name in schema.tables if _broken_within(frames[name], name, schema).any()]
        for name in again:
            frames[name] = rules.keep(frames[name], ResolvedSchema.of(schema.modelled(name)), rng)
        if not again:
            break
    for total, of in sorted(schema.sums.items(), key=lambda each: -level[table_of(each[0])]):  # sums of sums
        _add_up(frames, total, of, parents[table_of(of)], schema)
    for each in schema.joined_rules:
        _compute(frames, each, parents[table_of(each.of)], schema)
    for name in {table_of(each) for each in schema.follows}:
        table, counted = schema.tables[name], schema.modelled(name).columns
        names = dict.fromkeys((*(own for own in table.columns if own not in (table.links or {})), *counted))
        frames[name] = frames[name][[own for own in names if own in frames[name]]]


def may_lend(schema: ResolvedRelationalSchema) -> bool:
    """Return whether rows may take cells of others, or units become others, to keep the rules of a table."""
    every = {name: schema.modelled(name) for name in schema.tables}
    return any(not rule.joint for each in every.values() for rule in RuleSet(each.constraints, each.columns).kept)


def lent(units: RelatedRows, schema: ResolvedRelationalSchema, rng: np.random.Generator | None) -> RelatedRows:
    """Return the units, each of which keeps all rules; one that breaks any becomes another, with its conditions.

    Args:
        units: As they were drawn and mended.
        schema: Every fact known.
        rng: Chooses the other; without it the first one is taken.

    Raises:
        InputError: No unit keeps the rules that has the same conditions.
    """
    off = _broken(units, schema)
    if not off.any():
        return units
    root = schema.root
    told = units.frames[root][[own for own, each in schema.tables[root].columns.items() if "condition" in each.roles]]
    alike = told.groupby([*told], observed=True, dropna=False).ngroup().to_numpy() if len(told.columns) else 0 * off
    taken = np.arange(len(units))
    for one in np.unique(alike[off]):
        own, others = off & (alike == one), np.flatnonzero(~off & (alike == one))
        if not len(others):
            remedy = "draw more rows, or remove a rule that few rows can keep"
            raise InputError("cannot be kept by all units that are drawn", field="constraints", remedy=remedy)
        taken[own] = others[:1] if rng is None else rng.choice(others, own.sum())
    return units.take(taken)


def _broken(units: RelatedRows, schema: ResolvedRelationalSchema) -> Mask:
    """Return which units break a rule ``(N,)``."""
    found = np.zeros(len(units), dtype=np.bool_)
    steps = tuple(_steps(schema, {name: units.hang_on(name) for name in schema.children}))
    if not steps:
        return found  # each row was mended with its table
    off = {name: _broken_within(frame, name, schema) for name, frame in units.frames.items()}
    for name, values in _ordered(units.frames, steps, schema).items():
        off[table_of(name)] |= np.nan_to_num(values - _read(units.frames, name, schema)) != 0
    for name, rows in off.items():
        found[np.flatnonzero(rows) if name == schema.root else units.parents[name][rows]] = True
    return found


def _broken_within(frame: pd.DataFrame, name: str, schema: ResolvedRelationalSchema) -> Mask:
    """Return which rows break a rule of their own table ``(M,)``."""
    table = schema.modelled(name)
    own = RuleSet(table.constraints, table.columns)
    if not own.names:
        return np.zeros(len(frame), dtype=np.bool_)
    return own.broken(rules.snapped_numbers(frame, table.columns, own.names))


def _steps(schema: ResolvedRelationalSchema, parents: Mapping[str, Ints]) -> Iterator[_OrderedPair]:
    """Yield all pairs of columns in order, within tables and across them; none where no rule is across."""
    known, every = schema.columns, schema.constraints
    across = (*across_tables(every, known), *across_calendars(every, known))
    for low, high in across:
        one, other = table_of(low), table_of(high)
        down = schema.tables[other].parent == one
        yield _OrderedPair(
            low=low, high=high, columns=(known[low], known[high]), above=parents[other if down else one], down=down,
            period=0,
        )  # fmt: skip
    for name in schema.tables if across else ():
        table = ResolvedSchema.of(schema.modelled(name))
        gaps = gaps_of(table, "steps", 1)
        for low, high in compared_pairs(table.constraints, table.columns):
            measured = high in gaps and gaps[high].first == low
            yield _OrderedPair(
                low=f"{name}.{low}", high=f"{name}.{high}", columns=(table.columns[low], table.columns[high]),
                above=None, down=False, period=gaps[high].period if measured else 0,
            )  # fmt: skip


def _ordered(
    frames: Mapping[str, pd.DataFrame], steps: Sequence[_OrderedPair], schema: ResolvedRelationalSchema
) -> dict[str, Floats]:
    """Return the columns whose cells have to change to be in order, as they become.

    A missing cell passes on what is asked of its neighbours.
    """
    names = dict.fromkeys(name for step in steps for name in (step.low, step.high))
    cells = {name: _read(frames, name, schema) for name in names}
    most = {name: np.where(np.isnan(own), np.nan, schema.columns[name].limits[1]) for name, own in cells.items()}
    for _ in steps:  # as long as the longest chain at most
        if not any(
            [_met(most, step.low, step.ceilings(most[step.high], len(most[step.low])), np.fmin) for step in steps]
        ):
            break
    begun = {name: keep_holes(np.fmin(own, most[name]), own) for name, own in cells.items()}
    reached = {name: own.copy() for name, own in begun.items()}
    for _ in steps:
        moved = [_raise(begun, reached, most, step) for step in steps]
        if not any(moved):
            break
    found = {name: keep_holes(reached[name], own) for name, own in cells.items()}
    return {name: own for name, own in found.items() if not np.array_equal(own, cells[name], equal_nan=True)}


def _raise(
    begun: Mapping[str, Floats], reached: dict[str, Floats], most: Mapping[str, Floats], step: _OrderedPair
) -> bool:
    """Raise the higher column of a step, as far apart as it was or as the room allows, and return whether it moved."""
    low, high = reached[step.low], begun[step.high]
    least = step.floors(low, len(high))
    if step.period:
        before = begun[step.low]
        apart = lattices.above(lattices.gaps(high, before, step.period), low, step.period)
        end = most[step.high]
        share = (high - before) / np.maximum(end - before, np.finfo(float).tiny)  # of the room that was left
        within = low + _on_grid(share * (end - low), step.columns[1], np.floor)
        along = (low > before) & (high >= before)
        least = np.where(along, np.where(apart <= end, apart, within), least)
    return _met(reached, step.high, least, np.fmax)


def _met(numbers: dict[str, Floats], name: str, ends: Floats, nearest: np.ufunc) -> bool:
    """Bring a column's numbers to the end that they have to meet, and return whether any moved."""
    found = nearest(numbers[name], ends)
    moved = not np.array_equal(found, numbers[name], equal_nan=True)
    numbers[name] = found
    return moved


def _on_grid(numbers: Floats, column: Column, nearest: np.ufunc) -> Floats:
    unit = column.unit
    found: Floats = nearest(numbers / unit) * unit if unit else numbers
    return found


def _add_up(
    frames: dict[str, pd.DataFrame], total: str, of: str, parents: Ints, schema: ResolvedRelationalSchema
) -> None:
    unit = schema.columns[of].unit
    cells = _read(frames, of, schema)
    if unit:  # in whole steps, so that tenths add up to whole ones
        cells = np.rint(cells / unit)
    sums = np.bincount(parents, cells, len(frames[table_of(total)])).astype(np.float64)
    _write(frames, total, sums * unit if unit else sums, schema)


def _compute(
    frames: dict[str, pd.DataFrame], joined: JoinedRule, parents: Ints, schema: ResolvedRelationalSchema
) -> None:
    """Fill a column of a child table that follows from its own row and its parent's."""
    numbers, own = {}, table_of(joined.of)
    for name in joined.rule.operands:
        place = joined.places[name]
        cells = _read(frames, place, schema)
        numbers[name] = cells if table_of(place) == own else cells[parents]
    (derived,) = joined.rule.derivations(joined.columns(schema.columns))
    _write(frames, joined.of, derived.follow(*(numbers[name] for name in derived.sources)), schema)


def _read(frames: Mapping[str, pd.DataFrame], name: str, schema: ResolvedRelationalSchema) -> Floats:
    table, _, own = name.partition(".")
    return schema.columns[name].kept_numbers(frames[table][own])


def _write(frames: dict[str, pd.DataFrame], name: str, values: Floats, schema: ResolvedRelationalSchema) -> None:
    table, _, own = name.partition(".")
    cells: pd.Series[Any] = schema.columns[name].kept_cells(values)
    frames[table] = with_columns(frames[table], {own: cells})
