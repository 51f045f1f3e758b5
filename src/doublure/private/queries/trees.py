"""Trees of counts: the numbers of records left and right of every cut, for many numbers at once.

The codes of a number are the leaves of a binary tree. For an inner node the difference between its left and its right
half is released, and for the root the number of records. A share of records below a cut is then the sum of a few
noisy differences, where a sum of noisy cells would be one of hundreds.

Sensitivity: a record lies in one leaf of each tree of its own group, and so changes there the root and one difference a
level, by the whole number that the level weighs. The group follows from the record alone. A unit with at most m records
moves the answer by m times the sum of all trees' weights in L1, and by m times the root of the sum of their squares in
L2. The answer is whole, and so is its noise.

==========================================  =========================================================================
edge case                                   what happens
==========================================  =========================================================================
no record at all                            zeros
a number that is missing                    counts in no node of its tree
a number that is no code, or not finite     counts as the nearest code; what is not finite counts in no node
a group that is none                        refused: the records' own function says which
rows that meet in the function of groups    refused before a record is looked at
a unit with more records than planned       refused before a record is looked at
==========================================  =========================================================================
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from doublure.errors import SettingError
from doublure.private.queries.query import Answer, Sensitivity, require_everyone, require_records
from doublure.support.arrays import Floats, Ints

if TYPE_CHECKING:
    from torch import Tensor

    from doublure.private.records import PrivateRecords

GroupOf: TypeAlias = "Callable[[Tensor, Tensor | None], Tensor]"
"""``(body (B, D…), condition (B, K) or None) -> (B,)`` int64 in ``[0, groups)``, row i from record i alone."""

_ROWS = 4096


@dataclass(frozen=True, kw_only=True, eq=False)
class CountTrees:
    """A tree of counts for each number of a record's body, within each group of records.

    Attributes:
        leaves: ``(numbers, codes)`` the leaf of each code of each number, in ``[0, 2^depth)``; -1: is not counted.
        weights: ``(numbers, 1 + depth)`` whole numbers: of the root, and of each level of differences, coarse to fine.
        unit: The worth of one of them.
        max_records: m, the most records of a unit.
        group: Maps records to their groups; None: there is one group.
        groups: Number of groups.
    """

    leaves: Ints
    weights: Ints
    unit: float
    max_records: int
    group: GroupOf | None = None
    groups: int = 1

    @property
    def depth(self) -> int:
        """Number of levels of differences."""
        return int(self.weights.shape[1]) - 1

    @property
    def sensitivity(self) -> Sensitivity:
        """Sensitivity of the root and one difference per level of each tree, m times."""
        return self._moved(self.weights)

    def _moved(self, weights: Ints) -> Sensitivity:
        moved = [int(weight) for weight in weights.ravel()]
        each = self.max_records * self.unit
        return Sensitivity(l1=each * sum(moved), l2=each * math.sqrt(sum(weight**2 for weight in moved)))

    def refuse_unfit(self, records: PrivateRecords) -> None:
        """Refuse leaves out of range, units with too many records, and groups that mix rows."""
        from doublure.private.independence import refuse_meeting_rows

        require_records(records.most_records, self.max_records)
        body, condition = records.empty_lot
        numbers = math.prod(body.shape[1:])
        if self.leaves.shape[0] != numbers or self.weights.shape[0] != numbers:
            raise SettingError("must have a row for each number", field="leaves", remedy=f"give {numbers}")
        if self.leaves.min() < -1 or self.leaves.max() >= 2**self.depth or self.weights.min() < 0:
            raise SettingError("lie outside the tree", field="leaves", remedy=f"give 0 to {2**self.depth - 1}, or -1")
        if self.group is not None:
            refuse_meeting_rows(self.group, body, condition, field="group")

    def answer(self, records: PrivateRecords, *, sample_rate: float) -> Answer:
        """Return roots and differences of all trees, flat int64, in steps of :attr:`unit`."""
        require_everyone(sample_rate)
        numbers, size = len(self.leaves), 2**self.depth
        cells = np.zeros(self.groups * numbers * size, dtype=np.int64)
        place = np.arange(numbers)
        for body, condition in records.expanded(_ROWS):
            values = body.flatten(1).cpu().numpy()
            known = np.isfinite(values)
            codes = np.clip(np.where(known, values, 0), 0, self.leaves.shape[1] - 1).astype(np.int64)
            leaf = np.where(known, self.leaves[place, codes], -1)
            group = self._groups(body, condition)
            flat = (group[:, None] * numbers + place) * size + leaf
            cells += np.bincount(flat[leaf >= 0], minlength=len(cells))
        total = differences(cells.reshape(self.groups, numbers, size))
        weighted = [level * self.weights[:, place, None] for place, level in enumerate(total)]
        flat = np.concatenate([level.ravel() for level in weighted])
        return Answer(total=flat, sensitivity=self._moved(self.weights), unit=self.unit)

    def _groups(self, body: Tensor, condition: Tensor | None) -> Ints:
        if self.group is None:
            return np.zeros(len(body), dtype=np.int64)
        found: Ints = self.group(body, condition).cpu().numpy().astype(np.int64)
        if found.size and not (found.min() >= 0 and found.max() < self.groups):
            raise SettingError("gives a group that is none", field="group", remedy="count from 0 to below groups")
        return found

    def split(self, numbers: npt.ArrayLike) -> list[Floats]:
        """Return the root ``(groups, numbers, 1)`` and each level's differences ``(groups, numbers, 2^level)``.

        They are counts again; a level that weighs nothing is zeros.

        Args:
            numbers: In the order of an answer, in its units times :attr:`unit`.
        """
        flat, found, first = np.asarray(numbers, dtype=np.float64), [], 0
        for place in range(1 + self.depth):
            nodes = 2 ** max(0, place - 1)
            shape = (self.groups, len(self.leaves), nodes)
            level = flat[first : first + math.prod(shape)].reshape(shape)
            weight = self.weights[:, place, None] * self.unit
            found.append(np.where(weight > 0, level / np.where(weight > 0, weight, 1.0), 0.0))
            first += math.prod(shape)
        return found


def differences(cells: Ints) -> list[Ints]:
    """Return the root ``(…, 1)`` and the differences ``(…, 2^level)`` of leaves ``(…, 2^depth)``, coarse to fine."""
    found = []
    while cells.shape[-1] > 1:
        found.append(cells[..., ::2] - cells[..., 1::2])
        cells = cells[..., ::2] + cells[..., 1::2]
    return [cells, *found[::-1]]
