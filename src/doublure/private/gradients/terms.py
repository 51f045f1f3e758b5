"""The parts of a record's gradient, kept as factors for as long as factors are smaller than what they make.

A linear layer's gradient is a sum of outer products, left ⊗ right. Its norm follows from inner products alone
(Goodfellow 2015, arXiv:1510.01799), and a weighted sum over records is one matrix product (Bu et al. 2023,
arXiv:2210.00038). A convolution is a linear layer applied to windows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol, Self

import torch
from torch import Tensor

# Norms of long rows are taken block by block, so that little accumulates before float64 takes over.
_BLOCK = 64
# More than what squares below the smallest float32 can take from the norm of a block.
_UNDERFLOW = 2.0**-62
# Float64 copies are made of this many numbers at a time: they stay in the cache and in memory already at hand.
_SCRATCH = 2**18


@dataclass(frozen=True)
class Units:
    """Which privacy unit each record belongs to.

    Args:
        index: For each record its unit, (B,) in [0, count).
        count: How many units, G.
        single: Whether record i is unit i, which spares the regrouping.
    """

    index: Tensor
    count: int
    single: bool

    @cached_property
    def _seats(self) -> tuple[Tensor, Tensor]:
        """Return (G, R): the records of each unit, and whether a seat is taken. R is the largest unit's size."""
        order = torch.argsort(self.index, stable=True)
        sizes = torch.bincount(self.index, minlength=self.count)
        within = torch.arange(len(order), device=order.device) - (sizes.cumsum(0) - sizes)[self.index[order]]
        seats = torch.zeros((self.count, int(sizes.max())), dtype=torch.long, device=order.device)
        taken = torch.zeros_like(seats, dtype=torch.bool)
        seats[self.index[order], within] = order
        taken[self.index[order], within] = True
        return seats, taken

    @property
    def largest(self) -> int:
        """Return R, how many records the largest unit has."""
        return 1 if self.single else self._seats[0].shape[1]

    def gather(self, values: Tensor, some: slice) -> Tensor:
        """Return (g, R, …): the rows (B, …) of some units side by side, filled up with zeros."""
        if self.single:
            return values[some].unsqueeze(1)
        seats, taken = (x[some] for x in self._seats)
        rows = values[seats]
        return rows.masked_fill_(~taken.view(*taken.shape, *[1] * (rows.dim() - 2)), 0)

    def side_by_side(self, factor: Tensor, some: slice) -> Tensor:
        """Return (g · groups, R · T, n): of some units the factors (B, groups, T, n) of all their records."""
        if self.single:
            return factor[some].flatten(0, 1)
        return self.gather(factor, some).transpose(1, 2).flatten(2, 3).flatten(0, 1)

    def sum(self, values: Tensor) -> Tensor:
        """Return (G, …): the rows (B, …) of each unit added up."""
        if self.single:
            return values
        return values.new_zeros(self.count, *values.shape[1:]).index_add_(0, self.index, values)

    def spread(self, values: Tensor) -> Tensor:
        """Return (B,): to each record what its unit has, (G,)."""
        return values if self.single else values[self.index]


class Term(Protocol):
    """One parameter's share of the gradients of B records."""

    def measure(self, units: Units) -> tuple[Tensor, Tensor]:
        """Return, for each unit, the squared norm and the squared size of what is added up to make it, float64.

        The second is larger where summands cancel, and bounds the rounding of a float32 sum.
        """

    def select(self, rows: Tensor) -> Self:
        """Return the term for some of the records."""

    def add_to(self, into: list[Tensor], weights: Tensor) -> None:
        """Add the weighted sum over records to the parameters' buffers, in the precision of the weights."""

    def numbers(self) -> int:
        """Return how many numbers are kept."""


@dataclass(frozen=True)
class Dense:
    """A gradient written out: for each record as many numbers as the parameter has, in its order, (B, …)."""

    parameter: int
    values: Tensor

    def measure(self, units: Units) -> tuple[Tensor, Tensor]:
        """See :class:`Term`."""
        flat = self.values.flatten(1)
        norms = _norms(flat)
        if units.single:
            squares = norms.square()
            return squares, squares
        return units.sum(flat.double()).square().sum(1), units.sum(norms).square()

    def select(self, rows: Tensor) -> Dense:
        """See :class:`Term`."""
        return replace(self, values=self.values[rows])

    def add_to(self, into: list[Tensor], weights: Tensor) -> None:
        """See :class:`Term`."""
        total = weights @ self.values.flatten(1).to(weights.dtype)
        into[self.parameter].add_(total.view_as(into[self.parameter]))

    def numbers(self) -> int:
        """See :class:`Term`."""
        return self.values.numel()


def _norms(values: Tensor) -> Tensor:
    """Return the norms of rows, float64 from (B, N), without a float64 copy of many numbers."""
    if values.numel() <= _SCRATCH:
        return torch.linalg.vector_norm(values, dim=1, dtype=torch.float64)
    whole = values.shape[1] // _BLOCK * _BLOCK
    blocks = torch.linalg.vector_norm(values[:, :whole].view(len(values), -1, _BLOCK), dim=2).double()
    squares = blocks.add_(_UNDERFLOW).square().sum(1) + values[:, whole:].double().square().sum(1)
    norms = squares.sqrt()
    wide = ~norms.isfinite()
    if wide.any():
        norms[wide] = torch.linalg.vector_norm(values[wide], dim=1, dtype=torch.float64)
    return norms


