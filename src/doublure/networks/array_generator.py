"""Interface of generators that draw from tables with NumPy, without torch.

They are used as torch modules are: called with noise and conditions, with a state of named arrays.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Self, TypeAlias, Union

import numpy.typing as npt

if TYPE_CHECKING:
    from torch import nn

Array: TypeAlias = npt.NDArray[Any]


class ArrayGenerator(ABC):
    """Map of noise and conditions to rows."""

    @abstractmethod
    def __call__(self, noise: Array, condition: Array | None = None) -> Array:
        """Return rows ``(B, P)`` float64.

        Args:
            noise: ``(B, Z)`` standard normal.
            condition: ``(B, K)`` one block a condition, ones at the allowed values; or None.
        """

    @abstractmethod
    def state_dict(self) -> dict[str, Array]:
        """Return all tables, by name."""

    @abstractmethod
    def load_state_dict(self, state: Mapping[str, Array]) -> None:
        """Load tables of any consistent shapes.

        Raises:
            RuntimeError: The tables are inconsistent.
        """

    def eval(self) -> Self:
        """Return itself; there is no training mode."""
        return self

    def telling(self, tell: Callable[[float], None]) -> Self:
        """Return the same, which says meanwhile how many more records are drawn, if one can take long: not this one.

        Args:
            tell: Receives that number, which may be a part of one.
        """
        del tell
        return self


AnyGenerator: TypeAlias = Union[ArrayGenerator, "nn.Module"]
"""A generator of either kind, tables or a network."""
