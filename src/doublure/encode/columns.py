"""How one column becomes codes and scalars, and back.

A column is compact first (one small number a cell), expanded to blocks only for the rows in hand:

=============  =====================================  =====================================
column         compact                                expanded
=============  =====================================  =====================================
discrete       code of the value                      softmax block (value …, missing)
number, bins   code of the public bin                 softmax block (bin …, zero, missing)
number, scaled state and value in [-1, 1]             softmax block (value, zero, missing)
                                                      if there is a choice, and a tanh scalar
=============  =====================================  =====================================

Bins come from the schema's bounds alone: one a value where a column has few, otherwise of equal width, or of equal
ratio where a non-negative number spans three orders of magnitude from 1 or its lower bound (incomes, counts).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
import pandas as pd

from doublure.encode.grids import Floats as Floats
from doublure.encode.grids import Grid as Grid
from doublure.encode.grids import grid_of as grid_of
from doublure.errors import SchemaError
from doublure.schema import Schema
from doublure.schema.columns import (
    BooleanColumn,
    Column,
    DateColumn,
    DatetimeColumn,
    DiscreteColumn,
    IdColumn,
    IntegerColumn,
    NumberColumn,
    OrdinalColumn,
    label,
)

Numerics: TypeAlias = Literal["bins", "scaled"]

_GUESSED_VALUES = 50


@dataclass(frozen=True, kw_only=True)
class Part:
    """One block of an expanded row: a softmax over ``size`` codes, or one scalar in [-1, 1]."""

    kind: Literal["softmax", "tanh"]
    size: int


class ColumnEncoding(Protocol):
    """One column's two-way mapping."""

    @property
    def parts(self) -> tuple[Part, ...]:
        """The column's blocks, in order."""

    def compact(self, column: pd.Series[Any]) -> list[Floats]:
        """Return one array ``(N,)`` a part: codes for a softmax, values for a scalar."""

    def restore(self, values: Sequence[Floats], rng: np.random.Generator | None) -> pd.Series[Any]:
        """Return a column of the schema's own dtype from one array a part."""


@dataclass(frozen=True, kw_only=True)
class Discrete:
    """A category, ordinal or boolean."""

    column: DiscreteColumn

    @property
    def parts(self) -> tuple[Part, ...]:
        """One softmax block: the values in the schema's order, then missing."""
        return (Part(kind="softmax", size=len(self.column.domain) + self.column.may_be_missing),)

    def compact(self, column: pd.Series[Any]) -> list[Floats]:
        """Map labels to codes; what is not in the list goes to ``other``, or, where there is none, to the first value.

        The loader has refused unlisted values where the schema names no ``other``; a cell that is missing although
        the schema was *told by a noisy count* that none is, counts as the first value.
        """
        categories = column.astype("category")
        labels = [label(value) for value in categories.cat.categories]
        place = {label(value): code for code, value in enumerate(self.column.domain)}
        fallback = place[label(self.column.other)] if self.column.other is not None else 0
        missing = len(self.column.domain) if self.column.may_be_missing else fallback
        table = np.array([*(place.get(text, fallback) for text in labels), missing], dtype=np.float64)
        return [table[categories.cat.codes.to_numpy()]]

    def restore(self, values: Sequence[Floats], rng: np.random.Generator | None) -> pd.Series[Any]:
        """Return a categorical over the schema's values (booleans as ``bool`` or ``boolean``)."""
        codes = values[0].astype(np.int64)
        codes = np.where(codes >= len(self.column.domain), -1, codes)
        if isinstance(self.column, BooleanColumn):
            if not self.column.may_be_missing:
                return pd.Series(codes == 1)
            return pd.Series(pd.arrays.BooleanArray(codes == 1, codes < 0))
        return pd.Series(pd.Categorical.from_codes(codes, dtype=self._dtype))

    @cached_property
    def _dtype(self) -> pd.CategoricalDtype:
        """The schema's values as they are; as labels where no column of a table could hold them together."""
        values = list(self.column.domain)
        kinds = {"number" if type(value) in (int, float) else type(value).__name__ for value in values}
        large = any(isinstance(value, int) and abs(value) >= 2**63 for value in values)
        categories = [label(value) for value in values] if len(kinds) > 1 or large else values
        return pd.CategoricalDtype(categories, ordered=isinstance(self.column, OrdinalColumn))


