"""Nodes of the tree: each column in groups, and the patterns of missing cells as one column more."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from doublure.methods.statistics.binning import posterior_counts, posterior_states, project_to_simplex
from doublure.methods.statistics.tables.borrowing import shrink_to_even
from doublure.methods.statistics.tables.code_posterior import CodePosterior
from doublure.methods.statistics.tables.cut_cells import CutCells
from doublure.methods.statistics.tables.exchangeable import ExchangeablePosterior
from doublure.methods.statistics.tables.hours import hours_of_short_gaps, likely_hours
from doublure.methods.statistics.tables.leaves import (
    ColumnLeaves,
    Floats,
    Ints,
    coarsen,
    heaviest_codes,
    join_codes,
    join_leaves,
    join_rare,
    split_groups,
)
from doublure.methods.statistics.tables.missing_blocks import pattern_bits
from doublure.methods.statistics.tables.posterior import ColumnPosterior, group_bounds
from doublure.private.queries.axes import AnyAxis, Patterns
from doublure.schema.columns import IntegerDomain
from doublure.support.lattices import PeriodWeights


@dataclass(frozen=True, kw_only=True, eq=False)
class NoisyCounts:
    """A noisy table.

    Attributes:
        counts: Noisy counts, of any shape.
        variance: Variance of each count's noise; their mean, where it differs.
        each: Where it differs, that of each count.
    """

    counts: Floats
    variance: float
    each: Floats | None = None

    @property
    def variances(self) -> Floats:
        """The variance of each count, in their shape."""
        return np.full(self.counts.shape, self.variance) if self.each is None else self.each


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
    def of(cls, parts: tuple[int, ...], marks: tuple[float, ...], kept: Ints, rows: Floats) -> MissingPatterns:
        """Keep patterns ``(kept,)`` with these rows; of those equally similar, others count as the one with most."""
        shown = pattern_bits(np.arange(2 ** len(parts)), len(parts))
        bits = shown[kept]
        apart = (shown[:, None, :] != bits[None]).sum(2) - 0.5 * rows / max(float(rows.max()), 1.0)
        return cls(parts=parts, marks=marks, nearest=apart.argmin(1), bits=bits)


_LEAST_OWN, _LEAST_PAIRED = 2.0, 4.0
"""Least signal-to-noise ratio of a group, by the columns' noise, for lists of codes alone and for pairs."""
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
        variance: Variance of that noise; the mean, where it differs.
        each: ``(own groups,)`` where it differs, that of each count.
        coarse: ``(leaves,)`` groups in pairs.
        single: ``(m,)`` noisy counts of the coarse groups.
        single_variance: ``(m,)`` variances of their noise.
        believed: ``(m,)`` most likely counts of the coarse groups, adding up to all rows.
        fine: ``(leaves,)`` groups in the tree's pairs, nested in the coarse ones.
        posterior: All counts of a number together; None for others.
        codes: All counts of a long list of codes together; None for others.
        missing: Earlier counts ``(kinds,)`` of missing cells, and their precision.
    """

    leaves: ColumnLeaves
    patterns: MissingPatterns | None = None
    own: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    counts: Floats = field(default_factory=lambda: np.zeros(0))
    variance: float = 1.0
    each: Floats | None = None
    coarse: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    single: Floats = field(default_factory=lambda: np.zeros(0))
    single_variance: Floats = field(default_factory=lambda: np.zeros(0))
    believed: Floats = field(default_factory=lambda: np.zeros(0))
    fine: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    posterior: ColumnPosterior | ExchangeablePosterior | None = None
    codes: CodePosterior | None = None
    missing: tuple[Floats, float] = field(default_factory=lambda: (np.zeros(0), 0.0))

    @classmethod
    def of_patterns(cls, patterns: MissingPatterns, rows: Floats, noise: float) -> Node:
        """Return the node of the patterns, with their rows."""
        kept = len(patterns.bits)
        domain = IntegerDomain(first=0, last=kept - 1, nullable=False)
        node = cls(leaves=ColumnLeaves.of(domain, -1, np.arange(kept)), patterns=patterns, own=np.arange(kept))
        node.counts, node.variance = rows, noise**2
        return node

    @property
    def size(self) -> int:
        """Number of groups in pairs."""
        return int(self.coarse.max()) + 1

    @property
    def states(self) -> int:
        """Number of kinds of missing cells, which are the last groups."""
        return self.leaves.domain.nullable if self.patterns is None else 0

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
    def variances(self) -> Floats:
        """``(own groups,)`` variances of their counts' noise."""
        return np.full(len(self.counts), self.variance) if self.each is None else self.each

    @property
    def is_list(self) -> bool:
        """Whether it is a list of categories or codes, which have no order."""
        return self.patterns is None and not self.ordered

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

    def runs(self) -> Ints:
        """Return the run of neighbouring public cells that each is counted in besides; kinds of missing stay alone.

        One level more lets few rows be found wherever they are, as histograms of several levels do (Hay et al. 2010,
        PVLDB 3). Of two levels, runs of √c cells leave the fewest counts to add up for an interval.
        """
        cells = len(self.leaves.domain.initial_partition())
        found = np.arange(cells) // math.isqrt(cells)
        return np.append(found, found.max() + 1 + np.arange(self.leaves.domain.nullable))

    def locate(
        self,
        seen: Sequence[tuple[CutCells, NoisyCounts]],
        cells: NoisyCounts,
        runs: NoisyCounts | None,
        lattices: NoisyCounts | None,
        hours: NoisyCounts | None = None,
        told_hours: Floats | None = None,
    ) -> None:
        """Estimate the masses of a number's leaves from the releases that look for its rows.

        Args:
            seen: Cut leaves with their parts' counts, in the order of the releases.
            cells: Counts of the public cells.
            runs: Counts of runs of them (:meth:`runs`); None if they were not counted.
            lattices: Counts of values on nested lattices; None if they were not counted.
            hours: Counts of values by hour; None if they were not counted.
            told_hours: ``(H,)`` the hours that an earlier stage tells; None if none does.
        """
        domain = self.leaves.domain
        public = domain.initial_partition()
        self.missing = cells.counts[len(public) :], 1 / cells.variance
        ranges = [(cut.starts, cut.ends, parts.counts[:-1], parts.variances[:-1]) for cut, parts in seen]
        if runs is not None:
            first, after = group_bounds(self.runs()[: len(public)]).T
            ends = ColumnLeaves.of(domain, self.leaves.part, public).ends
            ranges.insert(0, (public[first], ends[after - 1], runs.counts[: len(first)], runs.variances[: len(first)]))
            self.missing = _both(self.missing, runs.counts[len(first) :], 1 / runs.variance)
        starts = np.unique(np.concatenate([public, *(cut.starts for cut, _ in seen)]))
        self.leaves = ColumnLeaves.of(domain, self.leaves.part, starts)
        self._fit_posterior(make_posterior(domain, starts), ranges, cells, lattices)
        if hours is not None:
            of_day = domain.hours()
            counts = hours.counts[:of_day] - hours_of_short_gaps(self.leaves, of_day)
            weights = likely_hours(domain, self.leaves.pulls, counts, hours.variances[:of_day], told_hours)
            self._fit_posterior(make_posterior(domain, starts, weights), ranges, cells, lattices)
            self.leaves.hours = weights.parts

    def _fit_posterior(
        self,
        posterior: ColumnPosterior | ExchangeablePosterior,
        ranges: Sequence[tuple[Ints, Ints, Floats, Floats]],
        cells: NoisyCounts,
        lattices: NoisyCounts | None,
    ) -> None:
        """Show a posterior what was counted, and take the leaves' masses from it."""
        public = len(cells.counts) - self.leaves.domain.nullable
        posterior.see_cells(cells.counts[:public], cells.variances[:public])
        if lattices is not None:
            steps = len(posterior.steps)
            posterior.see_lattices(lattices.counts[:steps], lattices.variances[:steps])
        for own in ranges:
            posterior.see_ranges(*own)
        posterior.fit()
        self.posterior = posterior
        self.take_posterior(np.maximum(self.missing[0], 0.0))

    @property
    def listed(self) -> int:
        """Number of codes of a list with groups above them; 0 for other columns."""
        domain = self.leaves.domain
        return domain.last - domain.first + 1 if self.patterns is None and len(domain.levels()) else 0

    def smallest_groups(self) -> Ints:
        """Return the smallest public group of each code; kinds of missing cells follow."""
        groups = self.leaves.domain.nested_levels()[-1]
        return np.append(groups, groups.max() + 1 + np.arange(self.leaves.domain.nullable))

    def locate_codes(self, single: NoisyCounts, groups: NoisyCounts) -> None:
        """Estimate the rows of codes from the counts of each, and of their smallest groups.

        Args:
            single: Counts of codes and of kinds of missing cells.
            groups: The same of groups.
        """
        listed, kinds = self.listed, self.leaves.domain.nullable
        self.codes = CodePosterior(self.leaves.domain.nested_levels(), self.leaves.domain.undrawn())
        self.codes.see(np.arange(listed), single.counts[:listed], single.variance)
        body = groups.counts[: len(groups.counts) - kinds]
        self.codes.see(self.smallest_groups()[:listed], body, groups.variance)
        self.codes.fit(max(float(body.sum()), 1.0))
        missing = single.counts[listed:], 1 / single.variance
        self.missing = _both(missing, groups.counts[len(body) :], 1 / groups.variance)
        self.leaves.mass = np.append(self.codes.mass, np.maximum(self.missing[0], 0.0))

    def _joined_codes(self, groups: Ints, least: float) -> Ints:
        """Return groups of codes of at least so many rows; kinds of missing cells stay alone."""
        body = self.leaves.mass[: self.listed]
        found = join_codes(self.leaves.domain.nested_levels(), groups[: self.listed], body, least=least)
        return np.append(found, found.max() + 1 + np.arange(self.leaves.domain.nullable))

    def _half_a_share(self, most: int) -> float:
        """Return half of the rows that a group of codes has where all have as many."""
        return float(self.leaves.mass[: self.listed].sum()) / (2 * most)

    def join(self, *, most: int, noise: float, pair_noise: float) -> None:
        """Choose the groups in which the column is counted, at this noise."""
        if self.codes is not None:
            self.own = self._joined_codes(np.arange(self.listed), max(_LEAST_OWN * noise, self._half_a_share(most)))
        elif not self.leaves.mass[: len(self.leaves.starts)].any():  # a narrow column, whose rows were not located
            self.own = np.arange(self.leaves.size)
        else:
            self.own = join_leaves(self.leaves, most=most, seen=_RARE * pair_noise)

    def take_counts(self, total: float, *, most: int, pair_noise: float) -> None:
        """Estimate the leaves' masses from the column's own counts, and choose its groups in pairs.

        Args:
            total: Number of rows.
            most: Approximate number of groups in pairs.
            pair_noise: Standard deviation of the pairs' noise.
        """
        body, missing = self._split_missing(total)
        present = total - float(missing.sum())
        variances = self.variances[: len(body)]
        if self.posterior is not None:
            first, after = group_bounds(self.own[: len(self.leaves.starts)]).T
            starts, ends = self.leaves.starts[first], self.leaves.ends[after - 1]
            self.posterior.see_ranges(starts, ends, body, variances)
            self.posterior.see_ranges(starts[:1], ends[-1:], np.array([present]), np.full(1, self.variance / _SURE))
            self.posterior.fit()
            self.take_posterior(missing)
            self.leaves.mass[: len(self.leaves.starts)] *= present / max(float(self.posterior.mass.sum()), _LEAST)
        elif self.codes is not None:
            self.codes.see(self.own[: self.listed], body, self.variance)
            self.codes.fit(max(present, _LEAST))
            self.leaves.mass = np.append(self.codes.mass, missing)
        elif self.patterns is None:
            likely = posterior_counts(body, variances, total=max(present, _LEAST))
            self.leaves.mass = self.leaves.spread(self.own, np.append(likely, missing))
        else:
            likely = project_to_simplex(self.counts, self.variances, total=total)
            self.leaves.mass = self.leaves.spread(self.own, likely)
        least = _LEAST_PAIRED * math.sqrt(self.variance)
        if self.codes is not None:
            self.coarse = self._joined_codes(self.own, max(least, self._half_a_share(most)))
        else:
            self.coarse = coarsen(self.leaves, self.own, most=most, least=least)
        if not self.ordered and self.patterns is None and self.codes is None:
            held = np.bincount(self.own, self.leaves.mass, len(self.counts))
            nullable = self.leaves.domain.nullable
            self.coarse = join_rare(self.own, held, seen=_RARE * pair_noise, nullable=nullable)
        group_of = self.coarse[heaviest_codes(self.own, self.leaves.mass)]
        self.single = np.bincount(group_of, self.counts, self.size)
        self.single_variance = np.bincount(group_of, minlength=self.size) * self.variance
        if self.each is not None:
            self.single_variance = np.bincount(group_of, self.each, self.size)
        if self.codes is not None:
            known = self.codes.variances(self.coarse[: self.listed])
            self.single[: len(known)] = np.bincount(self.coarse, self.leaves.mass, self.size)[: len(known)]
            self.single_variance[: len(known)] = np.minimum(known, self.single_variance[: len(known)])
            self.own = self._joined_codes(self.own, 0.0)  # groups that turned out to have no rows join others
        if self.posterior is not None:  # groups are known from all counts of the column together
            known = self.posterior.variances(self.coarse[: len(self.leaves.starts)])
            groups = len(known)
            self.single[:groups] = np.bincount(self.coarse, self.leaves.mass, self.size)[:groups]
            self.single_variance[:groups] = np.clip(known, _KEPT * self.variance, self.single_variance[:groups])

    def _split_missing(self, total: float) -> tuple[Floats, Floats]:
        """Return the noisy counts of all groups but missing, and the likely number ``(kinds,)`` of missing cells."""
        kinds = self.states
        if not kinds:
            return self.counts, np.zeros(0)
        body, (before, precision), own = self.counts[:-kinds], self.missing, 1 / self.variance
        missing = self.counts[-kinds:]
        if precision:  # counted where rows were looked for, too
            missing = (before * precision + missing * own) / (precision + own)
        variances = np.append(len(body) * self.variance, np.full(kinds, 1 / (precision + own)))
        apart = (total - body.sum() - missing.sum()) / variances.sum()  # with the body they add up to all rows
        return body, self._likely_states(missing + apart * variances[1:], variances[1:], total=total)

    def take_posterior(self, missing: Floats) -> None:
        """Take the leaves' masses of the column's posterior.

        Args:
            missing: ``(kinds,)`` rows without a value.
        """
        if self.posterior is not None:
            self.leaves.mass = np.append(self.posterior.mass, missing)
            self.leaves.pulls = self.posterior.pulls

    def take_margin(self, counts: Floats, variance: float) -> None:
        """Combine the column's counts with another table's margin, by precision; its noise is equal in every group."""
        gain = self.single_variance / (self.single_variance + variance)
        self.single = self.single + gain * (counts - self.single)
        self.single_variance = self.single_variance * (1 - gain)

    def believe(self, total: float) -> None:
        """Compute the most likely counts of the coarse groups, and spread them over the leaves."""
        kinds = self.states
        body, states = np.split(self.single, [self.size - kinds])
        body_variance, variance = np.split(self.single_variance, [self.size - kinds])
        states = self._likely_states(states, variance, total=total)
        left = max(total - float(states.sum()), _LEAST)
        self.believed = np.append(self.likely_counts(body, body_variance, total=left), states)
        self.leaves.mass = self.leaves.spread(self.coarse, self.believed)

    def _likely_states(self, counts: Floats, variances: Floats, *, total: float) -> Floats:
        """Return the likely rows ``(kinds,)`` of kinds of missing cells, which leave some for the values."""
        found = posterior_states(counts, variances, total=total)
        if is_noise(self.leaves.domain, counts, variances):
            found[0] = 0.0
        return found * min(1.0, total / (float(found.sum()) + 1))

    def likely_counts(self, counts: Floats, variances: Floats, *, total: float) -> Floats:
        """Return likely counts ``(m,)`` of the coarse groups, adding up to a total.

        Args:
            counts: ``(m,)`` noisy counts.
            variances: ``(m,)`` of their noise.
            total: All rows.
        """
        if self.posterior is None and self.codes is None and self.patterns is None:
            counts = shrink_to_even(counts, variances, total=total)
        return project_to_simplex(counts, variances, total=total)

    def missing_rows(self) -> float:
        """Return the likely rows without a value."""
        return float(self.leaves.mass[len(self.leaves.starts) :].sum())

    def refine(self, most: int) -> None:
        """Choose the groups in the tree's pairs."""
        if self.ordered:
            self.fine = split_groups(self.leaves, self.coarse, most=most)
        else:
            self.fine = self.own if int(self.own.max()) < 2 * most else self.coarse

    def fine_counts(self) -> Floats:
        """Return ``(f,)`` rows in each fine group."""
        return np.bincount(self.fine, self.leaves.mass, self.fine_size)


