"""``{at_most: [start, end]}``: the first is at most the second; all such rules of a schema together are one order.

``{at_most: [infected, onset, admitted], measured_from: onset}`` names the column from which the others are measured; it
is the first otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from graphlib import CycleError, TopologicalSorter
from itertools import combinations, groupby, pairwise
from operator import or_
from typing import Any, ClassVar

from pydantic import SerializerFunctionWrapHandler, StrictStr, model_serializer
from typing_extensions import override

from doublure.errors import printable
from doublure.schema.allowed import Allowed
from doublure.schema.columns import Column
from doublure.schema.rules.calendar_order import CalendarOrder, comparable, fineness
from doublure.schema.rules.rule import CellSource, Floats, Likeness, Mask, Names, NumericRule, Rule


class AtMost(Rule):
    """In every row each column is at most the next (cells that are missing aside)."""

    word: ClassVar[str] = "at_most"
    encoded: ClassVar[bool] = True
    across_tables: ClassVar[bool] = True
    suggested_by: ClassVar[Likeness | None] = "two times"

    at_most: Names
    measured_from: StrictStr | None = None

    @model_serializer(mode="wrap")
    def _as_written(self, written: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {key: value for key, value in written(self).items() if value is not None}

    def among(self, names: Sequence[str], prefix: str = "") -> AtMost:
        """Return the order of some of its columns, with a prefix before their names."""
        kept = self.measured_from is not None and self.measured_from in names
        start = f"{prefix}{self.measured_from}" if kept else None
        return AtMost(at_most=tuple(prefix + name for name in names), measured_from=start)

    @override
    def check(self, columns: Mapping[str, Column]) -> None:
        super().check(columns)
        if self.measured_from is not None and self.measured_from not in self.at_most:
            named = printable(self.measured_from)
            raise ValueError(f"measured_from names {named}, which at_most does not; name one of its columns")
        for left, right in pairwise(self.at_most):
            _check_pair(left, right, columns)
        for pair in self.across_calendars(columns):
            if all(columns[name].settled for name in pair) and not CalendarOrder.of_pair(pair, columns).possible_at_all:
                low, high = map(printable, pair)
                raise ValueError(f"no value of {low} is at most one of {high}; fix the bounds")

    @override
    def across_calendars(self, columns: Mapping[str, Column]) -> Iterator[tuple[str, str]]:
        yield from (pair for pair in combinations(self.at_most, 2) if comparable(*(columns[name] for name in pair)))

    @override
    def requirement(self, columns: Mapping[str, Column]) -> str:
        times = all(fineness(columns[name]) is not None for name in self.at_most)
        word = "after" if times else "above"
        first, *rest = map(printable, self.at_most)
        return f"{first} must not be {word} {f', nor that {word} '.join(rest)}"

    @classmethod
    @override
    def check_together(cls, rules: Sequence[Rule], columns: Mapping[str, Column]) -> None:
        chains = order_columns(rules, columns)
        ordered = {name for name, _ in chains}
        for rule in rules:
            derived = sorted(ordered & {*rule.derives})
            if derived and rule.repeats:
                raise ValueError(f"at_most names a column that {rule.word} derives; name the first of the equal ones")
            if derived and rule.deriving:
                said = (
                    f"at_most names {printable(derived[0])}, which {rule.word} lists for {printable(rule.sources[0])}"
                )
                raise ValueError(f"{said}; take one of the two rules away")
            if derived:
                raise ValueError(
                    f"at_most names {printable(derived[0])}, which {rule.word} computes; write a range instead"
                )
        for left, right in sorted(ordered_pairs(chains)):
            lowest, highest = columns[left].grid, columns[right].grid
            if lowest and highest and lowest[0] > highest[1]:
                raise ValueError(f"no value of {printable(left)} is at most one of {printable(right)}; fix the bounds")

    @override
    def in_numbers(self, columns: Mapping[str, Column], beside: Sequence[Rule]) -> Iterator[NumericRule]:
        yield from (CalendarOrder.of_pair(pair, columns) for pair in self.across_calendars(columns))
        every = [rule for rule in beside if isinstance(rule, AtMost)]
        if self is every[-1] and (chains := order_columns(every, columns)):
            lists, names = tuple(rule.at_most for rule in every), tuple(name for name, _ in chains)
            yield ColumnOrder(names=names, columns=columns, chains=chains, lists=lists)


def _check_pair(left: str, right: str, columns: Mapping[str, Column]) -> None:
    lower, upper, pair = columns[left], columns[right], f"{printable(left)} and {printable(right)}"
    if comparable(lower, upper):
        return
    if not (lower.compares_with(upper) and lower.ordered):
        raise ValueError(f"at_most needs {pair} to be of one type; use two of one type that has an order")
    if lower.domain != upper.domain:
        raise ValueError(f"at_most compares {pair}; list the same values for both")
    if any(lower.fact(fact) != upper.fact(fact) for fact in ("precision", "step", "timezone")):
        raise ValueError(f"at_most compares {pair}; give both the same precision, step and timezone")
    if "condition" in (*lower.roles, *upper.roles):
        raise ValueError(f"at_most may change {pair}, and a condition stays as asked for; remove the role")


# -- of all rules ------------------------------------------------------------------------------------------------------


def compared_pairs(rules: Sequence[Rule], columns: Mapping[str, Column]) -> Iterator[tuple[str, str]]:
    """Yield the pairs (low, high) of one calendar of which an ``at_most`` names one after the other."""
    for rule in rules:
        if isinstance(rule, AtMost):
            pairs = pairwise(rule.at_most)
            yield from (pair for pair in pairs if not comparable(*(columns[name] for name in pair)))


def measured_back(rules: Sequence[Rule], columns: Mapping[str, Column]) -> Iterator[tuple[str, str]]:
    """Yield the pairs (low, high) that stand before the column from which an ``at_most`` measures."""
    for rule in rules:
        if isinstance(rule, AtMost) and rule.measured_from is not None:
            pairs = pairwise(rule.at_most[: rule.at_most.index(rule.measured_from) + 1])
            yield from (pair for pair in pairs if not comparable(*(columns[name] for name in pair)))


def orders(rules: Sequence[Rule], prefix: str = "") -> list[AtMost]:
    """Return the orders among rules, with a prefix before the names of their columns."""
    return [rule.among(rule.names, prefix) for rule in rules if isinstance(rule, AtMost)]


def order_columns(rules: Sequence[Rule], columns: Mapping[str, Column]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return every column that an ``at_most`` names after those it must not be below: ``(name, (below, …))``.

    Raises:
        ValueError: The rules go round in a circle.
    """
    below: dict[str, set[str]] = {}
    for left, right in compared_pairs(rules, columns):
        below.setdefault(left, set())
        below.setdefault(right, set()).add(left)
    try:
        return tuple((name, tuple(sorted(below[name]))) for name in TopologicalSorter(below).static_order())
    except CycleError as error:
        name = printable(error.args[1][0])
        raise ValueError(f"at_most goes round in a circle through {name}; write equal, or remove one") from None


