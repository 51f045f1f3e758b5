"""Feature extractors for image measures: pixels, a classifier's features, or a network trained on public photographs.

Every figure names its extractor: distances in one space say nothing about distances in another. A classifier is trained
on synthetic images, so its space contains no more than a release would. Networks trained on public photographs rest on
the assumption that those photographs are public.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from doublure.data.images.records import intensities
from doublure.encode.columns import ListedEncoding
from doublure.errors import SettingError
from doublure.measures.classification import Labels
from doublure.measures.images.classifiers import image_classifier, map_batches
from doublure.networks import photograph_features
from doublure.schema import Schema
from doublure.schema.images import ImageSchema
from doublure.support.arrays import Floats
from doublure.support.devices import chosen_device

if TYPE_CHECKING:
    from torch import Tensor, nn

    from doublure.data.images import Images

CLASSIFIER_OF_REAL = "classifier of real images"
"""Default feature space of an evaluation."""
CLASSIFIER_OF_SYNTHETIC = "classifier of the synthetic images"
"""Name of a synthesizer's own classifier in a rule of expected loss."""

_BATCH = 50


@dataclass(frozen=True, kw_only=True)
class Extractor:
    """A named function from images to features.

    Attributes:
        name: Part of every figure's name.
        extract: N images -> features ``(N, d)``.
        resizes: Whether it brings images to a size of its own, and so sees large ones as they are.
    """

    name: str
    extract: Callable[[Images], Floats]
    resizes: bool = False


def pixels() -> Extractor:
    """Return the extractor of pixel intensities from 0 to 1."""
    return Extractor(name="pixels", extract=lambda images: intensities(images.images).reshape(len(images), -1))


def student(training: Images, classes: Labels, seed: int) -> Extractor:
    """Return the last layer but one of the convolutional classifier: 64 features.

    Args:
        training: Synthetic images; not those that are measured.
        classes: ``(N,)`` their classes.
        seed: Fixes the classifier's own randomness.
    """
    return Extractor(name="student", extract=image_classifier(training, classes, seed).features)


def efficientnet_lite0() -> Extractor:
    """Return EfficientNet-lite0's pooled features (1,280), trained on ImageNet.

    Raises:
        SettingError: As :func:`doublure.networks.photograph_features.lite0`.
    """
    return _frozen(photograph_features.LITE0, *photograph_features.lite0())


def inception_v3(weights: str | Path) -> Extractor:
    """Return Inception-v3's pooled features (2,048), trained on ImageNet, as in the 2019 paper.

    Args:
        weights: A safetensors file of torchvision's ``inception_v3`` weights; never fetched.

    Raises:
        SettingError: torchvision is not installed, or the file does not hold these weights.
    """
    import torch
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    models = photograph_features.imported("torchvision.models", "torchvision", "inception-v3")
    # These are TensorFlow's weights, which expect [-1, 1], as images are here. torchvision's own loader would undo
    # ImageNet's normalisation instead.
    model: nn.Module = models.inception_v3(weights=None, init_weights=False, transform_input=False)
    try:
        model.load_state_dict(load_file(weights))
    except (OSError, SafetensorError, RuntimeError):
        remedy = "give a safetensors file of torchvision's inception_v3 weights"
        raise SettingError("does not hold Inception-v3", field=Path(weights).name, remedy=remedy) from None
    model.fc = torch.nn.Identity()

    def features(images: Tensor) -> Tensor:
        seen: Tensor = model(photograph_features.of_size(images, 299))
        return seen

    return _frozen("inception-v3", model, features)


def _frozen(name: str, model: nn.Module, features: Callable[[Tensor], Tensor]) -> Extractor:
    model.eval().to(chosen_device())
    return Extractor(name=name, extract=lambda images: map_batches(features, images, _BATCH), resizes=True)


NAMES: dict[str, Callable[[Images, Labels, int], Extractor]] = {
    "pixels": lambda training, classes, seed: pixels(),
    "student": student,
    "efficientnet-lite0": lambda training, classes, seed: efficientnet_lite0(),
}


def find_extractor(name: str, training: Images, classes: Labels, seed: int) -> Extractor:
    """Return the extractor of this name.

    Args:
        name: One of ``NAMES``.
        training: Synthetic images for a classifier to learn from.
        classes: ``(N,)`` their classes.
        seed: Fixes a classifier's own randomness.

    Raises:
        SettingError: There is none, or its packages are not installed.
    """
    if name == "inception-v3":
        remedy = "give evaluate --features inception-v3=FILE, or extractor="
        raise SettingError("inception-v3 needs the file of its weights", field="features", remedy=remedy)
    if name not in NAMES:
        raise SettingError(
            f"there is no extractor {name!r}", field="features", remedy=f"use one of: {', '.join(NAMES)}"
        )
    return NAMES[name](training, classes, seed)


def encode_labels(schema: ImageSchema, images: Images) -> Labels:
    """Return ``(N,)`` the class of each image; 0 where there are no labels."""
    if schema.label is None or images.labels is None:
        return np.zeros(len(images), dtype=np.int64)
    return ListedEncoding(column=schema.label).compact(images.labels)[0].astype(np.int64)


def refuse_other_kinds(schema: Schema) -> None:
    """Refuse image features for other kinds of data.

    Raises:
        SettingError: The schema describes no images.
    """
    wrong = SettingError("are those of images, and this run makes none", field="features", remedy="leave them out")
    ImageSchema.of(schema, wrong)


def parse_extractor(words: str, schema: Schema) -> Extractor | None:
    """Return the extractor named on a command line; None for a classifier of real images, which the caller trains.

    Args:
        words: ``student``, ``pixels``, ``efficientnet-lite0``, or ``inception-v3=`` and the file of its weights.
        schema: The compared data's schema.

    Raises:
        SettingError: There is none of this name, its packages are not installed, or the schema describes no images.
    """
    refuse_other_kinds(schema)
    name, _, weights = words.partition("=")
    makers: dict[str, Callable[[], Extractor | None]] = {
        "student": lambda: None,
        "pixels": pixels,
        "efficientnet-lite0": efficientnet_lite0,
        "inception-v3": lambda: inception_v3(weights),
    }
    if name not in makers or bool(weights) != (name == "inception-v3"):
        remedy = "give student, pixels, efficientnet-lite0, or inception-v3=FILE"
        raise SettingError("are not known by this name", field="features", remedy=remedy)
    return makers[name]()
