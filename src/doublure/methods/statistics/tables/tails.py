"""Rows where none were seen: how many lie beyond what was clear, and where.

The thin tail of a number that is mostly zero lies over many public cells, none of which is clear by itself. Regions
without a clear cell are counted in blocks of cells instead, a quarter of a decade each where cells are of one ratio.
All of it is post-processing of those counts. Blocks that are clear, alone or with their neighbours, keep what was
counted of them. What the others hold together follows from all rows; where it lies is averaged over all intervals of
blocks, by how well each explains the counts (a Bayesian model average), and nearer is likelier before.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from doublure.methods.statistics.tables.finding import constant_pieces
from doublure.methods.statistics.tables.leaves import Floats, Ints, Leaves

_CLEAR = 4.0
"""Deviations of a piece's noise that are no chance in any of a table's blocks."""
_KEPT = 0.1
"""The least share of its variance that is left of a run whose count says nothing."""
_FARTHER = 0.562
"""How much less likely it is, before anything is counted, that rows reach one block farther.

With a quarter of a decade a block (10^-1/4), no farther decade says more of a column's mean than a nearer one."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Blank:
    """Blocks in a row that are not clear.

    Attributes:
        groups: ``(b,)`` which of a column's own groups.
        before: Whether rows were seen before them, on the scale.
        after: And after them.
    """

    groups: Ints
    before: bool
    after: bool

    def shares(self, counts: Floats, rows: float, noise: float) -> Floats:
        """Return ``(b,)`` of the rows that blocks hold together, each one's share.

        Args:
            counts: ``(b,)`` their noisy counts.
            rows: How many they hold.
            noise: Standard deviation of each count.
        """
        size = len(counts)
        first, end = np.triu_indices(size)
        sums, length = np.concatenate([[0.0], np.cumsum(counts)]), end + 1.0 - first
        explained = rows * (sums[end + 1] - sums[first] - rows / 2) / (length * noise**2)
        reach = np.zeros(len(first)) if self.before == self.after else end if self.before else size - 1 - first
        logs = explained + math.log(_FARTHER) * reach
        each = np.exp(logs - logs.max()) / length
        steps = np.bincount(first, each, size + 1) - np.bincount(end + 1, each, size + 1)
        found: Floats = np.maximum(np.cumsum(steps)[:size], 0.0)
        found /= found.sum()
        return found


def blank_runs(leaves: Leaves, own: Ints, counts: Floats, noise: float) -> tuple[list[Blank], npt.NDArray[np.bool_]]:
    """Return the runs of blocks that are not clear, and which groups are blocks that are.

    Args:
        leaves: Of a column, marked where nothing was seen.
        own: ``(leaves,)`` its groups.
        counts: ``(groups,)`` what was counted of them.
        noise: Standard deviation of each.
    """
    first = np.unique(own, return_index=True)[1]
    body = len(counts) - leaves.whole.nullable
    block = np.zeros(len(counts), dtype=bool)
    block[:body] = leaves.empty[first[:body]] > 0
    clear = np.zeros(len(counts), dtype=bool)
    for run in _runs(block):
        piece = constant_pieces(counts[run] / noise)
        total, blocks = np.bincount(piece, counts[run]), np.bincount(piece)
        clear[run] = (total > _CLEAR * noise * np.sqrt(blocks))[piece]
    blanks = [Blank(groups=run, before=run[0] > 0, after=run[-1] < body - 1) for run in _runs(block & ~clear)]
    return blanks, clear


def joined_blanks(blanks: list[Blank], counts: Floats, variances: Floats) -> tuple[Floats, Floats, Ints]:
    """Return counts and variances with each run as one group, no farther from 0 than its noise lets one believe.

    Returns:
        ``(g,)`` counts, ``(g,)`` variances, and of each of the groups before which one it is in.
    """
    into = np.arange(len(counts))
    for blank in blanks:
        into[blank.groups] = blank.groups[0]
    into = np.unique(into, return_inverse=True)[1].reshape(-1)
    counts, variances = np.bincount(into, counts), np.bincount(into, variances)
    for group in {int(into[blank.groups[0]]) for blank in blanks}:
        kept = max(0.0, 1 - variances[group] / max(counts[group] ** 2, 1e-12))
        counts[group] *= kept
        variances[group] *= max(kept, _KEPT)
    return counts, variances, into


def _runs(marked: npt.NDArray[np.bool_]) -> list[Ints]:
    """Return the places of each run of what is marked."""
    parts = np.split(np.arange(len(marked)), np.flatnonzero(np.diff(marked.astype(int)) != 0) + 1)
    return [part for part in parts if len(part) and marked[part[0]]]
