"""Conditioning of a tree's rows on allowed values, by belief propagation (Pearl 1988).

Messages from the conditioned columns up to the root hold the likelihood of the allowed values given each group on the
path. Rows drawn with these likelihoods have the distribution that rejection sampling would give. If the root is the
pattern of missing cells, there are messages for each set of patterns that differ in columns on the path.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from doublure.networks.steering import IntRanges
from doublure.networks.tree_tables import LEAST, AllowedLeaves, Floats, Tree, TreeNode
from doublure.support.arrays import Ints


def cut_leaves(node: TreeNode, spans: IntRanges) -> AllowedLeaves:
    """Return a node's leaves, cut to the allowed values; a group without any keeps its own leaves."""
    count, mass = len(node.coarse), node.mass + LEAST
    if not spans:
        return replace(node.leaves, fit=np.zeros(count))
    parts = []
    for low, high in spans:
        first = np.maximum(node.starts, low)
        width = np.minimum(node.starts + node.widths - 1, high) - first + 1
        own = np.flatnonzero(width > 0)
        kept = node.weights(first[own], width[own]).sum(1) / node.weights(node.starts[own], node.widths[own]).sum(1)
        parts.append((first[own], width[own], mass[own] * kept, node.fine[own]))
    starts, widths, cut, fine = (np.concatenate(own) for own in zip(*parts, strict=True))
    fit = np.bincount(fine, cut, count) / np.bincount(node.fine, mass, count)
    empty = np.flatnonzero(fit[node.fine] <= 0)
    return AllowedLeaves(
        starts=np.concatenate([starts, node.starts[empty]]).astype(np.int64),
        widths=np.concatenate([widths, node.widths[empty]]),
        mass=np.concatenate([cut, mass[empty]]),
        fine=np.concatenate([fine, node.fine[empty]]).astype(np.int64),
        fit=fit,
    )


class TreeEvidence:
    """The allowed values of rows, and their likelihood given each node on the paths to them.

    Args:
        tree: All tables.
        spans: Node -> its allowed values.

    Attributes:
        leaves: Node -> its leaves, for nodes with a condition.
        likely: ``(K,)`` likelihood of the allowed values given each component.
    """

    def __init__(self, tree: Tree, spans: Mapping[int, IntRanges]) -> None:
        self._tree = tree
        self.leaves = {place: cut_leaves(tree.nodes[place], own) for place, own in spans.items()}
        self.likely = np.ones(len(tree.weights))
        self._ahead: dict[int, tuple[Floats, Floats]] = {}
        self._which = np.zeros(1, dtype=np.int64)
        if spans:
            self._pass_up()

    def of(self, place: int) -> AllowedLeaves:
        """Return the leaves that a node's values are drawn from."""
        return self.leaves.get(place) or self._tree.nodes[place].leaves

    def single(self, place: int) -> int | None:
        """Return the only allowed fine group of a node; None if there are several."""
        if place not in self.leaves:
            return None
        found = np.flatnonzero(self.leaves[place].fit)
        return int(found[0]) if len(found) == 1 else None

    def ahead(self, place: int, component: Ints, above: Ints, patterns: Ints) -> Floats | None:
        """Return the likelihood ``(N, m)`` given each coarse group, up to a factor; None off the paths."""
        if place not in self._ahead:
            return None
        found: Floats = self._ahead[place][0][self._own(patterns), component, above]
        return found

    def ahead_within(self, place: int, component: Ints, patterns: Ints) -> Floats | None:
        """Return the likelihood ``(N, f)`` given each fine group, up to a factor; None off the paths."""
        if place not in self._ahead:
            return None
        found: Floats = self._ahead[place][1][self._own(patterns), component]
        return found

    def _own(self, patterns: Ints) -> Ints:
        return self._which[patterns] if len(self._which) > 1 else np.zeros(len(patterns), dtype=np.int64)

    def _pass_up(self) -> None:
        tree = self._tree
        way: set[int] = set()
        for place in self.leaves:
            while place >= 0 and place not in way:
                way.add(place)
                place = tree.nodes[place].parent
        held = [at for at, place in enumerate(tree.about.tolist()) if place in way]
        sets = np.zeros((1, 0), dtype=np.int64)
        if held:
            sets, self._which = np.unique(tree.bits[:, held], axis=0, return_inverse=True)
            self._which = self._which.reshape(-1)
        messages = [self._messages(sorted(way, reverse=True), dict(zip(tree.about[held].tolist(), own, strict=True)))
                    for own in sets]  # fmt: skip
        for place in way:
            towards = np.stack([each[place][0] for each in messages])
            own = np.stack([each[place][1] for each in messages])
            if place == 0 and held:  # the root's groups are the patterns: each takes the messages of its own set
                patterns = np.arange(len(self._which))
                own = own[self._which, :, patterns].T[None].repeat(len(sets), axis=0)
                towards = (own[:, :, None, :] * tree.nodes[0].within) @ tree.nodes[0].membership
            if place == 0:
                root, every = tree.nodes[0], np.arange(len(tree.weights))
                chances = root.chances(every, every, None)
                chances /= chances.sum(1, keepdims=True)
                self.likely = (chances[:, root.coarse] * root.within * own[0]).sum(1)
            self._ahead[place] = _scaled(towards), _scaled(own)

    def _messages(self, way: list[int], missing: Mapping[int, int]) -> dict[int, tuple[Floats, Floats]]:
        """Return each node's likelihoods by component, parent's group and coarse group, and by own fine group."""
        tree = self._tree
        components = np.arange(len(tree.weights))
        own = {place: np.ones((len(components), len(tree.nodes[place].coarse))) for place in way}
        found: dict[int, tuple[Floats, Floats]] = {}
        for place in way:  # children before parents
            node = tree.nodes[place]
            if place in self.leaves:
                own[place] *= self.leaves[place].fit
            towards = (own[place][:, None, :] * node.within[None]) @ node.membership
            found[place] = towards, own[place]
            if node.parent >= 0:
                above = np.arange(len(tree.nodes[node.parent].coarse))
                bit = np.array(missing[place] == 1) if place in missing else None
                chances = node.chances(components[:, None], above[None], bit)
                own[node.parent] *= (chances * towards).sum(2) / np.maximum(chances.sum(2), LEAST)
        return found


def _scaled(likely: Floats) -> Floats:
    """Return likelihoods scaled to a maximum of 1 along the last axis, and above zero everywhere."""
    most = likely.max(-1, keepdims=True)
    found: Floats = (np.where(most > 0, likely / np.where(most > 0, most, 1), 1) + LEAST).astype(np.float32)
    return found
