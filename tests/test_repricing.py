"""A card's ε computed again by dp-accounting alone: it agrees with our own accountant, which it shares no code with."""

from __future__ import annotations

import ast
import inspect
from types import SimpleNamespace

import pytest

import doublure as db
from doublure.errors import GateFailed
from doublure.private import accounting
from doublure.private.accounting import (
    ApproximateEvent,
    DiscreteGaussianEvent,
    GaussianEvent,
    PureEvent,
    event_to_json,
)
from doublure.releasing import repricing, verifying

DELTA = 1e-6
WHOLE = {"type": "gaussian", "noise_multiplier": 5.0, "sample_rate": 1, "steps": 9, "sampling": "poisson"}
EVENTS = {
    "lots": [GaussianEvent(noise_multiplier=1.1, sample_rate=0.02, steps=700)],
    "full batches": [GaussianEvent(noise_multiplier=9.0, steps=60)],
    "full batches with filters": [GaussianEvent(noise_multiplier=9.0, steps=180, filter_steps=60)],
    "tables": [DiscreteGaussianEvent(scale=30.0, tables=14), DiscreteGaussianEvent(scale=46.5, tables=78)],
    "little noise on counts": [DiscreteGaussianEvent(scale=0.7)],
    "facts and lots": [
        PureEvent(epsilon=0.05),
        ApproximateEvent(epsilon=0.1, delta=1e-8),
        GaussianEvent(noise_multiplier=2.0, sample_rate=0.1, steps=50),
    ],
    "steps smaller than a grid's usual points": [
        GaussianEvent(noise_multiplier=10.0, sample_rate=0.004, steps=5000),
    ],
    "noise on whole data beside other noise": [
        DiscreteGaussianEvent(scale=30.0, tables=14),
        GaussianEvent(noise_multiplier=9.0, steps=20),
        DiscreteGaussianEvent(scale=3.0, tables=2),
        GaussianEvent(noise_multiplier=1.5, sample_rate=0.02, steps=70),
        PureEvent(epsilon=0.05),
    ],
    "a large pure loss beside many small steps": [
        PureEvent(epsilon=1.0),
        GaussianEvent(noise_multiplier=1.0, sample_rate=0.001, steps=10_000),
    ],
    "hardly any noise": [GaussianEvent(noise_multiplier=0.05, steps=20)],
}


def recomputed(events, delta=DELTA):
    return repricing.recompute_epsilon([{"event": event_to_json(event)} for event in events], delta)


@pytest.mark.parametrize("name", EVENTS)
def test_it_agrees_with_our_own_accountant(name):
    ours = accounting.epsilon_of(EVENTS[name], DELTA)
    assert recomputed(EVENTS[name]) == pytest.approx(ours, rel=repricing.TOLERANCE / 2)


@pytest.mark.parametrize("name", ["lots", "tables", "facts and lots", "steps smaller than a grid's usual points"])
def test_a_card_that_claims_less_than_it_cost_is_refused(name):
    """A tolerance of 2 %, 5 % or half would let one of these pass; a right claim passes."""
    touches = [{"event": event_to_json(event)} for event in EVENTS[name]]
    cost, right = recomputed(EVENTS[name]), accounting.epsilon_of(EVENTS[name], DELTA)
    claim = SimpleNamespace(epsilon=right, delta=DELTA, steps=None)
    assert verifying._checked_price({"touches": touches}, claim) == cost
    for less in (0.99, 0.97):
        claim.epsilon = less * right
        with pytest.raises(GateFailed, match="and its accesses cost"):
            verifying._checked_price({"touches": touches}, claim)


def test_units_with_several_records_cost_no_more_than_is_claimed():
    several = [DiscreteGaussianEvent(scale=60.0, tables=20, records=3)]
    claimed = accounting.epsilon_of(several, DELTA, accountant="rdp")
    assert 0.8 * claimed < recomputed(several) < claimed


@pytest.mark.parametrize("method", ["statistics", "dpgan", "guided"])
def test_plans_cost_what_they_claim(method):
    more = {"critic_share": 0.3} if method == "guided" else {}
    plan = db.plan(db.Schema.load(db.datasets.adult_schema_path()), method=method, epsilon=1.0, delta=1e-6, **more)
    found = repricing.recompute_epsilon([access.to_json() for access in plan.touches], plan.delta)
    assert found == pytest.approx(1.0, rel=repricing.TOLERANCE / 4)


def test_what_it_cannot_say_it_does_not_say():
    assert recomputed(EVENTS["tables"], 1e-13) is None


@pytest.mark.parametrize(
    "touches",
    [
        [],
        [{"event": None}],
        [{"event": {"type": "pure", "epsilon": 1.0}}, {"event": None}],
        [{"event": {"type": "discrete-gaussian", "scale": 5.0, "tables": 1, "records": 0}}],
        [{"event": {"type": "discrete-gaussian", "scale": 5.0, "tables": tables, "records": 1}} for tables in (9, -3)],
        [{"event": {"type": "discrete-gaussian", "scale": 5.0, "tables": tables, "records": 1}} for tables in (9, 0)],
        [{"event": WHOLE | {"steps": steps}} for steps in (9, -3)],
        [{"event": {key: said for key, said in WHOLE.items() if key != "sampling"}}],
        [{"event": {"type": "discrete-gaussian", "scale": 9.0, "tables": 1, "records": few}} for few in (1, 1e-200)],
        [{"event": WHOLE | more} for more in ({}, {"filter_steps": -3})],
        [{"event": WHOLE | more} for more in ({}, {"noise_multiplier": -5.0})],
    ],
)
def test_what_has_no_price_is_refused(touches):
    with pytest.raises((ValueError, TypeError, KeyError)):
        repricing.recompute_epsilon(touches, DELTA)


def test_it_shares_no_code_with_the_accountant():
    tree = ast.parse(inspect.getsource(repricing))
    taken = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert not [name for name in taken if name.startswith("doublure")]
