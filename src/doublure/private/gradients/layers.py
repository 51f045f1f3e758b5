"""Per-record factors of a known layer's parameter gradient, from cotangents and inputs.

Each class maps cotangents of the layer's output, and the inputs that they belong to, to the terms of its parameters'
gradient.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from doublure.private.gradients.terms import DenseTerm, LookupTerm, OuterTerm, Term


@dataclass(frozen=True)
class FactorPair:
    """One summand of a layer's gradient.

    Args:
        cotangent: (R, …), in the shape of the layer's output. R is B, or 2B where a record's two rows are neighbours.
        inputs: (R, …), in the shape of the layer's input.
        uses_bias: Whether the bias takes part: true for uses in the forward pass.
    """

    cotangent: Tensor
    inputs: Tensor
    uses_bias: bool


@dataclass(frozen=True)
class Linear:
    """z = a Wᵀ + b, at one position or at many: a is (R, …, m)."""

    weight: int
    bias: int | None

    def terms(self, pairs: Sequence[FactorPair], records: int) -> list[Term]:
        """Return the terms of the gradients of B records."""
        left = tuple(self._positions(pair.cotangent, records) for pair in pairs)
        right = tuple(self._positions(pair.inputs, records) for pair in pairs)
        return OuterTerm(self.weight, self.bias, 1, left, right, tuple(pair.uses_bias for pair in pairs)).shortest()

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

    def terms(self, pairs: Sequence[FactorPair], records: int) -> list[Term]:
        """Return the terms of the gradients of B records."""
        left = tuple(self._places(pair.cotangent, records) for pair in pairs)
        right = tuple(self._windows(pair.inputs, pair.cotangent.shape[2:], records) for pair in pairs)
        uses_bias = tuple(pair.uses_bias for pair in pairs)
        outputs, inputs = pairs[0].cotangent.shape[1], pairs[0].inputs.shape[1] // self.groups
        shape = (outputs, *self.kernel, inputs)
        return OuterTerm(self.weight, self.bias, self.groups, left, right, uses_bias, shape).shortest()

    def _places(self, cotangent: Tensor, records: int) -> Tensor:
        """Return (B · g, T, n): the cotangents at each of the T places of a record's rows."""
        outputs = cotangent.shape[1] // self.groups
        grouped = cotangent.reshape(records, -1, self.groups, outputs, math.prod(cotangent.shape[2:]))
        return grouped.permute(0, 2, 3, 1, 4).flatten(3).flatten(0, 1).transpose(1, 2)

    def _windows(self, inputs: Tensor, places: tuple[int, ...], records: int) -> Tensor:
        """Return (B · g, T, kernel · m): the kernel's window at each of the T places, channels last."""
        sides = [side for padding in reversed(self.padding) for side in (padding, padding)]
        # Channels last, because then whole rows of a window are copied at a time.
        padded = functional.pad(inputs.movedim(1, -1), [0, 0, *sides]).contiguous()
        row, *steps, channel = padded.stride()
        rows, channels = len(inputs) // records, inputs.shape[1] // self.groups
        windows = padded.as_strided(
            (records, self.groups, rows, *places, *self.kernel, channels),
            (
                rows * row,
                channels * channel,
                row,
                *(step * along for step, along in zip(steps, self.stride, strict=True)),
                *(step * apart for step, apart in zip(steps, self.dilation, strict=True)),
                channel,
            ),
        )
        return windows.reshape(records * self.groups, rows * math.prod(places), -1)


@dataclass(frozen=True)
class Embedding:
    """z = W[a], a row of a table for each integer."""

    weight: int

    def terms(self, pairs: Sequence[FactorPair], records: int) -> list[Term]:
        """Return the terms of the gradients of B records. An integer has no derivative: all uses are forward."""
        left = [pair.cotangent.reshape(records, -1, pair.cotangent.shape[-1]) for pair in pairs]
        index = [pair.inputs.reshape(records, -1) for pair in pairs]
        return [LookupTerm(self.weight, torch.cat(left, 1), torch.cat(index, 1))]


@dataclass(frozen=True)
class Affine:
    """z = w · a + b, feature by feature: what LayerNorm and GroupNorm do after normalising."""

    weight: int
    bias: int | None
    features: tuple[int, ...]

    def terms(self, pairs: Sequence[FactorPair], records: int) -> list[Term]:
        """Return the terms of the gradients of B records: no larger than activations, hence written out."""
        products = [pair.cotangent * pair.inputs for pair in pairs]
        terms: list[Term] = [DenseTerm(self.weight, self._total(products, records))]
        if self.bias is not None:
            terms.append(DenseTerm(self.bias, self._total([p.cotangent for p in pairs if p.uses_bias], records)))
        return terms

    def _total(self, values: Sequence[Tensor], records: int) -> Tensor:
        """Return the sum over all positions and summands, (B, N)."""
        positions = [axis for axis in range(1, values[0].dim()) if axis not in self.features]
        rows = [x.sum(positions) if positions else x for x in values]
        return torch.stack([x.reshape(records, -1, x[0].numel()).sum(1) for x in rows]).sum(0)


Layer = Linear | Convolution | Embedding | Affine
