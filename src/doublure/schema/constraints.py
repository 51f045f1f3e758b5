"""Public rules between columns, kept by every sampled row.

=======================================================  ===============================================================
``{equal: [education, education-num]}``                  the i-th value of the first is the i-th of the others, which
                                                         are derived from it and not modelled
``{determines: [INDP, INDP_CAT], map: FILE}``            the second follows from the first by a list, and is derived
``{at_most: [start, end]}``                              the first is at most the second
``{implies: {when: {x: missing}, then: {y: [0, 9]}}}``   a row with such cells has such others
``{sum: {total: t, of: [a, b]}}``                        t is a + b
``{combinations: FILE}``                                 the tuples of some columns that there are
=======================================================  ===============================================================

What they mean in numbers stands in :mod:`doublure.schema.rules`, whether a row can keep them all in
:mod:`doublure.schema.rule_checks`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from typing import Annotated, TypeAlias

from pydantic import BeforeValidator, Discriminator, Field, StrictStr, Tag

from doublure.errors import printable
from doublure.schema.allowed import Cells
from doublure.schema.fact_states import Frozen
from doublure.schema.scalars import label

Names = Annotated[tuple[StrictStr, ...], Field(min_length=2)]


def _read_already(value: object) -> object:
    if isinstance(value, str):
        raise ValueError("names a file, and only a schema's own file can; load the schema from a file")
    return value


def _text(value: object) -> object:
    return "" if value is None else label(value) if isinstance(value, (bool, int, float, str)) else value


def _labelled(value: object) -> object:
    return {_text(key): _text(cell) for key, cell in value.items()} if isinstance(value, Mapping) else value


Text: TypeAlias = Annotated[StrictStr, BeforeValidator(_text)]
"""A cell as a CSV file holds it; an empty text is an empty cell."""


class Equal(Frozen):
    """The columns carry the same information, value by value in the order listed."""

    equal: Names


class AtMost(Frozen):
    """In every row each column is at most the next (cells that are missing aside)."""

    at_most: Names


class Implication(Frozen):
    """Cells that others follow from."""

    when: Annotated[Mapping[StrictStr, Cells], Field(min_length=1)]
    then: Annotated[Mapping[StrictStr, Cells], Field(min_length=1)]


class Implies(Frozen):
    """A row that has all cells of ``when`` has all of ``then``."""

    implies: Implication


class Determines(Frozen):
    """The second column follows from the first by a list."""

    determines: Annotated[tuple[StrictStr, StrictStr], Field()]
    map: Annotated[
        Mapping[StrictStr, StrictStr], Field(min_length=1), BeforeValidator(_labelled), BeforeValidator(_read_already)
    ]


class Addition(Frozen):
    """A total and its parts."""

    total: StrictStr
    of: Names


class Sum(Frozen):
    """The total is the sum of the parts (in rows where none of them is missing)."""

    sum: Addition


class Tuples(Frozen):
    """The tuples that some columns can have."""

    columns: Names
    rows: Annotated[tuple[tuple[Text, ...], ...], Field(min_length=1)]


class Combinations(Frozen):
    """Columns that have only the listed tuples."""

    combinations: Annotated[Tuples, BeforeValidator(_read_already)]


Rule: TypeAlias = Equal | AtMost | Implies | Determines | Sum | Combinations
WORDS: Mapping[str, type[Rule]] = {
    "equal": Equal,
    "at_most": AtMost,
    "implies": Implies,
    "determines": Determines,
    "sum": Sum,
    "combinations": Combinations,
}


def word_of(constraint: Rule) -> str:
    """Return the word that a rule begins with in the file."""
    return next(word for word, model in WORDS.items() if isinstance(constraint, model))


def _which(data: object) -> str | None:
    for word, model in WORDS.items():
        if isinstance(data, model) or (isinstance(data, Mapping) and word in data):
            return word
    return None


Constraint: TypeAlias = Annotated[
    Annotated[Equal, Tag("equal")]
    | Annotated[AtMost, Tag("at_most")]
    | Annotated[Implies, Tag("implies")]
    | Annotated[Determines, Tag("determines")]
    | Annotated[Sum, Tag("sum")]
    | Annotated[Combinations, Tag("combinations")],
    Discriminator(_which),
]


def names_of(constraint: Rule) -> tuple[str, ...]:
    """Return the columns that a rule is about."""
    if isinstance(constraint, Equal):
        return constraint.equal
    if isinstance(constraint, AtMost):
        return constraint.at_most
    if isinstance(constraint, Determines):
        return constraint.determines
    if isinstance(constraint, Sum):
        return (constraint.sum.total, *constraint.sum.of)
    if isinstance(constraint, Combinations):
        return constraint.combinations.columns
    return tuple(dict.fromkeys((*constraint.implies.when, *constraint.implies.then)))


def derived_by(constraints: Sequence[Rule], *, repeated: bool = False) -> dict[str, str]:
    """Return the columns that follow from another: ``{derived: source}``.

    Args:
        constraints: The schema's.
        repeated: Only those that say the same as their source, value by value (``equal``).
    """
    found: dict[str, str] = {}
    for constraint in constraints:
        if isinstance(constraint, Equal) or (isinstance(constraint, Determines) and not repeated):
            source, *names = names_of(constraint)
            found.update(dict.fromkeys(names, source))
    return found


def ordered(constraints: Sequence[Rule]) -> tuple[tuple[str, tuple[str, ...]], ...]:
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


def reaches(chains: Sequence[tuple[str, tuple[str, ...]]]) -> set[tuple[str, str]]:
    """Return all pairs (low, high) that the chains order, directly or through others."""
    under: dict[str, set[str]] = {}
    for name, below in chains:
        under[name] = set(below).union(*(under[other] for other in below))
    return {(low, name) for name, lows in under.items() for low in lows}
