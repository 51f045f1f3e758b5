"""Terms of per-record gradients, kept as factors while these are smaller than their product.

A linear layer's gradient is a sum of outer products, left ⊗ right. Its norm follows from inner products alone
(Goodfellow 2015, arXiv:1510.01799), and a weighted sum over records is one matrix product (Bu et al. 2023,
arXiv:2210.00038). A convolution is a linear layer applied to windows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol, Self

import torch
from torch import Tensor

# Norms of long rows are taken block by block, so that little accumulates before float64 takes over: summed in 8 lanes
# or more, some thirty roundings, which :meth:`UnitGradients.norms` allows for.
_BLOCK = 256
# More than what squares below the smallest float32 can take from the norm of a block.
_UNDERFLOW = 2.0**-58
# Float64 copies are made of this many numbers at a time: they stay in the cache and in memory already at hand.
_SCRATCH = 2**18
# Batched products of matrices with as few rows as this cost more than the same numbers one row at a time.
_FEW_STEPS = 2


@dataclass(frozen=True)
class UnitMembership:
    """The privacy unit of each record.

    Args:
        index: For each record its unit, (B,) in [0, count).
        count: Number of units, G.
        single: Whether record i is unit i, which spares the regrouping.
    """

    index: Tensor
    count: int
    single: bool

    @cached_property
    def _padded_index(self) -> tuple[Tensor, Tensor]:
        """Return (G, R): the records of each unit, and a mask of valid entries. R is the largest unit's size."""
        order = torch.argsort(self.index, stable=True)
        sizes = torch.bincount(self.index, minlength=self.count)
        within = torch.arange(len(order), device=order.device) - (sizes.cumsum(0) - sizes)[self.index[order]]
        padded = torch.zeros((self.count, int(sizes.max())), dtype=torch.long, device=order.device)
        taken = torch.zeros_like(padded, dtype=torch.bool)
        padded[self.index[order], within] = order
        taken[self.index[order], within] = True
        return padded, taken

    @property
    def largest(self) -> int:
        """Number of records of the largest unit, R."""
        return 1 if self.single else self._padded_index[0].shape[1]

    def gather(self, values: Tensor, some: slice) -> Tensor:
        """Return (g, R, …): the rows (B, …) of some units side by side, filled up with zeros."""
        if self.single:
            return values[some].unsqueeze(1)
        padded, taken = (x[some] for x in self._padded_index)
        rows = values[padded]
        return rows.masked_fill_(~taken.view(*taken.shape, *[1] * (rows.dim() - 2)), 0)

    def side_by_side(self, factor: Tensor, groups: int, some: slice) -> Tensor:
        """Return (g · groups, R · T, n): for some units the factors (B · groups, T, n) of all their records."""
        if self.single:
            return factor[some.start * groups : some.stop * groups]
        return self.gather(_apart(factor, groups), some).transpose(1, 2).flatten(2, 3).flatten(0, 1)

    def sum(self, values: Tensor) -> Tensor:
        """Return (G, …): the rows (B, …) of each unit added up."""
        if self.single:
            return values
        return values.new_zeros(self.count, *values.shape[1:]).index_add_(0, self.index, values)

    def spread(self, values: Tensor) -> Tensor:
        """Return (B,): for each record the value of its unit, (G,)."""
        return values if self.single else values[self.index]


def _apart(factor: Tensor, groups: int) -> Tensor:
    """Return (B, groups, T, n), from (B · groups, T, n)."""
    return factor.reshape(-1, groups, *factor.shape[1:])


class Term(Protocol):
    """One parameter's share of the gradients of B records."""

    def measure(self, units: UnitMembership) -> tuple[Tensor, Tensor]:
        """Return, for each unit, the squared norm and the squared sum of its summands' norms, float64.

        The second is larger where summands cancel, and bounds the rounding of a float32 sum.
        """

    def select(self, rows: Tensor) -> Self:
        """Return the term for some of the records."""

    def add_to(self, into: Sequence[Tensor], weights: Tensor) -> None:
        """Add the weighted sum over records to the parameters' flat buffers, in the precision of the weights."""

    def numbers(self) -> int:
        """Return the count of numbers kept."""


@dataclass(frozen=True)
class DenseTerm:
    """A gradient written out: for each record as many numbers as the parameter has, (B, N).

    Args:
        parameter: The parameter's place.
        values: The gradients.
        channels_last: (outputs, *kernel, inputs) if that is how a convolution's numbers come.
    """

    parameter: int
    values: Tensor
    channels_last: tuple[int, ...] = ()

    def measure(self, units: UnitMembership) -> tuple[Tensor, Tensor]:
        """See :class:`Term`."""
        norms = _norms(self.values)
        if units.single:
            squares = norms.square()
            return squares, squares
        return units.sum(self.values.double()).square().sum(1), units.sum(norms).square()

    def select(self, rows: Tensor) -> DenseTerm:
        """See :class:`Term`."""
        return replace(self, values=self.values[rows])

    def add_to(self, into: Sequence[Tensor], weights: Tensor) -> None:
        """See :class:`Term`."""
        values = _as(self.values, weights).t()
        if self.channels_last:
            _add_channels_last(into[self.parameter], values @ weights, self.channels_last)
        else:
            into[self.parameter].addmv_(values, weights)

    def numbers(self) -> int:
        """See :class:`Term`."""
        return self.values.numel()


