"""What a plan may spend: the ε and δ that were asked for, and what the facts to be learned take of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Self

from doublure.access import Access, events
from doublure.errors import SchemaError, SettingError
from doublure.guarantee import figure, rounded_up
from doublure.methods.method import Method, customary_delta, refuse_loose_delta
from doublure.private import accounting
from doublure.private.accounting import ApproximateEvent, Event, PureEvent
from doublure.schema import Schema

DELTA_WITHOUT_PRIVACY = 1e-6
"""The δ of a discovery of values in a plan that claims nothing."""

_DISCOVERY_SHARE_OF_DELTA = 0.1
_PRINTED = 4  # significant digits of an ε that follows from the noise
_PURPOSES = {
    "units": "count the units",
    "missing": "test whether {column} has missing cells",
    "values": "discover the values of {column}",
    "bounds": "find bounds for {column}",
    "shares": "estimate the class shares of {column}",
}


@dataclass(frozen=True, kw_only=True)
class Budget:
    """What was asked for, and how δ is split.

    Attributes:
        epsilon: The total, or the ceiling on ε_μ of a Bayesian claim; None where nothing is claimed.
        delta: The total, or δ_μ.
        discovery_delta: The share of δ that each discovery of values takes.
    """

    epsilon: float | None
    delta: float | None
    discovery_delta: float

    @classmethod
    def of(cls, chosen: Method, schema: Schema, epsilon: float | None, delta: float | None) -> Budget:
        """Check what was asked for against the method and the public number of units.

        Raises:
            SettingError: A figure is missing or out of range, or the method takes none.
        """
        if chosen.guarantee in ("empirical", "none"):
            if epsilon is not None or delta is not None:
                field = "epsilon" if epsilon is not None else "delta"
                raise SettingError(
                    f"{chosen.name} gives no guarantee, so it takes none", field=field, remedy="leave it out"
                )
            return cls(epsilon=None, delta=None, discovery_delta=DELTA_WITHOUT_PRIVACY)
        epsilon, delta = checked_budget(epsilon, delta, schema.public_units)
        return cls(epsilon=epsilon, delta=delta, discovery_delta=_share(schema, delta))

    @classmethod
    def of_noise(cls, schema: Schema, delta: float | None, price: Callable[[float, tuple[Access, ...]], float]) -> Self:
        """Return the budget whose ε follows from noise that was given.

        Args:
            schema: The public facts.
            delta: The total δ that was asked for.
            price: What everything costs at a δ, with the accesses that buy facts.

        Raises:
            SettingError: δ is missing or out of range, or the noise is too little for any ε.
        """
        chance = checked_delta(delta, schema.public_units)
        share = _share(schema, chance)
        spent = price(chance, learned_facts(schema, share))
        if not math.isfinite(spent):
            raise SettingError("is too little for any ε at this δ", field="noise_multiplier", remedy="raise it")
        return cls(epsilon=rounded_up(spent, _PRINTED), delta=chance, discovery_delta=share)

    def of_training(self, learned: tuple[Access, ...]) -> float:
        """The δ that is left for training."""
        return (self.delta or 0.0) - sum(access.delta or 0.0 for access in learned)


def checked_budget(epsilon: object, delta: object, units: int) -> tuple[float, float]:
    """Check an ε and a δ of the kind dp.

    Raises:
        SettingError: One is missing or out of range, or δ is too large for so many units.
    """
    if epsilon is None:
        raise SettingError("has no default", field="epsilon", remedy="say how much may be spent, such as 1.0")
    total = _figure(epsilon)
    if delta is not None and (not total > 0 or math.isinf(total)):
        raise SettingError("must be a number above 0", field="epsilon", remedy="give a number such as 1.0")
    return total, checked_delta(delta, units)


def checked_delta(delta: object, units: int) -> float:
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


def _share(schema: Schema, delta: float) -> float:
    """Return the share of δ that each discovery of values takes."""
    discoveries = sum(question.fact == "values" for question in schema.questions)
    return _DISCOVERY_SHARE_OF_DELTA * delta / max(1, discoveries)


def _figure(value: object) -> float:
    """Return a number as a float; NaN for what is none."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf


def refuse_undeclared(schema: Schema) -> None:
    """Refuse a schema with a fact that nobody has decided yet.

    Raises:
        SchemaError: Naming the first one and the ways out.
    """
    if not schema.undeclared:
        return
    first, more = schema.undeclared[0], len(schema.undeclared) - 1
    rest = f" (and {more} more: doublure schema check lists them)" if more else ""
    raise SchemaError(
        f"is undeclared{rest}", field=first, remedy="declare it if it is public, or buy it with {learn: epsilon}"
    )


def learned_facts(schema: Schema, discovery_delta: float) -> tuple[Access, ...]:
    """Return the accesses that buy the schema's facts, in its order."""
    accesses = []
    for question in schema.questions:
        delta = discovery_delta if question.fact == "values" else 0.0
        event: Event = PureEvent(epsilon=question.epsilon)
        if delta:
            event = ApproximateEvent(epsilon=question.epsilon, delta=delta)
        purpose = _PURPOSES[question.fact].format(column=question.column)
        accesses.append(Access(purpose=purpose, event=event, epsilon=question.epsilon, delta=delta, path=question.path))
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
