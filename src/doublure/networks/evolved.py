"""A generator that hands out kept images of each label, each a little warped."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from doublure.networks.upsampling import warp_images

_WHITE = 255


class KeptImages(nn.Module):
    """Generator that draws from images, those of a label equally often.

    Args:
        shape: ``(C, H, W)``.
        condition_width: K; 0 for none.
        kept: R, images of each label.
        warp: Strength of the warp (:func:`~doublure.networks.upsampling.warp_images`).

    Attributes:
        images: ``(K, R, C, H, W)`` uint8; of one label where there is none.
    """

    images: Tensor

    def __init__(self, shape: tuple[int, int, int], *, condition_width: int, kept: int, warp: float) -> None:
        super().__init__()
        self.warp = warp
        self.register_buffer("images", torch.zeros(max(1, condition_width), kept, *shape, dtype=torch.uint8))

    def forward(self, noise: Tensor, condition: Tensor | None = None) -> Tensor:
        """Return images ``(B, C, H, W)`` in [-1, 1] from noise ``(B, 7)`` and labels ``(B, K)``."""
        even = (1 + torch.erf(noise[:, 0] / math.sqrt(2))) / 2
        place = (even * self.images.shape[1]).long().clamp(max=self.images.shape[1] - 1)
        label = torch.zeros_like(place) if condition is None else condition.argmax(dim=1)
        drawn = from_bytes(self.images[label, place])
        return warp_images(drawn, noise[:, 1:], self.warp) if self.warp and len(drawn) else drawn


def to_bytes(images: Tensor) -> Tensor:
    """Return images in [-1, 1] in 256 levels."""
    return ((images + 1) * (_WHITE / 2)).round().clamp(0, _WHITE).to(torch.uint8)


def from_bytes(images: Tensor) -> Tensor:
    """Return images of 256 levels in [-1, 1]."""
    return images.float() / (_WHITE / 2) - 1
