"""Public embeddings of images, in which a private image is near a candidate.

An extractor is fixed: wavelets, or a network trained on public photographs. Its features are standardised by the first
candidates, which are public, and rounded to whole numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor, nn

from doublure.methods.evolution.settings import FLOOR, Features
from doublure.networks.photograph_features import lite0
from doublure.networks.scattering import Scattering
from doublure.private.queries.nearest import LARGEST
from doublure.training.feature_view import FeatureView

if TYPE_CHECKING:
    from collections.abc import Callable

    from doublure.private.records import PrivateRecords, ResumableStore

WIDTH = 256
"""Directions that an embedding has at most."""

ROWS = 100
"""Images that are embedded at a time."""


def load_extractor(name: Features, shape: tuple[int, int, int]) -> Callable[[Tensor], Tensor]:
    """Return the extractor of this name: images ``(B, C, H, W)`` in [-1, 1] to features ``(B, D)``.

    Raises:
        SettingError: Its packages are not installed, or hold other weights.
    """
    return LogScattering(shape) if name == "scattering" else lite0()[1]


class LogScattering(nn.Module):
    """Images ``(B, C, H, W)`` in [-1, 1] to logarithms of first-order scattering ``(B, D)``.

    In logarithms a brighter or stronger image differs by a constant (Bruna and Mallat 2013).

    Args:
        shape: ``(C, H, W)``; images with a side of more than 32 are averaged down by a whole factor first.
    """

    def __init__(self, shape: tuple[int, int, int]) -> None:
        super().__init__()
        self.scattering = Scattering(shape, order=1)

    def forward(self, images: Tensor) -> Tensor:
        """Return the features."""
        found: Tensor = self.scattering(images)
        return (found.flatten(1) + FLOOR).log()


class ImageEmbedding:
    """Images to whole numbers ``(B, k)``, on a sphere.

    Args:
        extract: The extractor.
        images: ``(n, C, H, W)`` public images, which standardise its features.
    """

    name: ClassVar[str] = "embedded"

    @torch.no_grad()
    def __init__(self, extract: Callable[[Tensor], Tensor], images: Tensor) -> None:
        self._extract = extract
        found = torch.cat([extract(part) for part in torch.split(images, ROWS)])
        self._view = FeatureView.of(found, WIDTH)

    @property
    def numbers(self) -> tuple[Tensor, Tensor]:
        """Centre and directions that standardise the features."""
        return self._view.centre, self._view.directions

    @property
    def width(self) -> int:
        """Number of features, k."""
        return self._view.directions.shape[1]

    @torch.no_grad()
    def __call__(self, images: Tensor) -> Tensor:
        """Return the features, each from -1024 to 1024."""
        return (self._view(self._extract(images)) * LARGEST).round()

    def of(self, records: PrivateRecords, progress: ResumableStore) -> PrivateRecords:
        """Return private images with their features as bodies, each from its own image alone."""
        return records.mapped(self, self.width, rows=ROWS, apart=True, resumable=progress)
