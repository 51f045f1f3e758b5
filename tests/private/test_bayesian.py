"""The Bayesian accountant against its author's code, against closed forms, and at its edges."""

from __future__ import annotations

import doctest
import json
import math
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import ArrayLike, NDArray

from doublure.errors import PrivacyWarning, SettingError
from doublure.private import bayesian
from doublure.private.bayesian import (
    BayesianAccountant,
    EqualDistancesWarning,
    StepsOverrunWarning,
    bernstein_log_mean,
    group_privacy,
    log_moment,
    percentiles,
    student_t_log_mean,
)

STORED = Path(__file__).parents[1] / "vectors"
SHARED = Path(__file__).resolve().parents[2] / ".." / "shared" / "vectors"


def stores(name: str) -> list[dict]:
    """Return the vectors of this repository, and those that lie beside it, if any do."""
    places = (folder / name for folder in (STORED, SHARED))
    return [json.loads(place.read_text()) for place in places if place.is_file()]


STORES = stores("bayesian_accountant.json")
VECTORS = list({vector["name"]: vector for store in STORES for vector in store["vectors"]}.values())
SAMPLE = [0.01, 0.02, 0.03, 0.05, 0.08, 0.13, 0.21, 0.34]


def distances_of(step: dict) -> list[float]:
    """Return a vector's distances: written as they are, or as pairs of gradients (g, g')."""
    if "pairs" in step:
        return [float(np.linalg.norm(np.subtract(one, other))) for one, other in step["pairs"]]
    return np.atleast_1d(step["d"]).tolist()


def run(vector: dict, *, paper_literal: bool = False) -> tuple[BayesianAccountant, list[list[float]], list[str]]:
    inputs = vector["inputs"]
    of_steps = [distances_of(step) for step in inputs["steps"]]
    known = None if inputs["bayesianDP"] else max(distance for of_one in of_steps for distance in of_one)
    accountant = BayesianAccountant(
        inputs["powers_lambda"],
        inputs["total_steps_T"],
        inputs["conf"],
        paper_literal=paper_literal,
        max_distance=known,
    )
    history = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for step, distances in zip(inputs["steps"], of_steps, strict=True):
            many = step.get("steps", 1)
            if known is None:
                accountant.step(distances, step["sigma"], step["q"], many)
            else:  # one distance that all records have: nothing is estimated
                accountant.lost(step["sigma"], step["q"], many)
            history.append(accountant.costs.tolist())
    return accountant, history, [type(warning.message).__name__ for warning in caught]


def test_distances_are_read_from_pairs_too() -> None:
    assert distances_of({"pairs": [[[3.0, 0.0], [0.0, 4.0]], [1.0, 0.75]]}) == [5.0, 0.25]


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["name"])
def test_the_author_code_is_met(vector: dict) -> None:
    accountant, history, caught = run(vector)
    theirs = vector["author_code"]
    assert accountant.costs == pytest.approx(theirs["privacy_cost"], rel=1e-5)
    if len(theirs["cost_history"]) == len(history):
        for ours, stored in zip(history, theirs["cost_history"], strict=True):
            assert ours == pytest.approx(stored, rel=1e-5)
    delta = vector["inputs"]["target_delta"]
    assert accountant.epsilon(delta) == pytest.approx(theirs["epsilon"], rel=1e-5)
    assert accountant.delta(theirs["epsilon"]) == pytest.approx(delta, rel=1e-3)
    assert accountant.failure_probability == pytest.approx(-math.expm1(theirs["logconf"]), rel=1e-9)
    assert bool(caught) == bool(theirs["warnings"])


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["name"])
@pytest.mark.parametrize("paper_literal", [False, True])
def test_the_float64_reference_is_met_in_both_directions(vector: dict, paper_literal: bool) -> None:
    accountant, _, _ = run(vector, paper_literal=paper_literal)
    costs, epsilon = (
        ("cost_cR_paper_eq7", "epsilon_paper_max_cL_cR") if paper_literal else ("cost_cL_paper_eq6", "epsilon_cL")
    )
    assert accountant.costs == pytest.approx(vector["reference_float64"][costs], rel=1e-10)
    assert accountant.epsilon(vector["inputs"]["target_delta"]) == pytest.approx(
        vector["reference_float64"][epsilon], rel=1e-10
    )


