"""Rows of each code of a long public list, given noisy counts of codes and of the groups above them.

Estimates go down the tree. The rows of a group are shared among its parts: even over their codes a priori, a share of
which has none, while others may differ by orders of magnitude (a spike and gamma slabs, averaged over by likelihood).
A part that may well have no row gets none if another part of its group likely has some. So rows without evidence go to
codes of their group with evidence, or to the likeliest; where counts say nothing, all are as likely.

Sources: Hay et al. (2010, PVLDB 3), counts of several levels made consistent; Mitchell and Beauchamp (1988, J. Am.
Stat. Assoc. 83), a spike and a slab; Hoeting et al. (1999, Statistical Science 14), priors averaged by likelihood.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import special

Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]

_EVIDENT = 0.5
"""Least probability of a row in what is evident: below it the median of the rows, nearest to them in total variation,
is 0."""
_STRANGE = 0.025
"""Expected share of evident rows that may have a code which no row has, over all levels below the coarsest.

It is half of 1 row in 20: rows of groups without any evident code may be as many again."""
_STEPS = 40
"""Probabilities tried for the least one that keeps to that share."""
_AS_LIKELY = 0.5
"""Least odds, as a share of the best of a group without evident parts: hardly told apart, they stay even."""
_ONE = 0.5
"""Rows from which on there is at least one."""
_SHAPES, _FILLED = (0.3, 1.0, 3.0, 10.0), (1.0, 0.7, 0.5, 0.3, 0.1, 0.03)
"""Shapes of the slab, half a decade apart, and shares of parts that have rows."""
_GRID, _NEAREST, _FARTHEST, _FAR, _NEVER = 160, 1e-4, 2.0, 6.0, 1e-300
"""Points of the grid of rows, the least and the most of them over the mean, deviations of noise above which a count is
not shrunk, and the least likelihood."""
_LEAST = 1e-9


class CodePosterior:
    """All noisy counts of a list of codes, and the rows of each.

    Args:
        levels: ``(L, n)`` the group of each code, the coarsest level first.
        undrawn: ``(u,)`` codes that are never drawn: their rows go to others of their group.

    Attributes:
        mass: ``(n,)`` rows of each code; before :meth:`fit` nothing.
    """

    def __init__(self, levels: Ints, undrawn: Sequence[int] = ()) -> None:
        count = levels.shape[1]
        self._drawn = np.ones(count)
        self._drawn[list(undrawn)] = 0.0
        self._levels = [np.unique(level, return_inverse=True)[1].reshape(-1) for level in levels]
        self._counts, self._precision = np.zeros(count), np.zeros(count)
        self._seen: list[tuple[Ints, Floats, float]] = []
        self.mass = np.zeros(count)

    def see(self, groups: Ints, counts: Floats, variance: float) -> None:
        """Take the counts ``(m,)`` of groups ``(n,)`` of codes, such as a level, or single codes and the rest.

        Args:
            groups: The group of each code.
            counts: Of each group.
            variance: Of each count's noise.
        """
        alone = np.bincount(groups, minlength=len(counts))[groups] == 1
        before, more = self._precision[alone], 1 / variance
        self._counts[alone] = (self._counts[alone] * before + counts[groups[alone]] * more) / (before + more)
        self._precision[alone] = before + more
        if not alone.all():
            self._seen.append((groups, counts, variance))

    def fit(self, total: float) -> None:
        """Estimate the rows of each code, which add up to a total."""
        count = len(self._counts)
        above, held = np.zeros(count, dtype=np.int64), np.array([total])
        for place, groups in enumerate((*self._levels, np.arange(count))):
            parent = np.zeros(int(groups.max()) + 1, dtype=np.int64)
            parent[groups] = above
            counts, variances = self._together(groups)
            codes = _sums(groups, np.ones(count))
            means = np.maximum(held[parent] * codes / np.bincount(parent, codes)[parent], _LEAST)
            drawn = _sums(groups, self._drawn) > 0
            found = _posterior(_sums(groups, counts), _sums(groups, variances), means).of(drawn)
            evident = _evident(found, parent, held, _STRANGE / len(self._levels)) if place else found.some >= _EVIDENT
            held = _divided(found, evident, parent, held)
            above = groups
        self.mass = held

    def variances(self, groups: Ints) -> Floats:
        """Return the noise's variances ``(m,)`` of the rows of groups of codes, by all counts together."""
        return _sums(groups, self._together(groups)[1])

    def _together(self, within: Ints) -> tuple[Floats, Floats]:
        """Return the codes' counts made consistent with those of groups, and variances that add up in a level's groups.

        Groups that cross those of the level say nothing of one of them. A group's difference from the sum of its codes
        is shared in proportion to variances (Hay et al. 2010, PVLDB 3, one level).
        """
        counts, variances = self._counts.copy(), 1 / np.maximum(self._precision, _LEAST)
        for groups, seen, variance in self._seen:
            first = np.zeros(len(seen), dtype=np.int64)
            first[groups] = within
            crossing = np.bincount(groups, first[groups] != within, len(seen)) > 0
            inside = np.bincount(groups, variances, len(seen))
            missed = np.where(crossing, 0.0, (seen - np.bincount(groups, counts, len(seen))) / (inside + variance))
            counts += variances * missed[groups]
            variances = variances * np.where(crossing, 1.0, variance / (inside + variance))[groups]
        return counts, variances


