"""Convolutional networks: the critic and the generator of Triastcyn & Faltings (2018, 2019, 2022), for images.

The critic: three or four convolutions of stride 2 with SELU or leaky ReLU, the label appended, d = 64 features, one
score (2018 §5.2, 2019 §5.2, 2022 §2.5). The generator: noise and label through a linear layer to some thousand numbers,
three transposed convolutions of stride 2, max pooling down to the image's size (a fractional one where the sizes do
not divide), tanh. Any height, width and number of channels is one setting. The critic also takes time series:
its convolutions then go along the one dimension that these have.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Literal, TypeAlias

import torch
from torch import Tensor, nn

from doublure.networks.initial_weights import initialise
from doublure.networks.sizes import DEEP, KERNEL, halved, seed_sides

Activation: TypeAlias = Literal["selu", "leaky_relu"]
Normalisation: TypeAlias = Literal["none", "batch"]

_FEW_CLASSES = 32
_GAINS: dict[Activation, float] = {"selu": 1.0, "leaky_relu": 2.0}


def activation(name: Activation) -> nn.Module:
    """Return the activation of this name."""
    return nn.SELU() if name == "selu" else nn.LeakyReLU(0.2)


class ConvCritic(nn.Module):
    """Critic of images or series with an optional condition; no operation mixes records.

    With few classes the score also has weights of its own for each class, on products of features and label. A label
    that is only appended to the last linear layer, as in the papers' figures, shifts the scores of real and generated
    images by the same amount.

    Args:
        shape: ``(C, H, W)``; of series ``(C, L)``.
        condition_width: K; 0 for none.
        channels: Output channels of the convolutions.
        features: d.
        activation_name: Activation of all layers.
        generator: Public randomness for the initial weights.
        outputs: Numbers in place of the score, as input of further layers.
        offset: Whether the score has a constant of its own; see :class:`~doublure.networks.mlp.MlpCritic`.
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        *,
        condition_width: int,
        channels: Sequence[int],
        features: int,
        activation_name: Activation,
        generator: torch.Generator,
        outputs: int = 1,
        offset: bool = True,
    ) -> None:
        super().__init__()
        sizes = [shape[0], *channels]
        layers: list[nn.Module] = []
        convolution = nn.Conv2d if len(shape) == 3 else nn.Conv1d
        for before, after in pairwise(sizes):
            layers += [convolution(before, after, KERNEL, stride=2, padding=KERNEL // 2), activation(activation_name)]
        self.convolutions = nn.Sequential(*layers, nn.Flatten())
        flat = sizes[-1] * math.prod(halved(side, len(channels)) for side in shape[1:])
        self.embed = nn.Sequential(nn.Linear(flat + condition_width, features), activation(activation_name))
        self._by_class = 0 < condition_width <= _FEW_CLASSES
        scores = features * (1 + condition_width * self._by_class) + condition_width
        self.score = nn.Linear(scores, outputs, bias=offset)
        initialise(self, generator, gain=_GAINS[activation_name])

    def features(self, images: Tensor, condition: Tensor | None = None) -> Tensor:
        """Return the features ``(B, d)`` of images ``(B, C, H, W)``, or of series ``(B, C, L)``."""
        seen = self.convolutions(images)
        features: Tensor = self.embed(seen if condition is None else torch.cat([seen, condition], dim=1))
        return features

    def judge(self, features: Tensor, condition: Tensor | None = None) -> Tensor:
        """Return scores ``(B,)`` of features ``(B, d)``; ``(B, outputs)`` of several."""
        inputs = [features]
        if condition is not None:
            inputs.append(condition)
            if self._by_class:
                inputs.append((condition.unsqueeze(2) * features.unsqueeze(1)).flatten(1))
        scores: Tensor = self.score(torch.cat(inputs, dim=1))
        return scores.squeeze(1)  # which leaves several outputs as they are

    def forward(self, images: Tensor, condition: Tensor | None = None) -> Tensor:
        """Return scores ``(B,)`` for images ``(B, C, H, W)`` and labels ``(B, K)``."""
        return self.judge(self.features(images, condition), condition)


class ConvGenerator(nn.Module):
    """Generator of images in [-1, 1] from noise and label.

    Without normalisation an image depends on its own noise and label alone, as pairing with private records requires.
    With batch normalisation (2018) it depends on its whole batch in training; sampling uses running averages.

    Args:
        shape: ``(C, H, W)``.
        condition_width: K; 0 for none.
        noise_width: Z.
        channels: Channels of the linear layer's output and of each hidden layer after it.
        activation_name: Activation of all hidden layers; batch normalisation uses ReLU.
        normalisation: ``batch`` or ``none``.
        generator: Public randomness for the initial weights.
    """

    def __init__(
        self,
        shape: tuple[int, int, int],
        *,
        condition_width: int,
        noise_width: int,
        channels: Sequence[int],
        activation_name: Activation,
        normalisation: Normalisation,
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        self.noise_width = noise_width
        self.condition_width = condition_width
        start = (channels[0], *seed_sides(shape, len(channels)))

        def hidden(size: int) -> list[nn.Module]:
            if normalisation == "batch":
                return [nn.BatchNorm2d(size), nn.ReLU()]
            return [activation(activation_name)]

        layers: list[nn.Module] = [nn.Linear(noise_width + condition_width, math.prod(start)), nn.Unflatten(1, start)]
        layers += hidden(channels[0])
        for inputs, outputs in pairwise(channels):
            layers += [nn.ConvTranspose2d(inputs, outputs, DEEP, stride=2, padding=1), *hidden(outputs)]
        layers += [nn.ConvTranspose2d(channels[-1], shape[0], DEEP, stride=2, padding=1)]
        layers += [nn.AdaptiveMaxPool2d(shape[1:]), nn.Tanh()]
        self.body = nn.Sequential(*layers)
        initialise(self, generator, gain=_GAINS[activation_name])

    def forward(self, noise: Tensor, condition: Tensor | None = None) -> Tensor:
        """Return images ``(B, C, H, W)`` from noise ``(B, Z)`` and labels ``(B, K)``."""
        images: Tensor = self.body(noise if condition is None else torch.cat([noise, condition], dim=1))
        return images
