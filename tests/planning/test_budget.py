"""What a plan may spend: figures that are refused, what facts take of them, and what is left for training."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

import doublure as db
from doublure.access import Access
from doublure.errors import SchemaError, SettingError
from doublure.methods import registry
from doublure.planning.planner import (
    BudgetRequest,
    check_budget,
    check_delta,
    learned_facts,
    refuse_undeclared,
    refuse_used_up,
)
from doublure.private.accounting import ApproximateEvent, PureEvent

SCHEMA = db.Schema.parse("""
doublure: 1
kind: table
units: {learn: 0.1, magnitude: 1000}
columns:
  age: {type: integer, bounds: {learn: 0.2}, missing: {learn: 0.3}}
  job: {type: category, values: {learn: 0.4}, other: Other, missing: false}
  town: {type: category, values: {learn: 0.5}, other: Other, missing: false}
  out: {type: category, values: ["no", "yes"], missing: false, roles: [condition], shares: {learn: 0.6}}
""")


@pytest.mark.parametrize("delta", [0.0, 1.0, -1e-6, math.nan, math.inf, True, "1e-6", 10**400, None])
def test_a_delta_that_is_no_chance_is_refused(delta):
    with pytest.raises(SettingError, match=r"1e-04") as caught:
        check_delta(delta, 1000)
    assert caught.value.field == "delta"


def test_a_delta_is_below_one_in_the_number_of_units():
    assert check_delta(1e-6, 1000) == 1e-6
    with pytest.raises(SettingError) as caught:
        check_delta(0.5, 1000)
    assert caught.value.field == "delta"


@pytest.mark.parametrize("epsilon", [0, -1.0, math.nan, math.inf, True, "1", 10**400, None])
def test_an_epsilon_that_is_no_price_is_refused(epsilon):
    with pytest.raises(SettingError) as caught:
        check_budget(epsilon, 1e-6, 1000)
    assert caught.value.field == "epsilon"
    assert check_budget(2, 1e-6, 1000) == (2.0, 1e-6)


def test_facts_are_bought_in_the_order_of_the_schema():
    bought = learned_facts(SCHEMA, 1e-8)
    assert {access.path: (access.purpose, access.epsilon, access.delta) for access in bought} == {
        "units": ("count the units", 0.1, 0.0),
        "columns.age.bounds": ("find bounds for age", 0.2, 0.0),
        "columns.age.missing": ("test whether age has missing cells", 0.3, 0.0),
        "columns.job.values": ("discover the values of job", 0.4, 1e-8),
        "columns.town.values": ("discover the values of town", 0.5, 1e-8),
        "columns.out.shares": ("estimate the class shares of out", 0.6, 0.0),
    }
    assert [access.path for access in bought] == [question.path for question in SCHEMA.questions]
    for access in bought:
        kind = ApproximateEvent if access.delta else PureEvent
        assert isinstance(access.event, kind)
        assert access.event.epsilon == access.epsilon
        assert getattr(access.event, "delta", 0.0) == access.delta


def test_discoveries_take_a_tenth_of_delta_together_and_training_the_rest():
    budget = BudgetRequest.from_request(registry.method("dpgan"), SCHEMA, 8.0, 1e-5)
    assert (budget.epsilon, budget.delta) == (8.0, 1e-5)
    assert budget.learned == learned_facts(SCHEMA, 1e-5 / 20)
    assert budget.training_delta == pytest.approx(0.9e-5)
    assert replace(budget, learned=()).training_delta == 1e-5
    assert BudgetRequest(epsilon=None, delta=None, learned=()).training_delta == 0.0


def test_an_epsilon_that_follows_has_no_limit_yet():
    budget = BudgetRequest.from_request(registry.method("dpgan"), SCHEMA, None, 1e-5, follows=True)
    assert (budget.epsilon, budget.delta) == (math.inf, 1e-5)
    assert budget.learned == learned_facts(SCHEMA, 1e-5 / 20)


def pure(*prices):
    return tuple(
        Access(purpose=str(n), event=PureEvent(epsilon=price), epsilon=price) for n, price in enumerate(prices)
    )


def test_a_budget_that_facts_use_up_is_refused():
    refuse_used_up(pure(0.5, 0.25), 1.0, 1e-6, "rdp")
    refuse_used_up(pure(*[0.02] * 50), 1.0, 1e-2, "rdp")  # less together than added up
    for prices in ((0.5, 0.5), (0.5, 0.75)):
        with pytest.raises(SettingError, match=f"which cost {sum(prices):g} in total") as caught:
            refuse_used_up(pure(*prices), 1.0, 1e-9, "rdp")
        assert caught.value.field == "epsilon"


def test_the_first_fact_that_nobody_decided_is_named():
    refuse_undeclared(SCHEMA)
    text = "doublure: 1\nkind: table\nunits: 100\ncolumns:\n  age: {type: integer, missing: false}\n"
    with pytest.raises(SchemaError) as caught:
        refuse_undeclared(db.Schema.parse(text))
    assert (caught.value.field, caught.value.message) == ("columns.age.bounds", "is undeclared")
    with pytest.raises(SchemaError, match=r"and 1 more: doublure schema check") as caught:
        refuse_undeclared(db.Schema.parse(text.replace(", missing: false", "")))
    assert caught.value.field == db.Schema.parse(text.replace(", missing: false", "")).undeclared[0]


@pytest.mark.parametrize("method", ["auto", "statistics"])
def test_what_is_undeclared_is_named_before_what_may_be_spent(method):
    text = "doublure: 1\nkind: table\nunits: 100\ncolumns:\n  age: {type: integer, missing: false}\n"
    with pytest.raises(SchemaError, match="is undeclared"):
        db.plan(db.Schema.parse(text), method=method)


@pytest.mark.parametrize("given", [{"epsilon": 1.0}, {"delta": 1e-6}, {"epsilon": 1.0, "delta": 1e-6}])
def test_a_method_without_a_claim_takes_no_budget(given):
    with pytest.raises(SettingError, match="gives no guarantee") as caught:
        BudgetRequest.from_request(registry.method("gan"), SCHEMA, given.get("epsilon"), given.get("delta"))
    assert caught.value.field == next(iter(given))
