"""Residual blocks for classifiers of images; not for critics, as batch normalisation mixes records."""

from __future__ import annotations

import torch
from torch import nn


class ResidualBlock(nn.Module):
    """Two convolutions of 3x3 with batch normalisation, and a shortcut around them (He et al. 2016, Figure 2).

    Args:
        inputs: Channels in.
        outputs: Channels out.
        stride: 2 halves the size.
    """

    def __init__(self, inputs: int, outputs: int, *, stride: int = 1) -> None:
        super().__init__()
        self.through = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(),
            nn.Conv2d(outputs, outputs, 3, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
        )
        self.around: nn.Module = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.around = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride=stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Return ``(B, outputs, H / stride, W / stride)``."""
        found: torch.Tensor = torch.relu(self.through(images) + self.around(images))
        return found
