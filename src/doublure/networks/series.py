"""Generators of time series, convolutional and recurrent, with a common head.

A generated series is a stack of planes ``(P, length)``, in the encoding of :mod:`doublure.encode.series`. The recurrent
generator trains more slowly.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Protocol

import torch
from torch import Tensor, nn
from typing_extensions import override

from doublure.networks.initial_weights import initialise
from doublure.networks.mlp import MlpCritic
from doublure.networks.sizes import CLOCK, DEEP, KERNEL

_SLOPE = 0.2


class ChannelPlanes(Protocol):
    """One channel's planes: ``states`` planes of states from ``first`` on, then one plane of places."""

    @property
    def first(self) -> int:
        """The first of its planes."""

    @property
    def states(self) -> int:
        """Number of planes of states."""

    @property
    def place(self) -> int:
        """The plane of places."""


class SeriesHead(nn.Module):
    """The last layer of every generator: a mean profile of each attribute, and the activations.

    A linear path leads from the attributes to every step, so that each attribute has its own profile from the first
    training steps on. States are a softmax at each step; a place is a tanh times the chance of a value, as a step
    without a value has place 0.

    Args:
        planes: The channels' planes, in order.
        length: Steps.
        condition_width: K; 0 for none.
    """

    def __init__(self, planes: Sequence[ChannelPlanes], length: int, condition_width: int) -> None:
        super().__init__()
        self._planes = tuple((each.first, each.states, each.place) for each in planes)
        self.shape = (planes[-1].place + 1, length)
        self.profile = nn.Parameter(torch.zeros(self.shape))
        size = math.prod(self.shape)
        self.by_attribute = nn.Linear(condition_width, size, bias=False) if condition_width else None

    def forward(self, raw: Tensor, condition: Tensor | None) -> Tensor:
        """Return series ``(B, P, length)`` from numbers ``(B, P, length)`` and attributes ``(B, K)``."""
        raw = raw + self.profile
        if self.by_attribute is not None and condition is not None:
            raw = raw + self.by_attribute(condition).view_as(raw)
        made = []
        for first, states, place in self._planes:
            value = torch.tanh(raw[:, place : place + 1])
            if states:
                chances = torch.softmax(raw[:, first:place], dim=1)
                made += [chances, value * chances[:, :1]]
            else:
                made.append(value)
        return made[0] if len(made) == 1 else torch.cat(made, dim=1)

    @torch.no_grad()
    def start(self) -> None:
        """Let every attribute begin with the same profile."""
        if self.by_attribute is not None:
            self.by_attribute.weight.zero_()


