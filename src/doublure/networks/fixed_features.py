"""Fixed feature extractors of images, for sums over private images and for labellers.

Nothing here is learned, from private data or public: the wavelets are :mod:`doublure.networks.scattering`'s, and the
frequencies are drawn from a public seed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional

from doublure.networks.cosines import ImageCosines
from doublure.networks.scattering import Scattering
from doublure.networks.sizes import paths, pixels, places, shrinking

_BRIGHTNESS = 0.2
_AMPLITUDE = 0.55
_FLOOR = 1e-3
_GROUP = 3
_STEADY = 1e-5


class FourierFeatures(nn.Module):
    """Vectors ``(B, d)`` to random Fourier features ``(B, D)``, each of length exactly 1 (Rahimi and Recht 2007).

    Their mean over a set is the set's kernel mean embedding, here of Gaussian kernels of several bandwidths.

    Args:
        width: d.
        features: D, even.
        bandwidths: Bandwidths of the kernels; each has an equal share of the features.
        source: Public randomness of the frequencies.
    """

    frequencies: Tensor

    def __init__(self, width: int, *, features: int, bandwidths: Sequence[float], source: torch.Generator) -> None:
        super().__init__()
        scale = torch.tensor([bandwidths[number % len(bandwidths)] for number in range(features // 2)])
        frequencies = torch.randn(width, features // 2, generator=source) / scale
        self.register_buffer("frequencies", frequencies, persistent=False)

    def forward(self, vectors: Tensor) -> Tensor:
        """Return the features."""
        phases = vectors @ self.frequencies
        return torch.cat([phases.cos(), phases.sin()], dim=1) / math.sqrt(phases.shape[1])


class MeanEmbedding(nn.Module):
    """Images ``(B, C, H, W)`` in [-1, 1] to random Fourier features ``(B, D)``, each of length exactly 1.

    Harder, Adamczewski and Park (2021, DP-MERF) use them on pixels for private generation. Here their input is
    first-order scattering, normalised for contrast (the shapes), with local averages of brightness and its square (the
    levels of black and white). Some features may read second-order scattering instead, as a labeller does (textures and
    neighbourhoods); others may read amplified cosine coefficients (the exact place of each line).

    Args:
        shape: ``(C, H, W)``.
        features: D, even.
        bandwidths: Bandwidths of the Gaussian kernels; each has an equal share of the features.
        seed: Public; fixes the frequencies.
        second_order: Number of the features, even, on second-order scattering; their share of the squared length is
            their share of the features.
        fine_detail: Number of the features on :class:`FineDetail`, likewise; some must be left for the first order.

    Attributes:
        width: D.
    """

    def __init__(
        self,
        shape: tuple[int, int, int],
        *,
        features: int,
        bandwidths: Sequence[float],
        seed: int,
        second_order: int = 0,
        fine_detail: int = 0,
    ) -> None:
        super().__init__()
        self.width = features
        self.scattering = Scattering(shape, order=1)
        colours, windows = shape[0], places(shape)
        seen, source = colours * windows * paths(1), torch.Generator().manual_seed(seed)
        drawn = partial(FourierFeatures, bandwidths=bandwidths, source=source)
        first_order = features - second_order - fine_detail
        self.fourier = drawn(seen + 2 * colours * windows, features=first_order)
        self.beside = nn.ModuleList()
        for kind, number in ((LabelFeatures, second_order), (FineDetail, fine_detail)):
            if number:
                other = kind(shape)
                self.beside.append(nn.Sequential(other, drawn(other.width, features=number)))
        self._lengths = [math.sqrt(number / features) for number in (first_order, second_order, fine_detail) if number]

    def forward(self, images: Tensor) -> Tensor:
        """Return the features."""
        light = (images + 1) / 2
        found = self.scattering(images).reshape(len(images), images.shape[1], paths(1), self.scattering.windows)
        brightness = found[:, :, 0].flatten(1)
        contrast = self.scattering.averages(light.square()).flatten(1)
        shape = found.flatten(1)
        shape = shape / (shape.norm(dim=1, keepdim=True) + _FLOOR)
        parts = [self.fourier(torch.cat([shape, _BRIGHTNESS * brightness, _BRIGHTNESS * contrast], dim=1))]
        parts += [other(images) for other in self.beside]
        return torch.cat([length * part for length, part in zip(self._lengths, parts, strict=True)], dim=1)


class FineDetail(nn.Module):
    """Images ``(B, C, H, W)`` in [-1, 1] to their cosine coefficients ``(B, d)``, with fine ones amplified.

    Scattering locates an edge within four pixels, and does not tell a step from a line. Pixels tell both, but their
    distances are dominated by large surfaces. A coefficient at (u, v) is therefore weighted by √(1 + |(u, v)|): two
    images of one class are then about half a unit apart.

    Args:
        shape: ``(C, H, W)``; images with a side of more than 32 are averaged down by a whole factor first.

    Attributes:
        width: d.
    """

    amplitude: Tensor

    def __init__(self, shape: tuple[int, int, int]) -> None:
        super().__init__()
        self._factor = shrinking(shape)
        self.width = shape[0] * pixels(shape)
        counts = [torch.arange(side // self._factor, dtype=torch.float64) for side in shape[1:]]
        self.cosines = ImageCosines([len(count) for count in counts])
        amplitude = (1 + torch.hypot(counts[0][:, None], counts[1])).sqrt() * _AMPLITUDE / math.sqrt(self.width)
        self.register_buffer("amplitude", amplitude.float(), persistent=False)

    def forward(self, images: Tensor) -> Tensor:
        """Return the coefficients."""
        light = functional.avg_pool2d((images + 1) / 2, self._factor)
        coefficients: Tensor = self.amplitude * self.cosines(light)
        return coefficients.flatten(1)


class LabelFeatures(nn.Module):
    """Images ``(B, C, H, W)`` in [-1, 1] to vectors ``(B, D)`` of length 1 for a linear classifier.

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
        # std() would warn on an empty batch, and has no gradient for an image of one grey.
        variance = centred.square().sum(dim=2, keepdim=True) / (groups.shape[2] - 1)
        spread = (variance + _STEADY**4).sqrt() + _STEADY
        flat = (centred / spread).flatten(1)
        unit: Tensor = flat / (flat.norm(dim=1, keepdim=True) + _FLOOR)
        return unit
