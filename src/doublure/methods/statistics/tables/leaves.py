"""A column's leaves, its finest cells, with their masses and groups.

A leaf is a run of whole numbers (:mod:`doublure.encode.table_values`), often a single value. The leaves follow from
released counts; within a leaf, values are drawn uniformly. Leaves are joined into groups three times: for counts of one
column, coarser for pairs, and finer for the tree's pairs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from doublure.private.queries.axes import Intervals
from doublure.schema.columns import IntegerDomain

Floats: TypeAlias = npt.NDArray[Any]
Ints: TypeAlias = npt.NDArray[np.int64]

_TINY = 1e-12


@dataclass(kw_only=True, eq=False)
class ColumnLeaves:
    """A column's leaves and their current masses.

    Attributes:
        domain: The integers that stand for its values.
        part: Its place in a compact record.
        starts: ``(n,)`` first value of each leaf.
        mass: ``(n + kinds,)`` estimated rows of each leaf, the kinds of missing cells last.
        cells: First values of the public cells in which rows were located.
        empty: ``(n,)`` 0 where rows were found; elsewhere the number of the leaf's block, from 1.
    """

    domain: IntegerDomain
    part: int
    starts: Ints
    mass: Floats
    cells: Ints
    empty: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    @classmethod
    def of(cls, domain: IntegerDomain, part: int, starts: Ints) -> ColumnLeaves:
        """Return leaves without any mass."""
        size = len(starts) + domain.nullable
        return cls(domain=domain, part=part, starts=starts, mass=np.zeros(size), cells=starts)

    @property
    def ends(self) -> Ints:
        """``(n,)`` the last value of each leaf."""
        return np.append(self.starts[1:] - 1, self.domain.last)

    @property
    def width(self) -> Floats:
        """``(leaves,)`` number of values of each; a kind of missing counts as one."""
        widths = (self.ends - self.starts + 1).astype(np.float64)
        return np.append(widths, np.ones(self.domain.nullable))

    @property
    def _cell(self) -> Ints:
        """``(n,)`` the number of the public cell that each leaf lies in."""
        return np.cumsum(np.isin(self.starts, self.cells))

    @property
    def cell_shares(self) -> Floats:
        """``(n,)`` each leaf's width as a share of its public cell's."""
        cell, width = self._cell, self.width[: len(self.starts)]
        found: Floats = width / np.bincount(cell, width)[cell]
        return found

    @property
    def smooth(self) -> Floats:
        """``(n,)`` estimated rows of each leaf, with single heavy values capped near their cell's density."""
        cell, share, mass = self._cell, self.cell_shares, np.maximum(self.mass[: len(self.starts)], 0.0)
        dense = np.where(self.ends > self.starts, mass, 0.0)
        wide = np.bincount(cell, np.where(self.ends > self.starts, share, 0.0))[cell]
        even = share * np.bincount(cell, dense)[cell] / np.maximum(wide, _TINY)
        found: Floats = np.where(wide > 0, np.minimum(mass, even * _STANDS_OUT), mass)
        return found

    @property
    def all_starts(self) -> Ints:
        """``(leaves,)`` first value of each leaf, those of the kinds of missing cells included."""
        return np.append(self.starts, self.domain.last + 1 + np.arange(self.domain.nullable))

    @property
    def size(self) -> int:
        """Number of leaves, missing included."""
        return len(self.starts) + self.domain.nullable

    def axis(self, groups: Ints, size: int | None = None) -> Intervals:
        """Return the axis that counts each leaf in its group ``(leaves,)``."""
        return Intervals(
            part=self.part, starts=self.all_starts.astype(np.float64), cells=groups, size=size or int(groups.max()) + 1
        )

    def replace(self, starts: Ints, mass: Floats) -> None:
        """Replace the leaves by finer ones, with the mass of each that is not missing."""
        missing = self.mass[len(self.starts) :]
        self.starts, self.mass = starts, np.concatenate([mass, missing])

    def spread(self, groups: Ints, counts: Floats) -> Floats:
        """Return the leaves' masses for given counts of groups, in proportion to the current masses within each."""
        held = np.bincount(groups, self.mass, len(counts))
        width = self.width
        even = width / np.bincount(groups, width, len(counts))[groups]
        known = self.mass / np.where(held > 0, held, 1.0)[groups]
        found: Floats = np.where(held[groups] > 0, known, even) * counts[groups]
        return found

    def mark_empty(self) -> None:
        """Mark the regions without located rows: both ends of the range, and long gaps.

        Such regions are counted in blocks of public cells. The rows of a block are spread evenly over its cells: on a
        scale of decades, evenly over the logarithm.
        """
        count = len(self.starts)
        seen = np.flatnonzero(self.mass[:count] > 0)
        self.empty = np.zeros(count, dtype=np.int64)
        if not len(seen):
            return
        cell, width = self._cell, self.cell_shares
        before, block = -1, 0
        for place in [*seen, count]:
            region = slice(before + 1, place)
            if place > before + 1 and (before < 0 or place == count or len(np.unique(cell[region])) >= _GAP):
                apart = cell[region] - cell[region][0] if before >= 0 else cell[region][-1] - cell[region]
                number = apart // _BLOCK
                self.empty[region] = block + 1 + (number if before >= 0 else number[0] - number)
                self.mass[region] = _LITTLE * width[region]
                block = int(self.empty[place - 1])
            before = int(place)


