"""What tests synthetic records: a holdout as it is, or a quarter of the fitted ones, whole units at a time."""

from __future__ import annotations

import numpy as np
import pytest

from doublure.data.images import Images
from doublure.errors import DataError
from doublure.measures.holdout import draw_holdout, split_real

CALLED = {"field": "the real set", "records": "images"}


def numbered(n):
    return Images(images=np.arange(n, dtype=np.uint8).reshape(n, 1, 1, 1))


def numbers(images):
    return images.images.ravel().tolist()


def test_a_units_rows_stay_together():
    unit = np.repeat(np.arange(20), 3)
    aside = draw_holdout(unit, np.random.default_rng(0))
    assert aside.sum() == 15
    assert all(len(set(aside[unit == number])) == 1 for number in range(20))


def test_a_holdout_is_taken_as_it_is_and_nothing_is_drawn():
    train, holdout, rng = numbered(8), numbered(3), np.random.default_rng(0)
    both = split_real(train, holdout, np.arange(8), rng, **CALLED)
    assert both.train is train
    assert both.test is holdout
    assert both.rows(7).model_dump() == {"synthetic": 7, "train": 8, "holdout": 3, "kept_aside": True}
    assert rng.random() == np.random.default_rng(0).random()


@pytest.mark.parametrize(("unit", "held"), [(None, 15), (np.repeat(np.arange(20), 3), 15), (np.zeros(60, int), 15)])
def test_without_one_a_quarter_of_the_units_takes_its_place(unit, held):
    both = split_real(numbered(60), None, unit, np.random.default_rng(1), **CALLED)
    train, test = numbers(both.train), numbers(both.test)
    assert sorted(train + test) == list(range(60))
    assert both.rows(5).model_dump() == {"synthetic": 5, "train": 60 - held, "holdout": held, "kept_aside": False}
    if unit is not None and unit.any():
        assert {unit[place] for place in train}.isdisjoint(unit[place] for place in test)


def test_one_record_cannot_be_split():
    with pytest.raises(DataError, match=r"the real set.*fewer than 2 images"):
        split_real(numbered(1), None, None, np.random.default_rng(0), **CALLED)
    assert len(split_real(numbered(1), numbered(1), None, np.random.default_rng(0), **CALLED).train) == 1
