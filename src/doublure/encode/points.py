"""Two numbers that are one place on a map, as a place of a Z-order curve (Morton 1966).

Each axis is cut in halves, again and again: a run of 4^k whole numbers is a square, so that rows are looked for down a
quadtree, and a town is found as a town and not as two intervals, whose crossings lie in the sea. Of a region, squares
without any of it are left out of the curve.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, ClassVar, TypeAlias

import numpy as np
from typing_extensions import override

from doublure.encode.numeric import Floats, Part, holes_beyond
from doublure.schema import Schema
from doublure.schema.columns import Column, IntegerDomain
from doublure.schema.missing_states import hole_states
from doublure.schema.rules.point import inside
from doublure.schema.rules.rule import Rings
from doublure.support.mixing import Marks

Ints: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"
Squares: TypeAlias = "np.ndarray[Any, np.dtype[np.bool_]]"

_SQUARES = 5
"""Halvings of each axis that public cells begin with: a thousand squares, as many as rows are located in."""
_PARTS = 16
"""Squares that a full one is cut into: two more halvings of each axis."""
_SINGLE = 64
"""A square of so many places is cut into single ones."""
_MOST = 26
"""Halvings at most: 52 binary digits together, which float64 holds."""
_FREE = 20
"""Halvings of an axis without a grid: a millionth of its bounds."""
_SAMPLED = 8
"""Places along each side of a square at which it is compared with a region."""


@dataclass(frozen=True, kw_only=True)
class CurveDomain(IntegerDomain):
    """Places of a Z-order curve, with a quadtree above them.

    Attributes:
        square: Places in a square of the first cells.
    """

    divisible: ClassVar[bool] = True
    smooth: ClassVar[bool] = False

    ordered: bool = True
    square: int = 1

    @override
    def starts(self) -> Ints:
        return np.arange(0, self.last + 1, self.square)

    @override
    def parts(self, first: int, last: int) -> Ints:
        width = last - first + 1
        if width <= _SINGLE:
            return np.arange(first, last + 1)
        step = 4 ** int(math.log2(width // _PARTS) // 2)
        return np.unique(np.concatenate([[first], np.arange(-(-first // step), last // step + 1) * step]))


@dataclass(frozen=True, kw_only=True)
class PointEncoding:
    """Two columns as one whole number.

    Attributes:
        columns: Both, by name, with their public facts.
        rings: The corners of a public region's rings; none for the whole map.
    """

    columns: Mapping[str, Column]
    rings: Rings

    @cached_property
    def _both(self) -> tuple[Column, ...]:
        return tuple(self.columns.values())

    @property
    def parts(self) -> tuple[Part, ...]:
        """One whole number."""
        return (Part(kind="steps", size=1),)

    @cached_property
    def domain(self) -> CurveDomain:
        """The places of the curve."""
        last, column = len(self._kept) * self._square - 1, self._both[0]
        return CurveDomain(
            first=0, last=last, nullable=column.missing_states, undeclared_empty=column.undeclared_empty,
            square=self._square,
        )  # fmt: skip

    @cached_property
    def _halvings(self) -> int:
        """Halvings of each axis: each value of a grid has a place of its own, as far as float64 holds them."""
        found = [
            _FREE if not column.unit else math.ceil(math.log2(self._span(column) / column.unit))
            for column in self._both
        ]
        return min(_MOST, max(_SQUARES + 1, *found))

    @property
    def _square(self) -> int:
        return int(4 ** (self._halvings - _SQUARES))

    @staticmethod
    def _span(column: Column) -> float:
        lower, upper = column.known_grid
        return max(upper - lower + column.unit, np.finfo(float).tiny)

    @cached_property
    def _kept(self) -> Ints:
        """``(squares,)`` the first cells of the curve, those of the region alone."""
        every = np.arange(4**_SQUARES)
        if not self.rings:
            return every
        x, y = _split(every.astype(np.uint64), _SQUARES)
        found = every[_of_region(self.rings, *(self._axis(at) for at in (0, 1)))[x, y]]
        return found if len(found) else every

    def _axis(self, at: int) -> tuple[float, float]:
        """Return where an axis begins, and how long it is."""
        column = self._both[at]
        return column.known_grid[0] - column.unit / 2, self._span(column)

    @cached_property
    def _ranks(self) -> Ints:
        """``(4^squares,)`` the place among kept squares of the nearest one to each."""
        x, y = _split(np.arange(4**_SQUARES, dtype=np.uint64), _SQUARES)
        far = (x[:, None] - x[self._kept]) ** 2 + (y[:, None] - y[self._kept]) ** 2
        return np.asarray(far.argmin(axis=1), dtype=np.int64)

    def coded(self, numbers: Sequence[Floats]) -> list[Floats]:
        """Return the places ``(N,)`` of two numbers, each row's by itself; a point that misses one is missing.

        Args:
            numbers: Of each column, ``(N,)``; a missing one is a NaN that has its state.
        """
        sides = 2**self._halvings
        both = []
        for at, values in enumerate(numbers):
            begin, span = self._axis(at)
            known = np.nan_to_num(values, nan=self._both[at].known_grid[0])
            both.append(np.clip(np.floor((known - begin) / span * sides), 0, sides - 1).astype(np.uint64))
        curve = _joined(both[0], both[1], self._halvings).astype(np.int64)
        found = (self._ranks[curve // self._square] * self._square + curve % self._square).astype(np.float64)
        if self.domain.nullable:
            first, second = numbers
            state = hole_states(np.where(np.isnan(first), first, second))
            found = np.where(np.isnan(first) | np.isnan(second), self.domain.last + 1.0 + state, found)
        return [found]

    @property
    def halvings(self) -> int:
        """The number of times that each axis is cut in halves."""
        return self._halvings

    @property
    def pieces(self) -> tuple[tuple[float, float, float], ...]:
        """The begin of each axis, its length, and the number that stands for a missing one."""
        return tuple((*self._axis(at), self._both[at].known_grid[0]) for at in (0, 1))

    @property
    def squares(self) -> tuple[int, Mapping[int, int]]:
        """Places in a square of the first cells, and the rank of each square; no ranks where all are kept in order."""
        ranks = dict(enumerate(self._ranks.tolist())) if len(self._kept) < 4**_SQUARES else {}
        return self._square, ranks

    def numbers(self, values: Sequence[Floats]) -> tuple[Floats, Floats]:
        """Return the two numbers ``(N,)`` of places; a missing point is a NaN that has its state, twice."""
        given = values[0].astype(np.int64)
        codes = np.clip(given, 0, self.domain.last)
        curve = self._kept[codes // self._square] * self._square + codes % self._square
        x, y = _split(curve.astype(np.uint64), self._halvings)
        first, second = (
            holes_beyond(self._number(at, axis), given, self.domain.last + 1) for at, axis in enumerate((x, y))
        )
        return first, second

    def _number(self, at: int, axis: Ints) -> Floats:
        begin, span = self._axis(at)
        return self._both[at].snap(begin + (axis + 0.5) / 2**self._halvings * span)

    def key_names(self, first: Ints, last: Ints) -> list[str]:
        """Return each run of places as the squares that it is made of, by their ends.

        Args:
            first: ``(N,)`` the first place of each run.
            last: ``(N,)`` its last.
        """
        runs = [[*self._squares(low, high)] for low, high in zip(first.tolist(), last.tolist(), strict=True)]
        ends = np.array([end for run in runs for square in run for end in square], dtype=np.float64)
        sides = [
            column.interval_texts([(float(low), float(high)) for low, high in numbers.reshape(-1, 2)])
            for column, numbers in zip(self._both, self.numbers([ends]), strict=True)
        ]
        names = map(" × ".join, zip(*sides, strict=True))
        return [" | ".join(itertools.islice(names, len(run))) for run in runs]

    def _squares(self, first: int, last: int) -> Iterator[tuple[int, int]]:
        """Yield the first and the last place of the largest squares that make up a run."""
        while first <= last:
            size = 1
            while first % (4 * size) == 0 and first + 4 * size - 1 <= last and 4 * size <= self._square:
                size *= 4
            yield first, first + size - 1
            first += size


def points_in(schema: Schema) -> Mapping[str, PointEncoding]:
    """Return the columns that are coded together with another, by the name of the first."""
    return {
        rule.names[0]: PointEncoding(columns={name: schema.columns[name] for name in rule.names}, rings=rule.rings)
        for rule in schema.constraints
        if rule.beside
    }


def _joined(x: Marks, y: Marks, halvings: int) -> Marks:
    """Return the digits of two numbers in turn, the second's first."""
    found = np.zeros_like(x)
    for digit in range(halvings):
        at, one = np.uint64(digit), np.uint64(1)
        found |= ((x >> at) & one) << np.uint64(2 * digit)
        found |= ((y >> at) & one) << np.uint64(2 * digit + 1)
    return found


