"""Records in batches of one size, each at a place that follows from its own content."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from doublure.private.records import PrivateRecords

ROWS = 8


def kept_of(rows):
    rows = np.asarray(rows, dtype=np.float32).reshape(len(rows), 3)
    return PrivateRecords(rows, np.arange(len(rows)), len(rows), lambda some: (some[:, 1:], some[:, :1]))


def some_rows(count, seed=0):
    return np.random.default_rng(seed).random((count, 3)).astype(np.float32) + 1


def placed(kept):
    """Return where each record stands, by content, and how often each is there."""
    places, times = {}, {}
    for body, condition, count in kept.placed(ROWS):
        assert (len(body), len(condition), len(count)) == (ROWS, ROWS, ROWS)
        assert not body[count == 0].any()
        assert not condition[count == 0].any()
        for place in count.nonzero().flatten().tolist():
            content = (*condition[place].tolist(), *body[place].tolist())
            assert content not in places
            places[content], times[content] = place, int(count[place])
    return places, times


def test_every_record_is_there_once_at_its_place():
    rows = some_rows(50)
    places, times = placed(kept_of(rows))
    assert sorted(places) == sorted(map(tuple, rows.tolist()))
    assert set(times.values()) == {1}
    assert len(set(places.values())) > 1


def test_a_place_depends_on_nobody_else():
    rows = some_rows(50)
    places, _ = placed(kept_of(rows))
    for others in (rows[1:], rows[::-1], rows[:7], np.concatenate([some_rows(30, seed=1), rows])):
        also, _ = placed(kept_of(others))
        assert all(places[content] == place for content, place in also.items() if content in places)


def test_equal_records_are_counted():
    rows = some_rows(3)
    _, times = placed(kept_of(rows[[0, 1, 0, 2, 0, 1]]))
    assert [times[tuple(row)] for row in rows.tolist()] == [3, 2, 1]


def test_no_record_is_one_empty_batch():
    ((body, condition, times),) = kept_of([]).placed(ROWS)
    assert (body.shape, condition.shape, times.tolist()) == ((ROWS, 2), (ROWS, 1), [0] * ROWS)


def test_without_conditions():
    for _, condition, _ in kept_of(some_rows(3)).bodies().placed(ROWS):
        assert condition is None


def test_records_that_are_known_by_their_number_have_no_place():
    numbered = kept_of(some_rows(3)).with_conditions(torch.zeros(3, 1))
    with pytest.raises(TypeError, match="order"):
        list(numbered.placed(ROWS))
