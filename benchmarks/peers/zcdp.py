"""From (ε, δ) to ρ-zCDP, as tight as is known (Canonne, Kamath, Steinke 2020, arXiv:2004.00010, Proposition 12)."""

from __future__ import annotations

import math

from scipy.optimize import minimize_scalar


def delta_of(rho: float, epsilon: float) -> float:
    """Return the least δ for which ρ-zCDP implies (ε, δ)-DP by the proposition."""

    def log_delta(log_gap: float) -> float:
        alpha = 1 + math.exp(log_gap)
        return (alpha - 1) * (alpha * rho - epsilon) - math.log(alpha - 1) + alpha * math.log1p(-1 / alpha)

    best = minimize_scalar(log_delta, bounds=(math.log(1e-4), math.log(1e6)), method="bounded", options={"xatol": 1e-9})
    return min(1.0, math.exp(min(0.0, float(best.fun))))


def rho_of(epsilon: float, delta: float) -> float:
    """Return the greatest ρ that implies (ε, δ)-DP; rounded down."""
    low, high = 0.0, epsilon + 1.0
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if delta_of(middle, epsilon) <= delta else (low, middle)
    return low
