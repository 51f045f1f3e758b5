"""Leaves that clearly hold rows, cut into single and round values, or evenly."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from doublure.methods.statistics.binning import noise_maximum
from doublure.methods.statistics.tables.leaves import ColumnLeaves, Floats, Ints
from doublure.private.queries.axes import Intervals

_PARTS = 256
"""Most parts of a leaf in which a value repeats that is not round."""


@dataclass(frozen=True, kw_only=True, eq=False)
class CutCells:
    """Leaves of a column that hold rows, cut into parts.

    Attributes:
        starts: ``(s,)`` first value of each part.
        ends: ``(s,)`` last value of each part.
    """

    starts: Ints
    ends: Ints

    @classmethod
    def of_full(cls, leaves: ColumnLeaves, counts: Floats, noise: float) -> CutCells:
        """Cut public cells of several values whose counts noise alone hardly reaches, into single and round values.

        The threshold decides where single values are looked for, and not how many rows there are.

        Args:
            leaves: The column's public cells.
            counts: ``(n,)`` their noisy counts.
            noise: Standard deviation of each.
        """
        clear = counts > noise_maximum(len(counts)) * noise
        return cls._of(leaves, clear, leaves.domain.split_cell)

    @classmethod
    def evenly(cls, leaves: ColumnLeaves, chosen: npt.NDArray[np.bool_]) -> CutCells:
        """Cut leaves in which a value repeats that is not round, into parts of equal width."""
        return cls._of(leaves, chosen, _even_parts)

    @classmethod
    def _of(cls, leaves: ColumnLeaves, chosen: npt.NDArray[np.bool_], cut: Callable[[int, int], Ints]) -> CutCells:
        starts, ends, none = leaves.starts, leaves.ends, np.zeros(0, dtype=np.int64)
        cells = np.flatnonzero(chosen & (ends > starts))
        parts = [cut(int(starts[cell]), int(ends[cell])) for cell in cells]
        last = [np.append(part[1:] - 1, ends[cell]) for part, cell in zip(parts, cells, strict=True)]
        return cls(starts=np.concatenate([none, *parts]), ends=np.concatenate([none, *last]))

    def axis(self, leaves: ColumnLeaves) -> Intervals:
        """Return the axis of the parts; all other values count in a last cell."""
        elsewhere = len(self.starts)
        others = np.unique(np.append(self.ends + 1, leaves.domain.first))
        others = others[~np.isin(others, self.starts)]
        starts = np.concatenate([self.starts, others])
        cells = np.concatenate([np.arange(elsewhere), np.full(len(others), elsewhere)])
        order = np.argsort(starts, kind="stable")
        return Intervals(
            part=leaves.part, starts=starts[order].astype(np.float64), cells=cells[order], size=elsewhere + 1
        )


def _even_parts(first: int, last: int) -> Ints:
    return np.arange(first, last + 1, -(-(last - first + 1) // _PARTS))
