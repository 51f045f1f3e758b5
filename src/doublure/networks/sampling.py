"""Rows of a network, asked for in arrays."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from doublure.networks.array_generator import Array
from doublure.networks.steering import KnowsConditions


def rows_of(generator: nn.Module, known: Array | None, size: int, width: int, *, seed: int, complete: bool) -> Array:
    """Return rows with their conditions behind them; see :func:`doublure.networks.array_generator.rows_of`."""
    source = torch.Generator().manual_seed(seed)
    with torch.inference_mode():
        condition: Any = None if known is None else torch.from_numpy(known)
        if complete and isinstance(generator, KnowsConditions):
            condition = generator.draw_conditions(condition, source)
        rows: Tensor = generator(torch.randn(size, width, generator=source), condition).flatten(1)
        return (rows if condition is None else torch.cat([rows, condition], dim=1)).numpy()
