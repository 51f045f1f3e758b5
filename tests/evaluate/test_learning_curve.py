"""Accuracy by the number of labelled images."""

from __future__ import annotations

import numpy as np
import pytest

from doublure.data.images import Images
from doublure.measures.images.classifiers import BATCH, EPOCHS, LEAST_STEPS, learning_curve, predict
from doublure.networks import optimizers


def shades(n: int, seed: int, noise: float = 60) -> tuple[Images, np.ndarray]:
    """Return dark and bright images, hard to tell from a few."""
    rng = np.random.default_rng(seed)
    classes = rng.integers(0, 2, n)
    pixels = rng.normal(115 + 25 * classes[:, None, None, None], noise, (n, 6, 6, 1))
    return Images(images=np.clip(pixels, 0, 255).astype(np.uint8)), classes


def test_more_labelled_images_teach_more() -> None:
    training, classes = shades(400, 0)
    test, truth = shades(300, 1)
    found = learning_curve("logistic", training, classes, test, truth, [300, 8, 8, 0, 4000], seed=0)
    assert list(found) == [8, 300]
    assert found[300] > found[8] + 0.02
    chances = predict("logistic", training.take(slice(300)), classes[:300], test, 2, 0)
    assert found[300] == (chances.argmax(1) == truth).mean()


def test_a_class_that_the_first_images_lack_counts_as_missed() -> None:
    training, classes = shades(40, 2)
    order = np.argsort(classes, kind="stable")
    test, truth = shades(60, 3)
    found = learning_curve("logistic", training.take(order), classes[order], test, truth, [5], seed=0)
    assert found == {5: float((truth == 0).mean())}


def test_few_images_are_looked_at_more_often(monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[int] = []
    real = optimizers.EagerAdam.step
    monkeypatch.setattr(optimizers.EagerAdam, "step", lambda self, *given: (steps.append(1), real(self, *given))[1])
    test, _ = shades(5, 5)
    for size in (20, 300, 3000):
        training, classes = shades(size, 4)
        predict("mlp", training, classes, test, 2, 0)
        steps.append(0)
    ends = np.cumsum(steps)[np.array(steps) == 0]
    assert np.diff(ends, prepend=0).tolist() == [LEAST_STEPS, LEAST_STEPS, EPOCHS * (3000 // BATCH)]


@pytest.mark.exhaustive
def test_the_residual_student_learns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("doublure.measures.images.classifiers.EPOCHS", 3)
    (training, classes), (test, truth) = shades(256, 6, noise=10), shades(60, 7, noise=10)
    chances = predict("resnet", training, classes, test, 2, seed=0)
    assert chances.shape == (60, 2)
    assert (chances.argmax(1) == truth).mean() > 0.8
