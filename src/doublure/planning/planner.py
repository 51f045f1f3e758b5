"""Plan a run from public facts alone: its budget, the noise that fits it, and the contents that follow.

σ is calibrated over the composition of everything that the run will touch, learned facts included, so that T noisy
steps end just under the ε that was asked for. Where a method's settings give σ, ε follows from the same composition.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, Literal, TypeAlias, get_args

from doublure.access import Access, events
from doublure.errors import BeyondPld, SchemaError, SettingError, printable
from doublure.guarantee import (
    AGGREGATOR,
    ANY_DATA,
    CHOSEN,
    ENDED,
    FLOATING,
    INTERNAL,
    LARGE_EPSILON,
    QUOTING,
    REFUSALS,
    TIMING,
    Guarantee,
    figure,
    odds_factor,
    of_records,
    rounded_up,
)
from doublure.methods import choice, registry
from doublure.methods.method import Method, customary_delta, refuse_loose_delta, settings_of, unshared_conditions
from doublure.planning import signal_to_noise
from doublure.planning.contents import PlanContents, with_prices
from doublure.planning.machine import estimate_seconds, needed_bytes, refuse_too_large
from doublure.private import accounting
from doublure.private.accounting import ApproximateEvent, Event, GaussianEvent, PureEvent
from doublure.schema import Schema
from doublure.schema.unit import UNIT_ID
from doublure.training.settings import MethodSettings

AccountantChoice: TypeAlias = Literal["auto", "pld", "rdp"]
"""The accountant that a caller asks for; ``auto`` is ``pld``, with ``rdp`` as the fallback."""

DELTA_WITHOUT_PRIVACY = 1e-6
"""The δ of a discovery of values in a plan that claims nothing."""

COERCED = (
    "misfit: coerce changes what does not fit, and no fit may say how much that is; count it first: doublure schema "
    "check --values"
)
_DISCOVERY_SHARE_OF_DELTA = 0.1
_PRINTED = 4  # significant digits of an ε that follows from the noise
_EXACT, _EXACT_COUNTS = "the operating system's own stream, exact rounded normals", "exact discrete Gaussian"
_PURPOSES = {
    "units": "count the units",
    "missing": "test whether {column} has missing cells",
    "values": "discover the values of {column}",
    "bounds": "find bounds for {column}",
    "shares": "estimate the class shares of {column}",
}


def plan_contents(
    schema: Schema,
    name: str,
    epsilon: float | None,
    delta: float | None,
    accountant: AccountantChoice,
    settings: dict[str, Any],
) -> PlanContents:
    """Return what a plan holds; see :func:`doublure.plan` for the arguments and the errors."""
    if name == choice.AUTO:
        refuse_undeclared(schema)
        total, _ = check_budget(epsilon, delta, schema.public_units)
        made = plan_contents(schema, choice.method_for(schema, total), epsilon, delta, accountant, settings)
        return replace(made, warnings=(choice.sentence(schema, total), *made.warnings))
    chosen = registry.method(name)
    refuse_undeclared(schema)
    schema.ready()
    own = chosen.resolve_defaults(schema, settings_of(chosen, schema.kind, settings))
    follows = chosen.given_noise(own) is not None
    budget = BudgetRequest.from_request(chosen, schema, epsilon, delta, follows=follows)
    refuse_too_large(chosen, schema, own, database=True)  # it may be one: a fit knows, and refuses before its charge
    if budget.epsilon is None or budget.delta is None:
        return with_prices(assemble(chosen, schema, own, budget, None, None))
    if not follows:
        own = chosen.decide_noise(schema, own, budget.learned, epsilon=budget.epsilon, delta=budget.delta)
        refuse_too_large(chosen, schema, own, database=True)
    return with_prices(_with_fallback(accountant, chosen, schema, own, budget))


# -- the budget: the request, and the share of it that learned facts take ----------------------------------------------


@dataclass(frozen=True, kw_only=True)
class BudgetRequest:
    """The ε and δ of a request, and the facts that they buy.

    Attributes:
        epsilon: The total, or the ceiling on ε_μ of a Bayesian claim; None where nothing is claimed. It is infinite
            until it follows, where the settings give the noise.
        delta: The total, or δ_μ; None where nothing is claimed.
        learned: The accesses that buy the schema's facts. Discoveries of values share a tenth of δ.
    """

    epsilon: float | None
    delta: float | None
    learned: tuple[Access, ...]

    @classmethod
    def from_request(
        cls, chosen: Method, schema: Schema, epsilon: float | None, delta: float | None, *, follows: bool = False
    ) -> BudgetRequest:
        """Check a request against the method and the public number of units.

        Args:
            chosen: The method.
            schema: The public facts.
            epsilon: As it was given.
            delta: As it was given.
            follows: Whether ε follows from noise that the settings give.

        Raises:
            SettingError: A figure is missing or out of range, or there is one where there should be none.
        """
        if follows:
            if epsilon is not None:
                message, remedy = "stands beside epsilon, which follows from it", "leave one of the two out"
                raise SettingError(message, field="noise_multiplier", remedy=remedy)
            total, chance = math.inf, check_delta(delta, schema.public_units)
        elif chosen.guarantee in ("empirical", "none"):
            if epsilon is not None or delta is not None:
                field, remedy = "epsilon" if epsilon is not None else "delta", "leave it out"
                raise SettingError(f"{chosen.name} gives no guarantee, so it takes none", field=field, remedy=remedy)
            return cls(epsilon=None, delta=None, learned=learned_facts(schema, DELTA_WITHOUT_PRIVACY))
        else:
            total, chance = check_budget(epsilon, delta, schema.public_units)
        discoveries = sum(question.fact == "values" for question in schema.questions)
        share = discovery_delta(chance, discoveries)
        return cls(epsilon=total, delta=chance, learned=learned_facts(schema, share))

    @property
    def training_delta(self) -> float:
        """The δ that is left for training."""
        return (self.delta or 0.0) - sum(access.delta or 0.0 for access in self.learned)


def discovery_delta(delta: float, discoveries: int) -> float:
    """Return the δ of each discovery of values."""
    return _DISCOVERY_SHARE_OF_DELTA * delta / max(1, discoveries)


def check_budget(epsilon: object, delta: object, units: int) -> tuple[float, float]:
    """Check an ε and a δ of the kind dp.

    Raises:
        SettingError: One is missing or out of range, or δ is too large for so many units.
    """
    if epsilon is None:
        raise SettingError("has no default", field="epsilon", remedy="say how much may be spent, such as 1.0")
    total = _figure(epsilon)
    if delta is not None and (not total > 0 or math.isinf(total)):
        raise SettingError("must be a number above 0", field="epsilon", remedy="give a number such as 1.0")
    return total, check_delta(delta, units)


def check_delta(delta: object, units: int) -> float:
    """Check a δ of the kind dp.

    Raises:
        SettingError: It is missing or out of range, or too large for so many units.
    """
    customary = f"{customary_delta(units):.0e}"
    if delta is None:
        raise SettingError("has no default", field="delta", remedy=f"give one below 1/units, such as {customary}")
    chance = _figure(delta)
    if not 0 < chance < 1:
        raise SettingError("must lie between 0 and 1", field="delta", remedy=f"give one such as {customary}")
    refuse_loose_delta(chance, units, field="delta")
    return chance


def _figure(value: object) -> float:
    """Return a number as a float; NaN for what is none."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf


