"""A network that knows how frequent the values of its conditions are."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn


class WithShares(nn.Module):
    """A generator, and how frequent the values of its conditions are.

    Args:
        generator: Noise and condition in, records out.
        sizes: How many values each condition has.

    Attributes:
        shares: ``(K,)``, adding up to 1 for each condition.
    """

    shares: Tensor

    def __init__(self, generator: nn.Module, sizes: Iterable[int]) -> None:
        super().__init__()
        self.generator = generator
        self._sizes = list(sizes)
        self.register_buffer("shares", torch.cat([torch.full((size,), 1.0 / size) for size in self._sizes]))

    def knowing(self, shares: Tensor) -> WithShares:
        """Return this generator with the shares ``(K,)``, none of them zero."""
        blocks = torch.split(shares.detach().to("cpu", torch.float32), self._sizes)
        self.shares.copy_(torch.cat([block / block.sum() for block in blocks]))
        return self

    def forward(self, noise: Tensor, condition: Tensor | None = None) -> Tensor:
        """Return records, as the generator does."""
        records: Tensor = self.generator(noise, condition)
        return records

    def draw_conditions(self, known: Tensor, source: torch.Generator) -> Tensor:
        """Return ``(n, K)`` one-hot conditions: of those that will do, by their shares."""
        shares = torch.split(self.shares.to(known.device).expand(len(known), -1), self._sizes, dim=1)
        blocks = zip(torch.split(known, self._sizes, dim=1), shares, strict=True)
        return torch.cat([drawn(block, own, source) for block, own in blocks], dim=1)

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> Any:
        """Take up weights; those that an earlier version kept know no shares, and values stay equally frequent."""
        if "shares" not in state_dict:
            state_dict = {f"generator.{name}": value for name, value in state_dict.items()} | {"shares": self.shares}
        return super().load_state_dict(state_dict, strict=strict, assign=assign)


def with_shares(generator: nn.Module, sizes: Collection[int], shares: Tensor | None = None) -> nn.Module:
    """Return a generator that knows how frequent conditions are; as it is, where there are none.

    Args:
        generator: Noise and condition in, records out.
        sizes: How many values each condition has.
        shares: ``(K,)``, none of them zero; left out where a run's weights follow.
    """
    if not sizes:
        return generator
    made = WithShares(generator, sizes)
    return made if shares is None else made.knowing(shares)


def drawn(block: Tensor, chances: Tensor, source: torch.Generator) -> Tensor:
    """Return a one-hot block ``(n, E)``: where one entry will do that one, else one of several, or any, by chance.

    Args:
        block: Ones at the entries that will do; all zeros where any will.
        chances: ``(n, E)``, none of them zero.
        source: Public randomness.
    """
    filled, rows = block.clone(), torch.nonzero(block.sum(dim=1) != 1)[:, 0]
    if len(rows):
        asked = block[rows].double()
        possible = torch.where(asked.sum(dim=1, keepdim=True) == 0, torch.ones_like(asked), asked)
        entries = torch.multinomial(chances[rows].double() * possible, 1, generator=source)[:, 0]
        filled[rows] = 0.0
        filled[rows, entries] = 1.0
    return filled