def ordered_pairs(chains: Sequence[tuple[str, tuple[str, ...]]]) -> set[tuple[str, str]]:
    """Return all pairs (low, high) that the chains order, directly or through others."""
    under: dict[str, set[str]] = {}
    for name, below in chains:
        under[name] = set(below).union(*(under[other] for other in below))
    return {(low, name) for name, lows in under.items() for low in lows}


@dataclass(frozen=True, kw_only=True)
class ColumnOrder(NumericRule):
    """All ``at_most`` together: cells that can be sorted are sorted, and the rest is moved within its bounds.

    Attributes:
        chains: Columns after those that they must not be below.
        lists: The columns of each ``at_most``.
    """

    turn: ClassVar[int] = 3
    joint: ClassVar[bool] = True
    certain: ClassVar[bool] = True

    chains: tuple[tuple[str, tuple[str, ...]], ...]
    lists: tuple[tuple[str, ...], ...]

    @cached_property
    def _pairs(self) -> tuple[tuple[str, str], ...]:
        return tuple(sorted(ordered_pairs(self.chains)))

    @override
    def named(self) -> Iterator[tuple[str, Allowed]]:
        columns = (self.columns[name] for name in self.names)
        ends = tuple(end for column in columns if column.bounded for end in column.limits)
        yield from ((name, Allowed(values=ends)) for name in self.names)

    @override
    def broken(self, numbers: Mapping[str, Any]) -> Any:
        pairs = ((low, high) for low, high in self._pairs if low in numbers and high in numbers)
        return reduce(or_, (numbers[low] > numbers[high] for low, high in pairs), False)

    @override
    def possible(self, row: Mapping[str, float]) -> bool:
        return not self.broken(row)

    @override
    def fix(self, numbers: dict[str, Floats], off: Mask, source: CellSource) -> None:
        """Put cells in order; rows that are in order stay.

        Cells with the same bounds change places, which leaves as many of each value as there were; then each column is
        raised to at least those below it, within its bounds, and those are lowered. A missing cell stays missing, and
        passes on what is asked of its neighbours.
        """
        import numpy as np

        for names in self.lists:
            for _, alike in groupby(names, key=lambda name: (self.columns[name].shown_type, self.columns[name].limits)):
                _sort(numbers, list(alike))
        nothing = np.full(len(off), np.nan)
        reached: dict[str, Floats] = {}
        for name, below in self.chains:
            floor = np.fmax.reduce([nothing, *(reached[low] for low in below)])
            raised = np.fmin(np.fmax(numbers[name], floor), self.columns[name].limits[1])
            numbers[name] = np.where(np.isnan(numbers[name]), np.nan, raised)
            reached[name] = np.where(np.isnan(numbers[name]), floor, numbers[name])
        ceilings = {name: nothing for name, _ in self.chains}
        for name, below in reversed(self.chains):
            lowered = np.fmin(numbers[name], ceilings[name])
            numbers[name] = np.where(np.isnan(numbers[name]), np.nan, lowered)
            for low in below:
                ceilings[low] = np.fmin(ceilings[low], lowered)


def _sort(numbers: dict[str, Floats], names: list[str]) -> None:
    """Put each row's numbers in ascending order, holes left where they are."""
    import numpy as np

    cells = np.stack([numbers[name] for name in names], axis=1)
    taken = np.argsort(np.isnan(cells), axis=1, kind="stable")  # columns with a number first: NaN sorts last
    placed = np.empty_like(cells)
    np.put_along_axis(placed, taken, np.sort(cells, axis=1), axis=1)
    numbers.update({name: placed[:, place] for place, name in enumerate(names)})
