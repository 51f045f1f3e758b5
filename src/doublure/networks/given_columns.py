"""Rows of a tree that are drawn given some of their columns, which are the tree's first nodes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from typing_extensions import override

from doublure.networks.rooms import RoomLeft, fitting
from doublure.networks.tree_asked import TreeEvidence
from doublure.networks.tree_draw import TreeDraw, entry_at
from doublure.networks.tree_tables import Floats, Tree
from doublure.support.arrays import Ints, Mask

_AT_ONCE = 4_000
_EVEN_FROM = 20_000
"""Rows from which on their joint tables are made even: of fewer it takes most of the time, and matters little."""
_LEAST = 1e-12
_TRIES = (3, 13)
"""Redraws of a row that does not fit its room, and more of one that still does not."""


def draw_given(
    tree: Tree,
    rows: Floats,
    known: int,
    rng: np.random.Generator,
    odds: ComponentOdds | None = None,
    again: Sequence[tuple[int, int, int]] = (),
    begun: Floats | None = None,
    rooms: Sequence[RoomLeft] = (),
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
        odds: Of the components, if several draws share them; None: computed.
        again: For each number that may be as before the parts that say so, that hold it before, and that get it.
        begun: The result of :meth:`ComponentOdds.begun` for these rows, if several draws share it.
        rooms: Numbers that are cut to what fits when they are drawn; what is drawn before them does not know of it.
    """
    found = rows.copy()
    if not len(rows):
        return found
    drawn = _Given(tree, rows, known, rng, odds or ComponentOdds(tree, known, 0), again, begun, rooms)
    drawn.draw()
    for place in range(known, len(tree.nodes)):
        found[:, tree.nodes[place].part] = drawn.values(place)
    for flag, before, part in again:
        found[:, part] = np.where(found[:, flag] > 0, found[:, before], found[:, part])
    return found


def draw_fitting(
    tree: Tree,
    rows: Floats,
    known: int,
    rng: np.random.Generator,
    odds: ComponentOdds | None = None,
    again: Sequence[tuple[int, int, int]] = (),
    begun: Floats | None = None,
    rooms: Sequence[RoomLeft] = (),
) -> Floats:
    """Return rows as :func:`draw_given` does, given that they fit their rooms; a row that hardly ever fits may not.

    A row that does not fit is drawn again, as a whole.
    """
    odds = odds or ComponentOdds(tree, known, 0)

    def drawn(units: Ints) -> Floats:
        own = None if begun is None else begun[units]
        return draw_given(tree, rows[units], known, rng, odds, again, own)

    found = drawn(np.arange(len(rows)))
    for times in _TRIES:  # the first of several draws that fits, or else the last one
        beyond = np.flatnonzero(~fitting(found, rooms))
        if not len(beyond):
            return found
        many = np.repeat(beyond, times)
        tried = drawn(many)
        fits = fitting(tried, [room.of(many) for room in rooms]).reshape(-1, times)
        which = np.where(fits.any(1), fits.argmax(1), times - 1)
        found[beyond] = tried[np.arange(len(beyond)) * times + which]
    return found


class ComponentOdds:
    """Log probabilities of given columns, by component.

    Args:
        tree: A tree whose first nodes are given.
        known: Number of given nodes.
        head: The first parts, of which it can be computed once for several draws.
    """

    def __init__(self, tree: Tree, known: int, head: int) -> None:
        self._tree = tree
        self._tables = [_logs(tree, place) for place in range(known)]
        self._weights = np.log(np.maximum(tree.weights, _LEAST)).astype(np.float32)
        parts = [node.part for node in tree.nodes]
        above = [tree.nodes[place].parent for place in range(known)]
        self._first = [p for p in range(known) if parts[p] < head and (above[p] < 0 or parts[above[p]] < head)]
        self._rest = [place for place in range(known) if place not in self._first]

    def begun(self, rows: Floats) -> Floats:
        """Return the logarithms ``(N, K)`` as far as the first parts of rows say them."""
        fine, coarse = leaf_groups(self._tree, rows, self._first)
        return self._added(np.repeat(self._weights[None], len(rows), axis=0), self._first, fine, coarse)

    def of(self, fine: Ints, coarse: Ints, begun: Floats | None) -> Floats:
        """Return the logarithms ``(N, K)``.

        Args:
            fine: ``(N, nodes)`` fine groups of given nodes.
            coarse: ``(N, nodes)`` their coarse groups.
            begun: ``(N, K)`` what the first parts say; None: it is added.
        """
        if begun is not None:
            return self._added(begun.copy(), self._rest, fine, coarse)
        every = [*self._first, *self._rest]
        return self._added(np.repeat(self._weights[None], len(fine), axis=0), every, fine, coarse)

    def _added(self, logs: Floats, places: Sequence[int], fine: Ints, coarse: Ints) -> Floats:
        for place in places:
            parent = self._tree.nodes[place].parent
            logs += self._tables[place][fine[:, parent] if parent >= 0 else 0, coarse[:, place]]
        return logs


