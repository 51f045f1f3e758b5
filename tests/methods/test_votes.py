"""Codes that determine codes: votes of single values in place of a joint table."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from doublure.methods.statistics.tables.nodes import NoisyCounts
from doublure.methods.statistics.tables.tree_fit import _with_margins, denoise
from doublure.methods.statistics.tables.votes import voted_table

_NOISE, _OF_ROWS = 25.0, 15.0


def _drawn(chances: Any, seed: int, times: float = 1.0) -> tuple[Any, NoisyCounts, Any]:
    """Return a true table of rows by these chances, its noisy counts, and noisy rows of each value."""
    rng = np.random.default_rng(seed)
    rows = times * rng.integers(20, 120, len(chances))
    true = rows[:, None] * chances
    noisy = NoisyCounts(counts=true + rng.normal(0, _NOISE, true.shape), variance=_NOISE**2)
    return true, noisy, np.maximum(rows + rng.normal(0, _OF_ROWS, len(rows)), 1.0)


def _believed(noisy: NoisyCounts, rows: Any, shares: Any) -> tuple[Any, Any]:
    """Return what is believed without votes: as it is denoised, and with its margins."""
    found = denoise(noisy, np.outer(rows, shares), ordered=False)
    return found, _with_margins(found, (rows, rows.sum() * shares))


def _voted(noisy: NoisyCounts, rows: Any, shares: Any) -> Any:
    found = voted_table(noisy, _believed(noisy, rows, shares)[0], rows, _OF_ROWS**2, shares)
    return None if found is None else _with_margins(found, (rows, rows.sum() * shares))


def _one_each(seed: int) -> Any:
    return np.eye(5)[np.random.default_rng(seed).integers(0, 5, 40)]


@pytest.mark.parametrize("stray", [0.0, 0.05])
def test_votes_are_nearer_than_the_denoised_table_wherever_one_list_determines_another(stray: float) -> None:
    for seed in range(10):
        true, noisy, rows = _drawn((1 - stray) * _one_each(seed) + stray / 5, seed)
        shares = true.sum(0) / true.sum()
        found, before = _voted(noisy, rows, shares), _believed(noisy, rows, shares)[1]
        assert found is not None
        assert np.abs(found - true).sum() < 0.8 * np.abs(before - true).sum()


def test_an_independent_list_has_no_votes() -> None:
    for seed in range(10):
        for chances in (np.full((40, 5), 0.2), np.tile([0.6, 0.1, 0.1, 0.1, 0.1], (40, 1))):
            true, noisy, rows = _drawn(chances, seed)
            assert _voted(noisy, rows, true.sum(0) / true.sum()) is None


@pytest.mark.parametrize(("every", "times"), [(10, 1.0), (10, 3.0), (10, 8.0), (4, 1.0), (4, 3.0)])
def test_values_that_split_keep_what_is_believed_of_them(every: int, times: float) -> None:
    """Also where so few split that votes explain the whole table best."""
    voted = 0
    for seed in range(20):
        chances = _one_each(seed)
        chances[::every] = np.random.default_rng(seed).dirichlet(np.ones(5), len(chances[::every]))
        true, noisy, rows = _drawn(chances, seed, times)
        shares = true.sum(0) / true.sum()
        found = _voted(noisy, rows, shares)
        if found is not None:
            voted += 1
            before = _believed(noisy, rows, shares)[1]
            assert np.abs(found - true).sum() < 0.75 * np.abs(before - true).sum()
    assert voted >= 3


def test_a_list_that_clearly_splits_some_values_has_no_votes() -> None:
    split = _one_each(1)
    split[::2] = np.array([0.5, 0.3, 0.2, 0.0, 0.0])
    for seed in range(10):
        true, noisy, rows = _drawn(split, seed, 20.0)
        assert _voted(noisy, rows, true.sum(0) / true.sum()) is None


def test_noise_alone_says_nothing() -> None:
    for seed in range(20):
        rng = np.random.default_rng(seed)
        noisy = NoisyCounts(counts=rng.normal(0, 200.0, (40, 5)), variance=200.0**2)
        assert voted_table(noisy, noisy.counts, np.full(40, 30.0), 100.0**2, np.full(5, 0.2)) is None


def test_a_list_that_strays_keeps_its_share_of_strays() -> None:
    true, noisy, rows = _drawn(0.75 * _one_each(3) + 0.05, 3, 3.0)
    found = _voted(noisy, rows, true.sum(0) / true.sum())
    assert found is not None
    assert found.max(1).sum() / found.sum() == pytest.approx(0.8, abs=0.12)
