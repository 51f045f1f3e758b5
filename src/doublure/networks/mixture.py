"""A generator that chooses one of K rows of probabilities: a mixture of products.

Given its component, a row's columns are independent; all that columns have to do with one another is which component
they come from. Expected one- and two-way tables are then exact sums over components, so that it can be fitted to noisy
tables without a single sampled row, and a condition only changes how likely each component is.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from doublure.networks.array_generator import Array

_LEAST = 1e-30


class MixtureGenerator(nn.Module):
    """Noise and condition in, one row of probabilities out.

    Args:
        sizes: The body's softmax blocks, then the conditions'.
        condition_width: K, how many of the last columns are conditions.
        components: How many rows of probabilities.

    Attributes:
        logits: ``(components, D + K)``: log-probabilities of every block, up to a constant a block.
        log_weights: ``(components,)``: how likely each component is, in logarithms.
    """

    logits: nn.Parameter
    log_weights: Tensor

    def __init__(self, sizes: Sequence[int], *, condition_width: int, components: int) -> None:
        super().__init__()
        self._sizes = list(sizes)
        self._body = sum(sizes) - condition_width
        widths = itertools.accumulate(sizes)
        self.body_sizes = [size for size, end in zip(sizes, widths, strict=True) if end <= self._body]
        self.logits = nn.Parameter(torch.zeros(components, sum(sizes)))
        self.register_buffer("log_weights", torch.full((components,), -math.log(components)))

    @classmethod
    def of(cls, sizes: Sequence[int], probabilities: Array, weights: Array) -> MixtureGenerator:
        """Return a mixture without conditions.

        Args:
            sizes: The softmax blocks.
            probabilities: ``(components, D)`` of every block, positive.
            weights: ``(components,)`` how likely each component is, adding up to 1.
        """
        made = cls(sizes, condition_width=0, components=len(weights))
        with torch.no_grad():
            made.logits.copy_(torch.from_numpy(np.log(probabilities)))
            made.log_weights.copy_(torch.from_numpy(np.log(weights)))
        return made

    def probabilities(self) -> Tensor:
        """Return every component's probabilities, ``(components, D + K)``."""
        return torch.cat([torch.softmax(part, dim=1) for part in torch.split(self.logits, self._sizes, dim=1)], dim=1)

    def forward(self, noise: Tensor, condition: Tensor | None = None) -> Tensor:
        """Return rows ``(B, D)`` of probabilities.

        Args:
            noise: ``(B, 1)`` standard normal: which component, by its place in the distribution.
            condition: ``(B, K)`` one-hot blocks, or None.
        """
        table = self.probabilities()
        with torch.no_grad():
            chosen = self._chosen(table, torch.special.ndtr(noise[:, 0].double()), condition, even=True)
        return table[chosen, : self._body]

    def probable(self, uniform: Tensor, condition: Tensor | None = None) -> Tensor:
        """Return rows ``(B, D)`` of probabilities, row i of the component that the i-th number alone says.

        Args:
            uniform: ``(B,)`` in [0, 1).
            condition: ``(B, K)`` one-hot blocks, or None.
        """
        table = self.probabilities()
        with torch.no_grad():
            chosen = self._chosen(table, uniform, condition, even=False)
        return table[chosen, : self._body]

    def _chosen(self, table: Tensor, uniform: Tensor, condition: Tensor | None, *, even: bool) -> Tensor:
        """Return each row's component ``(B,)``: by Bayes, the likelier the likelier it makes the condition."""
        drawn = self._drawn_evenly if even else self._drawn
        if condition is None:
            return drawn(self.log_weights, uniform)
        asked, which = torch.unique(condition, dim=0, return_inverse=True)
        log_weights = self.log_weights + asked @ table[:, self._body :].clamp(min=_LEAST).log().t()
        chosen = torch.empty_like(which)
        together = torch.split(torch.argsort(which), torch.bincount(which, minlength=len(asked)).tolist())
        for own, rows in zip(log_weights, together, strict=True):
            chosen[rows] = drawn(own, uniform[rows])
        return chosen

    @staticmethod
    def _drawn(log_weights: Tensor, uniform: Tensor) -> Tensor:
        """Return components, each drawn by its own number."""
        cumulative = torch.softmax(log_weights.double(), dim=0).cumsum(0)
        return torch.searchsorted(cumulative, uniform * cumulative[-1], right=True).clamp(max=len(cumulative) - 1)

    @classmethod
    def _drawn_evenly(cls, log_weights: Tensor, uniform: Tensor) -> Tensor:
        """Return components, each as often as it should be: the numbers' ranks, spread evenly from a random start.

        The start is the sum's fraction: uniform, and the same for any ranks (systematic sampling, Madow 1949).
        """
        even = (torch.argsort(torch.argsort(uniform)) + uniform.sum() % 1) / max(1, len(uniform))
        return cls._drawn(log_weights, even)


class MixtureRows(nn.Module):
    """Rows drawn from a mixture one by one, as a critic sees them and learns beside private ones.

    Each row is drawn by its own numbers alone, with hard blocks; their gradient is that of the probabilities that they
    were drawn by (the straight-through estimator of Bengio, Léonard and Courville 2013).

    Args:
        mixture: What it draws from; its parameters are this module's.
    """

    def __init__(self, mixture: MixtureGenerator) -> None:
        super().__init__()
        self.mixture = mixture
        self.noise_width = 1 + len(mixture.body_sizes)

    def forward(self, noise: Tensor, condition: Tensor | None = None) -> Tensor:
        """Return rows ``(B, D)`` of ones and zeros.

        Args:
            noise: ``(B, 1 + blocks)`` standard normal: which component, then which entry of each block.
            condition: ``(B, K)`` one-hot blocks, or None.
        """
        uniform = torch.special.ndtr(noise.double())
        chances = self.mixture.probable(uniform[:, 0], condition)
        with torch.no_grad():
            hard = [
                functional.one_hot(_entry(own, place), own.shape[1])
                for own, place in zip(
                    torch.split(chances.double(), self.mixture.body_sizes, dim=1), uniform[:, 1:].unbind(1), strict=True
                )
            ]
            rows = torch.cat(hard, dim=1).to(chances.dtype) if hard else chances
        return rows + (chances - chances.detach())  # which is zero, and has a gradient


def _entry(chances: Tensor, uniform: Tensor) -> Tensor:
    """Return which entry ``(B,)`` of each row of chances ``(B, E)`` a number in [0, 1) falls on."""
    cumulative = chances.cumsum(dim=1)
    found = torch.searchsorted(cumulative, (uniform * cumulative[:, -1])[:, None], right=True)
    return found.squeeze(1).clamp(max=chances.shape[1] - 1)
