"""The likelihood of the hours of a day, from a noisy count of all rows by hour.

Public cells of a moment are days wide, and too few rows are in each to say when people come. All days together say it.
Round values say some of a column's hours already: days without a time are midnights. Counts differ from what they say
by a profile and by noise, and are shrunk by the share of noise (:mod:`doublure.methods.statistics.tables.borrowing`).
Then hours and lattices are scaled until rows on each have both sums (Deming and Stephan 1940, Annals of Mathematical
Statistics 11): no other minute of the first hour is likelier for the midnights.
"""

from __future__ import annotations

import numpy as np

from doublure.methods.statistics.binning import project_to_simplex
from doublure.methods.statistics.tables.borrowing import shrink_to_even
from doublure.methods.statistics.tables.leaves import Floats
from doublure.schema.columns import IntegerDomain
from doublure.support.lattices import PeriodWeights

_ROUNDS = 50
_LEAST = 1e-12


def likely_hours(domain: IntegerDomain, pulls: Floats, counts: Floats, variances: Floats) -> PeriodWeights:
    """Return the weights of integers by hour, with which rows on lattices are as before.

    Args:
        domain: The integers that stand for a column's values.
        pulls: ``(K,)`` how much likelier a value of each lattice is, where hours are equally likely.
        counts: ``(H,)`` noisy counts of rows by hour.
        variances: ``(H,)`` of their noise.
    """
    parts, steps, ends = len(counts), domain.nested_steps(), np.array([[domain.first], [domain.last]])
    each = [PeriodWeights(steps, np.ones(len(steps)), own).classes(*ends)[0] for own in np.eye(parts)]
    even = np.stack(each, axis=1) * pulls[:, None]
    even /= even.sum()
    total = max(float(counts.sum()), 1.0)
    by_hour, by_lattice = total * even.sum(0), even.sum(1)
    apart = shrink_to_even(counts - by_hour, variances, total=total) - total / parts
    wanted = project_to_simplex(by_hour + apart, variances, total=total) / total
    hours, balance = np.ones(parts), np.ones(len(steps))
    for _ in range(_ROUNDS):
        hours = wanted / np.maximum(balance @ even, _LEAST)
        balance = by_lattice / np.maximum(even @ hours, _LEAST)
    return PeriodWeights(steps, balance, np.maximum(hours, _LEAST))
