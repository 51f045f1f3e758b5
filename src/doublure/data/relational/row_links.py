"""Rows that name others beside their parent: looked up within a unit where private rows are read, and chosen anew.

=============================================  =====================================================================
a private row names a row of its own unit      it counts with the named row's cells; of equal keys the first row has it
a private row names a row that its unit lacks  it counts as one that names none
a private row names a row of the root          it counts as one that names a row, and no other unit is looked at
=============================================  =====================================================================
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from doublure.schema.related_table import NAMES_A_ROW, RowLink
from doublure.schema.relational import RelationalSchema
from doublure.support.arrays import Ints
from doublure.support.frames import with_columns

NamedRows: TypeAlias = Mapping[str, Mapping[str, Ints]]
"""Table -> column -> ``(M,)`` the row that each names: its place among the unit's rows of its table, or the unit's
place in the sample; -1: none."""


def every_link(schema: RelationalSchema) -> Iterator[tuple[str, str, RowLink]]:
    """Yield each table with a column that names rows, that column, and its link."""
    for name, table in schema.tables.items():
        for own, link in (table.links or {}).items():
            yield name, own, link


# -- private rows ------------------------------------------------------------------------------------------------------


def look_up(
    frames: dict[str, pd.DataFrame],
    units: Mapping[str, Ints],
    keys: Mapping[str, pd.Series[Any]],
    labels: Mapping[tuple[str, str], pd.Series[Any]],
    schema: RelationalSchema,
) -> None:
    """Add to each row whether it names another, and what is looked up of that one.

    Args:
        frames: Table -> its rows.
        units: Table -> ``(M,)`` the unit of each row.
        keys: Table that is named -> ``(M,)`` the labels of its key.
        labels: Table and column -> ``(M,)`` the labels that name rows.
        schema: Of the tables.
    """
    for name, own, link in every_link(schema):
        label, named = labels[name, own], schema.tables[link.to].columns
        columns = link.columns_of(own, named)
        if link.to == schema.root:
            places = np.where(label.notna(), 0, -1)
        else:
            places = _rows_of_unit(units[name], label, units[link.to], keys[link.to])
        found = {own: columns[own].loaded_cells_of((places >= 0).astype(np.float64))}
        for mine, theirs in link.pairs(own) if link.looked_up else ():
            numbers = np.append(named[theirs].numbers_of(frames[link.to][theirs]), np.nan)
            found[mine] = columns[mine].loaded_cells_of(numbers[places])
        frames[name] = with_columns(frames[name], found)


def _rows_of_unit(unit: Ints, label: pd.Series[Any], units: Ints, keys: pd.Series[Any]) -> Ints:
    """Return the first row ``(M,)`` of a row's own unit that has the key that it names; -1: there is none."""
    index = pd.MultiIndex.from_arrays([units, keys.to_numpy()])
    first = np.flatnonzero(~index.duplicated() & keys.notna().to_numpy())
    asked = pd.MultiIndex.from_arrays([unit, label.to_numpy()])
    place = index[first].get_indexer(asked)
    return np.where((place >= 0) & label.notna().to_numpy(), np.append(first, -1)[place], -1).astype(np.int64)


# -- synthetic rows ----------------------------------------------------------------------------------------------------


