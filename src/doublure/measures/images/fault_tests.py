"""What may be wrong with synthetic images, and how sure it is: shares of them, held against those of other runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from doublure.data.images import Images
from doublure.errors import printable
from doublure.measures.classification import Labels
from doublure.measures.divergence import nearest
from doublure.measures.fault_tests import Evidence, FaultTest, judged
from doublure.measures.images.alterations import ALTERATIONS, FEWEST, alterations_of, predict_alterations
from doublure.measures.images.classifiers import BATCH, cnn_flops, predict_each, steps_of
from doublure.measures.images.feature_extractors import pixels
from doublure.support.progress import Progress, SilentProgress

ROUGH = 0.4
"""A single other run is no measure for anybody's images where more of its own do not show what their label says."""

_FLAT = 0.02
_SURE = 0.6
_UNUSUAL = 0.01
LABEL = "label"
"""The key of the fault test that images do not show what their label says."""


@dataclass(frozen=True, kw_only=True)
class Inspected:
    """What is tested, and what the classifiers that test it learn from; images and ``(N,)`` the class of each.

    Attributes:
        training: Images of the first run that is known to be right, or of the inspected one if there is none.
        inspected: Others of the run that is inspected.
        right: Others of each run that is known to be right, the one that classifiers are trained on first.
        labels: The classes; none where there are no labels.
    """

    training: tuple[Images, Labels]
    inspected: tuple[Images, Labels]
    right: tuple[tuple[Images, Labels], ...]
    labels: tuple[str, ...]

    @property
    def seen(self) -> tuple[tuple[Images, Labels], ...]:
        """What is looked at: the inspected images first."""
        return (self.inspected, *self.right)


def run_fault_tests(sets: Inspected, seed: int, progress: Progress | None = None) -> tuple[FaultTest, ...]:
    """Return the fault tests: every way in which the inspected images can be wrong, with its verdict.

    Args:
        sets: The images.
        seed: Fixes the classifiers' randomness.
        progress: Receives progress events.
    """
    listener = progress or SilentProgress()
    learned = _altered(sets, seed, listener) | _flat(sets) | _labelled(sets, seed, listener)
    signs = learned | _unlike(sets) | _alike(sets)
    tested = bool(sets.right) and not (LABEL in signs and _rough(signs[LABEL].shares[1:]))
    return judged(signs, tested=tested, codes=sets.inspected[1], labels=sets.labels)


def flops_of(shape: tuple[int, int, int], classes: int, images: int, right: int) -> tuple[float, int]:
    """Return what the fault tests compute and in how many steps of training.

    Args:
        shape: Height, width, channels.
        classes: How many; 0 without labels.
        images: Looked at, of each run.
        right: How many runs are known to be right.
    """
    height, width, channels = shape
    total, steps = 0.0, 0
    training_sets = [(max(2 * images, FEWEST), channels + 1)] + ([(2 * images, channels)] if classes > 1 else [])
    for trained, seen in training_sets:
        each = cnn_flops((height, width, seen))
        steps += steps_of(trained)
        total += each * (3 * BATCH * steps_of(trained) + images * (right + 1))
    return total, steps


def roughness(found: Iterable[FaultTest]) -> float | None:
    """Return how many images of the only other run do not show what their label says, if too many to test by it.

    Two fits whose images look like nothing differ from each other in every way, whether or not something is wrong;
    how much, several of them say.
    """
    return next((each.references[0] for each in found if each.key == LABEL and _rough(each.references)), None)


def _rough(mislabelled: Sequence[float]) -> bool:
    return len(mislabelled) == 1 and mislabelled[0] > ROUGH


# -- signs -----------------------------------------------------------------------------------------------------------


def _altered(sets: Inspected, seed: int, progress: Progress) -> dict[str, Evidence]:
    # Alone, images that look the same after an alteration would be called altered half of the time.
    least = 0.0 if sets.right else _SURE
    looked = [
        np.where(each.max(1) > least, each.argmax(1), 0)
        for each in predict_alterations(*sets.training, sets.seen, max(len(sets.labels), 1), seed, progress)
    ]
    return {
        name.replace(" ", "_"): Evidence(
            clause=f"look {name}",
            meaning=f"They look like the others after {ALTERATIONS[name].meaning}.",
            shown=[each == code for each in looked],
        )
        for code, name in enumerate(alterations_of(sets.training[0]), start=1)
    }


def _flat(sets: Inspected) -> dict[str, Evidence]:
    shown = [images.images.std(axis=(1, 2, 3)) < _FLAT * 255 for images, _ in sets.seen]
    return {"flat": Evidence(clause="are flat", meaning="They have one intensity, or nearly.", shown=shown)}


def _labelled(sets: Inspected, seed: int, progress: Progress) -> dict[str, Evidence]:
    """Return what a classifier of the classes sees: labels that images do not show, and classes that are too rare."""
    training, codes = sets.training
    if len(np.unique(codes)) < 2:
        return {}
    progress.stage("train a classifier of the classes", steps_of(len(training)))
    asked = [images for images, _ in sets.seen]
    chances = predict_each("cnn", training, codes, asked, len(sets.labels), seed, progress)
    told = [each.argmax(1) for each in chances]
    found = {
        LABEL: Evidence(
            clause="do not show what their label says",
            meaning="A classifier predicts another class than their label.",
            shown=[seen != of for seen, (_, of) in zip(told, sets.seen, strict=True)],
            learned=True,
        )
    }
    if not sets.right:
        return found
    return found | {
        f"rare_{code}": Evidence(
            clause=f"are classified as {printable(label)}",
            meaning="A lost class: fewer than half as many as in any reference run.",
            shown=[seen == code for seen in told],
            fewer=True,
        )
        for code, label in enumerate(sets.labels)
    }


def _unlike(sets: Inspected) -> dict[str, Evidence]:
    if not sets.right:
        return {}
    extract = pixels().extract
    known = extract(sets.training[0])
    distance = [nearest(known, extract(images), 1)[0][:, 0] for images, _ in sets.seen]
    usual = np.quantile(distance[1], 1 - _UNUSUAL)
    return {
        "unlike": Evidence(
            clause="are unlike any",
            meaning="They are further from the training images than 99 in 100 of a correct run are.",
            shown=[found > usual for found in distance],
            learned=True,
        )
    }


def _alike(sets: Inspected) -> dict[str, Evidence]:
    """Return which images have a near double in their own set (sets of one size: among more, the nearest is nearer)."""
    if min(len(images) for images, _ in sets.seen) < 2 or not sets.right:
        return {}
    extract = pixels().extract
    points = [extract(images) for images, _ in sets.seen]
    distance = [nearest(own, own, 2)[0][:, 1] for own in points]
    usual = np.quantile(distance[1], _UNUSUAL)
    return {
        "alike": Evidence(
            clause="are nearly the same as another",
            meaning="They are nearer to another of their run than 99 in 100 of a correct run are: the fit collapsed.",
            shown=[found <= usual for found in distance],  # of doubles it is 0
            learned=True,
        )
    }
