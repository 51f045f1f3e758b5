"""A generator of units of related tables: the root's row, then each child table's rows, level by level.

For each child table, one tree draws the first row given its head (the parent's row, and those above it), and another
draws each next row given the head and the row before, up to the number of rows that the head says. A unit's gaps are
drawn given that together they fit between the bounds (:func:`~doublure.networks.given_columns.draw_fitting`). First
numbers and gaps are both counted, so both keep how often each is drawn: units of as many rows that do not fit exchange
their first numbers with others. All assignments that fit are equally likely, which is the joint distribution of
greatest entropy with these margins (quasi-independence: Goodman 1968, J. Am. Stat. Assoc. 63).
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from typing_extensions import override

from doublure.networks.array_generator import ArrayGenerator
from doublure.networks.given_columns import ComponentOdds, draw_fitting, draw_given
from doublure.networks.related_layout import ChildPlace, RootGap, UnitLayout
from doublure.networks.rooms import RoomLeft, fitting
from doublure.networks.tree import TreeGenerator
from doublure.networks.tree_tables import Floats, Tree
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


@dataclass(frozen=True, kw_only=True, eq=False)
class _RowHeads:
    """Rows of a table that others hang on.

    Attributes:
        values: ``(n, H)`` each with the rows above it.
        units: ``(n,)`` the unit of each.
        places: ``(n,)`` the place of each among those of its unit.
    """

    values: Floats
    units: Ints
    places: Ints


class _RowsTold:
    """Says how much of a child table is drawn, row by row, in units.

    Args:
        tell: Receives what each row adds.
        worth: What all rows are.
    """

    def __init__(self, tell: Callable[[float], None], worth: float) -> None:
        self._tell, self._left, self._each = tell, worth, 0.0

    def begin(self, rows: float) -> None:
        """So many rows are to be drawn, and share what is left."""
        self._each = self._left / max(1.0, rows)

    def drawn(self, rows: int) -> None:
        """So many of them are."""
        self._left -= rows * self._each
        self._tell(rows * self._each)


class RelatedGenerator(ArrayGenerator):
    """Map of noise and conditions to units in the layout for drawing.

    Args:
        layout: Places of a unit's numbers.
        conditions: Number of values of each condition; conditions are the root's last numbers.
        repeats: Whether it was counted if a number is as in the row before.

    Attributes:
        units: Draws the root's row and the number of rows of each child table.
        first: For each child table, draws the first row.
        following: For each child table, draws a row given the one before it.
    """

    def __init__(self, layout: UnitLayout, conditions: Sequence[int], *, repeats: bool = False) -> None:
        self.layout = layout
        self._tell: Callable[[float], None] = _silent
        sure = [child for child in layout.children if child.parent < 0 and child.least]
        self.units = TreeGenerator(
            layout.head, conditions, {child.many: ((child.least, child.most),) for child in sure}
        )
        self.repeats = [child.repeats if repeats else () for child in layout.children]
        self.first = [TreeGenerator(child.head_width + child.parts, []) for child in layout.children]
        self.following = [
            TreeGenerator(child.head_width + 1 + 2 * child.parts + len(own), [])
            for child, own in zip(layout.children, self.repeats, strict=True)
        ]

    @override
    def state_dict(self) -> dict[str, Floats]:
        trees = self._trees().items()
        return {prefix + name: value for prefix, tree in trees for name, value in tree.state_dict().items()}

    @override
    def load_state_dict(self, state: Mapping[str, Floats]) -> None:
        """Load tables of any consistent shapes.

        Raises:
            RuntimeError: The tables are inconsistent.
        """
        trees = self._trees()
        known = {name for name in state for prefix in trees if name.startswith(prefix)}
        if known != set(state):
            raise RuntimeError("tables do not fit together")
        for prefix, tree in trees.items():
            tree.load_state_dict(
                {name.removeprefix(prefix): value for name, value in state.items() if name.startswith(prefix)}
            )

    def _trees(self) -> dict[str, TreeGenerator]:
        """Return all trees, by the prefix of their tables' names."""
        found = {"units.": self.units}
        for name, trees in (("first", self.first), ("following", self.following)):
            found |= {f"{name}.{place}.": tree for place, tree in enumerate(trees)}
        return found

    @override
    def telling(self, tell: Callable[[float], None]) -> Self:
        found = copy.copy(self)
        found._tell = tell
        return found

    def __call__(self, noise: Floats, condition: Floats | None = None) -> Floats:
        """Return units ``(B, P)`` float64, in the layout for drawing.

        Args:
            noise: ``(B, 1)`` standard normal; all of it together seeds the draw.
            condition: ``(B, K)`` one block a condition, as of the root's tree; or None.
        """
        rng = np.random.default_rng(np.frombuffer(noise.tobytes(), dtype=np.uint32))
        found = np.zeros((len(noise), self.layout.drawn_width))
        found[:, : self.layout.head] = self.units(noise, condition)
        heads = {-1: _root_heads(found[:, : self.layout.head])}
        each = len(noise) / max(1, sum(child.places for child in self.layout.children))
        for number, child in enumerate(self.layout.children):
            told = _RowsTold(self._tell, each * child.places)
            own = heads[number] = self._hung(heads[child.parent], number, rng, told)
            rows = np.zeros((len(noise), child.places, child.parts))
            rows[own.units, own.places] = own.values[:, : child.parts]
            found[:, child.rows] = rows.reshape(len(noise), child.places * child.parts)
        return found

    def shown_heads(self, units: int, child: int, rng: np.random.Generator) -> Floats:
        """Return what the rows of a child table are drawn by, ``(n, H)``: one row of the parent of each unit.

        Of a parent below the root, units without a row that any row hangs on show none.

        Args:
            units: How many are drawn.
            child: The child table's number.
            rng: Public randomness.
        """
        heads, path, number = _root_heads(self.units(rng.standard_normal((units, 1)))), list[int](), child
        told = _RowsTold(_silent, 0)
        while (number := self.layout.children[number].parent) >= 0:
            path.append(number)
        for number in reversed(path):
            heads = self._hung(heads, number, rng, told)
        if not path:
            return heads.values
        below = [self.layout.children[each].many for each in self.layout.hanging(path[0])]
        some = rng.permutation(np.flatnonzero((heads.values[:, below] > 0).any(1)))
        found: Floats = heads.values[some[np.unique(heads.units[some], return_index=True)[1]]]
        return found

    def _hung(self, heads: _RowHeads, number: int, rng: np.random.Generator, told: _RowsTold) -> _RowHeads:
        """Return the rows of a child table that hang on rows of its parent."""
        child = self.layout.children[number]
        found = np.zeros((len(heads.values), child.row(child.most - 1).stop))
        found[:, : child.head_width] = heads.values
        self._fill(found, number, child, rng, told)
        rows = found[:, child.head_width :].reshape(len(found), child.most, child.parts)
        many = np.clip(found[:, child.many], 0, child.most)
        whose, turn = np.nonzero(np.arange(child.most) < many[:, None])
        return _RowHeads(
            values=np.hstack([rows[whose, turn], heads.values[whose]]),
            units=heads.units[whose],
            places=heads.places[whose] * child.most + turn,
        )

    def draw_conditions(self, known: Floats, source: np.random.Generator) -> Floats:
        """Return conditions ``(n, K)`` unchanged; open ones are drawn with the unit, from the tables."""
        return self.units.draw_conditions(known, source)

    def _fill(self, found: Floats, number: int, child: ChildPlace, rng: np.random.Generator, told: _RowsTold) -> None:
        """Draw the rows of a child table, in order, as values that all lie below their bounds.

        Where gaps hardly ever fit, the unit's rows are drawn again, each gap cut to the limits of :func:`_limits`. Cut
        to the bound alone, or shrunk so that the last one lies there, rows pile up.
        """
        beyond = np.flatnonzero(~self._fill_rows(found, number, child, rng, told))
        again = found[beyond]
        self._fill_rows(again, number, child, rng, told, cut=True)
        found[beyond] = again
        for turn in range(child.most):
            for each in child.above:
                if each.place != child.order:
                    there = np.flatnonzero(found[:, child.many] > turn)
                    _turned_back(found, there, child.row(turn).start + each.place, each)

    def _fill_rows(
        self,
        found: Floats,
        number: int,
        child: ChildPlace,
        rng: np.random.Generator,
        told: _RowsTold,
        *,
        cut: bool = False,
    ) -> Mask:
        """Draw the rows of a child table, in order, and return whose fit; the others' may be incomplete.

        Args:
            found: Heads, with places for their rows behind them.
            number: The child table's number.
            child: Its place.
            rng: Public randomness.
            told: Says how many are drawn.
            cut: Whether gaps are cut to limits, so that all fit.
        """
        many = np.clip(found[:, child.many], 0, child.most).astype(np.int64)
        fits = np.ones(len(found), dtype=np.bool_)
        head = child.head_width
        draw = draw_given if cut else draw_fitting
        tree = self.first[number]
        some = np.flatnonzero(many > 0)
        told.begin(float(many.sum()))
        order, row = child.row(0).start + child.order, _ordered_rows(found, child)
        if len(tree.tree.nodes):
            rows = np.zeros((len(some), head + child.parts))
            rows[:, :head] = found[some, :head]
            rooms = [own for own, each in _rooms(child, rows, head) if each.place == child.order]
            if cut and child.floors:
                rooms = [row.room(some, head + child.order)]
            rows = draw(tree.tree, rows, head, rng, rooms=rooms)
            _cut_beyond(child, tree.tree, rows, head, head, rng)
            found[some, child.row(0)] = rows[:, head:]
            fits[some] = fitting(rows, rooms)
        row.first[:] = found[:, order]
        if row.above is not None:  # the order is needed by the next rows; other gaps are turned back at the end
            _turned_back(found, some, order, row.above)
        told.drawn(len(some))
        tree = self.following[number]
        known, repeats = head + 1 + child.parts, self.repeats[number]
        first = known + len(repeats)
        again = tuple((known + at, head + 1 + place, first + place) for at, place in enumerate(repeats))
        odds = ComponentOdds(tree.tree, min(known, len(tree.tree.nodes)), head)  # no nodes: at most one row a parent
        begun = odds.begun(found[:, :head])
        limits, reached = np.full((len(found), child.most), float(child.highest)), row.least.copy()
        if cut and child.order >= 0:
            limits, reached = _limits(found[:, order], many, child, rng), found[:, order].copy()
        for turn in range(1, child.most):
            units = np.flatnonzero((many > turn) & fits)
            if not len(units) or not tree.tree.nodes:
                break
            rows = np.zeros((len(units), first + child.parts))
            rows[:, :head] = found[units, :head]
            rows[:, head] = many[units] - turn - 1
            rows[:, head + 1 : known] = found[units, child.row(turn - 1)]
            most = np.maximum(lattices.gaps(limits[units, turn], reached[units], child.period), 0)
            rooms = [RoomLeft(part=first + child.order, most=most)] if child.order >= 0 else []
            rows = draw(tree.tree, rows, known, rng, odds, again, begun[units], rooms)
            _cut_beyond(child, tree.tree, rows, first, known, rng)
            found[units, child.row(turn)] = rows[:, first:]
            fits[units] = fitting(rows, rooms)
            if child.order >= 0:
                gaps = row.gaps[units, turn] = rows[:, first + child.order]
                reached[units] = lattices.above(gaps, reached[units], child.period)
                later = lattices.above(gaps, rows[:, head + 1 + child.order], child.period)
                found[units, child.row(turn).start + child.order] = np.minimum(later, child.highest)
            told.drawn(len(units))
        if child.order >= 0 and not cut:
            units = np.flatnonzero((many > 0) & fits)
            fits[units] = self._place_rows(found, number, child, row, units, rng)
        return fits

    def _place_rows(
        self, found: Floats, number: int, child: ChildPlace, row: OrderedRows, units: Ints, rng: np.random.Generator
    ) -> Mask:
        """Write the order of units' rows, whose gaps are kept, and return whose fit.

        A first number that fits no other unit is drawn again, given that it fits its own.

        Args:
            found: Heads and rows.
            number: The child table's number.
            child: Its place.
            row: The order as it was drawn.
            units: ``(m,)`` units that have rows.
            rng: Public randomness.
        """
        many, tree, head = found[units, child.many], self.first[number].tree, child.head_width
        first = row.exchanged(units, many, rng)
        beyond = np.flatnonzero(~row.fit(units, first))
        if len(beyond) and tree.nodes:
            heads = np.hstack([found[units[beyond], :head], np.zeros((len(beyond), child.parts))])
            room = row.room(units[beyond], head + child.order)
            first[beyond] = draw_given(tree, heads, head, rng, rooms=[room])[:, room.part]
        numbers = row.numbers(units, first)
        for turn in range(child.most):
            there = many > turn
            found[units[there], child.row(turn).start + child.order] = numbers[there, turn]
        return row.fit(units, first)


