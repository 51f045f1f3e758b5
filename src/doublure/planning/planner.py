"""plan(): what a run will do and what it will cost, before any record is read.

A :class:`Plan` is a list of accesses plus settings. σ is calibrated here, over the composition of everything the run
will touch (learned facts included), so that T noisy steps end just under the ε that was asked for. Nothing in a plan
depends on the data: it can be shown, signed and published before the data is opened.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from doublure.access import Access
from doublure.errors import BeyondPld, SettingError, printable
from doublure.guarantee import ANY_DATA, FLOATING, LARGE_EPSILON, REFUSALS, TIMING, Guarantee, odds_factor
from doublure.methods import choice
from doublure.methods import registry as table
from doublure.methods.bayesgan import claim as bayesian
from doublure.methods.method import Method, settings_of
from doublure.planning import signal_to_noise as loudness
from doublure.planning.budget import (
    Budget,
    checked_budget,
    events,
    learned_facts,
    refuse_undeclared,
    refuse_used_up,
)
from doublure.planning.explain import explain
from doublure.planning.machine import needed_bytes, refuse_too_large, seconds_of
from doublure.private import accounting
from doublure.private.accounting import GaussianEvent
from doublure.schema import Schema
from doublure.training.settings import MethodSettings

VERSION = 1
_EXACT = "the operating system's own stream, exact rounded normals"


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a run will do. Made by :func:`plan`, read by :func:`doublure.fit`.

    Attributes:
        method: Which method trains.
        schema: The public facts; what is to be learned is among :attr:`touches`.
        epsilon: The total, learned facts included; None where nothing is claimed. For a Bayesian claim the ceiling on
            ε_μ: above it the run is stated under its :attr:`worst_case` alone.
        delta: The total, or δ_μ.
        accountant: What composes the accesses.
        settings: The method's settings, all decided.
        touches: Every private access.
        sample_rate: q.
        noise_multiplier: σ, or what the accesses' own noises were calibrated by, where they are not one Gaussian; the
            guarantee then states none.
        max_grad_norm: C.
        steps: T, noisy steps.
        memory_bytes: An estimate of the peak.
        seconds_estimate: An estimate of the time that a fit takes one core of this machine.
        warnings: What to know before the data is read.
        guarantee: What may be claimed afterwards.
    """

    method: str
    schema: Schema
    epsilon: float | None
    delta: float | None
    accountant: str | None
    settings: MethodSettings
    touches: tuple[Access, ...]
    sample_rate: float | None
    noise_multiplier: float | None
    max_grad_norm: float | None
    steps: int
    memory_bytes: int
    seconds_estimate: float
    warnings: tuple[str, ...]
    guarantee: Guarantee
    relation: Literal["add-remove"] = "add-remove"

    @property
    def kind(self) -> str:
        """The kind of data."""
        return self.schema.kind

    @property
    def unit(self) -> dict[str, Any]:
        """The unit of privacy."""
        return self.schema.unit.model_dump(mode="json")

    @property
    def schema_sha256(self) -> str:
        """The schema's hash."""
        return self.schema.sha256

    @property
    def worst_case(self) -> tuple[float, float] | None:
        """The (ε, δ) that holds whoever a record is from, where the claim is Bayesian; the ledger is charged this."""
        said = self.guarantee
        if said.kind != "bayesian-dp" or said.epsilon is None or said.delta is None:
            return None
        return said.epsilon, said.delta

    def may_claim(self, guarantee: Guarantee) -> bool:
        """Whether a run of this plan can end with a claim: the plan's, the worst case of a Bayesian one, or with a μ.

        No figure of a Bayesian claim is decided afterwards: another ceiling is another plan, and another charge.
        """
        if guarantee.kind == "bayesian-dp":
            return guarantee == self.guarantee
        at = None if guarantee.mu is None else 1 / (getattr(self.settings, "estimate_pairs", 0) + 1)
        return guarantee.unestimated == self.guarantee.worst_case and guarantee.gamma == at

    @property
    def learned(self) -> tuple[Access, ...]:
        """The accesses that buy facts, in the schema's order."""
        return tuple(access for access in self.touches if access.path is not None)

    @property
    def exact(self) -> bool:
        """Whether all noise is exact, so that floating-point numbers are no side channel."""
        return all(access.exact for access in self.touches)

    @property
    def training(self) -> tuple[Access, ...]:
        """The accesses that train, in the order in which they are made."""
        return tuple(access for access in self.touches if access.path is None)

    def explain(self) -> str:
        """Return the plan in words and figures, for a terminal."""
        return explain(self)

    def to_json(self) -> dict[str, Any]:
        """Return what ``plan.json`` holds."""
        names = ("method", "kind", "schema_sha256", "epsilon", "delta", "unit", "relation", "accountant")
        figures = ("sample_rate", "noise_multiplier", "max_grad_norm", "steps", "memory_bytes", "seconds_estimate")
        return {
            "version": VERSION,
            **{name: getattr(self, name) for name in names},
            "settings": self.settings.model_dump(mode="json"),
            "touches": [access.to_json() for access in self.touches],
            **{name: getattr(self, name) for name in figures},
            "warnings": list(self.warnings),
            "guarantee": self.guarantee.to_json(),
            "schema": self.schema.to_plain(),
        }

    def save(self, path: str | Path) -> None:
        """Write ``plan.json``."""
        from doublure.support.files import write_json

        write_json(Path(path), self.to_json())

    @classmethod
    def load(cls, path: str | Path) -> Plan:
        """Read ``plan.json`` and check that its figures are those its settings give.

        Raises:
            InputError: The file is missing, of another version, or was edited into something it does not pay for.
        """
        from doublure.support.files import read_json

        return cls.from_json(read_json(Path(path), "plan"), name=Path(path).name)

    @classmethod
    def from_json(cls, data: Mapping[str, Any], name: str = "plan.json", *, reprice: bool = True) -> Plan:
        """Read what :meth:`to_json` wrote; see :meth:`load`.

        Args:
            data: The JSON object.
            name: The file's name, for errors.
            reprice: Compose the accesses again. A run folder leaves it out: its plan was paid for when it was
                reserved, the ledger has its own record of it, and loading has to be quick.
        """
        from doublure.planning.plan_file import read

        return read(data, name, reprice=reprice)


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
        epsilon: The total ε, learned facts included. There is no default; ``gan`` takes none, and for ``bayesgan`` it
            is the ceiling on ε_μ.
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
    budget = Budget.of(chosen, schema, epsilon, delta)
    refuse_too_large(chosen, schema, own)
    if budget.epsilon is None:
        return with_prices(assemble(chosen, schema, own, budget, None, None))
    if chosen.guarantee == "bayesian-dp":
        own = bayesian.with_noise(chosen, schema, own, budget)
        return with_prices(_with_fallback(accountant, lambda name: _measured(chosen, schema, own, budget, name)))
    return with_prices(_with_fallback(accountant, lambda name: _calibrated(chosen, schema, own, budget, name)))