_STANDS_OUT = 2.0
"""Multiple of its cell's mean density beyond which a single value stands out."""
_GAP = 6
"""Fewest consecutive empty public cells that form a region."""
_BLOCK = 6
"""Public cells in a block: a quarter of a decade, if cells have a constant ratio."""
_LITTLE = 1e-4
_FULL = 1.25
"""Most mass of a group, as a multiple of its share."""


def join_leaves(leaves: ColumnLeaves, *, most: int, seen: float, least: float) -> Ints:
    """Return the group of each leaf: groups of about equal mass, with heavy values and missing cells alone.

    Args:
        leaves: A column's leaves.
        most: Approximate number of groups.
        seen: Rows below which a category is rare; rare categories share one group.
        least: Fewest rows of a group; heavy values that are alone leave less mass for the others.
    """
    count = len(leaves.starts)
    body = np.maximum(leaves.mass[:count], 0)
    if count <= most:
        groups = np.arange(count)
    elif not leaves.domain.ordered:
        heaviest = np.argsort(-body, kind="stable")[: 2 * most]
        alone = np.sort(heaviest[body[heaviest] > seen])
        groups = np.full(count, len(alone))
        groups[alone] = np.arange(len(alone))
    else:
        single = (leaves.ends == leaves.starts) & _declared_or(leaves, body >= 0.5 * max(body.sum(), _TINY) / most)
        regions = leaves.empty if len(leaves.empty) else np.zeros(count, dtype=np.int64)
        groups = _by_mass(body, single, regions, max(body[~single].sum() / most, least, _TINY))
    groups = np.unique(groups, return_inverse=True)[1].reshape(-1)
    return np.append(groups, groups.max() + 1 + np.arange(leaves.domain.nullable))


def coarsen(leaves: ColumnLeaves, groups: Ints, *, most: int, least: float = 0.0) -> Ints:
    """Return coarser groups of groups, by the leaves' masses; single heavy values stay alone."""
    size = int(groups.max()) + 1
    if size <= most + 2 or not leaves.domain.ordered:
        return groups
    body = size - leaves.domain.nullable
    masses = np.bincount(groups, np.maximum(leaves.mass, 0), size)[:body]
    first = np.unique(groups, return_index=True)[1][:body]
    full = max(masses.sum(), _TINY) / most
    lone = np.bincount(groups)[:body] == 1
    single = lone & _declared_or(leaves, np.zeros(len(leaves.starts), bool))[first] | lone & (masses >= 0.6 * full)
    full = max(masses[~single].sum() / most, least, _TINY)
    found = _by_mass(masses, single, np.zeros(body, dtype=np.int64), full)
    return np.append(found, found.max() + 1 + np.arange(leaves.domain.nullable))[groups]


def join_rare(groups: Ints, masses: Floats, *, seen: float, nullable: int) -> Ints:
    """Return groups of categories with the rare ones joined; kinds of missing, the last, stay alone.

    Args:
        groups: ``(leaves,)``.
        masses: ``(groups,)``.
        seen: Rows below which a group is rare.
        nullable: How many of the last groups stand for missing cells.
    """
    body = len(masses) - nullable
    rare = (masses < seen) & (np.arange(len(masses)) < body)
    if rare.sum() < 2:
        return groups
    found = np.zeros(len(masses), dtype=np.int64)
    found[~rare] = np.arange(len(masses) - rare.sum())
    found[rare] = body - rare.sum()
    found[body:] = found[rare][0] + 1 + np.arange(nullable)
    return found[groups]


def split_groups(leaves: ColumnLeaves, groups: Ints, *, most: int) -> Ints:
    """Return groups of about equal mass nested in coarser ones."""
    full = _FULL * max(leaves.mass.sum(), _TINY) / most
    found, group, held = np.zeros(len(groups), dtype=np.int64), -1, 0.0
    for place, mass in enumerate(leaves.mass):
        if place == 0 or groups[place] != groups[place - 1] or (held > 0 and held + mass > full):
            group, held = group + 1, 0.0
        found[place], held = group, held + mass
    return found


def _by_mass(masses: Floats, single: npt.NDArray[np.bool_], regions: Ints, full: float) -> Ints:
    """Return runs of about equal mass that do not cross regions, with marked ones alone."""
    groups, group, held = np.zeros(len(masses), dtype=np.int64), 0, 0.0
    for place, mass in enumerate(masses):
        crossed = place > 0 and regions[place] != regions[place - 1]
        if place and (single[place] or held + mass > _FULL * full or crossed):
            group, held = group + 1, 0.0
        groups[place], held = group, held + mass
        if single[place]:
            held = 2 * full
    return groups


def _declared_or(leaves: ColumnLeaves, others: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    return np.isin(leaves.starts, leaves.domain.spikes) | others
