"""The second column of an ``at_most`` constraint as its gap above the first, and back.

Where the rule says ``measured_from``, columns before that one are coded as their gaps below the next. One column then
tells of every row that has it when it happened, however often those before it are missing.

How long a stay is tells more than when it ended: two columns that are drawn one by one rarely stand in order, and
putting them in order afterwards makes far too many of them equal. What is coded is therefore the gap, a number with
public bins of its own that cannot be negative; a gap of zero is a state.

=======================================  ==============================================================
a row                                    measured from
=======================================  ==============================================================
has the first column                     the first column
misses it, and that is a gap itself      whatever that one is measured from (the constraint passes a hole)
misses all before it                     the first's lower bound, or the second's own if that is lower
breaks the constraint                    the first column; the gap counts as its lowest value
=======================================  ==============================================================

A gap below is measured likewise, and where all behind it are missing from the next's upper bound, or its own if that is
higher; it has no hours.

A gap of a day and more between two moments is counted from the day of the first (:mod:`doublure.support.lattices`): its
rest within a day is the second's time of day, whose hours are counted, and a stay ends when people leave.

The gap lies in [max(0, lower₂ - upper₁), upper₂ - lower₁], and where a column is declared to be the difference of the
two, within what that column's bounds say; a gap beyond counts as the nearest within. A column that is second to several
is measured from one of them: of those that stand highest, the one named first. All of it follows from the schema, and a
row's codes from that row alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from typing_extensions import override

from doublure.encode.numeric import (
    BinnedEncoding,
    Floats,
    IntegerEncoding,
    MinMaxEncoding,
    Numerics,
    Part,
    number_encoding,
    snapped_numbers,
)
from doublure.schema import Schema
from doublure.schema.columns import Column, IntegerDomain, RealColumn
from doublure.schema.missing_states import keep_holes
from doublure.schema.rules.at_most import compared_pairs, measured_back, order_columns, ordered_pairs
from doublure.schema.scalars import EXACT
from doublure.support import lattices


@dataclass(frozen=True, kw_only=True)
class Gap:
    """A number as its distance from another.

    Attributes:
        first: The column that it is measured from.
        own: The number's own facts.
        steps: The gap, as if it were a column.
        floor: What it is measured from where there is nothing before it, or behind it if ``down``.
        period: A day on the number's grid, where it has a time of day and is counted in steps; else 1.
        widest: The longest distance that a declared difference leaves.
        down: Whether the number lies below the other.
    """

    first: str
    own: Column
    steps: BinnedEncoding | MinMaxEncoding | IntegerEncoding
    floor: float
    period: float = 1
    widest: float = math.inf
    down: bool = False

    @property
    def domain(self) -> IntegerDomain:
        """The integers that stand for gaps."""
        return self.steps.domain

    @property
    def parts(self) -> tuple[Part, ...]:
        """The gap's blocks."""
        return self.steps.parts

    def coded(self, numbers: Floats, before: Floats) -> list[Floats]:
        """Return one array ``(N,)`` a part.

        Args:
            numbers: ``(N,)`` on the number's own grid, NaN for missing.
            before: ``(N,)`` what they are measured from, NaN where there is nothing.
        """
        base = self._base(before)
        return self.steps.coded(base - numbers if self.down else lattices.gaps(numbers, base, self.period))

    def reached(self, numbers: Floats, before: Floats) -> Floats:
        """Return what columns are measured from that are measured from this one, ``(N,)``."""
        nearest = np.fmin if self.down else np.fmax
        found: Floats = nearest(numbers, before)
        return found

    def numbers(self, values: Sequence[Floats], rng: np.random.Generator | None, before: Floats) -> Floats:
        """Return numbers on their own grid, NaN for missing, from one array a part."""
        base = self._base(before)
        gaps = self.steps.numbers(values, rng)
        if self.down:
            least = np.maximum(base - gaps, base - self.widest)
            return keep_holes(snapped_numbers(self.own, self._turned_back(least, base)), gaps)
        numbers = np.minimum(lattices.above(gaps, base, self.period), base + self.widest)
        return keep_holes(snapped_numbers(self.own, self._turned_back(numbers, base)), gaps)

    def _base(self, before: Floats) -> Floats:
        return np.where(np.isnan(before), self.floor, before)

    def _turned_back(self, numbers: Floats, base: Floats) -> Floats:
        """Return numbers between what they are measured from and the bound beyond it.

        A pair that no row could have, a long stay that begins on the last day, is reflected at the bound that it
        passes: moved to the bound, such pairs would pile up there.
        """
        (lowest, upper), unit = self.own.known_grid, self.own.unit
        if self.down:  # the same, mirrored
            numbers, base, lowest, upper = -numbers, -base, -upper, -lowest
        lower = np.minimum(np.maximum(base, lowest), upper)
        span, half = np.maximum(upper - lower + unit, np.finfo(float).tiny), unit / 2
        place = np.mod(numbers - lower + half, 2 * span)
        mirrored = lower - half + np.where(place > span, 2 * span - place, place)
        inside = (lower <= numbers) & (numbers <= upper)
        turned: Floats = np.where(inside, numbers, np.clip(mirrored, lower, upper))
        return -turned if self.down else turned


@dataclass(frozen=True, kw_only=True)
class _Reach:
    """Range that a later column is measured from: a column's values, or where it is missing those of columns before."""

    lower: float
    upper: float
    may_be_missing: bool


