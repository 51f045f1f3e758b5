"""Numeric identities between columns: proposed by public facts and noisy answers, decided by one noisy count each.

An identity is a + b = c (and so a = c - b), a sum of more parts, or a = b k for a public k. A candidate's rows are
counted in three cells: it holds, it does not, a cell is missing. With standard deviation s, h rows that keep it and f
that do not, it is kept if

    f + 2 s ≤ (h + f) / 10:

at most a tenth of the rows break it, with a confidence of 97.7 %. The plan counts candidates only with s ≤ N / 40. One
that all of N rows keep then passes with 97.7 %, too: f ~ N(0, s²), and N / 10 - 2 s is at least 2 s. One that half of
the rows break is 16 s away.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from doublure.drafting.identities import TOTALS, sums_for, words_of
from doublure.encode.columns import integer_domain
from doublure.errors import SchemaError
from doublure.methods.statistics.tables.leaves import Floats
from doublure.methods.statistics.tables.nodes import Node, NoisyCounts
from doublure.networks.tree_identities import equation
from doublure.private.queries.axes import LARGEST_CODE, LinearIdentity
from doublure.schema import Schema
from doublure.schema.columns import IntegerDomain

_DECIDES = 40.0
"""Rows over the noise of a candidate's cell from which on its count decides."""
_MOST_TO_IDENTITIES = 0.02
"""Most of the budget for them: all other noise grows by 1 %."""
_SURE, _MOST_BROKEN = 2.0, 0.1
_OF_TIMES = (7, 12, 24, 52, 60, 365)
"""Factors of calendars and clocks."""
_OF_UNITS = (1, 100, 1000)
"""The same number, and factors of decimal units. Round bounds are such multiples of others by chance, so that bounds
alone propose none."""
_APART = 0.25
"""Mean of c less those of a and b, over all three deviations, up to which noisy means allow a + b = c."""
_TINY = 1e-9


@dataclass(frozen=True, kw_only=True)
class Identity:
    """A weighted sum of columns that is zero, within a slack, in each row where none is missing.

    Attributes:
        names: The columns; the first follows from the others.
        weights: The whole weight of each, in units of the columns' integers.
        slack: The largest size of the sum that rounding explains.
    """

    names: tuple[str, ...]
    weights: tuple[int, ...]
    slack: int = 0

    def axis(self, parts: Mapping[str, int], domains: Sequence[IntegerDomain]) -> LinearIdentity:
        """Return the axis that counts the rows that keep it."""
        places = tuple(parts[name] for name in self.names)
        marks = tuple(domains[place].last + 1 for place in places)
        return LinearIdentity(parts=places, weights=self.weights, marks=marks, slack=self.slack)

    def __str__(self) -> str:
        """Return it as an equation."""
        return equation(self.names, self.weights)

    def of(self, at: int) -> Identity:
        """Return the same identity with another column first."""
        order = [at, *(other for other in range(len(self.names)) if other != at)]
        names, weights = (tuple(own[other] for other in order) for own in (self.names, self.weights))
        return Identity(names=names, weights=weights, slack=self.slack)  # type: ignore[arg-type]


def proposed_identities(schema: Schema) -> list[Identity]:
    """Return the identities that public facts propose.

    Either names say it alone, or bounds add up or are multiples, and names do not speak against it: a total is called
    so, or columns share a word. Columns that a rule names are left to the rule.
    """
    numbers = _numbers(schema, [*schema.columns])
    named = [rule.names for rule in sums_for(schema.columns)]
    found = [_of(schema, names) for names in (*named, *_sums(numbers)) if {*names} <= {*numbers}]
    found += [_of(schema, pair, times) for *pair, times in _multiples(schema, numbers)]
    return [*dict.fromkeys(found)]


def possible_identities(schema: Schema) -> int:
    """Return how many identities of two or three columns there may be."""
    numbers = _numbers(schema, [*schema.columns])
    count = len(numbers)
    return 3 * math.comb(count, 3) + count * (count - 1) if count > 1 else 0


def decided_identities(seen: float) -> int:
    """Return how many candidates the budget for them counts so well that their counts decide.

    Args:
        seen: Units over the noise of all releases together.
    """
    return int(_MOST_TO_IDENTITIES * (seen / _DECIDES) ** 2)


def identities_share(count: int, seen: float) -> float:
    """Return the share of the budget with which so many candidates' counts decide, in full ten-thousandths."""
    return math.ceil(10_000 * count * (_DECIDES / seen) ** 2) / 10_000


def identities_to_count(
    schema: Schema, nodes: Sequence[Node], names: Sequence[str], scores: Floats, count: int
) -> list[Identity]:
    """Return the identities to count: those that public facts propose, then those that noisy answers allow best.

    Args:
        schema: The public facts.
        nodes: The columns as they were counted.
        names: For each node its column; an empty text for none.
        scores: ``(nodes, nodes)`` distance of pairs from independence, as a share of the rows; not finite for pairs
            without.
        count: Most of them.
    """
    place = {name: at for at, name in enumerate(names) if name}
    found = [own for own in proposed_identities(schema) if {*own.names} <= {*place}]
    if len(found) < count:
        numbers = {name: nodes[place[name]] for name in _numbers(schema, [*place])}
        ranked = sorted(_ranked(schema, numbers, place, scores))
        found += [own for _, _, own in ranked if own not in found]
    return found[:count]


