"""Large images averaged down, for measures whose work grows with pixels: classifiers, and features of images."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from doublure.data.images import Images
from doublure.networks.sizes import shrinking

_AT_ONCE = 500


def averaged(images: Images) -> Images:
    """Return images averaged down by a whole factor to at most 32 pixels a side, as generators' features are.

    Rows and columns that fill no whole block are left out, as in those features.
    """
    factor = averaging_factor(images)
    if factor == 1:
        return images
    count, height, width, colours = images.images.shape
    rows, columns = height // factor, width // factor
    found = np.empty((count, rows, columns, colours), images.images.dtype)
    for first in range(0, count, _AT_ONCE):
        part = images.images[first : first + _AT_ONCE, : rows * factor, : columns * factor]
        blocks = part.reshape(len(part), rows, factor, columns, factor, colours)
        found[first : first + _AT_ONCE] = np.rint(blocks.mean(axis=(2, 4), dtype=np.float32))
    return replace(images, images=found)


def averaging_factor(images: Images) -> int:
    """Return the factor by which images are averaged down; 1 for none."""
    _, height, width, colours = images.images.shape
    return shrinking((colours, height, width))


def averaging_note(images: Images) -> tuple[str, ...]:
    """Return an evaluation's note on what classifiers and features see of large images; nothing of small ones."""
    factor, (height, width) = averaging_factor(images), images.images.shape[1:3]
    if factor == 1:
        return ()
    return (
        f"Classifiers saw images averaged down to {height // factor} × {width // factor} pixels, since their time "
        f"grows with pixels; other figures are of {height} × {width}.",
    )


def all_averaged(images: Mapping[str, Images]) -> dict[str, Images]:
    """Return sets of images, each averaged down."""
    return {name: averaged(each) for name, each in images.items()}
