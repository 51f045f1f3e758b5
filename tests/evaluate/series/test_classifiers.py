"""Classifiers of series: what they see, and what they cannot."""

from __future__ import annotations

import numpy as np
import pytest

from doublure.data.series import Series
from doublure.measures.classification import area_under_roc
from doublure.measures.series import classifiers as students
from doublure.measures.series.classifiers import classifier_scores, describe, questions, shorten, two_samples


def test_a_copy_of_the_distribution_cannot_be_told_and_a_shift_can(waves):
    area, interval = area_under_roc(*two_samples(waves(300, 1), waves(300, 2), 0))
    assert interval[0] < 0.5 < interval[1]
    assert area_under_roc(*two_samples(waves(300, 1), waves(300, 2, shift=0.3), 0))[0] > 0.95
    assert area_under_roc(*two_samples(waves(300, 1), waves(300, 2), 0))[0] == area


def test_long_series_are_averaged_down():
    values = np.arange(12.0).reshape(1, 12, 1)
    values[0, :2] = np.nan
    values[0, 2] = np.nan
    assert shorten(values, 4)[0, :, 0] == pytest.approx([np.nan, 4, 7, 10], nan_ok=True)
    assert shorten(values, 12) is values
    assert shorten(np.ones((2, 1000, 1)), 96).shape == (2, 96, 1)


def test_what_is_seen_of_a_series():
    some = Series(values=np.array([[[1.0], [3.0], [np.nan]]]), channels=("a",), attributes=_none(1))
    assert describe(some)[0] == pytest.approx([1, 3, np.nan, 2, np.nan, 2, 1, 3], nan_ok=True)


def test_a_step_is_foretold_from_the_past_alone(schema, waves):
    """No question holds its answer, nor anything after it."""
    values = np.arange(20 * 12 * 2, dtype=float).reshape(20, 12, 2)
    some = Series(values=values, channels=("a", "b"), attributes=waves(20, 1).attributes)
    asked, answers = questions(schema, some, "a", np.random.default_rng(0))
    assert asked.shape == (20 * 8, 8 * 2 + 1 + 1)
    past = asked[:, :16]
    assert (np.nanmax(past, axis=1) < answers).all()
    assert np.nanmax(past[:, ::2], axis=1) == pytest.approx(answers - 2)  # the step before, of the same channel
    assert set(asked[:, 17]) == {0.0, 1.0}


def test_short_series_and_empty_channels_teach_all_the_same(schema, waves, monkeypatch):
    """The eighth step before the last is none, and a channel may have no value anywhere."""
    monkeypatch.setattr(students, "ROUNDS", 5)
    short = schema.model_copy(update={"series": schema.series.model_copy(update={"length": 4})})

    def cut(seed):
        some = waves(40, seed)
        values = some.values[:, :4].copy()
        values[:, :, 1] = np.nan
        return Series(values=values, channels=some.channels, attributes=some.attributes)

    scores, why = classifier_scores(short, {"value": cut(1), "baseline": cut(2), "real": cut(3), "test": cut(4)}, 0)
    assert why is None
    assert all(score.value is not None for score in scores)


def test_few_series_teach_nobody(schema, waves):
    sets = {"value": waves(30, 1), "baseline": waves(30, 2), "real": waves(30, 3), "test": waves(10, 4)}
    scores, why = classifier_scores(schema, sets, 0)
    assert scores == ()
    assert "fewer than 20" in why


def _none(n):
    import pandas as pd

    return pd.DataFrame(index=pd.RangeIndex(n))