@pytest.mark.parametrize("row", [row for store in STORES for row in store["direction_table"]])
def test_the_left_cost_covers_the_exact_reverse_moment_and_the_right_one_is_loose(row: dict) -> None:
    relative = np.array([row["d"] / row["sigma"]])
    left = log_moment(relative, row["lam"], row["q"])[0]
    assert left == pytest.approx(row["cL"], rel=1e-10)
    assert left > row["exact_reverse_quadrature"]
    assert log_moment(relative, row["lam"], row["q"], paper_literal=True)[0] == pytest.approx(
        row["cR_paper"], rel=1e-10
    )


@pytest.mark.parametrize(
    "vector",
    {vector["description"]: vector for store in stores("dp_accounting.json") for vector in store["vectors"]}.values(),
    ids=lambda vector: vector["description"][:30],
)
def test_at_the_clipping_norm_the_moment_is_the_renyi_divergence_of_dp_sgd(vector: dict) -> None:
    """λ times the Rényi divergence of order λ + 1 (Mironov, Talwar and Zhang 2019)."""
    stored = vector["rdp_per_step"]
    for order, divergence in zip(stored["orders"], stored["values"], strict=True):
        found = log_moment(np.array([1 / vector["sigma"]]), order - 1, vector["q"])[0] / (order - 1)
        assert found == pytest.approx(divergence, rel=1e-8)


def test_full_batch_has_a_closed_form_and_no_distance_costs_nothing() -> None:
    relative = np.array([0.0, 1e-9, 0.5, 40.0])
    for order in (1, 7, 32):
        assert log_moment(relative, order, 1.0) == pytest.approx(order * (order + 1) * relative**2 / 2, rel=1e-12)
    assert log_moment(np.array([1e-9]), 1, 1e-4)[0] == pytest.approx(1e-26, rel=1e-9)


@settings(max_examples=60, deadline=None)
@given(
    order=st.integers(1, 64),
    rate=st.floats(1e-6, 1.0),
    near=st.floats(0.0, 30.0),
    more=st.floats(1.01, 3.0),
)
def test_the_moment_grows_with_distance_rate_and_order(order: int, rate: float, near: float, more: float) -> None:
    here = log_moment(np.array([near]), order, rate)[0]
    slack = 1e-12 * (1 + here)
    assert 0 <= here <= order * (order + 1) * near**2 / 2 + slack
    assert log_moment(np.array([near * more]), order, rate)[0] >= here - slack
    assert log_moment(np.array([near]), order, min(1.0, rate * more))[0] >= here - slack
    assert log_moment(np.array([near]), order + 1, rate)[0] >= here - slack
    assert log_moment(np.array([near]), order, rate, paper_literal=True)[0] >= here


# --- the confidence bounds -------------------------------------------------------------------------------------


def test_student_t_is_equation_8() -> None:
    from scipy.stats import t

    values = np.array([0.1, 0.5, 0.2, 1.7, 0.9])
    plain = np.exp(values)
    expected = plain.mean() + t.ppf(0.99, 4) * plain.std() / math.sqrt(4)
    assert student_t_log_mean(values, 0.01) == pytest.approx(math.log(expected), rel=1e-12)


def test_bernstein_is_maurer_and_pontil_rescaled() -> None:
    rng = np.random.default_rng(3)
    values = rng.uniform(0.0, 0.5, size=4000)
    unit = np.expm1(values) / math.expm1(0.5)  # in [0, 1]
    depth = math.log(2 / 0.01)
    bound = unit.mean() + math.sqrt(2 * unit.var(ddof=1) * depth / 4000) + 7 * depth / (3 * 3999)
    assert bernstein_log_mean(values, 0.01, 0.5) == pytest.approx(math.log1p(bound * math.expm1(0.5)), rel=1e-12)
    assert bernstein_log_mean(values[:3], 0.01, 0.5) == 0.5
    assert bernstein_log_mean(np.zeros(5), 0.01, 0.0) == 0.0