def _add_channels_last(buffer: Tensor, total: Tensor, shape: tuple[int, ...]) -> None:
    """Add (outputs, *kernel, inputs) to a parameter of torch's order, (outputs, inputs, *kernel)."""
    outputs, *kernel, inputs = shape
    buffer.view(outputs, inputs, *kernel).movedim(1, -1).add_(total.view(shape))


def _written(left: Tensor, right: Tensor) -> Tensor:
    """Return Σ_t left_t ⊗ right_t, (B, n, m)."""
    if left.shape[1] > _FEW_STEPS:
        return left.transpose(1, 2) @ right
    written = left[:, 0, :, None] * right[:, 0, None, :]
    for step in range(1, left.shape[1]):
        # Not fused with the addition: what is equal and opposite has to cancel exactly.
        written += left[:, step, :, None] * right[:, step, None, :]
    return written


def _as(values: Tensor, other: Tensor) -> Tensor:
    """Return the values in the other's precision."""
    return values if values.dtype == other.dtype else values.to(other.dtype)


def _norms(values: Tensor) -> Tensor:
    """Return the norms of rows, float64 from (B, N), without a float64 copy of many numbers."""
    if values.dtype != torch.float32:
        exact: Tensor = torch.linalg.vector_norm(values, dim=1, dtype=torch.float64)
        return exact
    if values.shape[1] <= _BLOCK:
        norms: Tensor = torch.linalg.vector_norm(values, dim=1).double().add_(_UNDERFLOW)
    else:
        whole = values.shape[1] // _BLOCK * _BLOCK
        blocks = torch.linalg.vector_norm(values[:, :whole].view(len(values), -1, _BLOCK), dim=2).double()
        rest = torch.linalg.vector_norm(values[:, whole:], dim=1).double()
        norms = (blocks.add_(_UNDERFLOW).square().sum(1) + rest.add_(_UNDERFLOW).square()).sqrt()
    if not math.isfinite(norms.sum().item()):
        wide = ~norms.isfinite()
        norms[wide] = torch.linalg.vector_norm(values[wide], dim=1, dtype=torch.float64)
    return norms


