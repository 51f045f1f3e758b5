"""Forecast of a purchase: a fact that is bought, from its price and public figures."""

from __future__ import annotations

import math

from doublure.errors import printable
from doublure.methods.method import customary_delta
from doublure.planning.planner import discovery_delta
from doublure.planning.signal_to_noise import values_limit
from doublure.schema import Schema

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
        >>> from doublure.planning.purchases import describe_purchase
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
        return f"Finds each value that some {limit:,} of {units * records:,} rows have; all others become {rest}."
    if fact == "bounds":
        limit = column.partition(None).limit(epsilon=epsilon, max_records=records)
        return (
            f"Finds bounds around all bins that hold some {limit:,} of {units * records:,} values; others are clamped."
        )
    if fact == "shares":
        within = records * _IN_95_OF_100 / (epsilon * units)
        return f"Finds the share of each value, within {within:.2g} in 95 of 100 cases."
    return "Finds, with noise, whether any cell is missing."
