"""A search for a row that keeps all rules, among ends, middles and values that they name."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from doublure.schema.allowed import Allowed
from doublure.schema.columns import Column
from doublure.schema.missing_states import tag_holes
from doublure.schema.rules.rule import DerivedColumn, NumericRule

_MOST_STEPS = 50_000
_FEW_VALUES = 64


class RowSearch:
    """A search for a row that keeps all rules between some columns.

    Args:
        component: Columns that no rule joins with others.
        columns: All columns.
        derived: Columns that follow from others, each after its source.
        rules: The rest of all rules.
        asked: Column -> the cells that it may have; all if not given.
    """

    def __init__(
        self,
        component: frozenset[str],
        columns: Mapping[str, Column],
        derived: Sequence[DerivedColumn],
        rules: Sequence[NumericRule],
        asked: Mapping[str, Allowed],
    ) -> None:
        self._columns = columns
        self._asked = asked
        self._derived = [each for each in derived if each.name in component]
        self._rules = [rule for rule in rules if set(rule.names) <= component]
        self._tuples = [rule for rule in self._rules if rule.tuples]
        follows = {each.name for each in self._derived}
        first = [name for rule in sorted(self._rules, key=lambda rule: -rule.turn) for name in rule.leads]
        wanted = [*first, *(name for rule in self._rules for name in rule.names), *sorted(component)]
        self._names = [name for name in dict.fromkeys(wanted) if name not in follows]
        self._named: dict[str, list[float]] = {name: [] for name in component}
        for name, cells in [*(each for rule in self._rules for each in rule.named()), *asked.items()]:
            self._named[name] += _points(columns[name], cells)
        for rule in self._rules:
            if asked and rule.joint:  # an order can be kept, if at all, at ends that its columns share
                shared = list(dict.fromkeys(value for name in rule.names for value in self._named[name]))
                self._named |= dict.fromkeys(rule.names, shared)
        self._steps = 0

    @property
    def sure(self) -> bool:
        """Whether finding no row means that there is none.

        Sums, and columns that follow from several, have more rows than the ends and middles looked at.
        """
        plain = all(rule.certain for rule in self._rules) and all(len(each.sources) == 1 for each in self._derived)
        return self._steps <= _MOST_STEPS and plain

    def find(self) -> dict[str, float] | None:
        """Return the first row that keeps all rules."""
        return self._go({}, 0)

    def _go(self, row: dict[str, float], turn: int) -> dict[str, float] | None:
        self._steps += 1
        if self._steps > _MOST_STEPS:
            return None
        if turn < len(self._tuples):
            for cells in self._tuples[turn].tuples:
                own = dict(zip(self._tuples[turn].names, cells, strict=True))
                if any(name in row and not _same(row[name], cell) for name, cell in own.items()):
                    continue
                done = self._tried(row | own, turn + 1)
                if done is not None or self._steps > _MOST_STEPS:
                    return done
            return None
        name = next((name for name in self._names if name not in row), None)
        if name is None:
            return row
        for cell in self._candidates(name, row):
            done = self._tried(row | {name: cell}, turn)
            if done is not None or self._steps > _MOST_STEPS:
                return done
        return None

    def _tried(self, row: dict[str, float], turn: int) -> dict[str, float] | None:
        for each in self._derived:
            if each.name not in row and all(name in row for name in each.sources):
                row[each.name] = each.follow(*(row[name] for name in each.sources))
        possible = all(rule.possible(row) for rule in self._rules)
        wanted = all(cells.has(row[name]) for name, cells in self._asked.items() if name in row)
        return self._go(row, turn) if possible and wanted else None

    def _candidates(self, name: str, row: Mapping[str, float]) -> Iterator[float]:
        column = self._columns[name]
        for rule in self._rules:
            if name in rule.names and all(each in row for each in rule.names if each != name):
                yield from _inside(column, rule.completed(name, row))
        if column.listed:
            size = len(column.domain)
            yield from dict.fromkeys([*self._named[name], *map(float, range(min(size, _FEW_VALUES)))])
            if self._sources(name):  # what is derived from it may need any of its values
                yield from map(float, range(_FEW_VALUES, size))
        else:
            ends = column.limits
            points = sorted({*_inside(column, self._named[name]), *ends})
            middles = [(low + high) / 2 for low, high in pairwise(points)]
            yield from dict.fromkeys([*points, *_inside(column, middles)])
            if self._sources(name):
                yield from (ends[0] + place * column.unit for place in range(column.size or 0))
        for state in range(column.missing_states):
            yield tag_holes(state)

    def _sources(self, name: str) -> bool:
        return any(each.sources == (name,) for each in self._derived)


def _points(column: Column, cells: Allowed) -> list[float]:
    """Return the values that a rule names, and those beside a range's ends."""
    found = list(cells.values)
    if cells.span is not None:
        found += [*cells.span, cells.span[0] - column.unit, cells.span[1] + column.unit]
    if column.listed:
        return [value for value in found if 0 <= value < len(column.domain)]
    return found


def _inside(column: Column, numbers: Iterable[float]) -> list[float]:
    """Return those of some numbers that a column can have, on its grid."""
    lower, upper = column.limits
    unit = column.unit
    known = [number for number in numbers if not math.isnan(number)]
    snapped = [round((number - lower) / unit) * unit + lower if unit else number for number in known]
    return [number for number in snapped if lower <= number <= upper]


def _same(cell: float, other: float) -> bool:
    """Return whether two cells are one; two empty ones are."""
    return cell == other or (math.isnan(cell) and math.isnan(other))
