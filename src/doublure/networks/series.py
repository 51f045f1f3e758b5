"""Generators of time series: what all of them end in, and a convolutional one that trains faster than a recurrent one.

A generated series is a stack of planes ``(P, length)``, as :mod:`doublure.encode.series` makes them of real ones.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Protocol

import torch
from torch import Tensor, nn

from doublure.networks.initial_weights import initialise
from doublure.networks.mlp import MlpCritic
from doublure.networks.sizes import DEEP, KERNEL

_SLOPE = 0.2


class ChannelPlanes(Protocol):
    """One channel's planes: ``states`` planes from ``first`` on, then one of places."""

    @property
    def first(self) -> int:
        """The first of its planes."""

    @property
    def states(self) -> int:
        """How many planes of states."""

    @property
    def place(self) -> int:
        """The plane of places."""


class SeriesHead(nn.Module):
    """The end of every generator: a mean profile of each attribute, and what numbers mean.

    A straight path leads from the attributes to every step, so that each attribute has its own profile from the first
    steps on. States are a softmax at each step; a place is a tanh times the chance that there is a value, as a step
    without one has place 0.

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
    """Noise and attributes through a hidden layer to a few steps, doubled by transposed convolutions, cut to length.

    A series depends on its own noise and attributes alone.

    Args:
        planes: The channels' planes, in order.
        length: Steps.
        condition_width: K; 0 for none.
        noise_width: Z.
        hidden: Units of the first layer.
        channels: Of the few steps, and after each doubling.
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

    def forward(self, rows: Tensor, condition: Tensor | None = None) -> Tensor:
        """Return scores ``(B,)`` for series ``(B, P, length)`` and attributes ``(B, K)``."""
        return super().forward(rows.flatten(1), condition)