@settings(max_examples=60, deadline=None)
@given(values=st.lists(st.floats(0.0, 1e6), min_size=3, max_size=20), gamma=st.sampled_from([0.1, 1e-6, 1.2e-16]))
def test_the_bounds_neither_overflow_nor_fall_below_the_mean(values: list[float], gamma: float) -> None:
    sample = np.array(values)
    top = float(sample.max())
    log_mean = top + math.log(float(np.mean(np.exp(sample - top))))
    for found in (student_t_log_mean(sample, gamma), bernstein_log_mean(sample, gamma, top)):
        assert math.isfinite(found)
        assert found >= log_mean - 1e-9 * (1 + top)


def test_student_t_coverage_collapses_and_bernstein_holds() -> None:
    """A rare large distance: nominal 99 % bounds on a mean that it decides."""
    rng = np.random.default_rng(11)
    values = np.where(rng.random((2000, 28)) < 0.005, 9.0, 0.1 * rng.random((2000, 28)))
    truth = math.log(0.995 * math.expm1(0.1) / 0.1 + 0.005 * math.exp(9.0))
    student = np.mean([student_t_log_mean(sample, 0.01) >= truth for sample in values])
    bernstein = np.mean([bernstein_log_mean(sample, 0.01, 9.0) >= truth for sample in values])
    assert student < 0.3
    assert bernstein >= 0.99


def test_bernstein_is_never_dearer_than_the_worst_case_and_clips_to_it() -> None:
    def total(distances: list[float], bound: str, **more: float) -> np.ndarray:
        accountant = BayesianAccountant([2, 8], 100, 0.99, bound, **more)
        accountant.step(distances, 1.0, 0.01)
        return accountant.costs

    worst = [log_moment(np.array([0.4]), order, 0.01)[0] for order in (2, 8)]
    assert np.all(total(SAMPLE, "bernstein", max_distance=0.4) <= np.array(worst) * (1 + 1e-12))
    assert total([9.0, 9.0, 9.0], "bernstein", max_distance=0.4) == pytest.approx(worst)
    many = [*np.tile(SAMPLE, 5000).tolist(), 9.0]  # one distance that floating point took past the maximum
    assert np.all(total(many, "bernstein", max_distance=0.4) < np.array(worst) * 0.5)


def test_bernstein_pays_for_choosing_the_best_order_afterwards() -> None:
    alone = BayesianAccountant([2], 100, 0.99, "bernstein", max_distance=0.4)
    among = BayesianAccountant([2, 4, 8, 16], 100, 0.99, "bernstein", max_distance=0.4)
    for accountant in (alone, among):
        accountant.step(np.tile(SAMPLE, 500), 1.0, 0.01)
    assert among.costs[0] > alone.costs[0]


@pytest.mark.parametrize("bound", ["student-t", "bernstein"])
def test_a_union_bound_gives_each_order_its_share_of_gamma(bound: str) -> None:
    orders, limit = [2, 4, 8, 16], {"max_distance": 0.4}
    among = BayesianAccountant(orders, 100, gamma=1e-3, bound=bound, union=True, **limit)
    among.step(np.tile(SAMPLE, 500), 1.0, 0.01)
    for order, cost in zip(orders, among.costs, strict=True):
        alone = BayesianAccountant([order], 100, gamma=1e-3 / len(orders), bound=bound, **limit)
        alone.step(np.tile(SAMPLE, 500), 1.0, 0.01)
        assert alone.costs[0] == cost
    assert among.failure_probability == pytest.approx(1e-3)


def test_without_union_the_papers_bound_spends_gamma_at_each_order() -> None:
    plain, said, union = (
        BayesianAccountant([1, 4, 8], 50, gamma=1e-6, **more) for more in ({}, {"union": False}, {"union": True})
    )
    for accountant in (plain, said, union):
        accountant.step(SAMPLE, 1.0, 0.05)
    assert plain.costs.tolist() == said.costs.tolist()
    assert np.all(union.costs > plain.costs)
    assert union.epsilon(1e-5) > plain.epsilon(1e-5)
    with pytest.raises(TypeError):
        BayesianAccountant([1], 50, 0.99, "student-t", False, True)


