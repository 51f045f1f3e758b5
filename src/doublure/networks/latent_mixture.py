"""A mixture of Gaussians for each class, as a generator of latents."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn


class LatentMixture(nn.Module):
    """Noise ``(B, d + 1)`` and condition to latents ``(B, d)``: the first number chooses a component of the class.

    Args:
        classes: How many values each condition has, side by side as in the condition vector; none: one class.
        components: For each class.
        width: d.

    Attributes:
        weights: ``(K, M)`` how often each component is chosen within its class.
        means: ``(K M, d)``.
        factors: ``(K M, d, d)``, each a matrix A with A Aᵀ the component's covariance.
    """

    def __init__(self, classes: Sequence[int], *, components: int, width: int) -> None:
        super().__init__()
        self._classes = tuple(classes)
        self._components = components
        rows = math.prod(self._classes) * components
        self.weights: Tensor
        self.means: Tensor
        self.factors: Tensor
        self.register_buffer("weights", torch.full((math.prod(self._classes), components), 1 / components))
        self.register_buffer("means", torch.zeros(rows, width))
        self.register_buffer("factors", torch.eye(width).repeat(rows, 1, 1))

    def forward(self, noise: Tensor, condition: Tensor | None = None) -> Tensor:
        """Return latents."""
        of = class_of(condition, self._classes, len(noise)).to(noise.device)
        chosen = (torch.special.ndtr(noise[:, :1]) > self.weights.cumsum(1)[of]).sum(1)
        row = of * self._components + chosen.clamp(max=self._components - 1)
        latents: Tensor = self.means[row] + torch.einsum("bij,bj->bi", self.factors[row], noise[:, 1:])
        return latents


def class_of(condition: Tensor | None, classes: Sequence[int], size: int) -> Tensor:
    """Return the number ``(B,)`` of each row's combination of condition values; 0 where there is no condition."""
    number = torch.zeros(size, dtype=torch.long)
    if condition is None:
        return number
    number, start = number.to(condition.device), 0
    for values in classes:
        number = number * values + condition[:, start : start + values].argmax(dim=1)
        start += values
    return number