def _silent(units: float) -> None:
    """Ignore how much is drawn."""


def _ordered_rows(found: Floats, child: ChildPlace) -> OrderedRows:
    """Return the order of units' rows, none of which is drawn yet."""
    above = next((each for each in child.above if each.place == child.order), None)
    below, least = np.zeros(len(found)), np.full(len(found), float(child.lowest))
    if above is not None:
        below = found[:, above.below]
        least = above.numbers(np.zeros(len(found)), below)
    for floor in child.floors:
        least = np.maximum(least, floor.least(found[:, floor.below]))
    return OrderedRows(
        first=np.zeros(len(found)), gaps=np.zeros((len(found), child.most)), below=below, above=above,
        period=child.period, least=least, highest=child.highest,
    )  # fmt: skip


def _limits(first: Floats, many: Ints, child: ChildPlace, rng: np.random.Generator) -> Floats:
    """Return the largest value of the order that each row may have ``(n, most)``, where drawn gaps miss the bound.

    Nothing is known then of where between the first row and the bound the others lie: as so many even draws in order.

    Args:
        first: ``(n,)`` of the first rows.
        many: ``(n,)`` how many rows there are.
        child: Their place.
        rng: Public randomness.
    """
    drawn = rng.random((len(first), child.most))
    drawn[:, 0] = 0
    drawn[np.arange(child.most) >= many[:, None]] = 1
    room = np.maximum(child.highest - first, 0)[:, None]
    found: Floats = np.ceil(np.minimum(first, child.highest)[:, None] + room * np.sort(drawn, axis=1))
    return found


