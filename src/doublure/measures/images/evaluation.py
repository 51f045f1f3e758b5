"""Evaluation of synthetic images: class balance, pixels, and accuracy of downstream classifiers on real images.

Every figure has two references. *Class means* draws each pixel independently around its class's mean, with its class's
spread: right averages, no correlation between pixels. *Real* is the best to hope for: other real images for distances,
classifiers trained on real images for prediction. All of it is computed on real data: internal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field
from typing_extensions import override

from doublure.data.images import Images
from doublure.data.images.sheets import contact_sheet, examples, png, rows_of
from doublure.errors import printable
from doublure.intervals import Result
from doublure.measures.classification import Labels
from doublure.measures.divergence import nearest
from doublure.measures.evaluation import Evaluation
from doublure.measures.holdout import seen_note, seen_warning, split_real
from doublure.measures.images.attributes import attribute_scores, say_attributes
from doublure.measures.images.averaging import all_averaged, averaged, averaging_note
from doublure.measures.images.classifiers import (
    CLASSIFIERS,
    COSTS,
    EPOCHS,
    LEAST_STEPS,
    USUAL,
    ClassifierName,
    image_classifier,
    predict,
)
from doublure.measures.images.distribution_metrics import resemblance
from doublure.measures.images.feature_extractors import CLASSIFIER_OF_REAL, Extractor, encode_labels, pixels
from doublure.measures.images.texture import texture
from doublure.measures.influence import share_influence
from doublure.measures.registry import add_registered
from doublure.measures.resampling import Resamples
from doublure.measures.scores import Score, distance_score, interval, rate_score
from doublure.measures.tables.relations import RelatedPair
from doublure.results import Verdict, percent, versions
from doublure.schema.images import ImageSchema
from doublure.support.progress import Progress, SilentProgress

MOST_IMAGES = 5_000
"""Most images that a classifier is trained or tested on; of more, a uniform sample is used."""

_NOT_PRIVATE = "Those means are exact, of real images: no private method has them, and they must not be published."
_FEWEST_IMAGES = 20
_BESIDE = 20
_FLAT = 1e-6
_LOST = 0.01
_SLIGHT = 0.005
_MUCH_MORE = 1.25
_ROLES: tuple[Literal["value"], Literal["baseline"], Literal["real"]] = ("value", "baseline", "real")


class ClassifierScore(Result):
    """One classifier's accuracy on real test images after training on synthetic ones, and on the reference sets."""

    classifier: ClassifierName
    name: str
    accuracy: Score


class ClassShare(Result):
    """One class's share of synthetic images, beside that of real ones."""

    label: str
    share: Score


class ImageEvaluation(Evaluation):
    """All measurements of a set of images. Computed on real data: internal.

    Attributes:
        classifiers: Train on synthetic, test on real; empty where ``classifiers_skipped`` says why.
        classes: The classes; empty without labels.
        pixels: Distances of the mean image and of the spread, in shares of full intensity; the mean over classes.
        texture: Change from pixel to pixel: a checkerboard, and the spread inside blocks of 2 x 2.
        attributes: Distance of each two of label and attributes; empty without attributes.
        marginals: Distance of each attribute.
        associations: What clearly depends on one another in real images, what loses most first.
        resemblance: Similarity in the requested features, by default those of a classifier trained on real images;
            empty where none was trained.
        trained: Number of images that the classifiers were trained and tested on, by set.
        artificial_sheet: A contact sheet of synthetic images (PNG), for the page alone.
        real_sheet: The same of real images. Private.
        neighbours_sheet: Synthetic images, each with its nearest real one. Private.
    """

    kind: ClassVar[str] = "images"

    classifiers: tuple[ClassifierScore, ...]
    classifiers_skipped: str | None
    classes: tuple[ClassShare, ...]
    pixels: tuple[Score, ...]
    texture: tuple[Score, ...] = ()
    attributes: tuple[Score, ...] = ()
    marginals: tuple[Score, ...] = ()
    associations: tuple[RelatedPair, ...] = ()
    resemblance: tuple[Score, ...] = ()
    trained: Mapping[Literal["synthetic", "real", "test"], int]
    artificial_sheet: bytes = Field(default=b"", exclude=True, repr=False)
    real_sheet: bytes = Field(default=b"", exclude=True, repr=False)
    neighbours_sheet: bytes = Field(default=b"", exclude=True, repr=False)

    @property
    def scores(self) -> tuple[Score, ...]:
        """The headline figures: classifiers first, then distances."""
        return (
            *(entry.accuracy for entry in self.classifiers),
            *self.pixels,
            *self.texture,
            *self.attributes,
            *self.marginals,
            *self.added,
        )

    @property
    @override
    def verdict(self) -> Verdict:
        return _verdict(self)


