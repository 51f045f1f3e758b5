"""The rows of squares of a map, by all of their noisy counts: towns anywhere, and next to nothing between them."""

from __future__ import annotations

import numpy as np
import pytest
from planting import plant

from doublure.encode.points import CurveDomain
from doublure.methods.statistics.tables import exchangeable
from doublure.methods.statistics.tables.exchangeable import ExchangeablePosterior
from doublure.methods.statistics.tables.nodes import make_posterior
from doublure.methods.statistics.tables.posterior import ColumnPosterior
from doublure.schema.columns import IntegerDomain

SQUARE, NOISE = 64, 8.0
DOMAIN = CurveDomain(first=0, last=1024 * SQUARE - 1, nullable=False, square=SQUARE)
TOWNS = np.array([3, 4, 77, 500, 501, 900])


def posterior(seed: int, cut: int = 500) -> tuple[ExchangeablePosterior, np.ndarray]:
    """Return the posterior of towns of 500 rows, of which one is cut and has all rows in its last place."""
    draw = np.random.default_rng(seed)
    starts = np.sort(np.append(np.arange(1024) * SQUARE, cut * SQUARE + np.arange(1, SQUARE)))
    truth = np.zeros(1024)
    truth[TOWNS] = 500
    found = ExchangeablePosterior(DOMAIN, starts)
    found.see_cells(truth + draw.normal(0, NOISE, 1024), NOISE**2)
    places = cut * SQUARE + np.arange(SQUARE)
    own = np.where(np.arange(SQUARE) == SQUARE - 1, 500, 0) + draw.normal(0, NOISE, SQUARE)
    found.see_ranges(places, places, own, NOISE**2)
    found.fit()
    return found, starts // SQUARE


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_rows_stay_in_their_towns(seed: int) -> None:
    found, square = posterior(seed)
    rows = np.bincount(square, found.mass)
    assert np.abs(rows[TOWNS] - 500).max() < 4 * NOISE
    assert np.delete(rows, TOWNS).sum() < 0.05 * rows.sum()
    assert rows[[2, 5]].max() < NOISE  # beside a town
    assert abs(found.mass[square == 500][-1] - 500) < 4 * NOISE


def test_a_posterior_that_believes_noise_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchangeable, "posterior_moments", lambda counts, noise, **more: (np.maximum(counts, 0), noise))
    with pytest.raises(AssertionError):
        test_rows_stay_in_their_towns(1)


def test_later_counts_move_rows_by_their_precision() -> None:
    found, square = posterior(1)
    before = np.bincount(square, found.mass)
    ends = np.array([76 * SQUARE + SQUARE - 1, 78 * SQUARE - 1])
    found.see_ranges(ends - SQUARE + 1, ends, np.array([0.0, 600.0]), 1e-6)  # as good as known
    found.fit()
    rows = np.bincount(square, found.mass)
    assert rows[77] == pytest.approx(600, abs=0.1)
    others = np.delete(np.arange(1024), [76, 77])
    assert np.allclose(rows[others], before[others])
    known = found.variances(square)
    assert known[77] < 1e-3
    assert known[TOWNS[0]] == pytest.approx(NOISE**2)
    found.see_ranges(np.zeros(1, np.int64), np.array([DOMAIN.last]), np.array([4_000.0]), 1e-9)
    found.fit()
    assert found.mass.sum() == pytest.approx(4_000)


def test_leaves_with_rows_of_their_own_are_cut_again() -> None:
    found, square = posterior(2)
    again = np.flatnonzero(found.standing_out(NOISE))
    assert set(square[again]) == set(TOWNS) - {500}  # which is cut to single places


def test_a_column_says_whether_its_cells_are_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    starts = np.arange(9)
    assert isinstance(make_posterior(IntegerDomain(first=0, last=8, nullable=False), starts), ColumnPosterior)
    assert isinstance(make_posterior(DOMAIN, np.arange(1024) * SQUARE), ExchangeablePosterior)
    plant(monkeypatch, ExchangeablePosterior, "_move", ("1 - gain", "1 + gain"))
    with pytest.raises(AssertionError):
        test_later_counts_move_rows_by_their_precision()
