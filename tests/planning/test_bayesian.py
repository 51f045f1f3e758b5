"""A Bayesian claim: what a plan knows of it beforehand, and what it comes to."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import doublure as db
from doublure.errors import InputError, SettingError
from doublure.guarantee import CHOICE_OF_KIND
from doublure.ledger.request import plan_charge
from doublure.methods.bayesgan import claim as bayesian
from doublure.private import accounting
from doublure.private.accounting import GaussianEvent
from doublure.private.bayesian import BayesianAccountant, log_moment

TEXT = "doublure: 1\nkind: images\nunits: 60000\nimages: {shape: [28, 28, 1]}\nlabel: {values: [0, 1, 2]}\n"
IMAGES = db.Schema.parse(TEXT)
UNLABELLED = db.Schema.parse(TEXT.partition("label")[0])
BOUGHT = db.Schema.parse(TEXT.replace("[0, 1, 2]", "{learn: 0.2}, other: x, shares: {learn: 0.1}"))
DELTA, STEPS = 1e-10, 40


def plan(schema: db.Schema = UNLABELLED, **changes: Any) -> db.Plan:
    given = {"epsilon": 2.0, "delta": DELTA, "accountant": "rdp"} | ({} if "recipe" in changes else {"steps": STEPS})
    return db.plan(schema, method="bayesgan", **(given | changes))


def forecast(made: db.Plan, share: float) -> float:
    """Return ε_μ if every distance were this share of the largest."""
    return bayesian.forecast_epsilon(made.settings, made.touches, delta=made.delta, share=share)


def claimed(made: db.Plan, accountant: BayesianAccountant | None) -> tuple[db.Guarantee, float]:
    """Return what a run of the plan may claim, and the ε_μ that decided it."""
    return bayesian.final_claim(made.guarantee, made.settings, made.touches, accountant)


@pytest.fixture(scope="module")
def plain() -> db.Plan:
    return plan()


@pytest.fixture(scope="module")
def labelled() -> db.Plan:
    return plan(IMAGES)


def fed(made: db.Plan, share: float, *, spread: float = 0.0) -> BayesianAccountant:
    """Return an accountant as a run of the plan feeds it, with distances of about one length."""
    own = made.settings
    accountant = BayesianAccountant(
        own.orders, own.steps, max_distance=1.0, gamma=own.gamma_share * made.delta / own.steps, union=True
    )
    distances = share * (1 - spread * np.linspace(0, 1, own.distances))
    for _ in range(own.steps):
        accountant.step(distances, made.noise_multiplier, made.sample_rate)
    return accountant


# -- σ, q and T are fixed ----------------------------------------------------------------------------------------------


def test_sigma_follows_from_the_ceiling_so_that_it_cannot_be_passed(plain: db.Plan, labelled: db.Plan) -> None:
    for made in (plain, labelled, plan(BOUGHT)):
        assert made.settings.noise_multiplier == made.noise_multiplier
        assert 1.999 < forecast(made, 1.0) <= 2.0
        found, figure = claimed(made, fed(made, 1.0))
        assert found.kind == "bayesian-dp"
        assert 1.999 < figure <= 2.0
        assert found.epsilon_mu <= 2.0


def test_a_guess_of_shorter_distances_takes_less_noise_and_may_be_wrong(plain: db.Plan) -> None:
    guessed = plan(expected_distance=0.5)
    assert guessed.noise_multiplier < 0.7 * plain.noise_multiplier
    assert 1.999 < forecast(guessed, 0.5) <= 2.0 < forecast(guessed, 1.0)
    assert claimed(guessed, fed(guessed, 0.45, spread=0.2))[0].kind == "bayesian-dp"
    found, figure = claimed(guessed, fed(guessed, 0.9, spread=0.1))
    assert (found.kind, found) == ("dp", guessed.guarantee.worst_case)
    assert figure > 2.0


def test_a_sigma_that_is_given_stays(plain: db.Plan) -> None:
    given = plan(noise_multiplier=5.0)
    assert (given.noise_multiplier, given.settings.noise_multiplier) == (5.0, 5.0)
    assert given.worst_case[0] < plain.worst_case[0]
    given = plan(IMAGES, noise_multiplier=5.0, labeller_noise=70.0)
    assert [touch.event.noise_multiplier for touch in given.touches] == [5.0, 70.0]
    # one of the two: the other follows
    share = plan(IMAGES, noise_multiplier=5.0)
    assert share.noise_multiplier == 5.0
    assert share.settings.labeller_noise > 0
    rest = plan(IMAGES, labeller_noise=200.0)
    assert rest.settings.labeller_noise == 200.0
    assert rest.noise_multiplier < plan(IMAGES).noise_multiplier
    assert forecast(rest, 1.0) <= 2.0


def test_the_annotators_share_is_its_share_of_the_cost(labelled: db.Plan) -> None:
    more = plan(IMAGES, labeller_share=0.8)
    assert more.settings.labeller_noise < labelled.settings.labeller_noise
    assert more.noise_multiplier > labelled.noise_multiplier
    critic, annotator = labelled.touches
    assert (critic.estimated, annotator.estimated) == (True, False)
    assert (annotator.event.sample_rate, annotator.event.steps) == (1.0, 60)
    moments = [accounting.log_moments([touch.event], labelled.settings.orders)[0] for touch in labelled.touches]
    ratios = [two / (one + two) for one, two in zip(*moments, strict=True)]
    assert min(abs(ratio - 0.5) for ratio in ratios) < 1e-3  # at the λ that it was made at


def test_an_annotator_may_be_priced_by_sampled_distances_too(labelled: db.Plan) -> None:
    made = plan(IMAGES, annotator_price="sampled")
    assert [touch.estimated for touch in made.touches] == [True, True]
    assert 1.999 < forecast(made, 1.0) <= 2.0  # at the largest distances it costs what it costs at its worst
    assert forecast(made, 0.5) < forecast(labelled, 0.5)
    assert made.guarantee.worst_case == labelled.guarantee.worst_case
    assert "C = 0.1" in made.explain().split("Noise to train the critic")[1].split("\n")[0]
    assert "C = " not in made.explain().split("Noise to train the annotator")[1].split("\n")[0]
    guessed = plan(IMAGES, annotator_price="sampled", expected_distance=0.5)
    assert guessed.settings.labeller_noise == pytest.approx(made.settings.labeller_noise / 2, rel=0.2)
    own = made.settings
    assert own.powers == (math.ceil(STEPS / 0.9), 600)
    assert (own.steps / own.powers[0]) + own.labeller_steps / own.powers[1] <= 1


def test_a_claim_waits_for_the_annotators_distances() -> None:
    made = plan(IMAGES, annotator_price="sampled")
    assert claimed(made, fed(made, 1.0))[0] == made.guarantee.worst_case  # the critic's steps alone
    own = made.settings
    critic, annotator = (
        BayesianAccountant(own.orders, power, max_distance=1.0, union=True,
                           gamma=own.gamma_share * made.delta / own.sampled_steps)
        for power in own.powers
    )  # fmt: skip
    for _ in range(own.steps):
        critic.step([1.0] * 64, made.noise_multiplier, made.sample_rate)
    for _ in range(own.labeller_steps):
        annotator.step([1.0] * 64, own.labeller_noise, 1.0)
    found, figure = claimed(made, critic.joined(annotator))
    assert (found, round(figure, 2)) == (made.guarantee, 2.0)


def test_nothing_of_the_plan_depends_on_what_will_be_measured(plain: db.Plan) -> None:
    assert (plain.steps, plain.settings.steps) == (STEPS, STEPS)
    assert plan(steps=None).steps == 1500
    assert plain.sample_rate == pytest.approx(1024 / 60_000)
    assert plan().to_json() | {"seconds_estimate": 0, "memory_bytes": 0} == plain.to_json() | {
        "seconds_estimate": 0,
        "memory_bytes": 0,
    }


# -- the worst case ----------------------------------------------------------------------------------------------------


def test_the_worst_case_of_everything_is_stated_and_charged(labelled: db.Plan) -> None:
    epsilon, delta = labelled.worst_case
    assert delta == 1e-6  # a power of ten, at most a tenth of 1/units
    composed = accounting.epsilon_of([touch.event for touch in labelled.touches], delta, accountant="rdp")
    assert composed <= epsilon <= composed * 1.001
    assert plan_charge(labelled, labelled.guarantee.kind) == {"epsilon": epsilon, "delta": delta}
    assert (labelled.guarantee.epsilon, labelled.guarantee.delta) == (epsilon, delta)
    assert (labelled.epsilon, labelled.delta) == (2.0, DELTA)
    assert {touch.delta for touch in labelled.touches if touch.path is None} == {delta}
    assert plan(worst_case_delta=1e-8).worst_case[1] == 1e-8
    assert plan(worst_case_delta=1e-8).worst_case[0] > plan().worst_case[0]


def test_no_other_kind_has_one(small: Any) -> None:
    assert small.plan.worst_case is None
    assert db.plan(UNLABELLED, method="gan").worst_case is None
    assert small.plan.guarantee.worst_case is small.plan.guarantee


def test_facts_are_composed_into_both_figures() -> None:
    with_facts, without = plan(BOUGHT, noise_multiplier=5.0, labeller_noise=70.0), plan(
        IMAGES, noise_multiplier=5.0, labeller_noise=70.0
    )  # fmt: skip
    assert with_facts.worst_case[0] > without.worst_case[0]
    assert forecast(with_facts, 0.5) > forecast(without, 0.5)
    assert (
        claimed(with_facts, fed(with_facts, 0.5, spread=0.1))[1]
        > claimed(without, fed(without, 0.5, spread=0.1))[1] + 0.01
    )


def test_a_batch_that_is_clipped_is_charged_for_twice_its_bound() -> None:
    """The accountant's event has the noise over 2 C: paper's std of .01 over 2 · 0.5."""
    paper = plan(recipe="paper")
    critic = paper.touches[0].event
    assert critic == GaussianEvent(noise_multiplier=0.01, sample_rate=64 / 60_000, steps=375_000)
    assert paper.settings.max_grad_norm == 0.5
    assert paper.worst_case[0] > 1e6
    assert any("worst-case epsilon" in warning for warning in paper.warnings)
    assert any("2 C, however large the lot" in warning for warning in paper.warnings)
    assert plan(recipe="paper-fashion").noise_multiplier == 0.02
    own = plan(recipe="paper", critic_lr=0.5, noise_multiplier=3.0)
    assert (own.settings.critic_lr, own.noise_multiplier, own.settings.n_critic) == (0.5, 3.0, 5)


# -- what is claimed afterwards ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.1, 0.3, 0.6])
def test_whatever_was_measured_below_the_ceiling_the_plans_claim_is_made(labelled: db.Plan, share: float) -> None:
    accountant = fed(labelled, share, spread=0.5)
    alone = accountant.epsilon(DELTA)
    found, figure = claimed(labelled, accountant)
    assert alone < figure < 2.0  # the annotator is in it
    assert found == labelled.guarantee
    assert found.epsilon_mu == 2.0
    assert labelled.may_claim(found)


def replace_mu(guarantee: db.Guarantee, epsilon_mu: float) -> db.Guarantee:
    return guarantee.model_copy(update={"epsilon_mu": epsilon_mu})


def test_it_is_what_equation_9_gives_for_both_parts(labelled: db.Plan) -> None:
    accountant = fed(labelled, 0.4, spread=1e-12)
    own, events = labelled.settings, [touch.event for touch in labelled.touches]
    orders = np.array(own.orders)
    critic = [
        own.steps * log_moment(np.array([0.4 / own.noise_multiplier]), k, events[0].sample_rate)[0] for k in orders
    ]
    annotator = 60 * orders * (orders + 1) / 2 / own.labeller_noise**2
    left = math.log(DELTA * (1 - own.gamma_share))
    expected = np.min((np.array(critic) + annotator - left) / orders)
    assert claimed(labelled, accountant)[1] == pytest.approx(expected, rel=1e-6)
    assert forecast(labelled, 0.4) == pytest.approx(expected, rel=1e-6)


def test_a_run_that_was_not_measured_to_its_end_claims_its_worst_case(plain: db.Plan) -> None:
    short = BayesianAccountant(plain.settings.orders, plain.settings.steps, max_distance=1.0, gamma=1e-20)
    short.step([0.1, 0.2, 0.3], plain.noise_multiplier, plain.sample_rate)
    for accountant in (None, short):
        found, figure = claimed(plain, accountant)
        assert (found.kind, figure) == ("dp", math.inf)
        assert (found.epsilon, found.delta) == plain.worst_case


def test_the_worst_case_says_why_it_stands_alone() -> None:
    plain = plan(expected_distance=0.5)
    left = plain.guarantee.worst_case
    assert "differentially private for one image" in left.sentence
    assert "μ" not in left.sentence
    for claim in (left, plain.guarantee):
        assert claim.excluded[-1] == CHOICE_OF_KIND
        assert claim.sentence.endswith(" Which claim was made depends on the private data and is not accounted for.")
    assert not any("ε_μ" in entry for entry in left.assumptions)
    assert any("ε_μ is itself computed from private gradients" in entry for entry in plain.guarantee.assumptions)


def test_without_a_choice_between_claims_the_one_that_holds_comes_first(plain: db.Plan) -> None:
    """Distances as long as there can be stay under the ceiling: no record decides which claim is made."""
    assert CHOICE_OF_KIND not in plain.guarantee.excluded
    assert "Which claim was made" not in plain.guarantee.sentence + plain.explain()
    epsilon, delta = plain.worst_case
    assert plain.guarantee.sentence.startswith(
        f"(ε={db.guarantee.figure(epsilon)}, δ={delta:g})-differentially private"
    )
    assert "Whatever is measured, this holds, too: (ε_μ ≤ 2, " in plain.guarantee.sentence
    short = fed(plain, 0.3, spread=0.2)
    assert claimed(plain, short)[0] == plain.guarantee
    former = json.loads(json.dumps(plain.to_json()))
    former["guarantee"]["excluded"].append(CHOICE_OF_KIND)  # as earlier plans have
    former["guarantee"]["sentence"] = db.Guarantee.from_json(
        {key: value for key, value in former["guarantee"].items() if key != "sentence"}
    ).former_sentence
    again = db.Plan.from_json(former)
    assert again.guarantee.excluded[-1] == CHOICE_OF_KIND
    assert again.guarantee.sentence.startswith("(ε_μ ≤ 2, ")


def test_only_what_was_planned_may_be_claimed(plain: db.Plan) -> None:
    assert plain.may_claim(plain.guarantee)
    assert plain.may_claim(plain.guarantee.worst_case)
    for epsilon_mu in (0.5, 1.999, 2.5, 0.0, None):
        assert not plain.may_claim(replace_mu(plain.guarantee, epsilon_mu))
    lower = plain.guarantee.worst_case.model_copy(update={"epsilon": 0.1})
    assert not plain.may_claim(lower)
    assert not plain.may_claim(plain.guarantee.model_copy(update={"epsilon_mu": 0.5, "epsilon": 0.1}))


# -- in words, and in a file -------------------------------------------------------------------------------------------


def test_it_says_what_is_known_beforehand_and_what_is_not(labelled: db.Plan) -> None:
    told = labelled.explain()
    epsilon, delta = labelled.worst_case
    assert "Ceiling: ε_μ = 2 at δ_μ = 1e-10, measured afterwards" in told
    assert f"worst case: ε = {epsilon:g}, δ = {delta:g}" in told
    assert "Known beforehand: σ, q, T and the worst case; ε_μ is at most 2; under the ceiling: yes" in told
    assert "Not known beforehand: how long gradient distances are" in told
    assert f"{db.guarantee.figure(forecast(labelled, 0.5))} (0.5)" in told
    assert "The confidence of ε_μ is spent over all orders (union bound); it stays internal" in told
    assert f"Claim: (ε={epsilon:g}, δ={delta:g})-differentially private" in told
    guessed = plan(expected_distance=0.5)
    unsure, (epsilon, delta) = guessed.explain(), guessed.worst_case
    assert "under the ceiling: not for sure" in unsure
    assert "Claim if the ε_μ that is measured is at most the ceiling: (ε_μ ≤ 2, δ_μ=1e-10)-Bayesian DP" in unsure
    assert f"Claim if it is not: (ε={db.guarantee.figure(epsilon)}, δ={delta:g})-differentially private" in unsure
    assert all(touch.purpose in told for touch in labelled.touches)


def test_a_plan_is_written_and_read(plain: db.Plan, labelled: db.Plan, tmp_path: Any) -> None:
    for made in (plain, labelled, plan(BOUGHT), plan(recipe="paper")):
        made.save(tmp_path / "plan.json")
        again = db.Plan.load(tmp_path / "plan.json")
        assert again == made
        assert again.worst_case == made.worst_case
        assert db.Plan.from_json(made.to_json(), reprice=False) == made


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("noise_multiplier",), 9.0),
        (("settings", "noise_multiplier"), 9.0),
        (("settings", "labeller_noise"), 9e3),
        (("settings", "worst_case_delta"), 1e-4),
        (("guarantee", "epsilon"), 0.1),
        (("guarantee", "epsilon_mu"), 0.1),
        (("guarantee", "gamma"), 1e-20),
        (("guarantee", "assumptions"), []),
        (("epsilon",), 1.0),
        (("delta",), 1e-12),
    ],
    ids=str,
)
def test_an_edited_plan_is_refused(labelled: db.Plan, path: tuple[str, ...], value: Any) -> None:
    forged = json.loads(json.dumps(labelled.to_json()))
    place = forged
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    with pytest.raises(InputError):
        db.Plan.from_json(forged)


def test_a_worst_case_that_is_written_too_low_everywhere_is_still_too_dear(plain: db.Plan) -> None:
    forged = json.loads(json.dumps(plain.to_json()))
    lower = plain.guarantee.model_copy(update={"epsilon": 0.1})
    forged["guarantee"] = lower.to_json()
    with pytest.raises(InputError, match="more than it says"):
        db.Plan.from_json(forged)


# -- refusals ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "field", "hint"),
    [
        ({"epsilon": 0.05}, "epsilon", "larger orders"),
        ({"epsilon": None}, "epsilon", "1.0"),
        ({"delta": None}, "delta", "give one"),
        ({"delta": 1e-3}, "delta", "give one well below"),
        ({"noise_multiplier": 0}, "noise_multiplier", "docs"),
        ({"distances": 2}, "distances", "docs"),
        ({"bound": "hoeffding"}, "bound", "docs"),
        ({"orders": []}, "orders", "docs"),
        ({"orders": [0]}, "orders", "docs"),
        ({"expected_distance": 1.5}, "expected_distance", "docs"),
        ({"gamma_share": 1.0}, "gamma_share", "docs"),
        ({"clipping": "layer"}, "clipping", "docs"),
        ({"recipe": "soup"}, "recipe", "docs"),
        ({"worst_case_delta": 0.0}, "worst_case_delta", "docs"),
        ({"worst_case_delta": 1e-3}, "worst_case_delta", "give one well below"),
        ({"generator_clip": 0.0}, "generator_clip", "docs"),
    ],
    ids=str,
)
def test_what_cannot_be_planned_is_refused_in_one_line(changes: dict[str, Any], field: str, hint: str) -> None:
    with pytest.raises(SettingError) as refused:
        plan(**changes)
    assert str(refused.value.field).split(".")[0] == field
    assert hint in str(refused.value.remedy)
    assert "\n" not in str(refused.value)


def test_a_larger_order_shows_a_smaller_ceiling() -> None:
    with pytest.raises(SettingError, match="with these orders"):
        plan(epsilon=0.05)
    assert plan(epsilon=0.05, orders=[256, 1024, 4096]).noise_multiplier > 10


def test_the_bound_and_the_confidence_are_said(plain: db.Plan) -> None:
    assert "the confidence of ε_μ is spent over all orders (union bound)" in plain.guarantee.assumptions
    assert "64 gradient distances per step at confidence 1−1e-11 (Student-t; heuristic)" in plain.guarantee.sentence
    other = plan(bound="bernstein", distances=9, gamma_share=0.5).guarantee.sentence
    assert "from 9 gradient distances per step at confidence 1−5e-11 (empirical Bernstein)" in other


def test_a_plan_cannot_be_changed_to_claim_more(plain: db.Plan) -> None:
    cheaper = replace(plain, epsilon=0.1)
    with pytest.raises(InputError):
        db.Plan.from_json(json.loads(json.dumps(cheaper.to_json())))


# -- what an ε_μ rests on ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def little_noise() -> db.Plan:
    """The paper's noise, at so many steps that a test can take them."""
    return plan(recipe="paper", steps=60, epsilon=3.0)


