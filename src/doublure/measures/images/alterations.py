"""What a broken pipeline does to images, and a classifier that recognises it.

The classifier learns from one set of images what they look like as they are and after each alteration, and then says of
other images what they look like. Trained on good images it finds altered ones directly. Trained on images of which a
share below one half is altered it finds that share just as well: turned back, the others would look like them, so that
the altered look altered to it and the rest does not.
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
from doublure.measures.images.classifiers import predict_each, steps_of
from doublure.support.progress import Progress, SilentProgress


def _turned(quarters: int) -> Callable[[Pixels], Pixels]:
    return lambda images: np.rot90(images, quarters, (1, 2))


@dataclass(frozen=True, kw_only=True)
class Alteration:
    """What was done to images ``(B, H, W, C)``.

    Attributes:
        meaning: In words.
        done: The doing of it.
        square: Whether it needs images that are as high as wide.
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
"""What is looked for, by what it makes images look like."""

FEWEST = 10_000
"""How many altered images the student learns from at least: it has to know every look of them."""


def alterations_of(images: Images) -> tuple[str, ...]:
    """Return the names of the alterations that images of this shape can have undergone."""
    square = images.images.shape[1] == images.images.shape[2]
    return tuple(name for name, each in ALTERATIONS.items() if square or not each.square)


def altered(images: Pixels, name: str) -> Pixels:
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
    """Return what images look like, to a classifier trained on others.

    Args:
        training: N images that the classifier learns from: each as it is or altered, drawn evenly; few repeatedly.
        codes: ``(N,)`` their classes, 0 to K - 1: what looks altered depends on what it is meant to be (a nine is a six
            upside down).
        seen: Sets of images to be looked at, with their classes.
        n_classes: K.
        seed: Fixes what is altered, and the classifier's own randomness.
        progress: Receives progress events.

    Returns:
        For each set ``(M, A + 1)`` probabilities: as it is, then each of :func:`alterations_of`.
    """
    names = alterations_of(training)
    rng = np.random.default_rng([seed, 7])
    drawn = np.arange(max(len(training), FEWEST)) % len(training)
    which = rng.integers(len(names) + 1, size=len(drawn))
    pixels = training.images[drawn]
    for code, name in enumerate(names, start=1):
        pixels[which == code] = altered(pixels[which == code], name)
    trained = _with_class(pixels, codes[drawn], n_classes)
    hinted = [_with_class(images.images, of, n_classes) for images, of in seen]
    listener = progress or SilentProgress()
    listener.stage("train a classifier of alterations", steps_of(len(trained)))
    return predict_each("cnn", trained, which.astype(np.int64), hinted, len(names) + 1, seed, listener)


def _with_class(images: Pixels, codes: Labels, n_classes: int) -> Images:
    """Return images with one channel more, in which a bright square lies at a place of the class's own."""
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
