"""Fault tests of synthetic images: altered, blank, mislabelled, too few of a class, unusual and duplicated ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from doublure.data.images import Images
from doublure.errors import printable
from doublure.measures.classification import Labels
from doublure.measures.divergence import nearest
from doublure.measures.fault_tests import FaultStatistic, FaultTest, class_by_class, decide
from doublure.measures.images.alterations import ALTERATIONS, FEWEST, list_alterations, predict_alterations
from doublure.measures.images.classifiers import BATCH, cnn_flops, count_steps, predict_each
from doublure.measures.images.feature_extractors import pixels
from doublure.support.progress import Progress, SilentProgress

ROUGH = 0.4
"""Share of mislabelled images in a single correct run above which it cannot serve as a reference."""

_FLAT = 0.02
_SURE = 0.6
_UNUSUAL = 0.01
LABEL = "label"
"""Key of the fault test for images that do not show their label."""


@dataclass(frozen=True, kw_only=True)
class InspectionSets:
    """Inspected images, and those that the test classifiers learn from; each set with ``(N,)`` the class of each image.

    Attributes:
        training: Images of the first correct run, or of the inspected one if there is none.
        inspected: Other images of the inspected run.
        right: Other images of each correct run, the one that classifiers are trained on first.
        labels: The classes; empty without labels.
    """

    training: tuple[Images, Labels]
    inspected: tuple[Images, Labels]
    right: tuple[tuple[Images, Labels], ...]
    labels: tuple[str, ...]

    @property
    def seen(self) -> tuple[tuple[Images, Labels], ...]:
        """The tested sets: the inspected images first."""
        return (self.inspected, *self.right)


def run_fault_tests(sets: InspectionSets, seed: int, progress: Progress | None = None) -> tuple[FaultTest, ...]:
    """Return the fault tests of the inspected images, each with its decision.

    Args:
        sets: The images.
        seed: Fixes the classifiers' randomness.
        progress: Receives progress events.
    """
    signs = fault_statistics(sets, seed, progress)
    tested = bool(sets.right) and not (LABEL in signs and _rough(signs[LABEL].shares[1:]))
    return decide(signs, tested=tested, codes=sets.inspected[1], labels=sets.labels)


def fault_statistics(sets: InspectionSets, seed: int, progress: Progress | None = None) -> dict[str, FaultStatistic]:
    """Return the statistics by a stable name; beside several correct runs, those of each class too.

    Args:
        sets: The images.
        seed: Fixes the classifiers' randomness.
        progress: Receives progress events.
    """
    listener = progress or SilentProgress()
    shown = _altered(sets, seed, listener)
    learned = _labelled(sets, seed, listener)
    signs = shown | _flat(sets) | learned | _unlike(sets) | _alike(sets)
    if len(sets.right) < 2:
        return signs
    by_class = shown | {key: sign for key, sign in learned.items() if key == LABEL}
    return signs | class_by_class(by_class, [codes for _, codes in sets.seen], sets.labels)


def count_flops(shape: tuple[int, int, int], classes: int, images: int, right: int) -> tuple[float, int]:
    """Return the floating-point operations and the training steps of the fault tests.

    Args:
        shape: Height, width, channels.
        classes: Number of classes; 0 without labels.
        images: Images tested, of each run.
        right: Number of correct runs.
    """
    height, width, channels = shape
    total, steps = 0.0, 0
    training_sets = [(max(2 * images, FEWEST), channels + 1)] + ([(2 * images, channels)] if classes > 1 else [])
    for trained, seen in training_sets:
        each = cnn_flops((height, width, seen))
        steps += count_steps(trained)
        total += each * (3 * BATCH * count_steps(trained) + images * (right + 1))
    return total, steps


def roughness(found: Iterable[FaultTest]) -> float | None:
    """Return the share of mislabelled images in the only correct run, if too large for a reference.

    Two fits whose images show nothing differ in every respect, with or without a fault. Several correct runs would say
    by how much.
    """
    return next((each.references[0] for each in found if each.key == LABEL and _rough(each.references)), None)


def _rough(mislabelled: Sequence[float]) -> bool:
    return len(mislabelled) == 1 and mislabelled[0] > ROUGH


# -- statistics ------------------------------------------------------------------------------------------------------


def _altered(sets: InspectionSets, seed: int, progress: Progress) -> dict[str, FaultStatistic]:
    # In the same run alone, images unchanged by an alteration would be called altered half of the time.
    least = 0.0 if sets.right else _SURE
    looked = [
        np.where(each.max(1) > least, each.argmax(1), 0)
        for each in predict_alterations(*sets.training, sets.seen, max(len(sets.labels), 1), seed, progress)
    ]
    return {
        name.replace(" ", "_"): FaultStatistic(
            clause=f"look {name}",
            meaning=f"They look like the others after {ALTERATIONS[name].meaning}.",
            shown=[each == code for each in looked],
        )
        for code, name in enumerate(list_alterations(sets.training[0]), start=1)
    }


def _flat(sets: InspectionSets) -> dict[str, FaultStatistic]:
    shown = [images.images.std(axis=(1, 2, 3)) < _FLAT * 255 for images, _ in sets.seen]
    return {"flat": FaultStatistic(clause="are flat", meaning="They have one intensity, or nearly.", shown=shown)}


def _labelled(sets: InspectionSets, seed: int, progress: Progress) -> dict[str, FaultStatistic]:
    """Return the tests of labels by a classifier: images that do not show their label, and rare classes."""
    training, codes = sets.training
    if len(np.unique(codes)) < 2:
        return {}
    progress.stage("train a classifier of the classes", count_steps(len(training)))
    asked = [images for images, _ in sets.seen]
    chances = predict_each("cnn", training, codes, asked, len(sets.labels), seed, progress)
    told = [each.argmax(1) for each in chances]
    found = {
        LABEL: FaultStatistic(
            clause="do not show what their label says",
            meaning="A classifier predicts another class than their label.",
            shown=[seen != of for seen, (_, of) in zip(told, sets.seen, strict=True)],
            learned=True,
        )
    }
    if not sets.right:
        return found
    return found | {
        f"rare_{code}": FaultStatistic(
            clause=f"are classified as {printable(label)}",
            meaning="A lost class: fewer than in correct runs.",
            shown=[seen == code for seen in told],
            fewer=True,
            family="classes",
        )
        for code, label in enumerate(sets.labels)
    }


def _unlike(sets: InspectionSets) -> dict[str, FaultStatistic]:
    if not sets.right:
        return {}
    extract = pixels().extract
    known = extract(sets.training[0])
    distance = [nearest(known, extract(images), 1)[0][:, 0] for images, _ in sets.seen]
    usual = np.quantile(distance[1], 1 - _UNUSUAL)
    return {
        "unlike": FaultStatistic(
            clause="are unlike any",
            meaning="They are further from the training images than 99 in 100 of a correct run are.",
            shown=[found > usual for found in distance],
            learned=True,
        )
    }


def _alike(sets: InspectionSets) -> dict[str, FaultStatistic]:
    """Return the test for near duplicates within a set (of equal sizes: in a larger set the nearest is nearer)."""
    if min(len(images) for images, _ in sets.seen) < 2 or not sets.right:
        return {}
    extract = pixels().extract
    points = [extract(images) for images, _ in sets.seen]
    distance = [nearest(own, own, 2)[0][:, 1] for own in points]
    usual = np.quantile(distance[1], _UNUSUAL)
    return {
        "alike": FaultStatistic(
            clause="are nearly the same as another",
            meaning="They are nearer to another of their run than 99 in 100 of a correct run are: the fit collapsed.",
            shown=[found <= usual for found in distance],  # the distance of duplicates is 0
            learned=True,
        )
    }
