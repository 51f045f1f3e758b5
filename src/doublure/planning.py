"""plan(): what a run will do and what it will cost, before any record is read.

A :class:`Plan` is a list of accesses plus settings. σ is calibrated here, over the composition of everything the run
will touch (learned facts included), so that T noisy steps end just under the ε that was asked for. Nothing in a plan
depends on the data: it can be shown, signed and published before the data is opened.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from doublure.access import Access
from doublure.errors import InputError, SchemaError, SettingError
from doublure.guarantee import Guarantee, figure
from doublure.methods import table
from doublure.methods.base import Method, MethodSettings
from doublure.private import accounting
from doublure.private.accounting import ApproximateEvent, Event, PureEvent
from doublure.schema import Schema

VERSION = 1

_DISCOVERY_SHARE_OF_DELTA = 0.1
_DELTA_WITHOUT_PRIVACY = 1e-6
_LIBRARIES_BYTES = 700_000_000
_SECONDS_A_STEP = 0.004
_PURPOSES = {
    "units": "count the units",
    "missing": "see whether {column} has missing cells",
    "values": "discover the values of {column}",
    "bounds": "find bounds for {column}",
    "shares": "estimate the class shares of {column}",
}


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a run will do. Made by :func:`plan`, read by :func:`doublure.fit`.

    Attributes:
        method: Which method trains.
        schema: The public facts; what is to be learned is among :attr:`touches`.
        epsilon: The total, learned facts included; None where nothing is claimed.
        delta: The total.
        accountant: What composes the accesses.
        settings: The method's settings, all decided.
        touches: Every private access.
        sample_rate: q.
        noise_multiplier: σ.
        max_grad_norm: C.
        steps: T, noisy steps.
        memory_bytes: An estimate of the peak.
        seconds_estimate: An estimate of the training time on this machine.
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
    def learned(self) -> tuple[Access, ...]:
        """The accesses that buy facts, in the schema's order."""
        return tuple(access for access in self.touches if access.path is not None)

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
        from doublure.files import write_json

        write_json(Path(path), self.to_json())

    @classmethod
    def load(cls, path: str | Path) -> Plan:
        """Read ``plan.json`` and check that its figures are those its settings give.

        Raises:
            InputError: The file is missing, of another version, or was edited into something it does not pay for.
        """
        from doublure.files import read_json

        return cls.from_json(read_json(Path(path), "plan"), name=Path(path).name)

    @classmethod
    def from_json(cls, data: Mapping[str, Any], name: str = "plan.json") -> Plan:
        """Read what :meth:`to_json` wrote; see :meth:`load`."""
        if data.get("version") != VERSION:
            raise InputError("is of another version", field=f"{name} version", remedy="make the plan again")
        try:
            schema = Schema.from_plain(data["schema"])
            chosen = table.method(data["method"])
            settings = chosen.settle(schema, chosen.settings_type.read(dict(data["settings"])))
            budget = _Budget.of(chosen, schema, data["epsilon"], data["delta"])
            made = _assemble(chosen, schema, settings, budget, data["accountant"], data["noise_multiplier"])
        except (KeyError, TypeError, AttributeError):
            raise InputError("is not a plan", field=name, remedy="make it with doublure plan") from None
        rewritten = json.loads(json.dumps(made.to_json()))
        for key in ("touches", "guarantee", "schema_sha256", "steps", "sample_rate", "max_grad_norm"):
            if rewritten[key] != data.get(key):
                raise InputError("does not follow from the plan's settings", field=f"{name} {key}", remedy="plan again")
        if made.epsilon is not None and made.delta is not None:
            spent = accounting.epsilon_of(_events(made.touches), made.delta, accountant=made.accountant)  # type: ignore[arg-type]
            if spent > made.epsilon:
                raise InputError("its accesses cost more than its epsilon", field=f"{name} epsilon", remedy="plan again")
        return made


