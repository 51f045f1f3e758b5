"""The accountant against dp-accounting's own figures, against itself, and at its edges."""

from __future__ import annotations

import doctest
import itertools
import json
import logging
import math
from decimal import Decimal, localcontext
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from doublure.errors import SettingError
from doublure.private import accounting
from doublure.private.accounting import (
    ApproximateEvent,
    DiscreteGaussianEvent,
    Event,
    GaussianEvent,
    PureEvent,
    calibrate,
    curves,
    delta_of,
    epsilon_of,
    event_from_json,
    event_to_json,
    group_privacy,
)

STORED = Path(__file__).parents[1] / "vectors"
SHARED = Path(__file__).resolve().parents[2] / ".." / "shared" / "vectors"
STORES = [
    json.loads(path.read_text()) for folder in (STORED, SHARED) if (path := folder / "dp_accounting.json").is_file()
]
VECTORS = list({vector["description"]: vector for store in STORES for vector in store["vectors"]}.values())
GRID = 5e-4  # two grids may differ by this much, relatively
few = settings(max_examples=5, deadline=None, derandomize=True)
noises = st.floats(1.0, 10.0)
rates = st.sampled_from([0.003, 0.05, 0.3, 1.0])
counts = st.integers(1, 60)
both = pytest.mark.parametrize("accountant", ["pld", "rdp"])


def gaussian(noise: float, rate: float = 1.0, steps: int = 1) -> GaussianEvent:
    return GaussianEvent(noise_multiplier=noise, sample_rate=rate, steps=steps)


def exact_gaussian_delta(noise: float, epsilon: float) -> float:
    """Balle and Wang 2018, Theorem 8, for one Gaussian of sensitivity 1."""
    from scipy.stats import norm

    upper = norm.sf(epsilon * noise - 1 / (2 * noise))
    return float(upper - math.exp(epsilon + norm.logsf(epsilon * noise + 1 / (2 * noise))))


# --- vectors ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["description"][:30])
def test_vectors(vector: dict) -> None:
    setting = (vector["sigma"], vector["q"], vector["steps"], vector["delta"])
    assert accounting.epsilon(*setting, "rdp") == pytest.approx(vector["dp_accounting_rdp"]["epsilon"], rel=1e-9)
    tight, theirs = accounting.epsilon(*setting), vector["dp_accounting_pld"]["epsilon"]
    assert theirs - 1e-9 <= tight <= theirs + 0.002
    assert tight <= vector["opacus_prv"]["epsilon"]


@pytest.mark.parametrize("vector", [v for v in VECTORS if v["fixed_size_wor_replace_one_rdp"]])
def test_fixed_size_lots_are_charged_for_a_sensitivity_of_two_clips(vector: dict) -> None:
    stored = vector["fixed_size_wor_replace_one_rdp"]

    def fixed_size(noise: float) -> float:
        rate = stored["sample"] / stored["source"]
        event = GaussianEvent(
            noise_multiplier=noise, sample_rate=rate, steps=vector["steps"], sampling="without-replacement"
        )
        return epsilon_of([event], vector["delta"], accountant="rdp", relation="replace-one")

    assert fixed_size(vector["sigma"]) == pytest.approx(
        stored["epsilon_clipped_sum_noise_sigmaC_sensitivity_2C"], rel=1e-8
    )
    assert fixed_size(2 * vector["sigma"]) == pytest.approx(
        stored["epsilon_multiplier_sigma_vs_replace_sensitivity"], rel=1e-8
    )


# --- against closed forms --------------------------------------------------------------------------------------


@pytest.mark.parametrize("noise", [0.3, 1.0, 8.0, 300.0])
@pytest.mark.parametrize("delta", [1e-3, 1e-10])
def test_a_gaussian_matches_its_closed_form_from_above(noise: float, delta: float) -> None:
    epsilon = epsilon_of([gaussian(noise)], delta)
    assert exact_gaussian_delta(noise, epsilon) <= delta * (1 + 1e-9)
    assert exact_gaussian_delta(noise, epsilon * (1 - 2e-3)) > delta


@pytest.mark.parametrize("steps", [200, 19_999, 20_000, 1_000_001, 10_000_000])
@pytest.mark.parametrize("delta", [1e-5, 1e-11])
def test_many_steps_are_neither_too_little_nor_far_too_much(steps: int, delta: float) -> None:
    """Whole-batch steps hidden from the closed form: at q just below 1 every step is composed numerically.

    dp-accounting alone falls below the truth here: 6.5166 instead of 6.5479 for 1e6 steps, noise 1000, δ = 1e-10.
    """
    noise = math.sqrt(steps)
    together = epsilon_of([gaussian(noise, 1 - 1e-12, steps)], delta)
    assert exact_gaussian_delta(1.0, together) <= delta
    assert together <= epsilon_of([gaussian(1.0)], delta) * 1.02


