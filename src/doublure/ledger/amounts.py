"""Exact sums of ε and δ.

A figure counts as its shortest decimal, which `repr` prints: ten runs at 0.3 fill a cap of 3.0, though ten binary 0.3
do not add up to 3. Sums and comparisons are then exact. A binary figure lies within half a unit in its last place of
that decimal, so a full ledger is at most a relative 1.2e-16 per run from its cap, and the error does not grow with the
order or the number of additions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True, kw_only=True)
class Budget:
    """A pair (ε, δ) as floats, for display.

    Attributes:
        epsilon: ε, at least 0.
        delta: δ, at least 0.
    """

    epsilon: float
    delta: float

    def __str__(self) -> str:
        return f"(ε={self.epsilon:.10g}, δ={self.delta:.10g})"


@dataclass(frozen=True, kw_only=True)
class Amount:
    """A pair (ε, δ) of exact rational numbers, for sums."""

    epsilon: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)

    @classmethod
    def of(cls, epsilon: float, delta: float) -> Amount:
        """Return the amount of two printed figures."""
        return cls(epsilon=exact(epsilon), delta=exact(delta))

    def __add__(self, other: Amount) -> Amount:
        return Amount(epsilon=self.epsilon + other.epsilon, delta=self.delta + other.delta)

    def __sub__(self, other: Amount) -> Amount:
        return Amount(epsilon=self.epsilon - other.epsilon, delta=self.delta - other.delta)

    def fits(self, cap: Amount) -> bool:
        """Say whether neither ε nor δ passes the cap; reaching it is allowed."""
        return self.epsilon <= cap.epsilon and self.delta <= cap.delta

    def rounded_up(self) -> Budget:
        """Return floats that are never below the exact amount, for spent budget."""
        return Budget(epsilon=_towards(self.epsilon, math.inf), delta=_towards(self.delta, math.inf))

    def rounded_down(self) -> Budget:
        """Return floats that are never above the exact amount, so that a plan for the remaining budget fits."""
        return Budget(epsilon=_towards(self.epsilon, 0.0), delta=_towards(self.delta, 0.0))


def exact(figure: float) -> Fraction:
    """Return a float's shortest decimal as a fraction."""
    return Fraction(repr(float(figure)))


def is_figure(value: object) -> bool:
    """Say whether a value can be an ε or a δ: a finite number, not negative, and no boolean."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < math.inf


def _towards(value: Fraction, end: float) -> float:
    nearest = float(value)
    passed = exact(nearest) < value if end > 0 else exact(nearest) > value
    return math.nextafter(nearest, end) if passed else nearest
