"""What is read off noisy counts: bounds, shares, missingness. How the counts are made is said where they are."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from noisy_facts import any_missing, noisy, noisy_bounds, noisy_shares
from scipy import stats

from doublure import noisy_counts
from doublure.errors import SettingError
from doublure.noisy_counts import CandidateGrid
from doublure.private import whole_noise
from doublure.private.noise import ScaledNoise
from doublure.private.queries.facts import count_on_grid

ALPHA = 1e-6
SIZE = 24_000


def median_of_five(release):
    """A fact that is wrong once in a thousand is wrong three times in five once in 10⁸."""
    return [float(np.median(side)) for side in zip(*(release() for _ in range(5)), strict=True)]


# --- cells of a public grid -------------------------------------------------------------------------------------------


number = st.one_of(st.floats(), st.sampled_from([0.0, -0.0, 1.0, 5.0, 1e-13, 3e38, math.inf, -math.inf, math.nan]))
rows = st.lists(number, max_size=30)


def distance(one, two):
    return np.abs(one - two).sum()


@given(kept=rows, unit=st.lists(number, max_size=3), integer=st.booleans())
@settings(max_examples=300, deadline=None)
def test_one_unit_moves_the_cells_by_its_records(kept, unit, integer):
    grid = CandidateGrid.from_decades(integer=integer)
    before, after = (count_on_grid(np.array(values), grid) for values in (kept, kept + unit))
    assert before.shape == after.shape == (grid.cells,)
    assert distance(before, after) == np.count_nonzero(~np.isnan(np.array(unit, dtype=float)))
    assert after.sum() == np.count_nonzero(~np.isnan(np.array(kept + unit, dtype=float)))


def test_the_cells_partition():
    grid = CandidateGrid.from_points([5.0, 0.0, 1.0])
    cells = [np.flatnonzero(count_on_grid(np.array([float(v)]), grid))[0] for v in (-9, 0, 0.5, 1, 3, 5, 9, math.inf)]
    assert cells == [0, 0, 1, 2, 3, 4, 4, 4]


@pytest.mark.parametrize(("epsilon", "max_records", "beta"), [(0.5, 1, 0.01), (0.05, 1, 0.2), (0.5, 7, 0.05)])
def test_the_detection_limit_is_the_least(epsilon, max_records, beta):
    limit = noisy_counts.detection_limit(epsilon=epsilon, max_records=max_records, beta=beta)
    a = math.exp(-epsilon / max_records)
    at = (1 - a) / (1 + a) * a**limit  # P(X = limit)
    beyond = (1 - a) / (1 + a) * sum(a**x for x in range(limit + 1, limit + math.ceil(60 / -math.log(a))))
    assert beyond <= beta < beyond + at
    cells = noisy_counts.detection_limit(epsilon=epsilon, max_records=max_records, beta=beta, cells=1000)
    assert cells == pytest.approx(limit + math.log(1000) * max_records / epsilon, abs=1)


# --- use -------------------------------------------------------------------------------------------------------------


def test_missing_values_are_noticed():
    flags = np.zeros(SIZE, dtype=bool)
    alarms = sum(any_missing(flags, epsilon=0.05, max_records=1) for _ in range(300))
    assert stats.binomtest(alarms, 300, 0.01, alternative="greater").pvalue > ALPHA
    flags[:800] = True
    assert any_missing(flags, epsilon=0.05, max_records=1)
    assert not any_missing([], epsilon=1.0, max_records=1, beta=1e-9)


rng = np.random.default_rng(11)
COLUMNS = {
    # name: (values, integer, most that may be cut off, most that the upper bound may reach)
    "weights like a census's": (rng.lognormal(12.0, 0.55, SIZE).round(), True, 0.02, 2e6),
    "skewed": (rng.lognormal(3, 2, SIZE), False, 0.06, 2e4),
    "ages": (np.clip(rng.normal(38, 14, SIZE), 17, 90).round(), True, 0.01, 100),
    "hours": (np.clip(rng.normal(40, 12, SIZE), 1, 99).round(), True, 0.01, 100),
    "many zeros": (np.where(rng.random(SIZE) < 0.92, 0, rng.lognormal(8.5, 1, SIZE)).round(), True, 0.05, 2e5),
    "signed": (rng.normal(0, 1, SIZE), False, 0.01, 10),
    "unit interval": (rng.random(SIZE), False, 0.001, 1),
    "yes or no": ((rng.random(SIZE) < 0.1).astype(float), True, 0, 1),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_bounds_hold_nearly_all_and_are_not_absurd(name):
    values, integer, cut, reach = COLUMNS[name]
    lower, upper = median_of_five(lambda: noisy_bounds(values, epsilon=0.05, max_records=1, integer=integer))
    assert np.mean((values < lower) | (values > upper)) <= cut
    assert upper <= reach
    assert lower >= min(0, 10 * values.min())


def test_bounds_know_round_numbers():
    percent = np.random.default_rng(0).uniform(0, 100, SIZE)
    percent[:2000], percent[2000:4000] = 0, 100
    assert median_of_five(lambda: noisy_bounds(percent, epsilon=0.5, max_records=1)) == [0, 100]


def test_bounds_follow_a_public_grid():
    days = np.random.default_rng(0).integers(11_000, 13_500, SIZE).astype(float)
    years = [(np.datetime64(f"{year}-01-01") - np.datetime64("1970-01-01")).astype(int) for year in range(1900, 2101)]
    lower, upper = median_of_five(lambda: noisy_bounds(days, epsilon=0.1, max_records=1, candidates=years))
    assert {lower, upper} <= set(map(float, years))
    assert 11_000 - 366 <= lower <= 11_000 + 366
    assert 13_500 - 366 <= upper <= 13_500 + 366


def test_negative_columns_mirror_positive_ones():
    values = -np.random.default_rng(0).lognormal(3, 1, SIZE)
    lower, upper = median_of_five(lambda: noisy_bounds(values, epsilon=0.1, max_records=1))
    assert upper == 0
    assert -5000 <= lower <= -100


HOPELESS = {
    "empty": [],
    "one": [3.0],
    "missing": [math.nan] * 500,
    "infinite": [math.inf, -math.inf] * 500,
    "huge": [1e308, -1e308, 5e-324] * 500,
    "constant": [7.0] * 500,
    "zero": [0.0] * 500,
}


@pytest.mark.parametrize("values", HOPELESS.values(), ids=HOPELESS.keys())
@pytest.mark.parametrize("epsilon", [1e-6, 0.01, 1.0, 1000.0])
def test_bounds_never_fail(values, epsilon):
    for hint in (
        {},
        {"magnitude": 1e-3},
        {"magnitude": 0.3, "integer": True},
        {"precision": 2},
        {"candidates": [3, 1]},
    ):
        lower, upper = noisy_bounds(values, epsilon=epsilon, max_records=1, **hint)
        assert -math.inf < lower < upper < math.inf
        if hint.get("integer"):
            assert lower == int(lower)
            assert upper == int(upper)
        if "precision" in hint:
            assert (lower, upper) == (round(lower, 2), round(upper, 2))


def test_bounds_fall_back_on_what_is_public(monkeypatch):
    monkeypatch.setattr(whole_noise, "laplace", lambda counts, **_: ScaledNoise(np.asarray(counts), 1.0))
    assert noisy_bounds([], epsilon=1.0, max_records=1, candidates=[0, 5, 9]) == (0, 9)
    assert noisy_bounds([], epsilon=1.0, max_records=1, magnitude=300) == (-500, 500)
    assert noisy_bounds([3.0], epsilon=1.0, max_records=1) == (2, 5)


THIN = np.concatenate([np.zeros(1000), np.random.default_rng(5).lognormal(5, 3, 1000)])


def test_a_tail_that_no_cell_shows_is_not_cut_off():
    """Half of these records lie in some thirty cells, none of which is seen at this price."""
    grid = CandidateGrid.from_decades(precision=2)
    assert np.sort(count_on_grid(np.asarray(THIN, dtype=float), grid))[-2] < grid.limit(epsilon=0.1, max_records=1)
    for values, mirrored in ((THIN, False), (-THIN, True)):
        ends = median_of_five(lambda v=values: noisy_bounds(v, epsilon=0.1, max_records=1, precision=2))
        lower, upper = (-ends[1], -ends[0]) if mirrored else ends
        assert lower == 0
        assert 500 <= upper <= 50_000
        assert np.mean(upper < THIN) < 0.15
    lower, upper = median_of_five(lambda: noisy_bounds(np.tile(THIN, 20), epsilon=0.1, max_records=1, precision=2))
    assert (lower, np.mean(upper < THIN) < 0.011) == (0, True)


def test_noise_alone_seldom_moves_a_bound():
    values = np.full(500, 100.0)
    bounds = [noisy_bounds(values, epsilon=0.1, max_records=1) for _ in range(400)]
    moved = sum(found != (100, 200) for found in bounds)
    assert stats.binomtest(moved, 400, 0.02, alternative="greater").pvalue > ALPHA
    negative = sum(lower < 0 for lower, _ in bounds)
    assert stats.binomtest(negative, 400, 1e-4, alternative="greater").pvalue > ALPHA


@pytest.mark.parametrize(("epsilon", "max_records", "cells"), [(0.1, 1, 1), (0.5, 7, 8), (2.0, 1, 16)])
def test_sums_of_empty_cells_stay_below_their_limit(epsilon, max_records, cells):
    sums = noisy(np.zeros(5_000 * cells, dtype=np.int64), epsilon=epsilon, max_records=max_records)
    sums = sums.reshape(-1, cells).sum(axis=1)
    (limit,) = noisy_counts._limit_of_sums(np.array([cells]), epsilon=epsilon, max_records=max_records, beta=0.01)
    assert stats.binomtest(int((sums > limit).sum()), 5_000, 0.01, alternative="greater").pvalue > ALPHA
    assert (sums > limit / 2).mean() > 0.01  # and it is no wild guess


def test_shares_are_close():
    truth = np.array([0.6, 0.3, 0.1, 0.0])
    codes = np.random.default_rng(0).choice(4, SIZE, p=truth)
    shares = noisy_shares(codes, 4, epsilon=0.05, max_records=1)
    assert np.abs(shares - truth).max() < 0.03
    assert shares.sum() == pytest.approx(1)
    assert shares.min() > 0


def test_many_empty_categories_take_little():
    codes = np.random.default_rng(0).choice(5, SIZE)
    (full,) = median_of_five(lambda: [noisy_shares(codes, 500, epsilon=0.1, max_records=1)[:5].sum()])
    assert full > 0.95  # 0.99; clipping at nought would leave 0.91


@pytest.mark.parametrize("codes", [[], [-1, 4, 99]])
def test_shares_of_nothing_are_even(codes):
    even = [noisy_shares(codes, 4, epsilon=100.0, max_records=1) for _ in range(3)]
    np.testing.assert_array_equal(even, np.full((3, 4), 0.25))


@given(st.lists(st.floats(-10, 10), min_size=1, max_size=20))
@settings(max_examples=200, deadline=None)
def test_the_projection_is_the_nearest_point_of_the_simplex(point):
    point = np.array(point)
    projected = noisy_counts.project_to_simplex(point)
    assert projected.min() >= 0
    assert projected.sum() == pytest.approx(1)
    towards = np.eye(len(point)) - projected  # no corner lies on the point's side of it
    assert (towards @ (point - projected)).max() <= 1e-9


def test_reading_changes_no_count():
    found = np.array([70, 25, -2, 12, 3])
    before = found.copy()
    noisy_counts.shares(found, epsilon=1.0, max_records=1)
    CandidateGrid.from_points([0, 1, 2]).bounds(found, epsilon=1.0, max_records=1)
    np.testing.assert_array_equal(found, before)


# --- settings ---------------------------------------------------------------------------------------------------------

RELEASES = [
    lambda **kw: noisy_bounds([1.0], **{"epsilon": 1.0, "max_records": 1, **kw}),
    lambda **kw: any_missing([True], **{"epsilon": 1.0, "max_records": 1, **kw}),
    lambda **kw: noisy_shares([0], 2, **{"epsilon": 1.0, "max_records": 1, **kw}),
    lambda **kw: noisy_counts.require_priced(**{"epsilon": 1.0, "max_records": 1, **kw}),
    lambda **kw: noisy_counts.is_seen(3, **{"epsilon": 1.0, "max_records": 1, **kw}),
    lambda **kw: CandidateGrid.from_decades().limit(**{"epsilon": 1.0, "max_records": 1, **kw}),
    lambda **kw: CandidateGrid.from_points([0, 1]).bounds(np.zeros(3), **{"epsilon": 1.0, "max_records": 1, **kw}),
]


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("wrong", [{"epsilon": e} for e in (0, -1, 1e-9, math.inf, math.nan)] + [{"max_records": 0}])
def test_bad_settings_are_refused(release, wrong):
    with pytest.raises(SettingError, match=next(iter(wrong))):
        release(**wrong)


@pytest.mark.parametrize(
    ("release", "field"),
    [
        (lambda: noisy_shares([0], 0, epsilon=1, max_records=1), "size"),
        (lambda: any_missing([], epsilon=1, max_records=1, beta=1), "beta"),
        (lambda: noisy_bounds([], epsilon=1, max_records=1, magnitude=0), "magnitude"),
        (lambda: noisy_bounds([], epsilon=1, max_records=1, candidates=[1, 1]), "candidates"),
        (lambda: noisy_bounds([], epsilon=1, max_records=1, candidates=[1, math.nan]), "candidates"),
    ],
)
def test_other_bad_settings_are_refused(release, field):
    with pytest.raises(SettingError, match=field):
        release()


def test_grids_are_symmetric_and_round():
    assert [x for x in noisy_counts._grid(True, None, 20) if x >= 0] == [0, 1, 2, 5, 10, 20, 50, 100, 200, 500]
    assert 0.07 not in noisy_counts._grid(False, 1, None)
    assert min(x for x in noisy_counts._grid(False, 3, None) if x > 0) == 0.001
    for integer, precision, magnitude in itertools.product((True, False), (None, 0, 12), (None, 1e-9, 1.0, 1e9)):
        grid = noisy_counts._grid(integer, precision, magnitude)
        assert (np.diff(grid) > 0).all()
        np.testing.assert_array_equal(grid, -grid[::-1])
