"""Rows of codes, read down the tree from noisy counts of codes and groups."""

from __future__ import annotations

import numpy as np
import pytest

from doublure.methods.statistics.tables.code_posterior import CodePosterior
from doublure.methods.statistics.tables.leaves import join_codes

CHAPTERS, BLOCKS, EACH = 10, 10, 10
COUNT = CHAPTERS * BLOCKS * EACH
LEVELS = np.stack([np.repeat(np.arange(CHAPTERS), BLOCKS * EACH), np.repeat(np.arange(CHAPTERS * BLOCKS), EACH)])


def rows_of(rng: np.random.Generator, total: int = 4_000, used: int = 120) -> np.ndarray:
    """Return the rows of codes in a fifth of the blocks."""
    blocks = rng.choice(CHAPTERS * BLOCKS, CHAPTERS * BLOCKS // 5, replace=False)
    places = rng.permutation(np.flatnonzero(np.isin(LEVELS[1], blocks)))[:used]
    rows = np.zeros(COUNT)
    rows[places] = rng.multinomial(total, rng.dirichlet(np.full(used, 0.5)))
    return rows


def fitted(rows: np.ndarray, noise: float, rng: np.random.Generator) -> CodePosterior:
    found = CodePosterior(LEVELS)
    found.see(np.arange(COUNT), rows + rng.normal(0, noise, COUNT), noise**2)
    found.see(LEVELS[1], np.bincount(LEVELS[1], rows) + rng.normal(0, noise, LEVELS[1].max() + 1), noise**2)
    found.fit(rows.sum())
    return found


def distance(one: np.ndarray, other: np.ndarray) -> float:
    return float(np.abs(one / one.sum() - other / other.sum()).sum() / 2)


@pytest.mark.parametrize("noise", [5.0, 12.0])
def test_few_rows_go_to_codes_that_nobody_has(noise):
    found = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        rows = rows_of(rng)
        own = fitted(rows, noise, rng)
        assert own.mass.sum() == pytest.approx(rows.sum())
        chapters = [np.bincount(LEVELS[0], each) for each in (own.mass, rows)]
        found.append((own.mass[rows == 0].sum() / rows.sum(), distance(own.mass, rows), distance(*chapters)))
    strange, codes, groups = np.mean(found, axis=0)
    assert strange < 0.05
    assert codes < 0.02 * noise + 0.1
    assert groups < 0.05


def test_without_evidence_rows_are_even():
    found = CodePosterior(LEVELS)
    found.see(np.arange(COUNT), np.zeros(COUNT), 1e8)
    found.fit(1_000.0)
    assert found.mass == pytest.approx(np.ones(COUNT), rel=1e-3)


def test_rows_of_a_group_go_to_its_codes_with_evidence():
    rows = np.zeros(COUNT)
    rows[[3, 5]] = 400, 200
    found = CodePosterior(LEVELS)
    found.see(np.arange(COUNT), rows, 4.0)
    found.see(LEVELS[1], np.bincount(LEVELS[1], rows) + np.where(np.arange(100) == 0, 60, 0), 1.0)
    found.fit(660.0)
    assert np.flatnonzero(found.mass > 0.5).tolist() == [3, 5]
    assert found.mass[3] == pytest.approx(440, abs=10)


def test_exact_counts_come_back():
    rng = np.random.default_rng(1)
    rows = rows_of(rng)
    assert distance(fitted(rows, 0.05, rng).mass, rows) < 1e-3


def test_a_count_of_codes_alone_and_the_rest_is_used():
    """A later table of the most frequent codes and the rest lowers the error."""
    rng = np.random.default_rng(2)
    rows = rows_of(rng)
    own = fitted(rows, 15.0, rng)
    before = distance(own.mass, rows)
    top = np.argsort(-rows)[:20]
    groups = np.full(COUNT, 20)
    groups[top] = np.arange(20)
    own.see(groups, np.bincount(groups, rows), 1.0)
    own.fit(rows.sum())
    assert distance(own.mass, rows) < before
    assert (own.mass[top] > rows[top] - 12).all()  # and rows without evidence of their groups


def test_groups_join_up_the_tree_and_leave_no_empty_ones():
    rng = np.random.default_rng(3)
    masses = rows_of(rng)
    fine = join_codes(LEVELS, np.arange(COUNT), masses, least=100.0)
    held = np.bincount(fine, masses)
    assert (held > 0).all()
    assert (held < 100).sum() <= 1
    coarse = join_codes(LEVELS, fine, masses, least=400.0)
    assert len({*zip(fine.tolist(), coarse.tolist(), strict=True)}) == fine.max() + 1  # nested
    assert coarse.max() < fine.max()
    again = join_codes(LEVELS, fine, np.where(fine == 0, 0.0, masses), least=0.0)  # one group lost its rows
    assert (np.bincount(again, np.where(fine == 0, 0.0, masses)) > 0).all()


def test_a_groups_name_is_never_drawn_and_its_rows_go_to_its_codes():
    """The first code of each block stands for codes outside the list; in some blocks it alone has rows."""
    rng = np.random.default_rng(5)
    rows = rows_of(rng)
    names = np.arange(0, COUNT, EACH)
    rows[names[:30]] = 150
    found = CodePosterior(LEVELS, names.tolist())
    found.see(np.arange(COUNT), rows + rng.normal(0, 5, COUNT), 25.0)
    found.see(LEVELS[1], np.bincount(LEVELS[1], rows), 1.0)
    found.fit(rows.sum())
    assert not found.mass[names].any()
    assert found.mass.sum() == pytest.approx(rows.sum())
    assert distance(np.bincount(LEVELS[1], found.mass), np.bincount(LEVELS[1], rows)) < 0.05


@pytest.mark.parametrize(("chapters", "filled"), [(10, 0.1), (10, 0.6), (40, 0.25)])
@pytest.mark.parametrize("noise", [5.0, 15.0])
def test_the_promise_on_codes_that_nobody_has_holds_for_other_lists(chapters, filled, noise):
    """Lists of other sizes, other shares of which are used, and other spreads of rows: 1 row in 20, and chance."""
    levels = np.stack([np.repeat(np.arange(chapters), 100), np.repeat(np.arange(chapters * 10), 10)])
    count, found = levels.shape[1], []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        used = rng.permutation(np.flatnonzero(rng.random(chapters * 10)[levels[1]] < filled))[: count // 8]
        rows = np.zeros(count)
        rows[used] = rng.multinomial(20_000, rng.dirichlet(np.full(len(used), 0.4)))
        own = CodePosterior(levels)
        own.see(np.arange(count), rows + rng.normal(0, noise, count), noise**2)
        own.see(levels[1], np.bincount(levels[1], rows) + rng.normal(0, noise, levels[1].max() + 1), noise**2)
        own.fit(rows.sum())
        found.append(own.mass[rows == 0].sum() / rows.sum())
    assert np.mean(found) < 0.06
