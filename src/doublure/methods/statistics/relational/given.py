"""The releases of a stage of which much is given, by the stages before.

A stage counts what is drawn in it, by itself and with what is given. What is given, such as the root's columns of units
that have a row, is counted in synthetic units instead, which the trees of earlier stages draw. That is post-processing
of their releases, and costs nothing; the stage's whole budget goes to tables that only records tell. Pairs of given
parts enter the tree alone: a mixture that is fitted to them, too, spends its components on what it never draws.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from typing_extensions import override

from doublure.methods.statistics.relational.stages import Stage
from doublure.methods.statistics.settings import RelationalStatisticsSettings
from doublure.methods.statistics.tables import plan
from doublure.methods.statistics.tables.leaves import Floats
from doublure.methods.statistics.tables.nodes import Node, NoisyCounts
from doublure.methods.statistics.tables.noisy_tables import NoisyTables
from doublure.methods.statistics.tables.work import rows_drawn
from doublure.networks.given_columns import draw_given
from doublure.networks.related_units import RelatedGenerator
from doublure.networks.tree_tables import Tree
from doublure.private.queries.axes import AnyAxis, Table
from doublure.training.job import Job

_BATCHES, _ENOUGH = 3, 0.5
"""Most batches of units that are drawn to see what is given, and the share of a batch that suffices."""
_LEAST = 1e-9


@dataclass(frozen=True, kw_only=True, eq=False)
class GivenRows:
    """The given part of a stage's rows, of synthetic units.

    Attributes:
        values: ``(S, known)``.
        weight: Number of units that each stands for.
    """

    values: Floats
    weight: float

    def counts(self, axes: Table) -> Floats:
        """Return a table's counts."""
        sizes = [axis.size for axis in axes]
        cells = np.zeros(len(self.values), dtype=np.int64)
        for axis in axes:
            cells = cells * axis.size + axis.of(self.values)
        found: Floats = self.weight * np.bincount(cells, minlength=math.prod(sizes)).reshape(sizes)
        return found


def draw_what_is_given(
    generator: RelatedGenerator, anywhere: Tree, stage: Stage, units: float, rng: np.random.Generator
) -> GivenRows:
    """Return what is given in a stage, of units drawn by the stages before.

    Args:
        generator: With the trees of those stages.
        anywhere: Draws a row at any place; without nodes all rows are drawn as the first one.
        stage: The stage of a child table.
        units: Estimated number of units.
        rng: Public randomness.
    """
    least, batch = (2 if stage.following else 1), rows_drawn(stage.known)
    child = generator.layout.children[stage.child]
    parts: list[Floats] = []
    while len(parts) < _BATCHES and sum(map(len, parts)) < _ENOUGH * batch:
        own = generator.shown_heads(batch, stage.child, rng)
        parts.append(own[own[:, child.many] >= least])
    drawn = np.concatenate(parts)
    many = drawn[:, child.many].astype(np.int64)
    values = drawn
    if stage.turn == "any":
        values = np.column_stack([drawn, rng.integers(0, many)])
    elif stage.following:
        place = rng.integers(0, many - 1)
        tree = anywhere if anywhere.nodes else generator.first[stage.child].tree
        told = np.column_stack([drawn, place]) if anywhere.nodes else drawn
        rows = draw_given(tree, np.hstack([told, np.zeros((len(told), child.parts))]), told.shape[1], rng)
        for each in child.above:
            if each.place == child.order:  # next rows are told the order's own number
                at = told.shape[1] + each.place
                rows[:, at] = each.numbers(rows[:, at], drawn[:, each.below])
        values = np.column_stack([drawn, many - 2 - place, rows[:, told.shape[1] :]])
    return GivenRows(values=values, weight=units / (batch * len(parts)))


class StageTables(NoisyTables):
    """A stage's releases, with a tree whose first nodes are given when rows are drawn, and have given parents only.

    Args:
        job: The stage's job.
        settings: The method's settings.
        prefix: The prefix of its releases' purposes.
        stage: The stage.
        given: What is given, if it is not counted.
    """

    def __init__(
        self,
        job: Job,
        settings: RelationalStatisticsSettings,
        prefix: str,
        stage: Stage,
        given: GivenRows | None,
    ) -> None:
        super().__init__(job, settings)
        self._known = stage.known
        self._given = given
        self._flags = stage.known + len(stage.repeats)
        before = self._flags - len(stage.repeats) - (len(self.encoder.columns) - self._flags)
        self._told_by_flags = {(before + place, self._flags + place) for place in stage.repeats}
        self._events = {purpose.removeprefix(prefix): event for purpose, event in self._events.items()}
        self._numbers = {purpose.removeprefix(prefix): number for purpose, number in self._numbers.items()}

    @override
    def _placed(self, nodes: Sequence[Node], purpose: str, places: int) -> list[Node]:
        """Return the first columns for which a release has places, and those that are given, which need none."""
        if self._given is None:
            return super()._placed(nodes, purpose, places)
        asked = super()._placed([node for node in nodes if node.leaves.part >= self._known], purpose, places)
        return [node for node in nodes if node.leaves.part < self._known or any(node is each for each in asked)]

    @override
    def _released(
        self, purpose: str, wanted: Sequence[Table], weights: Sequence[float] | None = None
    ) -> list[NoisyCounts]:
        if self._given is None or purpose in (plan.PATTERNS, plan.NEIGHBOURS):
            return super()._released(purpose, wanted, weights)
        told = [all(self._is_given(axis) for axis in axes) for axes in wanted]
        asked = [place for place, known in enumerate(told) if not known]
        own = None if weights is None else [weights[place] for place in asked]
        counted = iter(super()._released(purpose, [wanted[place] for place in asked], own))
        # As trusted as one count: what earlier stages tell has their noise.
        variance = self._events[purpose if purpose in self._events else plan.COLUMNS].scale ** 2
        return [
            NoisyCounts(counts=self._given.counts(axes), variance=variance) if known else next(counted)
            for axes, known in zip(wanted, told, strict=True)
        ]

    def _is_given(self, axis: AnyAxis) -> bool:
        """Return whether an axis is of a given part."""
        return getattr(axis, "part", self._known) < self._known

    @override
    def _unknown_pairs(self) -> Iterable[tuple[int, int]]:
        """Return pairs with a number that is drawn; of one that may be as before, not with the one before."""
        known = 0 if self._given is None else self._known
        pairs = super()._unknown_pairs()
        return (pair for pair in pairs if pair[1] >= known and pair not in self._told_by_flags)

    @override
    def _score_pairs(self) -> None:
        super()._score_pairs()
        if self._given is None:
            return
        axes = [node.axis(node.coarse) for node in self.nodes[: self._known]]
        for one, other in combinations(range(self._known), 2):
            counts = self._given.counts((axes[one], axes[other]))
            expected = np.outer(counts.sum(1), counts.sum(0)) / max(float(counts.sum()), _LEAST)
            self.scores[one, other] = self.scores[other, one] = float(np.abs(counts - expected).sum())

    @override
    def _spanning(self) -> list[tuple[int, int]]:
        """Return edges with what is given first, then what says whether a number is as before."""
        inside, edges = [0], []
        while len(inside) < len(self.nodes):
            end = next(stop for stop in (self._known, self._flags, len(self.nodes)) if len(inside) < stop)
            outside = [place for place in range(end) if place not in inside]
            parent, child = max(
                ((one, other) for one in inside for other in outside), key=lambda pair: float(self.scores[pair])
            )
            edges.append((parent, child))
            inside.append(child)
        return edges
