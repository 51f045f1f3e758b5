"""The discrete cosine transform, as a matrix and for images."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn


def cosines(side: int) -> Tensor:
    """Return the orthonormal matrix ``(side, side)`` of the cosine transform (DCT-II), float64."""
    count = torch.arange(side, dtype=torch.float64)
    waves = torch.cos(math.pi / side * count[:, None] * (count + 0.5)) * math.sqrt(2 / side)
    waves[0] /= math.sqrt(2)
    return waves


class ImageCosines(nn.Module):
    """Images ``(B, C, H, W)`` to their cosine coefficients ``(B, C, h, w)``, and back.

    Args:
        sides: H and W.
        kept: h and w, the numbers of lowest coefficients along columns and rows; all by default.
    """

    down: Tensor
    across: Tensor

    def __init__(self, sides: Sequence[int], kept: Sequence[int] | None = None) -> None:
        super().__init__()
        for name, side, lowest in zip(("down", "across"), sides, kept or sides, strict=True):
            self.register_buffer(name, cosines(side)[:lowest].float(), persistent=False)

    def forward(self, images: Tensor) -> Tensor:
        """Return the coefficients."""
        return self.down @ images @ self.across.T

    def images(self, coefficients: Tensor) -> Tensor:
        """Return the images with these coefficients, and zeros for all others."""
        return self.down.T @ coefficients @ self.across
