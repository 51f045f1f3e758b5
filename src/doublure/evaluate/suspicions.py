"""What may be wrong with artificial images, and how sure it is: shares of them, held against those of another run."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, TypeAlias

import numpy as np

from doublure.data.images import Images
from doublure.errors import printable
from doublure.evaluate.alterations import ALTERATIONS, alterations_of, looks
from doublure.evaluate.classification import Labels
from doublure.evaluate.divergence import nearest
from doublure.evaluate.extractors import pixels
from doublure.evaluate.students import predict
from doublure.figures import Interval, Result, wilson

MARGIN = 0.05
"""What two runs may differ by, in shares of images, before a difference counts."""

RARER = 0.5
"""A class is rarer if its share is below this part of the other run's."""

LEVEL = 1e-3
"""What p must be below, after Holm's correction for all suspicions."""

POINTED_AT = 0.1
"""Without another run, the share that is pointed at once the images surely pass it."""

ROUGH = 0.4
"""Where more of the other run's own images do not show what their label says, it is no measure for anybody's."""

_FLAT = 0.02
_SURE = 0.6
_UNUSUAL = 0.01
_LABEL = "label"

Mask: TypeAlias = "np.ndarray[Any, np.dtype[np.bool_]]"


class Suspicion(Result):
    """One way in which images can be wrong, and how many are.

    Attributes:
        key: A stable name for programs.
        clause: What these images do, after "some of the images".
        meaning: One sentence for a reader who meets it for the first time.
        share: Of the inspected images, those that are wrong in this way; for a class that may be too rare, its own.
        interval: Wilson's, 95 of 100, over the draw of images.
        reference: The same share of the other run; null without one.
        p: How surprising such a difference would be if it were within the margin, after Holm's correction; null without
            another run, or where that is too rough.
        found: Whether it stands out.
        classes: Label -> the share of its images; empty without labels.
    """

    key: str
    clause: str
    meaning: str
    share: float
    interval: Interval | None
    reference: float | None = None
    p: float | None = None
    found: bool
    classes: Mapping[str, float] = {}


@dataclass(frozen=True, kw_only=True)
class Inspected:
    """What is looked at, and what the students that look learn from; images and ``(N,)`` the class of each.

    Attributes:
        lesson: Images of the run that is known to be right, or of the same run if there is none.
        inspected: Others of the run that is inspected.
        reference: Others of the run that is known to be right.
        labels: The classes; none where there are no labels.
    """

    lesson: tuple[Images, Labels]
    inspected: tuple[Images, Labels]
    reference: tuple[Images, Labels] | None
    labels: tuple[str, ...]

    @property
    def seen(self) -> dict[str, tuple[Images, Labels]]:
        """The sets that are looked at, by name."""
        both = {"inspected": self.inspected, "reference": self.reference}
        return {name: each for name, each in both.items() if each is not None}


@dataclass(frozen=True, kw_only=True)
class _Sign:
    """Which images of each set show a sign."""

    clause: str
    meaning: str
    shown: Mapping[str, Mask]
    of_one_class: bool = False

    @property
    def surprise(self) -> float:
        """The p-value of: the other run shows as many, within the margin."""
        inspected, reference = self.shown["inspected"], self.shown["reference"]
        if self.of_one_class:
            return p_beyond(reference, inspected, part=RARER)
        return p_beyond(inspected, reference, margin=MARGIN)


def suspicions(sets: Inspected, seed: int) -> tuple[Suspicion, ...]:
    """Return every way in which the inspected images can be wrong, judged.

    Args:
        sets: The images.
        seed: Fixes the students' randomness.
    """
    signs = _altered(sets, seed) | _flat(sets) | _labelled(sets, seed) | _unlike(sets)
    found = tuple(_judged(key, sign, None, sets) for key, sign in signs.items())
    if sets.reference is None:
        return found
    if roughness(found) is not None:
        return tuple(each.model_copy(update={"found": False}) for each in found)
    corrected = holm({key: sign.surprise for key, sign in signs.items()})
    return tuple(_judged(key, sign, corrected[key], sets) for key, sign in signs.items())