def test_small_epsilons_are_resolved_at_a_million_steps() -> None:
    found = accounting.epsilon(4000.0, 0.01, 1_000_000, 1e-5)
    central_limit = 1.0 / (0.01 * 1000.0 * math.sqrt(math.expm1(4000.0**-2)))  # Dong, Roth and Su 2022, Corollary 5.4
    assert exact_gaussian_delta(central_limit, found) <= 1e-5
    assert exact_gaussian_delta(central_limit, found * 0.97) > 1e-5


def test_full_batch_under_replace_one_is_a_gaussian_of_half_the_noise() -> None:
    for accountant in ("pld", "rdp"):
        replaced = epsilon_of([gaussian(3.0, steps=7)], 1e-6, accountant=accountant, relation="replace-one")
        assert replaced == pytest.approx(epsilon_of([gaussian(1.5, steps=7)], 1e-6, accountant=accountant), rel=1e-4)


def test_poisson_lots_cost_more_under_replace_one() -> None:
    lots = [gaussian(1.5, 0.01, 500)]
    replaced = epsilon_of(lots, 1e-5, relation="replace-one")
    assert epsilon_of(lots, 1e-5) < replaced
    # A record in place of another is one less and one more: no worse than a group of two.
    assert replaced < group_privacy(epsilon_of(lots, 1e-6), 1e-6, 2)[0]


def test_pure_events_approach_their_sum_at_small_delta_and_beat_it_at_large() -> None:
    two = [PureEvent(epsilon=0.3), PureEvent(epsilon=0.45)]
    assert 0.749 < epsilon_of(two, 1e-11) <= 0.75 + 1e-3
    many = [PureEvent(epsilon=0.01)] * 100
    for accountant in ("pld", "rdp"):
        assert 0.25 < epsilon_of(many, 1e-5, accountant=accountant) < 0.4


@both
def test_randomised_response_pays_its_exact_delta(accountant: str) -> None:
    """δ(ε₀/2) of one randomised response is p − e^(ε₀/2)(1 − p)."""
    kept = 1 / (1 + math.exp(-1.0))
    exact = kept - math.exp(0.5) * (1 - kept)
    found = delta_of([PureEvent(epsilon=1.0)], 0.5, accountant=accountant)
    assert exact - 1e-12 <= found <= (exact * 1.001 if accountant == "pld" else 1.0)


@pytest.mark.parametrize("epsilon", [1e-6, 0.05, 0.9999e-4, 1.0001e-4, 3.0, 29.99, 30.01, 200.0])
def test_renyi_of_pure_events_is_an_upper_bound_everywhere(epsilon: float) -> None:
    curve = curves.RenyiCurve([(PureEvent(epsilon=epsilon), 1)], "add-remove")
    with localcontext(prec=100):  # the divergence of randomised response, with the digits that float64 lacks
        kept = 1 / (1 + (-Decimal(epsilon)).exp())
        lost = 1 - kept
        for order, found in zip(curve.orders, curve.divergence, strict=True):
            a = Decimal(float(order))
            exact = float((kept**a * lost ** (1 - a) + lost**a * kept ** (1 - a)).ln() / (a - 1))
            assert exact * (1 - 1e-9) <= found <= exact * 1.05 + 1e-12


@pytest.mark.parametrize("noise", [0.005, 0.01, 0.02])
def test_orders_near_one_bound_the_divergence_of_a_sampled_step_of_little_noise(noise: float) -> None:
    q, points = 64 / 60_000, np.linspace(-12, 12, 400_001)
    curve = curves.RenyiCurve([(gaussian(noise, q), 1)], "add-remove", orders=curves.NEAR_ONE)
    weights = np.exp(-(points**2) / 2) / math.sqrt(2 * math.pi) * (points[1] - points[0])
    for order, found in zip(curve.orders, curve.divergence, strict=True):
        if order > 1.002:  # beyond, quadrature overflows
            continue
        both_worlds = 0.0
        for mean, share in ((0.0, 1 - q), (1.0, q)):
            at = mean + noise * points
            loss = np.logaddexp(math.log1p(-q), math.log(q) + (2 * at - 1) / (2 * noise**2))
            both_worlds += share * float((weights * np.expm1((order - 1) * loss)).sum())
        exact = math.log1p(both_worlds) / (order - 1)
        assert exact * (1 - 1e-9) <= found <= exact * 1.0001 + 1e-6


