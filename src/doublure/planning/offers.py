"""The methods that a plan of a schema may name, and why others are refused: from public facts alone."""

from __future__ import annotations

import math
from dataclasses import dataclass

from doublure.access import COVERED
from doublure.errors import DoublureError, SettingError, counted, printable
from doublure.methods import choice, registry
from doublure.methods.method import customary_delta, settings_of
from doublure.planning.planner import discovery_delta
from doublure.planning.signal_to_noise import values_limit
from doublure.schema import Schema


@dataclass(frozen=True, kw_only=True)
class MethodOffer:
    """A method, as it is offered for a schema.

    Attributes:
        name: The name in plans.
        summary: What it is for, in a line.
        refused: Why no plan with an ε can name it; empty where one can.
    """

    name: str
    summary: str
    refused: str = ""


def method_offers(schema: Schema, epsilon: float) -> tuple[MethodOffer, ...]:
    """Return every method, ``auto`` first, with why it is refused; no data is read.

    Args:
        schema: The public facts, every one decided.
        epsilon: The ε for which ``auto`` says what it would take.

    Example:
        >>> from doublure.planning.offers import method_offers
        >>> [each.name for each in method_offers(schema, 1.0) if not each.refused]
        ['auto', 'statistics', 'guided', 'dpgan', 'bayesgan']
    """
    offers = [MethodOffer(name=choice.AUTO, summary=choice.sentence(schema, epsilon))]
    for name in registry.METHODS.names:
        if name != choice.AUTO:
            offers.append(
                MethodOffer(name=name, summary=registry.summary(name, schema.kind), refused=_refused(name, schema))
            )
    return tuple(offers)


def _refused(name: str, schema: Schema) -> str:
    """Return why a method is refused; empty where it is not."""
    method = registry.method(name)
    try:
        settings = settings_of(method, schema.kind, {})
        if method.guarantee not in COVERED:
            raise SettingError("gives no guarantee, so it takes no epsilon", field=name)
        method.resolve_defaults(schema, settings)
    except DoublureError as error:
        return error.message if error.field in (f"method {name}", name) else f"{error.field} {error.message}".strip()
    return ""


_IN_95_OF_100 = math.log(1 / 0.05)
"""Of a Laplace distribution, in its scales."""


def describe_purchase(schema: Schema, name: str, fact: str, epsilon: float, *, delta: float | None = None) -> str:
    """Return in a sentence what buying a fact would find.

    Args:
        schema: The public facts; the fact may be undeclared.
        name: The column.
        fact: ``values``, ``bounds``, ``missing`` or ``shares``.
        epsilon: Its price.
        delta: The plan's δ; the customary one if left out.

    Example:
        >>> from doublure.planning.offers import describe_purchase
        >>> print(describe_purchase(db.Schema.load("people.schema.yaml"), "sex", "shares", 0.05))
        Finds the share of each value, within 0.15 in 95 of 100 cases.
    """
    column, units = schema.columns[name], schema.public_units
    records = schema.most_records * schema.cells_of(name, fact)
    if fact == "values":
        total = customary_delta(units) if delta is None else delta
        others = {question.path for question in schema.questions if question.fact == "values"}
        share = discovery_delta(total, len(others | {schema.path_of(name) + ".values"}))
        limit = values_limit(records, epsilon, share)
        rest = printable(column.fallback or "other")
        return (
            f"Finds each value that some {limit:,} of {counted(units * records, 'row')} have; all others become {rest}."
        )
    if fact == "bounds":
        limit = column.partition(None).limit(epsilon=epsilon, max_records=records)
        values = counted(units * records, "value")
        return f"Finds bounds around all bins that hold some {limit:,} of {values}; others are clamped."
    if fact == "shares":
        within = records * _IN_95_OF_100 / (epsilon * units)
        return f"Finds the share of each value, within {within:.2g} in 95 of 100 cases."
    return "Finds, with noise, whether any cell is missing."
