"""How far a mixture's tables of pairs are from noisy ones: as one product of all columns, or pair by pair.

The expected table of two columns under a mixture with probabilities P (K, W) is a block of PᵀP / K. Where many pairs
were counted, all of that product is formed at once. Of a wide table few are; W² cells would take gigabytes, and most of
them would say nothing, so that only the blocks of those pairs are formed, those of about one size together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

Floats: TypeAlias = npt.NDArray[Any]
Pair: TypeAlias = tuple[int, int]

_MOST_COUNTED = 1 / 3
"""From this share of all cells on, one product is faster than many small ones."""
_STEP = 8
"""Sides of blocks are rounded up to multiples of this."""


class PairErrors(Protocol):
    """Noisy tables of pairs."""

    @property
    def cells(self) -> int:
        """How many cells were counted; 1 where there is none."""

    def squared(self, probabilities: Tensor) -> Tensor:
        """Return the sum, over all cells of pairs, of squared errors in units of their noise's variance.

        Args:
            probabilities: ``(K, W)`` of equally likely products.
        """


@dataclass(frozen=True, kw_only=True, eq=False)
class AllPairs:
    """One table of all groups by all groups.

    Attributes:
        double: ``(W, W)`` symmetric, shares of each pair of groups.
        precision: ``(W, W)`` one over their noise's variance; zero where a pair was not counted.
    """

    double: Tensor
    precision: Tensor

    @property
    def cells(self) -> int:
        """How many cells were counted; 1 where there is none."""
        return max(1, int(torch.count_nonzero(self.precision)) // 2)

    def squared(self, probabilities: Tensor) -> Tensor:
        """Return the sum of squared errors."""
        products = probabilities.t() @ probabilities / len(probabilities)
        return ((products - self.double).square() * self.precision).sum() / 2


@dataclass(frozen=True, kw_only=True, eq=False)
class _Blocks:
    """Pairs of one size.

    Attributes:
        left: ``(pairs, a)`` the groups of one column.
        right: ``(pairs, b)`` and of the other.
        double: ``(pairs, a, b)``.
        precision: ``(pairs, a, b)``; zero where a smaller table was filled up.
    """

    left: Tensor
    right: Tensor
    double: Tensor
    precision: Tensor


@dataclass(frozen=True, kw_only=True, eq=False)
class ChosenPairs:
    """Only the pairs that were counted.

    Attributes:
        blocks: By size.
    """

    blocks: Sequence[_Blocks]

    @property
    def cells(self) -> int:
        """How many cells were counted; 1 where there is none."""
        return max(1, sum(int(torch.count_nonzero(block.precision)) for block in self.blocks))

    def squared(self, probabilities: Tensor) -> Tensor:
        """Return the sum of squared errors."""
        total, groups = torch.zeros(()), probabilities.t()
        for block in self.blocks:
            left, right = (_rows(groups, places) for places in (block.left, block.right))
            products = torch.bmm(left, right.transpose(1, 2)) / len(probabilities)
            total = total + ((products - block.double).square() * block.precision).sum()
        return total


def pair_errors(sizes: Sequence[int], known: Mapping[Pair, tuple[Floats, Floats]]) -> PairErrors:
    """Return noisy tables in the form that is compared with least work.

    Args:
        sizes: How many groups each column has.
        known: Two columns -> their table, and one over its noise's variance, both ``(m, m')``.
    """
    starts, width = np.cumsum([0, *sizes]), sum(sizes)
    if 2 * sum(precision.size for _, precision in known.values()) >= _MOST_COUNTED * width**2:
        double, precisions = np.zeros((2, width, width), dtype=np.float32)
        for (one, other), (table, precision) in known.items():
            left, right = (slice(starts[place], starts[place + 1]) for place in (one, other))
            double[left, right], precisions[left, right] = table, precision
            double[right, left], precisions[right, left] = table.T, precision.T
        return AllPairs(double=torch.from_numpy(double), precision=torch.from_numpy(precisions))
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
        tensors = [torch.from_numpy(array) for array in (*places, double, precisions)]
        blocks.append(_Blocks(left=tensors[0], right=tensors[1], double=tensors[2], precision=tensors[3]))
    return ChosenPairs(blocks=blocks)


def _side(size: int) -> int:
    return -(-size // _STEP) * _STEP


def _rows(groups: Tensor, places: Tensor) -> Tensor:
    """Return ``(pairs, a, K)``."""
    return groups.index_select(0, places.reshape(-1)).view(*places.shape, groups.shape[1])
