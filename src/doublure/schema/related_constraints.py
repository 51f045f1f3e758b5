"""Public constraints of related tables: within one of them, between a unit's row and its children, and over all these.

``{at_most: [patients.born, stays.admitted]}`` says that no stay begins before its patient's birth;
``{sum: {total: orders.total, of: lines.price}}`` that an order's total is the sum of its lines' prices.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Annotated, TypeAlias

from pydantic import Discriminator, StrictStr, Tag

from doublure.errors import printable
from doublure.schema.columns import Column, IntegerColumn, RealColumn
from doublure.schema.constraints import AtMost, Equal, names_of
from doublure.schema.fact_states import Frozen, Learn
from doublure.schema.related_table import RelatedTable
from doublure.schema.rule_checks import check_constraints


class Summed(Frozen):
    """What is added up.

    Attributes:
        total: A column of the root.
        of: A column of a child table.
    """

    total: StrictStr
    of: StrictStr


class ChildSum(Frozen):
    """A column of the root is the sum of a column over its children; it is not modelled, but added up."""

    sum: Summed


def _which(data: object) -> str | None:
    for name, model in (("equal", Equal), ("at_most", AtMost), ("sum", ChildSum)):
        if isinstance(data, model) or (isinstance(data, Mapping) and name in data):
            return name
    return None


RelatedConstraint: TypeAlias = Annotated[
    Annotated[Equal, Tag("equal")] | Annotated[AtMost, Tag("at_most")] | Annotated[ChildSum, Tag("sum")],
    Discriminator(_which),
]


def table_of(name: str) -> str:
    """Return the table of ``table.column``."""
    return name.partition(".")[0]


def within_table(constraints: Sequence[RelatedConstraint], table: str) -> tuple[Equal | AtMost, ...]:
    """Return the constraints that look at one table alone, by its own names."""
    found: list[Equal | AtMost] = []
    for each in constraints:
        if isinstance(each, ChildSum) or {table_of(name) for name in names_of(each)} != {table}:
            continue
        own = tuple(name.partition(".")[2] for name in names_of(each))
        found.append(Equal(equal=own) if isinstance(each, Equal) else AtMost(at_most=own))
    return tuple(found)


def across_tables(constraints: Sequence[RelatedConstraint]) -> tuple[tuple[str, str], ...]:
    """Return the pairs ``(low, high)`` of columns of two tables of which the first is at most the second."""
    return tuple(
        (low, high)
        for each in constraints
        if isinstance(each, AtMost) and len({table_of(name) for name in each.at_most}) > 1
        for low, high in pairwise(each.at_most)
        if table_of(low) != table_of(high)
    )


def sums(constraints: Sequence[RelatedConstraint]) -> dict[str, str]:
    """Return the columns of the root that are sums: ``{total: of}``, as ``table.column``."""
    return {each.sum.total: each.sum.of for each in constraints if isinstance(each, ChildSum)}


def check_related(constraints: Sequence[RelatedConstraint], tables: Mapping[str, RelatedTable], root: str) -> None:
    """Refuse constraints that no unit could keep.

    Raises:
        ValueError: With a message for the schema's author.
    """
    columns = {f"{name}.{own}": column for name, table in tables.items() for own, column in table.columns.items()}
    for each in constraints:
        if isinstance(each, ChildSum):
            _check_sum(each.sum, columns, tables, root)
    check_constraints([each for each in constraints if not isinstance(each, ChildSum)], columns)
    totals = [each.sum.total for each in constraints if isinstance(each, ChildSum)]
    if len(set(totals)) != len(totals):
        raise ValueError("two sums give one total; keep one")
    for each in constraints:
        if isinstance(each, ChildSum):
            continue
        names = names_of(each)
        if set(totals) & set(names):
            raise ValueError(f"{printable(next(n for n in names if n in totals))} is a sum; leave it to that rule")
        for name in names if isinstance(each, AtMost) else ():
            if isinstance(columns[name].fact("bounds"), Learn):
                raise ValueError(f"{printable(name)} is compared with another column; declare its bounds")
        if len({table_of(name) for name in names}) > 1:
            _check_across(each, columns, root)
        for name in names[1:]:
            table = tables[table_of(name)]
            if table.order is not None and name.partition(".")[2] == table.order and table_of(names[0]) != root:
                raise ValueError(f"{printable(name)} is the order of its table; name it first")


def _check_across(each: Equal | AtMost, columns: Mapping[str, Column], root: str) -> None:
    if isinstance(each, Equal):
        raise ValueError("equal names columns of two tables; keep the column in one of them")
    others = {table_of(name) for name in each.at_most} - {root}
    if len(others) > 1:
        raise ValueError("at_most names two child tables; go through the root, one child table a rule")
    for name in each.at_most:
        if not columns[name].bounded:
            raise ValueError(f"{printable(name)} is compared across tables; use numbers, dates or moments")


def _check_sum(rule: Summed, columns: Mapping[str, Column], tables: Mapping[str, RelatedTable], root: str) -> None:
    for name in (rule.total, rule.of):
        if not isinstance(columns.get(name), IntegerColumn | RealColumn):
            raise ValueError(f"sum names {printable(name)}, which is no number of a table; write table.column")
    if table_of(rule.total) != root or table_of(rule.of) == root:
        raise ValueError("sum adds up a column of a child table for the root; fix total and of")
    total, part = columns[rule.total], columns[rule.of]
    if total.missing is not False or part.missing is not False:
        raise ValueError("sum needs missing: false of both; declare it")
    if total.unit != part.unit or type(total) is not type(part):
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
