"""What is recorded of a plan, and what it is charged."""

from __future__ import annotations

import math

import pytest

from doublure.errors import SettingError
from doublure.ledger.request import plan_charge, recorded_facts


def test_facts_are_those_that_are_named(make_plan):
    plan = make_plan(steps=0, seed=7, rows=300)
    plan.touches[0].fields["rows"] = 300
    found = recorded_facts(plan)
    assert found == {
        "method": "dpgan", "kind": "dp", "epsilon": 0.5, "delta": 1e-6,
        "unit": {"name": "person", "id": None, "max_records": 1}, "relation": "add/remove", "accountant": "pld",
        "schema_sha256": "ab" * 32, "steps": 0,
        "touches": [{"purpose": "train", "event": plan.touches[0].fields["event"], "epsilon": 0.5, "delta": 1e-6}],
    }  # fmt: skip
    del plan.touches[0].fields["epsilon"], plan.touches[0].fields["delta"]
    assert set(recorded_facts(plan)["touches"][0]) == {"purpose", "event"}
    assert recorded_facts(make_plan(kind="none"))["epsilon"] is recorded_facts(make_plan(kind="none"))["delta"] is None


@pytest.mark.parametrize("kind", ["dp", "bayesian-dp"])
@pytest.mark.parametrize(("epsilon", "delta"), [(0, 0), (0.5, 0), (100, math.nextafter(1, 0))])
def test_figures_at_their_edges_are_charged(make_plan, kind, epsilon, delta):
    plan = make_plan(kind, epsilon, delta)
    assert (recorded_facts(plan)["epsilon"], recorded_facts(plan)["delta"]) == (epsilon, delta)
    assert plan_charge(plan, kind) == {"epsilon": float(epsilon), "delta": float(delta)}


@pytest.mark.parametrize(
    ("change", "field"),
    [
        *(({"epsilon": value}, "epsilon") for value in (None, -0.1, math.inf, math.nan, True, "1")),
        *(({"delta": value}, "delta") for value in (None, -0.1, 1, 1.5, math.nan, False)),
        *(({"steps": value}, "steps") for value in (-1, True, 1.0, None)),
    ],
)
def test_figures_beyond_them_are_refused(make_plan, change, field):
    with pytest.raises(SettingError) as caught:
        recorded_facts(make_plan(**change))
    assert caught.value.field == field
    if field != "steps":
        with pytest.raises(SettingError):
            plan_charge(make_plan(**change), "dp")


def test_an_unknown_kind_is_named(make_plan):
    for figures in ({}, {"epsilon": None, "delta": None}):
        with pytest.raises(SettingError, match="no kind of guarantee"):
            recorded_facts(make_plan("anonymous", **figures))


@pytest.mark.parametrize("kind", ["empirical", "none"])
@pytest.mark.parametrize("change", [{"epsilon": 1.0}, {"delta": 0.0}, {"epsilon": 0.0, "delta": 0.0}])
def test_kinds_without_figures_have_neither(make_plan, kind, change):
    plan = make_plan(kind)
    assert plan_charge(plan, kind) is None
    for name, value in change.items():
        setattr(plan, name, value)
    with pytest.raises(SettingError, match="no epsilon and no delta"):
        recorded_facts(plan)


def test_a_worst_case_is_charged_to_bayesian_plans_alone(make_plan):
    worst = {"epsilon": 2.0, "delta": 0.25}
    assert plan_charge(make_plan("bayesian-dp", worst_case=(2.0, 0.25)), "bayesian-dp") == worst
    assert plan_charge(make_plan("dp", worst_case=(0.1, 0.0)), "dp") == {"epsilon": 0.5, "delta": 1e-6}


def test_a_bayesian_plan_without_a_worst_case_is_refused(make_plan):
    for worst in (None, (None, 1e-6), (1.0, None)):
        with pytest.raises(SettingError):
            plan_charge(make_plan("bayesian-dp", worst_case=worst), "bayesian-dp")
    nameless = make_plan("bayesian-dp")
    del nameless.worst_case
    with pytest.raises(AttributeError):  # never the ceiling of ε_μ in its place
        plan_charge(nameless, "bayesian-dp")