def roughness(found: Iterable[Suspicion]) -> float | None:
    """Return how many images of the other run do not show what their label says, if too many to hold others against it.

    Two fits whose images look like nothing differ from each other in every way, whether or not something is wrong.
    """
    shares = [each.reference for each in found if each.key == _LABEL and each.reference is not None]
    return next((share for share in shares if share > ROUGH), None)


def _judged(key: str, sign: _Sign, p: float | None, sets: Inspected) -> Suspicion:
    shown, codes = sign.shown["inspected"], sets.inspected[1]
    interval = wilson(int(shown.sum()), len(shown))
    sure = interval is not None and interval[0] > POINTED_AT
    present = [code for code in range(len(sets.labels)) if np.any(codes == code)] if not sign.of_one_class else []
    return Suspicion(
        key=key,
        clause=sign.clause,
        meaning=sign.meaning,
        share=float(shown.mean()),
        interval=interval,
        reference=float(sign.shown["reference"].mean()) if sets.reference is not None else None,
        p=p,
        found=sure if p is None else p < LEVEL,
        classes={sets.labels[code]: float(shown[codes == code].mean()) for code in present},
    )


# -- signs -----------------------------------------------------------------------------------------------------------


def _altered(sets: Inspected, seed: int) -> dict[str, _Sign]:
    # Alone, images that look the same after an alteration would be called altered half of the time.
    least = 0.0 if sets.reference else _SURE
    looked = {
        name: np.where(each.max(1) > least, each.argmax(1), 0)
        for name, each in looks(*sets.lesson, sets.seen, seed).items()
    }
    return {
        name.replace(" ", "_"): _Sign(
            clause=f"look {name}",
            meaning=f"They look like the others after {ALTERATIONS[name].meaning}.",
            shown={each: chosen == code for each, chosen in looked.items()},
        )
        for code, name in enumerate(alterations_of(sets.lesson[0]), start=1)
    }


def _flat(sets: Inspected) -> dict[str, _Sign]:
    shown = {name: images.images.std(axis=(1, 2, 3)) < _FLAT * 255 for name, (images, _) in sets.seen.items()}
    return {"flat": _Sign(clause="are flat", meaning="They have one intensity, or nearly.", shown=shown)}


def _labelled(sets: Inspected, seed: int) -> dict[str, _Sign]:
    """Return what a student of the classes sees: labels that images do not show, and classes that are too rare."""
    lesson, codes = sets.lesson
    if len(np.unique(codes)) < 2:
        return {}
    told = {
        name: predict("cnn", lesson, codes, images, len(sets.labels), seed).argmax(1)
        for name, (images, _) in sets.seen.items()
    }
    found = {
        _LABEL: _Sign(
            clause="do not show what their label says",
            meaning="A student sees another class in them than their label's.",
            shown={name: told[name] != of for name, (_, of) in sets.seen.items()},
        )
    }
    if sets.reference is None:
        return found
    return found | {
        f"rare_{code}": _Sign(
            clause=f"are taken for {printable(label)}",
            meaning="A class that was lost: fewer than half as many as in the run held against.",
            shown={name: seen == code for name, seen in told.items()},
            of_one_class=True,
        )
        for code, label in enumerate(sets.labels)
    }


def _unlike(sets: Inspected) -> dict[str, _Sign]:
    if sets.reference is None:
        return {}
    see = pixels().see
    known = see(sets.lesson[0])
    distance = {name: nearest(known, see(images), 1)[0][:, 0] for name, (images, _) in sets.seen.items()}
    usual = np.quantile(distance["reference"], 1 - _UNUSUAL)
    return {
        "unlike": _Sign(
            clause="are unlike any",
            meaning="They are further from all images of the run held against than 99 in 100 of its own are.",
            shown={name: found > usual for name, found in distance.items()},
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