def refuse_undeclared(schema: Schema) -> None:
    """Refuse a schema with an undeclared fact.

    Raises:
        SchemaError: Naming the first one and the ways out.
    """
    refuse_open_unit(schema)
    if not schema.undeclared:
        return
    first, more = schema.undeclared[0], len(schema.undeclared) - 1
    rest = f" (and {more} more: doublure schema check lists them)" if more else ""
    raise SchemaError(
        f"is undeclared{rest}", field=first, remedy="declare it if it is public, or buy it with {learn: epsilon}"
    )


def refuse_open_unit(schema: Schema) -> None:
    """Refuse a schema with an id that nothing says whose it is: several records may belong together.

    Raises:
        SchemaError: Naming the id and both answers.
    """
    if not schema.open_ids:
        return
    name = printable(schema.open_ids[0])
    raise SchemaError(
        f"is left open, and {name} is an id: several records of one {name} would each be protected alone",
        field=UNIT_ID,
        remedy=f"write unit: {{id: {name}}} to protect them together, or unit: {{name: record, id: none}} to keep them "
        "apart",
    )


def learned_facts(schema: Schema, discovery_delta: float) -> tuple[Access, ...]:
    """Return the accesses that buy the schema's facts, in its order."""
    accesses = []
    for question in schema.questions:
        price, delta = question.epsilon, discovery_delta if question.fact == "values" else 0.0
        event: Event = ApproximateEvent(epsilon=price, delta=delta) if delta else PureEvent(epsilon=price)
        purpose = _PURPOSES[question.fact].format(column=question.column)
        accesses.append(Access(purpose=purpose, event=event, epsilon=price, delta=delta, path=question.path))
    return tuple(accesses)


