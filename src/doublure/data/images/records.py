"""Images: synthetic ones as sampling returns them, and private ones with their units, in memory or on disk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from doublure.data.records import Loaded
from doublure.errors import DataError
from doublure.schema.images import LABEL, Pictures
from doublure.support.row_files import Chosen, RowFile

Pixels: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"
"""``(N, H, W, C)`` uint8 or uint16, channels last: 1 grey, 3 colours. 0 is black, the largest number full intensity."""

LEVELS = 65_535 // 255
"""Levels of 16 bits to one of 8 bits."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Images:
    """Images and the label of each.

    Attributes:
        images: ``(N, H, W, C)``: uint8, or uint16 where the schema's range has more levels, from black to the type's
            largest number; as ``sample`` hands them out, numbers of the schema's range and type.
        labels: ``(N,)`` categorical of the schema's values; None where the schema has no label.
        attributes: ``(N, …)``, a column an attribute; None where the schema has none.
    """

    images: Pixels
    labels: pd.Series[Any] | None = None
    attributes: pd.DataFrame | None = None

    def __post_init__(self) -> None:
        if self.images.dtype.kind not in "uif" or self.images.ndim != 4:
            remedy = "convert the array"
            raise DataError("must be numbers (N, height, width, channels)", field="images", remedy=remedy)
        if self.labels is not None and len(self.labels) != len(self.images):
            raise DataError("has another length than the images", field="labels", remedy="give each image one label")
        if self.attributes is not None and len(self.attributes) != len(self.images):
            raise DataError("have another length than the images", field="attributes", remedy="give each image a row")

    def __len__(self) -> int:
        return len(self.images)

    def take(self, rows: slice | np.ndarray[Any, Any]) -> Images:
        """Return some of the images."""
        return Images(images=self.images[rows], **_beside(self, rows))

    @property
    def in_bytes(self) -> Images:
        """The same images in 256 levels, in which measures and attacks compare them."""
        if self.images.dtype == np.uint8:
            return self
        return replace(self, images=as_bytes(self.images))

    def of_range(self, rule: Pictures) -> Images:
        """Return the images in numbers of the schema's range and type."""
        return replace(self, images=in_range(self.images, rule))

    @staticmethod
    def joined(parts: Sequence[Images]) -> Images:
        """Return several sets of images of one schema as one."""
        labels = attributes = None
        if parts[0].labels is not None:
            labels = pd.concat([part.labels for part in parts if part.labels is not None], ignore_index=True)
        if parts[0].attributes is not None:
            held = [part.attributes for part in parts if part.attributes is not None]
            attributes = pd.concat(held, ignore_index=True)
        return Images(images=np.concatenate([part.images for part in parts]), labels=labels, attributes=attributes)

    def __repr__(self) -> str:
        height, width, channels = self.images.shape[1:]
        return f"Images({len(self)} of {height}x{width}x{channels})"


def as_bytes(pixels: Pixels) -> Pixels:
    """Return pixels in 256 levels."""
    if pixels.dtype == np.uint8:
        return pixels
    return ((pixels.astype(np.uint32) + LEVELS // 2) // LEVELS).astype(np.uint8)


def intensities(pixels: Pixels) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return pixels as shares of full intensity."""
    return pixels / float(np.iinfo(pixels.dtype).max)


def in_range(pixels: Pixels, rule: Pictures) -> np.ndarray[Any, Any]:
    """Return pixels as numbers of a schema's range and type.

    Example:
        >>> in_range(np.array([0, 65_535], dtype=np.uint16), Pictures(range=(0.0, 4095.0))).tolist()
        [0, 4095]
    """
    (lower, upper), stored = rule.ends, np.dtype(rule.stored)
    if stored == pixels.dtype and (lower, upper) == (0, np.iinfo(pixels.dtype).max):
        return pixels
    numbers = lower + pixels.astype(np.float64) * ((upper - lower) / np.iinfo(pixels.dtype).max)
    return np.rint(numbers).astype(stored) if stored.kind in "ui" else numbers.astype(stored)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ImagesOnDisk:
    """Private images that are held one lot at a time.

    Attributes:
        pixels: ``(N, H, W, C)`` uint8 or uint16.
        labels: As those of :class:`Images`.
        attributes: Likewise.
    """

    pixels: RowFile
    labels: pd.Series[Any] | None = None
    attributes: pd.DataFrame | None = None

    def __len__(self) -> int:
        return len(self.pixels)

    def take(self, rows: Chosen) -> Images:
        """Return some of the images, held."""
        return Images(images=self.pixels[rows], **_beside(self, rows))

    def kept(self, rows: np.ndarray[Any, np.dtype[np.intp]]) -> ImagesOnDisk:
        """Return some of the images, ascending; the others are gone from the disk."""
        self.pixels.keep(rows)
        return ImagesOnDisk(pixels=self.pixels, **_beside(self, rows))

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
        """The columns beside the pixels, as statistics on single columns read them."""
        return columns_beside(self.content)


def columns_beside(images: Images | ImagesOnDisk) -> pd.DataFrame:
    """Return the columns beside the pixels: the label, where there is one, then the attributes."""
    label = {} if images.labels is None else {LABEL: images.labels}
    others = {} if images.attributes is None else {str(name): cells for name, cells in images.attributes.items()}
    return pd.DataFrame({**label, **others})


def _beside(images: Images | ImagesOnDisk, rows: Chosen) -> dict[str, Any]:
    """Return labels and attributes of some of the images."""
    labels = None if images.labels is None else images.labels.iloc[rows].reset_index(drop=True)
    attributes = None if images.attributes is None else images.attributes.iloc[rows].reset_index(drop=True)
    return {"labels": labels, "attributes": attributes}
