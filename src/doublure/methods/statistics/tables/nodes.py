"""What is paired, chosen and drawn: each column in groups, and which cells are missing together as one column more."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from doublure.methods.statistics.binning import closest_counts, shrunk_counts
from doublure.methods.statistics.tables.leaves import Floats, Ints, Leaves, coarser, finer, joined, rare_joined
from doublure.methods.statistics.tables.tails import Blank, blank_runs, joined_blanks
from doublure.private.queries.axes import AnyAxis, Patterns
from doublure.schema.columns import IntegerDomain


@dataclass(frozen=True, kw_only=True, eq=False)
class MissingTogether:
    """The patterns of missing cells that are kept.

    Attributes:
        parts: The places in a compact record of the columns that they are about.
        marks: Of each the number that stands for missing.
        nearest: ``(2^parts,)`` of every pattern the kept one that it counts as: itself, or the most alike.
        bits: ``(kept, parts)`` whether each is missing.
    """

    parts: tuple[int, ...]
    marks: tuple[float, ...]
    nearest: Ints
    bits: Ints

    @classmethod
    def of(cls, parts: tuple[int, ...], marks: tuple[float, ...], counts: Floats, noise: float) -> MissingTogether:
        """Keep the patterns that are clearly there, one at least."""
        kept = np.flatnonzero(counts > (math.sqrt(2 * math.log(len(counts))) + _CLEAR) * noise)
        kept = kept if len(kept) else np.array([int(np.argmax(counts))])
        shown = (np.arange(len(counts))[:, None] >> np.arange(len(parts))) & 1
        bits = shown[kept]
        apart = (shown[:, None, :] != bits[None]).sum(2) - 0.5 * counts[kept] / max(float(counts[kept].max()), 1.0)
        return cls(parts=parts, marks=marks, nearest=apart.argmin(1), bits=bits)


_CLEAR = 0.5
"""Deviations beyond the most that noise alone is likely to reach in so many cells."""
_LEAST_OWN, _LEAST_PAIRED = 3.0, 4.0
"""Deviations of the columns' noise that a group should have."""
_RARE = 0.5
"""A category of fewer rows than this share of the pairs' noise tells nothing by itself."""


