"""Warnings about noise that hides the data: a rule of thumb over a plan's events and public figures.

A noisy sum of clipped gradients moves by at most C q N if every record of the lot pulls the same way, and its noise has
a standard deviation of σ C in every coordinate. A table of counts holds N units altogether. Where the noise in a single
coordinate or cell is more than a tenth of all there is, nothing of the data is seen in it: a gradient has thousands of
coordinates, and a table dozens of cells.
"""

from __future__ import annotations

import math

from doublure.access import Access
from doublure.errors import printable
from doublure.methods.statistics.tables.plan import COLUMNS, COPIES, SCORES, SEEN
from doublure.private.accounting import ApproximateEvent, DiscreteGaussianEvent, Event, GaussianEvent
from doublure.schema import Schema

MOST = 0.1
"""The largest noise that something may be seen through, in shares of all there is to see."""

_LARGEST_ADVICE = 10.0  # beyond it an ε is no advice
_FEW_GROUPS = 6
_RARE_VALUE = 0.005


def noise_warnings(training: tuple[Access, ...], units: int, delta: float | None, facts: float) -> tuple[str, ...]:
    """Return a warning if accesses drown in their noise, with an ε at which none would.

    Args:
        training: The accesses of training, at the plan's noise.
        units: N, public.
        delta: The total; None where nothing is claimed.
        facts: The ε of the facts to be learned, added up.
    """
    shares = {access.purpose: share for access in training if (share := _share(access, units)) is not None}
    worst = max(shares.values(), default=0.0) / MOST
    if delta is None:
        return ()
    if worst <= 1:
        return _few_groups(training, units, delta, facts)
    advice = _advice(training, worst, delta, facts)
    drowned = {purpose: share for purpose, share in shares.items() if share > MOST}
    noisiest = max(drowned, key=lambda purpose: drowned[purpose])
    among = "" if len(drowned) == 1 else f", the noisiest of {len(drowned)} such releases"
    return (
        f"{noisiest}: the noise is {drowned[noisiest]:.2g} times all that {units} units can add{among}, so hardly "
        f"anything will be learned; give {advice}, or more units",
    )


def _few_groups(training: tuple[Access, ...], units: int, delta: float, facts: float) -> tuple[str, ...]:
    """Return a warning where a table's columns would be counted in a handful of groups.

    A group is made where it holds some dozen deviations of its noise (:mod:`doublure.methods.statistics.tables`), so
    that of N units no more groups can be seen than N over that many.
    """
    found = []
    for access in training:
        if access.purpose == COLUMNS and isinstance(access.event, DiscreteGaussianEvent):
            noise = access.event.scale / math.sqrt(COPIES[COLUMNS])
            groups = int(units / (SEEN * noise))
            if groups < _FEW_GROUPS:
                advice = _advice(training, _FEW_GROUPS * SEEN * noise / units, delta, facts)
                found.append(
                    f"{access.purpose}: {units} units fill {max(1, groups)} groups of a column above its noise, so "
                    f"that little of numbers and pairs will be seen; give {advice}, or more units"
                )
    return tuple(found)


def _advice(training: tuple[Access, ...], times: float, delta: float, facts: float) -> str:
    """Return an ε at which all noises are so many times smaller; they scale together.

    The tail bound of zero-concentrated DP (Bun & Steinke 2016, proposition 1.3) asks for a little more ε than the
    accountant will.
    """
    rho = sum(_rho(access.event) for access in training) * times**2
    enough = facts + rho + 2 * math.sqrt(rho * math.log(1 / delta))
    return f"about epsilon {enough:.2g}" if enough <= _LARGEST_ADVICE else "far more epsilon"


