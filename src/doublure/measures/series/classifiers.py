"""Downstream classifiers of series: separation of synthetic from real series, forecasts, and the target attribute.

Each classifier was fixed here before any result was seen, and nothing is tuned on the test series. All of them are
gradient-boosted trees (scikit-learn's histogram boosting, 100 rounds, otherwise its defaults), which handle gaps and
need no scaling.

================= =====================================================================================================
``discriminative`` separates the set from real series, trained on half of both; the area under its ROC curve on the
                  other halves: .5 is chance, 1 is perfect separation (Yoon et al. 2019 take a recurrent network and its
                  accuracy less a half). Its features are each step, the difference from the step before, and each
                  channel's mean, spread and highest value; series longer than 128 steps are averaged down
``predictive``    trained on the set to forecast a step from the eight steps before it, the place in the series and the
                  attributes; its mean absolute error on real series, as a share of the error of the best constant
                  (Yoon et al. 2019 give the error itself)
``accuracy``      trained on the set to predict the target attribute, from the features of ``discriminative``; tested on
                  real series; only where an attribute has the role target
================= =====================================================================================================

References:
    Yoon, Jarrett & van der Schaar (2019), Time-series generative adversarial networks, NeurIPS.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from doublure.data.series import Series
from doublure.encode.attribute_groups import groups_of
from doublure.encode.numeric import Floats
from doublure.intervals import wilson
from doublure.measures.classification import Labels, area_under_roc, spread_classes
from doublure.measures.influence import share_influence, two_sample_influence
from doublure.measures.resampling import Resamples
from doublure.measures.scores import Score
from doublure.measures.series.figures import PLACES, average, make_score
from doublure.measures.series.statistics import encode_attributes
from doublure.schema.series import SeriesSchema
from doublure.support.seeding import to_32_bits

MOST_TRAINING = 4_000
"""Most series of a set that a classifier is trained or tested on; of more, a uniform sample is used."""

ROUNDS = 100
LAGS = 8

_FEWEST = 20
_MOST_CHANNELS = 8
_LONGEST = 128
_STEPS_EACH = 8
_WORST = 2.0
_ROLES = ("value", "baseline", "real")


def classifier_scores(
    schema: SeriesSchema, sets: Mapping[str, Series], seed: int, resamples: Resamples | None = None
) -> tuple[tuple[Score, ...], str | None]:
    """Return the classifiers' scores, and the reason where there are none.

    Args:
        schema: Channels and attributes.
        sets: ``value``, ``baseline``, ``real``, and ``test``: other real series.
        seed: Fixes their random draws.
        resamples: Receives the resamples of the accuracy and of the separation.
    """
    if min(len(each) for each in sets.values()) < _FEWEST:
        return (), f"No classifier was trained: a set has fewer than {_FEWEST} series."
    rng, resamples = np.random.default_rng([seed, 7]), resamples or Resamples(seed=seed)
    samples = {name: _some(each, MOST_TRAINING, rng) for name, each in sets.items()}
    found = [_discriminative(samples, seed, resamples), _predictive(schema, samples, rng, seed)]
    target = schema.with_role("target")
    if target:
        found.append(_classified(schema, target[0], samples, seed, resamples))
    return tuple(found), None


def describe(series: Series) -> Floats:
    """Return features of series: steps, differences, and each channel's mean, spread and highest value."""
    values = shorten(series.values, _LONGEST)
    flat = values.transpose(0, 2, 1).reshape(len(values), -1)
    changes = np.diff(values, axis=1).transpose(0, 2, 1).reshape(len(values), -1)
    known = ~np.isnan(values)
    count = np.maximum(known.sum(axis=1), 1)
    mean = np.where(known, values, 0.0).sum(axis=1) / count
    spread = np.sqrt(np.where(known, (values - mean[:, None]) ** 2, 0.0).sum(axis=1) / count)
    high = np.where(known, values, -np.inf).max(axis=1)
    there = known.any(axis=1)
    overall = [np.where(there, each, np.nan) for each in (mean, spread, high)]
    return np.concatenate([flat, changes, *overall], axis=1)


def shorten(values: Floats, longest: int) -> Floats:
    """Return ``(N, at most longest, channels)``: longer series as means over equal stretches, without their gaps."""
    length = values.shape[1]
    if length <= longest:
        return values
    ends = np.linspace(0, length, longest + 1).round().astype(int)
    known = ~np.isnan(values)
    totals = np.add.reduceat(np.where(known, values, 0.0), ends[:-1], axis=1)
    counts = np.add.reduceat(known.astype(np.int64), ends[:-1], axis=1)
    return np.where(counts > 0, totals / np.maximum(counts, 1), np.nan)


def _some(series: Series, most: int, rng: np.random.Generator) -> Series:
    return series if len(series) <= most else series.take(np.sort(rng.choice(len(series), most, replace=False)))


# -- separation ------------------------------------------------------------------------------------------------------


def _discriminative(samples: Mapping[str, Series], seed: int, resamples: Resamples) -> Score:
    tested = {role: two_samples(samples["real"], samples[place], seed) for role, place in PLACES.items()}
    found = {role: area_under_roc(*each) for role, each in tested.items()}
    real, own = two_sample_influence(*tested["value"])
    influence = {"train of two samples": real, "value of two samples": own}
    resamples.add("discriminative", "value", found["value"][0], influence)
    figures = {role: area for role, (area, _) in found.items()}
    meaning = (
        "Area under ROC of boosted trees that classify synthetic and real series: 0.5 at chance, 1 if always right."
    )
    return make_score("discriminative", "Two-sample AUC", "low", (0.0, 1.0), figures, meaning, found["value"][1])


