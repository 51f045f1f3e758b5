"""Can synthetic images choose a model? Validation losses on synthetic and on real images (2019, §5.3).

Candidates that differ in their settings are trained on synthetic images. Each has a loss on other synthetic images,
which whoever holds a release can compute, and one on real images, which they cannot. Where both put the candidates in
the same order the release is enough to choose by.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from doublure.data.images import Images
from doublure.intervals import Result
from doublure.measures.classification import Labels
from doublure.measures.images.classifiers import ClassifierName, map_batches, train_network


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """Settings that somebody might choose among: Adam's learning rate, and epochs."""

    student: ClassifierName
    rate: float
    epochs: int


CANDIDATES = tuple(
    Candidate(student=student, rate=rate, epochs=epochs)
    for student in ("cnn", "mlp")
    for epochs in (1, 4)
    for rate in (3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2)
)
"""Fixed before any result was seen."""


class Losses(Result):
    """One candidate's mean cross-entropy in nats, on synthetic and on real images."""

    student: ClassifierName
    rate: float
    epochs: int
    artificial: float
    real: float


class Tuning(Result):
    """Computed on real data: internal.

    Attributes:
        losses: Each candidate's.
        correlation: Pearson's, of both losses, by classifier.
        lost: By classifier, how much worse than the best on real images the candidate is that synthetic ones choose, in
            nats.
    """

    losses: tuple[Losses, ...]
    correlation: dict[str, float | None]
    lost: dict[str, float]


def tune(
    training: tuple[Images, Labels],
    artificial: tuple[Images, Labels],
    real: tuple[Images, Labels],
    *,
    candidates: Sequence[Candidate] = CANDIDATES,
    seed: int = 0,
    done: Callable[[Losses], object] = lambda losses: None,
) -> Tuning:
    """Train every candidate, and compare its losses.

    Args:
        training: Synthetic images to learn from, and the class of each, 0 to K - 1.
        artificial: Other synthetic images, to validate on.
        real: Real images, to validate on.
        candidates: What is tried.
        seed: Fixes the classifiers' randomness.
        done: Called with each candidate's losses as they come.
    """
    found = []
    for candidate in candidates:
        model = train_network(candidate.student, *training, seed, rate=candidate.rate, epochs=candidate.epochs)
        both = (_loss(model, *validation) for validation in (artificial, real))
        losses = Losses(**vars(candidate), **dict(zip(("artificial", "real"), both, strict=True)))
        done(losses)
        found.append(losses)
    by_student = {each.student: [one for one in found if one.student == each.student] for each in found}
    return Tuning(
        losses=tuple(found),
        correlation={student: _correlation(entries) for student, entries in by_student.items()},
        lost={student: _lost(entries) for student, entries in by_student.items()},
    )


def _loss(model: Any, images: Images, classes: Labels) -> float:
    import torch

    known = map_batches(lambda batch: torch.log_softmax(model(batch), dim=1), images)
    missing = classes >= known.shape[1]  # a class that the training set lacks has no output, and no chance
    if missing.any():
        known = np.pad(known, [(0, 0), (0, int(classes.max()) + 1 - known.shape[1])], constant_values=-100.0)
    return float(-known[np.arange(len(classes)), classes].mean())


def _correlation(entries: Sequence[Losses]) -> float | None:
    pairs = np.array([(entry.artificial, entry.real) for entry in entries])
    if len(pairs) < 3 or np.ptp(pairs, axis=0).min() == 0:
        return None
    return float(np.corrcoef(pairs.T)[0, 1])


def _lost(entries: Sequence[Losses]) -> float:
    chosen = min(entries, key=lambda entry: entry.artificial)
    return chosen.real - min(entry.real for entry in entries)
