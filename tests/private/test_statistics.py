"""Bought facts: their privacy maps, their sensitivity on neighbours, the law of their noise, and their use."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from planting import plant
from scipy import stats

from doublure.errors import SettingError
from doublure.private import statistics

ALPHA = 1e-6
SIZE = 24_000


def median_of_five(release):
    """A fact that is wrong once in a thousand is wrong three times in five once in 10⁸."""
    return [float(np.median(side)) for side in zip(*(release() for _ in range(5)), strict=True)]


# --- privacy maps ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.001, 0.05, 1 / 3, 0.7, 1.1, 10.0])
@pytest.mark.parametrize("max_records", [1, 3, 7, 31])
def test_laplace_costs_what_is_claimed(epsilon, max_records):
    claimed = statistics._laplace(epsilon, max_records).map(max_records)
    assert epsilon * (1 - 1e-12) <= claimed <= epsilon
    assert statistics._laplace(2 * epsilon, max_records).map(max_records) > 1.99 * epsilon  # the mutant


@pytest.mark.parametrize("epsilon", [0.05, 1 / 3, 1.1, 5.0])
@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-9])
@pytest.mark.parametrize("max_records", [1, 3, 31])
def test_thresholded_histogram_costs_what_is_claimed(monkeypatch, epsilon, delta, max_records):
    import opendp.measurements

    thresholds = []
    make = opendp.measurements.make_laplace_threshold
    monkeypatch.setattr(
        opendp.measurements,
        "make_laplace_threshold",
        lambda *space_scale_threshold: thresholds.append(space_scale_threshold[-1]) or make(*space_scale_threshold),
    )
    unit = (max_records,) * 3
    loss = statistics._laplace_threshold(epsilon, delta, max_records).map(unit)
    assert loss[0] <= epsilon
    assert loss[1] <= delta

    def shown(threshold):  # exactly: one of the unit's own categories, up to m of them, reaches the threshold
        a = math.exp(-epsilon / max_records)
        return 1 - (1 - a ** (threshold - max_records) / (1 + a)) ** max_records

    assert shown(thresholds[-1]) <= delta * (1 + 1e-9)
    assert shown(thresholds[-1] - 1) > delta  # the threshold that OpenDP's map alone would accept is one too low


def test_opendp_counts_by_the_sensitivity_we_use():
    from opendp.domains import atom_domain, vector_domain
    from opendp.metrics import symmetric_distance
    from opendp.mod import enable_features
    from opendp.transformations import make_count_by

    enable_features("contrib")
    count_by = make_count_by(vector_domain(atom_domain(T=str)), symmetric_distance(), TV="i64")
    assert count_by.map(3) == (3, 3, 3)


def test_a_category_of_one_unit_shows_with_probability_delta():
    """OpenDP's own threshold shows it exp(ε) times as often; see ``_laplace_threshold``."""
    epsilon, delta, singles = 1.0, 0.01, 100_000
    shown = len(statistics._laplace_threshold(epsilon, delta, 1)(dict.fromkeys(range(singles), 1)))
    assert stats.binomtest(shown, singles, delta, alternative="greater").pvalue > ALPHA
    assert shown > delta * singles / 10


# --- sensitivity on neighbours, with the noise frozen at nought ------------------------------------------------------


@pytest.fixture
def recorded(monkeypatch):
    """Replace the noise by nothing, and keep what it would have hidden."""
    calls = []

    def noiseless(epsilon, max_records):
        def release(counts):
            calls.append((epsilon, max_records, np.array(counts)))
            return counts

        return release

    monkeypatch.setattr(statistics, "_laplace", noiseless)
    return calls


number = st.one_of(st.floats(), st.sampled_from([0.0, -0.0, 1.0, 5.0, 1e-13, 3e38, math.inf, -math.inf, math.nan]))
rows = st.lists(number, max_size=30)


def distance(one, two):
    return np.abs(one - two).sum()


