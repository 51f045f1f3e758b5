"""Scores of pairs that were not counted, as evidence of how far a mixture may leave independence.

A mixture learns from counted pairs only. What it says of other pairs follows from its components, and where these fit
noise, it is dependence that is not there. The score of a pair says how far it is from independence, with noise of a
known variance. A mixture's own score has an expectation: a cell that differs from independence by d rows, of which
chance moves s (standard deviations), counts

    E|N(d, s²)| − E|N(0, s²)| = s √(2/π) (exp(−d²/2s²) − 1) + d erf(d / s√2).

The squared difference between both scores, over the noise's variance, is a pair's part of the log likelihood.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import special

from doublure.methods.statistics.tables.leaves import Floats, Ints

_EVERY = 4
"""Steps from one renewal of the pull to the next. Error functions of all cells take about as long as four products of
a pull with the components' probabilities, and what is meant changes little in four steps."""
_AT_ONCE = 256
"""Groups whose columns are compared at once; of a wider table random ones, others each time, so that a step costs no
more than with 256."""
_TINY = 1e-12


class ScoredPairs:
    """Scores of the pairs of n columns, W groups side by side, compared with a mixture.

    Args:
        shares: For each column the shares of its groups, from which expected counts were made.
        scores: ``(n, n)`` symmetric, in rows; NaN for pairs without, or that are counted.
        variance: Of each score's noise.
        rows: Number of rows.
        rng: Public randomness, which chooses the columns of wide tables.
    """

    def __init__(
        self, shares: Sequence[Floats], scores: Floats, *, variance: float, rows: float, rng: np.random.Generator
    ) -> None:
        self._shares = [np.asarray(own, dtype=np.float64) for own in shares]
        self._sizes = np.array([len(own) for own in shares], dtype=np.int64)
        self._starts = np.cumsum(self._sizes) - self._sizes
        self._known = np.isfinite(scores)
        self._scores = np.where(self._known, scores, 0.0)
        self._variance, self._rows, self._rng = variance, rows, rng
        self._left: Ints = np.zeros(0, dtype=np.int64)
        self._groups: Ints = np.zeros(0, dtype=np.int64)
        self._pull: Floats = np.zeros((0, 0), dtype=np.float32)
        self._squared = 0.0

    def errors(self, probabilities: Floats, step: int) -> tuple[float, Ints, Floats]:
        """Return the squared errors of scores, in units of their noise's variance, and their gradient.

        Args:
            probabilities: ``(K, W or more)`` float32, of equally likely products.
            step: The number of the step, from 0; in between every fourth the errors are those of the last one.

        Returns:
            The sum; some groups ``(g,)``; and its gradient ``(K, g)`` by their probabilities.
        """
        if step % _EVERY == 0:
            self._renew(probabilities)
        gradient: Floats = probabilities[:, self._groups] @ self._pull
        return self._squared, self._groups, gradient

    def _renew(self, probabilities: Floats) -> None:
        columns = self._next_columns()
        sizes = self._sizes[columns]
        starts = np.cumsum(sizes) - sizes
        self._groups = np.concatenate([np.arange(self._sizes[each]) + self._starts[each] for each in columns])
        known, scores = self._known[np.ix_(columns, columns)], self._scores[np.ix_(columns, columns)]
        shares = np.concatenate([self._shares[each] for each in columns])
        expected = np.outer(shares, shares)
        spread = np.sqrt(2 * np.maximum(expected, _TINY) / self._rows).astype(np.float32)  # s √2, as a share
        own = probabilities[:, self._groups]
        apart = own.T @ own / len(own) - expected.astype(np.float32)
        scaled = apart / spread
        slope = special.erf(scaled)
        by_cell = apart * slope + spread * (np.expm1(-np.square(scaled)) / np.float32(np.sqrt(np.pi)))
        found = np.add.reduceat(np.add.reduceat(by_cell, starts, axis=0), starts, axis=1).astype(np.float64)
        missed = np.where(known, self._rows * found - scores, 0.0)
        times = self._known.sum() / max(1, known.sum())  # those that are compared stand for all
        self._squared = times * float((missed**2).sum()) / self._variance / 2
        weights = (missed * (2 * times * self._rows / self._variance / len(own))).astype(np.float32)
        self._pull = slope * np.repeat(np.repeat(weights, sizes, axis=0), sizes, axis=1)

    def _next_columns(self) -> Ints:
        """Return columns of so many groups at most, each in its turn, in a random order."""
        if self._sizes.sum() <= _AT_ONCE:
            return np.arange(len(self._sizes))
        if len(self._left) < 2:
            self._left = self._rng.permutation(len(self._sizes))
        most = max(2, int(np.searchsorted(np.cumsum(self._sizes[self._left]), _AT_ONCE, side="right")))
        found, self._left = np.sort(self._left[:most]), self._left[most:]
        return found
