"""Values exchanged between rows of one kind, so that pairs of columns are as the probabilities say."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy import special

from doublure.encode import pairwise_swapping as even_pairs
from doublure.encode.pairwise_swapping import EvenShares, pairwise_swapped

SIZES = (3, 5, 4)


def kinds_of(*sizes, seed=0, widths=SIZES):
    """Return the rows' probabilities, and which kind each is of."""
    rng = np.random.default_rng(seed)
    parts = [special.softmax(2 * rng.standard_normal((len(sizes), width)), axis=1) for width in widths]
    own = np.concatenate(parts, axis=1).astype(np.float32)
    kinds = np.repeat(np.arange(len(sizes)), sizes)
    return own[kinds], kinds


def drawn(chances, widths=SIZES, seed=1):
    shares = EvenShares(chances, np.random.default_rng(seed))
    parts = (part.cumsum(axis=1, dtype=np.float64) for part in np.split(chances, np.cumsum(widths)[:-1], axis=1))
    return np.stack([(part < shares.draw()[:, None] * part[:, -1:]).sum(axis=1) for part in parts], axis=1)


def surplus(codes, chances, widths=SIZES):
    """Return the sum over all pairs of columns of the squared surpluses."""
    starts = np.cumsum([0, *widths])
    total = 0.0
    for one, other in combinations(range(len(widths)), 2):
        left, right = (chances[:, starts[at] : starts[at] + widths[at]].astype(np.float64) for at in (one, other))
        counted = np.zeros((widths[one], widths[other]))
        np.add.at(counted, (codes[:, one], codes[:, other]), 1)
        total += float(((counted - left.T @ right) ** 2).sum())
    return total


def counts(codes, kinds, widths=SIZES):
    """Return how often each kind has each value."""
    found = np.zeros((kinds.max() + 1, len(widths), max(widths)), dtype=int)
    for block in range(len(widths)):
        np.add.at(found, (kinds, block, codes[:, block]), 1)
    return found


def test_pairs_come_nearer_to_what_the_probabilities_say():
    chances, kinds = kinds_of(300, 200, 250, 100)
    codes = drawn(chances)
    mixed = pairwise_swapped(codes, chances, SIZES, kinds, np.random.default_rng(2))
    assert surplus(mixed, chances) < 0.5 * surplus(codes, chances)


def test_each_kind_keeps_its_values():
    chances, kinds = kinds_of(40, 1, 7, 60)
    order = np.random.default_rng(3).permutation(len(kinds))
    chances, kinds = chances[order], kinds[order]
    codes = drawn(chances)
    mixed = pairwise_swapped(codes, chances, SIZES, kinds, np.random.default_rng(4))
    assert (mixed != codes).any()
    assert (counts(mixed, kinds) == counts(codes, kinds)).all()


def test_pairs_are_even_within_each_condition():
    widths = (4, 5, 2)
    chances, kinds = kinds_of(300, 200, 300, 200, widths=widths)
    condition = kinds % 2
    chances[:, -2:] = np.eye(2)[condition]
    codes = drawn(chances, widths)
    mixed = pairwise_swapped(codes, chances, widths, kinds, np.random.default_rng(5))
    for value in (0, 1):
        own = condition == value
        before, after = (surplus(each[own], chances[own], widths) for each in (codes, mixed))
        assert after < 0.7 * before


def test_probabilities_need_not_add_up_to_one():
    chances, kinds = kinds_of(80, 70)
    codes = drawn(chances)
    scale = np.array([3.0] * 3 + [0.5] * 5 + [1.0] * 4, dtype=np.float32)
    one, other = (
        pairwise_swapped(codes, by, SIZES, kinds, np.random.default_rng(6)) for by in (chances, chances * scale)
    )
    assert (one == other).all()


def test_many_conditions_are_evened_together():
    widths = (4, 5, even_pairs._MOST_STRATA + 1)
    chances, kinds = kinds_of(*[40] * 34, widths=widths)
    chances[:, -widths[2] :] = np.eye(widths[2])[kinds % widths[2]]
    codes = drawn(chances, widths)
    mixed = pairwise_swapped(codes, chances, widths, kinds, np.random.default_rng(5))
    assert surplus(mixed[:, :2], chances, widths[:2]) < 0.5 * surplus(codes[:, :2], chances, widths[:2])
    assert (mixed[:, 2] == codes[:, 2]).all()