def plan(
    schema: Schema | str | Path,
    *,
    method: str,
    epsilon: float | None = None,
    delta: float | None = None,
    accountant: Literal["auto", "pld", "rdp"] = "auto",
    **settings: Any,
) -> Plan:
    """Plan a run. Reads no data.

    Args:
        schema: The public facts (or the path of the file that holds them).
        method: A name from :mod:`doublure.methods.table`.
        epsilon: The total ε, learned facts included. There is no default; ``gan`` takes none.
        delta: The total δ.
        accountant: ``pld`` (tight), ``rdp``, or ``auto``: ``pld``, and ``rdp`` where that cannot.
        settings: Settings of the method, by name.

    Returns:
        A frozen plan.

    Raises:
        SchemaError: A fact is undeclared; the message names it and the ways out.
        SettingError: A setting is out of range, or ε is not feasible; the message says what would be.

    Example:
        >>> import doublure as db
        >>> schema = db.Schema.load(db.datasets.adult_schema_path())
        >>> made = db.plan(schema, method="dpgan", epsilon=3.0, delta=1e-5)
        >>> made.steps, made.guarantee.kind
        (1000, 'dp')
    """
    schema = schema if isinstance(schema, Schema) else Schema.load(schema)
    chosen = table.method(method)
    _refuse_undeclared(schema)
    if schema.kind not in chosen.kinds:
        raise SettingError(f"does not take kind {schema.kind}", field=f"method {method}", remedy="choose another method")
    own = chosen.settle(schema, chosen.settings_type.read(settings))
    budget = _Budget.of(chosen, schema, epsilon, delta)
    if budget.epsilon is None:
        return _assemble(chosen, schema, own, budget, None, None)
    return _with_fallback(accountant, lambda name: _calibrated(chosen, schema, own, budget, name))


@dataclass(frozen=True, kw_only=True)
class _Budget:
    """What was asked for, and how δ is split."""

    epsilon: float | None
    delta: float | None
    discovery_delta: float

    @classmethod
    def of(cls, chosen: Method, schema: Schema, epsilon: float | None, delta: float | None) -> _Budget:
        discoveries = sum(question.fact == "values" for question in schema.questions)
        if chosen.guarantee in ("empirical", "none"):
            if epsilon is not None or delta is not None:
                field = "epsilon" if epsilon is not None else "delta"
                raise SettingError(f"{chosen.name} gives no guarantee, so it takes none", field=field, remedy="leave it out")
            return cls(epsilon=None, delta=None, discovery_delta=_DELTA_WITHOUT_PRIVACY)
        _check_budget(epsilon, delta, schema.public_units)
        share = _DISCOVERY_SHARE_OF_DELTA * (delta or 0.0) / max(1, discoveries)
        return cls(epsilon=epsilon, delta=delta, discovery_delta=share)

    def of_training(self, learned: tuple[Access, ...]) -> float:
        """The δ that is left for training."""
        return (self.delta or 0.0) - sum(access.delta or 0.0 for access in learned)


def _check_budget(epsilon: float | None, delta: float | None, units: int) -> None:
    if epsilon is None:
        raise SettingError("has no default", field="epsilon", remedy="say how much may be spent, such as 1.0")
    if delta is None:
        raise SettingError("has no default", field="delta", remedy=f"give one below 1/units, such as {0.1 / units:.0e}")
    if not isinstance(epsilon, (int, float)) or not math.isfinite(epsilon) or epsilon <= 0:
        raise SettingError("must be a number above 0", field="epsilon", remedy="give a number such as 1.0")
    if not isinstance(delta, (int, float)) or not 0 < delta < 1:
        raise SettingError("must lie between 0 and 1", field="delta", remedy=f"give one such as {0.1 / units:.0e}")
    if delta >= 1 / units:
        raise SettingError(
            f"{delta:g} is at least 1/units, which allows publishing one unit's record outright",
            field="delta",
            remedy=f"give one well below {1 / units:.2g}, such as {0.1 / units:.0e}",
        )