# --- the accountant --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments", [{}, {"bound": "bernstein", "max_distance": 1.7e308}, {"paper_literal": True}], ids=str
)
@pytest.mark.parametrize(
    "distances",
    [[0.1, 0.2, 1e200], [1e200, 2e200, 3e200], [0.0, 0.0, 1.7e308], [1e153, 2e153, 3e153], [1e160, 0.0, 1.0]],
    ids=str,
)
@pytest.mark.parametrize(("noise_std", "rate"), [(1.0, 0.01), (1e-200, 1.0), (1.0, 1.0)])
def test_huge_distances_cost_everything_and_are_no_nan(arguments, distances, noise_std, rate) -> None:
    """Beyond float64 there is an infinite cost, never "not a number", which every comparison lets pass."""
    accountant = BayesianAccountant([1, 8, 32], 1000, 1 - 1e-12, **arguments)
    accountant.step(distances, noise_std=noise_std, sample_rate=rate)
    accountant.step([0.1, 0.2, 0.3], noise_std=1.0, sample_rate=0.01)
    assert not np.isnan(accountant.costs).any()
    assert accountant.epsilon(1e-5) > 1e100
    assert accountant.delta(10.0) == 1.0


def test_an_infinite_distance_has_an_infinite_moment() -> None:
    for rate in (0.01, 1.0):
        found = log_moment(np.array([math.inf, 1e200, 0.0]), 4, rate, paper_literal=True)
        assert found.tolist() == [math.inf, math.inf, 0.0]
    assert student_t_log_mean(np.array([0.0, math.inf, 1.0]), 0.1) == math.inf
    assert bernstein_log_mean(np.array([0.0, 1.0, 2.0]), 0.1, math.inf) == math.inf


def test_an_overrun_is_warned_about_by_its_own_type() -> None:
    accountant = BayesianAccountant([4], 2, 0.99)
    accountant.step(SAMPLE, 1.0, 0.1, steps=2)
    with pytest.warns(StepsOverrunWarning, match="3 steps taken but total_steps=2") as said:
        accountant.step(SAMPLE, 1.0, 0.1)
    assert said[0].filename == __file__  # the line that asked for the step, not one within
    assert issubclass(StepsOverrunWarning, PrivacyWarning)
    assert (accountant.steps_taken, accountant.calls) == (3, 2)


def test_equal_distances_are_warned_about() -> None:
    accountant = BayesianAccountant([4], 10, 0.99)
    with pytest.warns(EqualDistancesWarning) as said:
        accountant.step([0.1, 0.1, 0.1], 1.0, 0.1)
    assert said[0].filename == __file__
    assert accountant.costs[0] == pytest.approx(log_moment(np.array([0.1]), 4, 0.1)[0])


def test_costs_add_up_and_steps_alike_are_priced_jointly() -> None:
    once, thrice, jointly = (BayesianAccountant([2, 8], 50, 0.999) for _ in range(3))
    once.step(SAMPLE, 1.0, 0.05)
    for _ in range(3):
        thrice.step(SAMPLE, 1.0, 0.05)
    jointly.step(SAMPLE, 1.0, 0.05, steps=3)
    assert thrice.costs == pytest.approx(3 * once.costs)
    assert np.all(jointly.costs > thrice.costs)
    assert jointly.failure_probability == pytest.approx(0.001)
    assert thrice.failure_probability == pytest.approx(1 - 0.999**3)
    once.costs[:] = 0.0
    assert once.costs[0] > 0


def test_epsilon_and_delta_invert_each_other_and_move_apart() -> None:
    accountant = BayesianAccountant([1, 2, 4, 8, 16, 32], 100, 1 - 1e-12)
    accountant.step(SAMPLE, 1.0, 0.01)
    for delta in (1e-3, 1e-8):
        assert accountant.delta(accountant.epsilon(delta)) == pytest.approx(delta, rel=1e-9)
    assert accountant.epsilon(1e-8) > accountant.epsilon(1e-3)
    assert accountant.delta(1e-9) == 1.0


