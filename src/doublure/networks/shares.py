"""Networks with known shares of their conditions' values."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from typing_extensions import override


class WithShares(nn.Module):
    """A generator with the shares of its conditions' values.

    Args:
        generator: Maps noise and condition to records.
        sizes: Number of values of each condition.

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
        """Return ``(n, K)`` one-hot conditions, drawn by their shares from the allowed values."""
        shares = torch.split(self.shares.to(known.device).expand(len(known), -1), self._sizes, dim=1)
        blocks = zip(torch.split(known, self._sizes, dim=1), shares, strict=True)
        return torch.cat([draw_block(block, own, source) for block, own in blocks], dim=1)

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> Any:
        """Load weights; an earlier version kept no shares, and values then stay equally frequent."""
        if "shares" not in state_dict:
            state_dict = {f"generator.{name}": value for name, value in state_dict.items()} | {"shares": self.shares}
        return super().load_state_dict(state_dict, strict=strict, assign=assign)


def with_shares(generator: nn.Module, sizes: Collection[int], shares: Tensor | None = None) -> nn.Module:
    """Return a generator with shares of its conditions; the generator itself without conditions.

    Args:
        generator: Maps noise and condition to records.
        sizes: Number of values of each condition.
        shares: ``(K,)``, none of them zero; left out if a run's weights are loaded afterwards.
    """
    if not sizes:
        return generator
    made = WithShares(generator, sizes)
    return made if shares is None else made.knowing(shares)


def draw_block(block: Tensor, chances: Tensor, source: torch.Generator) -> Tensor:
    """Return a one-hot block ``(n, E)``, drawn from each row's allowed entries.

    Args:
        block: Ones at the allowed entries; all zeros where every entry is allowed.
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


# -- several conditions together ---------------------------------------------------------------------------------------


class WithJointShares(WithShares):
    """A generator with the joint shares of its conditions' values.

    Args:
        generator: Maps noise and condition to records.
        sizes: Number of values of each condition.
        grouped: Whether each condition is part of the groups, which are combinations of values.

    Attributes:
        together: ``(groups,)`` share of each combination of grouped values, in row-major order.
        within: ``(groups, K')`` shares of the other conditions' values in each group, adding up to 1 for each
            condition.
    """

    together: Tensor
    within: Tensor

    def __init__(self, generator: nn.Module, sizes: Sequence[int], grouped: Sequence[bool]) -> None:
        super().__init__(generator, sizes)
        self._grouped = list(grouped)
        own = [size for size, groups in zip(sizes, grouped, strict=True) if groups]
        count = math.prod(own)
        places = torch.arange(count)
        self._codes = [places // math.prod(own[number + 1 :]) % size for number, size in enumerate(own)]
        rest = [size for size, groups in zip(sizes, grouped, strict=True) if not groups]
        self.register_buffer("together", torch.full((count,), 1.0 / count))
        even = [torch.full((count, size), 1.0 / size) for size in rest]
        self.register_buffer("within", torch.cat([torch.zeros(count, 0), *even], dim=1))

    def knowing_groups(self, together: Tensor, within: Tensor) -> WithJointShares:
        """Return this generator with the shares of groups ``(groups,)`` and in them ``(groups, K')``, none zero."""
        self.together.copy_(together)
        self.within.copy_(within)
        return self

    @override
    def draw_conditions(self, known: Tensor, source: torch.Generator) -> Tensor:
        blocks = torch.split(known, self._sizes, dim=1)
        rest = [size for size, groups in zip(self._sizes, self._grouped, strict=True) if not groups]
        codes, shares = iter(self._codes), iter(torch.split(self.within.double(), rest, dim=1))
        of_block = [next(codes) if groups else next(shares) for groups in self._grouped]
        weights = self.together.double().repeat(len(known), 1)
        for block, groups, own in zip(blocks, self._grouped, of_block, strict=True):
            possible = torch.where(block.sum(dim=1, keepdim=True) == 0, torch.ones_like(block), block).double()
            weights *= possible[:, own] if groups else possible @ own.T
        group = torch.multinomial(weights, 1, generator=source)[:, 0] if len(known) else torch.zeros(0).long()
        made = [
            torch.nn.functional.one_hot(own[group], size).to(known.dtype)
            if groups
            else draw_block(block, own[group], source)
            for block, groups, own, size in zip(blocks, self._grouped, of_block, self._sizes, strict=True)
        ]
        return torch.cat(made, dim=1)
