"""What a generator may offer beside rows: conditions as often as it knows them to be, and rows of some kind alone."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import torch
from torch import Tensor, nn


@runtime_checkable
class KnowsConditions(Protocol):
    """A generator that knows how frequent conditions are, from what was released anyway."""

    def draw_conditions(self, known: Tensor, source: torch.Generator) -> Tensor:
        """Return ``(n, K)`` one-hot conditions: those that are known, and the others drawn beside them.

        Args:
            known: ``(n, K)`` one-hot blocks; all zeros where a condition is left open.
            source: Public randomness.
        """


@runtime_checkable
class Narrows(Protocol):
    """A generator that can be asked for rows of some kind directly, instead of waiting for them."""

    def narrowed(self, chances: Tensor) -> nn.Module:
        """Return the same generator, given that a row fits.

        Args:
            chances: ``(width,)`` for each entry of each block the chance in [0, 1] that a row with it fits.
        """

    def evidence(self, known: Tensor) -> Tensor:
        """Return ``(n,)`` how likely conditions are (all zeros: any), in logarithms; once narrowed, with fitting."""


class WithShares(nn.Module):
    """A generator of records with one condition, and how frequent its values are.

    Args:
        generator: Noise and condition in, records out.
        classes: K, how many values.

    Attributes:
        shares: ``(K,)``, adding up to 1.
    """

    shares: Tensor

    def __init__(self, generator: nn.Module, classes: int) -> None:
        super().__init__()
        self.generator = generator
        self.register_buffer("shares", torch.full((classes,), 1.0 / max(1, classes)))

    def forward(self, noise: Tensor, condition: Tensor | None = None) -> Tensor:
        """Return records, as the generator does."""
        records: Tensor = self.generator(noise, condition)
        return records

    def draw_conditions(self, known: Tensor, source: torch.Generator) -> Tensor:
        """Return ``(n, K)`` one-hot conditions: those that are known, and the others by their shares."""
        return drawn_where_open(known, self.shares.expand(len(known), -1), source)


def drawn_where_open(block: Tensor, chances: Tensor, source: torch.Generator) -> Tensor:
    """Return a one-hot block ``(n, E)``: as it is, or drawn by ``chances`` in rows where it is all zeros."""
    filled, rows = block.clone(), torch.nonzero(block.sum(dim=1) == 0)[:, 0]
    if len(rows):
        entries = torch.multinomial(chances[rows].double(), 1, generator=source)[:, 0]
        filled[rows, entries] = 1.0
    return filled