def test_the_confidence_is_paid_from_delta() -> None:
    accountant = BayesianAccountant([8], 100, 0.999)
    for _ in range(20):
        accountant.step(SAMPLE, 1.0, 0.01)
    spent = 1 - 0.999**20
    assert accountant.epsilon(0.03) == pytest.approx((accountant.costs[0] - math.log(0.03 - spent)) / 8)
    assert accountant.delta(50.0) == pytest.approx(spent)
    with pytest.raises(SettingError, match=r"delta: 0\.01 is used up by the 20 confidence bounds") as caught:
        accountant.epsilon(0.01)
    assert caught.value.remedy == "raise delta, or use a confidence nearer to 1"


def test_nothing_done_costs_nothing() -> None:
    accountant = BayesianAccountant([8], 100, 0.999)
    assert (accountant.epsilon(1e-5), accountant.delta(1.0), accountant.failure_probability) == (0.0, 0.0, 0.0)


def test_group_privacy_is_proposition_3() -> None:
    assert group_privacy(0.5, 1e-10, 3) == pytest.approx((1.5, 3 * math.exp(1.5) * 1e-10))
    assert group_privacy(500.0, 1e-10, 3) == (1500.0, 1.0)


def test_percentiles_are_markovs_inequality() -> None:
    """On a law whose expected tail is δ_μ, the share of records above the stated δ stays below 1 − p."""
    rng = np.random.default_rng(5)
    tails = np.minimum(1.0, rng.pareto(1.2, size=100_000) * 1e-6)
    for row in percentiles(1.0, float(tails.mean()), (0.5, 0.9, 0.999)):
        assert np.mean(tails > row.delta) <= 1 - row.share
    (last,) = percentiles(1.0, 1e-10, (0.99999,))
    assert last.delta == pytest.approx(1e-5)
    assert percentiles(1.0, 0.5, (0.9,))[0].delta == 1.0
    usual = percentiles(1.0, 1e-10)
    assert [row.share for row in usual] == pytest.approx([1 - 10.0**-nines for nines in range(1, 6)], rel=1e-12)


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: BayesianAccountant([], 1, 0.9), "orders"),
        (lambda: BayesianAccountant([0], 1, 0.9), "orders"),
        (lambda: BayesianAccountant([1.5], 1, 0.9), "orders"),
        (lambda: BayesianAccountant([1], 0, 0.9), "total_steps"),
        (lambda: BayesianAccountant([1], 1, 1.0), "confidence"),
        (lambda: BayesianAccountant([1], 1, math.nan), "confidence"),
        (lambda: BayesianAccountant([1], 1, 0.9, "hoeffding"), "bound"),
        (lambda: BayesianAccountant([1], 1, 0.9, "bernstein"), "max_distance"),
        (lambda: BayesianAccountant([1], 1, 0.9, max_distance=0.0), "max_distance"),
        (lambda: BayesianAccountant([1], 1), "confidence"),
        (lambda: BayesianAccountant([1], 1, 0.9, gamma=0.1), "confidence"),
        (lambda: BayesianAccountant([1], 1, gamma=0.0), "gamma"),
        (lambda: BayesianAccountant([1], 1, gamma=1.0), "gamma"),
        (lambda: BayesianAccountant([1], 1, 0.9).lost(1.0, 0.1, 1), "max_distance"),
        (lambda: BayesianAccountant([1], 1, 0.9).add([1.0, 1.0]), "costs"),
        (lambda: BayesianAccountant([1], 1, 0.9).add([-1.0]), "costs"),
        (lambda: BayesianAccountant([1], 1, 0.9).add([math.nan]), "costs"),
        (lambda: BayesianAccountant([1], 1, 0.9).restore(BayesianAccountant([1, 2], 1, 0.9).state()), "state"),
        (lambda: BayesianAccountant([1], 1, 0.9).restore({}), "state"),
        (lambda: BayesianAccountant([1], 1, 0.9).step([0.1, 0.2], 1.0, 0.1), "distances"),
        (lambda: BayesianAccountant([1], 1, 0.9).step([[0.1, 0.2, 0.3]], 1.0, 0.1), "distances"),
        (lambda: BayesianAccountant([1], 1, 0.9).step([0.1, 0.2, math.inf], 1.0, 0.1), "distances"),
        (lambda: BayesianAccountant([1], 1, 0.9).step([0.1, 0.2, -0.3], 1.0, 0.1), "distances"),
        (lambda: BayesianAccountant([1], 1, 0.9).step(SAMPLE, 0.0, 0.1), "noise_std"),
        (lambda: BayesianAccountant([1], 1, 0.9).step(SAMPLE, 1.0, 1.1), "sample_rate"),
        (lambda: BayesianAccountant([1], 1, 0.9).step(SAMPLE, 1.0, 0.1, steps=0), "steps"),
        (lambda: BayesianAccountant([1], 1, 0.9).epsilon(0.0), "delta"),
        (lambda: BayesianAccountant([1], 1, 0.9).delta(0.0), "epsilon"),
        (lambda: percentiles(1.0, 1e-5, (1.0,)), "shares"),
        (lambda: group_privacy(1.0, 1e-5, 0), "size"),
        (lambda: group_privacy(1.0, 0.0, 2), "delta"),
    ],
)
def test_what_is_out_of_range_is_refused_by_name(make, field: str) -> None:
    with pytest.raises(SettingError) as caught:
        make()
    assert caught.value.field == field


