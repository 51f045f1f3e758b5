"""A generator that is tables and not weights: NumPy inside, arrays in and out. It needs no torch.

It is handled as a torch module is: called with noise and conditions, and its state taken and given by name.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeAlias, Union

import numpy.typing as npt

if TYPE_CHECKING:
    from torch import nn

Array: TypeAlias = npt.NDArray[Any]


class ArrayGenerator(ABC):
    """Noise and conditions in, rows out."""

    @abstractmethod
    def __call__(self, noise: Array, condition: Array | None = None) -> Array:
        """Return rows ``(B, P)`` float64.

        Args:
            noise: ``(B, Z)`` standard normal.
            condition: ``(B, K)`` one block a condition, ones at the values that will do; or None.
        """

    @abstractmethod
    def state_dict(self) -> dict[str, Array]:
        """Return all tables, by name."""

    @abstractmethod
    def load_state_dict(self, state: Mapping[str, Array]) -> None:
        """Take tables of any shape that fit together.

        Raises:
            RuntimeError: They do not.
        """

    def eval(self) -> Self:
        """Return itself: it draws in one way only."""
        return self


AnyGenerator: TypeAlias = Union[ArrayGenerator, "nn.Module"]
"""What a method trains: tables, or a network."""