@given(kept=rows, unit=st.lists(number, max_size=3), integer=st.booleans())
@settings(max_examples=300, deadline=None)
def test_one_unit_moves_the_cells_by_its_records(kept, unit, integer):
    grid = statistics._grid(integer, None, None)
    before, after = (statistics._cells(np.array(values), grid) for values in (kept, kept + unit))
    assert distance(before, after) == np.count_nonzero(~np.isnan(np.array(unit, dtype=float)))
    assert after.sum() == np.count_nonzero(~np.isnan(np.array(kept + unit, dtype=float)))


def test_the_cells_partition():
    grid = np.array([0.0, 1.0, 5.0])
    cells = [np.flatnonzero(statistics._cells(np.array([v]), grid))[0] for v in (-9, 0, 0.5, 1, 3, 5, 9, math.inf)]
    assert cells == [0, 0, 1, 2, 3, 4, 4, 4]


NEIGHBOURS = [
    (lambda x: statistics.noisy_bounds(x, epsilon=0.3, max_records=2), np.array([1.0, 7.0])),
    (lambda x: statistics.noisy_bounds(x, epsilon=0.3, max_records=2, candidates=[0, 1, 9]), np.array([1.0, 7.0])),
    (lambda x: statistics.any_missing(x > 2, epsilon=0.3, max_records=2), np.array([3.0, 4.0])),
    (lambda x: statistics.noisy_shares(x.astype(int), 3, epsilon=0.3, max_records=2), np.array([0.0, 2.0])),
]


@pytest.mark.parametrize(("release", "unit"), NEIGHBOURS)
def test_noise_fits_what_one_unit_moves(recorded, release, unit):
    data = np.array([0.0, 1.0, 2.0, 2.0, 50.0])
    release(data)
    release(np.concatenate([data, unit]))
    (epsilon, max_records, before), (_, _, after) = recorded
    assert (epsilon, max_records) == (0.3, 2)
    assert distance(before, after) == max_records  # tight: a scale for one record less would be too small


def test_one_unit_is_one_in_the_count(recorded):
    assert statistics.noisy_count(7, epsilon=0.3) == 7
    assert [(epsilon, unit, counts.tolist()) for epsilon, unit, counts in recorded] == [(0.3, 1, [7])]


def test_discovery_hands_over_plain_counts(monkeypatch):
    seen = []
    monkeypatch.setattr(
        statistics, "_laplace_threshold", lambda *given: lambda counts: seen.append((given, counts)) or counts
    )
    values = pd.Series(["b", "a", None, "b", float("nan"), "c\0", ""], dtype=object)
    found = statistics.discover_categories(values, epsilon=1.0, delta=1e-6, max_records=3)
    assert list(found.items()) == [("b", 2), ("", 1), ("a", 1), ("c\0", 1)]
    ((given, counts),) = seen
    assert given == (1.0, 1e-6, 3)
    assert sorted(counts.values()) == [1, 1, 1, 2]


# --- the law of the noise --------------------------------------------------------------------------------------------


def laplace_p(noise, epsilon):
    """Chi-square against the discrete Laplace law, the tails pooled."""
    a = math.exp(-epsilon)
    edge = int(3 / epsilon)
    pmf = (1 - a) / (1 + a) * a ** np.abs(np.arange(-edge, edge + 1))
    tail = a ** (edge + 1) / (1 + a)
    expected = np.concatenate([[tail], pmf, [tail]]) * len(noise)
    observed = np.bincount(np.clip(noise, -edge - 1, edge + 1) + edge + 1, minlength=2 * edge + 3)
    return stats.chisquare(observed, expected * observed.sum() / expected.sum()).pvalue


def test_counts_get_discrete_laplace_noise():
    zeros = np.zeros(20_000, dtype=np.int64)
    noise = statistics._noisy(zeros, epsilon=0.5, max_records=1)
    assert laplace_p(noise, 0.5) > ALPHA
    assert laplace_p(noise, 0.4) < ALPHA  # off by a quarter
    assert laplace_p(statistics._noisy(zeros, epsilon=1.0, max_records=1), 0.5) < ALPHA  # ε doubled
    assert laplace_p(statistics._noisy(zeros, epsilon=1.0, max_records=2), 0.5) > ALPHA


