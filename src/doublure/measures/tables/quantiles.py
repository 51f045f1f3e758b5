"""Quantile bins of a table: bins that real rows fill evenly, so that no fault hides within a wide bin.

Public bins depend on the schema's bounds. If these are far away, nearly all rows share one bin, and faults inside it
stay invisible. An evaluation is internal and may look at real rows: here each number is cut at the real rows'
quantiles, and a value shared by many rows (zero, a top code) has a bin of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from doublure.intervals import Result
from doublure.measures.tables.coding import Coded, Coder, Integers
from doublure.measures.tables.counts import CodeCounts, count
from doublure.measures.tables.distributions import round_values
from doublure.support.arrays import Floats

ONE_WAY_BINS = 20
"""Number of quantile bins for columns compared one by one."""

JOINT_BINS = 10
"""Number of quantile bins for two or three columns together: finer cells would hold too few rows."""


class QuantileShares(Result):
    """The shares of a number's quantile bins.

    Attributes:
        column: The number.
        kind: Its type in the schema.
        bins: The first value of each bin and the start of the next, which are equal for a value with a bin of its own;
            null where a bin is open.
        real: The real rows' shares.
        synthetic: The synthetic rows' shares.
        variation: Half the sum of their differences, missing cells included.
    """

    column: str
    kind: str
    bins: tuple[tuple[float | None, float | None], ...]
    real: tuple[float, ...]
    synthetic: tuple[float, ...]
    variation: float


@dataclass(frozen=True, kw_only=True)
class QuantileBins:
    """The bins of all columns of a table: quantiles of real numbers, the values of everything else.

    Attributes:
        coder: Reads the schema.
        cuts: For each number ``(C,)`` ascending bin boundaries. A value's bin is the number of cuts at or below it.
    """

    coder: Coder
    cuts: Mapping[str, Floats]

    @classmethod
    def of(cls, coder: Coder, train: Coded, bins: int) -> QuantileBins:
        """Return the bins that real rows fill evenly.

        Args:
            coder: Reads the schema.
            train: The real rows.
            bins: Number of bins, where no value is shared by half a bin's rows: such a value gets a bin of its own.
        """
        return cls(coder=coder, cuts={name: _cuts(numbers, bins) for name, numbers in train.numbers.items()})

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of codes of each column; the last one is missing."""
        return tuple(
            len(self.cuts[name]) + 2 if name in self.cuts else size
            for name, size in zip(self.coder.names, self.coder.sizes, strict=True)
        )

    def read(self, table: Coded) -> Integers:
        """Return ``(N, P)`` int32 codes."""
        codes = table.codes.copy()
        for place, name in enumerate(table.names):
            if name in self.cuts:
                numbers, cuts = table.numbers[name], self.cuts[name]
                found = np.searchsorted(cuts, numbers, side="right")
                codes[:, place] = np.where(np.isnan(numbers), len(cuts) + 1, found)
        return codes

    def count(self, table: Coded) -> CodeCounts:
        """Return the one-way counts of a table."""
        return count(self.read(table), self.sizes, [])


def quantile_shares(bins: QuantileBins, train: CodeCounts, synthetic: CodeCounts) -> tuple[QuantileShares, ...]:
    """Return the shares of each number's bins; empty bins are left out."""
    found = []
    for place, (name, column) in enumerate(bins.coder.columns.items()):
        if name not in bins.cuts:
            continue
        real, artificial = train.shares(place), synthetic.shares(place)
        ends = _ends(bins.cuts[name])
        filled = [number for number in range(len(ends)) if max(real[number], artificial[number]) > 0]
        found.append(
            QuantileShares(
                column=name,
                kind=column.shown_type,
                bins=tuple(ends[number] for number in filled),
                real=round_values(real[filled]),
                synthetic=round_values(artificial[filled]),
                variation=float(np.abs(real - artificial).sum() / 2),
            )
        )
    return tuple(found)


def _cuts(numbers: Floats, bins: int) -> Floats:
    present = numbers[~np.isnan(numbers)]
    if not len(present):
        return np.empty(0)
    values, counts = np.unique(present, return_counts=True)
    alone = values[counts >= len(present) / (2 * bins)]
    others = present[~np.isin(present, alone)]
    levels = np.linspace(0, 1, bins + 1)[1:-1]
    inner = np.quantile(others, levels, method="inverted_cdf") if len(others) else np.empty(0)
    return np.unique(np.concatenate([inner, alone, np.nextafter(alone, np.inf)]))


def _ends(cuts: Floats) -> list[tuple[float | None, float | None]]:
    firsts, lasts = [None, *cuts.tolist()], [*cuts.tolist(), None]
    return [
        (first, first if first is not None and last == np.nextafter(first, np.inf) else last)
        for first, last in zip(firsts, lasts, strict=True)
    ]
