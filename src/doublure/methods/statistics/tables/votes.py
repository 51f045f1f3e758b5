"""Codes that determine codes: each value of one list votes for the one value of another that it goes with.

A zone lies in one borough. A joint table of both says so cell by cell, and noise breaks it where a zone has few rows. A
vote asks less: which of the borough's values has a zone's rows. A value with n rows and shares q of the other list has
counts

    n ((1 - α) e + α q) + noise,

where e is the value that it votes for, and α the share of rows that do not follow it. Beside votes stand tables of any
kind, in which a value's shares vary around q by a part of the most that they can. The evidence for both is that of all
values together, averaged over what each may vote for, over α or that part, and over how far n is known. Where votes
explain the counts with a confidence of 97.7 %, rows are drawn by votes and the most likely α. A list that splits the
rows of most values is a table of another kind, and is left as it was counted. So is each value that splits in a table
of votes: one whose counts shares of its own explain better than its vote.
"""

from __future__ import annotations

import numpy as np
from scipy import special

from doublure.methods.statistics.tables.leaves import Floats
from doublure.methods.statistics.tables.nodes import NoisyCounts

_STRAY = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4)
"""α, below a half: most rows follow their votes."""
_VARYING = (0.0, 0.01, 0.03, 0.1, 0.3, 0.6, 1.0)
"""Variances of a value's shares, as parts of the largest ones, q (1 - q); 0 is independence."""
_SURE = 0.977
"""Two deviations, as :mod:`doublure.methods.statistics.tables.identities` asks for."""
_TINY = 1e-12


def voted_table(table: NoisyCounts, believed: Floats, rows: Floats, variance: float, shares: Floats) -> Floats | None:
    """Return the joint table ``(f, f')`` of a list and one that it determines; None if it does not.

    Args:
        table: ``(f, f')`` its noisy counts.
        believed: ``(f, f')`` what is believed without votes, and kept of values that do not vote.
        rows: ``(f,)`` likely rows of each value.
        variance: Of the noise in those.
        shares: ``(f',)`` share of each value that is voted for.

    Example:
        >>> counts = np.array([[90.0, 5.0, -8.0], [4.0, 2.0, 70.0], [-3.0, 60.0, 9.0], [3.0, -9.0, 85.0]])
        >>> table, rows = NoisyCounts(counts=counts, variance=36.0), np.array([95.0, 66.0, 62.0, 90.0])
        >>> voted_table(table, np.maximum(counts, 0), rows, 36.0, np.full(3, 1 / 3)).argmax(1).tolist()
        [0, 2, 1, 2]
    """
    shares = np.maximum(shares, _TINY) / np.maximum(shares, _TINY).sum()
    votes = np.stack([_of_votes(table, rows, variance, shares, stray) for stray in _STRAY]) + np.log(shares)
    by_vote = special.logsumexp(votes, axis=2)
    by_shares = np.stack([_of_any(table, rows, variance, shares, part) for part in _VARYING])
    sure = special.expit(special.logsumexp(by_vote.sum(1)) - special.logsumexp(by_shares.sum(1)))
    if sure < _SURE:
        return None
    own = special.logsumexp(by_shares[1:], axis=0) - np.log(len(_VARYING) - 1)
    best = int(np.logaddexp(by_vote, own).sum(1).argmax())  # of the values that follow
    found: Floats = rows[:, None] * _STRAY[best] * shares
    found[np.arange(len(rows)), votes[best].argmax(1)] += rows * (1 - _STRAY[best])
    return np.where((by_vote[best] >= own)[:, None], found, believed)


def _of_votes(table: NoisyCounts, rows: Floats, variance: float, shares: Floats, stray: float) -> Floats:
    """Return the log likelihood ``(f, f')`` of each value's counts for each vote, averaged over its rows.

    Counts are n u + noise with n normal around its estimate, so that their covariance is s² + τ² u uᵀ.
    """
    counts, noise = table.counts, table.variance
    length = (1 - stray) ** 2 + 2 * stray * (1 - stray) * shares + stray**2 * (shares**2).sum()  # u · u
    along = (1 - stray) * counts + stray * (counts @ shares)[:, None]  # counts · u
    apart = (counts**2).sum(1)[:, None] - 2 * rows[:, None] * along + rows[:, None] ** 2 * length
    of_rows = variance * (along - rows[:, None] * length) ** 2 / (noise + variance * length)
    found: Floats = -0.5 * ((apart - of_rows) / noise + np.log1p(variance * length / noise))
    return found


def _of_any(table: NoisyCounts, rows: Floats, variance: float, shares: Floats, part: float) -> Floats:
    """Return the log likelihood ``(f,)`` of each value's counts if it has shares of its own, as far as noise tells."""
    spread = part * rows[:, None] ** 2 * shares * (1 - shares) + variance * shares**2
    apart = (table.counts - rows[:, None] * shares) ** 2
    found: Floats = -0.5 * (apart / (table.variance + spread) + np.log1p(spread / table.variance)).sum(1)
    return found
