"""What a row that breaks one rule becomes: it moves as little as possible, by a public rule."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np

from doublure.data.tables.cells import Floats
from doublure.data.tables.ordering import in_order
from doublure.schema.allowed import Allowed
from doublure.schema.columns import Column
from doublure.schema.constraints import Rule
from doublure.schema.rules import Adds, Follows, InOrder, OneOf

Mask: TypeAlias = "np.ndarray[Any, np.dtype[np.bool_]]"


@dataclass(frozen=True, kw_only=True)
class Draw:
    """Where new cells come from.

    Attributes:
        rng: None: from the row alone.
        turn: How often the rules were gone through before.
        sound: ``(N,)`` rows that keep all rules, and may lend cells.
    """

    rng: np.random.Generator | None
    turn: int
    sound: Mask


class Fixing(Protocol):
    """One rule on whole columns."""

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that it is about."""

    def broken(self, numbers: Mapping[str, Floats]) -> Mask:
        """Return ``(N,)``: which rows break it."""

    def fix(self, numbers: dict[str, Floats], off: Mask, draw: Draw) -> None:
        """Change the cells of rows that break it, by replacing whole arrays."""


def has(cells: Allowed, numbers: Floats) -> Mask:
    """Return ``(N,)``: which numbers are among some cells."""
    found: Mask = np.isnan(numbers) & cells.missing
    if cells.span is not None:
        found |= (cells.span[0] - cells.slack <= numbers) & (numbers <= cells.span[1] + cells.slack)
    if cells.values:
        values = np.sort(np.asarray(cells.values))
        places = np.clip(np.searchsorted(values, numbers), 1, max(1, len(values) - 1))
        for beside in (values[np.minimum(places, len(values) - 1)], values[places - 1]):
            found |= np.abs(numbers - beside) <= cells.slack
    return found


def nearest(cells: Allowed, numbers: Floats, *, even: bool) -> Floats:
    """Return the nearest of some cells to each number: the first of them where there is no order, or no number.

    Args:
        cells: Where to.
        numbers: ``(N,)``, NaN for an empty cell.
        even: The numbers have an order.
    """
    if cells.span is not None:
        return np.clip(np.nan_to_num(numbers, nan=cells.span[0]), *cells.span)
    if not cells.values:
        return np.full(len(numbers), np.nan)
    if not even:
        return np.full(len(numbers), cells.values[0])
    values = np.asarray(cells.values)
    best, found = np.full(len(numbers), np.inf), np.full(len(numbers), values[0])
    for value in values:
        closer = np.abs(numbers - value) < best
        best, found = np.where(closer, np.abs(numbers - value), best), np.where(closer, value, found)
    return found


class Fires:
    """``implies``: the cells that should follow are drawn anew from rows where they do.

    Args:
        rule: The rule.
        columns: Of the schema.
        roots: Column of ``then`` -> the modelled column that it follows from (often itself), and how.
    """

    def __init__(
        self,
        rule: Follows,
        columns: Mapping[str, Column],
        roots: Mapping[str, tuple[str, Callable[[Floats], Floats]]],
    ) -> None:
        self.names = rule.names
        self._rule = rule
        self._columns = columns
        self._roots = roots
        self._targets = {name: self._target(name) for name in rule.then}

    def _target(self, name: str) -> Allowed | None:
        """Return which cells of the modelled column do; None where they cannot be listed."""
        root, followed = self._roots[name]
        cells = self._rule.then[name]
        if root == name:
            return cells
        column = self._columns[root]
        if column.size is None:
            return cells
        values = column.limits[0] + column.unit * np.arange(column.size, dtype=np.float64)
        hole = column.may_be_missing and bool(has(cells, followed(np.array([np.nan])))[0])
        return Allowed(values=tuple(values[has(cells, followed(values))]), missing=hole, slack=1e-6)

    def _fires(self, numbers: Mapping[str, Floats]) -> Mask:
        found: Mask = np.logical_and.reduce([has(cells, numbers[name]) for name, cells in self._rule.when.items()])
        return found

    def broken(self, numbers: Mapping[str, Floats]) -> Mask:
        """Return rows that have the cells and not what follows."""
        follows = np.logical_and.reduce([has(cells, numbers[name]) for name, cells in self._rule.then.items()])
        off: Mask = self._fires(numbers) & ~follows
        return off

    def fix(self, numbers: dict[str, Floats], off: Mask, draw: Draw) -> None:
        """Draw from sound rows with the same cells; else from any row that has what follows; else take the nearest."""
        fires = self._fires(numbers)
        for name, cells in self._rule.then.items():
            root, _ = self._roots[name]
            fits = has(cells, numbers[name])
            rows = np.flatnonzero(off & ~fits)
            if not len(rows):
                continue
            moved = numbers[root].copy()
            lenders = np.flatnonzero(draw.sound & fires & fits)
            lenders = lenders if len(lenders) else np.flatnonzero(fits)
            target = self._targets[name]
            if draw.rng is not None and len(lenders):
                moved[rows] = numbers[root][draw.rng.choice(lenders, len(rows))]
            elif target is not None:
                column = self._columns[root]
                moved[rows] = nearest(target, numbers[root][rows], even=column.ordered)
            numbers[root] = moved


