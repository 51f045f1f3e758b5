"""Alterations of images by a broken pipeline, and a classifier that detects them.

The classifier is trained on one set of images, as they are and after each alteration, and then classifies other images.
Trained on correct images, it detects altered ones directly. Trained on images of which less than half are altered, it
detects that share just as well: most training images that look altered are then those altered for training.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from doublure.data.images import Images
from doublure.data.images.records import Pixels
from doublure.encode.grids import Floats
from doublure.measures.classification import Labels
from doublure.measures.images.classifiers import count_steps, predict_each
from doublure.support.progress import Progress, SilentProgress


def _turned(quarters: int) -> Callable[[Pixels], Pixels]:
    return lambda images: np.rot90(images, quarters, (1, 2))


@dataclass(frozen=True, kw_only=True)
class Alteration:
    """An alteration of images ``(B, H, W, C)``.

    Attributes:
        meaning: In words.
        done: The function that applies it.
        square: Whether it needs images as high as wide.
    """

    meaning: str
    done: Callable[[Pixels], Pixels]
    square: bool = False


ALTERATIONS: Mapping[str, Alteration] = MappingProxyType(
    {
        "turned left": Alteration(meaning="a quarter turn to the left", done=_turned(1), square=True),
        "upside down": Alteration(meaning="half a turn", done=_turned(2)),
        "turned right": Alteration(meaning="a quarter turn to the right", done=_turned(3), square=True),
        "mirrored": Alteration(meaning="left and right were exchanged", done=lambda images: images[:, :, ::-1]),
        "flipped": Alteration(meaning="top and bottom were exchanged", done=lambda images: images[:, ::-1]),
        "transposed": Alteration(
            meaning="rows and columns were exchanged", done=lambda images: images.transpose(0, 2, 1, 3), square=True
        ),
        "negative": Alteration(meaning="dark and bright were exchanged", done=lambda images: 255 - images),
    }
)
"""The alterations tested for."""

FEWEST = 10_000
"""Smallest number of altered images for training: the classifier has to see each kind often."""


def list_alterations(images: Images) -> tuple[str, ...]:
    """Return the names of the alterations that images of this shape can undergo."""
    square = images.images.shape[1] == images.images.shape[2]
    return tuple(name for name, each in ALTERATIONS.items() if square or not each.square)


def alter(images: Pixels, name: str) -> Pixels:
    """Return images ``(B, H, W, C)`` after an alteration."""
    return np.ascontiguousarray(ALTERATIONS[name].done(images))


def predict_alterations(
    training: Images,
    codes: Labels,
    seen: Sequence[tuple[Images, Labels]],
    n_classes: int,
    seed: int,
    progress: Progress | None = None,
) -> list[Floats]:
    """Return the alteration of each image, predicted by a classifier trained on other images.

    Args:
        training: N images the classifier learns from: each as it is or altered, drawn evenly; few images repeatedly.
        codes: ``(N,)`` their classes, 0 to K - 1. The class decides whether an image looks altered: a nine is a six
            upside down.
        seen: Sets of images to classify, with their classes.
        n_classes: K.
        seed: Fixes the alterations, and the classifier's own randomness.
        progress: Receives progress events.

    Returns:
        For each set ``(M, A + 1)`` probabilities: unaltered, then each of :func:`list_alterations`.
    """
    names = list_alterations(training)
    rng = np.random.default_rng([seed, 7])
    drawn = np.arange(max(len(training), FEWEST)) % len(training)
    which = rng.integers(len(names) + 1, size=len(drawn))
    pixels = training.images[drawn]
    for code, name in enumerate(names, start=1):
        pixels[which == code] = alter(pixels[which == code], name)
    trained = _with_class(pixels, codes[drawn], n_classes)
    hinted = [_with_class(images.images, of, n_classes) for images, of in seen]
    listener = progress or SilentProgress()
    listener.stage("train a classifier of alterations", count_steps(len(trained)))
    return predict_each("cnn", trained, which.astype(np.int64), hinted, len(names) + 1, seed, listener)


def _with_class(images: Pixels, codes: Labels, n_classes: int) -> Images:
    """Return images with one more channel, in which a bright square marks the class by its place."""
    n, height, width, _ = images.shape
    side = int(np.ceil(np.sqrt(n_classes)))
    tall, wide = height / side, width / side
    hint = np.zeros((n, height, width, 1), dtype=np.uint8)
    for code in np.unique(codes):
        row, column = divmod(int(code), side)
        rows = slice(int(row * tall), max(int(row * tall) + 1, int((row + 1) * tall)))
        columns = slice(int(column * wide), max(int(column * wide) + 1, int((column + 1) * wide)))
        hint[np.ix_(codes == code, range(*rows.indices(height)), range(*columns.indices(width)))] = 255
    return Images(images=np.concatenate([images, hint], axis=3))
