"""Numbers of a row with a bound of that row's own: a gap has to end by the last day.

A node's leaves are cut to what fits: the groups are drawn by the share of them that does, and the value within it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from doublure.networks.tree_tables import LEAST, Floats, TreeNode
from doublure.support.arrays import Ints, Mask


@dataclass(frozen=True, kw_only=True, eq=False)
class RoomLeft:
    """The numbers that fit, row by row.

    Attributes:
        part: Their place in a row.
        most: ``(N,)`` the largest number of each row.
        least: ``(N,)`` the least one; None: there is no bound.
    """

    part: int
    most: Floats
    least: Floats | None = None

    def of(self, rows: Ints) -> RoomLeft:
        """Return the same of some rows."""
        least = None if self.least is None else self.least[rows]
        return RoomLeft(part=self.part, most=self.most[rows], least=least)

    def cut(self, node: TreeNode, leaf: Ints) -> tuple[Ints, Ints]:
        """Return where each row's leaf ``(N,)`` begins, and how many values it has, cut to what fits."""
        return self._cut(node, np.arange(len(leaf)), leaf)

    def mass(self, node: TreeNode) -> Floats:
        """Return the mass of each leaf that fits ``(N, n)``."""
        most, base, whole = self.most[:, None], node.mass + LEAST, node.leaf_weights
        ends = node.starts + node.widths - 1
        fits, some = ends <= most, node.starts <= most
        if self.least is not None:
            fits, some = fits & (node.starts >= self.least[:, None]), some & (ends >= self.least[:, None])
        found: Floats = np.where(fits, base * whole / whole, 0.0)
        row, leaf = np.nonzero(~fits & some)  # leaves that a bound cuts: one or two of a row
        found[row, leaf] = base[leaf] * node.weights(*self._cut(node, row, leaf)).sum(1) / whole[leaf]
        return found

    def fit(self, rows: Floats) -> Mask:
        """Return which rows ``(N, parts)`` pass no bound."""
        found: Mask = rows[:, self.part] <= self.most
        return found if self.least is None else found & (rows[:, self.part] >= self.least)

    def _cut(self, node: TreeNode, row: Ints, leaf: Ints) -> tuple[Ints, Ints]:
        starts, ends = node.starts[leaf], node.starts[leaf] + node.widths[leaf] - 1
        if self.least is not None:
            starts = np.maximum(starts, np.ceil(self.least[row])).astype(np.int64)
        widths: Ints = (np.minimum(ends, np.floor(self.most[row])) - starts + 1).astype(np.int64)
        return starts, np.maximum(widths, 0)


def fitting(rows: Floats, rooms: Sequence[RoomLeft]) -> Mask:
    """Return which rows pass none of their bounds."""
    found = np.ones(len(rows), dtype=np.bool_)
    for room in rooms:
        found &= room.fit(rows)
    return found
