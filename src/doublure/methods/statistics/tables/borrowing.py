"""Shrinkage of each class's tables towards those of all other rows, by empirical Bayes.

A class differs from the others by δ in each cell. Its noisy count c has the variance v, and the scaled count b of the
other classes is independent of it, with the variance u. If δ has the variance t, the best estimate is b + w (c − b),
with w = (t + u) / (t + u + v), and its variance is w v. The difference c − b has the variance t + u + v, which says how
likely each t is; w is averaged over t (Efron and Morris 1973, JASA 68; Hoeting et al. 1999). A class of many rows keeps its own counts, because b is uncertain. A rare
class keeps of its own what noise does not explain.
"""

from __future__ import annotations

import numpy as np

from doublure.methods.statistics.tables.leaves import Floats

_ROUNDS = 30
_RATIOS = (0.0, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 1000.0)
"""Variances of δ, over the noise's, that are equally likely a priori: half a decade apart, and more where all is clear."""
_TINY = 1e-12


def shrink_groups(counts: Floats, variances: Floats, rows: Floats) -> tuple[Floats, Floats]:
    """Return a column's groups by class and their variances, ``(m, V)`` each; groups differ by equally much.

    Args:
        counts: ``(m, V)`` noisy counts.
        variances: ``(m, V)``.
        rows: ``(V,)`` rows of each class.
    """
    both = [
        _shrunk(counts[:, own], variances[:, own], *_of_others(counts, variances, rows, own), np.ones(len(counts)))
        for own in range(len(rows))
    ]
    return np.stack([likely for likely, _ in both], axis=1), np.stack([left for _, left in both], axis=1)


def _of_others(counts: Floats, variances: Floats, rows: Floats, own: int) -> tuple[Floats, Floats]:
    """Return the counts of all other classes, scaled to the rows of a class, and their variances."""
    scale = rows[own] / max(float(rows.sum() - rows[own]), 1.0)
    others = np.arange(len(rows)) != own
    return scale * counts[..., others].sum(-1), scale**2 * variances[..., others].sum(-1)


def _shrunk(counts: Floats, variances: Floats, base: Floats, spread: Floats, form: Floats) -> tuple[Floats, Floats]:
    """Return the posterior means and variances of counts; ``form`` is the variance of δ, up to a factor."""
    apart = counts - base
    apart -= apart.mean()  # a class's rows are known from its own count
    noise = (variances + spread) * (1 - 1 / apart.size)
    factors = np.array(_RATIOS) * float((noise * form).sum()) / float((form**2).sum())
    priors = np.multiply.outer(factors, form)
    total, axes = noise + priors, tuple(range(1, priors.ndim))
    logs = -0.5 * (np.log(total) + apart**2 / total).sum(axes)
    chances = np.exp(logs - logs.max())
    chances /= chances.sum()
    each = (spread + priors) / (spread + priors + variances)
    kept, squared = (np.tensordot(chances, each**power, 1) for power in (1, 2))
    return base + kept * apart, kept * variances + (squared - kept**2) * apart**2
