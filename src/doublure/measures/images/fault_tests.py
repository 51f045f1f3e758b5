"""What may be wrong with synthetic images, and how sure it is: shares of them, held against those of other runs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist, mean, stdev
from typing import Any, TypeAlias

import numpy as np

from doublure.data.images import Images
from doublure.errors import printable
from doublure.intervals import Interval, Result, wilson
from doublure.measures.classification import Labels
from doublure.measures.divergence import nearest
from doublure.measures.images.alterations import ALTERATIONS, alterations_of, predict_alterations
from doublure.measures.images.classifiers import predict_each, steps_of
from doublure.measures.images.feature_extractors import pixels
from doublure.support.progress import Progress, Silent

MARGIN = 0.05
"""What two runs may differ by, in shares of images, before a difference counts."""

RARER = 0.5
"""A class is rarer if its share is below this part of another run's."""

LEVEL = 1e-3
"""What p must be below, after Holm's correction for all fault tests."""

POINTED_AT = 0.1
"""Without another run, the share that is pointed at once the images surely pass it."""

ROUGH = 0.4
"""A single other run is no measure for anybody's images where more of its own do not show what their label says."""

USUAL = 0.99
"""Of right runs, how many lie where several of them say that right runs lie, if their shares spread normally."""

_FLAT = 0.02
_SURE = 0.6
_UNUSUAL = 0.01
LABEL = "label"
"""The key of the fault test that images do not show what their label says."""

Mask: TypeAlias = "np.ndarray[Any, np.dtype[np.bool_]]"


class FaultTest(Result):
    """One way in which images can be wrong, and how many are.

    Attributes:
        key: A stable name for programs.
        clause: What these images do, after "some of the images".
        meaning: One sentence for a reader who meets it for the first time.
        share: Of the inspected images, those that are wrong in this way; for a class that may be too rare, its own.
        fewer: Whether fewer than usual would be wrong, as of a class; otherwise more.
        interval: Wilson's, 95 of 100, over the draw of images.
        references: The same shares of the runs that are known to be right.
        reference: The worst of these; null without one.
        usual: How far 99 in 100 right runs would go, as several say; null where there is one or none.
        p: How surprising such a difference would be if it were within the margin, after Holm's correction; null without
            another run, or where a single one is too rough.
        found: Whether it stands out.
        classes: Label -> the share of its images; empty without labels.
    """

    key: str
    clause: str
    meaning: str
    share: float
    fewer: bool = False
    interval: Interval | None
    references: tuple[float, ...] = ()
    reference: float | None = None
    usual: float | None = None
    p: float | None = None
    found: bool
    classes: Mapping[str, float] = {}

    @property
    def open(self) -> bool:
        """Whether it would stand out, if right runs did not differ so much, or more of them said what is usual."""
        return self.p is not None and self.p < LEVEL and not self.found


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


@dataclass(frozen=True, kw_only=True)
class _Evidence:
    """Which images of each set that is looked at show a sign."""

    clause: str
    meaning: str
    shown: Sequence[Mask]
    fewer: bool = False
    learned: bool = False  # of images like the first right run's, whose own look better for it

    @cached_property
    def shares(self) -> tuple[float, ...]:
        """The share of each set."""
        return tuple(float(each.mean()) for each in self.shown)

    @property
    def worst(self) -> int:
        """Which set, of those of right runs, looks most as if it were wrong."""
        places = range(1, len(self.shown))
        return (min if self.fewer else max)(places, key=lambda place: self.shares[place])

    @property
    def surprise(self) -> float:
        """The p-value of: the worst right run shows as many, within the margin."""
        inspected, right = self.shown[0], self.shown[self.worst]
        if self.fewer:
            return p_beyond(right, inspected, part=RARER)
        return p_beyond(inspected, right, margin=MARGIN)

    @cached_property
    def usual(self) -> float | None:
        """How far right runs go: the end of a normal prediction interval for one more of them."""
        from scipy.stats import t as student_t

        right = self.shares[1:]
        if len(right) < 2:
            return None
        if self.learned and len(right) > 2:
            right = right[1:]
        reach = float(student_t.ppf(USUAL, len(right) - 1)) * stdev(right) * math.sqrt(1 + 1 / len(right))
        return max(0.0, mean(right) - reach) if self.fewer else min(1.0, mean(right) + reach)

    @property
    def unusual(self) -> bool:
        """Whether the inspected run goes further than that; of a single right run it is not known."""
        if self.usual is None:
            return True
        return self.shares[0] < self.usual if self.fewer else self.shares[0] > self.usual


