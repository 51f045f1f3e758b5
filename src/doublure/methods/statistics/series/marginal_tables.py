"""Each step's cumulative shares from noisy trees of counts, by post-processing.

From coarse to fine, each split of a node is shrunk towards its expectation: an even split, or that of all groups
together. Neighbouring steps are similar: splits of one node at all steps are shrunk together, in octaves of their
cosine transform (James and Stein's estimator, positive part). A half that holds no more than noise, over all steps, is
emptied, and a tail below the noise is replaced by a normal one, so that noise makes no extreme values. A cumulative
share is then a sum over a few splits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.fft import dct, idct

Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]

_SPREADS = 2.0 ** np.arange(-24, 9)
"""Candidates of τ², from numbers that hardly differ to ones of which a few, such as a mean of many steps, are large."""
_EVEN = 1e-7
"""Share of each table that is spread evenly, so that every cell has a positive share."""


@dataclass(frozen=True, kw_only=True)
class NoisyTree:
    """The noisy trees of one channel's steps.

    Attributes:
        levels: Differences ``(steps, 2^level)``, coarse to fine.
        deviations: Standard deviation of each level's noise.
        totals: ``(steps,)`` number of records with a value.
    """

    levels: list[Floats]
    deviations: list[float]
    totals: Floats


def octaves(count: int) -> Ints:
    """Return the octave of each frequency: 0, 1, 2 and 3, 4 to 7, and so on."""
    return np.array([0 if k == 0 else int(np.log2(k)) + 1 for k in range(count)], dtype=np.int64)


def shrink(values: Floats, variance: float) -> Floats:
    """Return a block of noisy numbers shrunk towards zero (James and Stein, positive part).

    Args:
        values: Numbers of any shape.
        variance: Variance of the noise.
    """
    size = values.size
    share = 1 - max(size - 2, min(size, 1.5)) * variance / max(float((values**2).sum()), 1e-30)
    found: Floats = values * max(0.0, share)
    return found


def shrink_by_evidence(values: Floats, variance: float, room: Floats) -> Floats:
    """Return noisy numbers shrunk towards zero by how large they are together (empirical Bayes).

    A number is normal with τ² room² as its variance, and τ² is averaged over by likelihood. So numbers that have little
    room get little of the noise, and with weak evidence all are zero (Morris 1983, JASA 78).

    Args:
        values: ``(…, n)``.
        variance: Of their noise.
        room: ``(n,)`` their relative size a priori.
    """
    prior = np.append(0.0, _SPREADS) * (room**2)[..., None]
    squares = (values**2).sum(0)[:, None]
    variance = max(variance, 1e-12)
    fits = -(len(values) * np.log(prior + variance) + squares / (prior + variance)).sum(0) / 2
    chances = np.exp(fits - fits.max())
    found: Floats = values * ((prior / (prior + variance)) @ (chances / chances.sum()))
    return found


def step_masses(tree: NoisyTree, expected: Floats) -> Floats:
    """Return the estimated records of each leaf at each step ``(steps, leaves)``.

    Args:
        tree: The noisy counts.
        expected: ``(steps, leaves)`` shares towards whose splits the counts are shrunk.
    """
    steps = len(tree.totals)
    octave = octaves(steps)
    nodes = tree.totals[:, None].astype(np.float64)
    for place, (counted, deviation) in enumerate(zip(tree.levels, tree.deviations, strict=True)):
        lean = _leanings(expected, place, steps)
        split = nodes * lean
        room = np.sqrt(((nodes**2) * (1 - lean**2)).mean(0))
        apart = dct(counted - split, axis=0, norm="ortho")
        for one in range(int(octave[-1]) + 1):
            apart[octave == one] = shrink_by_evidence(apart[octave == one], deviation**2, room)
        split = np.clip(split + idct(apart, axis=0, norm="ortho"), -nodes, nodes)
        halves = np.empty((steps, 2 * nodes.shape[1]))
        halves[:, ::2], halves[:, 1::2] = (nodes + split) / 2, (nodes - split) / 2
        nodes = halves
    return nodes


def _leanings(expected: Floats, level: int, steps: int) -> Floats:
    """Return the expected difference of halves, over their sum, of each node ``(steps, 2^level)``, in [-1, 1]."""
    halves = expected.reshape(steps, 2**level, 2, -1).sum(3)
    whole = halves.sum(2)
    found: Floats = np.where(whole > 0, (halves[:, :, 0] - halves[:, :, 1]) / np.where(whole > 0, whole, 1), 0.0)
    return found


def cumulative(masses: Floats) -> Floats:
    """Return increasing cumulative shares ``(steps, cells + 1)`` from 0 to 1 of masses ``(steps, cells)``."""
    shares = np.maximum(masses, 0)
    sums = np.cumsum(shares / np.maximum(shares.sum(1), 1e-9)[:, None], axis=1)
    sums[:, -1] = 1
    cells = masses.shape[1]
    found = np.concatenate([np.zeros((len(sums), 1)), np.minimum(sums, 1)], axis=1)
    mixed: Floats = (1 - _EVEN) * found + _EVEN * np.linspace(0, 1, cells + 1)
    return mixed
