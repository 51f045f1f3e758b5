"""What declared rules mean in numbers: cells by :mod:`doublure.schema.allowed`, NaN for an empty one.

Pure Python, one row at a time: who checks a schema needs no more. Whole tables: :mod:`doublure.data.tables.rules`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import TypeAlias

from doublure.errors import printable
from doublure.schema.allowed import Allowed
from doublure.schema.columns import Column, label
from doublure.schema.constraints import (
    AtMost,
    Combinations,
    Determines,
    Equal,
    Implies,
    Rule,
    Sum,
    ordered,
    reaches,
)

Row: TypeAlias = Mapping[str, float]


@dataclass(frozen=True, kw_only=True)
class Derived:
    """A column that follows from another.

    Attributes:
        name: The column.
        source: The other.
        pairs: Cell of the other -> cell; None: it is ``times`` the other's number, and ``shift`` higher.
        shift: See ``pairs``.
        times: See ``pairs``.
        hole: Of an empty cell.
    """

    name: str
    source: str
    pairs: Mapping[float, float] | None = None
    shift: float = 0.0
    times: float = 1.0
    hole: float = math.nan

    def of(self, number: float) -> float:
        """Return the cell that goes with one of the source."""
        if math.isnan(number):
            return self.hole
        return number * self.times + self.shift if self.pairs is None else self.pairs[number]


@dataclass(frozen=True, kw_only=True)
class Follows:
    """``implies``: rows with all cells of ``when`` have all of ``then``."""

    when: Mapping[str, Allowed]
    then: Mapping[str, Allowed]

    @property
    def names(self) -> tuple[str, ...]:
        """The columns, each once."""
        return tuple(dict.fromkeys((*self.when, *self.then)))

    def kept(self, row: Row) -> bool:
        """Say whether a row keeps it."""
        fires = all(cells.has(row[name]) for name, cells in self.when.items())
        return not fires or all(cells.has(row[name]) for name, cells in self.then.items())


@dataclass(frozen=True, kw_only=True)
class Adds:
    """``sum``: the total is the sum of the parts, where none of them is missing."""

    total: str
    parts: tuple[str, ...]
    slack: float
    relative: bool

    @property
    def names(self) -> tuple[str, ...]:
        """The columns, the total first."""
        return (self.total, *self.parts)

    def kept(self, row: Row) -> bool:
        """Say whether a row keeps it."""
        off = row[self.total] - sum(row[name] for name in self.parts)
        size = max(1.0, abs(row[self.total])) if self.relative else 1.0
        return math.isnan(off) or abs(off) <= self.slack * size


@dataclass(frozen=True, kw_only=True)
class OneOf:
    """``combinations``: the columns have one of the tuples."""

    names: tuple[str, ...]
    tuples: tuple[tuple[float, ...], ...]

    def kept(self, row: Row) -> bool:
        """Say whether a row keeps it."""
        return any(
            all(same(row[name], cell) for name, cell in zip(self.names, own, strict=True)) for own in self.tuples
        )


@dataclass(frozen=True, kw_only=True)
class InOrder:
    """``at_most``: all of them together, as pairs (low, high)."""

    names: tuple[str, ...]
    pairs: tuple[tuple[str, str], ...]

    def kept(self, row: Row) -> bool:
        """Say whether a row keeps it."""
        return not any(row[low] > row[high] for low, high in self.pairs)


Kept: TypeAlias = Follows | Adds | OneOf | InOrder


@dataclass(frozen=True, kw_only=True)
class Rules:
    """All rules of a schema.

    Attributes:
        derived: Columns that follow from others, each after its source.
        kept: What the rest must keep.
    """

    derived: tuple[Derived, ...]
    kept: tuple[Kept, ...]

    @property
    def components(self) -> tuple[frozenset[str], ...]:
        """Columns that rules hold together: no rule joins two of these."""
        found: list[frozenset[str]] = []
        for names in [*({each.name, each.source} for each in self.derived), *(set(rule.names) for rule in self.kept)]:
            joined = frozenset(names).union(*(part for part in found if part & names))
            found = [*(part for part in found if not part & names), joined]
        return tuple(found)


def same(cell: float, other: float) -> bool:
    """Say whether two cells are one; two empty ones are."""
    return cell == other or (math.isnan(cell) and math.isnan(other))


def rules_of(columns: Mapping[str, Column], constraints: Sequence[Rule]) -> Rules:
    """Return what the rules mean, every fact of their columns known.

    Raises:
        ValueError: A rule has cells that a column does not have; ``message; remedy``.
    """
    derived: dict[str, Derived] = {}
    kept: list[Kept] = []
    chains = [constraint for constraint in constraints if isinstance(constraint, AtMost)]
    for constraint in constraints:
        if isinstance(constraint, Equal):
            derived.update({name: equal(columns, constraint.equal[0], name) for name in constraint.equal[1:]})
        elif isinstance(constraint, Determines):
            derived[constraint.determines[1]] = determined(columns, constraint)
        elif not isinstance(constraint, AtMost):
            kept.append(kept_of(columns, constraint))
    if chains:
        turns = ordered(chains)
        kept.append(InOrder(names=tuple(name for name, _ in turns), pairs=tuple(sorted(reaches(turns)))))
    return Rules(derived=in_turn(derived), kept=tuple(kept))


def in_turn(derived: Mapping[str, Derived]) -> tuple[Derived, ...]:
    """Return derived columns, each after its source.

    Raises:
        ValueError: They go round in a circle.
    """
    try:
        turns = TopologicalSorter({name: {each.source} for name, each in derived.items()}).static_order()
        return tuple(derived[name] for name in turns if name in derived)
    except CycleError as error:
        name = printable(error.args[1][0])
        raise ValueError(f"determines goes round in a circle through {name}; take one away") from None


def equal(columns: Mapping[str, Column], source: str, name: str) -> Derived:
    """Return how a column repeats another."""
    first, column = columns[source], columns[name]
    if first.size is None:
        return Derived(name=name, source=source)
    lowest = [0.0 if each.grid is None else each.grid[0] for each in (first, column)]
    times = column.unit / first.unit
    return Derived(name=name, source=source, shift=lowest[1] - lowest[0] * times, times=times)


def determined(columns: Mapping[str, Column], rule: Determines) -> Derived:
    """Return how a column follows from another by a list.

    Raises:
        ValueError: The list misses a value of the first, or has one that a column does not have.
    """
    source, name = rule.determines
    first, second = columns[source], columns[name]
    pair = f"the map of {printable(source)} and {printable(name)}"
    pairs: dict[float, float] = {}
    keys, cells = (_reader(columns[each], f"{pair} at {printable(each)}") for each in (source, name))
    for key, cell in rule.map.items():
        pairs[keys(key)] = cells(cell)
    hole = next((cell for key, cell in pairs.items() if math.isnan(key)), math.nan)
    pairs = {key: cell for key, cell in pairs.items() if not math.isnan(key)}
    count = first.size or 0
    if len(pairs) < count:
        raise ValueError(f"{pair} lacks {count - len(pairs)} of the first's {count} values; give each a line")
    if first.may_be_missing and math.isnan(hole) and not second.may_be_missing:
        raise ValueError(f"{pair} does not say what goes with an empty cell; give a line that begins empty")
    return Derived(name=name, source=source, pairs=pairs, hole=hole)


def kept_of(columns: Mapping[str, Column], rule: Implies | Sum | Combinations) -> Kept:
    """Return what a rule asks of rows.

    Raises:
        ValueError: It has cells that a column does not have.
    """
    if isinstance(rule, Implies):
        when = {name: _allowed(columns, name, cells) for name, cells in rule.implies.when.items()}
        return Follows(
            when=when, then={name: _allowed(columns, name, cells) for name, cells in rule.implies.then.items()}
        )
    if isinstance(rule, Sum):
        unit = columns[rule.sum.total].unit
        return Adds(total=rule.sum.total, parts=rule.sum.of, slack=0.25 * unit if unit else 1e-9, relative=not unit)
    names = rule.combinations.columns
    readers = [_reader(columns[name], f"combinations at {printable(name)}") for name in names]
    if any(len(row) != len(names) for row in rule.combinations.rows):
        raise ValueError("combinations has a row of another length than its columns; fix it")
    tuples = [tuple(read(cell) for read, cell in zip(readers, row, strict=True)) for row in rule.combinations.rows]
    return OneOf(names=names, tuples=tuple(tuples))


def _allowed(columns: Mapping[str, Column], name: str, cells: object) -> Allowed:
    try:
        return columns[name].ruled(cells)
    except ValueError as error:
        raise ValueError(f"implies at {printable(name)} {error}") from None


def _cell(column: Column, text: str, where: str) -> float:
    """Return the number of a cell as a file holds it; ``text`` is empty for an empty one."""
    try:
        found = column.one_of([text or None])
    except ValueError as error:
        raise ValueError(f"{where} {error}") from None
    return math.nan if found.missing else found.values[0]


def _reader(column: Column, where: str) -> Callable[[str], float]:
    """Return :func:`_cell` for many cells of one column."""
    known = {label(value): float(code) for code, value in enumerate(column.domain)}

    def read(text: str) -> float:
        if text not in known:
            known[text] = _cell(column, text, where)
        return known[text]

    return read
