"""A column's leaves, its finest cells, with their masses and groups.

A leaf is a run of whole numbers (:mod:`doublure.encode.table_values`), often a single value. The leaves follow from
released counts; within a leaf, values are drawn by the pull of round ones. Leaves are joined into groups three times:
for counts of one column, coarser for pairs, and finer for the tree's pairs.
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
        pulls: ``(L,)`` how much likelier a value of each of the domain's lattices is than its neighbours.
        hours: ``(H,)`` how likely values of each hour are; ``(1,)`` where that is not known, or values have none.
    """

    domain: IntegerDomain
    part: int
    starts: Ints
    mass: Floats
    pulls: Floats
    hours: Floats = field(default_factory=lambda: np.ones(1))

    @classmethod
    def of(cls, domain: IntegerDomain, part: int, starts: Ints) -> ColumnLeaves:
        """Return leaves without any mass."""
        size = len(starts) + domain.nullable
        return cls(domain=domain, part=part, starts=starts, mass=np.zeros(size), pulls=np.ones(len(domain.lattices())))

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

    def spread(self, groups: Ints, counts: Floats) -> Floats:
        """Return the leaves' masses for given counts of groups, in proportion to the current masses within each."""
        held = np.bincount(groups, self.mass, len(counts))
        width = self.width
        even = width / np.bincount(groups, width, len(counts))[groups]
        known = self.mass / np.where(held > 0, held, 1.0)[groups]
        found: Floats = np.where(held[groups] > 0, known, even) * counts[groups]
        return found


_FULL = 1.25
"""Most mass of a group, as a multiple of its share."""


def join_leaves(leaves: ColumnLeaves, *, most: int, seen: float) -> Ints:
    """Return the group of each leaf: groups of about equal mass, with heavy values and missing cells alone.

    Args:
        leaves: A column's leaves.
        most: Approximate number of groups.
        seen: Rows below which a category is rare; rare categories share one group.
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
        groups = _by_mass(body, single, max(body[~single].sum() / most, _TINY))
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
    found = _by_mass(masses, single, full)
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


def join_codes(levels: Ints, groups: Ints, masses: Floats, *, least: float) -> Ints:
    """Return groups of codes with those of few rows joined up the tree, until none but the last has few.

    Groups of few rows join others of the same public group, then what remains is one of few or many. Codes without any
    rows go where the first with rows in their smallest public group is: none is drawn by itself.

    Args:
        levels: ``(L, n)`` the public group of each code, the coarsest level first.
        groups: ``(n,)`` the groups so far, numbered from 0.
        masses: ``(n,)`` rows of each code.
        least: Rows below which a group has few.
    """
    held = np.bincount(groups, masses)
    first = heaviest_codes(groups, masses)
    joined = np.arange(len(held))
    for level in (*levels[::-1], np.zeros(len(groups), dtype=np.int64)):
        few = np.bincount(joined, held, len(held))[joined] < least
        above = level[first]
        for public in np.unique(above[few]):
            own = few & (above == public)
            joined[own] = joined[np.flatnonzero(own)[0]]
    found = joined[groups]
    for level in (*levels[::-1], np.zeros(len(groups), dtype=np.int64)):  # where codes without rows belong
        some = np.flatnonzero(masses > 0)
        public, at = np.unique(level[some], return_index=True)
        with_rows = np.full(int(level.max()) + 1, -1)
        with_rows[public] = some[at]
        moved = (masses <= 0) & (with_rows[level] >= 0)
        found[moved] = found[with_rows[level[moved]]]
        masses = np.where(moved, 1.0, masses)
    return np.unique(found, return_inverse=True)[1].reshape(-1)


def heaviest_codes(groups: Ints, masses: Floats) -> Ints:
    """Return the place of the code with the most rows of each group ``(n,)``."""
    order = np.argsort(masses, kind="stable")
    found = np.zeros(int(groups.max()) + 1, dtype=np.int64)
    found[groups[order]] = order
    return found


def split_groups(leaves: ColumnLeaves, groups: Ints, *, most: int) -> Ints:
    """Return groups of about equal mass nested in coarser ones."""
    full = _FULL * max(leaves.mass.sum(), _TINY) / most
    found, group, held = np.zeros(len(groups), dtype=np.int64), -1, 0.0
    for place, mass in enumerate(leaves.mass):
        if place == 0 or groups[place] != groups[place - 1] or (held > 0 and held + mass > full):
            group, held = group + 1, 0.0
        found[place], held = group, held + mass
    return found


def _by_mass(masses: Floats, single: npt.NDArray[np.bool_], full: float) -> Ints:
    """Return runs of about equal mass, with marked ones alone."""
    groups, group, held = np.zeros(len(masses), dtype=np.int64), 0, 0.0
    for place, mass in enumerate(masses):
        if place and (single[place] or held + mass > _FULL * full):
            group, held = group + 1, 0.0
        groups[place], held = group, held + mass
        if single[place]:
            held = 2 * full
    return groups


def _declared_or(leaves: ColumnLeaves, others: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    return np.isin(leaves.starts, leaves.domain.spikes) | others
