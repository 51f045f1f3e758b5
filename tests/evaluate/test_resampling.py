"""The bootstrap of rows: what is linear says what counting again would say, and pairs meet the same real rows."""

from __future__ import annotations

import numpy as np
import pytest

from doublure.measures import influence as of_predictions
from doublure.measures.classification import area_under_roc, average_precision, confusion, macro_f1
from doublure.measures.resampling import MOST_DRAWN, RESAMPLES, Resamples, percentile_interval, simultaneous_widths
from doublure.measures.scores import Score
from doublure.measures.tables import influence as of_tables
from doublure.measures.tables.counts import count
from doublure.measures.tables.fidelity import association_matrix, pair_variation, variation, wasserstein

SIZES = (4, 3)


def codes(n, seed, tie):
    """Two columns, of which the second repeats the first in a share of rows."""
    rng = np.random.default_rng(seed)
    left, right = rng.choice(4, n, p=[0.4, 0.3, 0.2, 0.1]), rng.integers(0, 3, n)
    return np.stack([left, np.where(rng.random(n) < tie, left % 3, right)], axis=1).astype(np.int32)


def predicted(n, seed, classes):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, classes, n)
    odds = rng.normal(size=(n, classes)) + 1.5 * np.eye(classes)[truth]
    return truth, np.round(np.exp(odds) / np.exp(odds).sum(axis=1, keepdims=True), 2)  # some are tied


def _of_predictions(figure, influence, classes):
    truth, chances = predicted(800, 1, classes)

    def exact(rows):
        return figure(truth[rows], chances[rows])

    return exact, influence(truth, chances), 800


def _area(classes):
    return _of_predictions(lambda *given: area_under_roc(*given)[0], of_predictions.area_influence, classes)


def _precision(classes):
    return _of_predictions(
        lambda *given: average_precision(*given, 1),
        lambda *given: of_predictions.precision_influence(*given, 1),
        classes,
    )


def _f1(classes):
    def figure(truth, chances):
        return macro_f1(confusion(truth, chances.argmax(axis=1), classes), np.random.default_rng(0))[0]

    return _of_predictions(
        figure,
        lambda truth, chances: of_predictions.macro_f1_influence(truth, chances.argmax(axis=1), classes),
        classes,
    )


def _of_tables(figure, influence, which):
    sides = [codes(900, 2, 0.6), codes(700, 3, 0.2)]

    def exact(rows):
        return figure(*[side[rows] if place == which else side for place, side in enumerate(sides)])

    return exact, influence(*sides)[which], len(sides[which])


def _one_way(which):
    def figure(train, other):
        return variation(*(np.bincount(each[:, 1], minlength=3) / len(each) for each in (train, other)))

    return _of_tables(figure, lambda *sides: of_tables.variation_influence(*sides, SIZES, [(1,)]), which)


def _two_way(which):
    def figure(train, other):
        return pair_variation(*(count(each, SIZES, [(0, 1)]) for each in (train, other)), (0, 1))

    return _of_tables(figure, lambda *sides: of_tables.variation_influence(*sides, SIZES, [(0, 1)]), which)


def _association(which):
    def figure(train, other):
        matrices = [association_matrix(count(each, SIZES, [(0, 1)]), [0, 1]) for each in (train, other)]
        return float(np.abs(matrices[0] - matrices[1])[0, 1])

    return _of_tables(figure, lambda *sides: of_tables.association_influence(*sides, SIZES, [(0, 1)]), which)


def _numbers(which):
    rng = np.random.default_rng(4)
    sides = [rng.normal(size=900), np.where(rng.random(700) < 0.2, np.nan, rng.normal(1, 1, 700))]

    def exact(rows):
        drawn = [side[rows] if place == which else side for place, side in enumerate(sides)]
        return wasserstein(*(side[~np.isnan(side)] for side in drawn))

    return exact, of_tables.wasserstein_influence(*sides)[which], len(sides[which])


@pytest.mark.parametrize(
    ("case", "of"),
    [
        *((case, classes) for case in (_area, _precision, _f1) for classes in (2, 3)),
        *((case, which) for case in (_one_way, _two_way, _association, _numbers) for which in (0, 1)),
    ],
)
def test_influence_says_what_computing_again_would_say(case, of):
    exact, influence, n = case(of)
    rng = np.random.default_rng(9)
    drawn = [rng.integers(0, n, n) for _ in range(80)]
    found = np.array([exact(rows) for rows in drawn]) - exact(np.arange(n))
    said = np.array([influence[rows].mean() - influence.mean() for rows in drawn])
    assert np.corrcoef(found, said)[0, 1] > 0.98
    assert said.std() == pytest.approx(found.std(), rel=0.1)


