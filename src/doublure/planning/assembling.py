"""The contents of a plan for one noise multiplier: its accesses and their prices, its claim, its warnings."""

from __future__ import annotations

from dataclasses import replace

from doublure.access import Access
from doublure.errors import SchemaError, SettingError
from doublure.guarantee import (
    AGGREGATOR,
    ANY_DATA,
    CHOSEN,
    ENDED,
    FLOATING,
    LARGE_EPSILON,
    QUOTING,
    REFUSALS,
    TIMING,
    Guarantee,
    odds_factor,
)
from doublure.methods.method import Method, customary_delta, unshared_conditions
from doublure.planning import signal_to_noise
from doublure.planning.budget import Budget, learned_facts
from doublure.planning.contents import PlanContents
from doublure.planning.machine import needed_bytes, seconds_of
from doublure.private import accounting
from doublure.private.accounting import GaussianEvent
from doublure.schema import Schema
from doublure.training.settings import MethodSettings

_EXACT = "the operating system's own stream, exact rounded normals"


def assemble(
    chosen: Method,
    schema: Schema,
    settings: MethodSettings,
    budget: Budget,
    accountant: str | None,
    noise: float | None,
    worst: tuple[float, float] | None = None,
) -> PlanContents:
    """Return the plan for one noise multiplier; its accesses for training have no price yet.

    Args:
        chosen: The method.
        schema: The public facts.
        settings: With everything decided.
        budget: What was asked for.
        accountant: What composes the accesses; None where nothing is claimed.
        noise: σ; None where nothing is claimed.
        worst: The (ε, δ) that everything composes to, where the settings fix the noise; else it is what was asked for.
    """
    work = chosen.work(schema, settings)
    if schema.federated is not None and schema.misfit == "refuse":
        why = "is refuse, and one record that does not fit would end a run that several owners see"
        raise SchemaError(
            why, field="misfit", remedy="write misfit: coerce, or leave it out: with federated it is coerce"
        )
    if schema.federated is not None and not chosen.asks_owners(schema, settings):
        remedy = "leave federated out of the schema, or take what docs/federated.md says that owners are asked for"
        raise SettingError("cannot be asked of owners yet", field=f"method {chosen.name}", remedy=remedy)
    learned = learned_facts(schema, budget.discovery_delta)
    if budget.epsilon is None:  # what claims nothing prints no ε, not even a fact's own (rule 13)
        learned = tuple(replace(access, event=None, epsilon=None, delta=None) for access in learned)
    training = chosen.accesses(schema, settings, noise or 0.0)
    if noise is not None:
        delta = budget.of_training(learned) if worst is None else worst[1]
        training = tuple(replace(access, delta=delta) for access in training)
    guarantee = _guarantee(chosen, schema, settings, budget, accountant, (*learned, *training), worst)
    return PlanContents(
        method=chosen.name,
        schema=schema,
        epsilon=budget.epsilon,
        delta=budget.delta,
        accountant=accountant,
        settings=settings,
        touches=(*learned, *training),
        sample_rate=chosen.sample_rate(schema, settings),
        noise_multiplier=noise,
        max_grad_norm=chosen.max_grad_norm(settings),
        steps=work.steps,
        memory_bytes=needed_bytes(chosen, schema, settings),
        seconds_estimate=seconds_of(work),
        warnings=(
            *_warnings(schema, budget, learned, guarantee),
            *unshared_conditions(chosen, schema),
            *signal_to_noise.warnings_of_bounds(schema, priced=budget.epsilon is not None),
            *signal_to_noise.warnings_of_values(schema, learned),
            *signal_to_noise.warnings_of(
                training, schema.public_units, guarantee.delta, sum(access.epsilon or 0.0 for access in learned)
            ),
            *chosen.warnings(schema, settings),
        ),
        guarantee=guarantee,
    )


def with_prices(made: PlanContents) -> PlanContents:
    """Return the plan with what each access for training would cost alone."""
    return replace(made, touches=tuple(_priced(access, made.accountant) for access in made.touches))


def is_priced(access: Access) -> bool:
    """Whether a price follows from an access's event; that of a fact is the schema's, and some have none."""
    return access.path is None and access.event is not None and bool(access.delta)


