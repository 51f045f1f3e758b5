"""Layouts of a unit of related tables, as a vector for counting and as a vector for drawing.

Both follow from public facts. For counting, a unit shows its first row of each child table, one row at any place, and
one pair of consecutive rows::

    [ rows of each child table | root | first, left, before, next, place, any, same | first, left, … ]

For drawing, it has all rows, in ``max_children`` places a child table, filled from the first on::

    [ rows of each child table | root | row 1 … row k | row 1 … row k | … ]

In a child table with an order, ``first`` is the first row, ``before`` and ``next`` are consecutive rows, and the order
column of ``next`` is stored as its gap above ``before``. Without an order they are any two rows. ``any`` is the row at
``place``; ``same`` says of some columns whether ``next`` is as ``before``. A column that a rule puts above one of the
root is counted by its gap above that, and drawn as a value (:class:`RootGap`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class RootGap:
    """A number of a child's row that is counted by its gap above a number of the root.

    Attributes:
        place: Its place in the row.
        below: The place of the root's number in the unit.
        first: The root's lowest number, also used for a missing one, which is ``last + 1``.
        last: The root's highest number.
        highest: The highest number in the row; ``highest + 1`` is missing.
    """

    place: int
    below: int
    first: int
    last: int
    highest: int

    @property
    def widest(self) -> int:
        """The largest gap."""
        return max(1, self.highest - self.first)

    def gaps(self, numbers: Floats, below: Floats) -> Floats:
        """Return the gaps of numbers above the root's numbers ``below``; ``widest + 1`` is missing."""
        gaps = np.maximum(numbers - self._base(below), 0)
        return np.where(numbers > self.highest, self.widest + 1, gaps)

    def room(self, below: Floats) -> Floats:
        """Return the largest gaps above the root's numbers ``below``."""
        return np.maximum(self.highest - self._base(below), 0)

    def numbers(self, gaps: Floats, below: Floats) -> Floats:
        """Return numbers from their gaps, at most ``highest``."""
        numbers = np.minimum(self._base(below) + gaps, self.highest)
        return np.where(gaps > self.widest, self.highest + 1, numbers)

    def _base(self, below: Floats) -> Floats:
        return np.where(below > self.last, self.first, below)


@dataclass(frozen=True, kw_only=True)
class ChildPlace:
    """Places of the numbers of one child table.

    Attributes:
        name: The table's name.
        most: The most rows of a unit.
        parts: W, numbers of a row.
        order: The order's place in a row; -1 without an order.
        highest: The largest value of the order.
        shown: The start of ``first`` in a unit for counting.
        drawn: The start of row 1 in a unit for drawing.
        above: The numbers of a row that are counted by their gap above the root's.
        repeats: The places in a row of what may be as in the row before.
    """

    name: str
    most: int
    parts: int
    order: int
    highest: int
    shown: int
    drawn: int
    above: tuple[RootGap, ...] = ()
    repeats: tuple[int, ...] = ()

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

    def row(self, number: int) -> slice:
        """Return the place of a row, counted from 0, in a unit for drawing."""
        begin = self.drawn + number * self.parts
        return slice(begin, begin + self.parts)


ChildFacts: TypeAlias = tuple[str, int, int, int, int, tuple[RootGap, ...], tuple[int, ...]]


@dataclass(frozen=True, kw_only=True)
class UnitLayout:
    """Places of all numbers of a unit.

    Attributes:
        root: Numbers of a root row.
        children: Places of each child table, in the schema's order.
    """

    root: int
    children: tuple[ChildPlace, ...]

    @classmethod
    def of(cls, root: int, tables: Sequence[ChildFacts]) -> UnitLayout:
        """Return the layout of tables.

        Args:
            root: Numbers of a root row.
            tables: For each child table its name, the most rows, the numbers of a row, the order's place, the order's
                largest value, the numbers that are counted by their gap above the root's, and those that may be as in
                the row before.
        """
        shown = drawn = len(tables) + root
        children = []
        for name, most, parts, order, highest, above, repeats in tables:
            place = ChildPlace(
                name=name, most=most, parts=parts, order=order, highest=highest, shown=shown, drawn=drawn,
                above=above, repeats=repeats,
            )  # fmt: skip
            children.append(place)
            shown, drawn = place.same.stop, drawn + most * parts
        return cls(root=root, children=tuple(children))

    @property
    def root_part(self) -> slice:
        """The root's row."""
        return slice(len(self.children), len(self.children) + self.root)

    @property
    def counted_width(self) -> int:
        """Numbers of a unit for counting."""
        return len(self.children) + self.root + sum(4 * child.parts + 2 + len(child.repeats) for child in self.children)

    @property
    def drawn_width(self) -> int:
        """Numbers of a unit for drawing."""
        return len(self.children) + self.root + sum(child.most * child.parts for child in self.children)
