"""What every process of a run reads from its plan alike: accesses as they are answered, and the fewest records."""

from __future__ import annotations

from typing import TYPE_CHECKING

from doublure.planning.planner import DELTA_WITHOUT_PRIVACY, learned_facts

if TYPE_CHECKING:
    from doublure.access import Access
    from doublure.planning import Plan


def facts_of(plan: Plan) -> tuple[Access, ...]:
    """Return the accesses that buy facts; a plan without a claim names no price, and they are noised all the same."""
    priced = all(access.event is not None for access in plan.learned)
    return plan.learned if priced else learned_facts(plan.schema, DELTA_WITHOUT_PRIVACY)


def accesses_of(plan: Plan) -> tuple[Access, ...]:
    """Return all accesses of a plan, as they are answered."""
    return (*facts_of(plan), *plan.training)


def fewest_records(plan: Plan) -> int:
    """Return how many records a fit needs: none where misfits are coerced, for a refusal would tell how many there are.

    Without a claim there is nobody to protect from that, and a generator without noise has nothing to learn.
    """
    return 0 if plan.schema.misfit == "coerce" and plan.guarantee.epsilon is not None else 2