def _sums(groups: Ints, values: Floats) -> Floats:
    """Return the sums ``(m,)`` of values ``(n,)`` by group."""
    found: Floats = np.bincount(groups, values).astype(np.float64)
    return found


@dataclass(frozen=True, kw_only=True, eq=False)
class _PartPosterior:
    """The posterior of parts of groups, each by itself.

    Attributes:
        rows: ``(m,)`` means of rows.
        variance: ``(m,)``.
        some: ``(m,)`` probabilities that there is a row.
    """

    rows: Floats
    variance: Floats
    some: Floats

    def of(self, drawn: npt.NDArray[np.bool_]) -> _PartPosterior:
        """Return the posterior in which only some parts ``(m,)`` can have rows."""
        return _PartPosterior(rows=self.rows * drawn, variance=self.variance * drawn, some=self.some * drawn)


def _evident(parts: _PartPosterior, parent: Ints, held: Floats, strange: float) -> npt.NDArray[np.bool_]:
    """Return which parts ``(m,)`` likely have a row: as many as leave few of their rows to parts without any.

    It is the false discovery rate, by rows (Müller et al. 2004, J. Am. Stat. Assoc. 99). Where noise drowns a level, a
    part has to be nearly sure; where it does not, one that is likelier than not may be drawn.

    Args:
        parts: Their posterior.
        parent: ``(m,)`` the group of each.
        held: The rows of each group.
        strange: The share of their rows.
    """
    likely = parts.some[parts.some >= _EVIDENT]
    evident: npt.NDArray[np.bool_] = parts.some >= _EVIDENT
    for least in np.unique(np.quantile(likely, np.linspace(0, 1, _STEPS))) if len(likely) else ():
        evident = parts.some >= least
        rows = _divided(parts, evident, parent, held)[evident]
        if (1 - parts.some[evident]) @ rows <= strange * rows.sum():
            break
    return evident


def _divided(parts: _PartPosterior, evident: npt.NDArray[np.bool_], parent: Ints, held: Floats) -> Floats:
    """Return the rows ``(m,)`` of parts, which add up to those of their groups.

    Evident ones have all if there are any, else the likeliest. Variances share what the means leave over, or exceed.

    Args:
        parts: Their posterior.
        evident: ``(m,)`` which likely have a row.
        parent: ``(m,)`` the group of each.
        held: The rows of each group.
    """
    size = len(held)
    odds, best = parts.some / np.maximum(1 - parts.some, _LEAST), np.zeros(size)
    np.maximum.at(best, parent, odds)
    none = (np.bincount(parent, evident, size) == 0)[parent]
    kept = (parts.some > 0) & (evident | (none & (odds >= _AS_LIKELY * best[parent])))
    rows, spread = kept * np.maximum(parts.rows, _LEAST), kept * np.maximum(parts.variance, _LEAST)
    left = held - np.bincount(parent, rows, size)
    rows = kept * np.maximum(rows + spread * (left / np.maximum(np.bincount(parent, spread, size), _LEAST))[parent], 0)
    found: Floats = rows * (held / np.maximum(np.bincount(parent, rows, size), _LEAST))[parent]
    return found


def _posterior(counts: Floats, variances: Floats, means: Floats) -> _PartPosterior:
    """Return the posterior of rows, of which priors know the means ``(m,)``."""
    noise = np.sqrt(variances)
    edges = np.concatenate([[0.0], np.geomspace(_NEAREST, _FARTHEST * len(counts), _GRID)])
    points = np.concatenate([[0.0], np.sqrt(edges[1:-1] * edges[2:])])
    priors = np.stack([_prior(edges, shape, filled) for shape in _SHAPES for filled in _FILLED])
    apart = -0.5 * ((counts[:, None] - means[:, None] * points) / noise[:, None]) ** 2
    likely = np.exp(apart - apart.max(1, keepdims=True))
    evidence = np.maximum(likely @ priors.T, _NEVER)
    logs = np.log(evidence).sum(0)
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    likely *= (weights / evidence) @ priors  # averaged over priors
    rows, squares = (means**power * (likely @ points**power) for power in (1, 2))
    some = (likely * (means[:, None] * points >= _ONE)).sum(1)
    far = counts > _FAR * noise
    return _PartPosterior(
        rows=np.where(far, counts, rows),
        variance=np.where(far, variances, np.maximum(squares - rows**2, 0.0)),
        some=np.where(far, 1.0, some),
    )


def _prior(edges: Floats, shape: float, filled: float) -> Floats:
    """Return the probabilities of intervals of rows over their mean, of which the first stands for none."""
    slab = np.diff(special.gammainc(shape, shape * edges * filled))
    prior: Floats = filled * slab / slab.sum()
    prior[0] += 1 - filled
    return prior