@dataclass(frozen=True, kw_only=True)
class _Sets:
    """The compared images, and the class of each; one class where there are no labels."""

    images: Mapping[str, Images]
    classes: Mapping[str, Labels]
    labels: tuple[str, ...]

    @property
    def enough(self) -> bool:
        """Whether every set has enough images for a statement on its content."""
        return min(map(len, self.images.values())) >= _FEWEST_IMAGES


def evaluate_images(
    schema: ImageSchema,
    synthetic: Images,
    train: Images,
    holdout: Images | None = None,
    *,
    unit: np.ndarray[Any, np.dtype[np.int64]] | None = None,
    classifiers: Sequence[ClassifierName] = USUAL,
    extractor: Extractor | None = None,
    seed: int = 0,
    progress: Progress | None = None,
    resamples: Resamples | None = None,
) -> ImageEvaluation:
    """Compare synthetic images with real ones.

    Args:
        schema: Their shape and classes.
        synthetic: Synthetic images.
        train: The real images the synthesizer was fitted on.
        holdout: Real images kept aside. Without them a fixed quarter of ``train`` takes their place (and leaves
            ``train``); the notes say so, as the fit has seen them.
        unit: ``(N,)`` the unit of each image of ``train``, so that a unit's images stay together in the split.
        classifiers: The classifiers to train.
        extractor: The features that sets of images are compared in; those of a classifier trained on real images if not
            given.
        seed: Fixes every random choice made here.
        progress: Receives progress events.
        resamples: Receives resampled figures, for a comparison of several runs; its own if not given.

    Raises:
        DataError: There are too few images.
    """
    rng = np.random.default_rng(seed)
    synthetic, train, holdout = synthetic.in_bytes, train.in_bytes, None if holdout is None else holdout.in_bytes
    both = split_real(train, holdout, unit, rng, field="the real set", records="images")
    real, test = both.train, both.test
    baseline = class_means(schema, real, len(synthetic), rng)
    sets = _coded(schema, {"value": synthetic, "baseline": baseline, "real": real, "test": test})
    training_sets = {name: rng.permutation(len(images))[:MOST_IMAGES] for name, images in sets.images.items()}
    skipped, small = _skipped(schema, sets), replace(sets, images=all_averaged(sets.images))
    trained = {"synthetic": training_sets["value"], "real": training_sets["real"], "test": training_sets["test"]}
    listener, asked = progress or SilentProgress(), () if skipped else tuple(classifiers)
    kept = resamples or Resamples(seed=seed)
    if asked:
        listener.stage("train classifiers", _cost(asked))
    scores = tuple(
        _train(classifier, small, training_sets, seed, listener, _cost(asked[:place]), kept)
        for place, classifier in enumerate(asked)
    )
    listener.at(_cost(asked))
    listener.stage("compare images")
    beside, marginals, associations = attribute_scores(schema, {"value": synthetic, "real": real, "test": test})
    found = ImageEvaluation(
        seed=seed,
        rows=both.rows(len(synthetic)),
        classifiers=scores,
        classifiers_skipped=skipped,
        classes=() if schema.label is None else _balance(sets),
        pixels=_pixels(sets, kept),
        texture=texture({"value": synthetic, "baseline": baseline, "real": test}, kept),
        attributes=beside,
        marginals=marginals,
        associations=associations,
        resemblance=_resemblance(
            sets if extractor is not None and extractor.resizes else small,
            training_sets,
            extractor,
            seed,
            labelled=skipped is None,
        ),
        trained={} if skipped else {name: len(rows) for name, rows in trained.items()},
        notes=(*_notes(both.kept_aside), *averaging_note(train)),
        versions=versions(),
        artificial_sheet=_sheet(synthetic, schema, "Synthetic images"),
        real_sheet=_sheet(real, schema, "REAL images: private, do not publish"),
        neighbours_sheet=_neighbours(synthetic, real, schema),
    )
    return add_registered(found, schema, sets.images)


