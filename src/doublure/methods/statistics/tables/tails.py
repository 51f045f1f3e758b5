"""Estimation of rows in regions without a significant cell, such as a distribution's tails.

The thin tail of a number that is mostly zero covers many public cells, none of which is significant by itself. Regions
without a significant cell are counted in blocks of cells instead, a quarter of a decade each if cells have a constant
ratio. All of this is post-processing of those counts:

- Blocks that are significant, alone or with their neighbours, keep their counts.
- The prior for the others is that rows go on decreasing as they do towards them. The total of a run of blocks moves
  away from the prior as far as noise does not explain the difference.
- Rows beyond the prior are placed by a Bayesian model average over all intervals of blocks, weighted by how well each
  explains the counts; a nearer interval is more likely a priori.

If a number has so few values that its rows were not located, each value that is not significant is such a block.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from doublure.methods.statistics.binning import constant_pieces
from doublure.methods.statistics.tables.leaves import ColumnLeaves, Floats, Ints

_CLEAR = 4.0
"""Deviations of a piece's noise that are significant in any of a table's blocks."""
_LEAST = 1e-12
_KEPT = 0.1
"""Least share of its variance that shrinkage leaves a run."""
_SLOWEST, _FASTER = 0.4, 0.7
"""Largest expected ratio of a block's rows to those of the block before, and the factor of that ratio a block.

A log-normal tail falls ever faster on a scale of decades. A slower tail holds enough rows to be significant."""
_EXPLAINED = 2.0
"""Squared difference, over the run's variance, that noise explains."""
_FARTHER = 0.562
"""Prior odds that rows reach one block farther.

With a quarter of a decade a block (10^-1/4), no decade contributes more to a column's mean than a nearer one."""
_FARTHER_YET = _FARTHER**2
"""Prior odds where rows decrease towards the blocks: a farther decade then contributes less."""


@dataclass(frozen=True, kw_only=True, eq=False)
class BlankRun:
    """A run of blocks that are not significant.

    Attributes:
        groups: ``(b,)`` their places among a column's own groups.
        expected: ``(b,)`` rows of each by the prior, a continued decrease.
        before: Whether rows were found before the run, on the scale.
        after: Whether rows were found after the run.
    """

    groups: Ints
    expected: Floats
    before: bool
    after: bool

    def held(self, counts: Floats, rows: float, noise: float) -> Floats:
        """Return the rows ``(b,)`` of each block, given their total.

        Args:
            counts: ``(b,)`` their noisy counts.
            rows: Their total.
            noise: Standard deviation of each count.
        """
        before = float(self.expected.sum())
        if rows <= before:
            less: Floats = self.expected * (rows / max(before, _LEAST))
            return less
        found: Floats = self.expected + (rows - before) * self.shares(counts - self.expected, rows - before, noise)
        return found

    def shares(self, counts: Floats, rows: float, noise: float) -> Floats:
        """Return each block's share ``(b,)`` of the rows beyond the prior.

        Args:
            counts: ``(b,)`` their noisy counts, less the expected ones.
            rows: Rows beyond the prior.
            noise: Standard deviation of each count.
        """
        size = len(counts)
        first, end = np.triu_indices(size)
        sums, length = np.concatenate([[0.0], np.cumsum(counts)]), end + 1.0 - first
        # Log likelihood ratio, against no rows, of rows spread evenly over the blocks from ``first`` to ``end``.
        explained = rows * (sums[end + 1] - sums[first] - rows / 2) / (length * noise**2)
        reach = np.zeros(len(first)) if self.before == self.after else end if self.before else size - 1 - first
        farther = _FARTHER_YET if self.expected.any() else _FARTHER
        logs = explained + math.log(farther) * reach
        each = np.exp(logs - logs.max()) / length
        # The average of all intervals' densities, by cumulating where they begin and end.
        steps = np.bincount(first, each, size + 1) - np.bincount(end + 1, each, size + 1)
        found: Floats = np.maximum(np.cumsum(steps)[:size], 0.0)
        found /= found.sum()
        return found


def find_blanks(
    leaves: ColumnLeaves, own: Ints, counts: Floats, noise: float
) -> tuple[list[BlankRun], npt.NDArray[np.bool_]]:
    """Return the runs of blocks that are not significant, and a mask ``(groups,)`` of the blocks that are.

    Args:
        leaves: A column's leaves, with regions without located rows marked; unmarked if every value is a group.
        own: ``(leaves,)`` its groups.
        counts: ``(groups,)`` their noisy counts.
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


def _blank(run: Ints, rows: Floats, wide: Floats) -> BlankRun:
    """Return a run of blocks, with the rows expected by the prior.

    Args:
        run: The run's groups.
        rows: ``(body,)`` rows of all groups with located rows, without heavy single values.
        wide: ``(body,)`` number of public cells that each spans.
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
    return BlankRun(groups=run, expected=expected, before=before, after=after)


def _rows_within(rows: Floats, wide: Floats, start: float, size: float) -> float:
    """Return the rows in ``size`` cells from ``start`` on, spread evenly within each group."""
    edges = np.append(0.0, np.cumsum(wide))
    first, last = np.interp([start, start + size], edges, np.append(0.0, np.cumsum(rows)))
    return float(last - first)


def _continued(near: float, ratio: float, edges: Floats) -> Floats:
    """Return the rows ``(b,)`` of blocks after one with ``near`` rows, decreasing ever faster.

    Args:
        near: Rows of the last block before them.
        ratio: ``near`` over the rows of the block before that.
        edges: ``(b + 1,)`` the blocks' edges, with a first block of size 1.
    """
    steps = np.arange(math.ceil(edges[-1]))
    each = near * np.cumprod(min(_FASTER * ratio, _SLOWEST) * _FASTER**steps)
    found: Floats = np.diff(np.interp(edges, np.arange(len(each) + 1), np.append(0.0, np.cumsum(each))))
    return found


def join_blanks(blanks: list[BlankRun], counts: Floats, variances: Floats) -> tuple[Floats, Floats, Ints]:
    """Return counts and variances with each run as one group, shrunk towards its expected rows.

    Returns:
        ``(g,)`` counts, ``(g,)`` variances, and the new group of each of the groups before.
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
    """Return the places of each run of marked entries."""
    parts = np.split(np.arange(len(marked)), np.flatnonzero(np.diff(marked.astype(int)) != 0) + 1)
    return [part for part in parts if len(part) and marked[part[0]]]
