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
from doublure.networks.related_layout import ChildPlace, RootGap, UnitLayout
from doublure.networks.tree import TreeGenerator
from doublure.networks.tree_asked import TreeEvidence
from doublure.networks.tree_draw import TreeDraw, entry_at
from doublure.networks.tree_tables import Floats, Ints, Tree

_TRIES = 16
"""Most redraws of a row that lies beyond the bounds of the order."""
_AT_ONCE = 4_000
_LEAST = 1e-12


class RelatedGenerator(ArrayGenerator):
    """Map of noise and conditions to units in the layout for drawing.

    Args:
        layout: Places of a unit's numbers.
        conditions: Number of values of each condition; conditions are the root's last numbers.

    Attributes:
        units: Draws the root's row and the number of rows of each child table.
        first: For each child table, draws the first row.
        following: For each child table, draws a row given the one before it.
    """

    def __init__(self, layout: UnitLayout, conditions: Sequence[int]) -> None:
        self.layout = layout
        head = len(layout.children) + layout.root
        self.units = TreeGenerator(head, conditions)
        self.first = [TreeGenerator(head + child.parts, []) for child in layout.children]
        self.following = [TreeGenerator(head + 1 + 2 * child.parts, []) for child in layout.children]

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
        """Draw the rows of a child table, in order."""
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
        known = head + 1 + child.parts
        logs = log_chances(tree.tree, known) if len(tree.tree.nodes) and many.max(initial=0) > 1 else None
        for turn in range(1, child.most if len(tree.tree.nodes) else 1):
            units = np.flatnonzero(many > turn)
            if not len(units):
                break
            rows = np.zeros((len(units), known + child.parts))
            rows[:, :head] = found[units, :head]
            rows[:, head] = many[units] - turn - 1
            rows[:, head + 1 : known] = found[units, child.row(turn - 1)]
            following = draw_given(tree.tree, rows, known, rng, logs)[:, known:]
            if child.order >= 0:
                before = rows[:, head + 1 + child.order]
                for _ in range(_TRIES):
                    beyond = np.flatnonzero(before + following[:, child.order] > child.highest)
                    if not len(beyond):
                        break
                    following[beyond] = draw_given(tree.tree, rows[beyond], known, rng, logs)[:, known:]
                following[:, child.order] += before
            found[units, child.row(turn)] = following
        for turn in range(child.most):
            for each in child.above:
                if each.place != child.order:
                    _turned_back(found, np.flatnonzero(many > turn), child.row(turn).start + each.place, each)
        if child.order >= 0:
            _within_bounds(found, child, many)


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


# -- rows of a tree, drawn given some of their columns ----------------------------------------------------------------


def draw_given(
    tree: Tree, rows: Floats, known: int, rng: np.random.Generator, logs: list[Floats] | None = None
) -> Floats:
    """Return rows with the other columns drawn.

    The given columns are the tree's first nodes, and none of their parents is drawn. The posterior of the component,
    given a row's columns, is then a product along the tree (Bayes' rule). The component is drawn from it, and the other
    columns from the component and their parents.

    Args:
        tree: A tree whose first nodes are given.
        rows: ``(N, parts)`` of which only the given parts are read.
        known: Number of given nodes.
        rng: Public randomness.
        logs: The result of :func:`log_chances`, if several draws share it; None: computed.
    """
    found = rows.copy()
    if not len(rows):
        return found
    drawn = _Given(tree, rows, known, rng, log_chances(tree, known) if logs is None else logs)
    drawn.draw()
    for place in range(known, len(tree.nodes)):
        found[:, tree.nodes[place].part] = drawn.values(place)
    return found


def log_chances(tree: Tree, known: int) -> list[Floats]:
    """Return the log probability of each group of each given node, ``(parent's f or 1, m, K)``, by component.

    Args:
        tree: A tree whose first nodes are given.
        known: Number of given nodes.
    """
    return [_logs(tree, place) for place in range(known)]


class _Given(TreeDraw):
    """A draw of rows whose first nodes are known."""

    def __init__(self, tree: Tree, rows: Floats, known: int, rng: np.random.Generator, logs: list[Floats]) -> None:
        super().__init__(tree, TreeEvidence(tree, {}), len(rows), rng)
        self._known = known
        for place in range(known):
            node = tree.nodes[place]
            leaf = np.searchsorted(node.starts, rows[:, node.part], side="right") - 1
            self.fine[:, place] = node.fine[np.maximum(leaf, 0)]
            self.coarse[:, place] = node.coarse[self.fine[:, place]]
        self.component = self._components(rng, logs)

    @override
    def draw(self, *, rake: dict[int, Floats] | None = None) -> None:
        for place in range(self._known, len(self._tree.nodes)):
            self._draw_node(place, rake)

    def _components(self, rng: np.random.Generator, tables: list[Floats]) -> Ints:
        """Draw each row's component from its posterior given the known nodes."""
        weights = np.log(np.maximum(self._tree.weights, _LEAST))
        found = np.zeros(len(self.fine), dtype=np.int64)
        for first in range(0, len(found), _AT_ONCE):
            rows = slice(first, first + _AT_ONCE)
            logs = np.repeat(weights[None], len(found[rows]), axis=0)
            for place, table in enumerate(tables):
                above = self.fine[rows, max(0, self._tree.nodes[place].parent)]
                logs += table[above if self._tree.nodes[place].parent >= 0 else 0, self.coarse[rows, place]]
            chances = np.exp(logs - logs.max(1, keepdims=True))
            found[rows] = entry_at(chances, rng.random(len(chances)))
        return found


def _logs(tree: Tree, place: int) -> Floats:
    node, components = tree.nodes[place], np.arange(len(tree.weights))
    above = np.arange(len(tree.nodes[node.parent].coarse) if node.parent >= 0 else 1)
    chances = node.chances(components[:, None], above[None], None, np.ones(node.groups))
    if node.parent < 0:
        chances = chances.reshape(len(components), 1, node.groups)
    chances = chances / np.maximum(chances.sum(2, keepdims=True), _LEAST)
    found: Floats = np.log(np.maximum(chances, _LEAST)).transpose(1, 2, 0).astype(np.float32).copy()
    return found