def gaussian_p(noise, sigma):
    edge = int(3 * sigma)
    values = np.arange(-12 * math.ceil(sigma), 12 * math.ceil(sigma) + 1)
    pmf = np.exp(-(values**2) / (2 * sigma**2))
    bins = np.clip(values, -edge, edge) + edge
    expected = np.bincount(bins, weights=pmf / pmf.sum()) * noise.size
    observed = np.bincount(np.clip(noise, -edge, edge) + edge, minlength=2 * edge + 1)
    return stats.chisquare(observed, expected).pvalue


@pytest.mark.parametrize("sigma", [0.7, 3.0])
def test_histograms_get_discrete_gaussian_noise(sigma):
    noise = statistics.noisy_histogram(np.full(50_000, 9), sigma=sigma) - 9
    assert gaussian_p(noise, sigma) > ALPHA
    assert gaussian_p(noise, sigma * 1.05) < ALPHA
    assert gaussian_p(noise, sigma / 1.05) < ALPHA


def test_a_histogram_keeps_its_shape():
    noisy = statistics.noisy_histogram(np.arange(6).reshape(2, 3) * 10**6, sigma=2.0)
    assert noisy.shape == (2, 3)
    assert noisy.dtype == np.int64
    assert np.abs(noisy - np.arange(6).reshape(2, 3) * 10**6).max() < 20
    assert statistics.noisy_histogram([], sigma=2.0).shape == (0,)


@pytest.mark.parametrize(("epsilon", "max_records", "beta"), [(0.5, 1, 0.01), (0.05, 1, 0.2), (0.5, 7, 0.05)])
def test_the_detection_limit_is_the_least(epsilon, max_records, beta):
    limit = statistics.detection_limit(epsilon=epsilon, max_records=max_records, beta=beta)
    a = math.exp(-epsilon / max_records)
    at = (1 - a) / (1 + a) * a**limit  # P(X = limit)
    beyond = (1 - a) / (1 + a) * sum(a**x for x in range(limit + 1, limit + math.ceil(60 / -math.log(a))))
    assert beyond <= beta < beyond + at
    cells = statistics.detection_limit(epsilon=epsilon, max_records=max_records, beta=beta, cells=1000)
    assert cells == pytest.approx(limit + math.log(1000) * max_records / epsilon, abs=1)


# --- use -------------------------------------------------------------------------------------------------------------


def test_counts_are_close_and_never_negative():
    assert abs(statistics.noisy_count(30_000, epsilon=0.1) - 30_000) < 200
    empty = [statistics.noisy_count(0, epsilon=0.1) for _ in range(200)]
    assert min(empty) == 0
    assert 50 < empty.count(0) < 160  # half of them: clipped, not reflected


def test_missing_values_are_noticed():
    flags = np.zeros(SIZE, dtype=bool)
    alarms = sum(statistics.any_missing(flags, epsilon=0.05, max_records=1) for _ in range(300))
    assert stats.binomtest(alarms, 300, 0.01, alternative="greater").pvalue > ALPHA
    flags[:800] = True
    assert statistics.any_missing(flags, epsilon=0.05, max_records=1)
    assert not statistics.any_missing([], epsilon=1.0, max_records=1, beta=1e-9)


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
    lower, upper = median_of_five(lambda: statistics.noisy_bounds(values, epsilon=0.05, max_records=1, integer=integer))
    assert np.mean((values < lower) | (values > upper)) <= cut
    assert upper <= reach
    assert lower >= min(0, 10 * values.min())


def test_bounds_know_round_numbers():
    percent = np.random.default_rng(0).uniform(0, 100, SIZE)
    percent[:2000], percent[2000:4000] = 0, 100
    assert median_of_five(lambda: statistics.noisy_bounds(percent, epsilon=0.5, max_records=1)) == [0, 100]