# --- what is known for certain -----------------------------------------------------------------------------------


@pytest.mark.parametrize("bound", ["student-t", "bernstein"])
def test_no_step_costs_more_than_at_the_largest_distance(bound: str) -> None:
    orders = (1, 4, 32)

    def costs(distances: ArrayLike, **most: float) -> NDArray[np.float64]:
        accountant = BayesianAccountant(orders, 500, gamma=1e-14, bound=bound if most else "student-t", **most)
        accountant.step(distances, 2.0, 0.05)
        return accountant.costs

    worst = [log_moment(np.array([0.5]), order, 0.05)[0] for order in orders]
    assert costs([1.0] * 4, max_distance=1.0) == pytest.approx(worst)  # nothing is uncertain there: no warning
    few, many = np.linspace(0.97, 0.999, 4), np.linspace(0.05, 0.95, 40)
    assert np.all(costs(few)[:2] > worst[:2])
    assert costs(few, max_distance=1.0)[:2] == pytest.approx(worst[:2])
    if bound == "student-t":
        assert np.array_equal(costs(many, max_distance=1.0), costs(many))
        assert np.all(costs(many) <= worst)


def test_lost_steps_cost_what_the_largest_distance_does() -> None:
    lost, seen = (BayesianAccountant([2, 16], 100, gamma=1e-14, max_distance=1.0) for _ in range(2))
    lost.lost(1.5, 0.1, steps=7)
    for _ in range(7):
        seen.step([1.0, 1.0, 1.0], 1.5, 0.1)
    assert lost.costs == pytest.approx(seen.costs)
    assert (lost.steps_taken, lost.calls, lost.failure_probability) == (7, 0, 0.0)
    seen.step(np.linspace(0.1, 0.3, 30), 1.5, 0.1)
    lost.lost(1.5, 0.1, steps=1)
    assert np.all(lost.costs > seen.costs)
    with pytest.warns(StepsOverrunWarning):
        lost.lost(1.5, 0.1, steps=93)


def test_a_cost_that_holds_for_every_record_is_added_as_it_is() -> None:
    accountant = BayesianAccountant([2, 8], 100, gamma=1e-14)
    accountant.add([0.5, 2.0])
    assert accountant.epsilon(1e-5) == pytest.approx(min((0.5 + math.log(1e5)) / 2, (2.0 + math.log(1e5)) / 8))
    accountant.step(SAMPLE, 1.0, 0.01)
    alone = BayesianAccountant([2, 8], 100, gamma=1e-14)
    alone.step(SAMPLE, 1.0, 0.01)
    assert accountant.costs == pytest.approx(alone.costs + np.array([0.5, 2.0]))
    assert accountant.steps_taken == 1