def test_little_noise_is_priced_with_its_sampling_rate() -> None:
    """2022's noise on MNIST: the sum of 375,000 losses is normal, with a mean of T q / 2σ² about."""
    q, steps, noise = 64 / 60_000, 375_000, 0.01
    found = accounting.epsilon(noise, q, steps, 1e-6, "rdp")
    jump = 1 / (2 * noise**2) + math.log(q)
    least = steps * q * jump + 4.75 * jump * math.sqrt(steps * q)
    assert least < found < 1.05 * least


# --- properties ------------------------------------------------------------------------------------------------


@both
@few
@given(noise=noises, rate=rates, steps=counts)
def test_more_steps_more_sampling_and_less_noise_cost_more(
    accountant: str, noise: float, rate: float, steps: int
) -> None:
    base = accounting.epsilon(noise, rate, steps, 1e-5, accountant)
    assert accounting.epsilon(noise, rate, 2 * steps, 1e-5, accountant) > base
    assert accounting.epsilon(noise * 1.3, rate, steps, 1e-5, accountant) < base
    assert accounting.epsilon(noise, min(1.0, rate * 1.3), steps, 1e-5, accountant) >= base
    assert accounting.epsilon(noise, rate, steps, 1e-4, accountant) < base


@few
@given(noise=noises, rate=rates, steps=counts)
def test_pld_is_at_most_rdp(noise: float, rate: float, steps: int) -> None:
    tight = accounting.epsilon(noise, rate, steps, 1e-5)
    assert 0 < tight <= accounting.epsilon(noise, rate, steps, 1e-5, "rdp") * (1 + GRID)


events = st.one_of(
    st.builds(gaussian, noises, rates, counts),
    st.builds(PureEvent, epsilon=st.floats(0.01, 2.0)),
    st.builds(ApproximateEvent, epsilon=st.floats(0.01, 2.0), delta=st.sampled_from([1e-8, 1e-7])),
)


@both
@few
@given(parts=st.lists(events, min_size=3, max_size=3))
def test_composition_does_not_care_for_order_or_grouping(accountant: str, parts: list[Event]) -> None:
    whole = epsilon_of(parts, 1e-5, accountant=accountant)
    assert epsilon_of(parts[::-1], 1e-5, accountant=accountant) == pytest.approx(whole, rel=1e-7)
    doubled = epsilon_of([*parts, *parts], 1e-5, accountant=accountant)
    pairs = [part for part in parts for _ in range(2)]
    assert epsilon_of(pairs, 1e-5, accountant=accountant) == pytest.approx(doubled, rel=1e-7)


@both
@pytest.mark.parametrize("parts", [(0.3, 0.7), (0.05,) * 20, (1 / 7,) * 7, (1 / 3, 2 / 3)])
def test_pure_events_never_cost_more_than_their_sum(accountant: str, parts: tuple[float, ...]) -> None:
    together = [PureEvent(epsilon=part) for part in parts]
    assert epsilon_of(together, 1e-9, accountant=accountant) <= math.fsum(parts)
    assert delta_of(together, 1.0, accountant=accountant) == 0.0


def test_steps_add_up_exactly() -> None:
    assert epsilon_of([gaussian(1.0, 0.02, 30), gaussian(1.0, 0.02, 70)], 1e-5) == accounting.epsilon(
        1.0, 0.02, 100, 1e-5
    )


@both
@few
@given(parts=st.lists(events, min_size=2, max_size=3))
def test_the_whole_costs_at_least_each_part_and_at_most_their_sum(accountant: str, parts: list[Event]) -> None:
    whole = epsilon_of(parts, 1e-5, accountant=accountant)
    share = 1e-5 / len(parts)
    assert whole <= sum(epsilon_of([part], share, accountant=accountant) for part in parts) * (1 + GRID) + 3e-4
    for part in parts:
        assert whole >= epsilon_of([part], 1e-5, accountant=accountant) * (1 - GRID)


@both
@few
@given(parts=st.lists(events, min_size=1, max_size=3))
def test_delta_and_epsilon_invert_each_other(accountant: str, parts: list[Event]) -> None:
    parts = [gaussian(4.0), *parts]
    epsilon = epsilon_of(parts, 1e-5, accountant=accountant)
    assert delta_of(parts, epsilon, accountant=accountant) == pytest.approx(1e-5, rel=1e-3)


