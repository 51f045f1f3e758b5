"""A plan's request to the ledger: the facts that are recorded, and the charge.

Never recorded: seeds, numbers of rows, hashes of rows, private values. The facts are named one by one for that reason;
everything else of a plan or an access stays out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from doublure.access import COVERED, Access, same_accesses
from doublure.errors import SettingError
from doublure.ledger.amounts import Budget, is_figure
from doublure.ledger.chain import canonical_json

if TYPE_CHECKING:
    from doublure.guarantee import Guarantee

KINDS = ("dp", "bayesian-dp", "empirical", "none")
_TOUCH = ("purpose", "event", "epsilon", "delta")
_BEGINS, _DIGITS = "plan-", 24
"""Prefix of a run id that holds its plan's hash, and the number of the hash's digits in it."""


class PlanLike(Protocol):
    """The part of a plan that the ledger reads; the package that makes plans stands above this one."""

    @property
    def method(self) -> str:
        """The method's name."""

    @property
    def guarantee(self) -> Guarantee:
        """The claim; only its kind is read."""

    @property
    def epsilon(self) -> float | None:
        """The total ε, learned facts included; None for kinds without one."""

    @property
    def delta(self) -> float | None:
        """The total δ."""

    @property
    def worst_case(self) -> tuple[float, float] | None:
        """The (ε, δ) that holds for every record; a bayesian-dp plan has one and is charged it."""

    @property
    def sha256(self) -> str:
        """SHA-256 of the whole plan, settings included."""

    @property
    def unit(self) -> Mapping[str, Any]:
        """The protected unit."""

    @property
    def relation(self) -> str:
        """The neighbouring relation."""

    @property
    def accountant(self) -> str | None:
        """The accountant that computed ε."""

    @property
    def schema_sha256(self) -> str:
        """SHA-256 of the schema."""

    @property
    def touches(self) -> Sequence[Access]:
        """Every private access."""

    @property
    def steps(self) -> int:
        """The number of noisy steps, T."""


def new_run_id(plan: PlanLike, reservation_id: str) -> str:
    """Return the id of a new run: the beginning of its plan's hash, then its reservation's id.

    The recorded facts leave out a method's settings, which the hash covers. An id is free text in every version's
    format, so that each version reads a ledger with such ids.
    """
    return f"{_beginning(plan)}{reservation_id}"


def same_plan(plan: PlanLike, run_id: str, recorded: Mapping[str, Any]) -> bool:
    """Whether a recorded run was one of this plan: the same facts, and an equal hash where the run's id holds it.

    The hash covers the words of purposes. Where they were others, it cannot tell, and equal facts decide: a plan is
    rather refused than charged twice in silence.

    Args:
        plan: The plan to run.
        run_id: The recorded run's id.
        recorded: The recorded facts of its plan.
    """
    own = recorded_facts(plan)
    if not _same(recorded, own):
        return False
    reworded = recorded["touches"] != own["touches"]
    return reworded or not run_id.startswith(_BEGINS) or run_id.startswith(_beginning(plan))


def same_facts(plan: PlanLike, recorded: Mapping[str, Any]) -> bool:
    """Whether recorded facts are those of this plan, however the purposes of its accesses were worded."""
    return _same(recorded, recorded_facts(plan))


def recorded_facts(plan: PlanLike) -> dict[str, Any]:
    """Return the recorded facts of a plan.

    Raises:
        SettingError: The plan's kind and figures contradict one another, or a figure is out of range.
    """
    kind = plan.guarantee.kind
    if kind not in KINDS:
        raise SettingError("is no kind of guarantee", field="guarantee.kind", remedy=f"use one of {', '.join(KINDS)}")
    if isinstance(plan.steps, bool) or not isinstance(plan.steps, int) or plan.steps < 0:
        raise SettingError("must be a whole number, at least 0", field="steps", remedy="make the plan again")
    if kind in COVERED:
        _figures(plan.epsilon, plan.delta)
    elif plan.epsilon is not None or plan.delta is not None:
        raise SettingError(
            f"a plan of kind {kind} has no epsilon and no delta", field="epsilon", remedy="leave both out"
        )
    return {
        "method": plan.method,
        "kind": kind,
        "epsilon": None if plan.epsilon is None else float(plan.epsilon),
        "delta": None if plan.delta is None else float(plan.delta),
        "unit": dict(plan.unit),
        "relation": plan.relation,
        "accountant": plan.accountant,
        "schema_sha256": plan.schema_sha256,
        "touches": [_touch(touch.to_json()) for touch in plan.touches],
        "steps": plan.steps,
    }


def plan_charge(plan: PlanLike, kind: str) -> dict[str, float] | None:
    """Return a plan's charge, or None for a kind without (ε, δ).

    A dp plan is charged its total, a bayesian-dp plan its worst case: both hold for every data set and may be added.

    Raises:
        SettingError: A figure is missing or out of range, or a bayesian-dp plan has no worst case.
    """
    if kind not in COVERED:
        return None
    if kind != "bayesian-dp":
        budget = _figures(plan.epsilon, plan.delta)
    elif plan.worst_case is not None:
        budget = _figures(*plan.worst_case)
    else:
        raise SettingError(
            "a plan of kind bayesian-dp has no worst case to charge", field="worst_case", remedy="make the plan again"
        )
    return {"epsilon": budget.epsilon, "delta": budget.delta}


def _beginning(plan: PlanLike) -> str:
    return f"{_BEGINS}{plan.sha256[:_DIGITS]}-"


def _same(recorded: Mapping[str, Any], own: Mapping[str, Any]) -> bool:
    if not same_accesses(recorded.get("touches"), own["touches"]):
        return False
    return canonical_json(_without_purposes(recorded)) == canonical_json(_without_purposes(own))


def _without_purposes(facts: Mapping[str, Any]) -> dict[str, Any]:
    return {**facts, "touches": [{**touch, "purpose": None} for touch in facts["touches"]]}


def _touch(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {key: fields[key] for key in _TOUCH if key in fields}


def _figures(epsilon: float | None, delta: float | None) -> Budget:
    if epsilon is None or not is_figure(epsilon):
        raise SettingError("must be a finite number, at least 0", field="epsilon", remedy="make the plan again")
    if delta is None or not is_figure(delta) or delta >= 1:
        raise SettingError("must be a number from 0 to below 1", field="delta", remedy="make the plan again")
    return Budget(epsilon=float(epsilon), delta=float(delta))
