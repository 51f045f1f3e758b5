"""Public constraints between columns, kept by every sampled row.

``{equal: [education, education-num]}`` says that columns carry the same information: the i-th value of the first is
the i-th value of the others. Only the first is modelled; the others are derived from it. ``{at_most: [start, end]}``
says that in every row the first is at most the second.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from typing import Annotated, Any, TypeAlias

from pydantic import Discriminator, Field, StrictStr, Tag

from doublure.errors import printable
from doublure.schema.columns import Column, IntegerColumn
from doublure.schema.fact_states import Frozen, Learn

Names = Annotated[tuple[StrictStr, ...], Field(min_length=2)]


class Equal(Frozen):
    """The columns carry the same information, value by value in the order listed."""

    equal: Names


class AtMost(Frozen):
    """In every row each column is at most the next (cells that are missing aside)."""

    at_most: Names


def _which(data: object) -> str | None:
    if isinstance(data, (Equal, AtMost)):
        return "equal" if isinstance(data, Equal) else "at_most"
    return next((key for key in ("equal", "at_most") if isinstance(data, Mapping) and key in data), None)


Constraint: TypeAlias = Annotated[
    Annotated[Equal, Tag("equal")] | Annotated[AtMost, Tag("at_most")], Discriminator(_which)
]


def size_of(column: Column) -> int | None:
    """Return how many values a column can take, or None where that is not a count."""
    if column.discrete:
        return len(column.domain) if column.domain else None  # type: ignore[union-attr]
    if isinstance(column, IntegerColumn) and isinstance(column.bounds, tuple):
        return column.bounds[1] - column.bounds[0] + 1
    return None


def ordered(constraints: Sequence[Equal | AtMost]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return every column that an ``at_most`` names after those it must not be below: ``(name, (below, …))``.

    Raises:
        ValueError: The constraints go round in a circle.
    """
    below: dict[str, set[str]] = {}
    for constraint in constraints:
        if isinstance(constraint, AtMost):
            for name in constraint.at_most:
                below.setdefault(name, set())
            for left, right in pairwise(constraint.at_most):
                below[right].add(left)
    try:
        return tuple((name, tuple(sorted(below[name]))) for name in TopologicalSorter(below).static_order())
    except CycleError as error:
        name = printable(error.args[1][0])
        raise ValueError(f"at_most goes round in a circle through {name}; write equal, or remove one") from None


def check_constraints(constraints: Sequence[Equal | AtMost], columns: Mapping[str, Column]) -> None:
    """Refuse constraints that no row could keep, alone or together.

    Raises:
        ValueError: With a message for the schema's author.
    """
    for constraint in constraints:
        check_constraint(constraint, columns)
    derived = [name for constraint in constraints if isinstance(constraint, Equal) for name in constraint.equal[1:]]
    sources = {constraint.equal[0] for constraint in constraints if isinstance(constraint, Equal)}
    if len(set(derived)) != len(derived) or sources & set(derived):
        raise ValueError("a column stands in two equal constraints; write one list with all of them")
    chains = ordered(constraints)
    if {name for name, _ in chains} & set(derived):
        raise ValueError("at_most names a column that equal derives; name the first of the equal ones")
    for left, right in _reaches(chains):
        lowest, highest = getattr(columns[left], "grid", None), getattr(columns[right], "grid", None)
        if lowest and highest and lowest[0] > highest[1]:
            raise ValueError(f"no value of {printable(left)} is at most one of {printable(right)}; fix the bounds")


def check_constraint(constraint: Equal | AtMost, columns: Mapping[str, Column]) -> None:
    """Refuse one constraint that no row could keep.

    Raises:
        ValueError: With a message for the schema's author.
    """
    word, names = ("equal", constraint.equal) if isinstance(constraint, Equal) else ("at_most", constraint.at_most)
    for name in names:
        if name not in columns:
            raise ValueError(f"{word} names {printable(name)}, which is not a column; fix the name")
        if columns[name].type == "id":
            raise ValueError(f"{word} names {printable(name)}, and an id is not modelled; leave it out")
    if len(set(names)) != len(names):
        raise ValueError(f"{word} names a column twice; name it once")
    if isinstance(constraint, Equal):
        for name in names[1:]:
            _check_equal(names[0], name, columns)
    else:
        for left, right in pairwise(names):
            _check_at_most(left, right, columns)


def _check_equal(source: str, name: str, columns: Mapping[str, Column]) -> None:
    first, column, pair = columns[source], columns[name], f"{printable(source)} and {printable(name)}"
    if "condition" in column.roles:
        raise ValueError(f"{printable(name)} is a condition; name it first in equal")
    if any(isinstance(getattr(column, fact), Learn) for fact in column.facts):
        raise ValueError(f"{printable(name)} is derived by equal, so nothing of it is learned; declare its facts")
    if isinstance(first.missing, Learn) or column.may_be_missing != first.may_be_missing:
        raise ValueError(f"{pair} are equal; declare the same missing for both")
    sizes = size_of(first), size_of(column)
    if sizes[0] is None or sizes[1] is None:
        if type(first) is not type(column) or first.discrete:
            raise ValueError(f"equal needs declared values or bounds for {pair}; declare them")
        if (getattr(first, "bounds", None), *_grid(first)) != (getattr(column, "bounds", None), *_grid(column)):
            raise ValueError(f"{pair} are equal; declare the same bounds, precision and step for both")
    elif sizes[0] != sizes[1]:
        raise ValueError(f"{printable(source)} has {sizes[0]} values and {printable(name)} has {sizes[1]}; fix one")


def _check_at_most(left: str, right: str, columns: Mapping[str, Column]) -> None:
    lower, upper, pair = columns[left], columns[right], f"{printable(left)} and {printable(right)}"
    if lower.type != upper.type or not (lower.numeric or lower.type == "ordinal"):
        raise ValueError(f"at_most needs {pair} to be of one type; use numbers, dates or ordinals")
    if lower.type == "ordinal" and lower.domain != upper.domain:  # type: ignore[union-attr]
        raise ValueError(f"at_most compares {pair}; list the same values for both")
    if _grid(lower) != _grid(upper):
        raise ValueError(f"at_most compares {pair}; give both the same precision, step and timezone")
    if "condition" in (*lower.roles, *upper.roles):
        raise ValueError(f"at_most may change {pair}, and a condition stays as asked for; remove the role")


def _reaches(chains: Sequence[tuple[str, tuple[str, ...]]]) -> set[tuple[str, str]]:
    """Return all pairs (low, high) that the chains order, directly or through others."""
    under: dict[str, set[str]] = {}
    for name, below in chains:
        under[name] = set(below).union(*(under[other] for other in below))
    return {(low, name) for name, lows in under.items() for low in lows}


def _grid(column: Column) -> tuple[Any, ...]:
    return tuple(getattr(column, name, None) for name in ("precision", "step", "timezone"))