def test_bounds_follow_a_public_grid():
    days = np.random.default_rng(0).integers(11_000, 13_500, SIZE).astype(float)
    years = [(np.datetime64(f"{year}-01-01") - np.datetime64("1970-01-01")).astype(int) for year in range(1900, 2101)]
    lower, upper = median_of_five(lambda: statistics.noisy_bounds(days, epsilon=0.1, max_records=1, candidates=years))
    assert {lower, upper} <= set(map(float, years))
    assert 11_000 - 366 <= lower <= 11_000 + 366
    assert 13_500 - 366 <= upper <= 13_500 + 366


def test_negative_columns_mirror_positive_ones():
    values = -np.random.default_rng(0).lognormal(3, 1, SIZE)
    lower, upper = median_of_five(lambda: statistics.noisy_bounds(values, epsilon=0.1, max_records=1))
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
        lower, upper = statistics.noisy_bounds(values, epsilon=epsilon, max_records=1, **hint)
        assert -math.inf < lower < upper < math.inf
        if hint.get("integer"):
            assert lower == int(lower)
            assert upper == int(upper)
        if "precision" in hint:
            assert (lower, upper) == (round(lower, 2), round(upper, 2))


def test_bounds_fall_back_on_what_is_public(recorded):
    assert statistics.noisy_bounds([], epsilon=1.0, max_records=1, candidates=[0, 5, 9]) == (0, 9)
    assert statistics.noisy_bounds([], epsilon=1.0, max_records=1, magnitude=300) == (-500, 500)
    assert statistics.noisy_bounds([3.0], epsilon=1.0, max_records=1) == (2, 5)


THIN = np.concatenate([np.zeros(1000), np.random.default_rng(5).lognormal(5, 3, 1000)])


def test_a_tail_that_no_cell_shows_is_not_cut_off():
    """Half of these records lie in some thirty cells, none of which is seen at this price."""
    cells = statistics._cells(THIN, statistics._grid(False, 2, None))
    assert np.sort(cells)[-2] < statistics.bounds_limit(epsilon=0.1, max_records=1, precision=2)
    for values, mirrored in ((THIN, False), (-THIN, True)):
        ends = median_of_five(lambda v=values: statistics.noisy_bounds(v, epsilon=0.1, max_records=1, precision=2))
        lower, upper = (-ends[1], -ends[0]) if mirrored else ends
        assert lower == 0
        assert 500 <= upper <= 50_000
        assert np.mean(upper < THIN) < 0.15
    lower, upper = median_of_five(
        lambda: statistics.noisy_bounds(np.tile(THIN, 20), epsilon=0.1, max_records=1, precision=2)
    )
    assert (lower, np.mean(upper < THIN) < 0.011) == (0, True)


def test_noise_alone_moves_no_bound_far():
    values = np.full(500, 100.0)
    bounds = [statistics.noisy_bounds(values, epsilon=0.1, max_records=1) for _ in range(400)]
    moved = sum(found != (100, 200) for found in bounds)
    assert stats.binomtest(moved, 400, 0.02, alternative="greater").pvalue > ALPHA
    assert max(upper for _, upper in bounds) <= 5000
    assert min(lower for lower, _ in bounds) >= 0


@pytest.mark.parametrize(("epsilon", "max_records", "cells"), [(0.1, 1, 1), (0.5, 7, 8), (2.0, 1, 16)])
def test_sums_of_empty_cells_stay_below_their_limit(epsilon, max_records, cells):
    sums = statistics._noisy(np.zeros(5_000 * cells, dtype=np.int64), epsilon=epsilon, max_records=max_records)
    sums = sums.reshape(-1, cells).sum(axis=1)
    (limit,) = statistics._limit_of_sums(np.array([cells]), epsilon=epsilon, max_records=max_records, beta=0.01)
    assert stats.binomtest(int((sums > limit).sum()), 5_000, 0.01, alternative="greater").pvalue > ALPHA
    assert (sums > limit / 2).mean() > 0.01  # and it is no wild guess