@dataclass(kw_only=True, eq=False)
class Node:
    """One column, or the patterns, in groups.

    Attributes:
        leaves: Of the column; of the patterns one each.
        patterns: Where it is the patterns.
        own: ``(leaves,)`` the groups that are counted one column at a time.
        counts: ``(own groups,)`` as they were counted.
        variance: Of that noise.
        coarse: ``(leaves,)`` the groups of pairs.
        single: ``(m,)`` noisy counts of those.
        single_variance: ``(m,)`` their noise's variances.
        believed: ``(m,)`` the likeliest counts of those, adding up to all rows.
        fine: ``(leaves,)`` the groups of the tree's pairs, nested in the coarse ones.
    """

    leaves: Leaves
    patterns: MissingTogether | None = None
    own: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    counts: Floats = field(default_factory=lambda: np.zeros(0))
    variance: float = 1.0
    coarse: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    single: Floats = field(default_factory=lambda: np.zeros(0))
    single_variance: Floats = field(default_factory=lambda: np.zeros(0))
    believed: Floats = field(default_factory=lambda: np.zeros(0))
    fine: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    @classmethod
    def of_patterns(cls, patterns: MissingTogether, counts: Floats, noise: float) -> Node:
        """Return the node of the patterns, with their counts."""
        kept = len(patterns.bits)
        domain = IntegerDomain(first=0, last=kept - 1, nullable=False)
        node = cls(leaves=Leaves.of(domain, -1, np.arange(kept)), patterns=patterns, own=np.arange(kept))
        node.counts = np.bincount(patterns.nearest, counts, kept)
        node.variance = noise**2 * len(counts) / kept
        return node

    @property
    def size(self) -> int:
        """How many groups pairs are counted in."""
        return int(self.coarse.max()) + 1

    @property
    def fine_size(self) -> int:
        """How many groups the tree's pairs are counted in."""
        return int(self.fine.max()) + 1

    @property
    def coarse_of_fine(self) -> Ints:
        """The coarse group of each fine one."""
        found = np.zeros(self.fine_size, dtype=np.int64)
        found[self.fine] = self.coarse
        return found

    @property
    def ordered(self) -> bool:
        """Whether neighbouring groups are alike."""
        return self.leaves.domain.ordered

    @property
    def neighbours(self) -> Ints:
        """``(m,)`` 1 for each group of pairs whose next one is its neighbour."""
        last = self.size - 1 - self.leaves.domain.nullable
        return (np.arange(self.size) < last).astype(np.int64) * int(self.ordered)

    def axis(self, groups: Ints) -> AnyAxis:
        """Return the axis on which each leaf counts in its group."""
        if self.patterns is None:
            return self.leaves.axis(groups)
        own = self.patterns
        return Patterns(parts=own.parts, marks=own.marks, cells=groups[own.nearest], size=int(groups.max()) + 1)

    def join(self, *, most: int, noise: float, pair_noise: float) -> None:
        """Decide in which groups the column is counted, at this noise."""
        if not self.leaves.mass.any():  # nobody was looked for in it
            self.own = np.arange(self.leaves.size)
        else:
            self.own = joined(self.leaves, most=most, seen=_RARE * pair_noise, least=_LEAST_OWN * noise)

    def take_counts(self, total: float, *, most: int, pair_noise: float) -> None:
        """Read the column's own counts: what each leaf has, and in which groups it is paired.

        Args:
            total: How many rows there are.
            most: How many groups there should be for pairs, about.
            pair_noise: Of the pairs.
        """
        blanks: list[Blank] = []
        clear = np.zeros(len(self.counts), dtype=bool)
        narrow = self.patterns is None and self.ordered and not self.leaves.mass.any()
        if self.leaves.empty.any() or narrow:
            blanks, clear = blank_runs(self.leaves, self.own, self.counts, math.sqrt(self.variance))
        counts, variances = self._seen_before(total, clear, blanks)
        counts, variances, joined_to = joined_blanks(blanks, counts, variances)
        likely = closest_counts(counts, variances, total=total)
        if self.patterns is None and not self.ordered and len(counts) > _MANY:
            likely = shrunk_counts(counts, noise=math.sqrt(self.variance))
            likely *= total / max(likely.sum(), _LEAST)
        for blank in blanks:
            rows = float(likely[joined_to[blank.groups[0]]])
            held = blank.held(self.counts[blank.groups], rows, math.sqrt(self.variance))
            for group, part in zip(blank.groups, held, strict=True):
                block = self.own == group
                within = self.leaves.mass[block] if self.leaves.mass[block].any() else self.leaves.width[block]
                self.leaves.mass[block] = part * within / within.sum()
        self.own = joined_to[self.own]
        self.leaves.mass = self.leaves.spread(self.own, likely)
        least = _LEAST_PAIRED * math.sqrt(self.variance)
        self.coarse = coarser(self.leaves, self.own, most=most, least=least)
        if not self.ordered and self.patterns is None:
            nullable = self.leaves.domain.nullable
            self.coarse = rare_joined(self.own, likely, seen=_RARE * pair_noise, nullable=nullable)
        group_of = self.coarse[np.unique(self.own, return_index=True)[1]]
        self.single = np.bincount(group_of, counts, self.size)
        self.single_variance = np.bincount(group_of, variances, self.size)

    def _seen_before(self, total: float, clear: npt.NDArray[np.bool_], blanks: list[Blank]) -> tuple[Floats, Floats]:
        """Return the counts and their noise's variances, in the light of what was seen where rows were looked for.

        A number's groups were made of about equal mass, by a curve that is less noisy than each of them. As far as
        counts agree with it within their noise, they are held to it; what is clearly apart from it stays as it is, and
        so do blocks where none were seen, of which the curve says nothing.
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
        """Let another table's margin, with equal noise in every group, say what it knows of the column."""
        gain = self.single_variance / (self.single_variance + variance)
        self.single = self.single + gain * (counts - self.single)
        self.single_variance = self.single_variance * (1 - gain)

    def believe(self, total: float) -> None:
        """Settle the groups' counts, and spread them over the leaves."""
        self.believed = closest_counts(self.single, self.single_variance, total=total)
        self.leaves.mass = self.leaves.spread(self.coarse, self.believed)

    def refine(self, most: int) -> None:
        """Decide in which groups the tree's pairs are counted."""
        if self.ordered:
            self.fine = finer(self.leaves, self.coarse, most=most)
        else:
            self.fine = self.own if int(self.own.max()) < 2 * most else self.coarse

    def fine_counts(self) -> Floats:
        """Return ``(f,)`` rows in each fine group."""
        return np.bincount(self.fine, self.leaves.mass, self.fine_size)


_MANY = 40
"""Categories of which each is seen in the light of all."""
_LEAST = 1e-12
_SOME = 5
"""Groups from which on it can be seen how far counts are from what was seen before."""
_APART, _KEPT = 4.0, 0.1
"""Deviations from which on they are clearly apart, and the least share of their variance that is left of it."""
