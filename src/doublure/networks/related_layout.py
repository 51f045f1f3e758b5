"""Where the numbers of a unit stand, as it is counted and as it is drawn; both follow from public facts.

Counted, a unit shows one of its rows of each child table, and one pair of rows that follow one another::

    [ rows of each child table | root | first, left, before, next | first, left, before, next | … ]

Drawn, it has all of them, in ``max_children`` places a child table, of which the first are filled::

    [ rows of each child table | root | row 1 … row k | row 1 … row k | … ]

Of a child table with an order, ``first`` is the first row; ``before`` and ``next`` are two that follow one another,
and where they are the order is told by its gap above ``before``. Without an order they are any two. A column that a
rule puts above one of the root is counted by its gap above that, and drawn as it is (:class:`Above`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Above:
    """A number of a child's row that is counted by its gap above one of the root's row.

    Attributes:
        place: Where it stands in the row.
        below: Where the root's number stands in the unit.
        first: The lowest that this may be; it takes the place of a missing one, which is ``last + 1``.
        last: The highest.
        highest: The highest that the row's number may be; ``highest + 1`` is missing.
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
        """Return the gaps of numbers, each with the root's ``below`` it; the one after the widest is missing."""
        gaps = np.maximum(numbers - self._base(below), 0)
        return np.where(numbers > self.highest, self.widest + 1, gaps)

    def numbers(self, gaps: Floats, below: Floats) -> Floats:
        """Return numbers from their gaps, none beyond the highest."""
        numbers = np.minimum(self._base(below) + gaps, self.highest)
        return np.where(gaps > self.widest, self.highest + 1, numbers)

    def _base(self, below: Floats) -> Floats:
        return np.where(below > self.last, self.first, below)


@dataclass(frozen=True, kw_only=True)
class ChildPlace:
    """Where the numbers of one child table stand.

    Attributes:
        name: The table's.
        most: How many rows a unit has at most.
        parts: W, how many numbers a row has.
        order: Which of them is the order; -1: none is.
        highest: The largest that the order may be.
        shown: Where ``first`` begins, in a unit as it is counted.
        drawn: Where row 1 begins, in a unit as it is drawn.
        above: The numbers of a row that are counted by their gap above the root's.
    """

    name: str
    most: int
    parts: int
    order: int
    highest: int
    shown: int
    drawn: int
    above: tuple[Above, ...] = ()

    @property
    def first(self) -> slice:
        """The row that is first, or any."""
        return slice(self.shown, self.shown + self.parts)

    @property
    def left(self) -> int:
        """How many rows there are after ``next``."""
        return self.shown + self.parts

    @property
    def before(self) -> slice:
        """The row before ``next``."""
        return slice(self.left + 1, self.left + 1 + self.parts)

    @property
    def next(self) -> slice:
        """The row that follows."""
        return slice(self.left + 1 + self.parts, self.left + 1 + 2 * self.parts)

    def row(self, number: int) -> slice:
        """Return where a row stands in a unit as it is drawn, counted from 0."""
        begin = self.drawn + number * self.parts
        return slice(begin, begin + self.parts)


@dataclass(frozen=True, kw_only=True)
class Layout:
    """Where everything stands.

    Attributes:
        root: How many numbers a row of the root has.
        children: Of each child table, in the schema's order.
    """

    root: int
    children: tuple[ChildPlace, ...]

    @classmethod
    def of(cls, root: int, tables: Sequence[tuple[str, int, int, int, int, tuple[Above, ...]]]) -> Layout:
        """Return the layout of tables.

        Args:
            root: How many numbers a row of the root has.
            tables: Of each child table its name, the most rows, the numbers of a row, which is its order, the
                largest that this may be, and what is counted by its gap above the root's.
        """
        shown = drawn = len(tables) + root
        children = []
        for name, most, parts, order, highest, above in tables:
            place = ChildPlace(
                name=name, most=most, parts=parts, order=order, highest=highest, shown=shown, drawn=drawn, above=above
            )
            children.append(place)
            shown, drawn = shown + 3 * parts + 1, drawn + most * parts
        return cls(root=root, children=tuple(children))

    @property
    def root_part(self) -> slice:
        """The root's row."""
        return slice(len(self.children), len(self.children) + self.root)

    @property
    def counted_width(self) -> int:
        """How many numbers a unit has as it is counted."""
        return len(self.children) + self.root + sum(3 * child.parts + 1 for child in self.children)

    @property
    def drawn_width(self) -> int:
        """How many numbers a unit has as it is drawn."""
        return len(self.children) + self.root + sum(child.most * child.parts for child in self.children)