def _root_heads(rows: Floats) -> _RowHeads:
    units = np.arange(len(rows))
    return _RowHeads(values=rows, units=units, places=np.zeros_like(units))


def _turned_back(found: Floats, units: Ints, at: int, above: RootGap) -> None:
    """Replace a gap above the parent's number by the number itself."""
    found[units, at] = above.numbers(found[units, at], found[units, above.below])


def _rooms(child: ChildPlace, rows: Floats, start: int) -> list[tuple[RoomLeft, RootGap]]:
    """Return what gaps above the parent's numbers may be at most, in rows ``(N, parts)`` of which one begins there."""
    return [(RoomLeft(part=start + each.place, most=each.room(rows[:, each.below])), each) for each in child.above]


def _cut_beyond(child: ChildPlace, tree: Tree, rows: Floats, start: int, known: int, rng: np.random.Generator) -> None:
    """Draw gaps above the parent's numbers again that do not fit, cut to their rooms.

    They alone are, given what the row is given: a row that is drawn again as a whole would more often miss them.
    """
    for room, each in _rooms(child, rows, start):
        gaps = rows[:, room.part]
        beyond = np.flatnonzero((gaps > room.most) & (gaps <= each.widest))
        if each.place != child.order and len(beyond):
            again = draw_given(tree, rows[beyond], known, rng, rooms=[room.of(beyond)])
            rows[beyond, room.part] = again[:, room.part]
