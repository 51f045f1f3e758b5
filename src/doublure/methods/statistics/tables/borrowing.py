"""Shrinkage of groups by empirical Bayes: a class's towards those of all other rows, a column's towards even ones.

A class differs from the others by δ in each group. Its noisy count c has the variance v, and the scaled count b of the
other classes is independent of it, with the variance u. If δ has the variance t, the best estimate is b + w (c − b),
with w = (t + u) / (t + u + v). The difference c − b has the variance t + u + v, which says how likely each t is; w is
averaged over t (Efron and Morris 1973, JASA 68; Hoeting et al. 1999, Statistical Science 14). A class of many rows
keeps its own counts, because b is uncertain. A rare class keeps of its own what noise does not explain.

All rows have nothing to borrow from but even groups, for which u is 0. There t is at most what one group with all rows
would make it: where noise exceeds all rows, groups are even whatever it says.
"""

from __future__ import annotations

import numpy as np
from scipy import special

from doublure.methods.statistics.tables.leaves import Floats

_RATIOS = (0.0, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 1000.0)
"""Variances of δ, over the noise's, that are equally likely a priori: half a decade apart while noise may hide δ."""

_SPREADS = np.append(0.0, 10.0 ** np.arange(-3.0, 3.5, 0.5))
"""Variances of shares, over the square of an even one."""


def shrink_groups(counts: Floats, variances: Floats, rows: Floats) -> tuple[Floats, Floats]:
    """Return the posterior means and variances of a column's groups by class, ``(m, V)`` each.

    Args:
        counts: ``(m, V)`` noisy counts.
        variances: ``(m, V)``.
        rows: ``(V,)`` rows of each class.
    """
    both = [_shrunk(counts, variances, rows, own) for own in range(len(rows))]
    return np.stack([likely for likely, _ in both], axis=1), np.stack([left for _, left in both], axis=1)


def _shrunk(counts: Floats, variances: Floats, rows: Floats, own: int) -> tuple[Floats, Floats]:
    others = np.arange(len(rows)) != own
    scale = rows[own] / max(float(rows[others].sum()), 1.0)
    base, spread = scale * counts[:, others].sum(1), scale**2 * variances[:, others].sum(1)
    base += (counts[:, own] - base).mean()  # a class's rows are known from its own count
    apart = counts[:, own] - base
    noise = (variances[:, own] + spread) * (1 - 1 / max(2, len(apart)))
    priors = np.array(_RATIOS)[:, None] * noise.mean()
    chances = _chances(apart, noise + priors)
    each = (spread + priors) / (spread + priors + variances[:, own])
    kept, squared = chances @ each, chances @ each**2
    return base + kept * apart, kept * variances[:, own] + (squared - kept**2) * apart**2


def shrink_to_even(counts: Floats, variances: Floats, *, total: float) -> Floats:
    """Return the posterior means ``(m,)`` of groups that are even a priori, as far as noise explains what they are.

    Args:
        counts: ``(m,)`` noisy counts.
        variances: ``(m,)`` of their noise.
        total: All rows.
    """
    apart, groups = counts - counts.mean(), len(counts)  # all rows are known from all columns together
    noise = variances * (1 - 1 / max(2, groups))
    most = (groups - 1) * (total / groups) ** 2
    priors = np.unique(np.minimum(np.array(_RATIOS) * noise.mean(), most))[:, None]
    kept = _chances(apart, noise + priors) @ (priors / (priors + variances))
    found: Floats = total / groups + kept * apart
    return found


def shrink_to_shares(counts: Floats, variances: Floats, shares: Floats, *, total: float) -> Floats:
    """Return the posterior means ``(m,)`` of groups that have such shares a priori, as far as noise explains the rest.

    How far shares may be off is no question of the noise: of an even group, every variance from a thousandth of its
    rows' square to that of all rows in one group is equally likely, in half decades. Noise beyond all of these keeps
    the shares, where a prior in its own units would follow a tenth of it.

    Args:
        counts: ``(m,)`` noisy counts.
        variances: ``(m,)`` of their noise.
        shares: ``(m,)`` adding up to 1.
        total: All rows.
    """
    apart, groups = counts - total * shares, len(counts)
    apart = apart - apart.mean()
    noise = variances * (1 - 1 / max(2, groups))
    priors = np.unique(np.minimum(_SPREADS, groups - 1))[:, None] * (total / groups) ** 2
    kept = _chances(apart, noise + priors) @ (priors / (priors + variances))
    found: Floats = total * shares + kept * apart
    return found


def _chances(apart: Floats, variances: Floats) -> Floats:
    """Return the chances ``(T,)`` of variances ``(T, m)`` of differences ``(m,)``, equally likely a priori."""
    logs = -0.5 * (np.log(variances) + apart**2 / variances).sum(1)
    found: Floats = special.softmax(logs)
    return found
