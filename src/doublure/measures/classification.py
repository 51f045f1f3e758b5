"""How good predictions are: accuracy, area under the ROC curve, average precision, macro-F1; intervals where cheap."""

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
        table: ``(K, K)`` counts of (true class, guessed class). Resampling test rows is the same as resampling its
            cells, because F1 depends on nothing else.
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
    """Return the area under the ROC curve; the mean over classes, one against the rest, where there are several.

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
    """Return the mean precision over the ranks of a class's rows; the mean over classes where there are several.

    Guessing has a class's share: unlike the area under the ROC curve it tells how many of the rows that a model points
    to are right ones.

    Args:
        truth: ``(N,)`` classes.
        chances: ``(N, K)`` predicted probabilities.
        rarer: Of two classes, which is looked for.

    Returns:
        The figure; null where no row is of a class that is looked for.
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
