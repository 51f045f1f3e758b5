"""Layouts of a unit of related tables, as a vector for counting and as a vector for drawing.

Both follow from public facts. For counting, a unit shows its first row of each child table, one row at any place, and
one pair of consecutive rows::

    [ rows of each child table | root | first, left, before, next, place, any, same | first, left, … ]

Of a table that others hang on it shows one row in the same way, with the rows above it, and what hangs on that one::

    [ … | rows of each table that hangs on it | its row | its parent's … | root | first, left, before, next, … | … ]

For drawing, it has all rows, in ``max_children`` places for each row of the parent, filled from the first on::

    [ rows of each child table | root | row 1 … row k | row 1 … row k | … ]

In a child table with an order, ``first`` is the first row, ``before`` and ``next`` are consecutive rows, and the order
column of ``next`` is stored as its gap above ``before``. Without an order they are any two rows. ``any`` is the row at
``place``; ``same`` says of some columns whether ``next`` is as ``before``. A column that a rule puts above one of the
parent is counted by its gap above that, and drawn as a value (:class:`RootGap`). How many rows hang on a row of a child
table stands first in that row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from doublure.support import lattices

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class RootGap:
    """A number of a child's row that is counted by its gap above a number of its parent's row.

    Attributes:
        place: Its place in the row.
        below: The place of the parent's number in the head.
        first: The parent's lowest number, also used for a missing one, which is ``last + 1``.
        last: The parent's highest number.
        highest: The highest number in the row; ``highest + 1`` is missing.
        period: Integers of a day, where it has a time of day; else 1.
    """

    place: int
    below: int
    first: int
    last: int
    highest: int
    period: int = 1

    @property
    def widest(self) -> int:
        """The largest gap."""
        return max(1, self.highest - self.first + self.first % self.period)

    def gaps(self, numbers: Floats, below: Floats) -> Floats:
        """Return the gaps of numbers above the parent's numbers ``below``; ``widest + 1`` is missing."""
        gaps = np.maximum(lattices.gaps(numbers, self._base(below), self.period), 0)
        return np.where(numbers > self.highest, self.widest + 1, gaps)

    def room(self, below: Floats) -> Floats:
        """Return the largest gaps above the parent's numbers ``below``."""
        base = self._base(below)
        return np.maximum(lattices.gaps(np.full_like(base, self.highest), base, self.period), 0)

    def numbers(self, gaps: Floats, below: Floats) -> Floats:
        """Return numbers from their gaps, at most ``highest``."""
        numbers = np.minimum(lattices.above(gaps, self._base(below), self.period), self.highest)
        return np.where(gaps > self.widest, self.highest + 1, numbers)

    def _base(self, below: Floats) -> Floats:
        return np.where(below > self.last, self.first, below)


@dataclass(frozen=True, kw_only=True)
class RootFloor:
    """A number of the parent's row that bounds the order of a child's rows from below, and is counted by itself.

    Attributes:
        below: The place of the parent's number in the head.
        least: Returns the least orders ``(N,)`` for such numbers ``(N,)``.
    """

    below: int
    least: Callable[[Floats], Floats]


