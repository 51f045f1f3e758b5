"""Images in memory: synthetic ones, as sampling returns them, and private ones with their units."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from doublure.errors import DataError
from doublure.schema.images import LABEL

Pixels: TypeAlias = "np.ndarray[Any, np.dtype[np.uint8]]"
"""``(N, H, W, C)`` uint8, channels last: 1 grey, 3 red, green, blue."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Images:
    """Images and the label of each.

    Attributes:
        images: ``(N, H, W, C)`` uint8.
        labels: ``(N,)`` categorical of the schema's values; None where the schema has no label.
    """

    images: Pixels
    labels: pd.Series[Any] | None = None

    def __post_init__(self) -> None:
        if self.images.dtype != np.uint8 or self.images.ndim != 4:
            raise DataError("must be (N, height, width, channels) uint8", field="images", remedy="convert the array")
        if self.labels is not None and len(self.labels) != len(self.images):
            raise DataError("has another length than the images", field="labels", remedy="give each image one label")

    def __len__(self) -> int:
        return len(self.images)

    def take(self, rows: slice | np.ndarray[Any, Any]) -> Images:
        """Return some of the images."""
        labels = None if self.labels is None else self.labels.iloc[rows].reset_index(drop=True)
        return Images(images=self.images[rows], labels=labels)

    @staticmethod
    def joined(parts: Sequence[Images]) -> Images:
        """Return several sets of images of one schema as one."""
        labels = None
        if parts[0].labels is not None:
            labels = pd.concat([part.labels for part in parts if part.labels is not None], ignore_index=True)
        return Images(images=np.concatenate([part.images for part in parts]), labels=labels)

    def __repr__(self) -> str:
        height, width, channels = self.images.shape[1:]
        return f"Images({len(self)} of {height}x{width}x{channels})"


@dataclass(frozen=True, kw_only=True, eq=False)
class ImageSet:
    """Private images under a schema.

    Attributes:
        content: The images and their labels.
        frame: The columns beside the pixels: the label, in canonical form; no column where there is none.
        unit: ``(N,)`` int64, the index of each image's unit, 0 … n_units - 1.
        n_units: How many units there are. Private.
    """

    content: Images
    unit: np.ndarray[Any, np.dtype[np.int64]]
    n_units: int

    @property
    def repeatable(self) -> bool:
        """Whether loading the same data again gives the same records: of a unit with more, the first are used."""
        return True

    @property
    def frame(self) -> pd.DataFrame:
        """The columns beside the pixels, as statistics on single columns read them."""
        return pd.DataFrame({} if self.content.labels is None else {LABEL: self.content.labels})

    def cells(self, column: str, fact: str) -> pd.Series[Any]:
        """Return the cells of a column: one an image, whatever is asked of them."""
        return self.frame[column]

    def __repr__(self) -> str:
        return "ImageSet(private)"
