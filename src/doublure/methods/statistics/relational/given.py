"""The releases of a stage of which much is given, by the stages before.

A stage counts what is drawn in it, by itself and with what is given. What is given, such as the root's columns of units
that have a row, is counted in synthetic units instead, which the trees of earlier stages draw. That is post-processing
of their releases, and costs nothing; the stage's whole budget goes to tables that only records tell. Pairs of given
parts enter the tree alone: a mixture that is fitted to them, too, spends its components on what it never draws.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np
from scipy.special import ndtri
from typing_extensions import override

from doublure.methods.statistics.relational.stages import Stage
from doublure.methods.statistics.settings import RelationalStatisticsSettings
from doublure.methods.statistics.tables import plan
from doublure.methods.statistics.tables.leaves import ColumnLeaves, Floats, Ints
from doublure.methods.statistics.tables.nodes import Node, NoisyCounts
from doublure.methods.statistics.tables.noisy_tables import NoisyTables, hours_axis
from doublure.methods.statistics.tables.public_counts import CHANCE
from doublure.methods.statistics.tables.work import rows_drawn
from doublure.networks.given_columns import draw_given
from doublure.networks.related_units import RelatedGenerator
from doublure.networks.tree_tables import Tree
from doublure.private.queries.axes import Table
from doublure.training.job import Job

_BATCHES, _ENOUGH = 3, 0.5
"""Most batches of units that are drawn to see what is given, and the share of a batch that suffices."""
_LEAST = 1e-9


@dataclass(frozen=True, kw_only=True, eq=False)
class OneRow:
    """The relations between the numbers of one row, by the stage that counts them.

    Attributes:
        tree: Draws such a row, given its head and, where rows have an order, its place.
        placed: Whether it is given its place.
        pairs: Places in the row of each pair that was counted.
        scores: Their scores and those of all others, in the order of the stage's columns, for each unit.
    """

    tree: Tree = field(default_factory=Tree)
    placed: bool = False
    pairs: frozenset[tuple[int, int]] = frozenset()
    scores: Floats = field(default_factory=lambda: np.zeros((0, 0)))

    @classmethod
    def of(cls, stage: Stage, tree: Tree, tables: NoisyTables) -> OneRow:
        """Return what a stage of single rows has counted, and its tree."""
        counted = [sorted(place - stage.known for place in pair) for pair in (*tables.pairs, *tables.edges)]
        pairs = frozenset((one, other) for one, other in counted if one >= 0)
        return cls(tree=tree, placed=stage.turn == "any", pairs=pairs, scores=tables.scores / tables.rows)

    def draw(self, heads: Floats, places: Ints, parts: int, rng: np.random.Generator) -> Floats:
        """Return rows ``(N, parts)`` of these heads, at these places."""
        given = np.column_stack([heads, places]) if self.placed else heads
        rows = draw_given(self.tree, np.hstack([given, np.zeros((len(given), parts))]), given.shape[1], rng)
        return rows[:, given.shape[1] :]


@dataclass(frozen=True, kw_only=True, eq=False)
class GivenRows:
    """Synthetic units that tell what is known of a stage's rows before it counts.

    Attributes:
        values: ``(S, parts)`` first what is given when rows are drawn; then, if they are known, numbers of a row.
        weight: Number of units that each stands for.
        known: How many are given.
        told: Which others are known among themselves, but not by themselves, each with its place in the stage that has
            counted them.
        pairs: The pairs of those of which records have told.
        scores: Those of all pairs of that stage, a unit.
    """

    values: Floats
    weight: float
    known: int
    told: Mapping[int, int] = field(default_factory=dict)
    pairs: frozenset[tuple[int, int]] = frozenset()
    scores: Floats = field(default_factory=lambda: np.zeros((0, 0)))

    def knows(self, axes: Table) -> bool:
        """Return whether records need not be asked for a table."""
        parts = _parts(axes)
        if all(0 <= part < self.known for part in parts):
            return True
        return len(parts) > 1 and self.told.keys() >= {*parts}

    def alone(self, axes: Table, variance: float) -> NoisyCounts:
        """Return a table that is known.

        Args:
            axes: Its axes.
            variance: Of a count of records; numbers of a row among themselves vary as so few drawn rows do, and one
                more: a stage that noise left without rows is not known to have none.
        """
        counts = self.counts(axes)
        if self.told.keys() >= {*_parts(axes)}:
            variance = min(variance, self.weight * (float(counts.sum()) + self.weight) / counts.size)
        return NoisyCounts(counts=counts, variance=variance)

    def counts(self, axes: Table) -> Floats:
        """Return a table's counts."""
        sizes = [axis.size for axis in axes]
        cells = np.zeros(len(self.values), dtype=np.int64)
        for axis in axes:
            cells = cells * axis.size + axis.of(self.values)
        found: Floats = self.weight * np.bincount(cells, minlength=math.prod(sizes)).reshape(sizes)
        return found

    def told_score(self, one: int, other: int) -> float:
        """Return the score of a pair that is told, a unit."""
        return float(self.scores[self.told[one], self.told[other]])

    def score(self, axes: Table) -> float:
        """Return the distance of a pair of given columns from independence."""
        counts = self.counts(axes)
        expected = np.outer(counts.sum(1), counts.sum(0)) / max(float(counts.sum()), _LEAST)
        return float(np.abs(counts - expected).sum())


