"""Public embeddings of images, in which a private image is near a candidate.

An extractor is fixed: wavelets, or a network trained on public photographs. Its features are standardised by the first
candidates, which are public, and rounded to whole numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor

from doublure.methods.evolution.settings import Features
from doublure.networks.fixed_features import LabelFeatures
from doublure.networks.photograph_features import lite0
from doublure.private.queries.nearest import LARGEST
from doublure.training.feature_view import FeatureView

if TYPE_CHECKING:
    from collections.abc import Callable

    from doublure.private.records import PrivateRecords, ResumableStore

WIDTH = 256
"""Directions that an embedding has at most."""

ROWS = 100
"""Images that are embedded at a time."""


def extractor_of(name: Features, shape: tuple[int, int, int]) -> Callable[[Tensor], Tensor]:
    """Return the extractor of this name: images ``(B, C, H, W)`` in [-1, 1] to features ``(B, D)``.

    Raises:
        SettingError: Its packages are not installed, or hold other weights.
    """
    return LabelFeatures(shape) if name == "scattering" else lite0()[1]


class Embedding:
    """Images to whole numbers ``(B, k)``, on a sphere.

    Args:
        extract: The extractor.
        images: ``(n, C, H, W)`` public images, which standardise its features.
    """

    name: ClassVar[str] = "embedded"

    @torch.no_grad()
    def __init__(self, extract: Callable[[Tensor], Tensor], images: Tensor) -> None:
        self._extract = extract
        found = torch.cat([extract(part) for part in images.split(ROWS)])
        self._view = FeatureView.of(found, WIDTH)

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