@both
@settings(few, max_examples=3)
@given(target=st.floats(0.05, 20.0), rate=rates, steps=counts, pure=st.floats(0.01, 0.9))
def test_calibration_never_overshoots_and_is_tight(
    accountant: str, target: float, rate: float, steps: int, pure: float
) -> None:
    def run(noise: float) -> list[Event]:
        return [PureEvent(epsilon=pure * target), gaussian(noise, rate, steps)]

    noise = calibrate(run, epsilon=target, delta=1e-5, accountant=accountant)
    assert epsilon_of(run(noise), 1e-5, accountant=accountant) <= target
    assert epsilon_of(run(noise * (1 - 5e-3)), 1e-5, accountant=accountant) > target * (1 - 1e-6)


@pytest.mark.parametrize(
    "setting",
    [
        (0.01, 1e-5, 0.01, 1_000_000, "pld"),
        (1000.0, 1e-5, 0.01, 10_000, "pld"),
        (0.01, 1e-5, 0.01, 10_000, "rdp"),
        (3.0, 1e-10, 0.01, 10_000, "pld"),
        (1.0, 1e-5, 0.5, 1, "pld"),
    ],
)
def test_calibration_at_the_edges(setting: tuple[float, float, float, int, str]) -> None:
    target, delta, rate, steps, accountant = setting
    noise = accounting.noise_multiplier(target, delta, rate, steps, accountant)
    assert 0.98 * target < accounting.epsilon(noise, rate, steps, delta, accountant) <= target


def test_calibration_says_what_would_be_feasible() -> None:
    def run(noise: float) -> list[Event]:
        return [PureEvent(epsilon=2.0), gaussian(noise)]

    with pytest.raises(SettingError, match=r"epsilon: no noise is enough: 2 is the least .*; raise it above 2 "):
        calibrate(run, epsilon=1.0, delta=1e-5)
    with pytest.raises(SettingError, match=r"delta: .* already spent"):
        calibrate(lambda noise: [ApproximateEvent(epsilon=0.1, delta=1e-5)], epsilon=1.0, delta=1e-5)


# --- supported pairs, edges, refusals --------------------------------------------------------------------------


SUPPORTED = {
    ("poisson", 0.1, "add-remove"): {"pld", "rdp"},
    ("poisson", 0.1, "replace-one"): {"pld"},
    ("without-replacement", 0.1, "add-remove"): set(),
    ("without-replacement", 0.1, "replace-one"): {"rdp"},
    ("poisson", 1.0, "add-remove"): {"pld", "rdp"},
    ("poisson", 1.0, "replace-one"): {"pld", "rdp"},
    ("without-replacement", 1.0, "add-remove"): {"pld", "rdp"},
    ("without-replacement", 1.0, "replace-one"): {"pld", "rdp"},
}


@pytest.mark.parametrize(("case", "accountant"), list(itertools.product(SUPPORTED, ["pld", "rdp"])))
def test_the_table_of_supported_pairs(case: tuple[str, float, str], accountant: str) -> None:
    sampling, rate, relation = case
    event = GaussianEvent(noise_multiplier=2.0, sample_rate=rate, steps=3, sampling=sampling)
    if accountant in SUPPORTED[case]:
        assert epsilon_of([event], 1e-5, accountant=accountant, relation=relation) > 0
    else:
        with pytest.raises(SettingError, match=r"is not supported .*; use "):
            epsilon_of([event], 1e-5, accountant=accountant, relation=relation)


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
def test_pure_and_approximate_events_are_supported_everywhere(relation: str) -> None:
    parts = [PureEvent(epsilon=0.2), ApproximateEvent(epsilon=0.3, delta=1e-7)]
    for accountant in ("pld", "rdp"):
        assert 0.4 < epsilon_of(parts, 1e-5, accountant=accountant, relation=relation) < 0.51


def test_nothing_done_costs_nothing() -> None:
    for accountant in ("pld", "rdp"):
        assert epsilon_of([], 1e-5, accountant=accountant) == 0.0
        assert delta_of([gaussian(1.0, 0.1, 0)], 0.0, accountant=accountant) == 0.0
        assert epsilon_of([DiscreteGaussianEvent(scale=1.0, tables=0)], 1e-5, accountant=accountant) == 0.0
        assert accounting.epsilon(1.0, 0.01, 0, 1e-5, accountant) == 0.0


