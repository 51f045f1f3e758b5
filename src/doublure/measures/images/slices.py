"""Classes of inspected images: share and brightness of each, beside the correct runs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from doublure.data.images import Images
from doublure.intervals import Result
from doublure.measures.classification import Labels
from doublure.measures.images.fault_tests import InspectionSets


class ClassSlice(Result):
    """The images of one class.

    Attributes:
        label: The class.
        share: Share of the inspected images with this label.
        reference: The same of the correct runs.
        brightness: Mean intensity, as a share of full intensity.
        reference_brightness: The same of the correct runs.
    """

    label: str
    share: float
    reference: float | None = None
    brightness: float | None = None
    reference_brightness: float | None = None


def slices(sets: InspectionSets) -> tuple[ClassSlice, ...]:
    """Return the classes of inspected images; none where there are no labels."""
    return tuple(_slice(sets, code, label) for code, label in enumerate(sets.labels))


def _slice(sets: InspectionSets, code: int, label: str) -> ClassSlice:
    share, brightness = _of_class([sets.inspected], code)
    reference, reference_brightness = _of_class(sets.right, code)
    return ClassSlice(
        label=label,
        share=share or 0.0,
        reference=reference,
        brightness=brightness,
        reference_brightness=reference_brightness,
    )


def _of_class(sets: Sequence[tuple[Images, Labels]], code: int) -> tuple[float | None, float | None]:
    """Return a class's share in some sets together, and the mean brightness of its images."""
    if not sets:
        return None, None
    which = np.concatenate([codes == code for _, codes in sets])
    own = np.concatenate([images.images[codes == code] for images, codes in sets])
    return float(which.mean()), float(own.mean() / 255) if len(own) else None
