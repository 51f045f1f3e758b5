"""The paper's classifiers (Chen et al. 2021, §IV-B), and what they say of synthetic records."""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.metrics import precision_recall_fscore_support
from torch import Tensor, nn
from torch.nn import functional

from doublure.measures.images.distribution_metrics import frechet_distance, inception_score

BATCH, RATE = 128, 1e-3


def four_convolutions(shape: tuple[int, ...], classes: int) -> nn.Sequential:
    """Return four layers of convolution and max pooling, then one linear layer."""
    layers: list[nn.Module] = []
    inputs, sides = shape[0], shape[1:]
    for outputs in (32, 64, 128, 128):
        layers += [nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU(), nn.MaxPool2d(2)]
        inputs, sides = outputs, tuple(side // 2 for side in sides)
    model = nn.Sequential(*layers, nn.Flatten(), nn.Linear(inputs * math.prod(sides), classes))
    return model.to(memory_format=torch.channels_last)  # a quarter quicker on a processor


def hybrid(shape: tuple[int, ...], classes: int) -> nn.Sequential:
    """Return convolutions along a vector, and dense layers."""
    flat = 16 * (shape[-1] // 4)
    return nn.Sequential(
        nn.Unflatten(1, (1, shape[-1])),
        nn.Conv1d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool1d(2),
        nn.Conv1d(16, 16, 3, padding=1), nn.ReLU(), nn.MaxPool1d(2),
        nn.Flatten(), nn.Linear(flat, 64), nn.ReLU(), nn.Linear(64, classes),
    )  # fmt: skip


def trained(records: Tensor, labels: NDArray[np.int64], classes: int, *, epochs: int, seed: int) -> nn.Sequential:
    """Return a classifier, four convolutions for images and the hybrid for vectors.

    Rare classes of vectors weigh more in the loss, so that macro figures are not those of one class alone.
    """
    torch.manual_seed(seed)
    model = (four_convolutions if records.ndim == 4 else hybrid)(tuple(records.shape[1:]), classes)
    optimizer = torch.optim.Adam(model.parameters(), RATE)
    batches = max(1, len(records) // BATCH)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs * batches)
    codes, draw = torch.from_numpy(labels), torch.Generator().manual_seed(seed)
    weight = None
    if records.ndim == 2:
        counts = torch.bincount(codes, minlength=classes).clamp(min=1)
        weight = len(codes) / (classes * counts.float())
    model.train()
    for _ in range(epochs):
        for rows in torch.randperm(len(records), generator=draw).tensor_split(batches):
            if len(rows) < 2:
                continue
            optimizer.zero_grad()
            functional.cross_entropy(model(records[rows]), codes[rows], weight=weight).backward()
            optimizer.step()
            schedule.step()
    return model.eval()


def seen(model: nn.Module, records: Tensor) -> Tensor:
    """Return what a network makes of records, a batch at a time."""
    with torch.inference_mode():
        return torch.cat([model(part) for part in torch.split(records, 1000)])


def scores(model: nn.Sequential, records: Tensor, labels: NDArray[np.int64]) -> dict[str, float]:
    """Return accuracy and macro precision, recall and F1."""
    found = seen(model, records).argmax(1).numpy()
    precision, recall, f1, _ = precision_recall_fscore_support(labels, found, average="macro", zero_division=0)
    figures = {"accuracy": (found == labels).mean(), "precision": precision, "recall": recall, "f1": f1}
    return {name: round(float(figure), 4) for name, figure in figures.items()}


def pictures(
    oracle: nn.Sequential, made: Tensor, labels: NDArray[np.int64], real: Tensor, truth: NDArray[np.int64]
) -> dict[str, float | None]:
    """Return a classifier score and Fréchet distances, by a network trained on real training images.

    They are made as inception score and FID are, with that network in Inception's place, so that they stand beside no
    published figure. ``frechet`` is to real images of all labels together, ``frechet_by_label`` the mean over labels of
    the distance to real images of the same one; there is none where a label was made less than twice.
    """
    chances = torch.softmax(seen(oracle, made), 1).double().numpy()
    ours, theirs = (seen(oracle[:-1], part).double().numpy() for part in (made, real))
    kinds = np.unique(truth)
    apart = None
    if all((labels == kind).sum() > 1 for kind in kinds):
        apart = float(np.mean([frechet_distance(ours[labels == kind], theirs[truth == kind]) for kind in kinds]))
    return {
        "classifier_score": round(inception_score(chances), 3),
        "frechet": round(frechet_distance(ours, theirs), 3),
        "frechet_by_label": None if apart is None else round(apart, 3),
    }
