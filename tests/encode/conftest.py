"""What several tests of encoding share."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from doublure.encode.table import TableEncoder


@pytest.fixture(scope="session")
def soft_rows() -> Callable[..., torch.Tensor]:
    """Rows as an untrained generator might make them."""

    def made(encoder: TableEncoder, n: int, seed: int, spread: float = 3) -> torch.Tensor:
        source = torch.Generator().manual_seed(seed)
        rows = torch.empty(n, encoder.width)
        for block in encoder.blocks:
            logits = spread * torch.randn(n, block.size, generator=source)
            rows[:, block.place] = logits.softmax(dim=1) if block.kind == "softmax" else logits.tanh()
        return rows

    return made
