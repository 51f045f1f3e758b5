"""Private noisy counts and public ones of unknown bias, combined by a random-effects model.

A cell has x rows. The private answer is y = x + noise of known variance σ², and the public rows say p. Of people like
the public ones x would be p up to sampling, of variance t. Others differ by more: x − p has the variance φ t, with an
unknown φ ≥ 1 for each table: one column may fit, and another may not. φ is one of a few values, a factor of four apart.
How likely each is follows from y − p of the table, and from all tables before (empirical Bayes). So public rows that
fit take most of the noise away, and the weight of others goes to 0.

Beside much noise even a count of large bias would help a single cell, and yet it would mislead: without public rows an
estimate falls back to its public parent, even values or independent columns, and not to noise. So public counts have
weight only as far as their distance from that parent is more than their bias.

Differences are taken as wavelets along each axis, from all cells down to neighbours. One cell of a population that is
older may well look like noise; the sum of a hundred such cells does not, and it is that sum which would mislead.

Sources: James and Stein (1961) and Efron and Morris (1973, J. Am. Stat. Assoc. 68), shrinkage by what the data say of
it; DerSimonian and Laird (1986, Controlled Clinical Trials 7), random effects; Donoho and Johnstone (1995, J. Am. Stat.
Assoc. 90), shrinkage of wavelets.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import sparse

Floats: TypeAlias = npt.NDArray[np.float64]

_FACTORS = 4.0 ** np.arange(31)
"""Values of φ. A weight by precision that is off by two loses a ninth of the variance at most; with the last one the
public count of a cell without public rows has no weight beside noise of a billion rows."""
_ROUNDS, _LEAST = 100, 1e-9
_PRIOR = 1.0
"""Tables that an even prior of φ is worth (Perks 1947)."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ComparedCounts:
    """A table's private and public counts.

    Attributes:
        counts: Private noisy counts, of any shape; cells that are alike are neighbours.
        variance: σ², of each count's noise.
        public: What the public rows say of each.
        sampling: The variance t of what they say if they fit, positive.
        told: The squared distance of the public counts from their parent.
    """

    counts: Floats
    variance: float
    public: Floats
    sampling: Floats
    told: float


class RandomEffects:
    """The fit of public rows, as far as private answers have shown it."""

    def __init__(self) -> None:
        self._logs = np.zeros((0, len(_FACTORS)))

    def combine(self, tables: Sequence[ComparedCounts]) -> list[tuple[Floats, Floats]]:
        """Return the posterior means and variances of each table's counts, in their shape; later tables learn of it."""
        if not tables:
            return []
        waves = [_TableWaves.of(table) for table in tables]
        self._logs = np.vstack([self._logs, *(own.likelihoods() for own in waves)])
        likely = np.exp(self._logs - self._logs.max(1, keepdims=True))
        weights = np.ones(len(_FACTORS))
        for _ in range(_ROUNDS):  # EM of φ's distribution over all tables so far
            chances = likely * weights
            chances /= chances.sum(1, keepdims=True)
            weights = chances.sum(0) + _PRIOR / len(_FACTORS)
        return [own.posterior(each) for own, each in zip(waves, chances[-len(waves) :], strict=True)]


@dataclass(frozen=True, kw_only=True, eq=False)
class _TableWaves:
    """A table's differences as wavelets.

    Attributes:
        table: The table.
        apart: ``(n,)`` private answers less public ones.
        sampling: ``(n,)`` the variance of the latter.
    """

    table: ComparedCounts
    apart: Floats
    sampling: Floats

    @classmethod
    def of(cls, table: ComparedCounts) -> _TableWaves:
        waves = [_haar(size) for size in table.counts.shape]
        squares = [own.multiply(own).tocsr() for own in waves]
        apart, sampling = _along(waves, table.counts - table.public), _along(squares, table.sampling)
        return cls(table=table, apart=apart.ravel(), sampling=sampling.ravel())

    def likelihoods(self) -> Floats:
        """Return the log likelihood ``(K,)`` of each φ."""
        total = self._total[:, 1:]  # the first wavelet is the number of rows, which says nothing of them
        found: Floats = -0.5 * (self.apart[1:] ** 2 / total + np.log(total)).sum(1)
        return found

    def posterior(self, chances: Floats) -> tuple[Floats, Floats]:
        """Return the means and variances of counts, for the probabilities ``(K,)`` of φ."""
        bias = np.minimum((_FACTORS - 1) * self.sampling.sum() / max(self.table.told, _LEAST), 1.0)
        own = 1 - (1 - bias)[:, None] * self.table.variance / self._total  # the private answer's weight, for each φ
        kept = chances @ own
        spread = chances @ (own**2 * self.table.variance + (1 - own) ** 2 * (self._total - self.table.variance))
        spread += self.apart**2 * np.maximum(chances @ own**2 - kept**2, 0.0)
        shape = self.table.counts.shape
        back = [_haar(size).T.tocsr() for size in shape]
        squares = [each.multiply(each).tocsr() for each in back]
        means = self.table.public + _along(back, (kept * self.apart).reshape(shape))
        return np.asarray(means, dtype=np.float64), _along(squares, spread.reshape(shape))

    @property
    def _total(self) -> Floats:
        """``(K, n)`` variance of the differences, for each φ."""
        return np.asarray(np.multiply.outer(_FACTORS, self.sampling) + self.table.variance, dtype=np.float64)


def _along(matrices: list[Any], values: Floats) -> Floats:
    """Return values multiplied by a matrix along each axis."""
    for axis, matrix in enumerate(matrices):
        moved = np.moveaxis(values, axis, 0)
        found = matrix @ moved.reshape(len(moved), -1)
        values = np.asarray(np.moveaxis(found.reshape(moved.shape), 0, axis), dtype=np.float64)
    return values


@lru_cache(maxsize=128)
def _haar(size: int) -> Any:
    """Return the orthonormal Haar wavelets ``(size, size)`` of so many cells, sparse; halves may differ by a cell."""
    rows, columns, entries, todo = (
        [np.zeros(size, np.int64)],
        [np.arange(size)],
        [np.full(size, size**-0.5)],
        [(0, size)],
    )
    number = 1
    while todo:
        first, after = todo.pop()
        middle = (first + after) // 2
        if middle == first:
            continue
        left, right = middle - first, after - middle
        height = math.sqrt(left * right / (left + right))
        rows.append(np.full(after - first, number))
        columns.append(np.arange(first, after))
        entries.append(np.repeat([height / left, -height / right], [left, right]))
        number += 1
        todo += [(first, middle), (middle, after)]
    places = np.concatenate(rows), np.concatenate(columns)
    return sparse.csr_array((np.concatenate(entries), places), shape=(size, size))