def test_too_small_a_delta_is_refused_by_pld_and_answered_by_rdp() -> None:
    with pytest.raises(SettingError, match=r'delta: 1e-15 is smaller .*accountant="rdp"'):
        accounting.epsilon(1.0, 0.01, 1000, 1e-15)
    assert accounting.epsilon(1.0, 0.01, 1000, 1e-15, "rdp") < 20


def test_a_delta_within_the_rounding_error_is_refused() -> None:
    """dp-accounting answers 7.2168, where the truth is 7.2385: its Fourier transforms cannot see so small a δ."""
    with pytest.raises(SettingError, match="delta: 1e-12 is smaller"):
        accounting.epsilon(100.0, 1 - 1e-12, 10_000, 1e-12)


def test_huge_pure_events_are_refused_by_pld_and_answered_by_rdp() -> None:
    with pytest.raises(SettingError, match='accountant="rdp"'):
        epsilon_of([PureEvent(epsilon=1000.0)], 1e-5)
    assert 1000.0 <= epsilon_of([PureEvent(epsilon=1000.0)], 1e-5, accountant="rdp") < 1001.0


def test_an_approximate_event_spends_its_own_delta() -> None:
    event = ApproximateEvent(epsilon=0.5, delta=4e-6)
    for accountant in ("pld", "rdp"):
        assert delta_of([event, event], 5.0, accountant=accountant) == pytest.approx(8e-6, rel=1e-5)
        with pytest.raises(SettingError, match="delta: 8e-06 is already spent"):
            epsilon_of([event, event], 8e-6, accountant=accountant)


def test_orders_that_dp_accounting_leaves_out_are_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        accounting.epsilon(1.0, 0.5, 2, 1e-5, "rdp")
    assert not caplog.records


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: gaussian(0.0), "noise_multiplier"),
        (lambda: gaussian(math.nan), "noise_multiplier"),
        (lambda: gaussian(1.0, 0.0), "sample_rate"),
        (lambda: gaussian(1.0, 1.1), "sample_rate"),
        (lambda: gaussian(1.0, 0.1, -1), "steps"),
        (lambda: gaussian(1.0, 0.1, 2.0), "steps"),
        (lambda: gaussian(1.0, 0.1, 10**12), "steps"),
        (lambda: accounting.epsilon(1e-3, 0.01, 1_000_000, 1e-5), "noise_multiplier"),
        (lambda: GaussianEvent(noise_multiplier=1.0, sampling="shuffle"), "sampling"),
        (lambda: PureEvent(epsilon=0.0), "epsilon"),
        (lambda: PureEvent(epsilon=True), "epsilon"),
        (lambda: ApproximateEvent(epsilon=1.0, delta=1.0), "delta"),
        (lambda: ApproximateEvent(epsilon=0.0, delta=1e-5), "epsilon"),
        (lambda: epsilon_of([gaussian(1.0)], 0.0), "delta"),
        (lambda: epsilon_of([gaussian(1.0)], 1e-5, accountant="prv"), "accountant"),
        (lambda: epsilon_of([gaussian(1.0)], 1e-5, relation="add"), "relation"),
        (lambda: epsilon_of(["gaussian"], 1e-5), "events"),
        (lambda: delta_of([gaussian(1.0)], -1.0), "epsilon"),
        (lambda: calibrate(lambda noise: [gaussian(noise)], epsilon=0.0, delta=1e-5), "epsilon"),
        (lambda: group_privacy(1.0, 0.0, 0), "size"),
    ],
)
def test_what_is_out_of_range_is_refused_by_name(make, field: str) -> None:
    with pytest.raises(SettingError) as caught:
        make()
    assert caught.value.field == field
    assert "\n" not in str(caught.value)


# --- JSON and groups -------------------------------------------------------------------------------------------


@given(event=events)
def test_events_survive_json(event: Event) -> None:
    assert event_from_json(json.loads(json.dumps(event_to_json(event)))) == event


@pytest.mark.parametrize(
    "broken",
    [
        [],
        {},
        {"type": "laplace"},
        {"type": ["pure"]},
        {"type": "pure"},
        {"type": "pure", "epsilon": "1"},
        {"type": "pure", "epsilon": 1.0, "delta": 0.1},
        {"type": "gaussian", "noise_multiplier": -1.0},
        {"type": "gaussian", "noise_multiplier": 1.0, "steps": True},
    ],
)
def test_broken_json_is_refused(broken: object) -> None:
    with pytest.raises(SettingError):
        event_from_json(broken)


