"""Accuracy of classifiers by the number of labelled synthetic images (Triastcyn & Faltings 2022, Figure 3)."""

from __future__ import annotations

from typing import Literal

import numpy as np

from doublure.data.images import Images
from doublure.data.opening import Given, open_data
from doublure.errors import DataError, SchemaError, SettingError, counted
from doublure.intervals import Interval, Result, wilson
from doublure.measures.images.averaging import averaged, averaging_note
from doublure.measures.images.classifiers import CLASSIFIERS, ClassifierName, learning_curve
from doublure.measures.images.feature_extractors import encode_labels
from doublure.results import INTERNAL, percent, span
from doublure.schema.images import LABEL, ImageSchema
from doublure.support.progress import Progress, SilentProgress

SIZES = (10, 30, 100, 300, 1000, 3000, 10_000, 30_000)
"""Numbers of labels tried, besides all available ones."""

_FEWEST = 20


class AccuracyEstimate(Result):
    """Accuracy of one trained classifier.

    Attributes:
        value: Share of real test images classified correctly.
        interval: Wilson's 95 % interval over the real test images.
    """

    value: float
    interval: Interval | None


class CurvePoint(Result):
    """One number of labels.

    Attributes:
        labels: Number of training images.
        artificial: A classifier trained on the labelled synthetic images.
        real: A classifier trained on the same number of real ones; null where there are fewer.
    """

    labels: int
    artificial: AccuracyEstimate
    real: AccuracyEstimate | None = None


class LabelCurve(Result):
    """Accuracy on real images by the number of labels. Computed on real data: internal.

    Attributes:
        classifier: The classifier trained.
        tested: Number of real test images.
        points: By number of labels.
        notes: What to know of the figures.
    """

    version: Literal[1] = 1
    internal: str = INTERNAL
    classifier: ClassifierName
    tested: int
    points: tuple[CurvePoint, ...]
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        said = [f"INTERNAL: {INTERNAL}", f"{'labels':>8}  {'synthetic':>22}  {'real':>22}"]
        said += [f"{each.labels:>8,}  {_write(each.artificial):>22}  {_write(each.real):>22}" for each in self.points]
        tested = counted(self.tested, "real image")
        whom = f"A {CLASSIFIERS[self.classifier]} trained on so many images, tested on {tested}"
        return "\n".join([*said, f"{whom}; 95 % intervals.", *self.notes])


def _accuracy(share: float, tested: int) -> AccuracyEstimate:
    return AccuracyEstimate(value=share, interval=wilson(round(share * tested), tested))


def _write(found: AccuracyEstimate | None) -> str:
    if found is None:
        return "–"
    return percent(found.value) + ("" if found.interval is None else f" ({span(found.interval, shares=True)})")


def find_classifier(name: str) -> ClassifierName:
    """Return a classifier by name.

    Raises:
        SettingError: There is none.
    """
    found: ClassifierName | None = next((each for each in CLASSIFIERS if each == name), None)
    if found is None:
        raise SettingError("is none that is known", field="classifier", remedy=f"use one of: {', '.join(CLASSIFIERS)}")
    return found


def label_curve(
    training: Images,
    schema: ImageSchema,
    real: Given,
    *,
    classifier: ClassifierName = "cnn",
    seed: int = 0,
    progress: Progress | None = None,
) -> LabelCurve:
    """Train classifiers on growing numbers of labelled synthetic images, and on as many real ones.

    Args:
        training: Synthetic images with their returned labels (:func:`doublure.releasing.labelling.read_back`).
        schema: Their shape and classes.
        real: Labelled real images; a random half of them tests, the other half trains for comparison.
        classifier: The classifier to train.
        seed: Fixes the halves, the order of the training images, and the classifiers' own randomness.
        progress: Receives progress events.

    Raises:
        SchemaError: The schema lists no classes.
        InputError: The real images do not fit the schema, or are too few.
    """
    if schema.label is None:
        remedy = "give a schema that lists them"
        raise SchemaError("lists no classes that a classifier could be tested on", field=LABEL, remedy=remedy)
    listener = progress or SilentProgress()
    listener.stage("read the real images")
    content = open_data(real, schema.kind).load(schema).content
    if len(content) < _FEWEST:
        raise DataError("has too few images", field="the real data", remedy=f"give at least {_FEWEST}")
    rng = np.random.default_rng(seed)
    training, known = (averaged(each.take(rng.permutation(len(each)))) for each in (training, content))
    own, test = known.take(slice(len(known) // 2)), known.take(slice(len(known) // 2, None))
    truth = encode_labels(schema, test)
    sizes = (*SIZES, len(training))
    found = []
    for name, trained in (("synthetic", training), ("real", own)):
        listener.stage(f"train on {name} images")
        found.append(learning_curve(classifier, trained, encode_labels(schema, trained), test, truth, sizes, seed))
    artificial, beside = ({size: _accuracy(share, len(test)) for size, share in each.items()} for each in found)
    points = (CurvePoint(labels=size, artificial=own, real=beside.get(size)) for size, own in artificial.items())
    notes = averaging_note(content)
    return LabelCurve(classifier=classifier, tested=len(test), points=tuple(points), notes=notes)
