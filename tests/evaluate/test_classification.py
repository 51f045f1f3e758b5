import numpy as np
import pytest
from sklearn.metrics import accuracy_score, f1_score, roc_auc_score

from doublure.measures.classification import (
    area_under_roc,
    average_precision,
    confusion,
    guessed_precision,
    macro_f1,
)


def test_macro_f1_and_confusion_agree_with_sklearn():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 300)
    guessed = np.where(rng.random(300) < 0.6, truth, rng.integers(0, 3, 300))
    table = confusion(truth, guessed, 4)
    value, (low, high) = macro_f1(table, rng)
    assert value == pytest.approx(f1_score(truth, guessed, average="macro"))
    assert table.trace() / 300 == accuracy_score(truth, guessed)
    assert low < value < high
    assert high - low < 0.2


def test_area_agrees_with_sklearn_ties_included():
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 2, 200)
    chance = np.clip(truth * 0.3 + rng.random(200) * 0.7, 0, 1).round(1)
    value, interval = area_under_roc(truth, np.stack([1 - chance, chance], axis=1))
    assert value == pytest.approx(roc_auc_score(truth, chance))
    assert interval[0] < value < interval[1]


def test_several_classes_are_averaged_one_against_the_rest():
    rng = np.random.default_rng(3)
    truth = rng.integers(0, 3, 200)
    chances = rng.dirichlet(np.ones(3), 200) + 0.5 * np.eye(3)[truth]
    chances /= chances.sum(axis=1, keepdims=True)
    value, interval = area_under_roc(truth, chances)
    assert value == pytest.approx(roc_auc_score(truth, chances, multi_class="ovr"))
    assert interval is None


def test_one_class_has_no_area():
    assert area_under_roc(np.zeros(5, dtype=int), np.full((5, 2), 0.5)) == (None, None)


def test_average_precision_of_perfect_and_of_no_ranking():
    truth = np.array([1, 0, 0, 0, 1, 0, 0, 0])
    perfect = np.where(truth == 1, 0.9, 0.1)
    assert average_precision(truth, np.stack([1 - perfect, perfect], axis=1), 1) == 1
    even = np.full((8, 2), 0.5)
    assert average_precision(truth, even, 1) == pytest.approx(guessed_precision(truth, 2, 1)) == pytest.approx(0.25)
    assert average_precision(np.zeros(8, dtype=int), even, 1) is None


def test_average_precision_of_several_classes_is_the_mean():
    truth = np.array([0, 1, 2, 0])
    assert average_precision(truth, np.eye(3)[truth], 0) == 1
    assert guessed_precision(truth, 3, 0) == pytest.approx(1 / 3)
