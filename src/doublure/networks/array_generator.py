"""A generator that is tables and not weights: NumPy inside, arrays in and out. It needs no torch.

It is handled as a torch module is: called with noise and conditions, and its state taken and given by name.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeAlias, Union

import numpy as np
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


def take_state(generator: AnyGenerator, state: Mapping[str, Array]) -> None:
    """Give a generator its state back.

    Raises:
        RuntimeError: It is another one's.
    """
    from doublure.support.tensors import as_tensors

    if isinstance(generator, ArrayGenerator):
        generator.load_state_dict(state)
    else:
        generator.load_state_dict(as_tensors(state))


def rows_of(generator: AnyGenerator, known: Array | None, size: int, width: int, *, seed: int, complete: bool) -> Array:
    """Return rows with their conditions behind them ``(size, D + K)``.

    Args:
        generator: Draws them.
        known: ``(size, K)`` conditions; None: there are none.
        size: How many.
        width: How many standard normal numbers a row takes.
        seed: Of all that is drawn.
        complete: Whether the generator draws what conditions leave open.
    """
    if not isinstance(generator, ArrayGenerator):
        from doublure.networks import sampling

        return sampling.rows_of(generator, known, size, width, seed=seed, complete=complete)
    source: Any = np.random.default_rng(seed)
    given = generator.draw_conditions(known, source) if complete and hasattr(generator, "draw_conditions") else known
    rows = generator(source.standard_normal((size, width)), given).reshape(size, -1)
    return rows if given is None else np.concatenate([rows, given], axis=1)
