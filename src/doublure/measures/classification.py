"""Prediction quality: accuracy, area under the ROC curve, average precision, macro-F1, with intervals where cheap."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from doublure.intervals import Interval, delong
from doublure.support.arrays import Floats

Labels: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"

_RESAMPLES = 500


def spread_classes(classes: Labels, rows: int, n_classes: int, predict: Callable[[], Floats]) -> Floats:
    """Return ``(M, K)`` probabilities from those of the classes present; classes that the training set lacks get 0.

    Args:
        classes: Classes of the training set, 0 to K - 1.
        rows: M.
        n_classes: K.
        predict: Trains and returns ``(M, k)`` probabilities of the k classes present; not called for one class alone,
            as a collapsed generator makes: a (bad) result, and no reason to stop.
    """
    chances, present = np.zeros((rows, n_classes)), np.unique(classes)
    chances[:, present] = predict() if len(present) > 1 else 1.0
    return chances


def predict_logistic(training: Any, classes: Labels, test: Any, rounds: int) -> Floats:
    """Return the probabilities of a logistic regression on a matrix, after at most so many rounds."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    with warnings.catch_warnings():
        # Stopping a little early costs less accuracy than the interval's width.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LogisticRegression(max_iter=rounds).fit(training, classes)
    return np.asarray(model.predict_proba(test), dtype=np.float64)


def confusion(truth: Labels, guessed: Labels, classes: int) -> Labels:
    """Return the ``(K, K)`` counts of (true class, guessed class)."""
    return np.bincount(truth * classes + guessed, minlength=classes * classes).reshape(classes, classes)


def macro_f1(table: Labels, rng: np.random.Generator) -> tuple[float, Interval]:
    """Return the mean of the classes' F1 and its bootstrap interval.

    Args:
        table: ``(K, K)`` counts of (true class, guessed class). F1 depends on these counts alone, so resampling them
            equals resampling test rows.
        rng: Draws the resamples.
    """
    n = int(table.sum())
    draws = rng.multinomial(n, table.ravel() / n, size=_RESAMPLES).reshape(-1, *table.shape)
    low, high = np.quantile(_f1(draws), [0.025, 0.975])
    return float(_f1(table[None])[0]), (float(low), float(high))


def _f1(tables: Labels) -> Floats:
    """Return ``(R,)`` macro-F1 of ``(R, K, K)`` tables over the classes that occur in them."""
    hits = np.diagonal(tables, axis1=1, axis2=2)
    total = tables.sum(axis=1) + tables.sum(axis=2)
    occurs = total > 0
    each = np.where(occurs, 2 * hits / np.maximum(total, 1), 0.0)
    return np.asarray(each.sum(axis=1) / np.maximum(occurs.sum(axis=1), 1), dtype=np.float64)


def area_under_roc(truth: Labels, chances: Floats) -> tuple[float | None, Interval | None]:
    """Return the area under the ROC curve; with several classes, the mean of one-versus-rest areas.

    Args:
        truth: ``(N,)`` classes.
        chances: ``(N, K)`` predicted probabilities.

    Returns:
        The area (null where the test rows are all of one class) and, for two classes, DeLong's interval.
    """
    if chances.shape[1] == 2:
        return delong(truth == 1, chances[:, 1])
    areas = [delong(truth == place, chances[:, place])[0] for place in range(chances.shape[1])]
    found = [area for area in areas if area is not None]
    return (float(np.mean(found)) if found else None), None


def average_precision(truth: Labels, chances: Floats, rarer: int) -> float | None:
    """Return the average precision (mean precision over the ranks of a class's rows); with several classes, their mean.

    Guessing reaches the class's share. Unlike the area under the ROC curve, the figure says how many of the rows that a
    model selects belong to the class.

    Args:
        truth: ``(N,)`` classes.
        chances: ``(N, K)`` predicted probabilities.
        rarer: The positive class where there are two.

    Returns:
        The figure; null where no row belongs to a positive class.
    """
    from sklearn.metrics import average_precision_score

    wanted = [rarer] if chances.shape[1] == 2 else list(range(chances.shape[1]))
    found = [
        float(average_precision_score(truth == place, chances[:, place])) for place in wanted if (truth == place).any()
    ]
    return float(np.mean(found)) if found else None


def guessed_precision(truth: Labels, classes: int, rarer: int) -> float:
    """Return the average precision of guessing: the share of the rarer of two classes, or the mean over several."""
    shares = np.bincount(truth, minlength=classes) / len(truth)
    return float(shares[rarer] if classes == 2 else shares[shares > 0].mean())
