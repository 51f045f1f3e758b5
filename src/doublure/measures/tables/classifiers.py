"""The three kinds of classifier that are trained on a table and tested on real rows.

They are chosen for being different, common, and quick without tuning: bagged trees, boosted trees, and a linear model
over one-hot codes.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import numpy as np

from doublure.encode.columns import Floats
from doublure.measures.classification import Labels
from doublure.measures.tables.features import Features
from doublure.support.seeding import to_32_bits

Kind: TypeAlias = Literal["forest", "boosting", "logistic"]

CLASSIFIERS: dict[Kind, str] = {
    "forest": "random forest",
    "boosting": "gradient boosting",
    "logistic": "logistic regression",
}

_TREES = 100


def predict(kind: Kind, training: Features, classes: Labels, test: Features, n_classes: int, seed: int) -> Floats:
    """Train one classifier and return what it makes of the test rows.

    Args:
        kind: Which one.
        training: N rows to learn from.
        classes: ``(N,)`` their classes, 0 to K - 1.
        test: M rows to classify.
        n_classes: K; classes that the training set lacks get probability 0.
        seed: Fixes the classifier's own randomness.

    Returns:
        ``(M, K)`` probabilities.
    """
    chances = np.zeros((len(test.codes), n_classes))
    present = np.unique(classes)
    if len(present) == 1:
        # A collapsed table has one class only: that is a (bad) result and no reason to stop.
        chances[:, present] = 1.0
        return chances
    chances[:, present] = _TRAIN[kind](training, classes, test, seed)
    return chances


def _forest(training: Features, classes: Labels, test: Features, seed: int) -> Floats:
    from sklearn.ensemble import RandomForestClassifier

    # Half the rows a tree: as accurate within a tenth of a point on Adult, and a third quicker.
    forest = RandomForestClassifier(
        _TREES, min_samples_leaf=2, max_samples=0.5, n_jobs=2, random_state=to_32_bits(seed)
    )
    forest.fit(training.trees(), classes)
    # Threads would add up the trees' votes in the order in which they finish, and so not to the last bit alike.
    return _chances(forest.set_params(n_jobs=1), test.trees())


def _boosting(training: Features, classes: Labels, test: Features, seed: int) -> Floats:
    from sklearn.ensemble import HistGradientBoostingClassifier
    from threadpoolctl import threadpool_limits

    # One tree a class and round: fewer rounds where there are many classes.
    rounds = max(20, 2 * _TREES // len(np.unique(classes)))
    boosting = HistGradientBoostingClassifier(max_iter=rounds, early_stopping=False, random_state=to_32_bits(seed))
    # On a busy machine its threads wait for one another: measured, one thread is five times as fast as two.
    with threadpool_limits(limits=1):
        return _chances(boosting.fit(training.trees(), classes), test.trees())


def _logistic(training: Features, classes: Labels, test: Features, seed: int) -> Floats:
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    with warnings.catch_warnings():
        # Stopping a little early costs less accuracy than the interval is wide.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return _chances(LogisticRegression(max_iter=200).fit(training.one_hot(), classes), test.one_hot())


def _chances(model: Any, rows: Any) -> Floats:
    return np.asarray(model.predict_proba(rows), dtype=np.float64)


_TRAIN: dict[Kind, Callable[[Features, Labels, Features, int], Floats]] = {
    "forest": _forest,
    "boosting": _boosting,
    "logistic": _logistic,
}
