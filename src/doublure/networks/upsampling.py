"""The image generator that is fitted to a mean embedding: small, without normalisation, fast on a processor.

Its images are rotated, scaled, sheared and shifted at random, inside the training loop, so that it need not learn these
transformations.

If features read a downsampled image, the generator draws at that resolution, and a fixed bicubic interpolation enlarges
it: learned weights could otherwise add any pattern to pixels of which only the mean is observed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Literal, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn import functional

from doublure.networks.initial_weights import initialise
from doublure.networks.sizes import DEEP, LAST, WARP_WIDTH, upsampling_start

Doubling: TypeAlias = Literal["transposed", "bilinear"]
"""Doubling of a map: by a transposed convolution, or by interpolation and a convolution, which leaves no grid."""

UNLIMITED = (math.inf, math.inf)
"""Limits of warp and spread that limit nothing."""

_SLOPE = 0.2
_TURN, _SIZE, _STRETCH, _SLANT, _SHIFT = math.radians(12), 0.12, 0.08, 0.15, 0.08


class CheckerboardFilter(nn.Module):
    """Filter that removes the checkerboard pattern, alternating in both directions, from maps ``(B, C, H, W)``.

    Wavelets hardly respond to that pattern, so that a generator could add it to every surface, as the cheapest way to
    a texture's energy. Other directions are kept: the gain at frequency (u, v) is 1 - sin²(u / 2) sin²(v / 2).
    """

    def forward(self, maps: Tensor) -> Tensor:
        """Return the maps."""
        edged = functional.pad(maps, (1, 1, 1, 1), mode="replicate")
        # Slices take a quarter of the time of a convolution of one channel.
        across = edged[..., :-2] - 2 * edged[..., 1:-1] + edged[..., 2:]
        both = across[..., :-2, :] - 2 * across[..., 1:-1, :] + across[..., 2:, :]
        return maps - both / 16


class UpsamplingGenerator(nn.Module):
    """Image generator: a hidden layer, a small map, doublings, smoothing and a cut to size.

    An image depends on its own noise and label alone.

    Args:
        shape: ``(C, H, W)``.
        condition_width: K; 0 for none.
        noise_width: Z, of which the last six numbers set the warp.
        warp: Strength of the warp; 0 for none, 1 for up to 12 degrees and an eighth of the size.
        hidden: Units of the first layer.
        channels: Channels of the small map and of each map after a doubling.
        generator: Public randomness for the initial weights.
        enlargement: Whole factor by which the layers' output is enlarged.
        doubling: The way in which maps are doubled.

    Attributes:
        spread: Factor of the image's own noise, 1 in training; above 1, rarer images are drawn more often.
    """

    def __init__(
        self,
        shape: tuple[int, int, int],
        *,
        condition_width: int,
        noise_width: int,
        warp: float,
        hidden: int,
        channels: Sequence[int],
        generator: torch.Generator,
        enlargement: int = 1,
        doubling: Doubling = "transposed",
    ) -> None:
        super().__init__()
        self.noise_width = noise_width
        self.condition_width = condition_width
        self.warp = warp
        self.spread = 1.0
        self._sides = shape[1:]
        self._enlargement = enlargement
        start = (channels[0], *upsampling_start(shape, len(channels) - 1, enlargement))
        layers: list[nn.Module] = [
            nn.Linear(noise_width - WARP_WIDTH + condition_width, hidden),
            nn.LeakyReLU(_SLOPE),
            nn.Linear(hidden, math.prod(start)),
            nn.LeakyReLU(_SLOPE),
            nn.Unflatten(1, start),
        ]
        for inputs, outputs in pairwise(channels):
            layers += [*_doubled(inputs, outputs, doubling), nn.LeakyReLU(_SLOPE)]
        layers += [
            nn.Conv2d(channels[-1], shape[0], LAST, padding=LAST // 2),
            nn.Tanh(),
            CheckerboardFilter(),
            nn.Hardtanh(),
        ]
        self.body = nn.Sequential(*layers)
        initialise(self.body, generator)
        self.body.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # twice as fast on a processor

    def forward(self, noise: Tensor, condition: Tensor | None = None, most: Sequence[float] = UNLIMITED) -> Tensor:
        """Return images ``(B, C, H, W)`` in [-1, 1] from noise ``(B, Z)`` and labels ``(B, K)``.

        Args:
            noise: Standard normal.
            condition: Labels as indicators; None without labels.
            most: Limits of warp and spread in these images.
        """
        warp, spread = map(min, (self.warp, self.spread), most)
        own, turns = noise[:, :-WARP_WIDTH] * spread, noise[:, -WARP_WIDTH:]
        images: Tensor = self.body(own if condition is None else torch.cat([own, condition], dim=1))
        if self._enlargement > 1:
            images = functional.interpolate(images, scale_factor=self._enlargement, mode="bicubic").clamp(-1, 1)
        images = images[:, :, : self._sides[0], : self._sides[1]]
        return warp_images(images, turns, warp) if warp and len(images) else images


def _doubled(inputs: int, outputs: int, doubling: Doubling) -> list[nn.Module]:
    if doubling == "transposed":
        return [nn.ConvTranspose2d(inputs, outputs, DEEP, stride=2, padding=1)]
    return [nn.Upsample(scale_factor=2, mode="bilinear"), nn.Conv2d(inputs, outputs, LAST, padding=LAST // 2)]


def warp_images(images: Tensor, turns: Tensor, strength: float) -> Tensor:
    """Return images ``(B, C, H, W)`` warped by standard normal numbers ``(B, 6)``, with the border extended.

    Args:
        images: Values in [-1, 1].
        turns: Mapped to uniform numbers in [-1, 1] first.
        strength: Factor of all warps.
    """
    even = torch.erf(turns / math.sqrt(2)) * strength
    turn, size, stretch = even[:, 0] * _TURN, 1 + even[:, 1] * _SIZE, 1 + even[:, 2] * _STRETCH
    cosine, sine = turn.cos() * size, turn.sin() * size
    across = torch.stack([cosine * stretch, even[:, 3] * _SLANT - sine, even[:, 4] * _SHIFT], dim=1)
    down = torch.stack([sine, cosine, even[:, 5] * _SHIFT], dim=1)
    places = functional.affine_grid(torch.stack([across, down], dim=1), list(images.shape), align_corners=False)
    return functional.grid_sample(images, places, padding_mode="border", align_corners=False)
