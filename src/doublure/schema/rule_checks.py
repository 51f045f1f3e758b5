"""Whether a row can keep a schema's rules: each by itself, then all of them together.

Every rule that does not fit is named at once. That rules hold together is shown by a row that keeps them all
(:func:`witness`): it is looked for among the ends, the middles and the values that the rules themselves name.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from doublure.errors import printable
from doublure.schema.allowed import Allowed
from doublure.schema.columns import MOST_VALUES, Column
from doublure.schema.constraints import (
    AtMost,
    Combinations,
    Determines,
    Equal,
    Implies,
    Rule,
    Sum,
    names_of,
    ordered,
    reaches,
    word_of,
)
from doublure.schema.fact_states import Learn
from doublure.schema.rules import Adds, Follows, InOrder, OneOf, Rules, determined, kept_of, rules_of, same
from doublure.support.guessing import suggest

_MOST_STEPS = 50_000
_FEW_VALUES = 64


class RulesDoNotFit(ValueError):
    """The rules that no row can keep, and what to do; the field is ``constraints``."""

    field = "constraints"


def check_constraints(constraints: Sequence[Rule], columns: Mapping[str, Column]) -> None:
    """Refuse rules that no row could keep, alone or together.

    Raises:
        RulesDoNotFit: With a message for the schema's author, which names every rule that does not fit by itself.
    """
    found = []
    for constraint in constraints:
        try:
            _check(constraint, columns)
        except ValueError as error:
            found.append(str(error))
    if len(found) > 1:
        listed = " ".join(f"({number}) {text.replace('; ', ', ')}" for number, text in enumerate(found, 1))
        raise RulesDoNotFit(f"{len(found)} rules do not fit: {listed}; fix each")
    if found:
        raise RulesDoNotFit(found[0])
    try:
        _check_together(constraints, columns)
    except ValueError as error:
        raise RulesDoNotFit(str(error)) from None


def _check_together(constraints: Sequence[Rule], columns: Mapping[str, Column]) -> None:
    derived = [name for rule in constraints if isinstance(rule, (Equal, Determines)) for name in names_of(rule)[1:]]
    equal = [rule.equal for rule in constraints if isinstance(rule, Equal)]
    repeated = {name for names in equal for name in names[1:]}
    if len(set(derived)) != len(derived) or {names[0] for names in equal} & repeated:
        raise ValueError("a column stands in two equal constraints; write one list with all of them")
    chains = ordered(constraints)
    if {name for name, _ in chains} & set(derived):
        raise ValueError("at_most names a column that equal derives; name the first of the equal ones")
    for left, right in reaches(chains):
        lowest, highest = columns[left].grid, columns[right].grid
        if lowest and highest and lowest[0] > highest[1]:
            raise ValueError(f"no value of {printable(left)} is at most one of {printable(right)}; fix the bounds")
    for rule in constraints:
        taken = set(names_of(rule)) & set(derived)
        if isinstance(rule, (Sum, Combinations)) and taken:
            name = printable(min(taken))
            raise ValueError(f"{word_of(rule)} names {name}, which follows from another column; name that one")
    _refuse_bought(constraints, columns)
    known = [rule for rule in constraints if not _open(rule, columns)]
    rules = rules_of(columns, known)
    plain = {name for rule in known if not isinstance(rule, (Equal, AtMost)) for name in names_of(rule)}
    for component in rules.components:
        if component & plain and witness(component, columns, rules) is None:
            named = ", ".join(sorted(map(printable, component)))
            raise ValueError(f"no row was found that keeps all rules of {named}; fix or remove one of them")


def _refuse_bought(constraints: Sequence[Rule], columns: Mapping[str, Column]) -> None:
    """Refuse bounds that are still to be bought where an answer could contradict a rule after it has been paid for."""
    chains = [rule for rule in constraints if isinstance(rule, AtMost)]
    for rule in constraints:
        if isinstance(rule, (Equal, AtMost)):
            continue
        reached, before = set(names_of(rule)), 0
        while before < len(reached):
            before = len(reached)
            reached = reached.union(*(chain.at_most for chain in chains if reached & set(chain.at_most)))
        for name in sorted(reached):
            if columns[name].learned:
                word = word_of(rule)
                raise ValueError(
                    f"{word} and at_most need declared facts of {printable(name)}; declare what is learned"
                )


def _check(rule: Rule, columns: Mapping[str, Column]) -> None:
    """Refuse one rule that no row could keep.

    Raises:
        ValueError: With a message for the schema's author.
    """
    word, names = word_of(rule), names_of(rule)
    for name in names:
        if name not in columns:
            raise ValueError(
                f"{word} names {printable(name)}, which is not a column; {suggest(name, columns) or 'fix the name'}"
            )
        if not columns[name].modelled:
            raise ValueError(f"{word} names {printable(name)}, and an id is not modelled; leave it out")
    if len(set(names)) != len(names):
        raise ValueError(f"{word} names a column twice; name it once")
    if isinstance(rule, Equal):
        for name in names[1:]:
            _check_equal(names[0], name, columns)
        return
    if isinstance(rule, AtMost):
        for left, right in pairwise(names):
            _check_at_most(left, right, columns)
        return
    for name in names:
        if columns[name].learned:
            raise ValueError(f"{word} needs declared facts of {printable(name)}, and one is learned; declare it")
    if isinstance(rule, Determines):
        _check_determines(*rule.determines, columns)
    elif isinstance(rule, Sum):
        _check_sum(rule, columns)
    elif isinstance(rule, Combinations):
        for name in names:
            if not (columns[name].listed or columns[name].integral or columns[name].clock):
                raise ValueError(f"combinations names {printable(name)}, a real number; take values that can be listed")
    else:
        _check_implies(rule, columns)
    if not _open(rule, columns):
        _ = determined(columns, rule) if isinstance(rule, Determines) else kept_of(columns, rule)


def _open(rule: Rule, columns: Mapping[str, Column]) -> bool:
    """Say whether a fact of the rule's columns is not known yet."""
    return not all(columns[name].settled for name in names_of(rule))