@dataclass(frozen=True, kw_only=True)
class ChildPlace:
    """Places of the numbers of one child table.

    Attributes:
        name: The table's name.
        parent: The number of its parent among the child tables; -1: the root.
        many: The place of its number of rows in the head.
        head: What its rows are drawn by, in a unit for counting: a row of the parent, and those above it.
        most: The most rows of a row of its parent.
        places: The most rows of a unit.
        parts: W, numbers of a row.
        order: The order's place in a row; -1 without an order.
        lowest: The least value of the order.
        highest: The largest one.
        period: Integers of a day, where the order has a time of day; else 1.
        shown: The start of ``first`` in a unit for counting.
        drawn: The start of row 1 in a unit for drawing.
        above: The numbers of a row that are counted by their gap above the parent's.
        repeats: The places in a row of what may be as in the row before.
        least: The fewest rows of a row of its parent.
        floors: What bounds the order from below.
    """

    name: str
    parent: int
    many: int
    head: slice
    most: int
    places: int
    parts: int
    order: int
    lowest: int
    highest: int
    period: int
    shown: int
    drawn: int
    above: tuple[RootGap, ...] = ()
    repeats: tuple[int, ...] = ()
    least: int = 0
    floors: tuple[RootFloor, ...] = ()

    @property
    def first(self) -> slice:
        """The first row, or any row without an order."""
        return slice(self.shown, self.shown + self.parts)

    @property
    def left(self) -> int:
        """The place of the number of rows after ``next``."""
        return self.shown + self.parts

    @property
    def before(self) -> slice:
        """The row before ``next``."""
        return slice(self.left + 1, self.left + 1 + self.parts)

    @property
    def next(self) -> slice:
        """The row that follows."""
        return slice(self.left + 1 + self.parts, self.left + 1 + 2 * self.parts)

    @property
    def place(self) -> int:
        """The place of the number of rows before ``any``."""
        return self.left + 1 + 2 * self.parts

    @property
    def any(self) -> slice:
        """A row at any place."""
        return slice(self.place + 1, self.place + 1 + self.parts)

    @property
    def same(self) -> slice:
        """Of each repeating number whether ``next`` has it as ``before``: 1, or 0."""
        return slice(self.any.stop, self.any.stop + len(self.repeats))

    @property
    def head_width(self) -> int:
        """Numbers of the head."""
        return int(self.head.stop - self.head.start)

    def row(self, number: int) -> slice:
        """Return the place of a row, counted from 0, behind the head."""
        begin = self.head_width + number * self.parts
        return slice(begin, begin + self.parts)

    @property
    def rows(self) -> slice:
        """All its rows in a unit for drawing."""
        return slice(self.drawn, self.drawn + self.places * self.parts)


class ChildFacts(NamedTuple):
    """The facts that the layout of a child table follows from, named as in :class:`ChildPlace`."""

    name: str
    most: int
    parts: int
    order: int
    highest: int
    above: tuple[RootGap, ...]
    repeats: tuple[int, ...]
    parent: int = -1
    least: int = 0
    lowest: int = 0
    period: int = 1
    floors: tuple[RootFloor, ...] = ()


@dataclass(frozen=True, kw_only=True)
class UnitLayout:
    """Places of all numbers of a unit.

    Attributes:
        root: Numbers of a root row.
        children: Places of each child table: parents before what hangs on them.
    """

    root: int
    children: tuple[ChildPlace, ...]

    @classmethod
    def of(cls, root: int, tables: Sequence[ChildFacts]) -> UnitLayout:
        """Return the layout of tables.

        Args:
            root: Numbers of a root row.
            tables: The facts of each child table: parents before what hangs on them.
        """
        hanging = {
            parent: [n for n, each in enumerate(tables) if each.parent == parent] for parent in range(-1, len(tables))
        }
        widths, places = {-1: len(hanging[-1]) + root}, {-1: 1}
        shown, drawn = 0, widths[-1]
        found: dict[int, ChildPlace] = {}
        for parent, below in hanging.items():
            if parent >= 0:
                widths[parent] = tables[parent].parts + widths[tables[parent].parent]
                places[parent] = found[parent].places
            if not below:
                continue
            head = slice(shown, shown + widths[parent])
            shown = head.stop
            for many, number in enumerate(below):
                own = tables[number]
                place = ChildPlace(
                    name=own.name, parent=parent, many=many, head=head, most=own.most, places=places[parent] * own.most,
                    parts=own.parts, order=own.order, highest=own.highest, shown=shown, drawn=drawn, above=own.above,
                    repeats=own.repeats, least=own.least, lowest=own.lowest, period=own.period, floors=own.floors,
                )  # fmt: skip
                found[number] = place
                shown, drawn = place.same.stop, place.rows.stop
        return cls(root=root, children=tuple(found[number] for number in range(len(tables))))

    def hanging(self, parent: int) -> list[int]:
        """Return the numbers of the child tables that hang on one; -1: on the root."""
        return [number for number, child in enumerate(self.children) if child.parent == parent]

    @property
    def head(self) -> int:
        """Numbers of a root row, with its numbers of rows of child tables."""
        return int(self.children[0].head.stop)

    @property
    def root_part(self) -> slice:
        """The root's row."""
        return slice(self.head - self.root, self.head)

    @property
    def counted_width(self) -> int:
        """Numbers of a unit for counting."""
        return max(int(child.same.stop) for child in self.children)

    @property
    def drawn_width(self) -> int:
        """Numbers of a unit for drawing."""
        return self.head + sum(child.places * child.parts for child in self.children)
