"""Images to vectors of length 1, by fixed mathematics: what is summed up over private images, and what labels them.

Nothing here is learned, from private data or public: the wavelets are :mod:`doublure.networks.scattering`'s, and the
frequencies are drawn from a public seed that the plan could have named.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from doublure.networks.scattering import Scattering
from doublure.networks.sizes import paths, places

_BRIGHTNESS = 0.2
_FLOOR = 1e-3
_GROUP = 3
_STEADY = 1e-5


class MeanEmbedding(nn.Module):
    """Images ``(B, C, H, W)`` in [-1, 1] to random Fourier features ``(B, D)``, each of length exactly 1.

    Their mean over a set of images is the set's kernel mean embedding (Rahimi and Recht 2007; for private generation
    Harder, Adamczewski and Park 2021, DP-MERF, on pixels). Here the kernels are Gaussian, of several bandwidths, on
    what a first-order scattering sees: the shape, whatever the contrast, and beside it the averages of brightness and
    of its square, which together say how black and how white an image is.

    Args:
        shape: ``(C, H, W)``.
        features: D, even.
        bandwidths: Of the Gaussian kernels; each has an equal share of the features.
        seed: Public; fixes the frequencies.
    """

    def __init__(self, shape: tuple[int, int, int], *, features: int, bandwidths: Sequence[float], seed: int) -> None:
        super().__init__()
        self.scattering = Scattering(shape, order=1)
        colours, windows = shape[0], places(shape)
        seen = colours * windows * paths(1)
        width = seen + 2 * colours * windows
        source = torch.Generator().manual_seed(seed)
        scale = torch.tensor([bandwidths[number % len(bandwidths)] for number in range(features // 2)])
        frequencies = torch.randn(width, features // 2, generator=source) / scale
        self.frequencies: Tensor
        self.register_buffer("frequencies", frequencies, persistent=False)

    def forward(self, images: Tensor) -> Tensor:
        """Return the features."""
        light = (images + 1) / 2
        found = self.scattering(images).reshape(len(images), images.shape[1], paths(1), self.scattering.windows)
        brightness = found[:, :, 0].flatten(1)
        contrast = self.scattering.averages(light.square()).flatten(1)
        shape = found.flatten(1)
        shape = shape / (shape.norm(dim=1, keepdim=True) + _FLOOR)
        phases = torch.cat([shape, _BRIGHTNESS * brightness, _BRIGHTNESS * contrast], dim=1) @ self.frequencies
        return torch.cat([phases.cos(), phases.sin()], dim=1) / math.sqrt(phases.shape[1])


class LatentEmbedding(nn.Module):
    """Latents ``(B, d)`` of about N(0, I) to random Fourier features ``(B, D)``, each of length exactly 1.

    Args:
        width: d.
        features: D, even.
        bandwidths: Of the Gaussian kernels, as shares of √(2 d); each has an equal share of the features.
        seed: Public; fixes the frequencies.
    """

    def __init__(self, width: int, *, features: int, bandwidths: Sequence[float], seed: int) -> None:
        super().__init__()
        source = torch.Generator().manual_seed(seed)
        scale = torch.tensor([bandwidths[number % len(bandwidths)] for number in range(features // 2)])
        frequencies = torch.randn(width, features // 2, generator=source) / (scale * math.sqrt(2 * width))
        self.frequencies: Tensor
        self.register_buffer("frequencies", frequencies, persistent=False)

    def forward(self, latents: Tensor) -> Tensor:
        """Return the features."""
        phases = latents @ self.frequencies
        return torch.cat([phases.cos(), phases.sin()], dim=1) / math.sqrt(phases.shape[1])


class LabelFeatures(nn.Module):
    """Images ``(B, C, H, W)`` in [-1, 1] to vectors ``(B, D)`` of length 1 that a linear model can tell apart.

    Second-order scattering, normalised over groups of three paths of the same image, as Tramèr and Boneh (2021) do.

    Args:
        shape: ``(C, H, W)``.

    Attributes:
        width: D.
    """

    def __init__(self, shape: tuple[int, int, int]) -> None:
        super().__init__()
        self.scattering = Scattering(shape, order=2)
        self.width = shape[0] * paths(2) * places(shape)

    def forward(self, images: Tensor) -> Tensor:
        """Return the features."""
        seen = self.scattering(images)
        groups = seen.reshape(len(images), seen.shape[1] // _GROUP, _GROUP * seen.shape[2])
        centred = groups - groups.mean(dim=2, keepdim=True)
        # Not std(), which warns where there is no image.
        spread = (centred.square().sum(dim=2, keepdim=True) / (groups.shape[2] - 1)).sqrt() + _STEADY
        flat = (centred / spread).flatten(1)
        unit: Tensor = flat / (flat.norm(dim=1, keepdim=True) + _FLOOR)
        return unit