class ConvSeriesGenerator(nn.Module):
    """Convolutional generator: a hidden layer, a few steps, doublings by transposed convolutions, a cut to length.

    A series depends on its own noise and attributes alone.

    Args:
        planes: The channels' planes, in order.
        length: Steps.
        condition_width: K; 0 for none.
        noise_width: Z.
        hidden: Units of the first layer.
        channels: Channels of the first steps and after each doubling.
        generator: Public randomness for the initial weights.
    """

    def __init__(
        self,
        planes: Sequence[ChannelPlanes],
        length: int,
        *,
        condition_width: int,
        noise_width: int,
        hidden: int,
        channels: Sequence[int],
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        self.noise_width = noise_width
        self.condition_width = condition_width
        self._length = length
        start = (channels[0], math.ceil(length / 2 ** (len(channels) - 1)))
        layers: list[nn.Module] = [
            nn.Linear(noise_width + condition_width, hidden),
            nn.LeakyReLU(_SLOPE),
            nn.Linear(hidden, math.prod(start)),
            nn.LeakyReLU(_SLOPE),
            nn.Unflatten(1, start),
        ]
        for inputs, outputs in pairwise(channels):
            layers += [nn.ConvTranspose1d(inputs, outputs, DEEP, stride=2, padding=1), nn.LeakyReLU(_SLOPE)]
        self.head = SeriesHead(planes, length, condition_width)
        layers.append(nn.Conv1d(channels[-1], self.head.shape[0], KERNEL, padding=KERNEL // 2))
        self.body = nn.Sequential(*layers)
        initialise(self, generator)
        self.head.start()

    def forward(self, noise: Tensor, condition: Tensor | None = None) -> Tensor:
        """Return series ``(B, P, length)`` in [-1, 1] from noise ``(B, Z)`` and attributes ``(B, K)``."""
        raw = self.body(noise if condition is None else torch.cat([noise, condition], dim=1))
        made: Tensor = self.head(raw[:, :, : self._length], condition)
        return made


class MlpSeriesCritic(MlpCritic):
    """A multilayer perceptron over the whole series, as in Frigerio et al. 2019, §4."""

    @override
    def forward(self, rows: Tensor, condition: Tensor | None = None) -> Tensor:
        return super().forward(rows.flatten(1), condition)


# -- the recurrent one of Frigerio et al. 2019, §4: LSTM for streams, fresh noise at every step ------------------------


class LstmGenerator(nn.Module):
    """Recurrent generator: an LSTM from noise, attributes and time at every step to one number a plane.

    The noise ``(B, Z)`` is cut into ``length`` equal parts, one a step; the rest is the same at every step. The time
    is encoded as two waves over the series, so that the network need not count steps.

    Args:
        planes: The channels' planes, in order.
        length: Steps.
        condition_width: K; 0 for none.
        noise_width: Z, at least ``length``.
        hidden: Units of the LSTM.
        generator: Public randomness for the initial weights.
    """

    def __init__(
        self,
        planes: Sequence[ChannelPlanes],
        length: int,
        *,
        condition_width: int,
        noise_width: int,
        hidden: int,
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        self.noise_width = noise_width
        self.condition_width = condition_width
        self._length = length
        self._each, self._common = divmod(noise_width, length)
        inputs = self._each + self._common + condition_width + CLOCK
        self.recurrent = nn.LSTM(inputs, hidden, batch_first=True)
        self.head = SeriesHead(planes, length, condition_width)
        self.output = nn.Linear(hidden, self.head.shape[0])
        self.register_buffer("clock", _waves(length), persistent=False)
        initialise(self, generator)
        _initialise_recurrent(self.recurrent, generator)
        self.head.start()

    def forward(self, noise: Tensor, condition: Tensor | None = None) -> Tensor:
        """Return series ``(B, P, length)`` in [-1, 1] from noise ``(B, Z)`` and attributes ``(B, K)``."""
        size, steps = len(noise), self._length
        own, common = torch.split(noise, [self._each * steps, self._common], dim=1)
        same = common if condition is None else torch.cat([common, condition], dim=1)
        clock: Tensor = self.clock  # type: ignore[assignment]
        inputs = [own.reshape(size, steps, self._each), same[:, None].expand(-1, steps, -1), clock.expand(size, -1, -1)]
        states, _ = self.recurrent(torch.cat(inputs, dim=2))
        made: Tensor = self.head(self.output(states).transpose(1, 2), condition)
        return made


def _waves(length: int) -> Tensor:
    """Return ``(length, CLOCK)``: sine and cosine of once and twice around the series."""
    turns = torch.arange(length) * (2 * math.pi / length)
    return torch.stack(
        [wave(turns * times) for times in range(1, CLOCK // 2 + 1) for wave in (torch.sin, torch.cos)], 1
    )


@torch.no_grad()
def _initialise_recurrent(layer: nn.LSTM, generator: torch.Generator) -> None:
    """Draw an LSTM's weights with variance 1 / inputs; forget gates are biased to 1, so that it first remembers."""
    hidden = layer.hidden_size
    for name, parameter in layer.named_parameters():
        if parameter.dim() == 2:
            draws = torch.randn(parameter.shape, generator=generator)
            parameter.copy_(draws / math.sqrt(parameter.shape[1]))
        else:
            parameter.zero_()
            if name.startswith("bias_ih"):
                parameter[hidden : 2 * hidden] = 1.0
