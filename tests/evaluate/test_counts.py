from functools import reduce
from itertools import combinations
from operator import add

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiers import examples

from doublure.measures.tables import counts
from doublure.measures.tables.counts import count

SIZES = (4, 7, 3)
PAIRS = list(combinations(range(3), 2))


def codes(n, seed=0, sizes=SIZES):
    rng = np.random.default_rng(seed)
    return np.stack([rng.integers(0, size, n) for size in sizes], axis=1).astype(np.int32)


def same(left, right):
    assert left.rows == right.rows
    for a, b in zip(left.one, right.one, strict=True):
        assert a.tolist() == b.tolist()
    for pair in PAIRS:
        assert left.two[pair].keys.tolist() == right.two[pair].keys.tolist()
        assert left.two[pair].counts.tolist() == right.two[pair].counts.tolist()


@examples(40)
@given(n=st.integers(1, 120), cuts=st.lists(st.integers(0, 120), max_size=4), seed=st.integers(0, 99), data=st.data())
def test_parts_added_in_any_order_are_the_whole(n, cuts, seed, data):
    table = codes(n, seed)
    parts = np.split(table, sorted(min(cut, n) for cut in cuts))
    shuffled = data.draw(st.permutations(parts))
    same(reduce(add, (count(part, SIZES, PAIRS) for part in shuffled)), count(table, SIZES, PAIRS))


def test_chunks_make_no_difference(monkeypatch):
    table = codes(1000)
    whole = count(table, SIZES, PAIRS)
    monkeypatch.setattr(counts, "_CHUNK_ROWS", 37)
    same(count(table, SIZES, PAIRS), whole)


def test_large_tables_are_counted_alike(monkeypatch):
    table = codes(1000)
    whole = count(table, SIZES, PAIRS)
    monkeypatch.setattr(counts, "_MOST_CELLS", 0)
    same(count(table, SIZES, PAIRS), whole)


def test_counts_agree_with_a_cross_table():
    table = codes(500)
    cells = count(table, SIZES, PAIRS).two[0, 1]
    crossed = pd.crosstab(table[:, 0], table[:, 1]).reindex(index=range(4), columns=range(7), fill_value=0).to_numpy()
    laid_out = np.zeros(28, dtype=int)
    laid_out[cells.keys] = cells.counts
    assert laid_out.reshape(4, 7).tolist() == crossed.tolist()


def test_codes_of_huge_columns_do_not_overflow():
    sizes = (100_000, 100_000)
    table = np.array([[99_999, 99_999], [0, 0]], dtype=np.int32)
    cells = count(table, sizes, [(0, 1)]).two[0, 1]
    assert cells.keys.tolist() == [0, 99_999 * 100_000 + 99_999]
    assert cells.counts.sum() == 2


def test_shares_are_of_all_rows():
    assert count(codes(10), SIZES, []).shares(0).sum() == pytest.approx(1)