def refuse_used_up(learned: tuple[Access, ...], epsilon: float, delta: float, accountant: str) -> None:
    """Refuse an ε of which nothing is left for training; many facts may cost less together than added up.

    Raises:
        SettingError: Naming what the facts cost together.
    """
    if sum(access.epsilon or 0.0 for access in learned) < epsilon:
        return
    spent = accounting.epsilon_of(events(learned), delta, accountant=accountant)  # type: ignore[arg-type]
    if spent >= epsilon:
        raise SettingError(
            f"{epsilon:g} is used up by the facts to be learned, which cost {figure(spent)} in total",
            field="epsilon",
            remedy=f"raise it well above {figure(spent)}, or declare more facts",
        )


# -- the composition: σ from ε, or ε from σ ----------------------------------------------------------------------------


def _with_fallback(
    accountant: AccountantChoice, chosen: Method, schema: Schema, settings: MethodSettings, budget: BudgetRequest
) -> PlanContents:
    """Compose by the requested accountant; ``auto`` is ``pld``, or ``rdp`` where ``pld`` cannot compose the events."""
    if accountant not in get_args(AccountantChoice):
        raise SettingError("is not an accountant", field="accountant", remedy="use auto, pld or rdp")
    if accountant != "auto":
        return _composed(chosen, schema, settings, budget, accountant)
    try:
        return _composed(chosen, schema, settings, budget, "pld")
    except BeyondPld:
        return with_fallback_said(_composed(chosen, schema, settings, budget, "rdp"))


def with_fallback_said(made: PlanContents) -> PlanContents:
    """Return a plan of which ``auto`` chose the accountant: it says why in place of a warning."""
    return replace(
        made, warnings=tuple(choice.FELL_BACK if isinstance(said, AccountantNote) else said for said in made.warnings)
    )


def _composed(
    chosen: Method, schema: Schema, settings: MethodSettings, budget: BudgetRequest, accountant: accounting.Accountant
) -> PlanContents:
    """Calibrate σ to the requested ε; where the settings give σ, ε follows from it."""

    def composition(multiplier: float) -> list[Event]:
        return events((*budget.learned, *chosen.accesses(schema, settings, multiplier)))

    def cost(multiplier: float, delta: float) -> float:
        return accounting.epsilon_of(composition(multiplier), delta, accountant=accountant)

    epsilon, delta = budget.epsilon, budget.delta
    if epsilon is None or delta is None:
        raise TypeError("a budget is needed")
    given, fixed, worst = chosen.given_noise(settings), chosen.fixed_noise(settings), None
    if given is not None:
        noise, total = given, cost(given, delta)
        if not math.isfinite(total):
            raise SettingError("is too little for any ε at this δ", field="noise_multiplier", remedy="raise it")
        budget = replace(budget, epsilon=rounded_up(total, _PRINTED))
    elif fixed is not None:
        noise, worst = fixed.multiplier, (rounded_up(cost(fixed.multiplier, fixed.delta), _PRINTED), fixed.delta)
    else:
        refuse_used_up(budget.learned, epsilon, delta, accountant)
        noise = accounting.calibrate(composition, epsilon=epsilon, delta=delta, accountant=accountant)
    return assemble(chosen, schema, settings, budget, accountant, noise, worst)


# -- the contents for one noise multiplier: accesses and their prices, the claim, warnings -----------------------------


