"""Bootstrap of rows: the uncertainty of a figure and of a difference of figures, paired where runs share rows.

A figure is resampled to first order. The influence of a row is the change of the figure per unit of its weight; a
resample's figure is the figure plus the mean influence of the drawn rows. Nothing is counted or trained again: a
resample is one matrix product. For a figure that is not smooth (a share of right signs, a median), its components are
resampled this way, and the figure is computed from them.

**Paired.** Real rows are drawn by the evaluation's seed alone, so all runs of a comparison share their resamples.
Synthetic rows are drawn for each run. Classifiers are not trained again.

References:
    Efron & Tibshirani (1993), An Introduction to the Bootstrap: §13.3 (percentiles), §10.3 (removal of the resamples'
    own bias, which matters for distances: a resample of equal tables is never at distance 0), §22.2 (influence).
    Westfall & Young (1993), Resampling-Based Multiple Testing, §2.3: several differences at once.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from doublure.intervals import LEVEL, Interval
from doublure.measures.scores import Score
from doublure.support.arrays import Floats

RESAMPLES = 500
"""Number of resamples: the standard error of their percentiles at 2.5 % is .7 % of probability."""

MOST_DRAWN = 1 << 12
"""Most parts of a set that are drawn; with more rows, each row joins a random part and is drawn with it.

