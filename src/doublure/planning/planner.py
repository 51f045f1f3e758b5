"""plan(): what a run will do and what it will cost, before any record is read.

A :class:`Plan` is a list of accesses plus settings. σ is calibrated here, over the composition of everything the run
will touch (learned facts included), so that T noisy steps end just under the ε that was asked for. Where a method's
settings fix σ, the composition says what it costs instead.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from doublure.access import Access, events
from doublure.errors import BeyondPld, SettingError
from doublure.guarantee import rounded_up
from doublure.methods import choice
from doublure.methods import registry as table
from doublure.methods.method import Method, settings_of
from doublure.planning.assembling import assemble, with_prices
from doublure.planning.budget import Budget, checked_budget, learned_facts, refuse_undeclared, refuse_used_up
from doublure.planning.contents import PlanContents
from doublure.planning.machine import refuse_too_large
from doublure.planning.plan import Plan
from doublure.private import accounting
from doublure.private.accounting import Event
from doublure.schema import Schema
from doublure.training.settings import MethodSettings

_PRINTED = 4  # significant digits of a price that follows from the noise


def plan(
    schema: Schema | str | Path,
    *,
    method: str = choice.AUTO,
    epsilon: float | None = None,
    delta: float | None = None,
    accountant: Literal["auto", "pld", "rdp"] = "auto",
    **settings: Any,
) -> Plan:
    """Plan a run. Reads no data.

    Args:
        schema: The public facts (or the path of the file that holds them).
        method: A name from :mod:`doublure.methods.registry`; left out, or ``auto``, it is chosen from the schema and ε,
            with the reason.
        epsilon: The total ε, learned facts included. There is no default; ``gan`` takes none, for ``bayesgan`` it is
            the ceiling on ε_μ, and where the setting ``noise_multiplier`` gives ``dpgan`` its σ it follows.
        delta: The total δ; for ``bayesgan`` δ_μ.
        accountant: ``pld`` (tight), ``rdp``, or ``auto``: ``pld``, and ``rdp`` where that cannot.
        settings: Settings of the method, by name.

    Returns:
        A frozen plan.

    Raises:
        SchemaError: A fact is undeclared; the message names it and the ways out.
        SettingError: A setting is out of range, ε is not feasible (the message says what would be), or this machine
            could not hold the run.

    Example:
        >>> import doublure as db
        >>> schema = db.Schema.load(db.datasets.adult_schema_path())
        >>> made = db.plan(schema, method="dpgan", epsilon=3.0, delta=1e-5)
        >>> made.steps, made.guarantee.kind
        (1000, 'dp')
    """
    schema = schema if isinstance(schema, Schema) else Schema.load(schema)
    if method == choice.AUTO:
        refuse_undeclared(schema)
        total, _ = checked_budget(epsilon, delta, schema.public_units)
        name = choice.method_for(schema, total)
        made = plan(schema, method=name, epsilon=epsilon, delta=delta, accountant=accountant, **settings)
        return replace(made, warnings=(choice.sentence(schema, total), *made.warnings))
    chosen = table.method(method)
    refuse_undeclared(schema)
    own = chosen.resolve_defaults(schema, settings_of(chosen, schema.kind, settings))
    sigma = chosen.given_noise(own)
    if sigma is not None:
        if epsilon is not None:
            remedy = "leave one of the two out"
            raise SettingError("stands beside epsilon, which follows from it", field="noise_multiplier", remedy=remedy)
        refuse_too_large(chosen, schema, own)
        return Plan.of(
            with_prices(_with_fallback(accountant, lambda name: _following(chosen, schema, own, sigma, delta, name)))
        )
    budget = Budget.of(chosen, schema, epsilon, delta)
    refuse_too_large(chosen, schema, own)
    if budget.epsilon is None or budget.delta is None:
        return Plan.of(with_prices(assemble(chosen, schema, own, budget, None, None)))
    learned = learned_facts(schema, budget.discovery_delta)
    own = chosen.decide_noise(schema, own, learned, epsilon=budget.epsilon, delta=budget.delta)
    refuse_too_large(chosen, schema, own)
    return Plan.of(with_prices(_with_fallback(accountant, lambda name: _composed(chosen, schema, own, budget, name))))


def _with_fallback(accountant: str, make: Callable[[str], PlanContents]) -> PlanContents:
    if accountant not in ("auto", "pld", "rdp"):
        raise SettingError("is not an accountant", field="accountant", remedy="use auto, pld or rdp")
    if accountant != "auto":
        return make(accountant)
    try:
        return make("pld")
    except BeyondPld:
        return make("rdp")


def _following(
    chosen: Method, schema: Schema, settings: MethodSettings, sigma: float, delta: float | None, accountant: str
) -> PlanContents:
    """Take σ as it was given; ε is what everything then costs, rounded up."""

    def price(chance: float, learned: tuple[Access, ...]) -> float:
        composed = events((*learned, *chosen.accesses(schema, settings, sigma)))
        return accounting.epsilon_of(composed, chance, accountant=accountant)  # type: ignore[arg-type]

    return assemble(chosen, schema, settings, Budget.of_noise(schema, delta, price), accountant, sigma)


def _composed(
    chosen: Method, schema: Schema, settings: MethodSettings, budget: Budget, accountant: str
) -> PlanContents:
    """Calibrate the noise to what was asked for; where the settings fix it, what everything costs follows from it."""
    learned = learned_facts(schema, budget.discovery_delta)
    if budget.epsilon is None or budget.delta is None:
        raise TypeError("a budget is needed")

    def composition(multiplier: float) -> list[Event]:
        return events((*learned, *chosen.accesses(schema, settings, multiplier)))

    fixed = chosen.fixed_noise(settings)
    if fixed is None:
        refuse_used_up(learned, budget.epsilon, budget.delta, accountant)
        noise = accounting.calibrate(
            composition,
            epsilon=budget.epsilon,
            delta=budget.delta,
            accountant=accountant,  # type: ignore[arg-type]
        )
        return assemble(chosen, schema, settings, budget, accountant, noise)
    found = accounting.epsilon_of(composition(fixed.multiplier), fixed.delta, accountant=accountant)  # type: ignore[arg-type]
    worst = (rounded_up(found, _PRINTED), fixed.delta)
    return assemble(chosen, schema, settings, budget, accountant, fixed.multiplier, worst)
