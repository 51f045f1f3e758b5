"""Lower bounds on ε from an attacker's error rates.

An attacker who separates world D from its neighbour D′ with false positive rate a and false negative rate b shows that
b ≥ f(a) for the mechanism's trade-off function f (Dong, Roth, Su 2022); (ε, δ)-DP is the special case
f(a) = max{0, 1 − δ − e^ε a, e^{−ε}(1 − δ − a)}. Rates are replaced by one-sided Clopper–Pearson upper bounds, so that
the result holds at the stated confidence.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np


@dataclass(frozen=True, kw_only=True)
class ErrorRates:
    """An attacker's errors at one threshold, with one-sided upper bounds that hold jointly.

    Attributes:
        false_positives: Share of runs without the canary that were called "with".
        false_negatives: Share of runs with it that were called "without".
        upper_false_positives: Upper bound of the false positive rate.
        upper_false_negatives: Upper bound of the false negative rate.
        confidence: Joint confidence of both bounds.
    """

    false_positives: float
    false_negatives: float
    upper_false_positives: float
    upper_false_negatives: float
    confidence: float


@lru_cache(4096)  # of candidates for a threshold many have as many errors
def upper_rate(errors: int, trials: int, alpha: float) -> float:
    """Return the Clopper–Pearson upper bound of a rate at confidence 1 − alpha.

    Example:
        >>> round(upper_rate(0, 100, 0.05), 4)
        0.0295
    """
    from scipy.stats import beta

    return 1.0 if errors >= trials else float(beta.ppf(1 - alpha, errors + 1, trials - errors))


def error_rates(
    inside: np.ndarray[Any, np.dtype[np.float64]],
    outside: np.ndarray[Any, np.dtype[np.float64]],
    threshold: float,
    confidence: float = 0.95,
) -> ErrorRates:
    """Return the error rates of the guess "with" for every score above the threshold.

    Args:
        inside: Scores of runs with the canary, ``(n,)``; not those that the threshold was chosen on.
        outside: Scores of runs without it, ``(m,)``.
        threshold: Chosen beforehand.
        confidence: Joint confidence of both upper bounds (each gets half of the error probability).
    """
    alpha = (1 - confidence) / 2
    wrong_in = int((outside > threshold).sum())
    wrong_out = int((inside <= threshold).sum())
    return ErrorRates(
        false_positives=wrong_in / len(outside),
        false_negatives=wrong_out / len(inside),
        upper_false_positives=upper_rate(wrong_in, len(outside), alpha),
        upper_false_negatives=upper_rate(wrong_out, len(inside), alpha),
        confidence=confidence,
    )


def best_threshold(
    inside: np.ndarray[Any, np.dtype[np.float64]],
    outside: np.ndarray[Any, np.dtype[np.float64]],
    shown: Callable[[ErrorRates], float],
    confidence: float = 0.95,
) -> float:
    """Return the threshold with the strongest result on scores set aside for choosing it.

    Args:
        inside: Scores of runs with the canary, ``(n,)``.
        outside: Scores of runs without it, ``(m,)``.
        shown: Error rates -> the strength of their result.
        confidence: Joint confidence of the rates' upper bounds.
    """
    candidates = np.unique(np.quantile(np.concatenate([inside, outside]), np.linspace(0.005, 0.995, 199)))
    return float(max(candidates, key=lambda at: shown(error_rates(inside, outside, float(at), confidence))))


def epsilon_from_rates(false_positives: float, false_negatives: float, delta: float) -> float:
    """Return the smallest ε of an (ε, δ)-DP mechanism that allows these rates (Kairouz, Oh, Viswanath 2015).

    Example:
        >>> round(epsilon_from_rates(0.01, 0.1, 1e-5), 3)
        4.5
    """
    bounds = [0.0]
    for one, other in ((false_positives, false_negatives), (false_negatives, false_positives)):
        if 1 - delta - other > 0 and one > 0:
            bounds.append(math.log((1 - delta - other) / one))
    return max(bounds)


def gaussian_mu(false_positives: float, false_negatives: float) -> float:
    """Return μ of the Gaussian trade-off with these rates: Φ⁻¹(1 − a) − Φ⁻¹(b), at least 0."""
    from scipy.stats import norm

    return max(0.0, float(norm.ppf(1 - false_positives) - norm.ppf(false_negatives)))


def gaussian_epsilon(mu: float, delta: float) -> float:
    """Return ε of μ-Gaussian DP at δ (Dong, Roth, Su 2022, Corollary 2.13).

    Example:
        >>> round(gaussian_epsilon(1.0, 1e-5), 2)
        4.38
    """
    from scipy.optimize import brentq
    from scipy.stats import norm

    def excess(epsilon: float) -> float:
        return float(norm.cdf(-epsilon / mu + mu / 2) - math.exp(epsilon) * norm.cdf(-epsilon / mu - mu / 2)) - delta

    if mu == 0 or excess(0.0) <= 0:
        return 0.0
    top = 1.0
    while excess(top) > 0:
        top *= 2
    return float(brentq(excess, 0.0, top))


def trade_off(delta_at: Callable[[float], float], false_positives: float, largest: float = 20.0) -> float:
    """Return f(a): the smallest false negative rate that a mechanism with this δ(ε) allows at false positive rate a.

    Args:
        delta_at: δ(ε) of the claimed mechanism.
        false_positives: a.
        largest: The largest ε considered; leaving larger ones out only lowers f, so a violation stays one.
    """
    best = 0.0
    for epsilon in np.linspace(0.0, largest, 101):
        delta = delta_at(float(epsilon))
        best = max(best, 1 - delta - math.exp(epsilon) * false_positives)
        best = max(best, math.exp(-epsilon) * (1 - delta - false_positives))
    return best


def one_run_p_value(right: int, guesses: int, canaries: int, epsilon: float, delta: float) -> float:
    """Return the largest p-value of this many right guesses in one run under (ε, δ)-DP (Steinke, Nasr, Jagielski 2023).

    Each of m canaries was included by its own fair coin. With q = e^ε/(1 + e^ε), B ~ Bin(r, q) and
    β = P[B ≥ v], it is min{1, β + 2mδ · max_i (1/i) P[v − i ≤ B < v]} (theorem 5.2, their algorithm 2).

    Args:
        right: v, right guesses.
        guesses: r, guesses made; the number of "in" guesses is fixed before anything is seen.
        canaries: m.
        epsilon: ε of the claim.
        delta: δ of the claim.

    Example:
        >>> round(one_run_p_value(100, 100, 200, 1.0, 0.0), 12)
        0.0
        >>> round(one_run_p_value(60, 100, 200, 1.0, 1e-5), 3)
        0.998
    """
    from scipy.stats import binom

    share = 1 / (1 + math.exp(-epsilon))
    beta = float(binom.sf(right - 1, guesses, share))
    if right < 1:
        return 1.0
    below = binom.cdf(np.arange(right), guesses, share)  # P[B ≤ 0], …, P[B ≤ v − 1]
    steps = np.arange(1, right + 1)
    shifted = below[right - 1] - np.append(below[:-1][::-1], 0.0)[: len(steps)]
    return float(min(1.0, beta + 2 * canaries * delta * float((shifted / steps).max())))


def one_run_epsilon(right: int, guesses: int, canaries: int, delta: float, confidence: float = 0.95) -> float:
    """Return the largest ε that the guesses of one run refute: the lower bound at the confidence.

    Example:
        >>> round(one_run_epsilon(100, 100, 200, 0.0), 1)
        3.5
    """
    alpha = 1 - confidence
    if guesses == 0 or one_run_p_value(right, guesses, canaries, 0.0, delta) > alpha:
        return 0.0
    low, high = 0.0, 30.0
    for _ in range(60):
        middle = (low + high) / 2
        if one_run_p_value(right, guesses, canaries, middle, delta) <= alpha:
            low = middle
        else:
            high = middle
    return low