def class_means(schema: ImageSchema, real: Images, n: int, rng: np.random.Generator) -> Images:
    """Return the baseline: each pixel drawn independently from its class's mean and spread, with real class shares.

    Args:
        schema: The classes.
        real: Real images.
        n: Number of images to draw.
        rng: Draws them.
    """
    drawn = np.sort(rng.choice(len(real), n))
    codes = encode_labels(schema, real)
    pixels = np.empty((n, *real.images.shape[1:]), dtype=np.uint8)
    for code in np.unique(codes[drawn]):
        of_class = real.images[codes == code].astype(np.float32)
        rows = np.flatnonzero(codes[drawn] == code)
        noise = rng.standard_normal((len(rows), *pixels.shape[1:]), dtype=np.float32)
        pixels[rows] = np.clip(np.rint(of_class.mean(0) + of_class.std(0) * noise), 0, 255)
    labels = None if real.labels is None else real.labels.iloc[drawn].reset_index(drop=True)
    return Images(images=pixels, labels=labels)


def _coded(schema: ImageSchema, images: Mapping[str, Images]) -> _Sets:
    labels = ("",) if schema.label is None else tuple(str(value) for value in schema.label.domain)
    classes = {name: encode_labels(schema, each) for name, each in images.items()}
    return _Sets(images=images, classes=classes, labels=labels)


# -- classifiers -----------------------------------------------------------------------------------------------------


def _skipped(schema: ImageSchema, sets: _Sets) -> str | None:
    if not sets.enough:
        return f"No classifier was trained and no features were compared: a set has fewer than {_FEWEST_IMAGES} images."
    if schema.label is None:
        return "The schema names no label, so no classifier was trained."
    if len(np.unique(sets.classes["real"])) < 2:
        return "No classifier was trained: all real images have the same label."
    return None


def _cost(classifiers: Sequence[ClassifierName]) -> int:
    """Return what it costs to train classifiers, in all roles."""
    return len(_ROLES) * sum(COSTS[each] for each in classifiers)


def _train(
    classifier: ClassifierName,
    sets: _Sets,
    training_sets: Mapping[str, Labels],
    seed: int,
    progress: Progress,
    before: int,
    resamples: Resamples,
) -> ClassifierScore:
    test, truth = sets.images["test"].take(training_sets["test"]), sets.classes["test"][training_sets["test"]]
    right: dict[str, int] = {}
    name = CLASSIFIERS[classifier].capitalize()
    for number, role in enumerate(_ROLES):
        progress.at(before + number * COSTS[classifier])
        rows = training_sets[role]
        training, classes = sets.images[role].take(rows), sets.classes[role][rows]
        chances = predict(classifier, training, classes, test, len(sets.labels), seed)
        hits = chances.argmax(axis=1) == truth
        right[role] = int(hits.sum())
        resamples.add(f"accuracy {name}", role, float(hits.mean()), {"test of target": share_influence(hits)})
    meaning = f"Accuracy of a {CLASSIFIERS[classifier]} on real test images."
    accuracy = rate_score("accuracy", name, right, len(truth), meaning)
    return ClassifierScore(classifier=classifier, name=CLASSIFIERS[classifier], accuracy=accuracy)


# -- distances -------------------------------------------------------------------------------------------------------


