"""The counts that buy a schema's facts: units, missing cells, bounds, categories, class shares.

Sensitivity: a unit adds at most m cells (its records, times the cells that each of them has), each of which falls in
one cell of a public partition at most: the counts move by m in L1 at most. The number of units moves by exactly 1 with
each owner that has records of one.

==========================================  =======================================================
edge case                                   what happens
==========================================  =======================================================
no record at all                            zeros
a cell that is missing                      is counted by the query for missing cells alone
a category held by a single unit            is counted, and released only if its noisy count is large
10⁶ distinct categories                     about 10 s, 0.5 GB
==========================================  =======================================================
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pandas as pd
from typing_extensions import override

from doublure import noisy_counts
from doublure.errors import SchemaError
from doublure.noisy_counts import CandidateGrid
from doublure.private.queries.query import Answer, Sensitivity, require_everyone, require_records
from doublure.schema import Question, Schema
from doublure.schema.columns import Column, label

IntArray = npt.NDArray[np.int64]


class FactRecords(Protocol):
    """Records in the form that facts read: :class:`doublure.data.records.Loaded`, or a part of a table on disk."""

    @property
    def n_units(self) -> int:
        """Number of units whose first record is in this partition. Private."""

    @property
    def most_records(self) -> int:
        """Largest number of records of a unit, over all partitions. Private."""

    def cells(self, column: str, fact: str) -> pd.Series[Any]:
        """Return the cells that a fact of a column reads. Private."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Fact(ABC):
    """A question's counts, and the answer that their noisy form gives.

    Attributes:
        question: The fact and its ε.
        max_records: The most records of a unit.
        moved: The L1 distance that a unit moves the counts.
    """

    question: Question
    max_records: int
    moved: int

    @property
    def sensitivity(self) -> Sensitivity:
        """Sensitivity where all cells of a unit may be counted in one."""
        return Sensitivity(l1=float(self.moved), l2=float(self.moved))

    @property
    def counted_values(self) -> tuple[Any, ...]:
        """The known values that are counted; empty where the counts are of something else."""
        return ()

    def refuse_unfit(self, records: FactRecords) -> None:
        """Refuse units with more records than planned."""
        require_records(records.most_records, self.max_records)

    def answer(self, records: FactRecords, *, sample_rate: float) -> Answer:
        """Return the counts."""
        require_everyone(sample_rate)
        return Answer(total=self.counted(records), sensitivity=self.sensitivity)

    @abstractmethod
    def counted(self, records: FactRecords) -> Any:
        """Return the exact counts. Private."""

    @abstractmethod
    def read(self, noisy: Any) -> Any:
        """Return the fact that noisy counts give, in the schema's form."""


class Units(Fact):
    """The number of units."""

    @override
    def counted(self, records: FactRecords) -> IntArray:
        return np.array([records.n_units])

    @override
    def read(self, noisy: IntArray) -> int:
        return max(1, int(noisy[0]))


@dataclass(frozen=True, kw_only=True, eq=False)
class _ColumnFact(Fact):
    """Counts of one column's cells.

    Attributes:
        column: Its schema.
        name: Its name.
    """

    column: Column
    name: str

    def cells(self, records: FactRecords) -> pd.Series[Any]:
        """Return the column's cells. Private."""
        return records.cells(self.name, self.question.fact)

    def labelled(self, records: FactRecords) -> list[tuple[str, int]]:
        """Return labels with their numbers of cells, those that mean missing left out. Private."""
        holes = self.column.missing_texts[1:]  # of several kinds; one is no label
        return [(name, count) for name, count in count_labels(self.cells(records)) if name not in holes]


class Missing(_ColumnFact):
    """The number of missing cells of a column."""

    @override
    def counted(self, records: FactRecords) -> IntArray:
        return np.array([int(self.cells(records).isna().sum())])

    @override
    def read(self, noisy: IntArray) -> bool:
        return noisy_counts.is_seen(int(noisy[0]), epsilon=self.question.epsilon, max_records=self.moved)


class Categories(_ColumnFact):
    """The number of cells of each text."""

    @override
    def counted(self, records: FactRecords) -> dict[str, int]:
        return {name: count for name, count in self.labelled(records) if count}

    @override
    def read(self, noisy: Mapping[str, int]) -> tuple[str, ...]:
        found = sorted(noisy, key=lambda name: (-noisy[name], name))
        return tuple(found) or (str(self.column.fallback),)


