"""From noisy counts to groups: every code is in one, noise makes none, what stands out does."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import optimize
from tiers import examples

from doublure.methods.statistics import binning as grouping
from doublure.methods.statistics.binning import Grouping, group_ordered, posterior_counts, project_to_simplex

many = examples(60, derandomize=True)
anything = st.one_of(
    st.floats(-1e18, 1e18, allow_nan=False),
    st.integers(-50, 50).map(float),
    st.sampled_from([0.0, 1e-300, -1e-300, 1e18, -1e18]),
)
columns = st.integers(1, 40).flatmap(lambda size: arrays(np.float64, size, elements=anything))
noises = st.sampled_from([0.01, 1.0, 37.5, 1e9])


def assert_whole(found: Grouping, codes: int) -> None:
    """Every code is in one group, every group has codes, and shares of a group add up to one."""
    assert found.groups.shape == found.shares.shape == (codes,)
    assert set(found.groups.tolist()) == set(range(found.size))
    assert (found.shares >= 0).all()
    assert np.bincount(found.groups, found.shares) == pytest.approx(np.ones(found.size), abs=1e-9)


# -- any counts --------------------------------------------------------------------------------------------------------


@given(counts=columns, noise=noises, most=st.integers(1, 60), states=st.integers(0, 2), smooth=st.booleans())
@many
def test_ordered_groups_are_whole_whatever_the_counts(counts, noise, most, states, smooth):
    states = min(states, len(counts) - 1)
    found = group_ordered(counts, noise=noise, most=most, states=states, smooth=smooth)
    assert_whole(found, len(counts))
    places = found.groups[: len(counts) - states]
    assert (np.diff(places) >= 0).all()  # neighbours
    assert found.groups[len(counts) - states :].tolist() == list(range(places.max() + 1, found.size))  # states alone
    assert found.size - states <= 2 * most / 1.2 + 1


@given(counts=columns, total=st.floats(1e-3, 1e18), seed=st.integers(0, 99))
@many
def test_closest_counts_are_counts(counts, total, seed):
    variances = np.random.default_rng(seed).choice([0.1, 1.0, 400.0], len(counts))
    found = project_to_simplex(counts, variances, total=total)
    size = max(total, np.abs(counts).max())
    assert (found >= 0).all()
    assert found.sum() == pytest.approx(total, abs=1e-9 * len(counts) * size)
    order = np.argsort(counts)
    same = variances[order] == variances[order[0]]
    assert (np.diff(found[order][same]) >= 0).all()


# -- projection of counts onto the simplex -----------------------------------------------------------------------------


def likeliest_by_force(counts, variances, total):
    """Try every set of counts that stay above zero, and take the best."""
    best, least = None, np.inf
    for size in range(1, len(counts) + 1):
        for kept in map(list, combinations(range(len(counts)), size)):
            found = np.zeros(len(counts))
            found[kept] = counts[kept] - (counts[kept].sum() - total) * variances[kept] / variances[kept].sum()
            cost = ((found - counts) ** 2 / variances).sum()
            if (found >= 0).all() and cost < least:
                best, least = found, cost
    return best


@pytest.mark.parametrize("seed", range(12))
def test_closest_counts_are_the_likeliest(seed):
    draw = np.random.default_rng(seed)
    size = int(draw.integers(1, 8))
    counts, variances = draw.normal(5, 20, size), draw.uniform(0.5, 30, size)
    total = float(draw.uniform(0.5, 60))
    found = project_to_simplex(counts, variances, total=total)
    assert found == pytest.approx(likeliest_by_force(counts, variances, total), abs=1e-9)
    solved = optimize.minimize(
        lambda x: ((x - counts) ** 2 / variances).sum(),
        np.full(size, total / size),
        jac=lambda x: 2 * (x - counts) / variances,
        bounds=[(0, None)] * size,
        constraints={"type": "eq", "fun": lambda x: x.sum() - total, "jac": np.ones_like},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    assert found == pytest.approx(solved.x, abs=1e-3)


def test_closest_counts_leave_alone_what_adds_up_already():
    counts = np.array([3.0, 0.0, 8.0])
    assert project_to_simplex(counts, np.array([1.0, 5.0, 2.0]), total=11.0) == pytest.approx(counts)
    assert project_to_simplex(counts, np.array([1.0, 1e6, 1.0]), total=20.0) == pytest.approx([3, 9, 8], abs=1e-3)


def test_counts_whose_total_is_lost_in_rounding_are_counts_still():
    assert project_to_simplex(np.array([1e17, -1e17]), np.ones(2), total=1.0).tolist() == pytest.approx(
        [1.0, 0.0], abs=16
    )


# -- ordered -----------------------------------------------------------------------------------------------------------


def test_a_value_that_stands_out_is_seen_inside_its_group():
    counts = np.full(100, 50.0)
    counts[39] = 4000.0
    found = group_ordered(counts + np.random.default_rng(0).normal(0, 10, 100), noise=10.0, most=4)
    own = found.groups[39]
    inside = found.shares[found.groups == own]
    assert inside.max() > 0.7
    assert np.argmax(np.where(found.groups == own, found.shares, 0)) == 39
    flat = found.shares[(found.groups == found.groups[5])]
    assert flat.max() / flat.min() < 1.5


def test_a_cell_shares_its_mass_among_its_codes():
    counts = np.repeat([10.0, 1000.0, 20.0], [10, 1, 5])
    found = group_ordered(counts, noise=1.0, most=1)
    assert found.size == 1
    assert found.shares == pytest.approx(counts / 1200)


def test_noise_alone_is_one_cell():
    """A cell costs 2 ln(codes) noise variances: in few of a hundred columns does noise make one."""
    draw = np.random.default_rng(1)
    made = [grouping.constant_pieces(draw.normal(20, 5, 64) / 5.0).max() + 1 for _ in range(100)]
    assert np.mean(np.array(made) > 1) < 0.4
    assert max(made) <= 4


def test_cells_are_the_best_partition():
    """Against every partition of a short column."""
    draw = np.random.default_rng(2)
    for _ in range(6):
        counts = np.repeat(draw.normal(0, 6, 3), [2, 4, 3]) + draw.normal(0, 1, 9)
        found = grouping.constant_pieces(counts)

        def cost(cells, counts=counts):
            parts = [counts[cells == cell] for cell in range(cells.max() + 1)]
            price = 2 * np.log(9) * len(parts)
            return sum(((part - part.mean()) ** 2).sum() for part in parts) + price

        every = [np.cumsum([0, *cuts]) for cuts in np.ndindex(*[2] * 8)]
        assert cost(found) == pytest.approx(min(map(cost, every)))


def test_groups_are_of_about_equal_mass():
    counts = np.random.default_rng(3).integers(80, 120, 128).astype(float)
    found = group_ordered(counts, noise=0.5, most=16)
    masses = found.join(counts)
    assert 14 <= found.size <= 18
    assert masses[:-1].max() <= 1.2 * counts.sum() / 16 + 1e-6


def test_ordinals_keep_their_own_shares():
    counts = np.array([100.0, 0.0, 100.0, 0.0, 100.0, 0.0])
    assert group_ordered(counts, noise=5.0, most=2, smooth=False).shares[1::2].max() < 0.01
    assert group_ordered(counts, noise=500.0, most=2, smooth=True).shares[1] > 0.1


def test_zero_and_missing_stay_alone():
    found = group_ordered(np.array([5.0, 6.0, 5.0, 900.0, 0.0]), noise=1.0, most=2, states=2)
    assert (found.groups[3:] == [found.size - 2, found.size - 1]).all()
    assert found.shares[3:].tolist() == [1.0, 1.0]
    assert 3 not in np.flatnonzero(found.groups == found.groups[0])


def test_joining_adds_up():
    found = Grouping.of(np.array([1, 0, 1]), np.array([1.0, 0.0, 3.0]))
    assert found.shares.tolist() == [0.25, 1.0, 0.75]
    assert found.join(np.array([[1.0, 2], [3, 4], [5, 6]])).tolist() == [[3, 4], [6, 8]]


# -- categories --------------------------------------------------------------------------------------------------------


@given(counts=columns, noise=noises, total=st.floats(1, 1e6))
@many
def test_posterior_counts_are_counts(counts, noise, total):
    found = posterior_counts(counts, np.full(len(counts), noise**2), total=total)
    assert found.shape == counts.shape
    assert (found >= 0).all()
    assert found.sum() == pytest.approx(total, rel=1e-6)


def test_where_noise_exceeds_evidence_categories_are_equal():
    """The largest count won everything: ten categories of 31 rows each, under a noise of 70."""
    apart, evenly = [], []
    for seed in range(10):
        seen = 31 + 70 * np.random.default_rng(seed).standard_normal(10)
        apart.append(np.abs(posterior_counts(seen, np.full(10, 4900.0), total=310.0) - 31).sum() / 620)
        evenly.append(np.abs(project_to_simplex(seen, np.full(10, 4900.0), total=310.0) - 31).sum() / 620)
    assert np.mean(apart) < 0.3
    assert np.mean(apart) < 0.6 * np.mean(evenly)


def test_what_is_far_above_noise_stays():
    seen = np.array([5000.0, 3000.0, 12.0, -9.0])
    found = posterior_counts(seen, np.full(4, 100.0), total=seen.sum())
    assert np.abs(found[:2] - seen[:2]).max() < 15


@pytest.mark.parametrize("noise", [12.0, 33.0, 57.0])
def test_a_long_list_is_closer_than_what_shrinks_all_alike(noise):
    """231 categories whose frequencies fall as 1 / rank, 3,435 rows: seldom is far from the mean, often is not."""
    apart: dict[str, list[float]] = {"each": [], "alike": [], "as seen": []}
    for seed in range(8):
        rng = np.random.default_rng(seed)
        shares = 1 / (np.arange(231) + 3.0)
        truth = rng.multinomial(3435, shares / shares.sum()).astype(float)
        seen = truth + noise * rng.standard_normal(231)
        even = np.full(231, truth.mean())
        guesses = {
            "each": posterior_counts(seen, np.full(231, noise**2), total=truth.sum()),
            "alike": grouping.james_stein_counts(seen, even, variance=noise**2),
            "as seen": project_to_simplex(seen, np.full(231, noise**2), total=truth.sum()),
        }
        for name, guess in guesses.items():
            apart[name].append(0.5 * np.abs(guess / guess.sum() - truth / truth.sum()).sum())
    each, alike, as_seen = (float(np.mean(values)) for values in apart.values())
    assert each < 0.97 * alike
    assert each < 0.9 * as_seen
