"""Drawing of a tree's rows, node by node.

Counts of groups are kept close to their expectation: similar rows are sorted next to one another, in random order among
themselves, and take consecutive terms of a low-discrepancy sequence.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from doublure.networks import swapped_tables
from doublure.networks.tree_asked import TreeEvidence
from doublure.networks.tree_tables import LEAST, Floats, Tree, TreeNode
from doublure.support import lattices
from doublure.support.arrays import Ints

_GOLDEN = 0.6180339887498949
_AT_ONCE = 4_000
"""Rows at a time: their chances stay in a processor's own memory. No row depends on it."""
_JUDGED = 15_000
_ROUNDS = 8
"""Rounds of raking."""
_ALLOWED = 2 * LEAST
"""Scaled likelihoods below are those of groups that hold nothing that is asked for."""


class TreeDraw:
    """The groups of rows that are being drawn.

    Args:
        tree: All tables.
        asked: The conditions on the rows.
        count: N, number of rows.
        rng: Public randomness.
        weights: ``(K,)`` probability of each component; None: the tree's.

    Attributes:
        component: ``(N,)``.
        coarse: ``(N, nodes)`` coarse groups.
        fine: ``(N, nodes)`` fine groups.
    """

    def __init__(
        self, tree: Tree, asked: TreeEvidence, count: int, rng: np.random.Generator, weights: Floats | None = None
    ) -> None:
        self._tree = tree
        self._asked = asked
        self._rng = rng
        weights = tree.weights if weights is None else weights
        likely = weights * asked.likely
        weights = likely if likely.sum() > 0 else weights
        cumulative = np.cumsum(weights / weights.sum())
        even = (np.arange(count) + rng.random()) / max(1, count)
        self.component = np.minimum(np.searchsorted(cumulative, even, side="right"), len(weights) - 1)
        self.coarse = np.zeros((count, len(tree.nodes)), dtype=np.int64)
        self.fine = np.zeros((count, len(tree.nodes)), dtype=np.int64)

    def draw(self, *, rake: dict[int, Floats] | None = None) -> None:
        """Draw all groups.

        Args:
            rake: Wanted shares by node, each replaced by the factors that bring the groups to them; None: the tree's
                factors are used.
        """
        for place in range(len(self._tree.nodes)):
            self._draw_node(place, rake)

    def keep(self, rows: Ints) -> None:
        """Keep some rows only."""
        self.component, self.coarse, self.fine = self.component[rows], self.coarse[rows], self.fine[rows]

    def values(self, place: int) -> Floats:
        """Return an allowed value ``(N,)`` of each row's fine group."""
        node, fine = self._tree.nodes[place], self.fine[:, place]
        leaves = self._asked.of(place)
        order, begins, ends, cumulative = leaves.by_group
        u = np.empty(len(fine))
        rows = shuffle_within(self._rng.random(len(fine)), fine)
        count = np.bincount(fine, minlength=len(node.coarse))
        first = (np.cumsum(count) - count)[fine[rows]]
        u[rows] = (np.arange(len(rows)) - first + self._rng.random(len(count))[fine[rows]]) / count[fine[rows]]
        low, high = cumulative[begins[fine]], cumulative[ends[fine]]
        at = np.searchsorted(cumulative, low + u * (high - low), side="right") - 1
        leaf = order[np.clip(at, begins[fine], ends[fine] - 1)]
        return self._within_leaves(node, leaves.starts[leaf], leaves.widths[leaf])

    # -- inside ------------------------------------------------------------------------------------------------------

    def _even(self) -> bool:
        """Whether values are swapped between rows, so that joint tables are as expected."""
        return True

    def _within_leaves(self, node: TreeNode, starts: Ints, widths: Ints) -> Floats:
        """Return a value ``(N,)`` of each leaf, by the weights of lattices and hours."""
        chance = self._rng.random(len(starts))
        if node.by_hour is not None:
            starts, widths = starts.astype(np.int64), widths.astype(np.int64)
            return node.by_hour.draw(starts, starts + widths - 1, chance).astype(np.float64)
        if len(node.steps) == 1:
            found: Floats = starts + np.floor(chance * widths)
            return found
        own = entry_at(node.weights(starts, widths), self._rng.random(len(starts)))
        return lattices.draw(starts, starts + widths - 1, own, node.steps, chance).astype(np.float64)

    def _draw_node(self, place: int, rake: dict[int, Floats] | None) -> None:
        node = self._tree.nodes[place]
        count = len(self.component)
        single = self._asked.single(place)
        if single is not None:
            self.fine[:, place] = single
            self.coarse[:, place] = node.coarse[single]
            return
        above = self.fine[:, node.parent] if node.parent >= 0 else np.zeros(count, dtype=np.int64)
        order = shuffle_within(self._rng.random(count), above, self.component)
        if rake is not None:
            some = order[:: max(1, count // _JUDGED)]
            rake[place] = _raked(self._chances(place, some, above, np.ones(node.groups)), rake[place])
        factor = None if rake is None else rake[place]
        start = self._rng.random()
        swapped = rake is None and place > 0 and self._even()
        all_chances = np.empty((count if swapped else 0, node.groups), dtype=np.float32)
        for first in range(0, count, _AT_ONCE):
            rows = order[first : first + _AT_ONCE]
            chances = self._chances(place, rows, above, factor)
            self.coarse[rows, place] = entry_at(chances, (start + (first + np.arange(len(rows))) * _GOLDEN) % 1)
            if swapped:
                all_chances[rows] = chances / np.maximum(chances.sum(1, keepdims=True), LEAST)
        if swapped:
            beside = self._tree.beside[place]
            near = shuffle_within(self._rng.random(count), above)
            self.coarse[:, place] = swapped_tables.swap_pairs(
                self.coarse[:, place], all_chances, self.coarse[:, beside], self._tree.sizes[beside], near, self._rng
            )
        if len(node.coarse) == node.groups:  # as many fine groups as coarse ones: they are the same
            self.fine[:, place] = np.argsort(node.coarse)[self.coarse[:, place]]
            return
        order = shuffle_within(self._rng.random(count), above, self.coarse[:, place])
        start = self._rng.random()
        for first in range(0, count, _AT_ONCE):
            rows = order[first : first + _AT_ONCE]
            chances = node.within[above[rows]] * (node.coarse[None] == self.coarse[rows, place][:, None])
            ahead = self._asked.ahead_within(place, self.component[rows], self.fine[rows, 0])
            if ahead is not None:
                chances = _asked_chances(chances, ahead)
            self.fine[rows, place] = entry_at(chances, (start + (first + np.arange(len(rows))) * _GOLDEN) % 1)

    def _chances(self, place: int, rows: Ints, above: Ints, rake: Floats | None) -> Floats:
        """Return the chances ``(rows, m)`` of the coarse groups of a node."""
        patterns, component = self.fine[rows, 0], self.component[rows]
        missing = self._tree.held(place, patterns)
        chances = self._tree.nodes[place].chances(component, above[rows], missing, rake)
        ahead = self._asked.ahead(place, component, above[rows], patterns)
        return chances if ahead is None else _asked_chances(chances, ahead)


def _asked_chances(chances: Floats, ahead: Floats) -> Floats:
    """Return chances ``(N, m)`` times likelihoods of what is asked for.

    Noise may leave no chance to any allowed group, such as one row or more of a person: then all of them are alike.
    """
    found = chances * ahead
    lost = ~((chances > 0) & (ahead > _ALLOWED)).any(1)
    found[lost] = ahead[lost]
    return found


def shuffle_within(chance: Floats, *groups: Ints) -> Ints:
    """Return rows sorted by groups, the last one first, then by random numbers, as ``np.lexsort`` does.

    Args:
        chance: ``(n,)``.
        groups: Each ``(n,)``, small whole numbers >= 0, so that a radix sort applies.
    """
    order: Ints = np.argsort(chance, kind="stable")
    for group in groups:
        own = group[order]
        small = own.astype(np.uint16) if own.max(initial=0) < 2**16 else own
        order = order[np.argsort(small, kind="stable")]
    return order


def rake(tree: Tree, wanted: list[Floats], count: int, rng: np.random.Generator) -> tuple[Tree, TreeDraw]:
    """Return the tree with each node's groups brought to wanted shares, and its fine groups to those of its leaves.

    The rows that this took are returned, too.

    Args:
        tree: The tree, not yet raked.
        wanted: ``(m,)`` shares for each node.
        count: Number of rows to estimate from.
        rng: Public randomness.
    """
    factors = dict(enumerate(wanted))
    drawn = TreeDraw(tree, TreeEvidence(tree, {}), count, rng)
    drawn.draw(rake=factors)
    nodes = []
    for place, node in enumerate(tree.nodes):
        inner = node.inner
        if node.parent >= 0 and len(node.coarse) > node.groups:
            met = np.zeros((len(inner), node.groups))
            np.add.at(met, (drawn.fine[:, node.parent], drawn.coarse[:, place]), 1.0)
            inner = _raked_within(node, met)
        nodes.append(replace(node, rake=factors[place], inner=inner))
    return replace(tree, nodes=tuple(nodes)), drawn


def _raked_within(node: TreeNode, met: Floats) -> Floats:
    """Return a node's fine groups given the parent, with the shares of its leaves over all rows.

    Args:
        node: It has a parent.
        met: ``(parent's f, m)`` rows of the parent's fine groups with the node's coarse groups.
    """
    totals = node.fine_mass @ node.membership
    wanted = node.fine_mass / totals[node.coarse] * met.sum(0)[node.coarse]
    found, rows = node.within.copy(), met[:, node.coarse]
    for _ in range(_ROUNDS):
        found *= (wanted + LEAST) / ((rows * found).sum(0) + LEAST)
        found /= np.maximum(found @ node.membership, LEAST)[:, node.coarse]
    return found


def _raked(chances: Floats, wanted: Floats) -> Floats:
    factor = np.ones(len(wanted))
    for _ in range(_ROUNDS):
        found = factor * ((1 / np.maximum(chances @ factor, LEAST)) @ chances) / len(chances)
        factor = factor * np.clip((wanted + 1e-6) / (found + 1e-6), 0.5, 2)
    return factor


def draw_evenly(chances: Floats, order: Ints, rng: np.random.Generator) -> Ints:
    """Return one entry ``(N,)`` of each row of chances ``(N, m)``, stratified along an order of the rows."""
    uniform = np.empty(len(chances))
    uniform[order] = (rng.random() + np.arange(len(chances)) * _GOLDEN) % 1
    return entry_at(chances, uniform)


def entry_at(chances: Floats, uniform: Floats) -> Ints:
    """Return an entry of each row of chances, by inverting the distribution at a number in [0, 1)."""
    cumulative = np.cumsum(chances, axis=1)
    found: Ints = np.minimum((uniform[:, None] * cumulative[:, -1:] >= cumulative).sum(1), chances.shape[1] - 1)
    return found
