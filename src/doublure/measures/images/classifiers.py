"""Downstream classifiers of images: trained on synthetic images, tested on real ones.

What each classifier is, and for how long it learns, is fixed here, before any result is seen; nothing is tuned on the
images that it is tested on, and no epoch is chosen by looking.

============ ==========================================================================================================
``cnn``      the papers' (Triastcyn & Faltings 2018 and 2019, §5.2): two convolutions with batch normalisation,
             ReLU and max pooling, two linear layers with ReLU, softmax. 32 and 64 channels of 3x3, 128 and 64 units
``resnet``   a small residual network (He et al. 2016): a convolution of 32 channels of 3x3, then blocks of two with 32,
             64 and 128, halving the size from one to the next, each with batch normalisation and a way around it; the
             mean over places, linear. Some ten times the work of ``cnn``: trained where it is asked for
``mlp``      256 and 128 units with ReLU
``logistic`` multinomial logistic regression on the pixels
``forest``   a random forest of 100 trees on the pixels
============ ==========================================================================================================

``cnn``, ``resnet`` and ``mlp`` take 10 epochs of Adam (learning rate 1e-3, falling to zero along a cosine) in batches
of 128; of few images as many epochs as make 200 steps, so that a curve over numbers of images shows what images add,
and not how long somebody learned.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from doublure.data.images import Images
from doublure.encode.grids import Floats
from doublure.measures.classification import Labels
from doublure.support.devices import chosen_device
from doublure.support.progress import Progress, Silent
from doublure.support.seeding import of_32_bits

if TYPE_CHECKING:
    import torch
    from torch import nn

ClassifierName: TypeAlias = Literal["cnn", "resnet", "mlp", "logistic", "forest"]

CLASSIFIERS: dict[ClassifierName, str] = {
    "cnn": "convolutional network",
    "resnet": "residual network",
    "mlp": "multilayer perceptron",
    "logistic": "logistic regression",
    "forest": "random forest",
}

USUAL: tuple[ClassifierName, ...] = ("cnn", "mlp", "logistic", "forest")
"""Those that are trained unless others are asked for."""

EPOCHS = 10
LEAST_STEPS = 200
BATCH = 128
RATE = 1e-3
_FILTERS = (32, 64)
_UNITS = (128, 64)
_ROUNDS = 100
_TREES = 100
_TEST_BATCH = 1000


def predict(
    student: ClassifierName,
    training: Images,
    classes: Labels,
    test: Images,
    n_classes: int,
    seed: int,
    progress: Progress | None = None,
) -> Floats:
    """Train one classifier and return what it makes of the test images.

    Args:
        student: Which one.
        training: N images to learn from.
        classes: ``(N,)`` their classes, 0 to K - 1.
        test: M images to classify.
        n_classes: K; classes that the training set lacks get probability 0.
        seed: Fixes the classifier's own randomness.
        progress: Receives how many of :func:`steps_of` are done, where the classifier is a network.

    Returns:
        ``(M, K)`` probabilities.
    """
    chances = np.zeros((len(test), n_classes))
    present, codes = np.unique(classes, return_inverse=True)
    if len(present) == 1:
        # A collapsed generator makes one class only: that is a (bad) result and no reason to stop.
        chances[:, present] = 1.0
        return chances
    chances[:, present] = _TRAIN[student](training, codes.astype(np.int64), test, seed, progress or Silent())
    return chances


def predict_each(
    student: ClassifierName,
    training: Images,
    classes: Labels,
    tests: Sequence[Images],
    n_classes: int,
    seed: int,
    progress: Progress | None = None,
) -> list[Floats]:
    """Train one classifier and return what it makes of several sets of images, as :func:`predict` does of one."""
    chances = predict(student, training, classes, Images.joined(tests), n_classes, seed, progress)
    return np.split(chances, np.cumsum([len(test) for test in tests])[:-1])


def learning_curve(
    student: ClassifierName,
    training: Images,
    classes: Labels,
    test: Images,
    truth: Labels,
    sizes: Sequence[int],
    seed: int,
) -> dict[int, float]:
    """Return a classifier's accuracy by the number of labelled images that it learned from (2022, Figure 3).

    Args:
        student: Which one.
        training: Images to learn from; the first so many of them are used.
        classes: ``(N,)`` their classes, 0 to K - 1.
        test: Images to classify.
        truth: Their classes.
        sizes: Numbers of images; those that there are not are left out.
        seed: Fixes the classifier's own randomness.
    """
    n_classes = int(max(np.max(classes, initial=0), np.max(truth, initial=0))) + 1
    found = {}
    for size in sorted({size for size in sizes if 0 < size <= len(training)}):
        chances = predict(student, training.take(slice(size)), classes[:size], test, n_classes, seed)
        found[size] = float((chances.argmax(1) == truth).mean())
    return found


# -- classifiers of torch --------------------------------------------------------------------------------------------


def _network(student: ClassifierName) -> Callable[..., Floats]:
    def train(training: Images, classes: Labels, test: Images, seed: int, progress: Progress) -> Floats:
        import torch

        model = trained(student, training, classes, seed, progress=progress)
        return transformed(lambda images: torch.softmax(model(images), dim=1), test)

    return train


@dataclass(frozen=True, kw_only=True)
class ImageClassifier:
    """What a trained convolutional classifier makes of images.

    Attributes:
        features: N images to what its last layer but one holds, ``(N, 64)``.
        chances: N images to probabilities ``(N, K)``.
    """

    features: Callable[[Images], Floats]
    chances: Callable[[Images], Floats]


def image_classifier(training: Images, classes: Labels, seed: int) -> ImageClassifier:
    """Train the ``cnn`` and return its features and probabilities.

    Args:
        training: Images to learn from.
        classes: ``(N,)`` their classes.
        seed: Fixes the classifier's own randomness.
    """
    import torch

    codes = np.unique(classes, return_inverse=True)[1].astype(np.int64)
    model = trained("cnn", training, codes, seed)
    body = model[:-1]
    return ImageClassifier(
        features=lambda images: transformed(body, images),
        chances=lambda images: transformed(lambda batch: torch.softmax(model(batch), dim=1), images),
    )


def transformed(function: Callable[[torch.Tensor], torch.Tensor], images: Images, batch: int = _TEST_BATCH) -> Floats:
    """Return what a function of ``(B, C, H, W)`` float32 in [-1, 1] makes of images, a batch at a time.

    It computes on the device that was chosen.
    """
    import torch

    with torch.inference_mode():
        parts = [
            function(tensor_of(images.images[first : first + batch]).to(chosen_device())).cpu()
            for first in range(0, len(images), batch)
        ]
        return np.asarray(torch.cat(parts).double().numpy())


def trained(
    student: ClassifierName,
    training: Images,
    classes: Labels,
    seed: int,
    *,
    rate: float = RATE,
    epochs: int | None = None,
    progress: Progress | None = None,
) -> nn.Sequential:
    """Train a classifier that is a network.

    Args:
        student: ``cnn``, ``resnet`` or ``mlp``.
        training: Images to learn from.
        classes: ``(N,)`` their classes, 0 to K - 1.
        seed: Fixes its randomness.
        rate: Adam's learning rate at the start.
        epochs: How often it sees each image; None: as fixed above.
        progress: Receives how many steps are done.

    Returns:
        The network in evaluation mode, on the device that was chosen: ``(B, C, H, W)`` float32 in [-1, 1] to scores
        ``(B, K)``.
    """
    import torch

    from doublure.networks.initial_weights import initialise

    source = torch.Generator().manual_seed(seed)
    height, width, channels = training.images.shape[1:]
    model = _BUILD[student]((channels, height, width), int(classes.max()) + 1)
    initialise(model, source)
    device = chosen_device()
    model.to(device, memory_format=torch.channels_last)  # type: ignore[call-overload]  # a third quicker on a processor
    _learn(model, training, torch.from_numpy(classes).to(device), source, rate, epochs, progress or Silent())
    return model.eval()


def _learn(
    model: nn.Sequential,
    training: Images,
    classes: torch.Tensor,
    source: torch.Generator,
    rate: float,
    epochs: int | None,
    progress: Progress,
) -> None:
    import torch
    from torch.nn import functional

    batches = max(1, len(training) // BATCH)
    if epochs is None:
        epochs = steps_of(len(training)) // batches
    optimizer = torch.optim.Adam(model.parameters(), rate)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs * batches)
    model.train()
    for epoch in range(epochs):
        order = torch.randperm(len(training), generator=source)
        for number, rows in enumerate(order.tensor_split(batches)):
            progress.at(epoch * batches + number)
            if len(rows) < 2:  # batch normalisation needs two
                continue
            optimizer.zero_grad()
            seen = tensor_of(training.images[rows.numpy()]).to(classes.device)
            functional.cross_entropy(model(seen), classes[rows.to(classes.device)]).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            schedule.step()
    progress.at(epochs * batches)


def steps_of(images: int) -> int:
    """Return how many steps a network learns for, of so many images."""
    batches = max(1, images // BATCH)
    return batches * max(EPOCHS, -(-LEAST_STEPS // batches))


def cnn_flops(shape: tuple[int, int, int]) -> float:
    """Return what the CNN computes for one image ``(H, W, C)``, forward."""
    height, width, channels = shape
    places, (first, second), (wide, narrow) = height * width, _FILTERS, _UNITS
    convolutions = places * 9 * first * (channels + second // 4)
    return 2.0 * (convolutions + second * (height // 4) * (width // 4) * wide + wide * narrow)


def tensor_of(images: np.ndarray[Any, np.dtype[np.uint8]]) -> torch.Tensor:
    """Return ``(B, C, H, W)`` float32 in [-1, 1]."""
    import torch

    return torch.from_numpy(np.ascontiguousarray(images.transpose(0, 3, 1, 2))).float() / 127.5 - 1


def _cnn(shape: tuple[int, int, int], n_classes: int) -> nn.Sequential:
    from torch import nn

    def block(inputs: int, outputs: int) -> list[nn.Module]:
        return [nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU(), nn.MaxPool2d(2)]

    (channels, height, width), (first, second), (wide, narrow) = shape, _FILTERS, _UNITS
    flat = second * (height // 4) * (width // 4)
    units = [nn.Linear(flat, wide), nn.ReLU(), nn.Linear(wide, narrow), nn.ReLU(), nn.Linear(narrow, n_classes)]
    return nn.Sequential(*block(channels, first), *block(first, second), nn.Flatten(), *units)


def _resnet(shape: tuple[int, int, int], n_classes: int) -> nn.Sequential:
    from torch import nn

    from doublure.networks.residual import ResidualBlock

    first = [nn.Conv2d(shape[0], 32, 3, padding=1, bias=False), nn.BatchNorm2d(32), nn.ReLU()]
    blocks = [ResidualBlock(32, 32), ResidualBlock(32, 64, stride=2), ResidualBlock(64, 128, stride=2)]
    return nn.Sequential(*first, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, n_classes))


def _mlp(shape: tuple[int, int, int], n_classes: int) -> nn.Sequential:
    from torch import nn

    layers = [nn.Linear(math.prod(shape), 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, n_classes)]
    return nn.Sequential(nn.Flatten(), *layers)


_BUILD: dict[ClassifierName, Callable[[tuple[int, int, int], int], nn.Sequential]] = {
    "cnn": _cnn,
    "resnet": _resnet,
    "mlp": _mlp,
}


# -- classifiers of scikit-learn -------------------------------------------------------------------------------------


def _pixels(images: Images) -> np.ndarray[Any, np.dtype[np.float32]]:
    return images.images.reshape(len(images), -1).astype(np.float32) / np.float32(255)


def _logistic(training: Images, classes: Labels, test: Images, seed: int, progress: Progress) -> Floats:
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    with warnings.catch_warnings():
        # Stopping a little early costs less accuracy than the interval is wide.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LogisticRegression(max_iter=_ROUNDS).fit(_pixels(training), classes)
    found: Floats = np.asarray(model.predict_proba(_pixels(test)), dtype=np.float64)
    return found


def _forest(training: Images, classes: Labels, test: Images, seed: int, progress: Progress) -> Floats:
    from sklearn.ensemble import RandomForestClassifier

    model = RandomForestClassifier(_TREES, random_state=of_32_bits(seed)).fit(_pixels(training), classes)
    return np.asarray(model.predict_proba(_pixels(test)), dtype=np.float64)


_TRAIN: dict[ClassifierName, Callable[[Images, Labels, Images, int, Progress], Floats]] = {
    "cnn": _network("cnn"),
    "resnet": _network("resnet"),
    "mlp": _network("mlp"),
    "logistic": _logistic,
    "forest": _forest,
}
