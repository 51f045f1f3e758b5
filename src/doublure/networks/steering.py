"""The interface of generators that draw conditions, and the form in which values are requested."""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias, runtime_checkable

IntRanges: TypeAlias = tuple[tuple[int, int], ...]
"""Allowed whole numbers, as disjoint ranges with both ends included."""


@runtime_checkable
class ConditionPrior(Protocol):
    """A generator that knows the shares of its conditions from its releases.

    A generator of arrays takes arrays and NumPy's randomness, a network takes tensors and torch's.
    """

    def draw_conditions(self, known: Any, source: Any) -> Any:
        """Return ``(n, K)`` conditions with the open ones drawn, or left open if they are drawn with the rows.

        Args:
            known: ``(n, K)`` one block a condition, ones at the allowed values, all zeros where every value is.
            source: Public randomness.
        """
