"""Public constraints across related tables, kept by every unit that is decoded (post-processing: free).

A column of a parent that is below one of a child raises that one, from the root down; where a child's is below its
parent's, the parent's is raised to the highest of its children's, up to the root. What that leaves out of the bounds
gives way on the other side. Rules within a table are kept again afterwards; sums are added up, and columns computed,
last.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from doublure.data.tables import rules
from doublure.encode.columns import Floats
from doublure.encode.pairwise_swapping import Ints
from doublure.schema import ResolvedSchema
from doublure.schema.missing_states import keep_holes
from doublure.schema.related_constraints import JoinedRule, across_calendars, across_tables, table_of
from doublure.schema.relational import ResolvedRelationalSchema
from doublure.schema.rules.calendar_order import comparable, first_at_least, last_at_most


def keep(frames: dict[str, pd.DataFrame], parents: Mapping[str, Ints], schema: ResolvedRelationalSchema) -> None:
    """Change the frames so that every rule across tables holds.

    Args:
        frames: Table -> its rows.
        parents: Child table -> ``(M,)`` the place of each row's parent.
        schema: Every fact known.
    """
    rules_of, known, level = (
        schema.constraints,
        schema.columns,
        {name: len(schema.above(name)) for name in schema.tables},
    )
    found = (*across_tables(rules_of, known), *across_calendars(rules_of, known))
    pairs = sorted(found, key=lambda pair: min(level[table_of(name)] for name in pair))
    down = {pair for pair in pairs if level[table_of(pair[0])] < level[table_of(pair[1])]}
    for low, high in pairs:
        child = table_of(high if (low, high) in down else low)
        ceiling = _highest(low, high, schema)
        _lower(frames, low, ceiling, parents[child], schema, all_rows=table_of(low) == child)
        if (low, high) in down:
            floor = _as_high(frames, low, high, schema)[parents[child]]
            cells = _read(frames, high, schema)
            _write(frames, high, keep_holes(np.fmax(cells, floor), cells), schema)
    _keep_within(frames, {table_of(high) for _, high in down}, schema)
    for low, high in reversed(pairs):
        if (low, high) not in down:
            reached = np.full(len(frames[table_of(high)]), -np.inf)
            cells = _as_high(frames, low, high, schema)
            np.maximum.at(reached, parents[table_of(low)], np.where(np.isnan(cells), -np.inf, cells))
            own = _read(frames, high, schema)
            _write(frames, high, keep_holes(np.maximum(own, reached), own), schema)
    _keep_within(frames, {table_of(high) for low, high in pairs if (low, high) not in down}, schema)
    for total, of in sorted(schema.sums.items(), key=lambda each: -level[table_of(each[0])]):  # sums of sums
        _add_up(frames, total, of, parents[table_of(of)], schema)
    for each in schema.joined_rules:
        _compute(frames, each, parents[table_of(each.of)], schema)
    for name in {table_of(each) for each in schema.follows}:
        table, counted = schema.tables[name], schema.modelled(name).columns
        names = dict.fromkeys((*(own for own in table.columns if own not in (table.links or {})), *counted))
        frames[name] = frames[name][[own for own in names if own in frames[name]]]


def _keep_within(frames: dict[str, pd.DataFrame], names: set[str], schema: ResolvedRelationalSchema) -> None:
    """Keep the rules within some tables again."""
    for name in names:
        frames[name] = rules.keep(frames[name], ResolvedSchema.of(schema.modelled(name)))


def _lower(
    frames: dict[str, pd.DataFrame],
    name: str,
    ceiling: float,
    parents: Ints,
    schema: ResolvedRelationalSchema,
    *,
    all_rows: bool,
) -> None:
    """Lower what lies above all that the other side can be, where there is another side."""
    cells = _read(frames, name, schema)
    about = np.ones(len(cells), dtype=np.bool_)
    if not all_rows:
        about = np.bincount(parents, minlength=len(cells)) > 0
    if (cells[about] > ceiling).any():
        _write(frames, name, keep_holes(np.where(about, np.fmin(cells, ceiling), cells), cells), schema)


def _highest(low: str, high: str, schema: ResolvedRelationalSchema) -> float:
    """Return the highest number of the lower column that the higher one can be at least."""
    lower, higher = schema.columns[low], schema.columns[high]
    last = higher.known_grid[1]
    return float(last_at_most(lower, higher, np.array([last]))[0]) if comparable(lower, higher) else last


def _as_high(frames: Mapping[str, pd.DataFrame], low: str, high: str, schema: ResolvedRelationalSchema) -> Floats:
    """Return the cells of the lower column as numbers that the higher one must reach."""
    lower, higher, cells = schema.columns[low], schema.columns[high], _read(frames, low, schema)
    return first_at_least(lower, higher, cells) if comparable(lower, higher) else cells


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
    frames[table] = frames[table].assign(**{own: cells})