def bounds_warnings(schema: Schema, *, priced: bool) -> tuple[str, ...]:
    """Return a warning for each channel or column whose bounds would be noise or narrow, were they bought as asked.

    Bounds are found among hundreds of cells, so that one is seen only if it holds some dozen times its noise. Where
    half of all values would not, the largest noise decides, and the bounds may lie anywhere. Units that may have many
    values and have few pay for many: where a value of half of the units would not be seen, most are cut off.

    Args:
        schema: What is asked for.
        priced: Whether the plan claims an ε, and so may print one.
    """
    found = []
    for question in schema.questions:
        column = schema.columns.get(question.column or "")
        if question.fact != "bounds" or question.magnitude is not None or column is None:
            continue
        records = schema.most_records * schema.cells_of(question.column, "bounds")
        grid = column.partition(None)
        if grid.given:  # such as years, which are looked for one by one
            continue
        limit, units = grid.limit(epsilon=question.epsilon, max_records=records), schema.public_units
        noise = limit > units * records / 2
        if not noise and (records == 1 or limit <= units / 2):
            continue
        enough = question.epsilon * limit / (units * records / 4 if noise else units / 10)
        advice = f"about {enough:.2g}" if enough <= _LARGEST_ADVICE else "far more"
        at, pay = (f"at epsilon {question.epsilon:g} ", f", or pay {advice}") if priced else ("", "")
        least = f"{printable(question.path)}: {at}a bin is found only if it holds {limit} values"
        if noise:
            found.append(
                f"{least}, and {units} units have {units * records} at most, so the bounds will be noise; declare "
                f"them, or give the magnitude to expect{pay}"
            )
        else:
            found.append(
                f"{least}, because one unit may have {records}, so values rarer than that are cut off; declare "
                f"them, or let a unit have fewer{pay}"
            )
    return tuple(found)


def values_warnings(schema: Schema, learned: tuple[Access, ...]) -> tuple[str, ...]:
    """Return a warning for each list of values that is bought so cheaply that only frequent ones are found.

    A value is found where its count passes a threshold, which hides values that a single unit has. With m records a
    unit it is about m (1 + ln(1 / 2δ) / ε), whatever the data.

    Args:
        schema: What is asked for.
        learned: What buys it.
    """
    found = []
    for access in learned:
        event = access.event
        if not isinstance(event, ApproximateEvent) or not access.path:
            continue
        question = next(each for each in schema.questions if each.path == access.path)
        records = schema.most_records * schema.cells_of(question.column or "", "values")
        limit = values_limit(records, event.epsilon, event.delta)
        share = limit / (schema.public_units * records)
        if share > _RARE_VALUE:
            found.append(
                f"{printable(access.path)}: at epsilon {event.epsilon:g} a value is found only if some {limit} records "
                f"have it ({share:.1%} of all), and the others become one; declare a long list that is public"
            )
    return tuple(found)


def values_limit(records: int, epsilon: float, delta: float) -> int:
    """Return about how many records a value needs to be found: what hides values that a single unit has.

    Args:
        records: The most values of one unit.
        epsilon: The price.
        delta: The chance that a value of one unit is found.
    """
    return math.ceil(records * (1 + math.log(1 / (2 * delta)) / epsilon))


def _share(access: Access, units: int) -> float | None:
    """Return the noise in one coordinate or cell over the most that all units can add to it; None for other events.

    How far a table is from another of as many units is twice their number at most.
    """
    event = access.event
    if isinstance(event, GaussianEvent):
        return event.noise_multiplier / max(1.0, event.sample_rate * units)
    if isinstance(event, DiscreteGaussianEvent):
        return event.scale / (units * event.records * (2 if access.purpose == SCORES else 1))
    return None


def _rho(event: Event | None) -> float:
    """Return about what an event costs under zero-concentrated DP; with lots, for large noise."""
    if isinstance(event, GaussianEvent):
        return event.paid_steps * (event.sample_rate / event.noise_multiplier) ** 2 / 2
    if isinstance(event, DiscreteGaussianEvent):
        return event.tables * (event.records / event.scale) ** 2 / 2
    return 0.0
