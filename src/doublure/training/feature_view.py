"""Standardisation of images' features by those of public or generated images, which costs no budget."""

from __future__ import annotations

from dataclasses import dataclass

import scipy.linalg
import torch
from torch import Tensor

_RIDGE = 1e-3
_POWER = 0.25
_FLOOR = 1e-6


@dataclass(frozen=True)
class FeatureView:
    """Standardisation of features: subtract the mean and whiten the main directions.

    Attributes:
        centre: ``(D,)``.
        directions: ``(D, k)``.
    """

    centre: Tensor
    directions: Tensor

    def __call__(self, features: Tensor) -> Tensor:
        """Return vectors ``(B, k)`` of length 1."""
        seen = (features - self.centre) @ self.directions
        unit: Tensor = seen / (seen.norm(dim=1, keepdim=True) + _FLOOR)
        return unit

    @classmethod
    def of(cls, found: Tensor, width: int) -> FeatureView:
        """Return the standardisation of features, which are centred in place.

        Args:
            found: ``(N, D)``, of public or generated images.
            width: The largest number of directions, k.
        """
        centre = found.mean(dim=0)
        found -= centre
        values, vectors = _main_directions(found, width)
        return cls(centre=centre, directions=vectors * (values / values[0].clamp(min=_FLOOR**2) + _RIDGE).pow(-_POWER))


def _main_directions(centred: Tensor, width: int) -> tuple[Tensor, Tensor]:
    """Return the largest eigenvalues ``(k,)`` of a covariance, in descending order, and their directions ``(D, k)``.

    With fewer rows than columns the Gram matrix of rows is decomposed: it has the same non-zero eigenvalues.

    Args:
        centred: ``(N, D)``, with mean zero.
        width: The largest number of directions, k.
    """
    rows, numbers = centred.shape
    among_rows = rows < numbers
    products = centred @ centred.T if among_rows else centred.T @ centred
    products /= rows  # in place, as the decomposition is: a copy could be hundreds of megabytes
    size = len(products)
    largest = scipy.linalg.eigh(products.numpy(), subset_by_index=[max(0, size - width), size - 1], overwrite_a=True)
    values, vectors = map(torch.from_numpy, largest)
    values, vectors = values.flip(0).clamp(min=0), vectors.flip(1)
    if among_rows:
        least = (_FLOOR * values[0]).clamp(min=_FLOOR**2)  # smaller eigenvalues are rounding errors
        vectors = centred.T @ vectors * (rows * torch.maximum(values, least)).rsqrt()
    return values, vectors
