"""Downstream classifiers of tables: bagged trees, boosted trees, and a linear model over one-hot codes.

They were chosen for being different, common, and quick without tuning.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import numpy as np

from doublure.measures.classification import Labels, predict_logistic, spread_classes
from doublure.measures.tables.features import FeatureTable
from doublure.support.arrays import Floats
from doublure.support.seeding import to_32_bits

Kind: TypeAlias = Literal["forest", "boosting", "logistic"]

CLASSIFIERS: dict[Kind, str] = {
    "forest": "random forest",
    "boosting": "gradient boosting",
    "logistic": "logistic regression",
}

_TREES = 100
_ROUNDS = 200


def predict(
    kind: Kind, training: FeatureTable, classes: Labels, test: FeatureTable, n_classes: int, seed: int
) -> Floats:
    """Train one classifier and return its predictions for the test rows.

    Args:
        kind: The classifier.
        training: N rows to train on.
        classes: ``(N,)`` their classes, 0 to K - 1.
        test: M rows to classify.
        n_classes: K; classes that the training set lacks get probability 0.
        seed: Fixes the classifier's own randomness.

    Returns:
        ``(M, K)`` probabilities.
    """
    train = _TRAIN[kind]
    return spread_classes(classes, len(test.codes), n_classes, lambda: train(training, classes, test, seed))


def _forest(training: FeatureTable, classes: Labels, test: FeatureTable, seed: int) -> Floats:
    from sklearn.ensemble import RandomForestClassifier

    # Half the rows per tree: as accurate within a tenth of a point on Adult, and a third faster.
    forest = RandomForestClassifier(
        _TREES, min_samples_leaf=2, max_samples=0.5, n_jobs=2, random_state=to_32_bits(seed)
    )
    forest.fit(training.trees(), classes)
    # Threads would add the trees' votes in the order they finish, so the last bit would vary.
    return _chances(forest.set_params(n_jobs=1), test.trees())


def _boosting(training: FeatureTable, classes: Labels, test: FeatureTable, seed: int) -> Floats:
    from sklearn.ensemble import HistGradientBoostingClassifier
    from threadpoolctl import threadpool_limits

    # One tree per class and round: fewer rounds where there are many classes.
    rounds = max(20, 2 * _TREES // len(np.unique(classes)))
    boosting = HistGradientBoostingClassifier(max_iter=rounds, early_stopping=False, random_state=to_32_bits(seed))
    # On a busy machine threads wait for one another: measured, one thread is five times as fast as two.
    with threadpool_limits(limits=1):
        return _chances(boosting.fit(training.trees(), classes), test.trees())


def _logistic(training: FeatureTable, classes: Labels, test: FeatureTable, seed: int) -> Floats:
    return predict_logistic(training.one_hot(), classes, test.one_hot(), _ROUNDS)


def _chances(model: Any, rows: Any) -> Floats:
    return np.asarray(model.predict_proba(rows), dtype=np.float64)


_TRAIN: dict[Kind, Callable[[FeatureTable, Labels, FeatureTable, int], Floats]] = {
    "forest": _forest,
    "boosting": _boosting,
    "logistic": _logistic,
}
