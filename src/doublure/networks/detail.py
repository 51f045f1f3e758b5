"""What a public generator leaves out of images: surfaces, edges, grain.

An autoencoder's images are blurred, and whoever learns from blurred images is at a loss before sharp ones. What it
leaves out of public images is known, and noise with the same covariance takes its place: cosine coefficients that are
independent of one another and normal, a coefficient's colours together. It is as strong at each pixel as the image is
busy there, so that an even surface stays even.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import torch
from torch import Tensor, nn
from torch.nn import functional

from doublure.networks.cosines import cosines
from doublure.networks.sizes import detail_noise

_RIDGE = 1e-8
_FLOOR = 0.02
_WIDENED = 3


class Detail(nn.Module):
    """Standard normal numbers ``(B, Z)`` and images ``(B, C, H, W)`` to what is added to them.

    The first number says how strong an image's detail is, evenly between nothing and all: how far images are blurred
    differs from one to the next, and nothing says how far.

    Args:
        shape: ``(C, H, W)``.

    Attributes:
        width: Z, one and a number for each of an image's.
        factors: ``(H, W, C, C)`` of each coefficient's covariance, lower triangular.
    """

    down: Tensor
    across: Tensor
    factors: Tensor

    def __init__(self, shape: tuple[int, int, int]) -> None:
        super().__init__()
        channels, *sides = shape
        self.width = detail_noise(shape)
        self._shape = shape
        for name, side in zip(("down", "across"), sides, strict=True):
            self.register_buffer(name, cosines(side).float(), persistent=False)
        self.register_buffer("factors", torch.zeros(*sides, channels, channels))

    def learn(self, pairs: Iterable[tuple[Tensor, Tensor]]) -> None:
        """Take the covariance of what is left out, where images are as busy as one another.

        Args:
            pairs: Images ``(N, C, H, W)`` and what a generator makes of them, a part at a time; at least one.
        """
        total, count = torch.zeros(self.factors.shape, dtype=torch.float64), 0
        for images, made in pairs:
            found = (self.down @ ((images - made) / _busy(made)) @ self.across.T).double().cpu()
            total += torch.einsum("nchw,ndhw->hwcd", found, found)
            count += len(images)
        ridge = _RIDGE * torch.eye(self._shape[0], dtype=torch.float64)
        self.factors.copy_(torch.linalg.cholesky(total / max(1, count) + ridge))

    def forward(self, noise: Tensor, images: Tensor) -> Tensor:
        """Return the detail of images that have none."""
        loudness = (1 + torch.erf(noise[:, 0] / math.sqrt(2))) / 2
        own = noise[:, 1:].reshape(len(noise), *self._shape)
        coefficients = torch.einsum("hwcd,ndhw->nchw", self.factors, own)
        return loudness[:, None, None, None] * _busy(images) * (self.down.T @ coefficients @ self.across)


class Detailed(nn.Module):
    """A generator whose images get detail.

    Args:
        generator: Noise ``(B, Z)`` and labels to images.
        detail: What is added.
        noise_width: Z, of the generator's own.
        strength: What the detail is multiplied by.
    """

    def __init__(self, generator: nn.Module, detail: Detail, *, noise_width: int, strength: float) -> None:
        super().__init__()
        self.generator = generator
        self.detail = detail
        self._width = noise_width
        self._strength = strength

    def forward(self, noise: Tensor, condition: Tensor | None = None) -> Tensor:
        """Return images ``(B, C, H, W)`` in [-1, 1]: noise holds the generator's numbers, then the detail's."""
        images: Tensor = self.generator(noise[:, : self._width], condition)
        detailed: Tensor = images + self._strength * self.detail(noise[:, self._width :], images)
        return detailed.clamp(-1, 1)


def _busy(images: Tensor) -> Tensor:
    """Return how much images ``(B, C, H, W)`` change from pixel to pixel around each, ``(B, 1, H, W)``; never zero."""
    found = (images - _smoothed(images)).square().mean(dim=1, keepdim=True)
    for _ in range(_WIDENED):
        found = _smoothed(found)
    return found.sqrt() + _FLOOR


def _smoothed(maps: Tensor) -> Tensor:
    edged = functional.pad(maps, (1, 1, 1, 1), mode="replicate")
    across = (edged[..., :-2] + 2 * edged[..., 1:-1] + edged[..., 2:]) / 4
    return (across[..., :-2, :] + 2 * across[..., 1:-1, :] + across[..., 2:, :]) / 4
