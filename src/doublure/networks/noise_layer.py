"""A critic whose features pass through a layer of noise.

It is that of Triastcyn & Faltings (2018, §4 and §5.2; 2019, §4.1 and §5.2).

The layer clips a record's features to a norm of at most C and adds N(0, σ²); a linear layer turns them into a score.
It protects the *score*: one score of one record, under fixed weights, is a Gaussian mechanism. It protects no
*gradient*, and so neither the critic's weights nor the generator: in the score v·(f(x) + η) + b, the noise η occurs in
no derivative with respect to x or to any weight but v (tested in tests/pitfalls). A nonlinear loss, logistic or hinge,
multiplies that derivative by a number between 0 and 1 that depends on η: the length of a record's gradient becomes
random, its direction does not. Therefore the 2018 paper's Theorem 2 and its corollary do not hold, and nothing trained
through this layer claims an ε.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import torch
from torch import Tensor, nn

from doublure.networks.initial_weights import initialise

Normals: TypeAlias = Callable[[int, int], Tensor]
"""Returns fresh draws of N(0, 1), ``(rows, width)``."""

_FLOOR = 1e-12  # added under the square root, whose slope at zero is infinite


class NoiseLayer(nn.Module):
    """Layer that clips features ``(B, d)`` to norm C and adds noise, in training and evaluation mode alike.

    Args:
        clip: C.
        std: σ, the noise's standard deviation in each feature.
        normals: The source of the noise.
    """

    def __init__(self, *, clip: float, std: float, normals: Normals) -> None:
        super().__init__()
        self._bound = clip
        self._std = std
        self._normals = normals

    def silence(self) -> None:
        """Add no noise from now on: the noise does not bind an attacker who holds the weights."""
        self._std = 0.0

    def clipped(self, features: Tensor) -> Tensor:
        """Return each row clipped to norm C."""
        length = (features.square().sum(dim=1, keepdim=True) + _FLOOR).sqrt()
        return features * (self._bound / length).clamp(max=1)

    def forward(self, features: Tensor) -> Tensor:
        """Return clipped features and fresh noise ``(B, d)``."""
        return self.clipped(features) + self._std * self._normals(*features.shape).to(features.device)


class NoisyCritic(nn.Module):
    """Critic of records with an optional condition, whose features, with the condition, pass through noise.

    Args:
        body: Maps records ``(B, D…)`` and conditions ``(B, K)`` or None to features ``(B, d)``, record by record.
        features: d.
        layer: Clips the features and adds noise.
        generator: Public randomness for the last layer's initial weights.
    """

    def __init__(self, body: nn.Module, *, features: int, layer: NoiseLayer, generator: torch.Generator) -> None:
        super().__init__()
        self.body = body
        self.layer = layer
        self.score = nn.Linear(features, 1)
        initialise(self.score, generator, gain=1.0)

    def forward(self, records: Tensor, condition: Tensor | None = None) -> Tensor:
        """Return scores ``(B,)``; two calls with the same records differ by their noise."""
        features = self.body(records, condition).reshape(len(records), -1)  # a single feature comes as ``(B,)``
        scores: Tensor = self.score(self.layer(features))
        return scores.squeeze(1)