def run_fault_tests(sets: Inspected, seed: int, progress: Progress | None = None) -> tuple[FaultTest, ...]:
    """Return the fault tests: every way in which the inspected images can be wrong, with its verdict.

    Args:
        sets: The images.
        seed: Fixes the classifiers' randomness.
        progress: Receives progress events.
    """
    listener = progress or Silent()
    learned = _altered(sets, seed, listener) | _flat(sets) | _labelled(sets, seed, listener)
    signs = learned | _unlike(sets) | _alike(sets)
    tested = bool(sets.right) and not (LABEL in signs and _rough(signs[LABEL].shares[1:]))
    corrected = holm({key: sign.surprise for key, sign in signs.items()}) if tested else {}
    return tuple(_judged(key, sign, corrected.get(key), sets) for key, sign in signs.items())


def roughness(found: Iterable[FaultTest]) -> float | None:
    """Return how many images of the only other run do not show what their label says, if too many to test by it.

    Two fits whose images look like nothing differ from each other in every way, whether or not something is wrong;
    how much, several of them say.
    """
    return next((each.references[0] for each in found if each.key == LABEL and _rough(each.references)), None)


def _rough(mislabelled: Sequence[float]) -> bool:
    return len(mislabelled) == 1 and mislabelled[0] > ROUGH


def _judged(key: str, sign: _Evidence, p: float | None, sets: Inspected) -> FaultTest:
    shown, codes = sign.shown[0], sets.inspected[1]
    interval = wilson(int(shown.sum()), len(shown))
    pointed_at = not sets.right and interval is not None and interval[0] > POINTED_AT
    present = [code for code in range(len(sets.labels)) if np.any(codes == code)] if not sign.fewer else []
    return FaultTest(
        key=key,
        clause=sign.clause,
        meaning=sign.meaning,
        share=sign.shares[0],
        fewer=sign.fewer,
        interval=interval,
        references=sign.shares[1:],
        reference=sign.shares[sign.worst] if sets.right else None,
        usual=sign.usual,
        p=p,
        found=pointed_at if p is None else p < LEVEL and sign.unusual,
        classes={sets.labels[code]: float(shown[codes == code].mean()) for code in present},
    )


# -- signs -----------------------------------------------------------------------------------------------------------


def _altered(sets: Inspected, seed: int, progress: Progress) -> dict[str, _Evidence]:
    # Alone, images that look the same after an alteration would be called altered half of the time.
    least = 0.0 if sets.right else _SURE
    looked = [
        np.where(each.max(1) > least, each.argmax(1), 0)
        for each in predict_alterations(*sets.training, sets.seen, max(len(sets.labels), 1), seed, progress)
    ]
    return {
        name.replace(" ", "_"): _Evidence(
            clause=f"look {name}",
            meaning=f"They look like the others after {ALTERATIONS[name].meaning}.",
            shown=[each == code for each in looked],
        )
        for code, name in enumerate(alterations_of(sets.training[0]), start=1)
    }


def _flat(sets: Inspected) -> dict[str, _Evidence]:
    shown = [images.images.std(axis=(1, 2, 3)) < _FLAT * 255 for images, _ in sets.seen]
    return {"flat": _Evidence(clause="are flat", meaning="They have one intensity, or nearly.", shown=shown)}