def gaps_of(schema: Schema, numerics: Numerics, bins: int) -> dict[str, Gap]:
    """Return the columns that are coded as gaps, among those whose bounds are known."""
    firsts, behind = _measured_from(schema)
    gaps: dict[str, Gap] = {}
    spans: dict[str, _Reach] = {}
    order = [name for name, _ in order_columns(schema.constraints, schema.columns)]
    turns = [*(name for name in order if name not in behind), *(name for name in reversed(order) if name in behind)]
    for name in turns:
        column = schema.columns[name]
        ends = column.grid
        if column.listed or ends is None:  # an ordinal, or bounds that are still to be learned
            continue
        reach = _Reach(lower=ends[0], upper=ends[1], may_be_missing=column.may_be_missing)
        first = behind.get(name) or firsts.get(name)
        before = spans.get(first) if first is not None else None
        if first is not None and before is not None:
            measured = _gap_below if name in behind else _gap
            gap = measured(schema, (first, name), before, numerics, bins)
            if gap is not None:
                gaps[name] = gap
                reach = _joined(reach, before) if column.may_be_missing else reach
        spans[name] = reach
    return gaps


def in_turn(names: Iterable[str], gaps: Mapping[str, Gap]) -> list[str]:
    """Return the names, each after the one that it is measured from."""
    turns: dict[str, None] = {}

    def take(name: str) -> None:
        if name in gaps:
            take(gaps[name].first)
        turns.setdefault(name)

    for name in names:
        take(name)
    return list(turns)


def _measured_from(schema: Schema) -> tuple[dict[str, str], dict[str, str]]:
    """Return for each column that is measured from another that one: of those above it, and of those below it."""
    behind = dict(measured_back(schema.constraints, schema.columns))
    lows: dict[str, list[str]] = {}
    for left, right in compared_pairs(schema.constraints, schema.columns):
        if behind.get(left) != right:
            lows.setdefault(right, []).append(left)
    reached = ordered_pairs(order_columns(schema.constraints, schema.columns))
    firsts = {
        name: next(low for low in below if not any((low, other) in reached for other in below))
        for name, below in lows.items()
    }
    return firsts, {low: high for low, high in behind.items() if low not in firsts}


def _gap(schema: Schema, pair: tuple[str, str], before: _Reach, numerics: Numerics, bins: int) -> Gap | None:
    """Return how the second of a pair is coded, or None where a gap has but one value or too many to count."""
    first, second = (schema.columns[name] for name in pair)
    (own_lower, own_upper), unit = second.known_grid, second.unit
    floor = min(first.known_grid[0], own_lower)
    lowest = min(before.lower, floor) if before.may_be_missing else before.lower
    lower, upper = max(0.0, own_lower - before.upper), own_upper - lowest
    if not before.may_be_missing:
        for least, most in (each[2:] for each in _distances(schema) if each[:2] == pair):
            lower, upper = max(lower, least), min(upper, most)
    if unit:
        lower, upper = (round(end / unit) * unit for end in (lower, upper))
    if not lower < upper or not math.isfinite(upper) or (unit and upper / unit > EXACT):
        return None
    domain = second.integer_domain()
    if numerics != "steps" or domain.period == 1 or upper < domain.period * domain.unit:
        steps = number_encoding(_as_column(second, lower, upper), numerics, bins)
        return Gap(first=pair[0], own=second, steps=steps, floor=floor)
    period = domain.period * domain.unit
    longest = upper + period - unit
    timed = IntegerEncoding(column=_as_column(second, lower, longest, domain))
    return Gap(first=pair[0], own=second, steps=timed, floor=floor, period=period, widest=upper)


def _gap_below(schema: Schema, pair: tuple[str, str], behind: _Reach, numerics: Numerics, bins: int) -> Gap | None:
    """Return how a column is coded that is measured from the one behind it, as :func:`_gap` does of one before it."""
    other, own = (schema.columns[name] for name in pair)
    (own_lower, own_upper), unit = own.known_grid, own.unit
    ceiling = max(other.known_grid[1], own_upper)
    highest = max(behind.upper, ceiling) if behind.may_be_missing else behind.upper
    lower, upper = max(0.0, behind.lower - own_upper), highest - own_lower
    if not behind.may_be_missing:
        for least, most in (each[2:] for each in _distances(schema) if each[:2] == pair[::-1]):
            lower, upper = max(lower, least), min(upper, most)
    if unit:
        lower, upper = (round(end / unit) * unit for end in (lower, upper))
    if not lower < upper or not math.isfinite(upper) or (unit and upper / unit > EXACT):
        return None
    steps = number_encoding(_as_column(own, lower, upper), numerics, bins)
    return Gap(first=pair[0], own=own, steps=steps, floor=ceiling, down=True)


def _distances(schema: Schema) -> Iterable[tuple[str, str, float, float]]:
    return (each for rule in schema.constraints for each in rule.distances(schema.columns))


class _TimedGap(RealColumn):
    """A gap between moments: a number of its own, which no schema has.

    Attributes:
        above: The integers of the later one.
    """

    above: IntegerDomain

    @override
    def integer_domain(self) -> IntegerDomain:
        first, last = (round(end / self.above.unit) for end in self.known_grid)
        return self.above.gaps(first, last)


def _as_column(second: Column, lower: float, upper: float, timed: IntegerDomain | None = None) -> RealColumn:
    """Return a gap's own facts; they are not checked again, for a gap may span more than a column's bounds may."""
    bounds, step = (lower, upper), second.unit or None
    if timed is not None:
        return _TimedGap.model_construct(bounds=bounds, step=step, missing=second.missing, above=timed)
    return RealColumn.model_construct(bounds=bounds, step=step, missing=second.missing, zero_inflated=lower == 0)


def _joined(reach: _Reach, before: _Reach) -> _Reach:
    return _Reach(
        lower=min(reach.lower, before.lower),
        upper=max(reach.upper, before.upper),
        may_be_missing=before.may_be_missing,
    )
