"""Influence functions of prediction figures, for the bootstrap of rows.

An influence is the change of a figure per unit of weight on a test row: the derivative with respect to the rows' shares
(Efron & Tibshirani 1993, §22.2). Every function returns ``(N,)`` with mean 0. The influence on an area under the ROC
curve is DeLong's placement.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from doublure.measures.classification import Labels, confusion
from doublure.support.arrays import Floats


def share_influence(marks: Any) -> Floats:
    """Return the influence on a share, or on any mean over rows.

    Args:
        marks: ``(N,)`` the averaged values.
    """
    each = np.asarray(marks, dtype=np.float64)
    found: Floats = each - each.mean()
    return found


def area_influence(truth: Labels, chances: Floats) -> Floats:
    """Return the influence on the area under the ROC curve; with several classes, on the mean of their areas.

    Args:
        truth: ``(N,)`` classes.
        chances: ``(N, K)`` predicted probabilities.
    """
    places = [1] if chances.shape[1] == 2 else list(range(chances.shape[1]))
    found = [_of_area(truth == place, chances[:, place]) for place in places if 0 < (truth == place).sum() < len(truth)]
    return np.asarray(np.mean(found, axis=0)) if found else np.zeros(len(truth))


def _of_area(positive: np.ndarray, scores: Floats) -> Floats:
    from scipy.stats import rankdata

    many, few = int(positive.sum()), int((~positive).sum())
    ranks = rankdata(scores)
    found = np.empty(len(scores))
    found[positive] = (ranks[positive] - rankdata(scores[positive])) / few
    found[~positive] = 1 - (ranks[~positive] - rankdata(scores[~positive])) / many
    area = found[positive].mean()
    share = many / len(scores)
    return np.asarray(np.where(positive, (found - area) / share, (found - area) / (1 - share)), dtype=np.float64)


def two_sample_influence(which: Labels, chances: Floats) -> tuple[Floats, Floats]:
    """Return the influences on the area where each class is resampled on its own.

    Args:
        which: ``(N,)`` 0 and 1.
        chances: ``(N, 2)`` predicted probabilities.

    Returns:
        The influences of class 0 and of class 1.
    """
    each = area_influence(which, chances)
    share = float((which == 1).mean())
    return each[which == 0] * (1 - share), each[which == 1] * share


def precision_influence(truth: Labels, chances: Floats, rarer: int) -> Floats:
    """Return the influence on :func:`doublure.measures.classification.average_precision`, with the same arguments."""
    wanted = [rarer] if chances.shape[1] == 2 else list(range(chances.shape[1]))
    found = [_of_precision(truth == place, chances[:, place]) for place in wanted if (truth == place).any()]
    return np.asarray(np.mean(found, axis=0)) if found else np.zeros(len(truth))


def _of_precision(positive: np.ndarray, scores: Floats) -> Floats:
    """Return the influence of each row: on its own rank, and on the precision at every row below it."""
    _, level = np.unique(-scores, return_inverse=True)  # tied rows share a level, the highest score first
    hits = np.bincount(level, weights=positive)
    all_of = np.bincount(level).astype(np.float64)
    above, rows = np.cumsum(hits), np.cumsum(all_of)
    total, n = above[-1], len(scores)
    precision = above / rows
    figure = float((hits * precision).sum() / total)
    below_if_hit = np.cumsum((hits * (rows - above) / rows**2)[::-1])[::-1]
    below_if_not = np.cumsum((hits * above / rows**2)[::-1])[::-1]
    gained = np.where(positive, precision[level] - figure + below_if_hit[level], -below_if_not[level])
    return np.asarray(n * gained / total, dtype=np.float64)


def macro_f1_influence(truth: Labels, guessed: Labels, classes: int) -> Floats:
    """Return the influence on macro-F1.

    Args:
        truth: ``(N,)`` classes.
        guessed: ``(N,)`` predicted ones.
        classes: Number of classes.
    """
    table = confusion(truth, guessed, classes)
    # F1 is 2 hits / (guessed + true). A right row adds to both; any row adds to a denominator of two classes.
    sides = (table.sum(axis=0) + table.sum(axis=1)).astype(np.float64)
    f1 = np.where(sides > 0, 2 * np.diagonal(table) / np.maximum(sides, 1), 0.0)
    right = np.where(truth == guessed, 2 / sides[truth], 0.0)
    lost = f1[truth] / sides[truth] + f1[guessed] / sides[guessed]
    return np.asarray(len(truth) * (right - lost) / (sides > 0).sum(), dtype=np.float64)
