"""Utility of synthetic rows: train on them, test on real rows, and compare with training on real rows.

Three kinds of classifier are trained three times each: on the synthetic rows, on independent columns, and on the real
rows. All are tested on the same real rows, on which none of them was trained. They predict the schema's target; a
numeric target is cut in two at the real rows' median.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from doublure.intervals import Interval, Result, wilson
from doublure.measures.classification import (
    Labels,
    area_under_roc,
    average_precision,
    confusion,
    guessed_precision,
    macro_f1,
    predict_logistic,
    spread_classes,
)
from doublure.measures.influence import area_influence, macro_f1_influence, precision_influence, share_influence
from doublure.measures.resampling import Resamples
from doublure.measures.scores import Score, rate_score
from doublure.measures.tables.coding import Coded, Coder
from doublure.measures.tables.features import FeatureTable, TargetClasses, make_features
from doublure.support.arrays import Floats
from doublure.support.progress import Progress
from doublure.support.seeding import to_32_bits

Kind: TypeAlias = Literal["forest", "boosting", "logistic"]

CLASSIFIERS: dict[Kind, str] = {
    "forest": "random forest",
    "boosting": "gradient boosting",
    "logistic": "logistic regression",
}
"""Downstream classifiers, chosen for being different, common, and quick without tuning."""

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
    forest = RandomForestClassifier(_TREES, min_samples_leaf=2, max_samples=0.5, random_state=to_32_bits(seed))
    # In one thread: several empty the caller's filters of warnings (scikit-learn), and add votes in any order.
    return _chances(forest.fit(training.trees(), classes), test.trees())


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


MOST_ROWS = 50_000
"""Most rows that a classifier is trained or tested on; of more, a uniform sample is used."""

IMBALANCED = 0.7
"""Share of the most common class from which accuracy says more about that share than about a model."""

_FEWEST_ROWS = 20

TrainedOn: TypeAlias = Literal["value", "baseline", "real"]


class TableClassifierScores(Result):
    """Scores of one kind of classifier trained on synthetic rows, beside the other two training sets."""

    kind: Kind
    name: str
    accuracy: Score
    auc: Score
    average_precision: Score
    macro_f1: Score


class ClassBalance(Result):
    """One class of the target: its share, and its recall by gradient boosting.

    Attributes:
        label: The class.
        share: The share of synthetic rows of this class, beside the real rows'.
        recall: The share of the real test rows of this class that are recognised; null without such rows.
    """

    label: str
    share: Score
    recall: Score | None


class Utility(Result):
    """Train on synthetic rows, test on real ones.

    Attributes:
        target: The predicted column.
        imbalanced: Whether one class is so common that ranking and average precision are the criteria instead of
            accuracy.
        guessing: The average precision of guessing.
        scores: Means over the classifiers; the criteria first.
        classifiers: Each kind.
        classes: The target's classes.
        rows: Number of rows that the classifiers were trained and tested on.
    """

    target: str
    imbalanced: bool
    guessing: float
    scores: tuple[Score, ...]
    classifiers: tuple[TableClassifierScores, ...]
    classes: tuple[ClassBalance, ...]
    rows: Mapping[Literal["synthetic", "real", "test"], int]


# -- training and testing --------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class TrainingSets:
    """Training sets and test rows of the classifiers, each at most ``MOST_ROWS`` rows with a known target."""

    trained: Mapping[TrainedOn, tuple[FeatureTable, Labels]]
    test: Coded
    test_features: FeatureTable
    truth: Labels


def prepare(
    coder: Coder, target: TargetClasses, tables: Mapping[TrainedOn, Coded], test: Coded, rng: np.random.Generator
) -> TrainingSets | str:
    """Return the training sets, or one line that says why there are none.

    Args:
        coder: Reads the schema.
        target: The predicted column.
        tables: The synthetic rows ("value"), independent columns ("baseline") and real training rows ("real").
        test: Real test rows.
        rng: Draws the rows where there are more than ``MOST_ROWS``.
    """
    kept, truth = target.known(test, rng, MOST_ROWS)  # first, so that all compared runs share their test rows
    features_of_test = make_features(coder, kept)
    trained: dict[TrainedOn, tuple[FeatureTable, Labels]] = {}
    for role, table in tables.items():
        some, classes = target.known(table, rng, MOST_ROWS)
        trained[role] = make_features(coder, some), classes
    if not trained["real"][0].names:
        return "there is no other column to predict the target from"
    if min(len(truth), *(len(classes) for _, classes in trained.values())) < _FEWEST_ROWS:
        return f"fewer than {_FEWEST_ROWS} rows have a known target"
    if len(np.unique(trained["real"][1])) < 2:
        return "the real rows have one and the same target"
    return TrainingSets(trained=trained, test=kept, test_features=features_of_test, truth=truth)


def measured_utility(
    target: TargetClasses,
    training_sets: TrainingSets,
    seed: int,
    rng: np.random.Generator,
    progress: Progress,
    resamples: Resamples | None = None,
) -> tuple[Utility, Mapping[TrainedOn, Labels]]:
    """Train every classifier three times and test it.

    Args:
        target: The predicted column.
        training_sets: The training sets and the test rows.
        seed: Fixes the classifiers' own randomness.
        rng: Draws the intervals' resamples.
        progress: Receives progress events.
        resamples: Receives the resamples of the means over classifiers.

    Returns:
        The figures, and the predictions of gradient boosting for the test rows, by training set.
    """
    classes = len(target.labels)
    shares = np.bincount(training_sets.trained["real"][1], minlength=classes) / len(training_sets.trained["real"][1])
    rarer, imbalanced = int(shares.argmin()), bool(shares.max() >= IMBALANCED)
    classifiers, shown = [], {}
    influence: dict[str, dict[TrainedOn, Floats]] = {}
    progress.stage("train models", len(CLASSIFIERS) * len(training_sets.trained))
    done = itertools.count(1)
    for kind in CLASSIFIERS:
        chances = {}
        for role, (material, known) in training_sets.trained.items():
            chances[role] = predict(kind, material, known, training_sets.test_features, classes, seed)
            progress.at(next(done))
        guesses: dict[TrainedOn, Labels] = {role: found.argmax(axis=1) for role, found in chances.items()}
        classifiers.append(_grade(kind, training_sets.truth, chances, guesses, rarer, rng))
        for role, found in chances.items():
            for key, own in _influence(training_sets.truth, found, guesses[role], rarer).items():
                total = influence.setdefault(key, {})
                total[role] = total.get(role, 0.0) + own / len(CLASSIFIERS)
        if kind == "boosting":
            shown = guesses
    scores = _means(classifiers, len(training_sets.truth), imbalanced=imbalanced)
    kept = Resamples() if resamples is None else resamples
    for score in scores:
        for role in training_sets.trained:
            kept.add(score.key, role, getattr(score, role), {"test of target": influence[score.key][role]})
    utility = Utility(
        target=target.name,
        imbalanced=imbalanced,
        guessing=guessed_precision(training_sets.truth, classes, rarer),
        scores=tuple(kept.sure(score) for score in scores),
        classifiers=tuple(classifiers),
        classes=_balance(target, training_sets, shown),
        rows={
            "synthetic": len(training_sets.trained["value"][1]),
            "real": len(training_sets.trained["real"][1]),
            "test": len(training_sets.truth),
        },
    )
    return utility, shown


def _grade(
    kind: Kind,
    truth: Labels,
    chances: Mapping[TrainedOn, Floats],
    guesses: Mapping[TrainedOn, Labels],
    rarer: int,
    rng: np.random.Generator,
) -> TableClassifierScores:
    n, classes = len(truth), chances["real"].shape[1]
    right: dict[str, int] = {role: int((guess == truth).sum()) for role, guess in guesses.items()}
    areas = {role: area_under_roc(truth, found) for role, found in chances.items()}
    precisions = {role: (average_precision(truth, found, rarer), None) for role, found in chances.items()}
    f1 = {role: macro_f1(confusion(truth, guess, classes), rng) for role, guess in guesses.items()}

    def score(key: str, name: str, found: Mapping[TrainedOn, tuple[float | None, Interval | None]]) -> Score:
        value, interval = found["value"]
        return Score(
            key=key,
            name=name,
            value=value,
            interval=interval,
            goal="high",
            range=(0.0, 1.0),
            baseline=found["baseline"][0],
            real=found["real"][0],
        )

    return TableClassifierScores(
        kind=kind,
        name=CLASSIFIERS[kind],
        accuracy=rate_score("accuracy", "accuracy", right, n),
        auc=score("auc", "area under ROC", areas),
        average_precision=score("average_precision", "average precision", precisions),
        macro_f1=score("macro_f1", "macro-F1", f1),
    )


def _influence(truth: Labels, chances: Floats, guessed: Labels, rarer: int) -> dict[str, Floats]:
    return {
        "accuracy": share_influence(guessed == truth),
        "auc": area_influence(truth, chances),
        "average_precision": precision_influence(truth, chances, rarer),
        "macro_f1": macro_f1_influence(truth, guessed, chances.shape[1]),
    }


def _means(classifiers: list[TableClassifierScores], n: int, *, imbalanced: bool) -> tuple[Score, ...]:
    accuracy = "The share of real test rows that models get right; mean over three models."
    if imbalanced:
        accuracy = f"{accuracy} One class is common: a guess that always names it is right nearly as often."
    meanings = {
        "accuracy": ("Accuracy", accuracy),
        "auc": (
            "Area under ROC",
            "How well models rank real test rows; 0.5 is guessing; mean over three models.",
        ),
        "average_precision": (
            "Average precision",
            "How many of the rows that models point to are of the rarer class (of each class, where there are more "
            "than two); guessing reaches the class’s share; mean over three models.",
        ),
        "macro_f1": ("Macro-F1", "Precision and recall of each class alike; mean over three models."),
    }
    scores = []
    order = ("auc", "average_precision", "macro_f1", "accuracy") if imbalanced else tuple(meanings)
    for key in order:
        name, meaning = meanings[key]
        each: list[Score] = [getattr(classifier, key) for classifier in classifiers]
        means: dict[str, float | None] = {}
        for role in ("value", "baseline", "real"):
            found = [figure for score in each if (figure := getattr(score, role)) is not None]
            means[role] = float(np.mean(found)) if found else None
        value = means["value"]
        # The classifiers share their test rows, so a mean of three is hardly more certain than one of them.
        interval = wilson(round(value * n), n) if key == "accuracy" and value is not None else None
        scores.append(
            Score(
                key=key,
                name=name,
                value=value,
                interval=interval,
                goal="high",
                range=(0.0, 1.0),
                baseline=means["baseline"],
                real=means["real"],
                meaning=meaning,
            )
        )
    return tuple(scores)


def _balance(
    target: TargetClasses, training_sets: TrainingSets, guesses: Mapping[TrainedOn, Labels]
) -> tuple[ClassBalance, ...]:
    found = []
    for place, label in enumerate(target.labels):
        shares = {role: float((classes == place).mean()) for role, (_, classes) in training_sets.trained.items()}
        rows = training_sets.truth == place
        n = int(rows.sum())
        if not n and not any(shares.values()):
            continue
        right: dict[str, int] = {role: int((guess[rows] == place).sum()) for role, guess in guesses.items()}
        recall = rate_score("recall", "recall", right, n) if n else None
        trained = len(training_sets.trained["value"][1])
        share = Score(
            key="share",
            name="share",
            value=shares["value"],
            interval=wilson(round(shares["value"] * trained), trained),
            goal="near",
            range=(0.0, 1.0),
            baseline=shares["baseline"],
            real=shares["real"],
        )
        found.append(ClassBalance(label=label, share=share, recall=recall))
    return tuple(found)
