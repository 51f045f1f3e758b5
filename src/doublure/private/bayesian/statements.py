"""Bayesian guarantees for several records and for a share of them (2022, Proposition 3, equation 12)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from doublure.support.checks import require_number, require_whole


def group_privacy(epsilon: float, delta: float, size: int) -> tuple[float, float]:
    """Return the Bayesian guarantee for k records of the same distribution: (kε_μ, k e^(kε_μ) δ_μ), Proposition 3.

    A δ_μ of 1 means that nothing is guaranteed.

    Example:
        >>> epsilon, delta = group_privacy(0.5, 1e-10, 4)
        >>> epsilon, f"{delta:.3g}"
        (2.0, '2.96e-09')
    """
    require_number(epsilon, "epsilon", above=0.0)
    require_number(delta, "delta", above=0.0, below=1.0)
    require_whole(size, "size", least=1)
    return size * epsilon, math.exp(min(0.0, math.log(size) + size * epsilon + math.log(delta)))


@dataclass(frozen=True, kw_only=True)
class Percentile:
    """For a share of the records drawn from μ, the loss passes ε with probability at most δ."""

    share: float
    epsilon: float
    delta: float


def percentiles(
    epsilon: float, delta: float, shares: Sequence[float] = (0.9, 0.99, 0.999, 0.9999, 0.99999)
) -> tuple[Percentile, ...]:
    """Return the record-level meaning of (ε_μ, δ_μ)-Bayesian DP, by Markov's inequality (equation 12).

    E_x′[Δ(ε, x′)] <= δ_μ, hence Pr_x′[Δ(ε, x′) > δ] <= δ_μ / δ: at least a share p of records drawn from μ enjoys
    (ε, δ_μ / (1 − p))-DP. It is a statement about one record drawn at random, not about all the records of a data set
    at once, and about none from elsewhere.

    Args:
        epsilon: ε_μ.
        delta: δ_μ.
        shares: The shares p, each in (0, 1).

    Example:
        >>> [f"{row.share} {row.delta:.0e}" for row in percentiles(1.0, 1e-10, (0.99, 0.99999))]
        ['0.99 1e-08', '0.99999 1e-05']
    """
    require_number(epsilon, "epsilon", above=0.0)
    require_number(delta, "delta", above=0.0, below=1.0)
    return tuple(
        Percentile(
            share=share,
            epsilon=epsilon,
            delta=min(1.0, delta / (1.0 - require_number(share, "shares", above=0.0, below=1.0))),
        )
        for share in shares
    )
