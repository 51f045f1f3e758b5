"""A stage's noisy tables: its own columns are counted, and how those that are given go together is drawn for free.

What is given when rows are drawn stands first among the nodes, and first in the tree. Its groups, and its tables, are
those of rows that earlier stages have drawn: post-processing of what was released for them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations

import numpy as np

from doublure.methods.statistics.binning import closest_counts
from doublure.methods.statistics.settings import RelationalStatisticsSettings
from doublure.methods.statistics.tables import plan
from doublure.methods.statistics.tables.leaves import Floats, Leaves
from doublure.methods.statistics.tables.nodes import Node
from doublure.methods.statistics.tables.noisy_tables import Noisy, NoisyTables
from doublure.private.queries.axes import AnyAxis, Table
from doublure.training.job import Job

_CHANCE = 0.8
"""√(2/π): how far, on average, a normal number lies from its mean, in deviations."""
_DRAWN_NOISE = 0.25
"""What is drawn gets this share of the variance of what is counted: the fit knows how closely to follow it."""


class StageTables(NoisyTables):
    """The releases of one stage.

    Args:
        job: The stage.
        settings: Of the method.
        prefix: What its releases' purposes begin with.
        given: The nodes of earlier stages that stand for the first parts, in order; none at the first stage.
        drawn: ``(S, parts)`` rows of which those parts are filled in.
    """

    def __init__(
        self,
        job: Job,
        settings: RelationalStatisticsSettings,
        prefix: str,
        given: Sequence[Node] = (),
        drawn: Floats | None = None,
    ) -> None:
        super().__init__(job, settings)
        self._events = {purpose.removeprefix(prefix): event for purpose, event in self._events.items()}
        self._numbers = {purpose.removeprefix(prefix): number for purpose, number in self._numbers.items()}
        self._drawn = np.zeros((1, self.encoder.width)) if drawn is None else drawn
        self._given = [_placed(node, part, self._drawn) for part, node in enumerate(given)]
        self._columns = [(part, whole) for part, whole in self._columns if part >= len(given)]
        self._noise = np.random.default_rng(job.seed)

    @property
    def known(self) -> int:
        """How many nodes are given."""
        return len(self._given)

    # -- one after the other -------------------------------------------------------------------------------------

    def _count_columns(self) -> None:
        """Release each own column's groups; the others' follow from what was drawn."""
        super()._count_columns()
        noise, pair_noise = self._mean_noise(plan.COLUMNS), self._mean_noise(plan.PAIRS)
        for node in self._given:
            axis = node.axis(node.own)
            node.counts = np.bincount(axis.of(self._drawn), minlength=axis.size) / len(self._drawn) * self.rows
            node.variance = max(1.0, self.rows**2 / len(self._drawn) / axis.size)
            most = int(np.clip(self.rows / (plan.SEEN * max(noise, 1.0)), 2, self._settings.groups))
            node.take_counts(self.rows, most=most, pair_noise=pair_noise)
        self.nodes = [*self._given, *self.nodes]

    def _score_pairs(self) -> None:
        """Release how far each pair with an own column is from what its columns alone make one expect."""
        count, event = len(self.nodes), self._events.get(plan.SCORES)
        self.scores = np.zeros((count, count))
        if event is None:
            return
        axes = [node.axis(node.coarse) for node in self.nodes]
        shares = [closest_counts(node.single, node.single_variance, total=self.rows) / self.rows for node in self.nodes]
        both = list(combinations(range(count), 2))
        products = {pair: self.rows * np.outer(shares[pair[0]], shares[pair[1]]) for pair in both}
        asked = [pair for pair in both if pair[1] >= self.known]
        wanted: list[Table] = [(axes[one], axes[other]) for one, other in asked]
        expected = [np.rint(products[pair]).astype(np.int64) for pair in asked]
        noisy = self._tables.scored(plan.SCORES, self._numbers[plan.SCORES], wanted, expected)
        found = dict(zip(asked, noisy, strict=True))
        for pair in both:
            if pair not in found:
                drawn = self._of_drawn(axes[pair[0]], axes[pair[1]])
                found[pair] = float(np.abs(drawn - products[pair]).sum())
            one, other = pair
            by_chance = _CHANCE * float(np.sqrt(products[pair]).sum())
            self.scores[one, other] = self.scores[other, one] = found[pair] - by_chance

    def _chosen(self, places: int) -> list[tuple[int, int]]:
        """Return the pairs to count, the strongest first: each has an own column."""
        known, kept = self.known, self.scores
        self.scores = kept.copy()
        self.scores[:known, :known] = -math.inf
        chosen = [pair for pair in super()._chosen(places) if pair[1] >= known]
        self.scores = kept
        return chosen

    def _count_pairs(self) -> None:
        """Release the pairs that clearly depend on one another, and add those of what is given, as they were drawn."""
        chosen = self._chosen(self._places(plan.PAIRS) // plan.COPIES[plan.PAIRS])
        axes = [node.axis(node.coarse) for node in self.nodes]
        counted = self._released(plan.PAIRS, [(axes[one], axes[other]) for one, other in chosen])
        variance = _DRAWN_NOISE * self._mean_noise(plan.PAIRS) ** 2
        for one, other in combinations(range(self.known), 2):
            counts = self._of_drawn(axes[one], axes[other])
            counts = counts + self._noise.normal(0, math.sqrt(variance), counts.shape)
            chosen.append((one, other))
            counted.append(Noisy(counts=counts, variance=variance))
        self.pairs = {
            pair: Noisy(counts=noisy.counts[:, :, None], variance=noisy.variance)
            for pair, noisy in zip(chosen, counted, strict=True)
        }
        self.class_rows = np.array([self.rows])
        self.by_class = [self._within_classes(place, node, 1) for place, node in enumerate(self.nodes)]
        for node in self.nodes:
            node.believe(self.rows)

    def _count_tree(self) -> None:
        """Release own columns with their parents in the tree in fine groups; the rest of it was drawn."""
        self.edges = self._spanning()
        most = _FINE if self.rows > _FEW_ROWS else _FINE_OF_FEW
        for node in self.nodes:
            node.refine(most)
        axes = [node.axis(node.fine) for node in self.nodes]
        asked = [edge for edge in self.edges if edge[1] >= self.known]
        counted = iter(self._released(plan.TREE, [(axes[parent], axes[child]) for parent, child in asked]))
        self.fine = [
            next(counted)
            if child >= self.known
            else Noisy(counts=self._of_drawn(axes[parent], axes[child]), variance=1.0)
            for parent, child in self.edges
        ]

    # -- inside --------------------------------------------------------------------------------------------------

    def _spanning(self) -> list[tuple[int, int]]:
        """Return the strongest tree in which what is given comes before what is drawn."""
        inside, edges = [0], []
        while len(inside) < len(self.nodes):
            given = len(inside) < self.known
            outside = [n for n in range(len(self.nodes)) if n not in inside and (not given or n < self.known)]
            parent, child = max(
                ((one, other) for one in inside for other in outside), key=lambda pair: float(self.scores[pair])
            )
            edges.append((parent, child))
            inside.append(child)
        return edges

    def _of_drawn(self, one: AnyAxis, other: AnyAxis) -> Floats:
        """Return the table of two axes over what was drawn, as if there were as many rows as are counted."""
        cells = one.of(self._drawn) * other.size + other.of(self._drawn)
        table = np.bincount(cells, minlength=one.size * other.size).reshape(one.size, other.size)
        found: Floats = table * (self.rows / len(self._drawn))
        return found


_FINE, _FINE_OF_FEW, _FEW_ROWS = 48, 24, 10_000


def _placed(node: Node, part: int, drawn: Floats) -> Node:
    """Return a node of an earlier stage at another part, with the leaves' masses of what was drawn."""
    before = node.leaves
    leaves = Leaves.of(before.whole, part, before.starts.copy())
    leaves.cells, leaves.empty = before.cells, before.empty
    axis = leaves.axis(np.arange(leaves.size))
    leaves.mass = np.bincount(axis.of(drawn), minlength=leaves.size).astype(np.float64)
    return Node(leaves=leaves, own=node.own.copy())
