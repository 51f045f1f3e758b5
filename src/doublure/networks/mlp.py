"""Multilayer perceptrons for tables (Frigerio et al. 2019, §4: softmax heads for discrete variables)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, Protocol

import torch
from torch import Tensor, nn

from doublure.networks.initial_weights import initialise

_FEW_CLASSES = 8


def _softmax(outputs: Tensor) -> Tensor:
    return torch.softmax(outputs, dim=1)


_SQUASH: dict[str, Callable[[Tensor], Tensor]] = {"softmax": _softmax, "tanh": torch.tanh, "linear": nn.Identity()}


class HeadBlock(Protocol):
    """One block of a generated row."""

    @property
    def kind(self) -> Literal["softmax", "tanh", "linear"]:
        """The block's activation; ``linear``: none."""

    @property
    def size(self) -> int:
        """Number of outputs."""


def _hidden(inputs: int, width: int, depth: int) -> tuple[list[nn.Module], int]:
    layers: list[nn.Module] = []
    for _ in range(depth):
        layers += [nn.Linear(inputs, width), nn.LeakyReLU(0.2)]
        inputs = width
    return layers, inputs


class MlpGenerator(nn.Module):
    """Generator of rows from noise and condition: softmax for discrete parts, tanh for scalars, none for latents.

    A linear path leads from the condition to the outputs, so that each class has its own marginals from the first
    steps on. There is no normalisation across rows: row i depends on its own noise and condition alone, as pairing with
    private records requires.

    Args:
        blocks: The body's blocks, in order.
        condition_width: K.
        noise_width: Z.
        width: Hidden units a layer.
        depth: Hidden layers.
        generator: Public randomness for the initial weights.
    """

    def __init__(
        self,
        blocks: Sequence[HeadBlock],
        *,
        condition_width: int,
        noise_width: int,
        width: int,
        depth: int,
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        self.noise_width = noise_width
        self.condition_width = condition_width
        self._kinds = tuple(block.kind for block in blocks)
        self._sizes = [block.size for block in blocks]
        layers, inputs = _hidden(noise_width + condition_width, width, depth)
        self.body = nn.Sequential(*layers, nn.Linear(inputs, sum(self._sizes)))
        self.by_class = nn.Linear(condition_width, sum(self._sizes), bias=False) if condition_width else None
        initialise(self, generator)

    def forward(self, noise: Tensor, condition: Tensor | None = None) -> Tensor:
        """Return rows ``(B, D)`` from noise ``(B, Z)`` and condition ``(B, K)``."""
        inputs = noise if condition is None else torch.cat([noise, condition], dim=1)
        outputs = self.body(inputs)
        if self.by_class is not None and condition is not None:
            outputs = outputs + self.by_class(condition)
        squashed = [
            _SQUASH[kind](part) for kind, part in zip(self._kinds, outputs.split(self._sizes, dim=1), strict=True)
        ]
        return torch.cat(squashed, dim=1) if squashed else noise.new_zeros(len(noise), 0)


class MlpCritic(nn.Module):
    """Critic of rows with an optional condition.

    Two parts help it to learn a class's marginals despite noise: a linear path from the inputs to the score and, with
    few classes, the row's outer product with the condition as input, so that each class has weights of its own.

    Args:
        row_width: D.
        condition_width: K.
        width: Hidden units a layer.
        depth: Hidden layers.
        generator: Public randomness for the initial weights.
        outputs: Numbers in place of the score, as input of further layers.
        shared: Whether the row is an input beside its outer product, so that weights common to all classes are learned
            from all of them.
        offset: Whether the score has a constant of its own. A critic whose differences alone count needs none, and its
            gradient, the same for every row, would use up part of each clipped gradient.
    """

    def __init__(
        self,
        row_width: int,
        *,
        condition_width: int,
        width: int,
        depth: int,
        generator: torch.Generator,
        outputs: int = 1,
        shared: bool = False,
        offset: bool = True,
    ) -> None:
        super().__init__()
        self._by_class = 0 < condition_width <= _FEW_CLASSES
        self._shared = shared
        inputs = condition_width + row_width * (condition_width + shared if self._by_class else 1)
        layers, last = _hidden(inputs, width, depth)
        self.body = nn.Sequential(*layers, nn.Linear(last, outputs, bias=offset))
        self.straight = nn.Linear(inputs, outputs, bias=False)
        initialise(self, generator)
        nn.init.zeros_(self.straight.weight)

    def forward(self, rows: Tensor, condition: Tensor | None = None) -> Tensor:
        """Return scores ``(B,)`` for rows ``(B, D)`` and condition ``(B, K)``."""
        inputs = rows
        if condition is not None:
            if self._by_class:
                inputs = (condition.unsqueeze(2) * rows.unsqueeze(1)).flatten(1)
                inputs = torch.cat([rows, inputs], dim=1) if self._shared else inputs
            inputs = torch.cat([inputs, condition], dim=1)
        scores: Tensor = self.body(inputs) + self.straight(inputs)
        return scores.squeeze(1)
