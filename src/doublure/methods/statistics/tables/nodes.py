"""Nodes of the tree: each column in groups, and the patterns of missing cells as one column more."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from doublure.methods.statistics.binning import empirical_bayes_counts, project_to_simplex
from doublure.methods.statistics.tables.leaves import (
    ColumnLeaves,
    Floats,
    Ints,
    coarsen,
    join_leaves,
    join_rare,
    split_groups,
)
from doublure.methods.statistics.tables.tails import BlankRun, find_blanks, join_blanks
from doublure.private.queries.axes import AnyAxis, Patterns
from doublure.schema.columns import IntegerDomain


@dataclass(frozen=True, kw_only=True, eq=False)
class MissingPatterns:
    """The patterns of missing cells that are kept.

    Attributes:
        parts: Places of the nullable columns in a compact record.
        marks: The number that marks a missing cell of each.
        nearest: ``(2^parts,)`` the kept pattern that each pattern counts as: itself, or the most similar one.
        bits: ``(kept, parts)`` whether each cell is missing.
    """

    parts: tuple[int, ...]
    marks: tuple[float, ...]
    nearest: Ints
    bits: Ints

    @classmethod
    def of(cls, parts: tuple[int, ...], marks: tuple[float, ...], counts: Floats, noise: float) -> MissingPatterns:
        """Keep the patterns with significant counts, at least one."""
        kept = np.flatnonzero(counts > (math.sqrt(2 * math.log(len(counts))) + _CLEAR) * noise)
        kept = kept if len(kept) else np.array([int(np.argmax(counts))])
        shown = (np.arange(len(counts))[:, None] >> np.arange(len(parts))) & 1
        bits = shown[kept]
        apart = (shown[:, None, :] != bits[None]).sum(2) - 0.5 * counts[kept] / max(float(counts[kept].max()), 1.0)
        return cls(parts=parts, marks=marks, nearest=apart.argmin(1), bits=bits)


_CLEAR = 0.5
"""Deviations beyond √(2 log n), the expected maximum of n normal numbers, that make a count significant."""
_LEAST_OWN, _LEAST_PAIRED = 3.0, 4.0
"""Least signal-to-noise ratio of a group, by the columns' noise, for columns and for pairs."""
_RARE = 0.5
"""A category is rare if it has fewer rows than this share of the pairs' noise."""


