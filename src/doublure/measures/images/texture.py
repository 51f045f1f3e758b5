"""Two figures of how images look from pixel to pixel: a checkerboard, and the spread inside 2 x 2 blocks.

Accuracies and distances hardly see a fine regular pattern, and a person sees nothing else. Both figures are means over
a set's images, in shares of what there can be, and good is what is near the real test images': above them lie patterns
and speckle, below them blur.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from doublure.data.images import Images
from doublure.measures.scores import Score

if TYPE_CHECKING:
    from torch import Tensor

AT_A_TIME = 500
"""Images that are looked at together."""

_FULL = 255.0
_STRONGEST = 2.0
_FIGURES = {
    "checkerboard": (
        "Checkerboard",
        "How strong a pattern is that turns over at every pixel both ways, of the strongest there is; above the real "
        "one, a grid is woven into images.",
    ),
    "block_spread": (
        "Spread inside 2 × 2 blocks",
        "Standard deviation of four neighbouring pixels, of full intensity; above the real one images are speckled, "
        "below it they are blurred.",
    ),
}


def texture(images: Mapping[str, Images]) -> tuple[Score, ...]:
    """Return both figures of sets of images.

    Args:
        images: ``value``, ``baseline`` and ``real``.
    """
    found = {role: figures_of(each) for role, each in images.items()}
    return tuple(
        Score(
            key=key,
            name=name,
            goal="near",
            range=(0.0, 1.0),
            meaning=meaning,
            **{role: figures[key] for role, figures in found.items()},
        )
        for key, (name, meaning) in _FIGURES.items()
    )


def figures_of(images: Images) -> dict[str, float | None]:
    """Return ``checkerboard`` (of a chessboard of black and white) and ``block_spread`` of a set; None of no image."""
    from doublure.networks.texture import block_spread, checkerboard

    measures = {"checkerboard": checkerboard, "block_spread": block_spread}
    sums = dict.fromkeys(measures, 0.0)
    for first in range(0, len(images), AT_A_TIME):
        shown = _shares(images.take(slice(first, first + AT_A_TIME)))
        for key, measure in measures.items():
            sums[key] += float(measure(shown).sum())
    sums["checkerboard"] /= _STRONGEST
    return {key: total / len(images) if len(images) else None for key, total in sums.items()}


def _shares(images: Images) -> Tensor:
    """Return ``(B, C, H, W)`` from 0 to 1."""
    import torch

    return torch.from_numpy(np.ascontiguousarray(images.images.transpose(0, 3, 1, 2))).float() / _FULL