@dataclass(frozen=True, kw_only=True)
class Number:
    """What both encodings of a number share: reading numbers, and writing the schema's dtype."""

    column: NumberColumn
    grid: Grid

    @property
    def zero(self) -> bool:
        """Whether zero is a state of its own."""
        return bool(getattr(self.column, "zero_inflated", False))

    def read(self, column: pd.Series[Any]) -> Floats:
        """Return numbers, NaN for missing: days or seconds since 1970 for dates and moments."""
        if isinstance(self.column, (DateColumn, DatetimeColumn)):
            if isinstance(column.dtype, pd.DatetimeTZDtype):
                column = column.dt.tz_convert(getattr(self.column, "timezone", None)).dt.tz_localize(None)
            unit = "D" if isinstance(self.column, DateColumn) else "s"
            moments = column.to_numpy().astype(f"datetime64[{unit}]")
            return np.where(np.isnat(moments), np.nan, moments.astype(np.int64).astype(np.float64))
        return column.to_numpy(dtype=np.float64, na_value=np.nan)

    def write(self, values: Floats) -> pd.Series[Any]:
        """Return numbers on the grid, NaN for missing, as a column of the schema's own dtype."""
        column, missing = self.column, np.isnan(values)
        if isinstance(column, (DateColumn, DatetimeColumn)):
            unit = "D" if isinstance(column, DateColumn) else "s"
            moments = np.where(missing, 0, values).astype(np.int64).astype(f"datetime64[{unit}]")
            moments = moments.astype("datetime64[s]")
            moments[missing] = np.datetime64("NaT", "s")
            return self._placed(pd.Series(moments))
        if isinstance(column, IntegerColumn):
            whole = np.where(missing, 0, np.rint(values)).astype(np.int64)
            return pd.Series(pd.arrays.IntegerArray(whole, missing)) if column.may_be_missing else pd.Series(whole)
        return pd.Series(values if column.precision is None else np.round(values, column.precision))

    def _placed(self, moments: pd.Series[Any]) -> pd.Series[Any]:
        """Put moments in the column's time zone.

        An hour that stands twice when clocks go back is the second one; one that is left out when they go forward is
        the moment after it. Both keep the order of any two moments.
        """
        zone = getattr(self.column, "timezone", None)
        if zone is None:
            return moments
        summer = np.zeros(len(moments), dtype=bool)
        placed: pd.Series[Any] = moments.dt.tz_localize(zone, ambiguous=summer, nonexistent="shift_forward")
        return placed


@dataclass(frozen=True, kw_only=True)
class Binned(Number):
    """A number as the code of its public bin."""

    edges: Floats

    @property
    def parts(self) -> tuple[Part, ...]:
        """One softmax block: the bins, then zero, then missing."""
        return (Part(kind="softmax", size=len(self.edges) - 1 + self.zero + self.column.may_be_missing),)

    def compact(self, column: pd.Series[Any]) -> list[Floats]:
        """Map numbers to bins; outside the bounds counts as the nearest bound."""
        values = self.read(column)
        snapped = self.grid.snap(np.nan_to_num(values, nan=self.grid.lower))
        codes = np.clip(np.searchsorted(self.edges, snapped, side="right") - 1, 0, len(self.edges) - 2)
        if self.zero:
            codes = np.where(snapped == 0, len(self.edges) - 1, codes)
        if self.column.may_be_missing:
            codes = np.where(np.isnan(values), self.parts[0].size - 1, codes)
        return [codes.astype(np.float64)]

    def restore(self, values: Sequence[Floats], rng: np.random.Generator | None) -> pd.Series[Any]:
        """Return a number drawn uniformly from the bin, or the bin's middle without ``rng``."""
        codes = values[0].astype(np.int64)
        bins = np.clip(codes, 0, len(self.edges) - 2)
        left, right = self.edges[bins], self.edges[bins + 1]
        share = np.full(len(codes), 0.5) if rng is None else rng.random(len(codes))
        if self.grid.unit:
            numbers = left + np.floor(share * np.rint((right - left) / self.grid.unit)) * self.grid.unit
        else:
            numbers = np.minimum(left + share * (right - left), np.nextafter(right, left))
        numbers = self.grid.snap(numbers)
        if self.zero:
            numbers = np.where(numbers == 0, self._beside_zero(left, right), numbers)
            numbers = np.where(codes == len(self.edges) - 1, 0.0, numbers)
        if self.column.may_be_missing:
            numbers = np.where(codes == self.parts[0].size - 1, np.nan, numbers)
        return self.write(numbers)

    def _beside_zero(self, left: Floats, right: Floats) -> Floats:
        """Return, for each bin around zero, a value of it that is not zero, where it has one."""
        unit = self.grid.unit
        above = right / 2 if unit == 0 else np.where(unit < right, unit, 0.0)
        below = left / 2 if unit == 0 else np.where(left < 0, -unit, 0.0)
        return self.grid.snap(np.where(above > 0, above, below))


