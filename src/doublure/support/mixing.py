"""Numbers as good as random that follow from other numbers: SplitMix64 (Steele, Lea and Flood 2014)."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Marks: TypeAlias = npt.NDArray[np.uint64]

_GAMMA = 0x9E3779B97F4A7C15


def remarked(marks: Marks, turn: int = 0) -> Marks:
    """Return other numbers ``(N,)`` as good as random that follow from these.

    Args:
        marks: ``(N,)``.
        turn: Which of several such sequences.
    """
    found = marks + np.uint64((_GAMMA * (turn + 1)) % 2**64)
    found = (found ^ (found >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    found = (found ^ (found >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return found ^ (found >> np.uint64(31))
