"""The two releases of Markov chains on time series, with estimates over all series."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from doublure.encode.series_codes import LEVELS, SeriesCodes
from doublure.methods.statistics import binning as grouping
from doublure.methods.statistics.binning import Grouping, project_to_simplex
from doublure.methods.statistics.settings import SeriesStatisticsSettings
from doublure.private.accounting import DiscreteGaussianEvent
from doublure.private.queries.counts import Axis, Table
from doublure.support.arrays import Floats
from doublure.training.checkpoints import KeptTables
from doublure.training.job import Job

LEAST_SHARE = 1e-6
"""Lower bound of shares, so that they have a logarithm."""


@dataclass(frozen=True, kw_only=True)
class _Wanted:
    """The tables of the second release, by type, channel, step and attribute."""

    pairs: list[list[Table]]
    steps: list[list[list[Table]]]
    levels: list[list[Table]]
    between: list[Table]

    def flat(self) -> Iterator[Table]:
        """Yield all tables, in the order in which their counts are read."""
        for own in self.pairs:
            yield from own
        for of_channel in self.steps:
            for of_step in of_channel:
                yield from of_step
        for own in self.levels:
            yield from own
        yield from self.between


class StepCounts:
    """Noisy counts of steps, levels and attributes.

    Args:
        job: The run.
        codes: Its encoder.
        settings: With defaults resolved.
        events: The plan's events, one a release.

    Attributes:
        sizes: Number of values of each attribute.
        fine: Each channel's ``(codes,)`` counts, at all steps together.
        fine_variance: Variance of the noise of a step's fine codes, and of a level's bins.
        groups: Each channel's groups of codes, the same at every step.
        level_bins: Each channel's ``(LEVELS,)`` counts.
        levels: Each channel's groups of levels.
        pairs: By channel and step, ``(levels, G, G)``: this step and the next one.
        step_values: By channel, step and attribute, ``(G, values)``.
        level_values: By channel and attribute, ``(levels, values)``.
        between: Levels of each channel and the next one.
        variance: Variance of the noise of these four.
        rows: Estimated number of series, from all tables together.
        shares: For each attribute the shares of its values: positive, adding up to 1.
    """

    def __init__(
        self, job: Job, codes: SeriesCodes, settings: SeriesStatisticsSettings, events: Sequence[DiscreteGaussianEvent]
    ) -> None:
        self.sizes = list(codes.condition_sizes.values())
        self.fine_variance, self.variance = (event.scale**2 for event in events)
        self._channels, self._length = codes.body_shape
        self._parts = self._channels * self._length
        kept = KeptTables(job)
        singles = [
            (Axis.of_codes(c * self._length + t, codes.sizes[c]),)
            for c in range(self._channels)
            for t in range(self._length)
        ]
        singles += [(Axis.of_codes(self._parts + c, LEVELS),) for c in range(self._channels)]
        counted = kept.released(1, singles)
        self._totals = [(float(table.sum()), table.size * self.fine_variance) for table in counted]
        self.fine = [np.sum(counted[c * self._length : (c + 1) * self._length], axis=0) for c in range(self._channels)]
        self.level_bins = counted[self._parts :]
        noise = math.sqrt(self.fine_variance)
        self.groups = [
            _grouped(fine, noise * math.sqrt(self._length), settings.groups, states)
            for fine, states in zip(self.fine, codes.states, strict=True)
        ]
        self.levels = [_grouped(counts, noise, settings.levels, 0) for counts in self.level_bins]
        self._count_pairs(kept)
        self.rows = self._rows()
        self.shares = self._attribute_shares()

    def _count_pairs(self, kept: KeptTables) -> None:
        """Count each two neighbouring steps within each level, and steps and levels within attributes."""
        count, parts = self._channels, self._parts
        levels = [Axis(part=parts + c, cells=own.groups, size=own.size) for c, own in enumerate(self.levels)]
        steps = [
            [Axis(part=c * self._length + t, cells=own.groups, size=own.size) for t in range(self._length)]
            for c, own in enumerate(self.groups)
        ]
        values = [Axis.of_codes(parts + count + j, size) for j, size in enumerate(self.sizes)]
        wanted = _Wanted(
            pairs=[[(levels[c], one, other) for one, other in pairwise(steps[c])] for c in range(count)],
            steps=[[[(step, value) for value in values] for step in steps[c]] for c in range(count)],
            levels=[[(levels[c], value) for value in values] for c in range(count)],
            between=list(pairwise(levels)),
        )
        counted = kept.released(2, list(wanted.flat()))
        self._totals += [(float(table.sum()), table.size * self.variance) for table in counted]
        found = iter(counted)
        self.pairs = [[next(found) for _ in own] for own in wanted.pairs]
        self.step_values = [[[next(found) for _ in of_step] for of_step in own] for own in wanted.steps]
        self.level_values = [[next(found) for _ in own] for own in wanted.levels]
        self.between = list(found)

    def _rows(self) -> float:
        """Estimate the number of series by the precision-weighted mean of all tables' totals."""
        totals, variances = np.array(self._totals).T
        return max(1.0, float((totals / variances).sum() / (1 / variances).sum()))

    def _attribute_shares(self) -> list[Floats]:
        """Estimate the shares of each attribute's values."""
        found = []
        for place, size in enumerate(self.sizes):
            tables = [own[place] for own in self.level_values]
            tables += [of_step[place] for own in self.step_values for of_step in own]
            counts = sum((table.sum(0) / len(table) for table in tables), np.zeros(size))
            precision = sum(1 / len(table) for table in tables)
            noisy = np.full(size, self.variance / precision)
            shares = project_to_simplex(counts / precision, noisy, total=self.rows) / self.rows
            shares = np.maximum(shares, LEAST_SHARE)
            found.append(shares / shares.sum())
        return found


def _grouped(counts: Floats, noise: float, most: int, states: int) -> Grouping:
    """Return groups of codes of about equal mass, at most ``most`` beside the states; few codes are each alone."""
    if len(counts) - states <= most:
        return Grouping.of(np.arange(len(counts)), np.ones(len(counts)))
    found = grouping.group_ordered(counts, noise=noise, most=most, states=states)
    for fewer in range(most - 1, 0, -1):
        if found.size <= most + states:
            break
        found = grouping.group_ordered(counts, noise=noise, most=fewer, states=states)
    return found
