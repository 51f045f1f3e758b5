"""The cosine transform, as a matrix."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def cosines(side: int) -> Tensor:
    """Return the cosine transform of rows of numbers ``(side, side)``, orthonormal, in 64 bits."""
    count = torch.arange(side, dtype=torch.float64)
    waves = torch.cos(math.pi / side * count[:, None] * (count + 0.5)) * math.sqrt(2 / side)
    waves[0] /= math.sqrt(2)
    return waves