def _check_implies(rule: Implies, columns: Mapping[str, Column]) -> None:
    both = set(rule.implies.when) & set(rule.implies.then)
    if both:
        raise ValueError(f"implies has {printable(min(both))} on both sides; take it from one")
    for name in rule.implies.then:
        if "condition" in columns[name].roles:
            raise ValueError(f"implies may change {printable(name)}, and a condition stays as asked for; turn it round")


def _check_determines(source: str, name: str, columns: Mapping[str, Column]) -> None:
    first, pair = columns[source], f"{printable(source)} and {printable(name)}"
    if "condition" in columns[name].roles:
        raise ValueError(f"{printable(name)} is a condition, and determines derives it; remove the role")
    if not (first.listed or first.integral):
        raise ValueError(f"determines lists every value of the first of {pair}; take a category or an integer")
    if (first.size or 0) > MOST_VALUES:
        raise ValueError(f"determines lists every value of the first of {pair}, more than {MOST_VALUES}; group them")


def _check_sum(rule: Sum, columns: Mapping[str, Column]) -> None:
    total, parts = columns[rule.sum.total], [columns[name] for name in rule.sum.of]
    for column in parts:
        if not (column.alike(total) and column.adds_up):
            raise ValueError(f"sum needs {printable(rule.sum.total)} and its parts to be all integer, or all real; fix")
        if column.unit != total.unit:
            raise ValueError(
                f"sum adds up to {printable(rule.sum.total)}; give total and parts the same precision and step"
            )
    ends = [column.grid for column in (total, *parts)]
    known = [each for each in ends if each is not None]
    if len(known) == len(ends):
        (lowest, highest), *own = known
        low, high = sum(low for low, _ in own), sum(high for _, high in own)
        if (low > highest or high < lowest) and not any(column.may_be_missing for column in (total, *parts)):
            raise ValueError(f"no parts add up to a value of {printable(rule.sum.total)}; fix the bounds")


