"""Votes for the nearest candidate: each follows from its own record to the last digit."""

from __future__ import annotations

import numpy as np
import pytest

from doublure.errors import SettingError
from doublure.private.queries.counts import Counts
from doublure.private.queries.nearest import LARGEST, NearestCandidate
from doublure.private.records import PrivateRecords

WIDTH, KINDS = 7, 3
DRAW = np.random.default_rng(3)
CANDIDATES = DRAW.integers(-LARGEST, LARGEST + 1, (12, WIDTH))
CLASSES = np.repeat(np.arange(KINDS), 4)


def axis(**changes):
    return NearestCandidate(**{"features": CANDIDATES, "classes": CLASSES, "kinds": KINDS} | changes)


def records(count):
    own = DRAW.integers(0, KINDS, count)
    return np.column_stack([DRAW.integers(-LARGEST, LARGEST + 1, (count, WIDTH)), np.eye(KINDS)[own]]).astype("f2"), own


def test_a_record_votes_for_the_nearest_candidate_of_its_class():
    held, own = records(500)
    found = axis().of(held)
    for row, label, vote in zip(held[:, :WIDTH].astype(float), own, found, strict=True):
        there = np.flatnonzero(label == CLASSES)
        distances = np.square(CANDIDATES[there] - row).sum(axis=1)
        assert vote == there[distances.argmin()]


def test_a_vote_follows_from_its_record_alone():
    held, _ = records(6_000)
    together = axis().of(held)
    assert np.array_equal(together[::-1], axis().of(held[::-1]))
    assert np.array_equal(
        together[5_000:5_010], np.concatenate([axis().of(held[i : i + 1]) for i in range(5000, 5010)])
    )


@pytest.mark.parametrize("strange", [np.nan, np.inf, -np.inf, 60_000.0])
def test_what_a_record_holds_makes_one_vote(strange):
    held, _ = records(1)
    held[0, :WIDTH] = strange
    assert 0 <= axis().of(held)[0] < len(CANDIDATES)
    nobody = axis(kinds=0, classes=np.zeros(12, np.int64))
    assert nobody.of(held[:, :WIDTH]).shape == (1,)


def test_equal_candidates_leave_the_vote_to_the_first():
    assert set(axis(features=np.zeros_like(CANDIDATES)).of(records(50)[0])) <= {0, 4, 8}


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"features": CANDIDATES[:, 1:]}, "features"),
        ({"features": CANDIDATES.astype(float)}, "features"),
        ({"features": CANDIDATES * 2}, "features"),
        ({"classes": CLASSES[1:]}, "classes"),
        ({"classes": np.minimum(CLASSES, 1)}, "classes"),
        ({"kinds": 2}, "features"),
    ],
)
def test_candidates_that_do_not_fit_are_refused(changes, named):
    held, _ = records(5)
    private = PrivateRecords(held, np.arange(5), 5, lambda rows: (rows, None))
    Counts(tables=[(axis(),)], max_records=1).refuse_unfit(private)
    with pytest.raises(SettingError, match=named):
        Counts(tables=[(axis(**changes),)], max_records=1).refuse_unfit(private)
