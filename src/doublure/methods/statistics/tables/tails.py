"""Rows where none were seen: how many lie beyond what was clear, and where.

The thin tail of a number that is mostly zero lies over many public cells, none of which is clear by itself. Regions
without a clear cell are counted in blocks of cells instead, a quarter of a decade each where cells are of one ratio.
All of it is post-processing of those counts. Blocks that are clear, alone or with their neighbours, keep what was
counted of them. Of the others one expects before that they go on as rows decrease towards them, block by block in the
same ratio, and counts move what they hold together away from that as far as noise does not explain it. Where what is
more than expected lies is averaged over all intervals of blocks, by how well each explains the counts (a Bayesian model
average), and nearer is likelier before.

Where a number has so few values that none was looked for, each value that is not clear is such a block.
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
_LEAST = 1e-12
_KEPT = 0.1
"""The least share of its variance that is left of a run whose count says nothing."""
_SLOWEST, _FASTER = 0.4, 0.7
"""At most this share of a block's rows is expected in the next one, and in each after it this share of that share.

A log-normal tail falls ever faster on a scale of decades. What falls slower holds enough rows to be clear."""
_EXPLAINED = 2.0
"""How many times its own variance a run's noise explains."""
_FARTHER = 0.562
"""How much less likely it is, before anything is counted, that rows reach one block farther.

With a quarter of a decade a block (10^-1/4), no farther decade says more of a column's mean than a nearer one."""
_FARTHER_YET = _FARTHER**2
"""The same where rows decrease towards them: a farther decade says less."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Blank:
    """Blocks in a row that are not clear.

    Attributes:
        groups: ``(b,)`` which of a column's own groups.
        expected: ``(b,)`` rows that each holds if they go on decreasing as they do towards it.
        before: Whether rows were seen before them, on the scale.
        after: And after them.
    """

    groups: Ints
    expected: Floats
    before: bool
    after: bool

    def held(self, counts: Floats, rows: float, noise: float) -> Floats:
        """Return ``(b,)`` how many of the rows that blocks hold together each has.

        Args:
            counts: ``(b,)`` their noisy counts.
            rows: How many they hold.
            noise: Standard deviation of each count.
        """
        before = float(self.expected.sum())
        if rows <= before:
            less: Floats = self.expected * (rows / max(before, _LEAST))
            return less
        found: Floats = self.expected + (rows - before) * self.shares(counts - self.expected, rows - before, noise)
        return found

    def shares(self, counts: Floats, rows: float, noise: float) -> Floats:
        """Return ``(b,)`` of rows that are more than expected, each block's share.

        Args:
            counts: ``(b,)`` their noisy counts, less what was expected.
            rows: How many they are.
            noise: Standard deviation of each count.
        """
        size = len(counts)
        first, end = np.triu_indices(size)
        sums, length = np.concatenate([[0.0], np.cumsum(counts)]), end + 1.0 - first
        explained = rows * (sums[end + 1] - sums[first] - rows / 2) / (length * noise**2)
        reach = np.zeros(len(first)) if self.before == self.after else end if self.before else size - 1 - first
        farther = _FARTHER_YET if self.expected.any() else _FARTHER
        logs = explained + math.log(farther) * reach
        each = np.exp(logs - logs.max()) / length
        steps = np.bincount(first, each, size + 1) - np.bincount(end + 1, each, size + 1)
        found: Floats = np.maximum(np.cumsum(steps)[:size], 0.0)
        found /= found.sum()
        return found


def blank_runs(leaves: Leaves, own: Ints, counts: Floats, noise: float) -> tuple[list[Blank], npt.NDArray[np.bool_]]:
    """Return the runs of blocks that are not clear, and which groups are blocks that are.

    Args:
        leaves: Of a column, marked where nothing was seen; unmarked where every value is a group.
        own: ``(leaves,)`` its groups.
        counts: ``(groups,)`` what was counted of them.
        noise: Standard deviation of each.
    """
    first = np.unique(own, return_index=True)[1]
    body = len(counts) - leaves.domain.nullable
    block = np.zeros(len(counts), dtype=bool)
    block[:body] = leaves.empty[first[:body]] > 0 if len(leaves.empty) else True
    clear = np.zeros(len(counts), dtype=bool)
    for run in _runs(block):
        piece = constant_pieces(counts[run] / noise)
        total, blocks = np.bincount(piece, counts[run]), np.bincount(piece)
        clear[run] = (total > _CLEAR * noise * np.sqrt(blocks))[piece]
    rows = np.where(clear, counts, 0.0)[:body]
    if len(leaves.empty):
        rows += np.bincount(own[: len(leaves.starts)], leaves.smooth, body) * ~block[:body]
    wide = np.bincount(own[: len(leaves.starts)], leaves.cell_shares, body)
    return [_blank(run, rows, wide) for run in _runs(block & ~clear)], clear


def _blank(run: Ints, rows: Floats, wide: Floats) -> Blank:
    """Return a run of blocks, with what is expected of them.

    Args:
        run: Which groups.
        rows: ``(body,)`` rows of all groups where some were seen, without what stands out.
        wide: ``(body,)`` how many public cells each spans.
    """
    before, after = bool(run[0] > 0), bool(run[-1] < len(rows) - 1)
    expected = np.zeros(len(run))
    if before != after:
        own = wide[run] if before else wide[run][::-1]
        sides = (rows[: run[0]][::-1], wide[: run[0]][::-1]) if before else (rows[run[-1] + 1 :], wide[run[-1] + 1 :])
        near, far = (_rows_within(*sides, start, own[0]) for start in (0.0, own[0]))
        if near > 0 and far > 0:
            expected = _continued(near, near / far, np.append(0.0, np.cumsum(own)) / own[0])
            expected = expected if before else expected[::-1]
    return Blank(groups=run, expected=expected, before=before, after=after)


def _rows_within(rows: Floats, wide: Floats, start: float, size: float) -> float:
    """Return how many rows lie in some cells of groups in a row, evenly within each group."""
    edges = np.append(0.0, np.cumsum(wide))
    first, last = np.interp([start, start + size], edges, np.append(0.0, np.cumsum(rows)))
    return float(last - first)


def _continued(near: float, ratio: float, edges: Floats) -> Floats:
    """Return ``(b,)`` the rows of blocks that go on from ``near`` rows, decreasing ever faster.

    Args:
        near: Rows of the last block before them.
        ratio: To those of the block before that.
        edges: ``(b + 1,)`` where the blocks end, the first of size 1.
    """
    steps = np.arange(math.ceil(edges[-1]))
    each = near * np.cumprod(min(_FASTER * ratio, _SLOWEST) * _FASTER**steps)
    found: Floats = np.diff(np.interp(edges, np.arange(len(each) + 1), np.append(0.0, np.cumsum(each))))
    return found


def joined_blanks(blanks: list[Blank], counts: Floats, variances: Floats) -> tuple[Floats, Floats, Ints]:
    """Return counts and variances with each run as one group, no farther from what is expected than noise lets one be.

    Returns:
        ``(g,)`` counts, ``(g,)`` variances, and of each of the groups before which one it is in.
    """
    into = np.arange(len(counts))
    for blank in blanks:
        into[blank.groups] = blank.groups[0]
    into = np.unique(into, return_inverse=True)[1].reshape(-1)
    counts, variances = np.bincount(into, counts), np.bincount(into, variances)
    for blank in blanks:
        group, expected = into[blank.groups[0]], blank.expected.sum()
        more = counts[group] - expected
        kept = max(0.0, 1 - _EXPLAINED * variances[group] / max(more**2, _LEAST))
        counts[group] = expected + kept * more
        variances[group] *= max(kept, _KEPT)
    return counts, variances, into


def _runs(marked: npt.NDArray[np.bool_]) -> list[Ints]:
    """Return the places of each run of what is marked."""
    parts = np.split(np.arange(len(marked)), np.flatnonzero(np.diff(marked.astype(int)) != 0) + 1)
    return [part for part in parts if len(part) and marked[part[0]]]