def _split(places: Marks, halvings: int) -> tuple[Ints, Ints]:
    """Return the two numbers of places on the curve."""
    x, y = np.zeros_like(places), np.zeros_like(places)
    for digit in range(halvings):
        at, one = np.uint64(digit), np.uint64(1)
        x |= ((places >> np.uint64(2 * digit)) & one) << at
        y |= ((places >> np.uint64(2 * digit + 1)) & one) << at
    return x.astype(np.int64), y.astype(np.int64)


@lru_cache(maxsize=16)
def _of_region(region: Rings, first: tuple[float, float], second: tuple[float, float]) -> Squares:
    """Return which squares ``(x, y)`` have a part of a region, at the places that are compared or by a corner."""
    side = 2**_SQUARES
    offsets = (np.arange(side * _SAMPLED) + 0.5) / (side * _SAMPLED)
    x, y = np.meshgrid(first[0] + offsets * first[1], second[0] + offsets * second[1], indexing="ij")
    sampled = inside(region, x.ravel(), y.ravel()).reshape(side, _SAMPLED, side, _SAMPLED)
    within: Squares = np.asarray(sampled.any(axis=(1, 3)))
    corners = np.array([corner for ring in region for corner in ring], dtype=np.float64)
    places = np.stack([(corners[:, at] - axis[0]) / axis[1] * side for at, axis in enumerate((first, second))])
    known = ((places >= 0) & (places < side)).all(axis=0)
    own = places[:, known].astype(np.int64)
    within[own[0], own[1]] = True
    return within
