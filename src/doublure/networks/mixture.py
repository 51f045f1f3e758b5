"""A generator that chooses one of K rows of probabilities: a mixture of products.

Given its component, a row's columns are independent; all that columns have to do with one another is which component
they come from. Expected one- and two-way tables are then exact sums over components, so that it can be fitted to noisy
tables without a single sampled row, and a condition only changes how likely each component is.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from doublure.networks.steering import drawn_where_open

_LEAST = 1e-30
_IMPOSSIBLE = -200.0
"""A logarithm that float32 turns into a probability of zero, and that leaves a block without entries usable."""


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

    def draw_conditions(self, known: Tensor, source: torch.Generator) -> Tensor:
        """Return ``(n, K)`` one-hot conditions: those that are known, and the others as frequent as beside them.

        Args:
            known: ``(n, K)`` one-hot blocks; all zeros where a condition is left open.
            source: Public randomness.
        """
        table = self.probabilities()
        uniform = torch.rand(len(known), generator=source, dtype=torch.float64)
        chances = table[self._chosen(table, uniform, known, even=True), self._body :]
        sizes = self._sizes[len(self.body_sizes) :]
        blocks = zip(torch.split(known, sizes, dim=1), torch.split(chances, sizes, dim=1), strict=True)
        return torch.cat([drawn_where_open(block, own, source) for block, own in blocks], dim=1)

    def narrowed(self, chances: Tensor) -> MixtureGenerator:
        """Return the same mixture, given that a row fits: components by Bayes, and only entries that can fit.

        Args:
            chances: ``(D + K,)`` for each entry of each block the chance in [0, 1] that a row with it fits.
        """
        fitting = torch.split(self.probabilities().double() * chances.double(), self._sizes, dim=1)
        fits = torch.cat([part.sum(dim=1, keepdim=True) for part in fitting], dim=1)
        narrow = MixtureGenerator(self._sizes, condition_width=sum(self._sizes) - self._body, components=len(fits))
        possible = [part.log().clamp(min=_IMPOSSIBLE) for part in fitting]
        with torch.no_grad():
            narrow.logits.copy_(torch.cat(possible, dim=1))
            narrow.log_weights.copy_(self.log_weights.double() + fits.clamp(min=_LEAST).log().sum(dim=1))
        return narrow

    def evidence(self, known: Tensor) -> Tensor:
        """Return ``(n,)`` how likely conditions are (all zeros: any), in logarithms; once narrowed, with fitting."""
        if not known.shape[1]:
            return torch.logsumexp(self.log_weights.double(), dim=0).expand(len(known))
        asked, which = torch.unique(known, dim=0, return_inverse=True)
        given = asked @ self.probabilities()[:, self._body :].clamp(min=_LEAST).log().t()
        likely: Tensor = torch.logsumexp(self.log_weights.double() + given.double(), dim=1)[which]
        return likely

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