def short(made: db.Plan, longest: float) -> BayesianAccountant:
    """Return an accountant of distances far below the largest, one of which at one step is longer than all others."""
    own = made.settings
    accountant = BayesianAccountant(
        own.orders, own.steps, max_distance=1.0, gamma=own.gamma_share * made.delta / own.steps, union=True
    )
    usual = np.linspace(0.0017, 0.0019, own.distances)
    for step in range(own.steps):
        seen = np.append(usual[1:], longest) if step == 0 else usual
        accountant.step(seen, made.noise_multiplier, made.sample_rate)
    return accountant


def rests_on(made: db.Plan, accountant: BayesianAccountant) -> dict[str, Any]:
    return bayesian.estimate_details(made.guarantee, made.settings, made.touches, accountant)


def test_a_point_of_the_grid_of_orders_is_no_measurement(little_noise: db.Plan) -> None:
    """Costs are nothing at one order and beyond use at the next: the figure is below the ceiling and is not claimed."""
    accountant = short(little_noise, 0.0086)
    found, figure = claimed(little_noise, accountant)
    told = rests_on(little_noise, accountant)
    assert figure < 3.0
    assert figure == pytest.approx(told["conversion"], rel=0.01)
    assert (told["measured"], found) == (False, little_noise.guarantee.worst_case)


