"""The likelihood of the hours of a day, from a noisy count of all rows by hour.

Public cells of a moment are days wide, and too few rows are in each to say when people come. All days together say it.
Round values say some of a column's hours already: days without a time are midnights. Counts differ from what they say
by a profile and by noise, and are shrunk by the share of noise (:mod:`doublure.methods.statistics.tables.borrowing`).
Where an earlier stage has counted the hours of other rows, they are shrunk to those instead of even ones.
Then hours and lattices are scaled until rows on each have both sums (Deming and Stephan 1940, Annals of Mathematical
Statistics 11): no other minute of the first hour is likelier for the midnights.
"""

from __future__ import annotations

import numpy as np

from doublure.methods.statistics.binning import project_to_simplex
from doublure.methods.statistics.tables.borrowing import shrink_to_shares
from doublure.methods.statistics.tables.leaves import ColumnLeaves, Floats
from doublure.schema.columns import IntegerDomain
from doublure.support import lattices

_ROUNDS = 50
_LEAST = 1e-12
_HALF = 0.5
"""Least rows of an hour, as by Jeffreys' prior: noise is no evidence that there are none."""


def likely_hours(
    domain: IntegerDomain, pulls: Floats, counts: Floats, variances: Floats, told: Floats | None = None
) -> lattices.PeriodWeights:
    """Return the weights of integers by hour, with which rows on lattices are as before.

    Args:
        domain: The integers that stand for a column's values.
        pulls: ``(K,)`` how much likelier a value of each lattice is, where hours are equally likely.
        counts: ``(H,)`` noisy counts of rows by hour.
        variances: ``(H,)`` of their noise.
        told: ``(H,)`` hours that an earlier stage tells; None: even ones.
    """
    parts, steps = len(counts), domain.nested_steps()
    first, last = np.array([domain.clock_from]), np.array([domain.last])
    even = lattices.members_by_part(first, last, steps, parts)[0].T * pulls[:, None]
    even /= even.sum()
    total = max(float(counts.sum()), 1.0)
    by_hour, by_lattice = even.sum(0), even.sum(1)
    if told is not None and told.any():
        by_hour = told / told.sum()
    likely = shrink_to_shares(counts, variances, by_hour, total=total)
    wanted = project_to_simplex(likely, variances, total=total) / total
    confined = np.where((even > 0).sum(1, keepdims=True) == 1, even, 0.0)  # days and half days lie in one hour each
    wanted = np.maximum(wanted, confined.sum(0) + _HALF / total)
    wanted /= wanted.sum()
    hours, balance = np.ones(parts), np.ones(len(steps))
    for _ in range(_ROUNDS):
        hours = wanted / np.maximum(balance @ even, _LEAST)
        balance = by_lattice / np.maximum(even @ hours, _LEAST)
    return lattices.PeriodWeights(steps, balance, np.maximum(hours, _LEAST))


def hours_of_short_gaps(leaves: ColumnLeaves, parts: int) -> Floats:
    """Return the likely rows ``(H,)`` that are counted by hour although their numbers tell no time of day."""
    short = leaves.starts < leaves.domain.clock_from
    steps = leaves.domain.nested_steps()
    rows = lattices.members_by_part(leaves.starts[short], leaves.ends[short], steps, parts) @ leaves.pulls
    found: Floats = leaves.mass[: len(short)][short] @ (rows / rows.sum(1, keepdims=True))
    return found