def test_a_gamma_that_one_minus_it_cannot_hold() -> None:
    tiny = BayesianAccountant([4], 10, gamma=1e-22)
    tiny.step(SAMPLE, 1.0, 0.01)
    tiny.step(SAMPLE, 1.0, 0.01)
    assert tiny.failure_probability == pytest.approx(2e-22)
    plain, given = BayesianAccountant([4], 10, 0.99), BayesianAccountant([4], 10, gamma=0.01)
    for accountant in (plain, given):
        accountant.step(SAMPLE, 1.0, 0.01)
    assert plain.costs == pytest.approx(given.costs)
    assert tiny.costs[0] / 2 > given.costs[0]


def test_a_kept_state_is_gone_on_from() -> None:
    whole, first, rest = (BayesianAccountant([2, 8], 100, gamma=1e-14) for _ in range(3))
    for accountant in (whole, first):
        accountant.step(SAMPLE, 1.0, 0.01)
    kept = first.state()
    first.step(SAMPLE, 1.0, 0.5)  # not in what was kept
    rest.restore(kept)
    for accountant in (whole, rest):
        accountant.step(SAMPLE, 0.7, 0.01)
    assert rest.costs.tolist() == whole.costs.tolist()
    assert (rest.calls, rest.steps_taken) == (2, 2)
    assert rest.epsilon(1e-6) == whole.epsilon(1e-6)


def test_bernsteins_costs_stand_beside_students() -> None:
    beside, alone = (
        BayesianAccountant([2, 8], 100, gamma=1e-14, max_distance=1.0, bound=bound, union=True)
        for bound in ("student-t", "bernstein")
    )
    for accountant in (beside, alone):
        accountant.step(SAMPLE, 1.0, 0.01)
        accountant.lost(1.0, 0.01, 2)
        accountant.add([0.5, 2.0])
    assert beside.certain_epsilon(1e-6) == alone.epsilon(1e-6)
    assert alone.certain_epsilon(1e-6) == pytest.approx(alone.epsilon(1e-6))
    both = beside.joined(BayesianAccountant([2, 8], 100, gamma=1e-14, max_distance=1.0, union=True))
    assert both.certain_epsilon(1e-6) == pytest.approx(beside.certain_epsilon(1e-6))


def test_a_state_of_an_earlier_version_knows_no_certain_costs() -> None:
    first, rest = (BayesianAccountant([2, 8], 100, gamma=1e-14, max_distance=1.0) for _ in range(2))
    first.step(SAMPLE, 1.0, 0.01)
    kept = first.state()
    rest.restore({name: values for name, values in kept.items() if name != "certain"})
    assert rest.epsilon(1e-6) == first.epsilon(1e-6)
    assert rest.certain_epsilon(1e-6) == np.inf
    rest.restore(kept)
    assert rest.certain_epsilon(1e-6) == first.certain_epsilon(1e-6)


def test_a_refused_step_charges_nothing_and_prints_no_distance() -> None:
    accountant = BayesianAccountant([1], 1, 0.9)
    with pytest.raises(SettingError) as caught:
        accountant.step([0.123456, 0.2, -0.987654], 1.0, 0.1)
    assert "0.987654" not in str(caught.value)
    assert (accountant.calls, accountant.steps_taken, accountant.costs.tolist()) == (0, 0, [0.0])


def test_the_accountants_import_nothing_heavy() -> None:
    code = (
        "import sys; from doublure.private import accounting, bayesian; "
        "heavy = {'torch', 'dp_accounting', 'opendp', 'sklearn', 'pandas', 'scipy.stats'}; "
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_examples_in_the_documentation_hold() -> None:
    for module in (bayesian.accountant, bayesian.moments, bayesian.statements):
        found = doctest.testmod(module)
        assert found.attempted
        assert not found.failed
