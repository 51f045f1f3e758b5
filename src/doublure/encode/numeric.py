"""Numbers as codes of public bins, or as places between the bounds, and back.

Bins come from the schema's bounds alone: one a value where a column has few, otherwise of equal width, or of equal
ratio where a non-negative number spans three orders of magnitude from 1 or its lower bound (incomes, counts).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd
from typing_extensions import override

from doublure.schema.columns import Column, IntegerDomain
from doublure.schema.missing_states import hole_states, tag_holes

Floats: TypeAlias = "np.ndarray[Any, np.dtype[np.float64]]"
Ints: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"
Numerics: TypeAlias = Literal["bins", "scaled", "steps"]


@dataclass(frozen=True, kw_only=True)
class Part:
    """One block of an expanded row: a softmax over ``size`` codes, one scalar in [-1, 1], or a whole number of steps.

    Attributes:
        kind: Which of the two.
        size: How many codes; 1 for a scalar.
        states: How many of the last codes have no place in the order of the others (zero, missing).
    """

    kind: Literal["softmax", "tanh", "steps"]
    size: int
    states: int = 0


@dataclass(frozen=True, kw_only=True)
class NumericEncoding(ABC):
    """A number in parts of an expanded row; cells outside the bounds count as the nearest bound.

    Attributes:
        column: The public facts.
        alike: Whether all kinds of missing are one.
    """

    column: Column
    alike: bool = False

    @property
    def domain(self) -> IntegerDomain:
        """The integers that stand for its values."""
        return with_states(self.column, self.missing)

    @property
    def missing(self) -> int:
        """The number of states of a missing cell."""
        return min(1, self.column.missing_states) if self.alike else self.column.missing_states

    @property
    def zero(self) -> bool:
        """Whether zero is a state of its own."""
        return self.column.zero_apart

    @property
    def states(self) -> int:
        """The number of states of a cell beside the numbers in order."""
        return int(self.zero) + self.missing

    def _present(self, values: Floats) -> Floats:
        """Return the nearest values of the column; for NaN the lower bound, which then stands for nothing."""
        return self.column.snap(np.nan_to_num(values, nan=self.column.known_grid[0]))

    def compact(self, column: pd.Series[Any]) -> list[Floats]:
        """Return cells as one array a part."""
        return self.coded(self.column.kept_numbers(column))

    def restore(self, values: Sequence[Floats], rng: np.random.Generator | None) -> pd.Series[Any]:
        """Return cells of the schema's own dtype from one array a part."""
        return self.column.kept_cells(self.numbers(values, rng))

    def _with_holes(self, codes: Floats, values: Floats, first: float) -> Floats:
        """Return codes, those of missing cells from ``first`` on, one a state."""
        if not self.missing:
            return codes
        states = np.minimum(hole_states(values), self.missing - 1)
        return np.where(np.isnan(values), first + states, codes)

    @abstractmethod
    def coded(self, values: Floats) -> list[Floats]:
        """Return numbers, NaN for missing, as one array a part."""

    @abstractmethod
    def numbers(self, values: Sequence[Floats], rng: np.random.Generator | None) -> Floats:
        """Return numbers, NaN for missing, from one array a part."""


@dataclass(frozen=True, kw_only=True)
class BinnedEncoding(NumericEncoding):
    """A number as the code of its public bin: drawn uniformly from it, or its middle without ``rng``."""

    edges: Floats

    @property
    def parts(self) -> tuple[Part, ...]:
        """One softmax block: the bins, then zero, then missing."""
        return (Part(kind="softmax", size=len(self.edges) - 1 + self.states, states=self.states),)

    @override
    def coded(self, values: Floats) -> list[Floats]:
        snapped = self._present(values)  # half a unit from any edge, whose last bits are others
        begun = np.searchsorted(self.edges - self.column.unit / 2, snapped, side="right")
        codes = np.clip(begun - 1, 0, len(self.edges) - 2)
        if self.zero:
            codes = np.where(snapped == 0, len(self.edges) - 1, codes)
        return [self._with_holes(codes.astype(np.float64), values, self.parts[0].size - self.missing)]

    @override
    def numbers(self, values: Sequence[Floats], rng: np.random.Generator | None) -> Floats:
        codes = values[0].astype(np.int64)
        bins = np.clip(codes, 0, len(self.edges) - 2)
        left, right = self.edges[bins], self.edges[bins + 1]
        share = np.full(len(codes), 0.5) if rng is None else rng.random(len(codes))
        if unit := self.column.unit:
            numbers = left + np.floor(share * np.rint((right - left) / unit)) * unit
        else:
            numbers = np.minimum(left + share * (right - left), np.nextafter(right, left))
        numbers = self.column.snap(numbers)
        if self.zero:
            numbers = np.where(numbers == 0, self._beside_zero(left, right), numbers)
            numbers = np.where(codes == len(self.edges) - 1, 0.0, numbers)
        return holes_beyond(numbers, codes, self.parts[0].size - self.missing)

    def _beside_zero(self, left: Floats, right: Floats) -> Floats:
        """Return, for each bin around zero, a value of it that is not zero, where it has one."""
        unit = self.column.unit
        above = right / 2 if unit == 0 else np.where(unit < right, unit, 0.0)
        below = left / 2 if unit == 0 else np.where(left < 0, -unit, 0.0)
        return self.column.snap(np.where(above > 0, above, below))


