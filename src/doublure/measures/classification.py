"""Prediction quality: accuracy, area under the ROC curve, average precision, macro-F1, with intervals where cheap."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from doublure.encode.columns import Floats
from doublure.intervals import Interval, delong

Labels: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"

_RESAMPLES = 500


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
