"""Images: synthetic ones as sampling returns them, and private ones with their units, in memory or on disk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from doublure.data.records import Loaded
from doublure.errors import DataError
from doublure.schema.images import LABEL
from doublure.support.row_files import Chosen, RowFile

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


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ImagesOnDisk:
    """Private images that are held one lot at a time.

    Attributes:
        pixels: ``(N, H, W, C)`` uint8.
        labels: As those of :class:`Images`.
    """

    pixels: RowFile
    labels: pd.Series[Any] | None = None

    def __len__(self) -> int:
        return len(self.pixels)

    def take(self, rows: Chosen) -> Images:
        """Return some of the images, held."""
        labels = None if self.labels is None else self.labels.iloc[rows].reset_index(drop=True)
        return Images(images=self.pixels[rows], labels=labels)

    def kept(self, rows: np.ndarray[Any, np.dtype[np.intp]]) -> ImagesOnDisk:
        """Return some of the images, ascending; the others are gone from the disk."""
        self.pixels.keep(rows)
        labels = None if self.labels is None else self.labels.iloc[rows].reset_index(drop=True)
        return ImagesOnDisk(pixels=self.pixels, labels=labels)

    def __repr__(self) -> str:
        return "ImagesOnDisk(private)"


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ImageSet(Loaded):
    """Private images.

    Attributes:
        content: The images and their labels.
    """

    content: Images | ImagesOnDisk

    @property
    def frame(self) -> pd.DataFrame:
        """The columns beside the pixels, as statistics on single columns read them: the label, where there is one."""
        return pd.DataFrame({} if self.content.labels is None else {LABEL: self.content.labels})
