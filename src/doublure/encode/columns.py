"""Encode one column as codes and scalars, and decode it.

A column is compact first (one small number a cell), expanded to blocks only for the rows in hand:

=============  =====================================  =====================================
column         compact                                expanded
=============  =====================================  =====================================
discrete       code of the value                      softmax block (value …, missing)
number, bins   code of the public bin                 softmax block (bin …, zero, missing)
number, scaled state and value in [-1, 1]             softmax block (value, zero, missing)
                                                      if there is a choice, and a tanh scalar
=============  =====================================  =====================================

Numbers: :mod:`doublure.encode.numeric`. A number that ``at_most`` keeps above another is coded likewise, as its gap
above that one: :mod:`doublure.encode.differences`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
import pandas as pd

from doublure.encode.differences import Gap, gaps_of
from doublure.encode.numeric import BinnedEncoding as BinnedEncoding
from doublure.encode.numeric import Floats as Floats
from doublure.encode.numeric import IntegerEncoding as IntegerEncoding
from doublure.encode.numeric import MinMaxEncoding as MinMaxEncoding
from doublure.encode.numeric import Numerics as Numerics
from doublure.encode.numeric import Part as Part
from doublure.encode.numeric import holes_beyond, number_encoding, with_states
from doublure.encode.points import PointEncoding, points_in
from doublure.errors import SchemaError
from doublure.schema import Schema
from doublure.schema.columns import Column, IntegerDomain
from doublure.schema.missing_states import hole_states

_GUESSED_VALUES = 50


class ColumnEncoding(Protocol):
    """One column's two-way mapping."""

    @property
    def column(self) -> Column:
        """The public facts."""

    @property
    def parts(self) -> tuple[Part, ...]:
        """The column's blocks, in order."""

    @property
    def domain(self) -> IntegerDomain:
        """The integers that stand for the column's values."""

    def compact(self, column: pd.Series[Any]) -> list[Floats]:
        """Return one array ``(N,)`` a part: codes for a softmax, values for a scalar."""

    def restore(self, values: Sequence[Floats], rng: np.random.Generator | None) -> pd.Series[Any]:
        """Return a column of the schema's own dtype from one array a part."""


@dataclass(frozen=True, kw_only=True)
class ListedEncoding:
    """A column with a list of values, as places in it.

    Attributes:
        column: The public facts.
        alike: Whether all kinds of missing are one.
    """

    column: Column
    alike: bool = False

    @property
    def missing(self) -> int:
        """The number of states of a missing cell."""
        return min(1, self.column.missing_states) if self.alike else self.column.missing_states

    @property
    def parts(self) -> tuple[Part, ...]:
        """One softmax block: the values in the schema's order, then the states of missing."""
        missing = self.missing
        return (Part(kind="softmax", size=len(self.column.domain) + missing, states=missing),)

    @property
    def domain(self) -> IntegerDomain:
        """The places of its values."""
        return with_states(self.column, self.missing)

    @property
    def cells(self) -> Floats:
        """Each code's cell as a number: the code, NaN for missing."""
        codes = np.arange(self.parts[0].size, dtype=np.float64)
        return holes_beyond(codes, codes, len(self.column.domain))

    def compact(self, column: pd.Series[Any]) -> list[Floats]:
        """Map labels to codes; what is not in the list goes to ``other``, or, where there is none, to the first value.

        The loader has refused unlisted values where the schema names no ``other``; a cell that is missing although
        the schema was *told by a noisy count* that none is, counts as the first value.
        """
        codes, other = self.column.kept_numbers(column), self.column.fallback
        fallback = 0.0 if other is None else self.column.number_of(other)
        states = np.minimum(hole_states(codes), max(0, self.missing - 1))
        known = column.isna() | (hole_states(codes) > 0)
        missing = len(self.column.domain) + states if self.missing else fallback
        return [np.where(np.isnan(codes), np.where(known, missing, fallback), codes)]

    def restore(self, values: Sequence[Floats], rng: np.random.Generator | None) -> pd.Series[Any]:
        """Return a categorical over the schema's values (booleans as ``bool`` or ``boolean``)."""
        codes = values[0].astype(np.int64)
        numbers = holes_beyond(np.where(codes < 0, np.nan, codes), codes, len(self.column.domain))
        return self.column.kept_cells(numbers)


RowEncoding: TypeAlias = ColumnEncoding | Gap | PointEncoding


def encoding(column: Column, numerics: Numerics, bins: int, *, alike: bool = False) -> ColumnEncoding:
    """Return the encoding of one column, all kinds of missing one where they count alike."""
    if not column.modelled:
        raise SchemaError("a column that is made anew is not encoded")
    if column.listed:
        return ListedEncoding(column=column, alike=alike)
    return number_encoding(column, numerics, bins, alike=alike)


def encodings(schema: Schema, names: Iterable[str], numerics: Numerics, bins: int) -> dict[str, RowEncoding]:
    """Return the encodings of the columns named, every fact of which is known."""
    gaps = gaps_of(schema, numerics, bins)
    points = points_in(schema) if numerics == "steps" else {}
    return {
        name: gaps.get(name) or points.get(name) or encoding(schema.columns[name], numerics, bins) for name in names
    }


def integer_domain(schema: Schema, name: str) -> IntegerDomain:
    """Return the integers that a column of a table is counted by, which are those of its gap where it has one.

    Raises:
        SchemaError: A fact of it is not known yet.
    """
    return encodings(schema, [name], "steps", 1)[name].domain


def estimated_width(schema: Schema, numerics: Numerics, bins: int) -> int:
    """Return how wide an encoded row will be, guessing where a fact is still to be learned; for a plan's estimates."""
    width, gaps = 0, gaps_of(schema, numerics, bins)
    for name, column in schema.columns.items():
        if not column.modelled or name in schema.derived:
            continue
        try:
            width += sum(part.size for part in (gaps.get(name) or encoding(column, numerics, bins)).parts)
        except SchemaError:
            width += bins
        if column.listed and not column.domain:
            width += _GUESSED_VALUES
    return width
