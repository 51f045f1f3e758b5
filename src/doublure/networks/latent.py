"""Networks around a public generator, which propose or draw latents (Chen et al. 2021, figure 3)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from doublure.networks.detail import ImageDetail

_LARGEST_LOGARITHM = 6.0


class InversionEncoder(nn.Module):
    """Encoder of records to latents ``(B, d)``, the start of an inversion.

    Args:
        network: Maps records ``(B, D…)`` and no condition to ``(B, 2 d)``.
        width: d.
    """

    def __init__(self, network: nn.Module, width: int) -> None:
        super().__init__()
        self.network = network
        self.width = width

    def forward(self, records: Tensor, condition: Tensor | None = None) -> Tensor:
        """Return the latents' means."""
        return self.both(records)[0]

    def both(self, records: Tensor) -> tuple[Tensor, Tensor]:
        """Return means and logarithmic variances, each ``(B, d)``."""
        outputs: Tensor = self.network(records, None)
        mean, logarithm = outputs[:, : self.width], outputs[:, self.width :]
        return mean, logarithm.clamp(-_LARGEST_LOGARITHM * 2, _LARGEST_LOGARITHM)


class PublicNetworks(NamedTuple):
    """Networks trained on public data.

    Attributes:
        generator: Maps latents to records.
        encoder: Maps records to latents; None if none was trained.
        detail: Detail that the generator leaves out of images; None for a generator trained by a critic, and for rows.
    """

    generator: nn.Module
    encoder: InversionEncoder | None = None
    detail: ImageDetail | None = None


class ThroughPublic(nn.Module):
    """Generator of records through latents: G_p(G_ds(z)).

    Args:
        latent: G_ds, trained privately: maps noise ``(B, l)`` and condition to latents ``(B, d)``.
        public: G_p, fixed: maps latents to records.
        width: d; latents are projected into the ball of radius √d, as in G_ds's training data.
    """

    def __init__(self, latent: nn.Module, public: nn.Module, *, width: int) -> None:
        super().__init__()
        self.latent = latent
        self.public = public.requires_grad_(False)
        self._radius = math.sqrt(width)

    def forward(self, noise: Tensor, condition: Tensor | None = None) -> Tensor:
        """Return records ``(B, D…)``."""
        records: Tensor = self.public(project_to_ball(self.latent(noise, condition), self._radius))
        return records


def project_to_ball(latents: Tensor, radius: float | Tensor) -> Tensor:
    """Return latents ``(B, d)`` projected into a ball; latents that are not finite become zero."""
    lengths = latents.norm(dim=1, keepdim=True)
    inside: Tensor = latents * (radius / lengths.clamp(min=1e-12)).clamp(max=1.0)
    return torch.where(lengths.isfinite(), inside, 0.0)


# -- latents of a class: a mixture of Gaussians ------------------------------------------------------------------------


class LatentMixture(nn.Module):
    """Map of noise ``(B, d + 1)`` and condition to latents ``(B, d)``; the first number chooses the component.

    Args:
        classes: Number of values of each condition, in the order of the condition vector; empty: one class.
        components: M, components of each class.
        width: d.

    Attributes:
        weights: ``(K, M)`` share of each component within its class.
        means: ``(K M, d)``.
        factors: ``(K M, d, d)``, each a matrix A with A Aᵀ the component's covariance.
    """

    def __init__(self, classes: Sequence[int], *, components: int, width: int) -> None:
        super().__init__()
        self._classes = tuple(classes)
        self._components = components
        rows = math.prod(self._classes) * components
        self.weights: Tensor
        self.means: Tensor
        self.factors: Tensor
        self.register_buffer("weights", torch.full((math.prod(self._classes), components), 1 / components))
        self.register_buffer("means", torch.zeros(rows, width))
        self.register_buffer("factors", torch.eye(width).repeat(rows, 1, 1))

    def forward(self, noise: Tensor, condition: Tensor | None = None) -> Tensor:
        """Return latents."""
        of = class_numbers(condition, self._classes, len(noise)).to(noise.device)
        chosen = (torch.special.ndtr(noise[:, :1]) > self.weights.cumsum(1)[of]).sum(1)
        row = of * self._components + chosen.clamp(max=self._components - 1)
        latents: Tensor = self.means[row] + torch.einsum("bij,bj->bi", self.factors[row], noise[:, 1:])
        return latents


def class_numbers(condition: Tensor | None, classes: Sequence[int], size: int) -> Tensor:
    """Return the number ``(B,)`` of each row's combination of condition values; 0 where there is no condition."""
    number = torch.zeros(size, dtype=torch.long)
    if condition is None:
        return number
    number, start = number.to(condition.device), 0
    for values in classes:
        number = number * values + condition[:, start : start + values].argmax(dim=1)
        start += values
    return number