@dataclass(frozen=True, kw_only=True)
class MinMaxEncoding(NumericEncoding):
    """A number as its place between the bounds, with zero and missing as states of their own."""

    @property
    def parts(self) -> tuple[Part, ...]:
        """A softmax over (value, zero, missing) where there is a choice, then the scalar."""
        scalar = Part(kind="tanh", size=1)
        if not self.states:
            return (scalar,)
        return Part(kind="softmax", size=1 + self.states, states=self.states), scalar

    @override
    def coded(self, values: Floats) -> list[Floats]:
        snapped, (lower, upper) = self._present(values), self.column.known_grid
        scaled = 2 * (snapped - lower) / max(upper - lower, self.column.unit) - 1
        if len(self.parts) == 1:
            return [scaled]
        state = np.zeros(len(values))
        if self.zero:
            state = np.where(snapped == 0, 1.0, state)
        state = self._with_holes(state, values, self.parts[0].size - self.missing)
        return [state, np.where(state == 0, scaled, 0.0)]

    @override
    def numbers(self, values: Sequence[Floats], rng: np.random.Generator | None) -> Floats:
        scaled, (lower, upper) = np.clip(values[-1], -1, 1), self.column.known_grid
        numbers = self.column.snap(lower + (scaled + 1) / 2 * (upper - lower))
        if len(self.parts) == 2:
            state = values[0].astype(np.int64)
            if self.zero:
                numbers = np.where(state == 1, 0.0, numbers)
            numbers = holes_beyond(numbers, state, self.parts[0].size - self.missing)
        return numbers


@dataclass(frozen=True, kw_only=True)
class IntegerEncoding(NumericEncoding):
    """A number as the integer that stands for it, in whole steps from zero; missing is the step after the last."""

    @property
    def parts(self) -> tuple[Part, ...]:
        """One number."""
        return (Part(kind="steps", size=1, states=self.missing),)

    @override
    def coded(self, values: Floats) -> list[Floats]:
        domain = self.domain
        steps = np.clip(np.rint(self._present(values) / domain.unit), domain.first, domain.last)
        return [self._with_holes(steps, values, domain.last + 1.0)]

    @override
    def numbers(self, values: Sequence[Floats], rng: np.random.Generator | None) -> Floats:
        domain, steps = self.domain, values[0]
        numbers = self.column.snap(np.clip(steps, domain.first, domain.last) * domain.unit)
        return holes_beyond(numbers, steps, domain.last + 1)


def number_encoding(
    column: Column, numerics: Numerics, bins: int, *, alike: bool = False
) -> BinnedEncoding | MinMaxEncoding | IntegerEncoding:
    """Return the encoding of a number, in at most so many bins, scaled, or in steps."""
    lower, upper = column.known_grid
    if numerics == "steps":
        return IntegerEncoding(column=column, alike=alike)
    if numerics == "scaled" and upper > lower:
        return MinMaxEncoding(column=column, alike=alike)
    return BinnedEncoding(column=column, edges=column.bins(bins).edges, alike=alike)


def holes_beyond(numbers: Floats, codes: Floats | Ints, first: float) -> Floats:
    """Return ``(N,)`` numbers, missing with the state of their code where that is at least ``first``."""
    beyond = codes >= first
    if not beyond.any():
        return numbers
    states = np.where(beyond, codes - first, 0)
    return np.where(beyond, tag_holes(states), numbers)


def with_states(column: Column, states: int) -> IntegerDomain:
    """Return a column's domain with an integer for each state of a missing cell."""
    domain = column.integer_domain()
    if domain.nullable == states:
        return domain
    return replace(domain, nullable=states, undeclared_empty=column.undeclared_empty)


def snapped_numbers(column: Column, values: Floats) -> Floats:
    """Return what each number counts as: the nearest value, and NaN only where a cell may be missing."""
    if column.may_be_missing:
        return column.snapped(values)
    return column.snap(np.nan_to_num(values, nan=column.known_grid[0]))