def _check_equal(source: str, name: str, columns: Mapping[str, Column]) -> None:
    first, column, pair = columns[source], columns[name], f"{printable(source)} and {printable(name)}"
    if "condition" in column.roles:
        raise ValueError(f"{printable(name)} is a condition; name it first in equal")
    if column.learned:
        raise ValueError(f"{printable(name)} is derived by equal, so nothing of it is learned; declare its facts")
    if isinstance(first.missing, Learn) or column.may_be_missing != first.may_be_missing:
        raise ValueError(f"{pair} are equal; declare the same missing for both")
    sizes = first.size, column.size
    if sizes[0] is None or sizes[1] is None:
        if not first.alike(column) or first.listed:
            raise ValueError(f"equal needs declared values or bounds for {pair}; declare them")
        if (first.fact("bounds"), *_grid(first)) != (column.fact("bounds"), *_grid(column)):
            raise ValueError(f"{pair} are equal; declare the same bounds, precision and step for both")
    elif sizes[0] != sizes[1]:
        raise ValueError(f"{printable(source)} has {sizes[0]} values and {printable(name)} has {sizes[1]}; fix one")


def _check_at_most(left: str, right: str, columns: Mapping[str, Column]) -> None:
    lower, upper, pair = columns[left], columns[right], f"{printable(left)} and {printable(right)}"
    if not (lower.alike(upper) and lower.ordered):
        raise ValueError(f"at_most needs {pair} to be of one type; use numbers, dates or ordinals")
    if lower.domain != upper.domain:
        raise ValueError(f"at_most compares {pair}; list the same values for both")
    if _grid(lower) != _grid(upper):
        raise ValueError(f"at_most compares {pair}; give both the same precision, step and timezone")
    if "condition" in (*lower.roles, *upper.roles):
        raise ValueError(f"at_most may change {pair}, and a condition stays as asked for; remove the role")


def _grid(column: Column) -> tuple[Any, ...]:
    return tuple(column.fact(name) for name in ("precision", "step", "timezone"))


# -- together --------------------------------------------------------------------------------------------------------


def witness(
    component: frozenset[str], columns: Mapping[str, Column], rules: Rules, asked: Mapping[str, Allowed] | None = None
) -> dict[str, float] | None:
    """Return cells of some columns that keep all rules between them, or None if none were found.

    Args:
        component: Columns that no rule joins with others.
        columns: All columns.
        rules: All rules.
        asked: Column -> the cells that it may have; all if not given.
    """
    return _Search(component, columns, rules, asked or {}).found()


def clash(columns: Mapping[str, Column], constraints: Sequence[Rule], asked: Mapping[str, Allowed]) -> list[str]:
    """Return the columns of which no row can have what is asked for, by the rules alone; none where one can.

    All facts have to be known. A search that cannot be sure counts as one that found a row.

    Args:
        columns: All columns.
        constraints: All rules.
        asked: Column -> the cells that fit.
    """
    rules = rules_of(columns, constraints)
    for component in rules.components:
        own = {name: cells for name, cells in asked.items() if name in component}
        if not own:
            continue
        search = _Search(component, columns, rules, own)
        if search.found() is None and search.sure:
            return sorted(own)
    return []


