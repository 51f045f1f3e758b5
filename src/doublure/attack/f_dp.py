"""Bounds under f-DP on right guesses in one run, on records that coins put in (Mahloujifar et al. 2025).

**The game.** Each of m canaries joins the data by a fair coin S_i of its own. From the outcome O the attacker guesses r
of the coins, and C guesses are right. For any event of O and of the other coins, the mechanism allows
P[event | S_i = 1] ≤ F(P[event | S_i = 0]), and the same with 1 and 0 exchanged: F(x) = 1 − f(x) for its trade-off
function f. F grows and is concave.

**The inequality.** Let C_i count the right guesses on the other canaries; it depends on O and the other coins alone. So
F bounds the event {guess i is 1, C_i ≥ t − 1}. Where S_i = 1 this is {guess i is right, C ≥ t}; where S_i = 0 it is
{guess i is wrong, C ≥ t − 1}. The same holds of {guess i is 0, C_i ≥ t − 1}. As F is concave, averages over the coin
and over the m canaries give

    E[C; C ≥ t] / m  ≤  F(E[r − C; C ≥ t − 1] / m)    for t = 1, …, r.                                           (1)

**The bound.** Let P_k = P[C ≥ k] and G = F⁻¹, which grows. Summation by parts gives E[C; C ≥ t] = t P_t + Σ_{k>t} P_k
and E[r − C; C ≥ t − 1] = r P_{t−1} − (t − 1) P_{t−1} − Σ_{k≥t} P_k. With i = t − 1, (1) says

    (r − i) P_i  ≥  Σ_{k>i} P_k + m G((i P_{i+1} + Σ_{k>i} P_k) / m),    and P_i ≥ P_{i+1}.                      (2)

The right side grows in all P_k with k > i. So P[C ≥ c] = τ forces the least P_{c−1}, …, P_0 that (2) allows, beginning
with P_c = τ and nothing above c; every other law of C with P_c ≥ τ has larger ones. As P_0 = 1, a τ that forces P_0 > 1
cannot be: the p-value of c right guesses is the largest τ that forces no more. Bisection finds it.

The attacker may abstain, and the canaries may interact. Nothing is assumed but F and the coins.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from statistics import NormalDist
from typing import TypeAlias

Inverse: TypeAlias = Callable[[float], float]
"""G: the least probability in the one world of an event with this probability in the other."""

Profile: TypeAlias = Sequence[tuple[float, float]]
"""Pairs (ε, δ) at all of which a mechanism is private, by records added as well as by records removed."""

_NORMAL = NormalDist()
_HALVINGS = 50
_LARGEST = 30.0


def of_profile(profile: Profile) -> Inverse:
    """Return G of a privacy profile; fewer pairs only make it smaller, so that less is shown.

    (ε, δ) says x′ ≤ e^ε x + δ, and of the complements 1 − x ≤ e^ε (1 − x′) + δ. The least x that all pairs allow is G.

    Example:
        >>> allowed = of_profile([(1.0, 0.0)])
        >>> round(allowed(0.5), 4), round(allowed(0.99), 4)
        (0.1839, 0.9728)
    """

    def least(probability: float) -> float:
        found = 0.0
        for epsilon, delta in profile:
            found = max(found, (probability - delta) * math.exp(-epsilon))
            found = max(found, 1 - delta - math.exp(epsilon) * (1 - probability))
        return found

    return least


def of_gaussian(mu: float) -> Inverse:
    """Return G of μ-Gaussian DP, Φ(Φ⁻¹(x) − μ) (Dong, Roth, Su 2022).

    Example:
        >>> round(of_gaussian(1.0)(0.5), 4)
        0.1587
    """

    def least(probability: float) -> float:
        if not 0 < probability < 1:
            return float(probability > 0)
        return math.erfc((mu - _NORMAL.inv_cdf(probability)) / math.sqrt(2)) / 2

    return least


def p_value(right: int, guesses: int, canaries: int, allowed: Inverse) -> float:
    """Return the largest probability of so many right guesses that a mechanism allows; see the module.

    Args:
        right: c.
        guesses: r, a number that is fixed before anything is seen.
        canaries: m.
        allowed: G.

    Example:
        >>> allowed = of_gaussian(1.0)
        >>> p_value(100, 100, 400, allowed) < 0.01, p_value(50, 100, 400, allowed)
        (True, 1.0)
    """

    def forced(chance: float) -> float:
        """Return the least P_0."""
        below = summed = chance  # P_{i+1}, and the sum of it and those beyond
        for place in range(right - 1, -1, -1):
            needed = summed + canaries * allowed((place * below + summed) / canaries)
            below = max(below, needed / (guesses - place))
            if below > 1.0:
                break
            summed += below
        return below

    if forced(1.0) <= 1.0:
        return 1.0
    low, high = -200.0, 0.0  # of the logarithm
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if forced(math.exp(middle)) <= 1.0 else (low, middle)
    return math.exp(high)


def refuted(right: int, guesses: int, canaries: int, family: Callable[[float], Inverse], alpha: float) -> float:
    """Return the largest member of a family, growing in its parameter, whose p-value is at most alpha; 0 for none.

    Args:
        right: c.
        guesses: r.
        canaries: m.
        family: A parameter -> G.
        alpha: The level.

    Example:
        >>> round(refuted(90, 100, 400, of_gaussian, 0.05), 2)
        0.68
    """
    if guesses == 0 or p_value(right, guesses, canaries, family(0.0)) > alpha:
        return 0.0
    low, high = 0.0, _LARGEST
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if p_value(right, guesses, canaries, family(middle)) <= alpha else (low, middle)
    return low
