"""A look for copies: finds them, is centred where there are none, and is called no measure of privacy."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from doublure.attack import neighbours
from doublure.attack import registry as table


def look(world):
    (entry,) = table.run(world, ["neighbours"])
    return entry


def test_copies_are_seen(make_world):
    entry = look(make_world(honest=False))
    rates = {rate.name: rate.value for rate in entry.rates}
    assert entry.value > 0.95
    assert rates["synthetic records that equal a training record"] == 1.0
    assert rates["synthetic records that equal another real record"] == 0.0
    assert rates["DCR to training records, median"] == 0.0
    assert entry.lower_bound is None
    assert not entry.alarm


def test_it_is_called_no_measure_of_privacy(make_world):
    entry = look(make_world(honest=True))
    assert "Not a privacy measure." in entry.notes
    assert "NOT A PRIVACY MEASURE" in entry.threat_model.cannot


def test_pairs_stand_side_by_side_and_never_in_the_json(make_world):
    entry = look(make_world(honest=False))
    (picture,) = entry.pictures
    assert picture.rows[0][1:] == picture.rows[1][1:]
    assert [row[0] for row in picture.rows[:2]] == ["synthetic", "real"]
    assert "pictures" not in entry.model_dump()


def test_a_cell_reads_alike_on_both_sides():
    cells = [46, 46.0, np.float64(153254.0), 0.1 + 0.2, np.nan, None, pd.Timestamp("2020-02-03"), "x" * 60]
    assert [neighbours._text(cell) for cell in cells] == [
        "46", "46", "153254", "0.3", "(missing)", "(missing)", "2020-02-03 00:00:00", "x" * 40,
    ]  # fmt: skip


def test_artificial_records_around_one_real_record_are_one_draw():
    """A generator that is fond of a single record by chance must not look like one that copies."""
    rng, covered = np.random.default_rng(0), 0
    for _ in range(300):
        points, queries = rng.random((60, 2)), rng.random((600, 2))
        labels = rng.permutation(60) < 30
        far = [np.linalg.norm(queries[:, None] - points[side][None], axis=2) for side in (labels, ~labels)]
        share, (low, high) = neighbours._nearer(
            (far[0].min(axis=1), far[1].min(axis=1)), (far[0].argmin(axis=1), far[1].argmin(axis=1))
        )
        covered += low <= 0.5 <= high
        assert 0 < share < 1
    assert covered > 270


def test_nothing_to_compare():
    same = np.zeros(4)
    assert neighbours._nearer((same, same), (same.astype(int), same.astype(int))) == (None, None)


@pytest.mark.parametrize("ties", [0, 3])
def test_ties_are_left_out(ties):
    first = np.array([0.0, 1.0, 1.0] + [1.0] * ties)
    second = np.array([1.0, 0.0, 2.0] + [1.0] * ties)
    who = np.arange(3 + ties)
    assert neighbours._nearer((first, second), (who, who))[0] == pytest.approx(2 / 3)


def test_one_record_that_is_near_to_all_is_next_to_no_evidence():
    far = (np.zeros(500), np.ones(500))
    share, (low, _) = neighbours._nearer(far, (np.full(500, 7), np.arange(500)))
    assert share == 1.0
    assert low < 0.3


@pytest.mark.parametrize("least", [1, 3, 5])
def test_the_interval_holds_the_share(least):
    """Ten records are near to one real one and a few to others: 1.2, 1.6 and 2.1 draws, all of one side."""
    who = np.concatenate([np.zeros(10, dtype=int), np.arange(1, 1 + least)])
    near, away = np.zeros(len(who)), np.ones(len(who))
    assert neighbours._nearer((near, away), (who, who))[1][1] == pytest.approx(1.0)
    assert neighbours._nearer((away, near), (who, who))[1][0] == pytest.approx(0.0)
