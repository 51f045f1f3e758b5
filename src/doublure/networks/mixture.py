"""A mixture of product distributions over a table's columns.

Given its component, a row's columns are independent; all dependence between columns comes from the component. Expected
one- and two-way tables are exact sums over components, so that the mixture is fitted to noisy tables without sampling.
A condition only changes the probability of each component.
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
    """Map of noise and condition to a row of probabilities.

    Args:
        sizes: Sizes of the body's softmax blocks, then of the conditions'.
        condition_width: K, the total width of the conditions' blocks.
        components: Number of components.

    Attributes:
        logits: ``(components, D + K)``: log probabilities of every block, up to a constant a block.
        log_weights: ``(components,)``: log probability of each component.
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
            weights: ``(components,)`` probability of each component, adding up to 1.
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
            noise: ``(B, 1)`` standard normal; the component is drawn by its rank.
            condition: ``(B, K)`` one-hot blocks, or None.
        """
        table = self.probabilities()
        with torch.no_grad():
            chosen = self._chosen(table, torch.special.ndtr(noise[:, 0].double()), condition, even=True)
        return table[chosen, : self._body]

    def probable(self, uniform: Tensor, condition: Tensor | None = None) -> Tensor:
        """Return rows ``(B, D)`` of probabilities, with each component drawn by its own number alone.

        Args:
            uniform: ``(B,)`` in [0, 1).
            condition: ``(B, K)`` one-hot blocks, or None.
        """
        table = self.probabilities()
        with torch.no_grad():
            chosen = self._chosen(table, uniform, condition, even=False)
        return table[chosen, : self._body]

    def _chosen(self, table: Tensor, uniform: Tensor, condition: Tensor | None, *, even: bool) -> Tensor:
        """Return each row's component ``(B,)``, drawn from its posterior given the condition (Bayes' rule)."""
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
        """Return components by systematic sampling (Madow 1949) on the numbers' ranks.

        The random start is the fractional part of their sum, which is uniform and independent of the ranks.
        """
        even = (torch.argsort(torch.argsort(uniform)) + uniform.sum() % 1) / max(1, len(uniform))
        return cls._drawn(log_weights, even)


class MixtureRows(nn.Module):
    """Rows drawn from a mixture independently, for a critic that compares them with private rows.

    Each row is drawn by its own numbers alone, with one-hot blocks; their gradient is that of the probabilities (the
    straight-through estimator of Bengio, Léonard and Courville 2013).

    Args:
        mixture: The mixture, whose parameters this module trains.
    """

    def __init__(self, mixture: MixtureGenerator) -> None:
        super().__init__()
        self.mixture = mixture
        self.noise_width = 1 + len(mixture.body_sizes)

    def forward(self, noise: Tensor, condition: Tensor | None = None) -> Tensor:
        """Return rows ``(B, D)`` of ones and zeros.

        Args:
            noise: ``(B, 1 + blocks)`` standard normal; the first draws the component, the others an entry each.
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
        return rows + (chances - chances.detach())  # the added term is zero and carries the gradient


def _entry(chances: Tensor, uniform: Tensor) -> Tensor:
    """Return an entry ``(B,)`` of each row of chances ``(B, E)``, by inverting the distribution at a uniform number."""
    cumulative = chances.cumsum(dim=1)
    found = torch.searchsorted(cumulative, (uniform * cumulative[:, -1])[:, None], right=True)
    return found.squeeze(1).clamp(max=chances.shape[1] - 1)
