"""Nested lattices of integers: multiples of 100, of 10, of 1.

Steps ``(K,)`` are ascending in fineness: the coarsest first, each a multiple of the next, the last 1. An integer's
class is the coarsest step that divides it, so that each integer has one.
"""

from __future__ import annotations

import numpy as np

from doublure.errors import SettingError
from doublure.support.arrays import Floats, Ints


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


def members_by_part(first: Ints, last: Ints, steps: Ints, parts: int) -> Floats:
    """Return how many integers of each class lie in ranges, ``(N, H, K)``, in each of a period's equal parts.

    Args:
        first: ``(N,)`` the first integer of each range.
        last: ``(N,)`` the last.
        steps: ``(K,)``; a period is the first.
        parts: H.

    Examples:
        >>> members_by_part(np.array([3]), np.array([8]), np.array([4, 1]), 2).tolist()
        [[[2.0, 1.0], [0.0, 3.0]]]
    """
    edges = np.arange(parts + 1) * (steps[0] // parts)
    whole = members(edges[:-1], edges[1:] - 1, steps)

    def up_to(end: Ints) -> Floats:
        turns, rest = np.divmod(end, steps[0])
        until = np.clip(rest[:, None], edges[:-1], edges[1:])
        inside = members(np.tile(edges[:-1], len(end)), until.ravel() - 1, steps)
        found: Floats = turns[:, None, None] * whole + inside.reshape(len(end), parts, len(steps))
        return found

    return up_to(last + 1) - up_to(first)


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


def gaps(numbers: Floats, below: Floats, period: float) -> Floats:
    """Return how far numbers lie above others; from a period on, above the beginning of that in which the other lies.

    A longer gap then tells the time of day of the later of two moments, and a shorter one how long it is.

    Args:
        numbers: ``(N,)``.
        below: ``(N,)`` what each is measured from.
        period: Integers of a day, where numbers have a time of day; else 1, and gaps are differences.

    Examples:
        >>> gaps(np.array([9.0, 27.0]), np.array([5.0, 5.0]), 10).tolist()
        [4.0, 27.0]
    """
    apart = numbers - below
    if period == 1:
        return apart
    found: Floats = np.where(apart < period, apart, apart + below % period)
    return found


def above(gaps: Floats, below: Floats, period: float) -> Floats:
    """Return the numbers that lie so far above others; the inverse of :func:`gaps`.

    A gap that no two numbers have, of a period and less than what the lower one is past its beginning, still leads
    beyond that one: into the next period.

    Examples:
        >>> above(np.array([4.0, 27.0, 12.0]), np.array([5.0, 5.0, 5.0]), 10).tolist()
        [9.0, 27.0, 12.0]
    """
    if period == 1:
        return below + gaps
    found: Floats = below + np.where(gaps < period, gaps, gaps - below % period)
    return found


class PeriodWeights:
    """Weights of integers that are alike a period apart: by lattices, the coarsest a period, and by parts of it.

    Args:
        steps: ``(K,)``; a period is the first.
        pulls: ``(K,)`` weight of an integer of each lattice.
        parts: ``(H,)`` factor of each of a period's equal parts.

    Attributes:
        pulls: As given.
        parts: As given.

    Examples:
        >>> rounded = PeriodWeights(np.array([4, 1]), np.array([5.0, 1.0]), np.array([1.0, 3.0]))
        >>> rounded.classes(np.array([4]), np.array([8])).tolist()
        [[10.0, 7.0]]
        >>> rounded.draw(np.array([4, 5]), np.array([8, 6]), np.array([0.99, 0.99])).tolist()
        [8, 6]
    """

    def __init__(self, steps: Ints, pulls: Floats, parts: Floats) -> None:
        self.pulls, self.parts, self._period = pulls, parts, int(steps[0])
        at = np.arange(self._period)
        own = classes(at, steps)
        each = pulls[own] * parts[at // (self._period // len(parts))]
        by_class = np.where(own[:, None] == np.arange(len(steps)), each[:, None], 0.0)
        self._before = np.concatenate([np.zeros((1, len(steps))), np.cumsum(by_class, axis=0)])
        self._all = np.concatenate([[0.0], np.cumsum(each)])

    def classes(self, first: Ints, last: Ints) -> Floats:
        """Return the weight ``(N, K)`` of the integers of each class in ranges."""
        found: Floats = self._up_to(last + 1, first, self._before) - self._up_to(first, first, self._before)
        return found

    def draw(self, first: Ints, last: Ints, chance: Floats) -> Ints:
        """Return an integer ``(N,)`` of each range, by weight, from numbers in [0, 1)."""
        low, high = (self._up_to(end, first, self._all) for end in (first, last + 1))
        turns, rest = np.divmod(low + chance * (high - low), self._all[-1])
        at = np.searchsorted(self._all, rest, side="right") - 1
        found = (first // self._period + turns.astype(np.int64)) * self._period + at
        drawn: Ints = np.clip(found, first, last)  # rounding may pass an end
        return drawn

    def _up_to(self, end: Ints, first: Ints, sums: Floats) -> Floats:
        """Return the weight of the integers before an end, from the period in which a range begins."""
        turns, rest = end // self._period - first // self._period, end % self._period
        found: Floats = np.multiply.outer(turns.astype(np.float64), sums[-1]) + sums[rest]
        return found


def _ratios(steps: Ints) -> Ints:
    """Return the ratio of each step's coarser one to it; 0 for the coarsest."""
    return np.append(0, steps[:-1] // steps[1:])


def _own(place: Ints, ratio: Ints) -> Ints:
    """Return how many multiples of a step up to a place are none of the coarser step, counted from zero."""
    found: Ints = place - np.where(ratio > 0, place // np.maximum(ratio, 1), 0)
    return found
