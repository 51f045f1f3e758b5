"""Joint shares of attributes of series or images, from noisy counts of each two of them.

Each pair's noisy table is shrunk towards independence as far as noise explains the difference: first what goes with
numbers in a straight line, which is known best, then the rest. It is fitted to the shares of both (Sinkhorn). The joint
shares are those of the largest entropy with these tables (iterative proportional fitting). All of it is
post-processing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations

import numpy as np

from doublure.methods.statistics.binning import project_to_simplex
from doublure.methods.statistics.series.marginal_tables import shrink
from doublure.methods.statistics.series.step_counts import LEAST_SHARE
from doublure.private.queries.counts import Axis, Counts
from doublure.support.arrays import Floats, Ints

_SWEEPS, _BALANCED = 50, 20
_LEAST = 1e-9


def pair_query(first: int, cells: Iterable[Ints], max_records: int) -> Counts:
    """Return the query that counts each two attributes, whose codes stand in parts from the first on.

    Args:
        first: The first attribute's part.
        cells: For each attribute the cell ``(codes,)`` of each of its codes.
        max_records: The most records of a unit.
    """
    axes = [Axis(part=first + place, cells=own, size=int(own.max()) + 1) for place, own in enumerate(cells)]
    return Counts(tables=list(combinations(axes, 2)), max_records=max_records)


def pair_shares(
    counted: Sequence[Floats], series: float, deviation: float, numbers: Sequence[Floats | None]
) -> list[Floats]:
    """Return the shares of each two attributes' values, of pairs in the order of :func:`itertools.combinations`.

    Args:
        counted: Each pair's noisy counts ``(values, values)``.
        series: Their number.
        deviation: Standard deviation of the noise of a count.
        numbers: For each attribute the numbers ``(values,)`` that its values stand for; None where they are none.
    """
    noise, pairs = deviation / series, list(combinations(range(len(numbers)), 2))
    shares = []
    for place in range(len(numbers)):
        margins = [
            (table.sum(1 - pair.index(place)), table.shape[1 - pair.index(place)])
            for table, pair in zip(counted, pairs, strict=True)
            if place in pair
        ]
        precision = sum(1 / width for _, width in margins)
        counts = sum((own / width for own, width in margins), np.zeros(len(margins[0][0]))) / precision
        variances = np.full(len(counts), deviation**2 / precision)
        own = np.maximum(project_to_simplex(counts, variances, total=series) / series, LEAST_SHARE)
        shares.append(own / own.sum())
    found = []
    for table, (one, other) in zip(counted, pairs, strict=True):
        apart = np.outer(shares[one], shares[other])
        noisy = table / series - apart
        line = _straight(noisy, shares[one], shares[other], numbers[one], numbers[other], noise)
        made = np.maximum(apart + line + shrink(noisy - line, noise**2), _LEAST * apart)
        for _ in range(_BALANCED):
            made *= (shares[one] / made.sum(1))[:, None]
            made *= shares[other] / made.sum(0)
        found.append(made)
    return found


def _straight(
    noisy: Floats, one: Floats, other: Floats, of_one: Floats | None, of_other: Floats | None, deviation: float
) -> Floats:
    """Return the part of a table's difference from independence that goes with numbers in a straight line."""
    if of_one is None and of_other is None:
        return np.zeros_like(noisy)
    reads, writes = zip(*(_axis(*own) for own in ((one, of_one), (other, of_other))), strict=True)
    found = reads[0].T @ noisy @ reads[1]
    noise = deviation**2 * np.outer(*((own**2).sum(0) for own in reads)).mean()
    line: Floats = writes[0] @ shrink(found, noise) @ writes[1].T
    return line


def _axis(shares: Floats, numbers: Floats | None) -> tuple[Floats, Floats]:
    """Return what reads an axis of a table, and what writes it again: of a number, one column that is standardised."""
    if numbers is None:
        return np.eye(len(shares)), np.eye(len(shares))
    place = numbers - shares @ numbers
    place = place / max(float(np.sqrt(shares @ place**2)), _LEAST)
    return place[:, None], (shares * place)[:, None]


def joint_shares(pairs: Sequence[Floats]) -> Floats:
    """Return the joint shares of all attributes' values, in row-major order, of the largest entropy.

    Args:
        pairs: Shares of each two attributes' values, in the order of :func:`itertools.combinations`.
    """
    count = round((1 + np.sqrt(1 + 8 * len(pairs))) / 2)
    sizes = [len(pairs[0]), *(own.shape[1] for own in pairs[: count - 1])]
    found = np.full(sizes, 1 / np.prod(sizes))
    for _ in range(_SWEEPS):
        for axes, wanted in zip(combinations(range(count), 2), pairs, strict=True):
            reached = found.sum(tuple(axis for axis in range(count) if axis not in axes), keepdims=True)
            found = found * (wanted.reshape(reached.shape) / np.maximum(reached, _LEAST**2))
    found = np.maximum(found.reshape(-1), _LEAST / found.size)
    shares: Floats = found / found.sum()
    return shares
