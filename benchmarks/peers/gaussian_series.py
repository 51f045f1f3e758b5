"""The plain private Gaussian of series: a noisy count, mean and covariance of all values, and draws from it.

Thirty lines that anybody would write; what is more than that has to beat them. A series' values, between its public
bounds, are taken off a public centre and clipped to a public length. Add/remove of one series moves each of the three
sums by 1 at most (the covariance's in the Frobenius norm), so that the noise of each is √3 times that of the analytic
Gaussian mechanism (Balle & Wang 2018). Its noise is floating-point: a peer, and nothing to publish with.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
from scipy.special import ndtr

Floats = npt.NDArray[np.float64]


def deviation(epsilon: float, delta: float) -> float:
    """Return the noise of the analytic Gaussian mechanism for a sensitivity of 1."""

    def excess(noise: float) -> float:
        half, whole = 0.5 / noise, epsilon * noise
        return float(ndtr(half - whole) - np.exp(epsilon) * ndtr(-half - whole) - delta)

    return float(brentq(excess, 1e-2, 1e4))


def gaussian_series(
    values: Floats, lower: Floats, upper: Floats, *, epsilon: float, delta: float, n: int, centre: float, radius: float,
    seed: int,
) -> Floats:  # fmt: skip
    """Return ``(n, length, channels)`` synthetic series.

    Args:
        values: ``(N, length, channels)``.
        lower: ``(channels,)`` public bounds.
        upper: Likewise.
        epsilon: Of the three sums together.
        delta: Likewise.
        n: How many to draw.
        centre: Public, as a share of the bounds.
        radius: Public, the length that a series is clipped to over the root of how many values it has.
        seed: Of noise and draws.
    """
    shape: Any = values.shape[1:]
    rng = np.random.default_rng(seed)
    size = int(np.prod(shape))
    bound, noise = radius * np.sqrt(size), deviation(epsilon, delta) * np.sqrt(3)
    rows = ((values - lower) / (upper - lower) - centre).reshape(len(values), size) / bound
    rows = rows / np.maximum(1, np.linalg.norm(rows, axis=1, keepdims=True))
    count = max(len(rows) + rng.normal() * noise, 10.0)
    mean = (rows.sum(0) + rng.normal(size=size) * noise) / count
    above = np.triu(rng.normal(size=(size, size)) * noise / np.sqrt(2), 1)
    products = rows.T @ rows + above + above.T + np.diag(rng.normal(size=size) * noise)
    spread, ways = np.linalg.eigh(products / count - np.outer(mean, mean))
    drawn = rng.normal(size=(n, size)) * np.sqrt(np.clip(spread, 1e-6, None)) @ ways.T + mean
    found: Floats = np.clip((drawn.reshape(n, *shape) * bound + centre) * (upper - lower) + lower, lower, upper)
    return found