HINTS = {
    "nothing": {},
    "a magnitude": {"magnitude": 300},
    "whole": {"integer": True, "magnitude": 300},
    "decimals": {"precision": 2},
    "candidates": {"candidates": [-1e6, 0, 5, 9, 1e6]},
}


@pytest.mark.parametrize("hint", HINTS)
@pytest.mark.parametrize("counts", ["none", "noise", "some"])
def test_bounds_follow_from_public_numbers_and_noisy_counts_alone(monkeypatch, hint, counts):
    """With the noisy counts held fixed, no value has a say; where no cell is seen, its largest least of all."""

    def held(epsilon, max_records):
        frozen = {"none": lambda n: 0, "noise": lambda n: (7 * n) % 5 - 2, "some": lambda n: 10**6 * (n % 3 == 1)}[
            counts
        ]
        return lambda exact: [frozen(place) for place in range(len(exact))]

    monkeypatch.setattr(statistics, "_laplace", held)
    found = {
        statistics.noisy_bounds(values, epsilon=0.1, max_records=1, **HINTS[hint])
        for values in ([], [3.0], [4.17e5] * 9, [-1e17, 1e17], [math.inf, math.nan], list(range(500)))
    }
    assert len(found) == 1
    if (hint, counts) == ("a magnitude", "none"):
        assert found == {(-500, 500)}


def test_discovery_finds_the_frequent_and_hides_the_rare():
    values = ["common"] * 5000 + ["usual"] * 3000 + [f"secret {i}" for i in range(2000)]
    found = statistics.discover_categories(values, epsilon=0.5, delta=1e-10, max_records=1)
    assert list(found) == ["common", "usual"]
    assert abs(found["common"] - 5000) < 100
    assert list(statistics.discover_categories(values, epsilon=0.5, delta=1e-10, max_records=1, limit=1)) == ["common"]


def test_discovery_does_not_depend_on_the_order_of_records():
    values = list("aabbbcddddd" * 100)
    orders = [values, values[::-1], sorted(values)]
    found = [statistics.discover_categories(order, epsilon=5.0, delta=1e-9, max_records=1) for order in orders]
    assert [list(names) for names in found] == [["d", "b", "a", "c"]] * 3


@pytest.mark.parametrize("values", [[], [None, None], ["alone"]])
def test_discovery_of_nothing_is_empty(values):
    assert statistics.discover_categories(values, epsilon=1.0, delta=1e-10, max_records=1) == {}


def test_many_distinct_values_are_no_trouble():
    values = np.concatenate([np.arange(10**5).astype(str), np.repeat(["often"], 2000)])
    assert list(statistics.discover_categories(values, epsilon=1.0, delta=1e-12, max_records=1)) == ["often"]


def test_shares_are_close():
    truth = np.array([0.6, 0.3, 0.1, 0.0])
    codes = np.random.default_rng(0).choice(4, SIZE, p=truth)
    shares = statistics.noisy_shares(codes, 4, epsilon=0.05, max_records=1)
    assert np.abs(shares - truth).max() < 0.03
    assert shares.sum() == pytest.approx(1)
    assert shares.min() > 0


def check_shares_follow_from_noisy_counts_alone(patch):
    """With what the noise gave out frozen, no record changes anything: not even the total that shares are taken of."""
    with patch.context() as inner:
        inner.setattr(statistics, "_noisy", lambda counts, **_: np.array([70, 25, -2, 12]))
        one, other, none = (
            statistics.noisy_shares(codes, 4, epsilon=1.0, max_records=1)
            for codes in ([0] * 60 + [1] * 30, [3] * 9, [])
        )
    np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(one, none)


def test_shares_follow_from_noisy_counts_alone(monkeypatch):
    check_shares_follow_from_noisy_counts_alone(monkeypatch)


@pytest.mark.parametrize(
    "edit", [("noisy / total", "noisy / max(1, counts.sum())"), ("noisy.sum()", "float(counts.sum())")]
)
def test_shares_of_the_exact_total_are_caught(monkeypatch, edit):
    plant(monkeypatch, statistics, "noisy_shares", edit)
    with pytest.raises(AssertionError):
        check_shares_follow_from_noisy_counts_alone(monkeypatch)


