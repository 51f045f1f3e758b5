"""Conditions as frequent as a generator knows them to be, and numbers that parts of its rows may be asked to have."""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias, runtime_checkable

Spans: TypeAlias = tuple[tuple[int, int], ...]
"""Whole numbers that fit: ranges that do not overlap, both ends included."""


@runtime_checkable
class KnowsConditions(Protocol):
    """A generator that knows how frequent conditions are, from what was released anyway.

    One of arrays is asked in arrays, a network in tensors; each with randomness of its own kind.
    """

    def draw_conditions(self, known: Any, source: Any) -> Any:
        """Return ``(n, K)`` conditions: those that are known, and the others drawn beside them, or left to the rows.

        Args:
            known: ``(n, K)`` one block a condition, ones at the values that will do: all zeros where any will.
            source: Public randomness.
        """