class AddsUp:
    """``sum``: the total follows the parts; where it cannot, or every second turn, the parts follow the total."""

    def __init__(self, rule: Adds, columns: Mapping[str, Column]) -> None:
        self.names = rule.names
        self._rule = rule
        self._ends = {name: columns[name].limits for name in rule.names}
        self._precision = columns[rule.total].decimals

    def broken(self, numbers: Mapping[str, Floats]) -> Mask:
        """Return rows whose total is another."""
        total = numbers[self._rule.total]
        size = np.maximum(1.0, np.abs(total)) if self._rule.relative else 1.0
        off: Mask = np.abs(total - self._added(numbers)) > self._rule.slack * size
        return off

    def fix(self, numbers: dict[str, Floats], off: Mask, draw: Draw) -> None:
        """Move the total to what the parts add up to, within its bounds, or the parts to the total, the last first."""
        added, total = self._added(numbers), numbers[self._rule.total]
        wanted = total if draw.turn % 2 else np.clip(added, *self._ends[self._rule.total])
        rest = wanted - added
        for name in reversed(self._rule.parts):
            moved = self._rounded(np.clip(numbers[name] + rest, *self._ends[name]))
            rest = self._rounded(rest - (moved - numbers[name]))
            numbers[name] = np.where(off, moved, numbers[name])
        within = np.clip(self._added(numbers), *self._ends[self._rule.total])
        numbers[self._rule.total] = np.where(off, within, total)

    def _added(self, numbers: Mapping[str, Floats]) -> Floats:
        first, *others = (numbers[name] for name in self._rule.parts)
        for other in others:
            first = first + other
        return self._rounded(first)

    def _rounded(self, values: Floats) -> Floats:
        return values if self._precision is None else np.round(values, self._precision)


class Listed:
    """``combinations``: the listed tuple that agrees in the most columns; of several, one as frequent as among rows."""

    def __init__(self, rule: OneOf) -> None:
        self.names = rule.names
        self._tuples = np.unique(np.asarray(rule.tuples), axis=0, equal_nan=True)
        first = {row: place for place, row in reversed(list(enumerate(map(_key, rule.tuples))))}
        self._first = np.array([first[_key(row)] for row in self._tuples])
        self._known = {_key(row): place for place, row in enumerate(self._tuples)}

    def _places(self, numbers: Mapping[str, Floats]) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Return ``(N,)`` which tuple each row has, -1 for none."""
        rows = np.stack([numbers[name] for name in self.names], axis=1)
        kinds, which = np.unique(np.nan_to_num(rows, nan=np.inf), axis=0, return_inverse=True)
        places = np.array([self._known.get(_key(row), -1) for row in kinds], dtype=np.int64)
        return places[which.reshape(-1)] if len(kinds) else np.empty(0, dtype=np.int64)

    def broken(self, numbers: Mapping[str, Floats]) -> Mask:
        """Return rows with a tuple that is not listed."""
        return self._places(numbers) < 0

    def fix(self, numbers: dict[str, Floats], off: Mask, draw: Draw) -> None:
        """Take the tuple that is nearest."""
        rows = np.flatnonzero(off)
        places = self._places(numbers)
        counts = np.bincount(places[draw.sound & (places >= 0)], minlength=len(self._tuples)) + 1e-3
        own = np.stack([numbers[name][rows] for name in self.names], axis=1)
        kinds, which = np.unique(np.nan_to_num(own, nan=np.inf), axis=0, return_inverse=True)
        listed = np.nan_to_num(self._tuples, nan=np.inf)
        chosen = np.empty(len(rows), dtype=np.int64)
        together = np.split(
            np.argsort(which.reshape(-1), kind="stable"), np.cumsum(np.bincount(which.reshape(-1)))[:-1]
        )
        for kind, members in zip(kinds, together, strict=True):
            agree = (listed == kind).sum(axis=1)
            best = np.flatnonzero(agree == agree.max())
            if draw.rng is None:
                chosen[members] = best[np.argmin(self._first[best])]
            else:
                chosen[members] = draw.rng.choice(best, len(members), p=counts[best] / counts[best].sum())
        for column, name in enumerate(self.names):
            numbers[name] = numbers[name].copy()
            numbers[name][rows] = self._tuples[chosen, column]


class InTurn:
    """``at_most``, all of them together."""

    def __init__(self, rule: InOrder, columns: Mapping[str, Column], rules: Sequence[Rule]) -> None:
        self.names = rule.names
        self._pairs = rule.pairs
        self._columns = columns
        self._rules = rules

    def broken(self, numbers: Mapping[str, Floats]) -> Mask:
        """Return rows that are out of order."""
        off: Mask = np.logical_or.reduce([numbers[low] > numbers[high] for low, high in self._pairs])
        return off

    def fix(self, numbers: dict[str, Floats], off: Mask, draw: Draw) -> None:
        """Put cells in order; rows that are in order stay."""
        numbers.update(in_order(numbers, self._columns, self._rules))


def _key(row: Any) -> tuple[float | None, ...]:
    return tuple(None if cell == np.inf or cell != cell else float(cell) for cell in row)


__all__ = ["AddsUp", "Draw", "Fires", "Fixing", "InTurn", "Listed", "has", "nearest"]
