"""What a generator may offer beside rows: conditions as often as it knows them to be, and rows of some kind alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy.typing as npt

from doublure.networks.array_generator import ArrayGenerator

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


@runtime_checkable
class Narrows(Protocol):
    """A generator of rows of whole numbers that can be asked for rows of some kind, instead of by rejection."""

    def narrowed(self, spans: Mapping[int, Spans]) -> ArrayGenerator:
        """Return the same generator, given that a row fits.

        Args:
            spans: Part of a row -> the numbers that it must have.
        """

    def evidence(self, known: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return ``(n,)`` how likely conditions are (all zeros: any), in logarithms; once narrowed, with fitting."""
