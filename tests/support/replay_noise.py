"""Noise that a test hands in: record and replay on neighbours; a mechanism refuses it unless it is told not to."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from doublure.private.noise import ScaledNoise


class ReplayNoise:
    """Plays back standard normal draws, one a call, times ``std``; **for tests**: it hides nothing.

    Args:
        draws: Arrays of the sizes that will be asked for, each used once; ``itertools.repeat`` of one for ever.

    Attributes:
        asked: The ``(size, std)`` of each call so far.
    """

    name: ClassVar[str] = "replay"
    for_tests: ClassVar[bool] = True

    def __init__(self, draws: Iterable[npt.ArrayLike]) -> None:
        self._draws = iter(draws)
        self.asked: list[tuple[int, float]] = []

    def normal(self, size: int, std: float) -> ScaledNoise:
        """Return the next draw times ``std``.

        Raises:
            ValueError: No draw is left, or the next has another size.
        """
        return ScaledNoise(self._next(size, std).astype(np.float32) * np.float32(std), std)

    def whole(self, size: int, std: float, unit: float) -> ScaledNoise:
        """Return the next draw times ``std``, rounded to whole steps of ``unit``.

        Raises:
            ValueError: No draw is left, or the next has another size.
        """
        return ScaledNoise(np.rint(self._next(size, std) * (std / unit)).astype(np.int64), std)

    def _next(self, size: int, asked: float) -> npt.NDArray[np.float64]:
        self.asked.append((size, asked))
        draw = next(self._draws, None)
        if draw is None or np.shape(draw) != (size,):
            raise ValueError("no draw is left to replay" if draw is None else "the next draw has another size")
        return np.asarray(draw, dtype=np.float64)