class Bounds(_ColumnFact):
    """The number of cells in each part of a public grid."""

    @property
    def grid(self) -> CandidateGrid:
        """The column's public partition.

        Raises:
            SchemaError: Its points are not in order, so that a cell's place would depend on others: a public fault.
        """
        grid = self.column.partition(self.question.magnitude)
        if not (np.diff(grid.points) > 0).all():
            remedy = "put the points of the type's partition in ascending order, each once"
            raise SchemaError("has a partition that is not in order", field=self.question.path, remedy=remedy)
        return grid

    @override
    def counted(self, records: FactRecords) -> IntArray:
        cells = self.cells(records).dropna()
        if self.column.clock is not None and cells.dtype != np.float64:
            moments = cells.to_numpy().astype(f"datetime64[{self.column.clock}]").astype(np.int64)
            return count_on_grid(moments.astype(np.float64), self.grid)
        return count_on_grid(cells.to_numpy(dtype=np.float64), self.grid)

    @override
    def read(self, noisy: IntArray) -> tuple[Any, Any]:
        first, last = self.grid.bounds(noisy, epsilon=self.question.epsilon, max_records=self.moved)
        return self.column.bought(first, last)


@dataclass(frozen=True, kw_only=True, eq=False)
class Shares(_ColumnFact):
    """The number of cells of each value of a known domain.

    Attributes:
        domain: The values.
    """

    domain: tuple[Any, ...]

    @property
    @override
    def counted_values(self) -> tuple[Any, ...]:
        return self.domain

    @override
    def counted(self, records: FactRecords) -> IntArray:
        return self.placed(self.labelled(records))

    def placed(self, labelled: Iterable[tuple[str, int]]) -> IntArray:
        """Return the number of cells ``(values,)`` of each value, from those of labels."""
        places = {label(value): code for code, value in enumerate(self.domain)}
        fallback = places.get(label(self.column.fallback), -1)
        counts = np.zeros(len(self.domain), dtype=np.int64)
        for name, count in labelled:
            if (place := places.get(name, fallback)) >= 0:
                counts[place] += count
        return counts

    @override
    def read(self, noisy: IntArray) -> dict[str, float]:
        found = noisy_counts.shares(noisy, epsilon=self.question.epsilon, max_records=self.moved)
        return {label(value): float(share) for value, share in zip(self.domain, found, strict=True)}


def count_on_grid(values: npt.NDArray[np.float64], grid: CandidateGrid) -> IntArray:
    """Return the number of values in each cell of a grid ``(cells,)``; NaN is left out, and values are clamped."""
    points = grid.points
    clamped = np.clip(values[~np.isnan(values)], points[0], points[-1])
    right = np.searchsorted(points, clamped)  # points[right - 1] < value <= points[right]
    cell = 2 * right - (points[right] != clamped)
    return np.bincount(cell, minlength=grid.cells)


def count_labels(cells: pd.Series[Any]) -> list[tuple[str, int]]:
    """Return labels with their numbers of cells, in the order of the labels; missing cells are left out."""
    if isinstance(cells.dtype, pd.CategoricalDtype):
        codes = cells.cat.codes.to_numpy()
        found = np.bincount(codes[codes >= 0], minlength=len(cells.cat.categories)).tolist()
        counts = Counter[str]()
        for value, count in zip(cells.cat.categories, found, strict=True):
            counts[label(value)] += count
        return sorted(counts.items())
    return sorted(Counter(label(cell) for cell in cells.dropna()).items())


def values_path(path: str) -> str:
    """Return the path of the values that the shares of a path belong to."""
    return f"{path.removesuffix('.shares')}.values"


def make_fact_query(question: Question, schema: Schema, learned: Mapping[str, Any]) -> Fact:
    """Return the query for a question.

    Args:
        question: The fact and its ε.
        schema: The public facts.
        learned: Earlier answers: class shares need the values.
    """
    most = schema.most_records
    if question.column is None:
        return Units(question=question, max_records=most, moved=schema.max_silos)
    name, column = question.column, schema.columns[question.column]
    moved = most * schema.cells_of(name, question.fact)
    if question.fact == "shares":
        domain = _domain(column, learned.get(values_path(question.path)))
        return Shares(question=question, max_records=most, moved=moved, column=column, name=name, domain=domain)
    kinds: dict[str, type[Missing | Categories | Bounds]] = {"missing": Missing, "values": Categories, "bounds": Bounds}
    return kinds[question.fact](question=question, max_records=most, moved=moved, column=column, name=name)


def _domain(column: Column, found: tuple[str, ...] | None) -> tuple[Any, ...]:
    if found is None:
        return tuple(column.domain)
    return found if column.fallback is None or column.fallback in found else (*found, column.fallback)