def _balance(sets: _Sets) -> tuple[ClassShare, ...]:
    shares = {name: np.bincount(codes, minlength=len(sets.labels)) / len(codes) for name, codes in sets.classes.items()}
    return tuple(
        ClassShare(
            label=label,
            share=Score(
                key="share",
                name="share",
                value=float(shares["value"][code]),
                goal="near",
                range=(0.0, 1.0),
                real=float(shares["real"][code]),
            ),
        )
        for code, label in enumerate(sets.labels)
    )


def _pixels(sets: _Sets, resamples: Resamples) -> tuple[Score, ...]:
    described = {
        "pixel_mean": ("Mean image", "How far a pixel’s mean is off, of full intensity; mean over classes.", 0),
        "pixel_spread": ("Spread", "How far a pixel’s standard deviation is off, likewise.", 1),
    }
    moments = {name: _moments(sets, name) for name in sets.images}
    scores = []
    for key, (name, meaning, which) in described.items():
        places = {"value": "value", "baseline": "baseline", "real": "test"}
        found = {role: _distance(moments["real"], moments[place], which) for role, place in places.items()}
        influence = _of_moments(sets, moments, which)
        resamples.add(key, "value", found["value"], influence)
        scores.append(resamples.sure(distance_score(key, name, found, meaning)))
    return tuple(scores)


def _of_moments(sets: _Sets, moments: Mapping[str, dict[int, tuple[Any, Any]]], which: int) -> dict[str, Any]:
    """Return the influence of each image on the distance of means (0) or of spreads (1), mean over classes."""
    classes = [code for code in moments["real"] if code in moments["value"]]
    found = {}
    for rows, place, way in (("train", "real", 1.0), ("value", "value", -1.0)):
        images, codes = sets.images[place].images, sets.classes[place]
        found[rows] = np.zeros(len(images))
        for code in classes:
            own = np.flatnonzero(codes == code)
            mean, spread = moments[place][code]
            sign = way * np.sign(moments["real"][code][which] - moments["value"][code][which])
            for first in range(0, len(own), MOST_IMAGES):
                some = own[first : first + MOST_IMAGES]
                apart = images[some].astype(np.float32) / 255 - mean
                moved = apart if which == 0 else (apart**2 - spread**2) / (2 * np.maximum(spread, _FLAT))
                found[rows][some] = (moved * sign).mean(axis=(1, 2, 3)) * len(images) / len(own) / len(classes)
    return found


def _moments(sets: _Sets, name: str) -> dict[int, tuple[Any, Any]]:
    images, codes = sets.images[name].images, sets.classes[name]
    found = {}
    for code in np.unique(codes):
        of_class = images[codes == code].astype(np.float32) / 255
        found[int(code)] = (of_class.mean(0), of_class.std(0))
    return found


def _distance(real: Mapping[int, Any], other: Mapping[int, Any], which: int) -> float | None:
    both = [float(np.abs(real[code][which] - other[code][which]).mean()) for code in real if code in other]
    return float(np.mean(both)) if both else None


def _resemblance(
    sets: _Sets, training_sets: Mapping[str, Labels], extractor: Extractor | None, seed: int, *, labelled: bool
) -> tuple[Score, ...]:
    picked = {name: images.take(training_sets[name]) for name, images in sets.images.items()}
    if not labelled:
        return () if extractor is None or not sets.enough else resemblance(extractor, picked)
    half = len(picked["real"]) // 2
    codes = sets.classes["real"][training_sets["real"]]
    # One half is the training set, so that the other is as new to the classifier as all other sets.
    own = image_classifier(averaged(picked["real"].take(slice(half))), codes[:half], seed)
    seen = extractor or Extractor(name=CLASSIFIER_OF_REAL, extract=own.features)
    others = picked | {"real": picked["real"].take(slice(half, None))}
    return resemblance(seen, others, lambda images: own.chances(averaged(images)), len(sets.labels))


# -- sheets and verdict ----------------------------------------------------------------------------------------------