def _refuse_undeclared(schema: Schema) -> None:
    if not schema.undeclared:
        return
    first, more = schema.undeclared[0], len(schema.undeclared) - 1
    rest = f" (and {more} more: doublure schema check lists them)" if more else ""
    raise SchemaError(
        f"is undeclared{rest}", field=first, remedy="declare it if it is public, or buy it with {learn: epsilon}"
    )


def _with_fallback(accountant: str, make: Callable[[str], Plan]) -> Plan:
    if accountant not in ("auto", "pld", "rdp"):
        raise SettingError("is not an accountant", field="accountant", remedy="use auto, pld or rdp")
    if accountant != "auto":
        return make(accountant)
    try:
        return make("pld")
    except SettingError as error:
        if error.remedy is None or "rdp" not in error.remedy:
            raise
        made = make("rdp")
        return replace(made, warnings=(*made.warnings, "accountant pld cannot resolve this budget; rdp is looser"))


def _learned(schema: Schema, discovery_delta: float) -> tuple[Access, ...]:
    accesses = []
    for question in schema.questions:
        delta = discovery_delta if question.fact == "values" else 0.0
        event: Event = PureEvent(epsilon=question.epsilon)
        if delta:
            event = ApproximateEvent(epsilon=question.epsilon, delta=delta)
        purpose = _PURPOSES[question.fact].format(column=question.column)
        accesses.append(
            Access(purpose=purpose, event=event, epsilon=question.epsilon, delta=delta, path=question.path)
        )
    return tuple(accesses)


def _events(accesses: tuple[Access, ...]) -> list[Event]:
    return [access.event for access in accesses if access.event is not None]


def _calibrated(chosen: Method, schema: Schema, settings: MethodSettings, budget: _Budget, accountant: str) -> Plan:
    learned = _learned(schema, budget.discovery_delta)
    spent = sum(access.epsilon or 0.0 for access in learned)
    if budget.epsilon is None or budget.delta is None:
        raise TypeError("a budget is needed")
    if spent >= budget.epsilon:
        raise SettingError(
            f"{budget.epsilon:g} is used up by the facts to be learned, which cost {spent:g}",
            field="epsilon",
            remedy=f"raise it well above {spent:g}, or declare more facts",
        )
    noise = accounting.calibrate(
        lambda multiplier: _events((*learned, *chosen.accesses(schema, settings, multiplier))),
        epsilon=budget.epsilon,
        delta=budget.delta,
        accountant=accountant,  # type: ignore[arg-type]
    )
    return _assemble(chosen, schema, settings, budget, accountant, noise)


def _assemble(
    chosen: Method,
    schema: Schema,
    settings: MethodSettings,
    budget: _Budget,
    accountant: str | None,
    noise: float | None,
) -> Plan:
    learned = _learned(schema, budget.discovery_delta)
    training = chosen.accesses(schema, settings, noise or 0.0)
    if noise is not None:
        training = tuple(_priced(access, budget.of_training(learned), accountant or "pld") for access in training)
    work = chosen.work(schema, settings)
    guarantee = _guarantee(chosen, schema, settings, budget, accountant, noise)
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
        memory_bytes=_LIBRARIES_BYTES + work.memory_bytes,
        seconds_estimate=round(work.flops / _flops_a_second() + work.steps * _SECONDS_A_STEP, 1),
        warnings=(*_warnings(schema, budget), *chosen.warnings(schema, settings)),
        guarantee=guarantee,
    )


def _priced(access: Access, delta: float, accountant: str) -> Access:
    if access.event is None:
        return access
    epsilon = accounting.epsilon_of([access.event], delta, accountant=accountant)  # type: ignore[arg-type]
    return replace(access, epsilon=epsilon, delta=delta)