def holding_identities(counted: Sequence[tuple[Identity, NoisyCounts]]) -> list[Identity]:
    """Return the identities that their counts say hold, each with a first column that no earlier one names."""
    kept: list[Identity] = []
    for identity, noisy in counted:
        holds, broken = (float(own) for own in noisy.counts[:2])
        sure = broken + _SURE * math.sqrt(noisy.variance) <= _MOST_BROKEN * (holds + broken)
        taken = {name for own in kept for name in own.names}
        if sure and (turned := _turned(identity, taken)) is not None:
            kept.append(turned)
    return kept


def _turned(identity: Identity, taken: set[str]) -> Identity | None:
    """Return an identity with a first column that is not taken; None where there is none."""
    for at, (name, weight) in enumerate(zip(identity.names, identity.weights, strict=True)):
        if name not in taken and (at == 0 or abs(weight) == 1):
            return identity.of(at)
    return None


def _of(schema: Schema, names: Sequence[str], times: int = 1) -> Identity:
    """Return that the first is the sum of the others, in whatever order these are given, so many times.

    Whole numbers keep it as they are. Where others were rounded, each by half a unit, so may the sum be off.
    """
    first, *others = names
    weights = (-1, *[times] * len(others))
    rounded = not all(schema.columns[name].integral for name in names)
    return Identity(names=(first, *sorted(others)), weights=weights, slack=rounded * sum(map(abs, weights)) // 2)


def _numbers(schema: Schema, names: Sequence[str]) -> dict[str, IntegerDomain]:
    """Return the integers of numbers that no rule names and whose facts are known."""
    ruled = {name for rule in schema.constraints for name in rule.names} | {*schema.derived, *schema.beside}
    found: dict[str, IntegerDomain] = {}
    for name in names:
        column = schema.columns[name]
        if not (column.modelled and column.adds_up and column.unit) or column.clock is not None or name in ruled:
            continue
        try:
            domain = integer_domain(schema, name)
        except SchemaError:
            continue
        if -LARGEST_CODE < domain.first < domain.last < LARGEST_CODE:
            found[name] = domain
    return found


def _sums(numbers: Mapping[str, IntegerDomain]) -> Iterator[tuple[str, str, str]]:
    """Yield ``(c, a, b)`` where the bounds of a and b add up to those of c, a total or of the words of one of them."""
    by_ends: dict[tuple[float, int, int], list[str]] = {}
    for name, own in numbers.items():
        by_ends.setdefault((own.unit, own.first, own.last), []).append(name)
    for (one, first), (other, second) in combinations(numbers.items(), 2):
        ends = first.unit, first.first + second.first, first.last + second.last
        if first.unit == second.unit:
            for total in by_ends.get(ends, []):
                named = words_of(total)
                if total not in (one, other) and named & (TOTALS | words_of(one) | words_of(other)):
                    yield total, one, other


def _multiples(schema: Schema, numbers: Mapping[str, IntegerDomain]) -> Iterator[tuple[str, str, int]]:
    """Yield ``(a, b, k)`` where names share a word, and the bounds of a are those of b times a k of calendars."""
    for one, own in numbers.items():
        for other, beside in numbers.items():
            for times in _OF_TIMES if words_of(one) & words_of(other) else ():
                same = own.unit == beside.unit and schema.columns[one].alike(schema.columns[other])
                if same and (own.first, own.last) == (times * beside.first, times * beside.last):
                    yield one, other, times


def _ranked(
    schema: Schema, nodes: Mapping[str, Node], place: Mapping[str, int], scores: Floats
) -> Iterator[tuple[float, int, Identity]]:
    """Yield identities that noisy means and deviations allow, with what orders them: the least first.

    Orders: how far means and deviations are from the identity, over how much the columns depend on one another.
    """
    moments = {name: _moments(node) for name, node in nodes.items()}
    turn = 0

    def tied(one: str, other: str) -> float:
        score = float(scores[place[one], place[other]]) if scores.size else 1.0
        return max(score, 0.0) if math.isfinite(score) else 0.0

    for total in nodes:
        mean, deviation = moments[total]
        parts = [name for name in nodes if name != total and schema.columns[name].unit == schema.columns[total].unit]
        for one, other in combinations(parts, 2):
            (first, spread), (second, beside) = moments[one], moments[other]
            scale = deviation + spread + beside + _TINY
            off = abs(mean - first - second) + max(0.0, deviation - spread - beside, abs(spread - beside) - deviation)
            strength = tied(total, one) + tied(total, other)
            if off <= _APART * scale and strength > 0:
                turn += 1
                yield (off / scale + _TINY) / strength, turn, _of(schema, (total, one, other))
        for other in parts:
            for times in (*_OF_UNITS, *_OF_TIMES):
                first, spread = moments[other]
                scale = deviation + times * spread + _TINY
                off = abs(mean - times * first) + abs(deviation - times * spread)
                if off <= _APART * scale and tied(total, other) > 0 and (times > 1 or total < other):
                    turn += 1
                    yield (off / scale + _TINY) / (2 * tied(total, other)), turn, _of(schema, (total, other), times)


def _moments(node: Node) -> tuple[float, float]:
    """Return the mean and the standard deviation of a column's present values, as counted."""
    leaves = node.leaves
    known = len(leaves.starts)
    mass, width = np.maximum(leaves.mass[:known], 0.0), leaves.width[:known]
    if not mass.sum() > 0:
        return 0.0, 0.0
    middle = leaves.starts + (width - 1) / 2
    mean = float(np.average(middle, weights=mass))
    return mean, math.sqrt(float(np.average((middle - mean) ** 2 + (width**2 - 1) / 12, weights=mass)))