@dataclass(frozen=True)
class Outer:
    """A gradient as Σ_t left_t ⊗ right_t, for a weight of g · n · m numbers and perhaps a bias of g · n.

    Args:
        weight: The weight's place among the parameters.
        bias: The bias's place.
        left: (B, g, T, n) for each pair.
        right: (B, g, T, m) for each pair.
        straight: For each pair whether the bias shares in it. A pair from the differentiated backward pass, where
            the layer acts without its bias, has no part in it.
    """

    weight: int
    bias: int | None
    left: tuple[Tensor, ...]
    right: tuple[Tensor, ...]
    straight: tuple[bool, ...]

    def shortest(self) -> list[Term]:
        """Return the gradient written out where that takes less room than its factors, and hence less work."""
        steps = sum(x.shape[2] for x in self.left)
        wide, narrow = self.left[0].shape[3], self.right[0].shape[3]
        if wide * narrow > steps * (wide + narrow):
            return [self]
        batch, groups = self.left[0].shape[:2]
        written = self.left[0].new_zeros(batch * groups, wide, narrow)
        for left, right in zip(self.left, self.right, strict=True):
            written.baddbmm_(left.flatten(0, 1).transpose(1, 2), right.flatten(0, 1))
        terms: list[Term] = [Dense(self.weight, written.view(batch, -1))]
        if self.bias is not None:
            shared = [x.sum(2) for x, straight in zip(self.left, self.straight, strict=True) if straight]
            terms.append(Dense(self.bias, torch.stack(shared).sum(0).flatten(1)))
        return terms

    def measure(self, units: Units) -> tuple[Tensor, Tensor]:
        """See :class:`Term`."""
        steps = [x.shape[2] * units.largest for x in self.left]
        groups, widest = self.left[0].shape[1], max(self.left[0].shape[3], self.right[0].shape[3])
        pace = max(1, _SCRATCH // (groups * sum(steps) * widest))
        squares, sizes = [], []
        for start in range(0, units.count, pace):
            some = slice(start, start + pace)
            gram = self._gram(self.right, units, some)
            if self.bias is not None:
                gram += self._shared(steps)
            gram *= self._gram(self.left, units, some)
            squares.append(gram.sum((1, 2)))
            sizes.append(gram.diagonal(dim1=1, dim2=2).sqrt().sum(1).square_())
        sums = torch.cat(squares), torch.cat(sizes)
        return (sums[0].view(-1, groups).sum(1), sums[1].view(-1, groups).sum(1)) if groups > 1 else sums

    def _shared(self, steps: list[int]) -> Tensor | float:
        """Return (S, S): 1 for two factors of a unit that both act on the bias, as if it had an input of 1."""
        if all(self.straight):
            return 1.0
        marks = [float(straight) for count, straight in zip(steps, self.straight, strict=True) for _ in range(count)]
        column = torch.tensor(marks, dtype=torch.float64, device=self.left[0].device)
        return column[:, None] * column

    @staticmethod
    def _gram(factors: tuple[Tensor, ...], units: Units, some: slice) -> Tensor:
        """Return the inner products (g · groups, S, S) among all factors of each of some units, in float64."""
        rows = [units.side_by_side(factor, some) for factor in factors]
        if len(rows) == 1:
            stacked = rows[0].double()
        else:
            steps = [x.shape[1] for x in rows]
            stacked = rows[0].new_empty((len(rows[0]), sum(steps), rows[0].shape[2]), dtype=torch.float64)
            for part, row in zip(torch.split(stacked, steps, 1), rows, strict=True):
                part.copy_(row)
        return torch.bmm(stacked, stacked.transpose(1, 2))

    def select(self, rows: Tensor) -> Outer:
        """See :class:`Term`."""
        return replace(self, left=tuple(x[rows] for x in self.left), right=tuple(x[rows] for x in self.right))

    def add_to(self, into: list[Tensor], weights: Tensor) -> None:
        """See :class:`Term`."""
        for left, right, straight in zip(self.left, self.right, self.straight, strict=True):
            groups, wide, narrow = left.shape[1], left.shape[3], right.shape[3]
            scaled = (left.to(weights.dtype) * weights.view(-1, 1, 1, 1)).transpose(0, 1).reshape(groups, -1, wide)
            rights = right.to(weights.dtype).transpose(0, 1).reshape(groups, -1, narrow)
            into[self.weight].view(groups, wide, narrow).baddbmm_(scaled.transpose(1, 2), rights)
            if straight and self.bias is not None:
                into[self.bias].add_(scaled.sum(1).flatten())

    def numbers(self) -> int:
        """See :class:`Term`."""
        return sum(x.numel() for x in (*self.left, *self.right))


@dataclass(frozen=True)
class Lookup:
    """An embedding's gradient: left_t belongs to row index_t of the table (V, n).

    Args:
        weight: The table's place among the parameters.
        left: (B, T, n).
        index: (B, T).
    """

    weight: int
    left: Tensor
    index: Tensor

    def measure(self, units: Units) -> tuple[Tensor, Tensor]:
        """See :class:`Term`."""
        everything = slice(None)
        left = units.gather(self.left, everything).flatten(1, 2).double()
        index = units.gather(self.index, everything).flatten(1)
        gram = left @ left.transpose(1, 2)
        same = index[:, :, None] == index[:, None, :]
        sizes = gram.diagonal(dim1=1, dim2=2).sqrt().sum(1).square()
        return torch.where(same, gram, 0).sum((1, 2)), sizes

    def select(self, rows: Tensor) -> Lookup:
        """See :class:`Term`."""
        return replace(self, left=self.left[rows], index=self.index[rows])

    def add_to(self, into: list[Tensor], weights: Tensor) -> None:
        """See :class:`Term`."""
        scaled = self.left.to(weights.dtype) * weights.view(-1, 1, 1)
        into[self.weight].index_add_(0, self.index.flatten(), scaled.flatten(0, 1))

    def numbers(self) -> int:
        """See :class:`Term`."""
        return self.left.numel()