def two_samples(real: Series, other: Series, seed: int) -> tuple[Labels, Floats]:
    """Return the set of each series of the other halves, ``(N,)`` with 0 for real, and probabilities ``(N, 2)``."""
    rng = np.random.default_rng([seed, 11])
    size = min(len(real), len(other)) // 2 * 2
    rows = np.concatenate([describe(each.take(rng.permutation(len(each))[:size])) for each in (real, other)])
    which = np.repeat(np.arange(2, dtype=np.int64), size)
    training = np.tile(np.arange(size) < size // 2, 2)
    chances = _classes(rows[training], which[training], rows[~training], 2, seed)
    return which[~training], chances


# -- prediction ------------------------------------------------------------------------------------------------------


def _predictive(schema: SeriesSchema, samples: Mapping[str, Series], rng: np.random.Generator, seed: int) -> Score:
    figures: dict[str, float | None] = {}
    channels = list(schema.channels)[:_MOST_CHANNELS]
    tested = {name: questions(schema, samples["test"], name, rng) for name in channels}
    for role in _ROLES:
        errors = [_error(questions(schema, samples[role], name, rng), tested[name], seed) for name in channels]
        figures[role] = average(errors)
    meaning = (
        "Error of boosted trees that were trained on them and forecast real series step by step, divided by the error "
        "of the best constant."
    )
    return make_score("predictive", "Forecast (TSTR)", "low", (0.0, _WORST), figures, meaning)


def questions(schema: SeriesSchema, series: Series, channel: str, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Return the features of a forecast, ``(M, F)``, and the step to forecast, ``(M,)``; some steps of each series.

    The features are the eight steps before it of every channel (NaN before the beginning), its place in the series, and
    the attributes.
    """
    n, length = len(series), series.length
    rows = np.repeat(np.arange(n), min(_STEPS_EACH, length - 1))
    steps = rng.integers(1, length, len(rows))
    before = steps[:, None] - np.arange(1, LAGS + 1)
    past = series.values[rows[:, None], np.maximum(before, 0)]
    past = np.where((before >= 0)[:, :, None], past, np.nan).reshape(len(rows), -1)
    codes = [values[rows, None] for values in encode_attributes(schema, series).values()]
    answers = series.channel(channel)[rows, steps]
    known = ~np.isnan(answers)
    return np.concatenate([past, steps[:, None] / length, *codes], axis=1)[known], answers[known]


def _error(training: tuple[Floats, Floats], test: tuple[Floats, Floats], seed: int) -> float | None:
    """Return the error on the test set as a share of the best constant's, at most ``_WORST``."""
    if len(training[1]) < _FEWEST or len(test[1]) < _FEWEST:
        return None
    least = float(np.abs(test[1] - np.median(test[1])).mean())
    if least <= 0:
        return None
    guessed = _numbers(*training, test[0], seed)
    return min(_WORST, float(np.abs(guessed - test[1]).mean()) / least)


def _classified(
    schema: SeriesSchema, target: str, samples: Mapping[str, Series], seed: int, resamples: Resamples
) -> Score:
    classes = groups_of(schema.attributes[target])
    codes = {name: encode_attributes(schema, each)[target].astype(np.int64) for name, each in samples.items()}
    truth, seen = codes["test"], describe(samples["test"])
    right = {}
    for role in _ROLES:
        chances = _classes(describe(samples[role]), codes[role], seen, classes, seed)
        hits = chances.argmax(axis=1) == truth
        right[role] = float(hits.mean())
        resamples.add("accuracy", role, right[role], {"test of target": share_influence(hits)})
    interval = wilson(round(right["value"] * len(truth)), len(truth))
    meaning = "Accuracy, on real series, of boosted trees that were trained on them to classify the target attribute."
    return make_score("accuracy", "Accuracy (TSTR)", "high", (0.0, 1.0), right, meaning, interval)


# -- models ----------------------------------------------------------------------------------------------------------


def _classes(training: Floats, classes: Labels, test: Floats, n_classes: int, seed: int) -> Floats:
    from sklearn.ensemble import HistGradientBoostingClassifier

    rounds = max(20, 2 * ROUNDS // len(np.unique(classes)))
    model = HistGradientBoostingClassifier(max_iter=rounds, early_stopping=False, random_state=to_32_bits(seed))
    known = _known(training)

    def predict() -> Floats:
        return np.asarray(_trained(model, training[:, known], classes).predict_proba(test[:, known]))

    return spread_classes(classes, len(test), n_classes, predict)


def _numbers(training: Floats, answers: Floats, test: Floats, seed: int) -> Floats:
    from sklearn.ensemble import HistGradientBoostingRegressor

    model = HistGradientBoostingRegressor(
        loss="absolute_error", max_iter=ROUNDS, early_stopping=False, random_state=seed
    )
    known = _known(training)
    model = _trained(model, training[:, known], answers)
    guessed: Floats = np.asarray(model.predict(test[:, known]), dtype=np.float64)
    return guessed


def _known(training: Floats) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return a mask of the columns with any value: trees refuse empty ones."""
    return np.asarray(~np.isnan(training).all(axis=0))


def _trained(model: Any, training: Floats, answers: Any) -> Any:
    from threadpoolctl import threadpool_limits

    # On a busy machine threads wait for one another, and one thread is faster (see measures/tables/utility.py).
    with threadpool_limits(limits=1):
        return model.fit(training, answers)