def _with_fallback(accountant: str, make: Callable[[str], Plan]) -> Plan:
    if accountant not in ("auto", "pld", "rdp"):
        raise SettingError("is not an accountant", field="accountant", remedy="use auto, pld or rdp")
    if accountant != "auto":
        return make(accountant)
    try:
        return make("pld")
    except BeyondPld:
        return make("rdp")


def _calibrated(chosen: Method, schema: Schema, settings: MethodSettings, budget: Budget, accountant: str) -> Plan:
    learned = learned_facts(schema, budget.discovery_delta)
    if budget.epsilon is None or budget.delta is None:
        raise TypeError("a budget is needed")
    refuse_used_up(learned, budget.epsilon, budget.delta, accountant)
    noise = accounting.calibrate(
        lambda multiplier: events((*learned, *chosen.accesses(schema, settings, multiplier))),
        epsilon=budget.epsilon,
        delta=budget.delta,
        accountant=accountant,  # type: ignore[arg-type]
    )
    return assemble(chosen, schema, settings, budget, accountant, noise)


def _measured(chosen: Method, schema: Schema, settings: MethodSettings, budget: Budget, accountant: str) -> Plan:
    """Return the plan of a run whose noise is fixed: its worst case is composed, its estimate comes later."""
    noise = bayesian.noise_of(settings)
    learned = learned_facts(schema, budget.discovery_delta)
    touches = (*learned, *chosen.accesses(schema, settings, noise))
    worst = bayesian.worst_case(touches, settings, accountant)
    return assemble(chosen, schema, settings, budget, accountant, noise, worst)


