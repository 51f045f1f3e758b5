"""Draws that rows of one kind share out evenly, each of them as likely as if it were drawn for itself."""

from __future__ import annotations

import numpy as np
from scipy import stats

from doublure.encode.pairwise_swapping import EvenShares

ALPHA = 1e-6


def rows(*sizes, width=4):
    kinds = np.random.default_rng(0).random((len(sizes), width), dtype=np.float32)
    return np.repeat(kinds, sizes, axis=0)


def test_each_group_has_one_number_in_each_part():
    mixed = rows(40, 1, 7)
    order = np.random.default_rng(1).permutation(48)
    drawn = EvenShares(mixed[order], np.random.default_rng(2)).draw()
    group = np.repeat([0, 1, 2], [40, 1, 7])[order]
    for kind, size in enumerate((40, 1, 7)):
        assert sorted((drawn[group == kind] * size).astype(int)) == list(range(size))


def test_a_row_alone_is_uniform_whatever_its_company():
    source = np.random.default_rng(3)
    for size in (1, 3):
        first = [EvenShares(rows(size, 2), source).draw()[0] for _ in range(3000)]
        assert stats.kstest(first, "uniform").pvalue > ALPHA


def test_two_draws_have_nothing_to_do_with_one_another():
    shares = EvenShares(rows(400, 300), np.random.default_rng(4))
    together = np.array([[shares.draw(), shares.draw()] for _ in range(60)])
    table = np.histogram2d(together[:, 0].ravel(), together[:, 1].ravel(), bins=8)[0]
    assert stats.chi2_contingency(table).pvalue > ALPHA


def test_rows_that_differ_are_drawn_for_themselves():
    apart = np.random.default_rng(5).random((5000, 3))
    shares = EvenShares(apart, np.random.default_rng(6))
    assert (shares._sizes == 1).all()
    assert stats.kstest(shares.draw(), "uniform").pvalue > ALPHA


def test_the_generator_decides():
    one, other = (EvenShares(rows(9, 5), np.random.default_rng(7)).draw() for _ in range(2))
    assert (one == other).all()


def test_no_rows():
    assert EvenShares(np.empty((0, 3)), np.random.default_rng(8)).draw().shape == (0,)