def _guarantee(
    chosen: Method,
    schema: Schema,
    settings: MethodSettings,
    budget: _Budget,
    accountant: str | None,
    noise: float | None,
) -> Guarantee:
    unit, max_records = schema.unit.name, schema.unit.max_records
    if budget.epsilon is None:
        return Guarantee(kind=chosen.guarantee, unit=unit, max_records=max_records)
    assumptions = ["the declared facts of the schema are public"]
    if schema.unit.max_records > 1 or schema.unit.id is not None:
        assumptions.append(f"{schema.unit.id} names each {schema.unit.name} the same way in every record")
    return Guarantee(
        kind=chosen.guarantee,
        epsilon=budget.epsilon,
        delta=budget.delta,
        accountant=accountant,
        sample_rate=chosen.sample_rate(schema, settings),
        noise_multiplier=noise,
        steps=chosen.work(schema, settings).steps,
        noise_source=getattr(settings, "noise_source", None),
        assumptions=tuple(assumptions),
        excluded=("floating-point and timing side channels", "internal reports"),
        unit=unit,
        max_records=max_records,
    )


def _warnings(schema: Schema, budget: _Budget) -> tuple[str, ...]:
    found = []
    if budget.delta is not None and budget.delta > 0.1 / schema.public_units:
        found.append(f"delta {budget.delta:g} is above a tenth of 1/units; {0.1 / schema.public_units:.0e} is customary")
    if budget.epsilon is not None and budget.epsilon > 10:
        found.append(f"epsilon {budget.epsilon:g} bounds an attacker's odds by a factor of {math.exp(min(budget.epsilon, 700)):.3g}")
    for name in schema.with_role("condition"):
        if getattr(schema.columns[name], "shares", None) is None:
            found.append(f"{name} is a condition without shares, so its values are sampled equally often")
    return tuple(found)


def _flops_a_second() -> float:
    """Measure how fast this machine multiplies matrices, in a few milliseconds; networks reach about a third of it."""
    import numpy as np

    matrix = np.ones((256, 256), dtype=np.float32)
    best = math.inf
    for _ in range(5):
        start = time.perf_counter()
        for _ in range(4):
            matrix @ matrix
        best = min(best, time.perf_counter() - start)
    return 0.3 * 4 * 2 * 256**3 / max(best, 1e-6)


def explain(made: Plan) -> str:
    """Return a plan in words and figures."""
    lines = [f"Method {made.method}: {table.METHODS[made.method]}"]
    unit = made.unit
    lines.append(f"Unit of privacy: one {unit['name']}, at most {unit['max_records']} record(s) of each")
    if made.epsilon is not None:
        lines.append(f"Budget: ε = {figure(made.epsilon)}, δ = {figure(made.delta)}, add/remove, accountant {made.accountant}")
    lines.append("What touches private records:")
    width = max((len(access.purpose) for access in made.touches), default=0)
    for access in made.touches:
        price = "not protected" if access.epsilon is None else f"ε = {access.epsilon:8.4f}   δ = {access.delta or 0:.1e}"
        lines.append(f"  {access.purpose:<{width}}   {price}")
    if made.epsilon is not None:
        lines.append(f"  {'together (composed, not added up)':<{width}}   ε = {made.epsilon:8.4f}   δ = {made.delta:.1e}")
    if made.noise_multiplier is not None:
        lines.append(
            f"Noise: σ = {made.noise_multiplier:.4g}, C = {made.max_grad_norm}, q = {made.sample_rate:.4g}, T = {made.steps}"
        )
    lines.append(f"Needs about {made.memory_bytes / 1e9:.1f} GB and {_duration(made.seconds_estimate)} on this machine")
    settings = ", ".join(f"{key}={value}" for key, value in made.settings.model_dump().items() if value is not None)
    lines.append(f"Settings: {settings}")
    lines += [f"Warning: {warning}" for warning in made.warnings]
    lines.append(f"Claim: {made.guarantee.sentence}")
    return "\n".join(lines)


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{max(1, round(seconds))} seconds"
    return f"{round(seconds / 60)} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"


__all__ = ["Plan", "explain", "plan"]
