"""Downstream classifiers of images: trained on synthetic images, tested on real ones.

The architecture and training time of each classifier are fixed here, before any result is seen. Nothing is tuned on the
test images, and no epoch is chosen by its result.

============ ==========================================================================================================
``cnn``      the papers' (Triastcyn & Faltings 2018 and 2019, §5.2): two convolutions with batch normalisation,
             ReLU and max pooling, two linear layers with ReLU, softmax. 32 and 64 channels of 3x3, 128 and 64 units
``resnet``   a small residual network (He et al. 2016): a convolution of 32 channels of 3x3, then blocks of two with 32,
             64 and 128, halving the size from one to the next, each with batch normalisation and a skip connection; the
             mean over places, linear. Some ten times the work of ``cnn``: trained on request
``mlp``      256 and 128 units with ReLU
``logistic`` multinomial logistic regression on the pixels
``forest``   a random forest of 100 trees on the pixels
============ ==========================================================================================================

``cnn``, ``resnet`` and ``mlp`` take 10 epochs of Adam (learning rate 1e-3, cosine decay to zero) in batches of 128. Few
images are trained on for at least 200 steps, so that a curve over numbers of images shows the effect of images, not of
training time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from doublure.data.images import Images
from doublure.data.images.records import as_bytes
from doublure.encode.numeric import Floats
from doublure.measures.classification import Labels, predict_logistic, spread_classes
from doublure.support.devices import chosen_device
from doublure.support.progress import Progress, SilentProgress
from doublure.support.seeding import to_32_bits

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
"""Classifiers trained by default."""

COSTS: dict[ClassifierName, int] = {"cnn": 20, "resnet": 200, "mlp": 1, "logistic": 1, "forest": 4}
"""Time that each takes beside the others, measured on 2,000 to 8,000 images of 28 to 32 pixels with one core."""

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
    name: ClassifierName,
    training: Images,
    classes: Labels,
    test: Images,
    n_classes: int,
    seed: int,
    progress: Progress | None = None,
) -> Floats:
    """Train one classifier and return its predictions for the test images.

    Args:
        name: The classifier's name.
        training: N images to train on.
        classes: ``(N,)`` their classes, 0 to K - 1.
        test: M images to classify.
        n_classes: K; classes that the training set lacks get probability 0.
        seed: Fixes the classifier's own randomness.
        progress: Receives the number of finished steps, of :func:`count_steps`, where the classifier is a network.

    Returns:
        ``(M, K)`` probabilities.
    """
    codes = np.unique(classes, return_inverse=True)[1].astype(np.int64)
    listener = progress or SilentProgress()
    return spread_classes(classes, len(test), n_classes, lambda: _TRAIN[name](training, codes, test, seed, listener))


def predict_each(
    name: ClassifierName,
    training: Images,
    classes: Labels,
    tests: Sequence[Images],
    n_classes: int,
    seed: int,
    progress: Progress | None = None,
) -> list[Floats]:
    """Train one classifier and return its predictions for several sets of images, each as :func:`predict` does."""
    chances = predict(name, training, classes, Images.joined(tests), n_classes, seed, progress)
    return np.split(chances, np.cumsum([len(test) for test in tests])[:-1])


def learning_curve(
    name: ClassifierName,
    training: Images,
    classes: Labels,
    test: Images,
    truth: Labels,
    sizes: Sequence[int],
    seed: int,
) -> dict[int, float]:
    """Return a classifier's accuracy by the number of labelled training images (2022, Figure 3).

    Args:
        name: The classifier's name.
        training: Images to train on, in order: a size takes the first ones.
        classes: ``(N,)`` their classes, 0 to K - 1.
        test: Images to classify.
        truth: Their classes.
        sizes: Numbers of images; those above N are left out.
        seed: Fixes the classifier's own randomness.
    """
    n_classes = int(max(np.max(classes, initial=0), np.max(truth, initial=0))) + 1
    found = {}
    for size in sorted({size for size in sizes if 0 < size <= len(training)}):
        chances = predict(name, training.take(slice(size)), classes[:size], test, n_classes, seed)
        found[size] = float((chances.argmax(1) == truth).mean())
    return found


# -- networks --------------------------------------------------------------------------------------------------------


def _network(name: ClassifierName) -> Callable[..., Floats]:
    def train(training: Images, classes: Labels, test: Images, seed: int, progress: Progress) -> Floats:
        import torch

        model = train_network(name, training, classes, seed, progress=progress)
        return map_batches(lambda images: torch.softmax(model(images), dim=1), test)

    return train


@dataclass(frozen=True, kw_only=True)
class ImageClassifier:
    """A trained convolutional classifier.

    Attributes:
        features: N images -> activations of its last layer but one, ``(N, 64)``.
        chances: N images -> probabilities ``(N, K)``.
    """

    features: Callable[[Images], Floats]
    chances: Callable[[Images], Floats]


def image_classifier(training: Images, classes: Labels, seed: int) -> ImageClassifier:
    """Train the ``cnn`` and return its features and probabilities.

    Args:
        training: Images to train on.
        classes: ``(N,)`` their classes.
        seed: Fixes the classifier's own randomness.
    """
    import torch

    codes = np.unique(classes, return_inverse=True)[1].astype(np.int64)
    model = train_network("cnn", training, codes, seed)
    body = model[:-1]
    return ImageClassifier(
        features=lambda images: map_batches(body, images),
        chances=lambda images: map_batches(lambda batch: torch.softmax(model(batch), dim=1), images),
    )


def map_batches(function: Callable[[torch.Tensor], torch.Tensor], images: Images, batch: int = _TEST_BATCH) -> Floats:
    """Return a function's results for images, a batch at a time, computed on the chosen device.

    Args:
        function: Takes ``(B, C, H, W)`` float32 in [-1, 1].
        images: N images.
        batch: B.
    """
    import torch

    with torch.inference_mode():
        parts = [
            function(to_tensor(images.images[first : first + batch]).to(chosen_device())).cpu()
            for first in range(0, len(images), batch)
        ]
        return np.asarray(torch.cat(parts).double().numpy())


def train_network(
    name: ClassifierName,
    training: Images,
    classes: Labels,
    seed: int,
    *,
    rate: float = RATE,
    epochs: int | None = None,
    progress: Progress | None = None,
) -> nn.Sequential:
    """Train a network.

    Args:
        name: ``cnn``, ``resnet`` or ``mlp``.
        training: Images to train on.
        classes: ``(N,)`` their classes, 0 to K - 1.
        seed: Fixes its randomness.
        rate: Adam's initial learning rate.
        epochs: Passes over the images; None: the default above.
        progress: Receives the number of finished steps.

    Returns:
        The network in evaluation mode, on the chosen device: ``(B, C, H, W)`` float32 in [-1, 1] to scores ``(B, K)``.
    """
    import torch

    from doublure.networks.initial_weights import initialise

    source = torch.Generator().manual_seed(seed)
    height, width, channels = training.images.shape[1:]
    model = _BUILD[name]((channels, height, width), int(classes.max()) + 1)
    initialise(model, source)
    device = chosen_device()
    model.to(device, memory_format=torch.channels_last)  # type: ignore[call-overload]  # a third quicker on a processor
    _learn(model, training, torch.from_numpy(classes).to(device), source, rate, epochs, progress or SilentProgress())
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

    from doublure.networks import optimizers

    batches = max(1, len(training) // BATCH)
    if epochs is None:
        epochs = count_steps(len(training)) // batches
    optimizer = optimizers.EagerAdam(model.parameters(), rate)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs * batches)
    model.train()
    for epoch in range(epochs):
        order = torch.randperm(len(training), generator=source)
        for number, rows in enumerate(order.tensor_split(batches)):
            progress.at(epoch * batches + number)
            if len(rows) < 2:  # batch normalisation needs two rows
                continue
            optimizer.zero_grad()
            seen = to_tensor(training.images[rows.numpy()]).to(classes.device)
            functional.cross_entropy(model(seen), classes[rows.to(classes.device)]).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            schedule.step()
    progress.at(epochs * batches)


def count_steps(images: int) -> int:
    """Return the number of training steps for a number of images."""
    batches = max(1, images // BATCH)
    return batches * max(EPOCHS, -(-LEAST_STEPS // batches))


def cnn_flops(shape: tuple[int, int, int]) -> float:
    """Return the floating-point operations of the CNN's forward pass for one image ``(H, W, C)``."""
    height, width, channels = shape
    places, (first, second), (wide, narrow) = height * width, _FILTERS, _UNITS
    convolutions = places * 9 * first * (channels + second // 4)
    return 2.0 * (convolutions + second * (height // 4) * (width // 4) * wide + wide * narrow)


def to_tensor(images: np.ndarray[Any, np.dtype[np.uint8]]) -> torch.Tensor:
    """Return ``(B, C, H, W)`` float32 in [-1, 1]."""
    import torch

    shown = as_bytes(images).transpose(0, 3, 1, 2)
    return torch.from_numpy(np.ascontiguousarray(shown)).float() / 127.5 - 1


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
    return as_bytes(images.images).reshape(len(images), -1).astype(np.float32) / np.float32(255)


def _logistic(training: Images, classes: Labels, test: Images, seed: int, progress: Progress) -> Floats:
    return predict_logistic(_pixels(training), classes, _pixels(test), _ROUNDS)


def _forest(training: Images, classes: Labels, test: Images, seed: int, progress: Progress) -> Floats:
    from sklearn.ensemble import RandomForestClassifier

    model = RandomForestClassifier(_TREES, random_state=to_32_bits(seed)).fit(_pixels(training), classes)
    return np.asarray(model.predict_proba(_pixels(test)), dtype=np.float64)


_TRAIN: dict[ClassifierName, Callable[[Images, Labels, Images, int, Progress], Floats]] = {
    "cnn": _network("cnn"),
    "resnet": _network("resnet"),
    "mlp": _network("mlp"),
    "logistic": _logistic,
    "forest": _forest,
}