A standard error from this many parts is known to 1.1 % (√(1 / 2 · 4096)); by 500 resamples, to 3.2 %.
"""

ROWS_OF = {"value": "value", "baseline": "baseline", "real": "test"}
"""Set -> the rows that its figures depend on; figures of real records depend on the test rows."""

_AT_ONCE = 100
_NUMBERS_AT_ONCE = 1 << 16
_Weights: TypeAlias = "np.ndarray[Any, np.dtype[np.uint8]]"


@dataclass(kw_only=True, eq=False, repr=False)
class Resamples:
    """The resamples of one evaluation, and the resampled figures.

    Attributes:
        seed: Draws the real rows.
        run: Number of the run in a comparison: draws its synthetic rows.
        figures: Key -> set (``value``, ``baseline``, ``real``) -> ``(RESAMPLES,)`` the figure of each resample.
    """

    seed: int = 0
    run: int = 0
    figures: dict[str, dict[str, Floats]] = field(default_factory=dict)
    _weights: dict[tuple[str, int], _Weights] = field(default_factory=dict)
    _orders: dict[tuple[str, int], np.ndarray[Any, np.dtype[np.int64]]] = field(default_factory=dict)

    def shifts(self, rows: str, influence: Floats) -> Floats:
        """Return the change of means over rows in each resample.

        Args:
            rows: The set: ``train``, ``test`` (real rows), ``value``, ``baseline``, or part of one.
            influence: ``(N,)`` or ``(N, F)``, each row's.

        Returns:
            ``(RESAMPLES,)`` or ``(RESAMPLES, F)``.
        """
        return self.part_shifts(rows, self.parts(rows, influence)) / len(influence)

    def part_shifts(self, rows: str, parts: Floats) -> Floats:
        """Return the change of sums over parts in each resample, ``(RESAMPLES, ...)``."""
        weights = self._drawn(rows, len(parts))
        starts = range(0, RESAMPLES, _AT_ONCE)
        # Weights less 1 give a resample's sum less the sample's.
        return np.concatenate(
            [(weights[first : first + _AT_ONCE].astype(np.float64) - 1.0) @ parts for first in starts]
        )

    def parts(self, rows: str, influence: Any) -> Floats:
        """Return the sums over the parts that are drawn; the rows themselves where they are few."""
        each = np.asarray(influence, dtype=np.float64)
        if len(each) <= MOST_DRAWN:
            return each
        starts = np.arange(MOST_DRAWN) * len(each) // MOST_DRAWN
        found: Floats = np.add.reduceat(each[self._order(rows, len(each))], starts, axis=0)
        return found

    def add(self, key: str, whose: str, value: float | None, influence: Mapping[str, Floats]) -> None:
        """Store the resamples of a figure that is nearly linear in its rows.

        Args:
            key: The score's key.
            whose: ``value``, ``baseline`` or ``real``.
            value: The figure.
            influence: For each set the figure depends on, ``(N,)``.
        """
        if value is not None:
            self.keep(key, whose, value + sum(self.shifts(rows, each) for rows, each in influence.items()))

    def keep(self, key: str, whose: str, resampled: Floats | float) -> None:
        """Store the figure of each resample."""
        found = np.broadcast_to(np.asarray(resampled, dtype=np.float64), (RESAMPLES,))
        self.figures.setdefault(key, {})[whose] = found

    def of(self, key: str, whose: str = "value") -> Floats | None:
        """Return a figure's resamples; None where it has none."""
        return self.figures.get(key, {}).get(whose)

    def sure(self, score: Score, key: str | None = None) -> Score:
        """Return a score with the interval of its resamples, unless it has its own.

        Args:
            score: The score.
            key: The key of its resamples, if not its own.
        """
        found = self.of(key or score.key)
        if found is None or score.value is None or score.interval is not None:
            return score
        low, high = percentile_interval(found, score.value)
        ends = max(score.range[0], low), min(score.range[1], high)
        return score.model_copy(update={"interval": (min(ends[0], score.value), max(ends[1], score.value))})

    def _rng(self, rows: str, number: int) -> np.random.Generator:
        own = self.run + 1 if rows.partition(" ")[0] == "value" else 0  # all runs share real and baseline rows
        return np.random.default_rng([self.seed, own, zlib.crc32(rows.encode()), number])

    def _order(self, rows: str, many: int) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Return a random order, the same at each call: files are often sorted."""
        if (rows, many) not in self._orders:
            self._orders[rows, many] = self._rng(rows, many).permutation(many)
        return self._orders[rows, many]

    def _drawn(self, rows: str, parts: int) -> _Weights:
        """Return the weight of each part in each resample, ``(RESAMPLES, parts)``; the same at each call."""
        if (rows, parts) not in self._weights:
            rng = self._rng(rows, parts)
            weights = np.empty((RESAMPLES, parts), dtype=np.uint8)
            for some in np.array_split(weights, min(RESAMPLES, 1 + RESAMPLES * parts // _NUMBERS_AT_ONCE)):
                drawn = rng.integers(0, parts, some.shape) + parts * np.arange(len(some))[:, None]
                some[:] = np.bincount(drawn.ravel(), minlength=some.size).reshape(some.shape)
            self._weights[rows, parts] = weights
        return self._weights[rows, parts]


def percentile_interval(resampled: Floats, value: float, level: float = LEVEL) -> Interval:
    """Return the percentile interval of a figure, without the resamples' own bias.

    Args:
        resampled: ``(R,)`` the figure of each resample.
        value: The figure.
        level: The interval's coverage.
    """
    low, high = np.quantile(resampled - resampled.mean(), [0.5 - level / 2, 0.5 + level / 2])
    return value + float(low), value + float(high)


def simultaneous_widths(resampled: Floats, level: float = LEVEL) -> Floats:
    """Return half-widths of simultaneous intervals of several figures.

    Each is a multiple of its standard error, the same for all: the ``level`` quantile of the largest deviation that a
    resample has in any figure (Westfall & Young 1993). Correlated figures do not widen one another.

    Args:
        resampled: ``(R, F)``.
        level: Share of resamples in which no figure lies beyond its half-width.

    Returns:
        ``(F,)``, 0 for a constant figure.
    """
    apart = resampled - resampled.mean(axis=0)
    errors = apart.std(axis=0)
    moving = errors > 0
    if not moving.any():
        return np.zeros(len(errors))
    largest = np.abs(apart[:, moving] / errors[moving]).max(axis=1)
    return np.asarray(errors * np.quantile(largest, level), dtype=np.float64)
