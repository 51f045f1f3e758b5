"""Nearest-neighbour divergences: the closed forms, the truth for Gaussians, and a shortcut that equals the long way."""

from __future__ import annotations

import numpy as np
import pytest

from doublure.errors import DataError
from doublure.measures.divergence import Neighbourhood, divergence, nearest

X = np.array([(0, 0), (1, 0), (0, 2), (3, 3)], dtype=float)
Y = np.array([(0.5, 0.5), (2, 2), (0, 1), (4, 1), (1, 3)], dtype=float)


@pytest.mark.parametrize("width", [2, 30])
def test_the_nearest_are_the_nearest(width):
    rng = np.random.default_rng(6)
    points, queries = rng.random((200, width)), rng.random((9, width))
    slow = np.linalg.norm(queries[:, None] - points[None], axis=2)
    far, who = nearest(points, queries, 3)
    assert who.tolist() == slow.argsort(axis=1)[:, :3].tolist()
    assert far == pytest.approx(np.sort(slow, axis=1)[:, :3])
    assert nearest(points, points, 1)[0].max() < 1e-6


@pytest.mark.parametrize(("order", "expected"), [(1, -0.584681), (2, -0.588557)])
def test_the_closed_form(order, expected):
    assert divergence(X, Y, order) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("order", [1, 5])
def test_two_gaussians(order):
    """KL between N(0, I) and N(m, I) is |m|²/2."""
    rng = np.random.default_rng(0)
    first, second = rng.standard_normal((4000, 2)), rng.standard_normal((6000, 2)) + np.array([1.0, 0.5])
    assert divergence(first, second, order) == pytest.approx(0.625, abs=0.12)


def test_scale_and_place_change_nothing():
    rng = np.random.default_rng(1)
    first, second = rng.random((200, 3)), rng.random((300, 3)) ** 1.5
    moved = divergence(1e-3 * first + 1e3, 1e-3 * second + 1e3)
    assert moved == pytest.approx(divergence(first, second), rel=1e-4)


def long_way(records, removed):
    """Every distance by hand: the mean log-ratio of densities, a record being no neighbour of itself."""
    n, width = records.shape
    gone = np.isin(np.arange(n), removed)
    far = np.linalg.norm(records[:, None] - records[None], axis=2)
    np.fill_diagonal(far, np.inf)
    within, left = far.min(axis=1), far[:, ~gone].min(axis=1)
    others = np.where(gone, n - len(removed), n - len(removed) - 1)
    return float(np.mean(width * np.log(left / within) + np.log(others / (n - 1))))


@pytest.mark.parametrize("k", [1, 3, 17, 40])
@pytest.mark.parametrize("width", [2, 30])
def test_taking_some_away_equals_the_long_way(k, width):
    rng = np.random.default_rng(2)
    records = rng.standard_normal((300, width))
    near = Neighbourhood(records, 40)
    for place in rng.standard_normal((3, 1, width)):
        removed = near.nearest(place, k)[0]
        assert len(set(removed.tolist())) == k
        far = np.linalg.norm(records - place, axis=1)
        assert far[removed].max() <= np.sort(far)[k - 1] * (1 + 1e-9)
        assert near.loss(removed) == pytest.approx(long_way(records, removed), abs=1e-9)


def test_a_larger_hole_is_a_larger_loss():
    near = Neighbourhood(np.random.default_rng(3).standard_normal((500, 4)), 50)
    holes = near.nearest(np.zeros((1, 4)), 50)[0]
    losses = [near.loss(holes[:k]) for k in (5, 20, 50)]
    assert losses == sorted(losses)
    assert losses[-1] > 0.05


def test_a_few_twins_are_borne_and_many_refused():
    rng = np.random.default_rng(4)
    records = rng.standard_normal((1000, 3))
    records[:4] = records[4:8]
    near = Neighbourhood(records, 10)
    assert np.isfinite(near.loss(near.nearest(records[:1], 10)[0]))
    assert np.isfinite(divergence(records, rng.standard_normal((500, 3))))
    records[:40] = records[40:80]
    measures = {
        "the synthetic set": lambda: Neighbourhood(records, 10),
        "the real data": lambda: divergence(records, rng.standard_normal((500, 3)), named="the real data"),
    }
    for named, measure in measures.items():
        with pytest.raises(DataError, match="no density") as caught:
            measure()
        assert caught.value.field == named


def test_twins_by_the_dozen_keep_every_record_out_of_its_own_list():
    """A record with more twins than its list is long is not found among its own neighbours."""
    records = np.concatenate([np.random.default_rng(5).standard_normal((995, 2)), np.full((5, 2), 3.0)])
    near = Neighbourhood(records, 1)
    assert (near._who != np.arange(1000)[:, None]).all()


@pytest.mark.parametrize(("first", "second"), [(X[:1], Y), (X, Y[:0])])
def test_too_few_are_refused(first, second):
    with pytest.raises(DataError, match="too few"):
        divergence(first, second)
