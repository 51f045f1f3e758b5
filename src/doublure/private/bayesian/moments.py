"""The inner expectation of the Bayesian cost, and upper confidence bounds on the outer one (2022, equations 6 to 8)."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, logsumexp, stdtrit, xlog1py, xlogy


def log_moment(
    relative: NDArray[np.float64], order: int, sample_rate: float, *, paper_literal: bool = False
) -> NDArray[np.float64]:
    """Return log E_k[exp((k² − k) r² / 2)], k ~ Bin(λ + 1, q): the inner expectation of equation 6.

    Args:
        relative: Distances over the noise's standard deviation, r = ‖g − g′‖ / σ, shape (m,).
        order: λ.
        sample_rate: q.
        paper_literal: Take the larger of it and log E_k[exp((k² + k) r² / 2)], k ~ Bin(λ, q), equation 7.

    Returns:
        Shape (m,), >= 0.

    Example:
        >>> log_moment(np.array([0.0, 1.0]), order=1, sample_rate=1.0)
        array([0., 1.])
    """
    with np.errstate(over="ignore"):
        squares = np.asarray(relative, dtype=np.float64)[:, None] ** 2 / 2.0
    result = _log_one_plus_expectation(squares, order + 1, sample_rate, -1)
    if paper_literal:
        result = np.maximum(result, _log_one_plus_expectation(squares, order, sample_rate, +1))
    return result


def _log_one_plus_expectation(squares: NDArray[np.float64], trials: int, rate: float, sign: int) -> NDArray[np.float64]:
    """Return log E_k[exp((k² ± k) x)] as log(1 + E_k[exp(…) − 1]), which keeps its digits when it is near nought."""
    counts, log_weights = _binomial(trials, rate)
    pairs = counts**2 + sign * counts
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        exponents = np.where(pairs > 0, pairs * squares, 0.0)  # nought of an infinite square is nought
        terms = np.where(log_weights > -np.inf, log_weights + exponents + np.log(-np.expm1(-exponents)), -np.inf)
    return np.asarray(np.logaddexp(0.0, logsumexp(terms, axis=1)))


@lru_cache(maxsize=128)
def _binomial(trials: int, rate: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return k = 0, 1, …, trials and the logarithms of their probabilities."""
    counts = np.arange(trials + 1, dtype=np.float64)
    ways = gammaln(trials + 1) - gammaln(counts + 1) - gammaln(trials - counts + 1)
    return counts, ways + xlogy(counts, rate) + xlog1py(trials - counts, -rate)


def student_t_log_mean(values: NDArray[np.float64], gamma: float) -> float:
    """Return the log of the paper's upper bound on E[e^value], equation 8; heuristic.

    mean + t(1 − γ; m − 1) · s / √(m − 1), where s is the sample's standard deviation with divisor m.

    Args:
        values: Logarithms of the sampled quantities, shape (m,).
        gamma: Nominal failure probability.
    """
    top = float(np.max(values))
    if top == math.inf:
        return math.inf
    excess = np.expm1(values - top)  # in units of e^top, less one: neither overflow nor lost digits
    spread = -float(stdtrit(values.size - 1, gamma)) * float(np.std(excess)) / math.sqrt(values.size - 1)
    return top + math.log1p(float(np.mean(excess)) + spread)


def bernstein_log_mean(values: NDArray[np.float64], gamma: float, cap: float) -> float:
    """Return the log of an upper bound on E[e^value] that holds with probability 1 − γ for any law on [0, cap].

    Empirical Bernstein (Maurer and Pontil 2009, Theorem 4) for e^value in [1, e^cap], never above e^cap:
    mean + √(2 V log(2/γ) / m) + 7 (e^cap − 1) log(2/γ) / (3 (m − 1)), where V has the divisor m − 1.

    Args:
        values: Logarithms of m independent samples, each in [0, cap], shape (m,).
        gamma: Failure probability.
        cap: The largest possible value.
    """
    if cap <= 0.0:
        return 0.0
    if cap == math.inf:
        return math.inf
    size, depth = values.size, math.log(2.0 / gamma)
    top = float(np.max(values))
    excess = np.expm1(values - top)
    spread = float(np.std(excess, ddof=1)) * math.sqrt(2.0 * depth / size)
    body = top + math.log1p(float(np.mean(excess)) + spread)
    log_range = cap + math.log(-math.expm1(-cap)) + math.log(7.0 * depth / (3.0 * (size - 1)))
    return min(cap, float(np.logaddexp(body, log_range)))