def test_a_measurement_is_claimed_and_one_that_holds_for_any_distances_too(plain: db.Plan) -> None:
    apart = plan(expected_distance=0.3)
    told = rests_on(apart, fed(apart, 0.3, spread=0.1))
    assert told["measured"]
    assert told["bernstein"] > apart.guarantee.epsilon_mu
    assert claimed(apart, fed(apart, 0.3, spread=0.1))[0] == apart.guarantee
    certain = rests_on(plain, fed(plain, 1.0))
    assert certain["bernstein"] <= plain.guarantee.epsilon_mu
    tiny = fed(plain, 1e-3, spread=0.1)  # nothing was measured, and nothing has to be: no distances pass this ceiling
    assert claimed(plain, tiny)[0] == plain.guarantee


def test_the_order_is_that_of_the_figure(plain: db.Plan) -> None:
    accountant = fed(plain, 1.0)
    told, figure = rests_on(plain, accountant), claimed(plain, accountant)[1]
    cost = accountant.costs[accountant.orders.index(told["order"])]
    assert figure == pytest.approx(told["conversion"] + cost / told["order"])


def test_a_run_without_an_estimate_rests_on_nothing(plain: db.Plan) -> None:
    assert rests_on(plain, None) == {}
    assert "not measured" in bayesian.explain_estimate({"epsilon_mu": None})


def test_the_words_name_order_share_and_bernsteins_figure(little_noise: db.Plan) -> None:
    accountant = short(little_noise, 0.0086)
    said = bayesian.explain_estimate(
        {"epsilon_mu": claimed(little_noise, accountant)[1], **rests_on(little_noise, accountant)}
    )
    assert "at λ = " in said
    assert "−ln δ/λ" in said
    assert "it is no measurement" in said
    assert "For any distances at all (Bernstein)" in said