def test_group_privacy_is_the_geometric_sum() -> None:
    epsilon, delta = group_privacy(0.7, 1e-8, 3)
    assert epsilon == pytest.approx(2.1)
    assert delta == pytest.approx(1e-8 * (1 + math.exp(0.7) + math.exp(1.4)))
    assert group_privacy(0.0, 1e-8, 3) == (0.0, pytest.approx(3e-8))
    assert group_privacy(900.0, 1e-8, 3) == (2700.0, 1.0)
    assert group_privacy(0.7, 1e-8, 1) == (0.7, pytest.approx(1e-8))


def test_a_groups_bound_holds_for_a_gaussian() -> None:
    """A group of k moves a Gaussian's sum by kC, whose exact cost is below the black-box conversion."""
    single = epsilon_of([gaussian(20.0)], 1e-9)
    for size in (1, 2, 3):
        cost, delta = group_privacy(single, 1e-9, size)
        assert exact_gaussian_delta(20.0 / size, cost) <= delta


def test_the_examples_in_the_documentation_hold() -> None:
    assert doctest.testmod(accounting).failed == 0


# -- tables of counts -----------------------------------------------------------------------------------------------


def exact_delta(scale: float, tables: int, epsilon: float) -> float:
    """Return δ(ε) by adding up over every outcome: one cell of each table moves by one."""
    reach = np.arange(-math.ceil(12 * scale), math.ceil(12 * scale) + 1)
    mass = np.exp(-(reach.astype(float) ** 2) / (2 * scale**2))
    mass /= mass.sum()
    # The loss of an outcome (y_1, …, y_k) is Σ (1 + 2 y_i) / (2 σ²), a function of Σ y_i alone.
    total, places = mass, reach
    for _ in range(tables - 1):
        total = np.convolve(total, mass)
        places = np.arange(places[0] + reach[0], places[-1] + reach[-1] + 1)
    loss = (tables + 2 * places) / (2 * scale**2)
    return float(np.sum(total * np.maximum(0, -np.expm1(epsilon - loss))))


@pytest.mark.parametrize(("scale", "tables"), [(0.6, 1), (2.0, 3), (7.5, 10), (40.0, 2)])
def test_discrete_gaussian_tables_are_exact(scale, tables):
    event = DiscreteGaussianEvent(scale=scale, tables=tables)
    for epsilon in (0.05, 0.3, 1.0):
        exact = exact_delta(scale, tables, epsilon)
        found = accounting.delta_of([event], epsilon)
        assert exact * (1 - 1e-9) <= found <= exact * 1.005 + 1e-12
        assert accounting.delta_of([event], epsilon, accountant="rdp") >= exact * (1 - 1e-9)


def test_discrete_gaussian_costs_no_more_than_a_continuous_one_of_the_same_size():
    tables = DiscreteGaussianEvent(scale=30.0, tables=100)
    together = GaussianEvent(noise_multiplier=3.0)
    for accountant in ("pld", "rdp"):
        one, other = (accounting.epsilon_of([event], 1e-6, accountant=accountant) for event in (tables, together))
        assert one == pytest.approx(other, rel=1e-3)


def test_tables_in_which_a_unit_has_several_records_are_priced_by_their_length():
    several = DiscreteGaussianEvent(scale=30.0, tables=100, records=3)
    found = accounting.epsilon_of([several], 1e-6, accountant="rdp")
    assert found == pytest.approx(accounting.epsilon_of([GaussianEvent(noise_multiplier=1.0)], 1e-6, accountant="rdp"))
    with pytest.raises(SettingError, match="rdp"):
        accounting.epsilon_of([several], 1e-6)


def test_replacing_moves_two_cells():
    event = DiscreteGaussianEvent(scale=12.0, tables=4)
    double = DiscreteGaussianEvent(scale=12.0, tables=8)
    for accountant in ("pld", "rdp"):
        replaced = accounting.epsilon_of([event], 1e-6, accountant=accountant, relation="replace-one")
        assert replaced == pytest.approx(accounting.epsilon_of([double], 1e-6, accountant=accountant), rel=1e-3)


def test_tables_are_written_and_read_and_refused():
    event = DiscreteGaussianEvent(scale=12.5, tables=4, records=2)
    assert accounting.event_from_json(accounting.event_to_json(event)) == event
    for wrong in ({"scale": 0.0}, {"scale": math.inf}, {"scale": 1.0, "tables": -1}, {"scale": 1.0, "records": 0}):
        with pytest.raises(SettingError):
            DiscreteGaussianEvent(**wrong)
