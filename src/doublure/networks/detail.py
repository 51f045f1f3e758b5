"""Detail that a public generator leaves out of images: surfaces, edges, grain.

An autoencoder's images are blurred, and a classifier trained on blurred images does badly on sharp ones. The residual
on public images is known, and noise of the same covariance replaces it: independent normal cosine coefficients, with
the colours of a coefficient correlated. The noise at a pixel is scaled by the local variation of the image, so that an
even surface stays even.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from doublure.networks.cosines import ImageCosines
from doublure.networks.sizes import detail_noise

_SIDE = 2


def block_spread(images: Tensor) -> Tensor:
    """Return the standard deviation within 2 x 2 blocks, of images ``(B, C, H, W)``, in their own units ``(B,)``.

    It is the root of the mean over blocks and channels of the variance of four pixels about their mean: the speckle of
    an image. An odd last row or column is left out, and an image without any block has speckle 0. Features of a
    downsampled image read a block's mean alone, and do not constrain a generator within it.
    """
    blocks = _blocks(images)
    gaps = blocks - blocks.mean(dim=(3, 5), keepdim=True)
    return gaps.square().flatten(1).mean(dim=1).nan_to_num().sqrt()


def checkerboard(images: Tensor) -> Tensor:
    """Return the strength of a pattern that alternates in both directions, in the images' own units ``(B,)``.

    It is the mean over 2 x 2 blocks and channels of |a - b - c + d|, where a and d are on one diagonal of a block, b
    and c on the other: four times the amplitude of a checkerboard, and 0 for stripes and slopes.
    """
    blocks = _blocks(images)
    first, last = blocks[:, :, :, 0], blocks[:, :, :, 1]
    crossed = first[..., 0] - first[..., 1] - last[..., 0] + last[..., 1]
    return crossed.abs().flatten(1).mean(dim=1).nan_to_num()


def _blocks(images: Tensor) -> Tensor:
    """Return ``(B, C, H / 2, 2, W / 2, 2)``."""
    height, width = (side // _SIDE * _SIDE for side in images.shape[2:])
    kept = images[:, :, :height, :width]
    return kept.reshape(*images.shape[:2], height // _SIDE, _SIDE, width // _SIDE, _SIDE)


_RIDGE = 1e-8
_FLOOR = 0.02
_WIDENED = 3
_HALVINGS = 12


class ImageDetail(nn.Module):
    """Map of standard normal numbers ``(B, Z)`` and images ``(B, C, H, W)`` to the images' detail.

    The first number sets the strength of an image's detail, uniform in [0, 1]: images are blurred to different degrees,
    and the degree is unknown.

    Args:
        shape: ``(C, H, W)``.

    Attributes:
        width: Z, the number of an image's values plus one.
        factors: ``(H, W, C, C)`` of each coefficient's covariance, lower triangular.
        speckle: The mean spread inside 2 x 2 blocks (:func:`doublure.networks.detail.block_spread`) of the images that
            it was learned from; 0 for detail of an earlier version, which kept none.
    """

    factors: Tensor
    speckle: Tensor

    def __init__(self, shape: tuple[int, int, int]) -> None:
        super().__init__()
        channels, *sides = shape
        self.width = detail_noise(shape)
        self._shape = shape
        self.cosines = ImageCosines(sides)
        self.register_buffer("factors", torch.zeros(*sides, channels, channels))
        self.register_buffer("speckle", torch.zeros(()))

    def learn(self, pairs: Iterable[tuple[Tensor, Tensor]]) -> None:
        """Estimate the covariance of the residual, scaled by the local variation of images.

        Args:
            pairs: Batches of images ``(N, C, H, W)`` and their reconstructions; at least one batch.
        """
        total, count, speckle = torch.zeros(self.factors.shape, dtype=torch.float64), 0, 0.0
        for images, made in pairs:
            found = self.cosines((images - made) / _busy(made)).double().cpu()
            total += torch.einsum("nchw,ndhw->hwcd", found, found)
            count += len(images)
            speckle += float(block_spread(images).sum())
        ridge = _RIDGE * torch.eye(self._shape[0], dtype=torch.float64)
        self.factors.copy_(torch.linalg.cholesky(total / max(1, count) + ridge))
        self.speckle.fill_(speckle / max(1, count))

    def forward(self, noise: Tensor, images: Tensor) -> Tensor:
        """Return the detail to add to images."""
        amplitude = (1 + torch.erf(noise[:, 0] / math.sqrt(2))) / 2
        own = noise[:, 1:].reshape(len(noise), *self._shape)
        coefficients = torch.einsum("hwcd,ndhw->nchw", self.factors, own)
        return amplitude[:, None, None, None] * _busy(images) * self.cosines.images(coefficients)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        state_dict.setdefault(f"{prefix}speckle", torch.zeros(()))
        super()._load_from_state_dict(state_dict, prefix, *rest)


class DetailedGenerator(nn.Module):
    """A generator with detail added to its images.

    Args:
        generator: Maps noise ``(B, Z)`` and labels to images.
        detail: The detail to add.
        noise_width: Z of the generator alone.
        strength: Factor of the detail.

    Attributes:
        held: Further factor that keeps images no more speckled than public ones (:meth:`hold`); 1 before that.
    """

    held: Tensor

    def __init__(self, generator: nn.Module, detail: ImageDetail, *, noise_width: int, strength: float) -> None:
        super().__init__()
        self.generator = generator
        self.detail = detail
        self._width = noise_width
        self._strength = strength
        self.register_buffer("held", torch.ones(()))

    def forward(self, noise: Tensor, condition: Tensor | None = None) -> Tensor:
        """Return images ``(B, C, H, W)`` in [-1, 1]; noise holds the generator's numbers, then the detail's."""
        images: Tensor = self.generator(noise[:, : self._width], condition)
        return self._with(self._strength * self.held, noise, images)

    @torch.no_grad()
    def hold(self, noise: Tensor, condition: Tensor | None = None) -> None:
        """Reduce the detail until images are no more speckled, on average, than the public ones.

        This reads generated images alone, which are post-processing. Nothing changes if the public images' speckle is
        unknown; images that are too speckled without detail get none.

        Args:
            noise: ``(B, Z)`` of some hundred images.
            condition: Their labels.
        """
        if not self.detail.speckle:
            return
        noise = noise.clone()
        # Strengths on an even grid in place of random ones: few images then estimate the mean of many.
        even = (torch.arange(len(noise), device=noise.device) + 0.5) / len(noise)
        noise[:, self._width] = torch.special.ndtri(even)
        plain: Tensor = self.generator(noise[:, : self._width], condition)

        def speckle(held: float) -> float:
            return float(block_spread(self._with(self._strength * held, noise, plain)).mean())

        low, high = 0.0, 1.0
        if speckle(high) <= self.detail.speckle:
            low = high
        for _ in range(_HALVINGS if low < high else 0):
            middle = (low + high) / 2
            low, high = (middle, high) if speckle(middle) <= self.detail.speckle else (low, middle)
        self.held.fill_(low)

    def _with(self, strength: Tensor | float, noise: Tensor, images: Tensor) -> Tensor:
        detailed: Tensor = images + strength * self.detail(noise[:, self._width :], images)
        return detailed.clamp(-1, 1)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        state_dict.setdefault(f"{prefix}held", torch.ones(()))
        super()._load_from_state_dict(state_dict, prefix, *rest)


def _busy(images: Tensor) -> Tensor:
    """Return the local variation ``(B, 1, H, W)`` of images ``(B, C, H, W)``; never zero."""
    found = (images - _smoothed(images)).square().mean(dim=1, keepdim=True)
    for _ in range(_WIDENED):
        found = _smoothed(found)
    return found.sqrt() + _FLOOR


def _smoothed(maps: Tensor) -> Tensor:
    edged = functional.pad(maps, (1, 1, 1, 1), mode="replicate")
    across = (edged[..., :-2] + 2 * edged[..., 1:-1] + edged[..., 2:]) / 4
    return (across[..., :-2, :] + 2 * across[..., 1:-1, :] + across[..., 2:, :]) / 4
