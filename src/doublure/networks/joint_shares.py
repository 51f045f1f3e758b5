"""A network that knows how frequent the values of its conditions are beside one another.

Some conditions make groups: how frequent each combination of their values is, is known, and how frequent the values of
every other condition are within each. Conditions are then drawn together, also beside those that are asked for.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from doublure.networks.shares import WithShares, drawn


class WithJointShares(WithShares):
    """A generator, and how frequent the values of its conditions are, all of them together.

    Args:
        generator: Noise and condition in, records out.
        sizes: How many values each condition has.
        grouped: Which of them make groups.

    Attributes:
        together: ``(groups,)`` how frequent each combination of grouped values is, the last condition's running first.
        within: ``(groups, K')`` how frequent the others' values are in each, adding up to 1 for each condition.
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

    def draw_conditions(self, known: Tensor, source: torch.Generator) -> Tensor:
        """Return ``(n, K)`` one-hot conditions: of those that will do, as frequent as they are together."""
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
            else drawn(block, own[group], source)
            for block, groups, own, size in zip(blocks, self._grouped, of_block, self._sizes, strict=True)
        ]
        return torch.cat(made, dim=1)