def _priced(access: Access, accountant: str | None) -> Access:
    if access.event is None or not is_priced(access):
        return access
    alone = accounting.epsilon_of([access.event], access.delta, accountant=accountant or "pld")  # type: ignore[arg-type]
    return replace(access, epsilon=alone)


def _noise_of(training: tuple[Access, ...]) -> float | None:
    """Return the noise multiplier from which, with q and T, a reader may compute the training's price again.

    There is one where the training is a single Gaussian event. Of anything else a card says the noise access by access.
    """
    if len(training) == 1 and isinstance(training[0].event, GaussianEvent):
        return training[0].event.noise_multiplier
    return None


def _guarantee(
    chosen: Method,
    schema: Schema,
    settings: MethodSettings,
    budget: Budget,
    accountant: str | None,
    touches: tuple[Access, ...],
    worst: tuple[float, float] | None,
) -> Guarantee:
    unit, max_records = schema.unit.name, schema.most_records
    if budget.epsilon is None or budget.delta is None:
        return Guarantee(kind=chosen.guarantee, unit=unit, max_records=max_records)
    assumptions = ["the declared facts of the schema are public"]
    if schema.unit.max_records > 1 or schema.unit.id is not None:
        assumptions.append(f"{schema.unit.id} names each {schema.unit.name} the same way in every record")
    if schema.federated is not None:
        several = "one owner" if schema.max_silos == 1 else f"{schema.max_silos} owners"
        assumptions += [f"no {unit} has records with more than {several}", AGGREGATOR]
        if chosen.sample_rate(schema, settings) not in (None, 1.0):
            assumptions.append(CHOSEN)
    coerced = schema.misfit == "coerce"
    if coerced:
        quoted = schema.written is not None and schema.written.multiline
        assumptions += [ANY_DATA, QUOTING] if quoted else [ANY_DATA]
    training = tuple(access for access in touches if access.path is None)
    epsilon, delta = worst or (budget.epsilon, budget.delta)
    rates = {getattr(access.event, "sample_rate", None) for access in training}
    composed = Guarantee(
        kind="dp",
        epsilon=epsilon,
        delta=delta,
        accountant=accountant,
        sample_rate=chosen.sample_rate(schema, settings) if len(rates) == 1 else None,
        noise_multiplier=_noise_of(training),
        steps=chosen.work(schema, settings).steps,
        noise_source=_EXACT if {access.whole for access in training} == {True} else chosen.noise_source(settings),
        assumptions=(*assumptions, *settings.assumptions),
        excluded=(
            TIMING if all(access.exact for access in touches) else FLOATING,
            "internal reports",
            *(() if coerced else (REFUSALS,)),
            *(() if schema.federated is None else (ENDED,)),
            *settings.excluded,
        ),
        unit=unit,
        max_records=max_records,
    )
    return chosen.planned_claim(composed, settings, epsilon=budget.epsilon, delta=budget.delta)


def _warnings(schema: Schema, budget: Budget, learned: tuple[Access, ...], claim: Guarantee) -> tuple[str, ...]:
    found, epsilon = [], claim.epsilon
    units = schema.public_units
    if claim.delta is not None and claim.delta > 0.1 / units:
        found.append(f"delta {claim.delta:g} is above a tenth of 1/units; {customary_delta(units):.0e} is customary")
    if epsilon is not None and epsilon > LARGE_EPSILON:
        named = "epsilon" if claim.kind == "dp" else "worst-case epsilon"
        found.append(f"{named} {epsilon:g} lets an attacker's odds grow by a factor of {odds_factor(epsilon)}")
    facts = sum(access.epsilon or 0.0 for access in learned)
    if budget.epsilon is not None and facts > budget.epsilon / 2:
        found.append(f"the facts to be learned cost {facts:g}, more than half of epsilon; declare more of them")
    if claim.accountant == "rdp":
        found.append("accountant rdp is looser than pld: it needs more noise for the same epsilon")
    found += [f"{path}: {message}" for path, message in schema.cautions]
    return tuple(found)
