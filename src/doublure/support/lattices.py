"""Nested lattices of integers: multiples of 100, of 10, of 1.

Steps ``(K,)`` are ascending in fineness: the coarsest first, each a multiple of the next, the last 1. An integer's
class is the coarsest step that divides it, so that each integer has one.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from doublure.errors import SettingError

Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]


def refuse_unnested(steps: Ints) -> None:
    """Refuse steps that do not nest.

    Raises:
        SettingError: They are no positive integers, the coarsest first, each a multiple of the next, the last 1.
    """
    integers = steps.ndim == 1 and steps.size > 0 and np.issubdtype(steps.dtype, np.integer)
    nested = integers and steps[-1] == 1 and bool((steps > 0).all())
    if not nested or bool((steps[:-1] <= steps[1:]).any()) or bool((steps[:-1] % steps[1:]).any()):
        raise SettingError(
            "do not nest",
            field="steps",
            remedy="give integers, the coarsest first, each a multiple of the next, then 1",
        )


def classes(values: Ints, steps: Ints) -> Ints:
    """Return the class ``(N,)`` of integers ``(N,)``, in ``[0, K)``.

    Examples:
        >>> classes(np.array([0, 30, 7]), np.array([10, 5, 1])).tolist()
        [0, 0, 2]
    """
    found = np.full(len(values), len(steps) - 1, dtype=np.int64)
    for place in range(len(steps) - 2, -1, -1):
        found[values % steps[place] == 0] = place
    return found


def members(first: Ints, last: Ints, steps: Ints) -> Floats:
    """Return how many integers of each class lie in ranges, ``(N, K)``.

    Args:
        first: ``(N,)`` the first integer of each.
        last: ``(N,)`` the last.
        steps: ``(K,)``.

    Examples:
        >>> members(np.array([1]), np.array([20]), np.array([10, 5, 1])).tolist()
        [[2.0, 2.0, 16.0]]
    """
    if len(steps) == 1:
        every: Floats = (last - first + 1)[:, None].astype(np.float64)
        return every
    ratios = _ratios(steps)
    before, until = (first[:, None] - 1) // steps, last[:, None] // steps
    found: Floats = (_own(until, ratios) - _own(before, ratios)).astype(np.float64)
    return found


def draw(first: Ints, last: Ints, own: Ints, steps: Ints, chance: Floats) -> Ints:
    """Return an integer of a class in each range.

    Args:
        first: ``(N,)`` the first integer of each range.
        last: ``(N,)`` the last.
        own: ``(N,)`` the class, which has members there.
        steps: ``(K,)``.
        chance: ``(N,)`` in [0, 1), to draw one of the members by.
    """
    step, ratio = steps[own], _ratios(steps)[own]
    before, until = _own((first - 1) // step, ratio), _own(last // step, ratio)
    number = before + 1 + np.minimum((chance * (until - before)).astype(np.int64), until - before - 1)
    # The inverse of _own: a multiple of the coarser step is left out after every ratio - 1 members.
    beyond = np.where(ratio > 0, (number - 1) // np.maximum(ratio - 1, 1), 0)
    drawn: Ints = (number + beyond) * step
    return drawn


def _ratios(steps: Ints) -> Ints:
    """Return the ratio of each step's coarser one to it; 0 for the coarsest."""
    return np.append(0, steps[:-1] // steps[1:])


def _own(place: Ints, ratio: Ints) -> Ints:
    """Return how many multiples of a step up to a place are none of the coarser step, counted from zero."""
    found: Ints = place - np.where(ratio > 0, place // np.maximum(ratio, 1), 0)
    return found