_CLEAR = 3.0
"""Deviations of noise from which on an undeclared empty cell is believed."""
_LEAST = 1e-12
_SURE = 100.0
"""Precision of a column's total, in that of a group's count: it is known from all columns together."""
_KEPT = 0.1
"""Least share of its noise's variance that a posterior leaves a group."""


def is_noise(domain: IntegerDomain, counts: Floats, variances: Floats) -> bool:
    """Return whether noise alone may have made undeclared empty cells; declared kinds are rare, and not gone.

    Args:
        domain: Of the column.
        counts: ``(kinds,)`` noisy counts of its kinds of missing.
        variances: ``(kinds,)`` of their noise.
    """
    return domain.undeclared_empty and bool(counts[0] <= _CLEAR * math.sqrt(variances[0]))


def _both(known: tuple[Floats, float], counts: Floats, precision: float) -> tuple[Floats, float]:
    """Return counts with their precision, after further counts of the same."""
    together = known[1] + precision
    return (known[0] * known[1] + counts * precision) / together, together


def make_posterior(
    domain: IntegerDomain, starts: Ints, weights: PeriodWeights | None = None
) -> ColumnPosterior | ExchangeablePosterior:
    """Return what estimates the rows of a column's leaves from all of its counts, by what its cells are like."""
    return ColumnPosterior(domain, starts, weights) if domain.smooth else ExchangeablePosterior(domain, starts)
