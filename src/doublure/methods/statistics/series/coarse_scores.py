"""Correction of correlations of channels for values that repeat.

A value that many series share has one score, the middle of its share. So scores of a coarse channel vary less than the
normal numbers that the copula cuts into the same values, and correlate less with another channel's. With a_k the
coefficients of a channel's scores in normalised Hermite polynomials of these numbers, scores of two channels whose
numbers correlate at r have the covariance sum of a_k b_k r^k (Mehler's formula). It is inverted entry by entry, with
each channel's coefficients over all steps: covariances are known by frequency, so that a step at which hardly anything
varies would be corrected by what is known of others. All of it is post-processing.

Within a channel nothing is corrected. Of counts with rare high values, zeros depend on what was before more than the
high values do, and a Gaussian copula cannot have both.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, ndtri

from doublure.networks.copula import SCORE_LIMIT

Floats: TypeAlias = npt.NDArray[np.float64]

_ORDERS = 20
"""Polynomials: of what varies in the scores of two values, one of which is 1 in 20, they have 97 %."""
_HALVINGS = 24
_SMALL, _TINY = 1e-6, 1e-12
_FINE = 1e-3
"""Lost variance of scores that moves no correlation by more than half of it."""


@dataclass(frozen=True, kw_only=True)
class CoarseScores:
    """Scores of a set's values, if the numbers behind them are normal.

    Attributes:
        length: Steps.
        variances: ``(channels,)`` of scores about each step's mean, over all steps.
        coefficients: ``(orders, channels)`` of Hermite polynomials, from the first; 1 and zeros for a continuum.
    """

    length: int
    variances: Floats
    coefficients: Floats

    @classmethod
    def of(cls, tables: Floats, single: npt.NDArray[np.bool_], *, length: int) -> CoarseScores:
        """Return those of cells.

        Args:
            tables: ``(parts, cells + 1)`` cumulative shares, channel by channel.
            single: ``(parts, cells)`` whether a cell is one value, whose series all have its middle's score.
            length: Steps.
        """
        ends = np.clip(ndtri(np.clip(tables, 1e-12, 1 - 1e-12)), -8, 8)
        heights = np.exp(-(ends**2) / 2) / math.sqrt(2 * math.pi)
        middles = ndtri(np.clip((tables[:, 1:] + tables[:, :-1]) / 2, ndtr(-SCORE_LIMIT), ndtr(SCORE_LIMIT)))
        shares = np.diff(tables, axis=1)

        def over_single(values: Floats) -> Floats:
            found: Floats = np.where(single, values, 0).sum(1).reshape(-1, length).mean(1)
            return found

        below, squares = -np.diff(heights), shares - np.diff(ends * heights)  # integrals of x and of its square
        means = np.where(single, middles * shares - below, 0).sum(1).reshape(-1, length)
        variances = 1 + over_single(middles**2 * shares - squares) - (means**2).mean(1)
        coefficients = np.zeros((_ORDERS, len(variances)))
        # Polynomials He_k / sqrt(k!), of orders k - 1 and k - 2; the integral of He_k times the density is
        # -He_(k-1) times the density.
        before, last = np.zeros_like(ends), np.ones_like(ends)
        for order in range(1, _ORDERS + 1):
            own = (ends * last - math.sqrt(order - 1) * before) / math.sqrt(order)
            whole = -np.diff(last * heights) / math.sqrt(order)
            times = squares if order == 1 else -np.diff((own + math.sqrt(order / (order - 1)) * before) * heights)
            coefficients[order - 1] = over_single(middles * whole - times)
            before, last = last, own
        coefficients[0] += 1
        return cls(length=length, variances=np.maximum(variances, _SMALL), coefficients=coefficients)

    def between_channels(self, covariance: Floats) -> Floats | None:
        """Return the factors ``(parts, parts)`` that restore correlations of channels, 1 within one; None if all are 1.

        Args:
            covariance: ``(parts, parts)`` of scores, scaled to variances of about one.
        """
        if len(self.variances) == 1 or self.variances.min() > 1 - _FINE:
            return None
        scale, own = np.sqrt(np.diag(covariance)), np.repeat(np.sqrt(self.variances), self.length)
        correlation = np.clip(covariance / np.outer(scale, scale), -1, 1)
        scores = correlation * np.outer(own, own)
        size, reached = np.sign(scores), np.abs(scores)
        low, high = np.zeros_like(scores), np.ones_like(scores)
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            under = size * self._covariances(size * middle) < reached
            low, high = np.where(under, middle, low), np.where(under, high, middle)
        found: Floats = np.where(reached < _SMALL, 1.0, (low + high) / 2 / np.maximum(np.abs(correlation), _TINY))
        channel = np.repeat(np.arange(len(self.variances)), self.length)
        return np.where(channel[:, None] == channel, 1.0, found)

    def _covariances(self, correlations: Floats) -> Floats:
        """Return the covariances of scores whose numbers have these correlations."""
        found = np.zeros_like(correlations)
        for own in np.repeat(self.coefficients, self.length, axis=1)[::-1]:
            found = (found + np.outer(own, own)) * correlations
        return found