class _Search:
    def __init__(
        self,
        component: frozenset[str],
        columns: Mapping[str, Column],
        rules: Rules,
        asked: Mapping[str, Allowed],
    ) -> None:
        self._columns = columns
        self._asked = asked
        self._derived = [each for each in rules.derived if each.name in component]
        self._rules = [rule for rule in rules.kept if set(rule.names) <= component]
        follows = {each.name for each in self._derived}
        self._tuples = [rule for rule in self._rules if isinstance(rule, OneOf)]
        totals = [rule.total for rule in self._rules if isinstance(rule, Adds)]
        first = [name for rule in self._rules if isinstance(rule, Follows) for name in rule.when]
        wanted = [*totals, *first, *(name for rule in self._rules for name in rule.names), *sorted(component)]
        self._names = [name for name in dict.fromkeys(wanted) if name not in follows]
        self._named: dict[str, list[float]] = {name: [] for name in component}
        for rule in self._rules:
            self._note(rule)
        for name, cells in asked.items():
            self._named[name] += _points(columns[name], cells)
        for rule in self._rules:
            if asked and isinstance(rule, InOrder):  # an order can be kept, if at all, at ends that its columns share
                shared = list(dict.fromkeys(value for name in rule.names for value in self._named[name]))
                self._named |= dict.fromkeys(rule.names, shared)
        self._steps = 0

    @property
    def sure(self) -> bool:
        """Whether finding no row means that there is none: sums have more rows than the ends and middles looked at."""
        return self._steps <= _MOST_STEPS and not any(isinstance(rule, Adds) for rule in self._rules)

    def _note(self, rule: Follows | Adds | OneOf | InOrder) -> None:
        """Keep the values that a rule names: of an order and of a sum, the others' ends."""
        if isinstance(rule, Follows):
            for name, cells in [*rule.then.items(), *rule.when.items()]:
                self._named[name] += _points(self._columns[name], cells)
        elif isinstance(rule, (Adds, InOrder)):
            numbers = [self._columns[name] for name in rule.names if self._columns[name].bounded]
            ends = [end for column in numbers for end in column.limits]
            for name in rule.names:
                self._named[name] += ends

    def found(self) -> dict[str, float] | None:
        """Return the first row that keeps all rules."""
        return self._go({}, 0)

    def _go(self, row: dict[str, float], turn: int) -> dict[str, float] | None:
        self._steps += 1
        if self._steps > _MOST_STEPS:
            return None
        if turn < len(self._tuples):
            for cells in self._tuples[turn].tuples:
                own = dict(zip(self._tuples[turn].names, cells, strict=True))
                if any(name in row and not same(row[name], cell) for name, cell in own.items()):
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
            if each.source in row and each.name not in row:
                row[each.name] = each.of(row[each.source])
        kept = all(
            rule.kept(row) for rule in self._rules if not isinstance(rule, OneOf) and set(rule.names) <= set(row)
        )
        ordered_so_far = all(
            not row[low] > row[high]
            for rule in self._rules
            if isinstance(rule, InOrder)
            for low, high in rule.pairs
            if low in row and high in row
        )
        wanted = all(cells.has(row[name]) for name, cells in self._asked.items() if name in row)
        return self._go(row, turn) if kept and ordered_so_far and wanted else None

    def _candidates(self, name: str, row: Mapping[str, float]) -> Iterator[float]:
        column = self._columns[name]
        for rule in self._rules:
            if (
                isinstance(rule, Adds)
                and name in rule.names
                and all(each in row for each in rule.names if each != name)
            ):
                rest = sum(row[each] for each in rule.parts if each != name)
                yield from _inside(column, [rest if name == rule.total else row[rule.total] - rest])
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
        if column.may_be_missing:
            yield math.nan

    def _sources(self, name: str) -> bool:
        return any(each.source == name for each in self._derived)


def _points(column: Column, cells: Allowed) -> list[float]:
    """Return the values that a rule names, and those beside a range's ends."""
    found = list(cells.values)
    if cells.span is not None:
        found += [*cells.span, cells.span[0] - column.unit, cells.span[1] + column.unit]
    if column.listed:
        return [value for value in found if 0 <= value < len(column.domain)]
    return found


def _inside(column: Column, numbers: Sequence[float]) -> list[float]:
    """Return those of some numbers that a column can have, on its grid."""
    lower, upper = column.limits
    unit = column.unit
    known = [number for number in numbers if not math.isnan(number)]
    snapped = [round((number - lower) / unit) * unit + lower if unit else number for number in known]
    return [number for number in snapped if lower <= number <= upper]
