"""A plan's noise, prices and time in words."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest

import doublure as db
from doublure.access import Access
from doublure.methods import choice
from doublure.planning import Plan
from doublure.planning.explain import _figures, _noise, _price, describe_budget, duration, explain
from doublure.planning.forecasts import forecast_plan
from doublure.private.accounting import DiscreteGaussianEvent, GaussianEvent, PureEvent

LOTS = GaussianEvent(noise_multiplier=1.25, sample_rate=0.1, steps=200)
TRAIN = Access(purpose="train", event=LOTS)
MEASURED = Access(purpose="train", event=LOTS, estimated=True)
SUM = Access(purpose="sum up", event=GaussianEvent(noise_multiplier=30.0), whole=True)
FACT = Access(purpose="learn", event=PureEvent(epsilon=0.1), epsilon=0.1, path="units")


def count(tables):
    return Access(purpose=f"count {tables}", event=DiscreteGaussianEvent(scale=12.34567, tables=tables))


def noise(*touches, epsilon=1.0):
    made = SimpleNamespace(touches=touches, epsilon=epsilon, max_grad_norm=0.5)
    return _noise(made, {access.purpose: (access,) for access in touches})


@pytest.mark.parametrize(
    ("touches", "said"),
    [
        ((), []),
        ((FACT, TRAIN), ["Noise: σ = 1.25, C = 0.5, q = 0.1, T = 200"]),
        ((SUM,), ["Noise: σ = 30, C = 0.5, q = 1, T = 1"]),
        # the bound of the networks' steps is no other sum's
        ((TRAIN, SUM), ["Noise to train: σ = 1.25, q = 0.1, T = 200", "Noise to sum up: σ = 30, q = 1, T = 1"]),
        (
            (MEASURED, SUM),
            ["Noise to train: σ = 1.25, C = 0.5, q = 0.1, T = 200", "Noise to sum up: σ = 30, q = 1, T = 1"],
        ),
        ((count(1),), ["Noise: standard deviation 12.35 in each cell of a table of counts"]),
        ((count(7),), ["Noise: standard deviation 12.35 in each cell of 7 tables of counts"]),
    ],
)
def test_noise_is_told_as_far_as_it_applies(touches, said):
    assert noise(*touches) == said


def test_votes_of_a_run_without_a_claim_are_no_tables():
    assert noise(count(1), epsilon=None) == ["Noise: standard deviation 12.35 in each count of votes"]


@pytest.mark.parametrize(
    ("access", "said"),
    [
        (FACT, "ε = 0.1"),
        (Access(purpose="train", event=LOTS, epsilon=2.0, delta=1e-6), "ε = 2       δ = 1e-06"),
        (Access(purpose="learn", event=None, path="units"), "–"),
        (Access(purpose="train", event=None), "not protected"),
    ],
)
def test_a_price_is_told_or_why_there_is_none(access, said):
    assert _price(access) == said


def test_a_delta_of_zero_is_left_out():
    assert _figures(0.5, 0.0) == _figures(0.5, None) == "ε = 0.5"
    assert "δ = 0.001" in _figures(0.5, 1e-3)


def test_what_is_spent_is_told_or_that_nothing_is_claimed():
    nothing = SimpleNamespace(epsilon=None, guarantee=SimpleNamespace(kind="none"))
    assert describe_budget(nothing) == "No budget: nothing is protected"
    assert describe_budget(SimpleNamespace(epsilon=None, guarantee=SimpleNamespace(kind="empirical"))).endswith(
        "is claimed"
    )
    plain = SimpleNamespace(epsilon=2.0, delta=1e-6, accountant="pld", worst_case=None)
    assert describe_budget(plain) == "Budget: ε = 2, δ = 1e-06, add/remove, accountant pld"
    measured = SimpleNamespace(epsilon=2.0, delta=1e-10, accountant="rdp", worst_case=(8.0, 1e-6))
    assert describe_budget(measured).startswith("Ceiling: ε_μ = 2 at δ_μ = 1e-10, measured afterwards. ")
    assert describe_budget(measured).endswith("worst case: ε = 8, δ = 1e-06, add/remove, accountant rdp")


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0.0, "a second"), (1.4, "a second"), (1.6, "2 seconds"), (89.4, "89 seconds"), (90, "2 minutes"),
        (200, "3 minutes"), (5399, "90 minutes"), (5400, "1.5 hours"), (36_000, "10.0 hours"),
    ],
)  # fmt: skip
def test_time_is_told_in_words(seconds, said):
    assert duration(seconds) == said


def test_a_reason_is_a_note_and_everything_else_a_warning(small):
    reason, warning = choice.sentence(small.declared, 1.0), "few units"
    lines = explain(replace(small.plan, warnings=(reason, warning))).splitlines()
    said = [line for line in lines if line.startswith(("Note:", "Warning:")) and "another person" not in line]
    assert said == [
        f"Note: {reason}",
        f"Warning: {warning}",
    ]


def test_what_is_a_reason_does_not_hang_on_its_words(small):
    """Nor what is about the accountant, which a forecast leaves out; both are known of a plan that is read again."""
    reason = choice.sentence(small.declared, 1.0)
    made = replace(small.plan, warnings=(reason, str(reason)))
    assert [line.partition(":")[0] for line in explain(made).splitlines() if str(reason) in line] == ["Note", "Warning"]
    assert forecast_plan(made).warnings == (str(reason),)
    assert small.plan.accountant == "rdp"
    for plan in (small.plan, Plan.from_json(json.loads(json.dumps(small.plan.to_json())))):
        (note,) = (said for said in plan.warnings if "accountant rdp" in said)
        assert note not in forecast_plan(plan).warnings
        assert forecast_plan(replace(plan, warnings=(str(note),))).warnings == (note,)


def test_what_touches_records_stands_under_a_heading_with_the_total_below(small):
    lines = explain(small.plan).splitlines()
    place = next(place for place, line in enumerate(lines) if line.startswith("What touches private records"))
    purposes = [line.split("  ")[1] for line in lines[place + 1 : place + 2 + len(small.plan.touches)]]
    assert purposes == [*(touch.purpose for touch in small.plan.touches), "total (composed, not added up)"]
    assert ("alone" in lines[place]) == (len(small.plan.touches) > 1)


@pytest.mark.parametrize(("need", "said"), [("", "every owner that is asked has"), (", need: 3", "3 of them have")])
def test_owners_are_told_of_where_records_stay_with_them(small, need, said):
    text = small.declared_text.replace("units:", f"federated: {{max_silos: 2{need}}}\nunits:", 1)
    made = db.plan(db.Schema.parse(text), method="statistics", epsilon=1.0, delta=1e-4, accountant="rdp")
    lines = made.explain().splitlines()
    assert any(line.startswith("Records stay with their owners: at most 2 has") and said in line for line in lines)
    assert "owners" not in explain(small.plan)