@dataclass(kw_only=True, eq=False)
class Node:
    """One column, or the patterns of missing cells, in groups.

    Attributes:
        leaves: The column's leaves; one leaf for each pattern.
        patterns: The patterns; None for a column.
        own: ``(leaves,)`` groups that are counted one column at a time.
        counts: ``(own groups,)`` their noisy counts.
        variance: Variance of that noise.
        coarse: ``(leaves,)`` groups in pairs.
        single: ``(m,)`` noisy counts of the coarse groups.
        single_variance: ``(m,)`` variances of their noise.
        believed: ``(m,)`` most likely counts of the coarse groups, adding up to all rows.
        fine: ``(leaves,)`` groups in the tree's pairs, nested in the coarse ones.
    """

    leaves: ColumnLeaves
    patterns: MissingPatterns | None = None
    own: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    counts: Floats = field(default_factory=lambda: np.zeros(0))
    variance: float = 1.0
    coarse: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    single: Floats = field(default_factory=lambda: np.zeros(0))
    single_variance: Floats = field(default_factory=lambda: np.zeros(0))
    believed: Floats = field(default_factory=lambda: np.zeros(0))
    fine: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    @classmethod
    def of_patterns(cls, patterns: MissingPatterns, counts: Floats, noise: float) -> Node:
        """Return the node of the patterns, with their counts."""
        kept = len(patterns.bits)
        domain = IntegerDomain(first=0, last=kept - 1, nullable=False)
        node = cls(leaves=ColumnLeaves.of(domain, -1, np.arange(kept)), patterns=patterns, own=np.arange(kept))
        node.counts = np.bincount(patterns.nearest, counts, kept)
        node.variance = noise**2 * len(counts) / kept
        return node

    @property
    def size(self) -> int:
        """Number of groups in pairs."""
        return int(self.coarse.max()) + 1

    @property
    def fine_size(self) -> int:
        """Number of groups in the tree's pairs."""
        return int(self.fine.max()) + 1

    @property
    def coarse_of_fine(self) -> Ints:
        """The coarse group of each fine one."""
        found = np.zeros(self.fine_size, dtype=np.int64)
        found[self.fine] = self.coarse
        return found

    @property
    def ordered(self) -> bool:
        """Whether neighbouring groups are similar."""
        return self.leaves.domain.ordered

    @property
    def neighbours(self) -> Ints:
        """``(m,)`` 1 for each coarse group whose successor is its neighbour, else 0."""
        last = self.size - 1 - self.leaves.domain.nullable
        return (np.arange(self.size) < last).astype(np.int64) * int(self.ordered)

    def axis(self, groups: Ints) -> AnyAxis:
        """Return the axis on which each leaf counts in its group."""
        if self.patterns is None:
            return self.leaves.axis(groups)
        own = self.patterns
        return Patterns(parts=own.parts, marks=own.marks, cells=groups[own.nearest], size=int(groups.max()) + 1)

    def join(self, *, most: int, noise: float, pair_noise: float) -> None:
        """Choose the groups in which the column is counted, at this noise."""
        if not self.leaves.mass.any():  # a narrow column, whose rows were not located before
            self.own = np.arange(self.leaves.size)
        else:
            self.own = join_leaves(self.leaves, most=most, seen=_RARE * pair_noise, least=_LEAST_OWN * noise)

    def take_counts(self, total: float, *, most: int, pair_noise: float) -> None:
        """Estimate the leaves' masses from the column's own counts, and choose its groups in pairs.

        Args:
            total: Number of rows.
            most: Approximate number of groups in pairs.
            pair_noise: Standard deviation of the pairs' noise.
        """
        # 1. Runs of seemingly empty blocks become one group each, whose total is shrunk.
        blanks: list[BlankRun] = []
        clear = np.zeros(len(self.counts), dtype=bool)
        narrow = self.patterns is None and self.ordered and not self.leaves.mass.any()
        if self.leaves.empty.any() or narrow:
            blanks, clear = find_blanks(self.leaves, self.own, self.counts, math.sqrt(self.variance))
        counts, variances = self._seen_before(total, clear, blanks)
        counts, variances, joined_to = join_blanks(blanks, counts, variances)
        # 2. Non-negative counts that add up to all rows; a long list of categories is shrunk instead.
        likely = project_to_simplex(counts, variances, total=total)
        if self.patterns is None and not self.ordered and len(counts) > _MANY:
            likely = empirical_bayes_counts(counts, noise=math.sqrt(self.variance))
            likely *= total / max(likely.sum(), _LEAST)
        # 3. The rows of a run are spread over its blocks, then over their leaves.
        for blank in blanks:
            rows = float(likely[joined_to[blank.groups[0]]])
            held = blank.held(self.counts[blank.groups], rows, math.sqrt(self.variance))
            for group, part in zip(blank.groups, held, strict=True):
                block = self.own == group
                within = self.leaves.mass[block] if self.leaves.mass[block].any() else self.leaves.width[block]
                self.leaves.mass[block] = part * within / within.sum()
        self.own = joined_to[self.own]
        self.leaves.mass = self.leaves.spread(self.own, likely)
        # 4. Groups of pairs, with the noisy counts and variances of their parts added up.
        least = _LEAST_PAIRED * math.sqrt(self.variance)
        self.coarse = coarsen(self.leaves, self.own, most=most, least=least)
        if not self.ordered and self.patterns is None:
            nullable = self.leaves.domain.nullable
            self.coarse = join_rare(self.own, likely, seen=_RARE * pair_noise, nullable=nullable)
        group_of = self.coarse[np.unique(self.own, return_index=True)[1]]
        self.single = np.bincount(group_of, counts, self.size)
        self.single_variance = np.bincount(group_of, variances, self.size)

    def _seen_before(self, total: float, clear: npt.NDArray[np.bool_], blanks: list[BlankRun]) -> tuple[Floats, Floats]:
        """Return the counts and their variances, shrunk towards the masses of the earlier releases.

        A number's groups have about equal mass by the earlier curve, which is less noisy than each group's count.
        Counts that agree with the curve within their noise are shrunk towards it (empirical Bayes). Counts that clearly
        differ are kept, and so are blocks without located rows, about which the curve says nothing.
        """
        counts, variances = self.counts, np.full(len(self.counts), self.variance)
        before = np.bincount(self.own, np.maximum(self.leaves.mass, 0.0), len(counts))
        body = len(counts) - self.leaves.domain.nullable
        if self.patterns is not None or not self.ordered or body < _SOME or before[:body].sum() <= 0:
            return counts, variances
        rest = total - (counts[body] if self.leaves.domain.nullable else 0.0) - counts[clear].sum()
        before[:body] *= max(rest, 1.0) / before[:body].sum()
        apart = counts - before
        seen = ~clear & (np.arange(len(counts)) < body)
        for blank in blanks:
            seen[blank.groups] = False
        calm = (np.abs(apart) < _APART * math.sqrt(self.variance)) & seen
        if not calm.any():
            return counts, variances
        beyond = max(0.0, float((apart[calm] ** 2).mean()) - self.variance)
        kept = np.where(calm, beyond / (beyond + self.variance), 1.0)
        return before + kept * apart, np.maximum(kept, _KEPT) * self.variance

    def take_margin(self, counts: Floats, variance: float) -> None:
        """Combine the column's counts with another table's margin, by precision; its noise is equal in every group."""
        gain = self.single_variance / (self.single_variance + variance)
        self.single = self.single + gain * (counts - self.single)
        self.single_variance = self.single_variance * (1 - gain)

    def believe(self, total: float) -> None:
        """Compute the most likely counts of the coarse groups, and spread them over the leaves."""
        self.believed = project_to_simplex(self.single, self.single_variance, total=total)
        self.leaves.mass = self.leaves.spread(self.coarse, self.believed)

    def refine(self, most: int) -> None:
        """Choose the groups in the tree's pairs."""
        if self.ordered:
            self.fine = split_groups(self.leaves, self.coarse, most=most)
        else:
            self.fine = self.own if int(self.own.max()) < 2 * most else self.coarse

    def fine_counts(self) -> Floats:
        """Return ``(f,)`` rows in each fine group."""
        return np.bincount(self.fine, self.leaves.mass, self.fine_size)


_MANY = 40
"""Number of categories above which their counts are shrunk by empirical Bayes."""
_LEAST = 1e-12
_SOME = 5
"""Fewest groups from which the variance of counts around earlier masses is estimated."""
_APART, _KEPT = 4.0, 0.1
"""Deviations above which a count clearly differs, and the least share of its variance that shrinkage leaves."""
