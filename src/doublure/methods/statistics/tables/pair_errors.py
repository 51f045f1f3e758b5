"""Errors of a mixture's tables of pairs, computed as one product of all columns or pair by pair.

The expected table of two columns under a mixture with probabilities P (K, W) is a block of PᵀP / K. If many pairs were
counted, the whole product is formed at once. For a wide table few were; W² cells would take gigabytes, most of them
unused, so that only the blocks of those pairs are formed, in batches of similar size. A fit repeats this hundreds of
times: intermediate arrays keep their memory, as fresh megabytes cost several times what is computed in them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import sparse

Floats: TypeAlias = npt.NDArray[Any]
Pair: TypeAlias = tuple[int, int]

_MOST_COUNTED = 1 / 3
"""Share of counted cells above which one product is faster than many small ones."""
_STEP = 8
"""Multiple to which sides of blocks are rounded up."""


class PairErrors(Protocol):
    """Noisy tables of pairs, compared with a mixture."""

    @property
    def cells(self) -> int:
        """Number of counted cells; 1 if there is none."""

    def squared(self, probabilities: Floats) -> tuple[float, Floats]:
        """Return the sum of all cells' squared errors, in units of the noise's variance, and its gradient.

        Args:
            probabilities: ``(K, W)`` float32, of equally likely products.

        Returns:
            The sum, and its gradient ``(K, W)`` by the probabilities.
        """


@dataclass(frozen=True, kw_only=True, eq=False)
class AllPairs:
    """Errors on one table of all groups by all groups.

    Attributes:
        double: ``(W, W)`` float32, symmetric, shares of each pair of groups.
        precision: ``(W, W)`` float32, symmetric, one over their noise's variance; zero where a pair was not counted.
    """

    double: Floats
    precision: Floats

    @property
    def cells(self) -> int:
        """Number of counted cells; 1 if there is none."""
        return max(1, int(np.count_nonzero(self.precision)) // 2)

    def squared(self, probabilities: Floats) -> tuple[float, Floats]:
        """Return the sum of squared errors, and its gradient."""
        apart = probabilities.T @ probabilities
        apart /= len(probabilities)
        apart -= self.double
        weighted = apart * self.precision
        gradient = probabilities @ weighted
        gradient *= 2 / len(probabilities)
        return float(np.vdot(apart, weighted)) / 2, gradient


@dataclass(frozen=True, kw_only=True, eq=False)
class _Blocks:
    """Pairs of one padded size.

    Attributes:
        left: ``(pairs, a)`` groups of the first column.
        right: ``(pairs, b)`` groups of the second column.
        double: ``(pairs, a, b)`` float32 shares.
        precision: ``(pairs, a, b)`` float32; zero where a smaller table was padded.
        gather: ``(W, pairs * (a + b))`` sparse, adds up the gradients of a group's places in left and right.
    """

    left: Floats
    right: Floats
    double: Floats
    precision: Floats
    gather: Any


class _KeptArrays:
    """Float32 arrays that are used again and again, each as large as the largest use so far."""

    def __init__(self) -> None:
        self._held: dict[str, Floats] = {}

    def array(self, name: str, shape: tuple[int, ...]) -> Floats:
        """Return an array of any content, whose last use under this name is over."""
        size = math.prod(shape)
        if name not in self._held or self._held[name].size < size:
            self._held[name] = np.empty(size, dtype=np.float32)
        return self._held[name][:size].reshape(shape)


@dataclass(frozen=True, kw_only=True, eq=False)
class ChosenPairs:
    """Errors on the counted pairs only.

    Attributes:
        blocks: The pairs by padded size.
    """

    blocks: Sequence[_Blocks]
    _memory: _KeptArrays = field(default_factory=lambda: _KeptArrays(), init=False, repr=False)

    @property
    def cells(self) -> int:
        """Number of counted cells; 1 if there is none."""
        return max(1, sum(int(np.count_nonzero(block.precision)) for block in self.blocks))

    def squared(self, probabilities: Floats) -> tuple[float, Floats]:
        """Return the sum of squared errors, and its gradient."""
        total, groups = 0.0, np.ascontiguousarray(probabilities.T)
        gradient = np.zeros_like(groups)
        for block in self.blocks:
            components, lefts, rights = groups.shape[1], block.left.size, block.right.size
            moved = self._memory.array("moved", (lefts + rights, components))
            left = self._memory.array("left", (*block.left.shape, components))
            right = self._memory.array("right", (*block.right.shape, components))
            apart = self._memory.array("apart", block.double.shape)
            weighted = self._memory.array("weighted", block.double.shape)
            np.take(groups, block.left, axis=0, out=left, mode="clip")
            np.take(groups, block.right, axis=0, out=right, mode="clip")
            np.matmul(left, right.transpose(0, 2, 1), out=apart)
            apart /= len(probabilities)
            apart -= block.double
            np.multiply(apart, block.precision, out=weighted)
            total += float(np.vdot(apart, weighted))
            np.matmul(weighted, right, out=moved[:lefts].reshape(left.shape))
            np.matmul(weighted.transpose(0, 2, 1), left, out=moved[lefts:].reshape(right.shape))
            gradient += block.gather @ moved
        gradient *= 2 / len(probabilities)
        return total, gradient.T


def pair_errors(sizes: Sequence[int], known: Mapping[Pair, tuple[Floats, Floats]]) -> PairErrors:
    """Return noisy tables in the form that is faster to compare.

    Args:
        sizes: Number of groups of each column.
        known: Two columns -> their table, and one over its noise's variance, both ``(m, m')``.
    """
    starts, width = np.cumsum([0, *sizes]), sum(sizes)
    if 2 * sum(precision.size for _, precision in known.values()) >= _MOST_COUNTED * width**2:
        double, precisions = np.zeros((2, width, width), dtype=np.float32)
        for (one, other), (table, precision) in known.items():
            left, right = (slice(starts[place], starts[place + 1]) for place in (one, other))
            double[left, right], precisions[left, right] = table, precision
            double[right, left], precisions[right, left] = table.T, precision.T
        return AllPairs(double=double, precision=precisions)
    alike: dict[Pair, list[Pair]] = {}
    for one, other in known:
        alike.setdefault((_side(sizes[one]), _side(sizes[other])), []).append((one, other))
    blocks = []
    for (high, wide), pairs in alike.items():
        places = tuple(
            np.stack([starts[pair[at]] + np.arange(side) % sizes[pair[at]] for pair in pairs])
            for at, side in ((0, high), (1, wide))
        )
        double, precisions = np.zeros((2, len(pairs), high, wide), dtype=np.float32)
        for number, pair in enumerate(pairs):
            table, precision = known[pair]
            double[number, : table.shape[0], : table.shape[1]] = table
            precisions[number, : table.shape[0], : table.shape[1]] = precision
        blocks.append(
            _Blocks(left=places[0], right=places[1], double=double, precision=precisions, gather=_gather(places, width))
        )
    return ChosenPairs(blocks=blocks)


def _gather(places: Sequence[Floats], width: int) -> Any:
    flat = np.concatenate([each.ravel() for each in places])
    ones = np.ones(len(flat), dtype=np.float32)
    return sparse.csr_array((ones, (flat, np.arange(len(flat)))), shape=(width, len(flat)))


def _side(size: int) -> int:
    return -(-size // _STEP) * _STEP
