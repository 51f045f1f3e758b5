"""First numbers that units exchange, so that the rows of each fit between its bounds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from doublure.networks.related_layout import RootGap
from doublure.networks.rooms import RoomLeft
from doublure.networks.tree_tables import Floats
from doublure.support import lattices
from doublure.support.arrays import Ints, Mask

_EXCHANGES = 32
"""Partners that each unit meets; where one in three fits, one unit in half a million finds none."""


@dataclass(frozen=True, kw_only=True, eq=False)
class OrderedRows:
    """The order of the rows of units, as it is drawn: a first number, and the gap of each row above the one before.

    Attributes:
        first: ``(n,)`` first numbers, as they are drawn.
        gaps: ``(n, k)`` gaps; those of the first row, and of rows that a unit does not have, are 0.
        below: ``(n,)`` the parent's number, where the first number is a gap above that.
        above: How that gap is read; None: first numbers are not gaps.
        period: Integers of a day, where the order has a time of day; else 1.
        least: ``(n,)`` the least number of each unit.
        highest: The largest number.
    """

    first: Floats
    gaps: Floats
    below: Floats
    above: RootGap | None
    period: int
    least: Floats
    highest: int

    def numbers(self, units: Ints, first: Floats) -> Floats:
        """Return the numbers ``(m, k)`` of units with these first ones ``(m,)``."""
        found = np.empty((len(units), self.gaps.shape[1]))
        found[:, 0] = first if self.above is None else self.above.numbers(first, self.below[units])
        for turn in range(1, found.shape[1]):
            found[:, turn] = lattices.above(self.gaps[units, turn], found[:, turn - 1], self.period)
        return found

    def fit(self, units: Ints, first: Floats) -> Mask:
        """Return whether all rows of units with these first numbers lie between the bounds ``(m,)``."""
        found = self.numbers(units, first)
        fits: Mask = (found[:, 0] >= self.least[units]) & (found[:, -1] <= self.highest)
        return fits

    def room(self, units: Ints, part: int) -> RoomLeft:
        """Return the first numbers with which all rows of units surely fit.

        Args:
            units: ``(m,)``.
            part: The place of the first number in a row.
        """
        most, least = self.highest - self.gaps[units].sum(1), self.least[units]
        if self.above is None:
            return RoomLeft(part=part, most=most, least=least)
        return RoomLeft(part=part, most=lattices.gaps(most, least, self.period))

    def exchanged(self, units: Ints, many: Ints, rng: np.random.Generator) -> Floats:
        """Return first numbers ``(m,)``: units that do not fit exchange theirs with others, where both then fit.

        Where a unit has to give way twice for another to fit, both stay as they are: rows would pile up at the bound.

        Args:
            units: ``(m,)``.
            many: ``(m,)`` their numbers of rows; units of as many exchange first numbers.
            rng: Public randomness.
        """
        found = self.first[units]
        beyond = ~self.fit(units, found)
        for _ in range(_EXCHANGES):
            if not beyond.any():
                break
            turn = np.lexsort((rng.random(len(found)), many))
            one, other = turn[:-1:2], turn[1::2]
            met = (many[one] == many[other]) & (beyond[one] | beyond[other])
            one, other = one[met], other[met]
            both = self.fit(units[one], found[other]) & self.fit(units[other], found[one])
            one, other = one[both], other[both]
            found[one], found[other] = found[other], found[one]
            beyond[one] = beyond[other] = False
        return found
