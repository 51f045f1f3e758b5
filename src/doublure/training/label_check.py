"""A priced answer to whether a labeller's labels teach more about private images.

Two small classifiers are trained on generated images: one on images that the labeller has labelled, one on images with
the labels that they were drawn for. Each sees images as widely warped and spread as its way hands them out. That costs
no budget. Then private images are counted that only the first
recognises, and those that only the second does. An image is in one of three cells, so that it moves one count by one.

A labeller that is right itself may teach less than what it overrules, since it picks images near the borders of labels:
of 4,000 images of clothes at ε = 10 it was right for 87 %, and a logistic regression lost ten points by it
(docs/evidence/journal/images.md). So both ways of labelling are compared by what they teach.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from doublure.encode.image import of_images
from doublure.networks import optimizers
from doublure.networks.initial_weights import initialise
from doublure.networks.sizes import shrinking
from doublure.private.queries.axes import OneRight
from doublure.private.queries.counts import Counts
from doublure.training.classifier_settings import images_compared

if TYPE_CHECKING:
    from doublure.access import Access
    from doublure.networks.labelled import LabelledGenerator
    from doublure.private.records import PrivateRecords
    from doublure.training.job import Job

_MOST_SEEN, _MOST_EPOCHS = 120_000, 10
"""Images that a classifier sees, up to whole epochs, and most epochs."""

_BATCH, _RATE = 64, 2e-3
_CHANNELS = (32, 64)
_ROWS = 100


class SmallClassifier(nn.Module):
    """Images ``(B, C, H, W)`` in [-1, 1] to a score for each label ``(B, K)``: two strided convolutions and a layer.

    Args:
        shape: ``(C, H, W)``; images with a side of more than 32 are averaged down by a whole factor first.
        classes: K.
        source: Public randomness of the initial weights.
    """

    def __init__(self, shape: tuple[int, int, int], classes: int, source: torch.Generator) -> None:
        super().__init__()
        self._factor = shrinking(shape)
        first, second = _CHANNELS
        sides = [math.ceil(math.ceil(side // self._factor / 2) / 2) for side in shape[1:]]
        self.body = nn.Sequential(
            nn.Conv2d(shape[0], first, 5, stride=2, padding=2),
            nn.ReLU(),
            nn.Conv2d(first, second, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(second * math.prod(sides), classes),
        )
        initialise(self.body, source)

    def forward(self, images: Tensor) -> Tensor:
        """Return the scores."""
        scores: Tensor = self.body(functional.avg_pool2d(images, self._factor) if self._factor > 1 else images)
        return scores


class _ClassifierAnswers:
    """View of private images as the labels that two classifiers see in them."""

    name: ClassVar[str] = "answers of classifiers"

    def __init__(self, classifiers: list[SmallClassifier]) -> None:
        self._classifiers = classifiers

    @torch.no_grad()
    def _seen(self, images: Tensor) -> Tensor:
        return torch.stack([each(images).argmax(dim=1) for each in self._classifiers], dim=1).float()

    def __call__(self, records: PrivateRecords) -> PrivateRecords:
        """Return the records."""
        return records.mapped(self._seen, len(self._classifiers), rows=_ROWS, apart=True)


def labels_pay(job: Job, access: Access, made: LabelledGenerator, noise_width: int) -> bool:
    """Say whether images that the labeller labels teach more than images with the labels that they were drawn for.

    An answer that was paid for and lost in a crash counts for the labeller.

    Args:
        job: The run, or its stage.
        access: Pays for the answer.
        made: The generator with its labeller.
        noise_width: Numbers of noise for an image with all of its tries.
    """
    if job.mechanism.taken(access):
        return True
    encoder = of_images(job.encoder)
    classes = encoder.labels
    count = images_compared(encoder.schema)
    job.progress.stage("compare classifiers with and without the labeller")
    classifiers = []
    for draw in (made, made.drawn_once):
        source = torch.Generator().manual_seed(job.seed + 5)
        classifiers.append(
            _trained(job, draw, SmallClassifier(encoder.body_shape, classes, source), noise_width, count)
        )
    job.agree([weights for each in classifiers for weights in each.parameters()])
    query = Counts(tables=[(OneRight(kinds=classes),)], max_records=encoder.schema.most_records)
    with_it, without, _ = job.mechanism.release(
        query, access, job.seen(_ClassifierAnswers(classifiers)).everyone
    ).tolist()
    return bool(with_it > without)


def _trained(
    job: Job, draw: Callable[[Tensor, Tensor], Tensor], classifier: SmallClassifier, noise_width: int, count: int
) -> SmallClassifier:
    """Return a classifier trained on generated images, as many of each label."""
    classes = of_images(job.encoder).labels
    source = torch.Generator().manual_seed(job.seed + 6)
    labels = torch.arange(count) % classes
    parts = []
    with torch.no_grad():
        for own in torch.split(labels, _ROWS):
            noise = torch.randn(len(own), noise_width, generator=source)
            drawn = draw(noise.to(job.device), torch.eye(classes)[own].to(job.device))
            parts.append(((drawn + 1) * 127.5).round().clamp(0, 255).byte().cpu())  # a quarter of the memory
    images = torch.cat(parts)
    adam = optimizers.EagerAdam(classifier.parameters(), lr=_RATE)
    for _ in range(min(_MOST_EPOCHS, math.ceil(_MOST_SEEN / count))):
        job.check_stop()
        for rows in torch.split(torch.randperm(count, generator=source), _BATCH):
            adam.zero_grad()
            functional.cross_entropy(classifier(images[rows] / 127.5 - 1), labels[rows]).backward()  # type: ignore[no-untyped-call]
            adam.step()
    return classifier.eval().requires_grad_(False).to(job.device)