@dataclass(frozen=True)
class OuterTerm:
    """A gradient as Σ_t left_t ⊗ right_t, for a weight of g · n · m numbers and perhaps a bias of g · n.

    Args:
        weight: The weight's place among the parameters.
        bias: The bias's place.
        groups: g, the number of independent groups of inputs and outputs.
        left: (B · g, T, n) for each pair.
        right: (B · g, T, m) for each pair.
        uses_bias: For each pair whether the bias takes part. It does not in a pair from the differentiated backward
            pass, where the layer acts without its bias.
        channels_last: (outputs, *kernel, inputs) if that is how a convolution's weight comes of the products.
    """

    weight: int
    bias: int | None
    groups: int
    left: tuple[Tensor, ...]
    right: tuple[Tensor, ...]
    uses_bias: tuple[bool, ...]
    channels_last: tuple[int, ...] = ()

    def shortest(self) -> list[Term]:
        """Return the gradient written out where that takes less room than its factors, and hence less work."""
        steps = sum(x.shape[1] for x in self.left)
        wide, narrow = self.left[0].shape[2], self.right[0].shape[2]
        if wide * narrow > steps * (wide + narrow):
            return [self]
        written = _written(self.left[0], self.right[0])
        for left, right in zip(self.left[1:], self.right[1:], strict=True):
            written += _written(left, right)
        whole = written.view(-1, self.groups * wide * narrow)
        terms: list[Term] = [DenseTerm(self.weight, whole, self.channels_last)]
        if self.bias is not None:
            shared = [x.sum(1) for x, uses_bias in zip(self.left, self.uses_bias, strict=True) if uses_bias]
            total = shared[0] if len(shared) == 1 else torch.stack(shared).sum(0)
            terms.append(DenseTerm(self.bias, total.view(-1, self.groups * wide)))
        return terms

    def measure(self, units: UnitMembership) -> tuple[Tensor, Tensor]:
        """See :class:`Term`."""
        steps = [x.shape[1] * units.largest for x in self.left]
        if sum(steps) == 1 and self.groups == 1:
            inputs = _norms(self.right[0][:, 0]).square()
            squares = _norms(self.left[0][:, 0]).square() * (inputs + float(self.bias is not None))
            return squares, squares
        widest = max(self.left[0].shape[2], self.right[0].shape[2])
        pace = max(1, _SCRATCH // (self.groups * sum(steps) * widest))
        measured = []
        for start in range(0, units.count, pace):
            some = slice(start, min(start + pace, units.count))
            gram = self._gram(self.right, units, some)
            if self.bias is not None:
                gram += self._shared(steps)
            gram *= self._gram(self.left, units, some)
            sizes = gram.diagonal(dim1=1, dim2=2).sqrt().sum(1).square_()
            measured.append(torch.stack([gram.sum((1, 2)), sizes]))
        squares, sizes = torch.cat(measured, 1)
        if self.groups == 1:
            return squares, sizes
        return squares.view(-1, self.groups).sum(1), sizes.view(-1, self.groups).sum(1)

    def _shared(self, steps: list[int]) -> Tensor | float:
        """Return (S, S): 1 for two factors of a unit that both act on the bias, as if it had an input of 1."""
        if all(self.uses_bias):
            return 1.0
        marks = [float(uses_bias) for count, uses_bias in zip(steps, self.uses_bias, strict=True) for _ in range(count)]
        column = torch.tensor(marks, dtype=torch.float64, device=self.left[0].device)
        return column[:, None] * column

    def _gram(self, factors: tuple[Tensor, ...], units: UnitMembership, some: slice) -> Tensor:
        """Return the inner products (g · groups, S, S) among all factors of each of some units, in float64."""
        rows = [units.side_by_side(factor, self.groups, some) for factor in factors]
        if len(rows) == 1:
            stacked = rows[0].double()
        else:
            steps = [x.shape[1] for x in rows]
            stacked = rows[0].new_empty((len(rows[0]), sum(steps), rows[0].shape[2]), dtype=torch.float64)
            for part, row in zip(torch.split(stacked, steps, 1), rows, strict=True):
                part.copy_(row)
        return torch.bmm(stacked, stacked.transpose(1, 2))

    def select(self, rows: Tensor) -> OuterTerm:
        """See :class:`Term`."""
        left, right = (
            tuple(_apart(x, self.groups)[rows].flatten(0, 1) for x in factors) for factors in (self.left, self.right)
        )
        return replace(self, left=left, right=right)

    def add_to(self, into: Sequence[Tensor], weights: Tensor) -> None:
        """See :class:`Term`."""
        each = weights if self.groups == 1 else weights.repeat_interleave(self.groups)
        buffer = into[self.weight]
        total = torch.zeros_like(buffer) if self.channels_last else buffer
        for left, right, uses_bias in zip(self.left, self.right, self.uses_bias, strict=True):
            scaled = self._by_group(_as(left, weights) * each[:, None, None])
            rights = self._by_group(_as(right, weights))
            total.view(self.groups, scaled.shape[2], rights.shape[2]).baddbmm_(scaled.transpose(1, 2), rights)
            if uses_bias and self.bias is not None:
                into[self.bias].add_(scaled.sum(1).view(-1))
        if self.channels_last:
            _add_channels_last(buffer, total, self.channels_last)

    def _by_group(self, factor: Tensor) -> Tensor:
        """Return (groups, B · T, n), from (B · groups, T, n)."""
        if self.groups == 1:
            return factor.reshape(1, -1, factor.shape[2])
        return _apart(factor, self.groups).transpose(0, 1).flatten(1, 2)

    def numbers(self) -> int:
        """See :class:`Term`."""
        return sum(x.numel() for x in (*self.left, *self.right))


@dataclass(frozen=True)
class LookupTerm:
    """An embedding's gradient: left_t belongs to row index_t of the table (V, n).

    Args:
        weight: The table's place among the parameters.
        left: (B, T, n).
        index: (B, T).
    """

    weight: int
    left: Tensor
    index: Tensor

    def measure(self, units: UnitMembership) -> tuple[Tensor, Tensor]:
        """See :class:`Term`."""
        everything = slice(0, units.count)
        left = units.gather(self.left, everything).flatten(1, 2).double()
        index = units.gather(self.index, everything).flatten(1)
        gram = left @ left.transpose(1, 2)
        same = index[:, :, None] == index[:, None, :]
        sizes = gram.diagonal(dim1=1, dim2=2).sqrt().sum(1).square()
        return torch.where(same, gram, 0).sum((1, 2)), sizes

    def select(self, rows: Tensor) -> LookupTerm:
        """See :class:`Term`."""
        return replace(self, left=self.left[rows], index=self.index[rows])

    def add_to(self, into: Sequence[Tensor], weights: Tensor) -> None:
        """See :class:`Term`."""
        scaled = _as(self.left, weights) * weights[:, None, None]
        table = into[self.weight].view(-1, scaled.shape[2])
        table.index_add_(0, self.index.flatten(), scaled.flatten(0, 1))

    def numbers(self) -> int:
        """See :class:`Term`."""
        return self.left.numel()