def draw_what_is_given(
    generator: RelatedGenerator, one_row: OneRow, stage: Stage, units: float, rng: np.random.Generator
) -> GivenRows:
    """Return what is given in a stage, and what is told, of units drawn by the stages before.

    Args:
        generator: With the trees of those stages.
        one_row: What is known of single rows of this table; nothing in the stage that counts them.
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
    values, first = drawn, stage.known + len(stage.repeats)
    told = {first + place: child.head_width + one_row.placed + place for place in range(child.parts) if stage.told}
    if stage.turn == "any":
        values = np.column_stack([drawn, rng.integers(0, many)])
    elif stage.following:
        place = rng.integers(0, many - 1)
        rows = one_row.draw(drawn, place, child.parts, rng)
        for each in child.above:
            if each.place == child.order:  # next rows are told the order's own number
                rows[:, each.place] = each.numbers(rows[:, each.place], drawn[:, each.below])
        values = np.column_stack([drawn, many - 2 - place, rows, np.zeros((len(rows), len(stage.repeats)))])
        values = np.hstack([values, one_row.draw(drawn, place + 1, child.parts, rng)])
        told.pop(first + child.order, None)  # its gap above the row before is not told
    elif stage.told:
        values = np.hstack([drawn, one_row.draw(drawn, np.zeros_like(many), child.parts, rng)])
    return GivenRows(
        values=values,
        weight=units / (batch * len(parts)),
        known=stage.known,
        told=told,
        pairs=frozenset(
            (one + first, other + first) for one, other in one_row.pairs if told.keys() >= {one + first, other + first}
        ),
        scores=one_row.scores,
    )


def _parts(axes: Table) -> list[int]:
    """Return the numbers that axes are of; -1 for one of several."""
    return [getattr(axis, "part", -1) for axis in axes]


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
        self._of_one_table = stage.of_one_table
        self._flags = stage.known + len(stage.repeats)
        before = self._flags - len(stage.repeats) - (len(self.encoder.columns) - self._flags)
        self._told_by_flags = {(before + place, self._flags + place) for place in stage.repeats}
        self._events = {purpose.removeprefix(prefix): event for purpose, event in self._events.items()}
        self._numbers = {purpose.removeprefix(prefix): number for purpose, number in self._numbers.items()}

    @override
    def _is_given(self, part: int) -> bool:
        return self._given is not None and part < self._known

    @override
    def _told_hours(self, leaves: ColumnLeaves) -> Floats | None:
        """Return the hours of rows that the stage of single rows draws."""
        part, hours = leaves.part, leaves.domain.hours()
        if self._given is None or not hours or not self._flags <= part < self._given.values.shape[1]:
            return None
        timed = self._given.values[self._given.values[:, part] >= leaves.domain.clock_from]
        found: Floats = np.bincount(hours_axis(leaves).of(timed), minlength=hours)[:hours].astype(np.float64)
        return found

    @override
    def _placed(self, nodes: Sequence[Node], purpose: str, places: int) -> list[Node]:
        """Return the first columns for which a release has places, and those that are given, which need none."""
        asked = super()._placed([node for node in nodes if not self._is_given(node.leaves.part)], purpose, places)
        return [node for node in nodes if self._is_given(node.leaves.part) or any(node is each for each in asked)]

    @override
    def _released(
        self, purpose: str, wanted: Sequence[Table], weights: Sequence[float] | None = None
    ) -> list[NoisyCounts]:
        if self._given is None or purpose in (plan.PATTERNS, plan.NEIGHBOURS):
            return super()._released(purpose, wanted, weights)
        told = [self._given.knows(axes) for axes in wanted]
        asked = [place for place, known in enumerate(told) if not known]
        own = None if weights is None else [weights[place] for place in asked]
        counted = iter(super()._released(purpose, [wanted[place] for place in asked], own))
        # As trusted as one count: what earlier stages tell has their noise.
        variance = self._events[purpose if purpose in self._events else plan.COLUMNS].scale ** 2
        return [
            self._given.alone(axes, variance) if known else next(counted)
            for axes, known in zip(wanted, told, strict=True)
        ]

    @override
    def _unknown_pairs(self) -> Iterable[tuple[int, int]]:
        """Return pairs that records are asked for; of a number that may be as before, not with the one before."""
        if self._given is None:
            return super()._unknown_pairs()
        known, told = self._known, self._given.told
        return (
            pair
            for pair in super()._unknown_pairs()
            if pair[1] >= known and not told.keys() >= {*pair} and pair not in self._told_by_flags
        )

    @override
    def _chosen(self, places: int) -> list[tuple[int, int]]:
        """Return the pairs to count, and those within a row that were counted before."""
        found = super()._chosen(places)
        return found if self._given is None else [*found, *sorted(self._given.pairs)]

    @override
    def _by_chance(self, both: Sequence[tuple[int, int]], shares: Sequence[Floats]) -> list[float]:
        """Return the same with the noise of the columns' own counts, which stages of few rows see, too.

        A cell of shares p and q is expected to have N p q rows, with margins known up to variances s² and t²: its
        difference has a variance of N p q + q² s² + p² t².
        """
        if not self._of_one_table:
            return super()._by_chance(both, shares)
        every = [node.single_variance for node in self.nodes]
        found = []
        for one, other in both:
            p, q = shares[one][:, None], shares[other][None]
            variance = self.rows * p * q + q**2 * every[one][:, None] + p**2 * every[other][None]
            found.append(CHANCE * float(np.sqrt(variance).sum()))
        return found

    @override
    def _score_pairs(self) -> None:
        super()._score_pairs()
        if self._given is None:
            return
        if self._of_one_table:
            self.scored = []  # no evidence of dependence: pairs of a row are told, and repeats came out too often
            self._take_off_errors_of_what_is_given()
        axes = [node.axis(node.coarse) for node in self.nodes]
        known = self._known
        for one, other in combinations(range(len(axes)), 2):
            if other < known or {one, other} <= self._given.told.keys():
                found = (
                    self.rows * self._given.told_score(one, other)
                    if one >= known
                    else self._given.score((axes[one], axes[other]))
                )
                self.scores[one, other] = self.scores[other, one] = found

    def _take_off_errors_of_what_is_given(self) -> None:
        """Lower the scores of each given column by what all of them have in common.

        Where the drawn units miss the margin of a given column, every pair of it differs from what was expected by as
        much. The weakest of n pairs would score as the least of n errors of noise if it were independent.
        """
        for place in range(self._known):
            own = self.scores[place]
            asked = np.flatnonzero(own > -math.inf)
            if len(asked) > 1:
                least = self.score_noise * float(ndtri(1 / (len(asked) + 1)))
                common = max(0.0, float(own[asked].min()) - least)
                self.scores[place, asked] -= common
                self.scores[asked, place] -= common

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
