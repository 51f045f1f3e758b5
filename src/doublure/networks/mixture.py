"""A generator that chooses one of K rows of probabilities: a mixture of products.

Given its component, a row's columns are independent; all that columns have to do with one another is which component
they come from. Expected one- and two-way tables are then exact sums over components, so that noisy tables can teach it
without a single sampled row, and a condition only changes how likely each component is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

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
        self.logits = nn.Parameter(torch.zeros(components, sum(sizes)))
        self.register_buffer("log_weights", torch.full((components,), -math.log(components)))

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
            chosen = self._chosen(table, torch.special.ndtr(noise[:, 0].double()), condition)
        return table[chosen, : self._body]

    def _chosen(self, table: Tensor, uniform: Tensor, condition: Tensor | None) -> Tensor:
        """Return each row's component ``(B,)``: by Bayes, the likelier the likelier it makes the condition."""
        if condition is None:
            return self._drawn(self.log_weights, uniform)
        asked, which = torch.unique(condition, dim=0, return_inverse=True)
        log_weights = self.log_weights + asked @ table[:, self._body :].clamp(min=_LEAST).log().t()
        chosen = torch.empty_like(which)
        together = torch.split(torch.argsort(which), torch.bincount(which, minlength=len(asked)).tolist())
        for own, rows in zip(log_weights, together, strict=True):
            chosen[rows] = self._drawn(own, uniform[rows])
        return chosen

    @staticmethod
    def _drawn(log_weights: Tensor, uniform: Tensor) -> Tensor:
        """Return components, each as often as it should be: the numbers' ranks, spread evenly from a random start.

        The start is the sum's fraction: uniform, and the same for any ranks (systematic sampling, Madow 1949).
        """
        cumulative = torch.softmax(log_weights.double(), dim=0).cumsum(0)
        even = (torch.argsort(torch.argsort(uniform)) + uniform.sum() % 1) / max(1, len(uniform))
        return torch.searchsorted(cumulative, even * cumulative[-1], right=True).clamp(max=len(cumulative) - 1)