def assemble(
    chosen: Method,
    schema: Schema,
    settings: MethodSettings,
    budget: Budget,
    accountant: str | None,
    noise: float | None,
    worst: float | None = None,
) -> Plan:
    """Return the plan for one noise multiplier; its accesses for training have no price yet.

    A Bayesian claim also has the ε of its worst case.
    """
    learned = learned_facts(schema, budget.discovery_delta)
    if budget.epsilon is None:  # what claims nothing prints no ε, not even a fact's own (rule 13)
        learned = tuple(replace(access, event=None, epsilon=None, delta=None) for access in learned)
    training = chosen.accesses(schema, settings, noise or 0.0)
    if noise is not None:
        delta = budget.of_training(learned) if worst is None else bayesian.delta_of(settings)
        training = tuple(replace(access, delta=delta) for access in training)
    work = chosen.work(schema, settings)
    guarantee = _guarantee(chosen, schema, settings, budget, accountant, (*learned, *training), worst)
    return Plan(
        method=chosen.name,
        schema=schema,
        epsilon=budget.epsilon,
        delta=budget.delta,
        accountant=accountant,
        settings=settings,
        touches=(*learned, *training),
        sample_rate=chosen.sample_rate(schema, settings),
        noise_multiplier=noise,
        max_grad_norm=getattr(settings, "max_grad_norm", None),
        steps=work.steps,
        memory_bytes=needed_bytes(chosen, schema, settings),
        seconds_estimate=seconds_of(work),
        warnings=(
            *_warnings(schema, budget, learned, guarantee),
            *loudness.warnings_of_bounds(schema, priced=budget.epsilon is not None),
            *loudness.warnings_of(
                training, schema.public_units, guarantee.delta, sum(access.epsilon or 0.0 for access in learned)
            ),
            *chosen.warnings(schema, settings),
        ),
        guarantee=guarantee,
    )


def with_prices(made: Plan) -> Plan:
    """Return the plan with what each access for training would cost alone."""
    return replace(made, touches=tuple(_priced(access, made.accountant) for access in made.touches))


def _priced(access: Access, accountant: str | None) -> Access:
    if access.path is not None or access.event is None or not access.delta:
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
    worst: float | None,
) -> Guarantee:
    unit, max_records = schema.unit.name, schema.unit.max_records
    if budget.epsilon is None:
        return Guarantee(kind=chosen.guarantee, unit=unit, max_records=max_records)
    assumptions = ["the declared facts of the schema are public"]
    if schema.unit.max_records > 1 or schema.unit.id is not None:
        assumptions.append(f"{schema.unit.id} names each {schema.unit.name} the same way in every record")
    coerced = schema.misfit == "coerce"
    if coerced:
        assumptions.append(ANY_DATA)
    training = tuple(access for access in touches if access.path is None)
    settings_source = getattr(settings, "noise_source", None)
    rates = {getattr(access.event, "sample_rate", None) for access in training}
    found = Guarantee(
        kind="dp",
        epsilon=budget.epsilon if worst is None else worst,
        delta=budget.delta if worst is None else bayesian.delta_of(settings),
        accountant=accountant,
        sample_rate=chosen.sample_rate(schema, settings) if len(rates) == 1 else None,
        noise_multiplier=_noise_of(training),
        steps=chosen.work(schema, settings).steps,
        noise_source=_EXACT if {access.whole for access in training} == {True} else settings_source,
        assumptions=(*assumptions, *settings.assumptions),
        excluded=(
            TIMING if all(access.exact for access in touches) else FLOATING,
            "internal reports",
            *(() if coerced else (REFUSALS,)),
            *settings.excluded,
        ),
        unit=unit,
        max_records=max_records,
    )
    return found if worst is None else bayesian.guarantee(found, settings, budget)


def _warnings(schema: Schema, budget: Budget, learned: tuple[Access, ...], claim: Guarantee) -> tuple[str, ...]:
    found, epsilon = [], claim.epsilon
    customary = 0.1 / schema.public_units
    if claim.delta is not None and claim.delta > customary:
        found.append(f"delta {claim.delta:g} is above a tenth of 1/units; {customary:.0e} is customary")
    if epsilon is not None and epsilon > LARGE_EPSILON:
        named = "epsilon" if claim.kind == "dp" else "worst-case epsilon"
        found.append(f"{named} {epsilon:g} lets an attacker's odds grow by a factor of {odds_factor(epsilon)}")
    facts = sum(access.epsilon or 0.0 for access in learned)
    if budget.epsilon is not None and facts > budget.epsilon / 2:
        found.append(f"the facts to be learned cost {facts:g}, more than half of epsilon; declare more of them")
    if claim.accountant == "rdp":
        found.append("accountant rdp is looser than pld: it needs more noise for the same epsilon")
    for name in schema.with_role("condition"):
        if getattr(schema.columns[name], "shares", None) is None:
            found.append(f"{printable(name)} is a condition without shares, so its values are sampled equally often")
    return tuple(found)


__all__ = ["Plan", "explain", "plan"]
