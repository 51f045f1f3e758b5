"""Public constraints of related tables: within one of them, between a row and its children, and over all these.

``{at_most: [patients.born, stays.admitted]}`` says that no stay begins before its patient's birth;
``{sum: {total: orders.total, of: lines.price}}`` that an order's total is the sum of its lines' prices.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from pydantic import StrictStr
from typing_extensions import override

from doublure.errors import printable
from doublure.schema.columns import Column
from doublure.schema.fact_states import Frozen, Learn
from doublure.schema.related_table import RelatedTable
from doublure.schema.rules.at_most import compared_pairs, order_columns, orders
from doublure.schema.rules.calendar_order import comparable
from doublure.schema.rules.computed import ComputedRule
from doublure.schema.rules.registry import MODELS, make_union
from doublure.schema.rules.rule import Rule
from doublure.schema.rules.rule_set import check_rules


class Summed(Frozen):
    """The columns of a sum over child rows.

    Attributes:
        total: A column of a parent.
        of: A column of a child table.
    """

    total: StrictStr
    of: StrictStr


class ChildSum(Rule):
    """A column of a parent is the sum of a column over its children; it is not modelled, but added up."""

    word: ClassVar[str] = "sum"

    sum: Summed

    @property
    @override
    def names(self) -> tuple[str, ...]:
        return (self.sum.total, self.sum.of)

    @override
    def requirement(self, columns: Mapping[str, Column]) -> str:
        return f"{printable(self.sum.total)} must be the sum of its {printable(self.sum.of)}"


if TYPE_CHECKING:
    RelatedConstraint: TypeAlias = Rule
else:
    RelatedConstraint = make_union((*(each for each in MODELS if each.across_tables), ChildSum))


@dataclass(frozen=True)
class JoinedRule:
    """A rule that computes a column of a child table, from its own row and its parent's.

    Attributes:
        rule: By whatever names.
        places: The name in the rule -> ``table.column``.
    """

    rule: ComputedRule
    places: Mapping[str, str]

    @property
    def of(self) -> str:
        """The column that it computes, as ``table.column``."""
        return self.places[self.rule.of]

    def columns(self, every: Mapping[str, Column]) -> dict[str, Column]:
        """Return its columns by its own names."""
        return {name: every[place] for name, place in self.places.items()}


def table_of(name: str) -> str:
    """Return the table of ``table.column``."""
    return name.partition(".")[0]


def within_table(rules: Sequence[Rule], table: str) -> tuple[Rule, ...]:
    """Return the rules that look at one table alone, by its own names."""
    own = [
        rule
        for rule in rules
        if {table_of(name) for name in rule.names} == {table} and not isinstance(rule, ComputedRule)
    ]
    return tuple(
        type(rule).model_validate({rule.word: [name.partition(".")[2] for name in rule.names]}) for rule in own
    )


def across_tables(rules: Sequence[Rule], columns: Mapping[str, Column]) -> tuple[tuple[str, str], ...]:
    """Return the pairs ``(low, high)`` of columns of two tables of which the first is at most the second."""
    return tuple((low, high) for low, high in compared_pairs(rules, columns) if table_of(low) != table_of(high))


def across_calendars(rules: Sequence[Rule], columns: Mapping[str, Column]) -> tuple[tuple[str, str], ...]:
    """Return those pairs whose columns are times of different calendars, such as a birth and a moment."""
    pairs = (pair for rule in rules for pair in rule.across_calendars(columns))
    return tuple((low, high) for low, high in pairs if table_of(low) != table_of(high))


def sums(rules: Sequence[Rule]) -> dict[str, str]:
    """Return the columns that are sums over children: ``{total: of}``, as ``table.column``."""
    return {rule.sum.total: rule.sum.of for rule in rules if isinstance(rule, ChildSum)}


def joined_rules(rules: Sequence[Rule]) -> tuple[JoinedRule, ...]:
    """Return the rules that compute a column, with their names as they are."""
    return tuple(
        JoinedRule(rule, {name: name for name in rule.names}) for rule in rules if isinstance(rule, ComputedRule)
    )


def check_joined(
    rules: Sequence[JoinedRule], ordered: Sequence[tuple[str, str]], columns: Mapping[str, Column]
) -> None:
    """Refuse computed columns of child tables that some row could not have.

    Args:
        rules: Of all tables.
        ordered: Columns of two tables of which the first is at most the second.
        columns: All columns, as ``table.column``.

    Raises:
        ValueError: With a message for the schema's author.
    """
    for each in rules:
        rule, own = each.rule, each.columns(columns)
        name = printable(rule.of)
        if {each.places[operand] for operand in rule.operands} & {other.of for other in rules}:
            raise ValueError(f"{name} follows from a column that is computed across tables; name what that one names")
        if not rule.settled(own):
            continue
        reach, (lower, upper), slack = rule.reach(own), own[rule.of].limits, own[rule.of].unit / 2
        in_order = rule.spans and tuple(each.places[operand] for operand in rule.operands) in ordered
        low = max(reach.low, 0.0) if in_order else reach.low
        if low < lower - slack or reach.high > upper + slack:
            more = "" if in_order or not rule.spans else ", or order the two by at_most"
            raise ValueError(
                f"{rule.word} across tables gives {name} from {low:g} to {reach.high:g}, beyond its bounds; widen "
                f"these{more}"
            )


def check_within(name: str, table: RelatedTable, follows: frozenset[str]) -> None:
    """Refuse rules of one table that no row of it could keep, or that name what follows from another table.

    Args:
        name: The table's name.
        table: The table.
        follows: The columns that follow from other tables, as ``table.column``.

    Raises:
        ValueError: With a message for the schema's author.
    """
    check_rules(table.constraints, table.columns)
    order = table.order or ""
    if f"{name}.{order}" in follows or any(order in rule.derives for rule in table.constraints):
        raise ValueError(f"order names {printable(order)}, which follows from a rule; name another column")
    for rule in table.constraints:
        for own in rule.names:
            if f"{name}.{own}" in follows:
                raise ValueError(f"{rule.word} names {printable(own)}, which follows from another table; leave it out")
        if order in rule.names[1:] and rule.encoded and not rule.derives:
            raise ValueError(f"{printable(order)} is the order of a unit's rows; name it first in {rule.word}")


def check_related(rules: Sequence[Rule], tables: Mapping[str, RelatedTable]) -> None:
    """Refuse rules that no unit could keep.

    Raises:
        ValueError: With a message for the schema's author.
    """
    columns = {f"{name}.{own}": column for name, table in tables.items() for own, column in table.columns.items()}
    added = [rule.sum for rule in rules if isinstance(rule, ChildSum)]
    others = [rule for rule in rules if not isinstance(rule, ChildSum)]
    for each in added:
        _check_sum(each, columns, tables)
    check_rules(others, columns)
    derived = {f"{name}.{own}" for name, table in tables.items() for rule in table.constraints for own in rule.derives}
    for name in sorted(derived & {name for rule in orders(others) for name in rule.names}):
        raise ValueError(f"at_most names {printable(name)}, which follows by a rule of its table; name another column")
    own = (rule for name, table in tables.items() for rule in orders(table.constraints, f"{name}."))
    order_columns([*others, *own], columns)
    totals = [each.total for each in added]
    if len(set(totals)) != len(totals):
        raise ValueError("two sums give one total; keep one")
    for rule in others:
        for name in rule.names:
            if name in totals:
                raise ValueError(f"{printable(name)} is a sum; leave it to that rule")
        for name in () if rule.derives else rule.names:
            if isinstance(columns[name].fact("bounds"), Learn):
                raise ValueError(f"{printable(name)} is compared with another column; declare its bounds")
        if len({table_of(name) for name in rule.names}) > 1:
            _check_across(rule, columns, tables)
        elif isinstance(rule, ComputedRule):
            raise ValueError(f"{rule.word} names columns of one table; write it in the constraints of that table")
        for name in () if isinstance(rule, ComputedRule) else rule.names[1:]:
            table = tables[table_of(name)]
            ordered = table.order is not None and name.partition(".")[2] == table.order
            if ordered and table_of(rule.names[0]) != table.parent:
                raise ValueError(f"{printable(name)} is the order of its table; name it first")


def _check_across(rule: Rule, columns: Mapping[str, Column], tables: Mapping[str, RelatedTable]) -> None:
    if isinstance(rule, ComputedRule):
        own = table_of(rule.of)
        if {table_of(name) for name in rule.operands} - {own, tables[own].parent}:
            raise ValueError(f"{rule.word} computes a column of a table from its own row and its parent's; fix it")
        return
    if rule.derives:
        raise ValueError("equal names columns of two tables; keep the column in one of them")
    one, *others = {table_of(name) for name in rule.names}
    if len(others) > 1 or (tables[one].parent != others[0] and tables[others[0]].parent != one):
        raise ValueError(
            "at_most names tables that are not parent and child; go from parent to child, one child a rule"
        )
    for name in rule.names:
        if not columns[name].bounded:
            raise ValueError(f"{printable(name)} is compared across tables; use numbers, dates or moments")
        first = columns[rule.names[0]]
        if not (columns[name].compares_with(first) or comparable(columns[name], first)):
            raise ValueError(f"{printable(name)} is compared across tables with another type; use one type for both")


def _check_sum(rule: Summed, columns: Mapping[str, Column], tables: Mapping[str, RelatedTable]) -> None:
    for name in (rule.total, rule.of):
        if name not in columns or not columns[name].adds_up:
            raise ValueError(f"sum names {printable(name)}, which is no number of a table; write table.column")
    if table_of(rule.total) != tables[table_of(rule.of)].parent:
        raise ValueError("sum adds up a column of a child table for its parent; fix total and of")
    total, part = columns[rule.total], columns[rule.of]
    if total.missing is not False or part.missing is not False:
        raise ValueError("sum needs missing: false of both; declare it")
    if total.unit != part.unit or not total.alike(part):
        raise ValueError("sum needs one type, precision and step of both; declare them alike")
    if total.roles:
        raise ValueError(f"{printable(rule.total)} is a sum, which has no role; remove it")
    ends, each = total.ends, part.ends
    if ends is None or each is None:
        raise ValueError("sum needs declared bounds of both; declare them")
    most = tables[table_of(rule.of)].max_children
    if not isinstance(most, int):
        return
    if ends[0] > min(0.0, most * each[0]) or ends[1] < max(0.0, most * each[1]):
        raise ValueError(f"{printable(rule.total)} has bounds that hold not every sum; widen them to max_children sums")