def _labelled(sets: Inspected, seed: int, progress: Progress) -> dict[str, _Evidence]:
    """Return what a classifier of the classes sees: labels that images do not show, and classes that are too rare."""
    training, codes = sets.training
    if len(np.unique(codes)) < 2:
        return {}
    progress.stage("train a classifier of the classes", steps_of(len(training)))
    asked = [images for images, _ in sets.seen]
    chances = predict_each("cnn", training, codes, asked, len(sets.labels), seed, progress)
    told = [each.argmax(1) for each in chances]
    found = {
        LABEL: _Evidence(
            clause="do not show what their label says",
            meaning="A classifier predicts another class than their label.",
            shown=[seen != of for seen, (_, of) in zip(told, sets.seen, strict=True)],
            learned=True,
        )
    }
    if not sets.right:
        return found
    return found | {
        f"rare_{code}": _Evidence(
            clause=f"are classified as {printable(label)}",
            meaning="A lost class: fewer than half as many as in any reference run.",
            shown=[seen == code for seen in told],
            fewer=True,
        )
        for code, label in enumerate(sets.labels)
    }


def _unlike(sets: Inspected) -> dict[str, _Evidence]:
    if not sets.right:
        return {}
    extract = pixels().extract
    known = extract(sets.training[0])
    distance = [nearest(known, extract(images), 1)[0][:, 0] for images, _ in sets.seen]
    usual = np.quantile(distance[1], 1 - _UNUSUAL)
    return {
        "unlike": _Evidence(
            clause="are unlike any",
            meaning="They are further from the training images than 99 in 100 of a correct run are.",
            shown=[found > usual for found in distance],
            learned=True,
        )
    }


def _alike(sets: Inspected) -> dict[str, _Evidence]:
    """Return which images have a near double in their own set (sets of one size: among more, the nearest is nearer)."""
    if min(len(images) for images, _ in sets.seen) < 2 or not sets.right:
        return {}
    extract = pixels().extract
    points = [extract(images) for images, _ in sets.seen]
    distance = [nearest(own, own, 2)[0][:, 1] for own in points]
    usual = np.quantile(distance[1], _UNUSUAL)
    return {
        "alike": _Evidence(
            clause="are nearly the same as another",
            meaning="They are nearer to another of their run than 99 in 100 of a correct run are: the fit collapsed.",
            shown=[found <= usual for found in distance],  # of doubles it is 0
            learned=True,
        )
    }


# -- how sure it is --------------------------------------------------------------------------------------------------


def p_beyond(more: Mask, fewer: Mask, *, margin: float = 0.0, part: float = 1.0) -> float:
    """Return the p-value of: ``part`` of the first share is no more than the second share and a margin.

    Args:
        more: ``(N,)`` whether each is of the kind that is counted.
        fewer: ``(M,)`` likewise, of others.
        margin: In shares.
        part: Of the first share.

    References:
        Agresti & Caffo (2000), Simple and effective confidence intervals for proportions and differences of
        proportions: Wald's test after adding a success and a failure to each sample.

    Example:
        >>> quarter, none = np.arange(1000) < 250, np.zeros(1000, dtype=bool)
        >>> p_beyond(quarter, none, margin=0.05) < 1e-9, p_beyond(none, quarter, margin=0.05) > 0.999
        (True, True)
    """
    first, second = (float(each.sum() + 1) / (len(each) + 2) for each in (more, fewer))
    variance = part**2 * first * (1 - first) / (len(more) + 2) + second * (1 - second) / (len(fewer) + 2)
    # The far tail of a difference from 1 would be 0.
    return NormalDist().cdf(-(part * first - second - margin) / math.sqrt(variance))


def holm(found: Mapping[str, float]) -> dict[str, float]:
    """Return p-values corrected for their number.

    References:
        Holm (1979), A simple sequentially rejective multiple test procedure.

    Example:
        >>> holm({"one": 0.01, "two": 0.03, "three": 0.02})
        {'one': 0.03, 'three': 0.04, 'two': 0.04}
    """
    corrected, largest = {}, 0.0
    for place, key in enumerate(sorted(found, key=lambda each: found[each])):
        largest = max(largest, min(1.0, (len(found) - place) * found[key]))
        corrected[key] = largest
    return corrected