def test_many_empty_categories_take_little():
    codes = np.random.default_rng(0).choice(5, SIZE)
    (full,) = median_of_five(lambda: [statistics.noisy_shares(codes, 500, epsilon=0.1, max_records=1)[:5].sum()])
    assert full > 0.95  # 0.99; clipping at nought would leave 0.91


@pytest.mark.parametrize("codes", [[], [-1, 4, 99]])
def test_shares_of_nothing_are_even(codes):
    even = [statistics.noisy_shares(codes, 4, epsilon=100.0, max_records=1) for _ in range(3)]
    np.testing.assert_array_equal(even, np.full((3, 4), 0.25))


@given(st.lists(st.floats(-10, 10), min_size=1, max_size=20))
@settings(max_examples=200, deadline=None)
def test_the_projection_is_the_nearest_point_of_the_simplex(point):
    point = np.array(point)
    projected = statistics.onto_simplex(point)
    assert projected.min() >= 0
    assert projected.sum() == pytest.approx(1)
    towards = np.eye(len(point)) - projected  # no corner lies on the point's side of it
    assert (towards @ (point - projected)).max() <= 1e-9


# --- settings ---------------------------------------------------------------------------------------------------------

RELEASES = [
    lambda **kw: statistics.noisy_bounds([1.0], **{"epsilon": 1.0, "max_records": 1, **kw}),
    lambda **kw: statistics.any_missing([True], **{"epsilon": 1.0, "max_records": 1, **kw}),
    lambda **kw: statistics.noisy_shares([0], 2, **{"epsilon": 1.0, "max_records": 1, **kw}),
    lambda **kw: statistics.discover_categories(["a"], **{"epsilon": 1.0, "max_records": 1, "delta": 0.01, **kw}),
]


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("wrong", [{"epsilon": e} for e in (0, -1, 1e-9, math.inf, math.nan)] + [{"max_records": 0}])
def test_bad_settings_are_refused(release, wrong):
    with pytest.raises(SettingError, match=next(iter(wrong))):
        release(**wrong)


@pytest.mark.parametrize(
    ("release", "field"),
    [
        (lambda: statistics.noisy_count(3, epsilon=0), "epsilon"),
        (lambda: statistics.noisy_histogram([1], sigma=0), "sigma"),
        (lambda: statistics.noisy_histogram([1], sigma=math.nan), "sigma"),
        (lambda: statistics.noisy_shares([0], 0, epsilon=1, max_records=1), "size"),
        (lambda: statistics.any_missing([], epsilon=1, max_records=1, beta=1), "beta"),
        (lambda: statistics.noisy_bounds([], epsilon=1, max_records=1, magnitude=0), "magnitude"),
        (lambda: statistics.noisy_bounds([], epsilon=1, max_records=1, candidates=[1, 1]), "candidates"),
        (lambda: statistics.noisy_bounds([], epsilon=1, max_records=1, candidates=[1, math.nan]), "candidates"),
        *(
            (lambda d=d: statistics.discover_categories([], epsilon=1, delta=d, max_records=1), "delta")
            for d in (0, 1, 1e-30, math.nan)
        ),
    ],
)
def test_other_bad_settings_are_refused(release, field):
    with pytest.raises(SettingError, match=field):
        release()


def test_grids_are_symmetric_and_round():
    assert [x for x in statistics._grid(True, None, 20) if x >= 0] == [0, 1, 2, 5, 10, 20, 50, 100, 200, 500]
    assert 0.07 not in statistics._grid(False, 1, None)
    assert min(x for x in statistics._grid(False, 3, None) if x > 0) == 0.001
    for integer, precision, magnitude in itertools.product((True, False), (None, 0, 12), (None, 1e-9, 1.0, 1e9)):
        grid = statistics._grid(integer, precision, magnitude)
        assert (np.diff(grid) > 0).all()
        np.testing.assert_array_equal(grid, -grid[::-1])