def _sheet(images: Images, schema: ImageSchema, title: str) -> bytes:
    order = () if schema.label is None else schema.label.domain
    return png(contact_sheet(rows_of(examples(images, schema, 12), order), title))


def _neighbours(synthetic: Images, real: Images, schema: ImageSchema) -> bytes:
    """Draw synthetic images and, below each, the real one nearest by pixels (Triastcyn & Faltings 2018, §5.3)."""
    classes = 1 if schema.label is None else max(1, len(schema.label.domain))
    shown = examples(synthetic, schema, max(1, _BESIDE // classes)).take(slice(_BESIDE))
    extract = pixels().extract
    asked, found = extract(shown), [(np.inf, 0)] * len(shown)
    for first in range(0, len(real) if len(shown) else 0, MOST_IMAGES):
        far, who = nearest(extract(real.take(slice(first, first + MOST_IMAGES))), asked, 1)
        found = [
            min(best, new) for best, new in zip(found, zip(far[:, 0], first + who[:, 0], strict=True), strict=True)
        ]
    beside = real.images[[place for _, place in found]]
    title = "Synthetic images, and the REAL one nearest to each: private, do not publish"
    return png(contact_sheet((("synthetic", shown.images), ("real", beside)), title))


def _notes(kept_aside: bool) -> tuple[str, ...]:
    return (
        f"Classifiers are trained for {EPOCHS} epochs of at most {MOST_IMAGES:,} images, and for {LEAST_STEPS} steps "
        "at least. Their architectures were fixed beforehand.",
        "Class means draws each pixel on its own around its class’s mean: right averages, no correlation.",
        *seen_note(kept_aside, "images", "real images"),
    )


def _verdict(found: ImageEvaluation) -> Verdict:
    lines: list[str] = []
    warnings = seen_warning(found.rows.kept_aside, "images")
    if found.classifiers:
        first = found.classifiers[0]
        score = first.accuracy
        headline = (
            f"Trained on the synthetic images, a {first.name} classifies {percent(score.value)} of real ones correctly "
            f"({interval(score, score.interval)}); trained on real images, {percent(score.real)}."
        )
        lines.append(f"Trained on class means and noise, its accuracy is {percent(score.baseline)}. {_NOT_PRIVATE}")
        others = [f"{entry.name} {percent(entry.accuracy.value)}" for entry in found.classifiers[1:]]
        lines += [f"Other classifiers: {', '.join(others)}."] if others else []
        beaten = [entry.name for entry in found.classifiers if _beaten(entry.accuracy)]
        if beaten:
            warnings.append(f"Training on class means and noise gives a better {', '.join(beaten)}. {_NOT_PRIVATE}")
    else:
        headline = found.classifiers_skipped or "No classifier was trained."
    mean, spread = found.pixels
    lines.append(
        f"A pixel’s mean is off by {percent(mean.value, 2)} of full intensity (other real images: "
        f"{percent(mean.real, 2)}), its spread by {percent(spread.value, 2)} (other real images: "
        f"{percent(spread.real, 2)})."
    )
    said, lost = say_attributes(found.marginals, found.associations)
    lines += said
    warnings += lost
    warnings += [
        f"Synthetic images have more than {_MUCH_MORE:g} times the {score.name.lower()} of real ones "
        f"({percent(score.value, 1)}, real {percent(score.real, 1)}): look for a regular pattern or speckle."
        for score in found.texture
        if (score.value or 0.0) > _MUCH_MORE * (score.real or 0.0)
    ]
    classes = [entry.label for entry in found.classes if not entry.share.value and (entry.share.real or 0) >= _LOST]
    if classes:
        named = ", ".join(printable(label) for label in classes)
        warnings.append(f"No synthetic image has the label {named}, although real ones do.")
    return Verdict(headline=headline, lines=tuple(lines), warnings=tuple(warnings))


def _beaten(score: Score) -> bool:
    return (score.baseline or 0.0) - (score.value or 0.0) > _SLIGHT
