"""Rows of a tree that are drawn given some of their columns, row by row.

What is given stands first in the tree, and hangs on nothing that is drawn. How likely each component is, given a row's
columns, is then a product along the tree (Bayes' rule); the component is drawn from that, and the other columns from it
and from their parents, as always.
"""

from __future__ import annotations

import numpy as np

from doublure.networks.tree_asked import Asked
from doublure.networks.tree_draw import Draw, entry_at
from doublure.networks.tree_tables import Floats, Ints, Tree

_AT_ONCE = 4_000
_LEAST = 1e-12


def drawn_given(
    tree: Tree, rows: Floats, known: int, rng: np.random.Generator, logs: list[Floats] | None = None
) -> Floats:
    """Return rows with the other columns drawn.

    Args:
        tree: Its first nodes are those that are given.
        rows: ``(N, parts)`` of which the given parts are looked at.
        known: How many nodes are given.
        rng: Public randomness.
        logs: Of :func:`logs_given`, where many draws share them; None: computed.
    """
    found = rows.copy()
    if not len(rows):
        return found
    drawn = _Given(tree, rows, known, rng, logs_given(tree, known) if logs is None else logs)
    drawn.draw()
    for place in range(known, len(tree.nodes)):
        found[:, tree.nodes[place].part] = drawn.values(place)
    return found


def logs_given(tree: Tree, known: int) -> list[Floats]:
    """Return of each given node ``(parent's f or 1, m, K)``: how likely each group is in each component, as logarithms.

    Args:
        tree: Its first nodes are those that are given.
        known: How many.
    """
    return [_logs(tree, place) for place in range(known)]


class _Given(Draw):
    """Rows of which the first nodes are known."""

    def __init__(self, tree: Tree, rows: Floats, known: int, rng: np.random.Generator, logs: list[Floats]) -> None:
        super().__init__(tree, Asked(tree, {}), len(rows), rng)
        self._known = known
        for place in range(known):
            node = tree.nodes[place]
            leaf = np.searchsorted(node.starts, rows[:, node.part], side="right") - 1
            self.fine[:, place] = node.fine[np.maximum(leaf, 0)]
            self.coarse[:, place] = node.coarse[self.fine[:, place]]
        self.component = self._components(rng, logs)

    def draw(self, *, rake: dict[int, Floats] | None = None) -> None:
        """Draw the groups of all other nodes."""
        for place in range(self._known, len(self._tree.nodes)):
            self._draw_node(place, rake)

    def _components(self, rng: np.random.Generator, tables: list[Floats]) -> Ints:
        """Draw each row's component from how likely what is given makes it."""
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
