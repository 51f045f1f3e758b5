"""Counts of public rows beside the private noisy ones of the same tables, and both combined."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import reduce

import numpy as np

from doublure.methods.statistics.tables.leaves import Floats
from doublure.methods.statistics.tables.nodes import NoisyCounts
from doublure.methods.statistics.tables.random_effects import ComparedCounts, RandomEffects
from doublure.private.queries.axes import AnyAxis, Intervals, Table
from doublure.private.queries.counts import Counts
from doublure.schema.columns import IntegerDomain
from doublure.support.tensors import Array

_HALF = 0.5
"""Rows that are added to each cell's public count for its sampling variance: a cell without a row may have some."""
CHANCE = 0.8
"""√(2/π): the mean absolute deviation of a normal number, in standard deviations."""


class PublicCounts:
    """Public rows that count beside private answers.

    Args:
        records: ``(M, P)`` compact records of the public rows, M at least 1.
        domains: ``(P,)`` the integers of each part.

    Attributes:
        left: The share of the noise's variance that the public rows left in the last release; 1 before any.
    """

    most_records = 1

    def __init__(self, records: Array, domains: Sequence[IntegerDomain]) -> None:
        self._records, self._domains = records, domains
        self.parts = records.shape[1]
        self.left = 1.0
        self._rows, self._precision = 0.0, 0.0
        self._columns, self._pairs, self._scores = (RandomEffects() for _ in range(3))

    def chunks(self, rows: int) -> Iterator[Array]:
        """Yield the records, some at a time."""
        for first in range(0, len(self._records), rows):
            yield self._records[first : first + rows]

    def beside(self, tables: Sequence[Table], noisy: Sequence[NoisyCounts]) -> list[NoisyCounts]:
        """Return a release's tables, each combined with the public rows' counts.

        Args:
            tables: The axes of each.
            noisy: Its private noisy counts.
        """
        for own in noisy:  # each table counts all rows
            precision = 1 / (own.counts.size * own.variance)
            self._rows += precision * float(own.counts.sum())
            self._precision += precision
        rows = max(1.0, self._rows / self._precision) if self._precision else 1.0
        scale = rows / len(self._records)
        orders, compared = [], []
        for axes, own, public in zip(tables, noisy, self._counted(tables), strict=True):
            order, back = self._alike(axes, public)
            orders.append(back)
            own_public, public = public, public[order]
            sampling = (public + _HALF) * scale * (1 + scale)  # of private rows, and of public ones
            compared.append(
                ComparedCounts(
                    counts=own.counts[order],
                    variance=own.variance,
                    public=public * scale,
                    sampling=sampling,
                    told=scale**2 * self._told(axes, own_public),
                )
            )
        # Columns that fit say nothing of how they go together.
        fit = self._pairs if any(len(axes) > 1 for axes in tables) else self._columns
        combined = zip(fit.combine(compared), orders, strict=True)
        found = [
            NoisyCounts(counts=means[back], variance=float(variances.mean()), each=variances[back])
            for (means, variances), back in combined
        ]
        cells = [own.counts.size for own in noisy]
        kept = [after.variance / own.variance for own, after in zip(noisy, found, strict=True)]
        self.left = float(np.average(kept, weights=cells)) if found else self.left
        return found

    def scores_beside(
        self, tables: Sequence[Table], scores: Floats, variance: float, rows: float
    ) -> tuple[Floats, float]:
        """Return scores of pairs combined with the public rows', and their mean variance.

        Args:
            tables: The axes of each pair.
            scores: ``(n,)`` private noisy distances from independence, less those that are expected by chance.
            variance: Of their noise.
            rows: Number of private rows.
        """
        count = len(self._records)
        public = np.array([_score(own, count) for own in self._counted(tables)]) * (rows / count)
        sampling = np.full(len(scores), rows * (1 + rows / count))  # a row moves a distance by one at most
        compared = ComparedCounts(
            counts=scores, variance=variance, public=public, sampling=sampling, told=float(public @ public)
        )
        [(means, variances)] = self._scores.combine([compared])
        return means, float(variances.mean())

    def _told(self, axes: Table, public: Floats) -> float:
        """Return the squared distance of public counts from even values, or those of a pair from independence."""
        total = max(float(public.sum()), 1.0)
        if len(axes) == 1:
            shares = [self._shares(axes[0])]
        else:
            shares = [public.sum(tuple({*range(len(axes))} - {axis})) / total for axis in range(len(axes))]
        return float(((public - total * reduce(np.multiply.outer, shares)) ** 2).sum())

    def _shares(self, axis: AnyAxis) -> Floats:
        """Return the share of an axis's values that each of its cells has."""
        if not isinstance(axis, Intervals):
            return np.full(axis.size, 1 / axis.size)
        domain = self._domains[axis.part]
        widths = np.diff(np.append(axis.starts, domain.last + 1 + domain.nullable))
        found: Floats = np.bincount(axis.cells, widths, axis.size) / widths.sum()
        return found

    def _alike(self, axes: Table, public: Floats) -> tuple[tuple[Floats, ...], tuple[Floats, ...]]:
        """Return places that put alike cells of a table beside one another, and those that undo it.

        Cells of an axis without an order are alike if they have about as many public rows.
        """
        orders = []
        for place, axis in enumerate(axes):
            margin = public.sum(tuple(other for other in range(public.ndim) if other != place))
            ordered = not isinstance(axis, Intervals) or self._domains[axis.part].ordered
            orders.append(np.arange(axis.size) if ordered else np.argsort(-margin, kind="stable"))
        return np.ix_(*orders), np.ix_(*map(np.argsort, orders))

    def _counted(self, tables: Sequence[Table]) -> Iterator[Floats]:
        """Yield the public counts of each table, few at a time."""
        for table in tables:
            counts = Counts(tables=[table], max_records=1)
            yield counts.split(counts.answer(self, sample_rate=1.0).total)[0].astype(np.float64)


def _score(counts: Floats, rows: int) -> float:
    """Return the distance of a table ``(m, m')`` from the product of its margins, less that expected by chance."""
    one, other = counts.sum(1) / rows, counts.sum(0) / rows
    by_chance = CHANCE * math.sqrt(rows) * float(np.sqrt(one).sum() * np.sqrt(other).sum())
    return float(np.abs(counts - rows * np.outer(one, other)).sum()) - by_chance
