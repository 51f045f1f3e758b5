"""Numbers of a row with a bound of that row's own: a gap has to end by the last day.

A node's leaves are cut to what fits: the groups are drawn by the share of them that does, and the value within it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from doublure.networks.tree_tables import LEAST, Floats, Ints, Mask, TreeNode


@dataclass(frozen=True, kw_only=True, eq=False)
class RoomLeft:
    """The largest number that fits, row by row.

    Attributes:
        part: Its place in a row.
        most: ``(N,)`` the largest number of each row.
    """

    part: int
    most: Floats

    def of(self, rows: Ints) -> RoomLeft:
        """Return the same of some rows."""
        return RoomLeft(part=self.part, most=self.most[rows])

    def widths(self, node: TreeNode) -> Ints:
        """Return how many values of each leaf of a node fit ``(N, n)``."""
        ends = np.minimum(node.starts + node.widths - 1, self.most[:, None])
        found: Ints = np.maximum(ends - node.starts + 1, 0).astype(np.int64)
        return found

    def mass(self, node: TreeNode) -> Floats:
        """Return the mass of each leaf that fits ``(N, n)``."""
        most, base, whole = self.most[:, None], node.mass + LEAST, node.leaf_weights
        fits = node.starts + node.widths - 1 <= most
        found: Floats = np.where(fits, base * whole / whole, 0.0)
        row, leaf = np.nonzero(~fits & (node.starts <= most))  # leaves that the bound cuts: one of a row
        widths = (np.floor(self.most[row]) - node.starts[leaf] + 1).astype(np.int64)
        found[row, leaf] = base[leaf] * node.weights(node.starts[leaf], widths).sum(1) / whole[leaf]
        return found


def fitting(rows: Floats, rooms: Sequence[RoomLeft]) -> Mask:
    """Return which rows pass none of their bounds."""
    found = np.ones(len(rows), dtype=np.bool_)
    for room in rooms:
        found &= rows[:, room.part] <= room.most
    return found
