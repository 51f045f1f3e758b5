"""What each known layer makes of a cotangent and an input: factors of its parameters' gradient, record by record.

Every class answers one question: given cotangents of the layer's output and what they belong to at the layer's
input, which terms does the gradient of its parameters have?
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from doublure.private.gradients.terms import Dense, Lookup, Outer, Term


@dataclass(frozen=True)
class Pair:
    """One summand of a layer's gradient.

    Args:
        cotangent: (R, …), in the shape of the layer's output. R is B, or 2B where a record's two rows are neighbours.
        inputs: (R, …), in the shape of the layer's input.
        straight: Whether the bias shares in it: true for uses in the forward pass.
    """

    cotangent: Tensor
    inputs: Tensor
    straight: bool


@dataclass(frozen=True)
class Linear:
    """z = a Wᵀ + b, at one position or at many: a is (R, …, m)."""

    weight: int
    bias: int | None

    def terms(self, pairs: Sequence[Pair], records: int) -> list[Term]:
        """Return the terms of the gradients of B records."""
        left = tuple(self._positions(pair.cotangent, records) for pair in pairs)
        right = tuple(self._positions(pair.inputs, records) for pair in pairs)
        return Outer(self.weight, self.bias, 1, left, right, tuple(pair.straight for pair in pairs)).shortest()

    @staticmethod
    def _positions(values: Tensor, records: int) -> Tensor:
        """Return (B, T, n)."""
        return values.reshape(records, -1, values.shape[-1])


@dataclass(frozen=True)
class Convolution:
    """A linear layer over the windows of its input, in one dimension or two: a is (R, m, *size)."""

    weight: int
    bias: int | None
    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    groups: int

    def terms(self, pairs: Sequence[Pair], records: int) -> list[Term]:
        """Return the terms of the gradients of B records."""
        left: list[Tensor] = []
        right: list[Tensor] = []
        straight: list[bool] = []
        for pair in pairs:
            rows = len(pair.inputs) // records
            left += self._by_row(self._places(pair.cotangent), rows)
            right += self._by_row(self._windows(pair.inputs, tuple(pair.cotangent.shape[2:])), rows)
            straight += [pair.straight] * rows
        return Outer(self.weight, self.bias, self.groups, tuple(left), tuple(right), tuple(straight)).shortest()

    @staticmethod
    def _by_row(factor: Tensor, rows: int) -> list[Tensor]:
        """Return, from (B · rows, g, n, T), for each of a record's rows (B · g, T, n)."""
        return [factor[row::rows].flatten(0, 1).transpose(1, 2) for row in range(rows)]

    def _places(self, cotangent: Tensor) -> Tensor:
        """Return (R, g, n, T): what came back to each of the T places."""
        return cotangent.reshape(len(cotangent), self.groups, cotangent.shape[1] // self.groups, -1)

    def _windows(self, inputs: Tensor, places: tuple[int, ...]) -> Tensor:
        """Return (R, g, m, T): what the kernel sees from each of the T places."""
        sides = [side for padding in reversed(self.padding) for side in (padding, padding)]
        padded = functional.pad(inputs, sides) if any(sides) else inputs.contiguous()
        rows, channels, *steps = padded.stride()
        windows = padded.as_strided(
            (*inputs.shape[:2], *self.kernel, *places),
            (
                rows,
                channels,
                *(step * apart for step, apart in zip(steps, self.dilation, strict=True)),
                *(step * along for step, along in zip(steps, self.stride, strict=True)),
            ),
        )
        return windows.reshape(len(inputs), self.groups, -1, math.prod(places))


@dataclass(frozen=True)
class Embedding:
    """z = W[a], a row of a table for each integer."""

    weight: int

    def terms(self, pairs: Sequence[Pair], records: int) -> list[Term]:
        """Return the terms of the gradients of B records. An integer has no derivative: all uses are forward."""
        left = [pair.cotangent.reshape(records, -1, pair.cotangent.shape[-1]) for pair in pairs]
        index = [pair.inputs.reshape(records, -1) for pair in pairs]
        return [Lookup(self.weight, torch.cat(left, 1), torch.cat(index, 1))]


@dataclass(frozen=True)
class Affine:
    """z = w · a + b, feature by feature: what LayerNorm and GroupNorm do after normalising."""

    weight: int
    bias: int | None
    features: tuple[int, ...]

    def terms(self, pairs: Sequence[Pair], records: int) -> list[Term]:
        """Return the terms of the gradients of B records: no larger than activations, hence written out."""
        products = [pair.cotangent * pair.inputs for pair in pairs]
        terms: list[Term] = [Dense(self.weight, self._total(products, records))]
        if self.bias is not None:
            terms.append(Dense(self.bias, self._total([p.cotangent for p in pairs if p.straight], records)))
        return terms

    def _total(self, values: Sequence[Tensor], records: int) -> Tensor:
        """Return the sum over all positions and summands, (B, N)."""
        positions = [axis for axis in range(1, values[0].dim()) if axis not in self.features]
        rows = [x.sum(positions) if positions else x for x in values]
        return torch.stack([x.reshape(records, -1, x[0].numel()).sum(1) for x in rows]).sum(0)


Layer = Linear | Convolution | Embedding | Affine
