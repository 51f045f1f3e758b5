"""A generator of units of related tables: the root's row, then each child table's rows.

For each child table, one tree draws the first row given the root's, and another draws each next row given the root's
and the row before, up to the unit's number of rows. A next row beyond the bounds of the order is rejected and drawn
again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from typing_extensions import override

from doublure.networks.array_generator import ArrayGenerator
from doublure.networks.given_columns import ComponentOdds, draw_given
from doublure.networks.related_layout import ChildPlace, RootGap, UnitLayout
from doublure.networks.tree import TreeGenerator
from doublure.networks.tree_tables import Floats, Ints

_TRIES = (3, 13)
"""Redraws of a row that lies beyond the bounds of the order, and more of one that still does."""


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
        head = len(layout.children) + layout.root
        self.units = TreeGenerator(head, conditions)
        self.repeats = [child.repeats if repeats else () for child in layout.children]
        self.first = [TreeGenerator(head + child.parts, []) for child in layout.children]
        self.following = [
            TreeGenerator(head + 1 + 2 * child.parts + len(own), [])
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

    def __call__(self, noise: Floats, condition: Floats | None = None) -> Floats:
        """Return units ``(B, P)`` float64, in the layout for drawing.

        Args:
            noise: ``(B, 1)`` standard normal; all of it together seeds the draw.
            condition: ``(B, K)`` one block a condition, as of the root's tree; or None.
        """
        rng = np.random.default_rng(np.frombuffer(noise.tobytes(), dtype=np.uint32))
        found = np.zeros((len(noise), self.layout.drawn_width))
        head = len(self.layout.children) + self.layout.root
        found[:, :head] = self.units(noise, condition)
        for number, child in enumerate(self.layout.children):
            self._fill(found, number, child, rng)
        return found

    def draw_conditions(self, known: Floats, source: np.random.Generator) -> Floats:
        """Return conditions ``(n, K)`` unchanged; open ones are drawn with the unit, from the tables."""
        return self.units.draw_conditions(known, source)

    def _fill(self, found: Floats, number: int, child: ChildPlace, rng: np.random.Generator) -> None:
        """Draw the rows of a child table, in order, as values."""
        many = self._fill_rows(found, number, child, rng)
        for turn in range(child.most):
            for each in child.above:
                if each.place != child.order:
                    _turned_back(found, np.flatnonzero(many > turn), child.row(turn).start + each.place, each)
        if child.order >= 0:
            _within_bounds(found, child, many)

    def _fill_rows(self, found: Floats, number: int, child: ChildPlace, rng: np.random.Generator) -> Ints:
        """Draw the rows of a child table, in order, and return how many each unit has."""
        many = np.clip(found[:, number], 0, child.most).astype(np.int64)
        head = len(self.layout.children) + self.layout.root
        tree = self.first[number]
        some = np.flatnonzero(many > 0)
        if len(tree.tree.nodes):
            rows = np.zeros((len(some), head + child.parts))
            rows[:, :head] = found[some, :head]
            found[some, child.row(0)] = draw_given(tree.tree, rows, head, rng)[:, head:]
        for each in child.above:  # the order is needed by the next rows; other gaps are turned back at the end
            if each.place == child.order:
                _turned_back(found, some, child.row(0).start + each.place, each)
        tree = self.following[number]
        known, repeats = head + 1 + child.parts, self.repeats[number]
        first = known + len(repeats)
        again = tuple((known + at, head + 1 + place, first + place) for at, place in enumerate(repeats))
        units = np.flatnonzero(many > 1)
        if not len(units) or not tree.tree.nodes:
            return many
        odds = ComponentOdds(tree.tree, known, head)
        begun = odds.begun(found[:, :head])
        for turn in range(1, child.most):
            units = np.flatnonzero(many > turn)
            if not len(units):
                break
            rows = np.zeros((len(units), first + child.parts))
            rows[:, :head] = found[units, :head]
            rows[:, head] = many[units] - turn - 1
            rows[:, head + 1 : known] = found[units, child.row(turn - 1)]
            following = draw_given(tree.tree, rows, known, rng, odds, again, begun[units])[:, first:]
            if child.order >= 0:
                room = child.highest - rows[:, head + 1 + child.order]
                for times in _TRIES:  # the first of several draws that fits, or else the last one
                    beyond = np.flatnonzero(following[:, child.order] > room)
                    if not len(beyond):
                        break
                    tried = np.repeat(rows[beyond], times, axis=0)
                    seen = np.repeat(begun[units[beyond]], times, axis=0)
                    tried = draw_given(tree.tree, tried, known, rng, odds, again, seen)[:, first:]
                    fits = (tried[:, child.order] <= np.repeat(room[beyond], times)).reshape(-1, times)
                    which = np.where(fits.any(1), fits.argmax(1), times - 1)
                    following[beyond] = tried[np.arange(len(beyond)) * times + which]
                following[:, child.order] += child.highest - room
            found[units, child.row(turn)] = following
        return many


def _turned_back(found: Floats, units: Ints, at: int, above: RootGap) -> None:
    """Replace a gap above the root's number by the number itself."""
    found[units, at] = above.numbers(found[units, at], found[units, above.below])


def _within_bounds(found: Floats, child: ChildPlace, many: Ints) -> None:
    """Shrink a unit's gaps in proportion if its last row lies beyond the bounds."""
    at = [child.row(turn).start + child.order for turn in range(child.most)]
    orders = found[:, at]
    last = orders[np.arange(len(found)), np.maximum(many - 1, 0)]
    beyond = np.flatnonzero((many > 1) & (last > child.highest))
    begin = orders[beyond, :1]
    shrunk = begin + np.floor((orders[beyond] - begin) * (child.highest - begin) / (last[beyond, None] - begin))
    found[np.ix_(beyond, at)] = shrunk
