"""ENCODE: rows of a table as whole numbers, one a column, counted and drawn cell by cell, and back.

A category's number is its index in the list; that of a number, a date or a moment is its value in steps of the column's
unit; missing is the number after the last. No values are binned here: they are grouped where they are counted
(:mod:`doublure.methods.statistics.tables`). Constraints are kept as :class:`TableEncoder` keeps them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd
from typing_extensions import override

from doublure.encode.cell_names import axis_name, interval_names
from doublure.encode.columns import ListedEncoding, RowEncoding
from doublure.encode.numeric import IntegerEncoding
from doublure.encode.table import TableEncoder
from doublure.errors import InputError
from doublure.networks.steering import IntRanges
from doublure.schema import ResolvedSchema
from doublure.schema.allowed import Allowed
from doublure.support.arrays import Floats, Ints
from doublure.support.tensors import Array, as_array

if TYPE_CHECKING:
    from torch import Tensor

    from doublure.networks.steering import IntRanges


class TableValues(TableEncoder):
    """The two-way mapping between a table and ``(N, P)`` float64 whole numbers.

    Args:
        schema: Every fact known.

    Attributes:
        columns: The name of each part's column, in order; conditions last.
        domains: Of each part the integers that stand for its values.
    """

    of_wholes: ClassVar[bool] = True

    def __init__(self, schema: ResolvedSchema) -> None:
        super().__init__(schema, numerics="steps", bins=1)
        self.domains = tuple(self._encodings[name].domain for name in self.columns)
        self.width = len(self.domains)
        self.body_shape = (self.width,)

    def encoding(self, name: str) -> RowEncoding:
        """Return the two-way mapping of a column that has a part."""
        return self._encodings[name]

    def axis(self, part: int, starts: Floats, cells: Ints, size: int) -> tuple[str, tuple[str, ...]]:
        """Return what a part of a record is called, and each cell that its values are counted in.

        Args:
            part: Its place.
            starts: ``(n,)`` where intervals of its values begin.
            cells: ``(n,)`` the cell of each.
            size: How many cells.
        """
        column = self.columns[part]
        own = self._encodings[column]
        return axis_name(column, own), interval_names(own, starts, cells, size)

    @override
    def compact(self, frame: pd.DataFrame) -> Array:
        return self._compact(frame)

    @override
    def expand(self, compact: Any) -> Any:
        return compact

    @override
    def split(self, rows: Any) -> tuple[Any, None]:
        return rows, None

    @override
    def decode(self, rows: Array | Tensor, rng: np.random.Generator | None = None) -> pd.DataFrame:
        """Return rows of the schema's own dtypes, every constraint kept.

        Args:
            rows: ``(N, P)``; what stands behind (the conditions that were asked for) is not looked at.
            rng: Lets rows that break a rule draw cells from those that keep it: each number is one value.

        Raises:
            InputError: A number is not finite.
        """
        values = as_array(rows)[:, : self.width].astype(np.float64)
        if not np.isfinite(values).all():
            raise InputError("has values that are not finite", field="generator", remedy="fit again")
        ends = [(own.first, own.last + own.nullable) for own in self.domains]
        return self._decoded([np.clip(values[:, at], *ends[at]) for at in range(self.width)], rng)

    @override
    def uniform(self, n: int, rng: np.random.Generator) -> Array:
        values = [rng.integers(own.first, own.last + own.nullable + 1, n) for own in self.domains]
        return np.stack(values, axis=1).astype(np.float64)

    @override
    def spans(self, asked: Mapping[str, Allowed]) -> Mapping[int, IntRanges]:
        """Return the numbers that parts of a row must have, so that its record has the cells asked for.

        A column that is measured from another does not tell.
        """
        found: dict[int, IntRanges] = {}
        for name, cells in asked.items():
            root, followed = self._rules.root_of(name)
            encoding = self._encodings.get(root)
            own = None if encoding is None else spans_of(encoding, cells, None if root == name else followed)
            if own is not None:
                part = self.columns.index(root)
                found[part] = common(found[part], own) if part in found else own
        return found

    @override
    def may_change(self, name: str) -> bool:
        return self._rules.root_of(name)[0] in self._rules.movable


_MOST_LISTED = 100_000
"""Values of a number that others follow from are looked at one by one."""


def spans_of(own: RowEncoding, cells: Allowed, followed: Callable[[Floats], Floats] | None = None) -> IntRanges | None:
    """Return the numbers of a column's cells; None where they cannot be told.

    Args:
        own: How the column becomes whole numbers.
        cells: What is asked for.
        followed: Of which column it is asked for, where that follows from this one.
    """
    if isinstance(own, ListedEncoding):
        values = own.cells
        return _listed(np.flatnonzero(cells.has(values if followed is None else followed(values))))
    if not isinstance(own, IntegerEncoding):
        return None
    first, last, unit, hole = own.domain.first, own.domain.last, own.domain.unit, own.domain.nullable
    if followed is not None:
        if last - first > _MOST_LISTED:
            return None
        numbers = own.numbers([np.arange(first, last + 1 + hole, dtype=np.float64)], None)
        return _listed(first + np.flatnonzero(cells.has(followed(numbers))))
    found = {round(value / unit) for value in cells.values}
    if cells.missing:
        found |= {last + 1 + state for state in cells.states or range(hole) if state < hole}
    if cells.span is not None:
        low, high = cells.span[0] - cells.slack, cells.span[1] + cells.slack
        span = max(first, math.ceil(low / unit - _ROUNDED)), min(last, math.floor(high / unit + _ROUNDED))
        beside = _listed(np.array(sorted(step for step in found if not span[0] <= step <= span[1])))
        return (*((span,) if span[0] <= span[1] else ()), *beside)
    return _listed(np.array(sorted(found)))


_ROUNDED = 1e-9


def common(one: IntRanges, other: IntRanges) -> IntRanges:
    """Return the numbers that are in both."""
    both = ((max(low, least), min(high, most)) for low, high in one for least, most in other)
    return tuple((low, high) for low, high in both if low <= high)


def _listed(numbers: np.ndarray[tuple[int], np.dtype[np.int64]]) -> IntRanges:
    """Return ascending numbers as ranges."""
    groups = np.split(numbers, np.flatnonzero(np.diff(numbers) != 1) + 1)
    return tuple((int(group[0]), int(group[-1])) for group in groups if len(group))