def test_rare_codes_share_a_cell_where_there_are_many(monkeypatch):
    monkeypatch.setattr(even_pairs, "_MOST_CELLS", 9)
    chances, kinds = kinds_of(400, 300)
    codes = drawn(chances)
    mixed = pairwise_swapped(codes, chances, SIZES, kinds, np.random.default_rng(6))
    assert (counts(mixed, kinds) == counts(codes, kinds)).all()
    assert surplus(mixed, chances) < 0.8 * surplus(codes, chances)


def test_the_generator_decides():
    chances, kinds = kinds_of(50, 70)
    codes = drawn(chances)
    one, same, other = (
        pairwise_swapped(codes, chances, SIZES, kinds, np.random.default_rng(seed)) for seed in (7, 7, 8)
    )
    assert (one == same).all()
    assert (one != other).any()


@pytest.mark.parametrize("seed", range(10))
def test_many_rows_and_few_values_are_not_exchanged_too_often(seed):
    widths = (4, 5)
    chances, kinds = kinds_of(300, 200, seed=seed, widths=widths)
    codes = drawn(chances, widths, seed=seed + 1)
    mixed = pairwise_swapped(codes, chances, widths, kinds, np.random.default_rng(seed + 2))
    assert surplus(mixed, chances, widths) < 0.4 * surplus(codes, chances, widths)


def test_of_many_blocks_some_are_evened_together(monkeypatch):
    monkeypatch.setattr(even_pairs, "_MOST_BLOCKS", 4)
    widths = (3,) * 10
    chances, kinds = kinds_of(80, 70, widths=widths)
    codes = drawn(chances, widths)
    mixed = pairwise_swapped(codes, chances, widths, kinds, np.random.default_rng(12))
    assert surplus(mixed, chances, widths) < 0.9 * surplus(codes, chances, widths)
    assert (counts(mixed, kinds, widths) == counts(codes, kinds, widths)).all()


def test_more_blocks_than_cells():
    widths = (2,) * 5000
    chances, kinds = kinds_of(12, 8, widths=widths)
    codes = drawn(chances, widths)
    mixed = pairwise_swapped(codes, chances, widths, kinds, np.random.default_rng(13))
    assert (mixed.sum(axis=0) == codes.sum(axis=0)).all()


def test_exchanges_end_where_there_is_too_much_to_look_at(monkeypatch):
    chances, kinds = kinds_of(300, 200)
    codes = drawn(chances)
    left = []
    for most in (0, 300, 30_000_000):
        monkeypatch.setattr(even_pairs, "_MOST_JUDGED", most)
        left.append(surplus(pairwise_swapped(codes, chances, SIZES, kinds, np.random.default_rng(14)), chances))
    assert left[0] == surplus(codes, chances)
    assert left[2] < left[1] < left[0]


@pytest.mark.parametrize(
    ("sizes", "widths"),
    [((1,) * 30, SIZES), ((30, 20), (4,)), ((), SIZES)],
    ids=["every row of a kind of its own", "one column", "no rows"],
)
def test_nothing_to_exchange(sizes, widths):
    chances, kinds = kinds_of(*sizes, widths=widths)
    codes = drawn(chances, widths) if len(kinds) else np.zeros((0, len(widths)), dtype=np.int64)
    assert (pairwise_swapped(codes, chances, widths, kinds, np.random.default_rng(9)) == codes).all()


def test_what_is_certain_stays():
    codes = np.random.default_rng(10).integers(0, 3, (60, 2))
    chances = np.concatenate([np.eye(3)[codes[:, 0]], np.eye(3)[codes[:, 1]]], axis=1)
    kinds = np.unique(codes, axis=0, return_inverse=True)[1].reshape(-1)
    assert (pairwise_swapped(codes, chances, (3, 3), kinds, np.random.default_rng(11)) == codes).all()
