"""Dynamic time warping: against a plain reference, and the search against looking at everything."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from doublure.data.series import Series
from doublure.measures.series.nearest_neighbours import nearest_scores, neighbours, warp_distance


def plainly(one, other, band):
    """The sum along the best path, written as the textbook has it."""
    length = len(one)
    table = np.full((length + 1, length + 1), np.inf)
    table[0, 0] = 0
    for i in range(1, length + 1):
        for j in range(max(1, i - band), min(length, i + band) + 1):
            cost = ((one[i - 1] - other[j - 1]) ** 2).sum()
            table[i, j] = cost + min(table[i - 1, j], table[i, j - 1], table[i - 1, j - 1])
    return table[length, length]


@pytest.mark.parametrize("band", [1, 3, 9])
@pytest.mark.parametrize("channels", [1, 2])
def test_pairs_agree_with_a_plain_reference(band, channels):
    rng = np.random.default_rng(band)
    one, other = rng.normal(size=(6, 9, channels)), rng.normal(size=(6, 9, channels))
    assert warp_distance(one, other, band) == pytest.approx(
        [plainly(*pair, band) for pair in zip(one, other, strict=True)]
    )


def test_a_shift_within_the_band_costs_next_to_nothing():
    one = np.zeros((1, 40, 1))
    one[0, 10:14] = 5
    near, far = np.roll(one, 2, axis=1), np.roll(one, 12, axis=1)
    assert warp_distance(one, near, 4)[0] == 0
    assert warp_distance(one, far, 4)[0] > 100


def test_the_search_finds_what_looking_at_everything_finds():
    rng = np.random.default_rng(3)
    queries, series = rng.normal(size=(7, 20, 2)).cumsum(1), rng.normal(size=(150, 20, 2)).cumsum(1)
    found, distances = neighbours(queries, series)
    for query, place, distance in zip(queries, found, distances, strict=True):
        costs = warp_distance(np.repeat(query[None], 150, axis=0), series, 2)
        assert place == costs.argmin()
        assert distance == pytest.approx(np.sqrt(costs.min() / 20))


def test_scale_does_not_matter_and_gaps_are_bridged():
    rng = np.random.default_rng(4)
    values = rng.normal(size=(80, 10, 1)).cumsum(1)
    values[5, 3] = np.nan
    values[6] = np.nan

    def scores(factor):
        sets = {
            name: Series(values=factor * values[rows], channels=("a",), attributes=pd.DataFrame(index=range(20)))
            for name, rows in (
                ("value", slice(20)),
                ("baseline", slice(20, 40)),
                ("real", slice(40, 60)),
                ("test", slice(60, 80)),
            )
        }
        return nearest_scores(sets, 0)

    first, nearest = scores(1.0)
    again, _ = scores(250.0)
    assert first[0].value == pytest.approx(again[0].value)
    assert np.isfinite(nearest.distances).all()
    assert nearest.found.max() < 20
