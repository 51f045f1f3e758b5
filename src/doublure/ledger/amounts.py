"""Exact sums of ε and δ.

A figure counts as the shortest decimal that stands for it, the one a person typed and `repr` prints: ten runs at 0.3
fill a cap of 3.0, though ten binary 0.3 do not add up to 3. Sums and comparisons are then exact. A binary figure lies
within half a unit in its last place of that decimal, so a full ledger is at most that far, per run, from its cap:
a relative 1.2e-16, and no drift that grows with the order or the number of additions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True, kw_only=True)
class Budget:
    """A pair (ε, δ) as a person reads it.

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
    """A pair (ε, δ) as the ledger adds it: exact rational numbers."""

    epsilon: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)

    @classmethod
    def of(cls, epsilon: float, delta: float) -> Amount:
        """Return the amount that two printed figures stand for."""
        return cls(epsilon=exact(epsilon), delta=exact(delta))

    def __add__(self, other: Amount) -> Amount:
        return Amount(epsilon=self.epsilon + other.epsilon, delta=self.delta + other.delta)

    def __sub__(self, other: Amount) -> Amount:
        return Amount(epsilon=self.epsilon - other.epsilon, delta=self.delta - other.delta)

    def fits(self, cap: Amount) -> bool:
        """Say whether neither ε nor δ passes the cap; reaching it is allowed."""
        return self.epsilon <= cap.epsilon and self.delta <= cap.delta

    def rounded_up(self) -> Budget:
        """Return floats that are never below the exact amount: for what is spent."""
        return Budget(epsilon=_towards(self.epsilon, math.inf), delta=_towards(self.delta, math.inf))

    def rounded_down(self) -> Budget:
        """Return floats that are never above the exact amount: a plan for what is left always fits."""
        return Budget(epsilon=_towards(self.epsilon, 0.0), delta=_towards(self.delta, 0.0))


def exact(figure: float) -> Fraction:
    """Return the shortest decimal that stands for a float, as a fraction."""
    return Fraction(repr(float(figure)))


def is_figure(value: object) -> bool:
    """Say whether a value can be an ε or a δ at all: a finite number that is not negative (and no boolean)."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < math.inf


def _towards(value: Fraction, end: float) -> float:
    nearest = float(value)
    passed = exact(nearest) < value if end > 0 else exact(nearest) > value
    return math.nextafter(nearest, end) if passed else nearest