def assemble(
    chosen: Method,
    schema: Schema,
    settings: MethodSettings,
    budget: BudgetRequest,
    accountant: str | None,
    noise: float | None,
    worst: tuple[float, float] | None = None,
) -> PlanContents:
    """Return the plan for one noise multiplier; its accesses for training have no price yet.

    Args:
        chosen: The method.
        schema: The public facts.
        settings: With everything decided.
        budget: The request.
        accountant: What composes the accesses; None where nothing is claimed.
        noise: σ; None where nothing is claimed.
        worst: The (ε, δ) that everything composes to, where the settings fix the noise; else the requested one.
    """
    work = chosen.work(schema, settings)
    if schema.federated is not None and schema.misfit == "refuse":
        why = "is refuse, and one record that does not fit would end a run that several owners see"
        remedy = "write misfit: coerce, or leave it out: with federated it is coerce"
        raise SchemaError(why, field="misfit", remedy=remedy)
    if schema.federated is not None and not chosen.asks_owners(schema, settings):
        remedy = "leave federated out of the schema, or take what docs/federated.md says that owners are asked for"
        raise SettingError("cannot be asked of owners yet", field=f"method {chosen.name}", remedy=remedy)
    learned = budget.learned
    if budget.epsilon is None:  # what claims nothing prints no ε, not even a fact's own (rule 13)
        learned = tuple(replace(access, event=None, epsilon=None, delta=None) for access in learned)
    training = chosen.accesses(schema, settings, noise or 0.0)
    if noise is not None:
        delta = budget.training_delta if worst is None else worst[1]
        training = tuple(replace(access, delta=delta) for access in training)
    guarantee = _guarantee(chosen, schema, settings, budget, accountant, (*learned, *training), worst, work.steps)
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
        memory_bytes=needed_bytes(chosen, schema, settings, work),
        seconds_estimate=estimate_seconds(work),
        warnings=(
            *_warnings(schema, budget, learned, guarantee),
            *unshared_conditions(chosen, schema),
            *chosen.limits(schema, settings),
            *signal_to_noise.bounds_warnings(schema, priced=budget.epsilon is not None),
            *signal_to_noise.values_warnings(schema, learned),
            *signal_to_noise.noise_warnings(
                training, schema.public_units, guarantee.delta, sum(access.epsilon or 0.0 for access in learned)
            ),
            *chosen.warnings(schema, settings),
        ),
        guarantee=guarantee,
    )


def _single_multiplier(training: tuple[Access, ...]) -> float | None:
    """Return the noise multiplier from which, with q and T, a reader may compute the training's price again.

    There is one where the training is a single Gaussian event without filters. Of anything else a card says the noise
    access by access.
    """
    event = training[0].event if len(training) == 1 else None
    return event.noise_multiplier if isinstance(event, GaussianEvent) and event.filter_steps is None else None


def _noise_source(training: tuple[Access, ...]) -> str | None:
    """Return the source of exact noise, where some of it is added to sums in whole numbers; None of any other."""
    if not (any(access.whole for access in training) and all(access.exact for access in training)):
        return None
    return _EXACT if all(access.whole for access in training) else f"{_EXACT}; {_EXACT_COUNTS}"


def _guarantee(
    chosen: Method,
    schema: Schema,
    settings: MethodSettings,
    budget: BudgetRequest,
    accountant: str | None,
    touches: tuple[Access, ...],
    worst: tuple[float, float] | None,
    steps: int,
) -> Guarantee:
    unit, max_records = schema.unit.name, schema.used_records
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
        noise_multiplier=_single_multiplier(training),
        steps=steps,
        noise_source=_noise_source(training) or chosen.noise_source(settings),
        assumptions=(*assumptions, *settings.assumptions),
        excluded=(
            TIMING if all(access.exact for access in touches) else FLOATING,
            INTERNAL,
            *(() if coerced else (REFUSALS,)),
            *(() if schema.federated is None else (ENDED,)),
            *((of_records(schema.unit_in_words),) if schema.unit.each_record else ()),
            *settings.excluded,
        ),
        unit=unit,
        max_records=max_records,
    )
    return chosen.planned_claim(composed, settings, touches, epsilon=budget.epsilon, delta=budget.delta)


class AccountantNote(str):
    """A plan's warning about its accountant."""

    __slots__ = ()


def _warnings(schema: Schema, budget: BudgetRequest, learned: tuple[Access, ...], claim: Guarantee) -> tuple[str, ...]:
    found, epsilon = list[str](), claim.epsilon
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
        found.append(AccountantNote("accountant rdp is looser than pld: it needs more noise for the same epsilon"))
    if schema.misfit == "coerce" and schema.federated is None and epsilon is not None:
        found.append(COERCED)
    found += [f"{path}: {message}" for path, message in schema.cautions]
    return tuple(found)
