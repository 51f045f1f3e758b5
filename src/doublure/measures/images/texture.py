"""Texture of images: the strength of a checkerboard, and the spread inside 2 x 2 blocks.

Accuracies and distances hardly react to a fine regular pattern, while people see it first. Both figures are means over
a set's images, as shares of the largest possible value. The goal is the real test images' figure: patterns and speckle
lie above it, blur below.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from doublure.data.images import Images
from doublure.measures.influence import share_influence
from doublure.measures.resampling import ROWS_OF, Resamples
from doublure.measures.scores import Score
from doublure.support.arrays import Floats

if TYPE_CHECKING:
    from torch import Tensor

AT_A_TIME = 500
"""Images processed at once."""

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


def texture(images: Mapping[str, Images], resamples: Resamples | None = None) -> tuple[Score, ...]:
    """Return both figures of sets of images.

    Args:
        images: ``value``, ``baseline`` and ``real``.
        resamples: Receives their resamples.
    """
    each = {role: measure_each(own) for role, own in images.items()}
    found = {role: _means(own) for role, own in each.items()}
    kept = Resamples() if resamples is None else resamples
    for role, own in each.items():
        for key, figures in own.items():
            if len(figures):
                kept.add(key, role, found[role][key], {ROWS_OF[role]: share_influence(figures)})
    scores = (
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
    return tuple(kept.sure(score) for score in scores)


def measure_texture(images: Images) -> dict[str, float | None]:
    """Return ``checkerboard`` (of a black and white chessboard) and ``block_spread`` of a set; None of no image."""
    return _means(measure_each(images))


def measure_each(images: Images) -> dict[str, Floats]:
    """Return the same of each image, ``(N,)``."""
    from doublure.networks.detail import block_spread, checkerboard

    measures = {"checkerboard": checkerboard, "block_spread": block_spread}
    found: dict[str, list[Floats]] = {key: [np.zeros(0)] for key in measures}
    for first in range(0, len(images), AT_A_TIME):
        shown = _shares(images.take(slice(first, first + AT_A_TIME)))
        for key, measure in measures.items():
            found[key].append(measure(shown).numpy().astype(np.float64))
    each = {key: np.concatenate(parts) for key, parts in found.items()}
    return each | {"checkerboard": each["checkerboard"] / _STRONGEST}


def _means(each: Mapping[str, Floats]) -> dict[str, float | None]:
    return {key: float(figures.mean()) if len(figures) else None for key, figures in each.items()}


def _shares(images: Images) -> Tensor:
    """Return ``(B, C, H, W)`` from 0 to 1."""
    import torch

    return torch.from_numpy(np.ascontiguousarray(images.images.transpose(0, 3, 1, 2))).float() / _FULL