def choose_rows(
    frames: Mapping[str, pd.DataFrame],
    units: Mapping[str, Ints],
    schema: RelationalSchema,
    before: int,
    rng: np.random.Generator,
) -> NamedRows:
    """Return the row that each row names: any one with the cells that it is to have.

    Args:
        frames: Table -> its rows.
        units: Table -> ``(M,)`` the unit of each row, ascending.
        schema: Of the tables.
        before: How many units of the sample come before them.
        rng: Public randomness.
    """
    found: dict[str, dict[str, Ints]] = {}
    for name, own, link in every_link(schema):
        rows, named = frames[name], frames[link.to]
        mine, theirs = np.zeros(len(rows), dtype=np.int64), np.zeros(len(named), dtype=np.int64)
        if link.to != schema.root:
            mine, theirs = units[name], units[link.to]
        groups = [(mine, theirs)]
        for column, its in link.pairs(own):
            groups.append(_split(*groups[-1], rows[column], named[its]))
        names = NAMES_A_ROW.numbers_of(rows[own]) > 0
        ranks = np.zeros(len(named), dtype=np.int64)
        if link.acyclic:  # each names one that stands before it; without an order, those that name none stand first
            later = names & (schema.tables[name].order is None)
            ranks[np.argsort(later, kind="stable")] = np.arange(len(names))
        places = np.full(len(rows), -1, dtype=np.int64)
        for own_group, its_group in reversed(groups):
            left = np.flatnonzero(names & (places < 0))
            itself = left if link.to == name else None
            most = ranks[left] if link.acyclic else np.full(len(left), 1, dtype=np.int64)
            places[left] = _drawn(own_group[left], its_group, ranks, most, itself, rng)
        begins = _begins(link, name, units, schema, before)
        found.setdefault(name, {})[own] = np.where(places < 0, -1, places - begins)
    return found


def rows_named(
    places: Ints, link: RowLink, name: str, units: Mapping[str, Ints], schema: RelationalSchema, before: int
) -> Ints:
    """Return which row of the table that a link is to each row names, -1: none.

    Args:
        places: ``(M,)`` as chosen.
        link: The link.
        name: The table of the rows.
        units: Table -> ``(M,)`` the unit of each row, ascending.
        schema: Of the tables.
        before: How many units of the sample come before them.
    """
    return np.where(places < 0, -1, places + _begins(link, name, units, schema, before))


def _begins(
    link: RowLink, name: str, units: Mapping[str, Ints], schema: RelationalSchema, before: int
) -> Ints | np.int64:
    """Return where the rows that a row may name are counted from: its unit's first one, or the sample's."""
    return np.int64(-before) if link.to == schema.root else np.searchsorted(units[link.to], units[name])


def _split(mine: Ints, theirs: Ints, own: pd.Series[Any], its: pd.Series[Any]) -> tuple[Ints, Ints]:
    """Return groups ``(M,)`` and ``(K,)`` of rows, split by equal cells."""
    cells, _ = pd.factorize(np.concatenate([own.astype(object), its.astype(object)]), use_na_sentinel=True)
    both = np.concatenate([mine, theirs]) * (len(cells) + 1) + cells + 1
    groups, _ = pd.factorize(both)
    return groups[: len(mine)].astype(np.int64), groups[len(mine) :].astype(np.int64)


def _drawn(group: Ints, groups: Ints, ranks: Ints, most: Ints, itself: Ints | None, rng: np.random.Generator) -> Ints:
    """Return a row of each row's own group below a rank, but not itself; -1: there is none.

    Args:
        group: ``(m,)`` the group of each row.
        groups: ``(K,)`` the group of each row that may be named.
        ranks: ``(K,)`` their ranks.
        most: ``(m,)`` the rank below which rows may be named.
        itself: ``(m,)`` the place of each row among those; None: it is none of them.
        rng: Public randomness.
    """
    by = np.lexsort((ranks, groups))
    span = int(ranks.max(initial=0)) + 1
    order = groups[by] * span + ranks[by]
    first, last = np.searchsorted(order, group * span), np.searchsorted(order, group * span + most)
    own, inside = np.full(len(group), -1), np.zeros(len(group), dtype=np.int64)
    if itself is not None:
        own = np.argsort(by)[itself]
        inside = ((first <= own) & (own < last)).astype(np.int64)
    many = last - first - inside
    place = first + np.floor(rng.random(len(group)) * many).astype(np.int64)
    place += (inside > 0) & (place >= own)
    return np.where(many > 0, by[np.minimum(place, len(by) - 1)] if len(by) else -1, -1).astype(np.int64)