def leaf_groups(tree: Tree, rows: Floats, places: Iterable[int]) -> tuple[Ints, Ints]:
    """Return the fine and the coarse groups ``(N, nodes)`` of some nodes, zero of others."""
    fine = np.zeros((len(rows), len(tree.nodes)), dtype=np.int64)
    coarse = fine.copy()
    for place in places:
        node = tree.nodes[place]
        leaf = np.searchsorted(node.starts, rows[:, node.part], side="right") - 1
        fine[:, place] = node.fine[np.maximum(leaf, 0)]
        coarse[:, place] = node.coarse[fine[:, place]]
    return fine, coarse


class _Given(TreeDraw):
    """A draw of rows whose first nodes are known."""

    def __init__(
        self,
        tree: Tree,
        rows: Floats,
        known: int,
        rng: np.random.Generator,
        odds: ComponentOdds,
        again: Sequence[tuple[int, int, int]],
        begun: Floats | None,
        rooms: Sequence[RoomLeft],
    ) -> None:
        super().__init__(tree, TreeEvidence(tree, {}), len(rows), rng)
        self._known = known
        of_part = {node.part: place for place, node in enumerate(tree.nodes)}
        self._again = {of_part[part]: (of_part[flag], rows[:, before]) for flag, before, part in again}
        self._rooms = {of_part[room.part]: room for room in rooms}
        self.fine, self.coarse = leaf_groups(tree, rows, range(known))
        self.component = self._components(rng, odds, begun)

    @override
    def _even(self) -> bool:
        return len(self.component) >= _EVEN_FROM

    @override
    def draw(self, *, rake: dict[int, Floats] | None = None) -> None:
        for place in range(self._known, len(self._tree.nodes)):
            self._draw_node(place, rake)

    @override
    def values(self, place: int) -> Floats:
        if place not in self._rooms:
            return super().values(place)
        node = self._tree.nodes[place]
        own = self._rooms[place].mass(node) * (node.fine == self.fine[:, place][:, None])
        leaf = entry_at(own, self._rng.random(len(own)))
        return self._within_leaves(node, *self._rooms[place].cut(node, leaf))

    def _draw_cut(self, place: int) -> None:
        """Draw a node's groups by the share of each that fits a row's room."""
        node, count = self._tree.nodes[place], len(self.component)
        above = self.fine[:, node.parent] if node.parent >= 0 else np.zeros(count, dtype=np.int64)
        mass = self._rooms[place].mass(node) @ np.eye(len(node.coarse))[node.fine]
        chances = self._chances(place, np.arange(count), above, None)[:, node.coarse] * node.within[above]
        chances = chances * mass / node.fine_mass
        chances = np.where(chances.sum(1, keepdims=True) > 0, chances, mass)
        self.fine[:, place] = entry_at(chances, self._rng.random(count))
        self.coarse[:, place] = node.coarse[self.fine[:, place]]

    @override
    def _draw_node(self, place: int, rake: dict[int, Floats] | None) -> None:
        if place in self._rooms:
            self._draw_cut(place)
        else:
            super()._draw_node(place, rake)
        if place in self._again:  # its own group within the coarse one
            same, leaf = self._as_before(place)
            self.fine[same, place] = self._tree.nodes[place].fine[leaf[same]]

    @override
    def _chances(self, place: int, rows: Ints, above: Ints, rake: Floats | None) -> Floats:
        found = super()._chances(place, rows, above, rake)
        if place not in self._again:
            return found
        node = self._tree.nodes[place]
        same, leaf = self._as_before(place)
        before = node.coarse[node.fine[leaf[rows]]]
        alone = np.bincount(node.coarse[node.fine], node.widths, node.groups)[before] <= 1
        own = np.arange(node.groups) == before[:, None]
        kept = np.where(same[rows, None], own, ~(own & alone[:, None]))
        found = found * kept
        every = kept * np.bincount(node.coarse, node.fine_mass, node.groups)
        drawn: Floats = np.where(found.sum(1, keepdims=True) > 0, found, every)
        return drawn

    def _as_before(self, place: int) -> tuple[Mask, Ints]:
        """Return which rows have a number as before ``(N,)``, and the leaf ``(N,)`` of the one before."""
        flag, before = self._again[place]
        node = self._tree.nodes[flag]
        value = node.starts[np.argsort(node.fine)][self.fine[:, flag]]
        starts = self._tree.nodes[place].starts
        return value > 0, np.maximum(np.searchsorted(starts, before, side="right") - 1, 0)

    def _components(self, rng: np.random.Generator, odds: ComponentOdds, begun: Floats | None) -> Ints:
        """Draw each row's component from its posterior given the known nodes."""
        found = np.zeros(len(self.fine), dtype=np.int64)
        for first in range(0, len(found), _AT_ONCE):
            rows = slice(first, first + _AT_ONCE)
            logs = odds.of(self.fine[rows], self.coarse[rows], None if begun is None else begun[rows])
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