def test_tables_of_one_distribution_are_said_to_be_no_surer_than_they_are():
    """There a distance is no smooth figure: what its influence says is on the safe side."""
    train = codes(900, 2, 0.5)
    figures, errors = [], []
    for seed in range(40):
        other = codes(700, 100 + seed, 0.5)
        figures.append(pair_variation(*(count(each, SIZES, [(0, 1)]) for each in (train, other)), (0, 1)))
        influence = of_tables.variation_influence(train, other, SIZES, [(0, 1)])[1]
        errors.append(Resamples(seed=1, run=seed).shifts("value", influence).std())
    assert np.std(figures) < np.mean(errors) < 2.5 * np.std(figures)


def test_real_rows_are_drawn_alike_for_all_runs_and_synthetic_ones_for_each_anew():
    marks = np.random.default_rng(0).random(300)
    one, other, later = Resamples(seed=3, run=0), Resamples(seed=3, run=1), Resamples(seed=4, run=0)
    for rows in ("train", "test", "test of target", "baseline"):
        assert np.array_equal(one.shifts(rows, marks), other.shifts(rows, marks))
        assert not np.array_equal(one.shifts(rows, marks), later.shifts(rows, marks))
    for rows in ("value", "value of coefficients"):
        assert not np.array_equal(one.shifts(rows, marks), other.shifts(rows, marks))
        assert np.array_equal(one.shifts(rows, marks), Resamples(seed=3, run=0).shifts(rows, marks))


def test_the_interval_of_a_mean_is_that_of_its_standard_error():
    marks = np.random.default_rng(0).random(400)
    low, high = percentile_interval(marks.mean() + Resamples(seed=1).shifts("train", marks), marks.mean())
    error = marks.std() / 20
    assert high - low == pytest.approx(2 * 1.96 * error, rel=0.1)
    assert (low + high) / 2 == pytest.approx(marks.mean(), abs=error / 3)


@pytest.mark.parametrize("sort", [False, True])
def test_many_rows_are_drawn_in_parts_with_the_same_error(sort):
    marks = np.random.default_rng(0).random(3 * MOST_DRAWN + 5)
    marks = np.sort(marks) if sort else marks
    resamples = Resamples(seed=1)
    parts = resamples.parts("train", marks)
    assert len(parts) == MOST_DRAWN
    assert parts.sum() == pytest.approx(marks.sum())
    moved = resamples.shifts("train", marks)
    assert moved.shape == (RESAMPLES,)
    assert moved.std() == pytest.approx(marks.std() / np.sqrt(len(marks)), rel=0.1)
    assert np.array_equal(moved, Resamples(seed=1, run=5).shifts("train", marks))


def test_several_differences_hold_at_once():
    """Of ten figures that do not move together, no one passes its reach in 95 of 100 resamples; one that repeats
    another costs nothing."""
    drawn = np.random.default_rng(0).normal(size=(4000, 10))
    reach = simultaneous_widths(drawn)
    assert (np.abs(drawn - drawn.mean(axis=0)) <= reach).all(axis=1).mean() == pytest.approx(0.95, abs=0.01)
    assert reach.mean() == pytest.approx(2.8, abs=0.15)  # Šidák: z at 1 - .95 ** .1
    assert simultaneous_widths(np.repeat(drawn[:, :1], 10, axis=1)).mean() == pytest.approx(1.96, abs=0.1)
    assert simultaneous_widths(np.zeros((50, 2))).tolist() == [0.0, 0.0]


def test_a_score_gets_the_interval_of_its_resamples_within_its_range():
    resamples = Resamples(seed=1)
    score = Score(key="k", name="n", value=0.001, goal="low", range=(0.0, 1.0))
    assert resamples.sure(score) == score
    resamples.add("k", "value", 0.001, {"value": np.random.default_rng(0).random(50)})
    low, high = resamples.sure(score).interval
    assert low == 0.0
    assert high > 0.01
    own = score.model_copy(update={"interval": (0.0, 0.5)})
    assert resamples.sure(own) == own