@dataclass(frozen=True, kw_only=True)
class Scaled(Number):
    """A number as its place between the bounds, with zero and missing as states of their own."""

    @property
    def parts(self) -> tuple[Part, ...]:
        """A softmax over (value, zero, missing) where there is a choice, then the scalar."""
        states = 1 + self.zero + self.column.may_be_missing
        scalar = Part(kind="tanh", size=1)
        return (scalar,) if states == 1 else (Part(kind="softmax", size=states), scalar)

    def compact(self, column: pd.Series[Any]) -> list[Floats]:
        """Scale to [-1, 1]; outside the bounds counts as the nearest bound."""
        values = self.read(column)
        snapped = self.grid.snap(np.nan_to_num(values, nan=self.grid.lower))
        scaled = 2 * (snapped - self.grid.lower) / max(self.grid.upper - self.grid.lower, self.grid.unit) - 1
        if len(self.parts) == 1:
            return [scaled]
        state = np.zeros(len(values))
        if self.zero:
            state = np.where(snapped == 0, 1.0, state)
        if self.column.may_be_missing:
            state = np.where(np.isnan(values), self.parts[0].size - 1, state)
        return [state, np.where(state == 0, scaled, 0.0)]

    def restore(self, values: Sequence[Floats], rng: np.random.Generator | None) -> pd.Series[Any]:
        """Return the number at that place, on the column's grid."""
        scaled = np.clip(values[-1], -1, 1)
        numbers = self.grid.snap(self.grid.lower + (scaled + 1) / 2 * (self.grid.upper - self.grid.lower))
        if len(self.parts) == 2:
            state = values[0].astype(np.int64)
            if self.zero:
                numbers = np.where(state == 1, 0.0, numbers)
            if self.column.may_be_missing:
                numbers = np.where(state == self.parts[0].size - 1, np.nan, numbers)
        return self.write(numbers)


def encoding(column: Column, numerics: Numerics, bins: int) -> ColumnEncoding:
    """Return the encoding of one column."""
    if isinstance(column, IdColumn):
        raise SchemaError("an id is not encoded")
    if not column.numeric:
        return Discrete(column=column)  # type: ignore[arg-type]
    grid = grid_of(column)  # type: ignore[arg-type]
    if numerics == "scaled" and grid.upper > grid.lower:
        return Scaled(column=column, grid=grid)  # type: ignore[arg-type]
    edges = grid.edges(bins, without_zero=bool(getattr(column, "zero_inflated", False)))
    return Binned(column=column, grid=grid, edges=edges)  # type: ignore[arg-type]


def estimated_width(schema: Schema, numerics: Numerics, bins: int) -> int:
    """Return how wide an encoded row will be, guessing where a fact is still to be learned; for a plan's estimates."""
    width = 0
    for name, column in schema.columns.items():
        if isinstance(column, IdColumn) or name in schema.derived:
            continue
        try:
            width += sum(part.size for part in encoding(column, numerics, bins).parts)
        except SchemaError:
            width += bins
        if column.discrete and not column.domain:  # type: ignore[union-attr]
            width += _GUESSED_VALUES
    return width
